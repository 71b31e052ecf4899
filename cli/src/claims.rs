//! What a run's results claim: `result.json` and, if its directory is there, the history, champions and stored states. The
//! claims are compared with what is computed again.

use std::{
    collections::BTreeMap,
    fmt, fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, anyhow, bail};
use bytes::Bytes;
use evoxo_common::{
    card::Card,
    experiment::{
        Config, Link, NoFigures, Registry, Replica, ReplicaTold, ResultDigest, champion_stem,
        small::{as_small_as, is_small, short_digest, whole},
    },
    text::exact,
};
use evoxo_coordinator::saved::finished_in;
use evoxo_proto::v1;
use serde_json::{Value, json};

use crate::{digests, file, json, kept, say::notice};

/// The longest files that are read, in bytes.
const FILE_BYTES_MAX: usize = 1 << 28;
/// Keys of `result.json` that do not follow from the computation: measurements, what other workers sent, sentences, the
/// version of the format.
const NOT_COMPUTED: [&str; 7] = ["schema", "not_hashed", "provenance", "doubts", "state", "conclusion", "notes"];

/// The entries of a directory; empty if there is no such directory.
fn entries(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let unreadable = || format!("cannot read {}", directory.display());
    match fs::read_dir(directory) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(Vec::new()),
        found => found
            .with_context(unreadable)?
            .map(|entry| entry.map(|entry| entry.path()).with_context(unreadable))
            .collect(),
    }
}

/// A replica: the arm's index in the configuration, and its number.
pub(crate) type Key = (usize, u32);

/// The results that are to be verified.
pub(crate) struct Claims {
    pub(crate) config: Config,
    /// `result.json` in the usual form.
    pub(crate) result: Value,
    /// `result.json` as it is written, if it is in the small form.
    small: Option<Value>,
    /// The directory of `result.json`, whose other files are compared too; `None` if `result.json` was given alone.
    directory: Option<PathBuf>,
    /// The rows of `history.csv`, as text.
    history: Option<BTreeMap<Key, Vec<Vec<String>>>>,
    /// The finished replicas in the store, each with the path of its object.
    stored: BTreeMap<Key, (String, v1::ReplicaState)>,
    /// The lines of `digests.csv`, if the file exists.
    digests: Option<Vec<digests::Line>>,
}

/// A place where results differ from what is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The arm and the replica, if the difference concerns a single replica.
    pub(crate) replica: Option<(String, u32)>,
    /// The round after which the difference shows, counted from 1.
    pub(crate) round: Option<u64>,
    pub(crate) what: String,
}

impl Difference {
    /// A difference that concerns the whole run.
    pub(crate) fn of_run(what: String) -> Self {
        Self { replica: None, round: None, what }
    }

    pub(crate) fn to_json(&self) -> Value {
        let Self { replica, round, what } = self;
        let (arm, number) = replica.as_ref().map_or((None, None), |(arm, number)| (Some(arm), Some(number)));
        json!({"arm": arm, "replica": number, "round": round, "what": what})
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((arm, number)) = &self.replica {
            write!(f, "arm {arm:?}, replica {number}, ")?;
        }
        if let Some(round) = self.round {
            write!(f, "round {round}: ")?;
        }
        f.write_str(&self.what)
    }
}

impl Claims {
    /// Reads a `result.json`, or the directory that contains it. Also returns the differences that show without computing
    /// anything.
    pub(crate) fn read(registry: &Registry, path: &Path) -> anyhow::Result<(Self, Vec<Difference>)> {
        let directory = path.is_dir().then(|| path.to_owned());
        let (file, written) = kept::read_as_it_is(path)?;
        let name = file.display();
        let small = is_small(&written).then(|| written.clone());
        let result = whole(written).map_err(|why| anyhow!("{name}: {why}"))?;
        let config = Config::of_result(registry, &result).map_err(|why| anyhow!("{name}: {why}"))?;
        if result["digest"].as_str().is_none() {
            bail!("{name} has no digest: only results of finished runs can be verified");
        }
        let mut claims =
            Self { config, result, small, directory, history: None, stored: BTreeMap::new(), digests: None };
        let mut differences = claims.read_history()?;
        differences.extend(claims.read_stored()?);
        let digests = claims.directory.as_ref().filter(|directory| digests::path(directory).exists());
        claims.digests = digests.map(|directory| digests::read(directory)).transpose()?;
        differences.extend(claims.check_digest());
        Ok((claims, differences))
    }

