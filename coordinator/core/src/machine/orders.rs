//! The orders given for a run, and which of them are stored. Only one order of a run is being written at a time. Requests
//! that would give another order wait.

use evoxo_proto::v1::{self, RunState};

use super::events::Request;
use crate::id::RequestId;

/// The maximum number of requests that wait for one run's order.
pub(super) const ASKED_MAX: usize = 16;

/// The state that a run should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Running,
    Paused,
    Cancelled,
    /// It cannot continue, for this reason.
    Failed(String),
}

impl Wanted {
    /// Reads a stored order.
    pub(super) fn of_order(order: &v1::Order) -> Self {
        match order.wanted() {
            RunState::Paused => Self::Paused,
            RunState::Cancelled => Self::Cancelled,
            RunState::Failed => Self::Failed(order.failure.clone()),
            _ => Self::Running,
        }
    }
}

/// The orders of one run.
#[derive(Debug)]
pub(super) struct Orders {
    wanted: Wanted,
    /// The order that creates the run is not in the store yet.
    creating: bool,
    /// A client's order is being written.
    writing: bool,
    /// Requests that wait for the write, oldest first.
    asked: Vec<(RequestId, Request)>,
    /// The run has failed, and the failure is still to be written.
    failure_unsaved: bool,
    /// The run is being deleted.
    deleting: bool,
}

impl Orders {
    /// The orders of a stored run.
    pub(super) fn stored(wanted: Wanted) -> Self {
        Self { wanted, creating: false, writing: false, asked: Vec::new(), failure_unsaved: false, deleting: false }
    }

    /// The orders of a run that was just submitted.
    pub(super) fn new() -> Self {
        Self { creating: true, ..Self::stored(Wanted::Running) }
    }

    pub(super) fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    pub(super) fn is_creating(&self) -> bool {
        self.creating
    }

    pub(super) fn is_writing(&self) -> bool {
        self.writing
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.deleting
    }

    /// Whether a failure is not stored yet. It waits for an order that is being written, or until the store can be written.
    pub(super) fn has_unsaved_failure(&self) -> bool {
        self.failure_unsaved
    }

    /// A client's order is being written.
    pub(super) fn begin_writing(&mut self) {
        self.writing = true;
    }

    /// Lets a request wait for the order that is being written. Returns false if too many requests already wait.
    pub(super) fn wait(&mut self, request: RequestId, what: Request) -> bool {
        let room = self.asked.len() < ASKED_MAX;
        if room {
            self.asked.push((request, what));
        }
        room
    }

    /// The store has reported the outcome of the order, written or not. Returns the requests that waited for it.
    pub(super) fn end_writing(&mut self) -> Vec<(RequestId, Request)> {
        self.writing = false;
        self.take_asked()
    }

    /// Takes the waiting requests out of the list.
    pub(super) fn take_asked(&mut self) -> Vec<(RequestId, Request)> {
        std::mem::take(&mut self.asked)
    }

    /// An order takes effect. It replaces a failure that was not written yet. Returns why the run had failed, if it had.
    pub(super) fn apply(&mut self, wanted: Wanted) -> Option<String> {
        (self.creating, self.failure_unsaved) = (false, false);
        match std::mem::replace(&mut self.wanted, wanted) {
            Wanted::Failed(why) => Some(why),
            _ => None,
        }
    }

    /// Takes over the state that the last order of another coordinator wants. That coordinator led in the meantime.
    pub(super) fn adopt(&mut self, wanted: Wanted) {
        self.wanted = wanted;
    }

    /// The run has failed; the failure is to be written.
    pub(super) fn fail(&mut self, why: String) {
        (self.wanted, self.failure_unsaved) = (Wanted::Failed(why), true);
    }

    /// Whether a failure is to be written now. Marks it as being written.
    pub(super) fn take_unsaved_failure(&mut self) -> bool {
        !self.writing && std::mem::take(&mut self.failure_unsaved)
    }

    /// The failure could not be written.
    pub(super) fn write_failure_again(&mut self) {
        self.failure_unsaved = true;
    }

    /// Records whether the run is being deleted; false if it turned out that it cannot be.
    pub(super) fn set_deleting(&mut self, deleting: bool) {
        self.deleting = deleting;
    }
}
