//! Rules about lost workers, each in clusters made for it.

use std::sync::Arc;

use evoxo_common::{
    digest::Digest,
    experiment::Replica,
    rng::{Stream, below},
    task::Encoder,
};
use evoxo_coordinator::prepared::Prepared;

use super::{
    cluster::{Cluster, Outcome},
    draw::{self, Faults},
    worker::Character,
};

/// Tasks that need some computing: 40 rounds of 20.
fn long_run(replicas: u32) -> Arc<Prepared> {
    draw::prepared(&format!(
        "experiment = \"dispatch\"\nreplicas = {replicas}\n[settings]\nrounds = 40\ntasks = 20\npayload_bytes = 16\n"
    ))
}

/// No other faults than these workers have.
fn calm(task_ms_max: u64) -> Faults {
    // A budget without probabilities: second copies are made.
    Faults { budget: 1, task_ms_max, ..Faults::none() }
}

/// However many workers are lost every two seconds, the run ends if one is healthy, and those that flap must wait.
#[test]
fn runs_outlive_workers_that_flap_up_to_all_but_one() {
    let mut away = 0;
    for seed in 0..if cfg!(debug_assertions) { 60 } else { 300 } {
        let mut rng = Stream::root(seed).text("flapping").rng();
        let flapping = 1 + below(&mut rng, 6) as usize;
        let characters = [vec![Character::Honest], vec![Character::Flapping; flapping]].concat();
        let task_ms_max = [60, 400, 1500, 4000][below(&mut rng, 4) as usize];
        let mut cluster = Cluster::new(rng, calm(task_ms_max), vec![("run".into(), long_run(1))], &characters);
        cluster.run_until(|cluster| cluster.is_over(), seed);
        let Outcome { failure, workers_refused, .. } = cluster.outcome();
        assert_eq!(*failure, None, "seed {seed}: {flapping} workers flapped, tasks of {task_ms_max} ms");
        away += workers_refused;
        cluster.check(seed);
    }
    assert!(away > 100, "workers had to wait only {away} times");
}

/// The most workers that a killer task may kill: ten that have nothing else, and those with which it was found.
const VICTIMS_MAX: u64 = 20;

/// A task that kills its workers is found, also among workers that flap, and its run fails.
#[test]
fn a_task_that_kills_its_workers_is_found() {
    let mut most = 0;
    for seed in 0..if cfg!(debug_assertions) { 60 } else { 300 } {
        let mut rng = Stream::root(seed).text("poison").rng();
        let (healthy, flapping) = (1 + below(&mut rng, 5) as usize, below(&mut rng, 3) as usize);
        let characters = [vec![Character::Honest; healthy], vec![Character::Flapping; flapping]].concat();
        let (prepared, task) = (long_run(2), below(&mut rng, 20) as usize);
        let poison = first_task(&prepared, task);
        let mut cluster = Cluster::new(rng, calm(400), vec![("run".into(), prepared)], &characters);
        cluster.poison(poison);
        cluster.run_until(|cluster| cluster.is_over(), seed);
        let Outcome { failure, victims, .. } = cluster.outcome();
        let failure = failure.as_deref().unwrap_or_default();
        assert!(
            failure.contains(&poison.short()) && failure.contains(" was the only task of "),
            "seed {seed}: {failure:?}"
        );
        assert!(*victims <= VICTIMS_MAX, "seed {seed}: {victims} victims");
        most = most.max(*victims);
    }
    assert!(most >= 3, "at most {most} victims: the clusters are too easy");
}

/// A task of the first round of the first replica.
fn first_task(prepared: &Prepared, task: usize) -> Digest {
    let replica = Replica::start(&prepared.config, &prepared.config.arms[0], 0);
    Encoder::default().encode(replica.plan(task..task + 1).remove(0)).hash
}

/// All peers fall silent. The coordinator notices because the core asks for a wake.
#[test]
fn silence_is_noticed_when_nothing_else_happens() {
    let rng = Stream::root(1).rng();
    let mut cluster = Cluster::new(rng, calm(400), vec![("run".into(), long_run(1))], &[Character::Honest]);
    cluster.run_until(|cluster| cluster.has_assigned(), 1);
    cluster.silence(0);
    let before = cluster.now();
    cluster.run_until(|cluster| cluster.outcome().workers_lost == 1, 1);
    let waited_ms = cluster.now() - before;
    assert!((9_000..12_000).contains(&waited_ms), "{waited_ms} ms");
}
