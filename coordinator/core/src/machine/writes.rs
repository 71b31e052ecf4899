//! Writes that the store has not reported yet.

use std::{collections::BTreeMap, sync::Arc};

use evoxo_proto::v1;

use super::{orders::Wanted, runs::RunId};
use crate::{
    id::{RequestId, WriteId},
    prepared::Prepared,
    replicas::ReplicaKey,
    write::Write,
};

/// A write that the store has not reported yet.
pub(super) struct PendingWrite {
    pub(super) run: RunId,
    pub(super) what: Pending,
}

/// What to do when the write is reported.
pub(super) enum Pending {
    /// The order takes effect, and the person gets the response.
    Order(PendingOrder),
    /// A failure is recorded.
    Failure,
    Checkpoint,
    Finished {
        replica: ReplicaKey,
        attempt: u32,
    },
    /// The run's states come, for a person's request or because the run is to be advanced.
    Load(Option<RequestId>),
    Delete(Option<RequestId>),
    /// The two objects of a finished replica are looked at.
    Mend {
        replica: ReplicaKey,
        object: String,
    },
    /// If it fails, it is repeated.
    Repeated(Write),
}

impl Pending {
    /// The request that is answered when the write is reported.
    pub(super) fn request(&self) -> Option<RequestId> {
        match self {
            Self::Order(PendingOrder { request, .. }) => Some(*request),
            Self::Load(request) | Self::Delete(request) => *request,
            Self::Failure | Self::Checkpoint | Self::Finished { .. } | Self::Mend { .. } | Self::Repeated(_) => None,
        }
    }
}

/// A person's order for a run.
pub(super) struct PendingOrder {
    pub(super) request: RequestId,
    pub(super) prepared: Arc<Prepared>,
    pub(super) wanted: Wanted,
    pub(super) terms: Vec<v1::Term>,
    /// It came with a file.
    pub(super) submitted: bool,
    pub(super) delete: bool,
}

/// A write that refuses somebody, and belongs to no run.
pub(super) enum Refusal {
    /// This identity is convicted when it is in the store.
    Convicted(Arc<str>),
    /// A person has revoked something.
    Revoked(RequestId),
}

/// All of them.
#[derive(Default)]
pub(super) struct Writes {
    last: u64,
    pending: BTreeMap<WriteId, PendingWrite>,
    refusals: BTreeMap<WriteId, Refusal>,
}

impl Writes {
    pub(super) fn add(&mut self, run: RunId, what: Pending) -> WriteId {
        self.last += 1;
        let id = WriteId(self.last);
        self.pending.insert(id, PendingWrite { run, what });
        id
    }

    pub(super) fn add_refusal(&mut self, what: Refusal) -> WriteId {
        self.last += 1;
        let id = WriteId(self.last);
        self.refusals.insert(id, what);
        id
    }

    pub(super) fn take_refusal(&mut self, id: WriteId) -> Option<Refusal> {
        self.refusals.remove(&id)
    }

    pub(super) fn take(&mut self, id: WriteId) -> PendingWrite {
        self.pending
            .remove(&id)
            .unwrap_or_else(|| panic!("the store reports {id:?}, which it was not asked for, or twice"))
    }

    /// Whether something is being written that a person must not see before it is in the store: a failure, a saved task or a
    /// doubt. If the coordinator was killed in between, it would be gone.
    pub(super) fn has_unconfirmed(&self, run: RunId) -> bool {
        let unconfirmed = |what: &Pending| matches!(what, Pending::Failure | Pending::Repeated(_));
        self.pending.values().any(|pending| pending.run == run && unconfirmed(&pending.what))
    }

    /// The replicas of runs by orders that are not in the store yet.
    pub(super) fn ordered(&self) -> BTreeMap<RunId, u64> {
        let ordered = |PendingWrite { run, what }: &PendingWrite| match what {
            Pending::Order(order) => Some((*run, order.prepared.replicas())),
            _ => None,
        };
        self.pending.values().filter_map(ordered).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.refusals.is_empty()
    }
}
