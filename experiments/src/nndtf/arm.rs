//! An arm with its champions, from a run or from its `result.json`. Genes and curves are enough to rebuild it.

use evoxo_common::{
    experiment::{Config, Replica, replica_json, settings_json},
    math::mean,
    report::{CURVE_POINTS_MAX, Point, Series},
    stats::quantile,
};
use evoxo_games::{
    audit::{Audit, Odds},
    board::{Board, Side},
};
use serde_json::{Map, Value, json};

use super::{
    boards::training_boards,
    card::decimals,
    duel::openings,
    judge::Judge,
    network::{HIDDEN, Kind, NetworkPlayer, RANGE},
    network_of,
    settings::{Algorithm, Settings},
};

/// The paper's fitness after training, of its proposal and of its rival.
pub(super) const PAPER_FITNESS: [f64; 2] = [0.9605, 0.9456];
/// An output within this distance of the middle between two cells (in cell numbers) is not firm. It is greater than the
/// spread of the outputs of saturated nodes, which searches exploit.
pub(super) const FIRM_MARGIN: f64 = 1e-5;

/// An arm with its replicas.
pub(super) struct Arm<'a> {
    pub(super) name: &'a str,
    pub(super) settings: Settings,
    /// As in `result.json`.
    settings_json: Value,
    seed: u64,
    /// Chromosomes evaluated before each point of the replicas' curves.
    evaluations: Vec<u64>,
    pub(super) pupils: Vec<Pupil>,
}

/// A replica.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pupil {
    /// The keys of `result.json` that are not among the other fields.
    about: Map<String, Value>,
    pub(super) replica: u32,
    /// The best fitness so far, in millionths, at each point of the curve.
    best: Vec<u32>,
    /// `None` before the first evaluation.
    champion: Option<NetworkPlayer>,
}

/// A champion with all its measured values.
pub(super) struct Champion {
    pub(super) replica: u32,
    pub(super) player: NetworkPlayer,
    /// Fitness on its training boards.
    pub(super) training: f64,
    /// The fitness that is left when outputs are blurred: see
    /// [`Measure::firm_fitness`](super::measure::Measure::firm_fitness) and [`FIRM_MARGIN`].
    pub(super) firm: f64,
    /// Fitness on all boards.
    pub(super) all: f64,
    /// As X and as O.
    pub(super) audits: [Audit; 2],
}

impl Pupil {
    /// From a run.
    fn of(config: &Config, arm: usize, replica: &Replica) -> Self {
        let champion = replica.champion().and_then(|card| card.champion_as::<NetworkPlayer>().cloned());
        Self {
            about: replica_json(config, arm, replica).as_object().cloned().unwrap_or_default(),
            replica: replica.index(),
            best: replica.history().iter().map(|row| (row[2] * 1e6).round() as u32).collect(),
            champion,
        }
    }

    /// From a `result.json`: the inverse of [`Arm::pupil_json`].
    fn read(json: &Value, settings: &Settings, points: usize) -> Result<Self, String> {
        let wrong = |what: &str| format!("a replica of the result has {what}");
        let mut about = json.as_object().ok_or_else(|| wrong("no keys"))?.clone();
        let number = about.get("replica").and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
        let best: Option<Vec<u32>> = about
            .get("best_millionths")
            .and_then(Value::as_array)
            .and_then(|list| list.iter().map(|best| u32::try_from(best.as_u64()?).ok()).collect());
        let best = best.filter(|best| best.len() <= points);
        let champion = match about.get("genes") {
            None => None,
            Some(genes) => {
                let list =
                    genes.as_array().and_then(|list| list.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>());
                let genes = list.ok_or_else(|| wrong("\"genes\" that are no numbers"))?;
                let genes = genes.into_iter().map(|gene| gene as f32).collect();
                Some(NetworkPlayer::new(network_of(settings), genes).map_err(|why| wrong(&format!("genes: {why}")))?)
            }
        };
        for key in ["fitness", "firm_fitness", "fitness_on_all_boards", "as_x", "as_o", "genes", "best_millionths"] {
            about.shift_remove(key);
        }
        let replica = number.ok_or_else(|| wrong("no number"))?;
        let best = best.ok_or_else(|| wrong("no \"best_millionths\" that fit the arm's \"evaluations\""))?;
        Ok(Self { about, replica, best, champion })
    }

    /// Whether it is finished.
    pub(super) fn finished(&self) -> bool {
        self.about.get("finished") == Some(&Value::Bool(true))
    }
}

impl<'a> Arm<'a> {
    /// The arm of this index, from a run.
    pub(super) fn of(config: &'a Config, index: usize, replicas: &[&Replica]) -> Self {
        let longest = replicas.iter().max_by_key(|replica| replica.history().len());
        let evaluations = longest.map(|replica| replica.history().iter().map(|row| row[1] as u64).collect());
        let pupils = replicas.iter().map(|replica| Pupil::of(config, index, replica)).collect();
        Self::new(config, index, evaluations.unwrap_or_default(), pupils)
    }

