//! Reads a run from its store while another process may be computing it: nothing is locked, tested or written.

use std::{collections::BTreeMap, path::Path, time::Duration};

use anyhow::{Context as _, anyhow, bail};
use evoxo_common::{
    envelope::{Kind, open},
    experiment::{Config, Registry},
};
use evoxo_coordinator::{
    saved::{SavedRun, seal_replica},
    store::Store,
};
use evoxo_proto::v1;
use prost::Message as _;

use crate::{directory, results::Results, say::notice};

/// How often the store is read again if an object has disappeared, and the pause before that. The process that writes the
/// store also prunes it.
const ATTEMPTS: usize = 4;
const PAUSE: Duration = Duration::from_millis(50);

/// The stored results of the run in this directory; `None` if nothing is stored.
pub(crate) fn read(registry: &Registry, directory: &Path) -> anyhow::Result<Option<Results>> {
    let Some((place, run)) = directory::stored(directory)? else { return Ok(None) };
    let mut store = Store::open_to_read(&place, registry.clone())?;
    let mut why = None;
    for attempt in 1..=ATTEMPTS {
        let Some(saved) = store.load_run(&run)? else { return Ok(None) };
        match replicas(&store, &saved) {
            Ok(replicas) if attempt == ATTEMPTS || saved.notices.is_empty() => {
                saved.notices.iter().for_each(notice);
                let config = saved.prepared.map_err(|why| anyhow!("{}: {why}", directory.display()))?.config.clone();
                let run = v1::Run { doubts: saved.doubts, ..v1::Run::default() };
                return Results::new(config, &run, &replicas).map(Some);
            }
            Ok(_) => {}
            Err(gone) => why = Some(gone),
        }
        std::thread::sleep(PAUSE);
    }
    bail!("{}: {}", place, why.unwrap_or_default())
}

/// The last stored state of each replica that has at most this many rounds, of the run in this directory, if it has this
/// configuration. All replicas together need at most this much memory, in bytes.
pub(crate) fn early(
    registry: &Registry,
    directory: &Path,
    config: &Config,
    rounds: u64,
    bytes_max: u64,
) -> anyhow::Result<Vec<v1::ReplicaState>> {
    let Some((place, run)) = directory::stored(directory)? else { return Ok(Vec::new()) };
    let mut store = Store::open_to_read(&place, registry.clone())?;
    let (mut states, notices) = store.early(&run, config, rounds, bytes_max)?;
    notices.iter().for_each(notice);
    // Nothing is known here about the workers on whose word a state rests.
    states.retain(|state| state.exposed.is_empty());
    Ok(states)
}

/// A stored replica, with the build that computed it.
pub(crate) fn finished(replica: &v1::Replica) -> anyhow::Result<v1::Finished> {
    let name = || format!("replica {} of arm {:?} as stored", replica.replica, replica.arm);
    v1::Finished::decode(open(Kind::Finished, &replica.state).with_context(name)?).with_context(name)
}

/// The replicas that have begun, in order of arm, then number. A finished replica is newer than any checkpoint.
fn replicas(store: &Store, saved: &SavedRun) -> Result<Vec<v1::Replica>, String> {
    let Ok(prepared) = &saved.prepared else { return Ok(Vec::new()) };
    let place = |arm: &str| prepared.config.arms.iter().position(|it| it.name == arm);
    let mut found = BTreeMap::new();
    if let Some(checkpoint) = &saved.checkpoint {
        for state in &checkpoint.states {
            let (arm, replica) = (state.arm.clone(), state.replica);
            let state = seal_replica(&checkpoint.origin, state.clone());
            found.insert((place(&arm), replica), v1::Replica { arm, replica, finished: false, state });
        }
    }
    for finished in &saved.finished {
        let (arm, replica) = (finished.replica.arm.clone(), finished.replica.index);
        let state = store.read_finished(&saved.name, &finished.place)?;
        found.insert((place(&arm), replica), v1::Replica { arm, replica, finished: true, state });
    }
    Ok(found.into_iter().filter(|((place, _), _)| place.is_some()).map(|(_, replica)| replica).collect())
}