    /// All replicas, in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> + use<> {
        let (arms, replicas) = (self.config.arms.len(), self.config.replicas);
        (0..arms).flat_map(move |arm| (0..replicas).map(move |index| (arm, index)))
    }

    /// Whether `result.json` was given without its directory.
    pub(crate) fn is_alone(&self) -> bool {
        self.directory.is_none()
    }

    /// Whether there are rows of a history, which show in which round a replica goes wrong.
    pub(crate) fn has_history(&self) -> bool {
        self.history.is_some()
    }

    /// The entry of a replica in `result.json`.
    fn entry(&self, (arm, index): Key) -> &Value {
        &self.result["arms"][arm]["replicas"][index as usize]
    }

    /// The state of a replica in the store.
    pub(crate) fn stored_state(&self, key: Key) -> Option<&v1::ReplicaState> {
        self.stored.get(&key).map(|(_, state)| state)
    }

    /// The number of a replica's rounds, or the most that it can have if the results do not say it.
    pub(crate) fn rounds(&self, key: Key) -> u64 {
        let arm = &self.config.arms[key.0];
        let mut lines = self.digests.iter().flatten().filter(|line| line.arm == arm.name && line.replica == key.1);
        let known = lines.next_back().map(|line| line.link.round);
        known.unwrap_or_else(|| (self.config.kind.rounds)(&arm.settings))
    }

    fn difference(&self, (arm, index): Key, round: Option<u64>, what: String) -> Difference {
        Difference { replica: Some((self.config.arms[arm].name.clone(), index)), round, what }
    }

    fn key(&self, arm: &str, index: u32) -> Option<Key> {
        let arm = self.config.arms.iter().position(|other| other.name == arm)?;
        (index < self.config.replicas).then_some((arm, index))
    }

    fn read_history(&mut self) -> anyhow::Result<Vec<Difference>> {
        let Some(path) = self.directory.as_ref().map(|directory| directory.join("history.csv")) else {
            return Ok(Vec::new());
        };
        let bytes = file::read(&path, FILE_BYTES_MAX, "; `evoxo verify` also accepts a result.json alone")?;
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(bytes.as_slice());
        let unreadable = || format!("{} is no table", path.display());
        let columns = self.config.kind.columns.iter().map(|column| column.name);
        let expected: Vec<&str> = ["arm", "replica"].into_iter().chain(columns).collect();
        let mut differences = Vec::new();
        if reader.headers().with_context(unreadable)? != expected {
            differences
                .push(Difference::of_run(format!("history.csv does not have the columns {}", expected.join(", "))));
        }
        let mut rows: BTreeMap<Key, Vec<Vec<String>>> = BTreeMap::new();
        for record in reader.records() {
            let record = record.with_context(unreadable)?;
            let fields: Vec<&str> = record.iter().collect();
            let key = match fields.as_slice() {
                [arm, number, ..] => number.parse().ok().and_then(|number| self.key(arm, number)),
                _ => None,
            };
            match key {
                Some(key) => rows.entry(key).or_default().push(fields[2..].iter().map(|&it| it.to_owned()).collect()),
                None => differences.push(Difference::of_run(format!(
                    "history.csv has a row of a replica that the run does not have: {:?}",
                    fields.iter().take(2).collect::<Vec<_>>()
                ))),
            }
        }
        self.history = Some(rows);
        Ok(differences)
    }

    /// Reads the finished replicas in the store, if there is a store. Replicas that the result does not name are left out,
    /// because a run may have more replicas than its results cover.
    fn read_stored(&mut self) -> anyhow::Result<Vec<Difference>> {
        let Some(directory) = &self.directory else { return Ok(Vec::new()) };
        let runs = directory.join("store").join("runs");
        let (mut objects, mut finished) = (Vec::new(), Vec::new());
        for run in entries(&runs)? {
            let found = run.join("finished");
            if found.is_dir() {
                finished.push(found.strip_prefix(directory).unwrap_or(&found).display().to_string());
            }
            // Each object is stored twice: a coordinator that starts on the store repairs a damaged one from the other.
            for of in [found, run.join("finished-copy")] {
                let mut own = entries(&of)?;
                own.sort();
                objects.extend(own);
            }
        }
        let (mut differences, mut damaged) = (Vec::new(), Vec::new());
        finished.sort();
        let finished = finished.join(", ");
        for path in objects {
            let name = path.strip_prefix(directory).unwrap_or(&path).display().to_string();
            let bytes = Bytes::from(file::read(&path, FILE_BYTES_MAX, "")?);
            let found = match finished_in(&name, &bytes) {
                Ok(found) => found,
                Err(damage) => {
                    damaged.push((name, damage));
                    continue;
                }
            };
            for (_, state) in found {
                let Some(key) = self.key(&state.arm, state.replica) else { continue };
                match self.stored.get(&key) {
                    Some((other, known)) if *known != state => {
                        differences.push(self.difference(key, None, format!("{name} has another state than {other}")));
                    }
                    Some(_) => {}
                    None => drop(self.stored.insert(key, (name.clone(), state))),
                }
            }
        }
        // Damaged replicas are computed again and stored in another object.
        let replaced = self.keys().all(|key| self.stored.contains_key(&key));
        for (name, why) in damaged {
            let found = format!("the object {name} {why}");
            match replaced {
                true => notice(format_args!("{found}: it is not needed, because other objects hold all replicas")),
                false => differences.push(Difference::of_run(found)),
            }
        }
        // Results without any store contain only what was fetched.
        for key in self.keys().filter(|key| !finished.is_empty() && !self.stored.contains_key(key)) {
            differences.push(self.difference(key, None, format!("its state is missing in {finished}")));
        }
        for (key, (name, state)) in &self.stored {
            let digest = ResultDigest::of_state(state).to_string();
            let claimed = &self.entry(*key)["digest"];
            let same =
                *claimed == digest.as_str() || (self.small.is_some() && claimed.as_str() == short_digest(&digest));
            if !same {
                differences.push(self.difference(
                    *key,
                    None,
                    format!(
                        "the state in {name} has the digest {digest}, but result.json has {}",
                        self.entry(*key)["digest"]
                    ),
                ));
            }
        }
        Ok(differences)
    }

    /// Whether the result has digests of an early build, which did not cover the history.
    pub(crate) fn is_of_early_build(&self) -> bool {
        self.result["digest"].as_str().and_then(ResultDigest::parse).is_none()
    }

    /// Compares the digest of the run with the one that follows from its replicas' digests. A small result has only the
    /// beginnings of digests and cannot be compared.
    fn check_digest(&self) -> Option<Difference> {
        if self.is_of_early_build() || self.small.is_some() {
            return None;
        }
        let digests = self.keys().map(|key| ResultDigest::parse(self.entry(key)["digest"].as_str()?));
        let computed =
            digests.collect::<Option<Vec<ResultDigest>>>().map(|digests| ResultDigest::of_run(digests).to_string());
        let claimed = &self.result["digest"];
        (computed.as_deref() != claimed.as_str()).then(|| {
            let computed = computed.unwrap_or_else(|| "none, because some have no digest".into());
            Difference::of_run(format!(
                "result.json has the digest {claimed}, but its replicas' digests give {computed}"
            ))
        })
    }

    /// Compares the rows that a replica added in a round with those in the history.
    pub(crate) fn check_rows(&self, key: Key, replica: &Replica, before: usize, round: u64) -> Option<Difference> {
        let claimed = self.history.as_ref()?.get(&key).map_or(&[][..], Vec::as_slice);
        replica.history()[before..].iter().enumerate().find_map(|(offset, row)| {
            let computed: Vec<String> = row.iter().copied().map(exact).collect();
            let what = match claimed.get(before + offset) {
                Some(there) if *there == computed => return None,
                Some(there) => {
                    let other = computed.iter().zip(there).position(|(one, other)| one != other);
                    match other {
                        Some(column) => format!(
                            "history.csv has {} {}, but the computed value is {}",
                            self.config.kind.columns[column].name, there[column], computed[column]
                        ),
                        None => "history.csv has a row with too few or too many columns".into(),
                    }
                }
                None => format!("history.csv has only {} of its rows", claimed.len()),
            };
            Some(self.difference(key, Some(round), what))
        })
    }

    /// Compares a finished replica with everything that is claimed about it.
    pub(crate) fn check_replica(&self, key: Key, replica: &Replica) -> Option<Difference> {
        let rounds = Some(replica.rounds());
        let at_the_end = |what: String| Some(self.difference(key, rounds, what));
        if let Some(rows) = self.history.as_ref().map(|history| history.get(&key).map_or(0, Vec::len))
            && rows > replica.history().len()
        {
            return at_the_end(format!("history.csv has {} rows after the last one", rows - replica.history().len()));
        }
        if let Some(lines) = &self.digests {
            let of_it = lines.iter().filter(|line| line.arm == replica.arm() && line.replica == replica.index());
            let claimed: Vec<Link> = of_it.map(|line| line.link).collect();
            if let Some(what) = other_link("digests.csv", &claimed, replica.links()) {
                return at_the_end(what);
            }
        }
        let mut computed = ReplicaTold::<NoFigures>::of(&self.config, key.0, replica, None);
        if self.small.is_some() {
            computed.digest = computed.digest.and_then(|digest| short_digest(&digest).map(String::from));
        }
        let computed = json!(computed);
        let entry = self.entry(key);
        for (name, value) in computed.as_object().into_iter().flatten() {
            if entry[name] != *value {
                return at_the_end(format!(
                    "result.json has the {name} {}, but the computed value is {value}",
                    entry[name]
                ));
            }
        }
        // Which workers' outputs counted without a recomputation does not follow from the configuration.
        let computed = |exposed| v1::ReplicaState { exposed, ..replica.save() };
        if let Some((name, state)) = self.stored.get(&key)
            && *state != computed(state.exposed.clone())
        {
            return at_the_end(format!("the state in {name} differs from the computed one"));
        }
        match (&self.directory, replica.champion()) {
            (Some(directory), Some(card)) => self
                .check_champion(&directory.join("champions"), key, &card)
                .map(|what| self.difference(key, rounds, what)),
            _ => None,
        }
    }

    /// Compares a champion's files with those in this directory.
    fn check_champion(&self, directory: &Path, (arm, index): Key, card: &Card) -> Option<String> {
        let stem = champion_stem(&self.config, arm, index);
        let (text, file) = card.write(&stem);
        let files = file.into_iter().chain([(format!("{stem}.json"), text.into_bytes())]);
        files.into_iter().find_map(|(name, bytes)| match fs::read(directory.join(&name)) {
            Ok(there) if there == bytes => None,
            Ok(_) => Some(format!("champions/{name} differs from the computed one")),
            Err(error) => Some(format!("champions/{name} cannot be read: {error}")),
        })
    }

    /// Prints a note if the sentence in `result.json` differs from the one that follows from all replicas. This is not a
    /// difference, because another build may word the same conclusion differently.
    pub(crate) fn note_of_sentence(&self, computed: &Value) {
        let (claimed, computed) = (&self.result["conclusion"], &computed["conclusion"]);
        if claimed.is_string() && claimed != computed {
            notice(format_args!(
                "the conclusion in result.json differs from this build's, which is: {}",
                computed.as_str().unwrap_or_default()
            ));
        }
    }

    /// Compares the tables and figures in `result.json` with those made from all replicas.
    pub(crate) fn check_result(&self, computed: &Value) -> Option<Difference> {
        let small = self.small.as_ref().and_then(|claimed| as_small_as(claimed, computed).ok());
        let computed = small.as_ref().unwrap_or(computed);
        let claimed = self.result.as_object().into_iter().flatten();
        let mut claimed = claimed.filter(|(name, _)| !NOT_COMPUTED.contains(&name.as_str()));
        claimed.find_map(|(name, value)| differing(name, value, &computed[name])).map(Difference::of_run)
    }
}

