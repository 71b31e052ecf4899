//! A replica in `result.json`, as a type that includes the kind's own figures.

use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::{Config, Replica, file_names::champion_stem};
use crate::{headline::Entry, parallel};

/// The figures that a kind keeps of a replica, in addition to what all replicas have.
pub trait Figures: Serialize + DeserializeOwned {
    /// Whether a replica in a result must have figures. If so, none of them may be missing.
    fn are_of<F>(replica: &ReplicaTold<F>) -> bool;
}

/// No figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoFigures {}

impl Figures for NoFigures {
    fn are_of<F>(_: &ReplicaTold<F>) -> bool {
        false
    }
}

/// A replica in `result.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplicaTold<F = NoFigures> {
    /// The replica's number, from 0.
    pub replica: u32,
    /// The number of rows of its history.
    pub rows: u64,
    /// Whether it is finished.
    pub finished: bool,
    /// Its digest. A small result keeps a digest only if it covers the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The reason why it ended early, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The path of its champion's card.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub champion: Option<String>,
    /// The kind's own figures.
    #[serde(flatten)]
    pub figures: Option<F>,
}

impl<F: Figures> ReplicaTold<F> {
    /// The entry of a replica of the arm with this index. It has these figures only if a reader [expects
    /// figures](Figures::are_of).
    pub fn of(config: &Config, arm: usize, replica: &Replica, figures: Option<F>) -> Self {
        let card = || format!("champions/{}.json", champion_stem(config, arm, replica.index()));
        let told = Self {
            replica: replica.index(),
            rows: replica.history().len() as u64,
            finished: replica.is_finished(),
            digest: Some(replica.digest().to_string()),
            failure: replica.failure().map(String::from),
            champion: replica.champion().is_some().then(card),
            figures: None,
        };
        Self { figures: figures.filter(|_| F::are_of(&told)), ..told }
    }
}

impl<F: Figures + Send> ReplicaTold<F> {
    /// The entries of all replicas of the arm with this index, with the figures that `measure` finds. Replicas are measured
    /// [in parallel](parallel::map).
    pub fn of_all(
        config: &Config,
        arm: usize,
        replicas: &[&Replica],
        measure: impl Fn(&Replica) -> Option<F> + Sync,
    ) -> Vec<Self> {
        parallel::map(replicas, |replica| Self::of(config, arm, replica, measure(replica)))
    }
}

impl<F> ReplicaTold<F> {
    /// An arm of this name in a question, with a figure for each of its replicas. Replicas without the figure are left out.
    pub fn entry(arm: &str, replicas: &[Self], figure: impl Fn(&Self) -> Option<f64>) -> Entry {
        let values = replicas.iter().filter_map(|replica| Some((replica.replica, figure(replica)?)));
        Entry { arm: arm.to_owned(), values: values.collect() }
    }
}

impl<'de, F: Figures> Deserialize<'de> for ReplicaTold<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Entry {
            replica: u32,
            rows: u64,
            finished: bool,
            digest: Option<String>,
            failure: Option<String>,
            champion: Option<String>,
            #[serde(flatten)]
            figures: Map<String, Value>,
        }
        let Entry { replica, rows, finished, digest, failure, champion, figures } = Entry::deserialize(deserializer)?;
        let told = Self { replica, rows, finished, digest, failure, champion, figures: None };
        let own = F::are_of(&told).then(|| F::deserialize(Value::Object(figures))).transpose();
        let wrong = |why| serde::de::Error::custom(format!("replica {replica}: {why}"));
        Ok(Self { figures: own.map_err(wrong)?, ..told })
    }
}
