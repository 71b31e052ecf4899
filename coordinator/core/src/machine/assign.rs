//! Assignment of tasks to workers. Results do not depend on it.
//!
//! Idle workers come first. Then an assignment is queued behind each running one, so that no slot waits for the network. Long
//! tasks are not queued, and nothing is queued behind them, because another worker may be idle sooner. A worker gets a batch of
//! open tasks, those planned first, of the run whose turn it is (`rules/shares.rs`), among the runs that it computes. When nothing is
//! open, tasks that were assigned long ago get another copy, starting with those that wait in a queue.
//!
//! A slot may stay free for a moment, if a run that goes first is about to plan its next round (`held`), and some slots may be
//! closed to long tasks (`keeping`).
//!
//! While replicas of a run have not begun, tasks of the replica that is nearest to its end come first; after that, tasks of the
//! replica with the most work left. So no replica is left over while the other workers have nothing to do (`Run::turn_of`).
//!
//! A suspect task is sent alone, to a worker that has nothing else. It waits for a worker that has proved itself, but only as
//! long as the task takes, or some seconds. Then any eligible worker gets it. If no eligible worker has computed anything,
//! the wait is shorter. A worker on which three tasks of a run failed gets only suspects of that run, until the failures are
//! resolved.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use evoxo_common::time::Millis;
use evoxo_proto::v1::to_worker;

use super::{
    Batch, SessionId, TaskId,
    evidence::{Evidence, Jury},
    groups::Abilities,
    keeping::Keeping,
    look::{Look, Moment},
    out::Out,
    record::Word,
    rules::Rules,
    run::Run,
    runs::RunId,
    sessions::{Assignment, Session, Sessions, is_long},
    tasks::{OpenTask, Waiting},
    work::Work,
};

/// The maximum number of tasks of one assignment.
const BATCH_TASKS_MAX: usize = 1024;
/// The maximum size of one assignment in bytes: its tasks and the shared bytes sent with them. A single task may be larger.
/// Larger messages cost more time to send than they save: with tasks of 1 KB, batches of 256 are handed out twice as fast as
/// batches of 4,096.
const BATCH_BYTES_MAX: usize = 256 << 10;
/// Tasks that together take less than this, in microseconds, are not divided among workers. An assignment and its results
/// cost half as much at both ends.
const WORTH_A_MESSAGE_US: u64 = 200;
/// The maximum number of suspects to try that find no idle worker. The others wait, because there may be thousands.
const SKIPPED_MAX: usize = 64;

impl Work {
    /// Gives open tasks to workers that have room.
    pub(super) fn assign(&mut self, at: &Moment, sessions: &mut Sessions, out: &mut Out) {
        self.held.count(&mut self.rules, at.now);
        if at.stopping || !(self.tasks.have_open() || !self.tasks.suspects().is_empty() || self.look_due) {
            return;
        }
        self.place_suspects(at, sessions, out);
        let mut keeping = Keeping::default();
        // Compute this once for all idle workers, because there may be thousands of them.
        let slow = if std::mem::take(&mut self.look_due) {
            self.look(at, sessions, &out.writes).slow_assignments()
        } else {
            Vec::new()
        };
        for idle_only in [true, false] {
            let slow = if idle_only { &slow[..] } else { &[] };
            let look = self.look(at, sessions, &out.writes);
            let could = |abilities: &Abilities| !slow.is_empty() || look.has_work_for(abilities, idle_only);
            for id in sessions.with_capacity(idle_only, could) {
                while takes_more(at.now, sessions, id, idle_only)
                    && self.assign_batch(at, sessions, out, &mut keeping, id, slow)
                {}
                // Usually the first few workers have taken everything, while thousands could have taken more.
                if slow.is_empty() && !self.tasks.have_open() {
                    return;
                }
            }
        }
    }

