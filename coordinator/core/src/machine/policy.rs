//! Questions about workers and tasks: which workers may compute a task, whose outputs and failures count, and when a run must
//! fail. The answers depend on how the run is verified. Nothing here changes anything or acts on an answer.

use evoxo_common::digest::Digest;

use super::{
    SessionId, TaskId,
    evidence::{Evidence, Jury},
    look::Look,
    record::Word,
    run::Run,
    runs::RunId,
    sessions::Session,
    tasks::OpenTask,
};
use crate::trust::Level;

/// How many claimed tasks are examined for a worker. The worker may have computed thousands of them itself.
const LOOKED_AT_MAX: usize = 1024;
/// The number of different failed tasks that ends a session.
const FAILED_TASKS_MAX: usize = 3;

impl Session {
    /// How many different failed tasks end the session. For a worker that was set aside before, one is enough.
    pub(super) fn failed_tasks_max(&self) -> usize {
        if self.on_trial { 1 } else { FAILED_TASKS_MAX }
    }
}

impl Look<'_> {
    /// Whether this worker's output of this task could count, or be compared.
    pub(super) fn may_compute(&self, session: &Session, run: &Run, task: &OpenTask) -> bool {
        if run.level == Level::Plain {
            return true;
        }
        let Some(holder) = &session.holder else { return false };
        if holder.trusted {
            return true;
        }
        let heard = task.claims.iter().any(|claim| claim.identity() == Some(&holder.id));
        match run.level {
            Level::Plain => true,
            Level::Verified | Level::Sampled { .. } => task.claims.is_empty(),
            // A trusted worker settles a dispute, if there is one.
            Level::Quorum if task.is_disputed() && self.has_trusted(run) => false,
            Level::Quorum => {
                let same = |other: &SessionId| self.sessions[*other].identity_number();
                !heard && task.copies.iter().all(|(other, _)| same(other) != Some(&holder.id))
            }
        }
    }

    /// Tasks of a run that this worker may compute and that no worker is computing. Tasks that wait for another output come
    /// first.
    pub(super) fn open_for<'a>(
        &'a self,
        session: &'a Session,
        id: RunId,
        run: &'a Run,
    ) -> impl Iterator<Item = TaskId> + 'a {
        // Only trusted workers compute claimed tasks at such a level.
        let closed = run.level.needs_trusted() && !session.is_trusted();
        let claimed = self.tasks.claimed().get(&id).filter(|_| !closed).into_iter().flatten().take(LOOKED_AT_MAX);
        let ready = self.tasks.ready().get(&id).into_iter().flatten();
        let may = move |task: &TaskId| run.level == Level::Plain || self.may_compute(session, run, &self.tasks[*task]);
        claimed.chain(ready).map(|(_, task)| *task).filter(move |task| may(task))
    }

    fn has_trusted(&self, run: &Run) -> bool {
        self.sessions.iter().any(|(_, session)| session.is_trusted() && session.serves(run) && session.cordon.is_none())
    }

    /// What a run waits for, if the workers that its level needs are missing.
    pub(super) fn missing_trust(&self, id: RunId, run: &Run) -> Option<String> {
        let trusted = || self.has_trusted(run);
        match run.level {
            Level::Verified if !trusted() => Some(
                "it waits for a trusted worker: `evoxo token create --role trusted-worker` makes a token for one"
                    .into(),
            ),
            Level::Sampled { .. } if !trusted() => Some(
                "no trusted worker is connected to recompute outputs, so it cannot finish: `evoxo token create --role \
                 trusted-worker` makes a token for one"
                    .into(),
            ),
            Level::Quorum => {
                let serving = |session: &Session| session.serves(run) && session.cordon.is_none();
                let mut of = self.sessions.iter().filter(|(_, session)| serving(session));
                let first = of.find_map(|(_, session)| session.identity_number());
                let second = of.any(|(_, session)| session.identity_number().is_some_and(|id| Some(id) != first));
                if !second && !trusted() {
                    return Some(
                        "it waits for workers with certificates of two identities, or for a trusted worker".into(),
                    );
                }
                let accused = |task: &TaskId| {
                    let open = &self.tasks[*task];
                    let accused = |evidence: &Evidence| evidence.accusation(self.each_failure_counts(open)).is_some();
                    open.run == id && open.evidence.as_deref().is_some_and(accused)
                };
                self.tasks.suspects().iter().any(accused).then(|| {
                    "a task fails, or its workers are lost, and workers of three identities must show that: it waits \
                     for another one"
                        .into()
                })
            }
            _ => None,
        }
    }

    /// Whether this worker could be assigned this task now or later.
    pub(super) fn could_compute(&self, session: &Session, run: &Run, task: &OpenTask) -> bool {
        session.serves(run) && !session.gets_nothing() && self.may_compute(session, run, task)
    }

    /// What a failure of this task on this worker would indicate.
    pub(super) fn word_of(&self, session: &Session, run: &Run, task: &OpenTask) -> Word {
        if session.on_trial {
            return Word::Failing;
        }
        let each_us = run.expected.us(task.replica.arm, task.work);
        session.records.word(&run.prepared, task.encoded.hash, each_us, self.now)
    }

    /// Whether every failure of a task counts. This is so once it has failed three times and no better worker could compute
    /// it. A better worker is one that computes tasks of this kind, or one that might: it was connected at the third failure,
    /// no other task of this kind has failed on it, and this task has neither failed on it nor been lost with it. Workers of
    /// the second kind are waited for only as long as for a task of unknown duration.
    pub(super) fn each_failure_counts(&self, task: &OpenTask) -> bool {
        let Some(evidence) = &task.evidence else { return false };
        let Some(third) = evidence.third_failure() else { return false };
        let run = &self.runs[task.run];
        let waited = self.now - third >= self.settings.deadline_ms_unknown;
        let better = |session: &Session| match self.word_of(session, run, task) {
            Word::Reliable => true,
            Word::Unknown => !waited && session.connected <= third && !evidence.names(&session.identity),
            Word::Failing => false,
        };
        !self.sessions.iter().any(|(_, session)| self.could_compute(session, run, task) && better(session))
    }

    /// Whether so many tasks of a run have failed on this worker, with no other worker having computed them yet, that it gets
    /// only suspects. Otherwise it would turn all tasks into suspects.
    pub(super) fn has_enough_of(&self, session: &Session, run: RunId) -> bool {
        let open = |(task, of): &(&Digest, &RunId)| **of == run && self.tasks.is_open(**task);
        let most = session.failed_tasks_max();
        session.failed.len() >= most && session.failed.iter().filter(open).count() >= most
    }

    /// The conclusion that convicts a task, as the end of a sentence, if there is enough evidence.
    pub(super) fn verdict(&self, open: &OpenTask) -> Option<String> {
        let jury = Jury::of(self.runs[open.run].level);
        open.evidence.as_ref()?.verdict(jury, self.each_failure_counts(open))
    }
}
