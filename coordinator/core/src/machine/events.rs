//! The input and output of the core.

use std::sync::Arc;

use bytes::Bytes;
use evoxo_common::{digest::Digest, task::Encoded};
use evoxo_proto::v1;

use super::{About, Figures};
use crate::{
    id::{RequestId, SessionId, ThreadId, WriteId},
    pack::PackPlace,
    prepared::Prepared,
    replicas::{Job, Lanes, ReplicaKey, Report},
    saved::SavedRun,
    trust::{Draw, Holder, Level},
    write::{Mended, StoreFault, Write},
};

/// An event for the coordinator.
#[derive(Debug)]
pub enum Event {
    /// A worker introduces itself on a new stream.
    Hello {
        /// The stream. The shell chooses the id when the stream opens.
        session: SessionId,
        /// The address that the worker connects from, without the port.
        address: String,
        /// The holder of the worker's certificate, if there are certificates.
        holder: Option<Holder>,
        /// The message as received, not checked.
        hello: v1::Hello,
    },
    /// A later message of a worker.
    Message {
        /// The worker's stream.
        session: SessionId,
        /// The message as received, not checked.
        message: v1::FromWorker,
    },
    /// Part of a worker's message has arrived. On a slow connection, the worker's heartbeats wait behind a long message.
    Heard {
        /// The worker's stream.
        session: SessionId,
    },
    /// The certificate of a worker's connection has expired.
    Expired {
        /// The worker's stream.
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
    /// A client's request.
    Request {
        /// Returned in [`Effect::Respond`].
        id: RequestId,
        /// The request.
        request: Request,
    },
    /// Reports about an [`Effect::Job`].
    Done {
        /// The run's thread.
        thread: ThreadId,
        /// The reports, in order.
        reports: Vec<Report>,
        /// How long the thread took for the job, in microseconds.
        took_us: u64,
    },
    /// The result of [`Effect::Store`].
    Stored {
        /// The write.
        write: WriteId,
        /// The outcome.
        outcome: Result<Stored, StoreFault>,
        /// How long the store took, in microseconds. 0 for a write that was made together with an earlier one.
        took_us: u64,
    },
    /// One of the two objects of a finished replica is damaged or missing.
    Damaged {
        /// The run's name.
        run: String,
        /// The name of the replica's object below `runs/RUN/`.
        object: String,
    },
    /// The result of [`Effect::ComputeHere`]: the output, or the reason why there is none, as a sentence without the full
    /// stop.
    ComputedHere(Result<Bytes, String>),
    /// Save everything, then emit [`Effect::Stopped`].
    Stop,
    /// [`super::Coordinator::next_wake`] has passed.
    Wake,
}

/// The result of a write.
#[derive(Debug)]
pub enum Stored {
    /// The name of the created object below `runs/RUN/`; `None` if the write creates no object.
    Written(Option<String>),
    /// The result of [`Write::Finished`]: where the replica is.
    Finished(PackPlace),
    /// The result of [`Write::Load`]: the run with the states of its unfinished replicas; `None` if the run no longer exists.
    Loaded(Option<Box<SavedRun>>),
    /// The result of [`Write::Mend`].
    Mended(Mended),
}

/// A client's request; see `run.proto`. Requests that only read are answered from what the core publishes.
#[derive(Debug)]
#[allow(missing_docs)] // The fields are those of the requests in run.proto.
pub enum Request {
    Submit {
        name: String,
        prepared: Arc<Prepared>,
        /// How the run's outputs are verified. Plain: as before, if the run exists.
        level: Level,
        /// The submitter to whose quota and share the run counts: see [`v1::Order::submitter`].
        submitter: String,
        /// The terms on which the run is computed; for an existing run, those that change.
        terms: Vec<v1::Term>,
    },
    /// The request inside, unless its run exists and has another submitter.
    Own {
        submitter: String,
        request: Box<Request>,
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
    /// List the replicas that have started.
    Replicas {
        name: String,
    },
    /// Get one replica in its current state.
    Replica {
        name: String,
        replica: ReplicaKey,
    },
    /// List the objects that have the states of the run's replicas.
    Objects {
        name: String,
    },
    /// List the tasks of a run that workers have now, at most so many batches.
    Tasks {
        name: String,
        limit: u32,
    },
    Workers,
    /// List the workers that were lost most recently.
    Lost,
    Drain(v1::DrainWorkersRequest),
    /// Set or end cordons.
    Cordon {
        named: v1::CordonWorkersRequest,
        by: String,
        /// The present time, in seconds since 1970.
        at_s: u64,
    },
    /// List the cordons.
    Cordons,
    /// Record in the store that this identity or token is revoked, and by whom.
    Revoke {
        id: String,
        by: String,
    },
    /// Get the figures for the metrics.
    Figures,
}

impl Request {
    /// The run whose stored order the request may change.
    pub(super) fn orders(&self) -> Option<&str> {
        match self {
            Self::Submit { name, .. } | Self::Pause { name } | Self::Resume { name } | Self::Cancel { name, .. } => {
                Some(name)
            }
            Self::Own { request, .. } => request.orders(),
            _ => None,
        }
    }
}

/// A response to a client; see `run.proto`.
#[derive(Debug)]
#[allow(missing_docs)] // The fields are those of the responses in run.proto.
pub enum Response {
    Submitted {
        run: Box<v1::Run>,
        created: bool,
    },
    Run(Box<v1::Run>),
    /// The run's configuration, and its replicas in order, each with whether it is finished.
    Replicas(Arc<Prepared>, Vec<(ReplicaKey, bool)>),
    Replica(ReplicaAt),
    /// The place of each finished and stored replica, and the name of the newest checkpoint below `runs/RUN/`.
    Objects {
        finished: Vec<(ReplicaKey, PackPlace)>,
        checkpoint: Option<String>,
    },
    Tasks(v1::ListTasksResponse),
    /// All connected workers, or those that were asked to leave.
    Workers(Vec<v1::Worker>),
    Lost(Vec<v1::LostWorker>),
    Cordons(Vec<v1::Cordon>),
    Cordoned(v1::CordonWorkersResponse),
    Revoked,
    Figures(Box<Figures>),
}

/// Where a replica can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaAt {
    /// In these bytes, sealed as a finished replica is stored.
    Bytes(Bytes),
    /// At this place in the store.
    Stored(PackPlace),
    /// In this checkpoint in the store, named below `runs/RUN/`.
    Checkpoint(String),
}

/// Why a request is rejected: a message, and a class that maps to a gRPC code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// INVALID_ARGUMENT.
    Invalid(String),
    /// NOT_FOUND.
    NotFound(String),
    /// PERMISSION_DENIED: the run is another person's.
    Denied(String),
    /// FAILED_PRECONDITION: the same request fails until somebody changes something, for example the store.
    Conflict(String),
    /// RESOURCE_EXHAUSTED.
    Exhausted(String),
    /// UNAVAILABLE: the coordinator is stopping, or is busy with the same request. The client may retry.
    Unavailable(String),
    /// FAILED_PRECONDITION: the store failed while the request was carried out, so the request may have taken effect.
    Unstored(String),
    /// UNAVAILABLE: another coordinator took over, or this one stopped, while the request was carried out, so it may have
    /// taken effect.
    Interrupted(String),
}

