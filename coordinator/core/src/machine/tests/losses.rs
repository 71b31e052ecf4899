//! Tasks that are lost, late or failed: where they go next, and what is never lost.

use bytes::Bytes;

use super::*;

#[test]
fn a_failed_task_is_retried_alone_and_may_fail_twice() {
    let mut story = Story::begin(singly());
    story.submit("r", ONE_ROUND).unwrap();
    story.join(1, 1);
    story.join(2, 1);
    // Both workers have proved themselves.
    story.answer(1, honest);
    story.answer(2, honest);
    story.wait(2000);
    let suspect = story.tasks_of(1)[..1].to_vec();
    story.answer(1, panicking);
    story.answer(1, honest);
    assert!(
        story.tasks_of(1).len() == 2 && !story.tasks_of(1).contains(&suspect[0]),
        "the suspect does not go back to worker 1"
    );
    // Workers that have been heard are reserved at the next tick.
    story.say(2, heartbeat());
    story.wait(100);
    story.answer(2, honest);
    assert_eq!(story.tasks_of(2).len(), 1, "worker 2 is kept free for the suspect");
    story.answer(2, honest);
    assert_eq!(story.tasks_of(2), suspect, "the suspect is sent alone");
    story.say(2, heartbeat());
    assert_eq!(story.tasks_of(2), suspect, "the suspect stays alone");
    story.answer(2, panicking);
    while story.answer(1, honest) + story.answer(2, honest) > 0 {}
    assert_eq!(story.run("r").digest, expected_digest(ONE_ROUND), "the third try succeeds");
    let why = "it panicked; other events there are not listed";
    assert_eq!(story.run("r").notices, [1, 2].map(|worker| format!("a task failed on worker w{worker}: {why}")));
}

#[test]
fn a_slow_task_gets_a_second_copy_soon_and_a_third_one_later() {
    let mut story = Story::begin(singly());
    let config = CONFIG.replace("tasks = 4", "tasks = 1").replace("replicas = 2", "replicas = 1");
    story.submit("r", &config).unwrap();
    story.join(1, 1);
    story.answer(1, honest);
    story.join(2, 1);
    story.join(3, 1);
    let alive = |story: &mut Story| (1..4).for_each(|session| story.say(session, heartbeat()));
    story.wait(250);
    assert!(story.tasks_of(2).is_empty(), "too soon");
    story.wait(100);
    alive(&mut story);
    assert_eq!(story.tasks_of(1), story.tasks_of(2));
    assert!(story.tasks_of(3).is_empty());
    story.wait(400);
    alive(&mut story);
    assert_eq!(story.tasks_of(3), story.tasks_of(1));
}

/// A task must not wait behind one that takes an hour while another worker has nothing to do.
#[test]
fn only_short_tasks_are_queued() {
    for (task_us, queued) in [(900_000, 1), (1_100_000, 0)] {
        let mut story = Story::begin(singly());
        story.task_us = task_us;
        story.submit("r", ONE_ROUND).unwrap();
        story.join(1, 2);
        assert_eq!(story.tasks_of(1).len(), 2, "their duration is still unknown");
        story.wait(2000);
        story.answer(1, honest);
        assert_eq!(story.tasks_of(1).len(), 2 + queued, "nothing waits behind the other one: {task_us} us");
        story.answer(1, honest);
        assert_eq!(story.tasks_of(1).len(), 2 + 2 * queued, "{task_us} us");
    }
}

#[test]
fn queued_tasks_are_copied_before_running_ones() {
    let mut story = Story::begin(singly());
    story.submit("r", &ONE_ROUND.replace("tasks = 40", "tasks = 3")).unwrap();
    story.join(1, 1);
    story.answer(1, honest);
    let of_first = story.tasks_of(1);
    assert_eq!(of_first.len(), 2, "one task is being computed and one is queued");
    story.join(2, 1);
    story.wait(350);
    story.say(2, heartbeat());
    assert_eq!(story.tasks_of(2), of_first[1..]);
}

/// A worker that joins first and sends only heartbeats must not block a run.
#[test]
fn a_task_of_unknown_duration_gets_a_second_copy_after_seconds() {
    let mut story = Story::begin(Settings::default());
    story.submit("r", CONFIG).unwrap();
    story.join(1, 1);
    story.join(2, 1);
    while story.answer(2, honest) > 0 {}
    for _ in 0..6 {
        story.wait(1000);
        (1..3).for_each(|session| story.say(session, heartbeat()));
        while story.answer(2, honest) > 0 {}
    }
    assert_eq!(story.run("r").digest, expected_digest(CONFIG), "six seconds later worker 2 has computed all tasks");
}

