//! A run: its orders, and the phase of each replica.

use std::{collections::BTreeSet, sync::Arc};

use evoxo_common::{digest::Digest, experiment::ResultDigest, time::Millis};
use evoxo_proto::v1::{self, RunState};

use super::{
    Settings,
    budget::{Shortage, too_large},
    events::ReplicaAt,
    expected::Expected,
    orders::{Orders, Wanted},
    phases::{Phases, ReplicaPhase, ReplicaRecord},
    planning::Planning,
    recomputations::RecomputationsDue,
    standing::Identity,
    trouble::StoreTrouble,
};
use crate::{
    id::ThreadId,
    pack::PackPlace,
    prepared::Prepared,
    replicas::{Counted, ReplicaKey},
    saved::{SavedFinished, SavedRun},
    trust::Level,
};

/// Why this coordinator may not advance a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Blocked {
    /// The run was removed from the store. It may have been put back since.
    Fenced(String),
    /// Another build wrote the run, or the run is too large for this coordinator.
    Unfit(String),
}

impl Blocked {
    pub(super) fn why(&self) -> &str {
        let (Self::Fenced(why) | Self::Unfit(why)) = self;
        why
    }
}

/// Whether the states of a run's replicas are in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// The states are only in the store.
    Resting,
    /// The store is reading them.
    Loading,
    /// A thread holds them.
    Loaded(ThreadId),
    /// A thread holds them until the last checkpoint is stored.
    Leaving(ThreadId),
}

/// The checkpoints of a run.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    /// The last number that was used.
    pub(super) number: u64,
    /// The newest checkpoint in the store.
    pub(super) object: Option<String>,
    /// Something is in no checkpoint, not even in the one that is being made.
    pub(super) dirty: bool,
    /// Since when there have been rounds that no stored checkpoint has.
    pub(super) unsaved_since: Option<Millis>,
    /// A checkpoint is being sealed or stored.
    pub(super) writing: bool,
    pub(super) due: Millis,
    /// When the last checkpoint was started.
    pub(super) begun: Millis,
}

impl Checkpoints {
    /// Whether the checkpoint that is being made has a round of which its lane reports that it has given its part of the
    /// checkpoint with this number before, but of no later one.
    pub(super) fn will_have_after(&self, given: u64) -> bool {
        self.writing && given < self.number
    }

    /// There is something that no checkpoint has. It is saved after this time at the latest.
    pub(super) fn note_round(&mut self, now: Millis, interval_ms: u64) {
        if !self.dirty {
            self.dirty = true;
            self.unsaved_since.get_or_insert(now);
            self.due = self.due.max(now + interval_ms);
        }
    }
}

/// The maximum number of notices of a run.
const NOTICES_MAX: usize = 32;
/// The maximum number of doubts of a run.
pub(super) const DOUBTS_MAX: usize = 64;

/// One run.
pub(super) struct Run {
    pub(super) name: String,
    pub(super) prepared: Arc<Prepared>,
    pub(super) orders: Orders,
    /// The submitter: see [`v1::Order::submitter`].
    pub(super) submitter: String,
    /// The terms on which the run is computed: see [`v1::Order::terms`].
    pub(super) terms: Vec<v1::Term>,
    /// The labels that a worker must have, by the terms.
    pub(super) labels: Vec<String>,
    /// How outputs are verified.
    pub(super) level: Level,
    pub(super) recomputations: RecomputationsDue,
    pub(super) blocked: Option<Blocked>,
    /// The behaviour signature of the build that computed the stored states, if it is another one than this build's.
    pub(super) foreign: Option<Digest>,
    pub(super) trouble: StoreTrouble,
    pub(super) presence: Presence,
    /// The memory reserved for the run, in bytes.
    pub(super) reserved_bytes: u64,
    /// Why the run waits for memory, if it does.
    pub(super) waits_for_memory: Option<Shortage>,
    pub(super) replicas: Phases,
    pub(super) planning: Planning,
    pub(super) checkpoints: Checkpoints,
    pub(super) tasks_done: u64,
    /// Where the time of this process went for this run.
    pub(super) spent: v1::Spent,
    /// When it ended, in milliseconds; negative if that was before this coordinator began. `None` if it has not ended.
    pub(super) over_since: Option<i64>,
    /// When its deletion was announced, if it was.
    pub(super) expiry_said: Option<Millis>,
    /// The bytes in the store of its finished replicas and of its checkpoints, with their copies, and of its states from the
    /// middle, at most.
    pub(super) results_bytes: u64,
    pub(super) checkpoint_bytes: u64,
    pub(super) kept_bytes: u64,
    /// When the last order was given here, or when this coordinator took over the run.
    pub(super) since: Millis,
    pub(super) notices: Vec<String>,
    /// The workers that could not compute something, and what it was, as far as notices say so.
    pub(super) failing: BTreeSet<(Identity, String)>,
    pub(super) doubts: Vec<v1::Doubt>,
    pub(super) doubt_number: u64,
    pub(super) expected: Expected,
    /// The digest of all replicas, once all are finished and stored.
    pub(super) digest: Option<ResultDigest>,
    /// The state that was last published, and when that was.
    pub(super) published: Option<(RunState, Millis)>,
}

