//! Limits how often an address or a token may do something before its owner is identified: several times at once, and then
//! once per interval. There is no clock here: the caller passes times in.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// The most addresses or tokens that are remembered. Beyond that, the ones that did least are forgotten.
const ASKERS_MAX: usize = 4096;

/// What each address or token may still do.
pub(super) struct Allowance<T> {
    at_once: u32,
    each: Duration,
    /// When everything that an address or a token has done is forgiven.
    until: BTreeMap<T, Instant>,
}

impl<T: Clone + Ord> Allowance<T> {
    /// Allows an action `at_once` times immediately, and one more time after each interval of length `each`.
    pub(super) fn new(at_once: u32, each: Duration) -> Self {
        Self { at_once, each, until: BTreeMap::new() }
    }

    /// Notes an action of `asker`. Returns false, and notes nothing, if the action is not allowed.
    pub(super) fn take(&mut self, asker: &T, now: Instant) -> bool {
        let until = self.until.get(asker).map_or(now, |until| (*until).max(now)) + self.each;
        if until > now + self.each * self.at_once {
            return false;
        }
        if self.until.len() >= ASKERS_MAX {
            self.until.retain(|_, until| *until > now);
        }
        let least = || self.until.iter().min_by_key(|(_, until)| **until).map(|(asker, _)| asker.clone());
        if self.until.len() >= ASKERS_MAX
            && let Some(least) = least()
        {
            self.until.remove(&least);
        }
        self.until.insert(asker.clone(), until);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    const EACH: Duration = Duration::from_secs(6);

    #[test]
    fn each_address_has_its_own_allowance() {
        let mut allowance = Allowance::new(3, EACH);
        let [one, other] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
        let start = Instant::now();
        assert_eq!([0; 4].map(|_| allowance.take(&one, start)), [true, true, true, false]);
        assert!(allowance.take(&other, start));
        // One more time per interval, but never more than at first.
        assert!(!allowance.take(&one, start + EACH - Duration::from_secs(1)));
        assert!(allowance.take(&one, start + EACH) && !allowance.take(&one, start + EACH));
        let later = start + 100 * EACH;
        assert_eq!([0; 4].map(|_| allowance.take(&one, later)), [true, true, true, false]);
    }

    #[test]
    fn many_addresses_use_little_memory_and_the_busiest_is_kept() {
        let mut allowance = Allowance::new(3, EACH);
        let (guesser, now) = (IpAddr::from([10, 0, 0, 1]), Instant::now());
        assert_eq!([0; 4].map(|_| allowance.take(&guesser, now)), [true, true, true, false]);
        for number in 0..2 * ASKERS_MAX as u32 {
            assert!(allowance.take(&IpAddr::from((0x0b00_0000 + number).to_be_bytes()), now));
        }
        assert!(allowance.until.len() <= ASKERS_MAX && !allowance.take(&guesser, now));
        allowance.take(&guesser, now + 10 * EACH);
        assert_eq!(allowance.until.len(), 1, "forgiven entries are forgotten");
    }
}
