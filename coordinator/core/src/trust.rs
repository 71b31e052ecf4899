//! The identity that a worker's certificate gives it, and how much its outputs count in a run. Decisions only; the core acts
//! on them.

use std::sync::Arc;

use evoxo_common::digest::Digest;
use evoxo_proto::MILLION;

pub use evoxo_proto::Level;

/// The holder of a certificate. A worker can choose its name, but not its holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The identity's number.
    pub id: Arc<str>,
    /// Whether the role is "trusted worker": its outputs are taken as correct.
    pub trusted: bool,
}

/// The coordinator's secret, which decides which outputs are recomputed.
#[derive(Clone, Copy, Default)]
pub struct DrawKey(pub [u8; 32]);

impl std::fmt::Debug for DrawKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DrawKey")
    }
}

impl DrawKey {
    /// Whether this output is recomputed. The draw depends on the output, so its outcome is unknown before the output is
    /// sent. It also depends on the secret, so no worker can compute it.
    #[must_use]
    pub fn draws(&self, millionths: u32, task: Digest, identity: &str, output: Digest) -> bool {
        let draw = Digest::of_pieces([&self.0[..], b"sample", &task.0, identity.as_bytes(), &output.0]);
        draw.0[..8].iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte)) % u64::from(MILLION)
            < millionths.into()
    }
}

/// Draws the outputs of a run that are recomputed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Draw {
    /// The secret. It is not stored: the next leader has another one.
    pub key: DrawKey,
    /// The share to recompute, in millionths; 0 if no output is recomputed.
    pub millionths: u32,
}

impl Draw {
    /// See [`DrawKey::draws`].
    #[must_use]
    pub fn draws(&self, task: Digest, identity: &str, output: Digest) -> bool {
        self.key.draws(self.millionths, task, identity, output)
    }
}

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

impl Worth {
    /// What happens to an output; `None` if it is ignored. If the run does not trust workers, only a worker that was assigned
    /// the task may answer. Otherwise any worker could answer the tasks of others, using the public configuration.
    #[must_use]
    pub fn of(level: Level, holder: Option<&Holder>, asked: bool) -> Option<Self> {
        match (level, holder) {
            (Level::Plain, _) => Some(Self::Taken),
            (_, Some(holder)) if asked && holder.trusted => Some(Self::Taken),
            (Level::Sampled { .. }, Some(_)) if asked => Some(Self::Believed),
            (Level::Quorum, Some(_)) if asked => Some(Self::Seconded),
            (Level::Verified, Some(_)) if asked => Some(Self::Compared),
            _ => None,
        }
    }
}

/// Whether outputs in a state may be void: at least `vouchers` of the identities that vouched for its outputs are convicted.
/// Returns the number of rounds absorbed before the first such output. `exposed` lists the identities that vouched, each with
/// the number of rounds absorbed before its first output.
#[must_use]
pub fn void_since<'a>(
    exposed: impl Iterator<Item = (&'a str, u64)>,
    vouchers: usize,
    is_convicted: impl Fn(&str) -> bool,
) -> Option<u64> {
    let mut rounds: Vec<u64> = exposed.filter(|(identity, _)| is_convicted(identity)).map(|(_, round)| round).collect();
    rounds.sort_unstable();
    // Two identities cannot have vouched for each other before the second one sent its first output.
    rounds.get(vouchers - 1).copied()
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
                DrawKey([key; 32]).draws(50_000, task, "0123456789ab", output)
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
            assert_eq!(Worth::of(level, Some(&trusted), true), Some(Worth::Taken));
            assert_eq!(Worth::of(level, None, true), None, "its identity is unknown");
            assert!([&some, &trusted].iter().all(|holder| Worth::of(level, Some(holder), false).is_none()));
        }
        assert_eq!(Worth::of(Level::Quorum, Some(&some), true), Some(Worth::Seconded));
        assert_eq!(Worth::of(Level::Verified, Some(&some), true), Some(Worth::Compared));
        assert_eq!(Worth::of(Level::Plain, None, false), Some(Worth::Taken));
        assert_eq!(Worth::of(Level::Sampled { millionths: 1 }, Some(&some), true), Some(Worth::Believed));
        assert_eq!(Worth::of(Level::Sampled { millionths: 1 }, Some(&trusted), true), Some(Worth::Taken));
        assert_eq!(Worth::of(Level::Sampled { millionths: 1 }, Some(&some), false), None);
    }
}
