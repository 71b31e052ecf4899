//! States from the middle of a run that stay in its store, and forks that begin with them.

use evoxo_common::{
    experiment::{Config, Replica},
    local,
};

use super::{damage::leading, *};
use crate::{
    prepared::Prepared,
    saved::{origin_of, seal_checkpoint, seal_doubt, seal_order, seal_replica},
};

/// The round in which the forks part from their past.
const AT: u64 = 9;

fn prepared(keep: u64, generations: u64) -> Arc<Prepared> {
    let text = format!(
        "experiment = \"invincible\"\nreplicas = 2\nkeep = \"{keep}\"\n[settings]\npopulation = 8\nfathers = 2\n\
         games = 4\ngenerations = {generations}\n"
    );
    Prepared::read(registry(), "test", &text).unwrap()
}

fn begin(store: &mut Store, run: &str, prepared: &Prepared) {
    let order = v1::Order { config: prepared.toml.clone(), ..v1::Order::default() };
    store.write(run, &Write::Order { bytes: seal_order(&order) }).unwrap();
}

/// Computes a run, with a checkpoint after each round. The second replica begins when the first one is finished.
fn compute(store: &mut Store, run: &str, prepared: &Prepared) -> Vec<Replica> {
    begin(store, run, prepared);
    let (origin, keep, mut number) = (origin_of(registry(), prepared), prepared.config.keep, 0);
    let computed = local::start(&prepared.config).map(|mut replica| {
        while !replica.is_finished() {
            local::step(&mut replica).unwrap();
            number += 1;
            let bytes = seal_checkpoint(&origin, vec![replica.save()]);
            store.write(run, &Write::Checkpoint { number, bytes, keep }).unwrap();
        }
        store.write(run, &Write::Finished { bytes: seal_replica(&origin, replica.save()) }).unwrap();
        replica
    });
    let computed = computed.collect();
    store.write(run, &Write::DropCheckpoints).unwrap();
    computed
}

fn kept(directory: &TempDir, run: &str) -> Vec<std::path::PathBuf> {
    let below = directory.path().join("runs").join(run).join("kept");
    names(&below).into_iter().map(|name| below.join(name)).collect()
}

fn bytes_of(paths: &[std::path::PathBuf]) -> u64 {
    paths.iter().map(|path| fs::metadata(path).unwrap().len()).sum()
}

/// The rounds of the last states with at most this many rounds.
fn early(directory: &TempDir, run: &str, config: &Config, rounds: u64) -> Vec<u64> {
    let (found, _) = open(directory).early(run, config, rounds, u64::MAX).unwrap();
    found.iter().map(|state| state.rounds).collect()
}

fn early_of(directory: &TempDir, config: &Config) -> usize {
    early(directory, "all", config, AT).len()
}

#[test]
fn states_stay_within_their_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = leading(directory.path());
    let config = prepared(0, 40).config.clone();
    let early = |run: &str, rounds: u64| early(&directory, run, &config, rounds);
    for (run, keep) in [("none", 0), ("few", 20_000), ("all", 1 << 30)] {
        let replicas = compute(&mut store, run, &prepared(keep, 40));
        let (paths, all) = (kept(&directory, run), replicas.iter().map(Replica::rounds).sum::<u64>());
        assert!(bytes_of(&paths) <= keep, "{run}: {paths:?}");
        match run {
            "none" => assert_eq!(paths.len(), 0),
            "few" => assert!(paths.len() > 4 && bytes_of(&paths) > keep / 3, "{paths:?}"),
            _ => assert_eq!(paths.len() as u64, all),
        }
        // Whether a finished replica is early enough depends on its rounds.
        assert_eq!(early(run, u64::MAX), [40, 40]);
    }
    assert_eq!(early("none", 39), [0; 0]);
    assert_eq!(early("all", AT), [AT, AT]);
    let few = early("few", 39);
    assert!(few.len() == 2 && few.iter().all(|rounds| (20..=39).contains(rounds)), "{few:?}");
    // Not those of another configuration, even if only the size of its rounds differs, nor more than there is memory for.
    let other = Prepared::read(registry(), "test", &prepared(0, 40).toml.replace("slice = 0", "slice = 7")).unwrap();
    assert_eq!((other.hash, early_of(&directory, &other.config)), (config.hash(), 0));
    let one = prepared(0, 40).replica_bytes(0);
    assert_eq!(open(&directory).early("all", &config, AT, 2 * one - 1).unwrap().0.len(), 1);
    // Whoever starts does not read them, and a damaged one is only missing.
    for path in kept(&directory, "all").into_iter().step_by(2) {
        fs::write(path, b"damaged").unwrap();
    }
    let mut next = leading(directory.path());
    let (runs, notices) = next.load().unwrap();
    assert!(notices.is_empty() && runs.iter().all(|run| run.notices.is_empty() && run.checkpoint.is_none()));
    let of = |name: &str| runs.iter().find(|run| run.name == name).unwrap();
    assert_eq!((of("all").kept_bytes, of("none").kept_bytes), (bytes_of(&kept(&directory, "all")), 0));
    assert_eq!(of("all").checkpoint_number, 80, "the next number is a new one");
    let late = early("all", AT);
    assert!(late.iter().all(|rounds| (AT - 1..=AT).contains(rounds)) && late != [AT, AT], "{late:?}");
    // The next leader keeps to the bytes too. A run that is deleted takes its states with it.
    let number = 1 + of("few").checkpoint_number;
    let bytes = Bytes::from(vec![0; 9000]);
    next.write("few", &Write::Checkpoint { number, bytes, keep: 10_000 }).unwrap();
    assert!(bytes_of(&kept(&directory, "few")) <= 10_000);
    next.write("all", &Write::Delete).unwrap();
    assert!(!directory.path().join("runs/all").exists());
}

