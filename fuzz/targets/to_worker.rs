//! Everything that a coordinator sends, to a worker whose link comes and goes: whole messages, and assignments of a run of
//! any kind, some of them altered. A slot must get tasks only when it is free. Nothing may be sent without a link, and
//! results only within a session.

#![no_main]

use std::collections::VecDeque;

use bytes::Bytes;
use evoxo_common::{
    digest::Digest,
    experiment::Replica,
    task::{Encoded, Encoder, NoPrograms, SharedCache},
    time::Millis,
};
use evoxo_fuzz::{
    configs::{TEXTS, config},
    registry,
    steps::{Step, steps},
};
use evoxo_proto::v1::{Accepted, ToWorker, Welcome, from_worker, task_result::Outcome, to_worker::Message};
use evoxo_worker::core::{Effect, Event, Settings, Worker};
use prost::Message as _;

/// The most steps of an input; more would only be slow.
const STEPS_MAX: usize = 40;
/// The slots of the worker.
const SLOTS: usize = 2;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let [kind, rest @ ..] = input else { return };
    let mut shell = Shell::new(kind % TEXTS.len() as u8);
    steps(rest, STEPS_MAX).for_each(|step| shell.take(&step));
});

/// A worker's core without sockets, clocks and threads.
struct Shell {
    worker: Worker,
    now: Millis,
    /// The tasks of the first round of a run.
    tasks: Vec<Encoded>,
    /// The shared bytes that the coordinator believes the worker has.
    cache: SharedCache<()>,
    asked: bool,
    up: bool,
    open: bool,
    /// The tasks that each slot has to compute.
    busy: [VecDeque<Encoded>; SLOTS],
    /// The results that were sent in this session.
    sent: Vec<Bytes>,
    exited: bool,
}

impl Shell {
    fn new(kind: u8) -> Self {
        let prepared = config(kind);
        let replica = Replica::start(&prepared.config, &prepared.config.arms[0], 0);
        let mut encoder = Encoder::default();
        let tasks = replica.plan(0..replica.needed()).into_iter().map(|task| encoder.encode(task)).collect();
        let settings = Settings {
            slots: SLOTS,
            name: "w".into(),
            host: String::new(),
            build: String::new(),
            kinds: registry().signatures(),
            programs: Vec::new(),
            labels: Vec::new(),
            process: 1,
            idle_timeout_ms: Some(100_000),
        };
        let worker = Worker::new(Millis(0), settings, 1);
        let (cache, busy, sent) = (SharedCache::default(), Default::default(), Vec::new());
        let (now, asked, up, open, exited) = (Millis(0), false, false, false, false);
        let mut shell = Self { worker, now, tasks, cache, asked, up, open, busy, sent, exited };
        shell.tell(Event::Wake);
        shell
    }

    fn take(&mut self, step: &Step) {
        match step.what % 8 {
            0 => {
                let Ok(message) = ToWorker::decode(step.bytes.clone()) else { return };
                self.say(message.message);
            }
            1 if self.asked => {
                (self.asked, self.up) = (false, true);
                self.tell(Event::LinkUp);
            }
            1 if self.up => {
                self.cut();
                self.tell(Event::LinkDown("cut".into()));
            }
            2 => {
                self.cache = SharedCache::default();
                self.say(Some(Message::Welcome(Welcome { session: 1, heartbeat_interval_ms: 1000 })));
            }
            3 => self.assign(step),
            4 => self.compute(usize::from(step.whom) % SLOTS),
            5 => {
                let hashes = std::mem::take(&mut self.sent);
                self.say(Some(Message::Accepted(Accepted { hashes })));
            }
            6 => {
                self.now = self.now + u64::from(step.whom) * 250;
                self.tell(Event::Wake);
            }
            7 if step.whom == 0 => self.tell(Event::DrainAsked),
            _ => {}
        }
    }

    /// Assigns some of the tasks, unchanged; or one of them with these bits flipped, and then perhaps under its original
    /// hash.
    fn assign(&mut self, step: &Step) {
        let first = usize::from(step.whom / 16) % self.tasks.len();
        let count = 1 + usize::from(step.whom % 4);
        let mut tasks: Vec<Encoded> = self.tasks.iter().skip(first).take(count).cloned().collect();
        if let ([how, turned @ ..], task) = (step.bytes.as_ref(), &mut tasks[0]) {
            let turn = |bytes: &Bytes| -> Bytes {
                bytes.iter().zip(turned.iter().chain(std::iter::repeat(&0))).map(|(a, b)| a ^ b).collect()
            };
            task.own = turn(&task.own);
            task.hash = if how % 2 == 0 { Digest::of(&task.own) } else { task.hash };
        }
        let assignment = self.cache.pack(u64::from(step.whom), &tasks);
        self.say(Some(Message::Assignment(assignment)));
    }

    /// Lets a slot compute its next task. An altered task is only decoded, because it may need too much time.
    fn compute(&mut self, slot: usize) {
        let Some(task) = self.busy[slot].pop_front() else { return };
        let computed = match self.tasks.contains(&task) {
            true => registry().run(&task, &mut NoPrograms),
            false => registry().decode(&task).map(|_| Bytes::new()),
        };
        let outcome = computed.map_or_else(|refusal| Outcome::Failure(refusal.0), Outcome::Output);
        self.tell(Event::Computed { slot, outcome, elapsed_us: 1000, timed_out: false });
    }

    fn say(&mut self, message: Option<Message>) {
        if self.up {
            self.open |= matches!(message, Some(Message::Welcome(_)));
            self.tell(Event::Message(ToWorker { message }));
        }
    }

    fn cut(&mut self) {
        (self.up, self.open) = (false, false);
        self.sent.clear();
    }

    /// Handles an event and everything that follows from it.
    fn tell(&mut self, event: Event) {
        for effect in self.worker.handle(self.now, event) {
            assert!(!self.exited, "{effect:?} after the exit");
            match effect {
                Effect::Connect => {
                    assert!(!self.up && !self.asked, "a second link");
                    self.asked = true;
                }
                Effect::Disconnect => self.cut(),
                Effect::Start { slot, tasks } => {
                    assert!(self.busy[slot].is_empty() && !tasks.is_empty(), "slot {slot} is not free");
                    self.busy[slot] = tasks.into();
                }
                Effect::Send(message) => {
                    assert!(self.up, "{message:?} without a link");
                    if let Some(from_worker::Message::Outputs(outputs)) = message.message {
                        assert!(self.open, "results outside of a session");
                        self.sent.extend(outputs.results.into_iter().map(|result| result.hash));
                    }
                }
                Effect::Log(_, sentence) => assert!(!sentence.is_empty()),
                Effect::TaskFailed { why, .. } => assert!(!why.is_empty()),
                Effect::Exit { sentence, .. } => {
                    assert!(!sentence.is_empty());
                    self.exited = true;
                }
            }
        }
    }
}
