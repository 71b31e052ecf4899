//! The definition of a run: all replicas, one after another, on one thread. A cluster's results are compared with this.

use bytes::Bytes;

use crate::{
    experiment::{Config, Replica},
    task::{Refusal, Task},
};

/// Computes the next round of a replica; returns false if it was already finished.
///
/// # Errors
/// The [`Refusal`] of a task that the replica planned.
pub fn step(replica: &mut Replica) -> Result<bool, Refusal> {
    if replica.is_finished() {
        return Ok(false);
    }
    let tasks = replica.plan(0..replica.needed());
    let outputs = tasks.iter().map(Task::run).collect::<Result<Vec<Bytes>, Refusal>>()?;
    replica.absorb(&outputs);
    Ok(true)
}

/// All finished replicas of a run, in order of arm, then number.
///
/// # Errors
/// The [`Refusal`] of a task that a replica planned.
pub fn run(config: &Config) -> Result<Vec<Replica>, Refusal> {
    let mut replicas: Vec<Replica> = start(config).collect();
    for replica in &mut replicas {
        while step(replica)? {}
    }
    Ok(replicas)
}

/// All replicas of a run before their first rounds, in order of arm, then number.
pub fn start(config: &Config) -> impl Iterator<Item = Replica> {
    config.arms.iter().flat_map(|arm| (0..config.replicas).map(|index| Replica::start(config, arm, index)))
}
