//! The cluster: events in order of virtual time, faults drawn from the seed.

mod check;
mod draw;

use std::collections::{BTreeMap, BTreeSet};

use evoxo_common::{
    config::Config,
    rng::{Generator, Stream, below, chance},
    time::Millis,
};
use evoxo_coordinator::core::{
    Answer, Ask, Batch, Coordinator, Effect, Event, SessionId, Settings, StoreFault, Ticket, Write, WriteId,
};
use evoxo_proto::v1;
use evoxo_worker::core as worker_core;

use self::draw::draw_config;
use super::{
    disk::Disk,
    worker::{Character, SimWorker},
};

/// How often things go wrong, in thousandths, and how many faults a cluster may have at most: then it is left in peace,
/// so that every cluster ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    lose: u64,
    repeat: u64,
    cut: u64,
    die: u64,
    crash: u64,
    flip: u64,
    store: u64,
    delay_ms_max: u64,
    budget: u64,
}

impl Faults {
    pub(crate) fn none() -> Self {
        Self { lose: 0, repeat: 0, cut: 0, die: 0, crash: 0, flip: 0, store: 0, delay_ms_max: 3, budget: 0 }
    }

    pub(crate) fn drawn(seed: u64) -> Self {
        let mut rng = Stream::root(seed).text("faults").rng();
        let mut up_to = |most: u64| if chance(&mut rng, 1, 3) { 0 } else { below(&mut rng, most + 1) };
        Self {
            lose: up_to(8),
            repeat: up_to(60),
            cut: up_to(20),
            die: up_to(20),
            crash: up_to(20),
            flip: up_to(300),
            store: up_to(100),
            delay_ms_max: 1 + up_to(40),
            budget: 4 + up_to(20),
        }
    }
}

/// What a cluster went through.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) crashes: u64,
    pub(crate) workers_lost: u64,
    pub(crate) objects_damaged: u64,
    pub(crate) tasks_repeated: u64,
    pub(crate) ended_at_ms: u64,
    /// Three workers were lost with the same task, and its run was given up.
    pub(crate) unlucky: bool,
}

enum Happening {
    ToCoordinator(SessionId, v1::FromWorker),
    StreamEnds(SessionId),
    /// The coordinator ended it.
    StreamEnded(SessionId),
    ToWorker(usize, SessionId, v1::ToWorker),
    /// The worker, its life, and the slot.
    Computed(usize, u64, usize),
    Connect(usize, u64),
    WakeWorker(usize, u64),
    Stored(u64, WriteId, String, Write, Option<StoreFault>),
    Wake(u64),
    Submit(usize),
    Meddle,
    Restart,
}

struct Cluster {
    rng: Generator,
    faults: Faults,
    faults_left: u64,
    settings: Settings,
    now: Millis,
    agenda: BTreeMap<(Millis, u64), Happening>,
    counter: u64,
    /// Counts the coordinator's lives.
    life: u64,
    coordinator: Option<Coordinator>,
    wake_at: Option<Millis>,
    sessions: BTreeMap<SessionId, usize>,
    /// When the last message of a stream arrives, in either direction: the next one arrives later.
    arrivals: BTreeMap<(SessionId, bool), Millis>,
    workers: Vec<SimWorker>,
    disk: Disk,
    writing: BTreeMap<WriteId, (String, Write)>,
    runs: Vec<(String, Config)>,
    submitted: BTreeSet<usize>,
    outcome: Outcome,
}

/// Runs one cluster to its end and checks everything about it.
pub(crate) fn simulate(seed: u64, faults: Faults) -> Outcome {
    let mut cluster = Cluster::new(seed, faults);
    let end = Millis(40_000_000);
    while !cluster.all_finished() {
        let Some(((at, _), happening)) = cluster.agenda.pop_first() else {
            panic!("seed {seed}: nothing more will happen")
        };
        cluster.now = at;
        assert!(at < end, "seed {seed}: no end after {} hours; {}", end.0 / 3_600_000, cluster.state());
        cluster.happen(happening);
    }
    if !cluster.outcome.unlucky {
        cluster.check(seed);
    }
    cluster.outcome
}

