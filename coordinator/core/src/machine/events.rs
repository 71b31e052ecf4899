//! The core's input and output.

use std::sync::Arc;

use bytes::Bytes;
use evoxo_common::task::Encoded;
use evoxo_proto::v1;

use super::{About, Figures};
use crate::{
    id::{RequestId, SessionId, ThreadId, WriteId},
    prepared::Prepared,
    replicas::{Job, ReplicaKey, Report},
    saved::SavedRun,
    trust::{Draw, Holder, Level},
    write::{Mended, StoreFault, Write},
};

/// An event for the coordinator.
#[derive(Debug)]
pub enum Event {
    /// A worker introduces itself on a new stream.
    Hello {
        /// Made by the shell when the stream opened.
        session: SessionId,
        /// Where it connects from, without the port.
        address: String,
        /// Whom its certificate belongs to, if there are certificates.
        holder: Option<Holder>,
        /// As received; not checked.
        hello: v1::Hello,
    },
    /// A worker's later message.
    Message {
        /// Its stream.
        session: SessionId,
        /// As received; not checked.
        message: v1::FromWorker,
    },
    /// Bytes of a worker's message that is not whole yet: on a slow line its heartbeats wait behind it.
    Heard {
        /// Its stream.
        session: SessionId,
    },
    /// The certificate of a worker's connection has expired.
    Expired {
        /// Its stream.
        session: SessionId,
    },
    /// A worker's stream ended because its identity was revoked.
    Revoked {
        /// The stream.
        session: SessionId,
    },
    /// A worker's stream ended.
    Left {
        /// The stream.
        session: SessionId,
    },
    /// A person's request.
    Request {
        /// Returned in [`Effect::Respond`].
        id: RequestId,
        /// The request.
        request: Request,
    },
    /// Results of [`Effect::Job`].
    Done {
        /// The run's thread.
        thread: ThreadId,
        /// In order.
        reports: Vec<Report>,
    },
    /// The result of [`Effect::Store`].
    Stored {
        /// Which.
        write: WriteId,
        /// The outcome.
        outcome: Result<Stored, StoreFault>,
    },
    /// One of the two objects of a finished replica was found damaged or missing.
    Damaged {
        /// The run's name.
        run: String,
        /// The replica's object, by its name below `runs/RUN/`.
        object: String,
    },
    /// The result of [`Effect::ComputeHere`]: the output, or why there is none, as a sentence without its end.
    ComputedHere(Result<Bytes, String>),
    /// Save everything, then [`Effect::Stopped`].
    Stop,
    /// [`super::Coordinator::next_wake`] has passed.
    Wake,
}

/// The result of a write.
#[derive(Debug)]
pub enum Stored {
    /// The object that was created, by its name below `runs/RUN/`; `None` if the write creates none.
    Written(Option<String>),
    /// The result of [`Write::Load`]: the run with the states of its unfinished replicas; `None` if it does not exist
    /// any more.
    Loaded(Option<Box<SavedRun>>),
    /// The result of [`Write::Mend`].
    Mended(Mended),
}

/// A person's request; see `run.proto`. Requests that only read are answered from what the core publishes.
#[derive(Debug)]
#[allow(missing_docs)] // The fields are those of the requests in run.proto.
pub enum Request {
    Submit {
        name: String,
        prepared: Arc<Prepared>,
        /// How its outputs are verified; plain: as those of the run, if it exists.
        level: Level,
        /// Whose quota and share it counts in: see [`v1::Order::submitter`].
        submitter: String,
        /// On which terms it is computed; of a run that exists, those that change.
        terms: Vec<v1::Term>,
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
    /// List the replicas that have begun.
    Replicas {
        name: String,
    },
    /// One replica in its present state.
    Replica {
        name: String,
        replica: ReplicaKey,
    },
    /// The objects that have the states of its replicas.
    Objects {
        name: String,
    },
    Workers,
    /// The workers that were lost last.
    Lost,
    Drain(v1::DrainWorkersRequest),
    /// Keep in the store that this identity or token is refused, by whom.
    Revoke {
        id: String,
        by: String,
    },
    /// What is measured.
    Figures,
}

impl Request {
    /// The run whose order in the store it may change.
    pub(super) fn orders(&self) -> Option<&str> {
        match self {
            Self::Submit { name, .. } | Self::Pause { name } | Self::Resume { name } | Self::Cancel { name, .. } => {
                Some(name)
            }
            _ => None,
        }
    }
}

/// A response for a person; see `run.proto`.
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
    /// Names below `runs/RUN/`: of each finished replica that is stored, and of the newest checkpoint.
    Objects {
        finished: Vec<(ReplicaKey, String)>,
        checkpoint: Option<String>,
    },
    /// All that are connected, or those that were asked to leave.
    Workers(Vec<v1::Worker>),
    Lost(Vec<v1::LostWorker>),
    Revoked,
    Figures(Box<Figures>),
}

/// Where a replica can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaAt {
    /// These bytes, sealed as in its own object.
    Bytes(Bytes),
    /// In this object of the store, below `runs/RUN/`, which has only this replica.
    Object(String),
    /// In this object of the store, below `runs/RUN/`: a checkpoint.
    Checkpoint(String),
}

