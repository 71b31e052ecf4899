//! The outputs of a run that are computed again because two copies of their task differed. The run does not end before they are.

use std::collections::BTreeSet;

use crate::replicas::ReplicaKey;

/// What the end of a run waits for.
#[derive(Debug, Default)]
pub(super) struct AuditsDue {
    /// Tasks that are open for it.
    open: usize,
    /// Finished replicas whose stored audits have not been read yet. While the run rests, all replicas with audits that are to be made.
    asked: BTreeSet<ReplicaKey>,
}

impl AuditsDue {
    pub(super) fn are_there(&self) -> bool {
        self.open > 0 || !self.asked.is_empty()
    }

    /// The number of open tasks.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// The replicas whose audits are to be read.
    pub(super) fn asked(&self) -> &BTreeSet<ReplicaKey> {
        &self.asked
    }

    /// The run comes from the store, with these replicas.
    pub(super) fn adopt(&mut self, asked: BTreeSet<ReplicaKey>) {
        *self = Self { open: 0, asked };
    }

    /// A task for an audit is open.
    pub(super) fn begin(&mut self) {
        self.open += 1;
    }

    /// It is closed.
    pub(super) fn end(&mut self) {
        self.open -= 1;
    }

    /// The audits of a replica have been read.
    pub(super) fn read(&mut self, replica: ReplicaKey) {
        self.asked.remove(&replica);
    }

    /// The run's tasks are closed. Audits are stored with the states, and made when these are in memory again.
    pub(super) fn rest(&mut self, audited: Vec<ReplicaKey>) {
        self.open = 0;
        self.asked.extend(audited);
    }
}
