//! The replicas of a run, and the phase of each.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Deref,
};

use bytes::Bytes;
use evoxo_common::experiment::ResultDigest;

use crate::{pack::PackPlace, replicas::ReplicaKey, saved::Exposed};

/// The phase of one replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReplicaPhase {
    Unbegun,
    /// Started, but not open.
    Waiting,
    /// The run's thread was requested to open it.
    Opening,
    /// In a round of `total` tasks, of which `planned` are planned.
    Open {
        total: usize,
        planned: usize,
    },
    /// All rounds are absorbed. The run's thread keeps the replica until its drawn outputs are recomputed.
    Computed,
    /// Finished. Its sealed bytes are to be stored, or are being stored.
    Finished {
        digest: ResultDigest,
        sealed: Bytes,
        writing: bool,
    },
    /// Stored at this place.
    Stored {
        digest: ResultDigest,
        place: PackPlace,
    },
}

/// One replica.
#[derive(Clone, Debug)]
pub(super) struct ReplicaRecord {
    pub(super) phase: ReplicaPhase,
    /// The number of rounds absorbed.
    pub(super) rounds: u64,
    /// The primary metric in the newest row of the history.
    pub(super) metric: Option<f64>,
    /// The identities on whose word the replica rests, once it is finished or stored.
    pub(super) exposed: Exposed,
    /// How often the replica was restarted. A write of an earlier attempt does not count for this one.
    pub(super) attempt: u32,
}

impl ReplicaRecord {
    pub(super) const UNBEGUN: Self =
        Self { phase: ReplicaPhase::Unbegun, rounds: 0, metric: None, exposed: Vec::new(), attempt: 0 };

    pub(super) fn is_finished(&self) -> bool {
        matches!(self.phase, ReplicaPhase::Finished { .. } | ReplicaPhase::Stored { .. })
    }

    pub(super) fn digest(&self) -> Option<ResultDigest> {
        match &self.phase {
            ReplicaPhase::Finished { digest, .. } | ReplicaPhase::Stored { digest, .. } => Some(*digest),
            _ => None,
        }
    }

    /// Whether the replica is stored in this object.
    pub(super) fn is_in(&self, object: &str) -> bool {
        matches!(&self.phase, ReplicaPhase::Stored { place, .. } if *place.object == *object)
    }
}

/// The records of all replicas, and the sets of replicas by phase. They are read as a map, and changed only through these
/// methods.
#[derive(Default)]
pub(super) struct Phases {
    records: BTreeMap<ReplicaKey, ReplicaRecord>,
    waiting: BTreeSet<ReplicaKey>,
    unbegun: BTreeSet<ReplicaKey>,
    open: BTreeSet<ReplicaKey>,
    partly_planned: BTreeSet<ReplicaKey>,
    finished: usize,
    stored: usize,
    begun_bytes: u64,
}

impl Deref for Phases {
    type Target = BTreeMap<ReplicaKey, ReplicaRecord>;

    fn deref(&self) -> &Self::Target {
        &self.records
    }
}

impl Phases {
    /// Adds a replica that has not started, unless the run already has it.
    pub(super) fn add(&mut self, key: ReplicaKey) {
        self.records.entry(key).or_insert_with(|| {
            self.unbegun.insert(key);
            ReplicaRecord::UNBEGUN
        });
    }

    /// Replicas that have started and are not open.
    pub(super) fn waiting(&self) -> &BTreeSet<ReplicaKey> {
        &self.waiting
    }

    /// Replicas that have not started.
    pub(super) fn unbegun(&self) -> &BTreeSet<ReplicaKey> {
        &self.unbegun
    }

    /// Replicas that are open or being opened.
    pub(super) fn open(&self) -> &BTreeSet<ReplicaKey> {
        &self.open
    }

    /// Those of the open replicas that have tasks of their round still to be planned.
    pub(super) fn partly_planned(&self) -> &BTreeSet<ReplicaKey> {
        &self.partly_planned
    }

    /// The number of finished replicas, stored or not.
    pub(super) fn finished(&self) -> usize {
        self.finished
    }

    /// Whether all replicas are finished and stored.
    pub(super) fn are_stored(&self) -> bool {
        self.stored == self.records.len()
    }

    /// Whether a finished replica is not stored yet.
    pub(super) fn are_unsaved(&self) -> bool {
        self.finished > self.stored
    }

    /// The memory of replicas that have started and are not stored, in bytes.
    pub(super) fn begun_bytes(&self) -> u64 {
        self.begun_bytes
    }

