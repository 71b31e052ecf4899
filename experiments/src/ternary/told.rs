//! The input of the report: arms with the results of their replicas, from a run or from its `result.json`.

use serde_json::{Map, Value, json};

use super::{
    Row,
    player::{Code, Ternary},
};
use evoxo_common::{
    experiment::{Config, Replica, Row as _, curve, replica_json, settings_json},
    report::Series,
    stats::{Estimate, estimate},
};
use evoxo_games::audit::Odds;

/// Columns that are reported as curves, each with its title and its axis.
pub(super) const CURVES: [(usize, &str, &str); 3] = [
    (Row::win, "How often the fittest player wins against the random mover, exactly", "probability to win"),
    (Row::loss, "How often the fittest player loses against the random mover, exactly", "probability to lose"),
    (Row::repairs, "Decisions rewritten", "repairs per player and generation"),
];

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
    /// `None` before the first generation.
    course: Option<Course>,
    champion: Option<Champion>,
}

/// How a replica went, from its first generation to its last.
#[derive(Clone, Copy)]
pub(super) struct Course {
    /// Decisions rewritten per player, in the first and in the last generation.
    pub(super) repairs: [f64; 2],
    /// The share of decisions that name a taken cell, in the first and in the last generation.
    pub(super) broken: [f64; 2],
    /// The mean fitness of the last generation.
    pub(super) mean: f64,
    /// How often the fittest player wins: the mean over all generations.
    pub(super) win_over_time: f64,
}

impl Course {
    fn of(history: &[Vec<f64>]) -> Option<Self> {
        let (first, last) = history.first().zip(history.last())?;
        let ends = |column: usize| [first[column], last[column]];
        let win_over_time = history.iter().map(|row| row[Row::win]).sum::<f64>() / history.len() as f64;
        Some(Self { repairs: ends(Row::repairs), broken: ends(Row::broken), mean: last[Row::mean], win_over_time })
    }

    fn read(json: &Value) -> Option<Self> {
        let ends = |name: &str| Some([json[name]["first"].as_f64()?, json[name]["last"].as_f64()?]);
        let (mean, win_over_time) = (json["mean_at_the_end"].as_f64()?, json["win_over_time"].as_f64()?);
        Some(Self { repairs: ends("repairs")?, broken: ends("broken")?, mean, win_over_time })
    }

    /// [`Self::read`] is the inverse.
    fn to_json(self) -> Value {
        let ends = |[first, last]: [f64; 2]| json!({"first": first, "last": last});
        json!({
            "repairs": ends(self.repairs), "broken": ends(self.broken), "mean_at_the_end": self.mean,
            "win_over_time": self.win_over_time,
        })
    }
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

/// The keys of a replica in `result.json` that have its course and its champion's audit.
const COURSE: &str = "course";
const AUDIT: &str = "audit";

impl ReplicaResult {
    fn of(config: &Config, arm: usize, replica: &Replica) -> Self {
        let about = replica_json(config, arm, replica).as_object().cloned().unwrap_or_default();
        Self { about, course: Course::of(replica.history()), champion: Champion::of(replica) }
    }

    fn read(json: &Value) -> Option<Self> {
        let mut about = json.as_object()?.clone();
        let course = match about.shift_remove(COURSE) {
            Some(json) => Some(Course::read(&json)?),
            None => None,
        };
        let champion = match about.shift_remove(AUDIT) {
            Some(json) => Some(Champion::read(&json)?),
            None => None,
        };
        Some(Self { about, course, champion })
    }

    fn to_json(&self) -> Value {
        let mut json = self.about.clone();
        json.extend(self.course.map(|course| (COURSE.into(), course.to_json())));
        json.extend(self.champion.as_ref().map(|champion| (AUDIT.into(), champion.to_json())));
        json.into()
    }
}

impl<'a> Arm<'a> {
    /// The arm of this index with its replicas.
    pub(super) fn of(config: &'a Config, index: usize, replicas: &[&Replica]) -> Self {
        let results = replicas.iter().map(|replica| ReplicaResult::of(config, index, replica)).collect();
        let curves = CURVES.map(|(column, ..)| curve(Row::name(column), replicas, column).rounded()).into();
        Self::new(config, index, results, curves)
    }

    /// The same from the arm's entry in `result.json`.
    ///
    /// # Errors
    /// A sentence if something is missing.
    pub(super) fn read(config: &'a Config, index: usize, json: &Value) -> Result<Self, String> {
        let lacks = |what: &str| format!("the arm {:?} of the result lacks {what}", config.arms[index].name);
        let replicas = json["replicas"].as_array().ok_or_else(|| lacks("its replicas"))?;
        let results =
            |replica: &Value| ReplicaResult::read(replica).ok_or_else(|| lacks("all results of its replicas"));
        let curve = |name: &str| Series::kept(name, &json["curves"][name]);
        let curves = CURVES
            .iter()
            .map(|(column, ..)| curve(Row::name(*column)))
            .collect::<Option<Vec<Series>>>()
            .ok_or_else(|| lacks("its curves"))?;
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

    /// Of each replica that has begun.
    pub(super) fn over_courses(&self, value: impl Fn(&Course) -> f64) -> Vec<f64> {
        self.replicas.iter().filter_map(|result| result.course.as_ref()).map(value).collect()
    }

    /// A curve, by its column in [`CURVES`], under the arm's name; None where no generation has been played.
    pub(super) fn curve(&self, column: usize) -> Option<Series> {
        let name = Row::name(column);
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
