//! A coordinator's core with a record of its effects, on a clock that only the test advances. Threads and the store react at
//! once.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use evoxo_common::{
    envelope::{Kind, open},
    task::{Shared, SharedCache},
};
use evoxo_proto::PROTOCOL;
use prost::Message as _;

use super::*;
use crate::{
    names::{FINISHED, ORDER, cordons_name, finished_name, object_name, order_name},
    pack::places,
    prepared::Prepared,
    replicas::{Job, Recall, Turns},
    saved::Objects,
    trust::{Holder, Level},
};

pub(super) fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(evoxo_experiments::registry)
}

pub(super) fn prepared(config: &str) -> Arc<Prepared> {
    Prepared::read(registry(), "t", config).unwrap_or_else(|problems| panic!("{problems}"))
}

/// How long a task takes unless the test changes it, in microseconds.
const TASK_US: u64 = 1000;

/// The result of a task in the coordinator's own process.
pub(super) type Here = fn(&Encoded) -> Result<Bytes, String>;

/// How a process ends if a task kills it.
pub(super) const DIED: &str = "its process was ended by signal 6";

/// An assignment as a worker reads it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Assigned {
    pub(super) id: u64,
    pub(super) tasks: Vec<Encoded>,
}

pub(super) struct Story {
    pub(super) core: Coordinator,
    pub(super) now: Millis,
    /// The assignments, by session.
    pub(super) assigned: BTreeMap<u64, Vec<Assigned>>,
    /// The shared bytes that each session has.
    caches: BTreeMap<u64, SharedCache<Arc<Shared>>>,
    /// Shared bytes in the order in which they were sent.
    pub(super) shared: Vec<Bytes>,
    pub(super) closed: BTreeMap<u64, v1::Close>,
    /// The sessions that were asked to leave, with the reason sent to them.
    pub(super) left_to: Vec<(u64, String)>,
    pub(super) writes: Vec<(String, Write)>,
    /// The objects in the store, by name.
    pub(super) objects: BTreeMap<String, Bytes>,
    pub(super) responses: Vec<Result<Response, Rejection>>,
    pub(super) views: BTreeMap<String, v1::Run>,
    /// The views at the time of the last response.
    pub(super) views_when_answered: BTreeMap<String, v1::Run>,
    pub(super) log: Vec<(Topic, String)>,
    /// The convicted identities, and what each did.
    pub(super) convicted: Vec<(String, String)>,
    /// Lines for the audit log.
    pub(super) audited: Vec<String>,
    threads: Turns,
    /// The result of a task in the coordinator's own process. By default the task fails there as it does elsewhere. `None`:
    /// the test reports the result later.
    pub(super) here: Option<Here>,
    /// The tasks given to that process, and whether it was asked to stop.
    pub(super) tried_here: Vec<Encoded>,
    pub(super) stopped_here: bool,
    /// The outcome of every write.
    pub(super) store: Result<(), StoreFault>,
    /// How long a write takes, in milliseconds.
    pub(super) store_ms: u64,
    /// How long a task takes as its worker reports it, in microseconds.
    pub(super) task_us: u64,
    /// If set, reports of checkpoints are held here.
    pub(super) held: Option<Vec<Event>>,
    /// Pieces of rounds that are not planned yet, if they are held back.
    pub(super) held_plans: Option<Vec<(ThreadId, Job)>>,
    /// Whether deletions fail.
    pub(super) fail_deletions: bool,
    pub(super) healthy: bool,
    pub(super) stopped: bool,
}

impl Story {
    pub(super) fn begin(settings: Settings) -> Self {
        Self::go_on(settings, BTreeMap::new())
    }

    /// A coordinator that recovers these objects.
    pub(super) fn go_on(settings: Settings, objects: BTreeMap<String, Bytes>) -> Self {
        let convicted = objects.keys().filter_map(|name| Some(name.strip_prefix("convicted/")?.into())).collect();
        let runs = objects.keys().filter_map(|name| name.strip_prefix("runs/")?.split('/').next().map(str::to_owned));
        let runs: BTreeSet<String> = runs.collect();
        let saved = runs.iter().filter_map(|run| load(&objects, run, false)).collect();
        let mut story = Self {
            core: Coordinator::recover_knowing(settings, registry().clone(), saved, convicted)
                .with_cordons(cordons(&objects)),
            now: Millis(0),
            assigned: BTreeMap::new(),
            caches: BTreeMap::new(),
            shared: Vec::new(),
            closed: BTreeMap::new(),
            left_to: Vec::new(),
            writes: Vec::new(),
            objects,
            responses: Vec::new(),
            views: BTreeMap::new(),
            views_when_answered: BTreeMap::new(),
            log: Vec::new(),
            convicted: Vec::new(),
            audited: Vec::new(),
            threads: Turns::new(registry().clone()),
            here: Some(|_| Err(DIED.into())),
            tried_here: Vec::new(),
            stopped_here: false,
            store: Ok(()),
            store_ms: 0,
            task_us: TASK_US,
            held: None,
            held_plans: None,
            fail_deletions: false,
            healthy: true,
            stopped: false,
        };
        story.tell(Event::Wake);
        story
    }

