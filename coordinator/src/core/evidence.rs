//! What speaks against a task: workers that were lost with it, and workers on which it failed.
//!
//! A task that kills its workers must be found, and a worker that is killed again and again must not look like one. So a loss
//! counts for much only where the worker had proved itself: it had been connected for ten times as long as the task takes,
//! and had computed something ([`crate::core::Settings`] has no say in it). [`Evidence::verdict`] has the rule.

use std::collections::BTreeSet;

use evoxo_common::time::Millis;

use super::standing::Identity;

/// Workers that had proved themselves and were lost alone with a task: with this number it is convicted.
const PROVEN_LOSSES_MAX: usize = 3;
/// All losses alone: with this number a task is convicted, whoever was lost. So a task that kills its workers takes at most
/// this number of them with it, and the one with which it was found.
const LOSSES_MAX: usize = 10;
/// Times that a task may be overdue alone, with four times as much patience each time.
const OVERDUE_MAX: u32 = 3;
/// Times that a task may fail.
const FAILURES_MAX: usize = 3;

/// A worker was lost while it had the task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Loss {
    pub(super) worker: Identity,
    /// If it comes back, it was not the task.
    pub(super) process: u64,
    /// It had nothing else.
    pub(super) alone: bool,
    /// It had proved itself, and its connection ended.
    pub(super) proven: bool,
}

/// What speaks against a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Evidence {
    /// When it became a suspect.
    pub(super) since: Millis,
    pub(super) losses: Vec<Loss>,
    /// Where it failed.
    pub(super) failures: Vec<Identity>,
    /// How often it was overdue alone.
    pub(super) overdue: u32,
}

impl Evidence {
    pub(super) fn since(since: Millis) -> Self {
        Self { since, losses: Vec::new(), failures: Vec::new(), overdue: 0 }
    }

    /// Whether it was lost or failed on this worker: another one should try it, if there is one.
    pub(super) fn names(&self, worker: &Identity) -> bool {
        self.failures.contains(worker) || self.losses.iter().any(|loss| loss.worker == *worker)
    }

    /// What the task is found guilty of, as the end of a sentence, if it is.
    pub(super) fn verdict(&self) -> Option<String> {
        let alone = self.losses.iter().filter(|loss| loss.alone);
        let proven: BTreeSet<&Identity> = alone.clone().filter(|loss| loss.proven).map(|loss| &loss.worker).collect();
        if proven.len() >= PROVEN_LOSSES_MAX {
            return Some(format!("took {PROVEN_LOSSES_MAX} workers with it that had been reliable, alone on each"));
        }
        if alone.count() >= LOSSES_MAX {
            return Some(format!("took workers with it {LOSSES_MAX} times, alone each time"));
        }
        if self.overdue >= OVERDUE_MAX {
            return Some(format!("did not end {OVERDUE_MAX} times, alone each time"));
        }
        (self.failures.len() >= FAILURES_MAX).then(|| format!("failed {FAILURES_MAX} times"))
    }

    /// The same without the losses of a process; `None` if nothing is left.
    pub(super) fn without(mut self, process: u64) -> Option<Self> {
        self.losses.retain(|loss| loss.process != process);
        (!self.losses.is_empty() || !self.failures.is_empty() || self.overdue > 0).then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(number: u64, worker: &str, alone: bool, proven: bool) -> Loss {
        Loss { worker: Identity::of(worker, "10.0.0.1"), process: number, alone, proven }
    }

    fn evidence(losses: &[Loss]) -> Evidence {
        Evidence { losses: losses.to_vec(), ..Evidence::since(Millis(0)) }
    }

    #[test]
    fn three_reliable_workers_convict_and_one_lost_often_does_not() {
        let three = [lost(1, "a", true, true), lost(2, "b", true, true), lost(3, "c", true, true)];
        assert!(evidence(&three).verdict().is_some_and(|why| why.starts_with("took 3 workers")));
        assert_eq!(evidence(&three[..2]).verdict(), None);
        let nine: Vec<Loss> = (0..9).map(|number| lost(number, "a", true, true)).collect();
        assert_eq!(evidence(&nine).verdict(), None, "one worker, again and again");
        let company: Vec<Loss> = (0..99).map(|number| lost(number, &format!("w{number}"), false, true)).collect();
        assert_eq!(evidence(&company).verdict(), None, "never alone");
        let strangers = [lost(1, "a", true, false), lost(2, "b", true, false), lost(3, "c", true, false)];
        assert_eq!(evidence(&strangers).verdict(), None, "nobody knows them");
    }

    #[test]
    fn ten_losses_alone_convict() {
        let ten: Vec<Loss> = (0..10).map(|number| lost(number, "a", true, false)).collect();
        assert!(evidence(&ten).verdict().is_some_and(|why| why.starts_with("took workers with it 10 times")));
    }

    #[test]
    fn who_comes_back_was_not_lost() {
        let two = evidence(&[lost(1, "a", true, true), lost(2, "b", true, true)]);
        let one = two.without(1).unwrap();
        assert!(!one.names(&Identity::of("a", "10.0.0.1")) && one.names(&Identity::of("b", "10.0.0.1")));
        assert_eq!(one.without(2), None);
        let failed = Evidence { failures: vec![Identity::of("a", "x")], ..evidence(&[lost(1, "a", true, true)]) };
        assert!(failed.without(1).is_some());
    }
}
