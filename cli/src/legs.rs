//! The legs of a run: each time that `evoxo run` computes a part of a run is one leg. The seconds and workers of a run that
//! was stopped and continued are those of all its legs.

use std::time::Instant;

use evoxo_common::text::counted;
use evoxo_process::Build;
use evoxo_proto::{shown, v1};
use serde_json::{Value, json};

use crate::{progress::short_time, say::tell};

/// The most legs that are recorded. If there are more, the list omits the first ones, but their seconds still count.
const LEGS_MAX: usize = 1000;

/// This build, as results name it.
pub(crate) fn build() -> Value {
    let Build { version, commit, rustc } = evoxo_process::build();
    json!({"version": version, "commit": commit, "rustc": rustc})
}

/// The version that computed a run, or only fetched it if nothing else is known, and its commit; `provenance` is the result's.
pub(crate) fn made_with(provenance: &Value) -> [String; 2] {
    let about = if provenance["version"].is_string() { provenance } else { &provenance["fetched_with"] };
    ["version", "commit"].map(|name| about[name].as_str().unwrap_or("not recorded").to_owned())
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

    /// The phases of this leg, whose last round is absorbed or saved now. `run` says where the coordinator's time went.
    pub(crate) fn phases(&self, run: &v1::Run) -> Phases {
        let now = Instant::now();
        let spent = run.spent.unwrap_or_default();
        let slots = u64::from(self.workers.max(1));
        let running = now.duration_since(self.start).as_micros() as u64;
        let computing = (spent.computing_us / slots).min(running);
        let v1::Spent { absorbing_us: absorbing, saving_us: saving, evaluations, recalled, rechecked, .. } = spent;
        Phases {
            recalled: (evaluations > 0).then_some(Recalled { evaluations, recalled, rechecked }),
            start: self.start,
            workers: self.workers,
            running: now,
            computing,
            waiting: running - computing,
            absorbing,
            saving,
        }
    }

    /// All legs of a run when this leg ends, including those of an earlier provenance.
    pub(crate) fn end(&self, run: &v1::Run, phases: &Phases, before: Option<&Value>) -> Legs {
        let mut legs = before.and_then(|before| before["legs"].as_array().cloned()).unwrap_or_default();
        let seconds_before = before.and_then(|before| before["seconds"].as_f64()).unwrap_or(0.0);
        let seconds = self.start.elapsed().as_secs_f64();
        let mut leg = build();
        leg["workers"] = self.workers.into();
        leg["seconds"] = seconds.into();
        leg["rounds"] = json!([self.rounds_before, run.rounds_done]);
        leg["phases"] = phases.to_json();
        if let Some(evaluations) = phases.recalled.map(Recalled::to_json) {
            leg["evaluations"] = evaluations;
        }
        legs.push(leg);
        legs.drain(..legs.len().saturating_sub(LEGS_MAX));
        Legs { legs, seconds: seconds_before + seconds }
    }
}

/// Where the wall-clock time of a leg went, in microseconds. No result depends on it.
///
/// A worker of the leg either computes a task or waits for one: on average over the workers, both together take from the
/// leg's start to its last round. The coordinator absorbs and saves meanwhile, and a part of the waiting is due to that.
#[derive(Clone, Copy)]
pub(crate) struct Phases {
    start: Instant,
    workers: u32,
    /// When the last round was absorbed and saved. What follows is the report.
    running: Instant,
    computing: u64,
    waiting: u64,
    absorbing: u64,
    saving: u64,
    /// `None` if evaluations are not worth recalling.
    recalled: Option<Recalled>,
}

/// How many evaluations of a leg were planned, how many of them were recalled instead of computed, and how many were computed
/// although their values were known.
#[derive(Clone, Copy)]
struct Recalled {
    evaluations: u64,
    recalled: u64,
    rechecked: u64,
}

impl Recalled {
    fn to_json(self) -> Value {
        let Self { evaluations, recalled, rechecked } = self;
        json!({"planned": evaluations, "computed": evaluations - recalled, "recalled": recalled, "rechecked": rechecked})
    }

    fn sentence(self) -> String {
        let Self { evaluations, recalled, rechecked } = self;
        let computed = evaluations - recalled;
        let checks =
            if rechecked == 0 { String::new() } else { format!(", {rechecked} of them to check known values") };
        format!(
            "of {} {computed} were computed{checks}; the values of the others were known",
            counted(evaluations as usize, "evaluation")
        )
    }
}

/// A leg that took at least this long, in seconds, is worth a line about its phases.
const TOLD_FROM_S: f64 = 1.0;

impl Phases {
    /// The phases up to the report, in seconds.
    fn to_json(self) -> Value {
        let Self { computing, waiting, absorbing, saving, .. } = self;
        let parts = [("computing", computing), ("waiting", waiting), ("absorbing", absorbing), ("saving", saving)];
        parts.map(|(name, us)| (name.to_owned(), Value::from(shown::seconds(us)))).into_iter().collect()
    }

    /// Adds the time of the report, which ends now, to the last leg of a result.
    pub(crate) fn add_report(self, result: &mut Value) {
        let last = result["provenance"]["legs"].as_array_mut().and_then(|legs| legs.last_mut());
        if let Some(phases) = last.and_then(|leg| leg["phases"].as_object_mut()) {
            phases.insert("report".into(), shown::seconds(self.running.elapsed().as_micros() as u64).into());
        }
    }

    /// Prints where the time went, if the leg took long enough for somebody to ask.
    pub(crate) fn tell(self) {
        let seconds = self.start.elapsed().as_secs_f64();
        if let Some(recalled) = self.recalled.filter(|recalled| recalled.recalled > 0) {
            tell(recalled.sentence());
        }
        if seconds >= TOLD_FROM_S {
            tell(self.sentence(seconds, self.running.elapsed().as_secs_f64()));
        }
    }

