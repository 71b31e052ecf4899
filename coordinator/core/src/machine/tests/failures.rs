//! Workers on which tasks fail, and tasks that fail everywhere.

use super::*;

/// How a worker answers its tasks.
type Answer = fn(&Encoded) -> Outcome;

/// Lets some seconds pass in which each of these workers answers at once, in this order.
fn go_on(story: &mut Story, seconds: u64, workers: &[(u64, Answer)]) {
    for _ in 0..10 * seconds {
        for (session, outcome) in workers {
            if !story.closed.contains_key(session) {
                story.answer(*session, outcome);
                story.say(*session, heartbeat());
            }
        }
        story.wait(100);
    }
}

/// The attack: three workers fail every task before the two others have computed anything.
#[test]
fn three_workers_that_fail_everything_end_no_run_and_are_set_aside() {
    for settings in [Settings::default(), singly()] {
        for long in [false, true] {
            let mut story = Story::begin(settings);
            (1..=5).for_each(|session| story.join(session, 2));
            story.submit("r", CONFIG).unwrap();
            let broken = [(1, panicking as Answer), (2, panicking), (3, panicking)];
            if long {
                // The workers that compute take much longer than those that fail.
                for _ in 0..300 {
                    go_on(&mut story, 1, &broken);
                    (4..=5).for_each(|session| story.say(session, heartbeat()));
                }
            }
            go_on(&mut story, 60, &[broken[0], broken[1], broken[2], (4, honest), (5, honest)]);
            let run = story.run("r");
            assert_eq!((run.state(), &run.digest), (RunState::Finished, &expected_digest(CONFIG)), "{}", run.message);
            assert_eq!(story.logged(Topic::RunFailed), 0);
            let lost = story.lost();
            let aside: Vec<_> = lost.iter().filter(|lost| lost.aside_ms > 0).map(|lost| lost.name.as_str()).collect();
            assert!(aside.iter().all(|name| ["w1", "w2", "w3"].contains(name)), "{aside:?}");
            assert!(!aside.is_empty(), "{lost:?}");
            assert!(!story.closed.contains_key(&4) && !story.closed.contains_key(&5));
        }
    }
}

/// A full disk makes the next task fail on several workers at once, although they have computed for long.
#[test]
fn workers_that_start_failing_simultaneously_end_no_run() {
    let config = CONFIG.replace("rounds = 3", "rounds = 60");
    let mut story = Story::begin(singly());
    (1..=5).for_each(|session| story.join(session, 1));
    story.submit("r", &config).unwrap();
    let computing: Vec<(u64, Answer)> = (1..=5).map(|session| (session, honest as _)).collect();
    go_on(&mut story, 1, &computing);
    assert_eq!(story.run("r").state(), RunState::Running);
    go_on(&mut story, 120, &[(1, panicking), (2, panicking), (3, panicking), (4, honest), (5, honest)]);
    let run = story.run("r");
    assert_eq!((run.state(), &run.digest), (RunState::Finished, &expected_digest(&config)), "{}", run.message);
    assert!((1..=3).all(|session| story.closed.contains_key(&session)), "{:?}", story.closed);
}

/// New identities, one per second. Each fails one task and leaves.
#[test]
fn a_trickle_of_new_workers_that_fail_once_ends_no_run() {
    let config = CONFIG.replace("rounds = 3", "rounds = 400");
    let mut story = Story::begin(singly());
    story.greet_at(1, "10.1.0.1", Story::hello(1, 1));
    story.submit("r", &config).unwrap();
    for session in 2..302 {
        let address = format!("10.2.{}.{}", session / 256, session % 256);
        story.greet_at(session, &address, Story::hello(session, 1));
        // The worker that computes takes a second for each task.
        for _ in 0..5 {
            story.answer(session, panicking);
            story.wait(200);
            story.say(1, heartbeat());
        }
        story.answer(1, honest);
        story.leave(session);
    }
    let run = story.run("r");
    assert_eq!(run.state(), RunState::Running, "{}", run.message);
    assert!(run.tasks_done > 200, "{}", run.tasks_done);
}

/// A task that fails everywhere ends its run soon, even if new workers keep arriving on which it fails.
#[test]
fn a_task_that_fails_everywhere_ends_its_run_with_few_failures() {
    for workers in [1, 2, 3, 20] {
        for new_ones in [false, true] {
            let mut story = Story::begin(singly());
            (1..=workers).for_each(|session| story.join(session, 1));
            story.submit("r", ONE_ROUND).unwrap();
            let bad = story.tasks_of(1)[0][0];
            let (mut waited, mut failures) = (0, 0);
            for second in 0..60 {
                if new_ones {
                    story.join(100 + second, 1);
                }
                for session in story.core.fleet.sessions.ids() {
                    let before = story.core.out.tally.failures;
                    story.answer(session.0, |task| if task.hash == bad { panicking(task) } else { honest(task) });
                    story.say(session.0, heartbeat());
                    failures += story.core.out.tally.failures - before;
                }
                story.wait(1000);
                waited = second;
                if story.run("r").state() == RunState::Failed {
                    break;
                }
            }
            let run = story.run("r");
            assert_eq!(run.state(), RunState::Failed, "{workers} workers");
            assert!(run.message.contains("failed 3 times, last on worker"), "{}", run.message);
            assert!(waited < 30 && failures <= 6, "{workers} workers, after {waited} s and {failures} failures");
        }
    }
}

