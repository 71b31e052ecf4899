//! An arm with the figures of its champions, either measured at the end of a run or read from its `result.json`.

use evoxo_common::{
    experiment::{Config, Figures, Replica, ReplicaTold, Told},
    headline::Headline,
    math::mean,
    report::{CURVE_POINTS_MAX, Curves, Point, Report, Series},
    stats::quantile,
};
use evoxo_games::{
    board::Side,
    odds::{Exact, Odds},
    player::duel::Duel,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    Row,
    boards::training_boards,
    duel::{openings, series},
    headline,
    judge::Judge,
    network::{HIDDEN, Kind, NetworkPlayer, RANGE},
    report,
    settings::{Algorithm, Settings},
};

/// The paper's fitness after training: first its proposal, then the rival.
pub(super) const PAPER_FITNESS: [f64; 2] = [0.9605, 0.9456];
/// An output within this distance (in cell numbers) of the middle between two cells is not firm. The distance is greater than
/// the spread of the outputs of saturated nodes, which searches exploit.
pub(super) const FIRM_MARGIN: f64 = 1e-5;

/// What a result keeps of an arm.
#[derive(Serialize, Deserialize)]
pub(super) struct Arm {
    /// The best fitness so far over evaluations: mean and band over the replicas that have reached each point.
    #[serde(default)]
    curves: Curves,
    pub(super) replicas: Vec<ReplicaTold<Champion>>,
}

/// All measured values of a champion.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Champion {
    /// Fitness on its training boards.
    #[serde(rename = "fitness")]
    pub(super) training: f64,
    /// The fitness that remains when outputs are blurred: see
    /// [`Measure::firm_fitness`](super::measure::Measure::firm_fitness) and [`FIRM_MARGIN`].
    #[serde(rename = "firm_fitness")]
    pub(super) firm: f64,
    /// Fitness on all boards.
    #[serde(rename = "fitness_on_all_boards")]
    pub(super) all: f64,
    as_x: Strength,
    as_o: Strength,
    /// Results against the first arm's champion of the same replica, when this champion moves first. `None` in the first arm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    moving_first: Option<Duel>,
    /// The same, when this champion moves second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    moving_second: Option<Duel>,
}

/// How strong a champion is when it plays one side.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Strength {
    #[serde(flatten)]
    pub(super) odds: Odds,
    /// Whether the champion never loses.
    pub(super) unbeatable: bool,
}

impl Figures for Champion {
    fn are_of<F>(replica: &ReplicaTold<F>) -> bool {
        replica.champion.is_some()
    }
}

impl Champion {
    pub(super) fn strength(&self, side: Side) -> Strength {
        match side {
            Side::X => self.as_x,
            Side::O => self.as_o,
        }
    }

    /// Results against the first arm's champion of the same replica: moving first, and moving second.
    pub(super) fn duels(&self) -> Option<[Duel; 2]> {
        Some([self.moving_first?, self.moving_second?])
    }
}

/// The champion of a replica as a player.
fn player_of(replica: &Replica) -> Option<NetworkPlayer> {
    replica.champion()?.champion_as::<NetworkPlayer>().cloned()
}

/// The same games from the other player's point of view.
pub(super) fn seen_from_the_other(Duel { wins, draws, losses }: Duel) -> Duel {
    Duel { wins: losses, draws, losses: wins }
}

impl Told for Arm {
    /// Judges each champion again, also on all boards, computes its exact odds, and plays it against the first arm's champion.
    fn of(config: &Config, arm: usize, replicas: &[Vec<&Replica>]) -> Self {
        let shown = Shown::new(config, arm);
        let all = Judge::all(shown.settings.architecture(), shown.settings.measure());
        let champion = |replica: &Replica| {
            let opponent = replicas[0].iter().find(|other| arm > 0 && other.index() == replica.index());
            let opponent = opponent.and_then(|other| player_of(other));
            Some(shown.measured(replica.index(), &all, &player_of(replica)?, opponent.as_ref()))
        };
        Self {
            curves: Curves(vec![curve(BEST, &replicas[arm])]),
            replicas: ReplicaTold::of_all(config, arm, &replicas[arm], champion),
        }
    }

    fn report(config: &Config, arms: &[Self]) -> Result<Report, String> {
        if arms.iter().skip(1).any(Arm::lacks_a_duel) {
            return Err("a champion of the result has played only one side of its match against the first arm's".into());
        }
        Ok(report::report(config, arms))
    }

    fn headline(config: &Config, arms: &[Self]) -> Headline {
        headline::headline(config, arms)
    }
}

impl Arm {
    fn lacks_a_duel(&self) -> bool {
        self.champions().any(|(_, champion)| champion.moving_first.is_some() != champion.moving_second.is_some())
    }

    /// The champions of all replicas that have one, with the replica's number.
    pub(super) fn champions(&self) -> impl Iterator<Item = (u32, &Champion)> {
        self.replicas.iter().filter_map(|replica| Some((replica.replica, replica.figures.as_ref()?)))
    }

    /// The arm's curve under this name.
    pub(super) fn curve(&self, name: &str) -> Option<Series> {
        self.curves.shown(BEST, name)
    }
}

/// The name of the curve in a result.
const BEST: &str = "best";

/// An arm of a configuration, with its settings.
pub(super) struct Shown<'a> {
    pub(super) name: &'a str,
    pub(super) settings: Settings,
    seed: u64,
}

impl<'a> Shown<'a> {
    pub(super) fn new(config: &'a Config, index: usize) -> Self {
        let arm = &config.arms[index];
        Self { name: &arm.name, settings: Settings::of(&arm.settings), seed: config.seed }
    }

    /// Measures a champion. `all` judges it on all boards.
    fn measured(&self, replica: u32, all: &Judge, player: &NetworkPlayer, first: Option<&NetworkPlayer>) -> Champion {
        let (network, measure) = (self.settings.architecture(), self.settings.measure());
        let boards = self.training_boards(replica);
        let training = Judge::new(network, measure, &boards);
        let openings = openings(self.seed, replica);
        let duels = first
            .map(|first| [series(&openings, player, first), seen_from_the_other(series(&openings, first, player))]);
        let strength = |side: Side| {
            let exact = player.exact(side);
            Strength { odds: exact.odds, unbeatable: exact.unbeatable() }
        };
        let [moving_first, moving_second] = duels.map_or([None; 2], |duels| duels.map(Some));
        Champion {
            training: training.fitness(training.sum(player.genes())),
            firm: measure.firm_fitness(player, &boards, FIRM_MARGIN),
            all: all.fitness(all.sum(player.genes())),
            as_x: strength(Side::X),
            as_o: strength(Side::O),
            moving_first,
            moving_second,
        }
    }

    /// The boards on which a replica is trained.
    pub(super) fn training_boards(&self, replica: u32) -> Vec<u32> {
        training_boards(self.seed, replica, self.settings.source(), self.settings.boards)
    }

    /// Which of the paper's two contestants this arm is: 0 for the proposal, 1 for the rival. Different readings of the paper
    /// count as the same contestant.
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
}

/// The best fitness so far over evaluations, in the form in which a result keeps it.
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

/// Exact odds in the form that `result.json` has.
pub(super) fn odds_json(exact: &Exact) -> Value {
    let mut json = json!(Strength { odds: exact.odds, unbeatable: exact.unbeatable() });
    json["losing_lines"] = exact.losing_lines.into();
    json
}
