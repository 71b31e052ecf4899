//! Workers that are repeatedly lost, and tasks that kill their workers.

use super::*;
use story::result_of;

/// Whether a session is computing the killer task.
fn has(story: &Story, session: u64, killer: evoxo_common::digest::Digest) -> bool {
    story.tasks_of(session).iter().take(1).flatten().any(|hash| *hash == killer)
}

/// Workers with different names that are restarted when the killer task kills them. Returns how many it killed, and the run.
fn victims_of_a_killer(workers: u64, tasks: u32) -> (u64, v1::Run) {
    let mut story = Story::begin(Settings::default());
    story.submit("r", &ONE_ROUND.replace("tasks = 40", &format!("tasks = {tasks}"))).unwrap();
    let mut names: Vec<u64> = (1..=workers).collect();
    names.iter().for_each(|session| story.join(*session, 1));
    let killer = story.tasks_of(1)[0][0];
    let (mut next, mut killed) = (workers, 0);
    for _ in 0..4000 {
        for session in names.clone() {
            if has(&story, session, killer) {
                story.leave(session);
                killed += 1;
                names.retain(|other| *other != session);
                next += 1;
                // The same host, restarted: another process and another session.
                let name = format!("w{}", (session - 1) % workers + 1);
                story.greet(next, v1::Hello { name, ..Story::hello(next, 1) });
                if !story.closed.contains_key(&next) {
                    names.push(next);
                }
            } else {
                story.answer(session, honest);
            }
        }
        story.wait(200);
        names.clone().iter().for_each(|session| story.say(*session, heartbeat()));
        if story.views["r"].state() == RunState::Failed {
            break;
        }
        if names.is_empty() {
            // All of them had to wait, and return later.
            story.wait(300_000);
            next += 1;
            story.join(next, 1);
            names.push(next);
        }
    }
    (killed, story.run("r"))
}

#[test]
fn a_task_that_kills_its_workers_is_found_after_few_losses() {
    // The worker that exposes the task, and three reliable ones.
    let (killed, run) = victims_of_a_killer(20, 400);
    assert_eq!((killed, run.state()), (4, RunState::Failed));
    assert!(run.message.contains("was the only task of 3 reliable workers"), "{}", run.message);
    // If no worker ever computes anything else, ten losses are needed.
    let (killed, run) = victims_of_a_killer(1, 1);
    assert_eq!((killed, run.state()), (11, RunState::Failed));
    assert!(run.message.contains("was the only task of its worker 10 times"), "{}", run.message);
    let (killed, _) = victims_of_a_killer(2, 40);
    assert!(killed <= 11, "{killed} victims");
}

/// An earlier build failed such a run after nine losses. One of three workers is killed every two seconds, for ten
/// minutes.
#[test]
fn repeated_losses_of_one_worker_fail_no_run() {
    let mut story = Story::begin(Settings::default());
    story.submit("r", &CONFIG.replace("rounds = 3", "rounds = 100000").replace("tasks = 4", "tasks = 30")).unwrap();
    (1..=3).for_each(|session| story.join(session, 1));
    let (mut flapping, mut tries, mut refused) = (Some(3), 0, 0);
    for number in 0..300 {
        for _ in 0..20 {
            (1..=2).for_each(|session| _ = story.answer(session, honest));
            story.wait(100);
            (1..=2).for_each(|session| story.say(session, heartbeat()));
        }
        if let Some(session) = flapping.take() {
            story.leave(session);
        }
        let session = 100 + number;
        story.greet(session, v1::Hello { name: "w3".into(), ..Story::hello(session, 1) });
        tries += 1;
        match story.closed.get(&session) {
            Some(close) => {
                refused += 1;
                assert!(close.kind() == CloseKind::Retry && close.retry_after_ms >= 1, "{close:?}");
                assert!(close.reason.contains("must wait"), "{}", close.reason);
            }
            None => flapping = Some(session),
        }
    }
    assert_eq!(story.run("r").state(), RunState::Running, "{}", story.run("r").message);
    assert!(refused > tries * 9 / 10, "the worker was rejected {refused} of {tries} times");
    assert!(story.run("r").tasks_done > 10_000);
}

/// Every worker is lost every two seconds, but its tasks take much less: it may join again at once.
#[test]
fn workers_that_compute_before_they_are_lost_are_not_set_aside() {
    let mut story = Story::begin(Settings::default());
    story.submit("r", &CONFIG.replace("rounds = 3", "rounds = 100000").replace("tasks = 4", "tasks = 30")).unwrap();
    for life in 0..100 {
        let sessions: Vec<u64> = (1..=3).map(|worker| 10 * life + worker).collect();
        for session in &sessions {
            let name = format!("w{}", session % 10);
            story.greet(*session, v1::Hello { name, ..Story::hello(*session, 1) });
            assert!(!story.closed.contains_key(session), "in life {life}: {:?}", story.closed);
        }
        for _ in 0..20 {
            sessions.iter().for_each(|session| _ = story.answer(*session, honest));
            story.wait(100);
            sessions.iter().for_each(|session| story.say(*session, heartbeat()));
        }
        sessions.iter().for_each(|session| story.leave(*session));
    }
    assert_eq!(story.run("r").state(), RunState::Running, "{}", story.run("r").message);
    assert!(story.run("r").tasks_done > 10_000, "{:?}", story.run("r").tasks_done);
}

