//! Which run is served, and how long a submitter waits.

use std::collections::BTreeMap;

use super::*;
use crate::machine::settings::WEIGHT;

/// What an operator gives to one submitter counts for all runs of that submitter together, and holds after a restart.
#[test]
fn twice_the_weight_gives_twice_the_share() {
    let weights = vec![("10.0.0.8".to_owned(), 2 * WEIGHT), ("10.0.0.9".to_owned(), WEIGHT / 2)].leak();
    let settings = Settings { weights, ..singly() };
    let mut story = Story::begin(settings);
    let runs = [("10.0.0.7", "a"), ("10.0.0.7", "b"), ("10.0.0.8", "c"), ("10.0.0.9", "d")];
    for (seed, (submitter, name)) in runs.into_iter().enumerate() {
        story.submit_by(submitter, name, &long(seed)).unwrap();
    }
    for _ in 0..2 {
        story.task_us = 10_000;
        story.join(1, 1);
        let before = runs.map(|(_, name)| story.run(name).tasks_done);
        for _ in 0..700 {
            story.now = story.now + 10;
            story.answer(1, honest);
        }
        let done: Vec<u64> = (0..4).map(|place| story.run(runs[place].1).tasks_done - before[place]).collect();
        let near = done.iter().zip([100, 100, 400, 100]).all(|(done, wanted)| done.abs_diff(wanted) <= 8);
        assert!(near, "{done:?}");
        story.tell(Event::Stop);
        story = Story::go_on(settings, story.objects);
    }
}

/// A run that does not end. Runs with the same seed would have the same tasks, which are computed only once.
fn long(seed: usize) -> String {
    format!(
        "experiment = \"dispatch\"\nseed = {seed}\nreplicas = 4\n[settings]\nrounds = 10000\ntasks = 8\npayload_bytes = 16\nreply_bytes = 8"
    )
}

/// How many tasks are computed until a submitter's run of 40 tasks is finished, on one slot. It is submitted while `others`
/// runs of another submitter are being computed, after `before` tasks.
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
        assert!(tasks < 10_000, "the run never ends");
        if tasks % 20 == 0 {
            story.wait(200);
        }
    }
    tasks
}

/// The run of a submitter who has had nothing recently goes first, no matter how many runs others have.
#[test]
fn a_short_run_does_not_wait_for_another_submitters_many_runs() {
    let [one, fifty] = [1, 50].map(|others| tasks_until_finished(others, 500));
    assert!(
        one <= 60 && fifty <= 60,
        "40 tasks, the two already assigned, and those before the end is published: {one}, {fifty}"
    );
    // Both start together, so each gets every second task.
    let [one, fifty] = [1, 50].map(|others| tasks_until_finished(others, 0));
    assert!((70..110).contains(&one) && (70..110).contains(&fifty), "{one}, {fifty}");
}

/// A submitter who was away for an hour is not owed an hour of work, but at most 10 s for each slot.
#[test]
fn the_priority_after_a_long_absence_is_bounded() {
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
    // 1,000 tasks are the 10 s that are owed. Of the other 1,000, each run gets half.
    let had = (theirs - before[0], mine);
    assert!((480..530).contains(&had.0) && (1470..1520).contains(&had.1), "{had:?}");
}

