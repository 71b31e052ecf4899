//! A replica in `result.json`, as a type with the kind's own figures.

use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::{Config, Replica, file_names::champion_stem};
use crate::headline::Entry;

/// What a kind keeps of a replica besides what all replicas have.
pub trait Figures: Serialize + DeserializeOwned {
    /// Whether a replica in a result has figures: then none may be missing.
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
    /// Its number, from 0.
    pub replica: u32,
    /// Rows of its history.
    pub rows: u64,
    /// Whether it is finished.
    pub finished: bool,
    /// Its digest. A small result keeps it only if it covers the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Why it ended early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The path of its champion's card.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub champion: Option<String>,
    /// The kind's own.
    #[serde(flatten)]
    pub figures: Option<F>,
}

impl<F: Figures> ReplicaTold<F> {
    /// Of a replica of the arm with this index. It has these figures if a reader expects [some](Figures::are_of).
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

impl<F> ReplicaTold<F> {
    /// An arm of this name in a question, with a figure of each of its replicas. Replicas without the figure are left out.
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
