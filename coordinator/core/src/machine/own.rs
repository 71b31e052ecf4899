//! The process of the coordinator's own that computes tasks before their runs fail: what it computes, and what waits for it.

use std::collections::VecDeque;

use evoxo_common::digest::Digest;

/// Whether the coordinator computes a task itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Own {
    #[default]
    No,
    /// It does, or will. This speaks against the task, as the end of a sentence.
    Asked(String),
    /// It tried, and failed for this reason. Once is enough.
    Failed(String),
}

impl Own {
    pub(super) fn is_asked(&self) -> bool {
        matches!(self, Self::Asked(_))
    }
}

/// One task at a time; those that wait by their hash, each once.
#[derive(Default)]
pub(super) struct OwnProcess {
    pub(super) computing: Option<Digest>,
    /// It was asked to end.
    pub(super) ended: bool,
    pub(super) waiting: VecDeque<Digest>,
}

impl OwnProcess {
    /// It is to compute this task too.
    pub(super) fn add(&mut self, task: Digest) {
        if !self.waiting.contains(&task) && self.computing != Some(task) {
            self.waiting.push_back(task);
        }
    }
}
