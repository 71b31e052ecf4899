//! Results of tasks. Each counts once, for the assignment that requested it. Outputs are accepted from every worker, even if
//! they are late or come from another session. The run's thread checks them and keeps the valid ones.

use bytes::Bytes;
use evoxo_common::{digest::Digest, time::Millis};
use evoxo_proto::{
    FAILURE_BYTES_MAX, RESULTS_MAX,
    v1::{self, task_result::Outcome, to_worker},
};

use super::{
    AttemptEnd, Effect, SessionId, TaskId, Topic, Write,
    cause::Cause,
    fleet::Fleet,
    look::Moment,
    out::Out,
    run::DOUBTS_MAX,
    runs::{RunId, Runs},
    sessions::{Credit, Session, printable},
    tasks::{Claim, Why},
    verification::Place,
    work::{Outputs, Work},
};
use crate::{
    replicas::{Checked, Job, Sender},
    saved::seal_doubt,
    trust::{Level, Worth},
};

/// In a doubt, the name of the worker that computed an output which was recalled.
const RECALLED: &str = "recalled";

impl Work {
    pub(super) fn take_results(
        &mut self,
        at: &Moment,
        fleet: &mut Fleet,
        out: &mut Out,
        id: SessionId,
        results: Vec<v1::TaskResult>,
    ) {
        if results.len() > RESULTS_MAX {
            let why = format!("it sent {} results in one message, more than {RESULTS_MAX}", results.len());
            return out.facts.note_lost(id, Cause::InvalidMessage(why));
        }
        let mut accepted = Vec::with_capacity(results.len());
        let mut outputs = Outputs::new();
        let mut invalid = None;
        for result in results {
            let hash = Digest::from_slice(&result.hash);
            let (Some(hash), Some(outcome)) = (hash, result.outcome) else {
                invalid = Some("it sent a result without a task or an outcome".to_owned());
                break;
            };
            // Copy the hash: a received slice keeps its whole message in memory.
            accepted.push(Bytes::copy_from_slice(&hash.0));
            let credit = fleet.sessions.credit(id, result.assignment, hash, at.now);
            let asked = credit.is_some();
            // The answer to an assignment of an earlier session of this worker.
            let owed = result.assignment == 0 && fleet.sessions.take_owed(id, hash);
            if let Some(credit) = &credit {
                // The time to try a program does not count as a duration of the task.
                let tried = !matches!(outcome, Outcome::OtherProgram(_));
                let computed = matches!(outcome, Outcome::Output(_));
                let took = tried.then_some((result.elapsed_us, computed));
                self.count(at.now, out, (id, result.assignment), credit, took);
                let (end, says) = self.end_of_attempt(hash, credit.further, (&outcome, result.timed_out));
                fleet.note_end_of(at.now, out, id, end, says);
            }
            match outcome {
                Outcome::Output(bytes) => {
                    let from = (id, &fleet.sessions[id]);
                    if let Err(why) = self.take_output(from, hash, &bytes, (asked, owed), &mut outputs) {
                        invalid = Some(why);
                        break;
                    }
                }
                Outcome::Failure(why) if asked => fleet.take_failure(at, self, out, id, hash, &why),
                Outcome::OtherProgram(why) => {
                    let taken =
                        credit.map_or(Ok(()), |it| fleet.take_other_program(&mut self.runs, out, id, it.run, &why));
                    if let Err(why) = taken {
                        invalid = Some(why);
                        break;
                    }
                }
                // Ignore a failure that no assignment requested.
                Outcome::Failure(_) => {}
            }
        }
        for (thread, outputs) in outputs {
            out.effects.push(Effect::Job { thread, job: Job::Take(outputs) });
        }
        if let Some(why) = invalid {
            return out.facts.note_lost(id, Cause::InvalidMessage(why));
        }
        out.effects.send(id, to_worker::Message::Accepted(v1::Accepted { hashes: accepted }));
    }