impl Run {
    pub(super) fn new(name: String, prepared: Arc<Prepared>, orders: Orders) -> Self {
        let mut run = Self {
            name,
            prepared,
            orders,
            submitter: String::new(),
            terms: Vec::new(),
            labels: Vec::new(),
            level: Level::Plain,
            recomputations: RecomputationsDue::default(),
            blocked: None,
            foreign: None,
            trouble: StoreTrouble::default(),
            presence: Presence::Resting,
            reserved_bytes: 0,
            waits_for_memory: None,
            replicas: Phases::default(),
            planning: Planning::default(),
            checkpoints: Checkpoints::default(),
            tasks_done: 0,
            spent: v1::Spent::default(),
            over_since: None,
            expiry_said: None,
            results_bytes: 0,
            checkpoint_bytes: 0,
            kept_bytes: 0,
            since: Millis(0),
            notices: Vec::new(),
            failing: BTreeSet::new(),
            doubts: Vec::new(),
            doubt_number: 0,
            expected: Expected::default(),
            digest: None,
            published: None,
        };
        run.add_replicas();
        run
    }

    /// Adds a record for every replica of the configuration that does not have one.
    pub(super) fn add_replicas(&mut self) {
        for arm in 0..self.prepared.config.arms.len() as u32 {
            for index in 0..self.prepared.config.replicas {
                self.replicas.add(ReplicaKey { arm, index });
            }
        }
        self.update_digest();
    }

    /// Sets all records to what is stored.
    pub(super) fn adopt(&mut self, saved: &SavedRun) {
        (self.replicas, self.planning) = Default::default();
        self.add_replicas();
        let checkpoint = saved.checkpoint.as_ref();
        self.checkpoints = Checkpoints {
            number: self.checkpoints.number.max(saved.checkpoint_number),
            object: checkpoint.and_then(|checkpoint| checkpoint.object.clone()),
            ..Checkpoints::default()
        };
        let kind = self.prepared.config.kind;
        let begun = || checkpoint.into_iter().flat_map(|checkpoint| &checkpoint.replicas);
        // Replicas without rounds are before their first round.
        let waiting = begun().filter(|it| it.rounds > 0).map(|replica| (replica, ReplicaPhase::Waiting));
        let stored =
            |saved: &SavedFinished| ReplicaPhase::Stored { digest: saved.replica.digest, place: saved.place.clone() };
        let finished = saved.finished.iter().map(|saved| (&saved.replica, stored(saved)));
        for (replica, phase) in waiting.chain(finished) {
            let Some(key) = self.key_of(&replica.arm, replica.index) else {
                self.notice(format!(
                    "the stored replica {} of arm {:?} is not in the configuration, so it is ignored",
                    replica.index, replica.arm
                ));
                continue;
            };
            self.set_phase(key, phase);
            let record = self.replicas.record(key);
            (record.rounds, record.metric) = (replica.rounds, kind.metric(&replica.last_row));
            record.exposed.clone_from(&replica.exposed);
        }
        let to_recompute =
            begun().filter(|it| !it.to_recompute.is_empty()).filter_map(|it| self.key_of(&it.arm, it.index));
        self.recomputations.adopt(to_recompute.filter(|key| self.replicas[key].is_finished()).collect());
        saved.notices.iter().for_each(|notice| self.notice(notice.clone()));
        let results = saved.finished.iter().chain(&saved.superseded);
        self.results_bytes = results.map(|finished| 2 * finished.place.bytes).sum();
        self.kept_bytes = saved.kept_bytes;
        self.checkpoint_bytes = saved.bytes.saturating_sub(self.results_bytes.saturating_add(saved.kept_bytes));
        self.doubt_number = self.doubt_number.max(saved.doubt_number);
        self.doubts = saved.doubts.clone();
        self.update_digest();
    }