#[test]
fn workers_that_left_do_not_count_for_batches() {
    let mut story = Story::begin(Settings::default());
    story.join(1, 1000);
    story.leave(1);
    story.join(2, 1);
    story.submit("r", ONE_ROUND).unwrap();
    story.answer(2, honest);
    story.answer(2, honest);
    assert!(story.tasks_of(2).iter().any(|tasks| tasks.len() > 5), "{:?}", story.assigned);
}

/// This holds however many other workers there are: sending each of them one such task costs more than it saves.
#[test]
fn very_short_tasks_share_a_message() {
    for (task_us, together) in [(1000, 1), (30, 6)] {
        let mut story = Story::begin(Settings::default());
        story.task_us = task_us;
        story.join(1, 1);
        story.submit("r", ONE_ROUND).unwrap();
        story.answer(1, honest);
        story.join(2, 1000);
        let lengths: Vec<usize> = story.tasks_of(2).iter().map(Vec::len).collect();
        assert_eq!(lengths.first(), Some(&together), "{lengths:?}");
    }
}

/// Workers that compute other kinds do not reduce the size of a batch either, and the search skips them.
#[test]
fn workers_of_other_kinds_do_not_count_for_batches() {
    let mut story = Story::begin(Settings::default());
    let mut hello = Story::hello(1, 1000);
    hello.kinds.retain(|kind| kind.kind != "dispatch");
    story.greet(1, hello);
    story.join(2, 1);
    story.submit("r", ONE_ROUND).unwrap();
    story.answer(2, honest);
    story.answer(2, honest);
    assert!(story.tasks_of(1).is_empty());
    assert!(story.tasks_of(2).iter().any(|tasks| tasks.len() > 5), "{:?}", story.assigned);
}

#[test]
fn a_silent_worker_is_lost() {
    let mut story = Story::begin(Settings::default());
    story.join(1, 1);
    story.now = Millis(29_000);
    story.say(1, heartbeat());
    story.now = Millis(58_000);
    story.tell(Event::Heard { session: SessionId(1) });
    story.now = Millis(87_000);
    story.tell(Event::Wake);
    assert!(story.closed.is_empty(), "part of a message arrived 29 seconds ago");
    story.now = Millis(89_000);
    story.tell(Event::Wake);
    assert_eq!(story.closed[&1].kind(), CloseKind::Retry);
    assert!(story.closed[&1].reason.contains("it sent nothing for 30000 ms"), "{}", story.closed[&1].reason);
    assert_eq!(story.logged(Topic::WorkerLost), 1);
}

#[test]
fn rejected_workers_are_counted_and_rarely_logged() {
    let mut story = Story::begin(singly());
    let refuse = |story: &mut Story, session: u64| {
        story.greet(session, v1::Hello { protocol: 1, ..Story::hello(session, 1) });
    };
    (1..=1000).for_each(|session| refuse(&mut story, session));
    assert_eq!(story.logged(Topic::WorkerRefused), 32);
    story.wait(1000);
    refuse(&mut story, 1001);
    assert!(story.log.iter().any(|(_, line)| line.contains("(968 more were refused")), "{:?}", story.log.last());
    assert_eq!(story.closed.len(), 1001, "each rejected worker gets the reason");
}

/// Without certificates, one address gets three quarters of the places, and a worker from another address is still admitted.
#[test]
fn one_identity_cannot_take_all_worker_places() {
    let mut story = Story::begin(Settings { sessions_max: 8, admissions_per_second: 1000, ..singly() });
    (1..=8).for_each(|session| story.join(session, 1));
    let refused = |story: &Story| {
        story.closed.values().filter(|close| close.reason.contains("accepts no more workers of this")).count()
    };
    assert_eq!(refused(&story), 2);
    story.greet_at(9, "10.9.9.9", Story::hello(9, 1));
    assert_eq!(refused(&story), 2, "{:?}", story.closed);
}

#[test]
fn a_session_whose_certificate_expires_is_not_a_loss() {
    let mut story = Story::begin(singly());
    story.submit("r", ONE_ROUND).unwrap();
    story.join(1, 1);
    story.tell(Event::Expired { session: SessionId(1) });
    assert_eq!(story.closed[&1].kind(), CloseKind::Retry);
    assert_eq!(story.logged(Topic::WorkerLost), 0);
    story.join(2, 1);
    story.work_to_the_end(2);
    assert_eq!(story.run("r").state(), RunState::Finished);
}

