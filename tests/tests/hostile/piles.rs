//! Many results have piled up in a store. A start needs no memory for them, and reads them without haste.

use std::{fs, path::Path, time::Instant};

use evoxo_proto::v1::{FetchRequest, RunState};
use evoxo_tests::{
    live::{Process, Site},
    person::Person,
};

/// One replica, whose state has some 12 MB.
const LARGE: &str = "experiment = \"evolve\"\nseed = 1\nreplicas = 1\n[settings]\nproblem = \"sphere\"\nalgorithm = \"ga\"\nlength = 1000\n\
                     population = 1500\nevaluations = 1500\nbaseline = \"none\"\n";
/// So many copies have ten times the bytes that a coordinator may use.
const COPIES: usize = 120;
/// The most memory of a coordinator that loads such a store with `--memory 64MiB`: that memory, one replica as stored, as
/// decoded and as computed with, and the rest of the process.
const PEAK_BYTES: u64 = (64 + 3 * 12 + 50) << 20;

/// Makes the same run available under another name, without storing its bytes again.
fn link_run(runs: &Path, from: &str, to: &str) {
    for directory in ["order", "order-copy", "finished", "finished-copy"] {
        fs::create_dir_all(runs.join(to).join(directory)).expect("a directory");
        for entry in fs::read_dir(runs.join(from).join(directory)).expect("a directory").flatten() {
            fs::hard_link(entry.path(), runs.join(to).join(directory).join(entry.file_name())).expect("a link");
        }
    }
}

/// How many bytes a process has read so far, on Linux.
fn bytes_read(process: &Process) -> Option<u64> {
    let io = fs::read_to_string(format!("/proc/{}/io", process.id())).ok()?;
    io.lines().find_map(|line| line.strip_prefix("rchar: "))?.parse().ok()
}

#[expect(clippy::print_stdout, reason = "`--nocapture` shows the figures; docs/operating.md has those of .ci/start")]
fn assert_small(process: &Process, when: &str) {
    if let Some(bytes) = process.memory_bytes("VmHWM") {
        println!("{} results of 12 MB, --memory 64MiB, {when}: {} MiB at most", COPIES + 1, bytes >> 20);
        assert!(bytes < PEAK_BYTES, "{when}: {} MiB", bytes >> 20);
    }
}

/// The only file in a directory.
fn only(directory: &Path) -> std::path::PathBuf {
    fs::read_dir(directory).expect("a directory").next().expect("a file").expect("a file").path()
}

#[tokio::test]
async fn a_start_needs_no_memory_for_accumulated_results() {
    let site = Site::new();
    let coordinator = site.coordinator(&["--memory", "512MiB"]);
    let address = coordinator.address.to_string();
    let worker = site.worker(coordinator.address, &[]);
    let mut person = Person::of(coordinator.address);
    person.submit("large", LARGE).await;
    let digest = person.finished("large").await.digest;
    drop((worker, coordinator));
    let runs = site.path("store/runs");
    assert!(runs.join("large/index").exists());
    (0..COPIES).for_each(|copy| link_run(&runs, "large", &format!("copy-{copy}")));

    // The copies have no index, like runs of a build from before indices.
    let mut coordinator = site.coordinator_on(&address, &["--memory", "64MiB"]);
    assert_eq!(person.wait("copy-7", |_| true).await.digest, digest);
    assert_small(&coordinator.process, "without an index");
    // kill -9. The index was written before anything was served.
    coordinator.process.kill();

    // One bit of a result has changed but not its length, so a start does not find the damage.
    let damaged = only(&runs.join("copy-7/finished"));
    let good = fs::read(&damaged).expect("the file exists");
    let mut bytes = good.clone();
    bytes[1_000_000] ^= 1;
    fs::remove_file(&damaged).expect("a link");
    fs::write(&damaged, bytes).expect("a file");
    let coordinator = site.coordinator_on(&address, &["--memory", "64MiB"]);
    assert_eq!(person.wait("copy-7", |_| true).await.digest, digest);
    if let Some(bytes) = bytes_read(&coordinator.process) {
        assert!(bytes < 64 << 20, "a start reads {} MiB of {} MiB", bytes >> 20, COPIES * 12);
    }
    // A client that requests the result gets the copy, and the background pass rewrites the object.
    let mut client = person.client.clone().max_decoding_message_size(16 << 20);
    let mut fetched =
        client.fetch(FetchRequest { name: "copy-7".into() }).await.expect("the coordinator answers").into_inner();
    assert!(fetched.message().await.expect("a replica").is_some_and(|replica| replica.finished));
    let told = |run: &evoxo_proto::v1::Run| run.notices.iter().any(|notice| notice.contains("was rewritten from"));
    person.wait("copy-7", told).await;
    assert!(fs::read(&damaged).expect("the file exists") == good);
    assert_small(&coordinator.process, "with an index");
}

/// Both objects of a replica are damaged: the replica is computed again, and the run has the same digest.
#[tokio::test]
async fn a_lost_result_is_recomputed() {
    let site = Site::new();
    let coordinator = site.coordinator(&["--memory", "512MiB"]);
    let address = coordinator.address.to_string();
    let worker = site.worker(coordinator.address, &[]);
    let mut person = Person::of(coordinator.address);
    person.submit("large", LARGE).await;
    let digest = person.finished("large").await.digest;
    drop(coordinator);
    for directory in ["finished", "finished-copy"] {
        let path = only(&site.path("store/runs/large").join(directory));
        let mut bytes = fs::read(&path).expect("the file exists");
        bytes[500] ^= 1;
        fs::write(path, bytes).expect("a file");
    }
    let coordinator = site.coordinator_on(&address, &["--memory", "512MiB"]);
    let begun = Instant::now();
    let lost = |run: &evoxo_proto::v1::Run| run.notices.iter().any(|notice| notice.contains("is computed again"));
    person.wait("large", lost).await;
    let run = person.wait("large", |run| run.state() == RunState::Finished).await;
    assert_eq!(run.digest, digest, "after {:?}", begun.elapsed());
    drop((coordinator, worker));
}
