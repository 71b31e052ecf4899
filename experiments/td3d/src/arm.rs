//! An arm with its trials, either from a run or from its `result.json`.

use serde::{Deserialize, Serialize};

use super::{
    Row,
    facts::{self, Measure, Regime},
    joint::Joint,
    settings::{Game, Schedule, Settings, Shared, TrainingOpponent},
    trial::{Reached, Test, Trial},
};
use evoxo_common::{
    experiment::{self, Config, Replica, ReplicaTold},
    ratio::Ratio,
    report::{CURVE_POINTS_MAX, Curves, Point, Series},
    settings::Choice as _,
    stats::{Sample, estimate, quantile},
};

/// What a result keeps of an arm.
#[derive(Serialize, Deserialize)]
pub(super) struct KeptTrials {
    /// The training games of the arm's longest trial so far.
    games: u64,
    /// The percentage over training games: mean and band over the trials that have reached each point.
    #[serde(default)]
    curves: Curves,
    pub(super) replicas: Vec<Trial>,
}

impl KeptTrials {
    /// The trials of an arm of a run.
    pub(super) fn measured(config: &Config, arm: usize, replicas: &[Vec<&Replica>]) -> Self {
        let test = |row: &Vec<f64>| Test {
            games: row[Row::games] as u64,
            wins: row[Row::wins] as u32,
            draws: row[Row::draws] as u32,
            losses: row[Row::losses] as u32,
        };
        let tests = |replica: &&Replica| replica.history().iter().map(test).collect::<Vec<Test>>();
        let all: Vec<Vec<Test>> = replicas[arm].iter().map(tests).collect();
        let trial =
            |(replica, tests): (&&Replica, &Vec<Test>)| ReplicaTold::of(config, arm, replica, Reached::of(tests));
        Self {
            games: all.iter().filter_map(|tests| tests.last()).map(|test| test.games).max().unwrap_or(0),
            curves: Curves(vec![curve(PERCENT, &all)]),
            replicas: replicas[arm].iter().zip(&all).map(trial).collect(),
        }
    }
}

/// The name of the curve in a result.
const PERCENT: &str = "percent";

/// An arm with its trials.
pub(super) struct Arm<'a> {
    pub(super) name: &'a str,
    /// The row of the paper's tables that this arm repeats, if any.
    pub(super) paper: Option<(&'static facts::Network, Regime)>,
    /// The arm's reading of what the paper leaves open.
    pub(super) reading: &'a str,
    /// Connections between the network's units.
    pub(super) connections: usize,
    /// All weights of the network.
    pub(super) parameters: usize,
    pub(super) trials: Vec<Trial>,
    /// The training games of the arm's longest trial so far.
    pub(super) games: u64,
    /// The percentage over training games. It has no points if the result does not keep the curve.
    pub(super) curve: Series,
}

impl<'a> Arm<'a> {
    /// The arm with this index.
    pub(super) fn new(config: &'a Config, index: usize, told: &KeptTrials) -> Self {
        let experiment::Arm { name, settings } = &config.arms[index];
        let settings = Settings::of(settings);
        let architecture = settings.architecture();
        Self {
            name,
            paper: in_paper(&settings),
            reading: settings.reading_followed(),
            connections: architecture.connections(),
            parameters: architecture.parameters(),
            trials: told.replicas.clone(),
            games: told.games,
            curve: told.curves.shown(PERCENT, name).unwrap_or_default(),
        }
    }

    /// The number of trials that finished without a failure.
    pub(super) fn complete(&self) -> usize {
        self.trials.iter().filter(|trial| trial.figures.is_some()).count()
    }

    /// The values of a measure, one per finished trial.
    pub(super) fn values(&self, measure: Measure) -> Vec<f64> {
        self.trials.iter().filter_map(|trial| Some(trial.figures.as_ref()?.measure(measure))).collect()
    }

    pub(super) fn sample(&self, measure: Measure) -> Option<Sample> {
        Sample::of(&self.values(measure))
    }

    /// "51.0 ± 6.0 (46.7 to 55.3)": mean, standard deviation, confidence interval of the mean.
    pub(super) fn text(&self, measure: Measure) -> String {
        let values = self.values(measure);
        let Some((sample, mean)) = Sample::of(&values).zip(estimate(&values)) else { return "-".into() };
        match mean.half_width {
            None => format!("{:.1}", mean.mean),
            Some(half) => {
                let (low, high) = (mean.mean - half, mean.mean + half);
                format!("{:.1} ± {:.1} ({low:.1} to {high:.1})", mean.mean, sample.deviation)
            }
        }
    }

    /// For each finished trial, the training games until it reached one of the [`LEVELS`](super::trial::LEVELS); `level` is
    /// its index.
    pub(super) fn games_to(&self, level: usize) -> Vec<Option<u64>> {
        self.trials.iter().filter_map(|trial| Some(trial.figures.as_ref()?.games_to[level])).collect()
    }

    /// The arm's curve under this name.
    pub(super) fn curve(&self, name: &str) -> Series {
        Series { name: name.into(), points: self.curve.points.clone() }
    }
}

/// The curve of the tests of an arm's trials, in the form in which a result keeps it.
pub(super) fn curve(name: &str, trials: &[Vec<Test>]) -> Series {
    let longest = trials.iter().max_by_key(|tests| tests.len()).map_or(&[][..], Vec::as_slice);
    let point = |(index, test): (usize, &Test)| {
        let values: Vec<f64> = trials.iter().filter_map(|tests| tests.get(index)).map(Test::percent).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let (low, high) = (quantile(&values, 0.1), quantile(&values, 0.9));
        Point { x: test.games as f64, mean, low, high }
    };
    let series = Series { name: name.into(), points: longest.iter().enumerate().map(point).collect() };
    series.rounded().thinned(CURVE_POINTS_MAX)
}

/// The row of the paper's tables that an arm with these settings repeats, possibly with fewer games.
pub(super) fn in_paper(settings: &Settings) -> Option<(&'static facts::Network, Regime)> {
    let Settings { units, detectors, second, averaging_games, .. } = *settings;
    let same = settings.game == Game::ScoreFour
        && settings.shared == Shared::No
        && settings.schedule == Schedule::Constant
        && (units, detectors, second, averaging_games) == (0, 0, 0, 0)
        && Joint::of(settings).is_none()
        && (settings.alpha, settings.epsilon, settings.gamma) == (Ratio::new(5, 1000), Ratio::new(1, 10), Ratio::ONE)
        && settings.reading_followed() != "own";
    let regime = if settings.opponent == TrainingOpponent::Itself { Regime::SelfPlay } else { Regime::Benchmark };
    let network = facts::network(settings.network.word()).filter(|_| same);
    network.map(|network| (network, regime))
}