    /// The key of a stored replica, if the run has it.
    pub(super) fn key_of(&self, arm: &str, index: u32) -> Option<ReplicaKey> {
        let arm = self.prepared.config.arms.iter().position(|known| known.name == arm)?;
        let key = ReplicaKey { arm: arm as u32, index };
        self.replicas.contains_key(&key).then_some(key)
    }

    /// Counts the parts of planned tasks that have names.
    pub(super) fn count(&mut self, more: Counted) {
        let Counted { parts, recalled, rechecked } = more;
        self.spent.evaluations += parts;
        self.spent.recalled += recalled;
        self.spent.rechecked += rechecked;
    }

    /// When the tasks of a replica are assigned, among the run's tasks: those with the lowest number first, and of those the one
    /// planned first.
    ///
    /// While some replicas have not begun, the number is the share of its rounds that a replica has left, so replicas end one
    /// after another. If all open ones took turns, they would end together, and the last to begin would be computed when most
    /// workers have nothing left.
    ///
    /// Once all have begun, the number is lower the longer the replica's remaining rounds are expected to take. Otherwise the
    /// longest replica would be left over at the end, and one worker would compute its rounds alone.
    pub(super) fn turn_of(&self, key: ReplicaKey) -> u32 {
        /// The number of a replica that has all its rounds left.
        const ALL: u32 = 256;
        let rounds = self.prepared.rounds(key.arm);
        let left = rounds.saturating_sub(self.replicas[&key].rounds);
        if !self.replicas.unbegun().is_empty() {
            return (u128::from(left) * u128::from(ALL)).div_ceil(u128::from(rounds.max(1))) as u32;
        }
        // Tasks that already wait have numbers up to `ALL`. They go first, so that none of them is left over.
        // Rounds that were recalled say nothing about how long others take.
        let expected = self.expected.rounds_us(key.arm, left).filter(|_| self.spent.recalled == 0);
        // Replicas whose remaining work differs by less than an eighth take turns, so that tasks of one kind stay together.
        let eighths = |us: u64| 8 * us.ilog2() + (us >> us.ilog2().saturating_sub(3)) as u32 % 8;
        ALL + expected.map_or(0, |us| 8 * u64::BITS - eighths(us.max(1)))
    }

    /// Moves a replica to another phase.
    pub(super) fn set_phase(&mut self, key: ReplicaKey, phase: ReplicaPhase) {
        self.replicas.set(key, phase, self.prepared.replica_bytes(key.arm));
    }

    /// The tasks and bytes that the replica's next piece has at most.
    pub(super) fn piece(&self, key: ReplicaKey) -> (usize, u64) {
        let left = match &self.replicas[&key].phase {
            ReplicaPhase::Open { total, planned } => total - planned,
            _ => 0,
        };
        (left.min(self.prepared.piece_tasks(key.arm)), self.prepared.piece_bytes(key.arm))
    }

