//! Two coordinators on one store.

use std::{
    fs,
    net::SocketAddr,
    time::{Duration, Instant},
};

use evoxo_tests::{
    live::{PATIENCE, Site},
    person::{Person, digest_of_one_thread, is_absence},
};

use tonic::transport::Endpoint;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};

use crate::lasting;

/// Whether the coordinator leads. A coordinator that becomes leader or standby ends its connections, so a call that is
/// interrupted by that is repeated.
pub(crate) async fn health(coordinator: SocketAddr) -> ServingStatus {
    let endpoint = Endpoint::new(format!("http://{coordinator}")).expect("a good URL");
    let start = Instant::now();
    loop {
        let mut health = HealthClient::new(endpoint.connect().await.expect("the server listens"));
        match health.check(HealthCheckRequest::default()).await {
            Ok(answer) => return answer.into_inner().status(),
            Err(status) => assert!(is_absence(&status) && start.elapsed() < PATIENCE, "{status}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
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
    assert!(log.contains("--standby"), "{log}");
    let _worker = site.worker(first.address, &[]);
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(&lasting(1, 3)));
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
