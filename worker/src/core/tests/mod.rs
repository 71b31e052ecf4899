//! The core on a virtual clock: each event, and the effects that the worker returns.

use bytes::Bytes;
use evoxo_proto::v1::{Accepted, AssignedTask, Assignment, Close, CloseKind, Leave, Welcome, to_worker::Message};

use super::*;

mod drawn;

const HEARTBEAT_MS: u64 = 1_000;

fn message(message: Message) -> Event {
    Event::Message(ToWorker { message: Some(message) })
}

fn hash(number: u64) -> Bytes {
    let mut hash = [0; 32];
    hash[..8].copy_from_slice(&number.to_le_bytes());
    Bytes::copy_from_slice(&hash)
}

fn number(hash: &[u8]) -> u64 {
    u64::from_le_bytes(hash[..8].try_into().unwrap())
}

fn welcome() -> Event {
    message(Message::Welcome(Welcome { session: 1, heartbeat_interval_ms: HEARTBEAT_MS as u32 }))
}

fn assignment(id: u64, numbers: impl IntoIterator<Item = u64>) -> Event {
    let task = |number| AssignedTask { hash: hash(number), ..AssignedTask::default() };
    message(Message::Assignment(Assignment { id, tasks: numbers.into_iter().map(task).collect(), shared: Vec::new() }))
}

fn accepted(numbers: impl IntoIterator<Item = u64>) -> Event {
    message(Message::Accepted(Accepted { hashes: numbers.into_iter().map(hash).collect() }))
}

fn close(kind: CloseKind, retry_after_ms: u32) -> Event {
    message(Message::Close(Close { kind: kind.into(), reason: "be\u{7}cause".into(), retry_after_ms }))
}

fn computed(slot: usize) -> Event {
    computed_bytes(slot, 1)
}

fn computed_bytes(slot: usize, bytes: usize) -> Event {
    Event::Computed { slot, outcome: Outcome::Output(vec![1; bytes].into()), elapsed_us: 7, timed_out: false }
}

fn down() -> Event {
    Event::LinkDown("a cut".into())
}

/// An effect as the tests write it. Results are written as task@assignment.
fn text(effect: &Effect) -> String {
    match effect {
        Effect::Connect => "connect".into(),
        Effect::Disconnect => "disconnect".into(),
        Effect::Start { slot, tasks } => {
            let numbers: Vec<_> = tasks.iter().map(|task| number(&task.hash.0).to_string()).collect();
            format!("start {slot}: {}", numbers.join(" "))
        }
        Effect::Send(message) => match message.message.as_ref().unwrap() {
            from_worker::Message::Hello(hello) => format!("hello {} {}", hello.name, hello.slots),
            from_worker::Message::Heartbeat(_) => "heartbeat".into(),
            from_worker::Message::Drain(_) => "drain".into(),
            from_worker::Message::Outputs(outputs) => {
                let result = |r: &evoxo_proto::v1::TaskResult| format!("{}@{}", number(&r.hash), r.assignment);
                outputs.results.iter().map(result).collect::<Vec<_>>().join(" ")
            }
        },
        Effect::TaskFailed { task, why } => format!("failed {}: {why}", number(&task.0)),
        Effect::Log(level, sentence) => format!("{level} {sentence}"),
        Effect::Exit { status, sentence } => format!("exit {status}: {sentence}"),
    }
}

/// A worker and its clock.
struct Bench {
    worker: Worker,
    now: Millis,
    logs: Vec<String>,
}

impl Bench {
    fn new(slots: usize, idle_timeout_ms: Option<u64>) -> Self {
        let settings = Settings {
            slots,
            name: "w".into(),
            host: "h".into(),
            build: "b".into(),
            kinds: Vec::new(),
            programs: Vec::new(),
            labels: Vec::new(),
            process: 3,
            idle_timeout_ms,
        };
        Self { worker: Worker::new(Millis(0), settings, 1), now: Millis(0), logs: Vec::new() }
    }

    /// A worker in a session since time 0.
    fn open(slots: usize) -> Self {
        let mut bench = Self::new(slots, None);
        bench.enter();
        bench
    }

    fn enter(&mut self) -> Vec<String> {
        assert_eq!(self.on(Event::Wake), ["connect"]);
        assert_eq!(self.on(Event::LinkUp), [format!("hello w {}", self.worker.settings.slots)]);
        self.on(welcome())
    }

