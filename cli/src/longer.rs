//! Continues the run in a directory when its settings now ask for more generations, cycles, games, pairs or evaluations. The states
//! in the old store become a checkpoint of the longer run in a new store, which replaces the old one. A run of which nothing was
//! computed may be replaced by one with any settings.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, bail};
use evoxo_common::experiment::{Config, Registry, Replica};
use evoxo_coordinator::{
    prepared::Prepared,
    saved::{Origin, origin_of, seal_checkpoint},
};
use evoxo_proto::v1::{self, RunState};

use crate::{directory::Directory, inline::Inline, say::usage, stored};

/// Prepares the directory for this configuration, if the run in it ends earlier or nothing of it was computed. Returns the
/// run's name: the name of the run in the directory if there is one, else `name`. If the process is killed at any point, the
/// same steps can be done again.
pub(crate) fn lengthen(
    registry: &Registry,
    directory: &Directory,
    name: String,
    config: &Config,
    memory_bytes: u64,
) -> anyhow::Result<String> {
    let store = PathBuf::from(directory.store());
    let [before, new] = ["before", "new"].map(|ending| store.with_extension(ending));
    if before.exists() && !store.exists() {
        move_to(&before, &store)?;
    }
    if directory.is_void() {
        // While the store is open, no other process can begin in it.
        let held = Inline::open(registry, &directory.store(), memory_bytes)?;
        if !directory.is_void() {
            bail!("another run has just begun in {}: choose another directory with --out", directory.path().display());
        }
        remove(&store)?;
        drop(held);
        directory.write_config(config)?;
        return Ok(name);
    }
    let name = directory.run()?.unwrap_or(name);
    if !directory.is_shorter() {
        remove(&before)?;
        return Ok(name);
    }
    let mut old = Inline::open(registry, &directory.store(), memory_bytes)?;
    let saved = old.saved(&name)?;
    match saved {
        // Nothing was stored, or everything but the last step was already done.
        None => {}
        Some((run, _)) if run.config_hash == config.hash().to_string() => {}
        Some((run, replicas)) => {
            let place = directory.path().display();
            match run.state() {
                RunState::Finished | RunState::Running | RunState::Paused => {}
                RunState::InDoubt => {
                    return Err(usage(format_args!(
                        "the run in {place} is in doubt, so it cannot be continued: choose another directory with --out"
                    )));
                }
                _ => bail!("the run in {place} did not finish: {}", run.message),
            }
            let each = run.replicas_total / (config.arms.len() as u32).max(1);
            if each > config.replicas {
                return Err(usage(format_args!(
                    "the run in {place} has {each} replicas of each arm, and the longer run would lose all but the first {}: \
                     give --replicas {each}, or choose another directory with --out",
                    config.replicas
                )));
            }
            let prepared = Prepared::new(config.clone());
            let origin = origin_of(registry, &prepared);
            let states = states(&replicas, &origin, config)?;
            remove(&new)?;
            fs::create_dir_all(&new).with_context(|| format!("cannot make {}", new.display()))?;
            let place = new.display().to_string();
            // All rounds of a run have one size.
            let config = config.clone().divided_as(&old.config(&name)?);
            Inline::open(registry, &place, memory_bytes)?.begin(&name, &config, seal_checkpoint(&origin, states))?;
            move_to(&store, &before)?;
            move_to(&new, &store)?;
        }
    }
    // The old store's lock is held until here, so that no other process lengthens the run at the same time.
    drop(old);
    directory.write_config(config)?;
    remove(&before)?;
    Ok(name)
}

/// The states for the longer run. All of them must have been computed by this build.
fn states(replicas: &[v1::Replica], origin: &Origin, config: &Config) -> anyhow::Result<Vec<v1::ReplicaState>> {
    let state = |replica: &v1::Replica| {
        let name = format!("replica {} of arm {:?}", replica.replica, replica.arm);
        let finished = stored::finished(replica)?;
        if finished.signature != origin.signature {
            return Err(usage(format_args!(
                "{name} was computed by a build that computes different results: choose another directory with --out"
            )));
        }
        let state = finished.replica.with_context(|| format!("the stored {name} has no state"))?;
        Replica::lengthened(config, state).map_err(anyhow::Error::msg)
    };
    replicas.iter().map(state).collect()
}

fn move_to(from: &PathBuf, to: &PathBuf) -> anyhow::Result<()> {
    fs::rename(from, to).with_context(|| format!("cannot rename {} to {}", from.display(), to.display()))
}

fn remove(directory: &PathBuf) -> anyhow::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", directory.display()))
        }
        _ => Ok(()),
    }
}
