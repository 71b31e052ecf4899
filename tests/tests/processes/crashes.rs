//! kill -9 at random moments.

use std::{net::SocketAddr, time::Duration};

use evoxo_common::rng::{Generator, Stream, below};
use evoxo_proto::v1::{Run, RunState};
use evoxo_tests::{
    live::{Process, Site},
    person::{Person, digest_of_one_thread},
};

use crate::{DISPATCH, NNDTF, RULES, TD3D, TERNARY, lasting};

/// Random moments, different in every run of the test. The printed seed repeats them.
#[expect(clippy::print_stdout, reason = "shown if the test fails")]
pub(crate) fn random_moments() -> Generator {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let given = std::env::var("SEED").ok().map(|seed| seed.parse().expect("SEED is a number"));
    let seed = given.unwrap_or(now.as_nanos() as u64);
    println!("SEED={seed}");
    Stream::root(seed).rng()
}

/// Waits until the run has advanced by some rounds, and then for a moment, so the speed of the machine matters little.
async fn moment(rng: &mut Generator, person: &mut Person) -> Run {
    let before = person.wait("run", |_| true).await.rounds_done;
    let rounds = 1 + below(rng, 25);
    let moved = |run: &Run| run.rounds_done >= before + rounds || run.state() == RunState::Finished;
    let run = person.wait("run", moved).await;
    tokio::time::sleep(Duration::from_millis(below(rng, 20))).await;
    run
}

fn workers(site: &Site, coordinator: SocketAddr, count: usize) -> Vec<Process> {
    (0..count).map(|_| site.worker(coordinator, &[])).collect()
}

#[tokio::test]
async fn workers_may_be_killed() {
    let (site, mut rng) = (Site::new(), random_moments());
    let config = lasting(4, 40);
    let coordinator = site.coordinator(&[]);
    let mut workers = workers(&site, coordinator.address, 3);
    let mut person = Person::of(coordinator.address);
    person.submit("run", &config).await;
    for _ in 0..8 {
        moment(&mut rng, &mut person).await;
        let victim = below(&mut rng, 3) as usize;
        workers[victim].kill();
        workers[victim] = site.worker(coordinator.address, &[]);
    }
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(&config));
    assert!(coordinator.process.log().contains("is lost with"), "a worker was lost");
}

#[tokio::test]
async fn the_coordinator_may_be_killed_and_workers_reconnect() {
    let (site, mut rng) = (Site::new(), random_moments());
    let config = lasting(4, 60);
    let mut coordinator = site.coordinator(&[]);
    let address = coordinator.address;
    let mut workers = workers(&site, address, 2);
    let mut person = Person::of(address);
    person.submit("run", &config).await;
    person.submit("echo", DISPATCH).await;
    // There are enough rounds that they are not over before the first kill.
    let trials = TD3D.replace("segment_games = 70", "segment_games = 3");
    person.submit("trials", &trials).await;
    person.submit("networks", NNDTF).await;
    let (mut cut_short, mut trials_cut_short) = (0, 0);
    for _ in 0..6 {
        let run = moment(&mut rng, &mut person).await;
        cut_short += u32::from(run.state() == RunState::Running);
        trials_cut_short += u32::from(person.wait("trials", |_| true).await.state() == RunState::Running);
        coordinator.process.kill();
        tokio::time::sleep(Duration::from_millis(below(&mut rng, 200))).await;
        coordinator = site.coordinator_on(&address.to_string(), &[]);
    }
    assert!(cut_short >= 2 && trials_cut_short >= 1, "the runs ended before anything was killed");
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(&config));
    assert_eq!(person.finished("echo").await.digest, digest_of_one_thread(DISPATCH));
    assert_eq!(person.finished("trials").await.digest, digest_of_one_thread(TD3D));
    assert_eq!(person.finished("networks").await.digest, digest_of_one_thread(NNDTF));
    assert!(workers.iter_mut().all(|worker| !worker.has_ended()), "the workers waited for the coordinator");
}

#[tokio::test]
async fn both_may_be_killed() {
    let (site, mut rng) = (Site::new(), random_moments());
    let config = lasting(4, 40);
    let mut coordinator = site.coordinator(&["--batch", "3"]);
    let address = coordinator.address;
    let mut workers = workers(&site, address, 2);
    let mut person = Person::of(address);
    person.submit("run", &config).await;
    person.submit("networks", NNDTF).await;
    // There are enough rounds that they are not over before the first kill.
    let rules = RULES.replace("cycles = 60", "cycles = 500");
    person.submit("rules", &rules).await;
    let strings = TERNARY.replace("generations = 30", "generations = 300");
    person.submit("strings", &strings).await;
    let mut cut_short = 0;
    for _ in 0..4 {
        moment(&mut rng, &mut person).await;
        for name in ["rules", "strings"] {
            cut_short += u32::from(person.wait(name, |_| true).await.state() == RunState::Running);
        }
        coordinator.process.kill();
        let victim = below(&mut rng, 2) as usize;
        workers[victim].kill();
        coordinator = site.coordinator_on(&address.to_string(), &["--batch", "3"]);
        workers[victim] = site.worker(address, &[]);
    }
    assert!(cut_short >= 1, "the cycles and the strings ended before anything was killed");
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(&config));
    assert_eq!(person.finished("networks").await.digest, digest_of_one_thread(NNDTF));
    assert_eq!(person.finished("rules").await.digest, digest_of_one_thread(&rules));
    assert_eq!(person.finished("strings").await.digest, digest_of_one_thread(&strings));
}

#[tokio::test]
async fn a_finished_run_outlives_its_coordinator() {
    let site = Site::new();
    let mut coordinator = site.coordinator(&[]);
    let worker = site.worker(coordinator.address, &[]);
    let mut person = Person::of(coordinator.address);
    person.submit("run", DISPATCH).await;
    let before = person.finished("run").await;
    coordinator.process.kill();
    drop(worker);
    let coordinator = site.coordinator(&[]);
    let after = Person::of(coordinator.address).get("run").await.expect("the run is there");
    assert_eq!((after.state(), &after.digest, after.tasks_done), (RunState::Finished, &before.digest, 0));
    assert_eq!((after.arms, after.rounds_done), (before.arms, before.rounds_done));
}
