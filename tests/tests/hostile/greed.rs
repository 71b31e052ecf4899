//! Small files that ask for much: memory is limited, and other runs do not wait.

use std::time::{Duration, Instant};

use evoxo_proto::v1::RunState;
use evoxo_tests::{
    live::Site,
    person::{Person, digest_of_one_thread},
};
use tonic::Code;

use crate::{assert_quick, echoes};

/// The most memory that a coordinator uses in addition to `--memory`.
const BESIDE_BYTES: u64 = 150 << 20;

/// A round of 6.5 GB, described in 93 bytes. Another run is computed at the same time, and both survive a restart.
#[tokio::test]
async fn a_round_of_gigabytes_is_planned_piece_by_piece() {
    let site = Site::new();
    let coordinator = site.coordinator(&["--memory", "256MiB"]);
    let address = coordinator.address.to_string();
    let worker = site.worker(coordinator.address, &[]);
    let mut person = Person::of(coordinator.address);
    person.submit("greedy", &echoes(1, 10, 100_000, 65_536)).await;
    let small = echoes(2, 50, 10, 16);
    person.submit("small", &small).await;
    assert_eq!(person.finished("small").await.digest, digest_of_one_thread(&small));
    person.wait("greedy", |run| run.tasks_done > 500).await;
    if let Some(bytes) = coordinator.process.memory_bytes("VmHWM") {
        assert!(bytes < (256 << 20) + BESIDE_BYTES, "{} MiB", bytes >> 20);
    }
    assert_quick(&coordinator.process.log());
    drop((coordinator, worker));
    let coordinator = site.coordinator_on(&address, &["--memory", "256MiB"]);
    let _worker = site.worker(coordinator.address, &[]);
    person.wait("greedy", |run| run.tasks_done > 500).await;
    person.submit("after", &small).await;
    assert_eq!(person.finished("after").await.digest, digest_of_one_thread(&small));
}

/// Ten replicas with rounds of 250 MB: only as many are open as fit into memory.
#[tokio::test]
async fn replicas_are_opened_as_memory_allows() {
    let site = Site::new();
    let coordinator = site.coordinator(&["--memory", "64MiB"]);
    let _worker = site.worker(coordinator.address, &[]);
    let mut person = Person::of(coordinator.address);
    let config = echoes(10, 1, 1000, 65_536);
    person.submit("run", &config).await;
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(&config));
    if let Some(bytes) = coordinator.process.memory_bytes("VmHWM") {
        assert!(bytes < (64 << 20) + BESIDE_BYTES, "{} MiB", bytes >> 20);
    }
    assert_quick(&coordinator.process.log());
}

#[tokio::test]
async fn a_run_that_cannot_fit_is_rejected_with_a_reason() {
    let site = Site::new();
    let coordinator = site.coordinator(&["--memory", "16MiB"]);
    let mut person = Person::of(coordinator.address);
    let config = echoes(1, 1, 100_000, 8).replace("reply_bytes = 16", "reply_bytes = 65536");
    let refused = person.try_submit("run", &config).await.expect_err("6.5 GB of outputs");
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("--memory"), "{refused}");
    // A run that was submitted when there was more memory is blocked, and its message says what to do.
    let address = coordinator.address.to_string();
    drop(coordinator);
    let coordinator = site.coordinator_on(&address, &["--memory", "16GiB"]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", &echoes(1, 1, 100_000, 8).replace("reply_bytes = 16", "reply_bytes = 1024")).await;
    drop(coordinator);
    let _coordinator = site.coordinator_on(&address, &["--memory", "16MiB"]);
    let blocked = person.wait("run", |run| run.state() == RunState::Blocked).await;
    assert!(blocked.message.contains("--memory"), "{blocked:?}");
}

/// Files with 250,000 mistakes, and one of a million characters, are refused quickly and with few lines.
#[tokio::test]
async fn files_full_of_mistakes_delay_no_one_else() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let mut person = Person::of(coordinator.address);
    let start = Instant::now();
    let repeated = "a=1\n".repeat(262_000);
    let different: String = (0..50_000).map(|number| format!("k{number}=1\n")).collect();
    let long = format!("experiment = \"{}\"", "x".repeat(900_000));
    let arms: String = (0..9000).map(|number| format!("[arms.a{number}]\n")).collect();
    let nested = "a = ".to_owned() + &"[".repeat(200_000);
    for file in [repeated, different, long, arms, nested] {
        let refused = person.try_submit("run", &file).await.expect_err("the file is not an experiment");
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert!(refused.message().len() < 4096, "{} bytes of message", refused.message().len());
    }
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    assert_quick(&coordinator.process.log());
}
