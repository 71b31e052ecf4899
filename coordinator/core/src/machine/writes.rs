//! Writes whose outcome the store has not reported yet.

use std::{collections::BTreeMap, sync::Arc};

use evoxo_proto::v1;

use super::{orders::Wanted, runs::RunId};
use crate::{
    id::{RequestId, WriteId},
    prepared::Prepared,
    replicas::ReplicaKey,
    write::Write,
};

/// A write whose outcome the store has not reported yet.
pub(super) struct PendingWrite {
    pub(super) run: RunId,
    pub(super) what: Pending,
}

/// What to do with the outcome of a write.
pub(super) enum Pending {
    /// The order takes effect, and the client gets the response.
    Order(PendingOrder),
    /// A failure is recorded.
    Failure,
    Checkpoint,
    Finished {
        replica: ReplicaKey,
        attempt: u32,
    },
    /// The run's states arrive, for a client's request or because the run is to be advanced.
    Load(Option<RequestId>),
    Delete(Option<RequestId>),
    /// The two objects of finished replicas are checked.
    Mend {
        object: String,
    },
    /// If the write fails, it is repeated.
    Repeated(Write),
}

impl Pending {
    /// The request that is answered with the outcome.
    pub(super) fn request(&self) -> Option<RequestId> {
        match self {
            Self::Order(PendingOrder { request, .. }) => Some(*request),
            Self::Load(request) | Self::Delete(request) => *request,
            Self::Failure | Self::Checkpoint | Self::Finished { .. } | Self::Mend { .. } | Self::Repeated(_) => None,
        }
    }
}

/// A client's order for a run.
pub(super) struct PendingOrder {
    pub(super) request: RequestId,
    pub(super) prepared: Arc<Prepared>,
    pub(super) wanted: Wanted,
    pub(super) terms: Vec<v1::Term>,
    /// Whether it is a submission.
    pub(super) submitted: bool,
    pub(super) delete: bool,
}

/// A write about identities, tokens or workers, which belongs to no run.
pub(super) enum Refusal {
    /// This identity is convicted once the store has it.
    Convicted(Arc<str>),
    /// A client has revoked an identity or a token.
    Revoked(RequestId),
    /// A client has set or ended cordons.
    Cordoned { request: RequestId, end: bool, by: String },
}

/// All writes without a reported outcome.
#[derive(Default)]
pub(super) struct Writes {
    last: u64,
    pending: BTreeMap<WriteId, PendingWrite>,
    refusals: BTreeMap<WriteId, Refusal>,
    /// Requests to continue runs that are not known, by name.
    searches: BTreeMap<WriteId, (RequestId, String)>,
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

    /// The store is searched for a run that is not known.
    pub(super) fn add_search(&mut self, request: RequestId, name: String) -> WriteId {
        self.last += 1;
        let id = WriteId(self.last);
        self.searches.insert(id, (request, name));
        id
    }

    pub(super) fn take_search(&mut self, id: WriteId) -> Option<(RequestId, String)> {
        self.searches.remove(&id)
    }

    pub(super) fn take(&mut self, id: WriteId) -> PendingWrite {
        self.pending
            .remove(&id)
            .unwrap_or_else(|| panic!("the store reports {id:?}, which was not requested or was reported before"))
    }

    /// Whether something is being written that clients must not see before it is stored: a failure, a saved task or a doubt.
    /// It would be lost if the coordinator were killed before that.
    pub(super) fn has_unconfirmed(&self, run: RunId) -> bool {
        let unconfirmed = |what: &Pending| matches!(what, Pending::Failure | Pending::Repeated(_));
        self.pending.values().any(|pending| pending.run == run && unconfirmed(&pending.what))
    }

    /// The number of replicas of each run with an order that is not stored yet.
    pub(super) fn ordered(&self) -> BTreeMap<RunId, u64> {
        let ordered = |PendingWrite { run, what }: &PendingWrite| match what {
            Pending::Order(order) => Some((*run, order.prepared.replicas())),
            _ => None,
        };
        self.pending.values().filter_map(ordered).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.refusals.is_empty() && self.searches.is_empty()
    }
}
