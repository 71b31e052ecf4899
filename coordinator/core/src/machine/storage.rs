//! Writes to the store: orders, checkpoints and finished replicas.

use bytes::Bytes;
use evoxo_proto::v1::{self, RunState};

use super::{
    Coordinator, Effect, Write,
    orders::Wanted,
    run::Run,
    runs::RunId,
    writes::{Pending, PendingOrder},
};
use crate::{
    replicas::{Job, ReplicaKey},
    saved::seal_order,
};

impl Coordinator {
    pub(super) fn write(&mut self, id: RunId, what: Write, pending: Pending) {
        let (write, run) = (self.writes.add(id, pending), self.runs[id].name.clone());
        self.effects.push(Effect::Store { write, run, what });
    }

    /// Sends the store a write that is repeated if it fails.
    pub(super) fn store(&mut self, id: RunId, what: Write) {
        self.write(id, what.clone(), Pending::Repeated(what));
    }

    /// Writes an order. Once it is stored, it takes effect and the client gets the response.
    pub(super) fn order(&mut self, id: RunId, order: PendingOrder) {
        let run = self.runs.adjust(id);
        run.orders.begin_writing();
        let write = next_order(run, &order.prepared.toml, &order.wanted, &order.terms);
        self.write(id, write, Pending::Order(order));
    }

    /// Records that a run has failed, unless another order is being written.
    pub(super) fn write_failure(&mut self, id: RunId) {
        let run = self.runs.adjust(id);
        if !run.orders.take_unsaved_failure() {
            return;
        }
        let (toml, wanted, terms) = (run.prepared.toml.clone(), run.orders.wanted().clone(), run.terms.clone());
        let write = next_order(run, &toml, &wanted, &terms);
        self.write(id, write, Pending::Failure);
    }

    /// Writes a replica that has just finished.
    pub(super) fn write_finished(&mut self, id: RunId, key: ReplicaKey) {
        let (attempt, bytes) = self.runs.adjust(id).replicas.begin_writing(key);
        self.write(id, Write::Finished { bytes }, Pending::Finished { replica: key, attempt });
    }

    /// Writes a sealed checkpoint.
    pub(super) fn write_checkpoint(&mut self, id: RunId, number: u64, bytes: Bytes) {
        let run = self.runs.adjust(id);
        let (length, keep) = (bytes.len() as u64, run.prepared.config.keep);
        run.checkpoint_bytes = 2 * length;
        run.kept_bytes = run.kept_bytes.saturating_add(length).min(keep);
        self.write(id, Write::Checkpoint { number, bytes, keep }, Pending::Checkpoint);
    }

    /// Saves everything of a run that is not saved yet.
    pub(super) fn save(&mut self, id: RunId) {
        let interval_ms = self.settings.checkpoint_interval_ms;
        let run = self.runs.adjust(id);
        if run.blocked.is_some() || run.orders.is_creating() {
            return;
        }
        let unsaved = run.replicas.unwritten();
        let again = run.trouble.take_writes();
        if run.replicas.finished() == run.replicas.len() && !run.recomputations.are_there() {
            (run.checkpoints.dirty, run.checkpoints.unsaved_since) = (false, None);
        }
        let checkpoint = run.thread().filter(|_| run.checkpoints.dirty && !run.checkpoints.writing);
        if let Some(thread) = checkpoint {
            // A lane may absorb more rounds after it has given its part, and report them before the checkpoint is stored.
            run.checkpoints.dirty = false;
            run.checkpoints.writing = true;
            run.checkpoints.number += 1;
            run.checkpoints.begun = self.now;
            run.checkpoints.due = self.now + interval_ms;
            let job = Job::Checkpoint { number: run.checkpoints.number };
            self.effects.push(Effect::Job { thread, job });
        }
        for write in again {
            match write {
                Write::Delete => self.write(id, write, Pending::Delete(None)),
                // The run has been extended since, so it needs the checkpoints.
                Write::DropCheckpoints if !self.runs[id].is_complete() => {}
                _ => self.store(id, write),
            }
        }
        unsaved.into_iter().for_each(|key| self.write_finished(id, key));
        self.write_failure(id);
    }
}

/// The next order of a run.
fn next_order(run: &Run, toml: &str, wanted: &Wanted, terms: &[v1::Term]) -> Write {
    let (state, failure) = match wanted {
        Wanted::Running => (RunState::Running, ""),
        Wanted::Paused => (RunState::Paused, ""),
        Wanted::Cancelled => (RunState::Cancelled, ""),
        Wanted::Failed(why) => (RunState::Failed, why.as_str()),
    };
    let order = v1::Order {
        config: toml.to_owned(),
        wanted: state.into(),
        rounds_done: run.rounds_done(),
        failure: failure.to_owned(),
        submitter: run.submitter.clone(),
        verification: run.level.message().into(),
        sampled_millionths: run.level.millionths(),
        terms: terms.to_vec(),
    };
    Write::Order { bytes: seal_order(&order) }
}
