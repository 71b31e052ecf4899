//! The jobs that the core gives to a run's thread, and the reports of that thread: see [`crate::replicas`].

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use evoxo_common::{
    digest::Digest,
    experiment::ResultDigest,
    task::{Encoded, Refusal},
};

use crate::{
    id::{RequestId, SessionId, TaskId},
    replicas::{recall::Counted, recomputations::Recomputation},
    saved::Exposed,
    trust::{Holder, Worth},
};

/// A replica of a run: the arm's index in the configuration, and the replica's number within the arm. Replicas are in this
/// order everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReplicaKey {
    /// The index of the arm.
    pub arm: u32,
    /// The replica's number within the arm, from 0.
    pub index: u32,
}

/// A job from the core for a run's thread.
#[derive(Debug)]
pub enum Job {
    /// Start or continue a replica: plan the first piece of its next round, or find that it is finished.
    Open {
        /// The replica.
        replica: ReplicaKey,
        /// How often the replica was restarted before. The core ignores tasks planned for an earlier attempt.
        attempt: u32,
    },
    /// Plan the next piece of the replica's round.
    Plan(ReplicaKey),
    /// Check these outputs, and keep the valid ones that are still needed. The last output of a round completes it.
    Take(Vec<ReceivedOutput>),
    /// Seal all replicas that have started and are not finished.
    Checkpoint {
        /// Returned in the report.
        number: u64,
    },
    /// Seal one replica for a client's request.
    Copy {
        /// Returned in the report.
        request: RequestId,
        /// The replica.
        replica: ReplicaKey,
    },
    /// An identity was convicted. Restart every replica with outputs for which `vouchers` of the convicted identities have
    /// vouched. In the other replicas, drop the outputs of this identity that are to be recomputed.
    Void {
        /// The number of the convicted identity.
        identity: Arc<str>,
        /// All convicted identities, including this one.
        convicted: BTreeSet<Arc<str>>,
        /// See [`crate::trust::Level::vouchers`].
        vouchers: usize,
    },
    /// Keep these outputs with the replica until they are recomputed, whatever state the replica is in.
    Recomputation {
        /// The replica.
        replica: ReplicaKey,
        /// The outputs.
        recomputations: Vec<Recomputation>,
    },
    /// Report which outputs of a replica that is not open are still to be recomputed.
    Recomputations(ReplicaKey),
    /// A trusted worker has computed this output of a task of the replica.
    Pass {
        /// The replica.
        replica: ReplicaKey,
        /// The task's hash.
        task: Digest,
        /// The hash of the output.
        output: Digest,
    },
    /// Forget the outputs that this identity sent and that no other identity has sent too.
    Forget {
        /// The number of the identity.
        identity: Arc<str>,
    },
}

/// The sender of an output. Its session may have ended by the time the output is checked.
#[derive(Clone, Debug)]
pub struct Sender {
    /// The session of the sender.
    pub session: SessionId,
    /// The worker's name.
    pub worker: Arc<str>,
    /// Whether the worker had been assigned the task.
    pub asked: bool,
    /// The holder of the worker's certificate.
    pub holder: Option<Holder>,
}

/// A worker's output of a task.
#[derive(Debug)]
pub struct ReceivedOutput {
    /// The core's id for the task.
    pub task: TaskId,
    /// The sender.
    pub from: Sender,
    /// The replica to whose round the task belongs.
    pub replica: ReplicaKey,
    /// The number of rounds that the replica had absorbed when the task was planned.
    pub round: u64,
    /// The task's index in the round.
    pub index: usize,
    /// The name of the task's type within the kind.
    pub work: &'static str,
    /// The task.
    pub encoded: Encoded,
    /// The bytes as received.
    pub output: Bytes,
    /// What happens to the output if it is valid.
    pub worth: Worth,
}

/// A planned task.
#[derive(Debug)]
pub struct PlannedTask {
    /// The task's index in the round.
    pub index: usize,
    /// The name of the task's type within the kind.
    pub work: &'static str,
    /// The task.
    pub encoded: Encoded,
}

