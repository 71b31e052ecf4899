//! Convicted identities. A conviction takes effect only once the store has it. Every later leader then knows it, and nobody
//! has seen any consequence before.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use evoxo_common::time::Millis;

use super::runs::RunId;
use crate::{
    saved::{Exposed, ReplicaSummary, SavedRun, beginning},
    trust::{Level, void_since},
};

/// An identity that is convicted as soon as the store has the conviction.
pub(super) struct Accused {
    /// The worker's name.
    pub(super) worker: Arc<str>,
    /// The run to which the task belonged.
    pub(super) run: RunId,
    /// What the worker did.
    pub(super) what: String,
    /// Whether the write was requested from the store.
    writing: bool,
}

/// The convicted identities, and those about to be convicted.
#[derive(Default)]
pub(super) struct Convictions {
    convicted: BTreeSet<Arc<str>>,
    accused: BTreeMap<Arc<str>, Accused>,
    /// When failed writes are retried.
    due: Millis,
}

impl Convictions {
    /// Starts with the convictions in the store.
    pub(super) fn known(convicted: BTreeSet<Arc<str>>) -> Self {
        Self { convicted, ..Self::default() }
    }

    pub(super) fn all(&self) -> &BTreeSet<Arc<str>> {
        &self.convicted
    }

    pub(super) fn contains(&self, identity: &str) -> bool {
        self.convicted.contains(identity)
    }

    /// Records what an identity did, unless something is already recorded.
    pub(super) fn accuse(&mut self, identity: &Arc<str>, worker: Arc<str>, run: RunId, what: String) {
        if !self.contains(identity) {
            let accused = Accused { worker, run, what, writing: false };
            self.accused.entry(Arc::clone(identity)).or_insert(accused);
        }
    }

    /// The identities whose convictions are to be written now, each with what it did.
    pub(super) fn begin_writing(&mut self, now: Millis) -> Vec<(Arc<str>, String)> {
        let waiting = self.accused.iter_mut().filter(|(_, accused)| !accused.writing && self.due <= now);
        let begin = |(identity, accused): (&Arc<str>, &mut Accused)| {
            accused.writing = true;
            (Arc::clone(identity), accused.what.clone())
        };
        waiting.map(begin).collect()
    }

    /// The conviction could not be written: it is retried at `due`.
    pub(super) fn again(&mut self, identity: &str, due: Millis) {
        self.due = due;
        let accused = self.accused.get_mut(identity).expect("only accused identities are convicted");
        accused.writing = false;
    }

    /// The store has the conviction.
    pub(super) fn convict(&mut self, identity: &Arc<str>) -> Accused {
        self.convicted.insert(Arc::clone(identity));
        self.accused.remove(identity).expect("only accused identities are convicted")
    }

    /// Whether a state relies on outputs for which a convicted identity vouched (in a quorum, two of them). Returns the
    /// number of rounds absorbed before the first such output.
    pub(super) fn void_since(&self, level: Level, exposed: &Exposed) -> Option<u64> {
        let exposed = exposed.iter().map(|(identity, since)| (&**identity, *since));
        void_since(exposed, level.vouchers(), |identity| self.contains(identity))
    }

    /// Resets void replicas of a stored run to their beginning. Returns what they were. A void replica that is finished stays in
    /// its object, which may have others. Nobody takes it for a result: whoever loads the run knows the convictions, which never
    /// end, and the replica that is computed again is in a later object.
    pub(super) fn leave_out_void(&self, saved: &mut SavedRun) -> Vec<(ReplicaSummary, u64)> {
        let level = Level::of_order(&saved.order);
        let since = |replica: &ReplicaSummary| self.void_since(level, &replica.exposed);
        let mut left_out = Vec::new();
        let mut keep = |replica: &ReplicaSummary| {
            let since = since(replica);
            left_out.extend(since.map(|since| (replica.clone(), since)));
            since.is_none()
        };
        if let Some(checkpoint) = &mut saved.checkpoint {
            for state in &mut checkpoint.states {
                // Outputs of other identities are still recomputed.
                state.recomputations.retain(|recomputation| !self.contains(&recomputation.identity));
                if since(&ReplicaSummary::of(state)).is_some() {
                    *state = beginning(&state.arm, state.replica, std::mem::take(&mut state.recomputations));
                }
            }
            for replica in &mut checkpoint.replicas {
                replica.to_recompute.retain(|identity| !self.contains(identity));
                if !keep(replica) {
                    let begun = ReplicaSummary::of(&beginning(&replica.arm, replica.index, Vec::new()));
                    *replica = ReplicaSummary { to_recompute: std::mem::take(&mut replica.to_recompute), ..begun };
                }
            }
        }
        saved.finished.retain(|it| keep(&it.replica));
        left_out
    }

    /// Whether the store has all convictions.
    pub(super) fn are_stored(&self) -> bool {
        self.accused.is_empty()
    }
}
