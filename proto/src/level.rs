//! How much a run trusts workers, as a value and in messages.

use std::fmt;

use crate::v1::{Order, Verification};

/// The whole, in millionths.
pub const MILLION: u32 = 1_000_000;

/// How much a run trusts workers. The level changes no result. It only decides which workers must have computed a task before
/// an output counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// Every valid output of any worker counts.
    #[default]
    Plain,
    /// An output counts when workers of two identities sent the same output, or when a trusted worker sent it.
    Quorum,
    /// An output counts when a trusted worker sent it. Outputs of other workers are compared with it.
    Verified,
    /// Every valid output of an assigned task counts. A trusted worker recomputes a share of the outputs of other workers.
    Sampled {
        /// The share to recompute, from 1 to 1,000,000 millionths.
        millionths: u32,
    },
}

impl Level {
    /// The level that a message names; `None` if this build does not know the level, or if the share is out of range.
    #[must_use]
    pub fn of(message: i32, millionths: u32) -> Option<Self> {
        match Verification::try_from(message).ok()? {
            Verification::Unspecified => Some(Self::Plain),
            Verification::Quorum => Some(Self::Quorum),
            Verification::Verified => Some(Self::Verified),
            Verification::Sampled => (1..=MILLION).contains(&millionths).then_some(Self::Sampled { millionths }),
        }
    }

    /// The level of a stored order. A level that this build does not know is treated as the strictest.
    #[must_use]
    pub fn of_order(order: &Order) -> Self {
        Self::of(order.verification, order.sampled_millionths).unwrap_or(Self::Verified)
    }

    /// The level's name in messages.
    #[must_use]
    pub fn message(self) -> Verification {
        match self {
            Self::Plain => Verification::Unspecified,
            Self::Quorum => Verification::Quorum,
            Self::Verified => Verification::Verified,
            Self::Sampled { .. } => Verification::Sampled,
        }
    }

    /// The share that is recomputed, in millionths; 0 at other levels.
    #[must_use]
    pub fn millionths(self) -> u32 {
        match self {
            Self::Sampled { millionths } => millionths,
            Self::Plain | Self::Quorum | Self::Verified => 0,
        }
    }

    /// How many identities vouch for an output that no trusted worker sent. If that many of them are convicted, the output is
    /// void.
    #[must_use]
    pub fn vouchers(self) -> usize {
        if self == Self::Quorum { 2 } else { 1 }
    }

    /// Whether only a trusted worker may recompute an output that another worker has sent.
    #[must_use]
    pub fn needs_trusted(self) -> bool {
        matches!(self, Self::Verified | Self::Sampled { .. })
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain => f.write_str("plain"),
            Self::Quorum => f.write_str("quorum"),
            Self::Verified => f.write_str("verified"),
            Self::Sampled { millionths } => write!(f, "sampled:{}%", f64::from(*millionths) / 1e4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_read_as_it_was_written() {
        for level in [Level::Plain, Level::Quorum, Level::Verified, Level::Sampled { millionths: 50_000 }] {
            assert_eq!(Level::of(level.message().into(), level.millionths()), Some(level));
        }
        let recomputed = Verification::Sampled.into();
        assert_eq!([0, MILLION + 1].map(|millionths| Level::of(recomputed, millionths)), [None, None]);
        assert_eq!(Level::Sampled { millionths: 52_500 }.to_string(), "sampled:5.25%");
        assert_eq!(Level::of_order(&Order { verification: 99, ..Order::default() }), Level::Verified);
    }
}
