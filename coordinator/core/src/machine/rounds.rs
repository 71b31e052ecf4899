//! Replicas advance: they are loaded from the store, opened as memory allows, and computed round by round.

use std::cmp::Reverse;

use evoxo_proto::v1::RunState;

use super::{
    Effect, Rejection, ReplicaAt, Response, ThreadId, Topic, Write,
    budget::Shortage,
    fleet::Fleet,
    look::Moment,
    out::Out,
    phases::ReplicaPhase,
    run::{Blocked, Presence, Run},
    runs::{RunId, Runs},
    sessions::Sessions,
    verification::Place,
    work::Work,
    writes::Pending,
};
use crate::replicas::{Job, PlannedTask, ReplicaKey, Report};

/// Another piece of a round is planned if fewer tasks than this are ready. It is the maximum size of one assignment.
const READY_TASKS_MIN: usize = 1024;
/// A run has four open replicas for each slot, so that no worker waits while rounds are absorbed. If that exceeds this
/// number, the run has two for each slot. A round may have a single task, and a worker has one task in progress and one
/// queued.
const OPEN_REPLICAS: usize = 1024;

impl Runs {
    /// The run whose states a fork can begin with, and the last round that both have in common. Its outputs must have been
    /// verified as those of the fork will be, and it must be finished: until then its results may still come into doubt.
    fn past_of(&self, id: RunId) -> Option<(String, u64)> {
        let run = &self[id];
        if run.checkpoints.object.is_some() || run.replicas.finished() > 0 {
            return None;
        }
        run.prepared.config.pasts().find_map(|(rounds, past)| {
            let hash = past.hash();
            let is_past = |other: &&Run| {
                let same = other.prepared.hash == hash && other.prepared.config.has_states_of(&past);
                same && other.level == run.level && other.foreign.is_none() && other.state() == RunState::Finished
            };
            let pasts = self.iter().map(|(_, other)| other).filter(is_past);
            let best = pasts.max_by_key(|other| (other.kept_bytes, Reverse(&other.name)))?;
            Some((best.name.clone(), rounds))
        })
    }
}

impl Work {
    /// Advances all runs that have changed.
    pub(super) fn advance_runs(&mut self, at: &Moment, sessions: &mut Sessions, out: &mut Out) {
        if at.stopping {
            return;
        }
        for id in self.runs.take_moved() {
            self.take_up(at, sessions, out, id);
            self.open_replicas(at, sessions, out, id);
            self.plan_more(at, sessions.slots_total() as usize, out, id);
        }
    }

    /// Requests a run's states from the store, if the run should advance and there is memory for it.
    fn take_up(&mut self, at: &Moment, sessions: &mut Sessions, out: &mut Out, id: RunId) {
        let run = self.runs.adjust(id);
        if run.presence != Presence::Resting || !run.wants_memory() || run.trouble.keeps_from_loading() {
            return;
        }
        let needed = match run.bytes_to_read(&at.settings) {
            Ok(needed) => needed,
            Err(why) => return self.block(at, sessions, out, id, Blocked::Unfit(why)),
        };
        if self.take_up_fork(at, out, id) {
            return;
        }
        let run = self.runs.adjust(id);
        let shortage = self.budget.take(&run.submitter, needed).err();
        if run.waits_for_memory != shortage {
            run.waits_for_memory = shortage;
            self.runs.change(id);
        }
        if let Some(shortage) = shortage {
            return self.rest_a_paused_run(at, sessions, out, id, shortage);
        }
        let run = self.runs.change(id);
        run.reserved_bytes = needed;
        run.presence = Presence::Loading;
        out.write(id, &run.name, Write::Load, Pending::Load(None));
    }

    /// Requests the states of the run from which a run forks, if nothing of the fork is stored yet. Without memory for that, the
    /// fork begins at its first round.
    fn take_up_fork(&mut self, at: &Moment, out: &mut Out, id: RunId) -> bool {
        let Some((of, rounds)) = self.runs.past_of(id) else { return false };
        let run = &self.runs[id];
        let plan_bytes = run.prepared.plan_bytes(at.settings.plan_ahead_bytes());
        let bytes_max = run.prepared.all_replicas_bytes();
        let needed = plan_bytes.saturating_add(bytes_max).min(at.settings.run_memory_bytes_max());
        let bytes_max = needed.saturating_sub(plan_bytes);
        if self.budget.take(&run.submitter, needed).is_err() {
            return false;
        }
        let run = self.runs.change(id);
        run.reserved_bytes = needed;
        run.waits_for_memory = None;
        run.presence = Presence::Loading;
        out.write(id, &run.name, Write::LoadFork { of, rounds, bytes_max }, Pending::Load(None));
        true
    }

