//! Times, sizes and limits.

/// A run's tasks that are planned and not computed take at most this many bytes, however much memory there is.
const PLAN_AHEAD_BYTES: u64 = 64 << 20;

/// What is remembered of each replica of each run takes about this many bytes.
const RECORD_BYTES: u64 = 256;

/// How many tasks go into one assignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Batch {
    /// As many as last for [`Settings::batch_target_us`], by what tasks of that arm have taken so far.
    #[default]
    Auto,
    /// This number, or all that are open if there are fewer. Results do not depend on it; tests force it.
    Tasks(u32),
}

/// Times, sizes and limits. None of them shows in a result.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The least time between two checkpoints of a run, in milliseconds; more if they take long.
    pub checkpoint_interval_ms: u64,
    /// See [`Batch`].
    pub batch: Batch,
    /// How long an assignment should last, in microseconds.
    pub batch_target_us: u64,
    /// Workers are told to send a heartbeat this often, in milliseconds.
    pub heartbeat_interval_ms: u32,
    /// A worker that is not heard for this long is lost, in milliseconds.
    pub silence_ms_max: u64,
    /// An assignment without progress is overdue after this many times its expected duration, but never before
    /// `deadline_ms_min`, and after `deadline_ms_unknown` if nothing like it was ever computed.
    pub deadline_factor: u64,
    /// In milliseconds.
    pub deadline_ms_min: u64,
    /// In milliseconds.
    pub deadline_ms_unknown: u64,
    /// A task gets a second copy not before this many milliseconds, nor before twice its expected time.
    pub second_copy_ms_min: u64,
    /// A task of which nothing is known gets a second copy after this many milliseconds, if somebody is idle.
    pub second_copy_ms_unknown: u64,
    /// Connected workers.
    pub sessions_max: usize,
    /// Workers admitted a second; the others are asked to come back, so that a storm cannot starve results.
    pub admissions_per_second: u32,
    /// Runs, finished ones included.
    pub runs_max: usize,
    /// Runs that were submitted from one address, finished ones included.
    pub runs_per_address_max: usize,
    /// Replicas of one run, over all arms: with a hundred thousand some events take 40 ms.
    pub replicas_max: u64,
    /// Finished and cancelled runs that are kept; older ones are deleted. `None` keeps all.
    pub finished_runs_kept: Option<u32>,
    /// Bytes that all runs together may take in memory; [`crate::prepared::Prepared`] says how they are counted.
    pub memory_bytes_max: u64,
}

impl Settings {
    /// Bytes that one run may take: the half of all, so that no run keeps all others from beginning.
    #[must_use]
    pub fn run_memory_bytes_max(&self) -> u64 {
        self.memory_bytes_max / 2
    }

    /// Replicas of all runs together, finished ones included, at most: what the coordinator remembers of each is not in the
    /// runs' memory, and must be small beside it.
    #[must_use]
    pub fn records_max(&self) -> u64 {
        self.memory_bytes_max / 16 / RECORD_BYTES
    }

    /// Bytes of a run's tasks that are planned before anybody computes them, at most.
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
            runs_per_address_max: 768,
            replicas_max: 25_000,
            finished_runs_kept: None,
            memory_bytes_max: 2 << 30,
        }
    }
}
