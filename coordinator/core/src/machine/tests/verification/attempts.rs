//! Retries: a replica that was void, and a task that fails where two identities must agree.

use std::{collections::BTreeSet, sync::Arc};

use super::*;

/// The run's thread voids a replica and is requested to open it before the core knows that it is void. The core restarts the
/// replica and drops the tasks planned in the meantime, so they are planned again for the next attempt.
#[test]
fn a_void_replica_is_planned_for_the_current_attempt() {
    let mut replicas = Replicas::new(registry(), story::prepared(SMALL), Draw::default(), Vec::new());
    let replica = ReplicaKey { arm: 0, index: 0 };
    let planned = |replicas: &mut Replicas, attempt| {
        replicas
            .run(Job::Open { replica, attempt })
            .into_iter()
            .map(|report| match report {
                Report::Planned { attempt, round, tasks, .. } => (attempt, round, tasks),
                other => panic!("{other:?}"),
            })
            .collect::<Vec<_>>()
    };
    let first = planned(&mut replicas, 0);
    let holder = Some(Holder { id: "liar".into(), trusted: false });
    for PlannedTask { index, work, encoded } in first.into_iter().flat_map(|(.., tasks)| tasks) {
        let from = Sender { session: SessionId(1), worker: "w".into(), asked: true, holder: holder.clone() };
        let Outcome::Output(output) = honest(&encoded) else { unreachable!("an honest outcome is an output") };
        let (task, worth) = (TaskId(1), Worth::Believed);
        replicas.run(Job::Take(vec![ReceivedOutput {
            task,
            from,
            replica,
            round: 0,
            index,
            work,
            encoded,
            output,
            worth,
        }]));
    }
    let liar: Arc<str> = "liar".into();
    let convicted = BTreeSet::from([Arc::clone(&liar)]);
    let voided = replicas.run(Job::Void { identity: liar, convicted, vouchers: 1 });
    assert!(matches!(voided.as_slice(), [Report::Voided { since: 0, .. }]), "{voided:?}");
    let kept = |planned: Vec<(u32, u64, Vec<PlannedTask>)>| -> Vec<(u32, u64, Vec<usize>)> {
        let kept = |(attempt, round, tasks): (u32, u64, Vec<PlannedTask>)| {
            (attempt, round, tasks.into_iter().map(|task| task.index).collect())
        };
        planned.into_iter().map(kept).collect()
    };
    assert_eq!(kept(planned(&mut replicas, 0)), [(0, 0, vec![0, 1, 2, 3])]);
    assert_eq!(kept(planned(&mut replicas, 1)), [(1, 0, vec![0, 1, 2, 3])], "the core has restarted it");
    assert!(planned(&mut replicas, 1).is_empty(), "the core knows these tasks");
}

#[test]
fn plans_for_an_earlier_attempt_are_dropped() {
    let mut story = Story::begin(singly());
    story.submit_at(Level::Sampled { millionths: 1 }, "r", SMALL).unwrap();
    let (id, run) = story.core.work.runs.iter().next().unwrap();
    let (thread, replica) = (run.thread().unwrap(), ReplicaKey { arm: 0, index: 0 });
    let tasks = |story: &Story| story.core.work.tasks.ready().get(&id).map_or(0, std::collections::BTreeSet::len);
    for (attempt, expected) in [(1, 4), (0, 8)] {
        let mut replicas = Replicas::new(registry(), story::prepared(SMALL), Draw::default(), Vec::new());
        let reports = replicas.run(Job::Open { replica, attempt });
        story.tell(Event::Done { thread, reports, took_us: 0 });
        assert_eq!(tasks(&story), expected, "attempt {attempt}");
    }
}

/// Two identities are too few to fail a run, but their workers must not retry a task forever.
#[test]
fn a_quorum_run_fails_only_with_a_third_failing_identity() {
    let mut story = Story::begin(singly());
    story.submit_at(Level::Quorum, "r", &SMALL.replace("tasks = 4", "tasks = 1")).unwrap();
    story.greet_as(1, "one", false);
    story.greet_as(2, "two", false);
    work(&mut story, &[(1, panicking), (2, panicking)]);
    let failures = story.figures().tally.failures;
    assert!((3..10).contains(&failures), "{failures}");
    let run = story.run("r");
    assert_eq!(run.state(), RunState::Running);
    assert!(run.message.contains("workers of three identities"), "{}", run.message);
    story.greet_as(3, "three", false);
    work(&mut story, &[(1, panicking), (2, panicking), (3, panicking)]);
    let run = story.run("r");
    assert!(run.state() == RunState::Failed && run.message.contains("failed 3 times"), "{}", run.message);
}

