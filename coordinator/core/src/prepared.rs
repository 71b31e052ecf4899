//! A configuration together with everything that the core needs to know about it. It is computed once, before the core
//! receives it, because parsing a file takes time.

use std::sync::Arc;

use evoxo_common::{
    digest::Digest,
    experiment::{Arm, Config, Demand, Registry},
    task::ProgramId,
};

/// The approximate size of a piece, the unit in which tasks are planned.
const PIECE_BYTES: u64 = 1 << 20;
/// The memory of a planned task in addition to its message, and of an output in addition to its bytes: keys, hashes, nodes. A
/// generous estimate.
const TASK_OVERHEAD_BYTES: u64 = 512;
/// The memory of a row of a history in addition to its numbers, both in use and in a sealed state.
const ROW_OVERHEAD_BYTES: u64 = 48;
/// The maximum number of round digests that a replica keeps, four for each doubling of its rows; and the memory of one
/// digest.
const LINKS_MAX: u64 = 256;
const LINK_BYTES: u64 = 48;

/// A configuration and the figures derived from it.
#[derive(Debug)]
pub struct Prepared {
    /// The configuration.
    pub config: Config,
    /// [`Config::hash`].
    pub hash: Digest,
    /// [`Config::to_toml`].
    pub toml: String,
    /// [`Config::programs`].
    pub programs: Vec<ProgramId>,
    /// The demand of each arm's replicas.
    arms: Vec<ArmFigures>,
}

/// The figures of one arm.
#[derive(Clone, Copy, Debug)]
struct ArmFigures {
    /// The maximum number of rounds of a replica.
    rounds: u64,
    demand: Demand,
    built_in: bool,
    /// The bytes of the settings to which a replica changes later.
    later_bytes: u64,
}

impl ArmFigures {
    /// The figures of an arm, which hold for all stages of its settings.
    fn of(config: &Config, arm: &Arm) -> Self {
        let (kind, stages) = (config.kind, config.stages(arm));
        let of_stage = |(_, arm): &(u64, Arm)| Self {
            rounds: (kind.rounds)(&arm.settings),
            demand: (kind.demand)(&arm.settings),
            built_in: kind.is_built_in(&arm.settings),
            later_bytes: arm.settings.to_text().len() as u64,
        };
        let both = |one: Self, other: Self| Self {
            rounds: one.rounds.max(other.rounds),
            demand: one.demand.or(other.demand),
            built_in: one.built_in && other.built_in,
            later_bytes: one.later_bytes + other.later_bytes,
        };
        let (first, later) = (of_stage(&stages[0]), stages.iter().skip(1).map(of_stage));
        later.fold(Self { later_bytes: 0, ..first }, both)
    }
}

impl Prepared {
    /// Computes the figures of a configuration.
    #[must_use]
    pub fn new(config: Config) -> Arc<Self> {
        let arms = config.arms.iter().map(|arm| ArmFigures::of(&config, arm)).collect();
        let programs = config.programs();
        Arc::new(Self { hash: config.hash(), toml: config.to_toml(), programs, arms, config })
    }

    /// Reads a file and computes the figures.
    ///
    /// # Errors
    /// All problems of the file, or that it lacks the contents of a file that it names, or the signature of a program.
    pub fn read(registry: &Registry, name: &str, text: &str) -> Result<Arc<Self>, String> {
        let config = Config::parse(registry, name, text, &[]).map_err(|problems| problems.to_string())?;
        if let Some(file) = config.missing_file() {
            return Err(format!(
                "the settings lack the contents of {file}: `evoxo submit` reads the file and adds them"
            ));
        }
        match config.programs().iter().find(|program| program.signature.is_none()) {
            Some(ProgramId { name, .. }) => Err(format!(
                "the file lacks the signature of the program {name}: submit it with --program {name}=COMMAND, which \
                 gets it from the program"
            )),
            None => Ok(Self::new(config)),
        }
    }

    /// The maximum number of rounds of a replica of this arm.
    #[must_use]
    pub fn rounds(&self, arm: u32) -> u64 {
        self.arms[arm as usize].rounds
    }

    /// Whether the tasks of this arm run only built-in code: see
    /// [`Kind::is_built_in`](evoxo_common::experiment::Kind::is_built_in).
    #[must_use]
    pub fn is_built_in(&self, arm: u32) -> bool {
        self.arms[arm as usize].built_in
    }

    /// The number of replicas of all arms together.
    #[must_use]
    pub fn replicas(&self) -> u64 {
        u64::from(self.config.replicas) * self.config.arms.len() as u64
    }