/// Workers that send a Hello and vanish, each under another name.
#[test]
fn workers_that_join_and_vanish_fail_no_run() {
    let mut story = Story::begin(Settings::default());
    story.submit("r", CONFIG).unwrap();
    for session in 1..500 {
        story.join(session, 4);
        story.leave(session);
        story.wait(10);
    }
    assert_eq!(story.run("r").state(), RunState::Running);
    story.wait(5000);
    story.join(1000, 1);
    for _ in 0..99 {
        story.work_to_the_end(1000);
        story.wait(1000);
        story.say(1000, heartbeat());
    }
    assert_eq!(story.run("r").digest, expected_digest(CONFIG));
}

/// The good workers are away for half a minute, while others come and go ten times a second, each from its own address.
#[test]
fn flapping_workers_fail_no_run_while_the_good_ones_are_away() {
    let mut story = Story::begin(singly());
    story.submit("r", ONE_ROUND).unwrap();
    for session in 1..=300 {
        story.greet_at(session, &format!("10.0.{}.{}", session / 256, session % 256), Story::hello(session, 1));
        assert!(!story.closed.contains_key(&session), "{:?}", story.closed);
        story.wait(100);
        story.leave(session);
    }
    assert_eq!(story.run("r").state(), RunState::Running, "{}", story.run("r").message);
    story.greet_at(1000, "10.1.0.1", Story::hello(1000, 1));
    for _ in 0..99 {
        story.work_to_the_end(1000);
        story.wait(1000);
        story.say(1000, heartbeat());
    }
    assert_eq!(story.run("r").digest, expected_digest(ONE_ROUND));
}

/// A host may be gone for 30 s before its session ends, and it looks idle during that time. It must not get a suspect
/// instead of the worker that computes.
#[test]
fn a_silent_worker_does_not_become_proven() {
    let mut story = Story::begin(singly());
    story.task_us = 800_000;
    story.submit("r", ONE_ROUND).unwrap();
    (1..=2).for_each(|session| story.join(session, 1));
    story.wait(800);
    (1..=2).for_each(|session| _ = story.answer(session, honest));
    story.leave(1);
    // Worker 2 answers all tasks except the suspect, and then falls silent.
    story.work_to_the_end(2);
    story.join(3, 1);
    while !story.closed.contains_key(&2) {
        assert!(story.tasks_of(2).is_empty(), "after {:?}", story.now);
        story.wait(1000);
        story.say(3, heartbeat());
    }
    story.wait(1000);
    story.work_to_the_end(3);
    assert_eq!(story.run("r").digest, expected_digest(ONE_ROUND));
}

/// A reset connection does not mean that the process died: the process reconnects at once.
#[test]
fn a_process_that_reconnects_clears_its_tasks() {
    let mut story = Story::begin(Settings::default());
    story.submit("r", CONFIG).unwrap();
    for session in 1..100 {
        story.greet(session, v1::Hello { process: 7, name: "w".into(), ..Story::hello(session, 2) });
        assert!(!story.closed.contains_key(&session), "the worker is not set aside");
        assert!(story.tasks_of(session).len() == 2, "no task is a suspect");
        story.leave(session);
    }
    // This happens before the coordinator notices that the old connection has ended.
    story.greet(100, v1::Hello { process: 7, ..Story::hello(100, 1) });
    story.greet(101, v1::Hello { process: 7, ..Story::hello(101, 1) });
    assert!(story.closed[&100].reason.contains("reconnected on another connection"));
    story.work_to_the_end(101);
    assert_eq!(story.run("r").digest, expected_digest(CONFIG));
    assert_eq!(story.logged(Topic::RunFailed), 0);
}

#[test]
fn a_drain_is_not_evidence() {
    let mut story = Story::begin(Settings::default());
    story.submit("r", CONFIG).unwrap();
    for session in 1..20 {
        story.join(session, 1);
        story.say(session, from_worker::Message::Drain(v1::Drain {}));
        story.leave(session);
    }
    story.join(20, 2);
    assert!(story.assigned[&20].len() > 1, "no task is a suspect");
    story.work_to_the_end(20);
    assert_eq!(story.run("r").digest, expected_digest(CONFIG));
}

