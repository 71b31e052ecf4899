//! Replicas advance: they are loaded from the store, opened as memory allows, computed round after round, and unloaded.

use evoxo_common::experiment::ResultDigest;
use evoxo_proto::v1::RunState;

use super::{
    Coordinator, Effect, Rejection, ReplicaAt, Response, TaskId, ThreadId, Topic, Write,
    budget::Shortage,
    run::{Blocked, Presence, ReplicaPhase, Run, Wanted},
    runs::RunId,
    writes::Pending,
};
use crate::replicas::{Job, PlannedTask, ReplicaKey, Report};

/// The ready tasks below which a further piece of a round is planned: the most tasks of one assignment.
const READY_TASKS_MIN: usize = 1024;
/// A run has four open replicas for each slot, so that no worker waits while rounds are absorbed; but if that is more than
/// this, two for each slot: a round may have a single task, and a worker has one that it computes and one behind it.
const OPEN_REPLICAS: usize = 1024;

impl Coordinator {
    /// Advances all runs that have changed.
    pub(super) fn advance_runs(&mut self) {
        if self.stopping {
            return;
        }
        for id in self.runs.take_moved() {
            self.take_up(id);
            self.open_replicas(id);
            self.plan_more(id);
        }
    }

    /// Asks the store for a run's states, if it should run and there is memory for it.
    fn take_up(&mut self, id: RunId) {
        let takes = |run: &&mut Run| run.presence == Presence::Resting && run.wants_memory() && run.load_due.is_none();
        let Some(run) = self.runs.adjust(id).filter(takes) else { return };
        let needed = match run.bytes_to_read(&self.settings) {
            Ok(needed) => needed,
            Err(why) => return self.block(id, Blocked::Unfit(why)),
        };
        let shortage = self.budget.take(&run.submitter, needed).err();
        if run.waits_for_memory != shortage {
            run.waits_for_memory = shortage;
            self.runs.change(id);
        }
        if let Some(shortage) = shortage {
            return self.rest_a_paused_run(id, shortage);
        }
        if let Some(run) = self.runs.change(id) {
            run.reserved_bytes = needed;
            run.presence = Presence::Loading;
        }
        self.write(id, Write::Load, Pending::Load(None));
    }

    /// A paused run stays in memory, so that it goes on where it was, until another one has no room: then it is put to rest. Its
    /// memory is free when its last checkpoint is stored; if that is not enough, it is the next one's turn.
    fn rest_a_paused_run(&mut self, waiting: RunId, shortage: Shortage) {
        let Some(submitter) = self.runs.get(waiting).map(|run| run.submitter.clone()) else { return };
        let paused = |(_, run): &(RunId, &Run)| {
            let helps = shortage == Shortage::All || run.submitter == submitter;
            helps && run.thread().is_some() && run.state() == RunState::Paused
        };
        let loaded = |run: &Run| matches!(run.presence, Presence::Loaded(_));
        // One that is leaving comes first.
        let next = self.runs.iter().filter(paused).map(|(id, run)| (loaded(run), id)).min();
        if let Some((true, id)) = next {
            self.put_to_rest(id);
        }
    }

    /// Opens replicas while there are too few tasks for the workers and there is memory: those that have begun first,
    /// then the lowest.
    fn open_replicas(&mut self, id: RunId) {
        let slots = self.sessions.slots_total() as usize;
        let wanted = (4 * slots).clamp(8, OPEN_REPLICAS.max(2 * slots));
        loop {
            let Some(run) = self.runs.get(id).filter(|run| run.hands_out() && run.open.len() < wanted) else { return };
            let Some(thread) = run.thread() else { return };
            let key = match run.waiting.first() {
                Some(key) => *key,
                None => match run.unbegun.first().copied() {
                    Some(key) if self.reserve_for(id, key) => key,
                    Some(_) => return self.wait_if_stuck(id),
                    None => return,
                },
            };
            let Some(run) = self.runs.adjust(id) else { return };
            run.set_phase(key, ReplicaPhase::Opening);
            let attempt = run.replicas.get(&key).map_or(0, |record| record.attempt);
            self.effects.push(Effect::Job { thread, job: Job::Open { replica: key, attempt } });
        }
    }

