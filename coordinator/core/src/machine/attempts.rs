//! How attempts end. An attempt is one copy of a task that one worker has.
//!
//! A failure counts against a task, or against a worker that others can replace, only under conditions (`failures`,
//! `losses`). The ends of attempts are counted without conditions, for people: a worker on which every task ends by a timeout
//! must not look healthy because other workers compute these tasks first. If the share of bad ends of one worker is much
//! larger than that of the other workers, the worker has a notice.

use std::collections::VecDeque;

use evoxo_proto::v1;

/// The number of recent ends that decide whether a worker stands out.
const RECENT_MAX: usize = 32;
/// A worker stands out only if at least this number of its ends is known, and as many of the other workers.
const RECENT_MIN: usize = 5;

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttemptEnd {
    /// The worker sent an output while the task was open.
    Done,
    /// The worker sent an output that was no longer needed.
    Late,
    /// The task failed on the worker.
    Failed,
    /// The worker stopped the task because it took too long, or the coordinator stopped waiting.
    TimedOut,
    /// The worker was lost.
    Lost,
    /// The worker's program is not the right one, or its output was invalid.
    Refused,
}

/// Every end with its label, in the order of [`AttemptEnd`].
const LABELS: [&str; 6] = ["done", "late", "failed", "timed out", "lost", "refused"];

/// The number of attempts that ended in each way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempts([u64; LABELS.len()]);

impl Attempts {
    /// Counts attempts that ended in this way.
    pub fn add(&mut self, end: AttemptEnd, count: u64) {
        self.0[end as usize] += count;
    }

    /// Adds the attempts of another worker.
    pub fn add_all(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, count)| *sum += count);
    }

    /// Each way to end, with its label and its number.
    #[must_use]
    pub fn by_end(&self) -> [(&'static str, u64); LABELS.len()] {
        std::array::from_fn(|place| (LABELS[place], self.0[place]))
    }

    /// All attempts that ended.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The attempts that did not end with an output in time.
    #[must_use]
    pub fn bad(&self) -> u64 {
        self.total() - self.0[AttemptEnd::Done as usize]
    }

    /// As a message for clients.
    pub(super) fn message(&self) -> v1::AttemptEnds {
        let [done, late, failed, timed_out, lost, refused] = self.0;
        v1::AttemptEnds { done, late, failed, timed_out, lost, refused }
    }
}

/// The ends of a worker's attempts, over all its sessions.
#[derive(Clone, Debug, Default)]
pub(super) struct AttemptHistory {
    pub(super) all: Attempts,
    /// The newest ends that say something about the worker.
    recent: VecDeque<AttemptEnd>,
    /// The notice, while the worker stands out.
    pub(super) notice: Option<String>,
}

impl AttemptHistory {
    pub(super) fn mark(&mut self, end: AttemptEnd) {
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(end);
    }

    /// The recent ends: how many are bad, and how many there are.
    pub(super) fn recent(&self) -> Recently {
        let bad = self.recent.iter().filter(|end| **end != AttemptEnd::Done).count();
        Recently { bad, all: self.recent.len() }
    }

    /// The bad ones of the recent ends, in words.
    pub(super) fn bad_ends(&self) -> String {
        let count = |end: usize| self.recent.iter().filter(|recent| **recent as usize == end).count();
        let named = (1..LABELS.len()).map(|end| (count(end), LABELS[end])).filter(|(count, _)| *count > 0);
        named.map(|(count, label)| format!("{count} {label}")).collect::<Vec<_>>().join(", ")
    }
}

/// Recent ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Recently {
    pub(super) bad: usize,
    pub(super) all: usize,
}

impl Recently {
    /// Whether a worker with these ends stands out among workers with the `others`' ends.
    pub(super) fn stands_out(self, others: Self) -> bool {
        let known = self.all >= RECENT_MIN && others.all >= RECENT_MIN;
        known && 2 * self.bad >= self.all && 2 * others.bad * self.all < self.bad * others.all
    }

    /// Whether a worker that stood out computes again.
    pub(super) fn has_recovered(self) -> bool {
        4 * self.bad <= self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_stands_out_only_among_better_ones() {
        let recently = |bad, all| Recently { bad, all };
        assert!(recently(5, 5).stands_out(recently(0, 5)));
        assert!(recently(16, 32).stands_out(recently(7, 32)));
        assert!(!recently(16, 32).stands_out(recently(8, 32)), "the others are not much better");
        assert!(!recently(4, 4).stands_out(recently(0, 99)), "too little is known about it");
        assert!(!recently(9, 9).stands_out(recently(0, 4)), "too little is known about the others");
        assert!(!recently(15, 32).stands_out(recently(0, 99)), "most of its attempts end well");
        assert!(recently(8, 32).has_recovered() && !recently(9, 32).has_recovered());
    }

    #[test]
    fn every_end_has_its_own_count_and_words() {
        let mut attempts = Attempts::default();
        attempts.add(AttemptEnd::Done, 3);
        attempts.add(AttemptEnd::TimedOut, 2);
        attempts.add(AttemptEnd::Refused, 1);
        let mut sum = attempts.clone();
        sum.add_all(&attempts);
        assert_eq!((sum.total(), sum.bad()), (12, 6));
        assert_eq!(attempts.by_end().map(|(_, count)| count), [3, 0, 0, 2, 0, 1]);
        let message = attempts.message();
        assert_eq!((message.done, message.timed_out, message.refused), (3, 2, 1));
        let mut history = AttemptHistory::default();
        (0..40).for_each(|_| history.mark(AttemptEnd::Done));
        [AttemptEnd::TimedOut, AttemptEnd::TimedOut, AttemptEnd::Lost].into_iter().for_each(|end| history.mark(end));
        assert_eq!(history.recent(), Recently { bad: 3, all: RECENT_MAX });
        assert_eq!(history.bad_ends(), "2 timed out, 1 lost");
    }
}