#[test]
fn a_task_that_fails_three_times_fails_only_its_run() {
    let mut story = Story::begin(singly());
    story.submit("bad", CONFIG).unwrap();
    story.submit("good", &CONFIG.replace("replicas = 2", "replicas = 2\nseed = 5")).unwrap();
    for session in 1..4 {
        story.join(session, 1);
    }
    let poison = story.assigned[&1][0].tasks[0].clone();
    let judge = |task: &Encoded| if *task == poison { panicking(task) } else { honest(task) };
    for _ in 0..99 {
        (1..4).for_each(|session| _ = story.answer(session, judge));
        story.wait(1000);
        (1..4).for_each(|session| story.say(session, heartbeat()));
    }
    let (bad, good) = (story.run("bad"), story.run("good"));
    let (failed, whole) = if bad.state() == RunState::Failed { (bad, good) } else { (good, bad) };
    assert!(failed.message.contains("failed 3 times") && failed.message.contains("poison/"), "{}", failed.message);
    assert_eq!(whole.state(), RunState::Finished);
    let saved = story.writes.iter().find_map(|(run, write)| match write {
        Write::Poison { bytes, .. } => Some((run.clone(), bytes.clone())),
        _ => None,
    });
    assert_eq!(saved, Some((failed.name, poison.whole())));
}

#[test]
fn an_unassigned_failure_is_ignored() {
    let mut story = Story::begin(singly());
    story.submit("r", CONFIG).unwrap();
    (1..=2).for_each(|session| story.join(session, 1));
    let mine = story.assigned[&1][0].clone();
    let forged = result_of(&mine.tasks[0], panicking(&mine.tasks[0]), mine.id);
    // Ten failures in one message, first from a worker that was never assigned the task, then from the one that was.
    for session in [2, 1] {
        let results = vec![forged.clone(); 10];
        story.say(session, from_worker::Message::Outputs(v1::Outputs { results }));
        assert_eq!(story.run("r").state(), RunState::Running, "session {session}");
    }
    for _ in 0..99 {
        (1..=2).for_each(|session| story.work_to_the_end(session));
        story.wait(1000);
        (1..=2).for_each(|session| story.say(session, heartbeat()));
    }
    assert_eq!(story.run("r").digest, expected_digest(CONFIG));
}

#[test]
fn a_worker_on_which_three_tasks_fail_is_set_aside() {
    let mut story = Story::begin(singly());
    story.submit("r", CONFIG).unwrap();
    story.join(1, 2);
    story.join(2, 2);
    for _ in 0..20 {
        story.answer(1, panicking);
        story.answer(2, honest);
        story.wait(1000);
        story.say(2, heartbeat());
        if story.closed.contains_key(&1) {
            break;
        }
        story.say(1, heartbeat());
    }
    assert_eq!(story.closed[&1].kind(), CloseKind::Retry);
    assert!(story.closed[&1].retry_after_ms >= 10_000, "{:?}", story.closed[&1]);
    for _ in 0..20 {
        story.work_to_the_end(2);
        story.wait(1000);
        story.say(2, heartbeat());
    }
    assert_eq!(story.run("r").digest, expected_digest(CONFIG));
}

/// With a reported duration of 2^64 - 1 microseconds, deadlines would last for days.
#[test]
fn a_reported_duration_is_limited_by_our_clock() {
    let mut story = Story::begin(singly());
    story.submit("r", CONFIG).unwrap();
    story.join(1, 1);
    let mine = story.assigned.get_mut(&1).unwrap().remove(0);
    let result = v1::TaskResult { elapsed_us: u64::MAX, ..result_of(&mine.tasks[0], honest(&mine.tasks[0]), mine.id) };
    story.wait(500);
    story.say(1, from_worker::Message::Outputs(v1::Outputs { results: vec![result] }));
    let (_, run) = story.core.work.runs.iter().next().unwrap();
    assert!(run.expected.us(0, "echo").is_some_and(|us| us <= 501_000), "{:?}", run.expected.us(0, "echo"));
}

/// A session of a day is never ten times as long as a task of three hours. So a suspect waits as long as the task takes, and
/// then goes to a worker that has not proved itself for it.
#[test]
fn a_suspect_long_task_waits_no_longer_than_it_takes() {
    let mut story = Story::begin(singly());
    story.task_us = 600_000_000;
    let config = ONE_ROUND.replace("tasks = 40", "tasks = 6");
    story.submit("r", &config).unwrap();
    let wait = |story: &mut Story, seconds: u64, sessions: std::ops::RangeInclusive<u64>| {
        for _ in 0..seconds / 5 {
            story.wait(5000);
            sessions.clone().for_each(|session| story.say(session, heartbeat()));
        }
    };
    (1..=2).for_each(|session| story.join(session, 1));
    wait(&mut story, 600, 1..=2);
    (1..=2).for_each(|session| _ = story.answer(session, honest));
    let suspect = story.tasks_of(1);
    assert_eq!(suspect.len(), 1);
    story.leave(1);
    story.join(3, 1);
    wait(&mut story, 590, 2..=3);
    assert!(
        !story.core.work.tasks.suspects().is_empty() && story.tasks_of(2) != suspect,
        "a worker may still prove itself"
    );
    wait(&mut story, 15, 2..=3);
    story.answer(2, honest);
    assert_eq!(story.tasks_of(2), suspect);
    for _ in 0..6 {
        wait(&mut story, 600, 2..=3);
        (2..=3).for_each(|session| _ = story.answer(session, honest));
    }
    assert_eq!(story.run("r").digest, expected_digest(&config));
}
