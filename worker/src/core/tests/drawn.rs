//! The core under random events, compared with a model of the coordinator.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// A random step. It is skipped if it is not possible.
#[derive(Clone, Debug)]
enum Step {
    /// This many milliseconds pass, with the timers in between.
    Pass(u64),
    /// The link comes up, or the session starts.
    Forward,
    /// The link goes down.
    Cut,
    /// The coordinator sends an assignment with this number of tasks.
    Assign(u64),
    /// One of the busy slots computes a task.
    Compute(usize),
    /// The coordinator accepts some of the results sent in this session.
    Accept(u64),
    /// The coordinator tells the worker to return later.
    Retry,
    /// An invalid message, or a valid one at the wrong time.
    Invalid(ToWorker),
}

fn hashes(bytes: std::ops::Range<usize>) -> impl Strategy<Value = Bytes> {
    prop_oneof![Just(32), bytes].prop_flat_map(|bytes| prop::collection::vec(any::<u8>(), bytes)).prop_map(Bytes::from)
}

/// Any message. `good` says whether assignments may have tasks with hashes of the right length.
fn message(good: bool) -> impl Strategy<Value = ToWorker> {
    let task = hashes(0..40)
        .prop_filter("the right length", move |hash| good || hash.len() != 32)
        .prop_map(|hash| AssignedTask { hash, ..AssignedTask::default() });
    // A task whose shared bytes were never sent is invalid too.
    let task = (task, hashes(0..40), any::<bool>()).prop_map(move |(task, shared, shares)| AssignedTask {
        shared: if shares && good { shared } else { Bytes::new() },
        ..task
    });
    let shared = prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from), 0..3);
    let assignment = (0..9_u64, prop::collection::vec(task, 0..4), shared);
    prop_oneof![
        Just(None),
        any::<(u64, u32)>().prop_map(|(session, heartbeat_interval_ms)| Some(Message::Welcome(Welcome {
            session,
            heartbeat_interval_ms
        }))),
        assignment.prop_map(|(id, tasks, shared)| Some(Message::Assignment(Assignment { id, tasks, shared }))),
        prop::collection::vec(hashes(0..40), 0..4).prop_map(|hashes| Some(Message::Accepted(Accepted { hashes }))),
        (0..4, any::<String>(), any::<u32>()).prop_map(|(kind, reason, retry_after_ms)| Some(Message::Close(Close {
            kind,
            reason,
            retry_after_ms
        }))),
    ]
    .prop_map(|message| ToWorker { message })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..400_u64).prop_map(Step::Pass),
        1 => (0..30_000_u64).prop_map(Step::Pass),
        8 => Just(Step::Forward),
        1 => Just(Step::Cut),
        8 => (1..5_u64).prop_map(Step::Assign),
        16 => any::<usize>().prop_map(Step::Compute),
        3 => any::<u64>().prop_map(Step::Accept),
        1 => Just(Step::Retry),
        1 => message(false).prop_filter("a refusal", |message| !is_refusal(message)).prop_map(Step::Invalid),
    ]
}

fn is_refusal(message: &ToWorker) -> bool {
    matches!(&message.message, Some(Message::Close(close)) if close.kind() == CloseKind::Refused)
}

/// A model of the worker's state, derived only from its effects.
struct Model {
    bench: Bench,
    slots: usize,
    busy: BTreeMap<usize, VecDeque<u64>>,
    /// Tasks that are computed and not accepted.
    unaccepted: BTreeSet<u64>,
    /// Results that were sent in this session and not accepted.
    sent: BTreeSet<u64>,
    assignments: u64,
    tasks: u64,
    link: Stage,
    exited: bool,
}

/// The stage of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Down,
    Asked,
    Up,
    Open,
}

impl Model {
    fn new(slots: usize) -> Self {
        Self {
            bench: Bench::new(slots, None),
            slots,
            busy: BTreeMap::new(),
            unaccepted: BTreeSet::new(),
            sent: BTreeSet::new(),
            assignments: 0,
            tasks: 0,
            link: Stage::Down,
            exited: false,
        }
    }

