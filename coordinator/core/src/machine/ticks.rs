//! Events caused by time: silence, deadlines, checkpoints, stopping.

use evoxo_proto::v1::CloseKind;

use super::{
    Coordinator, Effect, SessionId,
    cause::Cause,
    run::Presence,
    runs::RunId,
    sessions::{Assignment, Session},
};

/// The interval at which deadlines are checked, in milliseconds.
const TICK_MS: u64 = 100;
/// How long a worker must wait whose coordinator stops, in milliseconds.
const RESTART_MS: u32 = 500;

impl Coordinator {
    /// Checks all deadlines, at most every 100 ms.
    pub(super) fn tick(&mut self) {
        if self.now < self.tick {
            return;
        }
        self.tick = self.now + TICK_MS;
        self.look_due = true;
        let limit_ms = self.settings.silence_ms_max;
        let silent = |session: &Session| self.now - session.heard > limit_ms;
        for id in self.sessions_where(silent) {
            self.facts.note_lost(id, Cause::Silent(limit_ms));
        }
        for id in self.sessions_where(|session| self.is_overdue(session)) {
            self.facts.note_lost(id, Cause::Overdue);
        }
        self.write_convictions();
        let load = |(id, run): (RunId, &super::run::Run)| run.load_due.is_some_and(|due| due <= self.now).then_some(id);
        for id in self.runs.iter().filter_map(load).collect::<Vec<_>>() {
            self.runs.change(id).load_due = None;
        }
        let due =
            |(id, run): (RunId, &super::run::Run)| (run.checkpoints.due <= self.now && !run.is_quiet()).then_some(id);
        let due: Vec<RunId> = self.runs.iter().filter_map(due).collect();
        for id in due {
            self.save(id);
            self.leave_if_saved(id);
        }
    }

    fn sessions_where(&self, holds: impl Fn(&Session) -> bool) -> Vec<SessionId> {
        self.sessions.iter().filter(|(_, session)| holds(session)).map(|(id, _)| id).collect()
    }

    /// Whether its tasks have made no progress for too long; heartbeats do not count. A task that was overdue alone
    /// gets four times as long when it is next alone, in case its host was slow. So only a task that never ends is
    /// overdue three times. One that its worker should stop by itself is not overdue before that.
    fn is_overdue(&self, session: &Session) -> bool {
        let settings = self.settings;
        // Its assignments wait for each other, so progress of one is enough.
        let Some(progress) = session.assignments.values().map(|assignment| assignment.progress).max() else {
            return false;
        };
        // How long a task takes that fails at once on one host, nobody knows of the others.
        let computed = |assignment: &Assignment| {
            self.runs.get(assignment.run).is_some_and(|run| run.has_computed(assignment.arm, assignment.work))
        };
        let known = session.assignments.values().map(|assignment| assignment.each_us.filter(|_| computed(assignment)));
        // A task of unknown duration may take as long as any.
        let each_us = if known.clone().any(|each_us| each_us.is_none()) { None } else { known.flatten().max() };
        let limit_ms = settings.deadline_ms(each_us);
        let alone = session.assignments.values().filter(|assignment| assignment.alone);
        let tasks = alone.flat_map(|assignment| assignment.remaining.values());
        let evidence = tasks.filter_map(|task| self.tasks.get(*task)?.evidence.as_ref());
        let overdue = evidence.map(|evidence| evidence.overdue).max().unwrap_or(0);
        let stopped_ms = session.assignments.values().filter_map(|assignment| {
            let run = self.runs.get(assignment.run)?;
            Some(run.prepared.task_ms_max(assignment.arm)).filter(|ms| *ms > 0)
        });
        let allowed_ms = stopped_ms.max().map_or(0, |ms| ms.saturating_add(settings.deadline_ms_min));
        self.now - progress > limit_ms.saturating_mul(4_u64.saturating_pow(overdue)).max(allowed_ms)
    }

    /// Closes all sessions and saves what is not saved.
    pub(super) fn stop(&mut self) {
        self.stopping = true;
        for id in self.sessions.ids() {
            self.effects.close(id, CloseKind::Retry, "the coordinator stops".into(), RESTART_MS);
        }
        self.runs.ids().into_iter().for_each(|id| self.save(id));
    }

    pub(super) fn finish_stopping(&mut self) {
        if !self.stopping || !self.writes.is_empty() || !self.convictions.are_stored() {
            return;
        }
        // Rounds absorbed after the last checkpoint was sealed need another one.
        self.runs.ids().into_iter().for_each(|id| self.save(id));
        let sealing = |(_, run): (RunId, &super::run::Run)| {
            run.checkpoints.writing && matches!(run.presence, Presence::Loaded(_) | Presence::Leaving(_))
        };
        if self.writes.is_empty() && !self.runs.iter().any(sealing) {
            self.effects.push(Effect::Stopped);
        }
    }
}