    /// How an attempt ended, and whether that says something about the worker. `further` says whether another worker already
    /// had the task. `outcome` comes with whether the worker stopped the task because it took too long.
    fn end_of_attempt(&self, hash: Digest, further: bool, outcome: (&Outcome, bool)) -> (AttemptEnd, bool) {
        let end = match outcome {
            (Outcome::Output(_), _) if self.tasks.is_open(hash) => AttemptEnd::Done,
            (Outcome::Output(_), _) => AttemptEnd::Late,
            (Outcome::Failure(_), true) => AttemptEnd::TimedOut,
            (Outcome::Failure(_), false) => AttemptEnd::Failed,
            (Outcome::OtherProgram(_), _) => AttemptEnd::Refused,
        };
        // An output is late through no fault of the worker if its run has ended, or if it is a further copy.
        let says = end != AttemptEnd::Late || (!further && self.tasks.awaiting(hash).is_some());
        (end, says)
    }

    /// Counts a result of a task in this assignment of the worker. If the task was tried, `took` has the duration and whether the
    /// task was computed. The worker's clock is trusted only up to the time that passed here.
    fn count(
        &mut self,
        now: Millis,
        out: &mut Out,
        assignment: (SessionId, u64),
        credit: &Credit,
        took: Option<(u64, bool)>,
    ) {
        let waited_us = (credit.waited_ms + 1).saturating_mul(1000);
        let took = took.map(|(elapsed_us, computed)| (elapsed_us.min(waited_us), computed));
        self.rules.back(credit.run, credit.counted_us, took.map_or(0, |(took_us, _)| took_us));
        if let Some(run) = self.runs.adjust_if_there(credit.run)
            && let Some((took_us, computed)) = took
        {
            run.expected.learn(credit.arm, credit.work, took_us, computed);
            run.spent.computing_us = run.spent.computing_us.saturating_add(took_us);
            out.tally.task.note_us(took_us);
        }
        self.held.back(credit.run, credit.last, now);
        if credit.last {
            out.tally.assignment.note_us(credit.waited_ms.saturating_mul(1000));
        }
        self.tasks.drop_copy(credit.task, assignment);
    }

    /// Passes an output on to be checked. Fails if the output cannot be valid.
    fn take_output(
        &mut self,
        (id, session): (SessionId, &Session),
        hash: Digest,
        bytes: &Bytes,
        (asked_now, owed): (bool, bool),
        outputs: &mut Outputs,
    ) -> Result<(), String> {
        let asked = asked_now || owed;
        let from = Sender { session: id, worker: session.name.clone(), asked, holder: session.holder.clone() };
        // Only trusted workers recompute outputs.
        let trusted = asked && session.is_trusted();
        let may = |task: &TaskId| trusted || self.tasks[*task].recomputation.is_none();
        let open: Vec<TaskId> = self.tasks.with_hash(hash).into_iter().filter(may).collect();
        if open.is_empty() {
            // Another copy of a closed task shows whether the first output was correct. Only copies assigned to the current
            // session are still awaited.
            let Some(awaiting) = self.tasks.awaiting(hash).filter(|_| asked_now) else { return Ok(()) };
            let thread = self.runs[awaiting.task.run].thread_of_tasks();
            // The task is closed, so the output has no open task's id.
            let received = awaiting.task.received(TaskId::NONE, from, bytes.clone(), Worth::Compared);
            outputs.entry(thread).or_default().push(received);
            return Ok(());
        }
        for task in open {
            let found = &self.tasks[task];
            let run = &self.runs[found.run];
            let most = run.output_bytes_max(found.replica, found.recomputation.is_some());
            if bytes.len() as u64 > most {
                let (hash, length) = (hash.short(), bytes.len());
                return Err(format!("its output of task {hash} has {length} bytes, more than {most}"));
            }
            // Outputs that were not requested must not pile up in front of the run's thread.
            if !asked && found.is_being_checked() {
                continue;
            }
            let worth = if found.recomputation.is_some() {
                Some(Worth::Compared)
            } else {
                Worth::of(run.level, from.holder.as_ref(), asked)
            };
            // If the run does not trust workers, ignore outputs of workers that were not assigned the task.
            let Some(worth) = worth else { continue };
            let thread = run.thread_of_tasks();
            outputs.entry(thread).or_default().push(found.received(task, from.clone(), bytes.clone(), worth));
            self.tasks.begin_check(task, asked);
        }
        Ok(())
    }

