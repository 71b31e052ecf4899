//! Results do not depend on the number of workers, the batches or the instruction sets.

use evoxo_tests::{
    live::Site,
    person::{Person, digest_of_one_thread},
};

use crate::{DISPATCH, INVINCIBLE, MENACE, NNDTF, RULES, TD3D, TERNARY};

/// All small runs.
const RUNS: [(&str, &str); 7] = [
    ("one", INVINCIBLE),
    ("two", DISPATCH),
    ("three", TD3D),
    ("networks", NNDTF),
    ("rules", RULES),
    ("strings", TERNARY),
    ("matchboxes", MENACE),
];

/// A worker with default options.
const NO_MORE: &[&str] = &[];

/// Computes all small runs at once, on a coordinator with these arguments and a worker for each entry of `workers`.
async fn assert_same_digests(coordinator: &[&str], workers: &[&[&str]]) {
    let site = Site::new();
    let coordinator = site.coordinator(coordinator);
    let _workers: Vec<_> = workers.iter().map(|arguments| site.worker(coordinator.address, arguments)).collect();
    let mut person = Person::of(coordinator.address);
    for (name, config) in RUNS {
        assert!(person.submit(name, config).await);
    }
    for (name, config) in RUNS {
        let run = person.finished(name).await;
        assert_eq!(run.digest, digest_of_one_thread(config), "{name}");
        assert_eq!((run.replicas_finished, run.rounds_done), (run.replicas_total, run.rounds_total));
        assert_eq!((run.tasks_assigned, run.notices), (0, Vec::<String>::new()));
    }
}

#[tokio::test]
async fn with_one_worker() {
    assert_same_digests(&[], &[&[]]).await;
}

#[tokio::test]
async fn with_two_workers_one_of_which_has_three_slots() {
    assert_same_digests(&[], &[&[], &["--slots", "3"]]).await;
}

#[tokio::test]
async fn with_five_workers() {
    assert_same_digests(&[], &[NO_MORE; 5]).await;
}

#[tokio::test]
async fn with_one_task_at_a_time() {
    assert_same_digests(&["--batch", "1"], &[NO_MORE; 2]).await;
}

#[tokio::test]
async fn with_all_tasks_at_once() {
    assert_same_digests(&["--batch", "1000000"], &[NO_MORE; 2]).await;
}

/// Trials of many games, in segments of a thousand, of ten thousand, and in one segment.
#[tokio::test]
async fn with_segments_of_any_length() {
    let trials = |segment: u32| {
        format!(
            "experiment = \"td3d\"\nreplicas = 2\n[settings]\ngame = \"tic-tac-toe\"\nnetwork = \"small\"\nunits = 8\n\
             games = 20000\ntest_every = 5000\ntest_games = 100\nsegment_games = {segment}\n"
        )
    };
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let _workers = [(); 2].map(|()| site.worker(coordinator.address, &[]));
    let mut person = Person::of(coordinator.address);
    let whole = digest_of_one_thread(&trials(20_000));
    for segment in [1000, 10_000] {
        person.submit(&segment.to_string(), &trials(segment)).await;
    }
    for segment in [1000, 10_000_u32] {
        let run = person.finished(&segment.to_string()).await;
        assert_eq!((run.digest, run.rounds_done), (whole.clone(), u64::from(2 * 20_000 / segment)), "{segment}");
    }
}

#[tokio::test]
async fn with_any_instructions() {
    assert_same_digests(&[], &[&["--simd", "baseline"], &["--simd", "auto"]]).await;
    for level in ["baseline", "avx2"] {
        assert_same_digests(&[], &[&["--simd", level]]).await;
    }
}