    /// Reserves memory for one more replica, if there is enough.
    fn reserve_for(&mut self, id: RunId, key: ReplicaKey) -> bool {
        let most = self.settings.run_memory_bytes_max();
        let Some(run) = self.runs.adjust(id) else { return false };
        let needed = run.needed_bytes(self.settings.plan_ahead_bytes(), Some(key));
        let more = needed.saturating_sub(run.reserved_bytes);
        if needed > most || self.budget.take(&run.submitter, more).is_err() {
            return false;
        }
        run.reserved_bytes += more;
        true
    }

    /// Somebody has asked for more replicas of a run, and it needs more memory than was reserved for it. If there is none, and
    /// nothing of it is open that could end, it gives back what it has, and waits as others do; two of them would wait for
    /// each other.
    fn wait_if_stuck(&mut self, id: RunId) {
        let ahead_bytes = self.settings.plan_ahead_bytes();
        let stuck = |run: &Run| run.open.is_empty() && run.reserved_bytes < run.needed_bytes(ahead_bytes, None);
        if self.runs.get(id).is_some_and(stuck) {
            self.put_to_rest(id);
        }
    }

    /// Gives back memory that a run does not need any more.
    pub(super) fn release(&mut self, id: RunId) {
        let ahead_bytes = self.settings.plan_ahead_bytes();
        let Some(run) = self.runs.adjust(id) else { return };
        let in_memory = run.thread().is_some() || run.presence == Presence::Loading;
        let needed = if in_memory { run.needed_bytes(ahead_bytes, None) } else { 0 };
        let over = run.reserved_bytes.saturating_sub(needed);
        if over > 0 {
            run.reserved_bytes -= over;
            self.budget.give_back(&run.submitter, over);
            self.runs.move_all();
        }
    }

    /// Plans a further piece of a round, if few tasks are ready and they take little memory.
    fn plan_more(&mut self, id: RunId) {
        let ready = self.tasks.ready().get(&id).map_or(0, std::collections::BTreeSet::len);
        let many = READY_TASKS_MIN.max(8 * self.sessions.slots_total() as usize);
        if ready >= many || self.tasks.bytes(id) >= self.settings.plan_ahead_bytes() {
            return;
        }
        let Some(run) = self.runs.adjust(id).filter(|run| run.hands_out() && !run.planning) else { return };
        let (Some(replica), Some(thread)) = (run.partly_planned.first().copied(), run.thread()) else { return };
        run.planning = true;
        self.effects.push(Effect::Job { thread, job: Job::Plan(replica) });
    }

