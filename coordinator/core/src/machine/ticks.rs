//! Events caused by time: rules, checkpoints, stopping.

use evoxo_proto::v1::CloseKind;

use super::{Coordinator, Effect, rules::Rules, run::Presence, runs::RunId};

/// The interval at which deadlines are checked, in milliseconds.
const TICK_MS: u64 = 100;
/// How long workers wait when the coordinator stops, in milliseconds.
const RESTART_MS: u32 = 500;

impl Coordinator {
    /// Checks all deadlines, at most every 100 ms.
    pub(super) fn tick(&mut self) {
        if self.now < self.tick {
            return;
        }
        self.tick = self.now + TICK_MS;
        self.look_due = true;
        self.follow_rules(Rules::tick);
        self.compare_workers();
        self.write_convictions();
        let load = |(id, run): (RunId, &super::run::Run)| run.trouble.load_is_due(self.now).then_some(id);
        for id in self.runs.iter().filter_map(load).collect::<Vec<_>>() {
            self.runs.change(id).trouble.load_now();
        }
        let due =
            |(id, run): (RunId, &super::run::Run)| (run.checkpoints.due <= self.now && !run.is_quiet()).then_some(id);
        let due: Vec<RunId> = self.runs.iter().filter_map(due).collect();
        for id in due {
            self.save(id);
            self.leave_if_saved(id);
        }
    }

    /// Closes all sessions and saves everything that is not saved yet.
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
