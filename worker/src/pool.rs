//! The slots: one OS thread each, which computes its tasks in order and survives panics in tasks.

use std::{
    any::Any,
    cell::RefCell,
    io,
    panic::{self, AssertUnwindSafe},
    sync::{
        Once,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::Instant,
};

use evoxo_common::{
    experiment::Registry,
    task::{Encoded, Programs},
};
use evoxo_proto::v1::task_result::Outcome;
use tokio::sync::mpsc::UnboundedSender;

use crate::core::Event;

/// The function with which a slot computes: an encoded task in, an outcome out, and whether the task was stopped because it
/// took too long.
pub(crate) type Compute = Box<dyn FnMut(&Encoded) -> (Outcome, bool) + Send>;

/// The threads. When the pool is dropped, each ends after its current task.
pub(crate) struct Pool {
    slots: Vec<Sender<Vec<Encoded>>>,
}

impl Pool {
    /// Starts the threads. `compute` makes the function for each of them. Each task's [`Event::Computed`] goes to `computed`.
    ///
    /// # Errors
    /// If the system denies more threads.
    pub(crate) fn new(
        slots: usize,
        compute: impl Fn() -> Compute,
        computed: &UnboundedSender<Event>,
    ) -> io::Result<Self> {
        keep_panics_quiet();
        let start = |slot| {
            let (sender, assignments) = channel();
            let (compute, computed) = (compute(), computed.clone());
            thread::Builder::new()
                .name(format!("slot-{slot}"))
                .spawn(move || serve_slot(slot, compute, &assignments, &computed))
                .map(|_| sender)
        };
        Ok(Self { slots: (0..slots).map(start).collect::<io::Result<_>>()? })
    }

    /// Gives a free slot its next tasks.
    pub(crate) fn start(&self, slot: usize, tasks: Vec<Encoded>) {
        self.slots[slot].send(tasks).expect("a slot's thread survives its tasks and ends only with the pool");
    }
}

fn serve_slot(
    slot: usize,
    mut compute: Compute,
    assignments: &Receiver<Vec<Encoded>>,
    computed: &UnboundedSender<Event>,
) {
    LAST_PANIC.set(Some(String::new()));
    for task in assignments.iter().flatten() {
        let mut timed_out = false;
        let (outcome, elapsed_us) = compute_caught(|| {
            let computed = compute(&task);
            timed_out = computed.1;
            computed.0
        });
        if computed.send(Event::Computed { slot, outcome, elapsed_us, timed_out }).is_err() {
            return;
        }
    }
}

/// Computes a task on this thread with these programs, as a slot would. Returns the outcome and the time in microseconds. A
/// failure may be the text of a panic. A program that differs from the task's program is a failure too, because there is no
/// other worker to try.
pub fn compute_here(registry: &Registry, task: &Encoded, programs: &mut dyn Programs) -> (Outcome, u64) {
    keep_panics_quiet();
    let before = LAST_PANIC.replace(Some(String::new()));
    let computed = compute_caught(|| match registry.run(task, programs) {
        Ok(output) => Outcome::Output(output),
        Err(refusal) => Outcome::Failure(refusal.0),
    });
    LAST_PANIC.set(before);
    computed
}

fn compute_caught(compute: impl FnOnce() -> Outcome) -> (Outcome, u64) {
    let start = Instant::now();
    // A task gets its immutable bytes, and programs. If a panic interrupts an exchange with a program, the number of the
    // program's next answer reveals it.
    let outcome = match panic::catch_unwind(AssertUnwindSafe(compute)) {
        Ok(outcome) => outcome,
        Err(payload) => {
            // The destructor of the payload could panic again.
            std::mem::forget(payload);
            let message = LAST_PANIC.replace(Some(String::new())).unwrap_or_default();
            Outcome::Failure(format!("the task panicked {message}"))
        }
    };
    (outcome, u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX))
}

