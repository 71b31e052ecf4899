//! Large runs and little memory.

use super::*;

const LARGE: &str =
    "experiment = \"dispatch\"\nreplicas = 10\n[settings]\nrounds = 1\ntasks = 100000\npayload_bytes = 65536\n";

/// A file of 93 bytes describes 65 GB of tasks. Only part of them is ever planned.
#[test]
fn planned_tasks_are_limited() {
    let mut story = Story::begin(Settings::default());
    story.submit("large", LARGE).unwrap();
    story.join(1, 1);
    assert!(!story.tasks_of(1).is_empty());
    let (id, _) = story.core.work.runs.iter().next().unwrap();
    let most = |story: &Story| {
        let bytes = story.core.work.tasks.bytes(id);
        let most = Settings::default().plan_ahead_bytes() + (10 << 20);
        assert!(bytes <= most, "{bytes}: the first pieces of eight replicas, and one more");
    };
    most(&story);
    for _ in 0..2000 {
        story.answer(1, honest);
        most(&story);
    }
    assert!(story.run("large").tasks_done >= 2000, "the work still continues");
}

#[test]
fn a_run_that_does_not_fit_is_rejected_with_advice() {
    let mut story = Story::begin(Settings { memory_bytes_max: 8 << 20, ..Settings::default() });
    let refused = story.submit("large", LARGE);
    let Err(Rejection::Exhausted(why)) = refused else { panic!("{refused:?}") };
    assert!(why.contains("one run may take 4 MiB") && why.contains("--memory"), "{why}");
    assert!(story.objects.is_empty(), "nothing of the run is stored");
    story.submit("small", CONFIG).unwrap();
    story.join(1, 1);
    story.work_to_the_end(1);
    assert_eq!(story.run("small").digest, expected_digest(CONFIG));
}

/// The records of finished replicas take memory too.
#[test]
fn the_replicas_of_all_runs_are_bounded() {
    let settings = Settings { memory_bytes_max: 32 << 20, ..Settings::default() };
    assert_eq!((settings.records_max(), settings.records_per_submitter_max()), (8192, 6144));
    let mut story = Story::begin(settings);
    let of = |replicas: u32| CONFIG.replace("replicas = 2", &format!("replicas = {replicas}"));
    assert_ne!(of(1), CONFIG);
    story.submit("first", &of(5000)).unwrap();
    let refused = story.submit("second", &of(4000));
    let Err(Rejection::Exhausted(why)) = refused else { panic!("{refused:?}") };
    assert!(why.contains("have 5000 replicas, and at most 8192 are remembered"), "{why}");
    let refused = story.submit("second", &of(2000));
    let Err(Rejection::Exhausted(why)) = refused else { panic!("{refused:?}") };
    assert!(why.contains("that 10.0.0.9 submitted have 5000 replicas, and at most 6144 are remembered"), "{why}");
    assert!(story.submit("first", &of(6145)).is_err(), "replicas added to a run count too");
    story.submit("first", &of(6144)).unwrap();
    assert!(story.submit_by("10.0.0.8", "second", &of(2049)).is_err(), "the rest is reserved for other submitters");
    story.submit_by("10.0.0.8", "second", &of(2048)).unwrap();
}

/// Several runs may be extended at once, before any of the orders is stored.
#[test]
fn replicas_that_are_being_ordered_count() {
    let mut story = Story::begin(Settings { memory_bytes_max: 32 << 20, ..Settings::default() });
    let of = |replicas: u32| CONFIG.replace("replicas = 2", &format!("replicas = {replicas}"));
    for name in ["one", "two"] {
        story.submit(name, &of(1)).unwrap();
    }
    let mut extend = |id, name: &str| {
        let (prepared, level, submitter) = (story::prepared(&of(5000)), crate::trust::Level::Plain, "10.0.0.9".into());
        let request = Request::Submit { name: name.into(), prepared, level, submitter, terms: Vec::new() };
        let effects = story.core.handle(story.now, Event::Request { id: RequestId(id), request });
        effects.iter().any(|effect| matches!(effect, Effect::Store { what: Write::Order { .. }, .. }))
    };
    assert_eq!([extend(1, "one"), extend(2, "two")], [true, false]);
}

