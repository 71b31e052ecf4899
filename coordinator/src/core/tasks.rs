//! Tasks that are open: planned, and without an accepted output.

use std::collections::{BTreeMap, BTreeSet};

use evoxo_common::{digest::Digest, task::Encoded};

use super::{
    SessionId,
    run::{RunId, SlotKey},
};

/// Counts tasks in the order they were planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TaskId(pub(super) u64);

/// One open task.
pub(super) struct OpenTask {
    pub(super) run: RunId,
    /// Whose round it belongs to, and its place in the round.
    pub(super) slot: SlotKey,
    pub(super) index: usize,
    /// Kept encoded; whoever needs the message decodes it, which shares these bytes.
    pub(super) encoded: Encoded,
    pub(super) kind: &'static str,
    /// The assignments that carry it now.
    pub(super) copies: Vec<(SessionId, u64)>,
    /// A worker that had it vanished, or it failed: it is sent alone, so that it cannot take others down with it.
    pub(super) suspect: bool,
    /// Sessions on which it failed.
    pub(super) failed_on: Vec<SessionId>,
    /// Workers that vanished while they had nothing else.
    pub(super) lost_alone: u32,
}

/// The open tasks of all runs.
#[derive(Default)]
pub(super) struct Tasks {
    last: u64,
    open: BTreeMap<TaskId, OpenTask>,
    by_hash: BTreeMap<Digest, Vec<TaskId>>,
    /// Without a copy, per run; suspects apart.
    ready: BTreeMap<RunId, BTreeSet<TaskId>>,
    suspects: BTreeSet<TaskId>,
}

impl Tasks {
    pub(super) fn add(&mut self, task: OpenTask) {
        self.last += 1;
        let id = TaskId(self.last);
        self.by_hash.entry(task.encoded.hash).or_default().push(id);
        self.ready.entry(task.run).or_default().insert(id);
        self.open.insert(id, task);
    }

    pub(super) fn get(&self, id: TaskId) -> Option<&OpenTask> {
        self.open.get(&id)
    }

    pub(super) fn with_hash(&self, hash: Digest) -> Vec<TaskId> {
        self.by_hash.get(&hash).cloned().unwrap_or_default()
    }

    /// Closes a task, for good.
    pub(super) fn close(&mut self, id: TaskId) -> Option<OpenTask> {
        let task = self.open.remove(&id)?;
        if let Some(ids) = self.by_hash.get_mut(&task.encoded.hash) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_hash.remove(&task.encoded.hash);
            }
        }
        self.unready(id, task.run);
        Some(task)
    }

    fn unready(&mut self, id: TaskId, run: RunId) {
        self.suspects.remove(&id);
        if let Some(ready) = self.ready.get_mut(&run) {
            ready.remove(&id);
            if ready.is_empty() {
                self.ready.remove(&run);
            }
        }
    }

    /// Closes all tasks of a run.
    pub(super) fn close_run(&mut self, run: RunId) {
        let ids: Vec<TaskId> = self.open.iter().filter(|(_, task)| task.run == run).map(|(id, _)| *id).collect();
        ids.into_iter().for_each(|id| drop(self.close(id)));
    }

    /// Gives a task one more copy.
    pub(super) fn add_copy(&mut self, id: TaskId, copy: (SessionId, u64)) {
        if let Some(task) = self.open.get_mut(&id) {
            task.copies.push(copy);
            let run = task.run;
            self.unready(id, run);
        }
    }

    /// Takes a copy away, changing what is known of the task; without any copy it is ready again.
    pub(super) fn drop_copy(&mut self, id: TaskId, copy: (SessionId, u64), learn: impl FnOnce(&mut OpenTask)) {
        let Some(task) = self.open.get_mut(&id) else { return };
        task.copies.retain(|other| *other != copy);
        learn(task);
        let (run, suspect, idle) = (task.run, task.suspect, task.copies.is_empty());
        self.unready(id, run);
        if idle && suspect {
            self.suspects.insert(id);
        } else if idle {
            self.ready.entry(run).or_default().insert(id);
        }
    }

    /// Runs with tasks that no worker has, each with those tasks in order.
    pub(super) fn ready(&self) -> &BTreeMap<RunId, BTreeSet<TaskId>> {
        &self.ready
    }

    /// Tasks to be sent alone that no worker has, in order.
    pub(super) fn suspects(&self) -> &BTreeSet<TaskId> {
        &self.suspects
    }

    /// Tasks that some worker has, of one run.
    pub(super) fn assigned(&self, run: RunId) -> usize {
        self.open.values().filter(|task| task.run == run && !task.copies.is_empty()).count()
    }
}
