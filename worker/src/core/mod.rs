//! One worker as a pure state machine: events and the time go in, effects come out. No I/O, no clock, no threads.
//!
//! The worker keeps a link to the coordinator, computes assignments in its slots, and keeps every result until the
//! coordinator has accepted it, for as many sessions as that takes.
//!
//! Invariants: at most `slots` assignments run at once, whatever the coordinator sends. A result is dropped only once the
//! coordinator has accepted it, or if too many results are waiting.

mod backoff;
mod leaving;
mod pending;
mod session;
#[cfg(test)]
mod tests;

use std::{collections::VecDeque, sync::Arc};

use evoxo_common::{
    digest::Digest,
    task::{Encoded, Shared, SharedCache},
    time::Millis,
};
use evoxo_proto::{
    FAILURE_BYTES_MAX, TASK_BYTES_MAX,
    v1::{FromWorker, Heartbeat, KindSignature, ProgramSignature, ToWorker, from_worker, task_result::Outcome},
};
use tracing::Level;

use self::{backoff::Backoff, leaving::Leaving, pending::PendingResults};

/// The exit status of a worker that the coordinator refused.
pub const STATUS_REFUSED: u8 = 3;
/// The maximum number of slots of a worker.
pub const SLOTS_MAX: usize = evoxo_proto::SLOTS_MAX as usize;

/// How long to wait for a Welcome after the Hello before giving up the link, in milliseconds.
const WELCOME_MS: u64 = 20_000;
/// How long results of an unfinished assignment are collected before they are sent, in milliseconds.
const GATHER_MS: u64 = 50;
/// Results whose total size reaches this, in bytes, are sent at once. It is also the maximum size of a message with several
/// results.
const GATHER_BYTES: usize = 1 << 20;
/// The maximum number of results that wait to be accepted.
const PENDING_RESULTS_MAX: usize = 65_536;
/// The maximum size of results that wait to be accepted, in bytes.
const PENDING_BYTES_MAX: usize = 256 << 20;

/// Settings of a worker.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The number of assignments computed at once, from 1 to [`SLOTS_MAX`].
    pub slots: usize,
    /// The worker's name in lists and messages, 1 to 128 bytes.
    pub name: String,
    /// The name of its host, at most 128 bytes.
    pub host: String,
    /// Version and commit of the build, at most 128 bytes.
    pub build: String,
    /// The signatures of the kinds that the build computes: [`evoxo_common::experiment::Registry::signatures`].
    pub kinds: Vec<KindSignature>,
    /// The worker's programs, with the kinds whose tasks call them.
    pub programs: Vec<ProgramSignature>,
    /// What the operator says about it, each as KEY=VALUE.
    pub labels: Vec<String>,
    /// A number drawn when the process starts. By it, the coordinator recognizes the process after a lost connection.
    pub process: u64,
    /// The worker shuts down after this time without a task, in milliseconds; `None`: never.
    pub idle_timeout_ms: Option<u64>,
}

/// An event for a worker.
#[derive(Clone, Debug)]
pub enum Event {
    /// The connection requested by [`Effect::Connect`] is open.
    LinkUp,
    /// The connection could not be opened, or was lost, for this reason.
    LinkDown(String),
    /// There is no connection, for this reason: a coordinator answers that it does not lead yet.
    LinkAway(String),
    /// The peer is not a coordinator that this worker can work for, for this reason. That will not change.
    LinkRefused(String),
    /// A message from the coordinator on the current connection.
    Message(ToWorker),
    /// A slot has computed the next task of its [`Effect::Start`]. After the last task the slot is free.
    Computed {
        /// The slot's index, from 0.
        slot: usize,
        /// The output, or why there is none.
        outcome: Outcome,
        /// How long it took, in microseconds.
        elapsed_us: u64,
        /// Whether it was stopped because it took too long.
        timed_out: bool,
    },
    /// The process was asked to shut down. The first time, the worker finishes its running tasks; the second time, it exits
    /// at once.
    DrainAsked,
    /// The time of [`Worker::next_wake`] has come.
    Wake,
}

