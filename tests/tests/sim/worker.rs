//! A worker as the coordinator sees it: honest work on a virtual clock, with the faults that the seed draws.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use evoxo_common::task;
use evoxo_coordinator::core::SessionId;
use evoxo_proto::{
    PROTOCOL,
    v1::{self, CloseKind, from_worker, task_result::Outcome, to_worker},
};

/// How a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Character {
    Honest,
    /// Its build computes something else: it must be refused.
    Foreign,
    /// Sends bytes that are no answers.
    Garbled,
}

/// What a worker does next.
pub(crate) enum Action {
    Send(v1::FromWorker),
    /// A task will be ready after so many milliseconds.
    Compute {
        ms: u64,
    },
    /// End the stream and connect again after so many milliseconds.
    Reconnect {
        ms: u64,
    },
    /// Never come back.
    Leave,
}

/// One worker process.
pub(crate) struct SimWorker {
    pub(crate) character: Character,
    pub(crate) slots: u32,
    /// Milliseconds a task takes at most.
    pub(crate) task_ms: u64,
    pub(crate) session: Option<SessionId>,
    /// Counts lives of this process: events of an older life are void.
    pub(crate) life: u64,
    pub(crate) alive: bool,
    welcome: bool,
    queue: VecDeque<(u64, v1::AssignedTask)>,
    /// With the session that asked.
    running: VecDeque<(Option<SessionId>, u64, v1::AssignedTask)>,
    assignments: BTreeMap<u64, usize>,
    unaccepted: BTreeMap<Bytes, v1::TaskResult>,
    /// The most assignments it ever held unfinished in one session.
    pub(crate) held_max: usize,
    pub(crate) computed: u64,
}

impl SimWorker {
    pub(crate) fn new(character: Character, slots: u32, task_ms: u64) -> Self {
        Self {
            character,
            slots,
            task_ms,
            session: None,
            life: 0,
            alive: true,
            welcome: false,
            queue: VecDeque::new(),
            running: VecDeque::new(),
            assignments: BTreeMap::new(),
            unaccepted: BTreeMap::new(),
            held_max: 0,
            computed: 0,
        }
    }

    /// The process dies and a new one takes its place: nothing is remembered.
    pub(crate) fn die(&mut self) {
        let fresh = Self::new(self.character, self.slots, self.task_ms);
        *self = Self { life: self.life + 1, held_max: self.held_max, computed: self.computed, ..fresh };
    }

    pub(crate) fn hello(&mut self, session: SessionId) -> v1::FromWorker {
        self.session = Some(session);
        self.welcome = false;
        self.queue.clear();
        self.assignments.clear();
        let mut signature = task::signature();
        if self.character == Character::Foreign {
            signature[0].sha256 = Bytes::from_static(&[7; 32]);
        }
        let hello =
            v1::Hello { protocol: PROTOCOL, slots: self.slots, name: "sim".into(), signature, build: "test".into() };
        from(from_worker::Message::Hello(hello))
    }

    pub(crate) fn beat(&self) -> Option<v1::FromWorker> {
        self.welcome.then(|| from(from_worker::Message::Beat(v1::Beat {})))
    }

    pub(crate) fn hear(&mut self, message: v1::ToWorker, mut draw_ms: impl FnMut(u64) -> u64) -> Vec<Action> {
        match message.message.expect("the coordinator always says something") {
            to_worker::Message::Welcome(_) => {
                self.welcome = true;
                let offers: Vec<_> =
                    self.unaccepted.values().map(|result| v1::TaskResult { assignment: 0, ..result.clone() }).collect();
                if offers.is_empty() { Vec::new() } else { vec![send_results(offers)] }
            }
            to_worker::Message::Assignment(assignment) => {
                assert!(!assignment.tasks.is_empty(), "an assignment has at least one task");
                self.assignments.insert(assignment.id, assignment.tasks.len());
                self.held_max = self.held_max.max(self.assignments.len());
                self.queue.extend(assignment.tasks.into_iter().map(|task| (assignment.id, task)));
                self.start(&mut draw_ms)
            }
            to_worker::Message::Accepted(accepted) => {
                accepted.hashes.iter().for_each(|hash| drop(self.unaccepted.remove(hash)));
                Vec::new()
            }
            to_worker::Message::Close(close) if close.kind() == CloseKind::Retry => {
                vec![Action::Reconnect { ms: u64::from(close.retry_after_ms) + draw_ms(1000) }]
            }
            to_worker::Message::Close(_) => vec![Action::Leave],
        }
    }

    fn start(&mut self, draw_ms: &mut impl FnMut(u64) -> u64) -> Vec<Action> {
        let mut actions = Vec::new();
        while (self.running.len() as u32) < self.slots
            && let Some((assignment, task)) = self.queue.pop_front()
        {
            self.running.push_back((self.session, assignment, task));
            actions.push(Action::Compute { ms: draw_ms(self.task_ms) });
        }
        actions
    }

    /// The task that began first is ready.
    pub(crate) fn computed(&mut self, mut draw_ms: impl FnMut(u64) -> u64) -> Vec<Action> {
        let Some((session, assignment, task)) = self.running.pop_front() else { return Vec::new() };
        self.computed += 1;
        let outcome = match self.character {
            Character::Garbled => Outcome::Output(Bytes::from_static(&[0xff, 0x00, 0x12])),
            _ => Outcome::Output(task::run_encoded(&task.task).expect("planned tasks are good")),
        };
        let current = session == self.session && self.assignments.contains_key(&assignment);
        if let Some(left) = self.assignments.get_mut(&assignment).filter(|_| current) {
            *left -= 1;
            if *left == 0 {
                self.assignments.remove(&assignment);
            }
        }
        let number = if current { assignment } else { 0 };
        let result = v1::TaskResult {
            hash: task.hash.clone(),
            outcome: Some(outcome),
            elapsed_us: 1000 * self.task_ms,
            assignment: number,
        };
        self.unaccepted.insert(task.hash, result.clone());
        let mut actions = if self.welcome { vec![send_results(vec![result])] } else { Vec::new() };
        actions.extend(self.start(&mut draw_ms));
        actions
    }

    pub(crate) fn disconnect(&mut self) {
        self.session = None;
        self.welcome = false;
        self.queue.clear();
        self.assignments.clear();
    }
}

fn from(message: from_worker::Message) -> v1::FromWorker {
    v1::FromWorker { message: Some(message) }
}

fn send_results(results: Vec<v1::TaskResult>) -> Action {
    Action::Send(from(from_worker::Message::Outputs(v1::Outputs { results })))
}

/// Milliseconds between two beats.
pub(crate) const BEAT_MS: u64 = 2000;
