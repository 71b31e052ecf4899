//! An arm with the figures of its champions, measured at the end of a run or read from its `result.json`.

use evoxo_common::{
    experiment::{Config, Replica, replica_json, settings_json},
    math::mean,
    report::{CURVE_POINTS_MAX, Point, Series},
    stats::quantile,
};
use evoxo_games::{
    audit::{Audit, Odds},
    board::Side,
    player::duel::Duel,
};
use serde_json::{Map, Value, json};

use super::{
    Row,
    boards::training_boards,
    duel::{openings, series},
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
    pub(super) pupils: Vec<Pupil>,
    /// The best fitness so far over evaluations: mean and band over the replicas that have reached each point. It has no points
    /// if the result does not keep it.
    pub(super) curve: Series,
}

/// A replica.
pub(super) struct Pupil {
    /// The keys of `result.json` that replicas of every kind have.
    about: Map<String, Value>,
    pub(super) replica: u32,
    /// `None` before the first evaluation.
    champion: Option<Champion>,
}

/// All measured values of a champion.
#[derive(Clone)]
pub(super) struct Champion {
    pub(super) replica: u32,
    /// Fitness on its training boards.
    pub(super) training: f64,
    /// The fitness that is left when outputs are blurred: see
    /// [`Measure::firm_fitness`](super::measure::Measure::firm_fitness) and [`FIRM_MARGIN`].
    pub(super) firm: f64,
    /// Fitness on all boards.
    pub(super) all: f64,
    /// Exact odds as X and as O.
    pub(super) odds: [Odds; 2],
    /// Whether it never loses as X, and as O.
    pub(super) unbeatable: [bool; 2],
    /// Its results against the first arm's champion of the same replica: moving first, and moving second. `None` in the first
    /// arm.
    pub(super) duels: Option<[Duel; 2]>,
}

/// The champion of a replica as a player.
fn player_of(replica: &Replica) -> Option<NetworkPlayer> {
    replica.champion()?.champion_as::<NetworkPlayer>().cloned()
}

/// The same games, seen from the other player.
pub(super) fn seen_from_the_other(Duel { wins, draws, losses }: Duel) -> Duel {
    Duel { wins: losses, draws, losses: wins }
}

/// The keys of a champion's duels in `result.json`: against the first arm's champion, moving first and moving second.
const DUELS: [&str; 2] = ["moving_first", "moving_second"];
/// The keys of a champion's odds in `result.json`.
const SIDES: [&str; 2] = ["as_x", "as_o"];

impl Champion {
    fn read(replica: u32, json: &Value) -> Option<Self> {
        let [x, o] = SIDES.map(|side| Some((Odds::of_json(&json[side])?, json[side]["unbeatable"].as_bool()?)));
        let ((x, x_never), (o, o_never)) = (x?, o?);
        let duel = |key: &str| -> Option<Duel> {
            let count = |name: &str| u32::try_from(json[key][name].as_u64()?).ok();
            Some(Duel { wins: count("wins")?, draws: count("draws")?, losses: count("losses")? })
        };
        let duels = match json.get(DUELS[0]) {
            Some(_) => Some([duel(DUELS[0])?, duel(DUELS[1])?]),
            None => None,
        };
        Some(Self {
            replica,
            training: json["fitness"].as_f64()?,
            firm: json["firm_fitness"].as_f64()?,
            all: json["fitness_on_all_boards"].as_f64()?,
            odds: [x, o],
            unbeatable: [x_never, o_never],
            duels,
        })
    }

    /// Adds its figures to a replica of `result.json`: [`Self::read`] is the inverse.
    fn write(&self, json: &mut Map<String, Value>) {
        json.insert("fitness".into(), self.training.into());
        json.insert("firm_fitness".into(), self.firm.into());
        json.insert("fitness_on_all_boards".into(), self.all.into());
        for (side, (odds, unbeatable)) in SIDES.iter().zip(self.odds.into_iter().zip(self.unbeatable)) {
            let mut odds = odds.to_json();
            odds["unbeatable"] = unbeatable.into();
            json.insert((*side).into(), odds);
        }
        for (key, Duel { wins, draws, losses }) in DUELS.iter().zip(self.duels.into_iter().flatten()) {
            json.insert((*key).into(), json!({"wins": wins, "draws": draws, "losses": losses}));
        }
    }
}

impl<'a> Arm<'a> {
    /// The arm of this index, from a run. Its champions are judged again, on all boards too, audited, and play against those of
    /// `first`, the replicas of the first arm, if this is another one.
    pub(super) fn of(config: &'a Config, index: usize, replicas: &[&Replica], first: &[&Replica]) -> Self {
        let mut arm = Self::new(config, index, Vec::new(), curve(&config.arms[index].name, replicas));
        let pupil = |replica: &&Replica| {
            let opponent = first.iter().find(|other| index > 0 && other.index() == replica.index());
            let opponent = opponent.and_then(|other| player_of(other));
            Pupil {
                about: replica_json(config, index, replica).as_object().cloned().unwrap_or_default(),
                replica: replica.index(),
                champion: player_of(replica).map(|player| arm.measured(replica.index(), &player, opponent.as_ref())),
            }
        };
        let pupils = replicas.iter().map(pupil).collect();
        arm.pupils = pupils;
        arm
    }

