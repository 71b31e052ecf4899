//! Lost workers: one function handles every loss, whatever the cause.

use super::{
    AttemptEnd, SessionId, TaskId, Topic,
    cause::{Cause, SET_ASIDE_MS},
    evidence::Loss,
    facts::Fact,
    fleet::Fleet,
    look::Moment,
    out::Out,
    sessions::Session,
    standing::End,
    work::Work,
};
use crate::trust::Level;

impl Fleet {
    /// Handles the loss of a worker, whatever the cause. The worker's copies of tasks are dropped.
    pub(super) fn lose(&mut self, at: &Moment, work: &mut Work, out: &mut Out, id: SessionId, cause: Cause) {
        // The loss may be reported twice, by two facts, or by a fact and by the end of the stream.
        let Some(session) = self.sessions.remove(id) else { return };
        let (name, tasks, sentence) = (&session.name, session.tasks_assigned, cause.sentence());
        let goes_on = matches!(cause, Cause::Replaced | Cause::Expired);
        let as_it_should = at.stopping || (session.draining && tasks == 0) || goes_on;
        let (topic, sentence) = match as_it_should {
            true => (Topic::Progress, format!("worker {name} left (session {id})")),
            false => {
                let lost = format!("worker {name} is lost with {tasks} tasks: {sentence} (session {id})");
                (Topic::WorkerLost, lost)
            }
        };
        out.effects.log_about(topic, session.about(id), sentence);
        match as_it_should {
            true => out.tally.left += 1,
            false => {
                *out.tally.lost.entry(cause.label()).or_default() += 1;
                let pause_ms = cause.close().filter(|(_, ms)| *ms >= SET_ASIDE_MS).map_or(0, |(_, ms)| ms.into());
                self.lost.add((at.now, at.now + pause_ms), id, &session, cause.sentence());
            }
        }
        if session.draining && tasks == 0 {
            self.leaving.remove(session.process);
        }
        if let Some((kind, retry_after_ms)) = cause.close() {
            let reason = format!("session ended: {}", cause.sentence());
            out.effects.close(id, kind, reason, retry_after_ms);
        }
        let on_purpose = as_it_should || session.draining || cause != Cause::ConnectionEnded;
        let end = if on_purpose {
            End::OnPurpose
        } else if session.has_proved_itself() {
            End::Proven
        } else {
            End::Early
        };
        for identity in session.identities() {
            self.standings.left(identity, session.connected, at.now, end);
        }
        if matches!(cause, Cause::ConnectionEnded | Cause::Silent(_)) && !session.draining && tasks > 0 {
            self.standings.note_lost(session.process);
        }
        if cause.accuses() || goes_on {
            // The process may reconnect and bring the answers. If the run trusts every worker, they count anyway.
            let verified = |task: TaskId| work.runs[work.tasks[task].run].level != Level::Plain;
            self.owed.keep(&session, |hash| work.tasks.with_hash(hash).into_iter().any(verified));
        }
        self.take_tasks_from(at, work, out, (id, session), &cause);
        work.runs.change_all();
    }

    /// Takes the tasks away from a lost worker, and records the loss as evidence against them.
    fn take_tasks_from(
        &mut self,
        at: &Moment,
        work: &mut Work,
        out: &mut Out,
        (id, mut session): (SessionId, Session),
        cause: &Cause,
    ) {
        let assignments = std::mem::take(&mut session.assignments);
        let mut says = cause.accuses() && !session.draining && !at.stopping;
        for (place, (number, assignment)) in assignments.into_iter().enumerate() {
            work.rules.back(assignment.run, assignment.expected_us(), 0);
            work.held.lost(assignment.run);
            let running = place < session.slots as usize;
            let end = if *cause == Cause::Overdue && running { AttemptEnd::TimedOut } else { AttemptEnd::Lost };
            // A worker may lose thousands of tasks at once, and only the first says something about it.
            let first = std::mem::take(&mut says);
            self.note_end(out, &session.identity, end, assignment.remaining.len() as u64, first);
            // Queued tasks had not started, so they cannot be the cause.
            let accused = cause.accuses() && !session.draining && !at.stopping && running;
            for (hash, task) in assignment.remaining {
                work.tasks.forget_copy(hash);
                work.tasks.drop_copy(task, (id, number));
                if !accused {
                    continue;
                }
                let loss = Loss {
                    worker: session.identity.clone(),
                    process: session.process,
                    alone: assignment.alone && *cause != Cause::Overdue,
                    overdue: assignment.alone && *cause == Cause::Overdue,
                    // If a worker fell silent, its host or its network may have failed.
                    proven: *cause == Cause::ConnectionEnded && session.is_proven(assignment.each_us),
                };
                let overdue = u32::from(loss.overdue);
                let witnessed = assignment.alone && session.is_trusted();
                work.tasks.accuse(task, at.now, |evidence| {
                    evidence.losses.push(loss);
                    evidence.overdue += overdue;
                    evidence.witnessed |= witnessed;
                });
                out.facts.note(Fact::Accused { task, last: String::new() });
            }
        }
    }
}
