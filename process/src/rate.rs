//! The rate of a counter over the last minute.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// The rate is the mean over this time.
const WINDOW: Duration = Duration::from_secs(60);
/// A shorter time gives no rate.
const LEAST: Duration = Duration::from_millis(500);
/// The least time between two counts that are kept.
const BETWEEN: Duration = Duration::from_millis(200);

/// Counts at some moments of the last minute.
#[derive(Clone, Debug, Default)]
pub struct Rate(VecDeque<(Instant, u64)>);

impl Rate {
    /// Notes a count.
    pub fn note(&mut self, now: Instant, count: u64) {
        // The newest count is always kept. Earlier ones, except the first, are kept only if they are not too close to each
        // other.
        let near = |one: usize, other: usize| Some(self.0.get(other)?.0.duration_since(self.0.get(one)?.0) < BETWEEN);
        let last = self.0.len().saturating_sub(1);
        if last >= 2 && near(last - 1, last) == Some(true) {
            self.0.pop_back();
        }
        self.0.push_back((now, count));
        while self.0.len() > 2 && self.0.get(1).is_some_and(|(then, _)| now - *then >= WINDOW) {
            self.0.pop_front();
        }
    }

    /// The mean rate over the last minute, or over a shorter time if less is known; `None` without progress, which includes a
    /// run that continues from an earlier count.
    #[must_use]
    pub fn per_second(&self) -> Option<f64> {
        let ((begun, first), (now, last)) = (self.0.front()?, self.0.back()?);
        let time = *now - *begun;
        (time >= LEAST && last > first).then(|| (last - first) as f64 / time.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_simultaneous_counts_use_little_memory() {
        let (mut rate, start) = (Rate::default(), Instant::now());
        for count in 0..100_000 {
            rate.note(start + Duration::from_millis(count), 3 * count);
        }
        assert!(rate.0.len() < 400, "{}", rate.0.len());
        let per_second = rate.per_second().expect("there is progress");
        assert!((2990.0..3010.0).contains(&per_second), "{per_second}");
    }
}
