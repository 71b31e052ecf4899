//! Pictures of `evolve` besides its curves: how soon targets are reached, fronts of two objectives, archives as maps.
//!
//! What a picture needs is first written into the result, so that a report can be made of the result alone.

use evoxo_common::{
    experiment::Replica,
    math::{ln, pow},
    report::{Drawn, Figure, Map, Point, Series},
};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{
    algorithm::{Axis, Leaves},
    settings::Settings,
};

/// Precisions that count as targets where the optimum is known: this number of powers of ten from 100 to 1e-8, as in N.
/// Hansen, A. Auger, D. Brockhoff and T. Tušar, "Anytime Performance Assessment in Blackbox Optimization Benchmarking",
/// IEEE Transactions on Evolutionary Computation 26(6), 2022.
const TARGETS: usize = 51;
const EXPONENTS: (f64, f64) = (2.0, -8.0);
/// Points of a curve of runtimes.
const RUNTIME_POINTS: usize = 120;
/// The most points of a front that a result keeps for an arm, and the most cells of a map.
const FRONT_MAX: usize = 5000;
const CELLS_MAX: usize = 10_000;

/// The precisions to be reached, greatest first, and what they are above: the optimum where it is known, else the target.
fn targets(settings: &Settings) -> Option<(f64, Vec<f64>)> {
    let objectives = settings.objectives();
    let [(_, _)] = objectives.as_slice() else { return None };
    // When a search first sees a value of a noisy problem is luck.
    if settings.is_noisy() {
        return None;
    }
    let optimum = settings.built_in().and_then(|problem| (problem.optimum)(settings.genome().genes()));
    match (optimum, settings.target_number()) {
        (Some(optimum), _) => {
            let (from, to) = EXPONENTS;
            let exponent = |index: usize| from + (to - from) * index as f64 / (TARGETS - 1) as f64;
            Some((optimum, (0..TARGETS).map(|index| pow(10.0, exponent(index))).collect()))
        }
        (None, Some(target)) => Some((target, vec![0.0])),
        (None, None) => None,
    }
}

/// The share of all replicas and targets that are reached after a number of evaluations, whose logarithm is x: the
/// empirical distribution of runtimes. `columns` are those of evaluations, of the best objective, of its
/// violation and of the evaluation that reached the target.
pub(super) fn runtimes(settings: &Settings, replicas: &[&Replica], columns: [usize; 4]) -> Value {
    let Some((above, targets)) = targets(settings) else { return Value::Null };
    let [evaluations, best, violation, reached] = columns;
    let maximised = settings.objectives()[0].0;
    let gap = |row: &[f64]| if maximised { above - row[best] } else { row[best] - above };
    let first = |replica: &Replica, target: f64| {
        // Of one target every search knows its evaluation.
        if targets.len() == 1 {
            return replica.history().last().map(|row| row[reached]).filter(|reached| *reached > 0.0);
        }
        let row = replica.history().iter().find(|row| row[violation] == 0.0 && gap(row) <= target);
        row.map(|row| row[evaluations])
    };
    let hits: Vec<f64> =
        replicas.iter().flat_map(|replica| targets.iter().filter_map(|target| first(replica, *target))).collect();
    // What is reached stays reached: the curve of replicas that have ended early goes on.
    let over = replicas.iter().all(|replica| replica.is_finished()).then_some(settings.evaluations as f64);
    let ends = replicas.iter().filter_map(|replica| replica.history().last()).map(|row| row[evaluations]);
    let end = ln(ends.chain(over).fold(1.0, f64::max)) / ln(10.0);
    let point = |index: usize| {
        let x = end * index as f64 / (RUNTIME_POINTS - 1) as f64;
        let count = hits.iter().filter(|evaluations| ln(**evaluations) / ln(10.0) <= x + 1e-12).count();
        let share = count as f64 / (targets.len() * replicas.len().max(1)) as f64;
        Point { x, mean: share, low: share, high: share }
    };
    json!(Series { name: String::new(), points: (0..RUNTIME_POINTS).map(point).collect() }.rounded())
}