/// Why a request is rejected: a message, and a class that maps to a gRPC code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// INVALID_ARGUMENT.
    Invalid(String),
    /// NOT_FOUND.
    NotFound(String),
    /// FAILED_PRECONDITION: the same request fails until a person changes something, which may be the store.
    Conflict(String),
    /// RESOURCE_EXHAUSTED.
    Exhausted(String),
    /// UNAVAILABLE: the coordinator is stopping, or busy with the same request: try again.
    Unavailable(String),
    /// FAILED_PRECONDITION: the store failed in the middle, so it may have been carried out.
    Unstored(String),
    /// UNAVAILABLE: another coordinator leads, or this one has ended, in the middle, so it may have been carried out.
    Interrupted(String),
}

impl Rejection {
    /// There is no run of this name.
    pub(super) fn no_run(name: &str) -> Self {
        Self::NotFound(format!("there is no run {name:?} here: `evoxo runs` lists them"))
    }

    /// The run was removed while the request waited for the store.
    pub(super) fn removed() -> Self {
        Self::NotFound("the run is not there any more: `evoxo runs` lists those that are".into())
    }

    /// The run was removed while an order of it was on its way into the store, which may have it now.
    pub(super) fn removed_but_ordered() -> Self {
        Self::Unstored(
            "the run was removed while this was ordered, and may be there again: `evoxo runs` lists those that are"
                .into(),
        )
    }

    /// The run left the memory while the request waited for its thread.
    pub(super) fn unloaded() -> Self {
        Self::Unavailable("the run was stopped or deleted while the replica was being read: ask again".into())
    }

    /// The replica has not begun.
    pub(super) fn no_replica() -> Self {
        Self::NotFound("this replica has not begun, or nothing of it is in the store yet".into())
    }

    /// Whether the request may have been carried out all the same.
    pub fn is_in_doubt(&self) -> bool {
        matches!(self, Self::Unstored(_) | Self::Interrupted(_))
    }

    /// Why the request is refused.
    pub fn sentence(&self) -> &str {
        match self {
            Self::Invalid(why)
            | Self::NotFound(why)
            | Self::Conflict(why)
            | Self::Exhausted(why)
            | Self::Unavailable(why)
            | Self::Unstored(why)
            | Self::Interrupted(why) => why,
        }
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

/// The subject of a line of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Normal operation.
    Progress,
    /// A problem that is none of the others.
    Trouble,
    /// A worker was lost with its tasks.
    WorkerLost,
    /// A worker was refused.
    WorkerRefused,
    /// Two outputs of one task differ.
    Doubt,
    /// A run failed.
    RunFailed,
}

impl Topic {
    /// Whether a person should look at it.
    #[must_use]
    pub fn is_warning(self) -> bool {
        self != Self::Progress
    }
}

/// An action for the shell.
#[derive(Debug)]
pub enum Effect {
    /// Send a worker a message.
    Send {
        /// The worker's session.
        session: SessionId,
        /// The message.
        message: v1::ToWorker,
    },
    /// End a worker's stream after the messages sent before.
    End {
        /// The session.
        session: SessionId,
    },
    /// Respond to a person.
    Respond {
        /// From [`Event::Request`].
        id: RequestId,
        /// The response.
        response: Result<Response, Rejection>,
    },
    /// Start a thread for a run's replicas.
    Start {
        /// Its id.
        thread: ThreadId,
        /// The run.
        prepared: Arc<Prepared>,
        /// What is audited of it.
        draw: Draw,
        /// The saved states of replicas that have begun, in order.
        states: Vec<v1::ReplicaState>,
    },
    /// Do this job on the run's thread, after its earlier jobs; report with [`Event::Done`].
    Job {
        /// The thread.
        thread: ThreadId,
        /// The job.
        job: Job,
    },
    /// End the thread and free its replicas.
    Drop {
        /// The thread.
        thread: ThreadId,
    },
    /// Compute this task in a process of the coordinator's own; report with [`Event::ComputedHere`]. The one before has been reported.
    ComputeHere {
        /// The task.
        task: Encoded,
        /// The process is ended after this time, in milliseconds.
        limit_ms: u64,
        /// The most bytes of its output.
        output_bytes_max: u64,
    },
    /// End that process: nobody needs what it computes. This is reported too.
    StopComputing,
    /// Write to the store, keeping the order of a run's writes; report with [`Event::Stored`].
    Store {
        /// Returned in the report.
        write: WriteId,
        /// The run's name.
        run: String,
        /// The write.
        what: Write,
    },
    /// Show this view of a run from now on.
    Publish(Arc<View>),
    /// Stop showing a run.
    Unpublish {
        /// Its name.
        run: String,
    },
    /// A line for the audit log, of something that this coordinator did.
    Audit {
        /// What it did, in a word.
        what: &'static str,
        /// To what, and how.
        object: String,
    },
    /// Revoke an identity for good, because it computed wrongly. The store has that already.
    Convict {
        /// Its number.
        identity: String,
        /// What it did, for the audit log.
        what: String,
    },
    /// Whether the store has all runs that should advance.
    Healthy(bool),
    /// A line for the log.
    Log {
        /// Its subject.
        topic: Topic,
        /// Its fields.
        about: Box<About>,
        /// What happened.
        sentence: String,
    },
    /// Everything is saved: exit.
    Stopped,
}
