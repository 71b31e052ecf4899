//! Tasks that the coordinator computes itself before their run fails.

use bytes::Bytes;

use super::{
    story::{DIED, hello_as},
    *,
};
use crate::trust::Level;

/// Three tasks in each of two rounds.
const SMALL: &str =
    "experiment = \"dispatch\"\nreplicas = 1\n[settings]\nrounds = 2\ntasks = 3\npayload_bytes = 16\nreply_bytes = 8";

fn right(task: &Encoded) -> Result<Bytes, String> {
    registry().run(task, &mut NoPrograms).map_err(|why| why.0)
}

/// For some seconds, every current session answers in this way.
fn go_on(story: &mut Story, seconds: u64, answer: fn(&Encoded) -> Outcome) {
    for _ in 0..10 * seconds {
        for session in story.core.fleet.sessions.ids() {
            story.answer(session.0, answer);
            story.say(session.0, heartbeat());
        }
        story.wait(100);
    }
}

/// Only the coordinator computes anything. The run ends well anyway, and the failing workers are set aside.
#[test]
fn a_run_whose_workers_all_fail_is_computed_by_the_coordinator() {
    let mut story = Story::begin(singly());
    story.here = Some(right);
    (1..=3).for_each(|session| story.join(session, 1));
    story.submit("r", SMALL).unwrap();
    go_on(&mut story, 60, panicking);
    let aside = story.lost();
    assert!(aside.len() == 3 && aside.iter().all(|lost| lost.aside_ms > 0), "{aside:?}");
    assert!(aside.iter().all(|lost| lost.reason.contains("that other workers have computed")), "{aside:?}");
    let run = story.run("r");
    assert_eq!(run.state(), RunState::Running);
    assert!(run.message.contains("3 workers are set aside"), "{}", run.message);
    // They return, fail again, and must wait longer.
    for round in 1..=20 {
        story.wait(300_000 * round);
        (1..=3)
            .for_each(|number| story.greet(10 * round + number, hello_as(&format!("w{number}"), 10 * round + number)));
        go_on(&mut story, 60, panicking);
    }
    let run = story.run("r");
    assert_eq!((run.state(), &run.digest), (RunState::Finished, &expected_digest(SMALL)), "{}", run.message);
    assert_eq!(story.tried_here.len(), 6, "each task is computed once");
    assert_eq!(run.notices.iter().filter(|notice| notice.contains("computed these tasks itself")).count(), 1);
    assert_eq!(story.logged(Topic::RunFailed), 0);
}

/// If the task fails here too, the run fails, and its message states both.
#[test]
fn a_task_that_also_fails_on_the_coordinator_fails_its_run() {
    let mut story = Story::begin(singly());
    (1..=3).for_each(|session| story.join(session, 1));
    story.submit("r", ONE_ROUND).unwrap();
    let bad = story.tasks_of(1)[0][0];
    for _ in 0..300 {
        for session in 1..=3 {
            story.answer(session, |task| if task.hash == bad { panicking(task) } else { honest(task) });
            story.say(session, heartbeat());
        }
        story.wait(100);
    }
    let run = story.run("r");
    assert_eq!(run.state(), RunState::Failed);
    assert!(run.message.contains("failed 3 times, last on worker "), "{}", run.message);
    let both = format!("; the coordinator could not compute it either: {DIED}; it is saved in the store");
    assert!(run.message.contains(&both), "{}", run.message);
    assert_eq!(story.tried_here.iter().map(|task| task.hash).collect::<Vec<_>>(), [bad]);
}

/// While the task is computed here, no worker gets it. Other tasks wait until the process is free.
#[test]
fn the_coordinator_computes_one_task_at_a_time_exclusively() {
    let mut story = Story::begin(singly());
    story.here = None;
    (1..=3).for_each(|session| story.join(session, 1));
    story.submit("r", SMALL).unwrap();
    go_on(&mut story, 60, panicking);
    let [first] = &story.tried_here[..] else { panic!("{:?}", story.tried_here) };
    let first = first.clone();
    story.join(4, 1);
    go_on(&mut story, 60, panicking);
    assert!((1..=4).all(|session| story.tasks_of(session).is_empty()), "all three wait for the process");
    let run = story.run("r");
    assert!(run.message.contains("the coordinator computes it itself, before the run fails"), "{}", run.message);
    story.tell(Event::ComputedHere(right(&first)));
    assert_eq!(story.tried_here.len(), 2);
    // The second task differs from the first, and nothing was asked to stop.
    assert!(story.tried_here[1] != first && !story.stopped_here);
}

