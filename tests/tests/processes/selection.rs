//! Which workers compute a run, and which runs a command means, with the command line.

use std::{net::SocketAddr, process::Command, time::Duration};

use evoxo_tests::{
    live::Site,
    person::{Person, digest_of_one_thread},
    programs::program,
};

use crate::DISPATCH;

/// Whether the command succeeds, and what it prints.
fn evoxo(coordinator: SocketAddr, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(program("evoxo"));
    command.args(arguments).args(["--coordinator", &coordinator.to_string()]).env_remove("EVOXO_ACCESS");
    let output = command.output().expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text.into_owned())
}

fn written(site: &Site) -> String {
    let file = site.path("dispatch.toml");
    std::fs::write(&file, DISPATCH).expect("a file");
    file.to_string_lossy().into_owned()
}

/// The result is that of a run on any workers.
#[tokio::test]
async fn only_workers_with_the_label_compute_a_run() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let address = coordinator.address;
    let file = written(&site);
    let _plain = site.worker(address, &["--name", "plain", "--label", "gpu=none"]);
    let (done, said) = evoxo(address, &["submit", &file, "--name", "r", "--term", "where=gpu=a100,site=lab"]);
    assert!(done, "{said}");
    let mut person = Person::of(address);
    person.worker("plain").await;
    let waits = person.wait("r", |run| run.message.contains("has the labels gpu=a100,site=lab: start one")).await;
    assert_eq!((waits.workers, waits.tasks_done), (0, 0));
    let _fit = site.worker(address, &["--name", "fit", "--label", "site=lab", "--label", "gpu=a100"]);
    let run = person.finished("r").await;
    assert_eq!(run.digest, digest_of_one_thread(DISPATCH));
    assert!(person.worker_that("fit", |worker| worker.tasks_done > 0).await.labels == ["gpu=a100", "site=lab"]);
    assert_eq!(person.worker("plain").await.tasks_done, 0);
    let (_, said) = evoxo(address, &["workers"]);
    assert!(said.contains("labels gpu=a100, site=lab: fit") && said.contains("labels gpu=none: plain"), "{said}");
    let (done, said) = evoxo(address, &["submit", &file, "--name", "other", "--term", "where=gpu"]);
    assert!(!done && said.contains("the term where is \"gpu\": it must be KEY=VALUE"), "{said}");
    let wrong = Command::new(program("evoxo-worker")).args(["--label", "gpu"]).output().expect("the program starts");
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
}

/// A finished run is copied into the store of a running coordinator, which finds it without a restart.
#[tokio::test]
async fn a_copied_run_is_found_by_resume_and_selected_by_age() {
    let (site, other) = (Site::new(), Site::new());
    let (coordinator, second) = (site.coordinator(&[]), other.coordinator(&[]));
    let _worker = site.worker(coordinator.address, &[]);
    let (mut person, mut stranger) = (Person::of(coordinator.address), Person::of(second.address));
    person.submit("done", DISPATCH).await;
    let digest = person.finished("done").await.digest;
    std::fs::create_dir_all(other.path("store/runs")).expect("a directory");
    let (from, to) = (site.path("store/runs/done"), other.path("store/runs/"));
    let copied = Command::new("cp").arg("-r").args([from, to]).status();
    assert!(copied.expect("cp starts").success());
    assert!(stranger.get("done").await.is_err());
    let (done, said) = evoxo(second.address, &["pause", "done"]);
    assert!(!done && said.contains("there is no run \"done\" here"), "{said}");
    let (done, said) = evoxo(second.address, &["resume", "done"]);
    assert!(done && said.contains("done is finished"), "{said}");
    assert_eq!(stranger.get("done").await.expect("the run").digest, digest);
    let (done, said) = evoxo(second.address, &["check-upgrade"]);
    assert!(done && said.contains("all 1 runs in"), "{said}");
    let (_, said) = evoxo(second.address, &["runs", "--older", "1h"]);
    assert!(said.contains("no runs have this state, owner and age"), "{said}");
    tokio::time::sleep(Duration::from_millis(2100)).await;
    let (_, said) = evoxo(second.address, &["runs", "--older", "1s", "--state", "finished"]);
    assert!(said.contains("done") && said.contains("submitted"), "{said}");
    let (done, said) = evoxo(second.address, &["cancel", "--older", "1s", "--delete"]);
    assert!(done && said.contains("done is deleted"), "{said}");
    assert!(stranger.get("done").await.is_err());
    assert_eq!(person.get("done").await.expect("the run").digest, digest);
}
