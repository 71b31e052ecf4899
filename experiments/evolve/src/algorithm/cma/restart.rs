//! The restarts of CMA-ES: runs that follow each other, with larger populations.
//!
//! IPOP: A. Auger and N. Hansen, "A Restart CMA Evolution Strategy With Increasing Population Size", CEC 2005. BIPOP: N.
//! Hansen, "Benchmarking a BI-Population CMA-ES on the BBOB-2009 Function Testbed", GECCO 2009.

use evoxo_common::{
    math::pow,
    rng::{Generator, unit},
};

/// What follows when a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restarts {
    /// Nothing: the search ends, even if evaluations are left.
    None,
    /// A run with twice the population.
    Ipop,
    /// Runs with twice the last large population. Between them, for as many evaluations, runs with small populations and
    /// small steps.
    Bipop,
}

/// The most doublings of the population, as in both papers.
pub(super) const DOUBLINGS_MAX: u32 = 9;

/// One run of a search, and the counts on which the next one depends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Schedule {
    /// The run's number, from 0.
    pub(super) run: u64,
    /// Doublings of the population so far.
    pub(super) doublings: u32,
    /// Candidates of a generation.
    pub(super) lambda: usize,
    /// The first step size.
    pub(super) sigma: f64,
    /// Whether it is one of BIPOP's small runs.
    pub(super) small: bool,
    /// Evaluations of the whole search before this run.
    pub(super) began: u64,
    /// The most evaluations of this run.
    pub(super) limit: u64,
    /// Evaluations used so far by large runs after the first.
    pub(super) great_used: u64,
    /// Evaluations used so far by small runs.
    pub(super) small_used: u64,
    /// Evaluations used by the last run that was not small.
    pub(super) last_great: u64,
}

impl Schedule {
    /// The first run.
    pub(super) const fn first(lambda: usize, sigma: f64) -> Self {
        Self {
            run: 0,
            doublings: 0,
            lambda,
            sigma,
            small: false,
            began: 0,
            limit: u64::MAX,
            great_used: 0,
            small_used: 0,
            last_great: 0,
        }
    }

    /// The run after this one, which ended after `births` evaluations of the whole search. `first` is the population and the
    /// step size of the first run.
    pub(super) fn next(&self, restarts: Restarts, births: u64, first: (usize, f64), rng: &mut Generator) -> Self {
        let (lambda, sigma) = first;
        let used = births - self.began.min(births);
        let mut next = Self { run: self.run + 1, began: births, limit: u64::MAX, sigma, ..*self };
        match self.small {
            true => next.small_used += used,
            false => {
                next.last_great = used;
                // The first run counts neither as large nor as small.
                next.great_used += if self.run == 0 { 0 } else { used };
            }
        }
        next.small = restarts == Restarts::Bipop && next.small_used < next.great_used;
        if next.small {
            // Section 2 of Hansen 2009: between the first population and half the last large one, mostly near the first.
            let share = unit(rng);
            let growth = pow(2.0, f64::from(next.doublings)) / 2.0;
            next.lambda = (lambda as f64 * pow(growth, share * share)) as usize;
            next.sigma = sigma * pow(10.0, -2.0 * unit(rng));
            next.limit = next.last_great / 2;
        } else {
            next.doublings = (next.doublings + 1).min(DOUBLINGS_MAX);
            next.lambda = lambda << next.doublings;
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::rng::Stream;

    #[test]
    fn ipop_doubles_the_population() {
        let mut schedule = Schedule::first(10, 0.3);
        for run in 1..15 {
            schedule = schedule.next(Restarts::Ipop, run * 1000, (10, 0.3), &mut Stream::root(run).rng());
            assert_eq!((schedule.lambda, schedule.run), (10 << run.min(9), run));
            assert_eq!((schedule.sigma, schedule.began, schedule.limit), (0.3, run * 1000, u64::MAX));
        }
    }

    /// Each run uses ten generations. Small runs use as many evaluations as large ones, stay small, and start with small
    /// steps.
    #[test]
    fn bipop_shares_the_evaluations() {
        let (mut schedule, mut births, mut seen) = (Schedule::first(10, 0.3), 0, [0; 2]);
        for run in 0..200 {
            births += 10 * schedule.lambda as u64;
            let before = schedule;
            schedule = schedule.next(Restarts::Bipop, births, (10, 0.3), &mut Stream::root(run).rng());
            seen[usize::from(schedule.small)] += 1;
            if schedule.small {
                assert!((10..=10 << schedule.doublings >> 1).contains(&schedule.lambda), "{schedule:?}");
                assert!((0.003..=0.3).contains(&schedule.sigma) && schedule.doublings == before.doublings);
                assert_eq!(schedule.limit, schedule.last_great / 2);
            } else {
                assert_eq!((schedule.sigma, schedule.limit), (0.3, u64::MAX));
            }
        }
        assert!(seen[0] > 10 && seen[1] > seen[0], "{seen:?}");
        let (great, small) = (schedule.great_used as f64, schedule.small_used as f64);
        assert!((small / great - 1.0).abs() < 0.2, "{great} {small}");
    }
}
