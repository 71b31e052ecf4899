//! A quadratic model of the objective, fitted to the last candidates of a run. One candidate of each generation is the model's
//! minimum, and the others are the best in the model of several times as many random ones.
//!
//! The model, its data and their weights: N. Hansen, "A Global Surrogate Assisted CMA-ES", GECCO 2019, section 3. There the model
//! replaces evaluations, which are then made one by one. Here all candidates of a generation are evaluated, at the same time.
//! Candidates are chosen before evaluation as in M. Emmerich, A. Giotis, M. Özdemir, T. Bäck and K. Giannakoglou, "Metamodel-Assisted
//! Evolution Strategies", PPSN VII, 2002.

use std::collections::VecDeque;

use super::{
    eigen,
    strategy::{Distribution, Sample, Strategy},
};

/// The most coordinates: a model of `n` has (n + 1)(n + 2) / 2 numbers, and fitting it takes time proportional to their cube.
pub(super) const GENES_MAX: usize = 40;
/// A model is fitted to at least this many points for each of its numbers, and to at most [`MOST`].
const LEAST: f64 = 1.1;
/// See [`LEAST`].
const MOST: usize = 2;
/// The weight of the best point of a fit; the worst has 1, and the others lie between them in the order of their values.
const WEIGHT: f64 = 20.0;
/// How many random candidates are drawn for each one that is evaluated.
const DRAWS: usize = 4;
/// A number of the model is 0 if its data hardly differ from those of the numbers before it.
const NEGLIGIBLE: f64 = 1e-10;

/// The last evaluated points of a run, and the model fitted to them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Model {
    /// Coordinates without their bend near the bounds, and objectives, oldest first.
    points: VecDeque<(Vec<f64>, f64)>,
    quadratic: Option<Quadratic>,
}

/// A quadratic function of normal coordinates, in which the distribution has mean 0 and variance 1, without its constant.
#[derive(Clone, Debug, PartialEq)]
struct Quadratic {
    gradient: Vec<f64>,
    /// The matrix of second derivatives, row by row.
    curvature: Vec<f64>,
    /// Where it is least, not too far from the mean and within the bounds.
    minimum: Option<Sample>,
}

/// The most points that are kept for this many coordinates.
pub(super) const fn points_max(n: usize) -> usize {
    MOST * (n + 1) * (n + 2) / 2
}

impl Model {
    /// The model of these points, which come oldest first.
    pub(super) fn of(points: impl IntoIterator<Item = (Vec<f64>, f64)>) -> Self {
        Self { points: points.into_iter().collect(), quadratic: None }
    }

    /// The points, oldest first.
    pub(super) fn points(&self) -> impl Iterator<Item = (&[f64], f64)> {
        self.points.iter().map(|(point, value)| (&point[..], *value))
    }

    /// Adds a point with its objective. Only finite numbers can be fitted.
    pub(super) fn add(&mut self, point: Vec<f64>, value: f64) {
        if value.is_finite() && point.iter().all(|place| place.is_finite()) {
            let most = points_max(point.len());
            self.points.push_back((point, value));
            let old = self.points.len().saturating_sub(most);
            self.points.drain(..old);
        }
    }

    /// Fits the model for a distribution. `bent` gives the point of the nearest candidate.
    pub(super) fn fit(&mut self, strategy: &Strategy, distribution: &Distribution, bent: impl Fn(&[f64]) -> Vec<f64>) {
        let n = strategy.n;
        let sizes = [(n + 1) * (n + 2) / 2, 2 * n + 1, n + 1];
        let has = self.points.len();
        self.quadratic = sizes.into_iter().find(|size| has as f64 >= LEAST * *size as f64).and_then(|size| {
            let newest = self.points.range(has.saturating_sub(MOST * size)..);
            let points = newest.map(|(point, value)| (strategy.normal_of(distribution, point), *value)).collect();
            let mut quadratic = Quadratic::fitted(points, size)?;
            // Candidates from elsewhere must not be farther away than this: N. Hansen, "Injecting External Solutions Into CMA-ES",
            // arXiv:1110.4181, 2011.
            let farthest = (n as f64).sqrt() + 2.0 * n as f64 / (n as f64 + 2.0);
            quadratic.minimum = quadratic.least_within(farthest).map(|normal| {
                let straight = distribution.point(&strategy.sample_of(distribution, normal).step);
                strategy.sample_of(distribution, strategy.normal_of(distribution, &bent(&straight)))
            });
            Some(quadratic)
        });
    }

    /// The candidates of a generation of this size, best in the model first; `draw` draws several candidates for each of these
    /// numbers. `None` if there is no model yet.
    pub(super) fn chosen(&self, size: usize, draw: impl Fn(usize, usize) -> Vec<Sample>) -> Option<Vec<Sample>> {
        let quadratic = self.quadratic.as_ref()?;
        let drawn = (0..size).flat_map(|index| draw(index, DRAWS));
        let mut drawn: Vec<(f64, Sample)> = drawn.map(|sample| (quadratic.value(&sample.normal), sample)).collect();
        drawn.sort_by(|one, two| one.0.total_cmp(&two.0));
        let best = drawn.into_iter().map(|(_, sample)| sample);
        Some(quadratic.minimum.iter().cloned().chain(best).take(size).collect())
    }
}

