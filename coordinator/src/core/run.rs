//! A run: arms times replicas, each advancing through its own rounds.

use std::collections::BTreeMap;

use evoxo_common::{
    config::Config,
    digest::Digest,
    replica::{Replica, run_digest},
    task,
    time::Millis,
};
use evoxo_proto::v1::{self, RunState};

use super::{Coordinator, Effect, Write, tasks::OpenTask};

/// Numbers runs in the order this process met them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RunId(pub(super) u64);

/// The arm's place in the configuration, and the replica's number: the order of everything.
pub(super) type SlotKey = (u32, u32);

/// Where one replica stands.
pub(super) enum Slot {
    /// Its turn has not come. `None` before its first round.
    Waiting(Option<Box<Replica>>),
    /// Its round's tasks are open.
    Active { replica: Box<Replica>, outputs: Vec<Option<v1::Output>>, missing: usize },
    /// All rounds absorbed.
    Done { replica: Box<Replica>, stored: Stored },
}

/// Whether a finished replica is in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    No,
    Writing,
    Yes,
}

/// One run.
pub(super) struct Run {
    pub(super) name: String,
    pub(super) config: Config,
    /// Running, paused or cancelled: what a person ordered last.
    pub(super) wanted: RunState,
    pub(super) order_number: u64,
    /// The order that created the run is not in the store yet.
    pub(super) unborn: bool,
    /// Why it cannot go on: for good.
    pub(super) failed: Option<String>,
    /// Why this coordinator may not advance it.
    pub(super) held: Option<String>,
    /// The store cannot be written at the moment.
    pub(super) blocked: Option<String>,
    pub(super) store_failures: u32,
    pub(super) slots: BTreeMap<SlotKey, Slot>,
    /// No slot before this one is waiting.
    pub(super) waiting_from: SlotKey,
    pub(super) active: usize,
    pub(super) done: usize,
    /// Finished replicas that are in the store.
    pub(super) kept: usize,
    pub(super) rounds_done: u64,
    pub(super) tasks_done: u64,
    pub(super) notices: Vec<String>,
    /// Something was absorbed since the last checkpoint was taken.
    pub(super) dirty: bool,
    pub(super) writing_checkpoint: bool,
    pub(super) checkpoint_number: u64,
    pub(super) checkpoint_due: Millis,
    /// When the last checkpoint was begun.
    pub(super) checkpoint_begun: Millis,
    /// Expected work now with workers, in microseconds: the run with the least is served first.
    pub(super) assigned_us: u64,
    /// Per kind of task: mean duration so far, in microseconds, newer ones weighing more.
    pub(super) durations_us: BTreeMap<&'static str, u64>,
    /// Of all replicas, once they are finished and stored.
    pub(super) digest: Option<Digest>,
}

/// Notices kept per run.
const NOTICES_MAX: usize = 32;

impl Run {
    pub(super) fn new(name: String, config: Config) -> Self {
        let mut run = Self {
            name,
            config,
            wanted: RunState::Running,
            order_number: 0,
            unborn: false,
            failed: None,
            held: None,
            blocked: None,
            store_failures: 0,
            slots: BTreeMap::new(),
            waiting_from: (0, 0),
            active: 0,
            done: 0,
            kept: 0,
            rounds_done: 0,
            tasks_done: 0,
            notices: Vec::new(),
            dirty: false,
            writing_checkpoint: false,
            checkpoint_number: 0,
            checkpoint_due: Millis::default(),
            checkpoint_begun: Millis::default(),
            assigned_us: 0,
            durations_us: BTreeMap::new(),
            digest: None,
        };
        run.add_slots();
        run
    }

    /// Makes a waiting slot for every replica of the configuration that has none.
    pub(super) fn add_slots(&mut self) {
        self.waiting_from = (0, 0);
        for arm in 0..self.config.arms.len() as u32 {
            for replica in 0..self.config.replicas {
                self.slots.entry((arm, replica)).or_insert(Slot::Waiting(None));
            }
        }
    }

