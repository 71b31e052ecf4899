//! A run as one of two that are compared: what is kept of each replica, and how far two replicas agree by it.

use std::{collections::BTreeMap, path::Path};

use anyhow::{anyhow, bail};
use evoxo_common::{
    comparison::Measured,
    experiment::{Config, Link, NoFigures, Registry, ReplicaTold, ResultDigest, small::short_digest},
};
use serde_json::Value;

use crate::kept::Kept;

/// A replica: the name of its arm, and its number.
pub(crate) type Name = (String, u32);

/// One of two runs that are compared.
pub(crate) struct KeptRun {
    /// The path that was given.
    pub(crate) path: String,
    pub(crate) kept: Kept,
    /// What is kept of each replica that has begun.
    pub(crate) replicas: BTreeMap<Name, KeptReplica>,
}

/// What is kept of a replica.
#[derive(Debug)]
pub(crate) struct KeptReplica {
    /// Its digest, or the beginning of it in a small result.
    pub(crate) digest: String,
    pub(crate) rows: u64,
    pub(crate) finished: bool,
    /// The digests after some of its rounds.
    pub(crate) links: Vec<Link>,
}

impl KeptRun {
    /// Reads a `result.json`, or the directory that contains it, or the store in a directory whose run goes on.
    pub(crate) fn read(registry: &Registry, given: &Path) -> anyhow::Result<Self> {
        let path = given.display().to_string();
        let kept = Kept::read(registry, given)?;
        if kept.has_history() {
            // It must be the history that the digests cover.
            kept.history()?;
        }
        let mut links: BTreeMap<Name, Vec<Link>> = BTreeMap::new();
        for line in kept.digests()? {
            links.entry((line.arm, line.replica)).or_default().push(line.link);
        }
        let early = || {
            anyhow!("{path} has digests of an earlier build, which did not cover the history: compute the run again")
        };
        if kept.result["digest"].as_str().is_some_and(|digest| ResultDigest::parse(digest).is_none()) {
            return Err(early());
        }
        let mut replicas = BTreeMap::new();
        for arm in kept.result["arms"].as_array().into_iter().flatten() {
            for entry in arm["replicas"].as_array().into_iter().flatten() {
                let Ok(told) = serde_json::from_value::<ReplicaTold<NoFigures>>(entry.clone()) else {
                    bail!("a replica in {path} cannot be read: `run` or `fetch` writes the results again");
                };
                let name = (arm["name"].as_str().unwrap_or_default().to_owned(), told.replica);
                let digest = told.digest.filter(|digest| short_digest(digest).is_some()).ok_or_else(early)?;
                let links = links.remove(&name).unwrap_or_default();
                let told = KeptReplica { digest, rows: told.rows, finished: told.finished, links };
                if !told.ends_as_its_links() {
                    bail!(
                        "digests.csv of {path} does not belong to its result.json: replica {} of arm {:?} ends with another \
                         digest; `run` or `fetch` writes both again",
                        name.1,
                        name.0
                    );
                }
                replicas.insert(name, told);
            }
        }
        if let Some((arm, number)) = links.into_keys().next() {
            bail!(
                "digests.csv of {path} has replica {number} of arm {arm:?}, and its result.json has not; `run` or `fetch` writes both again"
            );
        }
        Ok(Self { path, kept, replicas })
    }

    pub(crate) fn config(&self) -> &Config {
        &self.kept.config
    }

    /// The rows of one replica; `None` if there is no history next to the result.
    pub(crate) fn rows(&self, (arm, number): &Name) -> anyhow::Result<Option<Vec<Vec<f64>>>> {
        if !self.kept.has_history() {
            return Ok(None);
        }
        let mut rows = Vec::new();
        let place = self.config().arms.iter().position(|it| it.name == *arm);
        self.kept.history()?.each_row(self.config(), |of, replica, row| {
            if Some(of) == place && replica == *number {
                rows.push(row);
            }
        })?;
        Ok(Some(rows))
    }

    /// The final values of its replicas, for a test.
    pub(crate) fn measured(&self) -> anyhow::Result<Measured> {
        let mut last: BTreeMap<(usize, u32), Vec<f64>> = BTreeMap::new();
        if self.kept.has_history() {
            self.kept.history()?.each_row(self.config(), |arm, replica, row| drop(last.insert((arm, replica), row)))?;
        }
        Ok(Measured::of(self.config(), &self.kept.result, |name, column| {
            let place = self.config().arms.iter().position(|arm| arm.name == name);
            let of_arm = last.iter().filter(|((arm, _), _)| Some(*arm) == place);
            of_arm.filter_map(|((_, replica), row)| Some((*replica, *row.get(column)?))).collect()
        }))
    }

