//! Who gets what. None of it shows in a result.
//!
//! Idle workers come first, then those with one assignment queued behind the running one. A worker gets a batch of open
//! tasks, lowest first, of the run that has the least expected work with workers. When nothing is open, tasks that have
//! been out for long get a second copy. A suspect goes alone to a worker that has nothing else.

use std::collections::{BTreeMap, BTreeSet};

use evoxo_proto::v1::to_worker;

use super::{
    Batch, Coordinator, SessionId,
    run::RunId,
    sessions::Assignment,
    tasks::{OpenTask, TaskId},
};

/// Tasks of one assignment.
const BATCH_TASKS_MAX: usize = 1024;
/// Bytes of one assignment's tasks and of what it brings of the bytes they share, unless its only task is larger. Larger messages take longer on their way than they save:
/// with 1 KB a task, 256 at once are handed out twice as fast as 4,096.
const BATCH_BYTES_MAX: usize = 256 << 10;

impl Coordinator {
    pub(super) fn assign(&mut self) {
        let nothing = self.tasks.ready().is_empty() && self.tasks.suspects().is_empty() && !self.second_copies_due;
        if self.stopping || nothing {
            return;
        }
        let roomy: Vec<SessionId> = self.roomy.iter().copied().collect();
        for idle_only in [true, false] {
            for id in &roomy {
                while self.roomy.contains(id) && (!idle_only || self.is_idle(*id)) && self.assign_once(*id, idle_only) {
                }
            }
        }
    }

    fn is_idle(&self, id: SessionId) -> bool {
        self.sessions.get(&id).is_some_and(|session| (session.assignments.len() as u32) < session.slots)
    }

    /// Sends a worker one assignment; false if there is none for it.
    fn assign_once(&mut self, id: SessionId, idle: bool) -> bool {
        if self.tasks.ready().is_empty() && self.tasks.suspects().is_empty() && !idle {
            return false;
        }
        let Some(session) = self.sessions.get(&id) else { return false };
        let (busy, reserved) = (!session.assignments.is_empty(), session.reserved);
        if session.assignments.values().any(|assignment| assignment.alone) {
            return false;
        }
        match self.suspect_for(id, reserved) {
            Some(_) if busy => {
                self.reserve(id, true);
                return false;
            }
            Some(task) => {
                self.reserve(id, false);
                self.send_assignment(id, &[task], true);
                return true;
            }
            None if reserved => self.reserve(id, false),
            None => {}
        }
        let mut tasks = self.open_batch(id);
        if tasks.is_empty() && idle && self.second_copies_due {
            tasks = self.second_copies(id);
            // What nobody needs twice for one idle worker, nobody needs for the others.
            self.second_copies_due = !tasks.is_empty();
        }
        if tasks.is_empty() {
            return false;
        }
        self.send_assignment(id, &tasks, false);
        true
    }

