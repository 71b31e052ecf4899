//! Digests of results. The digest of a replica covers everything that is reported about it: every row of its history, in
//! order, the state after its last round, and how it ended. Two results with the same digest have the same report.
//!
//! Rows form a chain: each link is the hash of the link before it and of the next row. The digest after a round is the hash
//! of the link of its last row, the state and the failure. The chain has a link for each row and not for each round, because
//! the division of work into rounds is not part of a result (docs/decisions/a-digest-covers-the-history.md).

use evoxo_proto::v1::{Chain, ReplicaState};

use crate::digest::Digest;

/// The beginning of a digest's text. Digests without it come from builds that did not hash the history.
const FORM: &str = "r1:";

/// The digest of a replica, or of all replicas of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResultDigest(Digest);

impl ResultDigest {
    /// The digest of a run, made from the digests of all replicas in order of arm, then number.
    #[must_use]
    pub fn of_run(replicas: impl IntoIterator<Item = Self>) -> Self {
        let digests: Vec<Self> = replicas.into_iter().collect();
        Self(Digest::of_pieces(digests.iter().map(|digest| digest.0.0.as_slice())))
    }

    /// The digest of a saved replica.
    #[must_use]
    pub fn of_state(saved: &ReplicaState) -> Self {
        let rows = saved.history.iter().map(|row| row.values.as_slice());
        RowChain::of(rows).digest(&saved.arm, saved.replica, &saved.state, &saved.failure)
    }

    /// Parses the displayed text; `None` if it is not a digest of this form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.strip_prefix(FORM).and_then(Digest::from_hex).map(Self)
    }
}

impl std::fmt::Display for ResultDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{FORM}{}", self.0)
    }
}

/// The hash of all rows so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowChain(Digest);

impl RowChain {
    /// The chain of these rows, from the first one.
    pub(super) fn of<'a>(rows: impl IntoIterator<Item = &'a [f64]>) -> Self {
        let mut chain = Self(Digest::of(b"evoxo rows"));
        rows.into_iter().for_each(|row| chain.add(row));
        chain
    }

    /// Adds the next row.
    pub(super) fn add(&mut self, row: &[f64]) {
        let values: Vec<u8> = row.iter().flat_map(|value| value.to_bits().to_le_bytes()).collect();
        self.0 = Digest::of_pieces([self.0.0.as_slice(), &values]);
    }

    /// The digest of a replica with these rows and this state.
    pub(super) fn digest(&self, arm: &str, index: u32, state: &[u8], failure: &str) -> ResultDigest {
        let pieces = [arm.as_bytes(), &index.to_le_bytes(), &self.0.0, state, failure.as_bytes()];
        ResultDigest(Digest::of_pieces(pieces))
    }
}

/// The digest of a replica after one of its rounds. Hashing a large state costs more than a short round may, so only some
/// rounds have a link: the first ones, then four for each doubling of the rows, and the last one, whose link has the
/// replica's own digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The round, counted from 1.
    pub round: u64,
    /// The number of rows of the history after the round.
    pub rows: u64,
    /// The digest after the round.
    pub digest: ResultDigest,
}

/// Whether a round has a link if it increased the number of rows from `before` to `after`. It has one if a number above
/// `before` and up to `after` is from 1 to 8, or has at most three leading binary digits before zeros (10, 12, 14, 16, 20,
/// 24, ...).
pub(super) fn is_due(before: u64, after: u64) -> bool {
    let zeros = (u64::BITS - after.leading_zeros()).saturating_sub(3);
    after >> zeros << zeros > before
}

/// The form in which links are stored.
pub(super) fn write_links(links: &[Link]) -> Option<Chain> {
    (!links.is_empty()).then(|| Chain {
        rounds: links.iter().map(|link| link.round).collect(),
        rows: links.iter().map(|link| link.rows).collect(),
        digests: links.iter().flat_map(|link| link.digest.0.0).collect::<Vec<u8>>().into(),
    })
}