    /// A paused run stays in memory, so that it can continue where it was, until another run needs the memory. Then the
    /// paused run is put to rest, and its memory is free once its last checkpoint is stored. If that is not enough, the next
    /// paused run follows.
    fn rest_a_paused_run(
        &mut self,
        at: &Moment,
        sessions: &mut Sessions,
        out: &mut Out,
        waiting: RunId,
        shortage: Shortage,
    ) {
        let submitter = &self.runs[waiting].submitter;
        let paused = |(_, run): &(RunId, &Run)| {
            let helps = shortage == Shortage::All || run.submitter == *submitter;
            helps && run.thread().is_some() && run.state() == RunState::Paused
        };
        let loaded = |run: &Run| matches!(run.presence, Presence::Loaded(_));
        // Prefer a run that is already leaving.
        let next = self.runs.iter().filter(paused).map(|(id, run)| (loaded(run), id)).min();
        if let Some((true, id)) = next {
            self.put_to_rest(at, sessions, out, id);
        }
    }

    /// Opens replicas while there are too few tasks for the workers and there is memory. Replicas that have started come
    /// first, then the lowest.
    fn open_replicas(&mut self, at: &Moment, sessions: &mut Sessions, out: &mut Out, id: RunId) {
        let slots = sessions.slots_total() as usize;
        let wanted = (4 * slots).clamp(8, OPEN_REPLICAS.max(2 * slots));
        loop {
            let run = &self.runs[id];
            let Some(thread) = run.thread().filter(|_| run.hands_out() && run.replicas.open().len() < wanted) else {
                return;
            };
            let key = match run.replicas.waiting().first() {
                Some(key) => *key,
                None => match run.replicas.unbegun().first().copied() {
                    Some(key) if self.reserve_for(at, id, key) => key,
                    Some(_) => return self.wait_if_stuck(at, sessions, out, id),
                    None => return,
                },
            };
            let run = self.runs.adjust(id);
            run.set_phase(key, ReplicaPhase::Opening);
            let attempt = run.replicas.record(key).attempt;
            out.effects.push(Effect::Job { thread, job: Job::Open { replica: key, attempt } });
        }
    }

    /// Reserves memory for one more replica, if there is enough.
    fn reserve_for(&mut self, at: &Moment, id: RunId, key: ReplicaKey) -> bool {
        let most = at.settings.run_memory_bytes_max();
        let run = self.runs.adjust(id);
        let needed = run.needed_bytes(at.settings.plan_ahead_bytes(), Some(key));
        let more = needed.saturating_sub(run.reserved_bytes);
        if needed > most || self.budget.take(&run.submitter, more).is_err() {
            return false;
        }
        run.reserved_bytes += more;
        true
    }

    /// Handles a run that was extended and now needs more memory than it reserved. If no more memory is free and no open
    /// replica could finish, the run releases its memory and waits like other runs. Otherwise two such runs could wait for
    /// each other.
    fn wait_if_stuck(&mut self, at: &Moment, sessions: &mut Sessions, out: &mut Out, id: RunId) {
        let ahead_bytes = at.settings.plan_ahead_bytes();
        let run = &self.runs[id];
        if run.replicas.open().is_empty() && run.reserved_bytes < run.needed_bytes(ahead_bytes, None) {
            self.put_to_rest(at, sessions, out, id);
        }
    }

    /// Plans more pieces of rounds, one in each lane, if few tasks are ready and they take little memory. A piece that is being
    /// planned counts as if its tasks were ready.
    fn plan_more(&mut self, at: &Moment, slots: usize, out: &mut Out, id: RunId) {
        let ready = self.tasks.ready().get(&id).map_or(0, std::collections::BTreeSet::len);
        let many = READY_TASKS_MIN.max(8 * slots);
        let (ahead_bytes, bytes) = (at.settings.plan_ahead_bytes(), self.tasks.bytes(id));
        if ready >= many || bytes >= ahead_bytes {
            return;
        }
        let run = self.runs.adjust(id);
        let Some(thread) = run.thread().filter(|_| run.hands_out() && !run.replicas.partly_planned().is_empty()) else {
            return;
        };
        let add = |(tasks, bytes): (usize, u64), more: (usize, u64)| (tasks + more.0, bytes.saturating_add(more.1));
        let mut all = run.planning.replicas().map(|replica| run.piece(replica)).fold((ready, bytes), add);
        while all.0 < many
            && all.1 < ahead_bytes
            && let Some(replica) = run.planning.next(run.replicas.partly_planned())
        {
            all = add(all, run.piece(replica));
            run.planning.begin(replica);
            out.effects.push(Effect::Job { thread, job: Job::Plan(replica) });
        }
    }

