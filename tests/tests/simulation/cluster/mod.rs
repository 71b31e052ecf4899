//! The cluster: events in order of virtual time, faults drawn from the seed.

mod carry_out;
mod check;
mod people;
mod seats;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use evoxo_common::{
    digest::Digest,
    rng::{Generator, Stream, below, chance},
    task::Encoded,
    time::Millis,
};
use evoxo_coordinator::{
    core::{Event, Request, RequestId, SessionId, Settings, ThreadId, Topic},
    prepared::Prepared,
    replicas::Report,
    trust::Level,
};
use evoxo_proto::v1;
use evoxo_worker::core as worker_core;

use super::{
    draw::{self, Faults},
    objects::{Fault, Objects, damage},
    seat::Seat,
    worker::{Character, SimWorker},
};

/// What happened in a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) crashes: u64,
    /// How many times a coordinator led.
    pub(crate) lives: u64,
    /// How many standbys took over; how many coordinators learnt that they no longer lead; and how many others led between a
    /// check and a write.
    pub(crate) takeovers: u64,
    pub(crate) superseded: u64,
    pub(crate) rivals: u64,
    /// How many runs people deleted; and how many of them were submitted to another leader meanwhile.
    pub(crate) deleted: u64,
    pub(crate) revived: u64,
    /// How many times a person asked for more replicas.
    pub(crate) extended: u64,
    pub(crate) workers_lost: u64,
    pub(crate) workers_refused: u64,
    pub(crate) objects_damaged: u64,
    pub(crate) answers_lost: u64,
    /// How many objects got several finished replicas.
    pub(crate) packs: u64,
    /// How many times a run began with states of the run from which it forks.
    pub(crate) begun_forks: u64,
    pub(crate) tasks_repeated: u64,
    /// How many tasks a coordinator computed itself.
    pub(crate) computed_here: u64,
    /// How many workers a killer task has killed.
    pub(crate) victims: u64,
    /// The convicted identities, each with the epoch.
    pub(crate) convicted: BTreeMap<String, u64>,
    /// Pairs of identities that sent different outputs of a task, according to a checkpoint in the store.
    pub(crate) disputes: BTreeSet<[String; 2]>,
    /// How many replicas were restarted because of convictions.
    pub(crate) undone: u64,
    /// The message of a failed run.
    pub(crate) failure: Option<String>,
    pub(crate) ended_at_ms: u64,
}

enum SimEvent {
    ToCoordinator(SessionId, v1::FromWorker),
    StreamEnds(SessionId),
    /// The coordinator ended the stream.
    StreamEnded(SessionId),
    ToWorker(usize, SessionId, v1::ToWorker),
    /// The worker, its life, and the slot.
    Computed(usize, u64, usize),
    Connect(usize, u64),
    WakeWorker(usize, u64),
    /// A worker that flaps dies.
    Flap(usize),
    /// The seat, its life, and its threads' reports.
    Reported(usize, u64, ThreadId, Vec<Report>),
    /// The separate process of a seat ended after computing this task; `None` if it was asked to end.
    ComputedHere(usize, u64, Option<Encoded>),
    /// The first write of a seat is done.
    Written(usize, u64),
    Wake(usize, u64),
    Submit(usize),
    /// A person asks for more replicas of a run.
    Extend(usize),
    PauseOrResume,
    /// A person deletes a run; the flag marks a repeated request.
    Delete(usize, bool),
    Crash,
    /// A seat, and whether its process is started as a standby.
    Start(usize, bool),
    /// A coordinator checks who leads.
    Look(usize, u64),
    /// A coordinator is stopped for a while, or all are cut off from each other.
    StopOrSplit,
    /// An event that arrived for a coordinator while it was stopped.
    Held(usize, u64, Event),
}

/// The two ends of a session: its worker and the seat of its coordinator.
#[derive(Clone, Copy)]
struct Ends {
    worker: usize,
    seat: usize,
}

pub(crate) struct Cluster {
    rng: Generator,
    faults: Faults,
    faults_left: u64,
    settings: Settings,
    now: Millis,
    queue: BTreeMap<(Millis, u64), SimEvent>,
    counter: u64,
    /// The coordinators' seats. The first one leads at the start.
    seats: Vec<Seat>,
    /// The time until which the coordinators cannot reach each other.
    split_until: Millis,
    confirmed: seats::Confirmed,
    /// The highest epoch that each worker has seen.
    seen: BTreeMap<usize, u64>,
    sessions: BTreeMap<SessionId, Ends>,
    /// When the last message of a stream arrives, in either direction. The next one arrives later.
    arrivals: BTreeMap<(SessionId, bool), Millis>,
    workers: Vec<SimWorker>,
    objects: Arc<Objects>,
    runs: Vec<(String, Arc<Prepared>)>,
    submitted: BTreeSet<usize>,
    people: people::People,
    /// A task that kills its worker.
    poison: Option<Digest>,
    outcome: Outcome,
}

