//! Decides how many jobs a run needs. Pure: each look passes in the time and what was seen, and gets actions back.

use std::{collections::BTreeMap, time::Duration};

/// If this many jobs in a row end before their workers join, something is wrong with the jobs.
pub(super) const FAILURES_MAX: usize = 3;

/// The stage that a job has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The job waits for a host.
    Queued,
    /// The job runs, but its worker has not joined.
    Started,
    /// The job's worker is connected and computes the run's kind.
    Joined {
        busy: bool,
        /// Tasks that the worker has computed since it joined.
        tasks_done: u64,
    },
}

/// What one look saw.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// The run's tasks that can be computed now, waiting or assigned, and the slots of all workers that can compute them.
    pub(super) open: u64,
    pub(super) slots: u64,
    /// The jobs, by their numbers.
    pub(super) jobs: BTreeMap<String, Stage>,
}

/// An action that follows from a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Start this number of jobs.
    Start(u32),
    /// End these jobs.
    End(Vec<String>),
    /// Report that this many jobs ended before their workers joined.
    Failed(usize),
    /// No worker computes, and jobs keep ending before their workers join.
    GiveUp,
}

/// What is remembered about a job.
#[derive(Default)]
struct Known {
    joined: bool,
    asked_to_end: bool,
    tasks_done: u64,
    /// The time since which every look found the job of no use.
    idle_since: Option<Duration>,
}

/// The decisions for one run.
pub(super) struct Scale {
    jobs_max: u32,
    idle: Duration,
    known: BTreeMap<String, Known>,
    /// The number of jobs started since the last look, and whether any job was ever started.
    started: usize,
    has_started: bool,
    /// Jobs that failed since the last worker joined.
    failures: usize,
    /// No job is started before this time.
    pause_until: Duration,
}

impl Scale {
    /// At most `jobs_max` jobs; a job ends after it has been of no use for `idle`.
    pub(super) fn new(jobs_max: u32, idle: Duration) -> Self {
        let (known, pause_until) = (BTreeMap::new(), Duration::ZERO);
        Self { jobs_max, idle, known, started: 0, has_started: false, failures: 0, pause_until }
    }

    /// Notes that this many jobs were started.
    pub(super) fn started(&mut self, jobs: u32) {
        self.started = jobs as usize;
        self.has_started = true;
    }

    /// Whether a job was ever started.
    pub(super) fn has_started(&self) -> bool {
        self.has_started
    }

    /// Starts no job before this time.
    pub(super) fn pause(&mut self, until: Duration) {
        self.pause_until = until;
    }

    /// The actions to take now.
    pub(super) fn decide(&mut self, now: Duration, seen: &Seen) -> Vec<Action> {
        let mut actions = Vec::new();
        let failed = self.note(now, seen);
        if failed > 0 {
            actions.push(Action::Failed(failed));
        }
        let joined = seen.jobs.values().filter(|stage| matches!(stage, Stage::Joined { .. })).count();
        if self.failures >= FAILURES_MAX && joined == 0 {
            actions.push(Action::GiveUp);
            return actions;
        }
        let useless = self.useless(now);
        if !useless.is_empty() {
            actions.push(Action::End(useless));
        }
        let room = self.jobs_max.saturating_sub(seen.jobs.len() as u32);
        let wanted = seen.open.saturating_sub(seen.slots).min(joined.max(1) as u64).min(room.into()) as u32;
        if wanted > 0 && now >= self.pause_until && self.failures < FAILURES_MAX && !self.awaits(seen) {
            actions.push(Action::Start(wanted));
        }
        actions
    }