/// A run is submitted to a coordinator with much memory and recovered by one with little. The run is blocked, and other runs
/// continue.
#[test]
fn a_recovered_run_that_does_not_fit_is_blocked_and_others_continue() {
    let mut story = Story::begin(Settings::default());
    story.submit("large", LARGE).unwrap();
    story.submit("small", CONFIG).unwrap();
    story.tell(Event::Stop);
    let mut next = Story::go_on(Settings { memory_bytes_max: 8 << 20, ..Settings::default() }, story.objects);
    let large = next.run("large");
    assert_eq!(large.state(), RunState::Blocked);
    assert!(large.message.contains("--memory"), "{}", large.message);
    next.join(1, 1);
    next.work_to_the_end(1);
    assert_eq!(next.run("small").digest, expected_digest(CONFIG));
}

/// A coordinator with much memory started both replicas of a run. A coordinator with less memory than both need takes over.
/// (A damaged object of a finished replica has the same consequence.)
#[test]
fn a_recovered_run_with_too_many_started_replicas_continues() {
    let config = CONFIG.replace("payload_bytes = 16", "payload_bytes = 60000");
    let of = story::prepared(&config);
    let both = of.plan_bytes(64 << 20) + 2 * of.replica_bytes(0);
    let settings = Settings { memory_bytes_max: 2 * (both - 1), ..singly() };
    assert!(of.least_bytes(64 << 20) <= settings.run_memory_bytes_max());
    let mut story = Story::begin(singly());
    story.submit("r", &config).unwrap();
    story.join(1, 8);
    assert_eq!(
        (0..9).map(|_| story.answer(1, honest)).sum::<usize>(),
        9,
        "more than the first round of both replicas was planned"
    );
    story.tell(Event::Stop);
    let mut next = Story::go_on(settings, story.objects);
    let run = next.run("r");
    assert_eq!((run.state(), run.message.as_str()), (RunState::Running, ""));
    assert!(next.core.work.budget.given() > settings.run_memory_bytes_max(), "both replicas have started");
    next.join(1, 8);
    next.work_to_the_end(1);
    assert_eq!(next.run("r").digest, expected_digest(&config));
    assert_eq!(next.core.work.budget.given(), 0);
}

/// A submitter's second large run waits for the first one. It does not wait for another submitter's run, and that run does
/// not wait at all.
#[test]
fn one_submitter_cannot_take_all_memory() {
    let config = CONFIG.replace("payload_bytes = 16", "payload_bytes = 60000").replace("replicas = 2", "replicas = 20");
    let least = story::prepared(&config).least_bytes(64 << 20);
    let settings = Settings { memory_bytes_max: 2 * least + least / 2, ..singly() };
    let mut story = Story::begin(settings);
    story.submit_by("greedy", "a", &config).unwrap();
    story.submit_by("greedy", "b", &config).unwrap();
    story.submit_by("modest", "c", &config).unwrap();
    story.join(1, 8);
    let sentence =
        "it waits for memory: other runs of greedy use most of the three quarters that one submitter may have";
    assert_eq!([story.run("b").message.as_str(), story.run("c").message.as_str()], [sentence, ""]);
    for _ in 0..2000 {
        story.answer(1, honest);
    }
    for name in ["a", "b", "c"] {
        assert_eq!(story.run(name).digest, expected_digest(&config), "{name}");
    }
    assert_eq!(story.core.work.budget.given(), 0);
}

