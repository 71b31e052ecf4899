//! Runs that stop: they fail, are blocked, are put to rest or complete. They leave memory once everything of them is stored.

use evoxo_proto::v1::RunState;

use super::{
    Effect, TaskId, Topic, Write,
    facts::Fact,
    look::Moment,
    out::Out,
    run::{Blocked, Presence},
    runs::RunId,
    sessions::Sessions,
    tasks::{OpenTask, Why},
    work::Work,
};
use crate::replicas::ReplicaKey;

impl Work {
    /// Fails a run because of a task.
    pub(super) fn fail_for_task(
        &mut self,
        at: &Moment,
        sessions: &mut Sessions,
        out: &mut Out,
        task: TaskId,
        verdict: &str,
    ) {
        let open = &self.tasks[task];
        let (id, hash, bytes) = (open.run, open.encoded.hash, open.encoded.whole());
        let run = &self.runs[id];
        let (kind, work) = (run.prepared.config.kind.name, open.work);
        let arm = &run.prepared.config.arms[open.replica.arm as usize].name;
        let sentence = format!(
            "a task {kind}/{work} of replica {} of arm {arm:?} {verdict}; it is saved in the store as \
             runs/{}/poison/{hash}.task: see `evoxo-worker run-task --help`",
            open.replica.index, run.name
        );
        out.write_until_stored(id, &run.name, Write::Poison { hash, bytes });
        self.fail_run(at, sessions, out, id, sentence);
    }

    /// Records that a run has failed. It stops until a client resumes it.
    pub(super) fn fail_run(&mut self, at: &Moment, sessions: &mut Sessions, out: &mut Out, id: RunId, why: String) {
        let run = self.runs.change(id);
        let (about, line) = (run.about(), format!("run {} failed: {why}", run.name));
        out.tally.runs_failed += 1;
        run.orders.fail(why);
        out.effects.log_about(Topic::RunFailed, about, line);
        run.write_failure(out, id);
        self.put_to_rest(at, sessions, out, id);
    }

    /// Records that this coordinator may not advance a run.
    pub(super) fn block(&mut self, at: &Moment, sessions: &mut Sessions, out: &mut Out, id: RunId, blocked: Blocked) {
        let run = self.runs.change(id);
        let (about, line) = (run.about(), format!("run {} is blocked: {}", run.name, blocked.why()));
        run.notice(blocked.why().to_owned());
        run.blocked = Some(blocked);
        out.effects.log_about(Topic::Trouble, about, line);
        // Seal no states, because they cannot be written.
        self.drop_thread(at, sessions, out, id);
    }

    /// Closes a run's tasks. Its thread ends once the last checkpoint is stored.
    pub(super) fn put_to_rest(&mut self, at: &Moment, sessions: &mut Sessions, out: &mut Out, id: RunId) {
        self.close_tasks(sessions, id);
        let run = self.runs.change(id);
        run.rest_replicas();
        // Without a thread there is nothing to save, and a run that is already leaving continues to leave.
        let Presence::Loaded(thread) = run.presence else { return };
        run.presence = Presence::Leaving(thread);
        run.save(at, out, id);
        self.leave_if_saved(at, sessions, out, id);
    }

    fn close_tasks(&mut self, sessions: &mut Sessions, id: RunId) {
        let differs = |(_, task): (TaskId, &OpenTask)| {
            (task.run == id && task.recomputation == Some(Why::Differs)).then_some(task.replica)
        };
        let to_recompute: Vec<ReplicaKey> = self.tasks.iter().filter_map(differs).collect();
        self.tasks.close_run(id);
        sessions.forget_failures(id);
        let run = self.runs.adjust(id);
        run.failing.clear();
        run.recomputations.rest(to_recompute);
    }

    /// Ends the thread of a run that is being unloaded, once everything of the run is saved.
    pub(super) fn leave_if_saved(&mut self, at: &Moment, sessions: &mut Sessions, out: &mut Out, id: RunId) {
        let run = &self.runs[id];
        let unsaved = run.checkpoints.dirty || run.checkpoints.writing || run.replicas.are_unsaved();
        if matches!(run.presence, Presence::Leaving(_)) && !unsaved {
            self.drop_thread(at, sessions, out, id);
        }
    }

    /// Ends a run's thread and frees its replicas.
    pub(super) fn drop_thread(&mut self, at: &Moment, sessions: &mut Sessions, out: &mut Out, id: RunId) {
        self.close_tasks(sessions, id);
        let run = self.runs.change(id);
        run.rest_replicas();
        let thread = run.thread();
        run.presence = Presence::Resting;
        (run.checkpoints.dirty, run.checkpoints.writing, run.checkpoints.unsaved_since) = (false, false, None);
        if let Some(thread) = thread {
            self.runs.end_thread(thread);
            out.effects.push(Effect::Drop { thread });
        }
        self.release(at, id);
    }

    /// Releases memory that a run no longer needs.
    pub(super) fn release(&mut self, at: &Moment, id: RunId) {
        let ahead_bytes = at.settings.plan_ahead_bytes();
        let run = self.runs.adjust(id);
        let in_memory = run.thread().is_some() || run.presence == Presence::Loading;
        let needed = if in_memory { run.needed_bytes(ahead_bytes, None) } else { 0 };
        let over = run.reserved_bytes.saturating_sub(needed);
        if over > 0 {
            run.reserved_bytes -= over;
            self.budget.give_back(&run.submitter, over);
            self.runs.move_all();
        }
    }

    /// Ends a run once everything is stored and no output is still to be recomputed.
    pub(super) fn end_if_complete(&mut self, at: &Moment, sessions: &mut Sessions, out: &mut Out, id: RunId) {
        let run = &self.runs[id];
        if !run.is_complete() {
            return;
        }
        let line = match run.state() {
            RunState::InDoubt => {
                format!("run {} is computed, but in doubt: copies of tasks had different outputs", run.name)
            }
            _ => {
                let digest = run.digest.map(|digest| digest.to_string()).unwrap_or_default();
                let took_s = (at.now - run.since) as f64 / 1000.0;
                format!(
                    "run {} is finished, {took_s:.1} s after its last order or the coordinator's start, digest {digest}",
                    run.name
                )
            }
        };
        out.effects.log_about(Topic::Progress, run.about(), line);
        self.drop_thread(at, sessions, out, id);
        let run = self.runs.adjust(id);
        run.checkpoint_bytes = 0;
        out.write_until_stored(id, &run.name, Write::DropCheckpoints);
        out.facts.note(Fact::Turned);
    }
}
