//! Forged evidence: it counts only if the coordinator asked for it.

use std::time::Duration;

use bytes::Bytes;
use evoxo_common::task::Encoded;
use evoxo_proto::v1::{
    FetchRequest, Outputs, RunState, TaskResult, from_worker::Message as Outgoing, task_result::Outcome,
    to_worker::Message as Received,
};
use evoxo_tests::{
    live::Site,
    person::{Person, digest_of_one_thread},
    script::{Session, honest, result, spawn_worker},
};

use crate::{echoes, some_seconds};

fn failed(_: &Encoded) -> Outcome {
    Outcome::Failure("a reported failure".into())
}

/// The same failure is reported many times, in assignments that never existed, and also from a session that got no task.
#[tokio::test]
async fn a_failure_counts_once_and_only_from_assigned_sessions() {
    let site = Site::new();
    let config = some_seconds(1, 3);
    let coordinator = site.coordinator(&[]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", &config).await;
    let mut given = Session::join(coordinator.address, "given").await;
    let assigned = given.next_tasks().await.expect("tasks");
    let unassigned = Session::join(coordinator.address, "unassigned").await;
    for session in [&given, &unassigned] {
        let forged = |assignment| {
            let results = assigned.tasks.iter().map(move |task| result(assignment, task, failed(task)));
            results.collect::<Vec<TaskResult>>()
        };
        let results = [forged(assigned.id), forged(assigned.id), forged(assigned.id), forged(0), forged(7)].concat();
        session.send(Outgoing::Outputs(Outputs { results })).await;
    }
    drop((given, unassigned));
    let worker = spawn_worker(coordinator.address, "good");
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(&config));
    worker.abort();
}