    /// The results of a run's jobs.
    pub(super) fn on_reports(&mut self, thread: ThreadId, reports: Vec<Report>) {
        let Some(id) = self.runs.of_thread(thread) else {
            // The thread was ended meanwhile. Whoever waits for a copy is told so.
            for report in reports {
                if let Report::Copy { request, .. } = report {
                    self.effects.respond(request, Err(Rejection::unloaded()));
                }
            }
            return;
        };
        for report in reports {
            match report {
                Report::Planned { replica, attempt, requested, round, total, tasks } => {
                    if let Some(run) = self.runs.change(id).filter(|_| requested) {
                        run.planning = false;
                    }
                    self.on_planned(id, (replica, attempt), round, total, tasks);
                }
                Report::Checked { task, hash, from, found, taken, drawn } => {
                    self.on_checked(task, hash, &from, found, (taken, drawn));
                }
                Report::Audits { replica, asked, audits } => self.go_on_auditing(id, replica, asked, audits),
                Report::Computed { replica } => {
                    // A search without a barrier may end while workers still have tasks of it.
                    self.tasks.close_replica(id, replica);
                    if let Some(run) = self.runs.change(id) {
                        run.set_phase(replica, ReplicaPhase::Computed);
                    }
                }
                Report::Absorbed { replica, rounds, metric, failure } => {
                    self.on_absorbed(id, replica, rounds, metric, failure);
                }
                Report::Voided { replica, since } => self.begin_anew(id, replica, since),
                Report::Finished { replica, digest, sealed, exposed } => {
                    if let Some(since) = self.runs.get(id).and_then(|run| self.void_since(run.level, &exposed)) {
                        self.begin_anew(id, replica, since);
                        continue;
                    }
                    // A search without a barrier may end while workers still have tasks of it.
                    self.tasks.close_replica(id, replica);
                    if let Some(run) = self.runs.change(id) {
                        run.set_phase(replica, ReplicaPhase::Finished { digest, sealed, writing: false });
                        if let Some(record) = run.replicas.get_mut(&replica) {
                            record.exposed = exposed;
                        }
                    }
                    self.write_finished(id, replica);
                }
                Report::Unusable { replica, why } => {
                    let sentence = format!("{why}; it is computed again");
                    if let Some(run) = self.runs.change(id) {
                        run.notice(sentence.clone());
                        let (about, line) = (run.about_replica(replica), format!("run {}: {sentence}", run.name));
                        if let Some(record) = run.replicas.get_mut(&replica) {
                            (record.rounds, record.metric) = (0, None);
                        }
                        self.effects.log_about(Topic::Trouble, about, line);
                    }
                }
                Report::Checkpoint { number, sealed } => self.write_checkpoint(id, number, sealed),
                Report::Copy { request, replica, sealed } => {
                    // A replica that has finished meanwhile is written elsewhere.
                    let at = sealed.map(ReplicaAt::Bytes).or_else(|| self.runs.get(id)?.replica_at(replica));
                    let response = at.map(Response::Replica).ok_or_else(Rejection::no_replica);
                    self.effects.respond(request, response);
                }
                Report::Broken { why } => {
                    let why = format!("the experiment's code panicked, which is a bug of this build: {why}");
                    self.fail_run(id, why);
                    self.drop_thread(id);
                }
            }
        }
    }

    fn on_planned(
        &mut self,
        id: RunId,
        (replica, attempt): (ReplicaKey, u32),
        round: u64,
        total: usize,
        tasks: Vec<PlannedTask>,
    ) {
        let Some(run) = self.runs.change(id) else { return };
        let wanted = run.replicas.get(&replica).is_some_and(|record| record.attempt == attempt);
        let open = wanted && matches!(run.presence, Presence::Loaded(_)) && run.open.contains(&replica);
        let Some(planned) = tasks.last().map(|task| task.index + 1).filter(|_| open) else { return };
        run.set_phase(replica, ReplicaPhase::Open { total, planned });
        tasks.into_iter().for_each(|task| self.tasks.add(id, replica, round, task));
    }

    fn on_absorbed(&mut self, id: RunId, key: ReplicaKey, rounds: u64, metric: Option<f64>, failure: Option<String>) {
        let interval_ms = self.settings.checkpoint_interval_ms;
        let Some(run) = self.runs.change(id) else { return };
        self.tally.rounds += 1;
        if let Some(record) = run.replicas.get_mut(&key) {
            (record.rounds, record.metric) = (rounds, metric);
        }
        if !run.checkpoints.dirty {
            run.checkpoints.dirty = true;
            run.checkpoints.due = run.checkpoints.due.max(self.now + interval_ms);
        }
        if let Some(why) = failure {
            let arm = &run.prepared.config.arms[key.arm as usize].name;
            let sentence = format!("replica {} of arm {arm:?} {why}", key.index);
            let (about, line) = (run.about_replica(key), format!("run {}: {sentence}", run.name));
            run.notice(sentence);
            self.effects.log_about(Topic::Trouble, about, line);
        }
    }

    /// A finished replica is in the store.
    pub(super) fn on_finished_stored(&mut self, id: RunId, key: ReplicaKey, digest: ResultDigest, object: String) {
        let Some(run) = self.runs.change(id) else { return };
        run.set_phase(key, ReplicaPhase::Stored { digest, object });
        run.update_digest();
        self.release(id);
        self.end_if_complete(id);
    }

