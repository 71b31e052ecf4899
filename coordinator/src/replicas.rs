//! The replicas of one run. States are only here. Each run has a thread that does the core's jobs, so that planning,
//! checking and absorbing delay neither the core nor other runs.
//!
//! Pure like the core: jobs go in, reports come out, in order.

use std::{
    collections::{BTreeMap, VecDeque},
    panic::AssertUnwindSafe,
    sync::Arc,
};

use bytes::Bytes;
use evoxo_common::{
    digest::Digest,
    experiment::{Registry, Replica},
    task::{Encoded, Encoder, Refusal},
};
use evoxo_proto::v1;

use crate::{
    id::{RequestId, SessionId, TaskId},
    prepared::Prepared,
    saved::{Exposed, Origin, origin_of, seal_checkpoint, seal_replica},
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
    /// Begin or continue this replica: plan the first piece of its next round, or find it finished.
    Open(ReplicaKey),
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
    /// Begin all replicas anew that have absorbed outputs of this identity on its own word.
    Void {
        /// Its number.
        identity: Arc<str>,
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
        digest: Digest,
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

/// One replica that has begun.
enum Begun {
    /// As saved; it is not open.
    Saved(Box<v1::ReplicaState>),
    /// In its round.
    Open(Box<Round>),
}

struct Round {
    replica: Replica,
    /// One entry for each task.
    outputs: VecDeque<Option<Bytes>>,
    /// Tasks planned, and outputs missing.
    planned: usize,
    missing: usize,
    encoder: Encoder,
    /// Hashes of valid outputs that nobody has seconded yet, with who sent them.
    unseconded: BTreeMap<TaskId, Vec<(Arc<str>, Digest)>>,
    /// The identities whose outputs were absorbed on their own word, with the rounds absorbed before the first of them.
    exposed: BTreeMap<Arc<str>, u64>,
}

/// The replicas of a run that have begun and are not finished.
pub struct Replicas {
    prepared: Arc<Prepared>,
    origin: Origin,
    begun: BTreeMap<ReplicaKey, Begun>,
    broken: bool,
}

impl Replicas {
    /// Begins with these saved states.
    #[must_use]
    pub fn new(registry: &Registry, prepared: Arc<Prepared>, states: Vec<v1::ReplicaState>) -> Self {
        let arms = &prepared.config.arms;
        let key = |state: &v1::ReplicaState| {
            let arm = arms.iter().position(|arm| arm.name == state.arm)?;
            Some(ReplicaKey { arm: arm as u32, index: state.replica })
        };
        let begun = states.into_iter().filter_map(|state| Some((key(&state)?, Begun::Saved(Box::new(state)))));
        Self { begun: begun.collect(), origin: origin_of(registry, &prepared), prepared, broken: false }
    }

    /// Does a job. A panic in the experiment's code is reported too, as the last report.
    pub fn run(&mut self, job: Job) -> Vec<Report> {
        if self.broken {
            return Vec::new();
        }
        let mut reports = Vec::new();
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| self.run_unguarded(job, &mut reports)));
        if let Err(panic) = outcome {
            self.broken = true;
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let why =
                text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".into());
            reports.push(Report::Broken { why });
        }
        reports
    }

    fn run_unguarded(&mut self, job: Job, reports: &mut Vec<Report>) {
        match job {
            Job::Open(key) => self.open(key, reports),
            Job::Plan(replica) => {
                let most = self.prepared.piece_tasks(replica.arm);
                reports.push(match self.begun.get_mut(&replica) {
                    Some(Begun::Open(round)) => round.plan(replica, most, true),
                    // It is finished.
                    _ => Report::Planned { replica, requested: true, round: 0, total: 0, tasks: Vec::new() },
                });
            }
            Job::Take(outputs) => outputs.into_iter().for_each(|output| self.take(output, reports)),
            Job::Checkpoint { number } => {
                let states = self.begun.values().map(Begun::save).collect();
                reports.push(Report::Checkpoint { number, sealed: seal_checkpoint(&self.origin, states) });
            }
            Job::Copy { request, replica } => {
                let sealed = self.begun.get(&replica).map(|begun| seal_replica(&self.origin, begun.save()));
                reports.push(Report::Copy { request, replica, sealed });
            }
            Job::Void { identity } => {
                let exposed =
                    self.begun.iter().filter_map(|(key, begun)| Some((*key, begun.exposed_since(&identity)?)));
                for (replica, since) in exposed.collect::<Vec<_>>() {
                    self.begun.remove(&replica);
                    reports.push(Report::Voided { replica, since });
                }
            }
            Job::Forget { identity } => {
                for begun in self.begun.values_mut() {
                    let Begun::Open(round) = begun else { continue };
                    round.unseconded.values_mut().for_each(|sent| sent.retain(|(of, _)| *of != identity));
                    round.unseconded.retain(|_, sent| !sent.is_empty());
                }
            }
        }
    }

    fn open(&mut self, key: ReplicaKey, reports: &mut Vec<Report>) {
        let config = &self.prepared.config;
        let mut exposed = BTreeMap::new();
        let restored = match self.begun.remove(&key) {
            Some(Begun::Saved(state)) => {
                exposed = state.exposed.iter().map(|it| (it.identity.as_str().into(), it.round)).collect();
                Some(Replica::restore(config, &state))
            }
            Some(open @ Begun::Open(_)) => {
                self.begun.insert(key, open);
                return;
            }
            None => None,
        };
        let replica = match restored {
            Some(Ok(replica)) => replica,
            Some(Err(why)) => {
                exposed.clear();
                reports.push(Report::Unusable { replica: key, why });
                Replica::start(config, &config.arms[key.arm as usize], key.index)
            }
            None => Replica::start(config, &config.arms[key.arm as usize], key.index),
        };
        let round = Round {
            replica,
            outputs: VecDeque::new(),
            planned: 0,
            missing: 0,
            encoder: Encoder::default(),
            unseconded: BTreeMap::new(),
            exposed,
        };
        self.go_on(key, Box::new(round), self.prepared.piece_tasks(key.arm), reports);
    }

    /// Plans at most this number of the tasks that a replica has now, or finds it finished.
    fn go_on(&mut self, key: ReplicaKey, mut round: Box<Round>, most: usize, reports: &mut Vec<Report>) {
        let total = round.replica.tasks();
        if total == 0 {
            let sealed = seal_replica(&self.origin, round.save());
            let exposed = round.exposed.iter().map(|(id, since)| (Arc::clone(id), *since)).collect();
            reports.push(Report::Finished { replica: key, digest: round.replica.digest(), sealed, exposed });
            return;
        }
        round.missing += total - round.outputs.len();
        round.outputs.resize(total, None);
        if round.planned < total {
            reports.push(round.plan(key, most, false));
        }
        self.begun.insert(key, Begun::Open(round));
    }

    fn take(&mut self, received: ReceivedOutput, reports: &mut Vec<Report>) {
        let ReceivedOutput { task, from, replica: key, round, index, encoded, output, worth } = received;
        let hash = encoded.hash;
        let kind = self.prepared.config.kind;
        let checked = kind.decode(&encoded).and_then(|task| task.check(&output));
        let found = checked.as_ref().map(|output| Digest::of(output)).map_err(Clone::clone);
        let believed = from.holder.as_ref().filter(|_| worth == Worth::Believed).map(|holder| holder.id.clone());
        let taken = match (&found, worth, self.begun.get_mut(&key)) {
            (Err(_), ..) | (_, Worth::Compared, _) => false,
            (Ok(digest), Worth::Seconded, Some(Begun::Open(open))) => open.is_seconded(task, &from, *digest),
            (Ok(_), Worth::Seconded, _) => false,
            (Ok(_), Worth::Taken | Worth::Believed, _) => true,
        };
        reports.push(Report::Checked { task, hash, from, found, taken });
        let (Ok(output), Some(Begun::Open(open))) = (checked, self.begun.get_mut(&key)) else { return };
        if !taken {
            return;
        }
        open.unseconded.remove(&task);
        let Some(missing) = open.place(round, index).and_then(|place| open.outputs.get_mut(place)) else { return };
        if missing.is_some() {
            return;
        }
        *missing = Some(output);
        open.missing -= 1;
        let rounds = open.replica.rounds();
        if let Some(identity) = believed {
            open.exposed.entry(identity).or_insert(rounds);
        }
        while let Some(Begun::Open(open)) = self.begun.get(&key)
            && open.is_ready()
            && let Some(Begun::Open(open)) = self.begun.remove(&key)
        {
            self.absorb(key, open, reports);
        }
    }

    fn absorb(&mut self, key: ReplicaKey, mut round: Box<Round>, reports: &mut Vec<Report>) {
        let needed = round.replica.needed();
        let outputs: Vec<Bytes> = round.outputs.drain(..needed).flatten().collect();
        round.planned -= needed;
        let replica = &mut round.replica;
        replica.absorb(&outputs);
        drop(outputs);
        let metric = replica.history().last().map(|row| row[self.prepared.config.kind.primary_metric]);
        let failure = replica.failure().map(str::to_owned);
        reports.push(Report::Absorbed { replica: key, rounds: replica.rounds(), metric, failure });
        if replica.has_barrier() {
            round.encoder = Encoder::default();
            return self.go_on(key, round, self.prepared.piece_tasks(key.arm), reports);
        }
        // A task for a task, so that the planned ones do not take more memory than before.
        self.go_on(key, round, 1, reports);
    }
}

