//! A quadratic model of the objective, fitted to the last candidates of a run. One candidate of each generation is the model's
//! minimum, and the others are the best in the model of several times as many random ones.
//!
//! The model, its data and their weights: N. Hansen, "A Global Surrogate Assisted CMA-ES", GECCO 2019, as in pycma 4.5. There the model
//! replaces evaluations, which are then made one by one. Here all candidates of a generation are evaluated, at the same time.
//! Candidates are chosen before evaluation as in M. Emmerich, A. Giotis, M. Özdemir, T. Bäck and K. Giannakoglou, "Metamodel-Assisted
//! Evolution Strategies", PPSN VII, 2002.

use std::{collections::VecDeque, sync::OnceLock};

use super::{
    super::coordinates::Coordinates,
    eigen,
    strategy::{Distribution, Sample, Strategy},
};

/// The most coordinates: a model of `n` has (n + 1)(n + 2) / 2 numbers, and fitting it takes time proportional to the cube of that.
pub(super) const GENES_MAX: usize = 40;
/// The largest population: four times as many candidates are drawn.
pub(super) const POPULATION_MAX: usize = 1000;
/// A model is fitted to at least this many points for each of its numbers, and to at most [`MOST`].
const LEAST: f64 = 1.1;
/// See [`LEAST`].
const MOST: usize = 2;
/// The share of these points that is used, the best ones: a penalty that some candidates get must not hide the others' differences.
const USED: f64 = 0.75;
/// The weight of the best point's squared error; the worst has 1, and the others lie between them in the order of their values.
/// pycma has the square, with which a model follows the best points more closely and sees less of a wide valley.
const WEIGHT: f64 = 20.0;
/// How many random candidates are drawn for each one that is evaluated.
const DRAWS: usize = 4;
/// A number of the model is 0 if its data hardly differ from those of the numbers before it.
const NEGLIGIBLE: f64 = 1e-10;
/// The largest number of a model: sums of its products must be numbers, because those that are none have no order.
const NUMBER_MAX: f64 = 1e100;

/// The last evaluated points of a run, and what a model of them chooses.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    /// Coordinates without their bend near the bounds, and objectives, oldest first.
    points: VecDeque<(Vec<f64>, f64)>,
    /// The next generation, as soon as somebody has asked for it; `None` if there is no model of these points.
    chosen: OnceLock<Option<Vec<Sample>>>,
}

/// A quadratic function without its constant.
#[derive(Clone, Debug, PartialEq)]
struct Quadratic {
    gradient: Vec<f64>,
    /// The matrix of second derivatives, row by row.
    curvature: Vec<f64>,
}

/// The most points that are kept for this many coordinates.
pub(super) const fn points_max(n: usize) -> usize {
    MOST * (n + 1) * (n + 2) / 2
}

impl Model {
    /// The model of these points, which come oldest first.
    pub(super) fn of(points: impl IntoIterator<Item = (Vec<f64>, f64)>) -> Self {
        Self { points: points.into_iter().collect(), chosen: OnceLock::new() }
    }

    /// The points, oldest first.
    pub(super) fn points(&self) -> impl Iterator<Item = (&[f64], f64)> {
        self.points.iter().map(|(point, value)| (&point[..], *value))
    }

    /// Takes the points of a generation with their objectives. Only finite numbers can be fitted.
    pub(super) fn tell(&mut self, coordinates: &Coordinates, points: impl Iterator<Item = (Vec<f64>, f64)>) {
        let points = points.map(|(point, value)| (straight(coordinates, &point), value));
        self.points
            .extend(points.filter(|(point, value)| value.is_finite() && point.iter().all(|place| place.is_finite())));
        let old = self.points.len().saturating_sub(points_max(coordinates.count()));
        self.points.drain(..old);
        self.chosen = OnceLock::new();
    }

    /// The candidates of the next generation: the model's minimum, and then the best in the model of what `draw` draws, several
    /// candidates for each number. `None` if there is no model: too few points, or all with the same value.
    pub(super) fn chosen(
        &self,
        (strategy, distribution): (&Strategy, &Distribution),
        coordinates: &Coordinates,
        draw: impl Fn(usize, usize) -> Vec<Sample>,
    ) -> Option<&[Sample]> {
        let choose = || {
            // The model's coordinates are normal, with variance 1 in the distribution, and begin at the mean.
            let normal = |straight: &[f64]| strategy.normal_of(distribution, straight);
            let middle = normal(&straight(coordinates, &distribution.mean));
            let quadratic = self.fit(strategy.n, |point| minus(normal(point), &middle))?;
            let farthest = farthest(strategy.n);
            let minimum = quadratic.least_within(farthest).map(|least| {
                let least = least.iter().zip(&middle).map(|(least, middle)| least + middle).collect();
                let place = distribution.point(&strategy.sample_of(distribution, least).step);
                let mut normal = strategy.normal_of(distribution, &coordinates.bent(&place));
                let factor = (farthest / dot(&normal, &normal).sqrt()).min(1.0);
                normal.iter_mut().for_each(|place| *place *= factor);
                strategy.sample_of(distribution, normal)
            });
            let value = |sample: &Sample| {
                let place = normal(&straight(coordinates, &distribution.point(&sample.step)));
                quadratic.value(&minus(place, &middle))
            };
            // What is no number comes last, whatever its sign.
            let order = |sample: &Sample| Some(value(sample)).filter(|value| !value.is_nan()).unwrap_or(f64::INFINITY);
            let drawn = (0..strategy.lambda).flat_map(|index| draw(index, DRAWS));
            let mut drawn: Vec<(f64, Sample)> = drawn.map(|sample| (order(&sample), sample)).collect();
            drawn.sort_by(|one, two| one.0.total_cmp(&two.0));
            let best = drawn.into_iter().map(|(_, sample)| sample);
            Some(minimum.into_iter().chain(best).take(strategy.lambda).collect())
        };
        self.chosen.get_or_init(choose).as_deref()
    }

