//! Tasks that fail, and workers that fail them.
//!
//! A host may lack a library, memory or space on its disk, and then fails whatever it gets. Three such hosts must not end a run that
//! others compute. So the failure of a task counts against it only if it comes from a worker that has lately computed tasks of its
//! kind and has failed no other since. If no such worker is connected, every failure counts, as soon as each worker that was there
//! has failed something.
//!
//! A worker on which tasks fail that others compute is set aside, longer each time, and then gets one task at a time until it has
//! computed some ([`super::standing`]).

use evoxo_common::digest::Digest;
use evoxo_proto::FAILURE_BYTES_MAX;

use super::{
    Coordinator, SessionId, Topic,
    about::About,
    evidence::Failure,
    losses::Cause,
    record::Word,
    run::Run,
    runs::RunId,
    sessions::{Session, printable},
    tasks::OpenTask,
};

/// The different tasks that may fail in one session.
const FAILED_TASKS_MAX: usize = 3;

impl Coordinator {
    pub(super) fn take_failure(&mut self, id: SessionId, hash: Digest, why: &str) {
        let why = printable(why, FAILURE_BYTES_MAX);
        let open = self.tasks.with_hash(hash);
        let first = open.first().and_then(|task| self.tasks.get(*task));
        let (Some(first), Some(session)) = (first, self.sessions.get(id)) else {
            return self.tasks.forget_copy(hash);
        };
        let Some(run) = self.runs.get(first.run) else { return };
        let failure = Failure {
            worker: session.identity.clone(),
            at: self.now,
            counts: self.word_of(session, run, first) == Word::Reliable,
            trusted: session.is_trusted(),
        };
        let (run_id, prepared, worker) = (first.run, run.prepared.clone(), session.name.clone());
        let About { run, arm, replica, .. } = run.about_replica(first.replica);
        let about = About { run, arm, replica, ..session.about(id) }.and_task(hash);
        self.sessions.change(id, |session| {
            session.failed.insert(hash, run_id);
            session.records.note_failed(&prepared, hash);
        });
        self.tally.failures += 1;
        let sentence = format!("task {} failed on worker {worker}: {why}", hash.short());
        self.effects.log_about(Topic::Trouble, about, sentence);
        if let Some(run) = self.runs.change(run_id) {
            run.note_failure(&failure.worker, &format!("a task failed on worker {worker}"), &why);
        }
        for task in open {
            self.tasks.accuse(task, self.now, |evidence| evidence.add_failure(failure.clone()));
            self.judge(task, &format!(", last on worker {worker}: {why}"));
        }
    }

    /// A worker has computed a task that it was given.
    pub(super) fn note_computed(&mut self, id: SessionId, run: RunId) {
        let Some(prepared) = self.runs.get(run).map(|run| run.prepared.clone()) else { return };
        let now = self.now;
        let on_trial = self.sessions.change(id, |session| {
            session.records.note_computed(&prepared, now);
            session.on_trial.then(|| (session.identity.clone(), session.name.clone(), session.about(id)))
        });
        let Some((identity, name, about)) = on_trial.flatten() else { return };
        if self.standings.passes(&identity) {
            self.sessions.change(id, |session| session.on_trial = false);
            let sentence = format!("worker {name} computes again, and gets as much as others (session {id})");
            self.effects.log_about(Topic::Progress, about, sentence);
        }
    }

    /// What a failure of this task on this worker says.
    pub(super) fn word_of(&self, session: &Session, run: &Run, task: &OpenTask) -> Word {
        if session.on_trial {
            return Word::Failing;
        }
        let each_us = run.expected_us(task.replica.arm, task.work);
        session.records.word(&run.prepared, task.encoded.hash, each_us, self.now)
    }

    /// Whether every failure of a task counts: three are there, and none of the workers that could compute it computes tasks of its
    /// kind, or was there at the third failure and has failed nothing yet. Such a worker is waited for as for any task.
    pub(super) fn each_failure_counts(&self, task: &OpenTask) -> bool {
        let Some(evidence) = &task.evidence else { return false };
        let (Some(third), Some(run)) = (evidence.third_failure(), self.runs.get(task.run)) else { return false };
        let waited = self.now - third >= self.settings.deadline_ms_unknown;
        let better = |session: &Session| match self.word_of(session, run, task) {
            Word::Reliable => true,
            Word::Unknown => !waited && session.connected <= third && !evidence.names(&session.identity),
            Word::Failing => false,
        };
        !self.sessions.iter().any(|(_, session)| self.could_compute(session, run, task) && better(session))
    }

    /// Whether a worker could be given this task now or later.
    pub(super) fn could_compute(&self, session: &Session, run: &Run, task: &OpenTask) -> bool {
        session.computes(&run.prepared) && !session.draining && self.may_compute(session, run, task)
    }

    /// A worker has computed a task that had failed: that counts against the others on which it did. What fails everywhere counts
    /// against nobody: the cause is in the tasks, and their run should end soon.
    pub(super) fn count_failures(&mut self, task: Digest, by: SessionId) {
        let failed = |(id, session): (SessionId, &Session)| session.failed.contains_key(&task).then_some(id);
        for id in self.sessions.iter().filter_map(failed).collect::<Vec<_>>() {
            self.sessions.change(id, |session| {
                let run = session.failed.remove(&task).filter(|_| id != by);
                session.failed_here_alone.extend(run.map(|run| (task, run)));
            });
            self.set_aside_if_failing(id, by);
        }
    }

    /// Ends a session on which too many different tasks failed that others have computed, the last of them `by`, if there is another
    /// worker for them, or the coordinator itself has computed it. One is too many for a worker that was set aside before.
    fn set_aside_if_failing(&mut self, id: SessionId, by: SessionId) {
        let fails = |session: &Session| {
            let most = if session.on_trial { 1 } else { FAILED_TASKS_MAX };
            session.failed_here_alone.len() >= most
        };
        let Some(session) = self.sessions.get(id).filter(|session| fails(session)) else { return };
        let runs: Vec<&Run> = session.failed_here_alone.values().filter_map(|run| self.runs.get(*run)).collect();
        let could =
            |other: &Session| !other.draining && !fails(other) && runs.iter().any(|run| other.computes(&run.prepared));
        let could_another = || self.sessions.iter().any(|(other_id, other)| other_id != id && could(other));
        if by != SessionId::OWN && !could_another() {
            return;
        }
        let (identity, again) = (session.identity.clone(), session.on_trial);
        // Another session of the same certificate or name may be on a host in good order.
        let computes = |(other_id, other): (SessionId, &Session)| {
            other_id != id && other.identity == identity && other.records.has_computed() && !fails(other)
        };
        let vouched = self.sessions.iter().any(computes);
        let pause_ms = self.standings.set_aside(&identity, self.now, vouched);
        self.lose(id, Cause::FailsTasks { again, pause_ms });
    }

    /// Whether so many tasks of a run have failed on a worker, of which nobody knows yet whether others can compute them, that it
    /// gets none but suspects: else it would make suspects of all.
    pub(super) fn has_enough_of(&self, session: &Session, run: RunId) -> bool {
        let open = |(task, of): &(&Digest, &RunId)| **of == run && self.tasks.is_open(**task);
        let most = if session.on_trial { 1 } else { FAILED_TASKS_MAX };
        session.failed.len() >= most && session.failed.iter().filter(open).count() >= most
    }
}
