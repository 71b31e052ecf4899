//! Two coordinators on one store.

use std::{fs, net::SocketAddr};

use evoxo_proto::v1::{ResumeRequest, RunState, WatchRequest};
use evoxo_tests::{
    live::Site,
    person::{Person, digest_of_one_thread},
};

use tonic::transport::Endpoint;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};

use crate::lasting;

async fn health(coordinator: SocketAddr) -> ServingStatus {
    let endpoint = Endpoint::new(format!("http://{coordinator}")).expect("a good URL");
    let mut health = HealthClient::new(endpoint.connect().await.expect("it listens"));
    health.check(HealthCheckRequest::default()).await.expect("a response").into_inner().status()
}

#[tokio::test]
async fn a_second_coordinator_on_the_machine_does_not_start() {
    let site = Site::new();
    let first = site.coordinator(&[]);
    let mut person = Person::of(first.address);
    person.submit("run", &lasting(1, 3)).await;
    let mut second = site.program("evoxo-coordinator", &["--listen", "127.0.0.1:0", "--store", "store"]);
    assert_eq!(second.end().await.code(), Some(1));
    let log = second.log();
    assert!(log.contains("is in use by another coordinator (process ") && log.contains("stop that one first"), "{log}");
    let _worker = site.worker(first.address, &[]);
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(&lasting(1, 3)));
}

/// As from another host, which does not see the lock.
#[tokio::test]
async fn a_run_is_taken_over_and_taken_back() {
    let site = Site::new();
    let config = lasting(3, 15);
    let first = site.coordinator(&[]);
    let mut person = Person::of(first.address);
    person.submit("run", &config).await;
    fs::remove_file(site.path("store/lock")).expect("a lock");
    let second = site.coordinator(&[]);
    let _workers = [0, 1].map(|_| site.worker(first.address, &[]));
    let blocked = person.wait("run", |run| run.state() == RunState::Blocked).await;
    assert!(blocked.message.contains("another coordinator owns run run now"), "{blocked:?}");
    assert!(blocked.message.contains("evoxo resume run"), "{blocked:?}");
    let mut watch = person.client.watch(WatchRequest { name: "run".into() }).await.expect("a stream").into_inner();
    let seen = watch.message().await.expect("the run").expect("one message");
    assert_eq!(seen.state(), RunState::Blocked);
    assert!(watch.message().await.expect("no error").is_none(), "nothing more is to be seen: the watch ends");
    assert_eq!(health(first.address).await, ServingStatus::NotServing);
    drop(second);
    let resume = ResumeRequest { name: "run".into() };
    person.client.resume(resume).await.expect("it is free again");
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(&config));
    assert_eq!(health(first.address).await, ServingStatus::Serving);
}

#[tokio::test]
async fn a_used_port_is_noticed_before_the_store_is_touched() {
    let site = Site::new();
    let first = site.coordinator(&[]);
    let taken = first.address.to_string();
    fs::remove_file(site.path("store/lock")).expect("a lock");
    let mut second = site.program("evoxo-coordinator", &["--listen", &taken, "--store", "store"]);
    assert_eq!(second.end().await.code(), Some(1));
    assert!(second.log().contains("choose another port with --listen"), "{}", second.log());
    assert!(!site.path("store/lock").exists());
}
