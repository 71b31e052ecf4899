//! A worker process in the simulation: the real state machine of `evoxo-worker`, with slots that compute on the virtual
//! clock and the faults that the seed draws.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use evoxo_common::{
    rng::{Stream, chance},
    task::{Encoded, NoPrograms},
    time::Millis,
};
use evoxo_coordinator::{core::SessionId, trust::Holder};
use evoxo_proto::{
    SHARED_PIECES_MAX,
    v1::{self, TaskResult, from_worker, task_result::Outcome, to_worker},
};
use evoxo_tests::registry;
use evoxo_worker::core::{Effect, Event, Settings, Worker};

/// How a worker behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Character {
    Honest,
    /// An honest worker with the certificate of a trusted worker.
    Trusted,
    /// Sends wrong outputs of the right form, for this many of a thousand tasks.
    Liar(u32),
    /// Always sends wrong outputs, the same ones as all others of its kind.
    Accomplice,
    /// Its build computes different results, so it must be refused.
    Foreign,
    /// Sends invalid outputs.
    Garbled,
    /// Reports three failures of each task, even of tasks that it was not assigned, and claims endless durations.
    Forger,
    /// Fails every task, because its host lacks something.
    Broken,
    /// Dies about every two seconds, and comes back.
    Flapping,
}

impl Character {
    /// Whether the worker sends wrong outputs that look right.
    pub(crate) fn lies(self) -> bool {
        matches!(self, Self::Liar(_) | Self::Accomplice)
    }
}

/// One worker process.
pub(crate) struct SimWorker {
    pub(crate) character: Character,
    /// The worker's index.
    pub(crate) number: usize,
    /// The seat of its coordinator.
    pub(crate) seat: usize,
    pub(crate) slots: usize,
    /// The longest duration of a task, in milliseconds.
    pub(crate) task_ms: u64,
    /// The current connection.
    pub(crate) link: Option<SessionId>,
    /// Counts lives of this process. Events of an older life are ignored.
    pub(crate) life: u64,
    /// False after an exit.
    pub(crate) alive: bool,
    /// The earliest wake in the queue.
    pub(crate) wake_at: Option<Millis>,
    core: Worker,
    /// The tasks of each slot.
    slots_busy: BTreeMap<usize, VecDeque<Encoded>>,
    /// Unfinished assignments of the current session, with the number of tasks left.
    unfinished: BTreeMap<u64, usize>,
    /// The greatest number of unfinished assignments at a time.
    pub(crate) unfinished_max: usize,
    /// Shared bytes that the worker received, each with its session.
    shared: Vec<(SessionId, Bytes)>,
    pub(crate) computed: u64,
}

impl SimWorker {
    pub(crate) fn new(number: usize, character: Character, slots: usize, task_ms: u64) -> Self {
        Self {
            character,
            number,
            seat: 0,
            slots,
            task_ms,
            link: None,
            life: 0,
            alive: true,
            wake_at: None,
            core: core(Millis(0), number, character, slots, 0),
            slots_busy: BTreeMap::new(),
            unfinished: BTreeMap::new(),
            unfinished_max: 0,
            shared: Vec::new(),
            computed: 0,
        }
    }

    /// The address that the worker connects from. Two workers share a host.
    pub(crate) fn address(&self) -> String {
        format!("10.0.0.{}", self.number / 2)
    }

    /// The holder of the worker's certificate, if there are certificates.
    pub(crate) fn holder(&self) -> Holder {
        Holder { id: format!("{:012x}", self.number).into(), trusted: self.character == Character::Trusted }
    }

    /// Kills the process. A new one without memory replaces it.
    pub(crate) fn die(&mut self, now: Millis) {
        self.life += 1;
        self.core = core(now, self.number, self.character, self.slots, self.life);
        self.link = None;
        self.wake_at = None;
        self.slots_busy.clear();
        self.unfinished.clear();
    }

    pub(crate) fn next_wake(&self) -> Option<Millis> {
        self.core.next_wake()
    }

    /// The next task of a slot.
    pub(crate) fn next_task(&self, slot: usize) -> Option<&Encoded> {
        self.slots_busy.get(&slot)?.front()
    }

