//! Rules about lost workers, each tested in clusters made for it.

use std::sync::Arc;

use evoxo_common::{
    digest::Digest,
    experiment::Replica,
    rng::{Stream, below},
    task::Encoder,
};
use evoxo_coordinator::{prepared::Prepared, trust::Level};

use super::{
    cluster::{Cluster, Outcome},
    draw::{self, Faults},
    worker::Character,
};

/// A run that needs some computation: 40 rounds of 20 tasks.
fn long_run(replicas: u32) -> Arc<Prepared> {
    draw::prepared(&format!(
        "experiment = \"dispatch\"\nreplicas = {replicas}\n[settings]\nrounds = 40\ntasks = 20\npayload_bytes = 16\n"
    ))
}

/// No faults but those of these workers.
fn calm(task_ms_max: u64) -> Faults {
    // The budget is not 0, so second copies are made, but no other fault has a probability. As many workers are admitted as
    // die; otherwise healthy ones might wait for long.
    Faults { budget: 1, task_ms_max, admissions: 20, ..Faults::none() }
}

/// The seeds of this many clusters, or of a twentieth of `SEEDS` if that is more; with `SEED` only that one.
fn clusters(count: u64) -> std::ops::Range<u64> {
    match crate::number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..count.max(crate::number("SEEDS").unwrap_or(0) / 20),
    }
}

/// Whether something happens often. A single seed cannot tell.
fn often(is_so: bool) -> bool {
    is_so || crate::number("SEED").is_some()
}