/// Reads the output of [`write_links`] for a history with this many rows; `None` if it is not valid.
pub(super) fn read_links(stored: Option<&Chain>, rows: usize) -> Option<Vec<Link>> {
    let Some(Chain { rounds, rows: of_rounds, digests }) = stored else { return Some(Vec::new()) };
    let fits = rounds.len() == of_rounds.len() && rounds.len() * 32 == digests.len();
    let rises = rounds.is_sorted_by(|one, next| one < next) && of_rounds.is_sorted();
    let ends = of_rounds.last().is_none_or(|last| *last <= rows as u64);
    let link = |((round, rows), digest): ((&u64, &u64), &[u8])| {
        Some(Link { round: *round, rows: *rows, digest: ResultDigest(Digest::from_slice(digest)?) })
    };
    let links = || rounds.iter().zip(of_rounds).zip(digests.chunks(32)).map(link).collect();
    (fits && rises && ends).then(links).flatten()
}

#[cfg(test)]
mod tests {
    use evoxo_proto::v1::HistoryRow;

    use super::*;

    fn state() -> ReplicaState {
        let row = |values: &[f64]| HistoryRow { values: values.to_vec() };
        ReplicaState {
            arm: "a".into(),
            replica: 1,
            rounds: 2,
            state: b"state".to_vec().into(),
            history: vec![row(&[1.0, 2.0]), row(&[3.0, 0.0])],
            ..ReplicaState::default()
        }
    }

    #[test]
    fn every_reported_value_changes_the_digest() {
        let changes: [fn(&mut ReplicaState); 9] = [
            |it| it.arm = "b".into(),
            |it| it.replica = 2,
            |it| it.state = b"State".to_vec().into(),
            |it| it.failure = "ended".into(),
            |it| it.history[0].values[1] = 2.0_f64.next_up(),
            |it| it.history[1].values[1] = -0.0,
            |it| it.history.swap(0, 1),
            |it| it.history.truncate(1),
            |it| it.history[0] = HistoryRow { values: vec![1.0, 2.0, 3.0] },
        ];
        let changed = changes.iter().map(|change| {
            let mut state = state();
            change(&mut state);
            ResultDigest::of_state(&state)
        });
        let mut all: Vec<ResultDigest> = changed.chain([ResultDigest::of_state(&state())]).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 10, "two different results have the same digest");
    }

    #[test]
    fn digests_are_parsed_with_and_without_the_history() {
        let digest = ResultDigest::of_state(&state());
        assert_eq!(ResultDigest::parse(&digest.to_string()), Some(digest));
        for other in [&digest.to_string()[3..], "", "r1:", "r2:00", &format!("{digest}0")] {
            assert_eq!(ResultDigest::parse(other), None, "{other}");
        }
    }

    #[test]
    fn there_are_four_links_per_doubling_of_rows() {
        let due = |rows: &u64| is_due(rows - 1, *rows);
        let expected = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40];
        assert_eq!((1..=40).filter(due).collect::<Vec<u64>>(), expected);
        assert_eq!((1 << 20..1 << 21).filter(due).count(), 4);
        assert!(is_due(33, 50) && !is_due(41, 47) && !is_due(5, 5) && !is_due(0, 0));
    }

    #[test]
    fn stored_links_are_read_back_and_wrong_ones_rejected() {
        let digest = ResultDigest::of_state(&state());
        let links = [(1, 1), (2, 1), (7, 4)].map(|(round, rows)| Link { round, rows, digest });
        let stored = write_links(&links).unwrap();
        assert_eq!(read_links(Some(&stored), 4).as_deref(), Some(links.as_slice()));
        assert_eq!(read_links(None, 0), Some(Vec::new()));
        assert_eq!(read_links(Some(&stored), 3), None, "more rows than there are");
        let wrong: [fn(&mut Chain); 4] = [
            |it| it.rounds[0] = 2,
            |it| it.rows[1] = 0,
            |it| it.rows.truncate(2),
            |it| it.digests = it.digests.slice(1..),
        ];
        for change in wrong {
            let mut stored = stored.clone();
            change(&mut stored);
            assert_eq!(read_links(Some(&stored), 4), None, "{stored:?}");
        }
    }
}