    /// The run's thread has checked an output.
    pub(super) fn on_checked(
        &mut self,
        at: &Moment,
        fleet: &mut Fleet,
        out: &mut Out,
        Checked { task, hash, from, found, taken, drawn }: Checked,
    ) {
        let from = &from;
        let computed = |fleet: &mut Fleet, out: &mut Out, runs: &Runs, run: RunId| {
            fleet.note_computed(at.now, out, from.session, &runs[run]);
        };
        let asked = from.asked;
        let open = self.tasks.get(task).map(Place::of);
        let recomputations = self.tasks.get(task).and_then(|task| task.recomputation);
        let failed = self.tasks.get(task).is_some_and(|task| task.evidence.is_some());
        if let (Ok(output), Some(place), Some(why)) = (&found, &open, recomputations) {
            if asked {
                self.tasks.forget_copy(hash);
            }
            computed(fleet, out, &self.runs, place.run);
            return self.end_recomputation(at.now, out, (task, why), place, *output);
        }
        match (found, open) {
            (Ok(output), Some(place)) if taken => {
                let claim = || vec![Claim { from: from.clone(), output }];
                let recomputation =
                    self.tasks.get(task).filter(|_| drawn).map(|open| open.recomputation(Why::Drawn, claim()));
                let claims = self.tasks.close(task, output, from);
                if let Some(recomputation) = recomputation {
                    self.begin_recomputation(recomputation);
                }
                out.tally.tasks_done += 1;
                self.runs.change(place.run).tasks_done += 1;
                self.settle(at.now, out, &place, (output, from), claims);
                if asked {
                    computed(fleet, out, &self.runs, place.run);
                }
                if failed {
                    fleet.count_failures(at.now, &self.runs, out, hash, from.session);
                }
            }
            (Ok(output), Some(place)) => {
                self.tasks.end_check(task, asked);
                if asked {
                    computed(fleet, out, &self.runs, place.run);
                }
                // Earlier outputs of a convicted identity do not count.
                let convicted = from.holder.as_ref().is_some_and(|holder| self.convictions.contains(&holder.id));
                if !convicted {
                    self.tasks.claim(task, Claim { from: from.clone(), output });
                }
            }
            (Ok(output), None) if asked => {
                let same = self.tasks.awaiting(hash).filter(|first| first.output == output);
                if let Some(run) = same.map(|first| first.task.run) {
                    computed(fleet, out, &self.runs, run);
                }
                self.compare(at.now, out, hash, from, output);
                self.tasks.forget_copy(hash);
            }
            (Ok(_), None) => {}
            (Err(why), open) => {
                match open {
                    Some(_) => self.tasks.end_check(task, asked),
                    None if asked => self.tasks.forget_copy(hash),
                    None => {}
                }
                let why = format!("its output of task {} is invalid: {}", hash.short(), why.0);
                if fleet.sessions.get(from.session).is_some() {
                    out.tally.invalid_outputs += 1;
                    fleet.note_end_of(at.now, out, from.session, AttemptEnd::Refused, true);
                }
                match from.session {
                    SessionId::OWN => self.fail_here(at, &mut fleet.sessions, out, task, &why),
                    session => out.facts.note_lost(session, Cause::InvalidMessage(why)),
                }
            }
        }
    }

    /// Two workers had the same task, so their outputs must be equal.
    fn compare(&mut self, now: Millis, out: &mut Out, hash: Digest, from: &Sender, output: Digest) {
        let Some(first) = self.tasks.awaiting(hash).filter(|first| first.output != output) else { return };
        let vouchers = first.vouchers.clone();
        let right = &vouchers[0];
        let trusted = |sender: &Sender| sender.holder.as_ref().is_some_and(|holder| holder.trusted);
        let level = self.runs[first.task.run].level;
        let (place, taken) = (Place::of(&first.task), first.output);
        let verified = level != Level::Plain;
        if verified && !trusted(from) && (trusted(right) || level == Level::Quorum) {
            return self.contradict(now, out, &place, from, right);
        }
        if matches!(level, Level::Sampled { .. }) && !trusted(from) && !trusted(right) {
            // One of the two is wrong, so recompute the output even if it was not drawn.
            let claims = [(right, taken), (from, output)].map(|(from, output)| Claim { from: from.clone(), output });
            let recomputation = first.task.recomputation(Why::Differs, claims.into());
            return self.recompute_difference(out, recomputation);
        }
        match verified && trusted(from) && !vouchers.iter().any(trusted) {
            // Once all workers that vouched for the output are convicted, the states that absorbed it are void.
            true => vouchers.iter().for_each(|liar| self.convict(now, out, &place, liar)),
            false => {
                out.effects.push(Effect::ForgetRecalled);
                self.doubt(out, &place, (&right.worker, taken), (&from.worker, output));
            }
        }
    }

