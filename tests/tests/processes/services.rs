//! Services for workers and monitors.

use std::time::Duration;

use evoxo_proto::v1::{CloseKind, from_worker::Message as Outgoing, to_worker::Message as Incoming};
use evoxo_tests::{
    live::{Coordinator, Site},
    person::Person,
    script::{Session, hello, honest, spawn_worker},
};
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};

use crate::echoes;

#[tokio::test]
async fn the_health_service_responds() {
    let site = Site::new();
    let Coordinator { address, .. } = &site.coordinator(&[]);
    let channel = tonic::transport::Endpoint::new(format!("http://{address}")).expect("a good URL");
    let mut health = HealthClient::new(channel.connect().await.expect("the server listens"));
    for service in ["", "evoxo.v1.WorkerService", "evoxo.v1.RunService"] {
        let answer = health.check(HealthCheckRequest { service: service.into() }).await.expect("an answer");
        assert_eq!(answer.into_inner().status(), ServingStatus::Serving, "{service:?}");
    }
}

#[tokio::test]
async fn a_lost_worker_is_replaced_and_its_late_results_are_accepted() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", &echoes(5)).await;
    let mut first = Session::join(coordinator.address, "w").await;
    let assigned = first.next_tasks().await.expect("tasks");
    drop(first);
    // The same worker sends in a new session what it computed in the old one.
    let mut second = Session::join(coordinator.address, "w").await;
    second.answer(0, &assigned.tasks, honest).await;
    loop {
        if let Some(Incoming::Accepted(accepted)) = second.receive().await.expect("a session") {
            assert_eq!(accepted.hashes.len(), assigned.tasks.len());
            break;
        }
    }
    drop(second);
    let worker = spawn_worker(coordinator.address, "other");
    person.finished("run").await;
    worker.abort();
}

#[tokio::test]
async fn a_stopped_coordinator_tells_its_workers_to_reconnect() {
    let site = Site::new();
    let mut coordinator = site.coordinator(&[]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", &echoes(1_000_000)).await;
    let mut session = Session::join(coordinator.address, "w").await;
    session.work(500).await;
    coordinator.process.signal("TERM");
    assert_eq!(session.end().await.expect("a last word").kind(), CloseKind::Retry);
    assert_eq!(coordinator.process.end().await.code(), Some(0), "{}", coordinator.process.log());
    let again = site.coordinator(&[]);
    let run = Person::of(again.address).get("run").await.expect("the run is there");
    assert!(run.rounds_done > 0, "absorbed outputs are saved: {run:?}");
}

/// A worker of another build may compute one kind in the same way and another one differently.
#[tokio::test]
async fn a_worker_gets_only_kinds_with_equal_signatures() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let mut person = Person::of(coordinator.address);
    let mut other = hello("other");
    let differs = other.kinds.iter_mut().find(|kind| kind.kind == "dispatch").expect("the kind");
    differs.sha256 = vec![7; 32].into();
    let mut session = Session::open(coordinator.address).await;
    session.send(Outgoing::Hello(other)).await;
    assert!(matches!(session.receive().await, Ok(Some(Incoming::Welcome(_)))));
    let workers = person.client.list_workers(evoxo_proto::v1::ListWorkersRequest {}).await.expect("workers");
    let worker = &workers.into_inner().workers[0];
    assert_eq!(worker.kinds_refused, ["dispatch"]);
    assert!(worker.kinds.contains(&"invincible".to_owned()) && !worker.kinds.contains(&"dispatch".to_owned()));
    person.submit("echo", &echoes(2)).await;
    let none = tokio::time::timeout(Duration::from_secs(1), session.next_tasks()).await;
    assert!(none.is_err(), "it got tasks of a kind that it computes differently: {none:?}");
    person.submit("players", crate::INVINCIBLE).await;
    let assigned = session.next_tasks().await.expect("tasks");
    assert!(assigned.tasks.iter().all(|task| task.message().expect("a task").kind == "invincible"));
    let worker = spawn_worker(coordinator.address, "good");
    person.finished("echo").await;
    worker.abort();
}