/// Runs one cluster to its end and checks everything about it.
pub(crate) fn simulate(seed: u64, faults: Faults) -> Outcome {
    let mut rng = Stream::root(seed).text("cluster").rng();
    let count = 1 + below(&mut rng, 2);
    let mut runs = vec![("run-0".to_owned(), draw::run(&mut rng))];
    if count > 1 {
        runs.push(("run-1".into(), draw::run_beside(&mut rng, &runs[0].1)));
    }
    let characters = draw::characters(&mut rng, faults.bad_workers);
    let mut cluster = Cluster::new(rng, faults, runs, &characters);
    // Most clusters get no requests.
    if faults.people {
        cluster.people = people::People::new(seed);
        cluster.let_people_delete();
        cluster.let_people_extend();
    }
    cluster.run_until(|cluster| cluster.is_over(), seed);
    if cluster.outcome.failure.is_none() {
        cluster.check(seed);
    }
    cluster.outcome
}

impl Cluster {
    pub(crate) fn new(
        mut rng: Generator,
        faults: Faults,
        runs: Vec<(String, Arc<Prepared>)>,
        characters: &[Character],
    ) -> Self {
        let settings = draw::settings(&mut rng, &runs, &faults);
        let worker = |(number, character): (usize, &Character)| {
            let (slots, task_ms) = (1 + below(&mut rng, 3) as usize, 1 + below(&mut rng, faults.task_ms_max));
            SimWorker::new(number, *character, slots, task_ms)
        };
        let workers: Vec<SimWorker> = characters.iter().enumerate().map(worker).collect();
        let mut cluster = Self {
            rng,
            faults,
            faults_left: faults.budget,
            settings,
            now: Millis(0),
            queue: BTreeMap::new(),
            counter: 0,
            seats: (0..=faults.standbys).map(|_| Seat::default()).collect(),
            split_until: Millis(0),
            confirmed: seats::Confirmed::default(),
            seen: BTreeMap::new(),
            sessions: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            workers,
            objects: Arc::default(),
            runs,
            submitted: BTreeSet::new(),
            people: people::People::new(0),
            poison: None,
            outcome: Outcome::default(),
        };
        (0..cluster.seats.len()).for_each(|seat| cluster.start(seat, seat > 0));
        for worker in 0..cluster.workers.len() {
            let ms = cluster.draw_ms(500);
            cluster.plan(ms, SimEvent::WakeWorker(worker, 0));
            if cluster.workers[worker].character == Character::Flapping {
                cluster.plan(1000 + ms, SimEvent::Flap(worker));
            }
        }
        for run in 0..cluster.runs.len() {
            let ms = cluster.draw_ms(300);
            cluster.plan(ms, SimEvent::Submit(run));
        }
        for _ in 0..faults.crashes {
            let ms = cluster.draw_ms(20 * faults.task_ms_max);
            cluster.plan(ms, SimEvent::Crash);
        }
        if faults.people {
            cluster.plan(50, SimEvent::PauseOrResume);
        }
        for _ in 0..faults.stops {
            let ms = cluster.draw_ms(20 * faults.task_ms_max);
            cluster.plan(ms, SimEvent::StopOrSplit);
        }
        cluster
    }

    /// Handles events until `is_so` returns true.
    pub(crate) fn run_until(&mut self, is_so: impl Fn(&mut Self) -> bool, seed: u64) {
        let end = Millis(40_000_000);
        while !is_so(self) {
            let Some(((at, _), event)) = self.queue.pop_first() else {
                panic!("seed {seed}: nothing more will happen; {}", self.state())
            };
            self.now = at;
            assert!(at < end, "seed {seed}: no end after {} hours; {}", end.0 / 3_600_000, self.state());
            self.handle_event(event);
        }
        self.outcome.ended_at_ms = self.now.0;
    }

    pub(crate) fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    pub(crate) fn now(&self) -> Millis {
        self.now
    }

    /// Makes this task kill its worker from now on.
    pub(crate) fn poison(&mut self, task: Digest) {
        self.poison = Some(task);
    }

    /// Whether the first slot of any worker has a task.
    pub(crate) fn has_assigned(&self) -> bool {
        self.workers.iter().any(|worker| worker.next_task(0).is_some())
    }

    /// Takes a worker's host down, without a message.
    pub(crate) fn silence(&mut self, worker: usize) {
        self.workers[worker].alive = false;
        self.workers[worker].life += 1;
    }

    fn plan(&mut self, ms: u64, event: SimEvent) {
        self.counter += 1;
        self.queue.insert((self.now + ms, self.counter), event);
    }

    fn draw_ms(&mut self, most: u64) -> u64 {
        below(&mut self.rng, most + 1)
    }

    /// Draws whether a fault happens now.
    fn fault(&mut self, thousandths: u64) -> bool {
        let happens = self.faults_left > 0 && chance(&mut self.rng, thousandths, 1000);
        self.faults_left -= u64::from(happens);
        happens
    }

