//! Two copies of a task differ in a run of which only a share is recomputed.

use super::*;

/// Settings with which nothing is drawn and second copies are made at once.
fn undrawn(seed: u64) -> Settings {
    Settings { second_copy_ms_unknown: 100, second_copy_ms_min: 100, ..sampling(seed) }
}

/// Two workers, and a liar that has the same task as one of them. First that worker answers, then the liar.
fn differing(config: &str) -> Story {
    let mut story = Story::begin(undrawn(1));
    story.submit_at(Level::Sampled { millionths: 1 }, "r", config).unwrap();
    story.greet_as(1, "good", false);
    story.greet_as(2, "other", false);
    story.greet_as(3, "liar", false);
    story.wait(6000);
    let same = |story: &Story, session| story.tasks_of(session)[0] == story.tasks_of(3)[0];
    let first = if same(&story, 1) { 1 } else { 2 };
    assert!(same(&story, first), "the liar has a copy of another worker's task");
    story.answer(first, honest);
    story.answer(3, lie);
    story
}

/// A coordinator that continues the run recomputes these outputs too: while the replica continues, after it is finished, and
/// when the run waits for nothing else.
#[test]
fn recomputations_of_differing_copies_survive_kills_and_pauses() {
    let open = SMALL.replace("replicas = 1", "replicas = 2").replace("tasks = 4", "tasks = 1");
    let finished = open.replace("rounds = 2", "rounds = 1");
    for (config, everything, paused) in [
        (&open, false, false),
        (&open, false, true),
        (&finished, false, false),
        (&finished, false, true),
        (&finished, true, false),
        (&finished, true, true),
    ] {
        let mut story = differing(config);
        if everything {
            work(&mut story, &[(1, honest), (2, honest)]);
            assert_eq!((story.run("r").state(), story.run("r").replicas_finished), (RunState::Running, 2));
        }
        story.wait(6000);
        if paused {
            story.ask(Request::Pause { name: "r".into() }).unwrap();
            assert_eq!(story.run("r").state(), RunState::Paused);
            story.wait(4000);
            story.ask(Request::Resume { name: "r".into() }).unwrap();
        } else {
            story = Story::go_on(undrawn(2), story.objects);
        }
        for session in [1, 2] {
            story.greet_as(session + 10, "good", false);
        }
        work(&mut story, &[(1, honest), (2, honest), (11, honest), (12, honest)]);
        let case = format!("{config}, everything: {everything}, paused: {paused}");
        assert_eq!((story.run("r").state(), story.convicted.len()), (RunState::Running, 0), "{case}");
        story.greet_as(4, "trusted", true);
        work(&mut story, &[(1, honest), (2, honest), (4, honest), (11, honest), (12, honest)]);
        let run = story.run("r");
        assert_eq!((run.state(), &run.digest), (RunState::Finished, &expected_digest(config)), "{case}");
        assert_eq!(
            story.convicted.iter().map(|(identity, _)| identity.as_str()).collect::<Vec<_>>(),
            ["liar"],
            "{case}"
        );
    }
}

/// The outputs of a cancelled run are not recomputed. When the run continues, they are still to be recomputed.
#[test]
fn a_cancelled_run_keeps_recomputations_of_differing_copies() {
    let open = SMALL.replace("replicas = 1", "replicas = 2").replace("tasks = 4", "tasks = 1");
    for config in [&open, &open.replace("rounds = 2", "rounds = 1")] {
        let mut story = differing(config);
        story.ask(Request::Cancel { name: "r".into(), delete: false }).unwrap();
        assert_eq!(story.run("r").state(), RunState::Cancelled, "{config}");
        story.submit_at(Level::Sampled { millionths: 1 }, "r", config).unwrap();
        story.greet_as(4, "trusted", true);
        work(&mut story, &[(1, honest), (2, honest), (4, honest)]);
        let run = story.run("r");
        assert_eq!((run.state(), &run.digest), (RunState::Finished, &expected_digest(config)), "{config}");
        assert_eq!(story.convicted.iter().map(|(identity, _)| identity.as_str()).collect::<Vec<_>>(), ["liar"]);
    }
}

/// The liar is convicted elsewhere before the run is loaded again, so the run need not wait for its output.
#[test]
fn runs_do_not_wait_for_recomputation_of_convicts() {
    let config = SMALL
        .replace("replicas = 1", "replicas = 2")
        .replace("tasks = 4", "tasks = 1")
        .replace("rounds = 2", "rounds = 1");
    let mut story = differing(&config);
    work(&mut story, &[(1, honest), (2, honest)]);
    let mut objects = story.objects;
    for identity in ["liar", "good", "other"] {
        assert_eq!(Story::go_on(undrawn(2), objects.clone()).run("r").state(), RunState::Running);
        objects.insert(format!("convicted/{identity}"), seal_conviction(identity, "it lied"));
    }
    let mut again = Story::go_on(undrawn(2), objects);
    again.greet_as(5, "new", false);
    work(&mut again, &[(5, honest)]);
    assert_eq!((again.run("r").state(), again.run("r").digest), (RunState::Finished, expected_digest(&config)));
}

/// A liar has a copy of a task that another worker has answered, and whose output is being recomputed. The liar's output
/// decides nothing. If the first output was not drawn, it is recomputed because the two differ, and the run waits for that.
#[test]
fn only_trusted_workers_recompute() {
    for millionths in [1_000_000, 1] {
        let settings = Settings { second_copy_ms_unknown: 100, second_copy_ms_min: 100, ..sampling(1) };
        let mut story = Story::begin(settings);
        let config = SMALL.replace("tasks = 4", "tasks = 1");
        story.submit_at(Level::Sampled { millionths }, "r", &config).unwrap();
        story.greet_as(1, "good", false);
        story.greet_as(2, "liar", false);
        story.wait(6000);
        assert_eq!((story.tasks_of(1), story.tasks_of(1).len()), (story.tasks_of(2), 1), "both have the task");
        story.answer(1, honest);
        story.answer(2, lie);
        work(&mut story, &[(1, honest)]);
        assert_eq!(story.convicted, [], "no trusted worker has answered");
        assert_eq!((story.run("r").state(), story.run("r").rounds_done), (RunState::Running, 2), "{millionths}");
        story.greet_as(3, "trusted", true);
        work(&mut story, &[(1, honest), (2, honest), (3, honest)]);
        assert_eq!(story.convicted.iter().map(|(identity, _)| identity.as_str()).collect::<Vec<_>>(), ["liar"]);
        assert_eq!((story.run("r").state(), story.run("r").digest), (RunState::Finished, expected_digest(&config)));
    }
}
