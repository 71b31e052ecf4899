//! Certificates of runs: one file with everything that is needed to compute any piece of a run again.
//!
//! A certificate has the state of each replica after its last round, with all rows. So whoever has it computes nothing to
//! check that digest, champions and curves fit each other. A replica may be divided into pieces, by states after some of its
//! rounds: each piece can be computed without those before it.

mod envelope;
mod research_object;
mod statement;

use std::collections::BTreeMap;

use bytes::Bytes;
use evoxo_common::{
    digest::Digest,
    experiment::{Config, Link, Replica, ResultDigest},
};
use evoxo_proto::v1;
use serde_json::Value;

pub(crate) use envelope::Envelope;
pub(crate) use research_object::DESCRIPTION;

use crate::{
    claims::{Difference, Key, other_link},
    results::Results,
};

/// The longest certificate that is written or read, in bytes.
pub(crate) const CERTIFICATE_BYTES_MAX: usize = 1 << 28;

/// What a certificate says about a run.
pub(crate) struct Certificate {
    pub(crate) config: Config,
    pub(crate) digest: ResultDigest,
    /// When, by which build and in which environment, as JSON. No replica is compared with it.
    pub(crate) about: Value,
    /// All replicas, in order of arm, then number.
    pub(crate) replicas: Vec<Certified>,
    /// The names and hashes of files that follow from the replicas.
    pub(crate) files: BTreeMap<String, Digest>,
}

/// The states between the pieces of each replica.
pub(crate) type Marks = BTreeMap<Key, Vec<Mark>>;

/// A replica in a certificate.
pub(crate) struct Certified {
    pub(crate) digest: ResultDigest,
    /// The state after the last round, with all rows.
    pub(crate) end: v1::ReplicaState,
    /// The digests after some of the rounds.
    pub(crate) links: Vec<Link>,
    /// States between its pieces, in order.
    pub(crate) marks: Vec<Mark>,
}

/// The state of a replica between two of its pieces.
#[derive(Clone)]
pub(crate) struct Mark {
    pub(crate) rounds: u64,
    pub(crate) rows: usize,
    pub(crate) digest: ResultDigest,
    pub(crate) state: Bytes,
}

impl Mark {
    /// The present state of a replica.
    pub(crate) fn of(replica: &Replica) -> Self {
        let rows = replica.history().len();
        Self { rounds: replica.rounds(), rows, digest: replica.digest(), state: replica.save().state }
    }
}

impl Certified {
    pub(crate) fn of(replica: &Replica, marks: Vec<Mark>) -> Self {
        Self { digest: replica.digest(), end: replica.save(), links: replica.links().to_vec(), marks }
    }

    /// The state after a piece, counted from 0.
    pub(crate) fn after(&self, piece: usize) -> v1::ReplicaState {
        let Some(Mark { rounds, rows, state, .. }) = self.marks.get(piece) else { return self.end.clone() };
        v1::ReplicaState {
            arm: self.end.arm.clone(),
            replica: self.end.replica,
            rounds: *rounds,
            state: state.clone(),
            history: self.end.history[..*rows].to_vec(),
            ..v1::ReplicaState::default()
        }
    }

    /// The number of rounds before a piece, and after it.
    pub(crate) fn rounds_of(&self, piece: usize) -> [u64; 2] {
        let after = |piece: usize| self.marks.get(piece).map_or(self.end.rounds, |mark| mark.rounds);
        [piece.checked_sub(1).map_or(0, after), after(piece)]
    }
}

impl Certificate {
    /// The certificate of these finished replicas, with states between pieces.
    pub(crate) fn of(config: Config, replicas: Vec<Replica>, mut marks: Marks, about: Value) -> anyhow::Result<Self> {
        let place = |arm: &str| config.arms.iter().position(|it| it.name == arm).unwrap_or_default();
        let certified = replicas
            .iter()
            .map(|it| Certified::of(it, marks.remove(&(place(it.arm()), it.index())).unwrap_or_default()));
        let certified = certified.collect();
        let digest = ResultDigest::of_run(replicas.iter().map(Replica::digest));
        let files = files(&Results::of(config.clone(), replicas, Vec::new(), None))?;
        Ok(Self { config, digest, about, replicas: certified, files })
    }

    /// All pieces, in order: the index of a replica, and the number of its piece.
    pub(crate) fn pieces(&self) -> Vec<(usize, usize)> {
        let of = |(at, it): (usize, &Certified)| (0..=it.marks.len()).map(move |piece| (at, piece));
        self.replicas.iter().enumerate().flat_map(of).collect()
    }