    fn sentence(self, seconds: f64, report: f64) -> String {
        let Self { computing, waiting, absorbing, saving, .. } = self;
        let [computing, waiting, absorbing, saving] =
            [computing, waiting, absorbing, saving].map(|us| short_time(us as f64 / 1e6));
        let who = match self.workers {
            0 | 1 => "the worker computed".to_owned(),
            many => format!("each of {many} workers computed"),
        };
        format!(
            "{} in all: {who} for {computing} and waited for {waiting}, while absorbing took {absorbing} and saving \
             {saving}; then the report took {}",
            short_time(seconds),
            short_time(report)
        )
    }
}

/// The time that one coordinator after another spent on a run: each of them counts from its own start.
#[derive(Default)]
pub(crate) struct Spending {
    earlier: v1::Spent,
    now: v1::Spent,
    tasks_done: u64,
}

impl Spending {
    /// Replaces what the present coordinator spent on the run by what all of them spent.
    pub(crate) fn add_earlier(&mut self, run: &mut v1::Run) {
        let sum = |one: v1::Spent, other: v1::Spent| v1::Spent {
            computing_us: one.computing_us.saturating_add(other.computing_us),
            absorbing_us: one.absorbing_us.saturating_add(other.absorbing_us),
            saving_us: one.saving_us.saturating_add(other.saving_us),
            evaluations: one.evaluations.saturating_add(other.evaluations),
            recalled: one.recalled.saturating_add(other.recalled),
            rechecked: one.rechecked.saturating_add(other.rechecked),
        };
        if run.tasks_done < self.tasks_done {
            self.earlier = sum(self.earlier, self.now);
        }
        (self.now, self.tasks_done) = (run.spent.unwrap_or_default(), run.tasks_done);
        run.spent = Some(sum(self.earlier, self.now));
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
    use std::time::Duration;

    use super::*;

    /// The leg of this many workers that ends now.
    fn leg(workers: u32, before: u64, after: u64, earlier: Option<&Value>) -> Legs {
        let run = |rounds_done| v1::Run { rounds_done, ..v1::Run::default() };
        let leg = Leg::begin(Instant::now(), workers, Some(&run(before)));
        leg.end(&run(after), &leg.phases(&run(after)), earlier)
    }

    #[test]
    fn new_legs_are_appended() {
        let first = leg(2, 0, 7, None);
        assert_eq!((first.workers(), first.legs.len()), (2, 1));
        let provenance = json!({"seconds": 100.5, "workers": 2, "legs": first.into_json()});
        let second = leg(0, 7, 9, Some(&provenance));
        assert!(second.seconds() >= 100.5 && second.workers() == 2);
        let rounds: Vec<Value> = second.legs.iter().map(|leg| leg["rounds"].clone()).collect();
        assert_eq!(rounds, [json!([0, 7]), json!([7, 9])]);
    }

    #[test]
    fn the_length_of_the_list_is_limited() {
        let before = json!({"seconds": 1.0, "legs": vec![json!({"workers": 3, "seconds": 1.0}); LEGS_MAX]});
        let legs = leg(1, 0, 0, Some(&before));
        assert_eq!((legs.legs.len(), legs.legs[LEGS_MAX - 1]["workers"].as_u64()), (LEGS_MAX, Some(1)));
    }

    /// Two workers that computed for 6 s in all computed for 3 s on average, and waited for the rest of 10 s.
    #[test]
    fn phases_add_up() {
        let start = Instant::now().checked_sub(Duration::from_secs(10)).expect("the clock began earlier");
        let spent = v1::Spent {
            computing_us: 6_000_000,
            absorbing_us: 250_000,
            saving_us: 1_000,
            evaluations: 100,
            recalled: 30,
            rechecked: 2,
        };
        let run = v1::Run { spent: Some(spent), ..v1::Run::default() };
        let phases = Leg::begin(start, 2, None).phases(&run);
        assert_eq!((phases.computing, phases.waiting / 1_000_000), (3_000_000, 7));
        assert_eq!(
            phases.recalled.map(Recalled::sentence).as_deref(),
            Some(
                "of 100 evaluations 70 were computed, 2 of them to check known values; the values of the others were \
                 known"
            )
        );
        let mut result = json!({"provenance": {"legs": [{}, {"phases": phases.to_json()}]}});
        phases.add_report(&mut result);
        let told = &result["provenance"]["legs"][1]["phases"];
        assert_eq!(
            (&told["computing"], &told["absorbing"], &told["saving"]),
            (&json!(3.0), &json!(0.25), &json!(0.001))
        );
        assert!(told["report"].as_f64().expect("a time") < 5.0);
        assert_eq!(
            phases.sentence(12.0, 2.0),
            "12 s in all: each of 2 workers computed for 3.0 s and waited for 7.0 s, while absorbing took 0.2 s and saving \
             0.0 s; then the report took 2.0 s"
        );
    }

    /// A coordinator that replaces another one counts from 0.
    #[test]
    fn the_time_of_all_coordinators_counts() {
        let mut spending = Spending::default();
        let mut seen = |tasks_done: u64, computing_us: u64| {
            let spent = v1::Spent { computing_us, absorbing_us: 1, saving_us: 2, ..v1::Spent::default() };
            let mut run = v1::Run { tasks_done, spent: Some(spent), ..v1::Run::default() };
            spending.add_earlier(&mut run);
            run.spent.map(|spent| (spent.computing_us, spent.absorbing_us))
        };
        assert_eq!(
            [seen(1, 10), seen(5, 50), seen(2, 20), seen(6, 60)],
            [(10, 1), (50, 1), (70, 2), (110, 2)].map(Some)
        );
    }
}
