//! Runs that do not trust every worker.

mod attempts;
mod differences;
mod quorum;

use bytes::Bytes;
use evoxo_common::rng::{Stream, below};

use super::*;
use crate::{
    replicas::{Checked, Job, PlannedTask, Recall, ReceivedOutput, ReplicaKey, Replicas, Report, Sender},
    saved::{finished_in, seal_conviction},
    trust::{Draw, DrawKey, Holder, Level, Worth},
};
use story::result_of;

const SMALL: &str =
    "experiment = \"dispatch\"\nreplicas = 1\n[settings]\nrounds = 2\ntasks = 4\npayload_bytes = 16\nreply_bytes = 8";

/// A different output of the right form.
fn lie(task: &Encoded) -> Outcome {
    let Outcome::Output(output) = honest(task) else { unreachable!("an honest outcome is an output") };
    let mut bytes = output.to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    Outcome::Output(bytes.into())
}

/// How a worker answers.
type Answer = fn(&Encoded) -> Outcome;

/// All sessions repeatedly answer their tasks and send heartbeats.
fn work(story: &mut Story, workers: &[(u64, Answer)]) {
    for _ in 0..60 {
        for (session, outcome) in workers {
            while story.answer(*session, outcome) > 0 {}
        }
        story.wait(500);
        workers.iter().for_each(|(session, _)| story.say(*session, heartbeat()));
    }
}

#[test]
fn only_trusted_outputs_count_and_a_liar_is_convicted() {
    let mut story = Story::begin(singly());
    story.submit_at(Level::Verified, "r", SMALL).unwrap();
    story.greet_as(1, "liar", false);
    story.greet_as(2, "good", false);
    work(&mut story, &[(1, lie), (2, honest)]);
    let run = story.run("r");
    assert_eq!((run.tasks_done, run.verification()), (0, v1::Verification::Verified));
    assert!(run.message.contains("waits for a trusted worker"), "{}", run.message);
    story.greet_as(3, "trusted", true);
    work(&mut story, &[(1, lie), (2, honest), (3, honest)]);
    assert_eq!(story.run("r").digest, expected_digest(SMALL));
    let [(identity, what)] = story.convicted.as_slice() else { panic!("{:?}", story.convicted) };
    assert_eq!(identity, "liar");
    assert!(what.contains("run r, arm \"main\", replica 0, round 1"), "{what}");
    assert_eq!(story.closed[&1].kind(), CloseKind::Refused);
    assert!(story.run("r").notices.iter().any(|notice| notice.contains("is convicted")));
    // Its certificate stays valid until the revocation is on disk, but the core already knows of the conviction.
    story.greet_as(4, "liar", false);
    assert!(story.closed[&4].reason.contains("convicted of a wrong output"), "{:?}", story.closed[&4]);
    assert!(!story.closed.contains_key(&2) && story.run("r").doubts.is_empty());
    let tally = story.figures().tally;
    assert_eq!((tally.convictions, tally.lost["convicted"], tally.recomputations), (1, 1, 0));
}

#[test]
fn an_output_counts_only_from_an_assigned_identity() {
    let mut story = Story::begin(singly());
    story.submit_at(Level::Quorum, "r", SMALL).unwrap();
    story.greet_as(1, "one", false);
    story.greet_as(2, "two", false);
    let mine = story.assigned.get_mut(&1).unwrap().remove(0);
    let result = |outcome| v1::Outputs { results: vec![result_of(&mine.tasks[0], outcome, mine.id)] };
    // Another worker, which could have derived the task from the public configuration.
    story.say(2, from_worker::Message::Outputs(result(honest(&mine.tasks[0]))));
    story.say(1, from_worker::Message::Outputs(result(honest(&mine.tasks[0]))));
    assert_eq!(story.run("r").tasks_done, 0, "one identity is not a quorum");
    story.answer(2, honest);
    let copies = story.tasks_of(2);
    assert!(
        copies.iter().flatten().any(|hash| *hash == mine.tasks[0].hash),
        "now the task is assigned to it: {copies:?}"
    );
    work(&mut story, &[(1, honest), (2, honest)]);
    assert_eq!(story.run("r").digest, expected_digest(SMALL));
}

