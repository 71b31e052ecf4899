//! The coordinator's core, a pure state machine: time and events go in, effects come out.
//!
//! Invariants: no clock, no I/O, no await, no randomness, and nothing that takes long. Planning, checking and absorbing are
//! done by each run's thread (`crate::replicas`). Messages of workers and clients are checked here and never cause a panic. A
//! single path handles lost workers (`losses`), whatever the cause. There is no queue of leases: a task without a copy is
//! open and will be assigned again.
//!
//! The state is held in small objects that do not know each other: `runs`, `tasks`, `sessions`, `standing` (reliability of
//! workers), `owed` (tasks of disconnected workers), `absent` (workers that are not connected), `evidence` (against tasks),
//! `own` (tasks that the coordinator computes itself), `convictions` (of identities), `cordons` (workers without tasks),
//! `writes` (to the store), `budget` (of memory), `tally` (counters), and `rules`, one file each for quotas, shares, silence,
//! deadlines, retention and expiry.
//!
//! The interactions between these objects are in layers, and each layer calls only lower ones: `arrivals` (of workers),
//! `rounds` (replicas advance), `stored` (reports of the store), `ticks` (time); `results`, `requests` (of clients); `losses`
//! (of workers), `here` (tasks are judged, and computed by the coordinator), `verification` (of outputs), `failures` (of
//! tasks), `workers` (as clients see them), `cordoning` (of workers), `assign` (tasks to workers), `assigned` (as clients see
//! them), `recovery` (of runs), `ruling` (carries out what the rules decide); `ends` (of attempts), `held` and `keeping` (slots that stay free); `rest` (runs stop); `storage` (writes to
//! the store), `policy` (questions). If one handler finds something that another must act on, it notes a fact (`facts`).

mod about;
mod absent;
mod arrivals;
mod assign;
mod assigned;
mod attempts;
mod budget;
mod cause;
mod convictions;
mod cordoning;
mod cordons;
mod ends;
mod events;
mod evidence;
mod expected;
mod facts;
mod failures;
mod groups;
mod held;
mod here;
mod invariants;
mod keeping;
mod losses;
mod mends;
mod orders;
mod owed;
mod own;
mod phases;
mod planning;
mod policy;
mod recent;
mod recomputations;
mod record;
mod recovery;
mod requests;
mod rest;
mod results;
mod rounds;
mod rules;
mod ruling;
mod run;
mod runs;
mod sessions;
mod settings;
mod standing;
mod storage;
mod stored;
mod tally;
mod tasks;
#[cfg(test)]
mod tests;
mod ticks;
mod trouble;
mod verification;
mod view;
mod workers;
mod writes;

use std::{collections::BTreeSet, sync::Arc};

use evoxo_common::{experiment::Registry, time::Millis};
use evoxo_proto::v1::{self, CloseKind, to_worker};

pub use about::About;
pub use attempts::{AttemptEnd, Attempts};
pub use events::{Effect, Event, Rejection, ReplicaAt, Request, Response, Stored, Topic, View};
pub use settings::{Across, Batch, Settings, WEIGHT};
pub use tally::{Durations, Figures, Tally};

use crate::saved::SavedRun;
use crate::{
    id::{RequestId, SessionId, TaskId, ThreadId, WriteId},
    write::{StoreFault, Write},
};
use absent::{Leaving, Lost, RefusalLines};
use budget::Budget;
use cause::Cause;
use convictions::Convictions;
use cordons::Cordons;
use ends::Compared;
use facts::{Fact, Facts};
use held::Held;
use keeping::Keeping;
use owed::Owed;
use own::OwnProcess;
use rules::Rules;
use runs::Runs;
use sessions::Sessions;
use standing::Standings;
use tasks::Tasks;
use writes::Writes;

/// The state of the coordinator.
pub struct Coordinator {
    settings: Settings,
    registry: Registry,
    now: Millis,
    effects: Effects,
    facts: Facts,
    rules: Rules,
    held: Held,
    keeping: Keeping,
    runs: Runs,
    tasks: Tasks,
    sessions: Sessions,
    standings: Standings,
    owed: Owed,
    own: OwnProcess,
    refusal_lines: RefusalLines,
    writes: Writes,
    budget: Budget,
    convictions: Convictions,
    cordons: Cordons,
    tally: Tally,
    compared: Compared,
    /// Workers that were lost, and workers that are to leave.
    lost: Lost,
    leaving: Leaving,
    /// When deadlines are checked next.
    tick: Millis,
    /// Whether slow tasks are still to be checked since the last tick, and workers still to be reserved for suspects.
    look_due: bool,
    /// The suspect at which the last search for workers stopped.
    skipped: TaskId,
    /// The health as last published.
    healthy: bool,
    stopping: bool,
    /// The number of events since the invariants were last checked, in debug builds.
    unchecked: usize,
}

impl Coordinator {
    /// The only constructor: a first start is a recovery without runs. The runs come without their states.
    #[must_use]
    pub fn recover(settings: Settings, registry: Registry, saved: Vec<SavedRun>) -> Self {
        Self::recover_knowing(settings, registry, saved, BTreeSet::new())
    }

