//! `evoxo fork --submit`: forks of runs on a coordinator.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use evoxo_common::envelope::{Kind, open};
use evoxo_proto::v1::{self, RunState};
use evoxo_tests::{
    live::{PATIENCE, Site},
    person::{Person, digest_of_one_thread},
};
use prost::Message as _;

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

/// Whether a checkpoint has both replicas after one to seven rounds. One that is just being removed has none.
fn has_early_states(object: &Path) -> bool {
    let bytes = fs::read(object).unwrap_or_default();
    let checkpoint = open(Kind::Checkpoint, &bytes.into()).ok().and_then(|body| v1::Checkpoint::decode(body).ok());
    checkpoint.is_some_and(|it| it.replicas.iter().filter(|replica| (1..=7).contains(&replica.rounds)).count() == 2)
}

/// A coordinator begins a fork with the states that the other run keeps, also after it was killed.
#[tokio::test]
async fn a_fork_on_a_coordinator_begins_with_kept_states() {
    let site = Site::new();
    let file =
        FILE.replace("replicas = 2\n", "replicas = 2\nkeep = \"64 MiB\"\n").replace("games = 100", "games = 100000");
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
    // Replicas move as they like on a busy machine, so the states themselves say when both have some to begin with.
    let start = Instant::now();
    while !site.objects("table", "kept").iter().any(|object| has_early_states(object)) {
        assert!(start.elapsed() < PATIENCE, "{}", coordinator.process.log());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let moved = person.get("table").await.expect("it was submitted");
    worker.kill();
    assert_eq!(moved.state(), RunState::Running, "the run ended before its worker was killed");
    let mut worker = site.worker(coordinator.address, &[]);
    let parent = person.finished("table").await;
    worker.kill();
    let fork = ["fork", "table", "--submit", "--at", "7", "--set", "penalty=50"];
    let (submitted, said) = evoxo(&fork).await;
    assert!(submitted, "{said}");
    let sentence = "run table-fork begins with 2 states of the run from which it forks";
    let start = Instant::now();
    while !coordinator.process.log().contains(sentence) {
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