thread_local! {
    /// In a slot's thread, the text of its last panic; in other threads `None`.
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Makes panics in slots record their text instead of printing it. Other panics are printed as usual.
fn keep_panics_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let in_slot = LAST_PANIC.with_borrow_mut(|last| {
                last.as_mut().map(|last| {
                    let place = info.location().map_or_else(|| "somewhere".to_owned(), ToString::to_string);
                    *last = format!("at {place}: {}", panic_text(info.payload()));
                })
            });
            if in_slot.is_none() {
                print(info);
            }
        }));
    });
}

/// The text of a panic.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> &str {
    match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "without a message",
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Condvar, Mutex},
        time::Duration,
    };

    use bytes::Bytes;
    use evoxo_common::digest::Digest;

    use super::*;

    /// The number of slots that may continue.
    static GATE: (Mutex<u32>, Condvar) = (Mutex::new(0), Condvar::new());

    /// Does what the first byte of the task requests.
    fn perform(task: &Encoded) -> (Outcome, bool) {
        let task = &task.own;
        match task[0] {
            b'p' => panic!("cannot compute {} things", task.len()),
            b'b' => panic::panic_any(7_u8),
            b'r' => return (Outcome::Failure("no such work".into()), true),
            b's' => thread::sleep(Duration::from_millis(20)),
            b'g' => {
                let mut arrived = GATE.0.lock().unwrap();
                *arrived += 1;
                GATE.1.notify_all();
                let alone = |arrived: &mut u32| *arrived < 3;
                let waited = GATE.1.wait_timeout_while(arrived, Duration::from_secs(30), alone).unwrap();
                assert!(!waited.1.timed_out(), "the slots do not run at once");
            }
            _ => {}
        }
        (Outcome::Output(task.slice(1..)), false)
    }

    fn tasks(texts: &[&'static str]) -> Vec<Encoded> {
        texts
            .iter()
            .map(|text| Encoded { hash: Digest([0; 32]), own: Bytes::from_static(text.as_bytes()), shared: None })
            .collect()
    }

    fn collect(slots: usize, work: &[(usize, &[&'static str])]) -> Vec<(usize, Outcome, u64)> {
        let (sender, mut computed) = tokio::sync::mpsc::unbounded_channel();
        let pool = Pool::new(slots, || Box::new(perform), &sender).unwrap();
        work.iter().for_each(|(slot, texts)| pool.start(*slot, tasks(texts)));
        let total = work.iter().map(|(_, texts)| texts.len()).sum();
        (0..total)
            .map(|_| match computed.blocking_recv().unwrap() {
                Event::Computed { slot, outcome, elapsed_us, timed_out } => {
                    assert_eq!(timed_out, outcome == Outcome::Failure("no such work".into()));
                    (slot, outcome, elapsed_us)
                }
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn tasks_are_computed_in_order_and_timed() {
        let results = collect(1, &[(0, &["sone", "xtwo"]), (0, &["xthree"])]);
        let outputs: Vec<_> = results.iter().map(|(_, outcome, _)| outcome.clone()).collect();
        assert_eq!(outputs, ["one", "two", "three"].map(|text| Outcome::Output(Bytes::from_static(text.as_bytes()))));
        assert!((20_000..10_000_000).contains(&results[0].2), "{} us", results[0].2);
    }

    #[test]
    fn a_slot_survives_panics_and_reports_their_text() {
        let results = collect(1, &[(0, &["p12", "b", "r", "xgood"])]);
        let failure = |index: usize| match &results[index].1 {
            Outcome::Failure(sentence) => sentence.as_str(),
            output => panic!("{output:?}"),
        };
        assert!(failure(0).starts_with("the task panicked at worker/src/pool.rs:"), "{}", failure(0));
        assert!(failure(0).ends_with(": cannot compute 3 things"), "{}", failure(0));
        assert!(failure(1).ends_with(": without a message"), "{}", failure(1));
        assert_eq!(failure(2), "no such work");
        assert_eq!(results[3].1, Outcome::Output(Bytes::from_static(b"good")));
    }

    #[test]
    fn slots_run_at_once() {
        let mut slots: Vec<_> = collect(3, &[(0, &["g"]), (1, &["g"]), (2, &["g"])]).iter().map(|r| r.0).collect();
        slots.sort_unstable();
        assert_eq!(slots, [0, 1, 2]);
    }
}
