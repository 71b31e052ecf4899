//! What handlers find out and others must act on. A handler notes a fact and goes on; when it is done, the coordinator hands each
//! fact to the one handler that acts on it, until none is left ([`super::Coordinator::handle`]). So handlers do not call each other,
//! and nothing that a handler looks at is taken away under its hands.

use std::{collections::VecDeque, sync::Arc};

use super::{cause::Cause, runs::RunId};
use crate::id::{SessionId, TaskId};

/// Something that was found out.
#[derive(Debug)]
pub(super) enum Fact {
    /// A worker is lost, or must go.
    WorkerLost { session: SessionId, cause: Cause },
    /// There is new evidence against a task. `last` is what came last, as the end of a sentence.
    Accused { task: TaskId, last: String },
    /// The store has the conviction of this identity.
    Convicted(Arc<str>),
    /// A replica of this run was stored, or an audit of it has ended: the run may be complete.
    Settled(RunId),
    /// A run may have ended, or goes on again.
    Turned,
}

/// The facts that nobody has acted on yet, in the order in which they were found out.
#[derive(Default)]
pub(super) struct Facts(VecDeque<Fact>);

impl Facts {
    pub(super) fn note(&mut self, fact: Fact) {
        self.0.push_back(fact);
    }

    /// A worker is lost, or must go.
    pub(super) fn note_lost(&mut self, session: SessionId, cause: Cause) {
        self.note(Fact::WorkerLost { session, cause });
    }

    pub(super) fn next(&mut self) -> Option<Fact> {
        self.0.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
