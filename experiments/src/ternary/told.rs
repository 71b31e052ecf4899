//! The input of the report: arms with the results of their replicas, from a run or from its `result.json`.

use serde_json::{Map, Value, json};

use super::player::{Code, Ternary};
use evoxo_common::{
    experiment::{Config, Replica, curve, replica_json, settings_json},
    report::Series,
    stats::{Estimate, estimate},
};
use evoxo_games::audit::Odds;

/// Columns of the history: see [`super::COLUMNS`].
pub(super) const MEAN: usize = 2;
pub(super) const REPAIRS: usize = 3;
pub(super) const BROKEN: usize = 4;
pub(super) const WIN: usize = 5;
const LOSS: usize = 7;

/// Columns that are reported as curves.
const CURVES: [(&str, usize); 3] = [("win", WIN), ("loss", LOSS), ("repairs", REPAIRS)];

/// The audit of a champion.
pub(super) struct Champion {
    /// Against a random mover without rules.
    pub(super) random: Odds,
    /// Against a random mover with the rules.
    pub(super) rules: Odds,
    /// Games that it can lose; 0 proves that it never does.
    pub(super) losing_lines: u64,
}

/// The results of a replica.
pub(super) struct ReplicaResult {
    /// The keys of `result.json` that replicas of every kind have.
    about: Map<String, Value>,
    /// Rows of the history: the first, the last, and the mean of all. None before the first generation.
    rows: Option<[Vec<f64>; 3]>,
    champion: Option<Champion>,
}

/// An arm with its replicas.
pub(super) struct Arm<'a> {
    pub(super) name: &'a str,
    /// As in `result.json`.
    pub(super) settings: Value,
    pub(super) code: Code,
    replicas: Vec<ReplicaResult>,
    /// For each of [`CURVES`] its values by generation.
    curves: Vec<Series>,
}

impl Champion {
    fn of(replica: &Replica) -> Option<Self> {
        let champion = replica.champion()?;
        let player = champion.champion_as::<Ternary>()?;
        let audit = player.code.subject(&player.genome).audit();
        let audit = audit.expect("a string has a legal move for every board of its side");
        let random = audit.odds_unfiltered.expect("a player without the filter meets every reply");
        Some(Self { random, rules: audit.odds, losing_lines: audit.losing_lines })
    }

    fn read(json: &Value) -> Option<Self> {
        let losing_lines = json["losing_lines"].as_u64()?;
        let odds = |name: &str| Odds::of_json(&json[name]);
        Some(Self { random: odds("random")?, rules: odds("rules")?, losing_lines })
    }

    fn to_json(&self) -> Value {
        json!({"random": self.random.to_json(), "rules": self.rules.to_json(), "losing_lines": self.losing_lines})
    }
}

/// The names of a replica's rows in `result.json`.
const ROWS: [&str; 3] = ["first", "last", "mean"];

impl ReplicaResult {
    fn of(config: &Config, arm: usize, replica: &Replica) -> Self {
        let history = replica.history();
        let mean = |column: usize| history.iter().map(|row| row[column]).sum::<f64>() / history.len() as f64;
        let ends = history.first().zip(history.last());
        let rows =
            ends.map(|(first, last)| [first.clone(), last.clone(), (0..first.len()).map(mean).collect::<Vec<f64>>()]);
        let about = replica_json(config, arm, replica).as_object().cloned().unwrap_or_default();
        Self { about, rows, champion: Champion::of(replica) }
    }

    fn read(json: &Value) -> Option<Self> {
        let mut about = json.as_object()?.clone();
        let row = |value: Value| -> Option<Vec<f64>> {
            let row: Vec<f64> = value.as_array()?.iter().map(Value::as_f64).collect::<Option<_>>()?;
            (row.len() == super::COLUMNS.len()).then_some(row)
        };
        let rows = match about.contains_key(ROWS[0]) {
            true => {
                let mut rows = ROWS.map(|name| about.shift_remove(name).and_then(row));
                Some([rows[0].take()?, rows[1].take()?, rows[2].take()?])
            }
            false => None,
        };
        let champion = match about.shift_remove("audit") {
            Some(json) => Some(Champion::read(&json)?),
            None => None,
        };
        Some(Self { about, rows, champion })
    }