/// However many workers are lost every two seconds, the run ends if one worker is healthy. Workers that flap must wait.
#[test]
fn runs_outlive_workers_that_flap_up_to_all_but_one() {
    let mut away = 0;
    for seed in clusters(60) {
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
    assert!(often(away > 100), "workers had to wait only {away} times");
}

/// However many workers fail every task from the first one on, the run ends if one worker computes.
#[test]
fn runs_outlive_workers_that_fail_everything() {
    for seed in clusters(60) {
        let mut rng = Stream::root(seed).text("broken").rng();
        let (good, broken) = (1 + below(&mut rng, 2) as usize, 3 + below(&mut rng, 4) as usize);
        let flapping = below(&mut rng, 2) as usize;
        let characters =
            [vec![Character::Honest; good], vec![Character::Broken; broken], vec![Character::Flapping; flapping]];
        let task_ms_max = [60, 400, 1500, 4000][below(&mut rng, 4) as usize];
        let runs = vec![("run".into(), long_run(1))];
        let mut cluster = Cluster::new(rng, calm(task_ms_max), runs, &characters.concat());
        cluster.run_until(|cluster| cluster.is_over(), seed);
        let failure = &cluster.outcome().failure;
        assert_eq!(*failure, None, "seed {seed}: {broken} workers failed everything, tasks of {task_ms_max} ms");
        cluster.check(seed);
    }
}

/// Every worker fails every task, and some workers are lost all the time. The coordinator computes the tasks itself, and only
/// broken workers are blamed.
#[test]
fn a_run_ends_although_every_worker_fails() {
    let mut here = 0;
    for seed in clusters(60) {
        let mut rng = Stream::root(seed).text("all broken").rng();
        let characters = vec![Character::Broken; 1 + below(&mut rng, 4) as usize];
        let prepared = draw::prepared(
            "experiment = \"dispatch\"\nreplicas = 1\n[settings]\nrounds = 2\ntasks = 3\npayload_bytes = 16\n",
        );
        let faults =
            Faults { crashes: below(&mut rng, 3), die: below(&mut rng, 20), cut: below(&mut rng, 20), ..calm(400) };
        let faults = Faults { budget: 20, ..faults };
        let mut cluster = Cluster::new(rng, faults, vec![("run".into(), prepared)], &characters);
        cluster.run_until(|cluster| cluster.is_over(), seed);
        assert_eq!(cluster.outcome().failure, None, "seed {seed}: {} workers failed everything", characters.len());
        cluster.check(seed);
        here += cluster.outcome().computed_here;
    }
    assert!(often(here >= 6 * 60), "{here} tasks were computed by coordinators");
}

/// Ended runs are deleted once their time has passed, and not before, whatever happens to the coordinators and to the store.
#[test]
fn ended_runs_are_deleted_when_their_time_has_passed() {
    const RETAIN_MS: u64 = 3_600_000;
    for seed in clusters(30) {
        let drawn = Faults { task_ms_max: 60, people: false, damage: 0, bad_workers: 0, ..Faults::drawn(seed) };
        let faults = Faults { retain_ms: Some(RETAIN_MS), level: Level::Plain, ..drawn };
        let rng = Stream::root(seed).text("expiry").rng();
        let runs = vec![("one".into(), long_run(1)), ("two".into(), long_run(2))];
        let mut cluster = Cluster::new(rng, faults, runs, &[Character::Honest; 2]);
        cluster.run_until(|cluster| cluster.is_over(), seed);
        let over = cluster.now();
        cluster.check(seed);
        cluster.run_until(|cluster| cluster.has_no_runs(), seed);
        let kept_ms = cluster.now() - over;
        assert!((RETAIN_MS - 60_000..2 * RETAIN_MS).contains(&kept_ms), "seed {seed}: deleted after {kept_ms} ms");
    }
}

/// The most workers that a killer task may kill: ten that had nothing else, and those with which it was found.
const VICTIMS_MAX: u64 = 20;

/// A task that kills its workers is found, even among workers that flap, and its run fails.
#[test]
fn a_task_that_kills_its_workers_is_found() {
    let mut most = 0;
    for seed in clusters(60) {
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
    assert!(often(most >= 3), "at most {most} victims: the clusters are too easy");
}

/// The hash of a task of the first round of the first replica.
fn first_task(prepared: &Prepared, task: usize) -> Digest {
    let replica = Replica::start(&prepared.config, &prepared.config.arms[0], 0);
    Encoder::default().encode(replica.plan(task..task + 1).remove(0)).hash
}

/// With every fault that a seed draws, there is any share of liars, which lie always or sometimes, and one trusted worker.
#[test]
fn liars_never_change_a_verified_result() {
    let (mut convicted, mut liars) = (0, 0);
    for seed in clusters(30) {
        let mut rng = Stream::root(seed).text("liars").rng();
        let faults = Faults { level: Level::Verified, ..Faults::drawn(seed) };
        let count = 1 + below(&mut rng, 6) as usize;
        let mut characters = vec![Character::Trusted];
        characters.extend(vec![Character::Honest; below(&mut rng, 3) as usize]);
        for _ in 0..count {
            characters.push(Character::Liar([1000, 500, 100, 20][below(&mut rng, 4) as usize]));
        }
        let runs = vec![("run".into(), draw::run(&mut rng))];
        let mut cluster = Cluster::new(rng, faults, runs, &characters);
        cluster.run_until(|cluster| cluster.is_over(), seed);
        assert_eq!(cluster.outcome().failure, None, "seed {seed}");
        cluster.check(seed);
        convicted += cluster.outcome().convicted.len();
        liars += count;
    }
    // A worker that lies only now and then is not always found before the run is over.
    assert!(often(convicted > liars / 3), "{convicted} of {liars} liars were convicted");
}

/// If everything is recomputed, every absorbed output of a liar is found and computed again, whoever leads and whatever is
/// stopped.
#[test]
fn liars_results_are_undone_if_everything_is_recomputed() {
    let (mut convicted, mut undone) = (0, 0);
    // In the last seed, a void replica is still being written when it is finished for the second time.
    for seed in clusters(100).chain([1108]) {
        let mut rng = Stream::root(seed).text("recomputations").rng();
        let level = Level::Sampled { millionths: 1_000_000 };
        // With tasks of 40 s and people who pause every few seconds a run would take hours, and its simulation minutes.
        let faults = Faults { level, task_ms_max: 60, ..Faults::drawn(seed) };
        let mut characters = vec![Character::Trusted];
        characters.extend(vec![Character::Honest; below(&mut rng, 3) as usize]);
        for _ in 0..1 + below(&mut rng, 4) {
            characters.push(Character::Liar([1000, 300, 50][below(&mut rng, 3) as usize]));
        }
        let mut cluster =
            Cluster::new(rng, faults, vec![("run".into(), draw::run(&mut Stream::root(seed).rng()))], &characters);
        cluster.run_until(|cluster| cluster.is_over(), seed);
        assert_eq!(cluster.outcome().failure, None, "seed {seed}");
        cluster.check(seed);
        convicted += cluster.outcome().convicted.len();
        undone += cluster.outcome().undone;
    }
    assert!(
        often(convicted > 100 && undone > 100),
        "{convicted} liars were convicted, and {undone} replicas were restarted"
    );
}

/// Samples are drawn almost never, and slow tasks have second copies. Two copies that differ are recomputed, and a run does not
/// end before that, however often the coordinator is killed and the run paused. (A superseded leader may know of differences
/// that nobody else knows.)
#[test]
fn copies_that_differ_are_settled_after_kills_and_pauses() {
    let (mut disputes, mut lives) = (0, 0);
    for seed in clusters(100) {
        let mut rng = Stream::root(seed).text("differences").rng();
        let level = Level::Sampled { millionths: 1 };
        let drawn = Faults { crashes: 3, people: seed % 2 == 0, task_ms_max: 1500, ..Faults::drawn(seed) };
        let faults = Faults { level, standbys: 0, stops: 0, rival: 0, damage: 0, ..drawn };
        let mut characters = vec![Character::Trusted, Character::Honest, Character::Honest];
        characters.extend(vec![Character::Liar(300); 2 + below(&mut rng, 3) as usize]);
        let runs = vec![("run".into(), draw::run(&mut Stream::root(seed).rng()))];
        let mut cluster = Cluster::new(rng, faults, runs, &characters);
        cluster.run_until(|cluster| cluster.is_over(), seed);
        assert_eq!(cluster.outcome().failure, None, "seed {seed}");
        cluster.check_disputes(seed);
        disputes += cluster.outcome().disputes.len();
        lives += cluster.outcome().lives;
    }
    assert!(often(disputes > 10 && lives > 100), "{disputes} disputes were stored, in {lives} lives of coordinators");
}

/// If two workers are honest, liars that do not agree with each other do not change the result of a quorum either.
#[test]
fn disagreeing_liars_are_outvoted() {
    for seed in clusters(60) {
        let mut rng = Stream::root(seed).text("quorum").rng();
        // The run has many tasks. With 40 s each it would take hours, and its simulation minutes.
        let faults = Faults { level: Level::Quorum, task_ms_max: 60, ..Faults::drawn(seed) };
        let mut characters = vec![Character::Honest; 2 + below(&mut rng, 2) as usize];
        for _ in 0..1 + below(&mut rng, 4) {
            characters.push(Character::Liar([1000, 500, 100][below(&mut rng, 3) as usize]));
        }
        let mut cluster = Cluster::new(rng, faults, vec![("run".into(), long_run(1))], &characters);
        cluster.run_until(|cluster| cluster.is_over(), seed);
        let Outcome { failure, convicted, .. } = cluster.outcome();
        assert_eq!((failure, convicted.len()), (&None, 0), "seed {seed}: no worker is trusted");
        cluster.check(seed);
    }
}

/// Two liars that lie alike are a quorum. A trusted worker, which takes part like any other, convicts every worker that
/// differs from it. As soon as both liars are convicted, nothing rests on their word alone any more, even in finished runs.
#[test]
fn two_accomplices_results_are_undone_when_both_are_convicted() {
    let (mut both, mut undone) = (0, 0);
    for seed in clusters(200) {
        let mut rng = Stream::root(seed).text("accomplices").rng();
        let faults = Faults { level: Level::Quorum, task_ms_max: 60, ..Faults::drawn(seed) };
        let mut characters = vec![Character::Trusted, Character::Accomplice, Character::Accomplice];
        characters.extend(vec![Character::Honest; 1 + below(&mut rng, 2) as usize]);
        let runs = vec![("first".into(), draw::run(&mut rng)), ("second".into(), long_run(1))];
        let mut cluster = Cluster::new(rng, faults, runs, &characters);
        cluster.run_until(|cluster| cluster.is_over(), seed);
        assert_eq!(cluster.outcome().failure, None, "seed {seed}");
        if cluster.outcome().convicted.len() == 2 {
            cluster.check(seed);
            both += 1;
            undone += cluster.outcome().undone;
        }
    }
    assert!(often(both > 100 && undone > 50), "{both} times both were convicted, and {undone} replicas were restarted");
}

/// All peers fall silent. The coordinator notices because the core asks for a wake.
#[test]
fn silence_is_noticed_without_other_events() {
    let rng = Stream::root(1).rng();
    let mut cluster = Cluster::new(rng, calm(400), vec![("run".into(), long_run(1))], &[Character::Honest]);
    cluster.run_until(|cluster| cluster.has_assigned(), 1);
    cluster.silence(0);
    let before = cluster.now();
    cluster.run_until(|cluster| cluster.outcome().workers_lost == 1, 1);
    let waited_ms = cluster.now() - before;
    assert!((29_000..32_000).contains(&waited_ms), "{waited_ms} ms");
}
