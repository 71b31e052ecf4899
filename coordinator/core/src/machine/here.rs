//! Tasks that the coordinator computes itself, once, before their run fails.
//!
//! A task that runs only this build's own code does not fail on a working machine. If it has failed, was lost or did not end
//! often enough to be convicted, then either the task is bad, or all workers that had it are: broken hosts, or hosts that
//! want the run to end. A separate process of the coordinator decides. If the process computes the task, its output counts
//! like a trusted worker's, and the failures count against the workers. If the process fails or dies too, the run fails.
//! There is only one such process at a time, because it takes a processor of the coordinator's host.
//!
//! A task that calls an external program, or runs a module, is not computed here, because its code is not this build's own.

use bytes::Bytes;
use evoxo_common::digest::Digest;

use super::{
    Effect, SessionId, TaskId, Topic,
    about::About,
    look::Moment,
    out::Out,
    own::Own,
    run::Run,
    runs::RunId,
    sessions::Sessions,
    tasks::OpenTask,
    work::{Outputs, Work},
};
use crate::{
    replicas::{Job, Sender},
    trust::{Holder, Worth},
};

/// The coordinator's name in places that name a worker.
const NAME: &str = "the coordinator itself";
/// The notice of a run whose tasks were computed here. The log says which tasks.
const NOTICE: &str =
    "tasks failed on workers, or workers were lost with them, so the coordinator has computed these tasks itself";

impl Work {
    /// Fails a task's run if the evidence convicts the task and the coordinator cannot compute it either.
    pub(super) fn judge(&mut self, at: &Moment, sessions: &mut Sessions, out: &mut Out, task: TaskId, last: &str) {
        // The task may have been computed in the meantime, or its run may have ended.
        let Some(open) = self.tasks.get(task) else { return };
        // The run may now wait for another worker, so its view changes.
        self.runs.change(open.run);
        if let Some(verdict) = self.look(at, sessions, &out.writes).verdict(open) {
            self.try_here(at, sessions, out, task, &format!("{verdict}{last}"));
        }
    }

    /// There is enough evidence against a task for its run to fail. First, the coordinator computes the task itself, if it
    /// may and has not tried yet.
    fn try_here(&mut self, at: &Moment, sessions: &mut Sessions, out: &mut Out, task: TaskId, verdict: &str) {
        let open = &self.tasks[task];
        let run = &self.runs[open.run];
        match &open.own {
            Own::Asked(_) => {}
            Own::Failed(why) => {
                let verdict = format!("{verdict}; the coordinator could not compute it either: {why}");
                self.fail_for_task(at, sessions, out, task, &verdict);
            }
            Own::No if !run.prepared.is_built_in(open.replica.arm) => {
                self.fail_for_task(at, sessions, out, task, verdict);
            }
            Own::No => {
                let hash = open.encoded.hash;
                let line =
                    format!("run {}: task {} {verdict}: the coordinator computes it itself", run.name, hash.short());
                out.effects.log_about(Topic::Trouble, about(run, open), line);
                self.tasks.set_own(task, Own::Asked(verdict.to_owned()));
                self.own.add(hash);
            }
        }
    }

    /// Starts the next task if none is being computed. Stops the process if its output is no longer needed.
    pub(super) fn compute_here(&mut self, at: &Moment, out: &mut Out) {
        if let Some(hash) = self.own.computing {
            if !self.own.ended && self.asked_here(hash).is_empty() {
                self.own.ended = true;
                out.effects.push(Effect::StopComputing);
            }
            return;
        }
        if at.stopping {
            return;
        }
        while let Some(hash) = self.own.waiting.pop_front() {
            let asked = self.asked_here(hash);
            // The run may have ended, or a worker may have computed the task.
            let Some(task) = asked.first() else { continue };
            let open = &self.tasks[*task];
            let run = &self.runs[open.run];
            let (arm, work) = (open.replica.arm, open.work);
            let each_us = run.expected.us(arm, work).filter(|_| run.expected.has_computed(arm, work));
            let limit_ms = at.settings.deadline_ms(each_us);
            let (task, output_bytes_max) =
                (open.encoded.clone(), run.output_bytes_max(open.replica, open.recomputation.is_some()));
            out.effects.push(Effect::ComputeHere { task, limit_ms, output_bytes_max });
            (self.own.computing, self.own.ended, self.own.since) = (Some(hash), false, at.now);
            return;
        }
    }

