//! Whose turn it is: the run with the least expected work out, and of several such the one that was served longest ago.

use std::{cmp::Ordering, collections::BTreeMap};

use super::{Look, Rule};
use crate::machine::runs::RunId;

/// What each run has had; a run that has had nothing yet is not in it.
#[derive(Default)]
pub(super) struct Shares {
    of_runs: BTreeMap<RunId, Share>,
    /// Assignments so far.
    given: u64,
}

#[derive(Clone, Copy, Default)]
struct Share {
    /// Expected work that is assigned now, in microseconds.
    out_us: u64,
    /// The number of its last assignment, of those of all runs.
    last_served: u64,
}

impl Shares {
    fn of(&self, run: RunId) -> Share {
        self.of_runs.get(&run).copied().unwrap_or_default()
    }
}

impl Rule for Shares {
    fn turn(&self, one: RunId, other: RunId) -> Ordering {
        let key = |run| {
            let Share { out_us, last_served } = self.of(run);
            (out_us, last_served)
        };
        key(one).cmp(&key(other))
    }

    fn given(&mut self, run: RunId, us: u64) {
        self.given += 1;
        let share = self.of_runs.entry(run).or_default();
        share.out_us += us;
        share.last_served = self.given;
    }

    fn back(&mut self, run: RunId, us: u64) {
        // What was assigned of a run that is gone comes back later.
        if let Some(share) = self.of_runs.get_mut(&run) {
            share.out_us -= us;
        }
    }

    fn removed(&mut self, run: RunId) {
        self.of_runs.remove(&run);
    }

    fn check(&self, out_us: &dyn Fn(RunId) -> u64, look: &Look) {
        for (id, run) in look.runs.iter() {
            let (counted, out) = (self.of(id).out_us, out_us(id));
            assert_eq!(counted, out, "run {} counts other work than its assignments have", run.name);
        }
    }
}
