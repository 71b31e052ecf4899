//! The replicas of one run, or those of one of its lanes; their states are held nowhere else. Each lane has a thread that does
//! the core's jobs, so that planning, checking and absorbing delay neither the core nor other runs.
//!
//! Pure like the core: jobs go in and reports come out, in order.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    panic::AssertUnwindSafe,
    sync::Arc,
};

use bytes::Bytes;
use evoxo_common::{
    digest::Digest,
    experiment::{Kind, Registry, Replica},
    task::Encoder,
};
use evoxo_proto::v1;

mod jobs;
mod lanes;
mod recall;
mod recomputations;
mod turns;

use crate::{
    id::TaskId,
    prepared::Prepared,
    saved::{Origin, beginning, origin_of, seal_checkpoint, seal_replica},
    trust::{Draw, Holder, Worth, void_since},
};
pub use jobs::{Checked, Job, PlannedTask, ReceivedOutput, ReplicaKey, Report, Sender};
pub use lanes::Lanes;
use lanes::Parts;
pub use recall::{Counted, Known, News, Recall, Recalling};
use recall::{Differing, Pieces, Planned};
pub use recomputations::Recomputation;
use recomputations::Recomputations;
pub use turns::Turns;

/// One replica that has started.
enum Begun {
    /// A saved state that is not open. If it has no rounds, it has only outputs to recompute.
    Saved(Box<v1::ReplicaState>),
    /// An open replica in its round.
    Open(Box<Round>),
}

struct Round {
    replica: Replica,
    /// The attempt that the reports about planned tasks carry.
    attempt: u32,
    /// One entry for each task.
    outputs: VecDeque<Option<Bytes>>,
    /// The number of tasks planned, and the number of outputs missing.
    planned: usize,
    missing: usize,
    encoder: Encoder,
    /// The planned tasks of which some outputs are recalled, or are to be known.
    pieces: Pieces,
    /// Hashes of valid outputs that no second identity has sent yet, each with its sender.
    unseconded: BTreeMap<TaskId, Vec<(Arc<str>, Digest)>>,
    /// The identities that vouched for absorbed outputs. Each comes with the number of rounds absorbed before its first
    /// output.
    exposed: BTreeMap<Arc<str>, u64>,
    /// Outputs that a trusted worker is still to recompute.
    recomputations: Recomputations,
}

/// The replicas of a run that have started and are not finished, or that have outputs still to be recomputed.
pub struct Replicas {
    prepared: Arc<Prepared>,
    origin: Origin,
    draw: Draw,
    /// `None` if every task is computed.
    recalling: Option<Recalling>,
    begun: BTreeMap<ReplicaKey, Begun>,
    /// The checkpoints that the lanes of the run give their parts to.
    parts: Arc<Parts>,
    /// The newest of them that has a part of this lane; 0 at the beginning.
    given: u64,
    broken: bool,
}

/// A job absorbs at most so many rounds whose outputs are recalled. Then it returns, and another job continues.
const ROUNDS_AT_ONCE: usize = 64;

impl Replicas {
    /// Starts with these saved states.
    #[must_use]
    pub fn new(registry: &Registry, prepared: Arc<Prepared>, draw: Draw, states: Vec<v1::ReplicaState>) -> Self {
        let arms = &prepared.config.arms;
        let key = |state: &v1::ReplicaState| {
            let arm = arms.iter().position(|arm| arm.name == state.arm)?;
            Some(ReplicaKey { arm: arm as u32, index: state.replica })
        };
        // Before its first round, a replica has nothing to keep except the outputs to recompute.
        let kept = states.into_iter().filter(|state| state.rounds > 0 || !state.recomputations.is_empty());
        let kept = kept.map(|state| match state.rounds {
            0 => beginning(&state.arm, state.replica, state.recomputations),
            _ => state,
        });
        let begun = kept.filter_map(|state| Some((key(&state)?, Begun::Saved(Box::new(state)))));
        Self {
            begun: begun.collect(),
            origin: origin_of(registry, &prepared),
            prepared,
            draw,
            recalling: None,
            parts: Parts::of_one_lane(),
            given: 0,
            broken: false,
        }
    }

    /// Recalls outputs that were computed before.
    #[must_use]
    pub fn recalling(self, recalling: Option<Recalling>) -> Self {
        Self { recalling, ..self }
    }

