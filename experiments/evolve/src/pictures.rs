//! The figures of `evolve` besides its curves: how soon targets are reached, fronts of two objectives, and archives as maps.
//!
//! The data of a figure is first written into the result, so a report can be made from the result alone.

use evoxo_common::{
    experiment::Replica,
    math::{ln, order},
    report::{Drawn, Figure, Map, Point, Series},
};
use serde_json::Value;

use super::{
    algorithm::{Axis, Leaves},
    evaluation::Evaluation,
    known_front::{igd_plus, known_front},
    settings::Settings,
    targets::{TARGETS, Targets},
};

/// The number of points in a curve of runtimes.
const RUNTIME_POINTS: usize = 120;
/// The most points of a front that a result keeps for an arm, and the most cells of a map.
const FRONT_MAX: usize = 5000;
const CELLS_MAX: usize = 10_000;

/// The share of all pairs of a replica and a target that are reached within a number of evaluations, whose logarithm is x:
/// the empirical distribution of runtimes. `columns` are those of the evaluations, the best objective, its violation, and the
/// evaluation that reached the target.
pub(super) fn runtimes(settings: &Settings, replicas: &[&Replica], columns: [usize; 4]) -> Option<Series> {
    let targets = Targets::of(settings)?;
    let [evaluations, best, violation, reached] = columns;
    let first = |replica: &Replica, target: usize| {
        // If there is only one target, each search has recorded the evaluation that reached it.
        if targets.count() == 1 {
            return replica.history().last().map(|row| row[reached]).filter(|reached| *reached > 0.0);
        }
        let row = replica.history().iter().find(|row| row[violation] == 0.0 && targets.reached(row[best]) > target);
        row.map(|row| row[evaluations])
    };
    let hits: Vec<f64> =
        replicas.iter().flat_map(|replica| (0..targets.count()).filter_map(|target| first(replica, target))).collect();
    // A target stays reached, so the curves of replicas that ended early continue to the end.
    let over = replicas.iter().all(|replica| replica.is_finished()).then_some(settings.evaluations as f64);
    let ends = replicas.iter().filter_map(|replica| replica.history().last()).map(|row| row[evaluations]);
    let end = ln(ends.chain(over).fold(1.0, f64::max)) / ln(10.0);
    let point = |index: usize| {
        let x = end * index as f64 / (RUNTIME_POINTS - 1) as f64;
        let count = hits.iter().filter(|evaluations| ln(**evaluations) / ln(10.0) <= x + 1e-12).count();
        let share = count as f64 / (targets.count() * replicas.len().max(1)) as f64;
        Point { x, mean: share, low: share, high: share }
    };
    Some(Series { name: String::new(), points: (0..RUNTIME_POINTS).map(point).collect() }.rounded())
}