    /// Sends suspects to workers that have nothing else. It also reserves busy workers for suspects, at most one for each.
    /// Reservations are made only at a tick or when there are new suspects, not at every event, because there may be
    /// thousands of workers and suspects.
    fn place_suspects(&mut self, at: &Moment, sessions: &mut Sessions, out: &mut Out) {
        let reserves = self.look_due | self.tasks.take_new_suspects();
        if reserves || self.tasks.suspects().is_empty() {
            sessions.release_reserved();
        }
        let free = |(id, session): (SessionId, &Session)| {
            let free = !session.gets_nothing() && !session.is_quiet(at.now) && !session.is_alone_with_suspect();
            (free && (reserves || session.assignments.is_empty())).then_some(id)
        };
        let mut free: Vec<SessionId> = match self.tasks.suspects().is_empty() {
            true => return,
            false => sessions.iter().filter_map(free).collect(),
        };
        // Start with the suspects that were not reached last time.
        let (all, skipped) = (self.tasks.suspects(), std::mem::replace(&mut self.skipped, TaskId::NONE));
        let behind = all.range((Bound::Excluded(skipped), Bound::Unbounded)).chain(all.range(..=skipped));
        let suspects: Vec<TaskId> = behind.take(free.len() + SKIPPED_MAX).copied().collect();
        let mut patience = SKIPPED_MAX;
        for task in suspects {
            if free.is_empty() || patience == 0 {
                return;
            }
            self.skipped = task;
            let Some(id) = self.look(at, sessions, &out.writes).worker_for_suspect(task, &free) else {
                patience -= 1;
                continue;
            };
            free.retain(|other| *other != id);
            match sessions[id].assignments.is_empty() {
                true => self.send_assignment(at.now, sessions, out, id, &[task], true),
                false => {
                    sessions.reserve(id);
                    patience -= 1;
                }
            }
        }
    }

    /// Sends one assignment to a worker: open tasks, or else copies of tasks in these slow assignments. Returns false if
    /// there is nothing for this worker, or if its slots stay free for another run.
    fn assign_batch(
        &mut self,
        at: &Moment,
        sessions: &mut Sessions,
        out: &mut Out,
        keeping: &mut Keeping,
        id: SessionId,
        slow: &[(SessionId, u64)],
    ) -> bool {
        if at.settings.slots_kept > 0 {
            keeping.count(sessions);
        }
        let look = self.look(at, sessions, &out.writes);
        let mut tasks = look.open_batch(&self.rules, keeping, id);
        if tasks.is_empty() {
            tasks = look.further_copies(id, slow);
        }
        let Some(first) = tasks.first() else { return false };
        if look.is_kept_from(keeping, *first) {
            return false;
        }
        let open = &self.tasks[*first];
        if self.held.holds(at.now, &self.runs, &self.rules, (id, &sessions[id]), open) {
            return false;
        }
        keeping.given(open.run, self.runs[open.run].expected.us(open.replica.arm, open.work));
        self.send_assignment(at.now, sessions, out, id, &tasks, false);
        true
    }

    fn send_assignment(
        &mut self,
        now: Millis,
        sessions: &mut Sessions,
        out: &mut Out,
        id: SessionId,
        tasks: &[TaskId],
        alone: bool,
    ) {
        let first = &self.tasks[tasks[0]];
        let (run, arm, work) = (first.run, first.replica.arm, first.work);
        let mut remaining = BTreeMap::new();
        let mut encoded = Vec::with_capacity(tasks.len());
        for task in tasks {
            let open = &self.tasks[*task];
            // Open tasks with the same bytes are computed once.
            if remaining.insert(open.encoded.hash, *task).is_none() {
                encoded.push(&open.encoded);
            }
        }
        let each_us = self.runs[run].expected.us(arm, work);
        let further = tasks.iter().any(|task| !self.tasks[*task].copies.is_empty());
        let assignment = Assignment { remaining, sent: now, progress: now, run, arm, work, each_us, alone, further };
        let given: Vec<TaskId> = assignment.remaining.values().copied().collect();
        let expected_us = assignment.expected_us();
        let (number, message) = sessions.change(id, |session| {
            let number = session.give(assignment);
            (number, session.cache.pack(number, encoded))
        });
        out.tally.assignments += 1;
        self.rules.given(run, expected_us);
        self.held.given(run, now);
        out.tally.copies += given.len() as u64;
        given.into_iter().for_each(|task| self.tasks.add_copy(task, (id, number)));
        out.effects.send(id, to_worker::Message::Assignment(message));
    }
}

