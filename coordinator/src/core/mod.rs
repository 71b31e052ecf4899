//! The coordinator's core: a pure state machine. Time and events go in, effects come out.
//!
//! Invariants: no clock, no I/O, no await, no randomness, and nothing that takes long: states are planned, checked and absorbed
//! by each run's thread (`crate::replicas`). What a worker or a person says is checked here and never panics; a lost worker
//! has one path (`losses`), whatever the cause; there is no queue of leases: a task without a copy is open, and that is all
//! there is to retrying.
//!
//! Its state is in small objects, each of which knows nothing of the others: `runs`, `tasks`, `sessions`, `standing`
//! (who can be relied on), `evidence` (against a task), `writes` (to the store), `budget` (of memory). What happens between
//! them is told in: `rounds` (replicas move on), `assign` (who gets what), `results`, `losses`, `storage`,
//! `requests` (people), `ticks` (time).

mod assign;
mod budget;
mod events;
mod evidence;
mod losses;
mod requests;
mod results;
mod rounds;
mod run;
mod runs;
mod sessions;
mod settings;
mod standing;
mod storage;
mod tasks;
#[cfg(test)]
mod tests;
mod ticks;
mod view;
mod writes;

use std::sync::Arc;

use evoxo_common::{experiment::Registry, time::Millis};
use evoxo_proto::v1::{self, CloseKind, to_worker};

pub use events::{Effect, Event, Rejection, ReplicaAt, Request, Response, Stored, Topic, View};
pub use settings::{Batch, Settings};

use crate::saved::SavedRun;
pub use crate::{
    id::{RequestId, SessionId, TaskId, ThreadId, WriteId},
    write::{StoreFault, Write},
};
use budget::Budget;
use runs::Runs;
use sessions::Sessions;
use standing::Standings;
use tasks::Tasks;
use writes::Writes;

/// Everything the coordinator knows.
pub struct Coordinator {
    settings: Settings,
    registry: Registry,
    now: Millis,
    effects: Effects,
    runs: Runs,
    tasks: Tasks,
    sessions: Sessions,
    standings: Standings,
    writes: Writes,
    budget: Budget,
    /// When deadlines are looked at next.
    tick: Millis,
    /// Slow tasks have not been looked at since the last tick.
    second_copies_due: bool,
    /// As last told.
    healthy: bool,
    stopping: bool,
}

impl Coordinator {
    /// The only constructor: a first start is a recovery from nothing. The runs come without their states.
    #[must_use]
    pub fn recover(settings: Settings, registry: Registry, saved: Vec<SavedRun>) -> Self {
        // Worked out now, and not while somebody waits.
        drop(registry.signatures());
        let mut coordinator = Self {
            budget: Budget::new(settings.memory_bytes_max),
            settings,
            registry,
            now: Millis::default(),
            effects: Effects::default(),
            runs: Runs::default(),
            tasks: Tasks::default(),
            sessions: Sessions::default(),
            standings: Standings::default(),
            writes: Writes::default(),
            tick: Millis::default(),
            second_copies_due: false,
            healthy: true,
            stopping: false,
        };
        saved.into_iter().for_each(|saved| coordinator.recover_run(saved));
        coordinator
    }

    /// Takes one event at a time not before the last, and says what to do about it.
    pub fn handle(&mut self, now: Millis, event: Event) -> Vec<Effect> {
        self.now = self.now.max(now);
        match event {
            Event::Hello { session, address, hello } => self.admit(session, address, &hello),
            Event::Message { session, message } => self.on_message(session, message),
            Event::Left { session } => self.on_left(session),
            Event::Request { id, request } => self.on_request(id, request),
            Event::Done { thread, reports } => self.on_reports(thread, reports),
            Event::Stored { write, outcome } => self.on_stored(write, outcome),
            Event::Stop => self.stop(),
            Event::Wake => {}
        }
        self.tick();
        self.advance_runs();
        self.assign();
        self.finish_stopping();
        self.publish();
        self.effects.take()
    }

    /// When [`Event::Wake`] is due, if nothing else happens before.
    #[must_use]
    pub fn next_wake(&self) -> Option<Millis> {
        let quiet = self.sessions.is_empty() && self.writes.is_empty() && self.runs.changed().is_empty();
        (!(quiet && self.runs.iter().all(|(_, run)| run.is_quiet()))).then_some(self.tick)
    }
}

/// What is to be done about an event.
#[derive(Default)]
struct Effects {
    effects: Vec<Effect>,
    /// Last of all: who is answered must find what was published.
    responses: Vec<Effect>,
}

impl Effects {
    fn take(&mut self) -> Vec<Effect> {
        let mut effects = std::mem::take(&mut self.effects);
        effects.append(&mut self.responses);
        effects
    }

    fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    fn send(&mut self, session: SessionId, message: to_worker::Message) {
        self.push(Effect::Send { session, message: v1::ToWorker { message: Some(message) } });
    }

    /// Ends a session; `retry_after_ms` is for those that should come back.
    fn close(&mut self, session: SessionId, kind: CloseKind, reason: String, retry_after_ms: u32) {
        self.send(session, to_worker::Message::Close(v1::Close { kind: kind.into(), reason, retry_after_ms }));
        self.push(Effect::End { session });
    }

    fn respond(&mut self, id: RequestId, response: Result<Response, Rejection>) {
        self.responses.push(Effect::Respond { id, response });
    }

    fn publish(&mut self, view: View) {
        self.push(Effect::Publish(Arc::new(view)));
    }

    fn log(&mut self, topic: Topic, sentence: String) {
        self.push(Effect::Log { topic, sentence });
    }
}