    fn reserve(&mut self, id: SessionId, reserved: bool) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.reserved = reserved;
        }
    }

    /// The first suspect for a worker on which it has not failed yet, or on which it has if there is no other. No more
    /// workers are kept free than there are suspects.
    fn suspect_for(&self, id: SessionId, reserved: bool) -> Option<TaskId> {
        let suspects = self.tasks.suspects();
        if suspects.is_empty() {
            return None;
        }
        let keeping = self.sessions.values().filter(|session| session.reserved).count();
        if !reserved && keeping >= suspects.len() {
            return None;
        }
        let others = |task: &OpenTask| {
            let fresh =
                |(other, session): (&SessionId, &super::Session)| !session.draining && !task.failed_on.contains(other);
            self.sessions.iter().any(fresh)
        };
        let fits = |task: &&TaskId| {
            self.tasks.get(**task).is_some_and(|task| {
                self.runs.get(&task.run).is_some_and(super::Run::is_running)
                    && (!task.failed_on.contains(&id) || !others(task))
            })
        };
        suspects.iter().find(fits).copied()
    }

    /// Open tasks of the run that is served next, for this worker.
    fn open_batch(&self, id: SessionId) -> Vec<TaskId> {
        let served = self.tasks.ready().keys().filter_map(|run_id| {
            let run = self.runs.get(run_id).filter(|run| run.is_running())?;
            Some((run.assigned_us, *run_id))
        });
        let Some((_, run)) = served.min() else { return Vec::new() };
        let ready = &self.tasks.ready()[&run];
        // Leave something for the others: half of an even share, so that all end together.
        let share = (ready.len() / (2 * self.slots_total.max(1) as usize)).max(1);
        self.cut_batch(run, ready.iter().copied(), share, id)
    }

    /// As many of these tasks as make an assignment for this worker.
    fn cut_batch(&self, run: RunId, tasks: impl Iterator<Item = TaskId>, share: usize, id: SessionId) -> Vec<TaskId> {
        let (Some(run), Some(session)) = (self.runs.get(&run), self.sessions.get(&id)) else { return Vec::new() };
        let mut batch = Vec::new();
        let mut brought = BTreeSet::new();
        let (mut bytes, mut expected_us) = (0, 0);
        for id in tasks {
            let Some(task) = self.tasks.get(id) else { continue };
            let each_us = run.expected_us(task.kind);
            let tasks_max = match (self.settings.batch, each_us) {
                (Batch::Tasks(count), _) => count.max(1) as usize,
                (Batch::Auto, None) => 1,
                (Batch::Auto, Some(_)) => share,
            };
            bytes += task.encoded.own.len();
            if let Some(shared) = &task.encoded.shared
                && !session.kept.holds(shared.hash)
                && brought.insert(shared.hash)
                && !batch.is_empty()
            {
                // What the first task needs travels however few tasks go with it.
                bytes += shared.bytes.len();
            }
            expected_us += each_us.unwrap_or(0);
            let over_target = self.settings.batch == Batch::Auto && expected_us > self.settings.batch_target_us;
            let full = batch.len() >= tasks_max.min(BATCH_TASKS_MAX) || bytes > BATCH_BYTES_MAX || over_target;
            if full && !batch.is_empty() {
                break;
            }
            batch.push(id);
        }
        batch
    }

    /// Tasks that have been out for long with one other worker: from the end of what it has, where it is last.
    fn second_copies(&self, id: SessionId) -> Vec<TaskId> {
        let others = self.sessions.iter().filter(|(other, _)| **other != id);
        let slow = others.flat_map(|(_, session)| session.assignments.values()).find(|assignment| {
            let expected_ms = assignment.each_us.map_or(u64::MAX, |us| us * assignment.remaining.len() as u64 / 1000);
            let patience_ms = self.settings.second_copy_ms_min.max(expected_ms.saturating_mul(2));
            self.now - assignment.sent >= patience_ms && self.has_single_copy(assignment)
        });
        let Some(slow) = slow else { return Vec::new() };
        let mut tasks: Vec<TaskId> =
            slow.remaining.values().copied().filter(|task| self.is_single_copy(*task)).collect();
        tasks.sort_unstable();
        let half = tasks.len() / 2;
        self.cut_batch(slow.run, tasks.split_off(half).into_iter(), usize::MAX, id)
    }

    fn has_single_copy(&self, assignment: &Assignment) -> bool {
        !assignment.alone
            && self.runs.get(&assignment.run).is_some_and(super::Run::is_running)
            && assignment.remaining.values().any(|task| self.is_single_copy(*task))
    }

    fn is_single_copy(&self, task: TaskId) -> bool {
        self.tasks.get(task).is_some_and(|task| task.copies.len() == 1)
    }

    fn send_assignment(&mut self, id: SessionId, tasks: &[TaskId], alone: bool) {
        let first = tasks.first().and_then(|task| self.tasks.get(*task));
        let (Some(first), Some(session)) = (first, self.sessions.get_mut(&id)) else { return };
        let run = first.run;
        let kind = first.kind;
        session.assignment_last += 1;
        let number = session.assignment_last;
        let mut remaining = BTreeMap::new();
        let mut encoded = Vec::with_capacity(tasks.len());
        for task in tasks {
            if let Some(open) = self.tasks.get(*task) {
                // Two open tasks with the same bytes are computed once.
                if remaining.insert(open.encoded.hash, *task).is_none() {
                    encoded.push(&open.encoded);
                }
            }
        }
        let message = to_worker::Message::Assignment(session.kept.pack(number, encoded));
        for task in remaining.values() {
            self.tasks.add_copy(*task, (id, number));
        }
        let each_us = self.runs.get_mut(&run).and_then(|run| {
            let each_us = run.expected_us(kind);
            run.assigned_us += each_us.unwrap_or(1) * remaining.len() as u64;
            each_us
        });
        let assignment = Assignment { remaining, sent: self.now, progress: self.now, run, each_us, alone };
        if let Some(session) = self.sessions.get_mut(&id) {
            session.assignments.insert(number, assignment);
        }
        self.update_room(id);
        self.send(id, message);
    }
}
