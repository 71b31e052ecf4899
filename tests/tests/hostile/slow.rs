//! Work and pauses that last longer than the limit of silence.

use std::time::Duration;

use evoxo_proto::v1::RunState;
use evoxo_tests::{
    live::Site,
    person::{Person, digest_of_one_thread},
};

use crate::some_seconds;

/// A task of about 15 seconds, in release, on the fastest machine we had; on the slowest it takes 70.
const LONG_TASK: &str = "experiment = \"td3d\"\nreplicas = 1\n[settings]\nnetwork = \"deep\"\ngames = 160000\n\
    test_every = 160000\ntest_games = 20\nsegment_games = 160000\n";

/// A worker that computes for a long time is not lost, neither as a process nor on one thread.
#[tokio::test]
async fn a_task_of_fifteen_seconds_does_not_lose_its_worker() {
    if std::env::var_os("THOROUGH").is_none() {
        println!("left out: it takes a minute, or without optimisation many; the variable THOROUGH includes it");
        return;
    }
    let site = Site::new();
    std::fs::write(site.path("long.toml"), LONG_TASK).expect("a file");
    let mut digests = Vec::new();
    for workers in ["0", "1"] {
        let out = format!("out-{workers}");
        let mut run = site.program("evoxo", &["run", "long.toml", "--workers", workers, "--out", &out]);
        assert!(run.end().await.success(), "{workers} workers: {}", run.log());
        let result = std::fs::read_to_string(site.path(&out).join("result.json")).expect("a result");
        let result: serde_json::Value = serde_json::from_str(&result).expect("JSON");
        digests.push(result["digest"].clone());
    }
    assert!(digests[0].is_string() && digests[0] == digests[1], "{digests:?}");
}

/// A worker that is stopped for longer than the coordinator waits counts as lost and comes back, and no task is
/// suspected.
#[tokio::test]
async fn a_worker_that_is_stopped_for_fifteen_seconds_comes_back() {
    let site = Site::new();
    let config = some_seconds(4, 100);
    let coordinator = site.coordinator(&[]);
    let worker = site.worker(coordinator.address, &[]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", &config).await;
    person.wait("run", |run| run.tasks_done > 20).await;
    worker.signal("STOP");
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(person.get("run").await.expect("it serves").state(), RunState::Running);
    assert!(coordinator.process.log().contains("no message for 10000 ms"), "{}", coordinator.process.log());
    worker.signal("CONT");
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(&config));
}

/// The same for the coordinator: its own pause does not count as silence of workers.
#[tokio::test]
async fn a_coordinator_that_is_stopped_for_fifteen_seconds_loses_no_worker() {
    let site = Site::new();
    let config = some_seconds(4, 100);
    let coordinator = site.coordinator(&[]);
    let _worker = site.worker(coordinator.address, &[]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", &config).await;
    person.wait("run", |run| run.tasks_done > 20).await;
    coordinator.process.signal("STOP");
    tokio::time::sleep(Duration::from_secs(15)).await;
    coordinator.process.signal("CONT");
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(&config));
    assert!(!coordinator.process.log().contains("no message for"), "{}", coordinator.process.log());
}
