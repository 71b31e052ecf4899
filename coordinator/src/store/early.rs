//! The states with which a fork or a comparison can begin: the last ones of a run up to some round. One that cannot be read is
//! only missing.

use std::{collections::BTreeMap, sync::Arc};

use evoxo_common::{
    envelope::{Kind, open},
    experiment::{Config, Replica},
};
use evoxo_proto::v1;
use prost::Message as _;

use super::{Store, StoreError};
use crate::{
    names::{KEPT, object_named},
    prepared::Prepared,
    saved::{Origin, ReplicaSummary, SavedCheckpoint, SavedRun, origin_of},
};

impl Store {
    /// The last usable state of each replica that has at most this many rounds, of a run that must have this configuration, in
    /// order of arm, then number; and a sentence for each object that cannot be used. There is none of a run that does not exist,
    /// has another configuration, or is in doubt. States of other builds are not usable, nor those with outputs that are still
    /// to be recomputed. All replicas together need at most this much memory.
    ///
    /// # Errors
    /// A [`StoreError`] if the store cannot be listed, or the run cannot be read.
    pub fn early(
        &mut self,
        run: &str,
        config: &Config,
        rounds: u64,
        bytes_max: u64,
    ) -> Result<(Vec<v1::ReplicaState>, Vec<String>), StoreError> {
        let Some(saved) = self.load_run(run)?.filter(|saved| saved.doubts.is_empty()) else {
            return Ok(Default::default());
        };
        let Ok(prepared) = saved.prepared.as_ref().map(Arc::clone) else { return Ok(Default::default()) };
        if !prepared.config.has_states_of(config) {
            return Ok(Default::default());
        }
        let ours = origin_of(&self.registry, &prepared);
        let mut found =
            Found { prepared: &prepared, ours: &ours, rounds, bytes_left: bytes_max, states: BTreeMap::new() };
        let mut notices = saved.notices;
        for finished in saved.finished.iter().filter(|finished| finished.replica.rounds <= rounds) {
            let sealed = self.wait_here(self.reader().finished(run, &finished.place));
            let opened = sealed.ok().and_then(|sealed| v1::Finished::decode(open(Kind::Finished, &sealed).ok()?).ok());
            found.add(&finished.origin, opened.and_then(|opened| opened.replica));
        }
        if let Some(checkpoint) = saved.checkpoint {
            found.add(&checkpoint.origin, checkpoint.states);
        }
        // The newest first: it has the state with the most rounds, unless the replica was void and began again.
        let kept: Vec<String> = self.known(run).kept.values().rev().map(|(name, _)| name.clone()).collect();
        for name in kept {
            if found.states.len() as u64 == prepared.replicas() {
                break;
            }
            let read = self.get(&format!("runs/{run}/{name}")).ok();
            let read = read.filter(|bytes| object_named(&name, KEPT).is_some_and(|it| it.is_of(bytes)));
            let opened = read.and_then(|bytes| v1::Checkpoint::decode(open(Kind::Checkpoint, &bytes).ok()?).ok());
            match opened {
                Some(v1::Checkpoint { config_hash, signature, replicas }) => {
                    found.add(&Origin::apart(&config_hash, &signature), replicas);
                }
                None => notices.push(format!("runs/{run}/{name} cannot be used: what it has is computed again")),
            }
        }
        Ok((found.states.into_values().collect(), notices))
    }

    /// Reads a run that forks from run `of`. If nothing of it is stored yet, it begins with the states of that run. If that run
    /// cannot be read, the fork begins at its first round.
    pub(super) fn load_fork(
        &mut self,
        run: &str,
        of: &str,
        rounds: u64,
        bytes_max: u64,
    ) -> Result<Option<SavedRun>, StoreError> {
        let mut saved = self.load_run(run)?;
        if let Some(SavedRun { checkpoint: checkpoint @ None, finished, prepared: Ok(prepared), .. }) = &mut saved
            && finished.is_empty()
            && let Some((_, past)) = prepared.config.pasts().find(|(at, _)| *at == rounds)
        {
            // What this store knows about the other run must stay.
            let known = self.runs.remove(of);
            let early = self.early(of, &past, rounds, bytes_max);
            self.runs.remove(of);
            self.runs.extend(known.map(|known| (of.to_owned(), known)));
            match early {
                Ok((states, notices)) => {
                    notices.iter().for_each(|notice| tracing::warn!("{notice}"));
                    *checkpoint = self.as_begun(prepared, states);
                }
                Err(why) => tracing::warn!("run {run} begins at its first round: {why}"),
            }
        }
        Ok(saved)
    }

    /// States of the run from which a run forks, as states of this run.
    fn as_begun(&self, prepared: &Prepared, early: Vec<v1::ReplicaState>) -> Option<SavedCheckpoint> {
        let early = early.into_iter().filter(|state| state.replica < prepared.config.replicas);
        let states: Vec<v1::ReplicaState> =
            early.filter_map(|state| Replica::lengthened(&prepared.config, state).ok()).collect();
        let (origin, replicas) = (origin_of(&self.registry, prepared), states.iter().map(ReplicaSummary::of).collect());
        (!states.is_empty()).then_some(SavedCheckpoint { object: None, from_copy: false, origin, replicas, states })
    }
}

/// The states that were found so far.
struct Found<'a> {
    prepared: &'a Prepared,
    /// The origin of usable states.
    ours: &'a Origin,
    /// The most rounds of a state.
    rounds: u64,
    /// The memory that is left for replicas.
    bytes_left: u64,
    /// By arm and number.
    states: BTreeMap<(u32, u32), v1::ReplicaState>,
}

impl Found<'_> {
    /// Adds the usable states of replicas that have none yet, as far as there is memory.
    fn add(&mut self, origin: &Origin, states: impl IntoIterator<Item = v1::ReplicaState>) {
        for state in states.into_iter().filter(|_| origin == self.ours) {
            let arm = self.prepared.config.arms.iter().position(|arm| arm.name == state.arm);
            let Some(arm) = arm.map(|arm| arm as u32).filter(|_| state.recomputations.is_empty()) else { continue };
            let (place, bytes) = ((arm, state.replica), self.prepared.replica_bytes(arm));
            let is_early = (1..=self.rounds).contains(&state.rounds) && !self.states.contains_key(&place);
            if is_early && bytes <= self.bytes_left {
                self.bytes_left -= bytes;
                self.states.insert(place, state);
            }
        }
    }
}
