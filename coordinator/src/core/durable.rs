//! What is kept: orders, checkpoints, finished replicas; and what a recovery makes of them.

use std::collections::BTreeMap;

use bytes::Bytes;
use evoxo_common::{config::Config, digest::Digest, replica::Replica};
use evoxo_proto::v1::{self, RunState};

use super::{
    Coordinator, Effect, Rejection, StoreFault, Ticket, Write, WriteId,
    run::{Run, RunId, Slot, SlotKey, Stored},
    seal::{seal_checkpoint, seal_finished, seal_order},
};
use crate::saved::SavedRun;

/// A write that the store has not reported yet.
pub(super) struct PendingWrite {
    run: RunId,
    what: Pending,
}

enum Pending {
    /// When it is kept, the run obeys and the person is answered.
    Order {
        ticket: Ticket,
        config: Config,
        wanted: RunState,
        submitted: bool,
        delete: bool,
    },
    Checkpoint,
    Finished(SlotKey),
    Delete(Ticket),
    Other,
}

/// Faults in a row after which a run waits for the store.
const STORE_FAILURES_MAX: u32 = 3;
/// After a checkpoint the next one waits for so many times as long as that one took, so that large states, or a slow store,
/// cost no more than a twentieth of the time.
const CHECKPOINT_REST_FACTOR: u64 = 20;
/// How long to wait before the store is tried again, in milliseconds.
const STORE_RETRY_MS: u64 = 1000;

/// The number that names a finished replica's object.
fn ordinal((arm, replica): SlotKey) -> u64 {
    u64::from(arm) * 1_000_000 + u64::from(replica)
}

impl Coordinator {
    /// Hands a write to the store of which only the fault matters.
    pub(super) fn store(&mut self, id: RunId, what: Write) {
        self.write(id, what, Pending::Other);
    }

    fn write(&mut self, id: RunId, what: Write, pending: Pending) {
        let Some(run) = self.runs.get(&id) else { return };
        self.write_last = WriteId(self.write_last.0 + 1);
        self.writes.insert(self.write_last, PendingWrite { run: id, what: pending });
        self.effects.push(Effect::Store { write: self.write_last, run: run.name.clone(), what });
    }

