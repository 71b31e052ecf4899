//! The program as a process: how it starts, stops and refuses.

use std::{process::Command, time::Duration};

use evoxo_proto::v1::RunState;

use crate::support::{Daemon, Session, config, ends, get, place, program, small_disk, spawn_worker, submit, until};

/// A refusal is one line, `error: ` and a sentence with all of `words`, and this exit status.
fn assert_refused(arguments: &[&str], status: i32, words: &[&str]) {
    let (code, said) = ends(program(), arguments);
    assert_eq!(code, Some(status), "{arguments:?}: {said}");
    let line =
        said.lines().find(|line| line.starts_with("error: ")).unwrap_or_else(|| panic!("no error line in {said}"));
    for word in words {
        assert!(line.contains(word), "{line:?} does not say {word:?}");
    }
}

#[test]
fn what_cannot_be_done_is_told_in_one_line() {
    let (directory, store) = place();
    let store = store.to_str().unwrap();
    let daemon = Daemon::start(directory.path().join("other").as_path());
    let taken = daemon.address.to_string();
    assert_refused(&["--listen", &taken, "--store", store], 1, &["cannot listen", &taken, "--listen"]);
    let file = directory.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let file = file.to_str().unwrap();
    assert_refused(&["--listen", "127.0.0.1:0", "--store", file], 1, &[file, "--store"]);
    assert_refused(&["--listen", "127.0.0.1:0", "--store", "/proc/evoxo"], 1, &["/proc/evoxo", "--store"]);
    assert_refused(&["--listen", "0.0.0.0:0", "--store", store], 2, &["0.0.0.0:0", "--insecure"]);
    assert_refused(&["--listen", "[::]:0", "--store", store], 2, &["--insecure"]);
    assert_refused(&["--listen", "here"], 2, &["here", "--listen"]);
    assert_refused(&["--lisen", "127.0.0.1:0"], 2, &["--lisen"]);
    assert_refused(&["--batch", "0"], 2, &["--batch"]);
    assert_refused(&["--checkpoint-interval", "3 weeks"], 2, &["3 weeks", "500ms"]);
}

#[test]
fn who_asks_for_the_address_and_does_not_read_it_is_told() {
    let (_directory, store) = place();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = program();
    command.stdout(writer);
    let (code, said) = ends(command, &["--listen", "127.0.0.1:0", "--announce", "--store", store.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("error: cannot announce the address on standard output"), "{said}");
}

#[test]
fn help_has_examples_and_version_the_commit() {
    let help = program().arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.contains("Examples:") && help.contains("--store") && !help.contains("--announce"), "{help}");
    let version = program().arg("--version").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    assert!(version.starts_with("evoxo-coordinator ") && version.contains('('), "{version}");
}

