//! How attempts end, by worker and reason.

use std::collections::BTreeSet;

use super::{
    story::{hello_as, result_of},
    *,
};

/// A worker as clients see it.
fn worker(story: &mut Story, session: u64) -> v1::Worker {
    let workers = match story.ask(Request::Workers) {
        Ok(Response::Workers(workers)) => workers,
        other => panic!("{other:?}"),
    };
    workers.into_iter().find(|worker| worker.session == session).unwrap()
}

fn ends(story: &mut Story, session: u64) -> v1::AttemptEnds {
    worker(story, session).ends.unwrap()
}

/// A worker reports that its first assignment was stopped because it took too long.
fn time_out(story: &mut Story, session: u64) {
    let assignment = story.assigned.get_mut(&session).unwrap().remove(0);
    let failure = |_: &Encoded| Outcome::Failure("the program rosen did not answer within 1 s".into());
    let result = |task: &Encoded| v1::TaskResult { timed_out: true, ..result_of(task, failure(task), assignment.id) };
    let results = assignment.tasks.iter().map(result).collect();
    story.say(session, from_worker::Message::Outputs(v1::Outputs { results }));
}

/// The host of the issue: every task ends there by a timeout, but only after another worker has computed a second copy. It
/// does not look healthy: its ends are counted, the run has a notice, it stands out, and it is set aside.
#[test]
fn a_worker_whose_tasks_all_time_out_after_others_computed_them_is_seen() {
    let mut story = Story::begin(singly());
    (1..=2).for_each(|session| story.join(session, 1));
    story.submit("r", &CONFIG.replace("rounds = 3", "rounds = 60")).unwrap();
    let (mut seen, mut computed) = (v1::AttemptEnds::default(), BTreeSet::new());
    for _ in 0..2000 {
        if story.closed.contains_key(&2) {
            break;
        }
        computed.extend(story.tasks_of(1).first().into_iter().flatten().copied());
        story.answer(1, honest);
        story.wait(100);
        [1, 2].into_iter().for_each(|session| story.say(session, heartbeat()));
        // A task of the second worker times out once the first worker has computed a copy of it.
        while !story.closed.contains_key(&2)
            && story.tasks_of(2).first().is_some_and(|mine| computed.contains(&mine[0]))
        {
            time_out(&mut story, 2);
            if !story.closed.contains_key(&2) {
                seen = ends(&mut story, 2);
            }
        }
    }
    assert!(story.closed.contains_key(&2), "three tasks failed that the other worker has computed");
    assert_eq!((seen.done, seen.timed_out, seen.failed), (0, 2, 0));
    let tally = story.figures().tally;
    assert_eq!((tally.attempts.by_end()[3], tally.failures), (("timed out", 3), 3), "late failures count too");
    let run = story.run("r");
    assert!(run.notices.iter().any(|notice| notice.contains("a task failed on worker w2")), "{:?}", run.notices);
    assert_eq!(worker(&mut story, 1).notice, "");
}

/// Ends are remembered over sessions, and a worker that is lost again and again stands out until it computes.
#[test]
fn a_worker_that_is_lost_again_and_again_stands_out_until_it_computes() {
    let mut story = Story::begin(singly());
    story.join(1, 1);
    story.submit("r", &CONFIG.replace("rounds = 3", "rounds = 900")).unwrap();
    let mut session = 2;
    for _ in 0..6 {
        session += 1;
        story.greet(session, hello_as("flaps", session));
        (0..20).for_each(|_| _ = story.answer(1, honest));
        assert!(!story.tasks_of(session).is_empty(), "it has a task");
        story.leave(session);
        (0..400).for_each(|_| {
            story.wait(1000);
            story.say(1, heartbeat());
            story.answer(1, honest);
        });
    }
    session += 1;
    story.greet(session, hello_as("flaps", session));
    story.wait(1100);
    let flaps = worker(&mut story, session);
    assert!(flaps.ends.unwrap().lost >= 6);
    assert!(flaps.notice.starts_with("6 of its last 6 attempts ended badly (6 lost), and 0 of "), "{}", flaps.notice);
    assert_eq!((worker(&mut story, 1).notice.as_str(), story.figures().workers_noticed), ("", 1));
    let stands_out = |(_, line): &&(Topic, String)| line.starts_with("worker flaps stands out");
    assert_eq!(story.log.iter().filter(stands_out).count(), 1, "there is one line, not one a second");
    for _ in 0..30 {
        [1, session].into_iter().for_each(|session| _ = story.answer(session, honest));
        story.wait(1100);
        [1, session].into_iter().for_each(|session| story.say(session, heartbeat()));
    }
    assert_eq!(worker(&mut story, session).notice, "");
}