    /// Updates what is known of each job. Returns how many jobs ended before their workers joined.
    fn note(&mut self, now: Duration, seen: &Seen) -> usize {
        let new = seen.jobs.keys().filter(|id| !self.known.contains_key(*id)).count();
        // A job that no look has seen began and ended between two looks.
        let mut failed = std::mem::take(&mut self.started).saturating_sub(new);
        self.known.retain(|id, known| {
            let there = seen.jobs.contains_key(id);
            failed += usize::from(!there && !known.joined && !known.asked_to_end);
            there
        });
        self.failures += failed;
        let enough = seen.open <= seen.slots;
        for (id, stage) in &seen.jobs {
            let known = self.known.entry(id.clone()).or_default();
            let mut idle = enough;
            if let Stage::Joined { busy, tasks_done } = *stage {
                idle &= !busy && tasks_done == known.tasks_done;
                known.tasks_done = tasks_done;
                if !std::mem::replace(&mut known.joined, true) {
                    self.failures = 0;
                }
            }
            known.idle_since = if idle { known.idle_since.or(Some(now)) } else { None };
        }
        failed
    }

    /// The jobs that have been of no use for long enough. A job that does not end is asked again after the same time.
    fn useless(&mut self, now: Duration) -> Vec<String> {
        let idle = self.idle;
        let of_no_use = |known: &Known| known.idle_since.is_some_and(|since| now.saturating_sub(since) >= idle);
        let useless = self.known.iter_mut().filter(|(_, known)| of_no_use(known));
        let end = |(id, known): (&String, &mut Known)| {
            (known.asked_to_end, known.idle_since) = (true, Some(now));
            id.clone()
        };
        useless.map(end).collect()
    }