impl Quadratic {
    /// The function with this many numbers that fits these points and their values best: linear, with squares, or with all
    /// products. `None` if the values do not differ.
    fn fitted(mut points: Vec<(Vec<f64>, f64)>, size: usize) -> Option<Self> {
        points.sort_by(|one, two| one.1.total_cmp(&two.1));
        let (best, count, n) = (points[0].1, points.len(), points[0].0.len());
        let range = points[count - 1].1 - best;
        if !(range > 0.0 && range.is_finite()) {
            return None;
        }
        let weight = |rank: usize| (WEIGHT + (1.0 - WEIGHT) * rank as f64 / (count - 1) as f64).sqrt();
        let column = |of: &dyn Fn(&[f64]) -> f64| -> Vec<f64> {
            points.iter().enumerate().map(|(rank, (point, _))| weight(rank) * of(point)).collect()
        };
        let products: Vec<(usize, usize)> =
            (0..n).map(|i| (i, i)).chain((0..n).flat_map(|i| (0..i).map(move |j| (i, j)))).collect();
        let products = &products[..size - n - 1];
        let mut columns = vec![column(&|_| 1.0)];
        columns.extend((0..n).map(|i| column(&|point| point[i])));
        columns.extend(products.iter().map(|(i, j)| column(&|point| point[*i] * point[*j])));
        let values = points.iter().enumerate().map(|(rank, (_, value))| weight(rank) * ((value - best) / range));
        let numbers = least_squares(columns, values.collect());
        let mut curvature = vec![0.0; n * n];
        for ((i, j), number) in products.iter().zip(&numbers[n + 1..]) {
            // Of x^2 the second derivative is 2, of x y it is 1, twice in the matrix.
            curvature[i * n + j] += number;
            curvature[j * n + i] += number;
        }
        let finite = numbers.iter().all(|number| number.is_finite());
        finite.then(|| Self { gradient: numbers[1..=n].to_vec(), curvature, minimum: None })
    }

    /// The value at a point, apart from the constant.
    fn value(&self, point: &[f64]) -> f64 {
        let rows = self.curvature.chunks_exact(point.len()).zip(point);
        dot(&self.gradient, point) + 0.5 * rows.map(|(row, place)| place * dot(row, point)).sum::<f64>()
    }

    /// The point with the least value that is no farther from 0 than `radius`. `None` if it cannot be computed.
    ///
    /// J. J. Moré and D. C. Sorensen, "Computing a Trust Region Step", SIAM Journal on Scientific and Statistical Computing 4, 1983: along
    /// the eigenvectors the point is -g / (h + shift), and it comes nearer as the shift grows.
    fn least_within(&self, radius: f64) -> Option<Vec<f64>> {
        let n = self.gradient.len();
        let (curvatures, axes) = eigen::symmetric(&self.curvature, n)?;
        let slopes: Vec<f64> = axes.chunks_exact(n).map(|axis| dot(axis, &self.gradient)).collect();
        let at = |shift: f64| slopes.iter().zip(&curvatures).map(move |(slope, bend)| -slope / (bend + shift));
        let is_near = |shift: f64| at(shift).map(|place| place * place).sum::<f64>() <= radius * radius;
        let least = curvatures.iter().copied().fold(f64::INFINITY, f64::min);
        let (mut near, mut far) = (0.0, (-least).max(0.0));
        if !(least > 0.0 && is_near(0.0)) {
            near = far + dot(&slopes, &slopes).sqrt() / radius;
            for _ in 0..60 {
                let middle = f64::midpoint(near, far);
                *(if is_near(middle) { &mut near } else { &mut far }) = middle;
            }
        }
        let mut point = vec![0.0; n];
        for (along, axis) in at(near).zip(axes.chunks_exact(n)) {
            point.iter_mut().zip(axis).for_each(|(place, entry)| *place += along * entry);
        }
        point.iter().all(|place| place.is_finite()).then_some(point)
    }
}

/// The factors with which these columns add up to the target as nearly as possible, by modified Gram-Schmidt: Å. Björck, "Solving Linear
/// Least Squares Problems by Gram-Schmidt Orthogonalization", BIT 7, 1967.
fn least_squares(mut columns: Vec<Vec<f64>>, mut target: Vec<f64>) -> Vec<f64> {
    let subtract = |from: &mut [f64], factor: f64, column: &[f64]| {
        from.iter_mut().zip(column).for_each(|(entry, of)| *entry -= factor * of);
    };
    let count = columns.len();
    let sizes: Vec<f64> = columns.iter().map(|column| dot(column, column).sqrt()).collect();
    let mut upper = vec![vec![0.0; count]; count];
    let mut factors = vec![0.0; count];
    for own in 0..count {
        let (before, after) = columns.split_at_mut(own + 1);
        let column = &mut before[own];
        let length = dot(column, column).sqrt();
        if length <= NEGLIGIBLE * sizes[own] {
            continue;
        }
        column.iter_mut().for_each(|entry| *entry /= length);
        upper[own][own] = length;
        for (other, along) in after.iter_mut().zip(&mut upper[own][own + 1..]) {
            *along = dot(column, other);
            subtract(other, *along, column);
        }
        factors[own] = dot(column, &target);
        subtract(&mut target, factors[own], column);
    }
    for own in (0..count).rev() {
        let (factor, solved) = factors[own..].split_first_mut().expect("a column has a factor");
        let row = &upper[own][own..];
        *factor = if row[0] == 0.0 { 0.0 } else { (*factor - dot(&row[1..], solved)) / row[0] };
    }
    factors
}