/// The run is cancelled. The process ends, and a task of another run is next.
#[test]
fn a_process_whose_output_is_not_needed_is_ended() {
    let mut story = Story::begin(singly());
    story.here = None;
    (1..=3).for_each(|session| story.join(session, 1));
    story.submit("r", SMALL).unwrap();
    go_on(&mut story, 60, panicking);
    story.submit("other", &SMALL.replace("replicas = 1", "replicas = 1\nseed = 5")).unwrap();
    go_on(&mut story, 60, panicking);
    assert!(story.tried_here.len() == 1 && !story.stopped_here);
    story.ask(Request::Cancel { name: "r".into(), delete: false }).unwrap();
    assert!(story.stopped_here);
    story.tell(Event::ComputedHere(Err("it was asked to stop".into())));
    let other = story.run("other");
    assert_eq!((story.tried_here.len(), other.state()), (2, RunState::Running), "{}", other.message);
    assert!(story.tried_here[1].hash != story.tried_here[0].hash);
    // The result of a task that is no longer needed changes nothing.
    story.tell(Event::ComputedHere(right(&story.tried_here[1].clone())));
    while story.core.work.own.computing.is_some() {
        story.tell(Event::ComputedHere(Err(DIED.into())));
    }
}

/// The same applies to a task whose workers were lost with it, or on which it did not end.
#[test]
fn a_task_that_killed_its_workers_is_tried_by_the_coordinator() {
    let mut story = Story::begin(Settings::default());
    story.here = Some(right);
    let config = ONE_ROUND.replace("tasks = 40", "tasks = 1");
    story.submit("r", &config).unwrap();
    for session in 1..2000 {
        story.join(session, 1);
        for _ in 0..40 {
            story.wait(500);
            if !story.tasks_of(session).is_empty() {
                break;
            }
            story.say(session, heartbeat());
        }
        story.leave(session);
        story.wait(300_000);
        if story.run("r").state() != RunState::Running {
            break;
        }
    }
    let run = story.run("r");
    assert_eq!((run.state(), &run.digest), (RunState::Finished, &expected_digest(&config)), "{}", run.message);
    assert_eq!(story.tried_here.len(), 1);
    assert!(story.log.iter().any(|(_, line)| line.contains("was the only task of its worker 10 times")));
}

/// The output counts like a trusted worker's: an identity that sent a different output is convicted, and outputs to recompute
/// are settled.
#[test]
fn the_coordinators_output_counts_as_trusted() {
    for level in [Level::Quorum, Level::Verified, Level::Sampled { millionths: 1_000_000 }] {
        let mut story = Story::begin(singly());
        story.here = Some(right);
        story.greet_as(1, "liar", false);
        (2..=4).for_each(|session| story.greet_as(session, &format!("t{session}"), true));
        story.submit_at(level, "r", SMALL).unwrap();
        for _ in 0..600 {
            story.answer(1, |task| {
                let mut output = right(task).unwrap().to_vec();
                *output.last_mut().unwrap() ^= 1;
                Outcome::Output(output.into())
            });
            (2..=4).for_each(|session| _ = story.answer(session, panicking));
            story.core.fleet.sessions.ids().iter().for_each(|session| story.say(session.0, heartbeat()));
            story.wait(100);
        }
        assert!(!story.tried_here.is_empty(), "{level}");
        assert!(story.convicted.iter().any(|(identity, _)| identity == "liar"), "{level}: {:?}", story.log);
        assert_eq!(story.logged(Topic::RunFailed), 0, "{level}");
    }
}

/// An invalid output of the coordinator's own process does not count.
#[test]
fn an_invalid_output_of_the_coordinator_fails_the_run() {
    let mut story = Story::begin(singly());
    story.here = Some(|_| Ok(Bytes::from_static(&[0xff, 0, 0x12])));
    (1..=3).for_each(|session| story.join(session, 1));
    story.submit("r", SMALL).unwrap();
    go_on(&mut story, 60, panicking);
    let run = story.run("r");
    assert_eq!(run.state(), RunState::Failed);
    assert!(run.message.contains("could not compute it either: its output of task "), "{}", run.message);
}

/// A module is not this build's own code, and neither is a program.
#[test]
fn the_coordinator_runs_neither_modules_nor_programs() {
    // It exports the required functions, and its evaluation is an endless loop.
    const MODULE: &str = "AGFzbQEAAAABDQJgAX8Bf2ADf39+AX8DAwIAAQUDAQABByoDBm1lbW9yeQIADGV2b3hvX2J1ZmZlcgAADmV2b3hvX2V2YWx1\
                          YXRlAAEKEAIFAEGACAsIAANADAALAAs=";
    const OWN: &str = "objectives = \"min cost\"\n[[genome]]\nlength = 2\nlow = -5\nhigh = 10\n";
    let built_in = |problem: &str| {
        let text = format!(
            "experiment = \"evolve\"\nreplicas = 1\n[settings]\nalgorithm = \"ga\"\nevaluations = 40\n{problem}"
        );
        let config = evoxo_common::experiment::Config::parse(registry(), "t", &text, &[]);
        let config = config.unwrap_or_else(|problems| panic!("{problems}"));
        crate::prepared::Prepared::new(config).is_built_in(0)
    };
    assert!(built_in("problem = \"rastrigin\"\n"));
    assert!(!built_in(&format!("problem = \"wasm:m.wasm\"\nmodule = \"{MODULE}\"\n{OWN}")));
    assert!(!built_in(&format!("problem = \"program:mine\"\n{OWN}")));
}