    /// Whether a queued or started job may still bring a worker.
    fn awaits(&self, seen: &Seen) -> bool {
        let coming = |stage: &Stage| matches!(stage, Stage::Queued | Stage::Started);
        let stays = |id: &String| self.known.get(id).is_some_and(|known| !known.asked_to_end);
        seen.jobs.iter().any(|(id, stage)| coming(stage) && stays(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: Stage = Stage::Joined { busy: true, tasks_done: 0 };
    const IDLE: Stage = Stage::Joined { busy: false, tasks_done: 7 };

    fn scale() -> Scale {
        Scale::new(10, Duration::from_secs(60))
    }

    /// Jobs with these stages, each with one slot once it has joined.
    fn seen(open: u64, stages: &[Stage]) -> Seen {
        let slots = stages.iter().filter(|stage| matches!(stage, Stage::Joined { .. })).count() as u64;
        let jobs = stages.iter().enumerate().map(|(number, stage)| (format!("5_{number}"), *stage)).collect();
        Seen { open, slots, jobs }
    }

    fn at(scale: &mut Scale, second: u64, seen: &Seen) -> Vec<Action> {
        let actions = scale.decide(Duration::from_secs(second), seen);
        if let Some(Action::Start(jobs)) = actions.last() {
            scale.started(*jobs);
        }
        actions
    }

    #[test]
    fn jobs_double_while_tasks_are_left_over() {
        let mut scale = scale();
        assert_eq!(at(&mut scale, 0, &seen(0, &[])), [], "nothing is open");
        assert_eq!(at(&mut scale, 1, &seen(100, &[])), [Action::Start(1)]);
        assert_eq!(at(&mut scale, 2, &seen(100, &[Stage::Queued])), [], "a queued job may take hours to start");
        assert_eq!(at(&mut scale, 3, &seen(100, &[Stage::Started])), []);
        for (second, joined, more) in [(4, 1, 1), (5, 2, 2), (6, 4, 4), (7, 8, 2)] {
            assert_eq!(at(&mut scale, second, &seen(100, &vec![BUSY; joined])), [Action::Start(more)]);
        }
        assert_eq!(at(&mut scale, 8, &seen(100, &[BUSY; 10])), [], "never more than the maximum");
    }

    #[test]
    fn slots_never_exceed_tasks() {
        let mut scale = scale();
        assert_eq!(at(&mut scale, 0, &seen(6, &[BUSY; 4])), [Action::Start(2)]);
        assert_eq!(at(&mut scale, 1, &seen(6, &[BUSY; 6])), []);
    }

    #[test]
    fn idle_and_queued_jobs_end_after_a_while() {
        let mut scale = scale();
        let end = |ids: &[&str]| vec![Action::End(ids.iter().map(|id| (*id).to_owned()).collect())];
        let quiet = seen(1, &[BUSY, IDLE, Stage::Queued]);
        assert_eq!(at(&mut scale, 0, &quiet), []);
        assert_eq!(at(&mut scale, 10, &quiet), []);
        // The worker computed between two looks.
        let worked = Stage::Joined { busy: false, tasks_done: 8 };
        assert_eq!(at(&mut scale, 40, &seen(1, &[BUSY, worked, Stage::Queued])), []);
        assert_eq!(at(&mut scale, 60, &quiet), end(&["5_2"]));
        assert_eq!(at(&mut scale, 61, &seen(1, &[BUSY, IDLE])), [], "a job that was asked to end has not failed");
        assert_eq!(at(&mut scale, 121, &seen(1, &[BUSY, IDLE])), end(&["5_1"]));
        assert_eq!(at(&mut scale, 122, &seen(1, &[BUSY, IDLE])), [], "the job is leaving");
        assert_eq!(
            at(&mut scale, 181, &seen(1, &[BUSY, IDLE])),
            end(&["5_1"]),
            "the job did not leave, so it is asked again"
        );
    }

    #[test]
    fn nothing_ends_while_tasks_are_left_over() {
        let mut scale = scale();
        let waits = seen(100, &[BUSY, IDLE, Stage::Queued]);
        assert!((0..10).all(|minute| at(&mut scale, 60 * minute, &waits).is_empty()));
    }

    #[test]
    fn jobs_that_end_before_their_workers_join_stop_being_started() {
        let mut scale = scale();
        assert_eq!(at(&mut scale, 0, &seen(100, &[])), [Action::Start(1)]);
        // No look sees the first two jobs.
        assert_eq!(at(&mut scale, 1, &seen(100, &[])), [Action::Failed(1), Action::Start(1)]);
        assert_eq!(at(&mut scale, 2, &seen(100, &[])), [Action::Failed(1), Action::Start(1)]);
        assert_eq!(at(&mut scale, 3, &seen(100, &[Stage::Started])), []);
        assert_eq!(at(&mut scale, 4, &seen(100, &[])), [Action::Failed(1), Action::GiveUp]);
    }

    #[test]
    fn failing_jobs_are_not_restarted_while_other_workers_compute() {
        let mut scale = scale();
        let one = seen(100, &[BUSY]);
        assert_eq!(at(&mut scale, 0, &one), [Action::Start(1)]);
        for second in 1..3 {
            assert_eq!(at(&mut scale, second, &one), [Action::Failed(1), Action::Start(1)]);
        }
        assert_eq!(at(&mut scale, 3, &one), [Action::Failed(1)]);
        assert_eq!(at(&mut scale, 4, &one), []);
        // A worker that joins shows that jobs work again.
        assert_eq!(at(&mut scale, 5, &seen(100, &[BUSY, BUSY])), [Action::Start(2)]);
    }

    #[test]
    fn a_preempted_job_is_not_a_failure() {
        let mut scale = scale();
        assert_eq!(at(&mut scale, 0, &seen(100, &[BUSY])), [Action::Start(1)]);
        assert_eq!(at(&mut scale, 1, &seen(100, &[BUSY, BUSY])), [Action::Start(2)]);
        scale.started(0);
        assert_eq!(at(&mut scale, 2, &seen(100, &[Stage::Queued, BUSY])), [], "it is queued again");
        assert_eq!(at(&mut scale, 3, &seen(100, &[BUSY])), [Action::Start(1)], "it is gone");
    }

    #[test]
    fn a_rejected_job_is_followed_by_a_pause() {
        let mut scale = scale();
        assert_eq!(scale.decide(Duration::ZERO, &seen(100, &[BUSY])), [Action::Start(1)]);
        scale.pause(Duration::from_secs(60));
        assert_eq!(at(&mut scale, 59, &seen(100, &[BUSY])), []);
        assert_eq!(at(&mut scale, 60, &seen(100, &[BUSY])), [Action::Start(1)]);
    }
}
