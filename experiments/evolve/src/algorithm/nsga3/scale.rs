//! The scale of each objective, from the ideal point and the extreme points of the first front (Deb and Jain 2014, section
//! IV.C). No number here has a unit, so the search does not depend on the units of the objectives.

/// In the search for an extreme point, how much worse it is to be off an axis than far away along it.
const OFF_AXIS: f64 = 1e6;
/// A point is on an axis if its other objectives are less than this share of their ranges.
const ON_AXIS: f64 = 1e-3;
/// The least intercept with an axis, as a share of the front's range, and the least pivot of the equations that give it. What
/// is less comes from extreme points that are hardly a plane.
const LEAST: f64 = 1e-6;
/// Ranges below this share of an objective's size are rounding.
const ROUNDING: f64 = 1e-12;

/// The ideal point and the extreme points. Both are empty before the first front, and neither is ever lost.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Scale {
    /// The least value of each objective.
    pub(super) ideal: Vec<f64>,
    /// For each objective, the point that is nearest to its axis.
    pub(super) extremes: Vec<Vec<f64>>,
}

impl Scale {
    /// Learns from a first front, without points that have infinite numbers.
    pub(super) fn follow(&mut self, front: &[&[f64]]) {
        let Some(first) = front.first() else { return };
        if self.ideal.is_empty() {
            self.ideal = first.to_vec();
        }
        front.iter().for_each(|point| lower(&mut self.ideal, point));
        let ranges = self.ranges(&worst(front));
        let known: Vec<&[f64]> = self.extremes.iter().map(Vec::as_slice).chain(front.iter().copied()).collect();
        let extreme = |axis: usize| {
            let distance = |point: &[f64]| {
                let parts = self.shares(point, &ranges).into_iter().enumerate();
                let cost = |(objective, share): (usize, f64)| match objective == axis {
                    true => share,
                    false if share < ON_AXIS => 0.0,
                    false => OFF_AXIS * share,
                };
                parts.map(cost).fold(0.0, f64::max)
            };
            let distances: Vec<f64> = known.iter().map(|point| distance(point)).collect();
            let nearest =
                (1..known.len()).fold(0, |best, place| if distances[place] < distances[best] { place } else { best });
            known[nearest].to_vec()
        };
        self.extremes = (0..first.len()).map(extreme).collect();
    }

    /// The range of each objective: from the ideal point to where the plane through the extreme points meets the axis, or to the
    /// worst value of the first front if these points make no plane. An objective that hardly differs there has the range of
    /// all points, or 1.
    pub(super) fn widths(&self, front: &[&[f64]], all: &[&[f64]]) -> Vec<f64> {
        let ranges = self.ranges(&worst(front));
        let ends = self.intercepts(&ranges).map(|shares| {
            // The plane may meet an axis far beyond every point.
            let limits =
                self.ranges(&worst(&[all, &self.extremes.iter().map(Vec::as_slice).collect::<Vec<_>>()].concat()));
            shares.iter().zip(&ranges).zip(limits).map(|((share, range), limit)| (share * range).min(limit)).collect()
        });
        let wider = self.ranges(&worst(all));
        let width = |(one, other): (f64, f64)| [one, other].into_iter().find(|range| *range > 0.0).unwrap_or(1.0);
        ends.unwrap_or(ranges).into_iter().zip(wider).map(width).collect()
    }

    /// A point with each objective as a share of its width, counted from the ideal point.
    pub(super) fn shares(&self, point: &[f64], widths: &[f64]) -> Vec<f64> {
        let share =
            |(value, (ideal, width)): (&f64, (&f64, &f64))| if *width > 0.0 { (value - ideal) / width } else { 0.0 };
        point.iter().zip(self.ideal.iter().zip(widths)).map(share).collect()
    }

    /// How far these values are from the ideal point; 0 if that is only rounding.
    fn ranges(&self, values: &[f64]) -> Vec<f64> {
        let range = |(value, ideal): (&f64, &f64)| {
            let range = value - ideal;
            if range > ROUNDING * value.abs().max(ideal.abs()) { range.min(f64::MAX) } else { 0.0 }
        };
        values.iter().zip(&self.ideal).map(range).collect()
    }

    /// Where the plane through the extreme points meets each axis, as a share of these ranges.
    fn intercepts(&self, ranges: &[f64]) -> Option<Vec<f64>> {
        let rows = self.extremes.iter().map(|point| self.shares(point, ranges)).collect();
        let plane = solved(rows, vec![1.0; ranges.len()])?;
        let shares: Vec<f64> = plane.iter().map(|number| 1.0 / number).collect();
        shares.iter().all(|share| share.is_finite() && *share > LEAST).then_some(shares)
    }
}

/// Lowers each number to that of the point, if that is less.
fn lower(least: &mut [f64], point: &[f64]) {
    least.iter_mut().zip(point).for_each(|(least, value)| *least = least.min(*value));
}

/// The greatest value of each objective.
fn worst(points: &[&[f64]]) -> Vec<f64> {
    let mut points = points.iter();
    let mut worst = points.next().map_or(Vec::new(), |point| point.to_vec());
    points.for_each(|point| worst.iter_mut().zip(*point).for_each(|(worst, value)| *worst = worst.max(*value)));
    worst
}

