//! The identity that a worker's certificate gives it, and how much its outputs count in a run. Decisions only; the core acts
//! on them.

use std::sync::Arc;

use evoxo_common::digest::Digest;
use evoxo_proto::v1::{Order, Verification};

/// The holder of a certificate. A worker can choose its name, but not its holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The identity's number.
    pub id: Arc<str>,
    /// Whether the role is "trusted worker": its outputs are taken as correct.
    pub trusted: bool,
}

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
    Audited {
        /// The share to recompute, from 1 to 1,000,000 millionths.
        millionths: u32,
    },
}

/// The coordinator's secret, which decides which outputs are recomputed.
#[derive(Clone, Copy, Default)]
pub struct AuditKey(pub [u8; 32]);

impl std::fmt::Debug for AuditKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AuditKey")
    }
}

impl AuditKey {
    /// Whether this output is recomputed. The draw depends on the output, so its outcome is unknown before the output is
    /// sent. It also depends on the secret, so no worker can compute it.
    #[must_use]
    pub fn draws(&self, millionths: u32, task: Digest, identity: &str, output: Digest) -> bool {
        let draw = Digest::of_pieces([&self.0[..], b"audit", &task.0, identity.as_bytes(), &output.0]);
        draw.0[..8].iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte)) % u64::from(ALL)
            < millionths.into()
    }
}

/// Draws the outputs of a run that are recomputed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Draw {
    /// The secret. It is not stored: the next leader has another one.
    pub key: AuditKey,
    /// The share to recompute, in millionths; 0 if no output is recomputed.
    pub millionths: u32,
}

impl Draw {
    /// See [`AuditKey::draws`].
    #[must_use]
    pub fn draws(&self, task: Digest, identity: &str, output: Digest) -> bool {
        self.key.draws(self.millionths, task, identity, output)
    }
}

/// The whole, in millionths.
const ALL: u32 = 1_000_000;

/// What happens to a valid output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worth {
    /// The output is taken.
    Taken,
    /// The output is taken on the sender's word, and the sender is remembered.
    Believed,
    /// The output is taken if another identity sent the same output before.
    Seconded,
    /// The output is only compared with the one that is taken.
    Compared,
}

impl Level {
    /// What happens to an output; `None` if it is ignored. If the run does not trust workers, only a worker that was assigned
    /// the task may answer. Otherwise any worker could answer the tasks of others, using the public configuration.
    #[must_use]
    pub fn worth(self, holder: Option<&Holder>, asked: bool) -> Option<Worth> {
        match (self, holder) {
            (Self::Plain, _) => Some(Worth::Taken),
            (_, Some(holder)) if asked && holder.trusted => Some(Worth::Taken),
            (Self::Audited { .. }, Some(_)) if asked => Some(Worth::Believed),
            (Self::Quorum, Some(_)) if asked => Some(Worth::Seconded),
            (Self::Verified, Some(_)) if asked => Some(Worth::Compared),
            _ => None,
        }
    }

    /// The level that a message names; `None` if this build does not know the level, or if the share is out of range.
    #[must_use]
    pub fn of(message: i32, millionths: u32) -> Option<Self> {
        match Verification::try_from(message).ok()? {
            Verification::Unspecified => Some(Self::Plain),
            Verification::Quorum => Some(Self::Quorum),
            Verification::Verified => Some(Self::Verified),
            Verification::Audited => (1..=ALL).contains(&millionths).then_some(Self::Audited { millionths }),
        }
    }

    /// The level of a stored order. A level that this build does not know is treated as the strictest.
    #[must_use]
    pub fn of_order(order: &Order) -> Self {
        Self::of(order.verification, order.audit_millionths).unwrap_or(Self::Verified)
    }

    /// The level's name in messages.
    #[must_use]
    pub fn message(self) -> Verification {
        match self {
            Self::Plain => Verification::Unspecified,
            Self::Quorum => Verification::Quorum,
            Self::Verified => Verification::Verified,
            Self::Audited { .. } => Verification::Audited,
        }
    }