    /// Does a job. A panic in the experiment's code becomes the last report. Later requests for a copy get the answer that
    /// there is none.
    pub fn run(&mut self, job: Job) -> Vec<Report> {
        let mut reports = Vec::new();
        let asked = match &job {
            Job::Copy { request, replica } => Some((*request, *replica)),
            _ => None,
        };
        let none = asked.map(|(request, replica)| Report::Copy { request, replica, sealed: None });
        if self.broken {
            return none.into_iter().collect();
        }
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| self.run_unguarded(job, &mut reports)));
        if let Err(panic) = outcome {
            self.broken = true;
            reports.extend(none);
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let why =
                text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".into());
            reports.push(Report::Broken { why });
        }
        reports
    }

    fn run_unguarded(&mut self, job: Job, reports: &mut Vec<Report>) {
        match job {
            Job::Open { replica, attempt } => self.open(replica, attempt, reports),
            Job::Plan(replica) => {
                let most = self.prepared.piece_tasks(replica.arm);
                let recalling = self.recalling.as_ref();
                reports.push(match self.begun.get_mut(&replica) {
                    Some(Begun::Open(round)) if !round.outputs.is_empty() => round.plan(replica, most, true, recalling),
                    // The replica is finished, or waits until outputs are recomputed.
                    _ => Report::Planned {
                        replica,
                        attempt: 0,
                        requested: true,
                        round: 0,
                        total: 0,
                        planned: 0,
                        tasks: Vec::new(),
                        counted: Counted::default(),
                    },
                });
                self.advance(replica, reports);
            }
            Job::Take(outputs) => outputs.into_iter().for_each(|output| self.take(output, reports)),
            Job::Checkpoint { number } => {
                let part = self.begun.iter().map(|(key, begun)| (*key, begun.save())).collect();
                self.given = number;
                let states = self.parts.add(number, part).into_iter();
                reports.extend(
                    states.map(|all| Report::Checkpoint { number, sealed: seal_checkpoint(&self.origin, all) }),
                );
            }
            Job::Copy { request, replica } => {
                // Do not reveal which outputs are to be recomputed.
                let shown = |begun: &Begun| v1::ReplicaState { recomputations: Vec::new(), ..begun.save() };
                let sealed = self.begun.get(&replica).map(|begun| seal_replica(&self.origin, shown(begun)));
                reports.push(Report::Copy { request, replica, sealed });
            }
            Job::Void { identity, convicted, vouchers } => self.void(&identity, &convicted, vouchers, reports),
            Job::Recomputation { replica, recomputations } => {
                let none = || Begun::at_its_beginning(&self.prepared, replica, Vec::new());
                let begun = self.begun.entry(replica).or_insert_with(none);
                begun.recomputation(self.prepared.config.kind, |open| {
                    recomputations.into_iter().for_each(|recomputation| open.add(recomputation));
                });
            }
            Job::Recomputations(replica) => {
                let mut recomputations = Vec::new();
                if let Some(begun) = self.begun.get_mut(&replica) {
                    begun.recomputation(self.prepared.config.kind, |open| recomputations = open.all());
                }
                reports.push(Report::Recomputations { replica, asked: true, recomputations });
            }
            // The replica may now continue, or be finished.
            Job::Pass { replica, task, output } => {
                if let Some(begun) = self.begun.get_mut(&replica) {
                    begun.recomputation(self.prepared.config.kind, |open| open.pass(task, output));
                }
                self.resume(replica, reports);
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

    fn open(&mut self, key: ReplicaKey, attempt: u32, reports: &mut Vec<Report>) {
        let config = &self.prepared.config;
        let (mut exposed, mut recomputations) = (BTreeMap::new(), Recomputations::default());
        let restored = match self.begun.remove(&key) {
            Some(Begun::Saved(state)) => {
                exposed = state.exposed.iter().map(|it| (it.identity.as_str().into(), it.round)).collect();
                let restored = Recomputations::restore(config.kind, &state.recomputations).and_then(|restored| {
                    recomputations = restored;
                    // A replica without rounds is before its first round.
                    (state.rounds > 0).then(|| Replica::restore(config, &state)).transpose()
                });
                restored.transpose()
            }
            Some(Begun::Open(mut round)) => {
                // The replica was restarted, and was opened again before the core knew. The core has dropped the tasks
                // planned then, so plan them again.
                if round.attempt != attempt {
                    (round.attempt, round.planned, round.encoder) = (attempt, 0, Encoder::default());
                    round.pieces = Pieces::default();
                    let most = self.prepared.piece_tasks(key.arm);
                    reports.push(round.plan(key, most, false, self.recalling.as_ref()));
                }
                self.begun.insert(key, Begun::Open(round));
                return self.advance(key, reports);
            }
            None => None,
        };
        let replica = match restored {
            Some(Ok(replica)) => replica,
            Some(Err(why)) => {
                (exposed, recomputations) = (BTreeMap::new(), Recomputations::default());
                reports.push(Report::Unusable { replica: key, why });
                Replica::start(config, &config.arms[key.arm as usize], key.index)
            }
            None => Replica::start(config, &config.arms[key.arm as usize], key.index),
        };
        let round = Round {
            replica,
            attempt,
            outputs: VecDeque::new(),
            planned: 0,
            missing: 0,
            encoder: Encoder::default(),
            pieces: Pieces::default(),
            unseconded: BTreeMap::new(),
            exposed,
            recomputations,
        };
        if !round.recomputations.is_empty() {
            reports.push(Report::Recomputations {
                replica: key,
                asked: false,
                recomputations: round.recomputations.all(),
            });
        }
        self.go_on(key, Box::new(round), self.prepared.piece_tasks(key.arm), reports);
        self.advance(key, reports);
    }

    /// `identity` was convicted. A replica is void if `vouchers` of the identities that vouched for its outputs are
    /// convicted. Other outputs of this identity are dropped.
    fn void(&mut self, identity: &str, convicted: &BTreeSet<Arc<str>>, vouchers: usize, reports: &mut Vec<Report>) {
        for key in self.begun.keys().copied().collect::<Vec<_>>() {
            let begun = self.begun.get_mut(&key).expect("no replica is removed while they are voided");
            let mut recomputations = Vec::new();
            begun.recomputation(self.prepared.config.kind, |open| {
                open.forget(identity);
                recomputations = open.save();
            });
            if let Some(since) = begun.void_since(convicted, vouchers) {
                *begun = Begun::at_its_beginning(&self.prepared, key, recomputations);
                reports.push(Report::Voided { replica: key, since });
            } else {
                self.resume(key, reports);
            }
        }
    }

    /// Continues a replica that has waited until outputs are recomputed, if it need not wait for the remaining ones.
    fn resume(&mut self, key: ReplicaKey, reports: &mut Vec<Report>) {
        let Some(Begun::Open(round)) = self.begun.get(&key) else { return };
        let goes_on = match round.replica.tasks() {
            0 => round.recomputations.is_empty(),
            total => round.outputs.len() < total,
        };
        if goes_on && let Some(Begun::Open(round)) = self.begun.remove(&key) {
            self.go_on(key, round, self.prepared.piece_tasks(key.arm), reports);
            self.advance(key, reports);
        }
    }

    /// Plans at most `most` of the replica's current tasks, or finds that the replica is finished or must wait until outputs
    /// are recomputed.
    fn go_on(&mut self, key: ReplicaKey, mut round: Box<Round>, most: usize, reports: &mut Vec<Report>) {
        let total = round.replica.tasks();
        if total > 0 && round.recomputations.are_too_many() {
            self.begun.insert(key, Begun::Open(round));
            return;
        }
        if total == 0 && !round.recomputations.is_empty() {
            // A search without a barrier no longer needs the tasks that workers are still computing.
            round.outputs.clear();
            self.begun.insert(key, Begun::Open(round));
            return reports.push(Report::Computed { replica: key });
        }
        if total == 0 {
            let sealed = seal_replica(&self.origin, round.save());
            let exposed = round.exposed.iter().map(|(id, since)| (Arc::clone(id), *since)).collect();
            reports.push(Report::Finished { replica: key, digest: round.replica.digest(), sealed, exposed });
            return;
        }
        round.missing += total - round.outputs.len();
        round.outputs.resize(total, None);
        if round.planned < total {
            reports.push(round.plan(key, most, false, self.recalling.as_ref()));
        }
        self.begun.insert(key, Begun::Open(round));
    }

    fn take(&mut self, received: ReceivedOutput, reports: &mut Vec<Report>) {
        let ReceivedOutput { task, from, replica: key, round, index, work, encoded, output, worth } = received;
        let hash = encoded.hash;
        let kind = self.prepared.config.kind;
        let checked = kind.decode(&encoded).and_then(|task| task.check(&output));
        let found = checked.as_ref().map(|output| Digest::of(output)).map_err(Clone::clone);
        let mut second = None;
        let taken = match (&found, worth, self.begun.get_mut(&key)) {
            (Err(_), ..) | (_, Worth::Compared, _) => false,
            (Ok(digest), Worth::Seconded, Some(Begun::Open(open))) => {
                second = open.seconded(task, &from, *digest);
                second.is_some()
            }
            (Ok(_), Worth::Seconded, _) => false,
            (Ok(_), Worth::Taken | Worth::Believed, _) => true,
        };
        let vouching = from.holder.as_ref().filter(|_| worth != Worth::Taken).map(|holder| Arc::clone(&holder.id));
        let believed = from.holder.clone().filter(|_| worth == Worth::Believed);
        let recomputation = believed.as_ref().zip(found.as_ref().ok()).map(|(holder, output)| Recomputation {
            identity: Arc::clone(&holder.id),
            worker: Arc::clone(&from.worker),
            output: *output,
            round,
            index,
            work,
            encoded,
        });
        let recomputation =
            recomputation.filter(|recomputation| self.draw.draws(hash, &recomputation.identity, recomputation.output));
        let mut place = match self.begun.get_mut(&key) {
            Some(Begun::Open(open)) if taken => {
                open.unseconded.remove(&task);
                open.place(round, index).map(|place| (open, place))
            }
            _ => None,
        };
        let missing = place.as_mut().and_then(|(open, place)| open.outputs.get_mut(*place)).filter(|it| it.is_none());
        let drawn = recomputation.filter(|_| missing.is_some());
        let worker = Arc::clone(&from.worker);
        reports.push(Report::Checked(Checked { task, hash, from, found, taken, drawn: drawn.is_some() }));
        let (Some(_), Ok(output)) = (missing, checked) else { return };
        let (open, place) = place.expect("an output is missing in a round");
        if let Some(Differing { known, found, recalled }) = open.fill(place, output, self.recalling.as_ref()) {
            let differs = Report::Differs { replica: key, round, task: hash, worker, output: found, known, recalled };
            reports.push(differs);
        }
        let rounds = open.replica.rounds();
        for identity in vouching.into_iter().chain(second) {
            open.exposed.entry(identity).or_insert(rounds);
        }
        drawn.into_iter().for_each(|recomputation| open.recomputations.add(recomputation));
        self.advance(key, reports);
    }

    /// Absorbs rounds as long as their outputs are there.
    fn advance(&mut self, key: ReplicaKey, reports: &mut Vec<Report>) {
        let mut rounds = 0;
        while let Some(Begun::Open(open)) = self.begun.get(&key)
            && open.is_ready()
            && let Some(Begun::Open(open)) = self.begun.remove(&key)
        {
            rounds += 1;
            self.absorb(key, open, self.recalling.is_none() || rounds < ROUNDS_AT_ONCE, reports);
        }
    }

    /// Absorbs a round. If `plans` is false, another job plans the next one.
    fn absorb(&mut self, key: ReplicaKey, mut round: Box<Round>, plans: bool, reports: &mut Vec<Report>) {
        let needed = round.replica.needed();
        let there = |output: Option<Bytes>| output.expect("a round is absorbed once its outputs have arrived");
        let outputs: Vec<Bytes> = round.outputs.drain(..needed).map(there).collect();
        round.planned -= needed;
        let replica = &mut round.replica;
        replica.absorb(&outputs);
        drop(outputs);
        let metric = replica.history().last().and_then(|row| self.prepared.config.kind.metric(row));
        let failure = replica.failure().map(str::to_owned);
        reports.push(Report::Absorbed { replica: key, rounds: replica.rounds(), metric, failure, given: self.given });
        if replica.has_barrier() {
            (round.encoder, round.pieces) = (Encoder::default(), Pieces::default());
        }
        let most = match (plans, round.replica.has_barrier()) {
            (false, _) => 0,
            (true, true) => self.prepared.piece_tasks(key.arm),
            // Plan one task for each absorbed task, so that the planned tasks do not take more memory than before.
            (true, false) => 1,
        };
        self.go_on(key, round, most, reports);
    }
}

impl Begun {
    fn at_its_beginning(prepared: &Prepared, key: ReplicaKey, recomputations: Vec<v1::Recomputation>) -> Self {
        let arm = &prepared.config.arms[key.arm as usize].name;
        Self::Saved(Box::new(beginning(arm, key.index, recomputations)))
    }

    fn save(&self) -> v1::ReplicaState {
        match self {
            Self::Saved(state) => (**state).clone(),
            Self::Open(round) => round.save(),
        }
    }

    /// Changes or reads the list of outputs that are still to be recomputed.
    fn recomputation(&mut self, kind: &Kind, change: impl FnOnce(&mut Recomputations)) {
        match self {
            Self::Open(round) => change(&mut round.recomputations),
            Self::Saved(state) => {
                // If the list cannot be restored, the whole state is unusable.
                let Ok(mut recomputations) = Recomputations::restore(kind, &state.recomputations) else { return };
                change(&mut recomputations);
                state.recomputations = recomputations.save();
            }
        }
    }

    /// See [`crate::trust::void_since`].
    fn void_since(&self, convicted: &BTreeSet<Arc<str>>, vouchers: usize) -> Option<u64> {
        let is_convicted = |identity: &str| convicted.contains(identity);
        match self {
            Self::Saved(state) => {
                let exposed = state.exposed.iter().map(|it| (it.identity.as_str(), it.round));
                void_since(exposed, vouchers, is_convicted)
            }
            Self::Open(round) => {
                let exposed = round.exposed.iter().map(|(identity, since)| (&**identity, *since));
                void_since(exposed, vouchers, is_convicted)
            }
        }
    }
}

impl Round {
    fn save(&self) -> v1::ReplicaState {
        let exposed = self.exposed.iter().map(|(id, round)| v1::Exposure { identity: id.to_string(), round: *round });
        v1::ReplicaState {
            exposed: exposed.collect(),
            recomputations: self.recomputations.save(),
            ..self.replica.save()
        }
    }

    /// Plans the next tasks, at most `most`.
    fn plan(&mut self, key: ReplicaKey, most: usize, requested: bool, recalling: Option<&Recalling>) -> Report {
        let (total, from, first) = (self.outputs.len(), self.planned, self.first_place());
        self.planned = total.min(from + most);
        let (mut tasks, mut counted) = (Vec::new(), Counted::default());
        for (task, index) in self.replica.plan(from..self.planned).into_iter().zip(from..) {
            let planned = match recalling {
                Some(recalling) => self.pieces.plan(recalling, first + index as u64, task, &mut counted),
                None => Planned::Open(task),
            };
            match planned {
                Planned::Open(task) => {
                    let work = task.kind.work;
                    tasks.push(PlannedTask { index, work, encoded: self.encoder.encode(task) });
                }
                Planned::Known(output) => self.set(index, output),
                Planned::Awaited => {}
            }
        }
        let (attempt, round, planned) = (self.attempt, self.replica.rounds(), self.planned);
        Report::Planned { replica: key, attempt, requested, round, total, planned, tasks, counted }
    }

    /// The place of the first of the round's tasks among all tasks of the replica whose outputs may be missing.
    fn first_place(&self) -> u64 {
        if self.replica.has_barrier() { 0 } else { self.replica.rounds() }
    }

    /// Takes the output of the task with this index, and with it the outputs that are known now.
    fn fill(&mut self, index: usize, output: Bytes, recalling: Option<&Recalling>) -> Option<Differing> {
        let Some(recalling) = recalling else {
            self.set(index, output);
            return None;
        };
        let first = self.first_place();
        let (known, differing) = self.pieces.take(recalling, first + index as u64, output);
        known.into_iter().for_each(|(place, output)| self.set((place - first) as usize, output));
        differing
    }

    fn set(&mut self, index: usize, output: Bytes) {
        let place = &mut self.outputs[index];
        self.missing -= usize::from(place.is_none());
        place.get_or_insert(output);
    }

    /// The other identity that has sent an output with this hash. If there is none, this output is remembered.
    fn seconded(&mut self, task: TaskId, from: &Sender, output: Digest) -> Option<Arc<str>> {
        let Holder { id, .. } = from.holder.as_ref()?;
        let sent = self.unseconded.entry(task).or_default();
        if let Some((other, _)) = sent.iter().find(|(other, hash)| other != id && *hash == output) {
            return Some(Arc::clone(other));
        }
        // Remember only one output of an identity for each task, so that an identity cannot fill the memory.
        if sent.iter().all(|(other, _)| other != id) {
            sent.push((id.clone(), output));
        }
        None
    }

    /// The position, among the outputs, of a task that was planned with this index after this number of rounds.
    fn place(&self, round: u64, index: usize) -> Option<usize> {
        let absorbed = self.replica.rounds().checked_sub(round)?;
        match self.replica.has_barrier() {
            true => (absorbed == 0).then_some(index),
            // Without a barrier, each round is one task.
            false => index.checked_sub(usize::try_from(absorbed).ok()?),
        }
    }

    /// Whether the outputs needed next have arrived.
    fn is_ready(&self) -> bool {
        match self.replica.has_barrier() {
            // Without outputs, the replica waits until outputs are recomputed.
            true => self.missing == 0 && !self.outputs.is_empty(),
            false => self.outputs.front().is_some_and(Option::is_some),
        }
    }
}
