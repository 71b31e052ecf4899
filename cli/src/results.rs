//! From fetched replicas to what a person keeps: `result.json`, `history.csv`, champions, plots, tables.

use anyhow::Context as _;
use evoxo_common::{
    card::Card,
    config::Config,
    digest::Digest,
    envelope::{Kind, open},
    finale::{Finale, champion_stem, finale},
    replica::{Replica, run_digest},
    task,
};
use evoxo_proto::v1;
use prost::Message as _;
use serde_json::{Value, json};

/// A run's replicas and all that is made of them.
pub(crate) struct Results {
    pub(crate) config: Config,
    pub(crate) replicas: Vec<Replica>,
    pub(crate) finale: Finale,
    /// Of all replicas, if all are finished.
    pub(crate) digest: Option<Digest>,
}

impl Results {
    /// Makes sense of replicas as a coordinator sends them.
    pub(crate) fn new(config: Config, fetched: &[v1::Replica]) -> anyhow::Result<Self> {
        let restore = |fetched: &v1::Replica| -> anyhow::Result<Replica> {
            let name = format!("replica {} of arm {:?}", fetched.replica, fetched.arm);
            let body = open(Kind::Finished, &fetched.state).with_context(|| format!("{name} as fetched"))?;
            let state = v1::Finished::decode(body).ok().and_then(|finished| finished.replica);
            let state = state.with_context(|| format!("{name} as fetched cannot be read"))?;
            Replica::restore(&config, &state).map_err(anyhow::Error::msg)
        };
        let replicas = fetched.iter().map(restore).collect::<anyhow::Result<Vec<Replica>>>()?;
        let complete = replicas.len() == config.arms.len() * config.replicas as usize;
        let finished = complete && fetched.iter().all(|replica| replica.finished);
        let digest = finished.then(|| run_digest(&replicas));
        let finale = finale(&config, &replicas);
        Ok(Self { config, replicas, finale, digest })
    }

    /// The content of `result.json`. What is measured about the computation is under `provenance` and nowhere else.
    pub(crate) fn to_json(&self, seconds: f64, workers: u32) -> Value {
        let mut result = json!({
            "experiment": self.config.kind.name(),
            "config_hash": self.config.hash().to_string(),
            "digest": self.digest.map(|digest| digest.to_string()),
            "seed": self.config.seed,
            "replicas": self.config.replicas,
        });
        retell(&mut result, &self.finale);
        result["provenance"] = provenance(seconds, workers);
        result
    }

    /// The content of `history.csv`: every replica's rows, with its arm and number.
    pub(crate) fn history(&self) -> String {
        let columns: Vec<&str> = self.config.kind.columns().iter().map(|column| column.name).collect();
        let mut text = format!("arm,replica,{}\n", columns.join(","));
        for replica in &self.replicas {
            let arm = replica.arm();
            let arm = if arm.contains([',', '"']) { format!("\"{}\"", arm.replace('"', "\"\"")) } else { arm.into() };
            for row in replica.history() {
                let values: Vec<String> = row.iter().map(f64::to_string).collect();
                text += &format!("{arm},{},{}\n", replica.index(), values.join(","));
            }
        }
        text
    }

    /// The files of a run's directory `champions`, each with what it holds: cards, and what lies beside them.
    pub(crate) fn champions(&self) -> impl Iterator<Item = (String, Vec<u8>)> {
        let files = |replica: &Replica| Some(files(&replica.champion()?, &self.stem(replica)?));
        self.replicas.iter().filter_map(files).flatten()
    }

    /// The same of its directory `populations`: all players that there are at the end, numbered from 0.
    pub(crate) fn populations(&self) -> impl Iterator<Item = (String, Vec<u8>)> {
        let all = |replica: &Replica| {
            let stem = self.stem(replica)?;
            let cards = replica.population().into_iter().enumerate();
            Some(cards.flat_map(move |(number, card)| files(&card, &format!("{stem}-{number}"))))
        };
        self.replicas.iter().filter_map(all).flatten()
    }

    /// The arms whose replicas keep no population.
    pub(crate) fn without_population(&self) -> Vec<&str> {
        let arms = self.config.arms.iter().map(|arm| arm.name.as_str());
        let kept = |arm: &str| self.replicas.iter().any(|it| it.arm() == arm && !it.population().is_empty());
        arms.filter(|arm| !kept(arm)).collect()
    }

    /// The name of a replica's champion's card, without its ending.
    fn stem(&self, replica: &Replica) -> Option<String> {
        let arm = self.config.arms.iter().position(|arm| arm.name == replica.arm())?;
        Some(champion_stem(&self.config, arm, replica.index()))
    }
}

/// A card's file, and before it the one that it names: that is there when the card is.
fn files(card: &Card, stem: &str) -> impl Iterator<Item = (String, Vec<u8>)> + use<> {
    let (card, file) = card.write(stem);
    file.into_iter().chain([(format!("{stem}.json"), card.into_bytes())])
}

/// Puts what is told of a run into its result.
pub(crate) fn retell(result: &mut serde_json::Value, finale: &Finale) {
    if let (Some(result), Some(told)) = (result.as_object_mut(), finale.json.as_object()) {
        result.extend(told.clone());
        result.insert("notes".into(), finale.notes.clone().into());
    }
}

/// What is printed at the end.
pub(crate) fn written(finale: &Finale) -> String {
    let tables: Vec<String> = finale.tables.iter().map(ToString::to_string).collect();
    let notes: Vec<String> = finale.notes.iter().map(|note| format!("- {note}\n")).collect();
    format!("{}\n{}", tables.join("\n"), notes.concat())
}

/// Who computed it, with what, and how long it took.
fn provenance(seconds: f64, workers: u32) -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "commit": env!("EVOXO_COMMIT"),
        "rustc": env!("EVOXO_RUSTC"),
        "signature": task::signature_digest(&task::signature()).to_string(),
        "workers": workers,
        "seconds": seconds,
    })
}