/// Describes how a replica's digests in this place differ from the computed ones. A run that was made longer may have been
/// divided into other rounds; then only the last digests can be compared.
pub(crate) fn other_link(place: &str, claimed: &[Link], computed: &[Link]) -> Option<String> {
    let end = |links: &[Link]| links.last().map(|link| (link.rows, link.digest));
    if end(claimed) != end(computed) {
        return Some(format!("the last digest in {place} differs from the computed one"));
    }
    let is_divided_alike = claimed.last().map(|link| link.round) == computed.last().map(|link| link.round);
    let other = claimed.iter().find(|link| !computed.contains(link)).filter(|_| is_divided_alike)?;
    Some(format!("{place} has {} after round {}, but the computed digest differs", other.digest, other.round))
}

/// The first place where a claim differs from what is computed. Missing claims are accepted, because results of earlier
/// builds contain less.
fn differing(place: &str, claimed: &Value, computed: &Value) -> Option<String> {
    match (claimed, computed) {
        (Value::Object(claimed), Value::Object(computed)) => claimed.iter().find_map(|(name, value)| {
            differing(&format!("{place}.{name}"), value, computed.get(name).unwrap_or(&Value::Null))
        }),
        (Value::Array(claimed), Value::Array(computed)) if claimed.len() == computed.len() => {
            let pairs = claimed.iter().zip(computed).enumerate();
            pairs.into_iter().find_map(|(index, (one, other))| differing(&format!("{place}[{index}]"), one, other))
        }
        (claimed, computed) if claimed == computed => None,
        // A long whole number is written as a string.
        (claimed, computed) if json::whole_or_text(computed) == format!("{claimed}") => None,
        (claimed, computed) => {
            let shown = |value: &Value| value.to_string().chars().take(80).collect::<String>();
            Some(format!(
                "result.json has {} as {place}, but the computed value is {}",
                shown(claimed),
                shown(computed)
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_claimed_values_must_match_the_computed_ones() {
        let computed = json!({"a": 1.5, "b": [{"c": "x", "d": 2}], "e": null});
        for same in [json!({}), json!({"a": 1.5}), json!({"b": [{"c": "x"}]}), computed.clone()] {
            assert_eq!(differing("r", &same, &computed), None);
        }
        // Long whole numbers are strings in a result.
        let long = json!(9_007_199_254_740_993_u64);
        assert_eq!(differing("seed", &json!("9007199254740993"), &long), None);
        assert!(
            differing("seed", &json!("9007199254740994"), &long).is_some()
                && differing("n", &json!("1"), &json!(1)).is_some()
        );
        for (other, place) in [
            (json!({"a": 1.25}), "result.json has 1.25 as r.a, but the computed value is 1.5"),
            (json!({"b": []}), "result.json has [] as r.b, but the computed value is [{\"c\":\"x\",\"d\":2}]"),
            (json!({"b": [{"c": "y"}]}), "result.json has \"y\" as r.b[0].c, but the computed value is \"x\""),
            (json!({"f": 1}), "result.json has 1 as r.f, but the computed value is null"),
        ] {
            assert_eq!(differing("r", &other, &computed).as_deref(), Some(place));
        }
    }
}
