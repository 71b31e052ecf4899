//! A coordinator without sockets, clocks and threads: the real core, the real replicas of its runs, and the real store over
//! objects in memory. Every effect that it requests happens at once.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use evoxo_common::{
    task::{Encoded, NoPrograms, Shared, SharedCache},
    time::Millis,
};
use evoxo_coordinator::{
    core::{Coordinator, Effect, Event, Rejection, Request, RequestId, Response, SessionId, Settings, Write},
    replicas::Turns,
    store::Store,
    trust::Holder,
};
use evoxo_proto::{
    PROTOCOL,
    v1::{self, from_worker, task_result::Outcome, to_worker},
};
use object_store::memory::InMemory;

use crate::registry;

/// The session of a worker that is always honest and trusted.
pub const TRUSTED: u64 = 1000;

/// An assignment as a worker decodes it.
pub struct Assigned {
    /// Its number within the session.
    pub id: u64,
    /// Its tasks.
    pub tasks: Vec<Encoded>,
}

/// A coordinator, and what it has sent to its workers.
pub struct Cluster {
    core: Coordinator,
    now: Millis,
    objects: Arc<InMemory>,
    store: Store,
    threads: Turns,
    caches: BTreeMap<u64, SharedCache<Arc<Shared>>>,
    /// The assignments of each session.
    pub assigned: BTreeMap<u64, VecDeque<Assigned>>,
    /// The latest published view of each run.
    pub views: BTreeMap<String, v1::Run>,
    /// The responses to requests of people.
    pub responses: Vec<Result<Response, Rejection>>,
}

/// Settings with little memory, so that no run of a stranger takes long to plan.
fn settings() -> Settings {
    Settings {
        checkpoint_interval_ms: 50,
        memory_bytes_max: 16 << 20,
        runs_max: 8,
        lanes_max: 3,
        ..Settings::default()
    }
}

impl Cluster {
    /// A coordinator that starts with these stored objects.
    pub fn over(objects: Arc<InMemory>) -> Self {
        let mut store = Store::over(objects.clone(), "memory", registry().clone());
        // Foreign objects may prevent it from leading. Then it only shows what it has.
        let _ = store.lead();
        let (refused, _) = store.load_refused().expect("objects in memory can be listed");
        let (saved, _) = store.load().expect("objects in memory can be listed");
        let (cordons, _) = store.load_cordons().expect("objects in memory can be listed");
        let mut cluster = Self {
            core: Coordinator::recover_knowing(settings(), registry().clone(), saved, refused.convicted)
                .with_cordons(cordons),
            now: Millis(0),
            objects,
            store,
            threads: Turns::new(registry().clone()),
            caches: BTreeMap::new(),
            assigned: BTreeMap::new(),
            views: BTreeMap::new(),
            responses: Vec::new(),
        };
        cluster.tell(Event::Wake);
        cluster
    }

    /// Kills the coordinator and starts a new one over the same objects.
    pub fn restart(&mut self) {
        *self = Self::over(self.objects.clone());
    }