/// An action for the shell.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Connect, and report with [`Event::LinkUp`], [`Event::LinkDown`], [`Event::LinkAway`] or [`Event::LinkRefused`].
    Connect,
    /// Send this message on the current connection.
    Send(FromWorker),
    /// Compute these tasks in order in this slot, which is free. Report each with [`Event::Computed`].
    Start {
        /// The slot's index.
        slot: usize,
        /// The tasks, at least one.
        tasks: Vec<Encoded>,
    },
    /// Drop the current connection and its events.
    Disconnect,
    /// Log this line.
    Log(Level, String),
    /// Log that a task failed.
    TaskFailed {
        /// The task's hash.
        task: Digest,
        /// The reason.
        why: String,
    },
    /// Close the stream, if there is one, and end the process. No more effects follow.
    Exit {
        /// The exit status of the process.
        status: u8,
        /// The reason, for the log.
        sentence: String,
    },
}

/// The connection to the coordinator.
#[derive(Clone, Copy, Debug)]
enum Link {
    /// No connection. The next attempt is due at `until`.
    Resting { until: Millis },
    /// The shell is connecting.
    Connecting,
    /// Hello was sent. Welcome is due by `until`.
    Greeting { until: Millis },
    /// A session that started at `since`.
    Open { since: Millis, heartbeat_interval_ms: u64, heartbeat_due: Millis },
}

/// The tasks of a busy slot.
#[derive(Debug)]
struct Running {
    /// The assignment's number in the current session; 0 if its session has ended.
    assignment: u64,
    /// The tasks that are still to be computed, in order.
    hashes: VecDeque<Digest>,
}

/// An assignment that waits for a slot.
#[derive(Debug)]
struct Queued {
    running: Running,
    tasks: Vec<Encoded>,
}

/// A worker.
#[derive(Debug)]
pub struct Worker {
    settings: Settings,
    backoff: Backoff,
    link: Link,
    /// When the current outage was last logged.
    outage_logged: Option<Millis>,
    slots: Vec<Option<Running>>,
    queue: VecDeque<Queued>,
    /// The shared bytes of tasks of the current session.
    shared: SharedCache<Arc<Shared>>,
    pending: PendingResults,
    /// Whether the dropping of results has been logged.
    dropping_logged: bool,
    /// When collected results must be sent, if there are any; `Millis(0)` means at once.
    send_due: Option<Millis>,
    /// Since when nothing runs. Meaningless while something runs.
    idle_since: Millis,
    leaving: Option<Leaving>,
    exited: bool,
    effects: Vec<Effect>,
}

impl Worker {
    /// A worker that starts at `now` and connects at its first [`Event::Wake`]. `seed` only spreads reconnections in time.
    ///
    /// # Panics
    /// If the number of slots is not from 1 to [`SLOTS_MAX`].
    #[must_use]
    pub fn new(now: Millis, settings: Settings, seed: u64) -> Self {
        assert!((1..=SLOTS_MAX).contains(&settings.slots), "a worker with {} slots", settings.slots);
        Self {
            backoff: Backoff::new(seed),
            link: Link::Resting { until: now },
            outage_logged: None,
            slots: (0..settings.slots).map(|_| None).collect(),
            queue: VecDeque::new(),
            shared: SharedCache::default(),
            pending: PendingResults::new(PENDING_RESULTS_MAX, PENDING_BYTES_MAX),
            dropping_logged: false,
            send_due: None,
            idle_since: now,
            leaving: None,
            exited: false,
            effects: Vec::new(),
            settings,
        }
    }

    /// Handles one event and returns what to do, in order. `now` must never decrease.
    ///
    /// # Panics
    /// If the event is [`Event::Computed`] for a slot that computes nothing.
    pub fn handle(&mut self, now: Millis, event: Event) -> Vec<Effect> {
        if self.exited {
            return Vec::new();
        }
        match event {
            Event::Wake => {}
            Event::LinkUp => self.send_hello(now),
            Event::LinkDown(why) => self.link_lost(now, &why, None),
            Event::LinkAway(why) => {
                let wait_ms = self.backoff.wait_away_ms();
                self.rest(now, &why, wait_ms, false);
            }
            Event::LinkRefused(why) => self.exit(STATUS_REFUSED, format!("this worker was refused: {why}")),
            Event::Message(message) => self.on_message(now, message),
            Event::Computed { slot, outcome, elapsed_us, timed_out } => {
                self.computed(now, slot, outcome, (elapsed_us, timed_out));
            }
            Event::DrainAsked => self.drain_asked(now),
        }
        if !self.exited {
            self.advance(now);
        }
        std::mem::take(&mut self.effects)
    }