impl Rejection {
    /// There is no run of this name.
    pub(super) fn no_run(name: &str) -> Self {
        Self::NotFound(format!("there is no run {name:?} here: `evoxo runs` lists them"))
    }

    /// The run has another submitter, and the caller may change only its own runs.
    pub(super) fn denied(name: &str, submitter: &str) -> Self {
        let whose = if submitter.is_empty() { "an unknown person" } else { submitter };
        Self::Denied(format!(
            "run {name:?} was submitted by {whose}, and your role lets you change only your own runs: ask an operator, or \
             submit under another name"
        ))
    }

    /// The run was removed while the request waited for the store.
    pub(super) fn removed() -> Self {
        Self::NotFound("the run no longer exists: `evoxo runs` lists those that do".into())
    }

    /// The run was removed while an order for it was being written. The store may have the order now.
    pub(super) fn removed_but_ordered() -> Self {
        Self::Unstored(
            "the run was removed while the order was being written, and may exist again: `evoxo runs` lists all runs"
                .into(),
        )
    }

    /// The run left memory while the request waited for its thread.
    pub(super) fn unloaded() -> Self {
        Self::Unavailable("the run was stopped or deleted while the replica was being read: try again".into())
    }

    /// The replica has not started.
    pub(super) fn no_replica() -> Self {
        Self::NotFound("this replica has not started, or nothing of it is stored yet".into())
    }

