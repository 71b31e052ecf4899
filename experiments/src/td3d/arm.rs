//! An arm with its trials, from a run or from its `result.json`.

use serde_json::{Value, json};

use super::{
    facts::{self, Measure, Regime},
    joint::Joint,
    settings::{Game, Schedule, Settings, Shared, TrainingOpponent},
    trial::{Test, Trial},
};
use evoxo_common::{
    experiment::{Config, settings_json},
    ratio::Ratio,
    report::{CURVE_POINTS_MAX, Point, Series},
    settings::Choice as _,
    stats::{Sample, estimate, quantile},
};

/// An arm with its trials.
pub(super) struct Arm<'a> {
    pub(super) name: &'a str,
    /// As in `result.json`.
    pub(super) settings: Value,
    /// The row of the paper's tables that it repeats, if any.
    pub(super) paper: Option<(&'static facts::Network, Regime)>,
    /// Its reading of what the paper leaves open.
    pub(super) reading: &'a str,
    /// Connections between its units.
    pub(super) connections: usize,
    /// All its weights.
    pub(super) parameters: usize,
    pub(super) trials: Vec<Trial>,
}

impl<'a> Arm<'a> {
    /// The arm of this index.
    pub(super) fn new(config: &'a Config, index: usize, trials: Vec<Trial>) -> Self {
        let evoxo_common::experiment::Arm { name, settings } = &config.arms[index];
        let settings = Settings::of(settings);
        let architecture = settings.architecture();
        Self {
            name,
            settings: settings_json(config, index),
            paper: in_paper(&settings),
            reading: settings.reading_followed(),
            connections: architecture.connections(),
            parameters: architecture.parameters(),
            trials,
        }
    }

    pub(super) fn complete(&self) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter(|trial| trial.complete())
    }

    /// A measure of each finished trial.
    pub(super) fn values(&self, measure: Measure) -> Vec<f64> {
        self.complete().map(|trial| trial.measure(measure)).collect()
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

    /// Training games to a percentage, of each finished trial.
    pub(super) fn games_to(&self, percent: u32) -> Vec<Option<u64>> {
        self.complete().map(|trial| trial.games_to(percent.into())).collect()
    }

    /// The training games of its longest trial so far.
    pub(super) fn games(&self) -> u64 {
        self.trials.iter().filter_map(|trial| trial.tests.last()).map(|test| test.games).max().unwrap_or(0)
    }

    /// The percentage over training games: mean and band over the trials that have reached each point.
    pub(super) fn curve(&self, name: &str) -> Series {
        let longest = self.trials.iter().max_by_key(|trial| trial.tests.len()).map_or(&[][..], |trial| &trial.tests);
        let point = |(index, test): (usize, &Test)| {
            let values: Vec<f64> =
                self.trials.iter().filter_map(|trial| trial.tests.get(index)).map(Test::percent).collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let (low, high) = (quantile(&values, 0.1), quantile(&values, 0.9));
            Point { x: test.games as f64, mean, low, high }
        };
        Series { name: name.into(), points: longest.iter().enumerate().map(point).collect() }
    }

    /// As in `result.json`.
    pub(super) fn to_json(&self) -> Value {
        let longest = self.trials.iter().max_by_key(|trial| trial.tests.len());
        let games: Vec<u64> =
            longest.map(|trial| trial.tests.iter().map(|test| test.games).collect()).unwrap_or_default();
        let replicas: Vec<Value> = self.trials.iter().map(Trial::to_json).collect();
        // Curves follow from the rest; they are for readers who want no more.
        let percent = self.curve(self.name).rounded().thinned(CURVE_POINTS_MAX).to_json();
        json!({
            "name": self.name,
            "settings": self.settings,
            "games": games,
            "curves": {"percent": percent},
            "replicas": replicas,
        })
    }
}

/// The row of the paper's tables that an arm with these settings repeats, perhaps with fewer games.
fn in_paper(settings: &Settings) -> Option<(&'static facts::Network, Regime)> {
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