impl Begun {
    fn save(&self) -> v1::ReplicaState {
        match self {
            Self::Saved(state) => (**state).clone(),
            Self::Open(round) => round.save(),
        }
    }

    /// Rounds absorbed before the first output that it has on the word of this identity.
    fn exposed_since(&self, identity: &str) -> Option<u64> {
        match self {
            Self::Saved(state) => state.exposed.iter().find(|it| it.identity == identity).map(|it| it.round),
            Self::Open(round) => round.exposed.get(identity).copied(),
        }
    }
}

impl Round {
    fn save(&self) -> v1::ReplicaState {
        let exposed = self.exposed.iter().map(|(id, round)| v1::Exposure { identity: id.to_string(), round: *round });
        v1::ReplicaState { exposed: exposed.collect(), ..self.replica.save() }
    }

    /// Plans the next tasks, at most this number.
    fn plan(&mut self, key: ReplicaKey, most: usize, requested: bool) -> Report {
        let (total, from) = (self.outputs.len(), self.planned);
        self.planned = total.min(from + most);
        let planned = self.replica.plan(from..self.planned).into_iter().zip(from..).map(|(task, index)| {
            let work = task.kind.work;
            PlannedTask { index, work, encoded: self.encoder.encode(task) }
        });
        let tasks = planned.collect();
        Report::Planned { replica: key, requested, round: self.replica.rounds(), total, tasks }
    }

    /// Whether another identity has sent an output with this hash; else it is noted.
    fn is_seconded(&mut self, task: TaskId, from: &Sender, output: Digest) -> bool {
        let Some(Holder { id, .. }) = &from.holder else { return false };
        let sent = self.unseconded.entry(task).or_default();
        if sent.iter().any(|(other, hash)| other != id && *hash == output) {
            return true;
        }
        // An identity is heard once for each task, so that it cannot fill the memory.
        if sent.iter().all(|(other, _)| other != id) {
            sent.push((id.clone(), output));
        }
        false
    }

    /// The place among the outputs of a task that was planned with this index after this number of rounds.
    fn place(&self, round: u64, index: usize) -> Option<usize> {
        let absorbed = self.replica.rounds().checked_sub(round)?;
        match self.replica.has_barrier() {
            true => (absorbed == 0).then_some(index),
            // Each round is one task.
            false => index.checked_sub(usize::try_from(absorbed).ok()?),
        }
    }

    /// Whether the outputs that are needed next are there.
    fn is_ready(&self) -> bool {
        match self.replica.has_barrier() {
            true => self.missing == 0,
            false => self.outputs.front().is_some_and(Option::is_some),
        }
    }
}
