//! How many lines of the audit log somebody can bring about: some at once, and then one in a while. So nobody fills the disk, and nobody
//! hides what others do. No clock: times come in, in seconds since 1970.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv6Addr},
};

use serde_json::Value;

use crate::store::LogPart;

/// The shares that are remembered at once. With more, those of which least is used are forgotten.
const SHARES_MAX: usize = 10_000;

/// Whose lines are counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Whose {
    /// What is refused to an identity.
    Identity(String),
    /// What all who came by this token do and are refused, or what has this cause.
    Account(String),
    /// What is refused to those without a certificate at an address.
    Address(String),
    /// The same at all addresses.
    Strangers,
    /// Joins with this token that are repeated.
    Repeated(String),
    /// What this coordinator does for a cause that others can bring about, among the lines that outlive all others.
    Cause(String),
    /// Batches of other lines that do not wait for the store.
    Batches,
}

impl Whose {
    /// Strangers at this address. Somebody with IPv6 has all addresses of a network of 64 bits.
    pub(super) fn at(address: &str) -> Self {
        Self::Address(match address.parse() {
            Ok(IpAddr::V6(v6)) => Ipv6Addr::from(u128::from(v6) >> 64 << 64).to_string(),
            _ => address.to_owned(),
        })
    }

    /// The lines that it may have at once, and the time after which it has one more, in seconds.
    fn rate(&self) -> (u64, u64) {
        match self {
            Self::Identity(_) => (32, 60),
            // As many as one token lets in of a large cluster at once.
            Self::Account(_) => (1024, 15),
            Self::Address(_) => (8, 60),
            Self::Strangers => (64, 2),
            Self::Repeated(_) => (1, 3600),
            // They are among the lines of operators, so few can be brought about.
            Self::Cause(_) => (32, 3600),
            Self::Batches => (64, 600),
        }
    }
}

/// A line that is left out for now. If no other comes, it is written when there is a share for it.
#[derive(Debug)]
pub(super) struct LeftOut {
    pub(super) part: LogPart,
    pub(super) whose: Vec<Whose>,
    pub(super) line: Value,
    pub(super) waits: bool,
}

/// What somebody has used of its share.
#[derive(Debug)]
struct Share {
    /// Since when a further line is on its way.
    at_s: u64,
    /// The lines that it may have now.
    lines: u64,
    /// Those that were left out since its last line, and the last of them.
    left_out: u64,
    waiting: Option<LeftOut>,
}

/// All shares.
#[derive(Debug, Default)]
pub(super) struct Shares(BTreeMap<Whose, Share>);

impl Shares {
    /// Takes a line of each of these shares, and returns how many were left out before it.
    ///
    /// # Errors
    /// The one that is used up; then none is taken.
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

    /// Whether there is room.
    pub(super) fn has(&mut self, now_s: u64, whose: &Whose) -> bool {
        self.share(now_s, whose).lines > 0
    }

    /// The lines that were left out and have room now, the last of each share, with the number of those before it.
    pub(super) fn due(&mut self, now_s: u64) -> Vec<(LeftOut, u64)> {
        let waiting = |(whose, share): (&Whose, &Share)| share.waiting.is_some().then(|| whose.clone());
        let mut due = Vec::new();
        for whose in self.0.iter().filter_map(waiting).collect::<Vec<_>>() {
            let share = self.share(now_s, &whose);
            let Some(line) = share.waiting.take_if(|_| share.lines > 0) else { continue };
            match self.take(now_s, &line.whose) {
                // It was counted itself.
                Ok(left_out) => due.push((line, left_out.saturating_sub(1))),
                // Another share has no room for it.
                Err(_) => self.share(now_s, &whose).waiting = Some(line),
            }
        }
        due
    }

    /// What somebody has now.
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

    /// Makes room for another one: those who have their whole share again are forgotten, or else a tenth of all, those of which nothing was
    /// left out and least is used.
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
    fn many_strangers_use_little_memory_and_whoever_did_most_is_remembered() {
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
        assert!(shares.0.is_empty(), "who has its whole share again is forgotten");
    }

    #[test]
    fn a_network_of_one_host_is_one_address() {
        assert_eq!(Whose::at("2001:db8:1:2:3:4:5:6"), Whose::at("2001:db8:1:2:ffff::1"));
        assert_ne!(Whose::at("2001:db8:1:2::1"), Whose::at("2001:db8:1:3::1"));
        assert_ne!(Whose::at("10.0.0.1"), Whose::at("10.0.0.2"));
    }

    #[test]
    fn a_line_needs_room_in_all_shares_and_takes_none_where_one_is_full() {
        let mut shares = Shares::default();
        let [one, other] = ["10.0.0.1", "10.0.0.2"].map(|address| vec![Whose::at(address), Whose::Strangers]);
        let taken = |shares: &mut Shares, whose: &[Whose]| (0..99).filter(|_| shares.take(5, whose).is_ok()).count();
        assert_eq!((taken(&mut shares, &one), taken(&mut shares, &other)), (8, 8));
        assert_eq!(taken(&mut shares, &[Whose::Strangers]), 64 - 16, "what one address was refused, others have");
    }
}
