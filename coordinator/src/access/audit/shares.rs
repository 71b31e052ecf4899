//! Limits how many lines of the audit log somebody can cause: several at once, and then one per interval. So nobody can fill
//! the disk or hide what others do. There is no clock here: times come in, in seconds since 1970.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv6Addr},
};

use serde_json::Value;

use crate::store::LogPart;

/// The most shares that are remembered. Beyond that, the least used ones are forgotten.
const SHARES_MAX: usize = 10_000;

/// Which lines are counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Whose {
    /// Refusals of one identity.
    Identity(String),
    /// Everything that identities of this token do or are refused, or everything with this cause.
    Account(String),
    /// Refusals of strangers without a certificate at one address.
    Address(String),
    /// Refusals of strangers at all addresses together.
    Strangers,
    /// Repeated joins with this token.
    Repeated(String),
    /// Actions of this coordinator for a cause that others can bring about, in the part that outlives the other one.
    Cause(String),
    /// Batches of the other part that do not wait for the store.
    Batches,
}

impl Whose {
    /// Strangers at this address. A host with IPv6 has all addresses of a network of 64 bits.
    pub(super) fn at(address: &str) -> Self {
        Self::Address(match address.parse() {
            Ok(IpAddr::V6(v6)) => Ipv6Addr::from(u128::from(v6) >> 64 << 64).to_string(),
            _ => address.to_owned(),
        })
    }

    /// How many lines are allowed at once, and the interval in seconds after which one more is.
    fn rate(&self) -> (u64, u64) {
        match self {
            Self::Identity(_) => (32, 60),
            // As many members of a large cluster may join at once with one token.
            Self::Account(_) => (1024, 15),
            Self::Address(_) => (8, 60),
            Self::Strangers => (64, 2),
            Self::Repeated(_) => (1, 3600),
            // These lines are among those of operators, so few are allowed.
            Self::Cause(_) => (32, 3600),
            Self::Batches => (64, 600),
        }
    }
}

/// A line that is left out for now. If no other follows, it is written when its share has room.
#[derive(Debug)]
pub(super) struct LeftOut {
    pub(super) part: LogPart,
    pub(super) whose: Vec<Whose>,
    pub(super) line: Value,
    pub(super) waits: bool,
}

/// How much of a share is used.
#[derive(Debug)]
struct Share {
    /// Since when the next line has been accruing.
    at_s: u64,
    /// How many lines are allowed now.
    lines: u64,
    /// How many lines were left out since the last written one, and the last of these.
    left_out: u64,
    waiting: Option<LeftOut>,
}

/// All shares.
#[derive(Debug, Default)]
pub(super) struct Shares(BTreeMap<Whose, Share>);

impl Shares {
    /// Takes a line from each of these shares. Returns how many were left out before it.
    ///
    /// # Errors
    /// The share that is used up; then nothing is taken.
    pub(super) fn take(&mut self, now_s: u64, whose: &[Whose]) -> Result<u64, Whose> {
        for one in whose {
            if self.share(now_s, one).lines == 0 {
                return Err(one.clone());
            }
        }
        let mut left_out = 0;
        for one in whose {
            let share = self.share(now_s, one);
            share.lines = share.lines.saturating_sub(1);
            share.waiting = None;
            left_out += std::mem::take(&mut share.left_out);
        }
        Ok(left_out)
    }

    /// Counts a line for which this share has no room.
    pub(super) fn leave_out(&mut self, now_s: u64, full: &Whose, line: LeftOut) {
        let share = self.share(now_s, full);
        share.left_out += 1;
        share.waiting = Some(line);
    }

    /// Whether the share has room for a line.
    pub(super) fn has(&mut self, now_s: u64, whose: &Whose) -> bool {
        self.share(now_s, whose).lines > 0
    }

