//! Outputs of a run that are recomputed because two copies of their task differed. The run does not end before they are
//! recomputed.

use std::collections::BTreeSet;

use crate::replicas::ReplicaKey;

/// The recomputations that must end before the run does.
#[derive(Debug, Default)]
pub(super) struct RecomputationsDue {
    /// The number of open tasks that recompute an output.
    open: usize,
    /// Finished replicas whose stored outputs to recompute have not been read yet. While the run rests: all replicas with
    /// outputs to recompute.
    asked: BTreeSet<ReplicaKey>,
}

impl RecomputationsDue {
    pub(super) fn are_there(&self) -> bool {
        self.open > 0 || !self.asked.is_empty()
    }

    /// The number of open tasks.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// The replicas whose outputs to recompute are still to be read.
    pub(super) fn asked(&self) -> &BTreeSet<ReplicaKey> {
        &self.asked
    }

    /// Takes over a run that was read from the store, with these replicas.
    pub(super) fn adopt(&mut self, asked: BTreeSet<ReplicaKey>) {
        *self = Self { open: 0, asked };
    }

    /// A task that recomputes an output was opened.
    pub(super) fn begin(&mut self) {
        self.open += 1;
    }

    /// A task that recomputes an output was closed.
    pub(super) fn end(&mut self) {
        self.open -= 1;
    }

    /// The outputs to recompute of this replica were read.
    pub(super) fn read(&mut self, replica: ReplicaKey) {
        self.asked.remove(&replica);
    }

    /// The run's tasks are closed. The outputs to recompute are stored with the states; they are recomputed when the states
    /// are in memory again.
    pub(super) fn rest(&mut self, to_recompute: Vec<ReplicaKey>) {
        self.open = 0;
        self.asked.extend(to_recompute);
    }
}
