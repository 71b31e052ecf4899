//! Checks the promises that a kind of experiment makes to the cluster, in every round of a run on one thread. Each kind
//! should have this test, which takes one line.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use bytes::Bytes;
use evoxo_proto::v1::ReplicaState;
use serde_json::{Value, json};

use crate::{
    card::Card,
    experiment::{Config, Demand, Registry, Replica, ResultDigest, add_ends, add_forks},
    local,
    task::{Encoder, Task},
};

/// Computes the run of an experiment file on one thread; returns its digest.
///
/// # Panics
/// If a promise is broken, with a sentence that says which one and where; or if the file has a mistake.
#[must_use]
pub fn check(registry: &Registry, file: &str) -> String {
    let config = Config::parse(registry, "the file", file, &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let mut replicas: Vec<Replica> = local::start(&config).collect();
    for replica in &mut replicas {
        let arm = config.arms.iter().find(|arm| arm.name == replica.arm()).expect("an arm of this run");
        let stages = config.stages(arm);
        let demands = stages.iter().map(|(_, arm)| (config.kind.demand)(&arm.settings));
        let demand = demands.reduce(Demand::or).expect("there is a first stage");
        let rounds = stages.iter().map(|(_, arm)| (config.kind.rounds)(&arm.settings)).max().unwrap_or(0);
        let place = format!("{}, replica {} of arm {:?}", config.kind.name, replica.index(), arm.name);
        while !replica.is_finished() {
            let place = format!("{place}, round {}", replica.rounds() + 1);
            check_state(&config, replica, &demand, &place);
            let tasks = replica.plan(0..replica.tasks());
            let outputs = check_round(registry, replica, &demand, &place);
            let needed = replica.needed();
            replica.absorb(&outputs[..needed]);
            let stay = &tasks[needed..];
            let stayed = replica.is_finished() || replica.tasks() >= stay.len() && replica.plan(0..stay.len()) == stay;
            assert!(stayed, "{place}: tasks that were not absorbed have changed");
        }
        check_state(&config, replica, &demand, &place);
        let last = replica.links().last().map(|link| (link.rows, link.digest));
        assert_eq!(
            last,
            Some((replica.history().len() as u64, replica.digest())),
            "{place}: the last link is not its end"
        );
        assert_most(replica.rounds() as usize, rounds, "rounds", &place);
        check_cards(registry, replica, &place);
    }
    check_report(&config, &replicas);
    ResultDigest::of_run(replicas.iter().map(Replica::digest)).to_string()
}

/// Checks that tasks are the same whether planned as a whole or in pieces, that they fit the demand, and that each has one
/// output, which its check accepts.
fn check_round(registry: &Registry, replica: &Replica, demand: &Demand, place: &str) -> Vec<Bytes> {
    let count = replica.tasks();
    let tasks = replica.plan(0..count);
    let only = if count == 1 { demand.only_bytes } else { 0 };
    let plan = |range: Range<usize>| replica.plan(range);
    assert_eq!(tasks.len(), count, "{place}: a plan has another number of tasks than was said");
    let pieces = [plan(0..count / 2), plan(count / 2..count)].concat();
    assert!(tasks == pieces, "{place}: a plan in two pieces has other tasks than the whole");
    assert_most(count, demand.tasks, "tasks", place);
    let (mut encoder, mut shared) = (Encoder::default(), BTreeSet::new());
    let output = |task: Task| {
        let encoded = encoder.encode(task.clone());
        assert_most(encoded.own.len(), demand.task_bytes.max(only), "bytes of a task", place);
        shared.extend(encoded.shared.as_ref().map(|shared| (shared.hash, shared.bytes.len())));
        assert_eq!(registry.decode(&encoded).as_ref(), Ok(&task), "{place}: a task is another one when it arrives");
        let output = task.run().unwrap_or_else(|why| panic!("{place}: a planned task is rejected: {why}"));
        assert_eq!(
            registry.run(&encoded, &mut crate::task::NoPrograms).as_ref(),
            Ok(&output),
            "{place}: a task has two outputs"
        );
        assert_eq!(task.check(&output).as_ref(), Ok(&output), "{place}: the check refuses an output, or changes it");
        assert_most(output.len(), demand.output_bytes.max(only), "bytes of an output", place);
        // Whatever a stranger sends, refusing it must not panic.
        for nonsense in damaged(&output) {
            let _ = task.check(&nonsense);
        }
        for nonsense in damaged(&task.body) {
            let _ = Task { body: nonsense, ..task.clone() }.run();
        }
        output
    };
    let outputs = tasks.into_iter().map(output).collect();
    assert_most(shared.iter().map(|(_, bytes)| bytes).sum(), demand.shared_bytes, "shared bytes", place);
    outputs
}

/// Checks that the saved state fits the demand, and that restoring it gives the same replica.
fn check_state(config: &Config, replica: &Replica, demand: &Demand, place: &str) {
    let saved = replica.save();
    assert_most(saved.state.len(), demand.state_bytes, "bytes of a state", place);
    assert_most(saved.history.len(), demand.rows, "rows of the history", place);
    let columns = config.kind.columns.len();
    assert!(
        saved.history.iter().all(|row| row.values.len() == columns),
        "{place}: a row does not have {columns} values"
    );
    let restored = Replica::restore(config, &saved);
    let restored = restored.unwrap_or_else(|why| panic!("{place}: its state cannot be restored: {why}"));
    assert!(restored.save() == saved, "{place}: the restored replica is saved as something else");
    let count = replica.tasks();
    assert_eq!(restored.tasks(), count, "{place}: the restored replica has another number of tasks");
    assert!(
        count == 0 || restored.plan(0..count) == replica.plan(0..count),
        "{place}: the restored replica plans other tasks"
    );
    for nonsense in damaged(&saved.state) {
        let _ = Replica::restore(config, &ReplicaState { state: nonsense, ..saved.clone() });
    }
}

/// Checks that the cards of the champion and of all players are the same after they are written and read.
fn check_cards(registry: &Registry, replica: &Replica, place: &str) {
    for card in replica.champion().into_iter().chain(replica.population()) {
        let (text, file) = card.write("champion");
        let files: BTreeMap<String, Vec<u8>> = file.into_iter().collect();
        let mut load = |name: &str| files.get(name).cloned().ok_or_else(|| format!("there is no file {name}"));
        let read = registry.read_card(&text, &mut load);
        let read = read.unwrap_or_else(|why| panic!("{place}: the card of its champion cannot be read: {why}"));
        // Decimals may differ in their last digit.
        let keys = |card: &Card| card.about.keys().cloned().collect::<Vec<_>>();
        let alike = read.champion.write("champion") == card.champion.write("champion") && keys(&read) == keys(&card);
        assert!(alike, "{place}: a champion is another one when its card is read: {text}");
    }
}

/// Checks that a report is the same if it is made from what `result.json` keeps.
fn check_report(config: &Config, replicas: &[Replica]) {
    let report = config.report(replicas);
    let arms = report.json["arms"].as_array().expect("a report has its arms");
    assert_eq!(arms.len(), config.arms.len(), "a report has other arms than the run");
    let read: Vec<Value> = serde_json::from_str(&json!(arms).to_string()).expect("the report was just written as JSON");
    let mut again =
        (config.kind.report)(config, &read).unwrap_or_else(|why| panic!("no report can be made from a result: {why}"));
    add_ends(config, &mut again);
    add_forks(config, &mut again);
    assert_eq!((&again.tables, &again.json), (&report.tables, &report.json), "a report differs from its result's");
}

/// Damaged versions of these bytes: cut, lengthened, and with changed bits.
fn damaged(bytes: &Bytes) -> [Bytes; 5] {
    let flipped = |place: usize| {
        let mut bytes = bytes.to_vec();
        bytes.get_mut(place).into_iter().for_each(|byte| *byte ^= 0x55);
        Bytes::from(bytes)
    };
    let lengthened = [&bytes[..], &[0xff; 3]].concat().into();
    [Bytes::new(), bytes.slice(..bytes.len() / 2), lengthened, flipped(0), flipped(bytes.len().saturating_sub(1))]
}

#[track_caller]
fn assert_most(found: usize, most: u64, what: &str, place: &str) {
    assert!(found as u64 <= most, "{place}: {found} {what}, where the demand says {most} at most");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{experiment::Kind, testing};

    const FILE: &str = "experiment = \"sums\"\nreplicas = 2\n[settings]\nrounds = 2\n";

    #[test]
    fn a_correct_kind_passes() {
        let config = Config::parse(&testing::registry(), "test", FILE, &[]).unwrap();
        let replicas = local::run(&config).unwrap();
        let digest = ResultDigest::of_run(replicas.iter().map(Replica::digest)).to_string();
        assert_eq!(check(&testing::registry(), FILE), digest);
    }

    #[test]
    #[should_panic(
        expected = "sums, replica 0 of arm \"main\", round 1: 2 bytes of an output, where the demand says 1 at most"
    )]
    fn an_underestimated_memory_demand_is_found() {
        static SMALL: Kind =
            Kind { demand: |settings| Demand { output_bytes: 1, ..(testing::SUMS.demand)(settings) }, ..testing::SUMS };
        let _ = check(&Registry::new([&SMALL]), FILE);
    }

    #[test]
    #[should_panic(expected = "round 2: the restored replica is saved as something else")]
    fn an_incompletely_saved_state_is_found() {
        static FORGETFUL: Kind = Kind {
            restore: |config, arm, replica, _| Ok((testing::SUMS.start)(config, arm, replica)),
            ..testing::SUMS
        };
        let _ = check(&Registry::new([&FORGETFUL]), FILE);
    }
}
