//! Who is served, and how long they wait for it.

use super::*;

/// A run that does not end. Runs of one seed would have the same tasks, which are computed once.
fn long(seed: usize) -> String {
    format!(
        "experiment = \"dispatch\"\nseed = {seed}\nreplicas = 4\n[settings]\nrounds = 10000\ntasks = 8\npayload_bytes = 16\nreply_bytes = 8"
    )
}

/// How many tasks are computed until a run of 40 tasks of one person is finished that was submitted while `others` runs of another person
/// were being computed, on one slot, after `before` tasks.
fn tasks_until_finished(others: usize, before: usize) -> usize {
    let mut story = Story::begin(singly());
    story.task_us = 10_000;
    for number in 0..others {
        story.submit_by("10.0.0.7", &format!("other-{number}"), &long(number)).unwrap();
    }
    story.join(1, 1);
    let work = |story: &mut Story| {
        story.now = story.now + 10;
        story.answer(1, honest)
    };
    (0..before).for_each(|_| _ = work(&mut story));
    story.submit_by("10.0.0.8", "mine", ONE_ROUND).unwrap();
    let mut tasks = 0;
    while story.views["mine"].state() != RunState::Finished {
        tasks += work(&mut story);
        assert!(tasks < 10_000, "it never ends");
        if tasks % 20 == 0 {
            story.wait(200);
        }
    }
    tasks
}

/// A run of somebody who has had nothing lately goes first; it does not matter how many runs others have.
#[test]
fn a_short_run_does_not_wait_for_the_many_runs_of_another_person() {
    let [one, fifty] = [1, 50].map(|others| tasks_until_finished(others, 500));
    assert!(one <= 60 && fifty <= 60, "40 tasks, the two that were out, and those until it is seen: {one}, {fifty}");
    // Both begin together: each has every second task.
    let [one, fifty] = [1, 50].map(|others| tasks_until_finished(others, 0));
    assert!((70..110).contains(&one) && (70..110).contains(&fifty), "{one}, {fifty}");
}

/// Whoever was away for an hour has no hour of work to get before others: 10 s of each slot.
#[test]
fn what_is_owed_after_a_long_wait_is_bounded() {
    let mut story = Story::begin(singly());
    story.task_us = 10_000;
    story.submit_by("10.0.0.7", "theirs", &long(1)).unwrap();
    story.join(1, 1);
    let work = |story: &mut Story| {
        story.now = story.now + 10;
        story.answer(1, honest);
    };
    (0..6000).for_each(|_| work(&mut story));
    story.submit_by("10.0.0.8", "mine", &long(2)).unwrap();
    let done = |story: &mut Story| ["theirs", "mine"].map(|name| story.run(name).tasks_done);
    let before = done(&mut story);
    (0..2000).for_each(|_| work(&mut story));
    let [theirs, mine] = done(&mut story);
    // 1,000 tasks are the 10 s that are owed, and of the other thousand each has a half.
    let had = (theirs - before[0], mine);
    assert!((480..530).contains(&had.0) && (1470..1520).contains(&had.1), "{had:?}");
}

/// Of two runs of one person, each has a half of what the person has.
#[test]
fn runs_of_a_person_share_what_the_person_has() {
    let mut story = Story::begin(singly());
    story.task_us = 10_000;
    for (seed, (submitter, name)) in [("10.0.0.7", "a"), ("10.0.0.7", "b"), ("10.0.0.8", "c")].into_iter().enumerate() {
        story.submit_by(submitter, name, &long(seed)).unwrap();
    }
    story.join(1, 1);
    for _ in 0..400 {
        story.now = story.now + 10;
        story.answer(1, honest);
    }
    let done = ["a", "b", "c"].map(|name| story.run(name).tasks_done);
    assert!((95..106).contains(&done[0]) && (95..106).contains(&done[1]) && (195..206).contains(&done[2]), "{done:?}");
}
