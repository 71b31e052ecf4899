//! What workers owe: the tasks of sessions that are over, which their processes may still be computing. Where workers are not
//! trusted, an output counts only from who was given the task; so a worker that comes back is known by its certificate.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use evoxo_common::digest::Digest;

use super::sessions::Session;

/// The most tasks that are remembered, of all who are away.
const TASKS_MAX: usize = 65_536;

/// The tasks of those who are away, oldest first.
#[derive(Default)]
pub(super) struct Owed {
    away: VecDeque<Away>,
    tasks: usize,
}

struct Away {
    process: u64,
    identity: Arc<str>,
    tasks: BTreeSet<Digest>,
}

impl Owed {
    /// A session is over; of what it had not answered that is owed which is of use, if it has a certificate.
    pub(super) fn keep(&mut self, session: &Session, is_of_use: impl Fn(Digest) -> bool) {
        let Some(identity) = session.identity_number().cloned() else { return };
        let assigned = session.assignments.values().flat_map(|assignment| assignment.remaining.keys());
        let tasks: BTreeSet<Digest> =
            session.owed.iter().chain(assigned).copied().filter(|task| is_of_use(*task)).collect();
        if tasks.is_empty() {
            return;
        }
        self.tasks += tasks.len();
        self.away.push_back(Away { process: session.process, identity, tasks });
        while self.tasks > TASKS_MAX
            && let Some(oldest) = self.away.pop_front()
        {
            self.tasks -= oldest.tasks.len();
        }
    }

    /// What this process of this identity owes; it is then its new session's.
    pub(super) fn take(&mut self, session: &Session) -> BTreeSet<Digest> {
        let Some(identity) = session.identity_number() else { return BTreeSet::new() };
        let is_it = |away: &Away| away.process == session.process && away.identity == *identity;
        let Some(place) = self.away.iter().position(is_it) else { return BTreeSet::new() };
        let tasks = self.away.remove(place).map(|away| away.tasks).unwrap_or_default();
        self.tasks -= tasks.len();
        tasks
    }
}
