//! The wait before the next connection attempt. It doubles, with jitter, and the worker never gives up.

use evoxo_common::rng::{Generator, Stream, below};

/// The first wait, in milliseconds, before jitter.
const FIRST_MS: u64 = 100;
/// The maximum wait, in milliseconds, before jitter.
const LONGEST_MS: u64 = 15_000;
/// The maximum wait if a coordinator answers that it does not lead yet, in milliseconds, before jitter. It is short so that
/// work resumes soon after the coordinator leads.
const LONGEST_AWAY_MS: u64 = 3_000;
/// The maximum wait that a coordinator can request, in milliseconds. A wrong number then cannot keep workers away for weeks.
const ASKED_MS_MAX: u64 = 3_600_000;

/// The waits between connection attempts.
#[derive(Debug)]
pub(super) struct Backoff {
    failures: u32,
    rng: Generator,
}

impl Backoff {
    pub(super) fn new(seed: u64) -> Self {
        Self { failures: 0, rng: Stream::root(seed).text("worker backoff").rng() }
    }

    /// The wait after a coordinator has answered that it does not lead yet, in milliseconds.
    pub(super) fn wait_away_ms(&mut self) -> u64 {
        let step = step_ms(self.failures).min(LONGEST_AWAY_MS);
        self.failures = self.failures.saturating_add(1);
        self.jittered(step)
    }

    fn jittered(&mut self, step: u64) -> u64 {
        step / 2 + below(&mut self.rng, step + 1)
    }

    /// The wait after a session that lasted `lasted_ms` (0 if there was none), in milliseconds; at least `asked_ms`. A
    /// session that lasted at least as long as the next wait resets the doubling. A shorter session counts as another
    /// failure.
    pub(super) fn wait_ms(&mut self, lasted_ms: u64, asked_ms: u64) -> u64 {
        if lasted_ms >= step_ms(self.failures) {
            self.failures = 0;
        }
        let step = step_ms(self.failures);
        self.failures = self.failures.saturating_add(1);
        let own = self.jittered(step);
        let asked = asked_ms.min(ASKED_MS_MAX);
        own.max(asked + below(&mut self.rng, asked / 2 + 1))
    }
}

/// The wait after this number of failures, before jitter.
fn step_ms(failures: u32) -> u64 {
    FIRST_MS.saturating_mul(1 << failures.min(32)).min(LONGEST_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_to_the_longest_and_jitter_by_half() {
        let mut least = [u64::MAX; 12];
        let mut most = [0; 12];
        for seed in 0..500 {
            let mut backoff = Backoff::new(seed);
            for failure in 0..12 {
                let wait = backoff.wait_ms(0, 0);
                least[failure] = least[failure].min(wait);
                most[failure] = most[failure].max(wait);
            }
        }
        for (failure, step) in [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 15_000, 15_000, 15_000].iter().enumerate()
        {
            assert!((step / 2..=step * 52 / 100).contains(&least[failure]), "{failure}: {}", least[failure]);
            assert!((step * 148 / 100..=step * 3 / 2).contains(&most[failure]), "{failure}: {}", most[failure]);
        }
    }

    #[test]
    fn a_long_session_resets_the_wait_and_a_short_one_does_not() {
        let mut backoff = Backoff::new(1);
        (0..20).for_each(|_| assert!(backoff.wait_ms(0, 0) <= 22_500));
        assert!(backoff.wait_ms(14_999, 0) >= 7_500);
        assert!(backoff.wait_ms(15_000, 0) <= 150);
        assert!((100..=300).contains(&backoff.wait_ms(10, 0)));
    }

    #[test]
    fn a_coordinator_that_answers_is_retried_soon() {
        let mut backoff = Backoff::new(1);
        assert!(backoff.wait_away_ms() <= 150);
        (0..20).for_each(|_| assert!(backoff.wait_away_ms() <= 4_500));
        assert!(
            backoff.wait_away_ms() >= 1_500 && backoff.wait_ms(0, 0) >= 7_500,
            "these answers count as failures too"
        );
    }

    #[test]
    fn the_requested_wait_is_a_limited_minimum() {
        let mut backoff = Backoff::new(1);
        assert!((4_000..=6_000).contains(&backoff.wait_ms(0, 4_000)));
        assert!((3_600_000..=5_400_000).contains(&backoff.wait_ms(0, u64::from(u32::MAX))));
    }
}
