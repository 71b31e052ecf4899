//! The coordinator as a process: start, stop and refusals.

use std::{
    fs,
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use evoxo_proto::v1::{FetchRequest, RunState, SubmitRequest, Term};
use evoxo_tests::{
    live::{PATIENCE, Site, limited},
    person::{Person, digest_of_one_thread},
    programs::{program, workspace},
    script::{Session, spawn_worker},
};

use crate::{DISPATCH, echoes};

#[tokio::test]
async fn an_address_that_cannot_be_announced_is_an_error() {
    let site = Site::new();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(program("evoxo-coordinator"));
    command.args(["--listen", "127.0.0.1:0", "--announce", "--store"]).arg(site.path("store")).stdout(writer);
    let mut process = site.start("coordinator", &mut command);
    assert_eq!(process.end().await.code(), Some(1));
    let log = process.log();
    assert!(log.contains("error: cannot announce the address on standard output"), "{log}");
}

/// Ctrl-C reaches every process of a terminal, not only the one that was started by hand.
#[tokio::test]
async fn ctrl_c_saves_everything() {
    let site = Site::new();
    let config =
        "experiment = \"dispatch\"\nreplicas = 3\n[settings]\nrounds = 100000\ntasks = 50\npayload_bytes = 500\n";
    fs::write(site.path("long.toml"), config).expect("a file");
    for _ in 0..6 {
        let mut command = Command::new(program("evoxo"));
        command.args(["run", "long.toml", "--workers", "2"]).current_dir(site.path("")).process_group(0);
        let mut run = site.start("evoxo", &mut command);
        let start = Instant::now();
        while !run.log().contains("replicas finished") {
            assert!(start.elapsed() < PATIENCE, "it does not begin: {}", run.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        run.interrupt_group();
        assert_eq!(run.end().await.code(), Some(1));
        let told = run.log();
        assert!(told.contains("rounds, which are saved. Continue with"), "{told}");
    }
}

#[test]
fn help_has_examples_and_version_the_commit() {
    let of = |name: &str, argument: &str| {
        let output = Command::new(program(name)).arg(argument).output().expect("the program starts");
        String::from_utf8(output.stdout).expect("text")
    };
    let text = |argument: &str| of("evoxo-coordinator", argument);
    let (help, version) = (text("--help"), text("--version"));
    assert!(help.contains("Examples:") && help.contains("--store") && !help.contains("--announce"), "{help}");
    let build = version.lines().next().and_then(|line| line.strip_prefix("evoxo-coordinator ")).expect("a version");
    assert!(build.starts_with(concat!(env!("CARGO_PKG_VERSION"), " (")) && build.ends_with(')'), "{build}");
    assert!(!build.contains("no commit") || !workspace().join(".git").exists(), "{build}");
    for name in ["evoxo", "evoxo-worker"] {
        assert_eq!(of(name, "-V"), format!("{name} {build}\n"));
    }
    assert!(version.lines().nth(1).is_some_and(|line| line == "wire format 3, store format 2"), "{version}");
    assert_eq!(text("-V").lines().count(), 1);
}

#[tokio::test]
async fn the_number_of_finished_runs_can_be_limited() {
    let site = Site::new();
    let coordinator = site.coordinator(&["--keep-finished", "1"]);
    let worker = spawn_worker(coordinator.address, "w");
    let mut person = Person::of(coordinator.address);
    for name in ["one", "two", "three"] {
        person.submit(name, &echoes(2)).await;
        person.finished(name).await;
    }
    let start = Instant::now();
    while site.path("store/runs/two").exists() || site.path("store/runs/one").exists() {
        assert!(start.elapsed() < PATIENCE, "old runs stay");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(site.path("store/runs/three").exists());
    worker.abort();
}

/// A run is announced at the run and in the log before it is deleted; one with the term keep=yes stays.
#[tokio::test]
async fn ended_runs_are_deleted_after_a_time() {
    let site = Site::new();
    let coordinator = site.coordinator(&["--retain", "5s"]);
    let worker = spawn_worker(coordinator.address, "w");
    let mut person = Person::of(coordinator.address);
    for name in ["one", "kept"] {
        person.submit(name, &echoes(2)).await;
        person.finished(name).await;
    }
    let (name, config) = ("kept".to_owned(), echoes(2));
    let terms = vec![Term { name: "keep".into(), value: "yes".into() }];
    let keep = SubmitRequest { name, config, terms, ..SubmitRequest::default() };
    person.client.submit(keep).await.expect("new terms");
    let told = person.wait("one", |run| !run.notices.is_empty()).await;
    assert!(told.notices[0].starts_with("this run will be deleted 5 s after its end"), "{:?}", told.notices);
    let start = Instant::now();
    while site.path("store/runs/one").exists() {
        assert!(start.elapsed() < PATIENCE, "an old run stays");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let log = coordinator.process.log();
    assert!(log.contains("run one: deleted, because it ended more than 5 s ago"), "{log}");
    assert!(site.path("store/runs/kept").exists() && person.get("kept").await.is_ok_and(|run| run.notices.is_empty()));
    worker.abort();
}

#[tokio::test]
async fn results_can_be_fetched_from_a_full_disk() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let worker = spawn_worker(coordinator.address, "w");
    let mut person = Person::of(coordinator.address);
    person.submit("run", DISPATCH).await;
    let before = person.finished("run").await;
    worker.abort();
    drop(coordinator);
    // Files cannot grow at all, as if the disk were full.
    let full = "trap '' XFSZ; ulimit -f 0";
    let coordinator = site.limited_coordinator(full, &[]);
    let mut person = Person::of(coordinator.address);
    assert_eq!(person.get("run").await.expect("the coordinator answers").digest, before.digest);
    let mut fetched =
        person.client.fetch(FetchRequest { name: "run".into() }).await.expect("the coordinator answers").into_inner();
    assert!(fetched.message().await.expect("a replica").is_some_and(|replica| replica.finished));
    drop(coordinator);

    // An empty store on such a disk is useless and refused.
    let mut command = limited("evoxo-coordinator", full);
    command.args(["--listen", "127.0.0.1:0", "--store"]).arg(site.path("other"));
    let output = command.stdin(Stdio::null()).output().expect("the program starts");
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{log}");
    assert!(log.starts_with("error: ") && log.contains("other") && log.lines().count() == 1, "{log}");
}

#[tokio::test]
async fn a_full_disk_only_delays_the_run() {
    let site = Site::new();
    let config = echoes(1_000_000);
    let mut coordinator = site.limited_coordinator("trap '' XFSZ; ulimit -f 256", &[]);
    let worker = spawn_worker(coordinator.address, "w");
    let mut person = Person::of(coordinator.address);
    person.submit("run", &config).await;
    let waits = person.wait("run", |run| run.message.contains("when the store can be written again")).await;
    worker.abort();
    assert!(waits.message.contains("runs/run/checkpoint/") && waits.message.contains("free space"), "{waits:?}");
    assert!(waits.state() == RunState::Running && waits.rounds_done > 0, "{waits:?}");
    // The coordinator cannot save its state, says so, and does not wait forever.
    coordinator.process.signal("TERM");
    assert_eq!(coordinator.process.end().await.code(), Some(1), "{}", coordinator.process.log());
    // With free space, the run continues from what was saved.
    let coordinator = site.coordinator(&[]);
    let mut person = Person::of(coordinator.address);
    let run = person.get("run").await.expect("the run is there");
    assert!(run.state() == RunState::Running && run.notices.is_empty() && run.rounds_done > 0, "{run:?}");
    Session::join(coordinator.address, "again").await.work(200).await;
    person.wait("run", |now| now.rounds_done > run.rounds_done).await;
}

#[cfg(target_os = "linux")]
#[test]
fn an_idle_coordinator_is_small() {
    let coordinator = Site::new();
    let coordinator = coordinator.coordinator(&[]);
    let bytes = coordinator.process.memory_bytes("VmRSS").expect("a figure");
    assert!(bytes < 40 << 20, "{bytes} bytes");
}

/// Only proper files remain: no test file, no half-written object.
#[tokio::test]
async fn a_stopped_coordinator_leaves_a_tidy_store() {
    let site = Site::new();
    let mut coordinator = site.coordinator(&[]);
    let worker = spawn_worker(coordinator.address, "w");
    let mut person = Person::of(coordinator.address);
    person.submit("run", DISPATCH).await;
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(DISPATCH));
    worker.abort();
    coordinator.process.signal("TERM");
    assert_eq!(coordinator.process.end().await.code(), Some(0));
    let names = |path: &str| {
        let entries = fs::read_dir(site.path(path)).expect("a directory").flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    };
    assert_eq!(names("store"), ["leader", "lock", "runs"]);
    assert_eq!(names("store/runs"), ["run"]);
    // The three replicas, in as many objects as they had to be written at a time.
    assert!((1..=3).contains(&site.objects("run", "finished").len()));
}