#[test]
fn an_identity_cannot_confirm_itself() {
    let mut story = Story::begin(singly());
    story.submit_at(Level::Quorum, "r", SMALL).unwrap();
    story.join(9, 1);
    assert!(story.tasks_of(9).is_empty(), "its identity is unknown");
    story.greet_as(1, "one", false);
    story.greet_as(2, "one", false);
    work(&mut story, &[(1, honest), (2, honest)]);
    let run = story.run("r");
    assert!(run.tasks_done == 0 && run.tasks_waiting > 0, "the outputs wait for a second identity");
    assert!(run.message.contains("certificates of two identities"), "{}", run.message);
    story.greet_as(3, "two", false);
    work(&mut story, &[(1, honest), (2, honest), (3, honest)]);
    assert_eq!(story.run("r").digest, expected_digest(SMALL));
}

/// The run's thread, where outputs of two sessions meet: an output is taken if another identity sent the same output before.
#[test]
fn an_equal_output_of_another_identity_confirms_an_output() {
    let mut replicas = Replicas::new(registry(), story::prepared(SMALL), Draw::default(), Vec::new());
    let replica = ReplicaKey { arm: 0, index: 0 };
    let Report::Planned { mut tasks, .. } = replicas.run(Job::Open { replica, attempt: 0 }).remove(0) else {
        panic!("it is planned")
    };
    let PlannedTask { work, encoded, .. } = tasks.remove(0);
    let send = |replicas: &mut Replicas, id: &str, outcome: Answer| {
        let Outcome::Output(output) = outcome(&encoded) else { unreachable!("it is an output") };
        let holder = Some(Holder { id: id.into(), trusted: false });
        let from = Sender { session: SessionId(1), worker: "w".into(), asked: true, holder };
        let (task, worth) = (TaskId(1), Worth::Seconded);
        let encoded = encoded.clone();
        let received = ReceivedOutput { task, from, replica, round: 0, index: 0, work, encoded, output, worth };
        let Report::Checked(Checked { taken, .. }) = replicas.run(Job::Take(vec![received])).remove(0) else {
            panic!("checked")
        };
        taken
    };
    assert!(!send(&mut replicas, "one", honest));
    assert!(!send(&mut replicas, "one", honest), "an identity does not confirm itself");
    assert!(!send(&mut replicas, "two", lie), "a different output confirms nothing");
    replicas.run(Job::Forget { identity: "one".into() });
    assert!(!send(&mut replicas, "three", honest), "the first output is dropped");
    assert!(send(&mut replicas, "four", honest));
}

#[test]
fn a_quorum_outvotes_one_and_a_trusted_worker_convicts() {
    for trusted in [false, true] {
        let mut story = Story::begin(singly());
        story.submit_at(Level::Quorum, "r", SMALL).unwrap();
        story.greet_as(1, "liar", false);
        story.greet_as(2, "one", false);
        story.answer(1, lie);
        story.greet_as(3, "two", trusted);
        work(&mut story, &[(2, honest), (3, honest)]);
        assert_eq!(story.run("r").digest, expected_digest(SMALL));
        assert_eq!((story.convicted.len(), story.run("r").doubts.len()), (usize::from(trusted), 0));
        let kind = if trusted { CloseKind::Refused } else { CloseKind::Retry };
        assert_eq!(story.closed[&1].kind(), kind, "trusted: {trusted}");
    }
}

