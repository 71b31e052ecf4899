//! What happens because time passes: silence, deadlines, checkpoints, stopping.

use evoxo_common::time::Millis;
use evoxo_proto::v1::CloseKind;

use super::{Coordinator, Effect, SessionId, run::RunId};

/// Deadlines are looked at this often, in milliseconds.
const TICK_MS: u64 = 100;
/// A worker whose coordinator stops should come back after so long, in milliseconds.
const RESTART_MS: u32 = 500;

impl Coordinator {
    /// Looks at all deadlines, at most every tenth of a second.
    pub(super) fn tick(&mut self) {
        if self.now < self.tick {
            return;
        }
        self.tick = self.now + TICK_MS;
        self.second_copies_due = true;
        self.lose_silent();
        self.lose_overdue();
        let due: Vec<RunId> =
            self.runs.iter().filter(|(_, run)| run.checkpoint_due <= self.now).map(|(id, _)| *id).collect();
        due.into_iter().for_each(|id| self.keep(id));
    }

    fn lose_silent(&mut self) {
        let limit_ms = self.settings.silence_ms_max;
        let silent = |heard: Millis| self.now - heard > limit_ms;
        let ids: Vec<SessionId> =
            self.sessions.iter().filter(|(_, session)| silent(session.heard)).map(|(id, _)| *id).collect();
        for id in ids {
            self.lose(id, &format!("not heard for {limit_ms} ms"), Some((CloseKind::Retry, 0)));
        }
    }

    /// A beat proves life, not progress. A task that was overdue alone has four times as long when it is next alone: it may
    /// have been the host that was slow, and only one that never ends is overdue three times.
    fn lose_overdue(&mut self) {
        let settings = self.settings;
        let ids: Vec<SessionId> = self
            .sessions
            .iter()
            .filter(|(_, session)| {
                // Assignments wait for each other: only one of them has to move.
                let progress = session.assignments.values().map(|assignment| assignment.progress).max();
                let each_us = session.assignments.values().map(|assignment| assignment.each_us).max().flatten();
                let limit_ms = each_us.map_or(settings.deadline_ms_unknown, |each_us| {
                    settings.deadline_ms_min.max(each_us.saturating_mul(settings.deadline_factor) / 1000)
                });
                let alone = session.assignments.values().filter(|assignment| assignment.alone);
                let tasks = alone.flat_map(|assignment| assignment.remaining.values());
                let lost = tasks.filter_map(|task| self.tasks.get(*task)).map(|task| task.lost_alone).max();
                let limit_ms = limit_ms.saturating_mul(4_u64.pow(lost.unwrap_or(0)));
                progress.is_some_and(|progress| self.now - progress > limit_ms)
            })
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            self.lose(id, "its tasks are overdue", Some((CloseKind::Retry, 0)));
        }
    }

    /// Sends the workers away and saves what is not saved.
    pub(super) fn stop(&mut self) {
        self.stopping = true;
        let ids: Vec<SessionId> = self.sessions.keys().copied().collect();
        for id in ids {
            self.close(id, CloseKind::Retry, "the coordinator stops", RESTART_MS);
        }
        let runs: Vec<RunId> = self.runs.keys().copied().collect();
        runs.into_iter().for_each(|id| self.keep(id));
    }

    pub(super) fn finish_stopping(&mut self) {
        if self.stopping && self.writes.is_empty() {
            let runs: Vec<RunId> = self.runs.keys().copied().collect();
            runs.into_iter().for_each(|id| self.keep(id));
            if self.writes.is_empty() {
                self.effects.push(Effect::Stopped);
            }
        }
    }
}
