//! The legs of a run: each time that `evoxo run` computes a part of a run is one leg. The seconds and workers of a run that
//! was stopped and continued are those of all its legs.

use std::time::Instant;

use evoxo_proto::v1;
use serde_json::{Value, json};

/// The most legs that are recorded. If there are more, the list omits the first ones, but their seconds still count.
const LEGS_MAX: usize = 1000;

/// This build, as results name it.
pub(crate) fn build() -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "commit": env!("EVOXO_COMMIT"),
        "rustc": env!("EVOXO_RUSTC"),
    })
}

/// The leg that this process computes.
pub(crate) struct Leg {
    start: Instant,
    workers: u32,
    /// Rounds that were done before this leg.
    rounds_before: u64,
}

impl Leg {
    /// Begins a leg at the run's present state, if the run is known.
    pub(crate) fn begin(start: Instant, workers: u32, run: Option<&v1::Run>) -> Self {
        Self { start, workers, rounds_before: run.map_or(0, |run| run.rounds_done) }
    }

    /// All legs of a run when this leg ends, including those of an earlier provenance.
    pub(crate) fn end(&self, run: &v1::Run, before: Option<&Value>) -> Legs {
        let mut legs = before.and_then(|before| before["legs"].as_array().cloned()).unwrap_or_default();
        let seconds_before = before.and_then(|before| before["seconds"].as_f64()).unwrap_or(0.0);
        let seconds = self.start.elapsed().as_secs_f64();
        let mut leg = build();
        leg["workers"] = self.workers.into();
        leg["seconds"] = seconds.into();
        leg["rounds"] = json!([self.rounds_before, run.rounds_done]);
        legs.push(leg);
        legs.drain(..legs.len().saturating_sub(LEGS_MAX));
        Legs { legs, seconds: seconds_before + seconds }
    }
}

/// All legs of a run so far.
pub(crate) struct Legs {
    legs: Vec<Value>,
    seconds: f64,
}

impl Legs {
    /// The seconds of all legs. A leg that was killed recorded nothing and is missing.
    pub(crate) fn seconds(&self) -> f64 {
        self.seconds
    }

    /// The largest number of workers of any leg.
    pub(crate) fn workers(&self) -> u64 {
        self.legs.iter().filter_map(|leg| leg["workers"].as_u64()).max().unwrap_or(0)
    }

    /// The legs in the form in which results keep them.
    pub(crate) fn into_json(self) -> Value {
        self.legs.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_legs_are_appended() {
        let run = |rounds_done| v1::Run { rounds_done, ..v1::Run::default() };
        let first = Leg::begin(Instant::now(), 2, None).end(&run(7), None);
        assert_eq!((first.workers(), first.legs.len()), (2, 1));
        let provenance = json!({"seconds": 100.5, "workers": 2, "legs": first.into_json()});
        let second = Leg::begin(Instant::now(), 0, Some(&run(7))).end(&run(9), Some(&provenance));
        assert!(second.seconds() >= 100.5 && second.workers() == 2);
        let rounds: Vec<Value> = second.legs.iter().map(|leg| leg["rounds"].clone()).collect();
        assert_eq!(rounds, [json!([0, 7]), json!([7, 9])]);
    }

    #[test]
    fn the_length_of_the_list_is_limited() {
        let before = json!({"seconds": 1.0, "legs": vec![json!({"workers": 3, "seconds": 1.0}); LEGS_MAX]});
        let legs = Leg::begin(Instant::now(), 1, None).end(&v1::Run::default(), Some(&before));
        assert_eq!((legs.legs.len(), legs.legs[LEGS_MAX - 1]["workers"].as_u64()), (LEGS_MAX, Some(1)));
    }
}