/// Two identities that send the same wrong output form a quorum. A trusted worker that happens to have a copy convicts both,
/// and what they confirmed is void.
#[test]
fn a_quorum_contradicted_by_a_trusted_worker_is_void() {
    let mut story = Story::begin(Settings { second_copy_ms_unknown: 100, second_copy_ms_min: 100, ..singly() });
    let config = &SMALL.replace("tasks = 4", "tasks = 1");
    story.submit_at(Level::Quorum, "r", config).unwrap();
    story.greet_as(1, "one", false);
    story.answer(1, lie);
    story.greet_as(2, "two", false);
    story.greet_as(3, "trusted", true);
    story.wait(6000);
    assert_eq!((story.tasks_of(2).len(), story.tasks_of(3).len()), (1, 1), "both have the task");
    story.answer(2, lie);
    assert_eq!(story.run("r").tasks_done, 1);
    story.answer(3, honest);
    work(&mut story, &[(3, honest)]);
    let run = story.run("r");
    assert_eq!((run.state(), run.doubts.len(), run.digest), (RunState::Finished, 0, expected_digest(config)));
    assert_eq!(story.convicted.iter().map(|(identity, _)| identity.as_str()).collect::<Vec<_>>(), ["two", "one"]);
}

/// Outputs of a convicted identity must not help another identity to a quorum.
#[test]
fn earlier_outputs_of_a_convicted_identity_do_not_count() {
    let mut story = Story::begin(singly());
    story.submit_at(Level::Quorum, "q", SMALL).unwrap();
    story.submit_at(Level::Verified, "v", &SMALL.replace("replicas = 1", "replicas = 1\nseed = 5")).unwrap();
    story.greet_as(1, "liar", false);
    // It is honest in one run to gain trust there, and lies in the other.
    let quorum = story.core.work.runs.find("q").unwrap();
    let of_quorum = |story: &Story, hash| {
        let tasks = story.core.work.tasks.with_hash(hash);
        tasks.first().and_then(|task| story.core.work.tasks.get(*task)).is_some_and(|task| task.run == quorum)
    };
    for _ in 0..20 {
        let Some(hash) = story.tasks_of(1).first().map(|tasks| tasks[0]) else { break };
        let outcome = if of_quorum(&story, hash) { honest } else { lie };
        story.answer(1, outcome);
    }
    assert!(story.core.work.tasks.claimed().len() == 2, "the identity has answered in both runs");
    story.greet_as(2, "trusted", true);
    while story.convicted.is_empty() && story.answer(2, honest) > 0 {}
    assert_eq!(story.convicted.len(), 1);
    assert!(story.core.work.tasks.claimed().is_empty(), "none of its outputs waits for confirmation");
    work(&mut story, &[(2, honest)]);
    assert_eq!(story.run("q").digest, expected_digest(SMALL));
}

#[test]
fn liars_cannot_fail_a_run_with_trusted_workers() {
    let mut story = Story::begin(singly());
    story.submit_at(Level::Verified, "r", &SMALL.replace("tasks = 4", "tasks = 1")).unwrap();
    (1..=5).for_each(|session| story.greet_as(session, &format!("liar{session}"), false));
    for _ in 0..40 {
        (1..=5).for_each(|session| _ = story.answer(session, panicking));
        story.wait(1000);
        (1..=5).for_each(|session| story.say(session, heartbeat()));
    }
    assert_eq!(story.run("r").state(), RunState::Running, "{}", story.run("r").message);
    story.greet_as(6, "trusted", true);
    for _ in 0..40 {
        story.answer(6, panicking);
        story.wait(1000);
        story.say(6, heartbeat());
    }
    let run = story.run("r");
    assert_eq!(run.state(), RunState::Failed, "the task also fails on the trusted worker");
}

