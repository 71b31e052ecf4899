//! Slots that long tasks leave free, so that a short run begins at once although long runs could fill all workers
//! ([`super::Settings::slots_kept`]).
//!
//! The duration of a new run's tasks is unknown. Its submitter may try one such task at a time in a slot that is kept; others
//! count as long until one of them is computed.

use std::collections::BTreeSet;

use super::{Coordinator, TaskId, runs::RunId, sessions::is_long};

/// What workers compute, as far as it matters for kept slots.
#[derive(Debug, Default)]
pub(super) struct Keeping {
    /// Counted when it is first needed in an event, because there may be thousands of workers.
    out: Option<Out>,
}

#[derive(Debug, Default)]
struct Out {
    /// The number of slots that have long tasks.
    long: u32,
    /// The runs with tasks of unknown duration.
    unknown: BTreeSet<RunId>,
}

impl Out {
    fn add(&mut self, run: RunId, each_us: Option<u64>) {
        self.long += u32::from(is_long(each_us));
        if each_us.is_none() {
            self.unknown.insert(run);
        }
    }
}

impl Keeping {
    /// A worker was given tasks that are expected to take this long each.
    pub(super) fn given(&mut self, run: RunId, each_us: Option<u64>) {
        if let Some(out) = &mut self.out {
            out.add(run, each_us);
        }
    }
}

impl Coordinator {
    /// Counts the slots that have long tasks, if slots are kept.
    pub(super) fn count_long(&mut self) {
        if self.settings.slots_kept > 0 && self.keeping.out.is_none() {
            let mut out = Out::default();
            let assignments = self.sessions.iter().flat_map(|(_, session)| session.assignments.values());
            assignments.for_each(|assignment| out.add(assignment.run, assignment.each_us));
            self.keeping.out = Some(out);
        }
    }

    /// Whether this task must wait because the free slots are kept for short ones. At least one slot is for all tasks.
    pub(super) fn is_kept_from(&self, task: TaskId) -> bool {
        let Some(out) = &self.keeping.out else { return false };
        let open = &self.tasks[task];
        let run = &self.runs[open.run];
        let each_us = run.expected.us(open.replica.arm, open.work);
        let most = self.sessions.slots_total().saturating_sub(self.settings.slots_kept).max(1);
        if !is_long(each_us) || out.long < most {
            return false;
        }
        // An assignment can outlive its run.
        let tries = |other: &RunId| self.runs.get(*other).is_some_and(|other| other.submitter == run.submitter);
        each_us.is_some() || out.unknown.iter().any(tries)
    }
}