impl Cluster {
    fn new(seed: u64, faults: Faults) -> Self {
        let mut rng = Stream::root(seed).text("cluster").rng();
        let batch = match below(&mut rng, 4) {
            0 => Batch::Tasks(1),
            1 => Batch::Tasks(1_000_000),
            _ => Batch::Auto,
        };
        let settings = Settings {
            checkpoint_interval_ms: below(&mut rng, 200),
            batch,
            admissions_per_second: 3,
            ..Settings::default()
        };
        // Without faults nothing is to be computed twice, not even to end sooner.
        let second_copy_ms_min = if faults.budget == 0 { u64::MAX } else { settings.second_copy_ms_min };
        let settings = Settings { second_copy_ms_min, ..settings };
        let mut workers: Vec<SimWorker> = (0..1 + below(&mut rng, 5))
            .map(|_| {
                SimWorker::new(Millis(0), Character::Honest, 1 + below(&mut rng, 3) as usize, 1 + below(&mut rng, 60))
            })
            .collect();
        if faults.budget > 0 && chance(&mut rng, 1, 3) {
            workers.push(SimWorker::new(Millis(0), Character::Foreign, 1, 10));
        }
        if faults.budget > 0 && chance(&mut rng, 1, 4) {
            workers.push(SimWorker::new(Millis(0), Character::Garbled, 1, 10));
        }
        let runs = (0..1 + below(&mut rng, 2)).map(|index| (format!("run-{index}"), draw_config(&mut rng))).collect();
        let mut cluster = Self {
            rng,
            faults,
            faults_left: faults.budget,
            settings,
            now: Millis(0),
            agenda: BTreeMap::new(),
            counter: 0,
            life: 0,
            coordinator: Some(Coordinator::recover(settings, Vec::new())),
            wake_at: None,
            sessions: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            workers,
            disk: Disk::default(),
            writing: BTreeMap::new(),
            runs,
            submitted: BTreeSet::new(),
            outcome: Outcome::default(),
        };
        for worker in 0..cluster.workers.len() {
            let ms = cluster.draw_ms(500);
            cluster.plan(ms, Happening::WakeWorker(worker, 0));
        }
        for run in 0..cluster.runs.len() {
            let ms = cluster.draw_ms(300);
            cluster.plan(ms, Happening::Submit(run));
        }
        cluster.plan(50, Happening::Meddle);
        cluster
    }

    fn plan(&mut self, ms: u64, happening: Happening) {
        self.counter += 1;
        self.agenda.insert((self.now + ms, self.counter), happening);
    }

    fn draw_ms(&mut self, most: u64) -> u64 {
        below(&mut self.rng, most + 1)
    }