/// Replicas are opened as memory allows, runs wait for each other, and all reserved memory is released.
#[test]
fn memory_is_shared_and_returned() {
    let config = CONFIG.replace("payload_bytes = 16", "payload_bytes = 60000").replace("replicas = 2", "replicas = 20");
    let least = story::prepared(&config).least_bytes(64 << 20);
    let settings = Settings { memory_bytes_max: 2 * least + least / 2, ..singly() };
    let mut story = Story::begin(settings);
    for name in ["a", "b", "c"] {
        story.submit_by(&format!("somebody with {name}"), name, &config).unwrap();
    }
    story.join(1, 8);
    let waiting: Vec<&str> = story
        .views
        .values()
        .filter(|run| run.message.contains("waits for memory"))
        .map(|run| run.name.as_str())
        .collect();
    assert_eq!(waiting, ["c"], "{:?}", story.views);
    assert!(story.core.work.budget.given() <= settings.memory_bytes_max);
    for _ in 0..2000 {
        story.answer(1, honest);
        assert!(story.core.work.budget.given() <= settings.memory_bytes_max);
    }
    for name in ["a", "b", "c"] {
        assert_eq!(story.run(name).digest, expected_digest(&config), "{name}");
    }
    assert_eq!(story.core.work.budget.given(), 0);
}

/// After both runs are extended, they need more memory together than there is, and each holds a part of it. Without the rule,
/// neither would start a replica.
#[test]
fn runs_that_grew_do_not_wait_for_each_other() {
    let of = |replicas: u32| CONFIG.replace("replicas = 2", &format!("replicas = {replicas}"));
    let least = |replicas: u32| story::prepared(&of(replicas)).least_bytes(64 << 20);
    let settings = Settings { memory_bytes_max: 2 * least(2), ..singly() };
    let most = settings.submitter_memory_bytes_max();
    assert!(2 * least(1) <= most && least(1) + least(2) > most, "{} {} {most}", least(1), least(2));
    let mut story = Story::begin(settings);
    for replicas in [1, 2] {
        for name in ["one", "other"] {
            story.submit(name, &of(replicas)).unwrap();
        }
    }
    story.join(1, 1);
    for _ in 0..99 {
        story.work_to_the_end(1);
        story.wait(1000);
        story.say(1, heartbeat());
    }
    for name in ["one", "other"] {
        assert_eq!(story.run(name).digest, expected_digest(&of(2)), "{:?}", story.run(name));
    }
}

/// A paused run continues where it was, unless another run needed its memory in the meantime.
#[test]
fn a_paused_run_makes_room_for_a_waiting_one() {
    let config = CONFIG.replace("payload_bytes = 16", "payload_bytes = 60000").replace("replicas = 2", "replicas = 20");
    let least = story::prepared(&config).least_bytes(64 << 20);
    let mut story = Story::begin(Settings { memory_bytes_max: 2 * least + least / 2, ..singly() });
    story.submit("a", &config).unwrap();
    story.join(1, 8);
    (0..20).for_each(|_| _ = story.answer(1, honest));
    story.ask(Request::Pause { name: "a".into() }).unwrap();
    story.wait(1000);
    story.say(1, heartbeat());
    assert!(story.core.work.budget.given() >= least, "no other run needs the memory");
    story.submit("b", &config).unwrap();
    story.wait(1000);
    story.say(1, heartbeat());
    assert_eq!(story.run("b").message, "");
    (0..2000).for_each(|_| _ = story.answer(1, honest));
    assert_eq!(story.run("b").digest, expected_digest(&config));
    assert_eq!((story.run("a").state(), story.core.work.budget.given()), (RunState::Paused, 0));
    story.ask(Request::Resume { name: "a".into() }).unwrap();
    (0..2000).for_each(|_| _ = story.answer(1, honest));
    assert_eq!(story.run("a").digest, expected_digest(&config));
}

#[test]
#[should_panic(expected = "the budget has given other bytes than the runs have")]
fn leaked_memory_is_found() {
    let mut story = Story::begin(Settings::default());
    story.core.work.budget.take("nobody", 1).unwrap();
    story.core.check_invariants();
}
