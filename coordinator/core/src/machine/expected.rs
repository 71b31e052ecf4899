//! How long the tasks of a run take, judged by those computed so far.

use std::collections::{BTreeMap, BTreeSet};

/// The maximum expected duration of a task, in microseconds: a day.
const DURATION_US_MAX: u64 = 24 * 3600 * 1_000_000;

/// The expected durations of a run's tasks, by arm and kind of task.
#[derive(Debug, Default)]
pub(super) struct Expected {
    /// The mean duration so far, in microseconds; newer durations weigh more.
    us: BTreeMap<(u32, &'static str), u64>,
    /// The kinds of tasks of which at least one was computed rather than failed.
    computed: BTreeSet<(u32, &'static str)>,
    /// By arm, how long all computed tasks took together, in microseconds, and the number of rounds absorbed.
    rounds: BTreeMap<u32, (u64, u64)>,
}

impl Expected {
    /// The expected duration in microseconds, if any such task was tried.
    pub(super) fn us(&self, arm: u32, work: &'static str) -> Option<u64> {
        self.us.get(&(arm, work)).copied()
    }

    /// Whether the expected duration comes from tasks that were computed.
    pub(super) fn has_computed(&self, arm: u32, work: &'static str) -> bool {
        self.computed.contains(&(arm, work))
    }

    /// A round of this arm was absorbed.
    pub(super) fn absorbed(&mut self, arm: u32) {
        self.rounds.entry(arm).or_default().1 += 1;
    }

    /// How long all tasks of so many rounds are expected to take together, in microseconds, if a round of the arm was absorbed.
    pub(super) fn rounds_us(&self, arm: u32, rounds: u64) -> Option<u64> {
        let (us, absorbed) = self.rounds.get(&arm)?;
        Some(us.checked_div(*absorbed)?.saturating_mul(rounds))
    }

    /// Learns from one task. The result is an exponential mean in which the newest duration weighs one eighth. Failed tasks
    /// count only until one task is computed.
    pub(super) fn learn(&mut self, arm: u32, work: &'static str, elapsed_us: u64, computed: bool) {
        if computed && self.computed.insert((arm, work)) {
            self.us.remove(&(arm, work));
        } else if !computed && self.has_computed(arm, work) {
            return;
        }
        let elapsed_us = elapsed_us.clamp(1, DURATION_US_MAX);
        if computed {
            let (us, _) = self.rounds.entry(arm).or_default();
            *us = us.saturating_add(elapsed_us);
        }
        let mean = self.us.entry((arm, work)).or_insert(elapsed_us);
        *mean = ((*mean * 7 + elapsed_us) / 8).max(1);
    }
}