    pub(super) fn state(&self) -> RunState {
        if self.held.is_some() {
            RunState::Held
        } else if self.failed.is_some() {
            RunState::Failed
        } else if self.wanted == RunState::Running && self.kept == self.slots.len() {
            RunState::Finished
        } else if self.blocked.is_some() {
            RunState::Held
        } else {
            self.wanted
        }
    }

    pub(super) fn message(&self) -> String {
        [&self.held, &self.failed, &self.blocked].into_iter().flatten().next().cloned().unwrap_or_default()
    }

    /// Its tasks may be handed out.
    pub(super) fn is_running(&self) -> bool {
        !self.unborn && self.state() == RunState::Running
    }

    /// Nothing will happen to it by itself as time passes.
    pub(super) fn is_quiet(&self) -> bool {
        let unkept = self.slots.values().any(|slot| matches!(slot, Slot::Done { stored: Stored::No, .. }));
        self.held.is_some() || !(self.dirty || unkept || self.writing_checkpoint)
    }

    pub(super) fn notice(&mut self, sentence: String) {
        if self.notices.last() != Some(&sentence) {
            self.notices.push(sentence);
        }
        if self.notices.len() > NOTICES_MAX {
            self.notices.remove(0);
        }
    }

    /// How long a task of this kind takes, in microseconds, if any was computed.
    pub(super) fn expected_us(&self, kind: &'static str) -> Option<u64> {
        self.durations_us.get(kind).copied()
    }

    /// Learns from a task that took so long: an exponential mean, one eighth the newest.
    pub(super) fn learn_duration(&mut self, kind: &'static str, elapsed_us: u64) {
        let elapsed_us = elapsed_us.clamp(1, 24 * 3600 * 1_000_000);
        let mean = self.durations_us.entry(kind).or_insert(elapsed_us);
        *mean = ((*mean * 7 + elapsed_us) / 8).max(1);
    }

    /// Replicas that a checkpoint must hold: begun, and not known to be stored as finished.
    pub(super) fn unkept(&self) -> impl Iterator<Item = &Replica> {
        self.slots.values().filter_map(|slot| match slot {
            Slot::Waiting(Some(replica)) | Slot::Active { replica, .. } => Some(&**replica),
            Slot::Done { replica, stored } if *stored != Stored::Yes => Some(&**replica),
            _ => None,
        })
    }

    /// Replicas that have begun, in order.
    pub(super) fn begun(&self) -> impl Iterator<Item = (&Replica, bool)> {
        self.slots.values().filter_map(|slot| match slot {
            Slot::Waiting(replica) => replica.as_deref().map(|replica| (replica, false)),
            Slot::Active { replica, .. } => Some((&**replica, false)),
            Slot::Done { replica, .. } => Some((&**replica, true)),
        })
    }

    /// The digest of all replicas, if all are finished.
    pub(super) fn final_digest(&self) -> Option<Digest> {
        (self.done == self.slots.len()).then(|| run_digest(self.begun().map(|(replica, _)| replica)))
    }
}

impl Coordinator {
    /// Starts waiting replicas, lowest first, while there are too few tasks to keep the workers busy.
    pub(super) fn activate(&mut self, id: RunId) {
        let wanted = (4 * self.slots_total as usize).clamp(8, 1024);
        loop {
            let Some(run) = self.runs.get_mut(&id).filter(|run| run.is_running() && run.active < wanted) else {
                return;
            };
            if run.active + run.done == run.slots.len() {
                return;
            }
            let waiting = run.slots.range_mut(run.waiting_from..).find_map(|(key, slot)| match slot {
                Slot::Waiting(replica) => Some((*key, replica.take())),
                _ => None,
            });
            let Some((key, replica)) = waiting else { return };
            run.waiting_from = key;
            let replica = replica.unwrap_or_else(|| {
                let arm = &run.config.arms[key.0 as usize];
                Box::new(Replica::start(&run.config, arm, key.1))
            });
            run.active += 1;
            self.open_round(id, key, replica);
        }
    }

