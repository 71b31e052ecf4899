//! Counters since the start, for monitoring. No decision depends on them.

use std::collections::BTreeMap;

use super::{attempts::Attempts, standing::Identity};

/// The upper ends of the intervals of [`Durations`], in microseconds. One more interval has no end.
const ENDS_US: [u64; 18] = [
    100,
    300,
    1_000,
    3_000,
    10_000,
    20_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    300_000_000,
    1_800_000_000,
];

/// A histogram of durations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    counts: [u64; ENDS_US.len() + 1],
    sum_us: u64,
}

impl Durations {
    /// Counts a duration, in microseconds.
    pub fn note_us(&mut self, us: u64) {
        self.counts[ENDS_US.partition_point(|end| *end < us)] += 1;
        self.sum_us = self.sum_us.saturating_add(us);
    }

    /// The upper end of each interval in seconds, and the number of durations in that interval only. The last end is
    /// infinite.
    #[must_use]
    pub fn intervals(&self) -> Vec<(f64, u64)> {
        let ends = ENDS_US.iter().map(|us| *us as f64 / 1e6).chain([f64::INFINITY]);
        ends.zip(self.counts.iter().copied()).collect()
    }

    /// The number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of all durations, in seconds.
    #[must_use]
    pub fn sum_s(&self) -> f64 {
        self.sum_us as f64 / 1e6
    }
}

/// Counts since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Assignments sent, and copies of tasks in them.
    pub assignments: u64,
    /// Copies of tasks in these assignments.
    pub copies: u64,
    /// Tasks with an accepted output.
    pub tasks_done: u64,
    /// Failures that workers reported for tasks assigned to them.
    pub failures: u64,
    /// How attempts ended.
    pub attempts: Attempts,
    /// Outputs that were found to be invalid. Their attempts count as refused after they counted as done.
    pub invalid_outputs: u64,
    /// Rounds absorbed.
    pub rounds: u64,
    /// Tasks whose copies had different outputs.
    pub doubts: u64,
    /// Drawn outputs that a trusted worker has recomputed.
    pub recomputations: u64,
    /// Identities convicted of a wrong output.
    pub convictions: u64,
    /// Runs that failed.
    pub runs_failed: u64,
    /// Ended runs that were deleted because of their age, number or bytes.
    pub retired: u64,
    /// Sessions that started.
    pub joined: u64,
    /// Sessions that ended normally.
    pub left: u64,
    /// Workers that were refused, or told to wait.
    pub refused: u64,
    /// Workers that were lost, by cause.
    pub lost: BTreeMap<&'static str, u64>,
    /// How long a task took, as the worker reports it, but never longer than the coordinator waited for it.
    pub task: Durations,
    /// The time from sending an assignment to its last result.
    pub assignment: Durations,
}

/// All measurements at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Counts since the start.
    pub tally: Tally,
    /// Workers with something to compute.
    pub workers_busy: u64,
    /// Workers with nothing to compute.
    pub workers_idle: u64,
    /// Workers that get no tasks, because an operator wants it so.
    pub workers_cordoned: u64,
    /// Workers that are about to leave.
    pub workers_leaving: u64,
    /// Slots of all workers.
    pub slots: u64,
    /// Slots with something to compute.
    pub slots_busy: u64,
    /// Open tasks without a worker, except suspects.
    pub tasks_ready: u64,
    /// Suspects without a worker.
    pub tasks_suspect: u64,
    /// Open tasks that are assigned to a worker, or whose output is being checked.
    pub tasks_out: u64,
    /// How the attempts of each connected worker ended, by its name.
    pub attempts: BTreeMap<String, Attempts>,
    /// Workers with a notice, because many of their attempts end badly.
    pub workers_noticed: u64,
    /// Bytes reserved for runs.
    pub memory_bytes: u64,
    /// Bytes that can be reserved for runs.
    pub memory_bytes_max: u64,
    /// For each running run, how long there have been rounds that no stored checkpoint has, in milliseconds.
    pub unsaved_ms: BTreeMap<String, u64>,
    /// Ended runs whose deletion was announced.
    pub runs_expiring: u64,
    /// What is used of each limit: its name, what is used, and the limit.
    pub limits: Vec<(&'static str, u64, u64)>,
}

impl super::Coordinator {
    /// Takes all measurements.
    pub(super) fn figures(&self) -> Figures {
        let mut figures = Figures {
            tally: self.out.tally.clone(),
            tasks_ready: self.work.tasks.ready().values().map(|tasks| tasks.len() as u64).sum(),
            tasks_suspect: self.work.tasks.suspects().len() as u64,
            runs_expiring: self.work.runs.iter().filter(|(_, run)| run.expiry_said.is_some()).count() as u64,
            memory_bytes: self.work.budget.given(),
            memory_bytes_max: self.at.settings.memory_bytes_max,
            ..Figures::default()
        };
        for (_, run) in
            self.work.runs.iter().filter(|(_, run)| run.hands_out() || run.checkpoints.unsaved_since.is_some())
        {
            let ms = run.checkpoints.unsaved_since.map_or(0, |since| self.at.now - since);
            figures.unsaved_ms.insert(run.name.clone(), ms);
        }
        figures.tasks_out = self.work.tasks.len() as u64 - figures.tasks_ready - figures.tasks_suspect;
        for (_, session) in self.fleet.sessions.iter() {
            let count = match (session.draining, session.assignments.is_empty()) {
                (true, _) => &mut figures.workers_leaving,
                _ if session.cordon.is_some() => &mut figures.workers_cordoned,
                (false, true) => &mut figures.workers_idle,
                (false, false) => &mut figures.workers_busy,
            };
            *count += 1;
            figures.slots += u64::from(session.slots);
            figures.slots_busy += u64::from(session.slots_busy());
        }
        let of: BTreeMap<&Identity, &str> =
            self.fleet.sessions.iter().map(|(_, session)| (&session.identity, &*session.name)).collect();
        for (identity, name) in of {
            let Some(history) = self.fleet.standings.history(identity) else { continue };
            figures.attempts.entry(name.to_owned()).or_default().add_all(&history.all);
            figures.workers_noticed += u64::from(history.notice.is_some());
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_belongs_to_one_interval() {
        let mut durations = Durations::default();
        [0, 100, 101, 1_800_000_000, u64::MAX].into_iter().for_each(|us| durations.note_us(us));
        let counts: Vec<u64> = durations.intervals().iter().map(|(_, count)| *count).collect();
        assert_eq!((counts[0], counts[1], counts[17], counts[18]), (2, 1, 1, 1));
        assert_eq!((durations.count(), durations.intervals()[18].0), (5, f64::INFINITY));
        assert!(ENDS_US.is_sorted() && durations.sum_s() > 1e12);
    }
}
