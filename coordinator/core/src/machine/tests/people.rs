//! Runs and the requests of clients.

use super::*;
use crate::trust::Level;

#[test]
fn one_worker_computes_a_run_to_the_expected_digest() {
    let mut story = Story::begin(Settings::default());
    story.join(1, 1);
    assert!(matches!(story.submit("r", CONFIG), Ok(Response::Submitted { created: true, .. })));
    assert!(
        matches!(story.submit("r", CONFIG), Ok(Response::Submitted { created: false, .. })),
        "submitting twice makes one run"
    );
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
    assert!(matches!(story.submit("r", &more), Ok(Response::Submitted { created: true, .. })));
    story.work_to_the_end(1);
    let run = story.run("r");
    assert_eq!((run.tasks_done, run.digest), (24 + 36, expected_digest(&more)));
    let other = CONFIG.replace("rounds = 3", "rounds = 4");
    assert!(matches!(story.submit("r", &other), Err(Rejection::Conflict(why))
        if why.contains("other settings (rounds is 3 there, and 4 here)")));
}

/// Orders are not repeated, so another write must show that the store works again.
#[test]
fn a_run_with_failed_orders_continues_when_the_store_recovers() {
    let mut story = Story::begin(singly());
    story.join(1, 1);
    story.submit("r", CONFIG).unwrap();
    story.store = Err(StoreFault::Failed("the disk is full".into()));
    for _ in 0..3 {
        assert!(story.ask(Request::Pause { name: "r".into() }).is_err());
    }
    while story.answer(1, honest) > 0 {}
    assert!(story.run("r").message.contains("the disk is full"), "{}", story.run("r").message);
    story.store = Ok(());
    story.wait(4000);
    story.say(1, heartbeat());
    story.work_to_the_end(1);
    assert_eq!(story.run("r").digest, expected_digest(CONFIG));
}

/// The checkpoints of a finished run could not be removed. Then the run was extended.
#[test]
fn the_checkpoints_of_an_extended_run_are_kept() {
    let mut story = Story::begin(Settings { checkpoint_interval_ms: 1000, ..singly() });
    story.join(1, 1);
    story.submit("r", CONFIG).unwrap();
    story.fail_deletions = true;
    story.work_to_the_end(1);
    story.fail_deletions = false;
    story.submit("r", &CONFIG.replace("replicas = 2", "replicas = 5")).unwrap();
    let before = story.writes.len();
    let answered: usize = (0..20).map(|_| story.answer(1, honest)).sum();
    assert!(answered > 0);
    story.wait(4000);
    assert_ne!(story.run("r").state(), RunState::Finished);
    let dropped = story.writes[before..].iter().any(|(_, write)| *write == Write::DropCheckpoints);
    assert!(!dropped, "{:?}", &story.writes[before..]);
}

fn answers(effects: &[Effect]) -> Vec<(u64, &Result<Response, Rejection>)> {
    let answers = effects.iter().filter_map(|effect| match effect {
        Effect::Respond { id, response } => Some((id.0, response)),
        _ => None,
    });
    answers.collect()
}

/// The order to be written.
fn order(effects: &[Effect]) -> Option<WriteId> {
    effects.iter().find_map(|effect| match effect {
        Effect::Store { write, what: Write::Order { .. }, .. } => Some(*write),
        _ => None,
    })
}

fn submission(config: &str) -> Request {
    let prepared = story::prepared(config);
    Request::Submit { name: "r".into(), prepared, level: Level::Plain, submitter: String::new(), terms: Vec::new() }
}

