//! What a result keeps of an arm: the exact odds of its champions, and curves.

use serde::{Deserialize, Serialize};

use super::{Row, settings::Settings};
use evoxo_common::{
    experiment::{Config, Figures, Replica, ReplicaTold, Row as _, curve},
    report::Curves,
};
use evoxo_games::{
    odds::Odds,
    table::{TableGenome, optimum::optimum},
};

/// The curves of an arm: columns of the history, with their names in figures. If fitness is exact, the last curve is the same
/// as the first.
pub(super) const CURVES: [(usize, &str); 3] = [
    (Row::worth, "exact worth of the fittest player"),
    (Row::mean, "mean fitness of the population"),
    (Row::fitness, "sampled fitness of the fittest player"),
];

/// The figures of a champion.
#[derive(Serialize, Deserialize)]
pub(super) struct ChampionFigures {
    #[serde(flatten)]
    pub(super) odds: Odds,
    pub(super) unbeatable: bool,
    pub(super) optimal: bool,
    /// The champion's exact worth, in points per game.
    pub(super) worth: f64,
    /// The champion's fitness, by which it was chosen.
    pub(super) fitness: f64,
    #[serde(rename = "peak_generation")]
    pub(super) peak: u64,
    pub(super) boards_met: u64,
}

impl Figures for ChampionFigures {
    fn are_of<F>(replica: &ReplicaTold<F>) -> bool {
        replica.champion.is_some()
    }
}

/// What a result keeps of an arm.
#[derive(Serialize, Deserialize)]
pub(super) struct KeptArm {
    #[serde(default)]
    pub(super) curves: Curves,
    pub(super) replicas: Vec<ReplicaTold<ChampionFigures>>,
}

impl KeptArm {
    /// The figures of an arm of a run, with the exact odds of its champions.
    pub(super) fn measured(config: &Config, arm: usize, replicas: &[Vec<&Replica>]) -> Self {
        let settings = Settings::of(&config.arms[arm].settings);
        let points = settings.points();
        let optimum = optimum(settings.side.into(), points);
        let champion = |replica: &Replica| {
            let (champion, last) = (replica.champion()?, replica.history().last()?);
            let exact = champion.champion_as::<TableGenome>()?.exact();
            Some(ChampionFigures {
                odds: exact.odds,
                unbeatable: exact.unbeatable(),
                optimal: points.worth(exact.odds) == optimum.fitness,
                worth: last[Row::worth],
                fitness: last[Row::fitness],
                peak: peak(replica) as u64,
                boards_met: exact.boards_asked as u64,
            })
        };
        let curves = CURVES.map(|(column, _)| curve(Row::name(column), &replicas[arm], column).rounded());
        let replicas = ReplicaTold::of_all(config, arm, &replicas[arm], champion);
        Self { curves: Curves(curves.into()), replicas }
    }
}

/// The first generation that comes within a hundredth of a point of the best one.
fn peak(replica: &Replica) -> usize {
    let worth = |row: &Vec<f64>| row[Row::worth];
    let best = replica.history().iter().map(worth).fold(f64::MIN, f64::max);
    1 + replica.history().iter().position(|row| worth(row) >= best - 0.01).unwrap_or(0)
}