    /// Whether something goes wrong now.
    fn fault(&mut self, thousandths: u64) -> bool {
        let happens = self.faults_left > 0 && chance(&mut self.rng, thousandths, 1000);
        self.faults_left -= u64::from(happens);
        happens
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::ToCoordinator(session, message) => self.tell(Event::Message { session, message }),
            Happening::StreamEnds(session) => {
                self.sessions.remove(&session);
                self.tell(Event::Left { session });
            }
            Happening::StreamEnded(session) => {
                if let Some(&worker) = self.sessions.get(&session)
                    && self.workers[worker].link == Some(session)
                {
                    let effects = self.workers[worker].link_down(self.now);
                    self.carry_out_for(worker, effects);
                }
            }
            Happening::ToWorker(worker, session, message) if self.workers[worker].link == Some(session) => {
                self.tell_worker(worker, worker_core::Event::Message(message));
            }
            Happening::Computed(worker, life, slot) if self.workers[worker].life == life => {
                let (effects, more) = self.workers[worker].computed(self.now, slot);
                if more {
                    let ms = self.draw_ms(self.workers[worker].task_ms);
                    self.plan(1 + ms, Happening::Computed(worker, life, slot));
                }
                self.carry_out_for(worker, effects);
                self.disturb(worker);
            }
            Happening::Connect(worker, life) if self.workers[worker].life == life => self.connect(worker),
            Happening::WakeWorker(worker, life) if self.workers[worker].life == life => {
                self.workers[worker].wake_at = None;
                self.tell_worker(worker, worker_core::Event::Wake);
            }
            Happening::Stored(life, write, run, what, fault) if life == self.life => {
                self.settle(write, &run, &what, fault);
            }
            Happening::Wake(life) if life == self.life && self.wake_at.is_some_and(|at| at <= self.now) => {
                self.wake_at = None;
                self.tell(Event::Wake);
            }
            Happening::Submit(run) => self.submit(run),
            Happening::Meddle => self.meddle(),
            Happening::Restart => {
                self.coordinator = Some(Coordinator::recover(self.settings, self.disk.load()));
                // What a client has no answer for, it submits again; and it is one run.
                (0..self.runs.len()).for_each(|run| self.plan(20, Happening::Submit(run)));
                self.tell(Event::Wake);
            }
            _ => {}
        }
    }

    fn tell(&mut self, event: Event) {
        let Some(coordinator) = &mut self.coordinator else { return };
        let effects = coordinator.handle(self.now, event);
        effects.into_iter().for_each(|effect| self.carry_out(effect));
        let wake = self.coordinator.as_ref().and_then(Coordinator::next_wake);
        if let Some(at) = wake
            && self.wake_at != Some(at)
        {
            self.wake_at = Some(at);
            self.plan(at - self.now, Happening::Wake(self.life));
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Send { session, message } => {
                let Some(&worker) = self.sessions.get(&session) else { return };
                if !self.fault(self.faults.lose) {
                    let ms = self.arrival_ms(session, false);
                    self.plan(ms, Happening::ToWorker(worker, session, message));
                }
            }
            Effect::End { session } => {
                let ms = self.arrival_ms(session, false);
                self.plan(ms, Happening::StreamEnded(session));
            }
            Effect::Changed { .. } | Effect::Stopped => {}
            Effect::Log { sentence, .. } => {
                if std::env::var_os("SEED").is_some() {
                    println!("{:>8} {sentence}", self.now.0);
                }
                self.outcome.workers_lost += u64::from(sentence.contains(" is lost "));
            }
            Effect::Answer { answer, ticket } => self.hear_answer(ticket, answer),
            Effect::Store { write, run, what } => {
                let failed = self.fault(self.faults.store);
                let fault = failed.then(|| StoreFault::Failed("the disk is full".into()));
                let ms = self.draw_ms(30);
                self.writing.insert(write, (run.clone(), what.clone()));
                self.plan(ms, Happening::Stored(self.life, write, run, what, fault));
            }
        }
    }

    fn hear_answer(&mut self, ticket: Ticket, answer: Result<Answer, evoxo_coordinator::core::Rejection>) {
        let run = ticket.0 as usize;
        match answer {
            Ok(Answer::Submitted { .. }) => drop(self.submitted.insert(run)),
            Ok(_) => {}
            Err(_) if run < self.runs.len() && !self.submitted.contains(&run) => self.plan(100, Happening::Submit(run)),
            Err(_) => {}
        }
    }

    fn settle(&mut self, write: WriteId, run: &str, what: &Write, fault: Option<StoreFault>) {
        self.writing.remove(&write);
        if fault.is_none() {
            self.disk.write(run, what);
        }
        self.tell(Event::Stored { write, outcome: fault.map_or(Ok(()), Err) });
    }

    fn submit(&mut self, run: usize) {
        let (name, config) = self.runs[run].clone();
        self.tell(Event::Ask { ticket: Ticket(run as u64), ask: Ask::Submit { name, config: config.to_toml() } });
    }

    /// How long the next message of a stream travels: it arrives behind the others, unless it is a fault that it does not.
    fn arrival_ms(&mut self, session: SessionId, to_coordinator: bool) -> u64 {
        let ms = self.draw_ms(self.faults.delay_ms_max);
        if self.fault(self.faults.repeat) {
            return ms;
        }
        let last = self.arrivals.entry((session, to_coordinator)).or_default();
        *last = (*last).max(self.now + ms);
        *last - self.now
    }

    fn tell_worker(&mut self, worker: usize, event: worker_core::Event) {
        if self.workers[worker].alive {
            let effects = self.workers[worker].tell(self.now, event);
            self.carry_out_for(worker, effects);
        }
    }

    fn carry_out_for(&mut self, worker: usize, effects: Vec<worker_core::Effect>) {
        let life = self.workers[worker].life;
        let link = self.workers[worker].link;
        for effect in effects {
            match effect {
                worker_core::Effect::Connect => {
                    let ms = self.draw_ms(self.faults.delay_ms_max);
                    self.plan(ms, Happening::Connect(worker, life));
                }
                worker_core::Effect::Send(message) => self.transmit(worker, message),
                worker_core::Effect::Start { slot, .. } => {
                    let ms = self.draw_ms(self.workers[worker].task_ms);
                    self.plan(1 + ms, Happening::Computed(worker, life, slot));
                }
                worker_core::Effect::Disconnect => self.end_stream(link),
                worker_core::Effect::Exit { status, sentence } => {
                    assert_eq!(status, worker_core::STATUS_REFUSED, "{sentence}");
                    assert_ne!(self.workers[worker].character, Character::Honest, "{sentence}");
                    self.end_stream(link);
                }
                worker_core::Effect::Log(..) => {}
            }
        }
        let state = &mut self.workers[worker];
        if let Some(at) = state.next_wake().filter(|_| state.alive)
            && state.wake_at.is_none_or(|planned| planned > at)
        {
            state.wake_at = Some(at);
            self.plan(at - self.now, Happening::WakeWorker(worker, life));
        }
    }

    /// The worker's side of the stream is closed.
    fn end_stream(&mut self, link: Option<SessionId>) {
        if let Some(session) = link {
            let ms = self.arrival_ms(session, true);
            self.plan(ms, Happening::StreamEnds(session));
        }
    }

    fn connect(&mut self, worker: usize) {
        if self.coordinator.is_none() {
            return self.tell_worker(worker, worker_core::Event::LinkDown("nobody listens".into()));
        }
        self.counter += 1;
        let session = SessionId(self.counter);
        self.sessions.insert(session, worker);
        self.workers[worker].link = Some(session);
        self.tell_worker(worker, worker_core::Event::LinkUp);
    }

    fn transmit(&mut self, worker: usize, message: v1::FromWorker) {
        let Some(session) = self.workers[worker].link else { return };
        let times = if self.fault(self.faults.lose) { 0 } else { 1 + u64::from(self.fault(self.faults.repeat)) };
        // Hello opens the stream: it cannot be repeated, or the second would be another session's.
        let hello = matches!(message.message, Some(v1::from_worker::Message::Hello(_)));
        for _ in 0..if hello { times.min(1) } else { times } {
            let ms = self.arrival_ms(session, true);
            self.plan(ms, Happening::ToCoordinator(session, message.clone()));
        }
    }

    /// Now and then a connection breaks or a process dies.
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
            self.kill(worker);
        }
    }

    /// Dies and comes back as a new process; half of the time nobody tells the coordinator.
    fn kill(&mut self, worker: usize) {
        let silent = chance(&mut self.rng, 1, 2);
        let link = self.workers[worker].link.filter(|_| !silent);
        self.end_stream(link);
        let ms = self.draw_ms(5000);
        self.workers[worker].die(self.now + ms);
        self.plan(ms, Happening::WakeWorker(worker, self.workers[worker].life));
    }

    /// People pause and resume; now and then the coordinator is killed and its disk suffers.
    fn meddle(&mut self) {
        let ms = self.draw_ms(200);
        self.plan(ms, Happening::Meddle);
        let run = below(&mut self.rng, self.runs.len() as u64) as usize;
        let name = self.runs[run].0.clone();
        let ask = if self.faults.budget > 0 && chance(&mut self.rng, 1, 10) {
            Ask::Pause { name }
        } else {
            Ask::Resume { name }
        };
        self.tell(Event::Ask { ticket: Ticket(u64::MAX), ask });
        if self.coordinator.is_some() && self.fault(self.faults.crash * 5) {
            self.crash();
        }
    }

    fn crash(&mut self) {
        self.outcome.crashes += 1;
        self.coordinator = None;
        self.life += 1;
        self.wake_at = None;
        let mut blocked: BTreeSet<String> = BTreeSet::new();
        for (run, write) in std::mem::take(&mut self.writing).into_values() {
            // Writes of a run are made in order: behind one that is torn there is nothing.
            if blocked.insert(run.clone()) {
                self.disk.crash_during(&mut self.rng, &run, &write);
            }
        }
        if self.fault(self.faults.flip * 2) && self.disk.flip(&mut self.rng) {
            self.outcome.objects_damaged += 1;
        }
        for worker in 0..self.workers.len() {
            if self.workers[worker].link.is_some() {
                let effects = self.workers[worker].link_down(self.now);
                self.carry_out_for(worker, effects);
            }
        }
        self.sessions.clear();
        self.arrivals.clear();
        let ms = self.draw_ms(1000);
        self.plan(ms, Happening::Restart);
    }
}