    fn handle_event(&mut self, event: SimEvent) {
        match event {
            SimEvent::ToCoordinator(session, message) => self.arrive(session, message),
            SimEvent::StreamEnds(session) => {
                if let Some(ends) = self.sessions.remove(&session) {
                    self.tell(ends.seat, Event::Left { session });
                }
            }
            SimEvent::StreamEnded(session) => {
                if let Some(&Ends { worker, .. }) = self.sessions.get(&session)
                    && self.workers[worker].link == Some(session)
                {
                    let effects = self.workers[worker].link_down(self.now);
                    self.carry_out_for(worker, effects);
                }
            }
            SimEvent::ToWorker(worker, session, message) if self.workers[worker].link == Some(session) => {
                self.tell_worker(worker, worker_core::Event::Message(message));
            }
            SimEvent::Computed(worker, life, slot) if self.workers[worker].life == life => self.computed(worker, slot),
            SimEvent::Connect(worker, life) if self.workers[worker].life == life => self.connect(worker),
            SimEvent::WakeWorker(worker, life) if self.workers[worker].life == life => {
                self.workers[worker].wake_at = None;
                self.tell_worker(worker, worker_core::Event::Wake);
            }
            SimEvent::Flap(worker) => {
                let ms = 1000 + self.draw_ms(2000);
                self.plan(ms, SimEvent::Flap(worker));
                self.kill(worker, 100);
            }
            SimEvent::Reported(seat, life, thread, reports) if life == self.seats[seat].life => {
                self.tell(seat, Event::Done { thread, reports, took_us: 0 });
            }
            SimEvent::ComputedHere(seat, life, task) if life == self.seats[seat].life => self.computed_here(seat, task),
            SimEvent::Written(seat, life) if life == self.seats[seat].life => self.write(seat),
            SimEvent::Wake(seat, life)
                if life == self.seats[seat].life && self.seats[seat].wake_at.is_some_and(|at| at <= self.now) =>
            {
                self.seats[seat].wake_at = None;
                self.tell(seat, Event::Wake);
            }
            SimEvent::Submit(run) if self.waits_for_past(run) => self.plan(1000, SimEvent::Submit(run)),
            SimEvent::Submit(run) => self.submit(run),
            SimEvent::Extend(run) => self.extend(run),
            SimEvent::PauseOrResume => self.pause_or_resume(),
            SimEvent::Delete(run, again) => self.delete(run, again),
            SimEvent::Crash => self.crash(),
            SimEvent::Start(seat, as_standby) => self.start(seat, as_standby),
            SimEvent::Look(seat, life) if life == self.seats[seat].life => self.look(seat),
            SimEvent::StopOrSplit => self.stop_or_split(),
            SimEvent::Held(seat, life, event) if life == self.seats[seat].life => self.tell(seat, event),
            _ => {}
        }
    }

    fn arrive(&mut self, session: SessionId, message: v1::FromWorker) {
        let Some(&Ends { worker, seat }) = self.sessions.get(&session) else { return };
        let event = match message.message {
            Some(v1::from_worker::Message::Hello(hello)) => {
                let holder = (self.faults.level != Level::Plain).then(|| self.workers[worker].holder());
                Event::Hello { session, address: self.workers[worker].address(), holder, hello }
            }
            message => Event::Message { session, message: v1::FromWorker { message } },
        };
        self.tell(seat, event);
    }

    fn computed(&mut self, worker: usize, slot: usize) {
        let task = self.workers[worker].next_task(slot);
        if task.is_some_and(|task| Some(task.hash) == self.poison) {
            self.outcome.victims += 1;
            return self.kill(worker, 2000);
        }
        let life = self.workers[worker].life;
        let (effects, more) = self.workers[worker].computed(self.now, slot);
        if more {
            let ms = self.draw_ms(self.workers[worker].task_ms);
            self.plan(1 + ms, SimEvent::Computed(worker, life, slot));
        }
        self.carry_out_for(worker, effects);
        self.disturb(worker);
    }

    fn connect(&mut self, worker: usize) {
        let Some(seat) = self.address_of(worker) else {
            return self.tell_worker(worker, worker_core::Event::LinkDown("no coordinator leads".into()));
        };
        self.join(worker, seat);
        self.tell_worker(worker, worker_core::Event::LinkUp);
    }

    /// Sometimes breaks a connection or kills a process.
    fn disturb(&mut self, worker: usize) {
        if self.fault(self.faults.cut) {
            let link = self.workers[worker].link;
            self.end_stream(link);
            if link.is_some() {
                let effects = self.workers[worker].link_down(self.now);
                self.carry_out_for(worker, effects);
            }
        }
        if self.fault(self.faults.die) {
            self.kill(worker, 5000);
        }
    }

    /// Kills the process. A new one starts after at most `ms_max`. Half of the time the coordinator does not notice the end.
    pub(crate) fn kill(&mut self, worker: usize, ms_max: u64) {
        if !self.workers[worker].alive {
            return;
        }
        let silent = chance(&mut self.rng, 1, 2);
        let link = self.workers[worker].link.filter(|_| !silent);
        self.end_stream(link);
        let ms = self.draw_ms(ms_max);
        self.workers[worker].die(self.now + ms);
        self.plan(ms, SimEvent::WakeWorker(worker, self.workers[worker].life));
    }
}
