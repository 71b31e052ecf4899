//! `--workers 0`: the coordinator's core with its store and its runs' replicas, and the worker's core with one slot, all on
//! this thread and without sockets.

use std::{
    collections::{BTreeMap, VecDeque},
    path::Path,
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use anyhow::{Context as _, anyhow, bail};
use bytes::Bytes;
use evoxo_common::{
    experiment::{Config, Registry},
    task::Encoded,
    time::Millis,
};
use evoxo_coordinator::{
    core::{
        Coordinator, Effect, Event, Rejection, ReplicaAt, Request, RequestId, Response, SessionId, Settings,
        StoreFault, ThreadId, View, Write, WriteId,
    },
    prepared::Prepared,
    recall,
    replicas::{Job, Turns},
    saved::replica_of_checkpoint,
    store::{Lock, Store, StoreError, TOGETHER_BYTES_MAX},
    trust::Level,
};
use evoxo_proto::v1::{self, RunState, from_worker};
use evoxo_worker::{
    Processes, Program, compute_here,
    core::{self as worker, Worker},
    introduce,
};

use crate::{
    cluster::{Computed, not_saved, say_retry},
    progress::Progress,
    stop::Stop,
};

/// How long saving may take at a stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest sleep. It is short so that a request to stop is noticed.
const SLEEP_MAX: Duration = Duration::from_millis(20);
/// How often progress is shown.
const SHOW_INTERVAL: Duration = Duration::from_millis(200);
/// The shortest time between two attempts to write, while the store cannot be written.
const FAILURE_PAUSE: Duration = Duration::from_millis(500);
/// Finished replicas wait for others to be stored with them, for this many times what the last ones took to be stored, and at
/// most for this long. So storing takes little of this thread's time, and a killed process loses little.
const GATHER_FACTOR: u32 = 10;
const GATHER_MAX: Duration = Duration::from_secs(1);
/// The most that the clock advances between two events. A long task on the shared thread must not make either side seem
/// silent, and checkpoints must still become due.
const TICK_MAX: Duration = Duration::from_secs(3);

/// A cluster on one thread.
pub(crate) struct Inline {
    registry: Registry,
    core: Coordinator,
    store: Store,
    /// The store as the user named it.
    place: String,
    /// Held as long as this object exists.
    _lock: Lock,
    replicas: Turns,
    worker: Option<Worker>,
    session: SessionId,
    looked: Instant,
    now: Duration,
    /// Work that waits; each queue is processed in order.
    writes: VecDeque<(WriteId, String, Write)>,
    /// When the first of the finished replicas that wait to be stored arrived, and what storing the last ones took.
    gathering: Option<Instant>,
    stored_in: Duration,
    /// How many of the writes are stored together next, and their bytes; see [`Inline::gather`].
    gathered: (usize, usize),
    /// The time of jobs that is not reported to the core yet.
    job_us: u64,
    events: VecDeque<Event>,
    worker_events: VecDeque<worker::Event>,
    jobs: VecDeque<(ThreadId, Job)>,
    tasks: VecDeque<Encoded>,
    programs: Processes,
    views: BTreeMap<String, v1::Run>,
    response: Option<Result<Response, Rejection>>,
    stopped: bool,
}

impl Inline {
    /// Opens a store; nothing is written to it yet.
    pub(crate) fn open(registry: &Registry, place: &str, memory_bytes: u64) -> anyhow::Result<Self> {
        // The user named the directory that contains the store.
        let out = Path::new(place).parent().unwrap_or(Path::new(place)).display();
        let here = |error: StoreError| match error {
            StoreError::InUse { who, .. } => anyhow!(
                "the run in {out} is being computed by another process ({who}): wait for that one, or choose another directory with \
                 --out"
            ),
            StoreError::Unusable { cause, .. } => {
                anyhow!("the directory {out} cannot be used: {cause}: make it writable, or choose another with --out")
            }
            other => other.into(),
        };
        let (mut store, _) = Store::open(place, registry.clone()).map_err(here)?;
        let lock = Lock::take(place).map_err(here)?;
        let (saved, _) = store.load()?;
        let settings = Settings { memory_bytes_max: memory_bytes, ..Settings::default() };
        let core = Coordinator::recover(settings, registry.clone(), saved);
        let mut inline = Self {
            registry: registry.clone(),
            core,
            store,
            place: place.to_owned(),
            _lock: lock,
            replicas: Turns::new(registry.clone()),
            worker: None,
            session: SessionId(1),
            looked: Instant::now(),
            now: Duration::ZERO,
            writes: VecDeque::new(),
            gathering: None,
            stored_in: Duration::ZERO,
            gathered: (0, 0),
            job_us: 0,
            events: VecDeque::new(),
            worker_events: VecDeque::new(),
            jobs: VecDeque::new(),
            tasks: VecDeque::new(),
            programs: Processes::new(Arc::default()),
            views: BTreeMap::new(),
            response: None,
            stopped: false,
        };
        inline.handle(Event::Wake);
        Ok(inline)
    }

    /// The run with its replicas, if it is already finished with the requested number of replicas.
    pub(crate) fn finished(&mut self, name: &str, config: &Config) -> anyhow::Result<Option<Computed>> {
        let Some(run) = self.views.get(name) else { return Ok(None) };
        let wanted = config.replicas * config.arms.len() as u32;
        let finished = matches!(run.state(), RunState::Finished | RunState::InDoubt);
        if !finished || run.replicas_total < wanted || run.config_hash != config.hash().to_string() {
            return Ok(None);
        }
        self.saved(name)
    }

    /// The run as stored, if the store has it.
    pub(crate) fn known(&self, name: &str) -> Option<&v1::Run> {
        self.views.get(name)
    }

    /// The run with the replicas that have begun, as stored; `None` if there is no such run.
    pub(crate) fn saved(&mut self, name: &str) -> anyhow::Result<Option<Computed>> {
        let Some(run) = self.views.get(name).cloned() else { return Ok(None) };
        let replicas = self.fetch(name)?;
        Ok(Some((run, replicas)))
    }

    /// The configuration of a run as stored.
    pub(crate) fn config(&mut self, name: &str) -> anyhow::Result<Config> {
        match self.ask(Request::Replicas { name: name.into() })? {
            Response::Replicas(prepared, _) => Ok(prepared.config.clone()),
            _ => bail!("the core gave a response of the wrong kind: please report this"),
        }
    }

    /// Begins a run from the states in `checkpoint`, which is sealed, as if the run had been stopped there.
    pub(crate) fn begin(&mut self, name: &str, config: &Config, checkpoint: Bytes) -> anyhow::Result<()> {
        self.submit(name, config, &Progress::new())?;
        match self.store.write(name, &Write::Checkpoint { number: 1, bytes: checkpoint, keep: config.keep }) {
            Ok(_) => Ok(()),
            Err(StoreFault::Superseded(why) | StoreFault::Fenced(why) | StoreFault::Failed(why)) => bail!("{why}"),
        }
    }

    /// Computes a run to its end, or until a stop is requested. At a stop, everything is saved.
    pub(crate) fn compute(
        &mut self,
        name: &str,
        config: &Config,
        programs: &Arc<[Program]>,
        recall: &recall::Options,
        stop: &Stop,
        progress: &mut Progress,
    ) -> anyhow::Result<Computed> {
        self.mend(progress)?;
        let (troubles, trouble) = mpsc::channel();
        // What is learnt is kept until this returns.
        let (recall, _keeper) = recall.begin(&self.place, move |why| _ = troubles.send(why)).unzip();
        self.replicas.recall(recall);
        self.submit(name, config, progress)?;
        self.programs = Processes::new(Arc::clone(programs));
        let settings = worker::Settings {
            slots: 1,
            name: "this thread".into(),
            host: String::new(),
            build: String::new(),
            kinds: self.registry.signatures(),
            labels: Vec::new(),
            programs: introduce(&self.registry, programs).map_err(anyhow::Error::msg)?,
            process: 0,
            idle_timeout_ms: None,
        };
        self.worker = Some(Worker::new(self.look(), settings, 0));
        self.wake();
        let (mut stop_until, mut shown) = (None, Instant::now());
        while !self.stopped {
            if stop.is_asked() && stop_until.is_none() {
                stop_until = Some(Instant::now() + STOP_TIMEOUT);
                self.worker = None;
                self.tasks.clear();
                self.events.push_back(Event::Stop);
            }
            if stop_until.is_some_and(|until| Instant::now() > until) {
                return Err(not_saved(&self.run(name)?.message));
            }
            if !self.step()? {
                self.rest();
            }
            let run = self.run(name)?;
            // Before the first step this thread is not a worker yet, and after a stop it no longer is one. Neither is worth
            // showing.
            if shown.elapsed() >= SHOW_INTERVAL && run.workers > 0 {
                shown = Instant::now();
                progress.show(run);
            }
            trouble.try_iter().for_each(|why| progress.note(&why));
            match run.state() {
                RunState::Running | RunState::Paused => {}
                RunState::Finished | RunState::InDoubt => break,
                _ => return Ok((run.clone(), Vec::new())),
            }
        }
        let run = self.run(name)?.clone();
        let finished = matches!(run.state(), RunState::Finished | RunState::InDoubt);
        let replicas = if finished { self.fetch(name)? } else { Vec::new() };
        Ok((run, replicas))
    }

    /// Repairs damaged or missing objects of the store from their copies, and reports it. The store was read before anybody
    /// led there.
    fn mend(&mut self, progress: &mut Progress) -> anyhow::Result<()> {
        // If the store cannot be written now, the run's first write reports it.
        if self.store.lead().is_ok() {
            let (saved, _) = self.store.load()?;
            saved.iter().flat_map(|run| &run.notices).for_each(|notice| progress.note(notice));
        }
        Ok(())
    }

    fn submit(&mut self, name: &str, config: &Config, progress: &Progress) -> anyhow::Result<()> {
        let (prepared, submitter) = (Prepared::new(config.clone()), "this process".to_owned());
        let Response::Submitted { run, .. } = self.ask(Request::Submit {
            name: name.into(),
            prepared,
            level: Level::Plain,
            submitter,
            terms: Vec::new(),
        })?
        else {
            bail!("the core gave a response of the wrong kind: please report this");
        };
        if run.state() == RunState::Failed {
            say_retry(progress, &run);
        }
        // Whoever started this command wants the run to continue.
        if matches!(run.state(), RunState::Paused | RunState::Failed) {
            self.ask(Request::Resume { name: name.into() })?;
        }
        Ok(())
    }

    fn run(&self, name: &str) -> anyhow::Result<&v1::Run> {
        self.views.get(name).with_context(|| format!("the run {name} is gone"))
    }

    /// Fetches the replicas that have begun.
    fn fetch(&mut self, name: &str) -> anyhow::Result<Vec<v1::Replica>> {
        let Response::Replicas(prepared, replicas) = self.ask(Request::Replicas { name: name.into() })? else {
            bail!("the core gave a response of the wrong kind: please report this");
        };
        let mut fetched = Vec::new();
        for (key, finished) in replicas {
            let arm = prepared.config.arms[key.arm as usize].name.clone();
            let at = self.ask(Request::Replica { name: name.into(), replica: key })?;
            let state = match at {
                Response::Replica(ReplicaAt::Bytes(bytes)) => Ok(bytes),
                Response::Replica(ReplicaAt::Stored(place)) => self.store.read_finished(name, &place),
                Response::Replica(ReplicaAt::Checkpoint(object)) => self
                    .store
                    .read(name, &object)
                    .and_then(|checkpoint| replica_of_checkpoint(&checkpoint, &arm, key.index)),
                _ => Ok(Bytes::new()),
            };
            let state = state.map_err(anyhow::Error::msg)?;
            fetched.push(v1::Replica { arm, replica: key.index, finished, state });
        }
        Ok(fetched)
    }

    /// Sends a request, and performs steps until the response arrives.
    fn ask(&mut self, request: Request) -> anyhow::Result<Response> {
        self.response = None;
        self.events.push_back(Event::Request { id: RequestId(0), request });
        loop {
            match self.response.take() {
                Some(response) => return response.map_err(|rejection| anyhow!("{}", rejection.sentence())),
                None if self.step()? => {}
                None => self.rest(),
            }
        }
    }

    /// Performs the next step; false if there is nothing to do. Writes come first, so that little is lost. Computing comes last.
    fn step(&mut self) -> anyhow::Result<bool> {
        if self.must_write() {
            self.write()?;
        } else if let Some(event) = self.events.pop_front() {
            self.handle(event);
        } else if let Some(event) = self.worker_events.pop_front() {
            self.handle_worker(event)?;
        } else if let Some((thread, job)) = self.jobs.pop_front() {
            let began = Instant::now();
            let reports = self.replicas.run(thread, job).unwrap_or_default();
            self.job_us += began.elapsed().as_micros() as u64;
            if !reports.is_empty() {
                // The time of a job without reports is reported with the next one.
                let took_us = std::mem::take(&mut self.job_us);
                self.handle(Event::Done { thread, reports, took_us });
            }
        } else if let Some(task) = self.tasks.pop_front() {
            let (outcome, elapsed_us) = compute_here(&self.registry, &task, &mut self.programs);
            self.handle_worker(worker::Event::Computed { slot: 0, outcome, elapsed_us, timed_out: false })?;
            self.wake();
        } else if !self.writes.is_empty() {
            self.write()?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Counts the finished replicas of one run with which the writes begin, as many as one object may have.
    fn gather(&mut self) {
        while let Some((_, run, Write::Finished { bytes })) = self.writes.get(self.gathered.0)
            && *run == self.writes[0].1
            // A large replica is alone.
            && (self.gathered.0 == 0 || self.gathered.1 + bytes.len() <= TOGETHER_BYTES_MAX)
        {
            self.gathered = (self.gathered.0 + 1, self.gathered.1 + bytes.len());
        }
    }

    /// Whether the next write must not wait, neither for other replicas to finish nor for anything else.
    fn must_write(&self) -> bool {
        let waited = self.gathering.map_or(Duration::MAX, |since| since.elapsed());
        !self.writes.is_empty() && (waited >= GATHER_MAX.min(self.stored_in * GATHER_FACTOR) || self.is_full())
    }

    /// Whether no other write can be added to those that come next.
    fn is_full(&self) -> bool {
        self.gathered.0 == 0 || self.gathered.0 < self.writes.len()
    }

    /// Stores what comes next: finished replicas of a run together, everything else alone.
    fn write(&mut self) -> anyhow::Result<()> {
        let (gathered, _) = std::mem::take(&mut self.gathered);
        let (mut ids, mut whats, mut of) = (Vec::new(), Vec::new(), String::new());
        for (write, run, what) in self.writes.drain(..gathered.max(1)) {
            ids.push(write);
            whats.push(what);
            of = run;
        }
        self.gather();
        let began = Instant::now();
        let outcomes = match &whats[..] {
            [what] => vec![self.store.write(&of, what)],
            several => self.store.write_all_finished(&of, several),
        };
        let took = began.elapsed();
        if gathered > 0 {
            self.stored_in = took;
        }
        self.gathering = self.writes.front().map(|_| Instant::now());
        for outcome in &outcomes {
            if let Err(StoreFault::Superseded(why)) = outcome {
                bail!("{why}");
            }
        }
        if outcomes.iter().any(|outcome| matches!(outcome, Err(StoreFault::Failed(_)))) {
            std::thread::sleep(FAILURE_PAUSE);
        }
        // The time of several writes together counts once.
        let mut took_us = took.as_micros() as u64;
        for (write, outcome) in ids.into_iter().zip(outcomes) {
            self.handle(Event::Stored { write, outcome, took_us: std::mem::take(&mut took_us) });
        }
        Ok(())
    }

    /// Waits until something is due.
    fn rest(&mut self) {
        let now = self.look();
        let wakes = [self.core.next_wake(), self.worker.as_ref().and_then(Worker::next_wake)];
        let due = wakes.into_iter().flatten().map(|wake| Duration::from_millis(wake - now)).min();
        std::thread::sleep(due.unwrap_or(SLEEP_MAX).min(SLEEP_MAX));
        self.wake();
    }

    /// Tells both cores that time has passed.
    fn wake(&mut self) {
        self.events.push_back(Event::Wake);
        if self.worker.is_some() {
            self.worker_events.push_back(worker::Event::Wake);
        }
    }

    fn look(&mut self) -> Millis {
        self.now += self.looked.elapsed().min(TICK_MAX);
        self.looked = Instant::now();
        Millis(self.now.as_millis() as u64)
    }

    fn handle(&mut self, event: Event) {
        let now = self.look();
        for effect in self.core.handle(now, event) {
            self.carry_out(effect);
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Send { session, message } if session == self.session => {
                self.worker_events.push_back(worker::Event::Message(message));
            }
            Effect::End { session } if session == self.session => {
                self.worker_events.push_back(worker::Event::LinkDown("the session has ended".into()));
            }
            Effect::Start { thread, prepared, draw, states, lanes, scope } => {
                self.replicas.start(thread, prepared, draw, states, lanes, scope);
            }
            Effect::Job { thread, job } => self.jobs.push_back((thread, job)),
            Effect::Drop { thread } => self.replicas.end(thread),
            Effect::ForgetRecalled => self.replicas.forget_recalled(),
            Effect::Store { write, run, what } => {
                self.gathering.get_or_insert_with(Instant::now);
                self.writes.push_back((write, run, what));
                self.gather();
            }
            Effect::Respond { response, .. } => self.response = Some(response),
            Effect::Publish(view) => {
                let View { run, .. } = &*view;
                self.views.insert(run.name.clone(), run.clone());
            }
            Effect::Unpublish { run } => drop(self.views.remove(&run)),
            // This process computes everything, so it has tried this task already.
            Effect::ComputeHere { .. } => {
                self.events
                    .push_back(Event::ComputedHere(Err("this process is the only worker, and it has tried".into())));
            }
            Effect::Stopped => self.stopped = true,
            Effect::Send { .. }
            | Effect::End { .. }
            | Effect::Convict { .. }
            | Effect::Audit { .. }
            | Effect::Healthy(_)
            | Effect::StopComputing
            | Effect::Log { .. } => {}
        }
    }

    fn handle_worker(&mut self, event: worker::Event) -> anyhow::Result<()> {
        let now = self.look();
        let effects = self.worker.as_mut().map(|worker| worker.handle(now, event)).unwrap_or_default();
        for effect in effects {
            match effect {
                worker::Effect::Connect => self.worker_events.push_back(worker::Event::LinkUp),
                worker::Effect::Send(message) => self.events.push_back(self.event_of(message)),
                worker::Effect::Start { tasks, .. } => self.tasks.extend(tasks),
                worker::Effect::Disconnect => {
                    self.worker_events.clear();
                    self.events.push_back(Event::Left { session: self.session });
                    self.session = SessionId(self.session.0 + 1);
                }
                worker::Effect::Exit { sentence, .. } => bail!("{sentence}"),
                worker::Effect::Log(..) | worker::Effect::TaskFailed { .. } => {}
            }
        }
        Ok(())
    }

    fn event_of(&self, message: v1::FromWorker) -> Event {
        let session = self.session;
        match message.message {
            Some(from_worker::Message::Hello(hello)) => {
                Event::Hello { session, address: "this process".into(), holder: None, hello }
            }
            message => Event::Message { session, message: v1::FromWorker { message } },
        }
    }
}
