//! What a build would do with the runs of another one.

use evoxo_common::experiment::{Config, Replica};

use super::*;
use crate::{
    prepared::Prepared,
    saved::{Origin, origin_of, seal_checkpoint, seal_replica},
    store::{
        Judged,
        Prospect::{Blocked, GoesOn, MustEndFirst},
        check_upgrade,
    },
};

const CONFIG: &str = "experiment = \"dispatch\"\nreplicas = 1\n[settings]\nrounds = 2\ntasks = 1\n";

fn ordered(store: &mut Store, run: &str, config: &str, wanted: v1::RunState) {
    let order = v1::Order { config: config.into(), wanted: wanted.into(), ..v1::Order::default() };
    store.write(run, &Write::Order { bytes: seal(Kind::Order, &order.encode_to_vec()) }).unwrap();
}

/// Each kind of run: those of this build go on; unfinished ones of another build or configuration must end first; ended ones
/// of another build, and those with unknown settings, would be blocked. Nothing is written, also beside a leader.
#[test]
fn each_run_is_judged_without_writing() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = open(&directory);
    let prepared = Prepared::new(Config::parse(registry(), "test", CONFIG, &[]).unwrap());
    let ours = origin_of(registry(), &prepared);
    let build = Origin { signature: vec![1; 32].into(), ..ours.clone() };
    let config = Origin { config_hash: vec![1; 32].into(), ..ours.clone() };
    let state = Replica::start(&prepared.config, &prepared.config.arms[0], 0).save();
    for (run, origin) in [("goes-on", &ours), ("of-build", &build), ("of-config", &config)] {
        ordered(&mut store, run, &prepared.toml, v1::RunState::Running);
        let bytes = seal_checkpoint(origin, vec![state.clone()]);
        store.write(run, &Write::Checkpoint { number: 1, bytes, keep: 0 }).unwrap();
    }
    ordered(&mut store, "new", &prepared.toml, v1::RunState::Paused);
    ordered(&mut store, "unreadable", "experiment = \"of-a-later-build\"\n", v1::RunState::Running);
    ordered(&mut store, "ended", &prepared.toml, v1::RunState::Running);
    let bytes = seal_replica(&build, state);
    store.write("ended", &Write::Finished { bytes }).unwrap();
    let listed = || {
        let mut found = Vec::new();
        let mut open = vec![directory.path().to_path_buf()];
        while let Some(next) = open.pop() {
            for entry in fs::read_dir(next).unwrap().flatten() {
                if entry.path().is_dir() {
                    open.push(entry.path());
                }
                found.push((entry.path(), entry.metadata().unwrap().modified().unwrap()));
            }
        }
        found.sort();
        found
    };
    let before = listed();
    let upgrade = check_upgrade(directory.path().to_str().unwrap(), registry().clone()).unwrap();
    assert_eq!(listed(), before);
    let found: Vec<_> = upgrade.runs.iter().map(|it| (it.run.as_str(), it.state, it.prospect)).collect();
    let wanted = [
        ("ended", "finished", Blocked),
        ("goes-on", "running", GoesOn),
        ("new", "paused", GoesOn),
        ("of-build", "running", MustEndFirst),
        ("of-config", "running", MustEndFirst),
        ("unreadable", "not cancelled", MustEndFirst),
    ];
    assert_eq!(found, wanted);
    assert_eq!(upgrade.stopped(), 4);
    let why = |run: &str| upgrade.runs.iter().find(|it: &&Judged| it.run == run).unwrap().why.clone();
    assert!(why("of-build").contains("a build that computes different results"), "{}", why("of-build"));
    assert!(why("of-config").contains("another configuration"), "{}", why("of-config"));
    assert!(why("unreadable").contains("of-a-later-build"), "{}", why("unreadable"));
    assert!(upgrade.lines()[0].starts_with("ended (dispatch, finished) would be blocked: "), "{:?}", upgrade.lines());
    assert_eq!(upgrade.json()["runs"][1]["prospect"], "goes on");
    assert_eq!(upgrade.json()["all_go_on"], false);
    store.write("goes-on", &order(2)).unwrap();
    let missing = directory.path().join("missing");
    let none = check_upgrade(missing.to_str().unwrap(), registry().clone());
    assert!(none.unwrap_err().contains("there is no store"));
    assert!(!missing.exists());
}
