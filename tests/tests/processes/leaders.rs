//! Two coordinators on one store.

use std::fs;

use evoxo_proto::v1::{ResumeRequest, RunState};
use evoxo_tests::{
    live::Site,
    person::{Person, digest_of_one_thread},
};

use crate::lasting;

#[tokio::test]
async fn on_one_machine_the_second_does_not_start() {
    let site = Site::new();
    let first = site.coordinator(&[]);
    let mut person = Person::of(first.address);
    person.submit("run", &lasting(1, 3)).await;
    let mut second = site.program("evoxo-coordinator", &["--listen", "127.0.0.1:0", "--store", "store"]);
    assert_eq!(second.end().await.code(), Some(1));
    let told = second.log();
    assert!(
        told.contains("is in use by another coordinator (process ") && told.contains("stop that one first"),
        "{told}"
    );
    let _worker = site.worker(first.address, &[]);
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(&lasting(1, 3)));
}

/// As from another host: it does not see the lock.
#[tokio::test]
async fn the_second_takes_over_and_the_first_takes_the_run_back_when_it_is_gone() {
    let site = Site::new();
    let config = lasting(3, 15);
    let first = site.coordinator(&[]);
    let mut person = Person::of(first.address);
    person.submit("run", &config).await;
    fs::remove_file(site.path("store/lock")).expect("a lock");
    let second = site.coordinator(&[]);
    let _workers = [0, 1].map(|_| site.worker(first.address, &[]));
    let blocked = person.wait("run", |run| run.state() == RunState::Blocked).await;
    assert!(blocked.message.contains("run run was taken over by another coordinator"), "{blocked:?}");
    assert!(blocked.message.contains("evoxo resume run"), "{blocked:?}");
    drop(second);
    let resume = ResumeRequest { name: "run".into() };
    person.client.resume(resume).await.expect("it is free again");
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(&config));
}

#[tokio::test]
async fn a_port_that_is_taken_is_found_before_the_store_is_touched() {
    let site = Site::new();
    let first = site.coordinator(&[]);
    let taken = first.address.to_string();
    fs::remove_file(site.path("store/lock")).expect("a lock");
    let mut second = site.program("evoxo-coordinator", &["--listen", &taken, "--store", "store"]);
    assert_eq!(second.end().await.code(), Some(1));
    assert!(second.log().contains("choose another port with --listen"), "{}", second.log());
    assert!(!site.path("store/lock").exists());
}