    /// Handles an event at the current time and returns the worker's effects. Log lines go to `logs`.
    fn on(&mut self, event: Event) -> Vec<String> {
        let effects = self.worker.handle(self.now, event);
        assert!(self.worker.next_wake().is_none_or(|wake| wake >= self.now), "a wake is never in the past");
        let (logs, rest): (Vec<_>, _) = effects
            .iter()
            .map(text)
            .partition(|text| ["ERROR ", "WARN ", "INFO ", "DEBUG "].iter().any(|level| text.starts_with(level)));
        self.logs.extend(logs);
        rest
    }

    /// Advances to this time without events and returns the worker's effects, except heartbeats.
    fn until(&mut self, ms: u64) -> Vec<String> {
        let mut done = Vec::new();
        while let Some(wake) = self.worker.next_wake().filter(|wake| wake.0 <= ms) {
            self.now = wake;
            done.extend(self.on(Event::Wake).into_iter().filter(|text| text != "heartbeat"));
        }
        self.now = Millis(ms);
        done
    }

    /// Waits until the worker connects. Returns how long that took, in milliseconds.
    fn wait_ms(&mut self) -> u64 {
        let before = self.now;
        self.now = self.worker.next_wake().unwrap();
        self.now - before
    }
}

#[test]
fn sends_hello_first_and_heartbeats_while_the_session_lasts() {
    let mut bench = Bench::new(3, None);
    assert_eq!(bench.worker.next_wake(), Some(Millis(0)));
    assert_eq!(bench.on(Event::Wake), ["connect"]);
    assert_eq!(bench.worker.next_wake(), None);
    assert_eq!(bench.on(Event::LinkUp), ["hello w 3"]);
    assert!(bench.on(welcome()).is_empty());
    assert_eq!(bench.logs, ["INFO connected to the coordinator, session 1"]);
    for beat in 1..5 {
        assert_eq!(bench.worker.next_wake(), Some(Millis(beat * HEARTBEAT_MS)));
        bench.now = Millis(beat * HEARTBEAT_MS);
        assert_eq!(bench.on(Event::Wake), ["heartbeat"]);
    }
}

#[test]
fn a_coordinator_that_does_not_reply_to_hello_is_left() {
    let mut bench = Bench::new(1, None);
    bench.on(Event::Wake);
    bench.on(Event::LinkUp);
    assert_eq!(bench.until(20_000), ["disconnect"]);
    assert_eq!(bench.until(20_150), ["connect"]);
}

#[test]
fn the_result_of_a_single_task_is_sent_at_once() {
    let mut bench = Bench::open(1);
    assert_eq!(bench.on(assignment(5, [1])), ["start 0: 1"]);
    assert_eq!(bench.on(computed(0)), ["1@5"]);
    assert!(bench.on(accepted([1])).is_empty());
    assert_eq!(bench.on(down()), [""; 0]);
    bench.wait_ms();
    assert!(bench.enter().is_empty(), "accepted results are dropped");
}

#[test]
fn results_of_an_assignment_are_collected_for_50_ms_or_to_its_end() {
    let mut bench = Bench::open(1);
    assert_eq!(bench.on(assignment(5, 1..=6)), ["start 0: 1 2 3 4 5 6"]);
    bench.now = Millis(10);
    assert!(bench.on(computed(0)).is_empty());
    bench.now = Millis(40);
    assert!(bench.on(computed(0)).is_empty());
    assert!(bench.until(59).is_empty());
    assert_eq!(bench.until(60), ["1@5 2@5"]);
    assert!(bench.until(999).is_empty());
    assert!(bench.on(computed(0)).is_empty());
    assert!(bench.on(computed(0)).is_empty());
    assert!(bench.on(computed(0)).is_empty());
    assert_eq!(bench.on(computed(0)), ["3@5 4@5 5@5 6@5"]);
}

#[test]
fn a_mebibyte_of_results_does_not_wait() {
    let mut bench = Bench::open(1);
    bench.on(assignment(5, 1..=9));
    assert!(bench.on(computed_bytes(0, 500_000)).is_empty());
    assert!(bench.on(computed_bytes(0, 500_000)).is_empty());
    assert_eq!(bench.on(computed_bytes(0, 500_000)), ["1@5 2@5", "3@5"]);
}

#[test]
fn at_most_one_assignment_runs_in_a_slot_and_one_more_waits_for_each() {
    let mut bench = Bench::open(2);
    assert_eq!(bench.on(assignment(1, [1, 2])), ["start 0: 1 2"]);
    assert_eq!(bench.on(assignment(2, [3])), ["start 1: 3"]);
    assert!(bench.on(assignment(3, [4])).is_empty());
    assert!(bench.on(assignment(4, [5])).is_empty());
    assert_eq!(bench.on(computed(1)), ["start 1: 4", "3@2"]);
    assert!(bench.on(assignment(5, [6])).is_empty());
    assert_eq!(bench.on(assignment(6, [7])), ["disconnect"]);
    assert!(bench.logs.last().unwrap().contains("more than two assignments for each of 2 slots"), "{:?}", bench.logs);
}