    /// From now on, runs that start recall these outputs.
    pub(super) fn recall(&mut self, recall: &Arc<Recall>) {
        self.threads.recall(Some(Arc::clone(recall)));
    }

    pub(super) fn tell(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let effects = self.core.handle(self.now, event);
            shows_only_what_is_stored(&effects);
            for effect in effects {
                self.carry_out(effect, &mut events);
            }
        }
    }

    fn carry_out(&mut self, effect: Effect, events: &mut VecDeque<Event>) {
        match effect {
            Effect::Send { session, message } => match message.message.unwrap() {
                to_worker::Message::Assignment(assignment) => {
                    self.shared.extend(assignment.shared.iter().cloned());
                    let id = assignment.id;
                    let tasks = self.caches.entry(session.0).or_default().unpack(assignment).unwrap();
                    self.assigned.entry(session.0).or_default().push(Assigned { id, tasks });
                }
                to_worker::Message::Leave(leave) => self.left_to.push((session.0, leave.reason)),
                to_worker::Message::Close(close) => drop(self.closed.entry(session.0).or_insert(close)),
                _ => {}
            },
            Effect::Store { write, run, what } => {
                let is_checkpoint = matches!(what, Write::Checkpoint { .. });
                let stored = Event::Stored { write, outcome: self.store(&run, what), took_us: self.store_ms * 1000 };
                match self.held.as_mut().filter(|_| is_checkpoint) {
                    Some(held) => held.push(stored),
                    None => events.push_back(stored),
                }
            }
            Effect::Start { thread, prepared, draw, states, lanes, scope } => {
                self.threads.start(thread, prepared, draw, states, lanes, scope);
            }
            Effect::Job { thread, job } => match self.held_plans.as_mut().filter(|_| matches!(job, Job::Plan(_))) {
                Some(held) => held.push((thread, job)),
                None => {
                    let reports = self.threads.run(thread, job);
                    events.extend(reports.map(|reports| Event::Done { thread, reports, took_us: 0 }));
                }
            },
            Effect::Drop { thread } => self.threads.end(thread),
            Effect::ForgetRecalled => self.threads.forget_recalled(),
            Effect::ComputeHere { task, .. } => {
                let outcome = self.here.map(|here| here(&task));
                self.tried_here.push(task);
                events.extend(outcome.map(Event::ComputedHere));
            }
            Effect::StopComputing => self.stopped_here = true,
            Effect::Respond { response, .. } => {
                self.views_when_answered.clone_from(&self.views);
                self.responses.push(response);
            }
            Effect::Publish(view) => drop(self.views.insert(view.run.name.clone(), view.run.clone())),
            Effect::Unpublish { run } => drop(self.views.remove(&run)),
            Effect::Convict { identity, what } => self.convicted.push((identity, what)),
            Effect::Audit { what, object } => self.audited.push(format!("{what}: {object}")),
            Effect::Healthy(healthy) => self.healthy = healthy,
            Effect::Stopped => self.stopped = true,
            Effect::End { session } => drop(self.assigned.remove(&session.0)),
            Effect::Log { topic, sentence, .. } => self.log.push((topic, sentence)),
        }
    }

    fn store(&mut self, run: &str, what: Write) -> Result<Stored, StoreFault> {
        let mut outcome = self.store.clone().map(|()| Stored::Written(None));
        if self.fail_deletions && matches!(what, Write::Delete | Write::DropCheckpoints) {
            outcome = Err(StoreFault::Failed(format!("run {run} cannot be deleted")));
        }
        if let (Ok(_), Write::Cordons { bytes, .. }) = (&outcome, &what) {
            // All stories have the same epoch, so their lists are numbered together.
            let lists = self.objects.keys().filter(|name| name.starts_with("cordons/")).count() as u64;
            self.objects.insert(cordons_name(1, 1 + lists, bytes), bytes.clone());
        } else if let (Ok(_), Write::Convict { identity, bytes }) = (&outcome, &what) {
            self.objects.insert(format!("convicted/{identity}"), bytes.clone());
        } else if outcome.is_ok() {
            let bytes = match &what {
                Write::Order { bytes, .. }
                | Write::Checkpoint { bytes, .. }
                | Write::Finished { bytes, .. }
                | Write::Doubt { bytes, .. } => Some(bytes.clone()),
                _ => None,
            };
            let next = |directory: &str| {
                let below = format!("runs/{run}/{directory}/");
                1 + self.objects.keys().filter(|name| name.starts_with(&below)).count() as u64
            };
            let name = match &what {
                Write::Order { .. } => Some(order_name(1, next(ORDER))),
                Write::Finished { bytes } => Some(finished_name(1, next(FINISHED), 1, bytes)),
                _ => object_name(&what, 1),
            };
            match (name.zip(bytes), &what) {
                (Some((name, bytes)), Write::Finished { .. }) => {
                    outcome = Ok(Stored::Finished(places(&name, std::slice::from_ref(&bytes)).remove(0)));
                    self.objects.insert(format!("runs/{run}/{name}"), bytes);
                }
                (Some((name, bytes)), _) => {
                    outcome = Ok(Stored::Written(Some(name.clone())));
                    self.objects.insert(format!("runs/{run}/{name}"), bytes);
                }
                (None, Write::Delete) => self.objects.retain(|name, _| !name.starts_with(&format!("runs/{run}/"))),
                (None, Write::Load | Write::LoadFork { .. }) => {
                    outcome = Ok(Stored::Loaded(load(&self.objects, run, true).map(Box::new)));
                }
                _ => {}
            }
        }
        self.writes.push((run.to_owned(), what));
        self.now = self.now + self.store_ms;
        outcome
    }

    /// Plans the piece that is held back at this place.
    pub(super) fn plan(&mut self, place: usize) {
        let (thread, job) = self.held_plans.as_mut().expect("plans are held back").remove(place);
        if let Some(reports) = self.threads.run(thread, job) {
            self.tell(Event::Done { thread, reports, took_us: 0 });
        }
    }

    pub(super) fn ask(&mut self, request: Request) -> Result<Response, Rejection> {
        self.responses.clear();
        self.tell(Event::Request { id: RequestId(1), request });
        self.responses.pop().expect("every request is answered")
    }

    pub(super) fn submit(&mut self, name: &str, config: &str) -> Result<Response, Rejection> {
        self.submit_at(Level::Plain, name, config)
    }

    pub(super) fn submit_at(&mut self, level: Level, name: &str, config: &str) -> Result<Response, Rejection> {
        self.ask(Request::Submit {
            name: name.into(),
            prepared: prepared(config),
            level,
            submitter: "10.0.0.9".into(),
            terms: Vec::new(),
        })
    }

    /// Like [`Self::submit`], for another submitter.
    pub(super) fn submit_by(&mut self, submitter: &str, name: &str, config: &str) -> Result<Response, Rejection> {
        let (prepared, level) = (prepared(config), Level::Plain);
        self.ask(Request::Submit { name: name.into(), prepared, level, submitter: submitter.into(), terms: Vec::new() })
    }

    /// The run as clients see it, after it was published.
    pub(super) fn run(&mut self, name: &str) -> v1::Run {
        self.now = self.now + 200;
        self.tell(Event::Wake);
        self.views.get(name).unwrap_or_else(|| panic!("no run {name} is shown")).clone()
    }

    pub(super) fn wait(&mut self, ms: u64) {
        self.now = self.now + ms;
        self.tell(Event::Wake);
    }

    pub(super) fn say(&mut self, session: u64, message: from_worker::Message) {
        self.tell(Event::Message { session: SessionId(session), message: v1::FromWorker { message: Some(message) } });
    }

    pub(super) fn hello(session: u64, slots: u32) -> v1::Hello {
        v1::Hello {
            protocol: PROTOCOL,
            slots,
            name: format!("w{session}"),
            kinds: registry().signatures(),
            programs: Vec::new(),
            labels: Vec::new(),
            build: String::new(),
            host: "lab".into(),
            process: session,
        }
    }

    pub(super) fn greet(&mut self, session: u64, hello: v1::Hello) {
        self.greet_at(session, "10.0.0.1", hello);
    }

    pub(super) fn greet_at(&mut self, session: u64, address: &str, hello: v1::Hello) {
        self.tell(Event::Hello { session: SessionId(session), address: address.into(), holder: None, hello });
    }

    /// A worker with a certificate.
    pub(super) fn greet_as(&mut self, session: u64, id: &str, trusted: bool) {
        let (address, holder) = ("10.0.0.1".into(), Some(Holder { id: id.into(), trusted }));
        self.tell(Event::Hello { session: SessionId(session), address, holder, hello: Self::hello(session, 1) });
    }

    pub(super) fn join(&mut self, session: u64, slots: u32) {
        self.greet(session, Self::hello(session, slots));
    }

    pub(super) fn leave(&mut self, session: u64) {
        self.assigned.remove(&session);
        self.caches.remove(&session);
        self.tell(Event::Left { session: SessionId(session) });
    }

    /// The session reports on all tasks of its first assignment.
    pub(super) fn answer(&mut self, session: u64, outcome: impl Fn(&Encoded) -> Outcome) -> usize {
        let assignment = self.assigned.get_mut(&session).filter(|queue| !queue.is_empty()).map(|queue| queue.remove(0));
        let Some(assignment) = assignment else { return 0 };
        let elapsed_us = self.task_us;
        let result = |task: &Encoded| v1::TaskResult { elapsed_us, ..result_of(task, outcome(task), assignment.id) };
        let results: Vec<v1::TaskResult> = assignment.tasks.iter().map(result).collect();
        let count = results.len();
        self.say(session, from_worker::Message::Outputs(v1::Outputs { results }));
        count
    }

    pub(super) fn work_to_the_end(&mut self, session: u64) {
        while self.answer(session, honest) > 0 {}
    }

    /// The hashes of the tasks assigned to a session, by assignment.
    pub(super) fn tasks_of(&self, session: u64) -> Vec<Vec<evoxo_common::digest::Digest>> {
        let assignments = self.assigned.get(&session).into_iter().flatten();
        assignments.map(|assignment| assignment.tasks.iter().map(|task| task.hash).collect()).collect()
    }

    /// The number of log lines about a topic.
    pub(super) fn logged(&self, topic: Topic) -> usize {
        self.log.iter().filter(|(other, _)| *other == topic).count()
    }
}