    /// The open tasks with these bytes that the coordinator is to compute.
    fn asked_here(&self, hash: Digest) -> Vec<TaskId> {
        let asked = |task: &TaskId| self.tasks[*task].own.is_asked();
        self.tasks.with_hash(hash).into_iter().filter(asked).collect()
    }

    /// What a run waits for, if the coordinator computes one of its tasks or is about to.
    pub(super) fn waits_for_here(&self, id: RunId) -> Option<String> {
        let hashes = self.own.computing.iter().chain(&self.own.waiting);
        let mut tasks = hashes.flat_map(|hash| self.asked_here(*hash)).map(|task| &self.tasks[task]);
        let open = tasks.find(|open| open.run == id)?;
        let Own::Asked(verdict) = &open.own else { panic!("a task listed as requested is {:?}", open.own) };
        Some(format!(
            "task {} {verdict}: the coordinator computes it itself, before the run fails",
            open.encoded.hash.short()
        ))
    }

    /// The process has ended.
    pub(super) fn on_computed_here(
        &mut self,
        at: &Moment,
        sessions: &mut Sessions,
        out: &mut Out,
        outcome: Result<Bytes, String>,
    ) {
        let hash = self.own.computing.take().expect("the process reports its one task, once");
        match outcome {
            Ok(output) => self.take_own_output(out, hash, &output),
            // A task may have started to need this output after the stop was requested, so try again.
            Err(_) if self.own.ended => self.own.waiting.push_back(hash),
            Err(why) => {
                for task in self.asked_here(hash) {
                    self.fail_here(at, sessions, out, task, &why);
                }
            }
        }
    }

    /// Gives this output to every open task with these bytes, like the output of a trusted worker.
    fn take_own_output(&mut self, out: &mut Out, hash: Digest, output: &Bytes) {
        let holder = Some(Holder { id: NAME.into(), trusted: true });
        let from = Sender { session: SessionId::OWN, worker: NAME.into(), asked: false, holder };
        let mut outputs = Outputs::new();
        for task in self.tasks.with_hash(hash) {
            let open = &self.tasks[task];
            let run = self.runs.change(open.run);
            let thread = run.thread_of_tasks();
            let line = format!("run {}: the coordinator has computed task {} itself", run.name, hash.short());
            out.effects.log_about(Topic::Progress, about(run, open), line);
            if !run.notices.iter().any(|notice| notice == NOTICE) {
                run.notice(NOTICE.to_owned());
            }
            let worth = if open.recomputation.is_some() { Worth::Compared } else { Worth::Taken };
            outputs.entry(thread).or_default().push(open.received(task, from.clone(), output.clone(), worth));
            self.tasks.begin_check(task, false);
        }
        for (thread, outputs) in outputs {
            out.effects.push(Effect::Job { thread, job: Job::Take(outputs) });
        }
    }

    /// The coordinator could not compute a task either. The run fails, unless the evidence against the task has become too
    /// weak in the meantime.
    pub(super) fn fail_here(&mut self, at: &Moment, sessions: &mut Sessions, out: &mut Out, task: TaskId, why: &str) {
        // The task may have been closed in the meantime.
        let Some(Own::Asked(verdict)) = self.tasks.get(task).map(|open| open.own.clone()) else { return };
        self.tasks.set_own(task, Own::Failed(why.to_owned()));
        if self.look(at, sessions, &out.writes).verdict(&self.tasks[task]).is_some() {
            self.try_here(at, sessions, out, task, &verdict);
        }
    }
}

fn about(run: &Run, open: &OpenTask) -> About {
    run.about_replica(open.replica).and_task(open.encoded.hash)
}