/// An output that was checked.
#[derive(Debug)]
pub struct Checked {
    /// The task.
    pub task: TaskId,
    /// The task's hash.
    pub hash: Digest,
    /// The sender.
    pub from: Sender,
    /// The hash of the output's canonical bytes, or why the output is invalid.
    pub found: Result<Digest, Refusal>,
    /// Whether the output was taken.
    pub taken: bool,
    /// Whether a trusted worker is to recompute the output.
    pub drawn: bool,
}

/// A result of a job.
#[derive(Debug)]
pub enum Report {
    /// A piece of a replica's round.
    Planned {
        /// The replica.
        replica: ReplicaKey,
        /// As in [`Job::Open`].
        attempt: u32,
        /// Whether [`Job::Plan`] planned it.
        requested: bool,
        /// The number of rounds absorbed before.
        round: u64,
        /// The number of tasks in the whole round.
        total: usize,
        /// How many of them are planned now.
        planned: usize,
        /// The tasks of this piece, except those whose outputs are recalled.
        tasks: Vec<PlannedTask>,
        /// The parts of this piece.
        counted: Counted,
    },
    /// A part of a task had another output than before.
    Differs {
        /// The replica.
        replica: ReplicaKey,
        /// The number of rounds that the replica had absorbed when the task was planned.
        round: u64,
        /// The task's hash.
        task: Digest,
        /// The name of the worker that computed it.
        worker: Arc<str>,
        /// The hash of the part's output, and of the earlier one.
        output: Digest,
        /// See `output`.
        known: Digest,
        /// Whether outputs of the same problem were recalled before.
        recalled: bool,
    },
    /// An output was checked.
    Checked(Checked),
    /// Outputs of a saved replica that are still to be recomputed.
    Recomputations {
        /// The replica.
        replica: ReplicaKey,
        /// Whether [`Job::Recomputations`] requested them.
        asked: bool,
        /// The outputs.
        recomputations: Vec<Recomputation>,
    },
    /// All rounds of a replica are absorbed. The replica is finished once its drawn outputs are recomputed.
    Computed {
        /// The replica.
        replica: ReplicaKey,
    },
    /// A replica has absorbed a round, or ended early.
    Absorbed {
        /// The replica.
        replica: ReplicaKey,
        /// The number of rounds absorbed.
        rounds: u64,
        /// The primary metric of the newest row of its history, if it has one.
        metric: Option<f64>,
        /// Why it ended early.
        failure: Option<String>,
        /// The newest checkpoint to which the replica's lane gave its part before this round; 0 if there is none.
        given: u64,
    },
    /// A replica is finished.
    Finished {
        /// The replica.
        replica: ReplicaKey,
        /// Its digest.
        digest: ResultDigest,
        /// The bytes to store.
        sealed: Bytes,
        /// The identities on whose word it rests.
        exposed: Exposed,
    },
    /// A replica is back at its beginning, because of [`Job::Void`].
    Voided {
        /// The replica.
        replica: ReplicaKey,
        /// The number of rounds absorbed before the first void output.
        since: u64,
    },
    /// A saved state is not valid for this run, so the replica restarts.
    Unusable {
        /// The replica.
        replica: ReplicaKey,
        /// The reason, as a sentence.
        why: String,
    },
    /// A checkpoint to store.
    Checkpoint {
        /// As in the job.
        number: u64,
        /// Its bytes.
        sealed: Bytes,
    },
    /// A sealed replica for a client's request; `None` if the replica has not started, or is no longer here.
    Copy {
        /// As in the job.
        request: RequestId,
        /// As in the job.
        replica: ReplicaKey,
        /// The bytes.
        sealed: Option<Bytes>,
    },
    /// The experiment's code panicked. This is the last report of the thread.
    Broken {
        /// The message of the panic.
        why: String,
    },
}
