//! The curves of `evolve` over evaluations.

use std::collections::BTreeSet;

use evoxo_common::{
    experiment::{Replica, point},
    report::{self, Drawn, Figure, Point, Reference, Series},
    stats::quantile,
};

use super::{
    rows::{BEST, CONFIRMED, EVALUATIONS, HYPERVOLUME, VIOLATION, called, deciding},
    settings::{CurvesName, Settings},
};

/// The curves of an arm.
#[derive(Clone, Debug)]
pub(super) struct Curves {
    /// The column that ranks replicas: means and the middle 80 %.
    deciding: Series,
    /// The best candidates: means and the middle 80 %.
    means: Series,
    /// The best candidates: medians and quartiles.
    medians: Series,
}

impl Curves {
    pub(super) fn of(settings: &Settings, replicas: &[&Replica]) -> Self {
        Self {
            deciding: curve(replicas, deciding(settings), point),
            means: curve(replicas, BEST, point),
            medians: curve(replicas, BEST, quartiles),
        }
    }

    /// The means and the medians that a result keeps.
    pub(super) fn kept(self, settings: &Settings) -> (report::Curves, report::Curves) {
        let named = |column: usize, curve: Series| Series { name: name(column).into(), ..curve };
        let decides = (deciding(settings) != BEST).then(|| named(deciding(settings), self.deciding));
        let means = [named(BEST, self.means)].into_iter().chain(decides).collect();
        (report::Curves(means), report::Curves(vec![named(BEST, self.medians)]))
    }

    /// The curves that a result keeps of an arm. They have no points if the result lacks them.
    pub(super) fn read(arm: &str, settings: &Settings, means: &report::Curves, medians: &report::Curves) -> Self {
        let empty = || Series { name: arm.into(), points: Vec::new() };
        let curve = |curves: &report::Curves, column| curves.shown(name(column), arm).unwrap_or_else(empty);
        Self { deciding: curve(means, deciding(settings)), means: curve(means, BEST), medians: curve(medians, BEST) }
    }
}

/// The name of a column.
fn name(column: usize) -> &'static str {
    super::KIND.columns[column].name
}

/// The rows of the search itself, without the last row that reports its confirmed answer.
fn searched(replica: &Replica) -> &[Vec<f64>] {
    match replica.history() {
        [search @ .., last] if last[CONFIRMED] > 0.0 => search,
        history => history,
    }
}

/// Makes a point of a curve from the values of all replicas at an x.
type At = fn(f64, &[f64]) -> Point;

/// The median with the quartiles.
fn quartiles(x: f64, values: &[f64]) -> Point {
    let [low, mean, high] = [0.25, 0.5, 0.75].map(|p| quantile(values, p));
    Point { x, mean, low, high }
}

/// A column over the number of evaluations, as the searches saw it, from replicas that have a feasible candidate by then. All
/// replicas count at the same numbers of evaluations. A replica that ended early keeps its last value.
fn curve(replicas: &[&Replica], column: usize, at: At) -> Series {
    let rows = || replicas.iter().flat_map(|replica| searched(replica));
    let counts: BTreeSet<u64> = rows().map(|row| row[EVALUATIONS] as u64).collect();
    let mut next = vec![0; replicas.len()];
    let mut points = Vec::new();
    for count in counts {
        let mut values = Vec::new();
        for (replica, next) in replicas.iter().zip(&mut next) {
            let search = searched(replica);
            *next += search[*next..].iter().take_while(|row| row[EVALUATIONS] <= count as f64).count();
            let goes_on = *next < search.len()
                || replica.is_finished()
                || search.last().is_some_and(|row| row[EVALUATIONS] == count as f64);
            let row = next.checked_sub(1).map(|last| &search[last]).filter(|row| goes_on && row[VIOLATION] == 0.0);
            values.extend(row.map(|row| row[column]));
        }
        if !values.is_empty() {
            points.push(at(count as f64, &values));
        }
    }
    Series { name: String::new(), points }
}

/// The curves of the hypervolume, the QD score or the number of cells, for arms that are all ranked by it.
pub(super) fn deciding_figure(column: usize, arms: &[(&Settings, &Curves)], seen: &str) -> Figure {
    let what = called(column);
    let more = if column == HYPERVOLUME { " up to the reference point" } else { "" };
    Figure {
        name: what.replace(' ', "-"),
        title: format!("The {what}{more}{seen}, and the middle 80 % of replicas"),
        x_label: "evaluations".into(),
        y_label: what.into(),
        y_range: None,
        drawn: Drawn::Means,
        references: Vec::new(),
        series: arms
            .iter()
            .map(|(_, curves)| curves.deciding.clone())
            .filter(|curve| !curve.points.is_empty())
            .collect(),
    }
}

