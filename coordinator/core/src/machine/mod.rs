//! The coordinator's core, a pure state machine: time and events go in, effects come out.
//!
//! Invariants: no clock, no I/O, no await, no randomness, and nothing that takes long. Planning, checking and absorbing are
//! done by each run's thread (`crate::replicas`). Messages of workers and clients are checked here and never cause a panic. A
//! single path handles lost workers (`losses`), whatever the cause. There is no queue of leases: a task without a copy is
//! open and will be assigned again.
//!
//! The state is held in small objects that do not know each other, in three groups:
//!
//! - [`Work`]: `runs`, `tasks`, `budget` (of memory), `held` (slots that stay free), `own` (tasks that the coordinator computes
//!   itself), `convictions` (of identities), and `rules`, one file each for quotas, shares, silence, deadlines, retention and
//!   expiry.
//! - [`Fleet`]: `sessions`, `standing` (reliability of workers), `owed` (tasks of disconnected workers), `absent` (workers that
//!   are not connected), `cordons` (workers without tasks).
//! - [`Out`]: effects, `facts`, `writes` (to the store), `tally` (counters).
//!
//! A handler is a method of the group or object that it is about. It gets everything else that it touches as parameters:
//! parts of the other groups, and the [`Moment`] of the event. Questions are methods of [`look::Look`], which changes nothing.
//! Only what needs everything is a method of [`Coordinator`].
//!
//! The handlers are in layers, and each layer calls only lower ones: `arrivals` (of workers),
//! `rounds` (replicas advance), `stored` (reports of the store), `ticks` (time); `results`, `requests` (of clients); `losses`
//! (of workers), `here` (tasks are judged, and computed by the coordinator), `verification` (of outputs), `failures` (of
//! tasks), `workers` (as clients see them), `cordoning` (of workers), `assign` (tasks to workers), `assigned` (as clients see
//! them), `recovery` (of runs), `ruling` (carries out what the rules decide); `ends` (of attempts), `held` and `keeping` (slots
//! that stay free); `rest` (runs stop); `storage` (writes to the store), `policy` and `look` (questions), `work`, `out`. If one handler finds
//! something that another must act on, it notes a fact (`facts`).

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
mod fleet;
mod groups;
mod held;
mod here;
mod invariants;
mod keeping;
mod look;
mod losses;
mod mends;
mod orders;
mod out;
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
mod work;
mod workers;
mod writes;

use std::{collections::BTreeSet, sync::Arc};

use evoxo_common::{experiment::Registry, time::Millis};
use evoxo_proto::v1;

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
use cause::Cause;
use convictions::Convictions;
use cordons::Cordons;
use facts::Fact;
use fleet::Fleet;
use look::Moment;
use out::Out;
use rules::Rules;
use sessions::session_of;
use work::Work;

/// The state of the coordinator, in groups. A handler gets only the groups that it touches.
pub struct Coordinator {
    registry: Registry,
    at: Moment,
    work: Work,
    fleet: Fleet,
    out: Out,
    /// When deadlines are checked next.
    tick: Millis,
    /// The health as last published.
    healthy: bool,
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
        let at = Moment { now: Millis::default(), settings, stopping: false };
        let mut work = Work::new(&settings, Convictions::known(convicted));
        let (fleet, mut out) = (Fleet::default(), Out::default());
        saved.into_iter().for_each(|saved| work.recover_run(&at, &registry, &mut out, saved));
        work.note_ends(at.now);
        work.follow_rules(&at, &fleet.sessions, &mut out, Rules::turned);
        Self { registry, at, work, fleet, out, tick: Millis::default(), healthy: true, unchecked: 0 }
    }

    /// The coordinator with the cordons that the store has.
    #[must_use]
    pub fn with_cordons(self, cordons: Vec<v1::Cordon>) -> Self {
        Self { fleet: Fleet { cordons: Cordons::known(cordons), ..self.fleet }, ..self }
    }

    /// Handles one event, which must not be earlier than the previous one. Returns what to do.
    pub fn handle(&mut self, now: Millis, event: Event) -> Vec<Effect> {
        self.at.now = self.at.now.max(now);
        self.on_event(event);
        self.act_on_facts();
        self.tick();
        self.act_on_facts();
        let Self { at, work, fleet, out, .. } = self;
        work.advance_runs(at, &mut fleet.sessions, out);
        work.compute_here(at, out);
        work.assign(at, &mut fleet.sessions, out);
        work.finish_stopping(at, out);
        self.publish();
        if cfg!(debug_assertions) {
            self.check_now_and_then();
        }
        self.out.effects.take()
    }

    fn on_event(&mut self, event: Event) {
        let Self { registry, at, work, fleet, out, .. } = self;
        match event {
            Event::Hello { session, address, holder, hello } => {
                match session_of(&hello, address, holder, registry, at.now) {
                    Ok(new) => fleet.admit(at, work, out, session, new),
                    Err(why) => fleet.refuse(at.now, out, session, &hello.name, why),
                }
            }
            Event::Message { session, message } => fleet.on_message(at, work, out, session, message),
            Event::Heard { session } => {
                _ = fleet.sessions.change_if_there(session, |session| session.heard = at.now);
            }
            Event::Expired { session } => fleet.lose(at, work, out, session, Cause::Expired),
            Event::Revoked { session } => fleet.lose(at, work, out, session, Cause::Revoked),
            Event::Left { session } => fleet.lose(at, work, out, session, Cause::ConnectionEnded),
            Event::Request { id, request } => self.on_request(id, request),
            Event::Done { thread, reports, took_us } => {
                work.runs.note_absorbing(thread, took_us);
                for report in reports {
                    let Self { at, work, fleet, out, .. } = &mut *self;
                    work.on_report(at, fleet, out, thread, report);
                    self.act_on_facts();
                }
            }
            Event::Stored { write, outcome, took_us } => self.on_stored(write, outcome, took_us),
            Event::Damaged { run, object } => work.on_damaged(out, &run, object),
            Event::ComputedHere(outcome) => work.on_computed_here(at, &mut fleet.sessions, out, outcome),
            Event::Stop => self.stop(),
            Event::Wake => {}
        }
    }

    /// Passes each fact to the handler that acts on it, oldest first, until no fact is left.
    fn act_on_facts(&mut self) {
        let Self { at, work, fleet, out, .. } = self;
        while let Some(fact) = out.facts.next() {
            match fact {
                Fact::WorkerLost { session, cause } => fleet.lose(at, work, out, session, cause),
                Fact::Accused { task, last } => work.judge(at, &mut fleet.sessions, out, task, &last),
                Fact::Convicted(identity) => work.apply_conviction(at, &fleet.sessions, out, &identity),
                Fact::Settled(run) => work.end_if_complete(at, &mut fleet.sessions, out, run),
                Fact::Turned => {
                    work.note_ends(at.now);
                    work.follow_rules(at, &fleet.sessions, out, Rules::turned);
                }
            }
        }
    }

    /// When [`Event::Wake`] is due, unless another event comes first.
    #[must_use]
    pub fn next_wake(&self) -> Option<Millis> {
        let Self { at, work, fleet, out, .. } = self;
        let quiet = out.writes.is_empty()
            && work.convictions.are_stored()
            && fleet.cordons.are_stored()
            && work.runs.changed().is_empty();
        match quiet && work.runs.iter().all(|(_, run)| run.is_quiet()) {
            true => {
                let look = work.look(at, &fleet.sessions, &out.writes);
                Some(work.rules.next_wake(&look)?.max(self.tick))
            }
            false => Some(self.tick),
        }
    }
}