    fn to_json(&self) -> Value {
        let mut json = self.about.clone();
        for (name, row) in ROWS.iter().zip(self.rows.iter().flatten()) {
            json.insert((*name).into(), row.clone().into());
        }
        json.extend(self.champion.as_ref().map(|champion| ("audit".into(), champion.to_json())));
        json.into()
    }
}

impl<'a> Arm<'a> {
    /// The arm of this index with its replicas.
    pub(super) fn of(config: &'a Config, index: usize, replicas: &[&Replica]) -> Self {
        let results = replicas.iter().map(|replica| ReplicaResult::of(config, index, replica)).collect();
        let curves = CURVES.iter().map(|(name, column)| curve(name, replicas, *column).rounded()).collect();
        Self::new(config, index, results, curves)
    }

    /// The same from the arm's entry in `result.json`.
    ///
    /// # Errors
    /// A sentence if something is missing.
    pub(super) fn read(config: &'a Config, index: usize, json: &Value) -> Result<Self, String> {
        let lacks = |what: &str| format!("the arm {:?} of the result has not {what}", config.arms[index].name);
        let replicas = json["replicas"].as_array().ok_or_else(|| lacks("its replicas"))?;
        let results =
            |replica: &Value| ReplicaResult::read(replica).ok_or_else(|| lacks("all results of its replicas"));
        let curve = |(name, _): &(&str, usize)| Series::of_json(name, &json["curves"][*name]);
        let curves = CURVES.iter().map(curve).collect::<Option<Vec<Series>>>().ok_or_else(|| lacks("its curves"))?;
        Ok(Self::new(config, index, replicas.iter().map(results).collect::<Result<_, String>>()?, curves))
    }

    fn new(config: &'a Config, index: usize, replicas: Vec<ReplicaResult>, curves: Vec<Series>) -> Self {
        let arm = &config.arms[index];
        let (name, settings) = (&arm.name, settings_json(config, index));
        Self { name, settings, code: super::Settings::of(&arm.settings).code(), replicas, curves }
    }

    pub(super) fn to_json(&self) -> Value {
        let curves: Map<String, Value> =
            self.curves.iter().map(|curve| (curve.name.clone(), curve.to_json())).collect();
        let replicas: Vec<Value> = self.replicas.iter().map(ReplicaResult::to_json).collect();
        json!({"name": self.name, "settings": self.settings, "curves": curves, "replicas": replicas})
    }

    pub(super) fn champions(&self) -> impl Iterator<Item = &Champion> {
        self.replicas.iter().filter_map(|result| result.champion.as_ref())
    }

    /// The mean over champions.
    pub(super) fn over_champions(&self, value: impl Fn(&Champion) -> f64) -> Option<Estimate> {
        estimate(&self.champions().map(value).collect::<Vec<f64>>())
    }

    /// The values of a column in the first row, in the last, or in the mean of all, for each replica that has begun.
    pub(super) fn column(&self, row: usize, column: usize) -> Vec<f64> {
        self.replicas.iter().filter_map(|result| Some(result.rows.as_ref()?[row][column])).collect()
    }

    /// A curve, by its name in [`CURVES`], under the arm's name; None where no generation has been played.
    pub(super) fn curve(&self, name: &str) -> Option<Series> {
        let curve = self.curves.iter().find(|curve| curve.name == name && !curve.points.is_empty())?;
        Some(Series { name: self.name.into(), points: curve.points.clone() })
    }

    /// The number of champions that never lose.
    pub(super) fn safe(&self) -> usize {
        self.champions().filter(|champion| champion.losing_lines == 0).count()
    }

    pub(super) fn unfinished(&self) -> usize {
        self.replicas.iter().filter(|result| result.about.get("finished") != Some(&Value::Bool(true))).count()
    }
}