#[test]
fn a_level_is_stored_and_cannot_be_changed_by_submitting_again() {
    let mut story = Story::begin(singly());
    story.submit_at(Level::Verified, "r", SMALL).unwrap();
    let refused = story.submit_at(Level::Quorum, "r", SMALL);
    assert!(
        matches!(&refused, Err(Rejection::Conflict(why)) if why.contains("verification level verified")),
        "{refused:?}"
    );
    assert!(story.submit("r", SMALL).is_ok() && story.submit_at(Level::Verified, "r", SMALL).is_ok());
    let mut again = Story::go_on(singly(), story.objects);
    assert_eq!(again.run("r").verification(), v1::Verification::Verified);
    again.greet_as(1, "one", false);
    work(&mut again, &[(1, honest)]);
    assert_eq!(again.run("r").tasks_done, 0);
    assert!(
        again.submit("r", &SMALL.replace("replicas = 1", "replicas = 2")).is_ok(),
        "more replicas have the same level"
    );
    assert_eq!(again.run("r").verification(), v1::Verification::Verified);
}

/// A Hello names the process, and a worker could name the process of another one.
#[test]
fn a_worker_cannot_end_another_identitys_session() {
    let mut story = Story::begin(singly());
    story.greet_as(1, "one", false);
    let holder = Some(Holder { id: "two".into(), trusted: false });
    let hello = v1::Hello { process: 1, ..Story::hello(2, 1) };
    story.tell(Event::Hello { session: SessionId(2), address: "10.0.0.2".into(), holder, hello });
    assert!(story.closed.is_empty(), "{:?}", story.closed);
}

/// Settings with the draw key of a seed.
fn sampling(seed: u64) -> Settings {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    Settings { draw_key: DrawKey(key), ..singly() }
}

/// A long run in which a liar answers one task after another, and a trusted worker recomputes the drawn outputs. Of a hundred
/// answers of the liar, `lies_in_hundred` are wrong on average. Returns the number of tasks, and of wrong answers, until the
/// liar is convicted.
fn survives(seed: u64, millionths: u32, lies_in_hundred: u64) -> (u64, u64) {
    let mut story = Story::begin(sampling(seed));
    let config = SMALL.replace("rounds = 2", "rounds = 1000").replace("tasks = 4", "tasks = 20");
    story.submit_at(Level::Sampled { millionths }, "r", &config).unwrap();
    story.greet_as(1, "liar", false);
    story.greet_as(2, "trusted", true);
    let is_recomputation = |story: &Story, hash| {
        let tasks = story.core.work.tasks.with_hash(hash);
        tasks.iter().any(|task| story.core.work.tasks.get(*task).is_some_and(|task| task.recomputation.is_some()))
    };
    let recomputations = |story: &Story| {
        let assigned = story.tasks_of(2).into_iter().flatten().filter(|hash| is_recomputation(story, *hash));
        story.core.work.tasks.claimed().len() + assigned.count()
    };
    let (mut tasks, mut lies) = (0, 0);
    while story.convicted.is_empty() {
        let lying = below(&mut Stream::root(seed).text("lies").word(tasks).rng(), 100) < lies_in_hundred;
        while story.answer(1, if lying { lie } else { honest }) == 0 {
            // The other worker has the rest of the round.
            assert_eq!(story.answer(2, honest), 1, "seed {seed}: no worker has anything to do");
        }
        tasks += 1;
        lies += u64::from(lying);
        while recomputations(&story) > 0 {
            assert_eq!(story.answer(2, honest), 1, "seed {seed}: the trusted worker has the task, or is next");
        }
        story.say(1, heartbeat());
    }
    assert_eq!((story.convicted.len(), story.run("r").doubts.len()), (1, 0));
    (tasks, lies)
}

