//! When a standby takes over. Pure: what it sees comes in, one look after the other, and the decision goes out.
//!
//! There is no lease and no time of day. A standby counts its own looks, which its own monotonic clock spaces: one that was
//! stopped or asleep has seen nothing meanwhile, and does not take over because of that. If it is wrong, because the leader
//! lives and only the network between the two is down, no harm is done: the leader is superseded, ends its sessions, and is the
//! standby.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::store::{Epoch, Security};

/// A standby that has not asked for this long is gone.
const GONE_AFTER: Duration = Duration::from_secs(60);

/// What a standby sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// The store cannot be read, or the leader's address means nothing here: nobody can tell.
    Nothing,
    /// Nobody has ever led.
    NoLeader,
    /// The highest epoch, and whether its coordinator says that it leads in it.
    Leader(Epoch, bool),
}

/// Watches the leader.
#[derive(Debug)]
pub struct Watch {
    misses_max: u32,
    misses: u32,
    epoch: Option<Epoch>,
}

impl Watch {
    /// A watch that is patient for this many looks in a row.
    #[must_use]
    pub fn new(misses_max: u32) -> Self {
        Self { misses_max, misses: 0, epoch: None }
    }

    /// Whether to take over now.
    pub fn look(&mut self, look: &Look) -> bool {
        match look {
            Look::Nothing => false,
            Look::NoLeader => true,
            Look::Leader(epoch, answers) => {
                if self.epoch.as_ref() != Some(epoch) {
                    // Another one has taken over. It gets the same time.
                    (self.epoch, self.misses) = (Some(epoch.clone()), 0);
                }
                self.misses = if *answers { 0 } else { self.misses + 1 };
                self.misses >= self.misses_max
            }
        }
    }

    /// Looks in a row at which the leader did not answer.
    #[must_use]
    pub fn misses(&self) -> u32 {
        self.misses
    }
}

/// Why a standby that speaks like this does not take a store over that is led like that, and what to do; `None` if it may, or
/// if it is not known how the store is led. It would lock out everybody whom the leader lets in, or let in everybody.
#[must_use]
pub fn conflict(own: Security, leader: Option<Security>) -> Option<String> {
    let led = leader.filter(|led| *led != own)?;
    let (differs, mend) = match (own, led) {
        (Security::PlainText, _) => {
            ("has no access directory", "give it a copy of the leader's access directory, and start it with --access")
        }
        (_, Security::PlainText) => ("has an access directory", "start it without --access"),
        (..) => ("has the access directory of another one", "give it a new copy of the leader's access directory"),
    };
    Some(format!(
        "the store is led {led}, and this standby {differs}: stop it and {mend}; or, if what it has is what holds from now on, \
         stop all coordinators and start this one once without --standby, and it leads"
    ))
}

/// When a standby last asked whether this coordinator leads. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked(Arc<Mutex<Option<Instant>>>);

impl Asked {
    /// One asks now.
    pub(crate) fn note(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Whether one was there at this time.
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
    fn a_leader_is_given_up_after_so_many_misses_in_a_row() {
        let mut watch = Watch::new(3);
        for answers in [false, false, true, false, false] {
            assert!(!watch.look(&leader(1, answers)));
        }
        assert!(!watch.look(&Look::Nothing), "who cannot see the store cannot take over");
        assert!(watch.look(&leader(1, false)));
    }

    #[test]
    fn a_standby_of_another_authority_or_of_none_does_not_take_over() {
        let [one, other] = [1, 2].map(|byte| Security::Authority([byte; 32].as_slice().try_into().unwrap()));
        for own in [Security::PlainText, one] {
            assert_eq!(conflict(own, Some(own)), None);
            assert_eq!(conflict(own, None), None, "an earlier build does not say it");
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
    fn a_new_leader_gets_the_same_time_and_an_unused_store_none() {
        let mut watch = Watch::new(2);
        for number in 1..9 {
            assert!(!watch.look(&leader(number, false)), "somebody takes over again and again");
        }
        assert!(watch.look(&leader(8, false)));
        assert!(Watch::new(9).look(&Look::NoLeader));
    }
}
