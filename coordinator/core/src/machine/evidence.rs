//! Evidence against a task: workers that were lost with it, and workers on which it failed.
//!
//! A task that kills its workers must be found, but a worker that is lost again and again must not make its tasks look like
//! that. So a loss weighs heavily only if the worker had proved itself: it had been connected for ten times as long as the
//! task takes, and had computed something ([`crate::Settings`] cannot change this). [`Evidence::verdict`] has the rule.

use std::collections::BTreeSet;

use evoxo_common::time::Millis;

use super::standing::Identity;
use crate::trust::Level;

/// This number of losses of workers that had proved themselves and had no other task convicts a task.
const PROVEN_LOSSES_MAX: usize = 3;
/// This number of losses of any workers that had no other task convicts a task. A task that kills its workers therefore kills
/// at most this number, plus the first one, which made the task a suspect.
const LOSSES_MAX: usize = 10;
/// How often a task may be overdue alone. Each time the wait is four times as long.
const OVERDUE_MAX: u32 = 3;
/// How often a task may fail.
const FAILURES_MAX: usize = 3;
/// The maximum number of failures kept for one task, in addition to those that count.
const FAILURES_KEPT: usize = 1024;

/// If no worker has computed anything, any worker gets a suspect after this many milliseconds.
const PATIENCE_MS: u64 = 1000;
/// The maximum of this wait, which grows with each loss.
const PATIENCE_MS_MAX: u64 = 16_000;

/// Which workers must have witnessed against a task before it is convicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Jury {
    /// Any workers.
    Anybody,
    /// Workers of three different identities.
    Different,
    /// At least one trusted worker.
    Trusted,
}

impl Jury {
    /// The jury for the tasks of a run with this level of verification.
    pub(super) fn of(level: Level) -> Self {
        match level {
            Level::Plain => Self::Anybody,
            Level::Quorum => Self::Different,
            Level::Verified | Level::Sampled { .. } => Self::Trusted,
        }
    }
}

/// A worker that was lost while it had the task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) worker: Identity,
    /// If this process reconnects, the task was not the cause.
    pub(super) process: u64,
    /// The worker had no other task.
    pub(super) alone: bool,
    /// The worker had no other task and was not lost itself, but the task did not end.
    pub(super) overdue: bool,
    /// The worker had proved itself, and its connection ended.
    pub(super) proven: bool,
}

/// A failure of the task on a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) worker: Identity,
    pub(super) at: Millis,
    /// The worker computes such tasks. If it does not, the failure counts only if no other worker does either.
    pub(super) counts: bool,
    /// The worker was trusted.
    pub(super) trusted: bool,
}

/// The evidence against a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Evidence {
    /// When the newest evidence arrived.
    pub(super) last: Millis,
    pub(super) losses: Vec<Loss>,
    pub(super) failures: Vec<Failure>,
    /// How often the task was overdue alone.
    pub(super) overdue: u32,
    /// A trusted worker was lost alone with the task, or the task did not end on it.
    pub(super) witnessed: bool,
}

impl Evidence {
    /// Whether the task was lost or failed on this worker, so that another worker should try it if possible.
    pub(super) fn names(&self, worker: &Identity) -> bool {
        self.failures.iter().any(|failure| failure.worker == *worker)
            || self.losses.iter().any(|loss| loss.worker == *worker)
    }

    /// Records a failure on a worker.
    pub(super) fn add_failure(&mut self, failure: Failure) {
        if failure.counts || self.failures.len() < FAILURES_KEPT {
            self.failures.push(failure);
        }
    }

    /// When the task had failed often enough to be convicted, if every failure counts.
    pub(super) fn third_failure(&self) -> Option<Millis> {
        self.failures.get(FAILURES_MAX - 1).map(|failure| failure.at)
    }

    /// The failures that count: all, or only those of workers that compute such tasks.
    fn counted(&self, all: bool) -> impl Iterator<Item = &Failure> {
        self.failures.iter().filter(move |failure| all || failure.counts)
    }

    /// Whether this worker is already among the different workers whose evidence counts.
    pub(super) fn has_heard(&self, worker: &Identity, all: bool) -> bool {
        self.heard(all).any(|other| other == worker)
    }

    fn heard(&self, all: bool) -> impl Iterator<Item = &Identity> {
        let alone = self.losses.iter().filter(|loss| loss.alone || loss.overdue).map(|loss| &loss.worker);
        self.counted(all).map(|failure| &failure.worker).chain(alone)
    }

    /// Whether the task has waited long enough for a worker that has proved itself. The wait doubles with each loss alone. If
    /// the good workers are away for some seconds, workers that come and go therefore cause few losses meanwhile.
    pub(super) fn has_waited(&self, now: Millis) -> bool {
        let alone = self.losses.iter().filter(|loss| loss.alone).count();
        now - self.last >= (PATIENCE_MS << alone.min(16)).min(PATIENCE_MS_MAX)
    }

    /// Whether the task has waited long enough even though workers may still prove themselves for it: a session may not last
    /// ten times as long as the task takes. Losses of workers that get the task then count as unproven.
    pub(super) fn has_waited_for_proof(&self, now: Millis, each_us: Option<u64>) -> bool {
        now - self.last >= PATIENCE_MS_MAX.max(each_us.unwrap_or(0) / 1000)
    }

    /// The conclusion, as the end of a sentence, if the task is convicted. `all`: every failure counts, not only those of
    /// workers that compute such tasks.
    pub(super) fn verdict(&self, jury: Jury, all: bool) -> Option<String> {
        let heard = match jury {
            Jury::Anybody => true,
            Jury::Different => self.heard(all).collect::<BTreeSet<_>>().len() >= FAILURES_MAX,
            Jury::Trusted => self.witnessed || self.counted(all).any(|failure| failure.trusted),
        };
        self.accusation(all).filter(|_| heard)
    }

