//! The pieces of a run's rounds that are being planned.
//!
//! The lanes of a run have threads of their own, so each plans a piece at the same time as the others. A lane plans one piece at
//! a time, because outputs and checkpoints wait behind it.

use std::collections::BTreeSet;

use crate::replicas::{Lanes, ReplicaKey};

/// The replicas of one run of which the next piece is being planned: at most one of each lane.
#[derive(Debug, Default)]
pub(super) struct Planning {
    lanes: Lanes,
    replicas: BTreeSet<ReplicaKey>,
}

impl Planning {
    /// For a run that was loaded with these lanes.
    pub(super) fn of(lanes: Lanes) -> Self {
        Self { lanes, replicas: BTreeSet::new() }
    }

    /// The number of lanes.
    pub(super) fn lanes(&self) -> usize {
        self.lanes.count()
    }

    /// The replicas of which a piece is being planned.
    pub(super) fn replicas(&self) -> impl Iterator<Item = ReplicaKey> {
        self.replicas.iter().copied()
    }

    /// The first of these replicas whose lane is planning no piece.
    pub(super) fn next(&self, of: &BTreeSet<ReplicaKey>) -> Option<ReplicaKey> {
        if self.replicas.len() == self.lanes() {
            return None;
        }
        let busy = self.busy();
        of.iter().copied().find(|replica| !busy.contains(&self.lanes.of_replica(*replica)))
    }

    /// The next piece of this replica was requested.
    pub(super) fn begin(&mut self, replica: ReplicaKey) {
        self.replicas.insert(replica);
    }

    /// The requested piece of this replica was reported.
    pub(super) fn end(&mut self, replica: ReplicaKey) {
        self.replicas.remove(&replica);
    }

    /// Nothing is being planned, because the replicas rest.
    pub(super) fn clear(&mut self) {
        self.replicas.clear();
    }

    /// Whether no piece is being planned.
    pub(super) fn is_empty(&self) -> bool {
        self.replicas.is_empty()
    }

    fn busy(&self) -> BTreeSet<usize> {
        self.replicas.iter().map(|replica| self.lanes.of_replica(*replica)).collect()
    }

    /// Checks that no lane plans two pieces.
    pub(super) fn check(&self, name: &str) {
        assert_eq!(self.busy().len(), self.replicas.len(), "run {name}: a lane is planning two pieces");
    }
}