    /// Whether the request may have taken effect even though it was rejected.
    pub fn is_in_doubt(&self) -> bool {
        matches!(self, Self::Unstored(_) | Self::Interrupted(_))
    }

    /// Why the request is rejected.
    pub fn sentence(&self) -> &str {
        match self {
            Self::Invalid(why)
            | Self::NotFound(why)
            | Self::Denied(why)
            | Self::Conflict(why)
            | Self::Exhausted(why)
            | Self::Unavailable(why)
            | Self::Unstored(why)
            | Self::Interrupted(why) => why,
        }
    }
}

/// A run as clients see it.
#[derive(Clone, Debug)]
pub struct View {
    /// The run, without its configuration.
    pub run: v1::Run,
    /// The configuration; `None` if this build cannot read it.
    pub prepared: Option<Arc<Prepared>>,
}

/// The subject of a line of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Normal operation.
    Progress,
    /// A problem that no other topic covers.
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
    /// Whether an operator should look at it.
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
    /// End a worker's stream, after the messages sent so far.
    End {
        /// The session.
        session: SessionId,
    },
    /// Respond to a client.
    Respond {
        /// The id from [`Event::Request`].
        id: RequestId,
        /// The response.
        response: Result<Response, Rejection>,
    },
    /// Start a thread for a run's replicas.
    Start {
        /// The thread's id.
        thread: ThreadId,
        /// The run.
        prepared: Arc<Prepared>,
        /// Which outputs of the run are recomputed.
        draw: Draw,
        /// The saved states of replicas that have started, in order.
        states: Vec<v1::ReplicaState>,
        /// How the replicas are divided, as long as the thread lives.
        lanes: Lanes,
        /// Which outputs the run recalls: those of runs with the same scope. `None` if it does not trust the workers that
        /// computed them.
        scope: Option<Digest>,
    },
    /// Do this job on the run's thread, after its earlier jobs. The thread reports with [`Event::Done`].
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
    /// Forget all outputs that any run could recall, because one of the workers that computed them may be wrong.
    ForgetRecalled,
    /// Compute this task in a separate process of the coordinator. The shell reports with [`Event::ComputedHere`]. No earlier
    /// such task is outstanding.
    ComputeHere {
        /// The task.
        task: Encoded,
        /// The time after which the process is stopped, in milliseconds.
        limit_ms: u64,
        /// The maximum size of the output in bytes.
        output_bytes_max: u64,
    },
    /// Stop that process, because its output is no longer needed. The shell reports this too.
    StopComputing,
    /// Write to the store, keeping the order of a run's writes. The shell reports with [`Event::Stored`].
    Store {
        /// The id returned in the report.
        write: WriteId,
        /// The run's name.
        run: String,
        /// The write.
        what: Write,
    },
    /// From now on, show this view of a run.
    Publish(Arc<View>),
    /// Stop showing a run.
    Unpublish {
        /// The run's name.
        run: String,
    },
    /// A line for the audit log about an action of this coordinator.
    Audit {
        /// The action, in a word.
        what: &'static str,
        /// What it acted on, and how.
        object: String,
    },
    /// Revoke an identity permanently, because it computed wrongly. The store already has the conviction.
    Convict {
        /// The identity's number.
        identity: String,
        /// What the worker did, for the audit log.
        what: String,
    },
    /// Whether all runs that should advance are stored.
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
