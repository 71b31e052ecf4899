//! The replicas of all loaded runs in a process that has no threads for them: every job is done where it is asked for. So are runs computed
//! without workers, and in simulations, tests and fuzzing.

use std::{collections::BTreeMap, sync::Arc};

use evoxo_common::experiment::Registry;
use evoxo_proto::v1;

use super::{Job, Replicas, Report};
use crate::{id::ThreadId, prepared::Prepared, trust::Draw};

/// What the threads of loaded runs would have.
pub struct Turns {
    registry: Registry,
    runs: BTreeMap<ThreadId, Replicas>,
}

impl Turns {
    /// No run yet.
    #[must_use]
    pub fn new(registry: Registry) -> Self {
        Self { registry, runs: BTreeMap::new() }
    }

    /// The core wants a thread for a run.
    pub fn start(&mut self, thread: ThreadId, prepared: Arc<Prepared>, draw: Draw, states: Vec<v1::ReplicaState>) {
        self.runs.insert(thread, Replicas::new(&self.registry, prepared, draw, states));
    }

    /// Does a job, and gives its reports; `None` if the core has dropped the thread.
    pub fn run(&mut self, thread: ThreadId, job: Job) -> Option<Vec<Report>> {
        Some(self.runs.get_mut(&thread)?.run(job))
    }

    /// The core drops a thread.
    pub fn end(&mut self, thread: ThreadId) {
        self.runs.remove(&thread);
    }
}