/// Solves rows x = b by Gaussian elimination with pivots. `None` if the rows hardly determine x.
fn solved(mut rows: Vec<Vec<f64>>, mut b: Vec<f64>) -> Option<Vec<f64>> {
    let size = b.len();
    for column in 0..size {
        let greater =
            |best: usize, row: usize| if rows[row][column].abs() > rows[best][column].abs() { row } else { best };
        let pivot = (column + 1..size).fold(column, greater);
        rows.swap(column, pivot);
        b.swap(column, pivot);
        let (above, below) = rows.split_at_mut(column + 1);
        let (top, value) = (&above[column], b[column]);
        // Also false for what is not a number.
        let is_pivot = top[column].abs() > LEAST;
        if !is_pivot {
            return None;
        }
        for (row, b) in below.iter_mut().zip(&mut b[column + 1..]) {
            let factor = row[column] / top[column];
            row[column..].iter_mut().zip(&top[column..]).for_each(|(number, above)| *number -= factor * above);
            *b -= factor * value;
        }
    }
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|column| rows[row][column] * b[column]).sum();
        b[row] = (b[row] - known) / rows[row][row];
    }
    Some(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(points: &[[f64; 3]]) -> (Scale, Vec<f64>) {
        let mut scale = Scale::default();
        let points: Vec<&[f64]> = points.iter().map(|point| &point[..]).collect();
        scale.follow(&points);
        let widths = scale.widths(&points, &points);
        (scale, widths)
    }

    /// A plane with intercepts 2, 4 and 8 beyond the ideal point, whose extremes are not exactly at the axes.
    #[test]
    fn a_known_front_has_its_intercepts() {
        let on_plane = |x: f64, y: f64| [1.0 + x, 2.0 + y, 3.0 + 8.0 * (1.0 - x / 2.0 - y / 4.0)];
        let points =
            [on_plane(2.0, 0.0), on_plane(0.0, 4.0), on_plane(0.0, 0.0), on_plane(0.5, 0.5), on_plane(1.9, 0.1)];
        let (scale, widths) = scale(&points);
        assert_eq!(scale.ideal, [1.0, 2.0, 3.0]);
        assert_eq!(scale.extremes, [points[0], points[1], points[2]]);
        assert!(widths.iter().zip([2.0, 4.0, 8.0]).all(|(one, other)| (one - other).abs() < 1e-9), "{widths:?}");
    }

    #[test]
    fn an_extreme_point_is_never_lost() {
        let mut scale = Scale::default();
        let first: [[f64; 2]; 2] = [[0.0, 1.0], [1.0, 0.0]];
        scale.follow(&[&first[0], &first[1]]);
        let next: [f64; 2] = [0.5, 0.4];
        scale.follow(&[&next]);
        assert_eq!((&scale.ideal[..], &scale.extremes[..]), (&[0.0, 0.0][..], &[vec![1.0, 0.0], vec![0.0, 1.0]][..]));
        assert_eq!(scale.widths(&[&next], &[&next]), [1.0, 1.0]);
    }

    #[test]
    fn degenerate_fronts_have_ranges_too() {
        // The third objective is the same for all; two points are not a plane.
        let (_, widths) = scale(&[[0.0, 3.0, 7.0], [2.0, 0.0, 7.0]]);
        assert_eq!(widths, [2.0, 3.0, 1.0]);
        // All points are the same.
        assert_eq!(scale(&[[5.0, 5.0, 5.0]; 3]).1, [1.0; 3]);
        // Objectives that differ only by rounding.
        assert_eq!(scale(&[[1.0 + f64::EPSILON, 0.0, 1.0], [1.0, 1.0, 0.0]]).1, [1.0; 3]);
        // The first front is one point, and the others are behind it.
        let (front, all): ([f64; 2], [f64; 2]) = ([1.0, 1.0], [3.0, 1.5]);
        let mut one = Scale::default();
        one.follow(&[&front]);
        assert_eq!(one.widths(&[&front], &[&front, &all]), [2.0, 0.5]);
        // Nothing to learn from.
        let mut none = Scale::default();
        none.follow(&[]);
        assert_eq!(none, Scale::default());
        // The widest range that there is.
        assert!(scale(&[[-f64::MAX, f64::MAX, 0.0], [f64::MAX, -f64::MAX, 0.0]]).1.iter().all(|it| it.is_finite()));
    }

    #[test]
    fn equations_are_solved_with_pivots() {
        let rows = vec![vec![0.0, 2.0, 1.0], vec![1.0, -2.0, -3.0], vec![-1.0, 1.0, 2.0]];
        let found = solved(rows, vec![-8.0, 0.0, 3.0]).unwrap();
        assert!(found.iter().zip([-4.0, -5.0, 2.0]).all(|(one, other)| (one - other).abs() < 1e-12), "{found:?}");
        assert_eq!(solved(vec![vec![1.0, 2.0], vec![2.0, 4.0]], vec![1.0, 1.0]), None);
        assert_eq!(solved(vec![vec![f64::NAN, 2.0], vec![2.0, 4.0]], vec![1.0, 1.0]), None);
    }
}