#[test]
fn an_outage_neither_stops_computing_nor_loses_results() {
    let mut bench = Bench::open(1);
    bench.on(assignment(1, [1, 2]));
    bench.on(assignment(2, [3, 4]));
    bench.until(500);
    assert!(bench.on(computed(0)).is_empty());
    assert!(bench.on(down()).is_empty());
    assert_eq!(bench.on(computed(0)), ["start 0: 3 4"], "the slot continues with the queue");
    bench.wait_ms();
    assert_eq!(bench.enter(), ["1@0 2@0"], "computed results are sent again");
    assert!(bench.on(accepted([1])).is_empty());
    assert!(bench.on(computed(0)).is_empty());
    assert_eq!(bench.on(computed(0)), ["3@0 4@0"], "running tasks are finished and their results sent");
    bench.on(down());
    bench.wait_ms();
    assert_eq!(bench.enter(), ["2@0 3@0 4@0"], "results are sent until they are accepted");
}

#[test]
fn queued_tasks_are_dropped_when_a_new_session_starts() {
    let mut bench = Bench::open(1);
    bench.on(assignment(1, [1]));
    bench.on(assignment(2, [2]));
    bench.on(down());
    bench.wait_ms();
    assert!(bench.enter().is_empty());
    assert!(bench.on(assignment(1, [3])).is_empty());
    assert!(bench.on(assignment(2, [4])).is_empty(), "the running task belongs to an earlier session");
    assert_eq!(bench.on(computed(0)), ["start 0: 3", "1@0"]);
}

#[test]
fn an_outage_is_logged_once_and_so_is_its_end() {
    let mut bench = Bench::open(1);
    bench.on(down());
    for _ in 0..5 {
        bench.wait_ms();
        assert_eq!(bench.on(Event::Wake), ["connect"]);
        assert!(bench.on(down()).is_empty());
    }
    bench.wait_ms();
    bench.enter();
    let levels: Vec<_> = bench.logs.iter().map(|log| log.split(' ').next().unwrap()).collect();
    assert_eq!(levels, ["INFO", "WARN", "DEBUG", "DEBUG", "DEBUG", "DEBUG", "DEBUG", "INFO"]);
    assert!(bench.logs[1].starts_with("WARN lost the coordinator: a cut; next try in 0."), "{:?}", bench.logs);
}

#[test]
fn an_outage_that_lasts_is_logged_every_minute() {
    let mut bench = Bench::open(1);
    bench.on(down());
    let mut waited_ms = 0;
    while waited_ms < 600_000 {
        waited_ms += bench.wait_ms();
        bench.on(Event::Wake);
        bench.on(down());
    }
    let warnings = bench.logs.iter().filter(|log| log.starts_with("WARN ")).count() as u64;
    assert!((waited_ms / 90_000..=waited_ms / 60_000 + 1).contains(&warnings), "{warnings} in {waited_ms} ms");
}

#[test]
fn a_closed_worker_reconnects_when_told_to_and_not_before() {
    let mut bench = Bench::open(1);
    assert_eq!(bench.on(close(CloseKind::Retry, 4_000)), ["disconnect"]);
    assert!((4_000..=6_000).contains(&bench.wait_ms()));
    bench.enter();
    assert!(bench.logs[1].contains("it closed the session: be cause"), "{:?}", bench.logs);
    assert!(bench.logs[1].starts_with("INFO "), "an announced end is not a warning: {:?}", bench.logs);
    bench.on(down());
    assert!(bench.logs.last().unwrap().starts_with("WARN "), "an unannounced end is a warning: {:?}", bench.logs);
}

#[test]
fn a_link_that_ends_during_shutdown_is_no_warning() {
    let mut bench = Bench::open(1);
    bench.on(assignment(1, [1]));
    bench.on(Event::DrainAsked);
    bench.on(down());
    assert!(!bench.logs.iter().any(|log| log.starts_with("WARN")), "{:?}", bench.logs);
}

#[test]
fn a_rejected_worker_exits_with_its_own_status_and_the_reason() {
    let mut bench = Bench::new(1, None);
    bench.on(Event::Wake);
    bench.on(Event::LinkUp);
    let exit = ["exit 3: the coordinator refused this worker: be cause"];
    assert_eq!(bench.on(close(CloseKind::Refused, 0)), exit);
    assert_eq!(bench.worker.next_wake(), None);
    assert!(bench.on(Event::DrainAsked).is_empty());
}