/// A revoked worker is lost for that reason. Its tasks go to other workers, and the loss is no evidence against them.
#[test]
fn a_session_of_a_revoked_identity_is_lost_for_that_reason() {
    let mut story = Story::begin(singly());
    story.submit("r", ONE_ROUND).unwrap();
    (1..=10).for_each(|session| {
        story.greet_as(session, &format!("w{session}"), false);
        assert!(!story.tasks_of(session).is_empty());
        story.assigned.remove(&session);
        story.tell(Event::Revoked { session: SessionId(session) });
        assert!(!story.closed.contains_key(&session), "there is no stream to close");
    });
    let lost = story.lost();
    assert_eq!(lost.iter().filter(|lost| lost.reason == "its identity was revoked").count(), 10, "{lost:?}");
    let tally = story.figures().tally;
    assert_eq!((tally.lost.len(), tally.lost["revoked"]), (1, 10));
    story.join(11, 1);
    story.work_to_the_end(11);
    assert_eq!(story.run("r").state(), RunState::Finished);
}

fn checkpoints(story: &Story) -> usize {
    story.writes.iter().filter(|(_, write)| matches!(write, Write::Checkpoint { .. })).count()
}

#[test]
fn a_failed_checkpoint_is_repeated_even_without_other_events() {
    let mut story = Story::begin(singly());
    story.submit("r", CONFIG).unwrap();
    story.join(1, 1);
    for _ in 0..4 {
        story.answer(1, honest);
    }
    story.store = Err(StoreFault::Failed("the disk is full".into()));
    story.wait(4_000);
    assert_eq!(checkpoints(&story), 1);
    story.store = Ok(());
    story.wait(5_000);
    story.wait(5_000);
    assert_eq!(checkpoints(&story), 2, "there is one retry and then nothing new to write");
}

/// A write takes 400 ms, so the next checkpoint starts at least eight seconds later.
#[test]
fn a_slow_checkpoint_delays_the_next_one() {
    let mut story = Story::begin(singly());
    story.submit("r", CONFIG).unwrap();
    story.join(1, 1);
    story.store_ms = 400;
    for (at, expected) in [(3_500, 1), (7_000, 1), (11_600, 1), (12_400, 2)] {
        for _ in 0..4 {
            _ = story.answer(1, honest);
        }
        story.now = story.now.max(Millis(at));
        story.tell(Event::Wake);
        assert_eq!(checkpoints(&story), expected, "at {at} ms");
    }
}

/// One notice, however many writes are slow.
#[test]
fn a_slow_store_gives_a_notice() {
    for (store_ms, notices) in [(4_000, 0), (6_000, 1)] {
        let mut story = Story::begin(singly());
        story.store_ms = store_ms;
        story.submit("r", CONFIG).unwrap();
        story.join(1, 1);
        story.work_to_the_end(1);
        let said = story.run("r").notices;
        assert_eq!(said.iter().filter(|notice| notice.contains("took more than 5 s")).count(), notices, "{said:?}");
    }
}

#[test]
fn shared_bytes_are_sent_once_per_session_and_saved_with_poison() {
    let mut story = Story::begin(singly());
    let config = CONFIG.replace("reply_bytes = 8", "reply_bytes = 30\nshared_bytes = 20");
    let config = config.replace("replicas = 2", "replicas = 1");
    story.submit("r", &config).unwrap();
    story.join(1, 2);
    assert_eq!((story.assigned[&1].len(), story.shared.len()), (2, 1), "two assignments, one round");
    story.join(2, 1);
    assert_eq!(
        (story.shared.len(), &story.shared[0]),
        (2, &story.shared[1]),
        "another worker also needs the shared bytes"
    );
    story.answer(1, honest);
    story.say(2, from_worker::Message::Drain(v1::Drain {}));
    story.leave(2);
    story.work_to_the_end(1);
    assert_eq!(story.shared.len(), 1 + 1 + 2, "each round has its own shared bytes");
    assert_eq!(story.run("r").digest, expected_digest(&config));

    story.submit("bad", &config.replace("replicas = 1", "replicas = 1\nseed = 9")).unwrap();
    let poison = story.assigned[&1][0].tasks[0].clone();
    let judge = |task: &Encoded| if task.hash == poison.hash { panicking(task) } else { honest(task) };
    for _ in 0..30 {
        story.answer(1, judge);
        story.wait(2000);
        story.say(1, heartbeat());
    }
    let saved = story.writes.iter().find_map(|(_, write)| match write {
        Write::Poison { bytes, .. } => Some(bytes.clone()),
        _ => None,
    });
    let saved: Bytes = saved.expect("the task failed three times");
    let whole = Encoded::of_whole(&saved).unwrap();
    assert_eq!((whole.hash, honest(&whole)), (poison.hash, honest(&poison)), "the file is complete");
}

