//! Tasks that fail, and workers on which they fail.
//!
//! A host may lack a library, memory or disk space, and then every task fails on it. Three such hosts must not end a run that
//! other workers compute. So a task's failure counts against the task only if it comes from a worker that has recently
//! computed tasks of its kind and on which no other task has failed since. If no such worker is connected, every failure
//! counts once something has failed on each connected worker.
//!
//! A worker on which tasks fail that others compute is set aside, longer each time. After that it gets one task at a time
//! until it has computed some ([`super::standing`]).

use evoxo_common::{digest::Digest, time::Millis};
use evoxo_proto::FAILURE_BYTES_MAX;

use super::{
    SessionId, Topic,
    about::About,
    cause::Cause,
    evidence::Failure,
    facts::Fact,
    fleet::Fleet,
    look::Moment,
    out::Out,
    record::Word,
    run::Run,
    runs::Runs,
    sessions::{Session, printable},
    work::Work,
};

impl Fleet {
    pub(super) fn take_failure(
        &mut self,
        at: &Moment,
        work: &mut Work,
        out: &mut Out,
        id: SessionId,
        hash: Digest,
        why: &str,
    ) {
        let why = printable(why, FAILURE_BYTES_MAX);
        let open = work.tasks.with_hash(hash);
        let Some(first) = open.first().map(|task| &work.tasks[*task]) else {
            return self.take_late_failure(at.now, work, out, id, (hash, &why));
        };
        let (session, run) = (&self.sessions[id], &work.runs[first.run]);
        let failure = Failure {
            worker: session.identity.clone(),
            at: at.now,
            counts: work.look(at, &self.sessions, &out.writes).word_of(session, run, first) == Word::Reliable,
            trusted: session.is_trusted(),
        };
        let (run_id, prepared, worker) = (first.run, run.prepared.clone(), session.name.clone());
        let About { run, arm, replica, .. } = run.about_replica(first.replica);
        let about = About { run, arm, replica, ..session.about(id) }.and_task(hash);
        self.sessions.change(id, |session| {
            session.failed.insert(hash, run_id);
            session.records.note_failed(&prepared, hash);
        });
        out.tally.failures += 1;
        let sentence = format!("task {} failed on worker {worker}: {why}", hash.short());
        out.effects.log_about(Topic::Trouble, about, sentence);
        let run = work.runs.change(run_id);
        run.note_failure(&failure.worker, &format!("a task failed on worker {worker}"), &why);
        for task in open {
            work.tasks.accuse(task, at.now, |evidence| evidence.add_failure(failure.clone()));
            out.facts.note(Fact::Accused { task, last: format!(", last on worker {worker}: {why}") });
        }
    }

    /// A task failed on a worker after another worker had computed it. So it counts against the worker.
    fn take_late_failure(
        &mut self,
        now: Millis,
        work: &mut Work,
        out: &mut Out,
        id: SessionId,
        (hash, why): (Digest, &str),
    ) {
        let computed = work.tasks.awaiting(hash).map(|first| (first.task.run, first.vouchers[0].session));
        work.tasks.forget_copy(hash);
        // The run may have ended.
        let Some((run_id, by)) = computed else { return };
        let session = &self.sessions[id];
        let (worker, identity, about) = (session.name.clone(), session.identity.clone(), session.about(id));
        out.tally.failures += 1;
        let short = hash.short();
        let sentence = format!("task {short} failed on worker {worker}, after another had computed it: {why}");
        out.effects.log_about(Topic::Trouble, about.and_task(hash), sentence);
        let run = work.runs.change(run_id);
        run.note_failure(&identity, &format!("a task failed on worker {worker}"), why);
        let prepared = run.prepared.clone();
        self.sessions.change(id, |session| {
            session.records.note_failed(&prepared, hash);
            session.failed_here_alone.insert(hash, run_id);
        });
        self.set_aside_if_failing(now, &work.runs, out, id, by);
    }

    /// A worker has computed a task that it was assigned.
    pub(super) fn note_computed(&mut self, now: Millis, out: &mut Out, id: SessionId, run: &Run) {
        let prepared = &run.prepared;
        // The session may have ended since it sent the output. The coordinator's own process has no session at all.
        let on_trial = self.sessions.change_if_there(id, |session| {
            session.records.note_computed(prepared, now);
            session.on_trial.then(|| (session.identity.clone(), session.name.clone(), session.about(id)))
        });
        let Some((identity, name, about)) = on_trial.flatten() else { return };
        if self.standings.passes(&identity) {
            self.sessions.change(id, |session| session.on_trial = false);
            let sentence =
                format!("worker {name} computes tasks again, and gets as many as other workers (session {id})");
            out.effects.log_about(Topic::Progress, about, sentence);
        }
    }

    /// A worker has computed a task that had failed. This counts against the other workers on which the task failed. A task
    /// that fails everywhere counts against no worker: the cause is in the task, and its run should end soon.
    pub(super) fn count_failures(&mut self, now: Millis, runs: &Runs, out: &mut Out, task: Digest, by: SessionId) {
        let failed = |(id, session): (SessionId, &Session)| session.failed.contains_key(&task).then_some(id);
        for id in self.sessions.iter().filter_map(failed).collect::<Vec<_>>() {
            self.sessions.change(id, |session| {
                let run = session.failed.remove(&task).filter(|_| id != by);
                session.failed_here_alone.extend(run.map(|run| (task, run)));
            });
            self.set_aside_if_failing(now, runs, out, id, by);
        }
    }

    /// Ends a session on which too many different tasks failed that others have computed, most recently `by`. The session
    /// ends only if another worker can take such tasks, or if the coordinator itself has computed the task. For a worker that
    /// was set aside before, one failed task is enough.
    fn set_aside_if_failing(&mut self, now: Millis, runs: &Runs, out: &mut Out, id: SessionId, by: SessionId) {
        let fails = |session: &Session| session.failed_here_alone.len() >= session.failed_tasks_max();
        let session = &self.sessions[id];
        if !fails(session) {
            return;
        }
        let failing: Vec<&Run> = session.failed_here_alone.values().map(|run| &runs[*run]).collect();
        let could =
            |other: &Session| !other.gets_nothing() && !fails(other) && failing.iter().any(|run| other.serves(run));
        let could_another = || self.sessions.iter().any(|(other_id, other)| other_id != id && could(other));
        if by != SessionId::OWN && !could_another() {
            return;
        }
        let (identity, again) = (session.identity.clone(), session.on_trial);
        // Another session with the same certificate or name may run on a working host.
        let computes = |(other_id, other): (SessionId, &Session)| {
            other_id != id && other.identity == identity && other.records.has_computed() && !fails(other)
        };
        let vouched = self.sessions.iter().any(computes);
        let pause_ms = self.standings.set_aside(&identity, now, vouched);
        out.facts.note_lost(id, Cause::FailsTasks { again, pause_ms });
    }
}