    fn on(&mut self, event: Event) {
        let effects = self.bench.worker.handle(self.bench.now, event);
        for effect in effects {
            assert!(!self.exited, "{effect:?} after the exit");
            match effect {
                Effect::Connect => {
                    assert_eq!(self.link, Stage::Down);
                    self.link = Stage::Asked;
                }
                Effect::Disconnect => self.cut(),
                Effect::Start { slot, tasks } => {
                    let numbers = tasks.iter().map(|task| number(&task.hash.0)).collect();
                    assert!(slot < self.slots && self.busy.insert(slot, numbers).is_none(), "slot {slot} was busy");
                }
                Effect::Send(message) => {
                    assert!(self.link == Stage::Up || self.link == Stage::Open, "{message:?} without a link");
                    if let Some(from_worker::Message::Outputs(outputs)) = message.message {
                        assert_eq!(self.link, Stage::Open);
                        for result in &outputs.results {
                            assert!(
                                self.unaccepted.contains(&number(&result.hash)),
                                "a result of a task that was not computed"
                            );
                            assert!(self.sent.insert(number(&result.hash)), "a result sent twice in a session");
                        }
                    }
                }
                Effect::Log(..) | Effect::TaskFailed { .. } => {}
                Effect::Exit { status, .. } => {
                    assert_eq!((status, self.unaccepted.len()), (0, 0), "exited with results that were not accepted");
                    self.exited = true;
                }
            }
        }
        assert!(self.busy.len() <= self.slots);
    }

    fn cut(&mut self) {
        self.link = Stage::Down;
        self.sent.clear();
    }

    fn pass(&mut self, ms: u64) {
        let end = self.bench.now + ms;
        let mut rings = 0;
        while let Some(wake) = self.bench.worker.next_wake().filter(|wake| *wake <= end) {
            self.bench.now = wake.max(self.bench.now);
            self.on(Event::Wake);
            rings += 1;
            assert!(rings <= 10 + ms, "the worker wakes too often");
        }
        self.bench.now = end;
        if ms >= 50 && self.link == Stage::Open {
            assert_eq!(self.sent, self.unaccepted, "results wait at most 50 ms");
        }
    }

    fn forward(&mut self) {
        match self.link {
            Stage::Asked => {
                self.link = Stage::Up;
                self.on(Event::LinkUp);
            }
            Stage::Up => {
                self.link = Stage::Open;
                self.on(welcome());
                assert_eq!(self.sent, self.unaccepted, "a new session starts with all unaccepted results");
            }
            Stage::Down | Stage::Open => {}
        }
    }

    fn compute(&mut self, pick: usize) {
        let Some(slot) = self.busy.keys().nth(pick % self.busy.len().max(1)).copied() else { return };
        let numbers = self.busy.get_mut(&slot).unwrap();
        self.unaccepted.insert(numbers.pop_front().unwrap());
        if numbers.is_empty() {
            self.busy.remove(&slot);
        }
        self.on(computed(slot));
    }

    fn accept(&mut self, mask: u64) {
        let numbers: Vec<u64> = self.sent.iter().copied().filter(|number| mask >> (number % 64) & 1 == 1).collect();
        numbers.iter().for_each(|number| {
            self.sent.remove(number);
            self.unaccepted.remove(number);
        });
        self.on(accepted(numbers));
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Pass(ms) => self.pass(ms),
            Step::Forward => self.forward(),
            Step::Cut if self.link != Stage::Down => {
                self.cut();
                self.on(down());
            }
            Step::Assign(count) if self.link == Stage::Open => {
                self.assignments += 1;
                let first = self.tasks;
                self.tasks += count;
                self.on(assignment(self.assignments, first..self.tasks));
            }
            Step::Compute(pick) => self.compute(pick),
            Step::Accept(mask) if self.link == Stage::Open => self.accept(mask),
            Step::Retry if self.link == Stage::Open => self.on(close(CloseKind::Retry, 300)),
            Step::Invalid(message) if self.link == Stage::Open => self.on(Event::Message(message)),
            _ => {}
        }
    }

    /// In any state, a correct coordinator gets all results, and the worker can shut down.
    fn settle(&mut self) {
        if self.link == Stage::Down {
            self.pass(6_000_000);
        }
        self.forward();
        self.forward();
        assert_eq!(self.link, Stage::Open, "a worker never stops retrying");
        while !self.busy.is_empty() {
            self.compute(0);
        }
        self.pass(50);
        self.on(Event::DrainAsked);
        self.accept(u64::MAX);
        assert!(self.exited && self.unaccepted.is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn slots_are_never_exceeded_and_results_never_lost(
        slots in 1..4_usize,
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut model = Model::new(slots);
        for step in steps {
            model.take(step);
        }
        model.settle();
    }

    #[test]
    fn no_message_breaks_a_worker(
        messages in prop::collection::vec((any::<bool>(), message(true)), 1..40),
    ) {
        let mut bench = Bench::new(1, None);
        for (greeted, message) in messages {
            bench.now = bench.worker.next_wake().unwrap_or(bench.now);
            if bench.on(Event::Wake) == ["connect"] {
                bench.on(Event::LinkUp);
                if greeted {
                    bench.on(welcome());
                }
            }
            let refusal = is_refusal(&message);
            let effects = bench.on(Event::Message(message));
            prop_assert_eq!(refusal, bench.worker.exited, "{:?}", effects);
            if refusal {
                break;
            }
        }
    }
}
