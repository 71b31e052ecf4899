//! All runs, by number, name and thread.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Index,
};

use super::run::Run;
use crate::id::ThreadId;

/// A run's number, in the order in which this process got the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RunId(pub(super) u64);

/// A reference to a run must not outlive it, unless it is used through an `if_there` method.
fn gone(id: RunId) -> ! {
    panic!("run number {} was removed, but is still referenced", id.0)
}

impl Index<RunId> for Runs {
    type Output = Run;

    fn index(&self, id: RunId) -> &Run {
        self.get(id).unwrap_or_else(|| gone(id))
    }
}

/// All runs.
#[derive(Default)]
pub(super) struct Runs {
    last: u64,
    by_id: BTreeMap<RunId, Run>,
    by_name: BTreeMap<String, RunId>,
    by_thread: BTreeMap<ThreadId, RunId>,
    thread_last: u64,
    /// Names of runs that this build cannot read, each with the reason.
    pub(super) unreadable: BTreeMap<String, String>,
    /// Runs whose replicas or tasks have changed since they were last advanced.
    moved: BTreeSet<RunId>,
    /// Runs whose published view is out of date.
    changed: BTreeSet<RunId>,
}

impl Runs {
    pub(super) fn get(&self, id: RunId) -> Option<&Run> {
        self.by_id.get(&id)
    }

    /// A run that is about to be changed. It will be advanced and published.
    pub(super) fn change(&mut self, id: RunId) -> &mut Run {
        self.change_if_there(id).unwrap_or_else(|| gone(id))
    }

    /// Like [`Self::change`], for changes that clients do not see.
    pub(super) fn adjust(&mut self, id: RunId) -> &mut Run {
        self.adjust_if_there(id).unwrap_or_else(|| gone(id))
    }

    /// Like [`Self::change`], for references that can outlive the run: assignments, accusations and writes.
    pub(super) fn change_if_there(&mut self, id: RunId) -> Option<&mut Run> {
        let run = self.by_id.get_mut(&id)?;
        self.moved.insert(id);
        self.changed.insert(id);
        Some(run)
    }

    /// Like [`Self::adjust`], for references that can outlive the run.
    pub(super) fn adjust_if_there(&mut self, id: RunId) -> Option<&mut Run> {
        self.by_id.get_mut(&id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (RunId, &Run)> {
        self.by_id.iter().map(|(id, run)| (*id, run))
    }

    pub(super) fn ids(&self) -> Vec<RunId> {
        self.by_id.keys().copied().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len() + self.unreadable.len()
    }

    pub(super) fn find(&self, name: &str) -> Option<RunId> {
        self.by_name.get(name).copied()
    }

    pub(super) fn add(&mut self, run: Run) -> RunId {
        self.last += 1;
        let id = RunId(self.last);
        self.by_name.insert(run.name.clone(), id);
        self.by_id.insert(id, run);
        self.moved.insert(id);
        self.changed.insert(id);
        id
    }

    pub(super) fn remove(&mut self, id: RunId) -> Run {
        let run = self.by_id.remove(&id).unwrap_or_else(|| gone(id));
        self.by_name.remove(&run.name);
        self.by_thread.retain(|_, other| *other != id);
        self.moved.remove(&id);
        self.changed.remove(&id);
        run
    }

    /// The id of a new thread for a run's replicas.
    pub(super) fn begin_thread(&mut self, id: RunId) -> ThreadId {
        self.thread_last += 1;
        let thread = ThreadId(self.thread_last);
        self.by_thread.insert(thread, id);
        thread
    }

    pub(super) fn end_thread(&mut self, thread: ThreadId) {
        self.by_thread.remove(&thread);
    }

    pub(super) fn of_thread(&self, thread: ThreadId) -> Option<RunId> {
        self.by_thread.get(&thread).copied()
    }

    /// Records how long a thread took for a job. The run may have been removed.
    pub(super) fn note_absorbing(&mut self, thread: ThreadId, took_us: u64) {
        if let Some(run) = self.of_thread(thread).and_then(|run| self.adjust_if_there(run)) {
            run.spent.absorbing_us = run.spent.absorbing_us.saturating_add(took_us);
        }
    }

    /// Marks all runs to be advanced, because there are more workers or there is more memory.
    pub(super) fn move_all(&mut self) {
        self.moved.extend(self.by_id.iter().filter(|(_, run)| run.wants_memory()).map(|(id, _)| *id));
    }

    /// Marks all runs to be published, because workers have joined or left.
    pub(super) fn change_all(&mut self) {
        self.changed.extend(self.by_id.iter().filter(|(_, run)| !run.is_over()).map(|(id, _)| *id));
    }

    /// The runs to advance. Their marks are removed.
    pub(super) fn take_moved(&mut self) -> BTreeSet<RunId> {
        std::mem::take(&mut self.moved)
    }

    /// The runs to publish.
    pub(super) fn changed(&self) -> &BTreeSet<RunId> {
        &self.changed
    }

    /// Checks that names and threads lead to the right runs.
    pub(super) fn check(&self) {
        assert_eq!(self.by_name.len(), self.by_id.len(), "two runs have one name, or a name has no run");
        for (id, run) in &self.by_id {
            assert_eq!(self.by_name.get(&run.name), Some(id), "the name {} leads to another run", run.name);
            let threads = self.by_thread.iter().filter(|(_, other)| *other == id).map(|(thread, _)| *thread);
            assert!(threads.eq(run.thread()), "run {} has a wrong thread", run.name);
        }
        let known = |ids: &BTreeSet<RunId>| ids.iter().all(|id| self.by_id.contains_key(id));
        assert!(known(&self.moved) && known(&self.changed), "a removed run is still marked");
    }

    /// Records that this run was published.
    pub(super) fn shown(&mut self, id: RunId) {
        self.changed.remove(&id);
    }
}