    /// The largest model of `n` coordinates for which there are enough points, in the coordinates that `place` gives.
    fn fit(&self, n: usize, place: impl Fn(&[f64]) -> Vec<f64>) -> Option<Quadratic> {
        let has = self.points.len();
        let sizes = [(n + 1) * (n + 2) / 2, 2 * n + 1, n + 1];
        let size = sizes.into_iter().find(|size| has as f64 >= LEAST * *size as f64)?;
        let newest = self.points.range(has.saturating_sub(MOST * size)..);
        Quadratic::fitted(newest.map(|(point, value)| (place(point), *value)).collect(), size)
    }
}

/// How far from the mean a candidate from elsewhere may be, in normal coordinates: N. Hansen, "Injecting External Solutions Into
/// CMA-ES", arXiv:1110.4181, 2011.
fn farthest(n: usize) -> f64 {
    (n as f64).sqrt() + 2.0 * n as f64 / (n as f64 + 2.0)
}

/// The coordinates of the candidate at a point, without their bend near the bounds.
fn straight(coordinates: &Coordinates, point: &[f64]) -> Vec<f64> {
    coordinates.straight(&coordinates.candidate(point))
}

impl Quadratic {
    /// The function with this many numbers that fits these points and their values best: linear, with squares, or with all
    /// products. `None` if the values do not differ.
    fn fitted(mut points: Vec<(Vec<f64>, f64)>, size: usize) -> Option<Self> {
        points.sort_by(|one, two| one.1.total_cmp(&two.1));
        points.truncate(((USED * points.len() as f64) as usize).max(size + 2));
        let (best, count, n) = (points[0].1, points.len(), points[0].0.len());
        let range = points[count - 1].1 - best;
        if !(range > 0.0 && range.is_finite()) {
            return None;
        }
        let weight = |rank: usize| (WEIGHT + (1.0 - WEIGHT) * rank as f64 / (count - 1) as f64).sqrt();
        let weights: Vec<f64> = (0..count).map(weight).collect();
        let column = |of: &dyn Fn(&[f64]) -> f64| -> Vec<f64> {
            points.iter().zip(&weights).map(|((point, _), weight)| weight * of(point)).collect()
        };
        let products: Vec<(usize, usize)> =
            (0..n).map(|i| (i, i)).chain((0..n).flat_map(|i| (0..i).map(move |j| (i, j)))).collect();
        let products = &products[..size - n - 1];
        let mut columns = vec![column(&|_| 1.0)];
        columns.extend((0..n).map(|i| column(&|point| point[i])));
        columns.extend(products.iter().map(|(i, j)| column(&|point| point[*i] * point[*j])));
        let values = points.iter().zip(&weights).map(|((_, value), weight)| weight * ((value - best) / range));
        let numbers = least_squares(columns, values.collect());
        let mut curvature = vec![0.0; n * n];
        for ((i, j), number) in products.iter().zip(&numbers[n + 1..]) {
            // Of x^2 the second derivative is 2, of x y it is 1, twice in the matrix.
            curvature[i * n + j] += number;
            curvature[j * n + i] += number;
        }
        let sensible = numbers.iter().chain(&curvature).all(|number| number.abs() < NUMBER_MAX);
        sensible.then(|| Self { gradient: numbers[1..=n].to_vec(), curvature })
    }

    /// The value at a point, apart from the constant.
    fn value(&self, point: &[f64]) -> f64 {
        let rows = self.curvature.chunks_exact(point.len()).zip(point);
        dot(&self.gradient, point) + 0.5 * rows.map(|(row, place)| place * dot(row, point)).sum::<f64>()
    }

    /// The point with the least value that is no farther from 0 than `radius`. `None` if it cannot be computed. If the function falls
    /// from 0 in a direction in which it has no slope at all, the point lies nearer, and others at that distance have less.
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

/// The difference of two vectors.
fn minus(mut one: Vec<f64>, two: &[f64]) -> Vec<f64> {
    one.iter_mut().zip(two).for_each(|(one, two)| *one -= two);
    one
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
        Quadratic { gradient, curvature }
    }

    proptest! {
        /// Twice as many points as numbers give the function itself, up to its scale.
        #[test]
        fn a_quadratic_function_is_found(seed: u64, n in 1..7_usize) {
            let (function, size) = (random(seed, n), (n + 1) * (n + 2) / 2);
            let valued = |point: Vec<f64>| { let value = function.value(&point); (point, 3.0 + value) };
            let told: Vec<(Vec<f64>, f64)> = points(seed, 2 * size, n).into_iter().map(valued).collect();
            let found = Quadratic::fitted(told, size).unwrap();
            let pairs = found.gradient.iter().zip(&function.gradient).chain(found.curvature.iter().zip(&function.curvature));
            let factor = dot(&found.gradient, &function.gradient) / dot(&function.gradient, &function.gradient);
            prop_assert!(factor > 0.0);
            for (found, own) in pairs {
                prop_assert!((found / factor - own).abs() < 1e-9, "{found} {own}");
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
        let flat = Quadratic { gradient: vec![0.0; 2], curvature: vec![0.0; 4] };
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
