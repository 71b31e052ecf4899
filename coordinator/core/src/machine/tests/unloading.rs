//! Runs that leave memory, and requests that wait for them.

use super::*;
use crate::{
    replicas::{Job, ReplicaKey, Replicas, Report},
    trust::Draw,
};

const REPLICA: ReplicaKey = ReplicaKey { arm: 0, index: 0 };
const REQUEST: RequestId = RequestId(7);

fn answer(effects: Vec<Effect>) -> Option<Result<Response, Rejection>> {
    effects.into_iter().find_map(|effect| match effect {
        Effect::Respond { id: REQUEST, response } => Some(response),
        _ => None,
    })
}

/// A request for a copy waits for the run's thread while the run is deleted.
#[test]
fn fetching_a_replica_of_a_deleted_run_is_answered() {
    let mut story = Story::begin(singly());
    story.submit("r", CONFIG).unwrap();
    story.join(1, 1);
    let thread = story.core.work.runs.iter().find_map(|(_, run)| run.thread()).unwrap();
    let request = Request::Replica { name: "r".into(), replica: REPLICA };
    let effects = story.core.handle(story.now, Event::Request { id: REQUEST, request });
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Job { job: Job::Copy { .. }, .. })), "{effects:?}");
    story.ask(Request::Cancel { name: "r".into(), delete: true }).unwrap();
    let reports = vec![Report::Copy { request: REQUEST, replica: REPLICA, sealed: None }];
    let answer = answer(story.core.handle(story.now, Event::Done { thread, reports, took_us: 0 }));
    assert!(matches!(&answer, Some(Err(Rejection::Unavailable(why))) if why.contains("try again")), "{answer:?}");
}

/// After a panic the run's thread does nothing more, but it still answers requests.
#[test]
fn a_panicked_thread_still_answers_fetches() {
    let mut replicas = Replicas::new(registry(), story::prepared(CONFIG), Draw::default(), Vec::new());
    let nowhere = ReplicaKey { arm: 99, index: 0 };
    let reports = replicas.run(Job::Open { replica: nowhere, attempt: 0 });
    assert!(matches!(reports.as_slice(), [Report::Broken { .. }]), "{reports:?}");
    let reports = replicas.run(Job::Copy { request: REQUEST, replica: REPLICA });
    assert!(matches!(reports.as_slice(), [Report::Copy { request: REQUEST, sealed: None, .. }]), "{reports:?}");
    assert!(replicas.run(Job::Plan(REPLICA)).is_empty());
}

/// The store has lost the run and reports this to a reader while an order for the run is being written. If the order is
/// written anyway, the run exists again when the store is next loaded.
#[test]
fn orders_for_a_deleted_run_are_answered() {
    let [failed, fenced] = [StoreFault::Failed, StoreFault::Fenced].map(|fault| Err(fault("why".into())));
    for (outcome, in_doubt) in [(Ok(Stored::Written(None)), true), (failed, true), (fenced, false)] {
        let mut story = Story::begin(singly());
        story.submit("r", CONFIG).unwrap();
        let request = Request::Pause { name: "r".into() };
        let effects = story.core.handle(story.now, Event::Request { id: REQUEST, request });
        let order = effects.iter().find_map(|effect| match effect {
            Effect::Store { write, what: Write::Order { .. }, .. } => Some(*write),
            _ => None,
        });
        story.core.remove_run(story.core.work.runs.find("r").unwrap());
        let answer = answer(story.core.handle(story.now, Event::Stored { write: order.unwrap(), outcome, took_us: 0 }));
        match answer {
            Some(Err(Rejection::NotFound(_))) => assert!(!in_doubt),
            Some(Err(rejection)) => assert!(in_doubt && rejection.is_in_doubt(), "{rejection:?}"),
            answer => panic!("{answer:?}"),
        }
    }
}

/// A checkpoint takes nine seconds to write, and the run is cancelled during that time. The next checkpoint is written at
/// once, not three minutes later.
#[test]
fn a_run_cancelled_during_a_checkpoint_is_unloaded_at_once() {
    let mut story = Story::begin(Settings { checkpoint_interval_ms: 1000, ..singly() });
    story.submit("r", CONFIG).unwrap();
    story.join(1, 1);
    story.held = Some(Vec::new());
    (0..9).for_each(|_| _ = story.answer(1, honest));
    story.wait(1500);
    assert_eq!(story.held.as_ref().map(Vec::len), Some(1), "the checkpoint is being written");
    (0..8).for_each(|_| _ = story.answer(1, honest));
    story.wait(9000);
    story.ask(Request::Cancel { name: "r".into(), delete: false }).unwrap();
    assert!(story.core.work.budget.given() > 0, "the run waits for the checkpoint");
    story.held.take().into_iter().flatten().for_each(|stored| story.tell(stored));
    assert_eq!(story.core.work.budget.given(), 0);
    story.submit("r", CONFIG).unwrap();
    story.work_to_the_end(1);
    assert_eq!(story.run("r").digest, expected_digest(CONFIG));
}

/// A lane reports rounds while a checkpoint is sealed. Those after it has given its part are in another checkpoint, and the
/// others need none.
#[test]
fn rounds_reported_while_a_checkpoint_is_sealed_are_saved_once() {
    for is_after in [false, true] {
        let mut story = Story::begin(Settings { checkpoint_interval_ms: 1000, ..singly() });
        story.submit("r", CONFIG).unwrap();
        let thread = story.core.work.runs.iter().find_map(|(_, run)| run.thread()).unwrap();
        let report = |story: &mut Story, report| {
            story.core.handle(story.now, Event::Done { thread, reports: vec![report], took_us: 0 })
        };
        let absorbed = |index, given| {
            let replica = ReplicaKey { arm: 0, index };
            Report::Absorbed { replica, rounds: 1, metric: None, failure: None, given }
        };
        let due = |story: &mut Story| {
            story.now = story.now + 1000;
            let effects = story.core.handle(story.now, Event::Wake);
            effects.iter().find_map(|effect| match effect {
                Effect::Job { job: Job::Checkpoint { number }, .. } => Some(*number),
                _ => None,
            })
        };
        report(&mut story, absorbed(0, 0));
        let number = due(&mut story).expect("a checkpoint is due");
        report(&mut story, absorbed(1, if is_after { number } else { 0 }));
        let effects = report(&mut story, Report::Checkpoint { number, sealed: bytes::Bytes::new() });
        let write = effects.iter().find_map(|effect| match effect {
            Effect::Store { write, what: Write::Checkpoint { .. }, .. } => Some(*write),
            _ => None,
        });
        let stored = Event::Stored { write: write.unwrap(), outcome: Ok(Stored::Written(None)), took_us: 0 };
        story.core.handle(story.now, stored);
        assert_eq!(due(&mut story).is_some(), is_after);
    }
}