    /// The arm of this index, from a `result.json`.
    ///
    /// # Errors
    /// If it is not one, as a sentence.
    pub(super) fn read(config: &'a Config, index: usize, json: &Value) -> Result<Self, String> {
        let lacks = |what: &str| format!("the arm {:?} of the result has no {what}", config.arms[index].name);
        let curve = Series::kept(&config.arms[index].name, &json["curves"]["best"]).ok_or_else(|| lacks("curve"))?;
        let pupil = |json: &Value| {
            let about = json.as_object().ok_or_else(|| lacks("replicas"))?;
            let replica = json["replica"].as_u64().and_then(|number| u32::try_from(number).ok());
            let replica = replica.ok_or_else(|| lacks("numbers of its replicas"))?;
            let champion = match json.get("fitness") {
                Some(_) => {
                    Some(Champion::read(replica, json).ok_or_else(|| lacks("complete figures of its champions"))?)
                }
                None => None,
            };
            Ok(Pupil { about: about.clone(), replica, champion })
        };
        let replicas = json["replicas"].as_array().ok_or_else(|| lacks("replicas"))?;
        let pupils = replicas.iter().map(pupil).collect::<Result<Vec<Pupil>, String>>()?;
        Ok(Self::new(config, index, pupils, curve))
    }

    fn new(config: &'a Config, index: usize, pupils: Vec<Pupil>, curve: Series) -> Self {
        let arm = &config.arms[index];
        let (name, settings) = (&arm.name, Settings::of(&arm.settings));
        let settings_json = settings_json(config, index);
        Self { name, settings, settings_json, seed: config.seed, pupils, curve }
    }

    /// Measures a champion.
    fn measured(&self, replica: u32, player: &NetworkPlayer, first: Option<&NetworkPlayer>) -> Champion {
        let (network, measure) = (network_of(&self.settings), self.settings.measure());
        let (boards, all) = (self.training_boards(replica), Judge::all(network, measure));
        let training = Judge::new(network, measure, &boards);
        let audits = Side::BOTH.map(|side| player.audit(side));
        let openings = openings(self.seed, replica);
        let duels = first
            .map(|first| [series(&openings, player, first), seen_from_the_other(series(&openings, first, player))]);
        Champion {
            replica,
            training: training.fitness(training.sum(player.genes())),
            firm: measure.firm_fitness(player, &boards, FIRM_MARGIN),
            all: all.fitness(all.sum(player.genes())),
            odds: audits.each_ref().map(|audit| audit.odds),
            unbeatable: audits.each_ref().map(Audit::unbeatable),
            duels,
        }
    }

    /// The champions of the replicas that have one.
    pub(super) fn champions(&self) -> Vec<Champion> {
        self.pupils.iter().filter_map(|pupil| pupil.champion.clone()).collect()
    }

    /// The boards on which a replica is trained.
    pub(super) fn training_boards(&self, replica: u32) -> Vec<u32> {
        training_boards(self.seed, replica, self.settings.source(), self.settings.boards)
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

    /// As in `result.json`: [`Arm::read`] is the inverse.
    pub(super) fn to_json(&self) -> Value {
        let pupil = |pupil: &Pupil| {
            let mut json = pupil.about.clone();
            pupil.champion.iter().for_each(|champion| champion.write(&mut json));
            Value::Object(json)
        };
        json!({
            "name": self.name,
            "settings": self.settings_json,
            "curves": {"best": self.curve.to_json()},
            "replicas": self.pupils.iter().map(pupil).collect::<Vec<Value>>(),
        })
    }
}

impl Pupil {
    /// Whether it is finished.
    pub(super) fn finished(&self) -> bool {
        self.about.get("finished") == Some(&Value::Bool(true))
    }
}

/// The best fitness so far over evaluations, as a result keeps it.
fn curve(name: &str, replicas: &[&Replica]) -> Series {
    let longest = replicas.iter().max_by_key(|replica| replica.history().len());
    let evaluations: Vec<f64> =
        longest.map(|replica| replica.history().iter().map(|row| row[Row::evaluations]).collect()).unwrap_or_default();
    let point = |(index, evaluations): (usize, &f64)| {
        let rows = replicas.iter().filter_map(|replica| replica.row(index));
        let values: Vec<f64> = rows.map(|row| row[Row::best]).collect();
        let (low, high) = (quantile(&values, 0.1), quantile(&values, 0.9));
        Point { x: *evaluations, mean: mean(&values).unwrap_or(0.0), low, high }
    };
    let series = Series { name: name.into(), points: evaluations.iter().enumerate().map(point).collect() };
    series.rounded().thinned(CURVE_POINTS_MAX)
}

/// An audit in `result.json`.
pub(super) fn odds_json(audit: &Audit) -> Value {
    let Odds { win, draw, loss } = audit.odds;
    json!({
        "win": win.to_string(), "draw": draw.to_string(), "loss": loss.to_string(),
        "unbeatable": audit.unbeatable(), "losing_lines": audit.losing_lines,
    })
}
