//! What goes into the core and what comes out.

use bytes::Bytes;
use evoxo_common::digest::Digest;
use evoxo_proto::v1;

/// One stream of one worker; chosen by the shell, unique in the life of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(pub u64);

impl std::fmt::Display for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One question of a person; chosen by the shell, comes back with the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// One write to the store; comes back with its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriteId(pub u64);

/// How many tasks go into one assignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Batch {
    /// As many as last for [`Settings::batch_target_us`], by what tasks of that run and kind have taken so far.
    #[default]
    Auto,
    /// So many, or all that are open if there are fewer. Results do not depend on it; tests force it.
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
    /// Workers are told to send a beat this often, in milliseconds.
    pub beat_interval_ms: u32,
    /// A worker not heard for so long is lost, in milliseconds.
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
    /// Connected workers.
    pub sessions_max: usize,
    /// Workers admitted a second; the others are asked to come back, so that a storm cannot starve results.
    pub admissions_per_second: u32,
    /// Runs, finished ones included.
    pub runs_max: usize,
    /// Replicas of one run, over all arms.
    pub replicas_max: u64,
    /// Finished and cancelled runs that are kept; older ones are deleted. `None` keeps all.
    pub finished_runs_kept: Option<u32>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            checkpoint_interval_ms: 3000,
            batch: Batch::Auto,
            batch_target_us: 20_000,
            beat_interval_ms: 2000,
            silence_ms_max: 10_000,
            deadline_factor: 20,
            deadline_ms_min: 60_000,
            deadline_ms_unknown: 1_200_000,
            second_copy_ms_min: 300,
            sessions_max: 4096,
            admissions_per_second: 200,
            runs_max: 1024,
            replicas_max: 100_000,
            finished_runs_kept: None,
        }
    }
}

/// What happens to a coordinator.
#[derive(Debug)]
pub enum Event {
    /// A worker's message; the first of a session must be Hello.
    Message {
        /// Made by the shell when the stream opened.
        session: SessionId,
        /// As received; nothing in it is trusted.
        message: v1::FromWorker,
    },
    /// A worker's stream ended.
    Left {
        /// The stream.
        session: SessionId,
    },
    /// A person asks.
    Ask {
        /// Comes back in [`Effect::Answer`].
        ticket: Ticket,
        /// What.
        ask: Ask,
    },
    /// What became of [`Effect::Store`].
    Stored {
        /// Which.
        write: WriteId,
        /// How it went.
        outcome: Result<(), StoreFault>,
    },
    /// Save everything, then [`Effect::Stopped`].
    Stop,
    /// [`super::Coordinator::next_wake`] has passed. Sent only when no other event waits, so that a long `absorb`
    /// cannot make workers look silent whose words are waiting to be read.
    Wake,
}

/// What a person wants; see `run.proto`.
#[derive(Debug)]
#[allow(missing_docs)] // The fields are those of the requests in run.proto.
pub enum Ask {
    Submit { name: String, config: String },
    List,
    Get { name: String },
    Pause { name: String },
    Resume { name: String },
    Cancel { name: String, delete: bool },
    Fetch { name: String },
    FetchChampion { name: String, arm: String, replica: u32 },
    Workers,
}

/// What a person gets; see `run.proto`.
#[derive(Debug)]
#[allow(missing_docs)] // The fields are those of the responses in run.proto.
pub enum Answer {
    Submitted { run: v1::Run, created: bool },
    Runs(Vec<v1::Run>),
    Run(v1::Run),
    Replicas(Vec<v1::Replica>),
    Champion(v1::Champion),
    Workers(Vec<v1::Worker>),
}

/// Why a person does not get it: one sentence, and a class that maps to a gRPC code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// INVALID_ARGUMENT.
    Invalid(String),
    /// NOT_FOUND.
    NotFound(String),
    /// FAILED_PRECONDITION: asking again is of no use before a person has put something right, the store included.
    Conflict(String),
    /// RESOURCE_EXHAUSTED.
    Exhausted(String),
    /// UNAVAILABLE: the coordinator is stopping, or busy with the same question: ask again.
    Unavailable(String),
}

/// What to do.
#[derive(Debug)]
pub enum Effect {
    /// Send a worker a message.
    Send {
        /// To whom.
        session: SessionId,
        /// What.
        message: v1::ToWorker,
    },
    /// End a worker's stream after what was sent.
    End {
        /// Whose.
        session: SessionId,
    },
    /// Answer a person.
    Answer {
        /// From [`Event::Ask`].
        ticket: Ticket,
        /// What.
        answer: Result<Answer, Rejection>,
    },
    /// Write to the store, the writes of one run in order; report with [`Event::Stored`].
    Store {
        /// Comes back in the report.
        write: WriteId,
        /// The run's name.
        run: String,
        /// What.
        what: Write,
    },
    /// Watchers of this run may want to look again.
    Changed {
        /// The run's name.
        run: String,
    },
    /// A line for the log.
    Log {
        /// Worth a person's attention.
        warn: bool,
        /// What happened.
        sentence: String,
    },
    /// All that must be saved is saved: exit.
    Stopped,
}

/// A write to the store. Bytes come sealed ([`evoxo_common::envelope`]) unless said otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // A number and bytes each.
pub enum Write {
    Order {
        number: u64,
        bytes: Bytes,
    },
    Checkpoint {
        number: u64,
        bytes: Bytes,
    },
    /// Written once per replica; the ordinal names it.
    Finished {
        ordinal: u64,
        bytes: Bytes,
    },
    /// Every replica is finished and stored: checkpoints may go.
    DropCheckpoints,
    /// A task that broke its run, as it was sent, unsealed: for `evoxo-worker run-task FILE`.
    Poison {
        hash: Digest,
        bytes: Bytes,
    },
    /// Remove the run.
    Delete,
}

/// Why a write was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// This coordinator must never write to the run: one with a higher epoch has it, or nobody can read what it was.
    Fenced(String),
    /// Full, read-only, out of reach: one sentence naming the object. It will be tried again.
    Failed(String),
}