    /// The share that is recomputed, in millionths; 0 at other levels.
    #[must_use]
    pub fn millionths(self) -> u32 {
        match self {
            Self::Audited { millionths } => millionths,
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
        matches!(self, Self::Verified | Self::Audited { .. })
    }
}

/// Whether outputs in a state may be void: at least `vouchers` of the identities that vouched for its outputs are convicted.
/// Returns the number of rounds absorbed before the first such output. `exposed` lists the identities that vouched, each with
/// the number of rounds absorbed before its first output.
pub(crate) fn void_since<'a>(
    exposed: impl Iterator<Item = (&'a str, u64)>,
    vouchers: usize,
    is_convicted: impl Fn(&str) -> bool,
) -> Option<u64> {
    let mut rounds: Vec<u64> = exposed.filter(|(identity, _)| is_convicted(identity)).map(|(_, round)| round).collect();
    rounds.sort_unstable();
    // Two identities cannot have vouched for each other before the second one sent its first output.
    rounds.get(vouchers - 1).copied()
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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

    /// The drawn share is the requested share, and another secret draws other outputs.
    #[test]
    fn the_recomputed_share_is_unpredictable() {
        let drawn = |key: u8| -> Vec<bool> {
            let draws = |number: u32| {
                let (task, output) = (Digest::of(&number.to_le_bytes()), Digest::of(b"output"));
                AuditKey([key; 32]).draws(50_000, task, "0123456789ab", output)
            };
            (0..20_000).map(draws).collect()
        };
        let (one, other) = (drawn(1), drawn(2));
        let both = one.iter().zip(&other).filter(|(one, other)| **one && **other).count();
        for drawn in [one, other] {
            let count = drawn.iter().filter(|drawn| **drawn).count();
            // The mean is 1,000 and the standard deviation 31.
            assert!((850..1150).contains(&count), "{count}");
        }
        assert!((20..90).contains(&both), "mean 50: {both}");
    }

    #[test]
    fn a_quorum_is_void_when_two_possible_vouchers_are_convicted() {
        let exposed = [("liar", 7), ("honest", 0), ("friend", 3)];
        let since = |vouchers, convicted: &[&str]| {
            void_since(exposed.iter().copied(), vouchers, |identity| convicted.contains(&identity))
        };
        assert_eq!([since(1, &["liar"]), since(2, &["liar"]), since(1, &["other"])], [Some(7), None, None]);
        assert_eq!([since(1, &["liar", "friend"]), since(2, &["liar", "friend"])], [Some(3), Some(7)]);
        assert_eq!([Level::Quorum, Level::Verified].map(Level::vouchers), [2, 1]);
    }

    #[test]
    fn outputs_count_by_level_role_and_assignment() {
        let [some, trusted] = [false, true].map(|trusted| Holder { id: "0123456789ab".into(), trusted });
        for level in [Level::Quorum, Level::Verified] {
            assert_eq!(level.worth(Some(&trusted), true), Some(Worth::Taken));
            assert_eq!(level.worth(None, true), None, "its identity is unknown");
            assert!([&some, &trusted].iter().all(|holder| level.worth(Some(holder), false).is_none()));
        }
        assert_eq!(Level::Quorum.worth(Some(&some), true), Some(Worth::Seconded));
        assert_eq!(Level::Verified.worth(Some(&some), true), Some(Worth::Compared));
        assert_eq!(Level::Plain.worth(None, false), Some(Worth::Taken));
        assert_eq!(Level::Audited { millionths: 1 }.worth(Some(&some), true), Some(Worth::Believed));
        assert_eq!(Level::Audited { millionths: 1 }.worth(Some(&trusted), true), Some(Worth::Taken));
        assert_eq!(Level::Audited { millionths: 1 }.worth(Some(&some), false), None);
        for level in [Level::Plain, Level::Quorum, Level::Verified, Level::Audited { millionths: 50_000 }] {
            assert_eq!(Level::of(level.message().into(), level.millionths()), Some(level));
        }
        let audited = Verification::Audited.into();
        assert_eq!([0, ALL + 1].map(|millionths| Level::of(audited, millionths)), [None, None]);
        assert_eq!(Level::Audited { millionths: 52_500 }.to_string(), "audited:5.25%");
        assert_eq!(Level::of_order(&Order { verification: 99, ..Order::default() }), Level::Verified);
    }
}
