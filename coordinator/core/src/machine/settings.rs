//! Times, sizes and limits of the core.

use crate::trust::AuditKey;

/// The most bytes of a run's tasks that are planned and not computed, however much memory there is.
const PLAN_AHEAD_BYTES: u64 = 64 << 20;

/// The memory for the record of one replica, about, in bytes.
const RECORD_BYTES: u64 = 256;

/// The records that are allowed however little memory there is.
const RECORDS_MIN: u64 = 4096;

/// The number of tasks in one assignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Batch {
    /// As many as last for [`Settings::batch_target_us`], judging by earlier tasks of that arm.
    #[default]
    Auto,
    /// This number, or all that are open if there are fewer. Results do not depend on it; tests force it.
    Tasks(u32),
}

/// Times, sizes and limits. Results do not depend on them.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The shortest time between two checkpoints of a run, in milliseconds; longer if checkpoints take long.
    pub checkpoint_interval_ms: u64,
    /// See [`Batch`].
    pub batch: Batch,
    /// How long an assignment should last, in microseconds.
    pub batch_target_us: u64,
    /// The interval of workers' heartbeats, in milliseconds.
    pub heartbeat_interval_ms: u32,
    /// A worker of which nothing is received for this long is lost, in milliseconds.
    pub silence_ms_max: u64,
    /// An assignment without progress is overdue after this many times its expected duration, but never before
    /// `deadline_ms_min`; if the duration is unknown, after `deadline_ms_unknown`.
    pub deadline_factor: u64,
    /// In milliseconds.
    pub deadline_ms_min: u64,
    /// In milliseconds.
    pub deadline_ms_unknown: u64,
    /// A task gets a second copy after this many milliseconds or twice its expected time, whichever is later.
    pub second_copy_ms_min: u64,
    /// A task of unknown duration gets a second copy after this many milliseconds, if a worker is idle.
    pub second_copy_ms_unknown: u64,
    /// The most connected workers.
    pub sessions_max: usize,
    /// The most workers admitted per second. The others must retry, so that many at once cannot delay results.
    pub admissions_per_second: u32,
    /// The most runs, finished ones included.
    pub runs_max: usize,
    /// The most runs of one submitter, finished ones included.
    pub runs_per_submitter_max: usize,
    /// The most replicas of one run, over all arms. With 100,000 some events would take 40 ms.
    pub replicas_max: u64,
    /// The number of finished and cancelled runs to keep; older ones are deleted. `None` keeps all.
    pub finished_runs_kept: Option<u32>,
    /// Memory for all runs together, in bytes; [`crate::prepared::Prepared`] says how it is counted.
    pub memory_bytes_max: u64,
    /// See [`AuditKey`]. By default a known one, which nobody should use where somebody could lie.
    pub audit_key: AuditKey,
}

impl Settings {
    /// Memory for one run, in bytes: half of all, so that no run prevents all others from starting.
    #[must_use]
    pub fn run_memory_bytes_max(&self) -> u64 {
        self.memory_bytes_max / 2
    }

    /// Memory for all runs of one submitter, in bytes: three quarters, so that nobody takes all.
    #[must_use]
    pub fn submitter_memory_bytes_max(&self) -> u64 {
        self.memory_bytes_max / 4 * 3
    }

    /// The most replicas of all runs together, finished ones included. Their records are not counted in the runs' memory, and
    /// must be small compared to it.
    #[must_use]
    pub fn records_max(&self) -> u64 {
        (self.memory_bytes_max / 16 / RECORD_BYTES).max(RECORDS_MIN)
    }

    /// Of these, the most in runs of one submitter: three quarters, so that nobody takes all.
    #[must_use]
    pub fn records_per_submitter_max(&self) -> u64 {
        self.records_max() / 4 * 3
    }

    /// After how long without progress a task is overdue, in milliseconds, if it is expected to take so many microseconds, or if nobody
    /// knows how long it takes.
    #[must_use]
    pub fn deadline_ms(&self, each_us: Option<u64>) -> u64 {
        each_us.map_or(self.deadline_ms_unknown, |each_us| {
            self.deadline_ms_min.max(each_us.saturating_mul(self.deadline_factor) / 1000)
        })
    }

    /// The most bytes of a run's tasks that are planned and not computed.
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
            silence_ms_max: 10_000,
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
            memory_bytes_max: 2 << 30,
            audit_key: AuditKey::default(),
        }
    }
}