    /// Writes an order; it takes effect, and the person is answered, when it is kept.
    pub(super) fn order(
        &mut self,
        id: RunId,
        ticket: Ticket,
        config: Config,
        wanted: RunState,
        submitted: bool,
        delete: bool,
    ) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        run.order_number += 1;
        let number = run.order_number;
        let bytes = seal_order(&config, wanted, run.rounds_done);
        let pending = Pending::Order { ticket, config, wanted, submitted, delete };
        self.write(id, Write::Order { number, bytes }, pending);
    }

    /// Writes a replica that has just finished.
    pub(super) fn keep_finished(&mut self, id: RunId, key: SlotKey) {
        let signature = self.signature_digest();
        let Some(run) = self.runs.get_mut(&id) else { return };
        let Some(Slot::Done { replica, stored }) = run.slots.get_mut(&key) else { return };
        *stored = Stored::Writing;
        let bytes = seal_finished(&run.config, signature, replica);
        self.write(id, Write::Finished { ordinal: ordinal(key), bytes }, Pending::Finished(key));
    }

    /// Writes whatever of a run is not kept yet.
    pub(super) fn keep(&mut self, id: RunId) {
        let signature = self.signature_digest();
        let Some(run) = self.runs.get_mut(&id).filter(|run| run.held.is_none() && !run.unborn) else { return };
        let unstored = |(key, slot): (&SlotKey, &Slot)| match slot {
            Slot::Done { stored: Stored::No, .. } => Some(*key),
            _ => None,
        };
        let unstored: Vec<SlotKey> = run.slots.iter().filter_map(unstored).collect();
        let take = run.dirty && !run.writing_checkpoint && run.done < run.slots.len();
        let checkpoint = take.then(|| {
            run.dirty = false;
            run.writing_checkpoint = true;
            run.checkpoint_number += 1;
            run.checkpoint_begun = self.now;
            run.checkpoint_due = self.now + self.settings.checkpoint_interval_ms;
            let bytes = seal_checkpoint(&run.config, signature, run.unkept());
            Write::Checkpoint { number: run.checkpoint_number, bytes }
        });
        if run.done == run.slots.len() {
            run.dirty = false;
        }
        unstored.into_iter().for_each(|key| self.keep_finished(id, key));
        if let Some(checkpoint) = checkpoint {
            self.write(id, checkpoint, Pending::Checkpoint);
        }
    }

    /// The store reports.
    pub(super) fn stored(&mut self, write: WriteId, outcome: Result<(), StoreFault>) {
        let Some(PendingWrite { run: id, what }) = self.writes.remove(&write) else { return };
        if let Pending::Delete(ticket) = what {
            return self.deleted(id, ticket, outcome);
        }
        let Some(run) = self.runs.get_mut(&id) else { return };
        if matches!(what, Pending::Checkpoint) {
            run.writing_checkpoint = false;
            let rest_ms = CHECKPOINT_REST_FACTOR * (self.now - run.checkpoint_begun);
            run.checkpoint_due = run.checkpoint_due.max(self.now + rest_ms);
        }
        if let Pending::Finished(key) = what
            && let Some(Slot::Done { stored, .. }) = run.slots.get_mut(&key)
        {
            *stored = if outcome.is_ok() { Stored::Yes } else { Stored::No };
            run.kept += usize::from(outcome.is_ok());
        }
        match outcome {
            Ok(()) => {
                run.store_failures = 0;
                if run.blocked.take().is_some() {
                    self.activate(id);
                }
                self.after_kept(id, what);
            }
            Err(fault) => self.after_fault(id, what, fault),
        }
        if let Some(run) = self.runs.get(&id) {
            let name = run.name.clone();
            self.effects.push(Effect::Changed { run: name });
        }
    }

    fn after_kept(&mut self, id: RunId, what: Pending) {
        match what {
            Pending::Order { ticket, config, wanted, submitted, delete } => {
                self.obey(id, config, wanted);
                if delete {
                    self.write(id, Write::Delete, Pending::Delete(ticket));
                } else {
                    self.answer_run(id, ticket, submitted);
                }
            }
            Pending::Finished(_) => {
                let Some(run) = self.runs.get_mut(&id).filter(|run| run.kept == run.slots.len()) else { return };
                run.digest = run.final_digest();
                let name = run.name.clone();
                self.store(id, Write::DropCheckpoints);
                self.log(format!("run {name} is finished"));
                self.retire();
            }
            Pending::Checkpoint | Pending::Delete(_) | Pending::Other => {}
        }
    }

    fn after_fault(&mut self, id: RunId, what: Pending, fault: StoreFault) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        let why = match fault {
            StoreFault::Fenced(why) => {
                run.held = Some(why.clone());
                why
            }
            StoreFault::Failed(why) => {
                run.store_failures += 1;
                run.checkpoint_due = self.now + STORE_RETRY_MS;
                run.dirty |= matches!(what, Pending::Checkpoint);
                if run.store_failures >= STORE_FAILURES_MAX {
                    run.blocked = Some(format!("{why}; work goes on when the store can be written again"));
                }
                why
            }
        };
        run.notice(why.clone());
        let (name, unborn, held) = (run.name.clone(), run.unborn, run.held.is_some());
        if held {
            self.park(id);
        }
        self.warn(format!("run {name}: {why}"));
        if let Pending::Order { ticket, .. } = what {
            if unborn {
                self.runs.remove(&id);
            }
            self.effects.push(Effect::Answer { ticket, answer: Err(Rejection::Conflict(why)) });
        }
    }

    /// Deletes the oldest ended runs, if only so many are to be kept.
    fn retire(&mut self) {
        let Some(kept) = self.settings.finished_runs_kept else { return };
        let ended = |run: &Run| matches!(run.state(), RunState::Finished | RunState::Cancelled);
        let ended: Vec<RunId> = self.runs.iter().filter(|(_, run)| ended(run)).map(|(id, _)| *id).collect();
        for id in &ended[..ended.len().saturating_sub(kept as usize)] {
            self.store(*id, Write::Delete);
            self.runs.remove(id);
        }
    }

    fn deleted(&mut self, id: RunId, ticket: Ticket, outcome: Result<(), StoreFault>) {
        match outcome {
            Ok(()) => {
                self.answer_run(id, ticket, false);
                self.runs.remove(&id);
            }
            Err(StoreFault::Fenced(why) | StoreFault::Failed(why)) => {
                self.effects.push(Effect::Answer { ticket, answer: Err(Rejection::Conflict(why)) });
            }
        }
    }

    /// An order is kept: it takes effect.
    fn obey(&mut self, id: RunId, config: Config, wanted: RunState) {
        let Some(run) = self.runs.get_mut(&id) else { return };
        run.unborn = false;
        run.wanted = wanted;
        run.config = config;
        run.add_slots();
        if run.kept < run.slots.len() {
            run.digest = None;
        }
        match wanted {
            RunState::Cancelled => self.park(id),
            _ => self.activate(id),
        }
    }

    /// Takes a run up where the store left it.
    pub(super) fn recover_run(&mut self, saved: SavedRun) {
        self.run_last = RunId(self.run_last.0 + 1);
        let id = self.run_last;
        let mut run = match Config::parse("the stored order", &saved.order.config, &[]) {
            Ok(config) => Run::new(saved.name.clone(), config),
            Err(problems) => {
                let why = format!("run {} cannot be read by this build and is left alone: {problems}", saved.name);
                return self.warn(why);
            }
        };
        run.order_number = saved.order_number;
        run.checkpoint_number = saved.checkpoint_number;
        run.wanted = match saved.order.wanted {
            wanted if wanted == RunState::Paused as u32 => RunState::Paused,
            wanted if wanted == RunState::Cancelled as u32 => RunState::Cancelled,
            _ => RunState::Running,
        };
        saved.notices.into_iter().for_each(|notice| run.notice(notice));
        run.held = self.held_because(&run.config, saved.checkpoint.as_ref(), &saved.finished);
        if run.held.is_none() {
            let checkpoint = saved.checkpoint.into_iter().flat_map(|checkpoint| checkpoint.replicas);
            checkpoint.for_each(|state| run.restore(&state, false));
            saved.finished.into_iter().filter_map(|f| f.replica).for_each(|state| run.restore(&state, true));
            run.count();
        }
        for notice in run.notices.clone() {
            self.warn(format!("run {}: {notice}", run.name));
        }
        self.runs.insert(id, run);
        self.activate(id);
    }

    /// Why these states are not for this build, if they are not.
    fn held_because(
        &self,
        config: &Config,
        checkpoint: Option<&v1::Checkpoint>,
        finished: &[v1::Finished],
    ) -> Option<String> {
        let ours = self.signature_digest();
        let written = checkpoint.iter().map(|c| (&c.signature, &c.config_hash));
        let mut written = written.chain(finished.iter().map(|f| (&f.signature, &f.config_hash)));
        written.find_map(|(signature, config_hash): (&Bytes, &Bytes)| {
            let theirs = Digest::from_slice(signature).map_or_else(|| "unknown".into(), |digest| digest.short());
            if signature != &ours.0[..] {
                let ours = ours.short();
                Some(format!(
                    "the run was computed by a build that computes other results (behaviour {theirs}, this build {ours}): \
                     go on with that build, or start it anew under another name or in another directory"
                ))
            } else if config_hash != &config.hash().0[..] {
                Some(
                    "the run's stored states belong to another configuration: start it anew under another name or in \
                     another directory"
                        .into(),
                )
            } else {
                None
            }
        })
    }
}

