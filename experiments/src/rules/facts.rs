//! The figures of a replica and of an arm for the report: computed from histories and champions, stored in
//! `result.json`, and read back from there.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    Row,
    agent::Agent,
    figures::{FIGURES, Figure},
    headline::tail,
    strength::{Odds, odds},
};
use evoxo_common::{
    experiment::{Config, Replica, replica_json},
    report::Point,
    stats::quantile,
};

/// The most points of a curve. Each point is the mean of as many cycles as this requires.
const POINTS: usize = 100;

/// The mean over the first tenth of the cycles, and over the last.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Ends {
    pub(super) first: f64,
    pub(super) last: f64,
}

/// The figures of a replica's history.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Facts {
    /// By column, of the [`FIGURES`] that have them.
    ends: BTreeMap<usize, Ends>,
    /// Sought rules present at the end.
    pub(super) alive: f64,
    /// The most sought rules present after any cycle.
    pub(super) alive_most: f64,
    /// Sought rules that an agent had at any time.
    pub(super) found: f64,
    /// Of the cycles from the first after which a sought rule was present, the share, in percent, after which one was
    /// present; `None` if there was no such cycle.
    pub(super) kept: Option<f64>,
    /// How often the best agent of the last cycle wins and loses against a random mover, as X and as O, in percent.
    pub(super) odds: [[f64; 2]; 2],
}

/// Rounds to six decimals, so that a value is read back as it was written.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn mean(rows: &[Vec<f64>], column: usize) -> f64 {
    rows.iter().map(|row| row[column]).sum::<f64>() / rows.len() as f64
}

/// A replica in `result.json`.
pub(super) fn replica_facts(config: &Config, arm: usize, replica: &Replica) -> Value {
    let mut json = replica_json(config, arm, replica);
    let history = replica.history();
    let champion = replica.champion();
    let agent = champion.as_ref().and_then(|card| card.champion_as::<Agent>());
    let (Some(last), Some(agent)) = (history.last(), agent) else { return json };
    let tenth = tail(history.len());
    let ends = [&history[..tenth], &history[history.len() - tenth..]];
    for figure in FIGURES.iter().filter(|figure| figure.ends) {
        let [first, last] = ends.map(|rows| rounded(mean(rows, figure.column)));
        json[figure.name()] = json!({"first": first, "last": last});
    }
    let first_alive = history.iter().position(|row| row[Row::alive] > 0.0);
    let kept = first_alive.map(|first| {
        let since = &history[first..];
        rounded(100.0 * since.iter().filter(|row| row[Row::alive] > 0.0).count() as f64 / since.len() as f64)
    });
    json["sought"] = json!({
        "found": last[Row::found],
        "alive": last[Row::alive],
        "most_at_once": history.iter().map(|row| row[Row::alive]).fold(0.0, f64::max),
        "cycles_alive_since_percent": kept,
    });
    let percent = |share: f64| rounded(100.0 * share);
    let odds = odds(agent).map(|Odds { win, loss, .. }| json!({"win": percent(win), "loss": percent(loss)}));
    let [x, o] = odds;
    json["best_agent_percent"] = json!({"X": x, "O": o});
    json
}

impl Facts {
    /// Reads a replica of `result.json`; `None` before its first cycle.
    ///
    /// # Errors
    /// If a number is missing, as a sentence.
    pub(super) fn read(json: &Value) -> Result<Option<Self>, String> {
        if json["rows"] == 0 {
            return Ok(None);
        }
        let number = |group: &str, name: &str| {
            let missing = || format!("a replica of the result has no number {group}.{name}");
            json[group][name].as_f64().ok_or_else(missing)
        };
        let ends = |figure: &Figure| {
            let name = figure.name();
            Ok((figure.column, Ends { first: number(name, "first")?, last: number(name, "last")? }))
        };
        let odds = |side: &str| -> Result<[f64; 2], String> {
            let odds = &json["best_agent_percent"][side];
            let missing = || format!("a replica of the result has no numbers best_agent_percent.{side}");
            odds["win"].as_f64().zip(odds["loss"].as_f64()).map(|(win, loss)| [win, loss]).ok_or_else(missing)
        };
        Ok(Some(Self {
            ends: FIGURES.iter().filter(|figure| figure.ends).map(ends).collect::<Result<_, String>>()?,
            alive: number("sought", "alive")?,
            alive_most: number("sought", "most_at_once")?,
            found: number("sought", "found")?,
            kept: json["sought"]["cycles_alive_since_percent"].as_f64(),
            odds: [odds("X")?, odds("O")?],
        }))
    }

    /// The ends of a figure that has them, by its column.
    pub(super) fn ends(&self, column: usize) -> Ends {
        self.ends[&column]
    }
}

/// The curves of an arm's replicas in `result.json`: for each column, over cycles, the mean over replicas and their
/// 10th and 90th percentiles.
pub(super) fn curves_json(replicas: &[&Replica]) -> Value {
    let cycles = replicas.iter().map(|replica| replica.history().len()).max().unwrap_or(0);
    let window = cycles.div_ceil(POINTS).max(1);
    let ends: Vec<usize> = (0..cycles).step_by(window).map(|start| (start + window).min(cycles)).collect();
    let mut curves = Map::from_iter([("cycle".to_owned(), ends.clone().into())]);
    for figure in Figure::shown() {
        let mut lists = [const { Vec::new() }; 3];
        for end in &ends {
            let start = (end - 1) / window * window;
            let rows = replicas.iter().filter_map(|replica| replica.history().get(start..*end));
            let values: Vec<f64> = rows.map(|rows| mean(rows, figure.column)).collect();
            let all = values.iter().sum::<f64>() / values.len() as f64;
            let points = [all, quantile(&values, 0.1), quantile(&values, 0.9)];
            lists.iter_mut().zip(points).for_each(|(list, point)| list.push((point * 1e3).round() / 1e3));
        }
        let [mean, low, high] = lists;
        curves.insert(figure.name().into(), json!({"mean": mean, "p10": low, "p90": high}));
    }
    curves.into()
}

/// One of the curves of an arm in `result.json`.
///
/// # Errors
/// An error that names the curve if it is damaged. A curve that a small result leaves out has no points.
pub(super) fn read_curve(curves: &Value, name: &str) -> Result<Vec<Point>, String> {
    let list = |list: &Value| -> Option<Vec<f64>> { list.as_array()?.iter().map(Value::as_f64).collect() };
    let curve = &curves[name];
    if curve.is_null() {
        return Ok(Vec::new());
    }
    let lists = [&curves["cycle"], &curve["mean"], &curve["p10"], &curve["p90"]].map(list);
    let missing = || format!("an arm of the result has no curve {name:?}");
    let [Some(x), Some(mean), Some(low), Some(high)] = lists else { return Err(missing()) };
    if [mean.len(), low.len(), high.len()] != [x.len(); 3] {
        return Err(missing());
    }
    Ok((0..x.len()).map(|at| Point { x: x[at], mean: mean[at], low: low[at], high: high[at] }).collect())
}
