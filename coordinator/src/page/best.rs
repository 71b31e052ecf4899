//! The best replica of each arm, for links to champions. `evoxo best` follows the same rules.

use std::cmp::Ordering;

use evoxo_common::{
    experiment::{Config, Replica},
    math::order,
};
use serde_json::{Value, json};

/// The last row of a replica.
struct Last<'a> {
    arm: usize,
    replica: &'a Replica,
    row: &'a [f64],
}

/// The number of the best replica of each arm, or null, and the arm with the best replica of all, if the same column ranks the
/// replicas of all arms.
pub(super) fn best(config: &Config, replicas: &[Replica]) -> Value {
    let is_solution = |row: &[f64]| config.kind.is_solution.is_none_or(|is_solution| is_solution(row));
    let last = |(arm, name): (usize, &str)| {
        let own = replicas.iter().filter(|replica| replica.arm() == name);
        let last = own.filter_map(|replica| Some(Last { arm, replica, row: replica.history().last()? }));
        let last: Vec<Last<'_>> = last.filter(|last| is_solution(last.row)).collect();
        // If several are equal, the last of them.
        last.into_iter().rev().min_by(|one, other| compare(config, one, other))
    };
    let names = config.arms.iter().map(|arm| arm.name.as_str()).enumerate();
    let best: Vec<Option<Last<'_>>> = names.map(last).collect();
    let column = |arm: usize| config.kind.deciding_column(&config.arms[arm].settings);
    let first = best.iter().flatten().min_by(|one, other| compare(config, one, other));
    let first = first.filter(|first| (0..config.arms.len()).all(|arm| column(arm) == column(first.arm)));
    let replicas: Value = best.iter().map(|best| best.as_ref().map(|last| last.replica.index())).collect();
    json!({"replicas": replicas, "arm": first.map(|first| first.arm)})
}

/// The better replica is `Less`.
fn compare(config: &Config, one: &Last<'_>, other: &Last<'_>) -> Ordering {
    let column = config.kind.primary_metric;
    let figure = |last: &Last<'_>| config.kind.figure(column, last.replica.history()).unwrap_or(f64::NEG_INFINITY);
    match config.kind.ranking {
        Some(ranking) => (ranking.compare)(&config.arms[one.arm].settings, one.row, other.row),
        None => order(figure(other), figure(one)),
    }
}