/// Two runs of one submitter each get half of that submitter's share.
#[test]
fn runs_of_one_submitter_divide_the_submitters_share() {
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

/// A short run beside a run whose tasks take 20 s, on a worker with two slots.
struct Beside {
    /// From the submission of the short run to its end, or to the end of the test, in milliseconds.
    took_ms: u64,
    /// How long each slot was idle meanwhile.
    idle_ms: u64,
    /// The tasks of the two runs that were computed meanwhile.
    long: u64,
    short: u64,
}

/// Computes a run with two tasks of 100 ms in each round beside the long one. It is submitted when the worker has had long
/// tasks for a minute.
fn beside_long_tasks(short_by: &str, rounds: u32, ms_max: u64) -> Beside {
    const STEP_MS: u64 = 50;
    let long = "experiment = \"dispatch\"\nreplicas = 4\n[settings]\nrounds = 1000\ntasks = 8\npayload_bytes = 16";
    let short = format!(
        "experiment = \"dispatch\"\nreplicas = 1\n[settings]\nrounds = {rounds}\ntasks = 2\npayload_bytes = 400"
    );
    let mut story = Story::begin(Settings::default());
    story.submit_by("10.0.0.7", "long", long).unwrap();
    story.join(1, 2);
    let (mut left_ms, mut began, mut seen) =
        (BTreeMap::<u64, u64>::new(), None, Beside { took_ms: 0, idle_ms: 0, long: 0, short: 0 });
    for step in 0.. {
        if step == 60_000 / STEP_MS {
            story.submit_by(short_by, "short", &short).unwrap();
            began = Some(story.now);
            (seen.idle_ms, seen.long) = (0, 0);
        }
        if let Some(began) = began {
            seen.took_ms = story.now - began;
            if story.views["short"].state() == RunState::Finished || seen.took_ms >= ms_max {
                break;
            }
        }
        story.wait(STEP_MS);
        story.say(1, heartbeat());
        let first = story.assigned.get(&1).into_iter().flatten().take(2);
        let running: Vec<(u64, u64, bool)> = first
            .map(|assignment| (assignment.id, assignment.tasks.len() as u64, assignment.tasks[0].own.len() > 200))
            .collect();
        seen.idle_ms += (2 - running.len() as u64) * STEP_MS / 2;
        for (number, tasks, is_short) in running {
            let each_ms = if is_short { 100 } else { 20_000 };
            let left = left_ms.entry(number).or_insert(each_ms * tasks);
            *left -= STEP_MS;
            if *left == 0 {
                let queue = story.assigned.get_mut(&1).unwrap();
                let place = queue.iter().position(|assignment| assignment.id == number).unwrap();
                let ended = queue.remove(place);
                queue.insert(0, ended);
                story.task_us = each_ms * 1000;
                story.answer(1, honest);
                *if is_short { &mut seen.short } else { &mut seen.long } += tasks;
            }
        }
    }
    seen
}

/// Each round of the short run waited for the end of a long task: 100 s for five rounds. Now only the first round waits.
#[test]
fn short_rounds_wait_once_for_a_slot_beside_long_tasks() {
    for short_by in ["10.0.0.8", "10.0.0.7"] {
        let Beside { took_ms, idle_ms, short, .. } = beside_long_tasks(short_by, 5, 600_000);
        assert_eq!(short, 10);
        assert!((500..22_000).contains(&took_ms), "{took_ms} ms, submitted by {short_by}");
        assert!(idle_ms <= 1500, "each slot was idle for {idle_ms} ms");
    }
}

/// The idle time counts as work of the short run, so the long run keeps its half, and a short run that never ends computes
/// for most of its own half.
#[test]
fn a_run_pays_for_the_slots_that_stay_free_for_it() {
    let Beside { long, short, idle_ms, .. } = beside_long_tasks("10.0.0.8", 100_000, 1_200_000);
    // Two slots compute 120 long tasks in 20 minutes, or 24,000 short ones.
    assert!((52..72).contains(&long), "{long} long tasks, {short} short ones");
    assert!(short > 8000, "{long} long tasks, {short} short ones");
    assert!(idle_ms < 150_000, "each slot was idle for {idle_ms} ms");
}

/// Submits a run on these terms.
pub(super) fn submit_on(
    story: &mut Story,
    name: &str,
    seed: usize,
    terms: &[(&str, &str)],
) -> Result<Response, Rejection> {
    let term = |(name, value): &(&str, &str)| v1::Term { name: (*name).into(), value: (*value).into() };
    let (prepared, level, submitter) = (story::prepared(&long(seed)), crate::trust::Level::Plain, "10.0.0.7".into());
    let terms = terms.iter().map(term).collect();
    story.ask(Request::Submit { name: name.into(), prepared, level, submitter, terms })
}

/// A priority applies within the submitter's share. It can be changed while the run is computed, and a restart keeps it.
#[test]
fn twice_the_priority_gives_twice_as_much_of_the_submitters_share() {
    let mut story = Story::begin(singly());
    story.task_us = 10_000;
    submit_on(&mut story, "a", 1, &[("priority", "20")]).unwrap();
    submit_on(&mut story, "b", 2, &[]).unwrap();
    story.submit_by("10.0.0.8", "c", &long(3)).unwrap();
    let work = |story: &mut Story, session| {
        let before = ["a", "b", "c"].map(|name| story.run(name).tasks_done);
        for _ in 0..600 {
            story.now = story.now + 10;
            story.answer(session, honest);
        }
        let after = ["a", "b", "c"].map(|name| story.run(name).tasks_done);
        [0, 1, 2].map(|place| after[place] - before[place])
    };
    let near = |found: [u64; 3], wanted: [u64; 3]| {
        let near = found.iter().zip(wanted).all(|(found, wanted)| found.abs_diff(wanted) <= 8);
        assert!(near, "{found:?} instead of {wanted:?}");
    };
    story.join(1, 1);
    near(work(&mut story, 1), [200, 100, 300]);
    let Response::Submitted { created, .. } = submit_on(&mut story, "a", 1, &[("priority", "5")]).unwrap() else {
        panic!("another response");
    };
    assert!(created, "the new terms need an order");
    near(work(&mut story, 1), [100, 200, 300]);
    assert_eq!(story.run("a").terms, [v1::Term { name: "priority".into(), value: "5".into() }]);
    story.tell(Event::Stop);
    let mut next = Story::go_on(singly(), story.objects);
    next.task_us = 10_000;
    next.join(1, 1);
    near(work(&mut next, 1), [100, 200, 300]);
}

/// New terms change nothing else: a paused run stays paused.
#[test]
fn invalid_terms_are_rejected_by_name() {
    let mut story = Story::begin(singly());
    let refused = |story: &mut Story, terms: &[(&str, &str)]| {
        let Err(Rejection::Invalid(why)) = submit_on(story, "r", 1, terms) else {
            panic!("the terms were accepted: {terms:?}")
        };
        why
    };
    assert_eq!(
        refused(&mut story, &[("colour", "red")]),
        "there is no term \"colour\": use priority, where, note, keep"
    );
    for value in ["gpu", "gpu=", "=a100", "gpu=a100,", "gpu=a 100", "gpu=a=b"] {
        let wrong = refused(&mut story, &[("where", value)]);
        assert!(wrong.starts_with(&format!("the term where is {value:?}: it must be KEY=VALUE")), "{wrong}");
    }
    for note in ["two\nlines", "\u{7}", &"x".repeat(65)] {
        let wrong = refused(&mut story, &[("note", note)]);
        assert!(wrong.ends_with("it must be one line of at most 64 bytes, or empty for no note"), "{wrong}");
    }
    let wrong = refused(&mut story, &[("priority", "0")]);
    assert!(wrong.starts_with("the term priority is \"0\": it must be a whole number from 1 to 100"), "{wrong}");
    let long = "0".repeat(1000) + "1";
    assert!(refused(&mut story, &[("priority", &long)]).len() < 200);
    assert_eq!(refused(&mut story, &[("priority", "1"), ("priority", "2")]), "the term priority is given twice");
    submit_on(&mut story, "r", 1, &[("priority", "1")]).unwrap();
    story.ask(Request::Pause { name: "r".into() }).unwrap();
    submit_on(&mut story, "r", 1, &[("priority", "2")]).unwrap();
    let run = story.run("r");
    assert_eq!((run.state(), run.terms[0].value.as_str(), run.submitter.as_str()), (RunState::Paused, "2", "10.0.0.7"));
}

/// Ten slots, 20 tasks of 20 s in each round of a long run, and a run of 26 tasks of 100 ms that is submitted after a minute by
/// another submitter. Returns when its first task and its last task were done, in milliseconds, and how many long tasks were
/// done in ten minutes.
fn short_run_beside_long_runs(slots_kept: u32) -> (u64, u64, u64) {
    const STEP_MS: u64 = 50;
    let long = |seed: u32| {
        format!(
            "experiment = \"dispatch\"\nseed = {seed}\nreplicas = 1\n[settings]\nrounds = 1000\ntasks = 4\npayload_bytes = 16"
        )
    };
    let short = "experiment = \"dispatch\"\nreplicas = 1\n[settings]\nrounds = 1\ntasks = 26\npayload_bytes = 400";
    let mut story = Story::begin(Settings { slots_kept, ..Settings::default() });
    for seed in 0..50 {
        story.submit_by("10.0.0.7", &format!("long-{seed}"), &long(seed)).unwrap();
    }
    (1..=10).for_each(|session| story.join(session, 1));
    let (mut left_ms, mut begun, mut done, mut long_done) = (BTreeMap::<(u64, u64), u64>::new(), 0, (0, 0), 0);
    for step in 0..600_000 / STEP_MS {
        if step == 60_000 / STEP_MS {
            story.submit_by("10.0.0.8", "short", short).unwrap();
            begun = story.now.0;
        }
        story.wait(STEP_MS);
        for session in 1..=10 {
            story.say(session, heartbeat());
            let Some(running) = story.assigned.get(&session).and_then(|queue| queue.first()) else { continue };
            let (number, tasks, is_short) = (running.id, running.tasks.len() as u64, running.tasks[0].own.len() > 200);
            let each_ms = if is_short { 100 } else { 20_000 };
            let left = left_ms.entry((session, number)).or_insert(each_ms * tasks);
            *left -= STEP_MS;
            if *left == 0 {
                story.task_us = each_ms * 1000;
                story.answer(session, honest);
                long_done += if is_short { 0 } else { tasks };
                if is_short && done.0 == 0 {
                    done.0 = story.now.0 - begun;
                }
            }
        }
        if done.1 == 0 && story.views.get("short").is_some_and(|run| run.state() == RunState::Finished) {
            done.1 = story.now.0 - begun;
        }
    }
    (done.0, done.1, long_done)
}

/// A run of 2.6 s beside fifty runs of another submitter, whose tasks take 20 s. Without kept slots it waits for the end of a
/// task, and with one kept slot it does not.
#[test]
fn a_short_run_begins_at_once_if_slots_are_kept() {
    let (first, last, long) = short_run_beside_long_runs(0);
    assert!(first >= 5_000 && last <= 22_000, "{first} ms, {last} ms, {long} long tasks");
    let (first, last, kept) = short_run_beside_long_runs(1);
    assert!(first <= 500 && last <= 3_600, "{first} ms, {last} ms, {kept} long tasks");
    assert!((long * 17 / 20..long).contains(&kept), "one slot of ten is kept: {kept} instead of {long} long tasks");
}

/// Fewer slots than are kept: long runs still have one, and a run whose tasks are unknown tries one in a kept slot.
#[test]
fn one_slot_is_always_for_all_tasks() {
    let (_, last, long) = short_run_beside_long_runs(1000);
    assert!((25..=50).contains(&long), "{long} long tasks");
    assert!(last > 0 && last <= 3_600, "{last} ms");
}