/// An identity that lies in a share s of its tasks, of which a share p is recomputed, is convicted within 4.6 / (p s) tasks
/// in 99 of 100 cases.
#[test]
fn recomputation_convicts_liars() {
    for (millionths, lies_in_hundred) in [(200_000, 100), (200_000, 30), (50_000, 100), (500_000, 5)] {
        let (share, lying) = (f64::from(millionths) / 1e6, lies_in_hundred as f64 / 100.0);
        let bound = 4.6 / (share * lying);
        let seeds = 200;
        let outcomes: Vec<(u64, u64)> = (0..seeds).map(|seed| survives(seed, millionths, lies_in_hundred)).collect();
        let outlived = outcomes.iter().filter(|(tasks, _)| *tasks as f64 > bound).count();
        // On average, one of 100 exceeds the bound.
        assert!(outlived <= 5, "{outlived} of {seeds} with {millionths} millionths and {lies_in_hundred} % of lies");
        let mean = outcomes.iter().map(|(_, lies)| *lies as f64 - 1.0).sum::<f64>() / seeds as f64;
        let expected = (1.0 - share) / share;
        assert!((mean - expected).abs() < 0.3 * (expected + 1.0), "{mean} lies were taken, expected {expected}");
    }
}

#[test]
fn a_run_is_not_finished_while_outputs_are_recomputed() {
    let mut story = Story::begin(sampling(1));
    story.submit_at(Level::Sampled { millionths: 1_000_000 }, "r", SMALL).unwrap();
    story.greet_as(1, "one", false);
    work(&mut story, &[(1, honest)]);
    let run = story.run("r");
    assert_eq!((run.state(), run.tasks_done, run.replicas_finished), (RunState::Running, 8, 0));
    assert!(run.message.contains("no trusted worker is connected"), "{}", run.message);
    story.greet_as(2, "trusted", true);
    work(&mut story, &[(2, honest)]);
    let run = story.run("r");
    assert_eq!((run.state(), run.digest), (RunState::Finished, expected_digest(SMALL)));
    assert_eq!(run.tasks_done, 8, "recomputed outputs are not progress");
    assert_eq!(story.figures().tally.recomputations, 8);
    assert!(story.convicted.is_empty());
    let dropped = |(_, write): &&(String, Write)| *write == Write::DropCheckpoints;
    assert_eq!(story.writes.iter().filter(dropped).count(), 1);
}

/// A run of two replicas in which a liar and an honest worker have answered three tasks each.
fn lied_to(seed: u64, millionths: u32) -> Story {
    let mut story = Story::begin(sampling(seed));
    let config = SMALL.replace("replicas = 1", "replicas = 2").replace("rounds = 2", "rounds = 4");
    story.submit_at(Level::Sampled { millionths }, "r", &config).unwrap();
    story.greet_as(1, "liar", false);
    story.greet_as(2, "good", false);
    for _ in 0..3 {
        assert_eq!(story.answer(1, lie) + story.answer(2, honest), 2);
    }
    story
}

fn of_two() -> String {
    expected_digest(&SMALL.replace("replicas = 1", "replicas = 2").replace("rounds = 2", "rounds = 4"))
}

/// In the middle of a run: replicas that have absorbed an output of the liar restart.
#[test]
fn a_convicted_workers_results_are_recomputed() {
    let mut story = lied_to(1, 1_000_000);
    let recall = Arc::new(Recall::new(1 << 20).with_news());
    story.recall(&recall);
    story.wait(4000);
    assert!(!recall.take_news().forgotten);
    story.greet_as(3, "trusted", true);
    work(&mut story, &[(1, honest), (2, honest), (3, honest)]);
    let run = story.run("r");
    assert_eq!((run.state(), &run.digest), (RunState::Finished, &of_two()));
    assert_eq!((story.convicted[0].0.as_str(), run.doubts.len()), ("liar", 0));
    assert!(recall.take_news().forgotten, "runs that trust every worker may have recalled outputs of the liar");
    assert!(story.log.iter().any(|(_, line)| line.contains("is computed again") && line.contains("from round 1 on")));
}