#[test]
fn shutdown_finishes_assigned_tasks_and_waits_until_results_are_accepted() {
    let mut bench = Bench::open(1);
    bench.on(assignment(1, [1]));
    bench.on(assignment(2, [2]));
    assert_eq!(bench.on(Event::DrainAsked), ["drain"]);
    assert_eq!(bench.on(computed(0)), ["start 0: 2", "1@1"]);
    assert_eq!(bench.on(computed(0)), ["2@2"]);
    assert!(bench.until(4_000).is_empty());
    assert!(bench.on(assignment(3, [3])).len() == 1, "an assignment sent before the drain arrived is computed too");
    assert!(bench.until(60_000).is_empty());
    assert_eq!(bench.on(computed(0)), ["3@3"]);
    assert!(bench.on(accepted([1, 3])).is_empty());
    assert_eq!(bench.on(accepted([2])), ["exit 0: shut down (on request): all results were accepted"]);
}

#[test]
fn shutdown_does_not_wait_forever() {
    let mut bench = Bench::open(1);
    bench.on(assignment(1, [1]));
    bench.on(computed(0));
    bench.on(Event::DrainAsked);
    assert!(bench.until(4_999).is_empty());
    let exit = "exit 0: shut down (on request): 1 results were not accepted and will be computed elsewhere";
    assert_eq!(bench.until(5_000), [exit]);
}

#[test]
fn shutdown_during_an_outage_resends_results() {
    let mut bench = Bench::open(1);
    bench.on(assignment(1, [1]));
    bench.on(assignment(2, [2]));
    bench.on(down());
    bench.now = bench.now + 1;
    assert_eq!(bench.on(Event::DrainAsked), ["connect"], "the worker does not wait for the next attempt");
    assert_eq!(bench.on(computed(0)), [""; 0], "queued tasks are dropped");
    assert_eq!(bench.on(Event::LinkUp), ["hello w 1"]);
    assert_eq!(bench.on(welcome()), ["drain", "1@0"]);
    assert_eq!(bench.on(accepted([1])), ["exit 0: shut down (on request): all results were accepted"]);
}

#[test]
fn an_idle_worker_shuts_down_at_once_and_a_second_signal_always_does() {
    assert_eq!(
        Bench::new(1, None).on(Event::DrainAsked)[1..],
        ["exit 0: shut down (on request): all results were accepted"]
    );
    let mut bench = Bench::open(1);
    bench.on(assignment(1, [1]));
    assert_eq!(bench.on(Event::DrainAsked), ["drain"]);
    assert!(bench.on(Event::DrainAsked)[0].starts_with("exit 1: shut down at once"));
}

/// An operator's request acts like a signal, and a signal after it counts as the first one.
#[test]
fn a_worker_asked_to_leave_finishes_its_tasks() {
    let leave = || message(Message::Leave(Leave { reason: "by\u{1b} hand".into() }));
    let mut bench = Bench::open(1);
    bench.on(assignment(1, [1]));
    assert_eq!(bench.on(leave()), ["drain"]);
    assert!(bench.on(leave()).is_empty() && bench.on(Event::DrainAsked).is_empty());
    assert_eq!(bench.on(computed(0)), ["1@1"]);
    let exit = "exit 0: shut down (the coordinator requests it: by  hand): all results were accepted";
    assert_eq!(bench.on(accepted([1])), [exit]);

    let mut bench = Bench::open(1);
    bench.on(assignment(1, [1]));
    bench.on(leave());
    bench.on(down());
    bench.until(60_000);
    bench.on(Event::LinkUp);
    assert_eq!(bench.on(welcome()), ["drain"], "the drain is announced in every session");
    bench.on(Event::DrainAsked);
    assert!(bench.on(Event::DrainAsked)[0].starts_with("exit 1: shut down at once"));

    let mut bench = Bench::new(1, None);
    bench.on(Event::Wake);
    bench.on(Event::LinkUp);
    bench.on(leave());
    assert!(bench.logs.last().unwrap().contains("a request to leave outside of a session"), "{:?}", bench.logs);
}

