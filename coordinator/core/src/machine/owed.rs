//! Tasks that workers owe: those of ended sessions whose processes may still be computing them. If a run does not trust
//! workers, an output counts only if its sender was assigned the task. So a worker that reconnects is recognized by its
//! certificate.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use evoxo_common::digest::Digest;

use super::sessions::Session;

/// The maximum number of tasks that are remembered for all disconnected workers together.
const TASKS_MAX: usize = 65_536;

/// The tasks of disconnected workers, oldest first.
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
    /// A session with a certificate has ended. Remembers those of its unanswered tasks that are still of use.
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

    /// Takes the tasks that this process of this identity owes. From now on, its new session owes them.
    pub(super) fn take(&mut self, session: &Session) -> BTreeSet<Digest> {
        let Some(identity) = session.identity_number() else { return BTreeSet::new() };
        let is_it = |away: &Away| away.process == session.process && away.identity == *identity;
        let Some(place) = self.away.iter().position(is_it) else { return BTreeSet::new() };
        let tasks = self.away.remove(place).map(|away| away.tasks).unwrap_or_default();
        self.tasks -= tasks.len();
        tasks
    }
}
