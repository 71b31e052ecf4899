//! Results: accepted by task, not by lease. Late, repeated and re-offered ones are welcome.

use bytes::Bytes;
use evoxo_common::{digest::Digest, task};
use evoxo_proto::v1::{self, CloseKind, task_result::Outcome, to_worker};

use super::{Coordinator, SessionId, run::RunId, tasks::TaskId};

/// An accepted output of which other copies are still being computed.
pub(super) struct Settled {
    output: Digest,
    worker: String,
    run: RunId,
    copies: usize,
}

/// Times a task may fail before it is poison.
const FAILURES_MAX: usize = 3;
/// Bytes of a worker's sentence about a failure that are kept.
const SENTENCE_BYTES_MAX: usize = 4096;

impl Coordinator {
    pub(super) fn take_results(&mut self, id: SessionId, results: Vec<v1::TaskResult>) {
        let mut accepted = Vec::with_capacity(results.len());
        for result in results {
            let hash = Digest::from_slice(&result.hash);
            let (Some(hash), Some(outcome)) = (hash, result.outcome) else {
                return self.lose(id, "it sent a result without a task or an outcome", Some((CloseKind::Refused, 0)));
            };
            accepted.push(result.hash);
            self.credit(id, result.assignment, hash, result.elapsed_us);
            match outcome {
                Outcome::Output(bytes) => {
                    if let Err(nonsense) = self.take_output(id, hash, &bytes) {
                        return self.lose(id, &nonsense, Some((CloseKind::Refused, 0)));
                    }
                }
                Outcome::Failure(why) => self.take_failure(id, hash, &why),
            }
        }
        if self.sessions.contains_key(&id) {
            self.send(id, to_worker::Message::Accepted(v1::Accepted { hashes: accepted }));
        }
        self.set_aside_if_failing(id);
    }

    /// Takes a result off the assignment that asked for it.
    fn credit(&mut self, id: SessionId, number: u64, hash: Digest, elapsed_us: u64) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(assignment) = session.assignments.get_mut(&number) else { return };
        let Some(task) = assignment.remaining.remove(&hash) else { return };
        assignment.progress = self.now;
        let (run, each_us) = (assignment.run, assignment.each_us.unwrap_or(1));
        session.tasks_done += 1;
        if assignment.remaining.is_empty() {
            session.assignments.remove(&number);
            self.update_room(id);
        }
        if let Some(run) = self.runs.get_mut(&run) {
            run.assigned_us -= each_us;
            if let Some(open) = self.tasks.get(task) {
                run.learn_duration(open.kind, elapsed_us);
            }
        }
        self.tasks.drop_copy(task, (id, number), |_| {});
    }

    /// An output that is no answer at all is its worker's fault, not the task's.
    fn take_output(&mut self, id: SessionId, hash: Digest, bytes: &Bytes) -> Result<(), String> {
        let open = self.tasks.with_hash(hash);
        let Some(first) = open.first().and_then(|task| self.tasks.get(*task)) else {
            self.audit(id, hash, bytes);
            return Ok(());
        };
        let output = first
            .encoded
            .decode()
            .and_then(|task| task::decode_output(&task, bytes))
            .map_err(|why| format!("it answered task {} with nonsense: {why}", hash.short()))?;
        let (mut copies, run) = (0, first.run);
        for task in open {
            if let Some(task) = self.tasks.close(task) {
                copies += task.copies.len();
                self.deliver(&task, output.clone());
            }
        }
        if copies > 0 {
            let worker = self.worker_name(id);
            self.settled.insert(hash, Settled { output: Digest::of(bytes), worker, run, copies });
        }
        Ok(())
    }

    /// Another copy of a task that is closed: the standing audit of the fleet.
    fn audit(&mut self, id: SessionId, hash: Digest, bytes: &Bytes) {
        let Some(settled) = self.settled.get(&hash) else { return };
        if settled.output != Digest::of(bytes) {
            let (one, two, run) = (settled.worker.clone(), self.worker_name(id), settled.run);
            let sentence = format!("not deterministic: task {}, workers {one} and {two}", hash.short());
            self.warn(sentence.clone());
            if let Some(run) = self.runs.get_mut(&run) {
                run.notice(sentence);
            }
        }
        self.forget_copy(hash);
    }

    /// One copy fewer of a settled task will come.
    pub(super) fn forget_copy(&mut self, hash: Digest) {
        if let Some(settled) = self.settled.get_mut(&hash) {
            settled.copies -= 1;
            if settled.copies == 0 {
                self.settled.remove(&hash);
            }
        }
    }

    fn take_failure(&mut self, id: SessionId, hash: Digest, why: &str) {
        let why: String = why.chars().filter(|c| !c.is_control()).take(SENTENCE_BYTES_MAX).collect();
        let open = self.tasks.with_hash(hash);
        if open.is_empty() {
            return self.forget_copy(hash);
        }
        let worker = self.worker_name(id);
        self.warn(format!("task {} failed on worker {worker}: {why}", hash.short()));
        if let Some(session) = self.sessions.get_mut(&id) {
            session.failed.insert(hash);
        }
        for task in open {
            // The copy itself is gone already: what remains is to learn from it.
            self.tasks.drop_copy(task, (id, 0), |task| {
                task.suspect = true;
                task.failed_on.push(id);
            });
            if self.tasks.get(task).is_some_and(|task| task.failed_on.len() >= FAILURES_MAX) {
                self.poison(task, &format!("failed three times, last on worker {worker}: {why}"));
            }
        }
    }

    /// A task that cannot be computed fails its run, not the fleet.
    pub(super) fn poison(&mut self, task: TaskId, why: &str) {
        if let Some(task) = self.tasks.close(task) {
            self.fail_run(&task, why);
        }
    }

    fn worker_name(&self, id: SessionId) -> String {
        self.sessions.get(&id).map_or_else(|| format!("of session {id}"), |session| session.name.clone())
    }
}