#[test]
fn the_idle_timeout_works_with_and_without_a_link() {
    let mut bench = Bench::new(1, Some(3_000));
    bench.enter();
    bench.until(2_000);
    bench.on(assignment(1, [1]));
    assert!(bench.until(10_000).is_empty(), "a worker that computes is not idle");
    bench.on(computed(0));
    bench.on(accepted([1]));
    assert!(bench.until(12_999).is_empty());
    assert_eq!(bench.until(13_000), ["drain", "exit 0: shut down (no task for 3 s): all results were accepted"]);

    let mut bench = Bench::new(1, Some(3_000));
    assert_eq!(bench.until(10_000), ["connect", "exit 0: shut down (no task for 3 s): all results were accepted"]);
}

#[test]
fn results_too_large_to_send_become_failures() {
    let mut bench = Bench::open(1);
    bench.on(assignment(1, [1, 2]));
    bench.on(computed_bytes(0, TASK_BYTES_MAX + 1));
    let failure = Outcome::Failure("\u{e9}".repeat(3_000));
    let effects =
        bench.worker.handle(bench.now, Event::Computed { slot: 0, outcome: failure, elapsed_us: 1, timed_out: true });
    let [
        Effect::TaskFailed { why, .. },
        Effect::Send(FromWorker { message: Some(from_worker::Message::Outputs(outputs)) }),
        ..,
    ] = &effects[..]
    else {
        panic!("{effects:?}")
    };
    assert_eq!(why.len(), 4_096, "the log has the text that is sent");
    let sentence = |index: usize| match outputs.results[index].outcome.as_ref().unwrap() {
        Outcome::Failure(sentence) => sentence.as_str(),
        other => panic!("{other:?}"),
    };
    assert_eq!(sentence(0), "the output has 8388609 bytes, more than 8388608");
    assert_eq!(sentence(1), "\u{e9}".repeat(2_048));
}

#[test]
fn invalid_messages_end_only_the_session() {
    let no_heartbeat = message(Message::Welcome(Welcome { session: 1, heartbeat_interval_ms: 0 }));
    let assigned =
        |task: AssignedTask| message(Message::Assignment(Assignment { id: 1, tasks: vec![task], shared: vec![] }));
    let bad_hash = AssignedTask { hash: Bytes::from_static(b"x"), ..AssignedTask::default() };
    let lost_piece = AssignedTask { shared: hash(7), hash: hash(1), ..AssignedTask::default() };
    let bad_accepted = message(Message::Accepted(Accepted { hashes: vec![Bytes::new()] }));
    let open: [(Event, &str); 8] = [
        (Event::Message(ToWorker { message: None }), "of a kind this build does not know"),
        (welcome(), "without a Hello"),
        (assignment(0, [1]), "reserved or in use"),
        (assignment(9, [1]), "reserved or in use"),
        (assignment(1, []), "without tasks"),
        (assigned(bad_hash), "does not have 32 bytes"),
        (assigned(lost_piece), "assignment 1 without the shared bytes 0700000000000000 that it needs"),
        (bad_accepted, "not 32 bytes"),
    ];
    for (event, sentence) in open {
        let mut bench = Bench::open(1);
        bench.on(assignment(9, [8, 9]));
        assert_eq!(bench.on(event), ["disconnect"], "{sentence}");
        assert!(bench.logs.last().unwrap().contains(sentence), "{:?}", bench.logs);
        bench.wait_ms();
        bench.enter();
        bench.on(computed(0));
        assert_eq!(bench.on(computed(0)), ["8@0 9@0"]);
    }
    for (event, sentence) in [
        (no_heartbeat, "a heartbeat every 0 ms"),
        (assignment(1, [1]), "outside of a session"),
        (accepted([1]), "outside of a session"),
    ] {
        let mut bench = Bench::new(1, None);
        bench.on(Event::Wake);
        bench.on(Event::LinkUp);
        assert_eq!(bench.on(event), ["disconnect"]);
        assert!(bench.logs[0].starts_with("WARN ") && bench.logs[0].contains(sentence), "{:?}", bench.logs);
    }
}

#[test]
fn an_endless_outage_drops_the_oldest_results_with_one_warning() {
    let mut bench = Bench::open(1);
    let total = PENDING_RESULTS_MAX as u64 + 3;
    bench.on(assignment(1, 0..total));
    bench.on(down());
    bench.logs.clear();
    (0..total).for_each(|_| assert!(bench.on(computed(0)).is_empty()));
    assert_eq!(bench.logs.len(), 1);
    assert!(bench.logs[0].starts_with("WARN dropping the oldest results: 65536 wait"), "{:?}", bench.logs);
    bench.wait_ms();
    let offers = bench.enter().join(" ");
    assert!(offers.starts_with("3@0 4@0 ") && offers.ends_with(&format!(" {}@0", total - 1)));
}