    /// The record of one of the run's replicas. Use [`Self::set`] to change its phase.
    pub(super) fn record(&mut self, key: ReplicaKey) -> &mut ReplicaRecord {
        self.records.get_mut(&key).unwrap_or_else(|| panic!("the run has no replica {key:?}"))
    }

    /// Moves a replica to another phase. `bytes` is the memory that the replica takes.
    pub(super) fn set(&mut self, key: ReplicaKey, phase: ReplicaPhase, bytes: u64) {
        let count = |phase: &ReplicaPhase| match phase {
            ReplicaPhase::Unbegun => (0, 0, 0),
            ReplicaPhase::Finished { .. } => (1, 0, bytes),
            ReplicaPhase::Stored { .. } => (1, 1, 0),
            _ => (0, 0, bytes),
        };
        let (before, after) = (count(&self.record(key).phase), count(&phase));
        self.finished = self.finished + after.0 - before.0;
        self.stored = self.stored + after.1 - before.1;
        self.begun_bytes = self.begun_bytes.saturating_add(after.2).saturating_sub(before.2);
        for (set, belongs) in [
            (&mut self.unbegun, phase == ReplicaPhase::Unbegun),
            (&mut self.waiting, phase == ReplicaPhase::Waiting),
            (&mut self.open, matches!(phase, ReplicaPhase::Opening | ReplicaPhase::Open { .. })),
            (&mut self.partly_planned, matches!(phase, ReplicaPhase::Open { total, planned } if planned < total)),
        ] {
            match belongs {
                true => set.insert(key),
                false => set.remove(&key),
            };
        }
        self.record(key).phase = phase;
    }

    /// Marks a finished replica as being written. Returns its attempt and its bytes.
    pub(super) fn begin_writing(&mut self, key: ReplicaKey) -> (u32, Bytes) {
        let record = self.record(key);
        let ReplicaPhase::Finished { sealed, writing, .. } = &mut record.phase else {
            panic!("replica {} is to be written, but is not finished: {:?}", key.index, record.phase);
        };
        *writing = true;
        (record.attempt, sealed.clone())
    }

    /// The store has reported the outcome of writing this attempt of a replica.
    pub(super) fn end_writing(&mut self, key: ReplicaKey, attempt: u32) {
        if let Some(record) = self.records.get_mut(&key).filter(|record| record.attempt == attempt)
            && let ReplicaPhase::Finished { writing, .. } = &mut record.phase
        {
            *writing = false;
        }
    }

    /// The finished replicas that are neither stored nor being written.
    pub(super) fn unwritten(&self) -> Vec<ReplicaKey> {
        // A shortcut: almost always there are none, and a run may have many replicas.
        if !self.are_unsaved() {
            return Vec::new();
        }
        let waits = |record: &ReplicaRecord| matches!(record.phase, ReplicaPhase::Finished { writing: false, .. });
        self.records.iter().filter(|(_, record)| waits(record)).map(|(key, _)| *key).collect()
    }

    /// Checks that the sets and counts of replicas agree with their phases.
    pub(super) fn check(&self, name: &str, bytes_of: impl Fn(&ReplicaKey) -> u64) {
        let of = |belongs: &dyn Fn(&ReplicaPhase) -> bool| -> BTreeSet<ReplicaKey> {
            self.records.iter().filter(|(_, record)| belongs(&record.phase)).map(|(key, _)| *key).collect()
        };
        assert_eq!(
            self.unbegun,
            of(&|phase| *phase == ReplicaPhase::Unbegun),
            "run {name}: replicas that have not started"
        );
        assert_eq!(self.waiting, of(&|phase| *phase == ReplicaPhase::Waiting), "run {name}: replicas that wait");
        let open = of(&|phase| matches!(phase, ReplicaPhase::Opening | ReplicaPhase::Open { .. }));
        assert_eq!(self.open, open, "run {name}: open replicas");
        let partly = of(&|phase| matches!(phase, ReplicaPhase::Open { total, planned } if planned < total));
        assert_eq!(self.partly_planned, partly, "run {name}: replicas with a piece to plan");
        let stored = of(&|phase| matches!(phase, ReplicaPhase::Stored { .. })).len();
        let finished = self.records.values().filter(|record| record.is_finished()).count();
        assert_eq!((self.finished, self.stored), (finished, stored), "run {name}: replicas finished and stored");
        let begun = of(&|phase| !matches!(phase, ReplicaPhase::Unbegun | ReplicaPhase::Stored { .. }));
        let bytes = begun.iter().fold(0_u64, |sum, key| sum.saturating_add(bytes_of(key)));
        assert_eq!(self.begun_bytes, bytes, "run {name}: bytes of replicas that have started");
    }
}