/// Gives a task to one worker after another, none of which makes progress. Each is lost because it is silent or, with
/// `heartbeats`, because it is overdue. Returns how many seconds each worker was connected, and the run's state.
fn lost_workers(heartbeats: bool) -> (Vec<u64>, RunState) {
    let mut story = Story::begin(singly());
    story.submit("r", &ONE_ROUND.replace("tasks = 40", "tasks = 1")).unwrap();
    let mut lives = Vec::new();
    for session in 1..=6 {
        story.join(session, 1);
        let begin = story.now;
        while !story.closed.contains_key(&session) && story.views["r"].state() == RunState::Running {
            story.wait(1000);
            if heartbeats {
                story.say(session, heartbeat());
            }
        }
        lives.push((story.now - begin) / 1000);
    }
    (lives, story.run("r").state())
}

#[test]
fn silent_workers_are_not_evidence() {
    let (lives, state) = lost_workers(false);
    assert_eq!(lives, [31; 6]);
    assert_eq!(state, RunState::Running);
}

#[test]
fn a_task_that_never_ends_gets_more_time_and_then_fails_its_run() {
    let (lives, state) = lost_workers(true);
    assert_eq!(state, RunState::Failed);
    // Before the task is sent alone, it waits for a worker that has proved itself.
    let first = lives[0];
    let alone: Vec<u64> = lives[1..4].iter().map(|life| life / (first - 1)).collect();
    assert_eq!(alone, [1, 4, 16], "{lives:?}");
}

/// A bad run takes no worker away from a good one, because a task that fails everywhere counts against no worker.
#[test]
fn tasks_that_fail_everywhere_set_no_worker_aside() {
    let mut story = Story::begin(singly());
    let good = ONE_ROUND.replace("replicas = 1", "replicas = 1\nseed = 5");
    story.submit("bad", ONE_ROUND).unwrap();
    story.submit("good", &good).unwrap();
    let tasks = &story.core.work.tasks;
    let bad = &tasks.ready()[&story.core.work.runs.find("bad").unwrap()];
    let bad: Vec<_> = bad.iter().filter_map(|(_, task)| Some(tasks.get(*task)?.encoded.hash)).collect();
    assert_eq!(bad.len(), 40);
    (1..=4).for_each(|session| story.join(session, 1));
    let judge = |task: &Encoded| if bad.contains(&task.hash) { panicking(task) } else { honest(task) };
    for _ in 0..100 {
        (1..=4).for_each(|session| _ = story.answer(session, judge));
        story.wait(100);
        assert!(story.closed.is_empty(), "{:?}", story.closed);
        (1..=4).for_each(|session| story.say(session, heartbeat()));
    }
    assert_eq!(story.run("bad").state(), RunState::Failed);
    assert_eq!(story.run("good").digest, expected_digest(&good));
    assert!(story.core.fleet.sessions.iter().all(|(_, session)| session.failed.is_empty()), "the run has ended");
}

/// It is still unknown whether the worker or the tasks are bad, so the worker must not turn all of them into suspects.
#[test]
fn a_worker_with_failed_tasks_gets_few_until_others_compute_them() {
    let mut story = Story::begin(singly());
    story.submit("r", ONE_ROUND).unwrap();
    (1..=2).for_each(|session| story.join(session, 1));
    let failed: usize = std::iter::from_fn(|| Some(story.answer(1, panicking)).filter(|count| *count > 0)).sum();
    assert!((3..=4).contains(&failed), "{failed}: three, and the queued one");
    assert!(story.closed.is_empty(), "{:?}", story.closed);
    for _ in 0..10 {
        story.work_to_the_end(2);
        story.wait(1000);
        story.say(2, heartbeat());
    }
    assert!(story.closed[&1].reason.contains("three different tasks failed"), "{:?}", story.closed[&1]);
    assert_eq!(story.run("r").digest, expected_digest(ONE_ROUND));
}
