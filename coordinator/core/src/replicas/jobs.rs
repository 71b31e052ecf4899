//! What the core asks of a run's thread, and what that reports: see [`crate::replicas`].

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use evoxo_common::{
    digest::Digest,
    experiment::ResultDigest,
    task::{Encoded, Refusal},
};

use crate::{
    id::{RequestId, SessionId, TaskId},
    replicas::audits::Audit,
    saved::Exposed,
    trust::{Holder, Worth},
};

/// A replica of a run: the arm's index in the configuration, and the replica's number within the arm. This order is
/// used everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReplicaKey {
    /// Index of the arm.
    pub arm: u32,
    /// From 0.
    pub index: u32,
}

/// A job from the core for a run's thread.
#[derive(Debug)]
pub enum Job {
    /// Begin or continue a replica: plan the first piece of its next round, or find it finished.
    Open {
        /// Which replica.
        replica: ReplicaKey,
        /// How often it was begun anew before: what is planned for an earlier attempt is not wanted.
        attempt: u32,
    },
    /// Plan the next piece of its round.
    Plan(ReplicaKey),
    /// Check these outputs, and keep the valid ones that are still needed. The last output of a round completes it.
    Take(Vec<ReceivedOutput>),
    /// Seal all replicas that have begun and are not finished.
    Checkpoint {
        /// Returned in the report.
        number: u64,
    },
    /// Seal one replica for a person's request.
    Copy {
        /// Returned in the report.
        request: RequestId,
        /// Which replica.
        replica: ReplicaKey,
    },
    /// Somebody was convicted: begin all replicas anew for whose outputs `vouchers` of the convicted have vouched, and drop the audits of
    /// this one in the others.
    Void {
        /// The number of its identity.
        identity: Arc<str>,
        /// All that are convicted, with it.
        convicted: BTreeSet<Arc<str>>,
        /// See [`crate::trust::Level::vouchers`].
        vouchers: usize,
    },
    /// Keep these outputs with the replica, whatever has become of it, until they are computed again.
    Audit {
        /// Which replica.
        replica: ReplicaKey,
        /// The outputs.
        audits: Vec<Audit>,
    },
    /// Say which outputs of a replica that is not opened are still to be computed again.
    Audits(ReplicaKey),
    /// A trusted worker has computed this output of a task of the replica.
    Pass {
        /// Which replica.
        replica: ReplicaKey,
        /// The task's hash.
        task: Digest,
        /// That of the output.
        output: Digest,
    },
    /// Forget what this identity sent and nobody seconded.
    Forget {
        /// Its number.
        identity: Arc<str>,
    },
}

/// The sender of an output. Its session may have ended when the output is checked.
#[derive(Clone, Debug)]
pub struct Sender {
    /// Its session.
    pub session: SessionId,
    /// The worker's name.
    pub worker: Arc<str>,
    /// Whether the worker had been assigned the task.
    pub asked: bool,
    /// By its certificate.
    pub holder: Option<Holder>,
}

/// A worker's output of a task.
#[derive(Debug)]
pub struct ReceivedOutput {
    /// The core's id of the task.
    pub task: TaskId,
    /// The sender.
    pub from: Sender,
    /// The replica whose round has the task.
    pub replica: ReplicaKey,
    /// Rounds that the replica had absorbed before.
    pub round: u64,
    /// The task's index in the round.
    pub index: usize,
    /// Which of the kind's tasks it is.
    pub work: &'static str,
    /// The task.
    pub encoded: Encoded,
    /// As received.
    pub output: Bytes,
    /// What it is worth if it is valid.
    pub worth: Worth,
}

/// A planned task.
#[derive(Debug)]
pub struct PlannedTask {
    /// Its index in the round.
    pub index: usize,
    /// Which of the kind's tasks it is.
    pub work: &'static str,
    /// The task.
    pub encoded: Encoded,
}

/// The result of a job.
#[derive(Debug)]
pub enum Report {
    /// A piece of a replica's round.
    Planned {
        /// Which replica.
        replica: ReplicaKey,
        /// As in [`Job::Open`].
        attempt: u32,
        /// Whether it was planned by [`Job::Plan`].
        requested: bool,
        /// Rounds absorbed before.
        round: u64,
        /// Tasks of the whole round.
        total: usize,
        /// The tasks of this piece.
        tasks: Vec<PlannedTask>,
    },
    /// An output was checked: the hash of its canonical bytes, or why it is invalid.
    Checked {
        /// The task.
        task: TaskId,
        /// The task's hash.
        hash: Digest,
        /// The sender.
        from: Sender,
        /// What was found.
        found: Result<Digest, Refusal>,
        /// Whether it was taken.
        taken: bool,
        /// Whether it is to be computed again by a trusted worker.
        drawn: bool,
    },
    /// Outputs of a saved replica that are still to be computed again.
    Audits {
        /// Which replica.
        replica: ReplicaKey,
        /// Whether they were asked for by [`Job::Audits`].
        asked: bool,
        /// The outputs.
        audits: Vec<Audit>,
    },
    /// All rounds of a replica are absorbed, and it is finished when its audits are.
    Computed {
        /// Which replica.
        replica: ReplicaKey,
    },
    /// A replica has absorbed a round, or ended early.
    Absorbed {
        /// Which replica.
        replica: ReplicaKey,
        /// Rounds absorbed.
        rounds: u64,
        /// The primary metric of the newest row of its history, if it has one.
        metric: Option<f64>,
        /// Why it ended early.
        failure: Option<String>,
    },
    /// A replica is finished.
    Finished {
        /// Which replica.
        replica: ReplicaKey,
        /// Its digest.
        digest: ResultDigest,
        /// Its bytes, ready to be stored.
        sealed: Bytes,
        /// On whose word it rests.
        exposed: Exposed,
    },
    /// A replica has not begun any more, because of [`Job::Void`].
    Voided {
        /// Which replica.
        replica: ReplicaKey,
        /// Rounds absorbed before the first output of that identity.
        since: u64,
    },
    /// A saved state does not fit: the replica begins anew.
    Unusable {
        /// Which replica.
        replica: ReplicaKey,
        /// A sentence.
        why: String,
    },
    /// A checkpoint, ready to be stored.
    Checkpoint {
        /// As in the job.
        number: u64,
        /// Its bytes.
        sealed: Bytes,
    },
    /// A replica for a person's request, sealed; `None` if it has not begun, or is no longer here.
    Copy {
        /// As in the job.
        request: RequestId,
        /// As in the job.
        replica: ReplicaKey,
        /// Its bytes.
        sealed: Option<Bytes>,
    },
    /// The experiment's code panicked. This is the thread's last report.
    Broken {
        /// The panic's message.
        why: String,
    },
}
