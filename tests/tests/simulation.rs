//! The whole cluster on one thread, from one seed: a real coordinator's core, workers, a network and a store that fail in
//! every way the seed draws; virtual time. The final bytes must be those of one undisturbed thread.
//!
//! `cargo test` runs some hundreds of clusters, in release more than a thousand. `SEEDS=1000000 cargo sim` runs as many as wanted; `SEED=n cargo sim` one.

#![expect(clippy::print_stdout, reason = "the seeds and what became of them")]

mod sim {
    pub(crate) mod cluster;
    pub(crate) mod disk;
    pub(crate) mod worker;
}

use sim::cluster::{Faults, simulate};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

#[test]
fn every_cluster_ends_with_the_bytes_of_one_thread() {
    if let Some(seed) = number("SEED") {
        println!("{:#?}", simulate(seed, Faults::drawn(seed)));
        return;
    }
    let seeds = number("SEEDS").unwrap_or(if cfg!(debug_assertions) { 500 } else { 1500 });
    let (mut crashes, mut lost, mut damaged, mut repeated, mut unlucky) = (0, 0, 0, 0, 0);
    for seed in 0..seeds {
        let outcome = simulate(seed, Faults::drawn(seed));
        crashes += outcome.crashes;
        lost += outcome.workers_lost;
        damaged += outcome.objects_damaged;
        repeated += outcome.tasks_repeated;
        unlucky += u64::from(outcome.unlucky);
    }
    println!(
        "{seeds} clusters: {crashes} coordinator crashes, {lost} workers lost, {damaged} objects damaged, {repeated} tasks repeated"
    );
    // A simulation in which nothing goes wrong proves nothing.
    if seeds >= 1000 {
        assert!(unlucky < seeds / 100, "{unlucky} runs were given up");
        assert!(crashes > seeds / 10 && lost > seeds / 4 && damaged > seeds / 20 && repeated > seeds);
    }
}

#[test]
fn without_faults_no_task_is_computed_twice() {
    for seed in 0..200 {
        let outcome = simulate(seed, Faults::none());
        assert_eq!(outcome.tasks_repeated, 0, "seed {seed}: {outcome:?}");
        assert_eq!(outcome.workers_lost, 0, "seed {seed}: {outcome:?}");
    }
}
