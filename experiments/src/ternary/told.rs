//! What a result keeps of an arm: the course of each replica, and the exact odds of its champion.

use serde::{Deserialize, Serialize};

use super::{Row, headline, player::Ternary, report};
use evoxo_common::{
    experiment::{Config, Figures, Replica, ReplicaTold, Row as _, Told, curve},
    headline::Headline,
    report::{Curves, Report},
    stats::{Estimate, estimate},
};
use evoxo_games::odds::Odds;

/// Columns that are reported as curves, each with its title and its axis.
pub(super) const CURVES: [(usize, &str, &str); 3] = [
    (Row::win, "How often the fittest player wins against the random mover, exactly", "probability to win"),
    (Row::loss, "How often the fittest player loses against the random mover, exactly", "probability to lose"),
    (Row::repairs, "Decisions rewritten", "repairs per player and generation"),
];

/// An arm with its replicas.
#[derive(Serialize, Deserialize)]
pub(super) struct Arm {
    #[serde(default)]
    pub(super) curves: Curves,
    pub(super) replicas: Vec<ReplicaTold<Judged>>,
}

/// The figures of a replica.
#[derive(Serialize, Deserialize)]
pub(super) struct Judged {
    /// `None` before the first generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    course: Option<Course>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    odds: Option<ChampionOdds>,
}

impl Figures for Judged {
    fn are_of<F>(_: &ReplicaTold<F>) -> bool {
        true
    }
}

/// The exact odds of a champion.
#[derive(Serialize, Deserialize)]
pub(super) struct ChampionOdds {
    /// The odds against a random mover without rules.
    pub(super) random: Odds,
    /// The odds against a random mover with the rules.
    pub(super) rules: Odds,
    /// The number of games that the champion can lose; 0 proves that it never loses.
    pub(super) losing_lines: u64,
}

/// The course of a replica from its first generation to its last.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Course {
    /// Decisions rewritten per player.
    pub(super) repairs: Ends,
    /// The share of decisions that name a taken cell.
    pub(super) broken: Ends,
    /// The mean fitness of the last generation.
    pub(super) mean_at_the_end: f64,
    /// How often the fittest player wins, averaged over all generations.
    pub(super) win_over_time: f64,
}

/// A column in the first and in the last generation.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Ends {
    pub(super) first: f64,
    pub(super) last: f64,
}

impl Course {
    fn of(history: &[Vec<f64>]) -> Option<Self> {
        let (first, last) = history.first().zip(history.last())?;
        let ends = |column: usize| Ends { first: first[column], last: last[column] };
        let win_over_time = history.iter().map(|row| row[Row::win]).sum::<f64>() / history.len() as f64;
        let (repairs, broken) = (ends(Row::repairs), ends(Row::broken));
        Some(Self { repairs, broken, mean_at_the_end: last[Row::mean], win_over_time })
    }
}

impl ChampionOdds {
    fn of(replica: &Replica) -> Option<Self> {
        let champion = replica.champion()?;
        let player = champion.champion_as::<Ternary>()?;
        let odds = player.code.subject(&player.genome).exact();
        let odds = odds.expect("a string has a legal move for every board of its side");
        let random = odds.odds_unfiltered.expect("a player without the filter meets every reply");
        Some(Self { random, rules: odds.odds, losing_lines: odds.losing_lines })
    }
}

impl Told for Arm {
    fn of(config: &Config, arm: usize, replicas: &[Vec<&Replica>]) -> Self {
        let judged =
            |replica: &Replica| Judged { course: Course::of(replica.history()), odds: ChampionOdds::of(replica) };
        let curve = |column: usize| curve(Row::name(column), &replicas[arm], column).rounded();
        Self {
            curves: Curves(CURVES.map(|(column, ..)| curve(column)).into()),
            replicas: ReplicaTold::of_all(config, arm, &replicas[arm], |replica| Some(judged(replica))),
        }
    }

    fn report(config: &Config, arms: &[Self]) -> Result<Report, String> {
        Ok(report::report(config, arms))
    }

    fn headline(config: &Config, arms: &[Self]) -> Headline {
        headline::headline(config, arms)
    }
}

impl Arm {
    pub(super) fn champions(&self) -> impl Iterator<Item = &ChampionOdds> {
        self.replicas.iter().filter_map(|replica| replica.figures.as_ref()?.odds.as_ref())
    }

    /// The mean of a value over champions.
    pub(super) fn over_champions(&self, value: impl Fn(&ChampionOdds) -> f64) -> Option<Estimate> {
        estimate(&self.champions().map(value).collect::<Vec<f64>>())
    }

    /// A value of each replica that has begun.
    pub(super) fn over_courses(&self, value: impl Fn(&Course) -> f64) -> Vec<f64> {
        self.replicas.iter().filter_map(|replica| replica.figures.as_ref()?.course.as_ref()).map(value).collect()
    }

    /// The number of champions that never lose.
    pub(super) fn safe(&self) -> usize {
        self.champions().filter(|champion| champion.losing_lines == 0).count()
    }

    pub(super) fn unfinished(&self) -> usize {
        self.replicas.iter().filter(|replica| !replica.finished).count()
    }
}

/// How often a replica's champion wins against a random mover, in percent.
pub(super) fn win(replica: &ReplicaTold<Judged>) -> Option<f64> {
    Some(100.0 * replica.figures.as_ref()?.odds.as_ref()?.random.win.to_f64())
}