    /// When the worker must be woken, unless another event comes first.
    #[must_use]
    pub fn next_wake(&self) -> Option<Millis> {
        if self.exited {
            return None;
        }
        let (link, send) = match self.link {
            Link::Resting { until } | Link::Greeting { until } => (Some(until), None),
            Link::Connecting => (None, None),
            Link::Open { heartbeat_due, .. } => (Some(heartbeat_due), self.send_due),
        };
        let leave = match &self.leaving {
            Some(leaving) => leaving.flush_until,
            None => self.idle_until(),
        };
        [link, send, leave].into_iter().flatten().min()
    }

    /// Does everything that is due: timers of the link, queued assignments for free slots, collected results, shutting down.
    fn advance(&mut self, now: Millis) {
        match &mut self.link {
            Link::Resting { until } if *until <= now => {
                self.link = Link::Connecting;
                self.effects.push(Effect::Connect);
            }
            Link::Greeting { until } if *until <= now => {
                self.disconnect(now, &format!("it did not reply to Hello within {} s", WELCOME_MS / 1000));
            }
            Link::Open { heartbeat_interval_ms, heartbeat_due, .. } if *heartbeat_due <= now => {
                *heartbeat_due = now + *heartbeat_interval_ms;
                self.send(from_worker::Message::Heartbeat(Heartbeat {}));
            }
            _ => {}
        }
        self.fill_slots();
        self.send_results(now);
        if self.leaving.is_none() && self.idle_until().is_some_and(|until| until <= now) {
            let idle_s = self.settings.idle_timeout_ms.unwrap_or(0) as f64 / 1000.0;
            self.leave(now, format!("no task for {idle_s} s"), false);
        }
        self.finish_leaving(now);
    }
}

/// Slots and results.
impl Worker {
    fn fill_slots(&mut self) {
        if self.queue.is_empty() {
            return;
        }
        for (slot, place) in self.slots.iter_mut().enumerate().filter(|(_, place)| place.is_none()) {
            let Some(Queued { running, tasks }) = self.queue.pop_front() else { break };
            *place = Some(running);
            self.effects.push(Effect::Start { slot, tasks });
        }
    }

    fn computed(&mut self, now: Millis, slot: usize, outcome: Outcome, took: (u64, bool)) {
        let place = self.slots.get_mut(slot).expect("the shell uses only existing slots");
        let running = place.as_mut().expect("only a started slot computes");
        let assignment = running.assignment;
        let hash = running.hashes.pop_front().expect("a slot is freed with its last task");
        let due = if running.hashes.is_empty() {
            *place = None;
            self.idle_since = now;
            Millis(0)
        } else {
            now + GATHER_MS
        };
        let outcome = sendable(outcome);
        if let Outcome::Failure(why) | Outcome::OtherProgram(why) = &outcome {
            self.effects.push(Effect::TaskFailed { task: hash, why: why.clone() });
        }
        let dropped = self.pending.add(hash, outcome, took, assignment);
        self.send_due = Some(self.send_due.map_or(due, |earlier| earlier.min(due)));
        if dropped > 0 && !self.dropping_logged {
            self.dropping_logged = true;
            let waiting = self.pending.len();
            let sentence = format!("dropping the oldest results: {waiting} wait and the coordinator accepts none");
            self.effects.push(Effect::Log(Level::WARN, sentence));
        }
    }

    fn send_results(&mut self, now: Millis) {
        let Link::Open { .. } = self.link else { return };
        if self.send_due.is_some_and(|due| due <= now) || self.pending.unsent_bytes() >= GATHER_BYTES {
            self.send_due = None;
            for outputs in self.pending.send(GATHER_BYTES) {
                self.send(from_worker::Message::Outputs(outputs));
            }
        }
    }
}

/// A sentence, cut to the maximum size that may be sent.
fn cut(mut sentence: String) -> String {
    let end = (0..=FAILURE_BYTES_MAX.min(sentence.len())).rev().find(|end| sentence.is_char_boundary(*end));
    sentence.truncate(end.unwrap_or(0));
    sentence
}

/// The outcome, replaced by a failure if it is too long to send.
fn sendable(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Output(bytes) if bytes.len() > TASK_BYTES_MAX => {
            Outcome::Failure(format!("the output has {} bytes, more than {TASK_BYTES_MAX}", bytes.len()))
        }
        Outcome::Failure(sentence) => Outcome::Failure(cut(sentence)),
        Outcome::OtherProgram(sentence) => Outcome::OtherProgram(cut(sentence)),
        output @ Outcome::Output(_) => output,
    }
}