    /// The conclusion without regard to which workers witnessed it.
    pub(super) fn accusation(&self, all: bool) -> Option<String> {
        let alone = self.losses.iter().filter(|loss| loss.alone);
        let proven: BTreeSet<&Identity> = alone.clone().filter(|loss| loss.proven).map(|loss| &loss.worker).collect();
        if proven.len() >= PROVEN_LOSSES_MAX {
            return Some(format!(
                "was the only task of {PROVEN_LOSSES_MAX} reliable workers when their connections ended"
            ));
        }
        if alone.count() >= LOSSES_MAX {
            return Some(format!("was the only task of its worker {LOSSES_MAX} times when the worker was lost"));
        }
        if self.overdue >= OVERDUE_MAX {
            return Some(format!("failed to end in time {OVERDUE_MAX} times, as the only task of its worker"));
        }
        (self.counted(all).count() >= FAILURES_MAX).then(|| format!("failed {FAILURES_MAX} times"))
    }

    /// The evidence without the losses of a process; `None` if nothing is left.
    pub(super) fn without(mut self, process: u64) -> Option<Self> {
        self.losses.retain(|loss| loss.process != process);
        (!self.losses.is_empty() || !self.failures.is_empty() || self.overdue > 0).then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(number: u64, worker: &str, alone: bool, proven: bool) -> Loss {
        Loss { worker: Identity::of(worker, "10.0.0.1"), process: number, alone, overdue: false, proven }
    }

    fn evidence(losses: &[Loss]) -> Evidence {
        Evidence { losses: losses.to_vec(), ..Evidence::default() }
    }

    fn failed_on(worker: &str, counts: bool) -> Failure {
        Failure { worker: Identity::of(worker, "x"), at: Millis(0), counts, trusted: false }
    }

    #[test]
    fn failures_on_broken_workers_do_not_count_if_others_compute() {
        let of = |counts: &[bool]| {
            let mut evidence = Evidence::default();
            counts.iter().for_each(|counts| evidence.add_failure(failed_on("a", *counts)));
            [false, true].map(|all| evidence.accusation(all))
        };
        let three = Some("failed 3 times".to_owned());
        assert_eq!(of(&[true; 3]), [three.clone(), three.clone()]);
        assert_eq!(of(&[false, true, true]), [None, three]);
        assert_eq!(of(&[false, false]), [None, None]);
        let mut many = vec![false; 2 * FAILURES_KEPT];
        many.extend([true; 3]);
        assert!(of(&many)[0].is_some(), "failures that count are kept, however many came before");
    }

    #[test]
    fn three_reliable_workers_convict_a_task_but_one_does_not() {
        let three = [lost(1, "a", true, true), lost(2, "b", true, true), lost(3, "c", true, true)];
        assert!(
            evidence(&three)
                .verdict(Jury::Anybody, false)
                .is_some_and(|why| why.starts_with("was the only task of 3 reliable workers"))
        );
        assert_eq!(evidence(&three[..2]).accusation(false), None);
        let nine: Vec<Loss> = (0..9).map(|number| lost(number, "a", true, true)).collect();
        assert_eq!(evidence(&nine).accusation(false), None, "one worker was lost repeatedly");
        let company: Vec<Loss> = (0..99).map(|number| lost(number, &format!("w{number}"), false, true)).collect();
        assert_eq!(evidence(&company).accusation(false), None, "never alone");
        let unproven = [lost(1, "a", true, false), lost(2, "b", true, false), lost(3, "c", true, false)];
        assert_eq!(evidence(&unproven).accusation(false), None, "the workers were not proven");
    }

    #[test]
    fn ten_losses_alone_convict_a_task() {
        let ten: Vec<Loss> = (0..10).map(|number| lost(number, "a", true, false)).collect();
        assert!(
            evidence(&ten)
                .accusation(false)
                .is_some_and(|why| why.starts_with("was the only task of its worker 10 times"))
        );
    }

    #[test]
    fn untrusted_failures_need_a_trusted_or_three_different_witnesses() {
        let failed = |names: &[&str]| Evidence {
            failures: names.iter().map(|name| failed_on(name, true)).collect(),
            ..Evidence::default()
        };
        let (same, different) = (failed(&["a", "a", "a", "b"]), failed(&["a", "b", "c"]));
        let verdicts = |evidence: &Evidence| {
            [Jury::Anybody, Jury::Different, Jury::Trusted].map(|jury| evidence.verdict(jury, false).is_some())
        };
        assert_eq!(verdicts(&same), [true, false, false]);
        assert_eq!(verdicts(&different), [true, true, false]);
        assert_eq!(verdicts(&Evidence { witnessed: true, ..same.clone() }), [true, false, true]);
        let mut trusted = same;
        trusted.failures[1].trusted = true;
        assert_eq!(verdicts(&trusted), [true, false, true]);
        assert_eq!(
            verdicts(&Evidence { witnessed: true, ..failed(&["a", "b"]) }),
            [false; 3],
            "two identities are too few"
        );
    }

    #[test]
    fn a_process_that_reconnects_was_not_lost() {
        let two = evidence(&[lost(1, "a", true, true), lost(2, "b", true, true)]);
        let one = two.without(1).unwrap();
        assert!(!one.names(&Identity::of("a", "10.0.0.1")) && one.names(&Identity::of("b", "10.0.0.1")));
        assert_eq!(one.without(2), None);
        let failed = Evidence { failures: vec![failed_on("a", true)], ..evidence(&[lost(1, "a", true, true)]) };
        assert!(failed.without(1).is_some());
    }
}