/// The curves of the best candidates, as the first arm's setting says. If it leaves the choice open, they are medians on a
/// logarithmic axis if values fall by powers of ten, because one bad replica would hide all others in a mean.
pub(super) fn best_figure(arms: &[(&Settings, &Curves)], title: &str, y_label: String) -> Figure {
    let told = |pick: fn(&Curves) -> &Series| arms.iter().map(|(_, it)| pick(it).clone()).collect::<Vec<Series>>();
    let (means, all_medians) = (told(|it| &it.means), told(|it| &it.medians));
    let asked = arms.first().map_or(CurvesName::Fitting, |(settings, _)| settings.curves);
    let (powers, drawn, series) = match asked {
        CurvesName::Fitting | CurvesName::Medians if falls_by_powers(&all_medians) => {
            (true, Drawn::Medians, all_medians)
        }
        CurvesName::Medians => (false, Drawn::PlainMedians, all_medians),
        CurvesName::Means if falls_by_powers(&means) => (true, Drawn::Powers, means),
        CurvesName::Means | CurvesName::Fitting => (false, Drawn::Means, means),
    };
    let middle = if matches!(drawn, Drawn::Medians | Drawn::PlainMedians) { "half" } else { "80 %" };
    // A logarithmic axis shows only positive numbers.
    let references = references(arms).into_iter().filter(|known| !powers || known.value > 0.0).collect();
    Figure {
        name: "best".into(),
        title: format!("{title}, and the middle {middle} of replicas"),
        x_label: "evaluations".into(),
        y_label,
        y_range: None,
        drawn,
        references,
        series: series.into_iter().filter(|series| !series.points.is_empty()).collect(),
    }
}

/// The target and the optimum, if they are known and the same for all arms.
fn references(arms: &[(&Settings, &Curves)]) -> Vec<Reference> {
    let of_all = |name: &str, value: fn(&Settings) -> Option<f64>| {
        let first = value(arms.first()?.0)?;
        arms.iter().all(|(settings, _)| value(settings) == Some(first)).then(|| Reference::new(name, first))
    };
    let target = of_all("target", Settings::target_number);
    let optimum = of_all("optimum", |settings| (settings.built_in()?.optimum)(settings.genome().genes()));
    let mut lines: Vec<Reference> = target.into_iter().chain(optimum).collect();
    // If the target is the optimum, one line is enough.
    lines.dedup_by_key(|known| known.value);
    lines
}

/// Whether the curves are positive and fall by powers of ten, as towards an optimum of 0. Then a logarithmic axis shows them
/// best.
fn falls_by_powers(series: &[Series]) -> bool {
    let least =
        |value: fn(&Point) -> f64| series.iter().flat_map(|it| &it.points).map(value).fold(f64::INFINITY, f64::min);
    let most = series.iter().flat_map(|it| &it.points).map(|point| point.high).fold(0.0, f64::max);
    least(|point| point.low) > 0.0 && most > 100.0 * least(|point| point.mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::parse;

    #[test]
    fn curves_are_means_or_medians() {
        let figure = |curves: &str, best: [f64; 2]| {
            let text = format!("experiment = \"evolve\"\n[settings]\ncurves = {curves:?}\n");
            let settings = Settings::of(&parse(&text).arms[0].settings);
            let series = |value: f64| Series {
                name: String::new(),
                points: (1..)
                    .zip(best)
                    .map(|(x, y)| Point { x: x.into(), mean: y * value, low: y, high: y * value })
                    .collect(),
            };
            let curves = Curves { deciding: series(3.0), means: series(3.0), medians: series(2.0) };
            let figure = best_figure(&[(&settings, &curves)], "f", "f".into());
            (figure.drawn, figure.series[0].points[0].mean / best[0])
        };
        let (powers, plain) = ([5.0, 0.01], [5.0, 4.0]);
        assert_eq!([figure("fitting", powers), figure("fitting", plain)], [(Drawn::Medians, 2.0), (Drawn::Means, 3.0)]);
        assert_eq!([figure("means", powers), figure("means", plain)], [(Drawn::Powers, 3.0), (Drawn::Means, 3.0)]);
        assert_eq!(
            [figure("medians", powers), figure("medians", plain)],
            [(Drawn::Medians, 2.0), (Drawn::PlainMedians, 2.0)]
        );
    }
}
