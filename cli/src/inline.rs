//! `--workers 0`: the coordinator's core, its store and one slot on one thread, without sockets.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::bail;
use bytes::Bytes;
use evoxo_common::{
    config::Config,
    task::{self, Encoded, Kept, Shared},
    time::Millis,
};
use evoxo_coordinator::{
    core::{Answer, Ask, Coordinator, Effect, Event, Rejection, SessionId, Settings, StoreFault, Ticket},
    store::Store,
};
use evoxo_proto::{
    PROTOCOL,
    v1::{self, RunState, from_worker, task_result::Outcome, to_worker},
};

/// The only worker.
const SESSION: SessionId = SessionId(1);
/// How long saving may take when it is to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// How often progress is shown.
const SHOW_INTERVAL: Duration = Duration::from_millis(200);

/// A cluster in one thread.
pub(crate) struct Inline {
    core: Coordinator,
    store: Store,
    start: Instant,
    events: VecDeque<Event>,
    /// What tasks share, as a worker keeps it.
    kept: Kept<Arc<Shared>>,
    answer: Option<Result<Answer, Rejection>>,
    stopped: bool,
}

impl Inline {
    /// Takes up what the store holds of this run.
    pub(crate) fn open(place: &str, run: &str) -> anyhow::Result<Self> {
        let mut store = Store::open(place)?;
        let saved = store.load_run(run)?;
        let core = Coordinator::recover(Settings::default(), saved.into_iter().collect());
        let (events, kept) = (VecDeque::new(), Kept::default());
        Ok(Self { core, store, start: Instant::now(), events, kept, answer: None, stopped: false })
    }

    /// The replicas of the run, if it is finished already with as many as are asked for.
    pub(crate) fn finished(
        &mut self,
        run: &str,
        config: &Config,
    ) -> anyhow::Result<Option<(v1::Run, Vec<v1::Replica>)>> {
        let Ok(Answer::Run(view)) = self.ask(Ask::Get { name: run.into() })? else { return Ok(None) };
        let wanted = config.replicas * config.arms.len() as u32;
        if view.state() != RunState::Finished || view.replicas_total < wanted {
            return Ok(None);
        }
        Ok(Some((view, self.fetch(run)?)))
    }

    /// Computes a run to its end, or until `stop` is set; then everything is saved.
    pub(crate) fn compute(
        &mut self,
        run: &str,
        config: &Config,
        stop: &AtomicBool,
        mut show: impl FnMut(&v1::Run),
    ) -> anyhow::Result<v1::Run> {
        self.submit(run, config)?;
        let signature = task::signature();
        let hello =
            v1::Hello { protocol: PROTOCOL, slots: 1, name: "this thread".into(), signature, build: String::new() };
        self.say(from_worker::Message::Hello(hello));
        let mut shown = Instant::now();
        loop {
            self.settle()?;
            if stop.load(Ordering::Relaxed) && !self.stopped {
                self.events.push_back(Event::Stop);
                let deadline = Instant::now() + STOP_TIMEOUT;
                while !self.stopped && Instant::now() < deadline {
                    self.settle()?;
                }
                if !self.stopped {
                    return Err(not_saved(&self.get(run)?.message));
                }
            }
            let idle = self.events.is_empty();
            if idle || shown.elapsed() >= SHOW_INTERVAL {
                shown = Instant::now();
                let view = self.get(run)?;
                show(&view);
                if self.stopped || view.state() != RunState::Running {
                    return Ok(view);
                }
            }
            if idle {
                std::thread::sleep(Duration::from_millis(10));
                self.events.push_back(Event::Wake);
            }
        }
    }

    fn submit(&mut self, run: &str, config: &Config) -> anyhow::Result<()> {
        match self.ask(Ask::Submit { name: run.into(), config: config.to_toml() })? {
            Ok(Answer::Submitted { .. }) => {
                if self.get(run)?.state() == RunState::Paused {
                    // Whoever runs it wants it to go on.
                    drop(self.ask(Ask::Resume { name: run.into() })?);
                }
                Ok(())
            }
            Ok(_) => bail!("the core gave another answer than was asked for: please report this"),
            Err(rejection) => bail!("{}", sentence(rejection)),
        }
    }

