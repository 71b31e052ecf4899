//! What people want of a run, and how far the store has it. A run has one order on its way to the store at a time; requests that would
//! give another one wait.

use evoxo_proto::v1::{self, RunState};

use super::events::Request;
use crate::id::RequestId;

/// The most requests that wait for one run's order.
pub(super) const ASKED_MAX: usize = 16;

/// The state in which a run should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Running,
    Paused,
    Cancelled,
    /// It cannot continue, for this reason.
    Failed(String),
}

impl Wanted {
    /// As it is stored.
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
    /// An order of a person is being written.
    writing: bool,
    /// Requests that wait for that, in the order in which they came.
    asked: Vec<(RequestId, Request)>,
    /// A failure is to be written.
    failure_unsaved: bool,
    /// The run is being deleted.
    deleting: bool,
}

impl Orders {
    /// Of a run that the store has.
    pub(super) fn stored(wanted: Wanted) -> Self {
        Self { wanted, creating: false, writing: false, asked: Vec::new(), failure_unsaved: false, deleting: false }
    }

    /// Of a run that was submitted just now.
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

    /// Whether a failure is not in the store yet, and waits for an order that is being written, or for a store that can be written.
    pub(super) fn has_unsaved_failure(&self) -> bool {
        self.failure_unsaved
    }

    /// An order of a person is being written.
    pub(super) fn begin_writing(&mut self) {
        self.writing = true;
    }

    /// A request waits for the order that is being written. False: too many do already.
    pub(super) fn wait(&mut self, request: RequestId, what: Request) -> bool {
        let room = self.asked.len() < ASKED_MAX;
        if room {
            self.asked.push((request, what));
        }
        room
    }

    /// The store has reported the order, written or not. Returns the requests that waited for that.
    pub(super) fn end_writing(&mut self) -> Vec<(RequestId, Request)> {
        self.writing = false;
        self.take_asked()
    }

    /// The requests that wait; they then do not any more.
    pub(super) fn take_asked(&mut self) -> Vec<(RequestId, Request)> {
        std::mem::take(&mut self.asked)
    }

    /// An order takes effect. It is newer than a failure that was not written yet. Returns why the run had failed, if it had.
    pub(super) fn apply(&mut self, wanted: Wanted) -> Option<String> {
        (self.creating, self.failure_unsaved) = (false, false);
        match std::mem::replace(&mut self.wanted, wanted) {
            Wanted::Failed(why) => Some(why),
            _ => None,
        }
    }

    /// Another coordinator led meanwhile, and this is what its last order wants.
    pub(super) fn adopt(&mut self, wanted: Wanted) {
        self.wanted = wanted;
    }

    /// The run has failed, which is to be written.
    pub(super) fn fail(&mut self, why: String) {
        (self.wanted, self.failure_unsaved) = (Wanted::Failed(why), true);
    }

    /// Whether a failure is to be written now; it then is.
    pub(super) fn take_unsaved_failure(&mut self) -> bool {
        !self.writing && std::mem::take(&mut self.failure_unsaved)
    }

    /// A failure could not be written.
    pub(super) fn write_failure_again(&mut self) {
        self.failure_unsaved = true;
    }

    /// The run is being deleted, or it turned out that it cannot be.
    pub(super) fn set_deleting(&mut self, deleting: bool) {
        self.deleting = deleting;
    }
}
