//! How often an address, or who has a token, may do something before anybody knows who is there: a number of times at once, and then
//! once in a while. No clock: times come in.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// Those that are remembered at once. With more, those that did least are forgotten.
const ASKERS_MAX: usize = 4096;

/// What each address, or each token, may do.
pub(super) struct Allowance<T> {
    at_once: u32,
    each: Duration,
    /// When all of what it has done will be forgiven.
    until: BTreeMap<T, Instant>,
}

impl<T: Clone + Ord> Allowance<T> {
    /// So many times at once, and one more after each of these times.
    pub(super) fn new(at_once: u32, each: Duration) -> Self {
        Self { at_once, each, until: BTreeMap::new() }
    }

    /// Notes that somebody does it, unless it may not.
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
    fn an_address_may_do_it_so_often_and_others_may_too() {
        let mut allowance = Allowance::new(3, EACH);
        let [one, other] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
        let start = Instant::now();
        assert_eq!([0; 4].map(|_| allowance.take(&one, start)), [true, true, true, false]);
        assert!(allowance.take(&other, start));
        // One more after each time, and never more than at first.
        assert!(!allowance.take(&one, start + EACH - Duration::from_secs(1)));
        assert!(allowance.take(&one, start + EACH) && !allowance.take(&one, start + EACH));
        let later = start + 100 * EACH;
        assert_eq!([0; 4].map(|_| allowance.take(&one, later)), [true, true, true, false]);
    }

    #[test]
    fn many_addresses_use_little_memory_and_whoever_did_most_is_remembered() {
        let mut allowance = Allowance::new(3, EACH);
        let (guesser, now) = (IpAddr::from([10, 0, 0, 1]), Instant::now());
        assert_eq!([0; 4].map(|_| allowance.take(&guesser, now)), [true, true, true, false]);
        for number in 0..2 * ASKERS_MAX as u32 {
            assert!(allowance.take(&IpAddr::from((0x0b00_0000 + number).to_be_bytes()), now));
        }
        assert!(allowance.until.len() <= ASKERS_MAX && !allowance.take(&guesser, now));
        allowance.take(&guesser, now + 10 * EACH);
        assert_eq!(allowance.until.len(), 1, "what is forgiven is forgotten");
    }
}