/// A run that was copied into the store of a running coordinator is found when somebody resumes it.
#[test]
fn a_copied_run_is_found_when_it_is_resumed() {
    let mut other = Story::begin(singly());
    other.submit_by("ann", "half", CONFIG).unwrap();
    other.join(1, 1);
    (0..10).for_each(|_| _ = other.answer(1, honest));
    other.ask(Request::Pause { name: "half".into() }).unwrap();
    other.submit("done", ONE_ROUND).unwrap();
    other.work_to_the_end(1);
    other.tell(Event::Stop);
    let resume = |story: &mut Story, name: &str| story.ask(Request::Resume { name: name.into() });
    let mut story = Story::begin(Settings { runs_per_submitter_max: 1, ..singly() });
    story.join(1, 1);
    assert!(matches!(resume(&mut story, "half"), Err(Rejection::NotFound(_))));
    story.objects.extend(other.objects);
    assert!(matches!(story.ask(Request::Pause { name: "half".into() }), Err(Rejection::NotFound(_))));
    let own = Request::Own { submitter: "bob".into(), request: Box::new(Request::Resume { name: "half".into() }) };
    assert!(matches!(story.ask(own), Err(Rejection::NotFound(_))), "a submitter may not take in other people's runs");
    let done = |story: &mut Story| story.writes.iter().any(|(_, write)| matches!(write, Write::Finished { .. }));
    let Response::Run(run) = resume(&mut story, "half").unwrap() else { panic!("another response") };
    assert!(run.state() == RunState::Running && run.rounds_done > 0 && run.submitter == "ann", "{run:?}");
    let Response::Run(run) = resume(&mut story, "done").unwrap() else { panic!("another response") };
    assert_eq!((run.state(), run.digest), (RunState::Finished, expected_digest(ONE_ROUND)));
    story.work_to_the_end(1);
    assert_eq!(story.run("half").digest, expected_digest(CONFIG));
    assert!(done(&mut story) && story.logged(Topic::Progress) > 0);
    // A quota of the run's submitter holds too.
    let mut full = Story::begin(Settings { runs_per_submitter_max: 1, ..singly() });
    full.submit_by("ann", "r", CONFIG).unwrap();
    full.objects.extend(story.objects);
    assert!(matches!(resume(&mut full, "half"), Err(Rejection::Exhausted(_))));
}

