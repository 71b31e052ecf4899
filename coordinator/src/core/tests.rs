//! Rules of the core that need a story of their own; what always holds is in the whole-cluster simulation.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use evoxo_common::{
    config::Config,
    local,
    replica::run_digest,
    task::{Encoded, Kept, Shared},
};
use evoxo_proto::{
    PROTOCOL,
    v1::{CloseKind, RunState, from_worker, task_result::Outcome, to_worker},
};

use super::*;

mod losses;

const CONFIG: &str =
    "experiment = \"dispatch\"\nreplicas = 2\n[settings]\nrounds = 3\ntasks = 4\npayload_bytes = 16\nreply_bytes = 8";

/// An assignment as a worker understands it.
#[derive(Clone, Debug, PartialEq)]
struct Assigned {
    id: u64,
    tasks: Vec<Encoded>,
}

/// A coordinator with everything it said, on a clock that stands still unless told.
struct Story {
    core: Coordinator,
    now: Millis,
    /// By session, the assignments it has.
    assigned: BTreeMap<u64, Vec<Assigned>>,
    /// By session, what it has of the bytes that tasks share.
    kept: BTreeMap<u64, Kept<Arc<Shared>>>,
    /// Bytes that tasks share, as they were sent.
    shared: Vec<Bytes>,
    closed: BTreeMap<u64, v1::Close>,
    writes: Vec<(String, Write)>,
    answers: Vec<Result<Answer, Rejection>>,
    /// The store answers with this.
    store: Result<(), StoreFault>,
    /// It takes so long, in milliseconds.
    store_ms: u64,
    stopped: bool,
}

impl Story {
    fn begin(settings: Settings) -> Self {
        Self {
            core: Coordinator::recover(settings, Vec::new()),
            now: Millis(0),
            assigned: BTreeMap::new(),
            kept: BTreeMap::new(),
            shared: Vec::new(),
            closed: BTreeMap::new(),
            writes: Vec::new(),
            answers: Vec::new(),
            store: Ok(()),
            store_ms: 0,
            stopped: false,
        }
    }

    fn tell(&mut self, event: Event) {
        for effect in self.core.handle(self.now, event) {
            match effect {
                Effect::Send { session, message } => match message.message.unwrap() {
                    to_worker::Message::Assignment(assignment) => {
                        self.shared.extend(assignment.shared.iter().cloned());
                        let id = assignment.id;
                        let tasks = self.kept.entry(session.0).or_default().unpack(assignment).unwrap();
                        self.assigned.entry(session.0).or_default().push(Assigned { id, tasks });
                    }
                    to_worker::Message::Close(close) => drop(self.closed.insert(session.0, close)),
                    _ => {}
                },
                Effect::Store { write, run, what } => {
                    self.writes.push((run, what));
                    let outcome = self.store.clone();
                    self.now = self.now + self.store_ms;
                    self.tell(Event::Stored { write, outcome });
                }
                Effect::Answer { answer, .. } => self.answers.push(answer),
                Effect::Stopped => self.stopped = true,
                Effect::End { session } => drop(self.assigned.remove(&session.0)),
                Effect::Changed { .. } | Effect::Log { .. } => {}
            }
        }
    }

    fn ask(&mut self, ask: Ask) -> Result<Answer, Rejection> {
        self.answers.clear();
        self.tell(Event::Ask { ticket: Ticket(1), ask });
        self.answers.pop().expect("every question is answered")
    }

    fn submit(&mut self, name: &str, config: &str) -> Result<Answer, Rejection> {
        self.ask(Ask::Submit { name: name.into(), config: config.into() })
    }

    fn run(&mut self, name: &str) -> v1::Run {
        match self.ask(Ask::Get { name: name.into() }) {
            Ok(Answer::Run(run)) => run,
            other => panic!("{other:?}"),
        }
    }

    fn say(&mut self, session: u64, message: from_worker::Message) {
        self.tell(Event::Message { session: SessionId(session), message: v1::FromWorker { message: Some(message) } });
    }

    fn join(&mut self, session: u64, slots: u32) {
        let hello = v1::Hello {
            protocol: PROTOCOL,
            slots,
            name: format!("w{session}"),
            signature: task::signature(),
            build: String::new(),
        };
        self.say(session, from_worker::Message::Hello(hello));
    }

