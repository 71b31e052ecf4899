//! The figures of a replica and of an arm for the report. They are computed from histories and champions, stored in
//! `result.json`, and read back from there.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Map, Value, json};

use super::{
    Row,
    agent::Agent,
    figures::{FIGURES, Figure},
    headline::{self, tail},
    report,
    strength::{OutcomeShares, odds},
};
use evoxo_common::{
    experiment::{Config, Figures, Replica, ReplicaTold, Told},
    headline::Headline,
    report::{Point, Report, Series},
    stats::quantile,
};

/// The most points of a curve. Each point is the mean of as many cycles as this limit requires.
const POINTS: usize = 100;

/// What a result keeps of an arm.
#[derive(Serialize, Deserialize)]
pub(super) struct Arm {
    #[serde(default)]
    pub(super) curves: Curves,
    pub(super) replicas: Vec<ReplicaTold<Facts>>,
}

impl Told for Arm {
    fn of(config: &Config, arm: usize, replicas: &[Vec<&Replica>]) -> Self {
        let replicas = &replicas[arm];
        Self { curves: Curves::of(replicas), replicas: ReplicaTold::of_all(config, arm, replicas, Facts::of) }
    }

    fn report(config: &Config, arms: &[Self]) -> Result<Report, String> {
        Ok(report::report(config, arms))
    }

    fn headline(config: &Config, arms: &[Self]) -> Headline {
        headline::headline(config, arms)
    }
}

/// The mean over the first tenth of the cycles, and over the last tenth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Ends {
    pub(super) first: f64,
    pub(super) last: f64,
}

/// The ends, by column, for those of the [`FIGURES`] that have ends.
#[derive(Clone, Debug, PartialEq)]
struct AllEnds(BTreeMap<usize, Ends>);

/// The figures of a replica's history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Facts {
    #[serde(flatten)]
    ends: AllEnds,
    pub(super) sought: Sought,
    pub(super) best_agent_percent: BestAgent,
}

/// The sought rules of a replica.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Sought {
    /// How many of them an agent has had at any time.
    pub(super) found: f64,
    /// How many of them exist at the end.
    pub(super) alive: f64,
    /// The most of them that existed after any one cycle.
    pub(super) most_at_once: f64,
    /// Counting from the first cycle after which a sought rule existed: the share of cycles, in percent, after which one
    /// existed. `None` if there was no such cycle.
    pub(super) cycles_alive_since_percent: Option<f64>,
}

/// The results of the last cycle's best agent against a random mover.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct BestAgent {
    #[serde(rename = "X")]
    pub(super) x: Percent,
    #[serde(rename = "O")]
    pub(super) o: Percent,
}

/// How often the agent wins and loses, in percent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Percent {
    win: f64,
    pub(super) loss: f64,
}

/// Rounds to six decimals, so that a value reads back exactly as it was written.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn mean(rows: &[Vec<f64>], column: usize) -> f64 {
    rows.iter().map(|row| row[column]).sum::<f64>() / rows.len() as f64
}

impl Figures for Facts {
    fn are_of<F>(replica: &ReplicaTold<F>) -> bool {
        replica.rows > 0
    }
}

impl Facts {
    /// The replica's figures; `None` before the first cycle.
    fn of(replica: &Replica) -> Option<Self> {
        let (history, champion) = (replica.history(), replica.champion()?);
        let (last, agent) = (history.last()?, champion.champion_as::<Agent>()?);
        let tenth = tail(history.len());
        let ends = |figure: &Figure| {
            let [first, last] = [&history[..tenth], &history[history.len() - tenth..]];
            let [first, last] = [first, last].map(|rows| rounded(mean(rows, figure.column)));
            (figure.column, Ends { first, last })
        };
        let first_alive = history.iter().position(|row| row[Row::alive] > 0.0);
        let kept = first_alive.map(|first| {
            let since = &history[first..];
            rounded(100.0 * since.iter().filter(|row| row[Row::alive] > 0.0).count() as f64 / since.len() as f64)
        });
        let percent = |share: f64| rounded(100.0 * share);
        let [x, o] =
            odds(agent).map(|OutcomeShares { win, loss, .. }| Percent { win: percent(win), loss: percent(loss) });
        Some(Self {
            ends: AllEnds(FIGURES.iter().filter(|figure| figure.ends).map(ends).collect()),
            sought: Sought {
                found: last[Row::found],
                alive: last[Row::alive],
                most_at_once: history.iter().map(|row| row[Row::alive]).fold(0.0, f64::max),
                cycles_alive_since_percent: kept,
            },
            best_agent_percent: BestAgent { x, o },
        })
    }