/// The Hello of a worker with this name.
pub(super) fn hello_as(name: &str, process: u64) -> v1::Hello {
    v1::Hello { name: name.into(), ..Story::hello(process, 1) }
}

/// A failure or a doubt must not be shown while it is being written. It would be lost if the coordinator were killed at that
/// moment.
fn shows_only_what_is_stored(effects: &[Effect]) {
    let written = effects.iter().filter_map(|effect| match effect {
        Effect::Store { run, what: Write::Doubt { .. } | Write::Poison { .. }, .. } => Some(run),
        _ => None,
    });
    for name in written {
        let shown = |effect: &Effect| matches!(effect, Effect::Publish(view) if view.run.name == *name);
        assert!(!effects.iter().any(shown), "run {name} shows something that is not stored");
    }
}

pub(super) fn result_of(task: &Encoded, outcome: Outcome, assignment: u64) -> v1::TaskResult {
    let hash = Bytes::copy_from_slice(&task.hash.0);
    v1::TaskResult { hash, outcome: Some(outcome), elapsed_us: TASK_US, assignment, timed_out: false }
}

/// The cordons in the newest list.
fn cordons(objects: &BTreeMap<String, Bytes>) -> Vec<v1::Cordon> {
    let newest = objects.iter().rfind(|(name, _)| name.starts_with("cordons/"));
    let body = newest.map(|(_, bytes)| open(Kind::Cordons, bytes).unwrap());
    body.map(|body| v1::Cordons::decode(body).unwrap().cordons).unwrap_or_default()
}

fn load(objects: &BTreeMap<String, Bytes>, run: &str, with_states: bool) -> Option<SavedRun> {
    let prefix = format!("runs/{run}/");
    let names: Vec<String> = objects.keys().filter_map(|name| Some(name.strip_prefix(&prefix)?.to_owned())).collect();
    let mut read = |name: &str| Ok(objects[&format!("{prefix}{name}")].clone());
    let size = |name: &str| Some(objects.get(&format!("{prefix}{name}"))?.len() as u64);
    Objects { run, names: &names, size: &size, read: &mut read }.interpret(registry(), with_states).0
}
