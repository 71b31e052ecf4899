//! The separate process of the coordinator that computes tasks before their runs fail: its current task, and the tasks that
//! wait for it.

use std::collections::VecDeque;

use evoxo_common::{digest::Digest, time::Millis};

/// Whether the coordinator computes a task itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Own {
    #[default]
    No,
    /// It computes the task, or is about to. The text describes the evidence against the task, as the end of a sentence.
    Asked(String),
    /// It tried and failed for this reason. One try is enough.
    Failed(String),
}

impl Own {
    pub(super) fn is_asked(&self) -> bool {
        matches!(self, Self::Asked(_))
    }
}

/// The process computes one task at a time. Waiting tasks are listed by hash, each once.
#[derive(Default)]
pub(super) struct OwnProcess {
    pub(super) computing: Option<Digest>,
    /// When it began with that task.
    pub(super) since: Millis,
    /// Whether the process was requested to stop.
    pub(super) ended: bool,
    pub(super) waiting: VecDeque<Digest>,
}

impl OwnProcess {
    /// Adds a task to compute.
    pub(super) fn add(&mut self, task: Digest) {
        if !self.waiting.contains(&task) && self.computing != Some(task) {
            self.waiting.push_back(task);
        }
    }
}
