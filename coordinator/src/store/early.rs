//! The states with which a fork or a comparison can begin: the last ones of a run up to some round. One that cannot be read is
//! only missing.

use std::collections::BTreeMap;

use evoxo_common::{
    envelope::{Kind, open},
    experiment::Replica,
};
use evoxo_proto::v1;
use prost::Message as _;

use super::{Store, StoreError};
use crate::{
    names::{KEPT, object_named},
    prepared::Prepared,
    saved::{Origin, ReplicaSummary, SavedCheckpoint, SavedRun, origin_of},
};

/// A replica between two rounds, and what computed it.
pub type Early = (Origin, v1::ReplicaState);

impl Store {
    /// The last stored state of each replica of a run that has at most this many rounds, in order of arm, then number; none if
    /// the run does not exist.
    ///
    /// # Errors
    /// A [`StoreError`] if the store cannot be listed, or the run cannot be read.
    pub fn early(&mut self, run: &str, rounds: u64) -> Result<Vec<Early>, StoreError> {
        let Some(saved) = self.load_run(run)? else { return Ok(Vec::new()) };
        let mut found: BTreeMap<(String, u32), Early> = BTreeMap::new();
        let mut add = |origin: &Origin, state: v1::ReplicaState| {
            if (1..=rounds).contains(&state.rounds) {
                found.entry((state.arm.clone(), state.replica)).or_insert_with(|| (origin.clone(), state));
            }
        };
        for finished in saved.finished.iter().filter(|finished| finished.replica.rounds <= rounds) {
            let sealed = self.wait_here(self.reader().finished(run, &finished.place));
            let opened = sealed.ok().and_then(|sealed| v1::Finished::decode(open(Kind::Finished, &sealed).ok()?).ok());
            opened.and_then(|opened| opened.replica).into_iter().for_each(|state| add(&finished.origin, state));
        }
        if let Some(checkpoint) = saved.checkpoint {
            checkpoint.states.into_iter().for_each(|state| add(&checkpoint.origin, state));
        }
        // The newest first: it has the state with the most rounds, unless the replica was void and began again.
        let kept: Vec<String> = self.known(run).kept.values().rev().map(|(name, _)| name.clone()).collect();
        for name in kept {
            let read = self.get(&format!("runs/{run}/{name}")).ok();
            let read = read.filter(|bytes| object_named(&name, KEPT).is_some_and(|it| it.is_of(bytes)));
            let opened = read.and_then(|bytes| v1::Checkpoint::decode(open(Kind::Checkpoint, &bytes).ok()?).ok());
            let Some(v1::Checkpoint { config_hash, signature, replicas }) = opened else {
                tracing::warn!("runs/{run}/{name} cannot be used: what it has is computed again where it is needed");
                continue;
            };
            let origin = Origin::apart(&config_hash, &signature);
            replicas.into_iter().for_each(|state| add(&origin, state));
        }
        Ok(found.into_values().collect())
    }

    /// Reads a run that forks from run `of`, which `other` reads. If nothing of it is stored yet, it begins with the states of that
    /// run.
    pub(super) fn load_fork(
        &mut self,
        run: &str,
        other: &mut Self,
        of: &str,
        rounds: u64,
    ) -> Result<Option<SavedRun>, StoreError> {
        let mut saved = self.load_run(run)?;
        if let Some(SavedRun { checkpoint: checkpoint @ None, finished, prepared: Ok(prepared), .. }) = &mut saved
            && finished.is_empty()
        {
            *checkpoint = self.as_begun(prepared, other.early(of, rounds)?);
        }
        Ok(saved)
    }

    /// States of the run from which a run forks, as states of this run. Those of other builds are left out, and those with
    /// outputs that are still to be recomputed.
    fn as_begun(&self, prepared: &Prepared, early: Vec<Early>) -> Option<SavedCheckpoint> {
        let origin = origin_of(&self.registry, prepared);
        let usable = |(of, state): Early| {
            let fits = of.signature == origin.signature && state.replica < prepared.config.replicas;
            if fits && state.recomputations.is_empty() {
                Replica::lengthened(&prepared.config, state).ok()
            } else {
                None
            }
        };
        let states: Vec<v1::ReplicaState> = early.into_iter().filter_map(usable).collect();
        let replicas = states.iter().map(ReplicaSummary::of).collect();
        (!states.is_empty()).then_some(SavedCheckpoint { object: None, from_copy: false, origin, replicas, states })
    }
}
