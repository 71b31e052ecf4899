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

    /// Learns from one task. The result is an exponential mean in which the newest duration weighs one eighth. Failed tasks
    /// count only until one task is computed.
    pub(super) fn learn(&mut self, arm: u32, work: &'static str, elapsed_us: u64, computed: bool) {
        if computed && self.computed.insert((arm, work)) {
            self.us.remove(&(arm, work));
        } else if !computed && self.has_computed(arm, work) {
            return;
        }
        let elapsed_us = elapsed_us.clamp(1, DURATION_US_MAX);
        let mean = self.us.entry((arm, work)).or_insert(elapsed_us);
        *mean = ((*mean * 7 + elapsed_us) / 8).max(1);
    }
}
