//! The fields of a log line in addition to its sentence. They connect the lines of a coordinator with those of its workers.

use std::sync::Arc;

use evoxo_common::digest::Digest;

use crate::id::SessionId;

/// The fields of a log line. Unknown fields are not written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The run's name.
    pub run: Option<String>,
    /// The arm's name.
    pub arm: Option<String>,
    /// The number of the replica within its arm.
    pub replica: Option<u32>,
    /// The task's hash.
    pub task: Option<Digest>,
    /// The worker's name.
    pub worker: Option<Arc<str>>,
    /// The number of the worker's certificate.
    pub identity: Option<String>,
    /// The worker's session.
    pub session: Option<SessionId>,
}

impl About {
    /// Adds a task.
    pub(super) fn and_task(self, task: Digest) -> Self {
        Self { task: Some(task), ..self }
    }
}