    /// Plans a replica's next round and opens its tasks, or finds it finished.
    fn open_round(&mut self, id: RunId, key: SlotKey, replica: Box<Replica>) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let tasks = replica.plan();
        if tasks.is_empty() {
            run.slots.insert(key, Slot::Done { replica, stored: Stored::No });
            run.active -= 1;
            run.done += 1;
            self.keep_finished(id, key);
            return;
        }
        let outputs = vec![None; tasks.len()];
        run.slots.insert(key, Slot::Active { replica, outputs, missing: tasks.len() });
        let kinds: Vec<&'static str> = tasks.iter().map(task::kind).collect();
        for (index, (encoded, kind)) in task::encode(tasks).zip(kinds).enumerate() {
            self.tasks.add(OpenTask {
                run: id,
                slot: key,
                index,
                encoded,
                kind,
                copies: Vec::new(),
                suspect: false,
                failed_on: Vec::new(),
                lost_alone: 0,
            });
        }
    }

    /// Puts an output in its place; the last one of a round moves the replica on.
    pub(super) fn deliver(&mut self, task: &OpenTask, output: v1::Output) {
        let Some(run) = self.runs.get_mut(&task.run) else { return };
        run.tasks_done += 1;
        let Some(Slot::Active { outputs, missing, .. }) = run.slots.get_mut(&task.slot) else { return };
        if outputs[task.index].replace(output).is_none() {
            *missing -= 1;
        }
        if *missing > 0 {
            return;
        }
        let Some(Slot::Active { mut replica, outputs, .. }) = run.slots.remove(&task.slot) else { return };
        let outputs: Vec<v1::Output> = outputs.into_iter().flatten().collect();
        replica.absorb(&outputs);
        run.rounds_done += 1;
        if !run.dirty {
            run.dirty = true;
            run.checkpoint_due = run.checkpoint_due.max(self.now + self.settings.checkpoint_interval_ms);
        }
        let (name, failure) = (run.name.clone(), replica.failure().map(str::to_owned));
        if let Some(why) = failure {
            let sentence = format!("replica {} of arm {:?} {why}", replica.index(), replica.arm());
            run.notice(sentence.clone());
            self.warn(format!("run {name}: {sentence}"));
        }
        self.open_round(task.run, task.slot, replica);
        self.activate(task.run);
        self.effects.push(Effect::Changed { run: name });
    }

    /// Closes a run's tasks; its replicas wait where they stand.
    pub(super) fn park(&mut self, id: RunId) {
        self.tasks.close_run(id);
        let Some(run) = self.runs.get_mut(&id) else { return };
        (run.active, run.waiting_from) = (0, (0, 0));
        for slot in run.slots.values_mut() {
            *slot = match std::mem::replace(slot, Slot::Waiting(None)) {
                Slot::Active { replica, .. } => Slot::Waiting(Some(replica)),
                other => other,
            };
        }
    }

    /// Ends a run for good because of a task.
    pub(super) fn fail_run(&mut self, task: &OpenTask, why: &str) {
        let Some(run) = self.runs.get_mut(&task.run) else { return };
        let (hash, bytes) = (task.encoded.hash, task.encoded.whole());
        let file = format!("poison/{hash}.task");
        let sentence = format!(
            "a task of kind {} of replica {} of arm {:?} {why}; it is saved as {file}: see `evoxo-worker run-task --help`",
            task.kind, task.slot.1, run.config.arms[task.slot.0 as usize].name
        );
        run.failed = Some(sentence.clone());
        let name = run.name.clone();
        self.park(task.run);
        self.store(task.run, Write::Poison { hash, bytes });
        self.warn(format!("run {name} failed: {sentence}"));
        self.effects.push(Effect::Changed { run: name });
    }
}
