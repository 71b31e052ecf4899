//! The runs and their tasks.

use std::collections::BTreeMap;

use super::{
    budget::Budget,
    convictions::Convictions,
    held::Held,
    look::{Look, Moment},
    own::OwnProcess,
    rules::Rules,
    runs::Runs,
    sessions::Sessions,
    settings::Settings,
    tasks::Tasks,
    writes::Writes,
};
use crate::{
    id::{TaskId, ThreadId},
    replicas::ReceivedOutput,
};

/// Outputs for the threads of their runs.
pub(super) type Outputs = BTreeMap<ThreadId, Vec<ReceivedOutput>>;

/// The runs and their tasks, and what decides about them: whose turn it is, what memory there is, and whose outputs count.
/// It holds no sessions of workers.
pub(super) struct Work {
    pub(super) runs: Runs,
    pub(super) tasks: Tasks,
    pub(super) budget: Budget,
    pub(super) rules: Rules,
    pub(super) held: Held,
    pub(super) own: OwnProcess,
    pub(super) convictions: Convictions,
    /// Whether slow tasks are still to be checked since the last tick, and workers still to be reserved for suspects.
    pub(super) look_due: bool,
    /// The suspect at which the last search for workers stopped.
    pub(super) skipped: TaskId,
}

impl Work {
    pub(super) fn new(settings: &Settings, convictions: Convictions) -> Self {
        Self {
            runs: Runs::default(),
            tasks: Tasks::default(),
            budget: Budget::new(settings),
            rules: Rules::new(settings),
            held: Held::default(),
            own: OwnProcess::default(),
            convictions,
            look_due: false,
            skipped: TaskId::NONE,
        }
    }

    /// What rules and questions may read.
    pub(super) fn look<'a>(&'a self, at: &'a Moment, sessions: &'a Sessions, writes: &'a Writes) -> Look<'a> {
        let Self { runs, tasks, .. } = self;
        Look { now: at.now, settings: &at.settings, runs, tasks, sessions, writes }
    }
}