/// At the end of a run, when everything is computed: no replica is stored as finished before its drawn outputs are
/// recomputed.
#[test]
fn a_complete_run_continues_if_its_last_recomputation_fails() {
    let mut story = lied_to(1, 1_000_000);
    work(&mut story, &[(2, honest)]);
    let finished = |story: &Story| story.objects.keys().filter(|name| name.contains("/finished/")).count();
    assert_eq!(
        (finished(&story), story.run("r").state()),
        (0, RunState::Running),
        "everything waits until outputs are recomputed"
    );
    story.greet_as(3, "trusted", true);
    work(&mut story, &[(2, honest), (3, honest)]);
    let run = story.run("r");
    assert_eq!((run.state(), &run.digest, finished(&story)), (RunState::Finished, &of_two(), 2));
}

/// A coordinator that continues from a state recomputes the outputs that are still missing, after a pause and also with
/// another secret, which would draw nothing.
#[test]
fn recomputations_belong_to_the_states_that_wait_for_them() {
    for paused in [false, true] {
        let mut story = lied_to(1, 1_000_000);
        work(&mut story, &[(2, honest)]);
        let replica = ReplicaKey { arm: 0, index: 0 };
        let Ok(Response::Replica(ReplicaAt::Bytes(sealed))) = story.ask(Request::Replica { name: "r".into(), replica })
        else {
            panic!("the run's thread has the replica")
        };
        let body = evoxo_common::envelope::open(evoxo_common::envelope::Kind::Finished, &sealed).unwrap();
        let shown = <v1::Finished as prost::Message>::decode(body).unwrap().replica.unwrap();
        assert_eq!(
            (shown.exposed.len(), shown.recomputations.len()),
            (2, 0),
            "the outputs to recompute are not revealed"
        );
        if paused {
            story.ask(Request::Pause { name: "r".into() }).unwrap();
            story.wait(4000);
            story.ask(Request::Resume { name: "r".into() }).unwrap();
        } else {
            story = Story::go_on(sampling(2), story.objects);
        }
        assert_eq!(story.run("r").state(), RunState::Running);
        story.greet_as(3, "trusted", true);
        work(&mut story, &[(3, honest)]);
        let run = story.run("r");
        assert_eq!((run.state(), &run.digest), (RunState::Finished, &of_two()), "paused: {paused}");
        assert_eq!(story.convicted.iter().map(|(identity, _)| identity.as_str()).collect::<Vec<_>>(), ["liar"]);
    }
}

/// Without a trusted worker, the others do not run far ahead, and the list of outputs to recompute stays small.
#[test]
fn a_replica_waits_when_too_many_recomputations_are_pending() {
    let mut story = Story::begin(sampling(1));
    let config = "experiment = \"dispatch\"\nreplicas = 1\n[settings]\nrounds = 4\ntasks = 40\npayload_bytes = 65536\n";
    story.submit_at(Level::Sampled { millionths: 1_000_000 }, "r", config).unwrap();
    story.greet_as(1, "good", false);
    work(&mut story, &[(1, honest)]);
    assert_eq!((story.run("r").rounds_done, story.run("r").tasks_done), (1, 40));
    story.greet_as(2, "trusted", true);
    work(&mut story, &[(1, honest), (2, honest)]);
    assert_eq!((story.run("r").state(), story.run("r").digest), (RunState::Finished, expected_digest(config)));
}

/// The store is full for a while. A new leader would not know of the conviction, so it must have no visible effect: the liar
/// stays connected, and the run is not finished.
#[test]
fn a_conviction_takes_effect_once_it_is_stored() {
    let mut story = lied_to(1, 1_000_000);
    while story.answer(2, honest) > 0 {}
    story.wait(4000);
    story.store = Err(StoreFault::Failed("the store is full".into()));
    story.greet_as(3, "trusted", true);
    for _ in 0..6 {
        while story.answer(3, honest) > 0 {}
        story.wait(500);
        (1..=3).for_each(|session| story.say(session, heartbeat()));
    }
    assert!(story.log.iter().any(|(_, line)| line.contains("identity liar is not convicted yet")), "{:?}", story.log);
    assert_eq!((story.convicted.len(), story.audited.len()), (0, 0));
    assert!(!story.closed.contains_key(&1), "{:?}", story.closed);
    assert_eq!(story.run("r").state(), RunState::Running);
    story.store = Ok(());
    work(&mut story, &[(2, honest), (3, honest)]);
    assert_eq!((story.convicted.len(), story.closed[&1].kind()), (1, CloseKind::Refused));
    assert!(
        story.audited.iter().any(|line| line.starts_with("void: run r, arm \"main\", replica ")),
        "{:?}",
        story.audited
    );
    assert_eq!((story.run("r").state(), story.run("r").digest), (RunState::Finished, of_two()));
}