#[tokio::test]
async fn sigterm_saves_and_ends_with_zero() {
    let (_directory, store) = place();
    let mut daemon = Daemon::start_with(&store, &["--checkpoint-interval", "1h"]);
    submit(&mut daemon.people().await, "demo", &config(1_000_000)).await.unwrap();
    Session::open(daemon.address).await.work(300).await;
    let done = get(&mut daemon.people().await, "demo").await.rounds_done;
    assert!(done > 0);
    let killed = Command::new("kill").args(["-TERM", &daemon.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert!(daemon.wait().success(), "{}", daemon.log());
    let again = Daemon::start(&store);
    assert!(get(&mut again.people().await, "demo").await.rounds_done >= done, "nothing absorbed is lost");
}

#[tokio::test]
async fn a_second_coordinator_on_the_same_store_takes_over_and_the_first_says_so() {
    let (_directory, store) = place();
    let first = Daemon::start(&store);
    let mut first_client = first.people().await;
    submit(&mut first_client, "demo", &config(1_000_000)).await.unwrap();
    let second = Daemon::start(&store);
    let worker = tokio::spawn({
        let address = first.address;
        async move { Session::open(address).await.work(usize::MAX).await }
    });
    let held = until(&mut first_client, "demo", RunState::Held).await;
    assert!(held.message.contains("another coordinator"), "{}", held.message);
    assert_eq!(get(&mut second.people().await, "demo").await.state(), RunState::Running);
    worker.abort();
}

#[tokio::test]
async fn a_second_coordinator_on_a_taken_port_leaves_the_runs_of_the_first_alone() {
    let (_directory, store) = place();
    let daemon = Daemon::start(&store);
    let mut client = daemon.people().await;
    submit(&mut client, "demo", &config(20)).await.unwrap();
    let (code, _) = ends(program(), &["--listen", &daemon.address.to_string(), "--store", store.to_str().unwrap()]);
    assert_eq!(code, Some(1));
    let worker = spawn_worker(daemon.address);
    until(&mut client, "demo", RunState::Finished).await;
    worker.abort();
}

#[tokio::test]
async fn only_so_many_finished_runs_are_kept() {
    let (_directory, store) = place();
    let daemon = Daemon::start_with(&store, &["--keep-finished", "1"]);
    let mut client = daemon.people().await;
    let worker = spawn_worker(daemon.address);
    for name in ["one", "two", "three"] {
        submit(&mut client, name, &config(2)).await.unwrap();
        until(&mut client, name, RunState::Finished).await;
    }
    let start = std::time::Instant::now();
    while store.join("runs/two").exists() || store.join("runs/one").exists() {
        assert!(start.elapsed() < crate::support::PATIENCE, "old runs stay");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(store.join("runs/three").exists());
    worker.abort();
}

#[tokio::test]
async fn a_damaged_checkpoint_is_named_in_the_log_and_in_the_run() {
    let (_directory, store) = place();
    let daemon = Daemon::start(&store);
    submit(&mut daemon.people().await, "demo", &config(1_000_000)).await.unwrap();
    let mut session = Session::open(daemon.address).await;
    session.work(200).await;
    // What is still being written has a number behind a # until it is whole.
    let checkpoints = || -> Vec<_> {
        let entries = std::fs::read_dir(store.join("runs/demo/checkpoint")).into_iter().flatten();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| !path.to_string_lossy().contains('#')).collect()
    };
    let start = std::time::Instant::now();
    while checkpoints().is_empty() {
        assert!(start.elapsed() < crate::support::PATIENCE, "no checkpoint is taken");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    daemon.kill();
    let mut checkpoints = checkpoints();
    checkpoints.sort();
    let newest = checkpoints.pop().unwrap();
    let bytes = std::fs::read(&newest).unwrap();
    std::fs::write(&newest, &bytes[..bytes.len() - 1]).unwrap();
    let again = Daemon::start(&store);
    let name = newest.file_name().unwrap().to_str().unwrap();
    let run = get(&mut again.people().await, "demo").await;
    assert!(run.notices.iter().any(|notice| notice.contains(name)), "{:?}", run.notices);
    assert!(again.log().contains(name), "{}", again.log());
}

#[test]
fn a_full_disk_at_the_start_is_told_in_one_line() {
    let (_directory, store) = place();
    let store = store.to_str().unwrap();
    let (code, said) = ends(small_disk(0), &["--listen", "127.0.0.1:0", "--store", store]);
    assert_eq!(code, Some(1));
    assert!(said.starts_with("error: ") && said.contains(store) && said.lines().count() == 1, "{said}");
}

#[tokio::test]
async fn a_disk_that_fills_up_holds_the_run_and_nothing_saved_is_lost() {
    let (_directory, store) = place();
    let mut daemon = Daemon::start_on_small_disk(&store, 256);
    let mut client = daemon.people().await;
    submit(&mut client, "demo", &config(1_000_000)).await.unwrap();
    let worker = spawn_worker(daemon.address);
    let held = until(&mut client, "demo", RunState::Held).await;
    worker.abort();
    assert!(held.message.contains("runs/demo/checkpoint/") && held.message.contains("room"), "{}", held.message);
    assert!(held.rounds_done > 0);
    // It cannot save what it has, says so, and does not wait for ever.
    daemon.close_stdin();
    assert_eq!(daemon.wait().code(), Some(1));
    // With room, the run goes on from what was saved.
    let again = Daemon::start(&store);
    let mut client = again.people().await;
    let run = get(&mut client, "demo").await;
    assert!(run.state() == RunState::Running && run.notices.is_empty(), "{run:?}");
    let before = run.rounds_done;
    assert!(before > 0, "the checkpoints that were written are good");
    Session::open(again.address).await.work(200).await;
    assert!(get(&mut client, "demo").await.rounds_done > before);
}

#[cfg(target_os = "linux")]
#[test]
fn an_idle_coordinator_is_small() {
    let (_directory, store) = place();
    let daemon = Daemon::start(&store);
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.id())).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let resident_kib: u64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(resident_kib < 40 * 1024, "{resident_kib} KiB");
}