/// No worker can compute the run's tasks, for example because every host lacks a library, and new workers keep arriving.
#[test]
fn a_fleet_that_fails_everything_ends_the_run_soon() {
    for workers in [1, 3, 50] {
        let mut story = Story::begin(singly());
        (1..=workers).for_each(|session| story.join(session, 1));
        story.submit("r", ONE_ROUND).unwrap();
        let mut seconds = 0;
        while story.run("r").state() != RunState::Failed && seconds < 60 {
            story.join(100 + seconds, 1);
            for session in story.core.fleet.sessions.ids() {
                story.answer(session.0, panicking);
                story.say(session.0, heartbeat());
            }
            story.wait(1000);
            seconds += 1;
        }
        let run = story.run("r");
        assert_eq!(run.state(), RunState::Failed, "{workers} workers");
        assert!(run.message.contains("failed 3 times, last on worker") && seconds < 30, "{seconds} s: {}", run.message);
        assert!(story.lost().is_empty(), "no worker is at fault: {:?}", story.lost());
    }
}

/// The worker must stay away, longer each time. When it returns it gets one task at a time, and after three tasks it is
/// treated like any other worker.
#[test]
fn a_worker_that_was_set_aside_is_tried_with_one_task_at_a_time() {
    let config = CONFIG.replace("rounds = 3", "rounds = 100000").replace("tasks = 4", "tasks = 40");
    let mut story = Story::begin(Settings::default());
    let again = |session: u64| v1::Hello { name: "w1".into(), ..Story::hello(session, 4) };
    story.greet(1, again(1));
    story.join(2, 4);
    story.submit("r", &config).unwrap();
    go_on(&mut story, 5, &[(1, panicking), (2, honest)]);
    assert_eq!((story.closed[&1].kind(), story.closed[&1].retry_after_ms), (CloseKind::Retry, 60_000));
    assert!(story.closed[&1].reason.contains("that other workers have computed"), "{:?}", story.closed[&1]);
    let [lost] = &story.lost()[..] else { panic!("{:?}", story.lost()) };
    assert!(lost.aside_ms > 50_000 && lost.reason.contains("three different tasks failed on it"), "{lost:?}");
    // A worker that returns too early is refused, even as another process.
    story.greet(11, again(11));
    assert!(story.closed[&11].reason.contains("is set aside") && story.closed[&11].kind() == CloseKind::Retry);
    go_on(&mut story, 60, &[(2, honest)]);
    assert_eq!(story.lost()[0].aside_ms, 0);
    // It gets one of the forty tasks, although it has four slots, and fails it.
    story.greet(12, again(12));
    assert_eq!(story.tasks_of(12).iter().map(Vec::len).collect::<Vec<_>>(), [1]);
    assert!(
        story
            .core
            .fleet
            .workers(story.core.at.now, &story.core.work.runs)
            .iter()
            .any(|worker| worker.session == 12 && worker.on_trial)
    );
    go_on(&mut story, 5, &[(12, panicking), (2, honest)]);
    assert_eq!(story.closed[&12].retry_after_ms, 120_000, "{:?}", story.closed[&12]);
    assert!(story.closed[&12].reason.contains("it was tried again"), "{:?}", story.closed[&12]);
    go_on(&mut story, 120, &[(2, honest)]);
    // The host is repaired.
    story.greet(13, again(13));
    for _ in 0..3 {
        assert_eq!(story.tasks_of(13).iter().map(Vec::len).collect::<Vec<_>>(), [1]);
        story.answer(13, honest);
        story.wait(100);
        story.answer(2, honest);
    }
    go_on(&mut story, 1, &[(13, honest), (2, honest)]);
    assert!(story.tasks_of(13).len() > 1, "{:?}", story.tasks_of(13));
    assert!(story.core.fleet.workers(story.core.at.now, &story.core.work.runs).iter().all(|worker| !worker.on_trial));
}

/// Two workers with the same certificate or name: the one on a broken host does not affect the other.
#[test]
fn a_working_host_of_the_same_identity_may_join() {
    let config = CONFIG.replace("rounds = 3", "rounds = 100000").replace("tasks = 4", "tasks = 40");
    let mut story = Story::begin(singly());
    (1..=2).for_each(|session| story.greet_as(session, "lab", false));
    story.submit("r", &config).unwrap();
    go_on(&mut story, 5, &[(1, panicking), (2, honest)]);
    assert!(story.closed.contains_key(&1));
    story.greet_as(3, "lab", false);
    assert!(!story.closed.contains_key(&3) && story.tasks_of(3).len() == 1, "the worker may join on trial");
    assert_eq!(story.run("r").state(), RunState::Running);
}

/// If a failed task counted as a computed one, three workers that only fail and then leave would have proved themselves.
#[test]
fn a_worker_that_only_fails_is_not_proven() {
    let mut story = Story::begin(singly());
    story.submit("r", ONE_ROUND).unwrap();
    story.join(1, 1);
    story.answer(1, panicking);
    story.wait(20_000);
    story.say(1, heartbeat());
    let session = story.core.fleet.sessions.get(SessionId(1));
    assert!(session.is_none_or(|session| !session.is_proven(None)));
}
