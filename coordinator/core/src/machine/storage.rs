//! Writes to the store that belong to one run: orders, checkpoints and finished replicas. They touch only this run.

use bytes::Bytes;
use evoxo_proto::v1::{self, RunState};

use super::{
    Effect, Write,
    look::Moment,
    orders::Wanted,
    out::Out,
    run::Run,
    runs::RunId,
    writes::{Pending, PendingOrder},
};
use crate::{
    replicas::{Job, ReplicaKey},
    saved::seal_order,
};

impl Run {
    /// Writes an order. Once it is stored, it takes effect and the client gets the response.
    pub(super) fn order(&mut self, out: &mut Out, id: RunId, order: PendingOrder) {
        self.orders.begin_writing();
        let write = next_order(self, &order.prepared.toml, &order.wanted, &order.terms);
        out.write(id, &self.name, write, Pending::Order(order));
    }

    /// Records that the run has failed, unless another order is being written.
    pub(super) fn write_failure(&mut self, out: &mut Out, id: RunId) {
        if self.orders.take_unsaved_failure() {
            let write = next_order(self, &self.prepared.toml, self.orders.wanted(), &self.terms);
            out.write(id, &self.name, write, Pending::Failure);
        }
    }

    /// Writes a replica that has just finished.
    pub(super) fn write_finished(&mut self, out: &mut Out, id: RunId, key: ReplicaKey) {
        let (attempt, bytes) = self.replicas.begin_writing(key);
        out.write(id, &self.name, Write::Finished { bytes }, Pending::Finished { replica: key, attempt });
    }

    /// Writes a sealed checkpoint.
    pub(super) fn write_checkpoint(&mut self, out: &mut Out, id: RunId, number: u64, bytes: Bytes) {
        let (length, keep) = (bytes.len() as u64, self.prepared.config.keep);
        self.checkpoint_bytes = 2 * length;
        self.kept_bytes = self.kept_bytes.saturating_add(length).min(keep);
        out.write(id, &self.name, Write::Checkpoint { number, bytes, keep }, Pending::Checkpoint);
    }

    /// Saves everything that is not saved yet.
    pub(super) fn save(&mut self, at: &Moment, out: &mut Out, id: RunId) {
        if self.blocked.is_some() || self.orders.is_creating() {
            return;
        }
        let unsaved = self.replicas.unwritten();
        let again = self.trouble.take_writes();
        if self.replicas.finished() == self.replicas.len() && !self.recomputations.are_there() {
            (self.checkpoints.dirty, self.checkpoints.unsaved_since) = (false, None);
        }
        let checkpoint = self.thread().filter(|_| self.checkpoints.dirty && !self.checkpoints.writing);
        if let Some(thread) = checkpoint {
            // A lane may absorb more rounds after it has given its part, and report them before the checkpoint is stored.
            self.checkpoints.dirty = false;
            self.checkpoints.writing = true;
            self.checkpoints.number += 1;
            self.checkpoints.begun = at.now;
            self.checkpoints.due = at.now + at.settings.checkpoint_interval_ms;
            let job = Job::Checkpoint { number: self.checkpoints.number };
            out.effects.push(Effect::Job { thread, job });
        }
        for write in again {
            match write {
                Write::Delete => out.write(id, &self.name, write, Pending::Delete(None)),
                // The run has been extended since, so it needs the checkpoints.
                Write::DropCheckpoints if !self.is_complete() => {}
                _ => out.write_until_stored(id, &self.name, write),
            }
        }
        unsaved.into_iter().for_each(|key| self.write_finished(out, id, key));
        self.write_failure(out, id);
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
