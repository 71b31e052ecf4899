//! The whole cluster on one thread, from one seed, in virtual time: the coordinator's core, store and replicas, workers, and
//! a network and objects that fail in every way that the seed draws. The result must be that of one undisturbed thread.
//!
//! `cargo test` runs some hundreds of clusters. `SEEDS=1000000 cargo sim` runs as many as given; with `FIRST_SEED=n` the
//! first test starts at seed n, so that parts of a search can run in parallel. `SEED=n cargo sim NAME` runs one cluster and
//! prints what its coordinators log.

#![expect(clippy::print_stdout, reason = "the seeds and their outcomes")]

mod cluster;
mod draw;
#[path = "../../../coordinator/src/store/tests/faulty.rs"]
mod faulty;
mod hosts;
mod objects;
mod rules;
mod seat;
mod worker;

use cluster::simulate;
use draw::Faults;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

#[test]
fn every_cluster_gives_the_same_bytes_as_one_thread() {
    if let Some(seed) = number("SEED") {
        println!("{:#?}\n{:#?}", Faults::drawn(seed), simulate(seed, Faults::drawn(seed)));
        return;
    }
    let seeds = number("SEEDS").unwrap_or(200);
    let (mut crashes, mut lost, mut damaged, mut unheard, mut repeated, mut away) = (0, 0, 0, 0, 0, 0);
    let (mut takeovers, mut superseded, mut rivals, mut deleted, mut revived, mut extended) = (0, 0, 0, 0, 0, 0);
    let (mut packs, mut begun_forks) = (0, 0);
    let from = number("FIRST_SEED").unwrap_or(0);
    for seed in from..from + seeds {
        let outcome = simulate(seed, Faults::drawn(seed));
        assert_eq!(outcome.failure, None, "seed {seed}");
        crashes += outcome.crashes;
        lost += outcome.workers_lost;
        damaged += outcome.objects_damaged;
        unheard += outcome.answers_lost;
        repeated += outcome.tasks_repeated;
        away += outcome.workers_refused;
        takeovers += outcome.takeovers;
        superseded += outcome.superseded;
        rivals += outcome.rivals;
        deleted += outcome.deleted;
        revived += outcome.revived;
        extended += outcome.extended;
        packs += outcome.packs;
        begun_forks += outcome.begun_forks;
    }
    println!(
        "{seeds} clusters: {crashes} coordinator crashes, {lost} workers lost, {away} made to wait, {damaged} objects damaged, \
         {unheard} responses of the store lost, {repeated} tasks repeated, {takeovers} takeovers by standbys, {superseded} \
         coordinators superseded, {rivals} others led between a look and a write, {deleted} runs deleted, \
         {revived} of them submitted to another leader meanwhile, {extended} times asked for more replicas, \
         {packs} objects of several replicas, {begun_forks} forks that began with states of another run"
    );
    // Without enough faults, the simulation would prove nothing.
    if seeds >= 500 {
        assert!(crashes > 2 * seeds / 5 && lost > seeds && away > seeds / 10 && repeated > seeds);
        assert!(damaged > seeds / 50 && unheard > seeds / 20);
        assert!(takeovers > seeds / 4 && superseded > seeds / 4 && rivals > seeds / 20 && deleted > seeds / 20);
        assert!(extended > seeds / 20 && packs > seeds / 4 && begun_forks > seeds / 250);
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