    /// The ends of a figure that has ends, by its column.
    pub(super) fn ends(&self, column: usize) -> Ends {
        self.ends.0[&column]
    }
}

impl Serialize for AllEnds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shown = FIGURES.iter().filter(|figure| figure.ends);
        serializer.collect_map(shown.map(|figure| (figure.name(), &self.0[&figure.column])))
    }
}

impl<'de> Deserialize<'de> for AllEnds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut named = Map::deserialize(deserializer)?;
        let ends = |figure: &Figure| {
            let ends = Ends::deserialize(named.remove(figure.name()).unwrap_or_default());
            let wrong = |why| D::Error::custom(format!("the ends of {}: {why}", figure.name()));
            Ok((figure.column, ends.map_err(wrong)?))
        };
        FIGURES.iter().filter(|figure| figure.ends).map(ends).collect::<Result<_, _>>().map(Self)
    }
}

/// The curves of an arm's replicas, by column: over cycles, the mean over replicas and their 10th and 90th percentiles. A
/// small result omits some or all of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Curves(Vec<Series>);

/// A curve in a result. The cycles of the points are stored once for all curves.
#[derive(Serialize, Deserialize)]
struct Lists {
    mean: Vec<f64>,
    p10: Vec<f64>,
    p90: Vec<f64>,
}

impl Curves {
    fn of(replicas: &[&Replica]) -> Self {
        let cycles = replicas.iter().map(|replica| replica.history().len()).max().unwrap_or(0);
        let window = cycles.div_ceil(POINTS).max(1);
        let rounded = |value: f64| (value * 1e3).round() / 1e3;
        let curve = |figure: &Figure| {
            let point = |start: usize| {
                let end = (start + window).min(cycles);
                let rows = replicas.iter().filter_map(|replica| replica.history().get(start..end));
                let values: Vec<f64> = rows.map(|rows| mean(rows, figure.column)).collect();
                let all = values.iter().sum::<f64>() / values.len() as f64;
                let [mean, low, high] = [all, quantile(&values, 0.1), quantile(&values, 0.9)].map(rounded);
                Point { x: end as f64, mean, low, high }
            };
            Series { name: figure.name().into(), points: (0..cycles).step_by(window).map(point).collect() }
        };
        Self(Figure::shown().into_iter().map(curve).collect())
    }

    /// The curve of a figure, named after an arm.
    pub(super) fn shown(&self, figure: &Figure, name: &str) -> Option<Series> {
        self.0.iter().find(|curve| curve.name == figure.name())?.shown(name)
    }
}

/// The key under which the cycles are stored.
const CYCLE: &str = "cycle";

impl Serialize for Curves {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let cycles = self.0.first().map(|curve| curve.points.iter().map(|point| point.x as u64).collect::<Vec<u64>>());
        let lists = |curve: &Series| {
            let list = |value: fn(&Point) -> f64| curve.points.iter().map(value).collect();
            Lists { mean: list(|point| point.mean), p10: list(|point| point.low), p90: list(|point| point.high) }
        };
        let curves = self.0.iter().map(|curve| (curve.name.clone(), json!(lists(curve))));
        serializer.collect_map([(CYCLE.to_owned(), json!(cycles.unwrap_or_default()))].into_iter().chain(curves))
    }
}

impl<'de> Deserialize<'de> for Curves {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut named = Map::deserialize(deserializer)?;
        let cycles = Vec::<f64>::deserialize(named.shift_remove(CYCLE).unwrap_or_default());
        let cycles = cycles.map_err(|why| D::Error::custom(format!("the cycles of the curves: {why}")))?;
        let curve = |(name, lists): (String, Value)| {
            let wrong = |why: String| D::Error::custom(format!("the curve {name:?}: {why}"));
            let Lists { mean, p10, p90 } = Lists::deserialize(lists).map_err(|why| wrong(why.to_string()))?;
            if [mean.len(), p10.len(), p90.len()] != [cycles.len(); 3] {
                return Err(wrong("it has another length than its cycles".into()));
            }
            let point = |at: usize| Point { x: cycles[at], mean: mean[at], low: p10[at], high: p90[at] };
            Ok(Series { points: (0..cycles.len()).map(point).collect(), name })
        };
        named.into_iter().map(curve).collect::<Result<_, _>>().map(Self)
    }
}
