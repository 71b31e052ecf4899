//! Facts that one handler finds and another must act on. A handler notes a fact and continues. When the handler is done, the
//! coordinator passes each fact to the one handler that acts on it, until no fact is left ([`super::Coordinator::handle`]).
//! So handlers do not call each other, and no handler loses an object while it works on it.

use std::{collections::VecDeque, sync::Arc};

use super::{cause::Cause, runs::RunId};
use crate::id::{SessionId, TaskId};

/// A fact for another handler.
#[derive(Debug)]
pub(super) enum Fact {
    /// A worker is lost, or must go.
    WorkerLost { session: SessionId, cause: Cause },
    /// There is new evidence against a task. `last` describes the newest evidence, as the end of a sentence.
    Accused { task: TaskId, last: String },
    /// The store has the conviction of this identity.
    Convicted(Arc<str>),
    /// A replica of this run was stored, or an output of it was recomputed. The run may be complete.
    Settled(RunId),
    /// A run may have ended, or continues.
    Turned,
}

/// The facts that no handler has acted on yet, oldest first.
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