/// The sum of products, as eight sums side by side.
fn dot(one: &[f64], two: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (eights, rest) = one.as_chunks::<8>();
    let (other_eights, other_rest) = two.as_chunks::<8>();
    for (eight, other) in eights.iter().zip(other_eights) {
        (0..8).for_each(|lane| sums[lane] += eight[lane] * other[lane]);
    }
    let rest: f64 = rest.iter().zip(other_rest).map(|(one, two)| one * two).sum();
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use evoxo_common::rng::{Stream, normal_pair, unit};
    use proptest::prelude::*;

    use super::*;

    /// Normal numbers, one point after another.
    fn points(seed: u64, count: usize, n: usize) -> Vec<Vec<f64>> {
        let mut rng = Stream::root(seed).rng();
        (0..count).map(|_| (0..n).map(|_| normal_pair(&mut rng)[0]).collect()).collect()
    }

    /// A quadratic function with random numbers.
    fn random(seed: u64, n: usize) -> Quadratic {
        let mut rng = Stream::root(seed).text("function").rng();
        let mut draw = || unit(&mut rng) - 0.5;
        let gradient = (0..n).map(|_| draw()).collect();
        let mut curvature = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let entry = draw();
                (curvature[i * n + j], curvature[j * n + i]) = (entry, entry);
            }
        }
        Quadratic { gradient, curvature, minimum: None }
    }

    proptest! {
        /// Twice as many points as numbers give the function itself, up to its scale.
        #[test]
        fn a_quadratic_function_is_found(seed: u64, n in 1..7_usize) {
            let (function, size) = (random(seed, n), (n + 1) * (n + 2) / 2);
            let valued = |point: Vec<f64>| { let value = function.value(&point); (point, 3.0 + value) };
            let told: Vec<(Vec<f64>, f64)> = points(seed, 2 * size, n).into_iter().map(valued).collect();
            let ends = told.iter().map(|(_, value)| *value).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
            let found = Quadratic::fitted(told, size).unwrap();
            let pairs = found.gradient.iter().zip(&function.gradient).chain(found.curvature.iter().zip(&function.curvature));
            for (found, own) in pairs {
                prop_assert!((found * (ends.1 - ends.0) - own).abs() < 1e-9, "{found} {own}");
            }
        }

        /// No point that is as near has a lower value.
        #[test]
        fn the_minimum_is_least(seed: u64, n in 1..7_usize, radius in 0.01..10.0_f64) {
            let function = random(seed, n);
            let length = |point: &[f64]| dot(point, point).sqrt();
            let found = function.least_within(radius).unwrap();
            prop_assert!(length(&found) <= radius * 1.000_001);
            for other in points(seed, 50, n) {
                let factor = radius / length(&other);
                let other: Vec<f64> = other.iter().map(|place| place * factor).collect();
                let nearby: Vec<f64> = found.iter().zip(&other).map(|(one, two)| one + 0.001 * (two - one)).collect();
                for point in [other, nearby] {
                    let slack = 1e-7 * (1.0 + radius * radius);
                    prop_assert!(function.value(&found) <= function.value(&point) + slack, "{found:?} {point:?}");
                }
            }
        }
    }

    /// Without a slope in the direction of a maximum, every direction is as good: none is computed.
    #[test]
    fn what_has_no_minimum_has_none() {
        let flat = Quadratic { gradient: vec![0.0; 2], curvature: vec![0.0; 4], minimum: None };
        assert_eq!(flat.least_within(1.0), None);
        assert_eq!(Quadratic::fitted(vec![(vec![1.0], 2.0), (vec![2.0], 2.0)], 2), None, "equal values");
        let wide = vec![(vec![1.0], f64::MAX), (vec![2.0], f64::MIN)];
        assert_eq!(Quadratic::fitted(wide, 2), None, "their difference is no number");
    }

    /// A column that others add up to has the factor 0.
    #[test]
    fn dependent_columns_do_not_matter() {
        let columns = vec![vec![1.0, 1.0, 1.0], vec![0.0, 1.0, 2.0], vec![2.0, 3.0, 4.0], vec![0.0; 3]];
        let factors = least_squares(columns, vec![5.0, 8.0, 11.0]);
        assert!((factors[0] - 5.0).abs() < 1e-12 && (factors[1] - 3.0).abs() < 1e-12, "{factors:?}");
        assert_eq!(factors[2..], [0.0, 0.0]);
    }
}