    /// Handles an event and everything that follows from it.
    pub fn tell(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for effect in self.core.handle(self.now, event) {
                self.carry_out(effect, &mut events);
            }
        }
    }

    fn carry_out(&mut self, effect: Effect, events: &mut VecDeque<Event>) {
        match effect {
            Effect::Send { session, message } => {
                if let Some(to_worker::Message::Assignment(assignment)) = message.message {
                    let (id, cache) = (assignment.id, self.caches.entry(session.0).or_default());
                    let tasks = cache.unpack(assignment).expect("a worker can read what it is sent");
                    self.assigned.entry(session.0).or_default().push_back(Assigned { id, tasks });
                }
            }
            Effect::End { session } => self.forget(session.0),
            Effect::Store { write, run, what } => {
                let outcome = self.store.write(&run, &what);
                events.push_back(Event::Stored { write, outcome, took_us: 0 });
            }
            Effect::Start { thread, prepared, draw, states, lanes, scope } => {
                self.threads.start(thread, prepared, draw, states, lanes, scope);
            }
            Effect::Job { thread, job } => {
                events.extend(self.threads.run(thread, job).map(|reports| Event::Done { thread, reports, took_us: 0 }));
            }
            Effect::Drop { thread } => self.threads.end(thread),
            Effect::ForgetRecalled => self.threads.forget_recalled(),
            // There is no other process, so its task has no output.
            Effect::ComputeHere { .. } => {
                events.push_back(Event::ComputedHere(Err("there is no process for it".into())));
            }
            Effect::Respond { response, .. } => self.responses.push(response),
            Effect::Publish(view) => drop(self.views.insert(view.run.name.clone(), view.run.clone())),
            Effect::Unpublish { run } => drop(self.views.remove(&run)),
            Effect::Convict { .. }
            | Effect::Audit { .. }
            | Effect::Healthy(_)
            | Effect::StopComputing
            | Effect::Log { .. }
            | Effect::Stopped => {}
        }
    }

    fn forget(&mut self, session: u64) {
        self.assigned.remove(&session);
        self.caches.remove(&session);
    }

    /// Makes a person's request. Its response becomes the last of [`Self::responses`].
    pub fn ask(&mut self, request: Request) {
        self.tell(Event::Request { id: RequestId(1), request });
    }

    /// Lets time pass.
    pub fn wait(&mut self, ms: u64) {
        self.now = self.now + ms;
        self.tell(Event::Wake);
    }

    /// The first message of an honest worker.
    pub fn hello() -> v1::Hello {
        v1::Hello {
            protocol: PROTOCOL,
            slots: 2,
            name: "w".into(),
            kinds: registry().signatures(),
            ..v1::Hello::default()
        }
    }

    /// Connects a worker. If the session already exists, it ends first.
    pub fn greet(&mut self, session: u64, holder: Option<Holder>, hello: v1::Hello) {
        self.leave(session);
        self.tell(Event::Hello { session: SessionId(session), address: "10.0.0.1".into(), holder, hello });
    }

    /// Delivers a worker's message.
    pub fn say(&mut self, session: u64, message: v1::FromWorker) {
        self.tell(Event::Message { session: SessionId(session), message });
    }

    /// Ends a worker's stream.
    pub fn leave(&mut self, session: u64) {
        self.forget(session);
        self.tell(Event::Left { session: SessionId(session) });
    }

    /// Answers the first assignment of a worker with altered versions of the right outputs. False if it has no assignment.
    pub fn answer(&mut self, session: u64, alter: impl Fn(Bytes) -> Bytes) -> bool {
        let Some(assignment) = self.assigned.get_mut(&session).and_then(VecDeque::pop_front) else { return false };
        let outcome = |task: &Encoded| match registry().run(task, &mut NoPrograms) {
            Ok(output) => Outcome::Output(alter(output)),
            Err(refusal) => Outcome::Failure(refusal.0),
        };
        let result = |task: &Encoded| v1::TaskResult {
            hash: Bytes::copy_from_slice(&task.hash.0),
            outcome: Some(outcome(task)),
            elapsed_us: 1000,
            assignment: assignment.id,
            timed_out: false,
        };
        let results = assignment.tasks.iter().map(result).collect();
        let message = from_worker::Message::Outputs(v1::Outputs { results });
        self.say(session, v1::FromWorker { message: Some(message) });
        true
    }

    /// Lets an honest, trusted worker compute until nothing is left for it, but at most this many assignments.
    pub fn finish(&mut self, assignments: usize) {
        let holder = Holder { id: "ffffffffffff".into(), trusted: true };
        self.wait(2000);
        self.greet(TRUSTED, Some(holder), Self::hello());
        for _ in 0..assignments {
            if !self.answer(TRUSTED, |output| output) {
                self.wait(1000);
                if !self.assigned.contains_key(&TRUSTED) {
                    break;
                }
            }
        }
        self.wait(1000);
    }

    /// Reads a run's objects again, as `fetch` does.
    pub fn load(&mut self, run: &str) {
        // The store may reject a damaged run, but nothing must break.
        drop(self.store.write(run, &Write::Load));
    }
}