    /// Seconds that one thread needs for a round of this run, as far as its provenance says so.
    pub(crate) fn seconds_a_round(&self) -> Option<f64> {
        let (result, provenance) = (&self.kept.result, &self.kept.result["provenance"]);
        let workers = provenance["workers"].as_f64()?.max(1.0);
        let rounds = result["rounds"].as_f64().filter(|rounds| *rounds > 0.0)?;
        Some(provenance["seconds"].as_f64()? * workers / rounds)
    }

    /// What the provenance of the result says under this name.
    pub(crate) fn provenance(&self, name: &str) -> Option<String> {
        match &self.kept.result["provenance"][name] {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }
}

/// Whether two digests are equal, as far as they are kept.
pub(crate) fn same(one: &str, other: &str) -> bool {
    one == other || Some(one) == short_digest(other) || Some(other) == short_digest(one)
}

/// How far two replicas agree, by the digests that are kept of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    Equal,
    /// They differ. The last round after which both keep the same digest, and the first after which they keep different ones.
    Different {
        after: Option<u64>,
        by: Option<u64>,
    },
    /// One of them goes on, or has more rounds; up to this round they are equal.
    Begins {
        rounds: u64,
    },
    /// One of them has more rows, and they keep no digest after the same round.
    Unknown,
}

impl Match {
    /// The word for it in JSON.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Different { .. } => "different",
            Self::Begins { .. } => "equal so far",
            Self::Unknown => "of other length",
        }
    }
}

impl KeptReplica {
    /// Whether the last digest of a finished replica is its own.
    fn ends_as_its_links(&self) -> bool {
        let last = self.links.last().filter(|_| self.finished);
        last.is_none_or(|last| same(&last.digest.to_string(), &self.digest))
    }

    /// Compares two replicas. If they are not `alike`, their work was divided into other rounds, so only their ends can be
    /// compared.
    pub(crate) fn compare(&self, other: &Self, alike: bool) -> Match {
        if same(&self.digest, &other.digest) {
            return Match::Equal;
        }
        let twin = |link: &&Link| other.links.iter().find(|it| (it.round, it.rows) == (link.round, link.rows)).copied();
        let pairs = self.links.iter().filter(|_| alike).filter_map(|link| Some((*link, twin(&link)?)));
        let (mut after, mut by) = (None, None);
        for (one, twin) in pairs {
            match one.digest == twin.digest {
                true => after = Some(one.round),
                false => {
                    by = Some(one.round);
                    break;
                }
            }
        }
        match (by, after) {
            (Some(_), _) => Match::Different { after, by },
            // Two ends after the same number of rows are not the same.
            (None, _) if self.finished && other.finished && self.rows == other.rows => Match::Different { after, by },
            (None, Some(rounds)) => Match::Begins { rounds },
            (None, None) => Match::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use evoxo_proto::v1::ReplicaState;

    use super::*;

    fn digest(number: u32) -> ResultDigest {
        ResultDigest::of_state(&ReplicaState { replica: number, ..ReplicaState::default() })
    }

    /// A replica with a digest after each of these rounds, made from a number.
    fn told(finished: bool, links: &[(u64, u32)]) -> KeptReplica {
        let links: Vec<Link> =
            links.iter().map(|(round, of)| Link { round: *round, rows: *round, digest: digest(*of) }).collect();
        let last = links.last().expect("a link");
        KeptReplica { digest: last.digest.to_string(), rows: last.rows, finished, links: links.clone() }
    }

    #[test]
    fn the_bracket_lies_between_two_kept_digests() {
        let one = told(true, &[(1, 1), (2, 2), (4, 3), (8, 4)]);
        let compared = |other: &KeptReplica| one.compare(other, true);
        assert_eq!(compared(&told(true, &[(1, 1), (2, 2), (4, 3), (8, 4)])), Match::Equal);
        let parted = told(true, &[(1, 1), (2, 2), (4, 7), (8, 9)]);
        assert_eq!(compared(&parted), Match::Different { after: Some(2), by: Some(4) });
        assert_eq!(compared(&told(true, &[(1, 7), (8, 9)])), Match::Different { after: None, by: Some(1) });
        assert_eq!(compared(&told(true, &[(1, 1), (3, 9)])), Match::Begins { rounds: 1 });
        assert_eq!(compared(&told(false, &[(3, 9)])), Match::Unknown);
        assert_eq!(one.compare(&parted, false), Match::Different { after: None, by: None });
    }

    #[test]
    fn the_beginning_of_a_digest_is_enough() {
        let whole = digest(1).to_string();
        let short = short_digest(&whole).expect("it is a digest");
        assert!(same(&whole, short) && same(short, &whole) && same(short, short));
        assert!(!same(&digest(2).to_string(), short));
    }

    #[test]
    fn a_digest_of_another_file_is_noticed() {
        let mut told = told(true, &[(1, 1), (2, 2)]);
        assert!(told.ends_as_its_links());
        told.digest = digest(3).to_string();
        assert!(!told.ends_as_its_links());
        told.finished = false;
        assert!(told.ends_as_its_links(), "a replica that goes on");
    }
}