    /// The replicas, if everything in the certificate fits; otherwise the first difference.
    pub(crate) fn check(&self) -> anyhow::Result<Result<Results, Difference>> {
        let mut replicas = Vec::new();
        for it in &self.replicas {
            match self.check_replica(it) {
                Ok(replica) => replicas.push(replica),
                Err(difference) => return Ok(Err(difference)),
            }
        }
        let digest = ResultDigest::of_run(replicas.iter().map(Replica::digest));
        if digest != self.digest {
            let what = format!("the digest of the run is given as {}, but its replicas have {digest}", self.digest);
            return Ok(Err(Difference::of_run(what)));
        }
        let results = Results::of(self.config.clone(), replicas, Vec::new(), None);
        let files = files(&results)?;
        let other = files.iter().find(|(name, hash)| self.files.get(*name) != Some(hash)).map(|(name, _)| name);
        let other = other.or_else(|| self.files.keys().find(|name| !files.contains_key(*name)));
        Ok(match other {
            Some(name) => Err(Difference::of_run(format!(
                "the hash of {name} is not that of the file which follows from the states"
            ))),
            None => Ok(results),
        })
    }

    /// The replica at its end, if its states fit their digests.
    fn check_replica(&self, it: &Certified) -> Result<Replica, Difference> {
        for (piece, mark) in it.marks.iter().enumerate() {
            self.check_state(&it.after(piece), mark.digest, false)?;
        }
        let replica = self.check_state(&it.end, it.digest, true)?;
        let last = replica.links().last().map(|link| (link.rows, link.digest));
        if last == Some((replica.history().len() as u64, it.digest)) && replica.links() == it.links {
            return Ok(replica);
        }
        Err(of_replica(&it.end, it.end.rounds, "the digests of the rounds do not fit the state".into()))
    }

    /// The replica in a state, if it has this digest and is finished or not.
    fn check_state(&self, state: &v1::ReplicaState, claimed: ResultDigest, ends: bool) -> Result<Replica, Difference> {
        let what = match Replica::restore(&self.config, state) {
            Err(why) => format!("the state is not possible with these settings: {why}"),
            Ok(replica) if replica.digest() != claimed => {
                format!("the digest is given as {claimed}, but state and rows have {}", replica.digest())
            }
            Ok(replica) if replica.is_finished() == ends => return Ok(replica),
            Ok(_) if ends => "the replica is not finished".into(),
            Ok(_) => "the replica ends here, but rounds follow".into(),
        };
        Err(of_replica(state, state.rounds, what))
    }

    /// Compares what is computed of a piece with the certificate: rows from `before` on after each round.
    pub(crate) fn check_rows(&self, it: &Certified, replica: &Replica, before: usize) -> Option<Difference> {
        let of = |what: String| of_replica(&it.end, replica.rounds(), what);
        for (at, row) in replica.history().iter().enumerate().skip(before) {
            let Some(claimed) = it.end.history.get(at) else {
                return Some(of(format!("the certificate has only {} of the rows", it.end.history.len())));
            };
            let other = row.iter().zip(&claimed.values).position(|(one, other)| one.to_bits() != other.to_bits());
            if let Some(column) = other {
                let name = self.config.kind.columns[column].name;
                let (claimed, computed) = (claimed.values[column], row[column]);
                return Some(of(format!(
                    "{name} is given as {claimed} in row {}, but the computed value is {computed}",
                    at + 1
                )));
            }
        }
        None
    }

    /// Compares a replica after a piece was computed with the certificate. The division into rounds is not part of a result,
    /// so the number of rounds is not compared.
    pub(crate) fn check_end(&self, it: &Certified, piece: usize, replica: &Replica) -> Option<Difference> {
        let ([from, to], is_last) = (it.rounds_of(piece), piece == it.marks.len());
        let of = |what: String| Some(of_replica(&it.end, replica.rounds(), what));
        let claimed = it.marks.get(piece).map_or(it.digest, |mark| mark.digest);
        if replica.digest() != claimed {
            return of(format!("the digest is given as {claimed}, but the computed one is {}", replica.digest()));
        }
        let links = it.links.iter().filter(|link| link.round > from && (is_last || link.round <= to));
        other_link("the certificate", &links.copied().collect::<Vec<Link>>(), replica.links()).and_then(of)
    }
}

/// A difference in a replica after a round.
fn of_replica(state: &v1::ReplicaState, round: u64, what: String) -> Difference {
    Difference { replica: Some((state.arm.clone(), state.replica)), round: Some(round), what }
}

/// The files that follow from results, each with its hash.
fn files(results: &Results) -> anyhow::Result<BTreeMap<String, Digest>> {
    let champions = results.champions().map(|(name, bytes)| (format!("champions/{name}"), Digest::of(&bytes)));
    let history = ("history.csv".to_owned(), Digest::of(&results.history()?));
    Ok(champions.chain([history]).collect())
}