    /// The arm of this index, from a `result.json`.
    ///
    /// # Errors
    /// If it is not one, as a sentence.
    pub(super) fn read(config: &'a Config, index: usize, json: &Value) -> Result<Self, String> {
        let list = |name: &str| json[name].as_array().ok_or_else(|| format!("an arm of the result has no {name:?}"));
        let evaluations: Option<Vec<u64>> = list("evaluations")?.iter().map(Value::as_u64).collect();
        let evaluations = evaluations.ok_or("an arm of the result has \"evaluations\" that are no whole numbers")?;
        let settings = Settings::of(&config.arms[index].settings);
        let read = |json| Pupil::read(json, &settings, evaluations.len());
        let pupils = list("replicas")?.iter().map(read).collect::<Result<Vec<Pupil>, String>>()?;
        if evaluations.len() > pupils.iter().map(|pupil| pupil.best.len()).max().unwrap_or(0) {
            return Err("an arm of the result has \"evaluations\" that no replica has".into());
        }
        Ok(Self::new(config, index, evaluations, pupils))
    }

    fn new(config: &'a Config, index: usize, evaluations: Vec<u64>, pupils: Vec<Pupil>) -> Self {
        let arm = &config.arms[index];
        let (name, settings) = (&arm.name, Settings::of(&arm.settings));
        let settings_json = settings_json(config, index);
        Self { name, settings, settings_json, seed: config.seed, evaluations, pupils }
    }

    /// Evaluates all champions again, on all boards too, and audits them.
    pub(super) fn champions(&self) -> Vec<Champion> {
        let network = network_of(&self.settings);
        let measure = self.settings.measure();
        let all = Judge::all(network, measure);
        let champion = |pupil: &Pupil| {
            let player = pupil.champion.clone()?;
            let boards = self.training_boards(pupil.replica);
            let training = Judge::new(network, measure, &boards);
            Some(Champion {
                replica: pupil.replica,
                training: training.fitness(training.sum(player.genes())),
                firm: measure.firm_fitness(&player, &boards, FIRM_MARGIN),
                all: all.fitness(all.sum(player.genes())),
                audits: Side::BOTH.map(|side| player.audit(side)),
                player,
            })
        };
        self.pupils.iter().filter_map(champion).collect()
    }

    /// The boards on which a replica is trained.
    pub(super) fn training_boards(&self, replica: u32) -> Vec<u32> {
        training_boards(self.seed, replica, self.settings.source(), self.settings.boards)
    }

    /// The boards from which a replica's games begin.
    pub(super) fn openings(&self, replica: u32) -> Vec<Board> {
        openings(self.seed, replica)
    }

    /// Which of the paper's two contestants it is: 0 its proposal, 1 the rival. Different readings of the paper count
    /// as the same.
    pub(super) fn contestant(&self) -> Option<usize> {
        let Settings { iterations, population, boards, weight, acceptance, crossover, mutation, shape, .. } =
            self.settings;
        let same = (iterations, population, boards) == (50_000, 10, 100);
        let same = same && self.settings.hidden == HIDDEN && self.settings.bounds() == RANGE;
        let decimals = [(weight, 0.1), (acceptance, 0.5), (crossover, 0.8), (mutation, 0.1), (shape, 5.0)];
        let same = same && decimals.iter().all(|(setting, value)| setting.to_f64() == *value);
        match (self.settings.network, self.settings.algorithm) {
            (Kind::Double, Algorithm::Improved) if same => Some(0),
            (Kind::Traditional | Kind::Logistic, Algorithm::Traditional) if same => Some(1),
            _ => None,
        }
    }

    /// The best fitness so far over evaluations: mean and band over the replicas that have reached each point.
    pub(super) fn curve(&self) -> Series {
        let point = |(index, evaluations): (usize, &u64)| {
            let values: Vec<f64> = self
                .pupils
                .iter()
                .filter_map(|pupil| pupil.best.get(index))
                .map(|best| f64::from(*best) / 1e6)
                .collect();
            let (low, high) = (quantile(&values, 0.1), quantile(&values, 0.9));
            Point { x: *evaluations as f64, mean: mean(&values).unwrap_or(0.0), low, high }
        };
        Series { name: self.name.into(), points: self.evaluations.iter().enumerate().map(point).collect() }
    }

    /// As in `result.json`: [`Arm::read`] is the inverse. Curves follow from the rest; they are for readers who want no more.
    pub(super) fn to_json(&self, champions: &[Champion]) -> Value {
        let pupil = |pupil: &Pupil| {
            let champion = champions.iter().find(|champion| champion.replica == pupil.replica);
            pupil_json(pupil, champion)
        };
        json!({
            "name": self.name,
            "settings": self.settings_json,
            "evaluations": self.evaluations,
            "curves": {"best": self.curve().rounded().thinned(CURVE_POINTS_MAX).to_json()},
            "replicas": self.pupils.iter().map(pupil).collect::<Vec<Value>>(),
        })
    }
}

fn pupil_json(pupil: &Pupil, champion: Option<&Champion>) -> Value {
    let mut json = Value::Object(pupil.about.clone());
    if let Some(champion) = champion {
        json["fitness"] = champion.training.into();
        json["firm_fitness"] = champion.firm.into();
        json["fitness_on_all_boards"] = champion.all.into();
        json["as_x"] = odds_json(&champion.audits[0]);
        json["as_o"] = odds_json(&champion.audits[1]);
        json["genes"] = decimals(champion.player.genes());
    }
    json["best_millionths"] = pupil.best.clone().into();
    json
}

/// An audit in `result.json`.
pub(super) fn odds_json(audit: &Audit) -> Value {
    let Odds { win, draw, loss } = audit.odds;
    json!({
        "win": win.to_string(), "draw": draw.to_string(), "loss": loss.to_string(),
        "unbeatable": audit.unbeatable(), "losing_lines": audit.losing_lines,
    })
}