    fn leave(&mut self, session: u64) {
        self.assigned.remove(&session);
        self.tell(Event::Left { session: SessionId(session) });
    }

    /// The session reports on all tasks of its first assignment.
    fn answer(&mut self, session: u64, outcome: impl Fn(&Encoded) -> Outcome) -> usize {
        let assignment = self.assigned.get_mut(&session).filter(|queue| !queue.is_empty()).map(|queue| queue.remove(0));
        let Some(assignment) = assignment else { return 0 };
        let results: Vec<v1::TaskResult> = assignment
            .tasks
            .iter()
            .map(|task| v1::TaskResult {
                hash: Bytes::copy_from_slice(&task.hash.0),
                outcome: Some(outcome(task)),
                elapsed_us: 1000,
                assignment: assignment.id,
            })
            .collect();
        let count = results.len();
        self.say(session, from_worker::Message::Outputs(v1::Outputs { results }));
        count
    }

    /// What the store has of a run.
    fn saved(&self, run: &str) -> SavedRun {
        let writes = self.writes.iter().filter(|(of, _)| of == run).map(|(_, write)| write);
        let objects: BTreeMap<String, Bytes> = writes
            .filter_map(|write| match write {
                Write::Order { bytes, .. } | Write::Checkpoint { bytes, .. } | Write::Finished { bytes, .. } => {
                    Some((crate::saved::object_name(write)?, bytes.clone()))
                }
                _ => None,
            })
            .collect();
        let names: Vec<String> = objects.keys().cloned().collect();
        crate::saved::interpret(run, &names, |name| Ok(objects[name].clone())).0.expect("there is an order")
    }

    fn work_to_the_end(&mut self, session: u64) {
        while self.answer(session, honest) > 0 {}
    }
}

fn honest(task: &Encoded) -> Outcome {
    Outcome::Output(task.run().unwrap())
}

fn panicking(_: &Encoded) -> Outcome {
    Outcome::Failure("it panicked".into())
}

fn expected_digest(config: &str) -> String {
    run_digest(&local::run(&Config::parse("t", config, &[]).unwrap()).unwrap()).to_string()
}

#[test]
fn one_worker_computes_a_run_to_the_expected_digest() {
    let mut story = Story::begin(Settings::default());
    story.join(1, 1);
    assert!(matches!(story.submit("r", CONFIG), Ok(Answer::Submitted { created: true, .. })));
    assert!(matches!(story.submit("r", CONFIG), Ok(Answer::Submitted { created: false, .. })), "twice is one run");
    story.work_to_the_end(1);
    let run = story.run("r");
    assert_eq!((run.state(), run.tasks_done, run.digest), (RunState::Finished, 24, expected_digest(CONFIG)));
    assert!(matches!(story.writes.last(), Some((_, Write::DropCheckpoints))));
}

#[test]
fn a_finished_run_is_extended_and_only_the_new_replicas_are_computed() {
    let mut story = Story::begin(Settings::default());
    story.join(1, 1);
    story.submit("r", CONFIG).unwrap();
    story.work_to_the_end(1);
    let more = CONFIG.replace("replicas = 2", "replicas = 5");
    assert!(matches!(story.submit("r", &more), Ok(Answer::Submitted { created: true, .. })));
    story.work_to_the_end(1);
    let run = story.run("r");
    assert_eq!((run.tasks_done, run.digest), (24 + 36, expected_digest(&more)));
    let other = CONFIG.replace("rounds = 3", "rounds = 4");
    assert!(matches!(story.submit("r", &other), Err(Rejection::Conflict(why)) if why.contains("other settings")));
}

