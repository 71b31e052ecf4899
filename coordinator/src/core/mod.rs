//! The coordinator's core: a pure state machine. Time and events go in, effects come out.
//!
//! Invariants: no clock, no I/O, no await, no randomness; what a worker or a person says is checked here and never
//! panics; a lost worker has one path (`Coordinator::lose`), whatever the cause; there is no queue of leases: a task
//! without a copy is open, and that is all there is to retrying.
//!
//! Read this file first, then `run` (rounds of replicas), `tasks` (what is open), `assign` (who gets what), `sessions`
//! (workers), `durable` (the store) and `ask` (people).

mod ask;
mod assign;
mod durable;
mod face;
mod results;
mod run;
mod seal;
mod sessions;
mod tasks;
mod ticks;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use evoxo_common::{digest::Digest, task, time::Millis};
use evoxo_proto::v1;

pub use face::{Answer, Ask, Batch, Effect, Event, Rejection, SessionId, Settings, StoreFault, Ticket, Write, WriteId};
pub use seal::{seal_checkpoint, seal_finished, seal_order};

use crate::saved::SavedRun;
use durable::PendingWrite;
use results::Settled;
use run::{Run, RunId};
use sessions::Session;
use tasks::Tasks;

/// Everything the coordinator knows.
pub struct Coordinator {
    settings: Settings,
    signature: Vec<v1::KindSignature>,
    now: Millis,
    effects: Vec<Effect>,
    runs: BTreeMap<RunId, Run>,
    tasks: Tasks,
    sessions: BTreeMap<SessionId, Session>,
    /// Sessions that can take another assignment.
    roomy: BTreeSet<SessionId>,
    slots_total: u32,
    /// Outputs of which another copy is still being computed, for the audit.
    settled: BTreeMap<Digest, Settled>,
    writes: BTreeMap<WriteId, PendingWrite>,
    write_last: WriteId,
    run_last: RunId,
    /// When deadlines are looked at next.
    tick: Millis,
    /// Slow tasks have not been looked at since the last tick.
    second_copies_due: bool,
    /// Workers admitted since `admission_start`.
    admitted: u32,
    admission_start: Millis,
    stopping: bool,
}

impl Coordinator {
    /// The only constructor: a first start is a recovery from nothing.
    #[must_use]
    pub fn recover(settings: Settings, saved: Vec<SavedRun>) -> Self {
        let mut coordinator = Self {
            settings,
            signature: task::signature(),
            now: Millis::default(),
            effects: Vec::new(),
            runs: BTreeMap::new(),
            tasks: Tasks::default(),
            sessions: BTreeMap::new(),
            roomy: BTreeSet::new(),
            slots_total: 0,
            settled: BTreeMap::new(),
            writes: BTreeMap::new(),
            write_last: WriteId(0),
            run_last: RunId(0),
            tick: Millis::default(),
            second_copies_due: false,
            admitted: 0,
            admission_start: Millis::default(),
            stopping: false,
        };
        for saved in saved {
            coordinator.recover_run(saved);
        }
        coordinator
    }

    /// Takes one event at a time not before the last, and says what to do about it.
    pub fn handle(&mut self, now: Millis, event: Event) -> Vec<Effect> {
        self.now = self.now.max(now);
        match event {
            Event::Message { session, message } => self.hear(session, message),
            Event::Left { session } => self.lose(session, "its connection ended", None),
            Event::Ask { ticket, ask } => self.ask(ticket, ask),
            Event::Stored { write, outcome } => self.stored(write, outcome),
            Event::Stop => self.stop(),
            Event::Wake => {}
        }
        self.tick();
        self.assign();
        self.finish_stopping();
        std::mem::take(&mut self.effects)
    }

    /// When [`Event::Wake`] is due, if nothing else happens before.
    #[must_use]
    pub fn next_wake(&self) -> Option<Millis> {
        let idle = self.sessions.is_empty() && self.writes.is_empty() && self.runs.values().all(Run::is_quiet);
        (!idle).then_some(self.tick)
    }

    /// Names of the runs that this coordinator means to advance.
    #[must_use]
    pub fn unfinished(&self) -> Vec<String> {
        self.runs.values().filter(|run| run.is_running()).map(|run| run.name.clone()).collect()
    }

    fn signature_digest(&self) -> Digest {
        task::signature_digest(&self.signature)
    }

    fn log(&mut self, sentence: String) {
        self.effects.push(Effect::Log { warn: false, sentence });
    }

    fn warn(&mut self, sentence: String) {
        self.effects.push(Effect::Log { warn: true, sentence });
    }
}