    /// Records that this attempt of a replica is stored at this place. Returns false if the attempt is no longer current.
    pub(super) fn store_finished(&mut self, key: ReplicaKey, attempt: u32, place: PackPlace) -> bool {
        let record = self.replicas.get(&key).filter(|record| record.attempt == attempt);
        let Some(ReplicaPhase::Finished { digest, .. }) = record.map(|record| &record.phase) else {
            return false;
        };
        let digest = *digest;
        self.results_bytes = self.results_bytes.saturating_add(2 * place.bytes);
        self.set_phase(key, ReplicaPhase::Stored { digest, place });
        self.update_digest();
        true
    }

    /// Checks that the parts of the run agree with each other.
    pub(super) fn check(&self) {
        let name = &self.name;
        self.replicas.check(name, |key| self.prepared.replica_bytes(key.arm));
        assert_eq!(
            self.digest.is_some(),
            self.replicas.are_stored(),
            "run {name}: a digest before its end, or none after it"
        );
        self.planning.check(name);
        let rests = self.replicas.open().is_empty() && self.planning.is_empty();
        assert!(
            matches!(self.presence, Presence::Loaded(_)) || rests,
            "run {name}: replicas are open without a thread"
        );
    }

    /// Returns a replica to the state of one that has not started.
    pub(super) fn begin_anew(&mut self, key: ReplicaKey) {
        self.set_phase(key, ReplicaPhase::Unbegun);
        let record = self.replicas.record(key);
        *record = ReplicaRecord { attempt: record.attempt + 1, ..ReplicaRecord::UNBEGUN };
        self.update_digest();
    }

    /// Open replicas become waiting ones, and so do replicas that wait until their outputs are recomputed.
    pub(super) fn rest_replicas(&mut self) {
        let computed = self.replicas.iter().filter(|(_, record)| record.phase == ReplicaPhase::Computed);
        let computed: Vec<ReplicaKey> = computed.map(|(key, _)| *key).collect();
        for key in self.replicas.open().iter().copied().chain(computed).collect::<Vec<_>>() {
            self.set_phase(key, ReplicaPhase::Waiting);
        }
        self.planning.clear();
    }

    /// Computes the digest, if all replicas are finished and stored.
    pub(super) fn update_digest(&mut self) {
        let all = self.replicas.are_stored();
        self.digest = all.then(|| ResultDigest::of_run(self.replicas.values().filter_map(ReplicaRecord::digest)));
    }

    /// Whether something that the store did not accept is still to be written.
    pub(super) fn has_unwritten(&self) -> bool {
        !self.replicas.unwritten().is_empty() || self.orders.has_unsaved_failure() || self.trouble.has_unwritten()
    }

    /// Whether everything is computed and stored, and no output is still to be recomputed.
    pub(super) fn is_complete(&self) -> bool {
        self.replicas.are_stored() && !self.recomputations.are_there()
    }

    pub(super) fn state(&self) -> RunState {
        let over = self.is_complete() && matches!(self.orders.wanted(), Wanted::Running | Wanted::Paused);
        match (&self.blocked, self.orders.wanted()) {
            (Some(_), _) => RunState::Blocked,
            _ if over && self.doubts.is_empty() => RunState::Finished,
            _ if over => RunState::InDoubt,
            (None, Wanted::Running) => RunState::Running,
            (None, Wanted::Paused) => RunState::Paused,
            (None, Wanted::Cancelled) => RunState::Cancelled,
            (None, Wanted::Failed(_)) => RunState::Failed,
        }
    }

    /// The maximum size of an encoded output of a replica's task, in bytes. While a replica has several tasks, none of them is
    /// the only one of its round; one that recomputes an earlier output may have been.
    pub(super) fn output_bytes_max(&self, replica: ReplicaKey, recomputes: bool) -> u64 {
        let phase = self.replicas.get(&replica).map(|record| &record.phase);
        let has_others = matches!(phase, Some(ReplicaPhase::Open { total, .. }) if *total > 1);
        self.prepared.output_bytes_max(replica.arm, recomputes || !has_others)
    }