#[test]
fn a_task_that_fails_three_times_is_poison_for_its_run_alone() {
    let mut story = Story::begin(Settings { batch: Batch::Tasks(1), ..Settings::default() });
    story.submit("bad", CONFIG).unwrap();
    story.submit("good", &CONFIG.replace("replicas = 2", "replicas = 2\nseed = 5")).unwrap();
    for session in 1..4 {
        story.join(session, 1);
    }
    let poison = story.assigned[&1][0].tasks[0].clone();
    let judge = |task: &Encoded| if *task == poison { panicking(task) } else { honest(task) };
    while (1..4).map(|session| story.answer(session, judge)).sum::<usize>() > 0 {}
    let (bad, good) = (story.run("bad"), story.run("good"));
    let (failed, whole) = if bad.state() == RunState::Failed { (bad, good) } else { (good, bad) };
    assert!(failed.message.contains("failed three times") && failed.message.contains("poison/"), "{}", failed.message);
    assert_eq!(whole.state(), RunState::Finished);
    let saved = story.writes.iter().find_map(|(run, write)| match write {
        Write::Poison { bytes, .. } => Some((run.clone(), bytes.clone())),
        _ => None,
    });
    assert_eq!(saved, Some((failed.name, poison.whole())));
}

#[test]
fn a_task_that_takes_three_workers_with_it_alone_is_poison() {
    let mut story = Story::begin(Settings::default());
    story.submit("r", CONFIG).unwrap();
    story.join(1, 4);
    let poison = story.assigned[&1][0].tasks[0].hash;
    // The first loss has witnesses; the next three are alone.
    story.leave(1);
    let mut session = 2;
    while story.run("r").state() == RunState::Running {
        assert!(session < 60, "no end");
        story.join(session, 4);
        let alone = story.assigned[&session].len() == 1 && story.assigned[&session][0].tasks.len() == 1;
        assert!(alone, "a suspect goes alone, to a worker that has nothing else");
        if story.assigned[&session][0].tasks[0].hash == poison {
            story.leave(session);
        } else {
            story.answer(session, honest);
            story.leave(session);
        }
        session += 1;
    }
    let run = story.run("r");
    assert_eq!(run.state(), RunState::Failed);
    assert!(run.message.contains("took three workers with it"), "{}", run.message);
}

#[test]
fn a_drain_never_counts() {
    let mut story = Story::begin(Settings::default());
    story.submit("r", CONFIG).unwrap();
    for session in 1..20 {
        story.join(session, 1);
        story.say(session, from_worker::Message::Drain(v1::Drain {}));
        story.leave(session);
    }
    story.join(20, 1);
    assert!(story.assigned[&20].len() > 1, "nothing is a suspect");
    story.work_to_the_end(20);
    assert_eq!(story.run("r").digest, expected_digest(CONFIG));
}

#[test]
fn a_worker_on_which_three_tasks_fail_is_set_aside() {
    let mut story = Story::begin(Settings { batch: Batch::Tasks(1), ..Settings::default() });
    story.submit("r", CONFIG).unwrap();
    story.join(1, 2);
    story.join(2, 2);
    while !story.closed.contains_key(&1) {
        assert!(story.answer(1, panicking) > 0, "it gets tasks until it is set aside");
        story.answer(2, honest);
    }
    assert_eq!(story.closed[&1].kind(), CloseKind::Retry);
    assert!(story.closed[&1].retry_after_ms >= 10_000);
    story.work_to_the_end(2);
    assert_eq!(story.run("r").digest, expected_digest(CONFIG));
}

#[test]
fn two_copies_that_differ_are_told() {
    let mut story = Story::begin(Settings { batch: Batch::Tasks(1), ..Settings::default() });
    story.submit("r", &CONFIG.replace("tasks = 4", "tasks = 1").replace("replicas = 2", "replicas = 1")).unwrap();
    story.join(1, 1);
    let slow = story.assigned[&1][0].clone();
    story.now = Millis(400_000);
    story.say(1, from_worker::Message::Beat(v1::Beat {}));
    story.join(2, 1);
    story.say(2, from_worker::Message::Beat(v1::Beat {}));
    assert!(story.assigned.get(&2).is_none_or(Vec::is_empty), "nothing is known yet of how long such a task takes");
    // Learn a duration, then let the next one be slow.
    story.answer(1, honest);
    let slow_two = story.assigned.values().flatten().find(|a| a.tasks[0].hash != slow.tasks[0].hash).unwrap().clone();
    let holder = *story.assigned.iter().find(|(_, queue)| queue.contains(&slow_two)).unwrap().0;
    let helper = 3 - holder;
    story.now = story.now + 1000;
    story.say(helper, from_worker::Message::Beat(v1::Beat {}));
    assert_eq!(story.assigned[&helper][0].tasks[0].hash, slow_two.tasks[0].hash, "a second copy");
    story.answer(helper, honest);
    story.answer(holder, |_| Outcome::Output(Bytes::from_static(&[10, 10, 10, 8, 1, 2, 3, 4, 5, 6, 7, 8])));
    let notices = story.run("r").notices;
    assert!(notices.iter().any(|notice| notice.contains("not deterministic: task ")), "{notices:?}");
}

