//! How much a run trusts workers, as a value and in messages.

use std::fmt;

use crate::v1::{Order, Verification};

/// All, in millionths.
pub const MILLION: u32 = 1_000_000;

/// How much a run trusts workers. It changes no result, only what must have been computed by whom before an output counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// Every valid output of any worker counts.
    #[default]
    Plain,
    /// An output counts when workers of two identities sent the same, or a trusted worker sent it.
    Quorum,
    /// An output counts when a trusted worker sent it. Those of others are compared with it.
    Verified,
    /// Every valid output counts that was asked for. A trusted worker computes some of those of others again.
    Audited {
        /// Their share, 1 to 1,000,000 millionths.
        millionths: u32,
    },
}

impl Level {
    /// The level that a message names; `None` if this build does not know it, or the share makes no sense.
    #[must_use]
    pub fn of(message: i32, millionths: u32) -> Option<Self> {
        match Verification::try_from(message).ok()? {
            Verification::Unspecified => Some(Self::Plain),
            Verification::Quorum => Some(Self::Quorum),
            Verification::Verified => Some(Self::Verified),
            Verification::Audited => (1..=MILLION).contains(&millionths).then_some(Self::Audited { millionths }),
        }
    }

    /// The level of a stored order. One that this build does not know is taken for the strictest.
    #[must_use]
    pub fn of_order(order: &Order) -> Self {
        Self::of(order.verification, order.audit_millionths).unwrap_or(Self::Verified)
    }

    /// The name in messages.
    #[must_use]
    pub fn message(self) -> Verification {
        match self {
            Self::Plain => Verification::Unspecified,
            Self::Quorum => Verification::Quorum,
            Self::Verified => Verification::Verified,
            Self::Audited { .. } => Verification::Audited,
        }
    }

    /// The share that is audited, in millionths; 0 at other levels.
    #[must_use]
    pub fn millionths(self) -> u32 {
        match self {
            Self::Audited { millionths } => millionths,
            Self::Plain | Self::Quorum | Self::Verified => 0,
        }
    }

    /// How many identities vouch for an output that no trusted worker sent: if so many are convicted, it is void.
    #[must_use]
    pub fn vouchers(self) -> usize {
        if self == Self::Quorum { 2 } else { 1 }
    }

    /// Whether only a trusted worker computes what another one has sent.
    #[must_use]
    pub fn needs_trusted(self) -> bool {
        matches!(self, Self::Verified | Self::Audited { .. })
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain => f.write_str("plain"),
            Self::Quorum => f.write_str("quorum"),
            Self::Verified => f.write_str("verified"),
            Self::Audited { millionths } => write!(f, "audited:{}%", f64::from(*millionths) / 1e4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_read_as_it_was_written() {
        for level in [Level::Plain, Level::Quorum, Level::Verified, Level::Audited { millionths: 50_000 }] {
            assert_eq!(Level::of(level.message().into(), level.millionths()), Some(level));
        }
        let audited = Verification::Audited.into();
        assert_eq!([0, MILLION + 1].map(|millionths| Level::of(audited, millionths)), [None, None]);
        assert_eq!(Level::Audited { millionths: 52_500 }.to_string(), "audited:5.25%");
        assert_eq!(Level::of_order(&Order { verification: 99, ..Order::default() }), Level::Verified);
    }
}
