//! Events caused by time: rules, checkpoints, stopping.

use evoxo_proto::v1::CloseKind;

use super::{
    Coordinator, Effect,
    look::Moment,
    out::Out,
    rules::Rules,
    run::{Presence, Run},
    runs::RunId,
    sessions::Sessions,
    work::Work,
};

/// The interval at which deadlines are checked, in milliseconds.
const TICK_MS: u64 = 100;
/// How long workers wait when the coordinator stops, in milliseconds.
const RESTART_MS: u32 = 500;

impl Coordinator {
    /// Checks all deadlines, at most every 100 ms.
    pub(super) fn tick(&mut self) {
        let Self { at, work, fleet, out, tick, .. } = self;
        if at.now < *tick {
            return;
        }
        *tick = at.now + TICK_MS;
        work.look_due = true;
        work.follow_rules(at, &fleet.sessions, out, Rules::tick);
        fleet.compare_workers(at.now, out);
        work.convictions.write(at.now, out);
        work.use_the_store(at, &mut fleet.sessions, out);
    }

    /// Closes all sessions and saves everything that is not saved yet.
    pub(super) fn stop(&mut self) {
        let Self { at, work, fleet, out, .. } = self;
        at.stopping = true;
        for id in fleet.sessions.ids() {
            out.effects.close(id, CloseKind::Retry, "the coordinator stops".into(), RESTART_MS);
        }
        work.save_all(at, out);
    }
}

impl Work {
    /// Retries loads that have failed, and saves the runs whose checkpoints are due.
    fn use_the_store(&mut self, at: &Moment, sessions: &mut Sessions, out: &mut Out) {
        let load = |(id, run): (RunId, &Run)| run.trouble.load_is_due(at.now).then_some(id);
        for id in self.runs.iter().filter_map(load).collect::<Vec<_>>() {
            self.runs.change(id).trouble.load_now();
        }
        let due = |(id, run): (RunId, &Run)| (run.checkpoints.due <= at.now && !run.is_quiet()).then_some(id);
        let due: Vec<RunId> = self.runs.iter().filter_map(due).collect();
        for id in due {
            self.runs.adjust(id).save(at, out, id);
            self.leave_if_saved(at, sessions, out, id);
        }
    }

    fn save_all(&mut self, at: &Moment, out: &mut Out) {
        self.runs.ids().into_iter().for_each(|id| self.runs.adjust(id).save(at, out, id));
    }

    /// Ends the process once everything is stored, if it is to stop.
    pub(super) fn finish_stopping(&mut self, at: &Moment, out: &mut Out) {
        if !at.stopping || !out.writes.is_empty() || !self.convictions.are_stored() {
            return;
        }
        // Rounds absorbed after the last checkpoint was sealed need another one.
        self.save_all(at, out);
        let sealing = |(_, run): (RunId, &Run)| {
            run.checkpoints.writing && matches!(run.presence, Presence::Loaded(_) | Presence::Leaving(_))
        };
        if out.writes.is_empty() && !self.runs.iter().any(sealing) {
            out.effects.push(Effect::Stopped);
        }
    }
}