    /// A part of a task had another output than before. If earlier outputs were recalled, the run may rest on a wrong one.
    pub(super) fn differs(
        &mut self,
        out: &mut Out,
        place: &Place,
        worker: &str,
        (output, known): (Digest, Digest),
        recalled: bool,
    ) {
        if recalled {
            // The thread has forgotten everything that could be recalled.
            return self.doubt(out, place, (RECALLED, known), (worker, output));
        }
        let run = self.runs.change(place.run);
        let sentence = format!(
            "two evaluations of the same candidate differ (the later one in task {} of worker {worker}), so all evaluations are \
             computed: if they depend on a seed, declare that the problem is noisy",
            place.task.short()
        );
        run.notice(sentence.clone());
        let about = run.about_replica(place.replica).and_task(place.task);
        let line = format!("run {}: {sentence}", run.name);
        out.effects.log_about(Topic::Trouble, about, line);
    }

    /// Records that two workers had different outputs of a task, of which the first was absorbed.
    fn doubt(&mut self, out: &mut Out, place: &Place, first: (&str, Digest), other: (&str, Digest)) {
        let (replica, id) = (place.replica, place.run);
        let mut doubt = v1::Doubt {
            task: place.task.to_string(),
            arm: String::new(),
            replica: replica.index,
            round: place.round,
            worker: first.0.to_owned(),
            other_worker: other.0.to_owned(),
            output: first.1.to_string(),
            other_output: other.1.to_string(),
        };
        let run = self.runs.change(id);
        doubt.arm.clone_from(&run.prepared.config.arms[replica.arm as usize].name);
        let sentence = format!(
            "not deterministic: task {}, workers {} and {} had different outputs",
            place.task.short(),
            doubt.worker,
            doubt.other_worker
        );
        run.notice(sentence.clone());
        let (about, line) = (run.about_replica(replica).and_task(place.task), format!("run {}: {sentence}", run.name));
        out.tally.doubts += 1;
        out.effects.log_about(Topic::Doubt, about, line);
        if run.doubts.len() < DOUBTS_MAX {
            run.doubt_number += 1;
            let write = Write::Doubt { number: run.doubt_number, bytes: seal_doubt(&doubt) };
            run.doubts.push(doubt);
            out.write_until_stored(id, &run.name, write);
        }
    }
}

impl Fleet {
    /// A worker's program differs from the run's program, so other workers compute the run's tasks.
    fn take_other_program(
        &mut self,
        runs: &mut Runs,
        out: &mut Out,
        id: SessionId,
        run: RunId,
        why: &str,
    ) -> Result<(), String> {
        // An assignment can outlive its run.
        let Some(run) = runs.change_if_there(run) else { return Ok(()) };
        let session = &self.sessions[id];
        if run.prepared.programs.is_empty() {
            return Err("it reported that its program differs, but the run calls no program".into());
        }
        let (worker, identity, why) = (&session.name, session.identity.clone(), printable(why, FAILURE_BYTES_MAX));
        let sentence = format!("worker {worker} gets no tasks of run {}: {why}", run.name);
        let (about, what) = (run.about(), format!("worker {worker} gets no tasks"));
        if self.sessions.disown_programs(id, &run.prepared) {
            run.note_failure(&identity, &what, &why);
            out.effects.log_about(Topic::Trouble, about, sentence);
        }
        Ok(())
    }
}