#[test]
fn strangers_are_refused_with_the_reason() {
    let mut story = Story::begin(Settings::default());
    let hello = |change: &dyn Fn(&mut v1::Hello)| {
        let mut hello = v1::Hello {
            protocol: PROTOCOL,
            slots: 1,
            name: "w".into(),
            signature: task::signature(),
            build: "b".into(),
        };
        change(&mut hello);
        from_worker::Message::Hello(hello)
    };
    type Change<'a> = &'a dyn Fn(&mut v1::Hello);
    let refused: [(Change<'_>, &str); 5] = [
        (&|hello| hello.protocol = 9, "protocol 9"),
        (&|hello| hello.slots = 0, "0 slots"),
        (&|hello| hello.slots = 5000, "5000 slots"),
        (
            &|hello| hello.signature[1].sha256 = Bytes::from_static(&[0; 32]),
            "computes other results for tasks of kind learn",
        ),
        (&|hello| hello.signature.truncate(1), "does not know tasks of kind learn"),
    ];
    for (session, (change, reason)) in refused.iter().enumerate() {
        story.say(session as u64, hello(change));
        let close = &story.closed[&(session as u64)];
        assert_eq!(close.kind(), CloseKind::Refused);
        assert!(close.reason.contains(reason), "{} does not say {reason}", close.reason);
    }
    story.say(77, from_worker::Message::Beat(v1::Beat {}));
    assert!(story.closed[&77].reason.contains("begins with Hello"));
    story.join(78, 1);
    story.join(78, 1);
    assert_eq!(story.closed[&78].kind(), CloseKind::Refused, "a second Hello makes no sense");
}

#[test]
fn a_storm_of_workers_is_admitted_in_small_numbers() {
    let mut story = Story::begin(Settings { admissions_per_second: 10, ..Settings::default() });
    (0..50).for_each(|session| story.join(session, 1));
    assert_eq!(story.closed.len(), 40);
    assert!(story.closed.values().all(|close| close.kind() == CloseKind::Retry && close.retry_after_ms > 0));
    story.now = Millis(1000);
    (100..110).for_each(|session| story.join(session, 1));
    assert_eq!(story.closed.len(), 40);
}

#[test]
fn a_store_that_fails_is_told_and_tried_again() {
    let mut story = Story::begin(Settings { checkpoint_interval_ms: 0, ..Settings::default() });
    story.store = Err(StoreFault::Failed("the disk is full".into()));
    assert!(matches!(story.submit("r", CONFIG), Err(Rejection::Conflict(why)) if why == "the disk is full"));
    story.store = Ok(());
    story.submit("r", CONFIG).unwrap();
    story.join(1, 1);
    story.store = Err(StoreFault::Failed("the disk is full".into()));
    for _ in 0..8 {
        story.now = story.now + 2000;
        story.answer(1, honest);
        story.say(1, from_worker::Message::Beat(v1::Beat {}));
    }
    let run = story.run("r");
    assert_eq!(run.state(), RunState::Held);
    assert!(run.message.contains("the disk is full") && run.message.contains("goes on when"), "{}", run.message);
    story.store = Ok(());
    for _ in 0..40 {
        story.now = story.now + 2000;
        story.say(1, from_worker::Message::Beat(v1::Beat {}));
        story.answer(1, honest);
    }
    assert_eq!(story.run("r").digest, expected_digest(CONFIG));
}

#[test]
fn who_is_fenced_leaves_the_run_alone() {
    let mut story = Story::begin(Settings { checkpoint_interval_ms: 0, ..Settings::default() });
    story.submit("r", CONFIG).unwrap();
    story.join(1, 1);
    story.store = Err(StoreFault::Fenced("another coordinator has it".into()));
    while story.answer(1, honest) > 0 {
        story.now = story.now + 2000;
    }
    let run = story.run("r");
    assert_eq!((run.state(), run.message.as_str()), (RunState::Held, "another coordinator has it"));
    let writes = story.writes.len();
    story.now = story.now + 100_000;
    story.tell(Event::Wake);
    assert_eq!(story.writes.len(), writes, "nothing more is written");
}

#[test]
fn stopping_saves_and_a_recovery_goes_on_from_there() {
    let mut story = Story::begin(Settings { batch: Batch::Tasks(1), ..Settings::default() });
    story.submit("r", CONFIG).unwrap();
    story.join(1, 1);
    for _ in 0..9 {
        story.answer(1, honest);
    }
    story.tell(Event::Stop);
    assert!(story.stopped);
    assert_eq!(story.closed[&1].kind(), CloseKind::Retry);
    let saved = story.saved("r");
    let mut next = Story::begin(Settings::default());
    next.core = Coordinator::recover(Settings::default(), vec![saved.clone()]);
    assert_eq!(next.run("r").rounds_done, 2, "two rounds of four tasks were absorbed");
    next.join(1, 1);
    next.work_to_the_end(1);
    assert_eq!(next.run("r").digest, expected_digest(CONFIG));

    let mut foreign = saved;
    foreign.checkpoint.as_mut().unwrap().signature = Bytes::from_static(&[1; 32]);
    next.core = Coordinator::recover(Settings::default(), vec![foreign]);
    let run = next.run("r");
    assert_eq!(run.state(), RunState::Held);
    assert!(run.message.contains("computes other results"), "{}", run.message);
}

#[test]
fn people_pause_resume_cancel_and_delete() {
    let mut story = Story::begin(Settings { batch: Batch::Tasks(1), ..Settings::default() });
    story.submit("r", CONFIG).unwrap();
    let name = || "r".to_owned();
    assert!(matches!(story.ask(Ask::Pause { name: name() }), Ok(Answer::Run(run)) if run.state() == RunState::Paused));
    story.join(1, 1);
    assert!(story.assigned.get(&1).is_none_or(Vec::is_empty), "a paused run hands nothing out");
    story.ask(Ask::Resume { name: name() }).unwrap();
    assert!(!story.assigned[&1].is_empty());
    story.answer(1, honest);
    assert!(
        matches!(story.ask(Ask::Cancel { name: name(), delete: false }), Ok(Answer::Run(run)) if run.state() == RunState::Cancelled)
    );
    story.answer(1, honest);
    assert!(matches!(story.ask(Ask::Resume { name: name() }), Err(Rejection::Conflict(_))));
    assert!(matches!(story.submit("r", CONFIG), Ok(Answer::Submitted { created: true, .. })), "submitting goes on");
    story.work_to_the_end(1);
    assert_eq!(story.run("r").digest, expected_digest(CONFIG));
    story.ask(Ask::Cancel { name: name(), delete: true }).unwrap();
    assert!(matches!(story.ask(Ask::Get { name: name() }), Err(Rejection::NotFound(_))));
    assert!(story.writes.iter().any(|(_, write)| *write == Write::Delete));
}

#[test]
fn old_runs_are_deleted_when_only_so_many_are_kept() {
    let mut story = Story::begin(Settings { finished_runs_kept: Some(2), ..Settings::default() });
    story.join(1, 1);
    for name in ["a", "b", "c"] {
        story.submit(name, CONFIG).unwrap();
        story.work_to_the_end(1);
    }
    let Ok(Answer::Runs(runs)) = story.ask(Ask::List) else { panic!("a list") };
    assert_eq!(runs.iter().map(|run| run.name.as_str()).collect::<Vec<_>>(), ["b", "c"]);
}

#[test]
fn runs_share_the_workers_fairly() {
    let mut story = Story::begin(Settings { batch: Batch::Tasks(1), ..Settings::default() });
    story.submit("big", &CONFIG.replace("tasks = 4", "tasks = 1000")).unwrap();
    story.submit("small", CONFIG).unwrap();
    story.join(1, 1);
    for _ in 0..60 {
        story.answer(1, honest);
    }
    assert_eq!(story.run("small").state(), RunState::Finished, "it does not wait for the big one");
}
