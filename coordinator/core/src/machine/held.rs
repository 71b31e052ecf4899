//! Slots that stay free for a moment, for a run whose next round is about to be planned.
//!
//! A run with short rounds has no open task between two rounds. If another run has long tasks, it would then take the slot,
//! and each round would wait for the end of a long task, although the run has computed less than its share. So a slot is not
//! given a long task while a run that goes first has just computed something: for a twentieth of the long task's duration,
//! and for at most as many slots as the run had at once. The time counts as the run's work, so the run pays for it with its
//! share, and once it has had its share, no slot is kept for it.

use std::collections::{BTreeMap, BTreeSet};

use evoxo_common::time::Millis;

use super::{
    rules::Rules,
    runs::{RunId, Runs},
    sessions::{LONG_US, Session},
    tasks::OpenTask,
};
use crate::id::SessionId;

/// A slot is kept free for this part of the duration of the task that waits.
const PART: u64 = 20;
/// A slot is kept free for at most this long, in milliseconds.
const HELD_MS_MAX: u64 = 2_000;

/// The assignments of a run.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// When its last result arrived.
    last: Millis,
    /// The assignments that workers have now.
    out: u32,
    /// The most that workers had at once, since the run last had none for longer than a slot is kept.
    most: u32,
}

/// The pace of each run, and the slots that are kept free.
#[derive(Debug, Default)]
pub(super) struct Held {
    paces: BTreeMap<RunId, Pace>,
    /// The number of slots kept for each run since `since`.
    slots: BTreeMap<RunId, u32>,
    /// The workers of these slots.
    workers: BTreeSet<SessionId>,
    since: Millis,
}

impl Held {
    /// A run was given an assignment.
    pub(super) fn given(&mut self, run: RunId, now: Millis) {
        let pace = self.paces.entry(run).or_default();
        if pace.out == 0 && now - pace.last > HELD_MS_MAX {
            pace.most = 0;
        }
        pace.out += 1;
        pace.most = pace.most.max(pace.out);
    }

    /// A result of a run has arrived. `ended` says whether it was the last one of its assignment.
    pub(super) fn back(&mut self, run: RunId, ended: bool, now: Millis) {
        // The run may have been removed.
        if let Some(pace) = self.paces.get_mut(&run) {
            pace.last = now;
            pace.out -= u32::from(ended);
        }
    }

    /// An assignment was lost with its worker.
    pub(super) fn lost(&mut self, run: RunId) {
        if let Some(pace) = self.paces.get_mut(&run) {
            pace.out -= 1;
        }
    }

    /// A run was removed.
    pub(super) fn removed(&mut self, run: RunId) {
        self.paces.remove(&run);
        self.slots.remove(&run);
    }

    /// Adds the time for which slots were kept free since the last call to the work of the runs for which they were kept.
    pub(super) fn count(&mut self, rules: &mut Rules, now: Millis) {
        let kept_us = (now - self.since).saturating_mul(1000);
        self.since = now;
        self.workers.clear();
        for (run, slots) in std::mem::take(&mut self.slots) {
            let us = kept_us * u64::from(slots);
            rules.given(run, us);
            rules.back(run, us, us);
        }
    }

    /// Whether this worker's free slots are kept for another run instead of being given this task.
    pub(super) fn holds(
        &mut self,
        now: Millis,
        runs: &Runs,
        rules: &Rules,
        (id, session): (SessionId, &Session),
        open: &OpenTask,
    ) -> bool {
        // A worker may be looked at twice: as an idle one, and as one that can take more.
        if self.workers.contains(&id) {
            return true;
        }
        let each_us = runs[open.run].expected.us(open.replica.arm, open.work);
        let Some(each_us) = each_us.filter(|each_us| *each_us > LONG_US) else { return false };
        let held_ms = (each_us / 1000 / PART).min(HELD_MS_MAX);
        let free = session.slots.saturating_sub(session.assignments.len() as u32);
        let first = self.paces.iter().find(|(other, pace)| {
            let kept = self.slots.get(other).copied().unwrap_or_default();
            let just_now = pace.most > 0 && now - pace.last <= held_ms;
            let needs_more = kept + free <= pace.most;
            let may = || runs.get(**other).is_some_and(|run| run.hands_out() && session.serves(run));
            **other != open.run && just_now && needs_more && may() && rules.turn(**other, open.run).is_lt()
        });
        let Some((run, _)) = first else { return false };
        *self.slots.entry(*run).or_default() += free;
        self.workers.insert(id);
        true
    }

    /// Checks that the counted assignments are these.
    pub(super) fn check(&self, out: &BTreeMap<RunId, u32>) {
        let counted = self.paces.iter().filter(|(_, pace)| pace.out > 0).map(|(run, pace)| (*run, pace.out));
        assert_eq!(counted.collect::<BTreeMap<_, _>>(), *out, "the count of assignments of runs is wrong");
    }
}