    /// Like [`Self::recover`], with the convicted identities that the store has. These identities stay excluded, and states
    /// that rest on their word are not used.
    #[must_use]
    pub fn recover_knowing(
        settings: Settings,
        registry: Registry,
        saved: Vec<SavedRun>,
        convicted: BTreeSet<Arc<str>>,
    ) -> Self {
        // Compute the signatures at the start, so that no request waits for them.
        drop(registry.signatures());
        let mut coordinator = Self {
            budget: Budget::new(&settings),
            settings,
            registry,
            now: Millis::default(),
            effects: Effects::default(),
            facts: Facts::default(),
            rules: Rules::new(&settings),
            held: Held::default(),
            keeping: Keeping::default(),
            runs: Runs::default(),
            tasks: Tasks::default(),
            sessions: Sessions::default(),
            standings: Standings::default(),
            owed: Owed::default(),
            own: OwnProcess::default(),
            refusal_lines: RefusalLines::default(),
            writes: Writes::default(),
            convictions: Convictions::known(convicted),
            cordons: Cordons::default(),
            tally: Tally::default(),
            compared: Compared::default(),
            lost: Lost::default(),
            leaving: Leaving::default(),
            tick: Millis::default(),
            look_due: false,
            skipped: TaskId::NONE,
            healthy: true,
            stopping: false,
            unchecked: 0,
        };
        saved.into_iter().for_each(|saved| coordinator.recover_run(saved));
        coordinator.note_ends();
        coordinator.follow_rules(Rules::turned);
        coordinator
    }

    /// The coordinator with the cordons that the store has.
    #[must_use]
    pub fn with_cordons(self, cordons: Vec<v1::Cordon>) -> Self {
        Self { cordons: Cordons::known(cordons), ..self }
    }

    /// Handles one event, which must not be earlier than the previous one. Returns what to do.
    pub fn handle(&mut self, now: Millis, event: Event) -> Vec<Effect> {
        self.now = self.now.max(now);
        match event {
            Event::Hello { session, address, holder, hello } => self.admit(session, address, holder, &hello),
            Event::Message { session, message } => self.on_message(session, message),
            Event::Heard { session } => _ = self.sessions.change_if_there(session, |session| session.heard = self.now),
            Event::Expired { session } => self.lose(session, Cause::Expired),
            Event::Revoked { session } => self.lose(session, Cause::Revoked),
            Event::Left { session } => self.lose(session, Cause::ConnectionEnded),
            Event::Request { id, request } => self.on_request(id, request),
            Event::Done { thread, reports, took_us } => {
                if let Some(run) = self.runs.of_thread(thread).and_then(|run| self.runs.adjust_if_there(run)) {
                    run.spent.absorbing_us = run.spent.absorbing_us.saturating_add(took_us);
                }
                for report in reports {
                    self.on_report(thread, report);
                    self.act_on_facts();
                }
            }
            Event::Stored { write, outcome, took_us } => self.on_stored(write, outcome, took_us),
            Event::Damaged { run, object } => self.on_damaged(&run, object),
            Event::ComputedHere(outcome) => self.on_computed_here(outcome),
            Event::Stop => self.stop(),
            Event::Wake => {}
        }
        self.act_on_facts();
        self.tick();
        self.act_on_facts();
        self.advance_runs();
        self.compute_here();
        self.assign();
        self.finish_stopping();
        self.publish();
        if cfg!(debug_assertions) {
            self.check_now_and_then();
        }
        self.effects.take()
    }

    /// Passes each fact to the handler that acts on it, oldest first, until no fact is left.
    fn act_on_facts(&mut self) {
        while let Some(fact) = self.facts.next() {
            match fact {
                Fact::WorkerLost { session, cause } => self.lose(session, cause),
                Fact::Accused { task, last } => self.judge(task, &last),
                Fact::Convicted(identity) => self.apply_conviction(&identity),
                Fact::Settled(run) => self.end_if_complete(run),
                Fact::Turned => {
                    self.note_ends();
                    self.follow_rules(Rules::turned);
                }
            }
        }
    }

    /// When [`Event::Wake`] is due, unless another event comes first.
    #[must_use]
    pub fn next_wake(&self) -> Option<Millis> {
        let quiet = self.writes.is_empty()
            && self.convictions.are_stored()
            && self.cordons.are_stored()
            && self.runs.changed().is_empty();
        match quiet && self.runs.iter().all(|(_, run)| run.is_quiet()) {
            true => Some(self.rules.next_wake(&self.look())?.max(self.tick)),
            false => Some(self.tick),
        }
    }
}

/// The effects of an event.
#[derive(Default)]
struct Effects {
    effects: Vec<Effect>,
    /// Responses come last, so that a client that gets one finds the view already published.
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

    /// Ends a session. The worker may reconnect after `retry_after_ms`, if `kind` allows it.
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
        self.log_about(topic, About::default(), sentence);
    }

    fn log_about(&mut self, topic: Topic, about: About, sentence: String) {
        self.push(Effect::Log { topic, about: Box::new(about), sentence });
    }
}