impl Look<'_> {
    /// Whether there may be something to compute for workers with these abilities. `idle` says whether these workers are
    /// idle.
    fn has_work_for(&self, abilities: &Abilities, idle: bool) -> bool {
        let open = |tasks: &BTreeMap<RunId, Waiting>, claimed: bool| {
            let first = |(id, tasks): (&RunId, &Waiting)| Some((&self.runs[*id], tasks.first()?.1));
            tasks.iter().filter_map(first).any(|(run, first)| {
                let closed = claimed && run.level.needs_trusted() && !abilities.trusted;
                let now = idle || self.may_be_queued(run, first);
                !closed && now && run.hands_out() && abilities.serves(run)
            })
        };
        open(self.tasks.ready(), false) || open(self.tasks.claimed(), true)
    }

    /// Whether a task of this run may be queued behind another task.
    fn may_be_queued(&self, run: &Run, task: TaskId) -> bool {
        let task = &self.tasks[task];
        let expected = run.expected.us(task.replica.arm, task.work);
        !is_long(expected)
    }

    /// The worker for a suspect. Among workers that have proved themselves, an idle one is preferred, then the one connected
    /// for longest. If there are none, any eligible worker gets it after a while.
    fn worker_for_suspect(&self, task: TaskId, free: &[SessionId]) -> Option<SessionId> {
        let open = &self.tasks[task];
        let run = Some(&self.runs[open.run]).filter(|run| run.hands_out())?;
        let evidence = open.evidence.as_ref().expect("there is evidence against every suspect");
        let each_us = run.expected.us(open.replica.arm, open.work);
        // If the evidence suffices but the required witnesses are missing, only workers that can be such witnesses decide.
        let all = self.each_failure_counts(open);
        let accused = evidence.accusation(all).is_some();
        let jury = Jury::of(run.level);
        let decides = |session: &Session| match jury {
            Jury::Trusted => session.is_trusted(),
            Jury::Different => !evidence.has_heard(&session.identity, all),
            Jury::Anybody => true,
        };
        let could = |session: &Session| self.could_compute(session, run, open) && (!accused || decides(session));
        let best = self.best_rank(open, evidence, run, &could);
        let may = |session: &Session| could(session) && Some(self.rank(open, evidence, run, session)) == best;
        let fits = |id: &SessionId| {
            let session = &self.sessions[*id];
            may(session).then_some((!session.assignments.is_empty(), session.connected, *id))
        };
        let is_proven = |id: SessionId| self.sessions[id].is_proven(each_us);
        let fitting: Vec<_> = free.iter().filter_map(fits).collect();
        let proven = fitting.iter().filter(|(_, _, id)| is_proven(*id)).min();
        if let Some((_, _, id)) = proven {
            return Some(*id);
        }
        // If an eligible worker has computed something, it may prove itself soon, so wait longer.
        let waited = match self.sessions.iter().any(|(_, session)| may(session) && session.records.has_computed()) {
            true => evidence.has_waited_for_proof(self.now, each_us),
            false => evidence.has_waited(self.now),
        };
        fitting.iter().min().filter(|_| waited).map(|(_, _, id)| *id)
    }

    /// The rank of a worker for a suspect; the lowest rank comes first. A worker that was lost with the suspect, or on which
    /// it failed, gets it only if there is no other. If the suspect has failed anywhere, workers that compute tasks of its
    /// kind come first, because only their failures count.
    fn rank(&self, task: &OpenTask, evidence: &Evidence, run: &Run, session: &Session) -> u8 {
        let named = evidence.names(&session.identity);
        if evidence.failures.is_empty() {
            return u8::from(named);
        }
        match (self.word_of(session, run, task), named) {
            (Word::Reliable, false) => 0,
            (Word::Unknown, false) => 1,
            (Word::Reliable, true) => 2,
            (Word::Failing, false) => 3,
            (_, true) => 4,
        }
    }

    /// The lowest rank of all workers that could get a suspect.
    fn best_rank(
        &self,
        task: &OpenTask,
        evidence: &Evidence,
        run: &Run,
        could: &impl Fn(&Session) -> bool,
    ) -> Option<u8> {
        let mut best = None;
        for (_, session) in self.sessions.iter().filter(|(_, session)| could(session)) {
            let rank = self.rank(task, evidence, run, session);
            best = Some(best.map_or(rank, |best: u8| best.min(rank)));
            // Stop early: there may be thousands of workers.
            if rank == 0 {
                break;
            }
        }
        best
    }

    /// Open tasks for this worker, of the run whose turn is next.
    fn open_batch(&self, rules: &Rules, keeping: &Keeping, id: SessionId) -> Vec<TaskId> {
        let session = &self.sessions[id];
        let (ready, claimed) = (self.tasks.ready(), self.tasks.claimed());
        let served = ready.keys().chain(claimed.keys()).filter_map(|run_id| {
            let may = |run: &&Run| run.hands_out() && session.serves(run) && !self.has_enough_of(session, *run_id);
            let run = Some(&self.runs[*run_id]).filter(may)?;
            let first = self.open_for(session, *run_id, run).next()?;
            (!self.is_kept_from(keeping, first)).then_some((*run_id, first))
        });
        let Some((id, first)) = served.min_by(|(one, _), (other, _)| rules.turn(*one, *other)) else {
            return Vec::new();
        };
        let run = &self.runs[id];
        // If this task may not be queued, queue no task of another run either. Otherwise the slot would never be idle for
        // this run.
        if !session.is_idle() && !self.may_be_queued(run, first) {
            return Vec::new();
        }
        let open: usize = [ready, claimed].iter().filter_map(|tasks| tasks.get(&id)).map(Waiting::len).sum();
        // At most half of an even share, so that all workers that compute this run finish at about the same time.
        let slots = self.sessions.slots_for(run).max(1);
        let share = (open / (2 * slots as usize)).max(1);
        self.cut_batch(id, self.open_for(session, id, run), share, session)
    }

    /// Whether this task must wait because the free slots are kept for short ones. At least one slot is for all tasks.
    fn is_kept_from(&self, keeping: &Keeping, task: TaskId) -> bool {
        if self.settings.slots_kept == 0 {
            return false;
        }
        let open = &self.tasks[task];
        let run = &self.runs[open.run];
        let most = self.sessions.slots_total().saturating_sub(self.settings.slots_kept).max(1);
        // An assignment can outlive its run.
        let is_own = |other: RunId| self.runs.get(other).is_some_and(|other| other.submitter == run.submitter);
        keeping.keeps_from(run.expected.us(open.replica.arm, open.work), most, is_own)
    }

    /// The first of these tasks, as many as fit into one assignment for this worker.
    fn cut_batch(
        &self,
        run: RunId,
        tasks: impl Iterator<Item = TaskId>,
        share: usize,
        session: &Session,
    ) -> Vec<TaskId> {
        let run = &self.runs[run];
        let mut batch = Vec::new();
        let mut brought = BTreeSet::new();
        let (mut bytes, mut expected_us, mut first) = (0, 0, None);
        for id in tasks {
            let task = &self.tasks[id];
            let of = (task.replica.arm, task.work);
            // All tasks of an assignment have the same expected duration.
            if *first.get_or_insert(of) != of {
                break;
            }
            let each_us = run.expected.us(of.0, of.1);
            let tasks_max = match (self.settings.batch, each_us) {
                _ if session.on_trial => 1,
                (Batch::Tasks(count), _) => count.max(1) as usize,
                (Batch::Auto, None) => 1,
                (Batch::Auto, Some(each_us)) => share.max((WORTH_A_MESSAGE_US / each_us) as usize),
            };
            bytes += task.encoded.own.len();
            if let Some(shared) = &task.encoded.shared
                && !session.cache.contains(shared.hash)
                && brought.insert(shared.hash)
                && !batch.is_empty()
            {
                // The shared bytes of the first task are sent anyway, so they do not count.
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
        // Workers compute the tasks of an assignment in this order, whatever turn each had.
        batch.sort_unstable();
        batch
    }

    /// The assignments that have taken long enough for a second copy. Assignments queued behind others come first.
    fn slow_assignments(&self) -> Vec<(SessionId, u64)> {
        let slow =
            |assignment: &Assignment| !assignment.alone && self.now - assignment.sent >= self.patience_ms(assignment);
        let of = |(id, session): (SessionId, &Session)| {
            let slow = session.assignments.iter().enumerate().filter(|(_, (_, assignment))| slow(assignment));
            let running = |place: usize| place < session.slots as usize;
            slow.map(|(place, (number, _))| (running(place), id, *number)).collect::<Vec<_>>()
        };
        let mut found: Vec<(bool, SessionId, u64)> = self.sessions.iter().flat_map(of).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, id, number)| (id, number)).collect()
    }

    /// How long an assignment runs before its tasks get a second copy, in milliseconds.
    fn patience_ms(&self, assignment: &Assignment) -> u64 {
        match assignment.each_us {
            Some(_) => self.settings.second_copy_ms_min.max(assignment.expected_us().saturating_mul(2) / 1000),
            None => self.settings.second_copy_ms_unknown,
        }
    }

    /// Tasks that other workers have had for long. They come from the end of one of these assignments, where they would be
    /// computed last. A third copy needs a longer wait than a second one, and so on.
    fn further_copies(&self, id: SessionId, slow: &[(SessionId, u64)]) -> Vec<TaskId> {
        let session = &self.sessions[id];
        let slow = slow.iter().filter(|(other, _)| *other != id).find_map(|(other, number)| {
            // The list was made during this event, and no result has arrived since, so the assignment still exists.
            let assignment = &self.sessions[*other].assignments[number];
            let tasks = self.copied_next(assignment, id, session);
            (!tasks.is_empty()).then_some((assignment.run, tasks))
        });
        let Some((run, mut tasks)) = slow else { return Vec::new() };
        tasks.sort_unstable();
        let half = tasks.len() / 2;
        self.cut_batch(run, tasks.split_off(half).into_iter(), usize::MAX, session)
    }

    /// The tasks of an assignment that this worker may compute as well, if the assignment has taken long enough.
    fn copied_next(&self, assignment: &Assignment, id: SessionId, session: &Session) -> Vec<TaskId> {
        let may = |run: &&Run| run.hands_out() && session.serves(run) && !self.has_enough_of(session, assignment.run);
        // An assignment can outlive its run.
        let Some(run) = self.runs.get(assignment.run).filter(may) else { return Vec::new() };
        let (patience_ms, waited_ms) = (self.patience_ms(assignment), self.now - assignment.sent);
        let next = |task: &TaskId| {
            self.tasks.get(*task).is_some_and(|task: &OpenTask| {
                let copies = task.copies.len() as u32;
                let patient = patience_ms.saturating_mul(2_u64.saturating_pow(copies.saturating_sub(1)));
                waited_ms >= patient && task.evidence.is_none() && {
                    let other = task.copies.iter().all(|(other, _)| *other != id);
                    other && self.may_compute(session, run, task)
                }
            })
        };
        assignment.remaining.values().copied().filter(next).collect()
    }
}

/// Whether a worker can take an assignment.
fn takes_more(now: Millis, sessions: &Sessions, id: SessionId, idle_only: bool) -> bool {
    let session = &sessions[id];
    (!idle_only || session.is_idle())
        && !session.is_quiet(now)
        && session.has_capacity()
        && !sessions.is_reserved(id)
        && !session.is_alone_with_suspect()
}
