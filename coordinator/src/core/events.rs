//! What goes into the core and what comes out.

use std::sync::Arc;

use bytes::Bytes;
use evoxo_proto::v1;

use crate::{
    id::{RequestId, SessionId, ThreadId, WriteId},
    prepared::Prepared,
    replicas::{Job, ReplicaKey, Report},
    saved::SavedRun,
    write::{StoreFault, Write},
};

/// What happens to a coordinator.
#[derive(Debug)]
pub enum Event {
    /// A worker introduces itself on a new stream.
    Hello {
        /// Made by the shell when the stream opened.
        session: SessionId,
        /// Where it connects from, without the port.
        address: String,
        /// As received; nothing in it is trusted.
        hello: v1::Hello,
    },
    /// A worker's later message.
    Message {
        /// Its stream.
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
    Request {
        /// Comes back in [`Effect::Respond`].
        id: RequestId,
        /// What.
        request: Request,
    },
    /// What came of [`Effect::Job`].
    Done {
        /// Whose.
        thread: ThreadId,
        /// In order.
        reports: Vec<Report>,
    },
    /// What became of [`Effect::Store`].
    Stored {
        /// Which.
        write: WriteId,
        /// How it went.
        outcome: Result<Stored, StoreFault>,
    },
    /// Save everything, then [`Effect::Stopped`].
    Stop,
    /// [`super::Coordinator::next_wake`] has passed.
    Wake,
}

/// What a write gives back.
#[derive(Debug)]
pub enum Stored {
    /// Nothing.
    Written,
    /// Of [`Write::Load`]: the run with the states of its unfinished replicas; `None` if there is none any more.
    Loaded(Option<Box<SavedRun>>),
}

/// What a person wants; see `run.proto`. What only reads is answered from what the core publishes.
#[derive(Debug)]
#[allow(missing_docs)] // The fields are those of the requests in run.proto.
pub enum Request {
    Submit {
        name: String,
        prepared: Arc<Prepared>,
        /// Where the person connects from, without the port.
        address: String,
    },
    Pause {
        name: String,
    },
    Resume {
        name: String,
    },
    Cancel {
        name: String,
        delete: bool,
    },
    /// Which replicas have begun.
    Replicas {
        name: String,
    },
    /// One replica as it is now.
    Replica {
        name: String,
        replica: ReplicaKey,
    },
    Workers,
}

/// What a person gets; see `run.proto`.
#[derive(Debug)]
#[allow(missing_docs)] // The fields are those of the responses in run.proto.
pub enum Response {
    Submitted {
        run: Box<v1::Run>,
        created: bool,
    },
    Run(Box<v1::Run>),
    /// Each with whether it is finished, in order; and the run's configuration.
    Replicas(Arc<Prepared>, Vec<(ReplicaKey, bool)>),
    Replica(ReplicaAt),
    Workers(Vec<v1::Worker>),
}

/// Where a replica is to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaAt {
    /// Here, sealed as in its own object.
    Bytes(Bytes),
    /// In this object of the store, below `runs/RUN/`: its own.
    Object(String),
    /// In this object of the store, below `runs/RUN/`: a checkpoint.
    Checkpoint(String),
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
    /// UNAVAILABLE: the coordinator is stopping, or busy with the same request: ask again.
    Unavailable(String),
}

impl Rejection {
    /// There is none of this name.
    pub(super) fn no_run(name: &str) -> Self {
        Self::NotFound(format!("there is no run {name:?} here: `evoxo runs` lists them"))
    }

    /// It has not begun.
    pub(super) fn no_replica() -> Self {
        Self::NotFound("this replica has not begun, or nothing of it is in the store yet".into())
    }
}

/// A run as people see it.
#[derive(Clone, Debug)]
pub struct View {
    /// Without its configuration.
    pub run: v1::Run,
    /// The configuration; `None` if this build cannot read it.
    pub prepared: Option<Arc<Prepared>>,
}

/// What a line of the log is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// What goes as it should.
    Progress,
    /// Something worth a person's attention that is none of the others.
    Trouble,
    /// A worker was lost with its tasks.
    WorkerLost,
    /// A worker was not let in.
    WorkerRefused,
    /// Two outputs of one task differ.
    Doubt,
    /// A run failed.
    RunFailed,
}

impl Topic {
    /// Whether it is worth a person's attention.
    #[must_use]
    pub fn is_warning(self) -> bool {
        self != Self::Progress
    }
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
    Respond {
        /// From [`Event::Request`].
        id: RequestId,
        /// What.
        response: Result<Response, Rejection>,
    },
    /// Start a thread for a run's replicas. States that were saved come with it, in order.
    Start {
        /// Its name from now on.
        thread: ThreadId,
        /// The run.
        prepared: Arc<Prepared>,
        /// Of replicas that have begun.
        states: Vec<v1::ReplicaState>,
    },
    /// Do this on the run's thread, after what it was told before; report with [`Event::Done`].
    Job {
        /// Whose.
        thread: ThreadId,
        /// What.
        job: Job,
    },
    /// The thread and what it holds are not needed any more.
    Drop {
        /// Whose.
        thread: ThreadId,
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
    /// People see the run like this from now on.
    Publish(Arc<View>),
    /// There is no such run any more.
    Unpublish {
        /// Its name.
        run: String,
    },
    /// Whether this coordinator may advance all runs that it means to.
    Healthy(bool),
    /// A line for the log.
    Log {
        /// What it is about.
        topic: Topic,
        /// What happened.
        sentence: String,
    },
    /// All that must be saved is saved: exit.
    Stopped,
}