/// The picture of these curves.
pub(super) fn runtimes_figure(arms: &[(&str, &Settings, &Value)]) -> Option<Figure> {
    let read = |json: &Value| Series::deserialize(json).ok();
    let named = |(name, _, json): &(&str, &Settings, &Value)| Some(Series { name: (*name).into(), ..read(json)? });
    let series: Vec<Series> = arms.iter().filter_map(named).collect();
    let known = arms.iter().any(|(_, settings, _)| targets(settings).is_some_and(|(_, targets)| targets.len() > 1));
    let what = if known { format!("{TARGETS} precisions from 100 to 1e-8") } else { "the target".into() };
    (!series.is_empty()).then(|| Figure {
        name: "runtimes".into(),
        title: format!("How soon {what} are reached").replace("the target are", "the target is"),
        x_label: "log10 of the evaluations".into(),
        y_label: "share of replicas and targets".into(),
        y_range: Some((0.0, 1.0)),
        drawn: Drawn::Lines,
        references: Vec::new(),
        series,
    })
}

/// The objectives of all candidates in the first fronts of all replicas: of two objectives a pair each.
pub(super) fn front(settings: &Settings, replicas: &[&Replica]) -> Value {
    if settings.leaves() != Leaves::Front || settings.objectives().len() < 2 {
        return Value::Null;
    }
    let points = replicas.iter().flat_map(|replica| replica.population()).map(|card| {
        let (written, _) = card.champion.write("");
        written["objectives"].as_object().map(|it| it.values().cloned().collect::<Vec<Value>>()).unwrap_or_default()
    });
    points.take(FRONT_MAX).collect::<Vec<Vec<Value>>>().into()
}

/// The fronts of all arms with two objectives.
pub(super) fn front_figure(arms: &[(&str, &Settings, &Value)]) -> Option<Figure> {
    let (_, settings, _) = arms.first()?;
    let objectives = settings.objectives();
    let [(_, x_label), (_, y_label)] = objectives.as_slice() else { return None };
    let series = arms.iter().filter_map(|(name, _, json)| {
        let point = |point: &Value| {
            let [x, y] = [point[0].as_f64()?, point[1].as_f64()?];
            Some(Point { x, mean: y, low: y, high: y })
        };
        let points = json.as_array()?.iter().filter_map(point).collect();
        Some(Series { name: (*name).into(), points })
    });
    let series: Vec<Series> = series.filter(|series| !series.points.is_empty()).collect();
    (!series.is_empty()).then(|| Figure {
        name: "front".into(),
        title: "The fronts of all replicas".into(),
        x_label: x_label.clone(),
        y_label: y_label.clone(),
        y_range: None,
        drawn: Drawn::Dots,
        references: Vec::new(),
        series,
    })
}

/// The archive of the first replica on a grid of two measures: column, row and objective of each elite.
pub(super) fn archive(settings: &Settings, replicas: &[&Replica]) -> Value {
    let (Some(axes), Some(replica)) = (axes(settings), replicas.first()) else { return Value::Null };
    let place = |measure: &Value, axis: Axis| Some(axis.cell(measure.as_f64()?));
    let cell = |written: &serde_json::Map<String, Value>| {
        let objective = written["objectives"].as_object()?.values().next()?.as_f64()?;
        let mut measures = written["measures"].as_object()?.values();
        Some(json!([place(measures.next()?, axes[0])?, place(measures.next()?, axes[1])?, objective]))
    };
    replica.population().iter().filter_map(|card| cell(&card.champion.write("").0)).collect::<Vec<Value>>().into()
}

/// The grid of an archive, if it has two measures and can be drawn.
fn axes(settings: &Settings) -> Option<[Axis; 2]> {
    let axes = settings.axes();
    let drawn = settings.leaves() == Leaves::Archive && settings.regions() == 0;
    let [one, two] = axes.as_slice() else { return None };
    (drawn && one.cells * two.cells <= CELLS_MAX).then_some([*one, *two])
}

/// The map of an arm's archive; `file` is a part of its file's name.
pub(super) fn archive_map(file: &str, name: &str, settings: &Settings, json: &Value) -> Option<Map> {
    let [x, y] = axes(settings)?;
    let (columns, rows) = (x.cells, y.cells);
    let cell = |cell: &Value| {
        let (column, row) = (cell[0].as_u64()? as usize, cell[1].as_u64()? as usize);
        (column < columns && row < rows).then_some((column, row, cell[2].as_f64()?))
    };
    let cells: Vec<_> = json.as_array()?.iter().filter_map(cell).collect();
    let (maximised, objective) = settings.objectives().into_iter().next()?;
    let count = cells.len();
    (count > 0).then(|| Map {
        name: format!("map-{file}"),
        title: format!("{name}: {count} of {} cells, replica 0", columns * rows),
        x_label: settings.measure_name(0),
        y_label: settings.measure_name(1),
        x: (x.low, x.high),
        y: (y.low, y.high),
        columns,
        rows,
        cells,
        value_label: objective,
        greater_is_better: maximised,
    })
}
