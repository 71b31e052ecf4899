//! The output of handlers: effects for the shell, facts for other handlers, counts for the metrics, and writes whose outcome
//! the store will report.

use std::sync::Arc;

use evoxo_proto::v1::{self, CloseKind, to_worker};

use super::{
    Effect, Rejection, Response, Topic, View,
    about::About,
    facts::Facts,
    runs::RunId,
    tally::Tally,
    writes::{Pending, Refusal, Writes},
};
use crate::{
    id::{RequestId, SessionId},
    write::Write,
};

/// The output of handlers. They read only two parts of it: the pending writes and, for metrics, the counters.
#[derive(Default)]
pub(super) struct Out {
    pub(super) effects: Effects,
    pub(super) facts: Facts,
    pub(super) tally: Tally,
    pub(super) writes: Writes,
}

impl Out {
    /// Requests a write or a read of a run's objects from the store.
    pub(super) fn write(&mut self, id: RunId, run: &str, what: Write, pending: Pending) {
        let write = self.writes.add(id, pending);
        self.effects.push(Effect::Store { write, run: run.to_owned(), what });
    }

    /// Requests a write that is repeated if it fails.
    pub(super) fn write_until_stored(&mut self, id: RunId, run: &str, what: Write) {
        self.write(id, run, what.clone(), Pending::Repeated(what));
    }

    /// Requests a write that belongs to no run.
    pub(super) fn write_refusal(&mut self, what: Write, refusal: Refusal) {
        let write = self.writes.add_refusal(refusal);
        self.effects.push(Effect::Store { write, run: String::new(), what });
    }

    /// Searches the store for a run that is not known.
    pub(super) fn search(&mut self, request: RequestId, run: String) {
        let write = self.writes.add_search(request, run.clone());
        self.effects.push(Effect::Store { write, run, what: Write::Load });
    }
}

/// The effects of an event.
#[derive(Default)]
pub(super) struct Effects {
    effects: Vec<Effect>,
    /// Responses come last, so that a client that gets one finds the view already published.
    responses: Vec<Effect>,
}

impl Effects {
    pub(super) fn take(&mut self) -> Vec<Effect> {
        let mut effects = std::mem::take(&mut self.effects);
        effects.append(&mut self.responses);
        effects
    }

    pub(super) fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    pub(super) fn send(&mut self, session: SessionId, message: to_worker::Message) {
        self.push(Effect::Send { session, message: v1::ToWorker { message: Some(message) } });
    }

    /// Ends a session. The worker may reconnect after `retry_after_ms`, if `kind` allows it.
    pub(super) fn close(&mut self, session: SessionId, kind: CloseKind, reason: String, retry_after_ms: u32) {
        self.send(session, to_worker::Message::Close(v1::Close { kind: kind.into(), reason, retry_after_ms }));
        self.push(Effect::End { session });
    }

    pub(super) fn respond(&mut self, id: RequestId, response: Result<Response, Rejection>) {
        self.responses.push(Effect::Respond { id, response });
    }

    pub(super) fn publish(&mut self, view: View) {
        self.push(Effect::Publish(Arc::new(view)));
    }

    pub(super) fn log(&mut self, topic: Topic, sentence: String) {
        self.log_about(topic, About::default(), sentence);
    }

    pub(super) fn log_about(&mut self, topic: Topic, about: About, sentence: String) {
        self.push(Effect::Log { topic, about: Box::new(about), sentence });
    }
}
