//! The replicas of all loaded runs in a process without threads for them: each job is done at once, by the caller. Used for
//! runs without workers, and in simulations, tests and fuzzing.

use std::{collections::BTreeMap, sync::Arc};

use evoxo_common::{digest::Digest, experiment::Registry};
use evoxo_proto::v1;

use super::{Job, Lanes, Recall, Recalling, Replicas, Report};
use crate::{id::ThreadId, prepared::Prepared, trust::Draw};

/// The replicas of loaded runs, by thread.
pub struct Turns {
    registry: Registry,
    recall: Option<Arc<Recall>>,
    runs: BTreeMap<ThreadId, (Lanes, Vec<Replicas>)>,
}

impl Turns {
    /// Starts without runs.
    #[must_use]
    pub fn new(registry: Registry) -> Self {
        Self { registry, recall: None, runs: BTreeMap::new() }
    }

    /// From now on, runs that start recall these outputs.
    pub fn recall(&mut self, recall: Option<Arc<Recall>>) {
        self.recall = recall;
    }

    /// The core no longer trusts what could be recalled.
    pub fn forget_recalled(&self) {
        self.recall.iter().for_each(|recall| recall.forget());
    }

    /// The core requests a thread for a run, which recalls outputs with this scope if it has one.
    pub fn start(
        &mut self,
        thread: ThreadId,
        prepared: Arc<Prepared>,
        draw: Draw,
        states: Vec<v1::ReplicaState>,
        lanes: Lanes,
        scope: Option<Digest>,
    ) {
        let recalling = Recalling::of(self.recall.as_ref(), scope);
        let all = Replicas::in_lanes(&self.registry, &prepared, draw, states, lanes).into_iter();
        self.runs.insert(thread, (lanes, all.map(|lane| lane.recalling(recalling.clone())).collect()));
    }

    /// Does a job and returns its reports; `None` if the core has dropped the thread.
    pub fn run(&mut self, thread: ThreadId, job: Job) -> Option<Vec<Report>> {
        Some(self.run_lanes(thread, job)?.into_iter().flat_map(|(_, reports)| reports).collect())
    }

    /// The same, with the reports of each lane that had something to do.
    pub fn run_lanes(&mut self, thread: ThreadId, job: Job) -> Option<Vec<(usize, Vec<Report>)>> {
        let (lanes, all) = self.runs.get_mut(&thread)?;
        Some(job.for_lanes(*lanes).into_iter().map(|(lane, job)| (lane, all[lane].run(job))).collect())
    }

    /// The core drops a thread.
    pub fn end(&mut self, thread: ThreadId) {
        self.runs.remove(&thread);
    }
}
