//! Two people and a coordinator with little memory. One of them wants more of it than one person may have.

use evoxo_access::Role;
use evoxo_proto::v1::RunState;
use evoxo_tests::{
    live::Site,
    person::{Person, digest_of_one_thread},
    secure::Secure,
};

/// With 16 MiB of memory each run takes at least 5.3 MiB, and up to 8 MiB if available; the runs of one person may have 12
/// MiB.
const LARGE: &str =
    "experiment = \"dispatch\"\nreplicas = 60\n[settings]\nrounds = 2\ntasks = 4\npayload_bytes = 60000\n";

/// Only the second run of the greedy person waits, with a sentence. The coordinator is killed meanwhile, and nothing is lost.
#[tokio::test]
async fn the_runs_of_one_submitter_leave_memory_for_another() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let memory = ["--memory", "16MiB"];
    let mut coordinator = secure.coordinator("127.0.0.1:0", &memory);
    let address = coordinator.address;
    let other = secure.newcomer(address, Role::Operator, "modest").await;
    let (mut greedy, mut modest) = (secure.person(address), Person::with(address, &other));
    for name in ["first", "second"] {
        greedy.submit(name, LARGE).await;
    }
    modest.submit("third", LARGE).await;
    let waits = greedy.wait("second", |run| run.message.contains("memory")).await;
    let sentence = "it waits for memory: other runs of ";
    let why = "use most of the three quarters that one submitter may have";
    assert!(waits.message.starts_with(sentence) && waits.message.ends_with(why), "{waits:?}");
    let token = secure.token(address, Role::Worker, 3600, 2).await;
    let _workers = ["one", "two"].map(|name| secure.worker(address, &token, name));
    let third = modest.wait("third", |run| run.tasks_done > 0).await;
    assert!(!third.message.contains("memory"), "{third:?}");
    coordinator.process.kill();
    coordinator = secure.coordinator(&address.to_string(), &memory);
    let digest = digest_of_one_thread(LARGE);
    for name in ["first", "second", "third"] {
        let run = greedy.finished(name).await;
        assert_eq!((run.state(), &run.digest, run.notices.len()), (RunState::Finished, &digest, 0), "{run:?}");
    }
    assert!(!coordinator.process.log().contains("error"), "{}", coordinator.process.log());
}