impl Run {
    /// Puts a stored state in its slot. One that does not fit is named and left out: it is computed again.
    fn restore(&mut self, state: &v1::ReplicaState, finished: bool) {
        let arm = self.config.arms.iter().position(|arm| arm.name == state.arm);
        let slot = arm.and_then(|arm| self.slots.get_mut(&(arm as u32, state.replica)));
        match (slot, Replica::restore(&self.config, state)) {
            (Some(slot), Ok(replica)) if finished && replica.plan().is_empty() => {
                *slot = Slot::Done { replica: Box::new(replica), stored: Stored::Yes };
            }
            (Some(slot), Ok(replica)) if !finished => *slot = Slot::Waiting(Some(Box::new(replica))),
            (_, Ok(_)) => {
                self.notice(format!("the stored replica {} of arm {:?} is left out", state.replica, state.arm));
            }
            (_, Err(why)) => self.notice(format!("{why}; it is computed again")),
        }
    }

    /// Counts what the slots hold.
    fn count(&mut self) {
        let done = self.slots.values().filter(|slot| matches!(slot, Slot::Done { .. })).count();
        (self.done, self.kept) = (done, done);
        self.rounds_done = self.begun().map(|(replica, _)| replica.rounds()).sum();
        self.digest = self.final_digest();
    }
}

/// By arm's name, what a person sees of its replicas.
pub(super) fn arm_progress(run: &Run) -> Vec<v1::ArmProgress> {
    let headline = run.config.kind.headline();
    let mut arms: BTreeMap<&str, (u32, f64, u32)> = BTreeMap::new();
    for (replica, finished) in run.begun() {
        let (done, sum, count) = arms.entry(replica.arm()).or_default();
        *done += u32::from(finished);
        if let Some(row) = replica.history().last() {
            (*sum, *count) = (*sum + row[headline], *count + 1);
        }
    }
    let progress = |arm: &evoxo_common::config::Arm| {
        let (replicas_finished, sum, count) = arms.get(arm.name.as_str()).copied().unwrap_or_default();
        v1::ArmProgress {
            name: arm.name.clone(),
            replicas_finished,
            headline: (count > 0).then(|| sum / f64::from(count)),
            headline_name: run.config.kind.columns()[headline].name.into(),
        }
    };
    run.config.arms.iter().map(progress).collect()
}
