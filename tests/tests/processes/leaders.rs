//! Two coordinators on one store.

use evoxo_proto::v1::RunState;
use evoxo_tests::{
    live::Site,
    person::{Person, digest_of_one_thread},
};

use crate::lasting;

#[tokio::test]
async fn the_second_takes_over_and_the_first_holds_the_run() {
    let site = Site::new();
    let config = lasting(3, 15);
    let first = site.coordinator(&[]);
    let mut person = Person::of(first.address);
    person.submit("run", &config).await;
    let second = site.coordinator(&[]);
    let _workers = [0, 1].map(|_| site.worker(first.address, &[]));
    let held = person.wait("run", |run| run.state() == RunState::Held).await;
    assert!(held.message.contains("run run was taken over by another coordinator"), "{held:?}");
    let _worker = site.worker(second.address, &[]);
    let done = Person::of(second.address).finished("run").await;
    assert_eq!(done.digest, digest_of_one_thread(&config));
    assert_eq!(person.get("run").await.expect("the first still answers").state(), RunState::Held);
}
