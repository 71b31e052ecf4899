//! `evoxo fork --submit`: forks of runs on a coordinator.

use std::{
    fs,
    time::{Duration, Instant},
};

use evoxo_proto::v1::RunState;
use evoxo_tests::{
    live::{PATIENCE, Site},
    person::{Person, digest_of_one_thread},
};

const FILE: &str = "experiment = \"invincible\"\nreplicas = 2\n[settings]\npopulation = 60\ngames = 100\ngenerations = 8\n\
                    slice = 20\n";

#[tokio::test]
async fn a_run_on_a_coordinator_is_forked_there() {
    let site = Site::new();
    fs::write(site.path("table.toml"), FILE).expect("a file");
    let coordinator = site.coordinator(&[]);
    let _worker = site.worker(coordinator.address, &[]);
    let mut person = Person::of(coordinator.address);
    let address = coordinator.address.to_string();
    let evoxo = async |arguments: &[&str]| {
        let mut command = site.program("evoxo", &[arguments, &["--coordinator", &address]].concat());
        (command.end().await.success(), command.log())
    };
    let change = ["--at", "5", "--set", "penalty=50"];
    let (submitted, said) = evoxo(&["submit", "table.toml"]).await;
    assert!(submitted, "{said}");
    // Also while it is computed; its name is enough.
    let (forked, said) = evoxo(&[&["fork", "table", "--submit"], &change[..]].concat()).await;
    assert!(forked && said.contains("After round 5, penalty changes from"), "{said}");
    let (forked, said) = evoxo(&[&["fork", "table", "--submit", "--name", "again"], &change[..]].concat()).await;
    assert!(forked, "{said}");
    let parent = person.finished("table").await;
    let fork = person.finished("table-fork").await;
    assert_eq!(fork.digest, digest_of_one_thread(&fork.config));
    assert_eq!(fork.digest, person.finished("again").await.digest);
    assert_ne!(fork.digest, parent.digest);
    // A fetched directory says the same.
    assert!(evoxo(&["fetch", "table", "--out", "fetched"]).await.0);
    let (forked, said) = evoxo(&[&["fork", "fetched", "--submit", "--name", "table-fork"], &change[..]].concat()).await;
    assert!(forked, "it is there already: {said}");

    let refused = async |arguments: &[&str], sentence: &str| {
        let (done, said) = evoxo(arguments).await;
        assert!(!done && said.contains(sentence), "{said}");
    };
    refused(&[&["fork", "tables", "--submit"], &change[..]].concat(), "there is no run \"tables\"").await;
    let other = ["fork", "table", "--submit", "--at", "5", "--set", "penalty=7"];
    refused(&other, "run \"table-fork\" exists with other settings").await;
    let fixed = ["fork", "table", "--submit", "--at", "5", "--set", "fathers=3"];
    refused(&fixed, "table cannot be forked").await;
}

/// A coordinator begins a fork with the states that the other run keeps, also after it was killed.
#[tokio::test]
async fn a_fork_on_a_coordinator_begins_with_kept_states() {
    let site = Site::new();
    let file =
        FILE.replace("replicas = 2\n", "replicas = 2\nkeep = \"64 MiB\"\n").replace("games = 100", "games = 30000");
    fs::write(site.path("table.toml"), file).expect("a file");
    let often = ["--checkpoint-interval", "10ms"];
    let mut coordinator = site.coordinator(&often);
    let mut person = Person::of(coordinator.address);
    let mut worker = site.worker(coordinator.address, &[]);
    let address = coordinator.address.to_string();
    let evoxo = async |arguments: &[&str]| {
        let mut command = site.program("evoxo", &[arguments, &["--coordinator", &address]].concat());
        (command.end().await.success(), command.log())
    };
    let (submitted, said) = evoxo(&["submit", "table.toml"]).await;
    assert!(submitted, "{said}");
    // Without the worker, the store has time to save states from the middle of the run.
    let moved = person.wait("table", |run| run.rounds_done >= 4).await;
    worker.kill();
    assert_eq!(moved.state(), RunState::Running, "the run ended before its worker was killed");
    let start = Instant::now();
    while site.objects("table", "kept").is_empty() {
        assert!(start.elapsed() < PATIENCE, "{}", coordinator.process.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut worker = site.worker(coordinator.address, &[]);
    let parent = person.finished("table").await;
    worker.kill();
    let fork = ["fork", "table", "--submit", "--at", "7", "--set", "penalty=50"];
    let (submitted, said) = evoxo(&fork).await;
    assert!(submitted, "{said}");
    // With states of one replica or of both: a busy machine may have computed only one before the worker was killed.
    let begins =
        |log: &str| [1, 2].iter().any(|states| log.contains(&format!("run table-fork begins with {states} states")));
    let start = Instant::now();
    while !begins(&coordinator.process.log()) {
        assert!(start.elapsed() < PATIENCE, "{}", coordinator.process.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Nothing was computed for it yet.
    coordinator.process.kill();
    let coordinator = site.coordinator_on(&address, &often);
    let mut person = Person::of(coordinator.address);
    let _worker = site.worker(coordinator.address, &[]);
    let fork = person.finished("table-fork").await;
    assert_eq!(fork.digest, digest_of_one_thread(&fork.config));
    assert_ne!(fork.digest, parent.digest);
}