/// An arm's curve from the result, with the arm's name.
pub(super) fn runtimes_figure(arms: Vec<(&Settings, Series)>) -> Option<Figure> {
    let known = arms.iter().any(|(settings, _)| Targets::of(settings).is_some_and(|targets| targets.count() > 1));
    let series: Vec<Series> = arms.into_iter().map(|(_, curve)| curve).collect();
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

/// The objectives of the candidates in a replica's first front, with the problem's own signs.
fn objectives(replica: &Replica) -> Vec<Vec<f64>> {
    let points = replica.population().into_iter().map(|card| {
        let (written, _) = card.champion.write("");
        let values = written["objectives"].as_object().into_iter().flat_map(|it| it.values().filter_map(Value::as_f64));
        values.collect()
    });
    points.collect()
}

/// What a result keeps of the fronts of an arm's replicas, if it has several objectives.
#[derive(Default)]
pub(super) struct Fronts {
    /// The objectives of the candidates in all fronts, in the form that the problem gives them.
    pub(super) front: Option<Vec<Vec<f64>>>,
    /// With two objectives: what half of the fronts attain.
    pub(super) attainment: Option<Series>,
    /// The distance of each front from the best front, if that is known.
    pub(super) igd_plus: Option<Vec<f64>>,
}

impl Fronts {
    pub(super) fn of(settings: &Settings, replicas: &[&Replica]) -> Self {
        if settings.leaves() != Leaves::Front || settings.objectives().len() < 2 {
            return Self::default();
        }
        let fronts: Vec<Vec<Vec<f64>>> = replicas.iter().map(|replica| objectives(replica)).collect();
        let signs: Vec<f64> =
            settings.objectives().iter().map(|(maximised, _)| if *maximised { -1.0 } else { 1.0 }).collect();
        let igd_plus = known_front(settings).map(|known| {
            let turned = |point: &Vec<f64>| Evaluation {
                objectives: point.iter().zip(&signs).map(|(value, sign)| value * sign).collect(),
                ..Evaluation::default()
            };
            let distance = |front: &Vec<Vec<f64>>| {
                let front: Vec<Evaluation> = front.iter().map(turned).collect();
                igd_plus(&front.iter().collect::<Vec<_>>(), &known)
            };
            fronts.iter().filter_map(distance).collect()
        });
        let attainment = if let [x, y] = signs.as_slice() { Some(attainment(&fronts, [*x, *y])) } else { None };
        Self { front: Some(fronts.into_iter().flatten().take(FRONT_MAX).collect()), attainment, igd_plus }
    }
}

/// The border, as stairs, of the region that at least half of the fronts of two objectives dominate: the median attainment
/// surface (C. M. Fonseca and P. J. Fleming, "On the Performance Assessment and Comparison of Stochastic Multiobjective
/// Optimizers", PPSN IV, 1996). `signs` are -1 for objectives to be maximised.
fn attainment(fronts: &[Vec<Vec<f64>>], signs: [f64; 2]) -> Series {
    let turned = |front: &Vec<Vec<f64>>| -> Vec<[f64; 2]> {
        front.iter().filter(|point| point.len() == 2).map(|point| [point[0] * signs[0], point[1] * signs[1]]).collect()
    };
    let fronts: Vec<Vec<[f64; 2]>> = fronts.iter().map(turned).collect();
    let mut at: Vec<f64> = fronts.iter().flatten().map(|point| point[0]).collect();
    at.sort_by(|one, two| order(*one, *two));
    at.dedup();
    let mut points: Vec<Point> = Vec::new();
    let mut last: Option<f64> = None;
    for x in at {
        let best = |front: &Vec<[f64; 2]>| {
            front.iter().filter(|point| point[0] <= x).map(|point| point[1]).fold(f64::INFINITY, f64::min)
        };
        let mut bests: Vec<f64> = fronts.iter().map(best).collect();
        bests.sort_by(|one, two| order(*one, *two));
        let median = bests[bests.len().div_ceil(2) - 1];
        if median.is_finite() && last.is_none_or(|last| median < last) {
            // A step begins at the previous height of the border.
            let point = |y: f64| Point { x: x * signs[0], mean: y * signs[1], low: y * signs[1], high: y * signs[1] };
            points.extend(last.map(point));
            points.push(point(median));
            last = Some(median);
        }
    }
    if signs[0] < 0.0 {
        points.reverse();
    }
    Series { name: String::new(), points }
}

/// The median attainment surfaces of all arms with two objectives.
pub(super) fn attainment_figure(settings: &Settings, arms: Vec<(&Settings, Series)>) -> Option<Figure> {
    let objectives = settings.objectives();
    let [(_, x_label), (_, y_label)] = objectives.as_slice() else { return None };
    let series: Vec<Series> = arms.into_iter().map(|(_, curve)| curve).filter(|it| !it.points.is_empty()).collect();
    (!series.is_empty()).then(|| Figure {
        name: "attainment".into(),
        title: "What half of the replicas attain: the border of what their fronts dominate".into(),
        x_label: x_label.clone(),
        y_label: y_label.clone(),
        y_range: None,
        drawn: Drawn::Lines,
        references: Vec::new(),
        series,
    })
}

/// The fronts of all arms with two objectives.
pub(super) fn front_figure(settings: &Settings, arms: &[(&str, &[Vec<f64>])]) -> Option<Figure> {
    let objectives = settings.objectives();
    let [(_, x_label), (_, y_label)] = objectives.as_slice() else { return None };
    let series = arms.iter().map(|(name, front)| {
        let point = |point: &Vec<f64>| match point[..] {
            [x, y] => Some(Point { x, mean: y, low: y, high: y }),
            _ => None,
        };
        Series { name: (*name).into(), points: front.iter().filter_map(point).collect() }
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

/// An elite of an archive on a grid of two measures: its column, its row, and its objective.
pub(super) type Cell = (usize, usize, f64);

/// The archive of the first replica, if it can be drawn.
pub(super) fn archive(settings: &Settings, replicas: &[&Replica]) -> Option<Vec<Cell>> {
    let (axes, replica) = (axes(settings)?, replicas.first()?);
    let place = |measure: &Value, axis: Axis| Some(axis.cell(measure.as_f64()?));
    let cell = |written: &serde_json::Map<String, Value>| {
        let objective = written["objectives"].as_object()?.values().next()?.as_f64()?;
        let mut measures = written["measures"].as_object()?.values();
        Some((place(measures.next()?, axes[0])?, place(measures.next()?, axes[1])?, objective))
    };
    Some(replica.population().iter().filter_map(|card| cell(&card.champion.write("").0)).collect())
}

/// The axes of an archive, if it is a grid of two measures and small enough to be drawn.
fn axes(settings: &Settings) -> Option<[Axis; 2]> {
    let axes = settings.axes();
    let drawn = settings.leaves() == Leaves::Archive && settings.regions() == 0;
    let [one, two] = axes.as_slice() else { return None };
    (drawn && one.cells * two.cells <= CELLS_MAX).then_some([*one, *two])
}

/// The map of an arm's archive. `file` becomes a part of its file name.
pub(super) fn archive_map(file: &str, name: &str, settings: &Settings, cells: &[Cell]) -> Option<Map> {
    let [x, y] = axes(settings)?;
    let (columns, rows) = (x.cells, y.cells);
    let cells: Vec<Cell> = cells.iter().copied().filter(|(column, row, _)| *column < columns && *row < rows).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn stairs(fronts: &[&[[f64; 2]]], signs: [f64; 2]) -> Vec<(f64, f64)> {
        let fronts: Vec<Vec<Vec<f64>>> =
            fronts.iter().map(|front| front.iter().map(|point| point.to_vec()).collect()).collect();
        attainment(&fronts, signs).points.iter().map(|point| (point.x, point.mean)).collect()
    }

    #[test]
    fn half_of_the_fronts_attain_the_median_surface() {
        let (low, high): (&[[f64; 2]], &[[f64; 2]]) = (&[[0.0, 2.0], [1.0, 0.0]], &[[0.0, 4.0], [3.0, 1.0]]);
        assert_eq!(stairs(&[low], [1.0, 1.0]), [(0.0, 2.0), (1.0, 2.0), (1.0, 0.0)]);
        // Of two fronts, half is the better one; of three, the middle one counts at each point.
        assert_eq!(stairs(&[high, low], [1.0, 1.0]), stairs(&[low], [1.0, 1.0]));
        let middle: &[[f64; 2]] = &[[0.5, 3.0]];
        assert_eq!(
            stairs(&[high, low, middle], [1.0, 1.0]),
            [(0.0, 4.0), (0.5, 4.0), (0.5, 3.0), (3.0, 3.0), (3.0, 1.0)]
        );
        // Objectives to be maximised are mirrored, and their curve still runs from left to right.
        assert_eq!(stairs(&[&[[-0.0, 2.0], [-1.0, 0.0]]], [-1.0, 1.0]), [(-1.0, 0.0), (-1.0, 2.0), (0.0, 2.0)]);
        assert_eq!(stairs(&[low, &[], &[]], [1.0, 1.0]), []);
    }
}
