//! Decides when a standby takes over. Pure: observations come in, one look after the other, and the decision goes out.
//!
//! There is no lease and no time of day. A standby counts its own looks, which its monotonic clock spaces. A standby that was
//! stopped or asleep has made no looks meanwhile, so it does not take over because of the pause. If it is wrong, because the
//! leader is alive and only the network between the two is down, no harm is done: the leader is superseded, ends its
//! sessions, and becomes the standby.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::store::{Epoch, Security};

/// A standby that has not asked for this long counts as gone.
const GONE_AFTER: Duration = Duration::from_secs(60);

/// The longest time that a standby waits for a leader that does not answer, unless it was configured to wait longer.
const PATIENCE_MAX: Duration = Duration::from_secs(300);

/// How long a process waits for a leader that does not answer. Two processes that both reach the store but not each other
/// would take the lead from each other forever. So a process that was superseded soon after it took over waits twice as long
/// the next time. After a long time as leader, or as a standby whose leader always answered, its patience returns to the
/// configured time.
#[derive(Debug)]
pub struct Patience {
    least: Duration,
    now: Duration,
}

impl Patience {
    /// The patience of a process that has not led yet.
    #[must_use]
    pub fn new(least: Duration) -> Self {
        Self { least, now: least }
    }

    /// How long the process waits now.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.now
    }

    /// Returns to the configured time. Returns whether the process waited longer before.
    pub fn calm_down(&mut self) -> bool {
        let waited = self.now > self.least;
        self.now = self.least;
        waited
    }

    /// Notes that the process was superseded after it had led for this long.
    pub fn superseded(&mut self, led: Duration) {
        let most = PATIENCE_MAX.max(self.least);
        // The other process may be as patient as that.
        let soon = led < most.saturating_mul(2);
        self.now = if soon { self.now.saturating_mul(2).min(most) } else { self.least };
    }
}

/// What a standby observes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// Nothing certain: the store cannot be read, or the leader's address cannot be used here.
    Nothing,
    /// No coordinator has ever led.
    NoLeader,
    /// The highest epoch, and whether its coordinator reports that it leads in it.
    Leader(Epoch, bool),
}

/// Watches the leader.
#[derive(Debug)]
pub struct Watch {
    misses_max: u32,
    misses: u32,
    /// How many looks in a row the leader has answered.
    answers: u32,
    epoch: Option<Epoch>,
}

impl Watch {
    /// A watch that takes over after this many misses in a row.
    #[must_use]
    pub fn new(misses_max: u32) -> Self {
        Self { misses_max, misses: 0, answers: 0, epoch: None }
    }

    /// Notes a look. Returns whether to take over now.
    pub fn look(&mut self, look: &Look) -> bool {
        match look {
            Look::Nothing => false,
            Look::NoLeader => true,
            Look::Leader(epoch, answers) => {
                if self.epoch.as_ref() != Some(epoch) {
                    // Another coordinator has taken over. It gets the same time.
                    (self.epoch, self.misses, self.answers) = (Some(epoch.clone()), 0, 0);
                }
                (self.misses, self.answers) =
                    if *answers { (0, self.answers.saturating_add(1)) } else { (self.misses + 1, 0) };
                self.misses >= self.misses_max
            }
        }
    }

    /// Whether the leader has answered for twice the time without a miss, so the two can reach each other.
    #[must_use]
    pub fn is_sure(&self) -> bool {
        self.answers / 2 >= self.misses_max
    }

    /// How many looks in a row the leader has missed.
    #[must_use]
    pub fn misses(&self) -> u32 {
        self.misses
    }
}

/// Why a standby with the security `own` must not take over a store whose leader has the security `leader`, and what to do.
/// `None` if it may, or if the leader's security is unknown. A standby in plain text would let everybody in, and one under
/// another authority would lock out everybody whom the leader admits.
#[must_use]
pub fn conflict(own: Security, leader: Option<Security>) -> Option<String> {
    let led = leader.filter(|led| *led != own)?;
    let (differs, mend) = match (own, led) {
        (Security::PlainText, _) => {
            ("has no access directory", "give it a copy of the leader's access directory and start it with --access")
        }
        (_, Security::PlainText) => ("has an access directory", "start it without --access"),
        (..) => {
            ("has the access directory of another authority", "give it a new copy of the leader's access directory")
        }
    };
    Some(format!(
        "the store is led {led}, and this standby {differs}: stop it and {mend}; or, if this standby's configuration \
         is the right one from now on, stop all coordinators and start this one once without --standby, and it leads"
    ))
}

