//! The replicas of all loaded runs in a process without threads for them: each job is done at once, by the caller. Used for
//! runs without workers, and in simulations, tests and fuzzing.

use std::{collections::BTreeMap, sync::Arc};

use evoxo_common::experiment::Registry;
use evoxo_proto::v1;

use super::{Job, Replicas, Report};
use crate::{id::ThreadId, prepared::Prepared, trust::Draw};

/// The replicas of loaded runs, by thread.
pub struct Turns {
    registry: Registry,
    runs: BTreeMap<ThreadId, Replicas>,
}

impl Turns {
    /// Starts without runs.
    #[must_use]
    pub fn new(registry: Registry) -> Self {
        Self { registry, runs: BTreeMap::new() }
    }

    /// The core requests a thread for a run.
    pub fn start(&mut self, thread: ThreadId, prepared: Arc<Prepared>, draw: Draw, states: Vec<v1::ReplicaState>) {
        self.runs.insert(thread, Replicas::new(&self.registry, prepared, draw, states));
    }

    /// Does a job and returns its reports; `None` if the core has dropped the thread.
    pub fn run(&mut self, thread: ThreadId, job: Job) -> Option<Vec<Report>> {
        Some(self.runs.get_mut(&thread)?.run(job))
    }

    /// The core drops a thread.
    pub fn end(&mut self, thread: ThreadId) {
        self.runs.remove(&thread);
    }
}