/// Impossible durations do not make the coordinator wait longer: other workers get the tasks of a silent liar within seconds.
#[tokio::test]
async fn forged_durations_delay_no_run() {
    let site = Site::new();
    let config = echoes(1, 20, 4, 16);
    let coordinator = site.coordinator(&[]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", &config).await;
    let mut liar = Session::join(coordinator.address, "liar").await;
    let assigned = liar.next_tasks().await.expect("tasks");
    let results = assigned
        .tasks
        .iter()
        .map(|task| TaskResult { elapsed_us: u64::MAX, ..result(assigned.id, task, honest(task)) });
    liar.send(Outgoing::Outputs(Outputs { results: results.collect() })).await;
    // From now on it only sends heartbeats, as real workers do. Its next tasks would wait forever.
    let heartbeats = tokio::spawn(async move {
        let _ = tokio::time::timeout(Duration::from_secs(60), async {
            loop {
                liar.send(Outgoing::Heartbeat(evoxo_proto::v1::Heartbeat {})).await;
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        })
        .await;
    });
    let worker = spawn_worker(coordinator.address, "good");
    let done = tokio::time::timeout(Duration::from_secs(30), person.finished("run")).await;
    assert_eq!(done.expect("in seconds, and not in days").digest, digest_of_one_thread(&config));
    worker.abort();
    heartbeats.abort();
}

/// A worker joins first, takes tasks of unknown duration, and sends only heartbeats.
#[tokio::test]
async fn a_worker_that_only_sends_heartbeats_delays_no_run() {
    let site = Site::new();
    let config = some_seconds(1, 2);
    let coordinator = site.coordinator(&[]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", &config).await;
    let mut idler = Session::join(coordinator.address, "idler").await;
    idler.next_tasks().await.expect("tasks");
    let heartbeats = tokio::spawn(async move {
        loop {
            idler.send(Outgoing::Heartbeat(evoxo_proto::v1::Heartbeat {})).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    let worker = spawn_worker(coordinator.address, "good");
    let done = tokio::time::timeout(Duration::from_secs(60), person.finished("run")).await;
    assert_eq!(done.expect("in seconds, and not in minutes").digest, digest_of_one_thread(&config));
    heartbeats.abort();
    worker.abort();
}

/// Sends a different output for the first task that the other worker has as well.
async fn lie(liar: &mut Session, other: &mut Session) {
    let first = liar.next_tasks().await.expect("tasks");
    // All tasks are taken, so the other worker can only get second copies.
    let second = other.next_tasks().await.expect("copies");
    let common: Vec<Encoded> =
        first.tasks.iter().filter(|task| second.tasks.iter().any(|copy| copy.hash == task.hash)).cloned().collect();
    assert!(!common.is_empty(), "no task was assigned to both workers");
    other.answer(second.id, &second.tasks, honest).await;
    let wrong = |task: &Encoded| {
        let Outcome::Output(output) = honest(task) else { unreachable!("an honest outcome is an output") };
        let mut bytes = output.to_vec();
        // This changes the payload's last byte, so the output still has the right form.
        *bytes.last_mut().expect("an output has bytes") ^= 1;
        Outcome::Output(Bytes::from(bytes))
    };
    liar.answer(first.id, &first.tasks, wrong).await;
    accepted(liar).await;
}

/// Waits until the coordinator has accepted what was sent.
async fn accepted(session: &mut Session) {
    while let Ok(Some(message)) = session.receive().await {
        if matches!(message, Received::Accepted(_)) {
            return;
        }
    }
    panic!("the session ended before the results were accepted");
}

/// If copies differ, the run ends in doubt. All commands say so, even after a restart.
#[tokio::test]
async fn copies_that_differ_leave_a_run_in_doubt() {
    let site = Site::new();
    let config = "experiment = \"dispatch\"\nreplicas = 1\n[settings]\nrounds = 3\ntasks = 1\npayload_bytes = 64\nreply_bytes = 64\n";
    let coordinator = site.coordinator(&[]);
    let address = coordinator.address.to_string();
    let mut person = Person::of(coordinator.address);
    person.submit("run", config).await;
    let mut liar = Session::join(coordinator.address, "liar").await;
    let mut other = Session::join(coordinator.address, "other").await;
    lie(&mut liar, &mut other).await;
    drop(liar);
    other.work(2).await;
    let run = person.wait("run", |run| run.state() == RunState::InDoubt).await;
    let doubt = &run.doubts[0];
    assert_eq!((run.doubts.len(), doubt.worker.as_str(), doubt.other_worker.as_str()), (1, "other", "liar"));
    assert!(run.notices.iter().any(|notice| notice.contains("not deterministic")), "{run:?}");
    drop((coordinator, other));
    let coordinator = site.coordinator_on(&address, &[]);
    let again = person.wait("run", |_| true).await;
    assert_eq!((again.state(), &again.doubts), (RunState::InDoubt, &run.doubts));
    // A person who fetches the results sees it, and the exit status shows it.
    let out = site.path("fetched");
    let out = out.to_str().expect("text");
    let mut fetch = site.program("evoxo", &["fetch", "run", "--coordinator", &address, "--out", out]);
    assert_eq!(fetch.end().await.code(), Some(1));
    assert!(fetch.log().contains("in doubt"), "{}", fetch.log());
    let result = std::fs::read_to_string(site.path("fetched/result.json")).expect("a result");
    assert!(result.contains("\"in doubt\"") && result.contains("liar"), "{result}");
    let fetched = person.client.fetch(FetchRequest { name: "run".into() }).await.expect("a stream").into_inner();
    drop((fetched, coordinator));
}

/// Another encoding of the same output is equal: a number with more bytes than necessary is not a lie.
#[tokio::test]
async fn a_padded_encoding_causes_no_doubt() {
    let site = Site::new();
    let config = "experiment = \"dispatch\"\nreplicas = 1\n[settings]\nrounds = 3\ntasks = 1\npayload_bytes = 64\nreply_bytes = 64\n";
    let coordinator = site.coordinator(&[]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", config).await;
    let mut first = Session::join(coordinator.address, "first").await;
    let mut other = Session::join(coordinator.address, "other").await;
    let tasks = first.next_tasks().await.expect("tasks");
    let copies = other.next_tasks().await.expect("copies");
    other.answer(copies.id, &copies.tasks, honest).await;
    let padded = |task: &Encoded| {
        let Outcome::Output(output) = honest(task) else { unreachable!("an honest outcome is an output") };
        // Key, length (64, in two bytes instead of one), payload.
        Outcome::Output([&output[..1], &[0x80 | 64, 0], &output[2..]].concat().into())
    };
    first.answer(tasks.id, &tasks.tasks, padded).await;
    accepted(&mut first).await;
    drop(first);
    other.work(2).await;
    let run = person.finished("run").await;
    assert_eq!((run.digest.as_str(), run.doubts.len()), (digest_of_one_thread(config).as_str(), 0));
}