    fn get(&mut self, run: &str) -> anyhow::Result<v1::Run> {
        match self.ask(Ask::Get { name: run.into() })? {
            Ok(Answer::Run(view)) => Ok(view),
            _ => bail!("the run {run} is gone"),
        }
    }

    /// The replicas that have begun.
    pub(crate) fn fetch(&mut self, run: &str) -> anyhow::Result<Vec<v1::Replica>> {
        match self.ask(Ask::Fetch { name: run.into() })? {
            Ok(Answer::Replicas(replicas)) => Ok(replicas),
            _ => bail!("the run {run} is gone"),
        }
    }

    /// Asks, and carries out whatever must happen before the answer.
    fn ask(&mut self, ask: Ask) -> anyhow::Result<Result<Answer, Rejection>> {
        self.answer = None;
        self.handle(Event::Ask { ticket: Ticket(0), ask });
        while self.answer.is_none() {
            anyhow::ensure!(!self.events.is_empty(), "the core does not answer: please report this");
            self.settle()?;
        }
        self.answer.take().ok_or_else(|| anyhow::anyhow!("the core does not answer: please report this"))
    }

    /// Handles the next event.
    fn settle(&mut self) -> anyhow::Result<()> {
        if let Some(event) = self.events.pop_front() {
            self.handle(event);
        }
        Ok(())
    }

    fn handle(&mut self, event: Event) {
        let now = Millis(self.start.elapsed().as_millis() as u64);
        for effect in self.core.handle(now, event) {
            self.carry_out(effect);
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Send { message, .. } => {
                if let Some(to_worker::Message::Assignment(assignment)) = message.message {
                    self.compute_assignment(assignment);
                }
            }
            Effect::Store { write, run, what } => {
                let outcome: Result<(), StoreFault> = self.store.write(&run, &what);
                // Before all tasks that wait: what is stored soonest is lost least.
                self.events.push_front(Event::Stored { write, outcome });
            }
            Effect::Answer { answer, .. } => self.answer = Some(answer),
            Effect::Stopped => self.stopped = true,
            Effect::End { .. } | Effect::Changed { .. } | Effect::Log { .. } => {}
        }
    }

    fn compute_assignment(&mut self, assignment: v1::Assignment) {
        let number = assignment.id;
        let tasks = self.kept.unpack(assignment).expect("nothing is lost on the way to this thread");
        let compute = |task: Encoded| {
            let begun = Instant::now();
            let outcome = std::panic::catch_unwind(|| task.run());
            let outcome = match outcome {
                Ok(Ok(output)) => Outcome::Output(output),
                Ok(Err(refusal)) => Outcome::Failure(refusal.0),
                Err(_) => Outcome::Failure("the task panicked".into()),
            };
            let elapsed_us = begun.elapsed().as_micros() as u64;
            let hash = Bytes::copy_from_slice(&task.hash.0);
            v1::TaskResult { hash, outcome: Some(outcome), elapsed_us, assignment: number }
        };
        let results = tasks.into_iter().map(compute).collect();
        self.say(from_worker::Message::Outputs(v1::Outputs { results }));
    }

    fn say(&mut self, message: from_worker::Message) {
        let message = v1::FromWorker { message: Some(message) };
        self.events.push_back(Event::Message { session: SESSION, message });
    }
}

/// The end of a run that was to stop with everything saved, and could not; here or in a cluster.
pub(crate) fn not_saved(why: &str) -> anyhow::Error {
    anyhow::anyhow!("the last rounds could not be saved ({why}): the same command goes on from the last checkpoint")
}

fn sentence(rejection: Rejection) -> String {
    match rejection {
        Rejection::Invalid(why)
        | Rejection::NotFound(why)
        | Rejection::Conflict(why)
        | Rejection::Exhausted(why)
        | Rejection::Unavailable(why) => why,
    }
}