    /// Handles the report of a run's thread.
    pub(super) fn on_report(
        &mut self,
        at: &Moment,
        fleet: &mut Fleet,
        out: &mut Out,
        thread: ThreadId,
        report: Report,
    ) {
        let Some(id) = self.runs.of_thread(thread) else {
            // The thread has ended in the meantime. Answer a request that waits for a copy.
            if let Report::Copy { request, .. } = report {
                out.effects.respond(request, Err(Rejection::unloaded()));
            }
            return;
        };
        match report {
            Report::Planned { replica, attempt, requested, round, total, planned, tasks, counted } => {
                let run = self.runs.change(id);
                if requested {
                    run.planning.end(replica);
                }
                run.count(counted);
                self.on_planned(id, (replica, attempt), round, (total, planned), tasks);
            }
            Report::Differs { replica, round, task, worker, output, known, recalled } => {
                let place = Place { task, run: id, replica, round };
                self.differs(out, &place, &worker, (output, known), recalled);
            }
            Report::Checked(checked) => self.on_checked(at, fleet, out, checked),
            Report::Recomputations { replica, asked, recomputations } => {
                self.go_on_recomputing(out, id, replica, asked, recomputations);
            }
            Report::Computed { replica } => {
                // A search without a barrier may end while workers still have tasks of it.
                self.tasks.close_replica(id, replica);
                self.runs.change(id).set_phase(replica, ReplicaPhase::Computed);
            }
            Report::Absorbed { replica, rounds, metric, failure, given } => {
                self.on_absorbed(out, id, replica, (rounds, metric, failure));
                let run = self.runs.adjust(id);
                if !run.checkpoints.will_have_after(given) {
                    run.checkpoints.note_round(at.now, at.settings.checkpoint_interval_ms);
                }
            }
            Report::Voided { replica, since } => self.begin_anew(at, out, id, replica, since),
            Report::Finished { replica, digest, sealed, exposed } => {
                if let Some(since) = self.convictions.void_since(self.runs[id].level, &exposed) {
                    return self.begin_anew(at, out, id, replica, since);
                }
                // A search without a barrier may end while workers still have tasks of it.
                self.tasks.close_replica(id, replica);
                let run = self.runs.change(id);
                run.set_phase(replica, ReplicaPhase::Finished { digest, sealed, writing: false });
                run.replicas.record(replica).exposed = exposed;
                run.write_finished(out, id, replica);
            }
            Report::Unusable { replica, why } => self.runs.change(id).on_unusable(out, replica, &why),
            Report::Checkpoint { number, sealed } => {
                self.runs.adjust(id).write_checkpoint(out, id, number, sealed);
            }
            Report::Copy { request, replica, sealed } => {
                // If the replica has finished in the meantime, it is stored elsewhere.
                let at = sealed.map(ReplicaAt::Bytes).or_else(|| self.runs[id].replica_at(replica));
                let response = at.map(Response::Replica).ok_or_else(Rejection::no_replica);
                out.effects.respond(request, response);
            }
            Report::Broken { why } => {
                let why = format!("the experiment's code panicked, which is a bug of this build: {why}");
                self.drop_thread(at, &mut fleet.sessions, out, id);
                self.fail_run(at, &mut fleet.sessions, out, id, why);
            }
        }
    }

    fn on_planned(
        &mut self,
        id: RunId,
        (replica, attempt): (ReplicaKey, u32),
        round: u64,
        (total, planned): (usize, usize),
        tasks: Vec<PlannedTask>,
    ) {
        let run = self.runs.change(id);
        let wanted = run.replicas.record(replica).attempt == attempt;
        let open = wanted && matches!(run.presence, Presence::Loaded(_)) && run.replicas.open().contains(&replica);
        // Ignore the plan if the replica was restarted or rests now, or if there was nothing to plan.
        if !open || total == 0 {
            return;
        }
        run.set_phase(replica, ReplicaPhase::Open { total, planned });
        let turn = run.turn_of(replica);
        tasks.into_iter().for_each(|task| self.tasks.add(id, replica, (round, turn), task));
    }

    fn on_absorbed(
        &mut self,
        out: &mut Out,
        id: RunId,
        key: ReplicaKey,
        (rounds, metric, failure): (u64, Option<f64>, Option<String>),
    ) {
        let run = self.runs.change(id);
        out.tally.rounds += 1;
        let record = run.replicas.record(key);
        (record.rounds, record.metric) = (rounds, metric);
        run.expected.absorbed(key.arm);
        if let Some(why) = failure {
            let arm = &run.prepared.config.arms[key.arm as usize].name;
            let sentence = format!("replica {} of arm {arm:?} {why}", key.index);
            let (about, line) = (run.about_replica(key), format!("run {}: {sentence}", run.name));
            run.notice(sentence);
            out.effects.log_about(Topic::Trouble, about, line);
        }
    }
}

impl Run {
    /// The stored state of a replica cannot be used.
    fn on_unusable(&mut self, out: &mut Out, replica: ReplicaKey, why: &str) {
        let sentence = format!("{why}; it is computed again");
        self.notice(sentence.clone());
        let (about, line) = (self.about_replica(replica), format!("run {}: {sentence}", self.name));
        let record = self.replicas.record(replica);
        (record.rounds, record.metric) = (0, None);
        out.effects.log_about(Topic::Trouble, about, line);
    }
}
