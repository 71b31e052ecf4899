//! Slots that long tasks leave free, so that a short run begins at once although long runs could fill all workers
//! (`slots_kept` of the settings).
//!
//! The duration of a new run's tasks is unknown. Its submitter may try one such task at a time in a slot that is kept; others
//! count as long until one of them is computed.

use std::collections::BTreeSet;

use super::{
    runs::RunId,
    sessions::{Sessions, is_long},
};

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
    /// Counts what workers have, unless it is known already.
    pub(super) fn count(&mut self, sessions: &Sessions) {
        if self.out.is_none() {
            let mut out = Out::default();
            let assignments = sessions.iter().flat_map(|(_, session)| session.assignments.values());
            assignments.for_each(|assignment| out.add(assignment.run, assignment.each_us));
            self.out = Some(out);
        }
    }

    /// A worker was given tasks that are expected to take this long each.
    pub(super) fn given(&mut self, run: RunId, each_us: Option<u64>) {
        if let Some(out) = &mut self.out {
            out.add(run, each_us);
        }
    }

    /// Whether a task of this expected duration must wait because the free slots are kept for short ones. `most` is the number of
    /// slots for long tasks, and `is_own` says whether a run has the same submitter. If nothing was counted, nothing is kept.
    pub(super) fn keeps_from(&self, each_us: Option<u64>, most: u32, is_own: impl Fn(RunId) -> bool) -> bool {
        let Some(out) = &self.out else { return false };
        let full = is_long(each_us) && out.long >= most;
        full && (each_us.is_some() || out.unknown.iter().any(|run| is_own(*run)))
    }
}