    /// The maximum size of an encoded output of this arm's tasks, in bytes; `is_only` says whether the task may be the only one of
    /// its round.
    #[must_use]
    pub fn output_bytes_max(&self, arm: u32, is_only: bool) -> u64 {
        let Demand { output_bytes, only_bytes, .. } = self.arms[arm as usize].demand;
        if is_only { output_bytes.max(only_bytes) } else { output_bytes }
    }

    /// The time after which a worker itself stops a task of this arm, in milliseconds; 0 if the worker never stops it.
    #[must_use]
    pub fn task_ms_max(&self, arm: u32) -> u64 {
        self.arms[arm as usize].demand.task_ms
    }

    /// The maximum memory of an open replica of this arm, in bytes: its state and history twice (in use, and sealed for a
    /// checkpoint), the first piece of a round's tasks, the shared bytes of the tasks, their outputs, and the settings to which
    /// it changes later. (docs/operating.md has the formula.)
    #[must_use]
    pub fn replica_bytes(&self, arm: u32) -> u64 {
        let Demand { tasks, shared_bytes, output_bytes, only_bytes, state_bytes, rows, .. } =
            self.arms[arm as usize].demand;
        let columns = self.config.kind.columns.len() as u64;
        let history =
            rows.saturating_mul(8 * columns + ROW_OVERHEAD_BYTES).saturating_add(rows.min(LINKS_MAX) * LINK_BYTES);
        let outputs = tasks.saturating_mul(output_bytes.saturating_add(64)).max(only_bytes.saturating_add(64));
        let states = state_bytes.saturating_add(history).saturating_mul(2);
        let later = self.arms[arm as usize].later_bytes;
        [states, self.piece_bytes(arm), shared_bytes, outputs, later].into_iter().fold(0, u64::saturating_add)
    }

    /// The maximum memory of the run's tasks that are planned and not yet computed, in bytes, without the first pieces of
    /// rounds. It assumes that no piece is planned while these tasks and those being planned take
    /// `ahead_bytes` or more.
    #[must_use]
    pub fn plan_bytes(&self, ahead_bytes: u64) -> u64 {
        let largest = self.arms.iter().map(|arm| arm.demand.task_bytes.max(arm.demand.only_bytes)).max().unwrap_or(0);
        let all = |arm: &ArmFigures| {
            let tasks = arm.demand.tasks.saturating_mul(self.config.replicas.into());
            let each = arm.demand.task_bytes.saturating_add(TASK_OVERHEAD_BYTES);
            // Each replica may be in a round with a single, larger task.
            let only = arm.demand.only_bytes.saturating_mul(self.config.replicas.into());
            tasks.saturating_mul(each).max(only)
        };
        let all = self.arms.iter().map(all).fold(0, u64::saturating_add);
        all.min(ahead_bytes.saturating_add(PIECE_BYTES).saturating_add(largest))
    }

    /// The memory of all replicas together, in bytes.
    #[must_use]
    pub fn all_replicas_bytes(&self) -> u64 {
        let each = (0..self.arms.len()).map(|arm| self.replica_bytes(arm as u32));
        each.fold(0, u64::saturating_add).saturating_mul(self.config.replicas.into())
    }

    /// The memory that the run takes with one open replica, in bytes. The run needs at least this much.
    #[must_use]
    pub fn least_bytes(&self, ahead_bytes: u64) -> u64 {
        let largest = (0..self.arms.len()).map(|arm| self.replica_bytes(arm as u32)).max();
        self.plan_bytes(ahead_bytes).saturating_add(largest.unwrap_or(0))
    }

    /// The memory that a planned task takes in the core, in bytes.
    #[must_use]
    pub fn task_bytes(own_bytes: usize) -> u64 {
        own_bytes as u64 + TASK_OVERHEAD_BYTES
    }

    /// The maximum memory of a piece of this arm's tasks, in bytes.
    #[must_use]
    pub fn piece_bytes(&self, arm: u32) -> u64 {
        let Demand { tasks, task_bytes, only_bytes, .. } = self.arms[arm as usize].demand;
        let each = task_bytes.saturating_add(TASK_OVERHEAD_BYTES);
        let only = only_bytes.saturating_add(TASK_OVERHEAD_BYTES);
        tasks.saturating_mul(each).min(PIECE_BYTES.saturating_add(each)).max(only)
    }

    /// The number of this arm's tasks in a piece; at least 1.
    #[must_use]
    pub fn piece_tasks(&self, arm: u32) -> usize {
        let each = self.arms[arm as usize].demand.task_bytes.saturating_add(TASK_OVERHEAD_BYTES);
        (PIECE_BYTES / each).max(1) as usize
    }
}
