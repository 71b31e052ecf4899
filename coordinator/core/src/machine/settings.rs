//! Times, sizes and limits of the core.

use evoxo_common::digest::Digest;

use crate::trust::DrawKey;

/// The weight of a submitter whom nothing weighs: see [`Settings::weights`].
pub const WEIGHT: u64 = 100;

/// The maximum size of a run's tasks that are planned and not yet computed, in bytes, however much memory there is.
const PLAN_AHEAD_BYTES: u64 = 64 << 20;

/// The approximate memory of a replica's record, in bytes.
const RECORD_BYTES: u64 = 256;

/// The number of records that are allowed, however little memory there is.
const RECORDS_MIN: u64 = 4096;

/// The number of tasks in one assignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Batch {
    /// As many tasks as last for [`Settings::batch_target_us`], judged by earlier tasks of that arm.
    #[default]
    Auto,
    /// This number, or all open tasks if there are fewer. Results do not depend on it; tests set it.
    Tasks(u32),
}

/// Which runs recall each other's outputs. No result depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Across {
    /// All runs.
    #[default]
    Runs,
    /// The runs of one submitter.
    Submitter,
    /// Only the run itself.
    Run,
}

impl Across {
    /// A name that is the same for all runs that recall each other's outputs.
    pub(super) fn scope(self, submitter: &str, run: &str) -> Digest {
        match self {
            Self::Runs => Digest::of_pieces([]),
            Self::Submitter => Digest::of_pieces([b"submitter", submitter.as_bytes()]),
            Self::Run => Digest::of_pieces([b"run", run.as_bytes()]),
        }
    }
}

/// Times, sizes and limits. Results do not depend on them.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The minimum time between two checkpoints of a run, in milliseconds. It is longer if checkpoints take long.
    pub checkpoint_interval_ms: u64,
    /// See [`Batch`].
    pub batch: Batch,
    /// The target duration of an assignment, in microseconds.
    pub batch_target_us: u64,
    /// The interval of workers' heartbeats, in milliseconds.
    pub heartbeat_interval_ms: u32,
    /// A worker that sends nothing for this long, in milliseconds, is lost.
    pub silence_ms_max: u64,
    /// An assignment without progress is overdue after this many times its expected duration, but never before
    /// `deadline_ms_min`. If the duration is unknown, it is overdue after `deadline_ms_unknown`.
    pub deadline_factor: u64,
    /// In milliseconds.
    pub deadline_ms_min: u64,
    /// In milliseconds.
    pub deadline_ms_unknown: u64,
    /// A task gets a second copy after this many milliseconds or twice its expected duration, whichever is later.
    pub second_copy_ms_min: u64,
    /// A task of unknown duration gets a second copy after this many milliseconds, if a worker is idle.
    pub second_copy_ms_unknown: u64,
    /// The maximum number of connected workers.
    pub sessions_max: usize,
    /// The maximum number of workers admitted per second. The others must retry, so that many at once cannot delay results.
    pub admissions_per_second: u32,
    /// The maximum number of runs, including finished ones.
    pub runs_max: usize,
    /// The maximum number of runs of one submitter, including finished ones.
    pub runs_per_submitter_max: usize,
    /// The maximum number of replicas of one run, over all arms. With 100,000 replicas, some events would take 40 ms.
    pub replicas_max: u64,
    /// The number of finished and cancelled runs to keep; older ones are deleted. `None` keeps all.
    pub finished_runs_kept: Option<u32>,
    /// How long ended runs are kept, in milliseconds: see `rules/expiry.rs`. `None` keeps them.
    pub retain_ms: Option<u64>,
    /// How many bytes the ended runs of one submitter may take. `None` sets no limit.
    pub retain_bytes: Option<u64>,
    /// The submitters with another weight than [`WEIGHT`], each once. One with a weight of 200 gets twice as much of the
    /// workers' time as one with 100, if both have enough to compute. From 1 to 10,000.
    pub weights: &'static [(String, u64)],
    /// How many slots long tasks leave free for short ones, of all workers together: see `keeping.rs`.
    pub slots_kept: u32,
    /// The most lanes among which the replicas of a run are divided: as many as threads can work at once.
    pub lanes_max: usize,
    /// The memory for all runs together, in bytes; [`crate::prepared::Prepared`] defines how it is counted.
    pub memory_bytes_max: u64,
    /// Which runs recall each other's outputs.
    pub recall_across: Across,
    /// See [`DrawKey`]. The default is a known key. Do not use it where a worker could lie.
    pub draw_key: DrawKey,
}

impl Settings {
    /// The maximum memory of one run, in bytes: half of the total, so that one run cannot keep all others from starting.
    #[must_use]
    pub fn run_memory_bytes_max(&self) -> u64 {
        self.memory_bytes_max / 2
    }

    /// The maximum memory of all runs of one submitter, in bytes: three quarters of the total, so that no submitter takes
    /// everything.
    #[must_use]
    pub fn submitter_memory_bytes_max(&self) -> u64 {
        self.memory_bytes_max / 4 * 3
    }

    /// The maximum number of replicas of all runs together, including finished runs. Their records do not count as memory of
    /// the runs, so they must be small compared to it.
    #[must_use]
    pub fn records_max(&self) -> u64 {
        (self.memory_bytes_max / 16 / RECORD_BYTES).max(RECORDS_MIN)
    }

    /// The maximum number of replicas in the runs of one submitter: three quarters of the total, so that no submitter takes
    /// everything.
    #[must_use]
    pub fn records_per_submitter_max(&self) -> u64 {
        self.records_max() / 4 * 3
    }

    /// How long a task may make no progress before it is overdue, in milliseconds. `each_us` is its expected duration in
    /// microseconds, `None` if unknown.
    #[must_use]
    pub fn deadline_ms(&self, each_us: Option<u64>) -> u64 {
        each_us.map_or(self.deadline_ms_unknown, |each_us| {
            self.deadline_ms_min.max(each_us.saturating_mul(self.deadline_factor) / 1000)
        })
    }

    /// The maximum size of a run's tasks that are planned and not yet computed, in bytes.
    #[must_use]
    pub fn plan_ahead_bytes(&self) -> u64 {
        PLAN_AHEAD_BYTES.min(self.run_memory_bytes_max() / 2)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            checkpoint_interval_ms: 3000,
            batch: Batch::Auto,
            batch_target_us: 20_000,
            heartbeat_interval_ms: 2000,
            silence_ms_max: 30_000,
            deadline_factor: 20,
            deadline_ms_min: 60_000,
            deadline_ms_unknown: 1_200_000,
            second_copy_ms_min: 300,
            second_copy_ms_unknown: 5000,
            sessions_max: 4096,
            admissions_per_second: 200,
            runs_max: 1024,
            runs_per_submitter_max: 768,
            replicas_max: 25_000,
            finished_runs_kept: None,
            retain_ms: None,
            retain_bytes: None,
            weights: &[],
            slots_kept: 0,
            lanes_max: 1,
            memory_bytes_max: 2 << 30,
            recall_across: Across::Runs,
            draw_key: DrawKey::default(),
        }
    }
}