/// The same holds for a task that does not end.
#[test]
fn an_endless_task_fails_its_run_only_with_a_third_identity() {
    let mut story = Story::begin(Settings { deadline_ms_unknown: 1000, ..singly() });
    story.submit_at(Level::Quorum, "r", &SMALL.replace("tasks = 4", "tasks = 1")).unwrap();
    let (mut sessions, mut last) = ([0; 3], 0);
    let mut hang = |story: &mut Story, ids: &[&str]| {
        for _ in 0..1000 {
            for (session, id) in sessions.iter_mut().zip(ids) {
                if *session == 0 || story.closed.contains_key(session) {
                    last += 1;
                    *session = last;
                    story.greet_as(last, id, false);
                }
                story.say(*session, heartbeat());
            }
            story.wait(500);
        }
    };
    hang(&mut story, &["one", "two"]);
    assert_eq!(story.run("r").state(), RunState::Running);
    hang(&mut story, &["one", "two", "three"]);
    let run = story.run("r");
    assert!(
        run.state() == RunState::Failed && run.message.contains("failed to end in time 3 times"),
        "{}",
        run.message
    );
}

/// Many suspects that no worker may get must not hide one that a worker may get.
#[test]
fn suspects_that_no_worker_may_take_do_not_block_others() {
    let mut story = Story::begin(singly());
    let many = SMALL.replace("tasks = 4", "tasks = 200").replace("rounds = 2", "rounds = 1");
    for seed in 0..12 {
        let config = many.replace("replicas = 1", &format!("replicas = 1\nseed = {seed}"));
        story.submit_at(Level::Quorum, &format!("q{seed}"), &config).unwrap();
    }
    story.greet_as(1, "one", false);
    story.greet_as(2, "two", false);
    let fail_often = |story: &mut Story| {
        for _ in 0..40 {
            (1..=2).for_each(|session| while story.answer(session, panicking) > 0 {});
            story.wait(500);
            (1..=2).for_each(|session| story.say(session, heartbeat()));
        }
    };
    fail_often(&mut story);
    let suspects = story.core.work.tasks.suspects().len();
    assert!(suspects > 64, "{suspects}");
    story.submit("r", &SMALL.replace("tasks = 4", "tasks = 1")).unwrap();
    fail_often(&mut story);
    assert_eq!(story.run("r").state(), RunState::Failed, "the task was tried three times");
    assert!((0..12).all(|seed| story.run(&format!("q{seed}")).state() == RunState::Running));
}

/// A certificate expires while a long task is computed, even twice. The same process of the same identity may still answer
/// the task it was assigned, once; no other identity may.
#[test]
fn an_output_for_an_expired_session_counts() {
    let mut story = Story::begin(singly());
    story.submit_at(Level::Verified, "r", SMALL).unwrap();
    let greet = |story: &mut Story, session: u64, id: &str| {
        let holder = Some(Holder { id: id.into(), trusted: true });
        let hello = v1::Hello { process: 7, ..Story::hello(session, 1) };
        story.tell(Event::Hello { session: SessionId(session), address: "10.0.0.1".into(), holder, hello });
    };
    greet(&mut story, 1, "one");
    let mine = story.assigned.get_mut(&1).unwrap().remove(0);
    for session in [1, 2] {
        story.tell(Event::Expired { session: SessionId(session) });
        greet(&mut story, session + 1, "one");
    }
    greet(&mut story, 4, "other");
    let answer = |story: &mut Story, session| {
        let results = vec![result_of(&mine.tasks[0], honest(&mine.tasks[0]), 0); 2];
        story.say(session, from_worker::Message::Outputs(v1::Outputs { results }));
        story.run("r").tasks_done
    };
    assert_eq!([answer(&mut story, 4), answer(&mut story, 3)], [0, 1]);
    work(&mut story, &[(3, honest), (4, honest)]);
    assert_eq!(story.run("r").digest, expected_digest(SMALL));
    assert!(story.convicted.is_empty() && story.run("r").doubts.is_empty());
}
