//! A kind of experiment as a value: everything that the tool, the coordinator and the workers ask about it.

use std::fmt;

use evoxo_proto::v1;
use serde_json::Value;

use super::{Arm, Config, Experiment, Replica};
use crate::{
    card::CardKind,
    digest::Digest,
    report::Report,
    settings::{Schema, Values},
    task::{Encoded, Refusal, Task, TaskKind},
    text::quoted,
};

/// A column of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// As in the header of `history.csv`.
    pub name: &'static str,
    /// What it is, with its unit.
    pub doc: &'static str,
}

/// What a replica is: everything its states are a function of.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// The run's seed.
    pub seed: u64,
    /// The arm's name; it is part of the names of the arm's own streams.
    pub arm: &'a str,
    /// From 0.
    pub replica: u32,
    /// The arm's settings.
    pub settings: &'a Values,
}

impl<'a> Identity<'a> {
    /// Replica number `replica` of an arm of a run.
    #[must_use]
    pub fn new(config: &Config, arm: &'a Arm, replica: u32) -> Self {
        Self { seed: config.seed, arm: &arm.name, replica, settings: &arm.settings }
    }
}

/// What a replica asks of whoever runs it, at most: bounds that hold for every round. Bytes are those of encoded messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Tasks of a round.
    pub tasks: u64,
    /// Of one task, what it shares left out.
    pub task_bytes: u64,
    /// What the tasks of a round share, all pieces together.
    pub shared_bytes: u64,
    /// Of one output.
    pub output_bytes: u64,
    /// Of the saved state.
    pub state_bytes: u64,
    /// Rows of the history.
    pub rows: u64,
}

/// An optimized kernel beside its reference implementation, for `evoxo bench`: each does some work and says how much.
#[derive(Clone, Copy)]
pub struct Kernel {
    /// As `--only` takes it.
    pub name: &'static str,
    /// What is counted, with "/s".
    pub unit: &'static str,
    /// The optimized one.
    pub fast: fn() -> u64,
    /// The reference.
    pub reference: fn() -> u64,
}

/// The replicas of an arm, by its place in the configuration.
pub type ArmReplicas<'a> = (usize, Vec<&'a Replica>);

/// A replica as it was saved, or a sentence that says why the bytes are none.
pub type Restored = Result<Box<dyn Experiment>, String>;

/// A kind of experiment.
pub struct Kind {
    /// As in experiment files.
    pub name: &'static str,
    /// Its settings.
    pub schema: &'static Schema,
    /// What each row of a history says.
    pub columns: &'static [Column],
    /// The place, in `columns`, of the primary metric: what is shown while a run is going on.
    pub primary_metric: usize,
    /// How many rounds a replica with these settings takes.
    pub rounds: fn(&Values) -> u64,
    /// What it asks of whoever runs it.
    pub demand: fn(&Values) -> Demand,
    /// A replica before its first round.
    pub start: fn(Identity<'_>) -> Box<dyn Experiment>,
    /// A replica as it was saved, or a sentence if the bytes are not a state that these settings can lead to.
    pub restore: fn(Identity<'_>, &[u8]) -> Restored,
    /// The tasks that it plans.
    pub tasks: &'static [&'static TaskKind],
    /// The cards of its champions.
    pub cards: &'static [CardKind],
    /// What is said at the end, of replicas in order of arm, then number; unfinished ones are welcome.
    pub report: fn(&Config, &[ArmReplicas<'_>]) -> Report,
    /// The same again from the arms of a `result.json`, or a sentence if they do not have all that it takes.
    pub report_of_result: fn(&Config, &[Value]) -> Result<Report, String>,
    /// Its kernels.
    pub kernels: &'static [Kernel],
}

impl Kind {
    /// What this build computes for the kind: a hash of the outputs of a fixed workload of each of its tasks. Builds with
    /// the same signature may work on the same run.
    #[must_use]
    pub fn signature(&self) -> Digest {
        let tasks: Vec<(&str, Digest)> = self.tasks.iter().map(|task| (task.work, task.signature())).collect();
        Digest::of_pieces(tasks.iter().flat_map(|(work, hash)| [work.as_bytes(), &hash.0]))
    }
}

impl Kind {
    /// The task of this kind that was encoded.
    ///
    /// # Errors
    /// A [`Refusal`] if the bytes are too many, not a task, or not one of this kind.
    pub fn decode(&self, encoded: &Encoded) -> Result<Task, Refusal> {
        self.task(encoded.message().map_err(Refusal)?)
    }

    /// The task that a message says.
    pub(super) fn task(&self, message: v1::Task) -> Result<Task, Refusal> {
        let work = self.tasks.iter().copied().find(|kind| kind.work == message.work);
        match work.filter(|_| message.kind == self.name) {
            Some(kind) => Ok(Task { kind, body: message.body, shared: message.shared }),
            None => Err(unknown_task(&message)),
        }
    }
}

/// No kind here has such tasks.
pub(super) fn unknown_task(task: &v1::Task) -> Refusal {
    let (kind, work) = (quoted(&task.kind), quoted(&task.work));
    Refusal(format!("this build knows no task {work} of kind {kind}: use a worker of the coordinator's version"))
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Kind {}