/// A submitter may change only its own runs, also after a restart. It may submit a new run under a name that is free.
#[test]
fn a_submitter_changes_only_its_own_runs() {
    let mut story = Story::begin(singly());
    story.submit_by("ann", "r", CONFIG).unwrap();
    let own = |who: &str, request| Request::Own { submitter: who.into(), request: Box::new(request) };
    let name = || "r".to_owned();
    let more = || submission(&CONFIG.replace("replicas = 2", "replicas = 3"));
    let orders = || {
        let [cancel, delete] = [false, true].map(|delete| Request::Cancel { name: name(), delete });
        [Request::Pause { name: name() }, Request::Resume { name: name() }, cancel, delete, more()]
    };
    let mut before = story.run("r");
    for restart in [false, true] {
        if restart {
            story.tell(Event::Stop);
            story = Story::go_on(singly(), story.objects);
            before = story.run("r");
        }
        for request in orders() {
            match story.ask(own("bob", request)) {
                Err(Rejection::Denied(why)) => assert!(why.starts_with("run \"r\" was submitted by ann"), "{why}"),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(story.run("r"), before);
    }
    let missing = story.ask(own("bob", Request::Pause { name: "none".into() }));
    assert!(matches!(missing, Err(Rejection::NotFound(_))), "{missing:?}");
    for request in orders() {
        // A deleted run is submitted again in the end.
        story.ask(own("ann", request)).unwrap();
    }
    // Without this limit the rights are those of an operator.
    story.ask(Request::Cancel { name: name(), delete: true }).unwrap();
    story.ask(own("bob", more())).unwrap();
}

/// If the second order were made now, it would not contain the first one and would undo it. So it is made once the first one
/// is stored.
#[test]
fn an_order_waits_for_the_previous_one() {
    let mut story = Story::begin(singly());
    story.submit("r", CONFIG).unwrap();
    let name = || "r".to_owned();
    let more = || submission(&CONFIG.replace("replicas = 2", "replicas = 3"));
    let mut tell = |event| story.core.handle(story.now, event);
    let ask = |id, request| Event::Request { id: RequestId(id), request };
    let stored = |write| Event::Stored { write, outcome: Ok(Stored::Written(None)), took_us: 0 };
    let first = order(&tell(ask(1, more()))).expect("an order");
    for (id, request) in [(2, Request::Pause { name: name() }), (3, more()), (4, Request::Resume { name: name() })] {
        let effects = tell(ask(id, request));
        assert!(order(&effects).is_none() && answers(&effects).is_empty(), "{id}: {effects:?}");
    }
    assert_eq!(
        answers(&tell(ask(5, Request::Replicas { name: name() }))).len(),
        1,
        "a request that only reads does not wait"
    );
    for id in 6..20 {
        let effects = tell(ask(id, more()));
        match &answers(&effects)[..] {
            [] => assert!(id < 19),
            [(19, Err(Rejection::Unavailable(why)))] => assert!(why.contains("16 requests wait"), "{why}"),
            other => panic!("{other:?}"),
        }
    }
    let effects = tell(stored(first));
    let pause = order(&effects).expect("the pause");
    let created = |answer: &Result<Response, Rejection>| match answer {
        Ok(Response::Submitted { created, run }) => (*created, run.replicas_total),
        other => panic!("{other:?}"),
    };
    let state = |answer: &Result<Response, Rejection>| match answer {
        Ok(Response::Run(run)) => (run.state(), run.replicas_total),
        other => panic!("{other:?}"),
    };
    let [(1, answer)] = answers(&effects)[..] else { panic!("{effects:?}") };
    assert_eq!(created(answer), (true, 3));
    // The pause does not undo the first order. The third request needs no order after that, and the fourth resumes the run.
    let effects = tell(stored(pause));
    let resume = order(&effects).expect("the resumption");
    let [(2, paused), (3, again)] = answers(&effects)[..] else { panic!("{effects:?}") };
    assert_eq!((state(paused), created(again)), ((RunState::Paused, 3), (false, 3)));
    let effects = tell(stored(resume));
    let answers = answers(&effects);
    assert_eq!(state(answers[0].1), (RunState::Running, 3));
    assert_eq!((answers.len(), order(&effects)), (14, None), "the other calls need no order");
}

/// Requests that wait for a run are answered if the run could not be created or is gone.
#[test]
fn requests_waiting_for_a_deleted_run_are_answered() {
    let mut story = Story::begin(singly());
    let mut tell = |event| story.core.handle(story.now, event);
    let ask = |id, request| Event::Request { id: RequestId(id), request };
    let first = order(&tell(ask(1, submission(CONFIG)))).expect("an order");
    assert!(answers(&tell(ask(2, Request::Pause { name: "r".into() }))).is_empty());
    assert!(answers(&tell(ask(3, submission(CONFIG)))).is_empty());
    let effects =
        tell(Event::Stored { write: first, outcome: Err(StoreFault::Failed("the disk is full".into())), took_us: 0 });
    let [(1, Err(Rejection::Unstored(_))), (2, Err(Rejection::NotFound(_)))] = answers(&effects)[..] else {
        panic!("{effects:?}")
    };
    assert!(order(&effects).is_some(), "the other submission is retried");
    assert!(answers(&tell(ask(4, Request::Pause { name: "r".into() }))).is_empty());
    story.core.remove_run(story.core.work.runs.find("r").unwrap());
    let effects = story.core.handle(story.now, Event::Wake);
    assert!(matches!(answers(&effects)[..], [(4, Err(Rejection::NotFound(_)))]), "{effects:?}");
}

#[test]
fn a_response_arrives_after_its_effect_is_visible() {
    let mut story = Story::begin(Settings::default());
    story.submit("r", CONFIG).unwrap();
    assert_eq!(story.views_when_answered["r"].replicas_total, 2);
    story.submit("r", &CONFIG.replace("replicas = 2", "replicas = 5")).unwrap();
    assert_eq!(story.views_when_answered["r"].replicas_total, 5);
    story.ask(Request::Pause { name: "r".into() }).unwrap();
    assert_eq!(story.views_when_answered["r"].state(), RunState::Paused);
}

#[test]
fn runs_can_be_paused_resumed_cancelled_and_deleted() {
    let mut story = Story::begin(singly());
    story.submit("r", CONFIG).unwrap();
    let name = || "r".to_owned();
    let state = |response: Result<Response, Rejection>| match response {
        Ok(Response::Run(run)) => run.state(),
        other => panic!("{other:?}"),
    };
    assert_eq!(state(story.ask(Request::Pause { name: name() })), RunState::Paused);
    story.join(1, 1);
    assert!(story.assigned.get(&1).is_none_or(Vec::is_empty), "a paused run assigns no tasks");
    story.ask(Request::Resume { name: name() }).unwrap();
    assert!(!story.assigned[&1].is_empty());
    story.answer(1, honest);
    assert_eq!(state(story.ask(Request::Cancel { name: name(), delete: false })), RunState::Cancelled);
    story.answer(1, honest);
    assert!(matches!(story.ask(Request::Resume { name: name() }), Err(Rejection::Conflict(_))));
    assert!(
        matches!(story.submit("r", CONFIG), Ok(Response::Submitted { created: true, .. })),
        "submitting continues it"
    );
    story.work_to_the_end(1);
    assert_eq!(story.run("r").digest, expected_digest(CONFIG));
    story.ask(Request::Cancel { name: name(), delete: true }).unwrap();
    assert!(story.views.is_empty() && story.objects.is_empty());
    assert!(matches!(story.ask(Request::Replicas { name: name() }), Err(Rejection::NotFound(_))));
}

#[test]
fn a_cancelled_run_keeps_its_rounds_but_no_memory() {
    let mut story = Story::begin(singly());
    story.submit("r", CONFIG).unwrap();
    story.join(1, 1);
    for _ in 0..9 {
        story.answer(1, honest);
    }
    story.ask(Request::Cancel { name: "r".into(), delete: false }).unwrap();
    assert_eq!(story.core.work.budget.given(), 0);
    let mut next = Story::go_on(Settings::default(), story.objects);
    let run = next.run("r");
    assert_eq!((run.state(), run.rounds_done), (RunState::Cancelled, 2));
    next.submit("r", CONFIG).unwrap();
    next.join(1, 1);
    next.work_to_the_end(1);
    let run = next.run("r");
    assert_eq!((run.tasks_done, run.digest), (4 * 4, expected_digest(CONFIG)));
    assert_eq!(next.core.work.budget.given(), 0);
}

#[test]
fn replicas_can_be_read_at_any_time_wherever_they_are() {
    let mut story = Story::begin(singly());
    story.submit("r", CONFIG).unwrap();
    let replicas = |story: &mut Story| match story.ask(Request::Replicas { name: "r".into() }) {
        Ok(Response::Replicas(_, replicas)) => replicas,
        other => panic!("{other:?}"),
    };
    let place = |story: &mut Story, replica| match story.ask(Request::Replica { name: "r".into(), replica }) {
        Ok(Response::Replica(place)) => place,
        other => panic!("{other:?}"),
    };
    story.join(1, 1);
    let begun = replicas(&mut story);
    assert_eq!(begun.len(), 2);
    assert!(matches!(place(&mut story, begun[0].0), ReplicaAt::Bytes(_)), "the replica is in memory");
    (0..9).for_each(|_| _ = story.answer(1, honest));
    story.ask(Request::Cancel { name: "r".into(), delete: false }).unwrap();
    assert!(matches!(place(&mut story, begun[0].0), ReplicaAt::Checkpoint(_)), "the replica is in the last checkpoint");
    story.submit("r", CONFIG).unwrap();
    story.work_to_the_end(1);
    let place = place(&mut story, begun[1].0);
    let ReplicaAt::Stored(place) = place else { panic!("{place:?}") };
    assert!(place.is_of(&story.objects[&format!("runs/r/{}", place.object)]));
    assert!(replicas(&mut story).iter().all(|(_, finished)| *finished));
}

#[test]
fn a_failed_run_stays_failed_through_a_restart_until_it_is_resumed() {
    let mut story = Story::begin(singly());
    story.submit("r", CONFIG).unwrap();
    story.join(1, 1);
    let poison = story.assigned[&1][0].tasks[0].hash;
    let judge = |task: &Encoded| if task.hash == poison { panicking(task) } else { honest(task) };
    for _ in 0..99 {
        story.answer(1, judge);
        story.wait(2000);
        story.say(1, heartbeat());
    }
    assert_eq!(story.run("r").state(), RunState::Failed);
    assert_eq!(story.core.work.budget.given(), 0);
    let mut next = Story::go_on(singly(), story.objects);
    let run = next.run("r");
    assert_eq!(run.state(), RunState::Failed);
    assert!(run.message.contains("failed 3 times, last on worker w1: it panicked"), "{}", run.message);
    assert!(next.log.iter().any(|(_, line)| line.contains("`evoxo resume r` tries again")), "{:?}", next.log);
    next.join(1, 1);
    assert!(next.tasks_of(1).is_empty(), "it is not retried without a request");
    let resumed = next.ask(Request::Resume { name: "r".into() });
    let Ok(Response::Run(run)) = resumed else { panic!("{resumed:?}") };
    assert_eq!(run.state(), RunState::Running);
    assert!(run.message.starts_with("it had failed, and is tried again: a task dispatch/echo"), "{}", run.message);
    next.work_to_the_end(1);
    assert_eq!(next.run("r").digest, expected_digest(CONFIG));
}

#[test]
fn old_runs_are_deleted_when_a_limited_number_is_kept() {
    let mut story = Story::begin(Settings { finished_runs_kept: Some(2), ..Settings::default() });
    story.join(1, 1);
    for name in ["a", "b", "c"] {
        story.submit(name, CONFIG).unwrap();
        story.work_to_the_end(1);
    }
    assert_eq!(story.views.keys().collect::<Vec<_>>(), ["b", "c"]);
    story.store = Err(StoreFault::Failed("the disk has gone".into()));
    story.submit("d", CONFIG).unwrap_err();
    story.store = Ok(());
    story.submit("d", CONFIG).unwrap();
    story.work_to_the_end(1);
    assert_eq!(story.views.keys().collect::<Vec<_>>(), ["c", "d"]);
    assert_eq!(story.audited, ["retire: a", "retire: b"]);
}

/// This also holds if nothing else ends, and if a coordinator that keeps fewer runs starts.
#[test]
fn cancelled_runs_are_deleted_when_a_limited_number_is_kept() {
    let kept = |count| Settings { finished_runs_kept: Some(count), ..singly() };
    let mut story = Story::begin(kept(1));
    for name in ["a", "b"] {
        story.submit(name, CONFIG).unwrap();
        story.ask(Request::Cancel { name: name.into(), delete: false }).unwrap();
    }
    assert_eq!(story.views.keys().collect::<Vec<_>>(), ["b"]);
    let next = Story::go_on(kept(0), story.objects);
    assert!(next.views.is_empty() && next.objects.is_empty(), "{:?}", next.views.keys());
}

/// A run with the term keep=yes stays, and does not take the place of another one, until the term changes.
#[test]
fn a_pinned_run_is_kept() {
    let mut story = Story::begin(Settings { finished_runs_kept: Some(1), ..singly() });
    for (seed, name) in [(1, "pinned"), (2, "b"), (3, "c")] {
        let keep = if name == "pinned" { &[("keep", "yes")][..] } else { &[] };
        shares::submit_on(&mut story, name, seed, keep).unwrap();
        story.ask(Request::Cancel { name: name.into(), delete: false }).unwrap();
    }
    assert_eq!(story.views.keys().collect::<Vec<_>>(), ["c", "pinned"]);
    let mut next = Story::go_on(Settings { finished_runs_kept: Some(1), ..singly() }, story.objects);
    assert_eq!(next.views.keys().collect::<Vec<_>>(), ["c", "pinned"]);
    shares::submit_on(&mut next, "pinned", 1, &[("keep", "no")]).unwrap();
    next.ask(Request::Cancel { name: "pinned".into(), delete: false }).unwrap();
    assert_eq!(next.views.len(), 1, "{:?}", next.views.keys());
}

/// A submitter hears of a limit before it is met, and metrics show how near it is.
#[test]
fn four_fifths_of_a_limit_give_a_notice() {
    let mut story = Story::begin(Settings { runs_per_submitter_max: 5, ..Settings::default() });
    let notices = |story: &mut Story, by: &str, name: &str, seed: usize| {
        story.submit_by(by, name, &CONFIG.replace("replicas = 2", &format!("replicas = 2\nseed = {seed}"))).unwrap();
        story.run(name).notices
    };
    for (seed, name) in ["a", "b", "c"].into_iter().enumerate() {
        assert!(notices(&mut story, "10.0.0.7", name, seed).is_empty());
    }
    let said = notices(&mut story, "10.0.0.7", "d", 3);
    assert!(said[0].starts_with("4 of the 5 runs are used that one submitter may have: delete old ones"), "{said:?}");
    assert!(notices(&mut story, "10.0.0.8", "e", 4).is_empty(), "another submitter");
    let Response::Figures(figures) = story.ask(Request::Figures).unwrap() else { panic!("another response") };
    let of =
        |name: &str| figures.limits.iter().find(|(limit, ..)| *limit == name).map(|(_, used, most)| (*used, *most));
    assert_eq!((of("runs"), of("runs of one submitter")), (Some((5, 1024)), Some((4, 5))));
    assert_eq!(of("replicas of one submitter").map(|(used, _)| used), Some(8));
}

/// The order in which the runs ended decides, not the order in which they were submitted.
#[test]
fn the_runs_that_ended_last_are_kept() {
    let mut story = Story::begin(Settings { finished_runs_kept: Some(1), ..singly() });
    ["a", "b", "c"].into_iter().for_each(|name| _ = story.submit(name, CONFIG).unwrap());
    for name in ["b", "c", "a"] {
        story.ask(Request::Cancel { name: name.into(), delete: false }).unwrap();
    }
    assert_eq!(story.views.keys().collect::<Vec<_>>(), ["a"]);
    assert_eq!(story.audited, ["retire: b", "retire: c"]);
}

/// A failed deletion is reported and retried. Until then nobody can continue the run, because parts of it may be gone.
#[test]
fn a_run_stays_until_its_deletion_succeeds() {
    let mut story = Story::begin(Settings { finished_runs_kept: Some(0), ..singly() });
    story.join(1, 1);
    story.submit("a", &CONFIG.replace("replicas = 2", "replicas = 1")).unwrap();
    story.fail_deletions = true;
    story.work_to_the_end(1);
    assert!(story.views.contains_key("a") && story.log.iter().any(|(_, line)| line.contains("cannot be deleted")));
    let again = story.submit("a", &CONFIG.replace("replicas = 2", "replicas = 3"));
    assert!(matches!(again, Err(Rejection::Unavailable(_))), "{again:?}");
    story.fail_deletions = false;
    story.wait(2000);
    assert!(story.views.is_empty() && story.objects.is_empty(), "{:?}", story.views.keys());
}

#[test]
fn runs_share_the_workers_fairly() {
    // Tasks of a second and a half are not queued.
    for task_us in [1000, 1_500_000] {
        let mut story = Story::begin(singly());
        story.task_us = task_us;
        story.submit("big", &CONFIG.replace("tasks = 4", "tasks = 1000")).unwrap();
        story.submit("small", CONFIG).unwrap();
        story.join(1, 1);
        for _ in 0..60 {
            story.wait(task_us / 1000);
            story.answer(1, honest);
        }
        assert_eq!(story.run("small").state(), RunState::Finished, "the small run does not wait for the big run");
    }
}

#[test]
fn one_submitter_cannot_take_all_runs() {
    let mut story = Story::begin(Settings { runs_per_submitter_max: 3, ..Settings::default() });
    (0..3).for_each(|number| drop(story.submit(&format!("r{number}"), CONFIG).unwrap()));
    let fourth = story.submit("r3", CONFIG);
    assert!(matches!(&fourth, Err(Rejection::Exhausted(why)) if why.contains("by 10.0.0.9")), "{fourth:?}");
    story.submit_by("10.0.0.8", "r3", CONFIG).unwrap();
    let mut next = Story::go_on(Settings { runs_per_submitter_max: 3, ..Settings::default() }, story.objects);
    assert!(matches!(next.submit("r4", CONFIG), Err(Rejection::Exhausted(_))), "a restart does not reset the limit");
}

#[test]
fn a_failing_store_is_reported_and_retried() {
    let mut story = Story::begin(Settings { checkpoint_interval_ms: 0, ..Settings::default() });
    story.store = Err(StoreFault::Failed("the disk is full".into()));
    assert!(matches!(story.submit("r", CONFIG), Err(Rejection::Unstored(why)) if why == "the disk is full"));
    assert!(story.views.is_empty());
    story.store = Ok(());
    story.submit("r", CONFIG).unwrap();
    story.join(1, 1);
    story.store = Err(StoreFault::Failed("the disk is full".into()));
    for _ in 0..8 {
        story.now = story.now + 2000;
        story.answer(1, honest);
        story.say(1, heartbeat());
    }
    let run = story.run("r");
    assert_eq!(run.state(), RunState::Running);
    assert!(run.message.contains("the disk is full") && run.message.contains("continues when"), "{}", run.message);
    story.store = Ok(());
    for _ in 0..40 {
        story.now = story.now + 2000;
        story.say(1, heartbeat());
        story.answer(1, honest);
    }
    let run = story.run("r");
    assert_eq!((run.digest, run.message.as_str()), (expected_digest(CONFIG), ""));
}

#[test]
fn a_removed_run_is_not_written_until_it_exists_again() {
    let mut story = Story::begin(Settings { checkpoint_interval_ms: 0, ..Settings::default() });
    story.submit("r", CONFIG).unwrap();
    story.join(1, 1);
    story.store = Err(StoreFault::Fenced("the run was removed".into()));
    while story.answer(1, honest) > 0 {
        story.now = story.now + 2000;
    }
    let run = story.run("r");
    let sentence = "the run was removed; `evoxo resume r` reads it again";
    assert_eq!((run.state(), run.message.as_str(), story.healthy), (RunState::Blocked, sentence, false));
    let writes = story.writes.len();
    (0..50).for_each(|_| story.wait(2000));
    assert_eq!(story.writes.len(), writes, "nothing more is written");
    let pause = story.ask(Request::Pause { name: "r".into() });
    assert!(matches!(pause, Err(Rejection::Conflict(why)) if why.contains("reads it again")));
    let resume = story.ask(Request::Resume { name: "r".into() });
    assert!(matches!(resume, Err(Rejection::Conflict(_))), "the run is still removed");
    story.store = Ok(());
    story.ask(Request::Resume { name: "r".into() }).unwrap();
    assert!(story.healthy);
    story.join(2, 1);
    story.work_to_the_end(2);
    assert_eq!(story.run("r").digest, expected_digest(CONFIG));
}

/// The stored order says that the run is paused, so the resumption must be stored for the next leader.
#[test]
fn resuming_a_removed_paused_run_also_writes_the_store() {
    let mut story = Story::begin(singly());
    story.submit("r", CONFIG).unwrap();
    story.ask(Request::Pause { name: "r".into() }).unwrap();
    story.store = Err(StoreFault::Fenced("the run was removed".into()));
    let resume = story.ask(Request::Resume { name: "r".into() });
    assert!(matches!(resume, Err(Rejection::Conflict(_))), "nothing was written: {resume:?}");
    story.store = Ok(());
    story.ask(Request::Resume { name: "r".into() }).unwrap();
    assert_eq!(story.run("r").state(), RunState::Running);
    let mut next = Story::go_on(Settings::default(), story.objects);
    assert_eq!(next.run("r").state(), RunState::Running);
}

#[test]
fn stopping_saves_and_a_recovery_continues_from_there() {
    let mut story = Story::begin(singly());
    story.submit("r", CONFIG).unwrap();
    story.join(1, 1);
    for _ in 0..9 {
        story.answer(1, honest);
    }
    story.tell(Event::Stop);
    assert!(story.stopped);
    assert_eq!(story.closed[&1].kind(), CloseKind::Retry);
    let mut next = Story::go_on(Settings::default(), story.objects);
    assert_eq!(next.run("r").rounds_done, 2, "two rounds of four tasks were absorbed");
    next.join(1, 1);
    next.work_to_the_end(1);
    assert_eq!(next.run("r").digest, expected_digest(CONFIG));
}

#[test]
fn states_of_another_build_are_not_used() {
    let mut story = Story::begin(singly());
    story.submit("r", CONFIG).unwrap();
    story.join(1, 1);
    (0..9).for_each(|_| _ = story.answer(1, honest));
    story.tell(Event::Stop);
    let (name, bytes) = story.objects.iter().find(|(name, _)| name.contains("/checkpoint/")).unwrap();
    let body = evoxo_common::envelope::open(evoxo_common::envelope::Kind::Checkpoint, bytes).unwrap();
    let mut foreign: v1::Checkpoint = prost::Message::decode(body).unwrap();
    foreign.signature = vec![1; 32].into();
    let sealed = evoxo_common::envelope::seal(
        evoxo_common::envelope::Kind::Checkpoint,
        &prost::Message::encode_to_vec(&foreign),
    );
    let object =
        crate::names::object_name(&Write::Checkpoint { number: 9, bytes: sealed.clone(), keep: 0 }, 1).unwrap();
    let mut objects = story.objects.clone();
    objects.remove(name);
    objects.insert(format!("runs/r/{object}"), sealed);
    let mut next = Story::go_on(Settings::default(), objects.clone());
    let run = next.run("r");
    assert_eq!(run.state(), RunState::Blocked);
    assert!(run.message.contains("computes different results"), "{}", run.message);
    assert!(matches!(next.ask(Request::Resume { name: "r".into() }), Err(Rejection::Conflict(_))));
    assert!(next.healthy && next.objects == objects);
    next.ask(Request::Cancel { name: "r".into(), delete: true }).unwrap();
    assert!(next.objects.is_empty(), "the run can be deleted");
}

/// The store is slow to delete, and the run is submitted again during the deletion. The new order must not be written after
/// the deletion, where nobody would know of it.
#[test]
fn a_run_that_is_being_deleted_cannot_be_submitted_again_yet() {
    let mut story = Story::begin(singly());
    story.submit("r", CONFIG).unwrap();
    let id = story.core.work.runs.find("r").unwrap();
    story.core.work.runs.adjust(id).orders.set_deleting(true);
    let more = CONFIG.replace("replicas = 2", "replicas = 5");
    let refused = story.submit("r", &more);
    assert!(matches!(&refused, Err(Rejection::Unavailable(why)) if why.contains("is being deleted")), "{refused:?}");
}