    /// Gives the state machine an event. Returns its effects, except those that start tasks.
    pub(crate) fn tell(&mut self, now: Millis, event: Event) -> Vec<Effect> {
        if let Event::Message(v1::ToWorker { message: Some(to_worker::Message::Assignment(assignment)) }) = &event {
            self.unfinished.insert(assignment.id, assignment.tasks.len());
            self.unfinished_max = self.unfinished_max.max(self.unfinished.len());
            for piece in &assignment.shared {
                let session = self.link.expect("an assignment came in a session");
                // Half of a worker's cache, because some bytes that the coordinator counts may have been lost on the way.
                let kept = self.shared.iter().rev().filter(|(of, _)| *of == session).take(SHARED_PIECES_MAX / 2);
                let mut kept = kept.map(|(_, other)| other);
                assert!(kept.all(|other| other != piece), "shared bytes were sent again that are still cached");
                self.shared.push((session, piece.clone()));
            }
        }
        let mut effects = self.core.handle(now, event);
        for effect in &mut effects {
            match effect {
                Effect::Start { slot, tasks } => {
                    assert!(!self.slots_busy.contains_key(slot), "slot {slot} already has tasks");
                    self.slots_busy.insert(*slot, tasks.iter().cloned().collect());
                    assert!(self.slots_busy.len() <= self.slots, "more slots are busy than exist");
                }
                Effect::Send(v1::FromWorker { message: Some(from_worker::Message::Outputs(outputs)) }) => {
                    outputs.results.iter().for_each(|result| self.count(result.assignment));
                    if self.character == Character::Forger {
                        forge(&mut outputs.results);
                    }
                }
                Effect::Disconnect => {
                    self.link = None;
                    self.unfinished.clear();
                }
                Effect::Exit { .. } => self.alive = false,
                _ => {}
            }
        }
        effects
    }

    fn count(&mut self, assignment: u64) {
        if let Some(left) = self.unfinished.get_mut(&assignment) {
            *left -= 1;
            if *left == 0 {
                self.unfinished.remove(&assignment);
            }
        }
    }

    /// Notes that a slot has computed its first task. The second value says whether the slot has another task.
    pub(crate) fn computed(&mut self, now: Millis, slot: usize) -> (Vec<Effect>, bool) {
        let Some(queue) = self.slots_busy.get_mut(&slot) else { return (Vec::new(), false) };
        let Some(task) = queue.pop_front() else { return (Vec::new(), false) };
        let more = !queue.is_empty();
        if !more {
            self.slots_busy.remove(&slot);
        }
        self.computed += 1;
        let outcome = match self.character {
            Character::Garbled => Outcome::Output(Bytes::from_static(&[0xff, 0x00, 0x12])),
            Character::Liar(thousandths) => {
                let mut rng = Stream::root(self.number as u64).text("lie").word(self.computed).rng();
                match chance(&mut rng, thousandths.into(), 1000) {
                    true => Outcome::Output(lie(&task, self.number)),
                    false => Outcome::Output(output_of(&task)),
                }
            }
            Character::Accomplice => Outcome::Output(lie(&task, 0)),
            Character::Broken => Outcome::Failure("the disk is full".into()),
            _ => Outcome::Output(output_of(&task)),
        };
        let event = Event::Computed { slot, outcome, elapsed_us: 1000 * self.task_ms, timed_out: false };
        (self.tell(now, event), more)
    }

    /// Notes that the connection is lost.
    pub(crate) fn link_down(&mut self, now: Millis) -> Vec<Effect> {
        self.link = None;
        self.unfinished.clear();
        self.tell(now, Event::LinkDown("the simulation cut it".into()))
    }
}

pub(super) fn output_of(task: &Encoded) -> Bytes {
    registry().run(task, &mut NoPrograms).expect("planned tasks are good")
}

/// A wrong output of the right form: with one bit changed, a different one for each liar. If no such output exists, the right
/// one.
fn lie(task: &Encoded, liar: usize) -> Bytes {
    let right = output_of(task);
    let decoded = registry().decode(task).expect("a planned task");
    let bits = 8 * right.len();
    let mut lies = (0..bits).rev().filter_map(|bit| {
        let mut bytes = right.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        decoded.check(&bytes.into()).ok().filter(|lie| *lie != right)
    });
    lies.nth(liar).unwrap_or_else(|| right.clone())
}

/// Puts forged results first: each task failed three times, in an assignment that never existed. Also claims endless
/// durations.
fn forge(results: &mut Vec<TaskResult>) {
    let failure = Some(Outcome::Failure("a reported failure".into()));
    let failures =
        results.iter().map(|result| TaskResult { outcome: failure.clone(), assignment: 1 << 40, ..result.clone() });
    let failures: Vec<TaskResult> = failures.collect();
    let forged = [&failures[..], &failures, &failures].concat();
    results.iter_mut().for_each(|result| result.elapsed_us = u64::MAX);
    results.splice(0..0, forged);
}

/// The state machine of a worker.
pub(super) fn core(now: Millis, number: usize, character: Character, slots: usize, life: u64) -> Worker {
    let mut kinds = registry().signatures();
    if character == Character::Foreign {
        kinds.iter_mut().for_each(|kind| kind.sha256 = Bytes::from_static(&[7; 32]));
    }
    let process = 1000 * number as u64 + life;
    let settings = Settings {
        slots,
        name: format!("w{number}"),
        host: String::new(),
        build: "test".into(),
        kinds,
        programs: Vec::new(),
        labels: Vec::new(),
        process,
        idle_timeout_ms: None,
    };
    Worker::new(now, settings, life)
}