    /// Ends a run of which everything is stored and nothing is being audited.
    pub(super) fn end_if_complete(&mut self, id: RunId) {
        let Some(run) = self.runs.get(id).filter(|run| run.is_complete()) else { return };
        let line = match run.state() {
            RunState::InDoubt => {
                format!("run {} is computed, but in doubt: copies of tasks had different outputs", run.name)
            }
            _ => format!("run {} is finished", run.name),
        };
        self.effects.log_about(Topic::Progress, run.about(), line);
        self.drop_thread(id);
        self.store(id, Write::DropCheckpoints);
        self.retire();
    }

    /// Fails a run because of a task.
    pub(super) fn fail_for_task(&mut self, task: TaskId, verdict: &str) {
        let Some(open) = self.tasks.get(task) else { return };
        let (id, hash, bytes) = (open.run, open.encoded.hash, open.encoded.whole());
        let Some(run) = self.runs.get(id) else { return };
        let (kind, work) = (run.prepared.config.kind.name, open.work);
        let arm = &run.prepared.config.arms[open.replica.arm as usize].name;
        let sentence = format!(
            "a task {kind}/{work} of replica {} of arm {arm:?} {verdict}; it is saved in the store as \
             runs/{}/poison/{hash}.task: see `evoxo-worker run-task --help`",
            open.replica.index, run.name
        );
        self.store(id, Write::Poison { hash, bytes });
        self.fail_run(id, sentence);
    }

    /// A run has failed and stops until a person resumes it.
    pub(super) fn fail_run(&mut self, id: RunId, why: String) {
        let Some(run) = self.runs.change(id) else { return };
        let (about, line) = (run.about(), format!("run {} failed: {why}", run.name));
        self.tally.runs_failed += 1;
        run.wanted = Wanted::Failed(why);
        run.failure_unsaved = true;
        self.effects.log_about(Topic::RunFailed, about, line);
        self.write_failure(id);
        self.put_to_rest(id);
    }

    /// This coordinator may not advance a run.
    pub(super) fn block(&mut self, id: RunId, blocked: Blocked) {
        let Some(run) = self.runs.change(id) else { return };
        let (about, line) = (run.about(), format!("run {} is blocked: {}", run.name, blocked.why()));
        run.notice(blocked.why().to_owned());
        run.blocked = Some(blocked);
        self.effects.log_about(Topic::Trouble, about, line);
        // States that cannot be written need not be sealed.
        self.drop_thread(id);
    }

    /// Closes a run's tasks; when its last checkpoint is stored, its thread is ended.
    pub(super) fn put_to_rest(&mut self, id: RunId) {
        self.close_tasks(id);
        let Some(run) = self.runs.change(id) else { return };
        run.rest_replicas();
        let Presence::Loaded(thread) = run.presence else { return };
        run.presence = Presence::Leaving(thread);
        self.save(id);
        self.leave_if_saved(id);
    }

    fn close_tasks(&mut self, id: RunId) {
        self.tasks.close_run(id);
        self.sessions.forget_failures(id);
        if let Some(run) = self.runs.adjust(id) {
            run.failing.clear();
        }
    }

    /// Ends the thread of a run that is being unloaded, when everything of it is saved.
    pub(super) fn leave_if_saved(&mut self, id: RunId) {
        let Some(run) = self.runs.get(id) else { return };
        let unsaved = run.checkpoints.dirty || run.checkpoints.writing || run.finished > run.stored;
        if matches!(run.presence, Presence::Leaving(_)) && !unsaved {
            self.drop_thread(id);
        }
    }

    /// Ends a run's thread and frees its replicas.
    pub(super) fn drop_thread(&mut self, id: RunId) {
        self.close_tasks(id);
        let Some(run) = self.runs.change(id) else { return };
        run.rest_replicas();
        let thread = run.thread();
        run.presence = Presence::Resting;
        run.checkpoints.dirty = false;
        if let Some(thread) = thread {
            self.runs.end_thread(thread);
            self.effects.push(Effect::Drop { thread });
        }
        self.release(id);
    }
}