/// When a standby last asked whether this coordinator leads. Clones share the value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked(Arc<Mutex<Option<Instant>>>);

impl Asked {
    /// Notes that a standby asks now.
    pub(crate) fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Whether a standby was there at this time.
    pub(crate) fn is_there(&self, at: Instant) -> bool {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.is_some_and(|last| at.saturating_duration_since(last) < GONE_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leader(number: u64, answers: bool) -> Look {
        Look::Leader(Epoch { number, tag: None }, answers)
    }

    #[test]
    fn a_leader_is_superseded_after_enough_misses_in_a_row() {
        let mut watch = Watch::new(3);
        for answers in [false, false, true, false, false] {
            assert!(!watch.look(&leader(1, answers)));
        }
        assert!(!watch.look(&Look::Nothing), "a standby that cannot see the store cannot take over");
        assert!(watch.look(&leader(1, false)));
    }

    #[test]
    fn a_coordinator_superseded_soon_is_more_patient_the_next_time() {
        let mut patience = Patience::new(Duration::from_secs(5));
        let mut waited = Vec::new();
        for _ in 0..8 {
            waited.push(patience.time().as_secs());
            patience.superseded(patience.time());
        }
        assert_eq!(waited, [5, 10, 20, 40, 80, 160, 300, 300]);
        patience.superseded(Duration::from_secs(600));
        assert_eq!(patience.time().as_secs(), 5);
        let mut patience = Patience::new(Duration::from_secs(3600));
        patience.superseded(Duration::ZERO);
        assert_eq!(patience.time().as_secs(), 3600, "that patience was configured");
    }

    #[test]
    fn long_contact_with_the_leader_resets_the_patience() {
        let mut patience = Patience::new(Duration::from_secs(5));
        assert!(!patience.calm_down());
        patience.superseded(Duration::ZERO);
        assert!(patience.calm_down() && patience.time().as_secs() == 5);
        let mut watch = Watch::new(2);
        for (answers, sure) in [
            (true, false),
            (true, false),
            (true, false),
            (false, false),
            (true, false),
            (true, false),
            (true, false),
            (true, true),
        ] {
            watch.look(&leader(1, answers));
            assert_eq!(watch.is_sure(), sure);
        }
        watch.look(&Look::Nothing);
        assert!(watch.is_sure(), "such a look says nothing about the leader");
        watch.look(&leader(2, true));
        assert!(!watch.is_sure(), "another coordinator leads");
    }

    /// Two processes that cannot reach each other, with times in seconds: the leader is superseded when the other one's
    /// patience ends.
    #[test]
    fn two_that_cannot_reach_each_other_lead_longer_and_longer() {
        let mut both = [(); 2].map(|()| Patience::new(Duration::from_secs(5)));
        let mut turns = Vec::new();
        for turn in 0..16 {
            let led = both[(turn + 1) % 2].time();
            both[turn % 2].superseded(led);
            turns.push(led.as_secs());
        }
        assert!(turns.is_sorted() && turns[..4] == [5, 10, 10, 20] && turns[15] == 300, "{turns:?}");
    }

    #[test]
    fn a_standby_without_the_same_authority_does_not_take_over() {
        let [one, other] = [1, 2].map(|byte| Security::Authority([byte; 32].as_slice().try_into().unwrap()));
        for own in [Security::PlainText, one] {
            assert_eq!(conflict(own, Some(own)), None);
            assert_eq!(conflict(own, None), None, "an earlier build does not record the authority");
        }
        for (own, led, mend) in [
            (Security::PlainText, one, "start it with --access"),
            (one, Security::PlainText, "start it without --access"),
            (other, one, "give it a new copy"),
        ] {
            let sentence = conflict(own, Some(led)).unwrap();
            assert!(sentence.contains(mend) && sentence.contains("without --standby"), "{sentence}");
        }
    }

    #[test]
    fn a_new_leader_gets_the_full_time_and_an_unused_store_none() {
        let mut watch = Watch::new(2);
        for number in 1..9 {
            assert!(!watch.look(&leader(number, false)), "another coordinator takes over each time");
        }
        assert!(watch.look(&leader(8, false)));
        assert!(Watch::new(9).look(&Look::NoLeader));
    }
}