/// A coordinator that leads after a conviction learns of it from the store, and void states in the store are not used.
#[test]
fn void_states_are_not_resumed_after_a_restart() {
    // Nothing is drawn, so everything is absorbed and stored.
    for everything in [false, true] {
        let mut story = lied_to(1, 1);
        if everything {
            work(&mut story, &[(2, honest)]);
            assert_eq!(story.run("r").state(), RunState::Finished);
            assert_ne!(story.run("r").digest, of_two(), "a share of a millionth has found nothing");
        } else {
            story.wait(4000);
        }
        let mut objects = story.objects;
        objects.insert("convicted/liar".into(), seal_conviction("liar", "it lied"));
        let mut again = Story::go_on(sampling(1), objects);
        again.greet_as(2, "good", false);
        work(&mut again, &[(2, honest)]);
        let run = again.run("r");
        assert_eq!((run.state(), &run.digest), (RunState::Finished, &of_two()), "everything: {everything}");
        // Void replicas stay in their objects. Later ones count.
        let digest = Story::go_on(sampling(1), again.objects).run("r").digest;
        assert_eq!(digest, of_two(), "everything: {everything}");
    }
}

/// Another leader has finished a replica in the meantime. Outputs of other identities for the void state are still
/// recomputed, once.
#[test]
fn a_finished_replica_still_completes_recomputations() {
    let mut story = lied_to(1, 1_000_000);
    story.wait(4000);
    let mut other = Story::go_on(sampling(1), story.objects.clone());
    other.greet_as(3, "trusted", true);
    work(&mut other, &[(3, honest)]);
    let mut objects = story.objects;
    let is_first = |bytes: &Bytes| finished_in("", bytes).is_ok_and(|found| found[0].1.replica == 0);
    let finished = other.objects.into_iter().filter(|(name, _)| name.contains("/finished/"));
    objects.extend(finished.filter(|(_, bytes)| is_first(bytes)));
    objects.insert("convicted/liar".into(), seal_conviction("liar", "it lied"));
    let mut again = Story::go_on(sampling(1), objects);
    again.greet_as(3, "trusted", true);
    work(&mut again, &[(3, honest)]);
    let run = again.run("r");
    assert_eq!((run.state(), &run.digest), (RunState::Finished, &of_two()));
    assert!(again.figures().tally.recomputations > 0);
}

/// An identity that is convicted in one run has computed tasks of another run, which is finished.
#[test]
fn a_finished_run_is_recomputed_after_a_conviction_elsewhere() {
    let mut story = lied_to(1, 1);
    work(&mut story, &[(2, honest)]);
    assert_eq!(story.run("r").state(), RunState::Finished);
    story.greet_as(4, "liar", false);
    story.submit_at(Level::Verified, "v", &SMALL.replace("replicas = 1", "replicas = 1\nseed = 5")).unwrap();
    story.answer(1, lie);
    story.answer(4, lie);
    story.greet_as(3, "trusted", true);
    work(&mut story, &[(2, honest), (3, honest)]);
    assert_eq!(story.convicted.len(), 1);
    assert_eq!((story.run("r").state(), story.run("r").digest), (RunState::Finished, of_two()));
    assert_eq!(story.run("v").state(), RunState::Finished);
}