    /// The left-out lines that have room now: the last of each share, with the number of those before it.
    pub(super) fn due(&mut self, now_s: u64) -> Vec<(LeftOut, u64)> {
        let waiting = |(whose, share): (&Whose, &Share)| share.waiting.is_some().then(|| whose.clone());
        let mut due = Vec::new();
        for whose in self.0.iter().filter_map(waiting).collect::<Vec<_>>() {
            let share = self.share(now_s, &whose);
            let Some(line) = share.waiting.take_if(|_| share.lines > 0) else { continue };
            match self.take(now_s, &line.whose) {
                // The count includes the line itself.
                Ok(left_out) => due.push((line, left_out.saturating_sub(1))),
                // Another share has no room for the line.
                Err(_) => self.share(now_s, &whose).waiting = Some(line),
            }
        }
        due
    }

    /// The share as it is now.
    fn share(&mut self, now_s: u64, whose: &Whose) -> &mut Share {
        let (at_once, each_s) = whose.rate();
        if self.0.len() >= SHARES_MAX && !self.0.contains_key(whose) {
            self.forget(now_s);
        }
        let new = || Share { at_s: now_s, lines: at_once, left_out: 0, waiting: None };
        let share = self.0.entry(whose.clone()).or_insert_with(new);
        let more = now_s.saturating_sub(share.at_s) / each_s;
        share.lines = at_once.min(share.lines.saturating_add(more));
        // A clock that was set back must not silence anybody.
        share.at_s = now_s.min(share.at_s + more * each_s);
        share
    }

    /// Makes room for another share. Shares that are full again are forgotten. If that is not enough, so is a tenth of all:
    /// those with nothing left out and the least use.
    fn forget(&mut self, now_s: u64) {
        let used = |whose: &Whose, share: &Share| {
            let (at_once, each_s) = whose.rate();
            at_once.saturating_sub(share.lines.saturating_add(now_s.saturating_sub(share.at_s) / each_s))
        };
        self.0.retain(|whose, share| share.left_out > 0 || used(whose, share) > 0);
        if self.0.len() < SHARES_MAX {
            return;
        }
        let by_use = |(whose, share): (&Whose, &Share)| (share.left_out, used(whose, share), whose.clone());
        let mut by_use: Vec<_> = self.0.iter().map(by_use).collect();
        by_use.sort_unstable();
        for (.., whose) in by_use.iter().take(SHARES_MAX / 10) {
            self.0.remove(whose);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_strangers_use_little_memory_and_the_busiest_is_kept() {
        let mut shares = Shares::default();
        let at = |number: u32| Whose::at(&IpAddr::from((0x0b00_0000 + number).to_be_bytes()).to_string());
        let (loud, identity) = (Whose::at("10.0.0.1"), Whose::Identity("0123456789ab".into()));
        while shares.take(0, std::slice::from_ref(&loud)).is_ok() {}
        while shares.take(0, std::slice::from_ref(&identity)).is_ok() {}
        for number in 0..3 * SHARES_MAX as u32 {
            assert_eq!(shares.take(0, &[at(number)]), Ok(0));
        }
        assert!(shares.0.len() <= SHARES_MAX && !shares.has(0, &loud) && !shares.has(0, &identity));
        assert!(shares.has(60, &loud));
        shares.forget(1_000_000);
        assert!(shares.0.is_empty(), "a share that is full again is forgotten");
    }

    #[test]
    fn a_network_of_one_host_is_one_address() {
        assert_eq!(Whose::at("2001:db8:1:2:3:4:5:6"), Whose::at("2001:db8:1:2:ffff::1"));
        assert_ne!(Whose::at("2001:db8:1:2::1"), Whose::at("2001:db8:1:3::1"));
        assert_ne!(Whose::at("10.0.0.1"), Whose::at("10.0.0.2"));
    }

    #[test]
    fn a_line_needs_room_in_all_of_its_shares() {
        let mut shares = Shares::default();
        let [one, other] = ["10.0.0.1", "10.0.0.2"].map(|address| vec![Whose::at(address), Whose::Strangers]);
        let taken = |shares: &mut Shares, whose: &[Whose]| (0..99).filter(|_| shares.take(5, whose).is_ok()).count();
        assert_eq!((taken(&mut shares, &one), taken(&mut shares, &other)), (8, 8));
        assert_eq!(
            taken(&mut shares, &[Whose::Strangers]),
            64 - 16,
            "other addresses have the room that one address was denied"
        );
    }
}