#[test]
fn a_fork_begins_with_the_states_of_its_past() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = leading(directory.path());
    let parent = prepared(1 << 30, 20);
    let past = compute(&mut store, "parent", &parent);
    let fork = parent.config.forked(registry(), AT, &[("penalty".into(), "50".into())]).unwrap();
    assert!(fork.past().is_some_and(|(at, past)| at == AT && past.has_states_of(&parent.config)));
    let fork = Prepared::new(Config { replicas: 3, ..fork });
    begin(&mut store, "fork", &fork);
    let load = |store: &mut Store, of: &str| match store
        .write("fork", &Write::LoadFork { of: of.into(), rounds: AT, bytes_max: u64::MAX })
    {
        Ok(crate::core::Stored::Loaded(Some(saved))) => *saved,
        other => panic!("{other:?}"),
    };
    let begun = load(&mut store, "parent").checkpoint.unwrap();
    assert_eq!((begun.object, begun.states.len(), begun.origin), (None, 2, origin_of(registry(), &fork)));
    for (state, past) in begun.states.iter().zip(&past) {
        let mut replica = Replica::restore(&fork.config, state).unwrap();
        assert_eq!((replica.rounds(), replica.history()), (AT, &past.history()[..replica.history().len()]));
        while local::step(&mut replica).unwrap() {}
        let alone = local::run(&fork.config).unwrap().swap_remove(replica.index() as usize);
        assert_eq!(replica.save(), alone.save());
    }
    assert!(load(&mut store, "nobody").checkpoint.is_none());
    // A run in doubt is nothing to build on.
    let doubt = v1::Doubt { arm: "main".into(), ..v1::Doubt::default() };
    store.write("parent", &Write::Doubt { number: 1, bytes: seal_doubt(&doubt) }).unwrap();
    assert!(load(&mut store, "parent").checkpoint.is_none());
    let copy = tempfile::tempdir().unwrap();
    let mut store = leading(copy.path());
    let recomputed =
        |state: v1::ReplicaState| v1::ReplicaState { recomputations: vec![v1::Recomputation::default()], ..state };
    begin(&mut store, "parent", &parent);
    for (number, awaits) in [(1, false), (2, true)] {
        let mut replica = local::start(&parent.config).next().unwrap();
        (0..number).for_each(|_| _ = local::step(&mut replica).unwrap());
        let state = if awaits { recomputed(replica.save()) } else { replica.save() };
        let bytes = seal_checkpoint(&origin_of(registry(), &parent), vec![state]);
        store.write("parent", &Write::Checkpoint { number, bytes, keep: 1 << 30 }).unwrap();
    }
    assert_eq!(early(&copy, "parent", &parent.config, AT), [1], "the newest one awaits a recomputation");
    begin(&mut store, "fork", &fork);
    // As soon as something of the fork itself is stored, that counts.
    let states = vec![Replica::start(&fork.config, &fork.config.arms[0], 2).save()];
    let bytes = seal_checkpoint(&origin_of(registry(), &fork), states);
    store.write("fork", &Write::Checkpoint { number: 1, bytes, keep: 0 }).unwrap();
    let own = load(&mut store, "parent").checkpoint.unwrap();
    assert!(own.object.is_some() && own.states.len() == 1);
}