    /// Whether the run has ended, so that only a request can change it.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.state(), RunState::Finished | RunState::InDoubt | RunState::Cancelled)
    }

    /// Whether the run's replicas should be in memory.
    pub(super) fn wants_memory(&self) -> bool {
        self.state() == RunState::Running && !self.orders.is_creating() && !self.orders.is_deleting()
    }

    /// Whether the run's tasks may be assigned.
    pub(super) fn hands_out(&self) -> bool {
        self.wants_memory() && matches!(self.presence, Presence::Loaded(_)) && self.trouble.sentence().is_none()
    }

    pub(super) fn thread(&self) -> Option<ThreadId> {
        match self.presence {
            Presence::Loaded(thread) | Presence::Leaving(thread) => Some(thread),
            Presence::Resting | Presence::Loading => None,
        }
    }

    /// The thread of a run that has open tasks.
    pub(super) fn thread_of_tasks(&self) -> ThreadId {
        self.thread().unwrap_or_else(|| panic!("run {} has open tasks but no thread", self.name))
    }

    /// Whether the passing of time alone changes nothing in the run.
    pub(super) fn is_quiet(&self) -> bool {
        let unsaved = self.replicas.are_unsaved() || self.checkpoints.dirty || self.checkpoints.writing;
        let waits = self.waits_for_memory.is_some() || self.trouble.keeps_from_loading();
        !(unsaved || self.has_unwritten() || waits || matches!(self.presence, Presence::Leaving(_)))
    }

    /// The memory that the run needs now, in bytes; with `more`, including that replica. At least enough for one replica.
    pub(super) fn needed_bytes(&self, ahead_bytes: u64, more: Option<ReplicaKey>) -> u64 {
        let more = more.map_or(0, |key| self.prepared.replica_bytes(key.arm));
        let begun = self.replicas.begun_bytes().saturating_add(more);
        self.prepared.plan_bytes(ahead_bytes).saturating_add(begun).max(self.prepared.least_bytes(ahead_bytes))
    }

    /// The memory to reserve before the run's states are read, in bytes; or why the run does not fit.
    ///
    /// Everything that starts more replicas keeps the run within [`Settings::run_memory_bytes_max`]. More may have started
    /// anyway. If the object of a finished replica is damaged, the replica continues from an older checkpoint, in addition to
    /// those that started after it. The previous coordinator may also have had more memory. Such a run gets as much as a
    /// submitter may have.
    pub(super) fn bytes_to_read(&self, settings: &Settings) -> Result<u64, String> {
        let ahead_bytes = settings.plan_ahead_bytes();
        let (least, needed) = (self.prepared.least_bytes(ahead_bytes), self.needed_bytes(ahead_bytes, None));
        for (bytes, most) in [(least, settings.run_memory_bytes_max()), (needed, settings.submitter_memory_bytes_max())]
        {
            if bytes > most {
                return Err(too_large(bytes, most));
            }
        }
        Ok(needed)
    }

    /// The bytes that the run takes in the store, about.
    pub(super) fn stored_bytes(&self) -> u64 {
        [self.results_bytes, self.checkpoint_bytes, self.kept_bytes].into_iter().fold(0, u64::saturating_add)
    }

    /// Adds a notice for clients.
    pub(super) fn notice(&mut self, sentence: String) {
        if self.notices.last() != Some(&sentence) {
            self.notices.push(sentence);
        }
        if self.notices.len() > NOTICES_MAX {
            self.notices.remove(0);
        }
    }

    pub(super) fn rounds_done(&self) -> u64 {
        self.replicas.values().map(|record| record.rounds).sum()
    }

    /// Where a replica can be read without the run's thread.
    pub(super) fn replica_at(&self, key: ReplicaKey) -> Option<ReplicaAt> {
        match &self.replicas.get(&key)?.phase {
            ReplicaPhase::Unbegun => None,
            ReplicaPhase::Finished { sealed, .. } => Some(ReplicaAt::Bytes(sealed.clone())),
            ReplicaPhase::Stored { place, .. } => Some(ReplicaAt::Stored(place.clone())),
            _ => self.checkpoints.object.clone().map(ReplicaAt::Checkpoint),
        }
    }
}
