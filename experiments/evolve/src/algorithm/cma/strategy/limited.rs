//! A covariance matrix with few parameters: D (I + V S V') D, with a diagonal D and k directions V, as many as the search
//! needs.
//!
//! Y. Akimoto and N. Hansen, "Projection-Based Restricted Covariance Matrix Adaptation for High Dimension", GECCO 2016; and
//! "Online Model Selection for Restricted Covariance Matrix Adaptation", PPSN XIV, 2016, for the number of directions. The
//! constants are those of pycma 4.5's `GaussVkDSampler`.

use evoxo_common::math::{exp, ln};

use super::{Distribution, Sample, Strategy};
use crate::algorithm::cma::eigen;

/// The most numbers in all directions together. They take 3.2 MB of a state.
const NUMBERS_MAX: usize = 400_000;
/// The ratio of the variance along a direction to the variance across it. If all directions are above it, more are tried; a
/// direction below it can be dropped.
const VARIANCE: f64 = 30.0;
/// The factor by which the number of directions grows at a time.
const GROWTH: f64 = 1.414;
/// More directions are tried only if the logarithm of the step size changes by less than this.
const SIGMA_CHANGE: f64 = 0.1;
/// More directions are tried only if the logarithms of the variances change by less than this, for a learning rate of 1. It
/// is the paper's value. With 2, as in pycma 4.5, directions were added while the diagonal was still learning, and an
/// ellipsoid of 300 genes took three times as long.
const VARIANCE_CHANGE: f64 = 0.3;
/// An eigenvector whose eigenvalue is below this share of the greatest one is rounding noise.
const ROUNDING: f64 = 1e-12;

/// The part of the matrix beyond its diagonal, and how fast the matrix changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in super::super) struct Directions {
    /// The most directions at present: k.
    pub(in super::super) most: usize,
    /// The additional variance along each direction: S. The directions themselves are [`Distribution::axes`].
    pub(in super::super) stretches: Vec<f64>,
    /// Generations since the number of directions last grew.
    pub(in super::super) since: u64,
    /// The smoothed change of the logarithm of the step size.
    pub(in super::super) sigma: f64,
    /// The smoothed changes of the logarithms of the coordinates' variances.
    pub(in super::super) variances: Vec<f64>,
    /// The smoothed changes of the logarithms of the variances along the directions.
    pub(in super::super) along: Vec<f64>,
}

/// The learning rates with k directions.
struct Rates {
    c_1: f64,
    c_mu: f64,
    c_c: f64,
}

fn rates(n: f64, k: f64, mu_eff: f64) -> Rates {
    let elements = n * (k + 1.0);
    let c_1 = 2.0 / (elements + n + 2.0 * (k + 2.0) + mu_eff);
    let c_mu = (2.0 * (mu_eff - 2.0 + 1.0 / mu_eff) / (elements + 4.0 * (k + 2.0) + mu_eff)).min(1.0 - c_1);
    Rates { c_1, c_mu, c_c: c_1.sqrt() }
}

/// The most directions for this many coordinates.
pub(in super::super) fn directions_max(n: usize) -> usize {
    (NUMBERS_MAX / n).min(n - 1)
}

fn dot(one: &[f64], two: &[f64]) -> f64 {
    one.iter().zip(two).map(|(one, two)| one * two).sum()
}

impl Directions {
    /// The directions in the first generation of a run: none.
    pub(in super::super) fn start(n: usize) -> Self {
        Self { variances: vec![0.0; n], ..Self::default() }
    }
}

/// Applies a function of the matrix to a vector in the space without the diagonal: along each direction, adds the share that
/// `factor` computes from the variance there.
fn along(distribution: &Distribution, vector: &mut [f64], factor: impl Fn(f64) -> f64) {
    let parts: Vec<f64> = distribution
        .axes
        .chunks_exact(vector.len())
        .zip(&distribution.directions.stretches)
        .map(|(axis, stretch)| dot(axis, vector) * (factor(1.0 + stretch) - 1.0))
        .collect();
    for (part, axis) in parts.iter().zip(distribution.axes.chunks_exact(vector.len())) {
        vector.iter_mut().zip(axis).for_each(|(entry, axis)| *entry += part * axis);
    }
}

/// The step for these normal numbers.
pub(in super::super) fn step(distribution: &Distribution, normal: &[f64]) -> Vec<f64> {
    let mut step = normal.to_vec();
    along(distribution, &mut step, f64::sqrt);
    step.iter_mut().zip(&distribution.scales).for_each(|(entry, scale)| *entry *= scale);
    step
}

/// The normal numbers that give this step.
pub(in super::super) fn normal(distribution: &Distribution, step: &[f64]) -> Vec<f64> {
    let mut normal: Vec<f64> = step.iter().zip(&distribution.scales).map(|(entry, scale)| entry / scale).collect();
    along(distribution, &mut normal, |variance| 1.0 / variance.sqrt());
    normal
}

/// The learning rate of the evolution path of the covariance.
pub(in super::super) fn path_rate(strategy: &Strategy, distribution: &Distribution) -> f64 {
    rates(strategy.n as f64, distribution.directions.most as f64, strategy.mu_eff).c_c
}

/// Updates the matrix with the candidates of a generation, best first. False if the result is no longer a covariance matrix.
pub(in super::super) fn adapt(
    strategy: &Strategy,
    distribution: &mut Distribution,
    ranked: &[&Sample],
    calm: bool,
) -> bool {
    let (n, most) = (strategy.n, distribution.directions.most);
    let rates = rates(n as f64, most as f64, strategy.mu_eff);
    let lost = if calm { 0.0 } else { rates.c_1 * rates.c_c * (2.0 - rates.c_c) };
    let kept = 1.0 - rates.c_mu - rates.c_1 + lost;
    let parts = parts(strategy, distribution, ranked, (kept, &rates));
    let Some((axes, stretches)) = project(&parts, kept, (n, most)) else { return false };
    let along: Vec<f64> = distribution.directions.stretches.iter().map(|stretch| ln(1.0 + stretch)).collect();
    distribution.axes = axes;
    distribution.directions.stretches = stretches;
    // The diagonal gets the whole variance of each coordinate.
    let mut whole = vec![kept; n];
    for part in &parts {
        whole.iter_mut().zip(part).for_each(|(sum, entry)| *sum += entry * entry);
    }
    let within = within(distribution);
    let shares = whole.iter().zip(&within).map(|(whole, within)| (whole / within).sqrt());
    distribution.scales.iter_mut().zip(shares).for_each(|(scale, factor)| *scale *= factor);
    let variances = distribution.covariance.clone();
    normalise(distribution);
    if !distribution.covariance.iter().all(|variance| *variance > 0.0 && variance.is_finite()) {
        return false;
    }
    smooth(distribution, &variances, &along);
    true
}

/// Vectors whose outer products with themselves, added to `kept` times the identity, give the matrix after a generation,
/// without the diagonal.
fn parts(
    strategy: &Strategy,
    distribution: &Distribution,
    ranked: &[&Sample],
    (kept, rates): (f64, &Rates),
) -> Vec<Vec<f64>> {
    let times = |vector: &[f64], factor: f64| vector.iter().map(|entry| factor * entry).collect::<Vec<f64>>();
    let scaled = |vector: &[f64], factor: f64| {
        vector.iter().zip(&distribution.scales).map(|(entry, scale)| factor * entry / scale).collect::<Vec<f64>>()
    };
    let axes = distribution.axes.chunks_exact(strategy.n).zip(&distribution.directions.stretches);
    let axes = axes.map(|(axis, stretch)| times(axis, (stretch.max(0.0) * kept).sqrt()));
    let steps = strategy.weights[..strategy.mu].iter().zip(ranked);
    let steps = steps.map(|(weight, sample)| scaled(&sample.step, (rates.c_mu * weight).sqrt()));
    axes.chain(steps).chain([scaled(&distribution.path, rates.c_1.sqrt())]).collect()
}

/// The directions of greatest variance of a matrix, at most `most`, and the additional variance along each. The matrix is
/// `kept` times the identity plus the outer products of `parts` with themselves. `None` if its eigenvectors cannot be
/// computed.
fn project(parts: &[Vec<f64>], kept: f64, (n, most): (usize, usize)) -> Option<(Vec<f64>, Vec<f64>)> {
    let rank = parts.len();
    let mut products = vec![0.0; rank * rank];
    for j in 0..rank {
        for i in j..rank {
            products[j * rank + i] = dot(&parts[i], &parts[j]);
        }
    }
    let (values, vectors) = eigen::symmetric(&products, rank)?;
    let mut order: Vec<usize> = (0..rank).collect();
    order.sort_by(|one, two| values[*two].total_cmp(&values[*one]));
    // The variance along no direction is spread evenly over the remaining dimensions.
    let rest = order.iter().skip(most).map(|index| values[*index].max(0.0)).sum::<f64>() / (n - most) as f64;
    let least = ROUNDING * values[order[0]];
    let (mut axes, mut stretches) = (Vec::new(), Vec::new());
    for index in order.into_iter().take(most).filter(|index| values[*index] > least) {
        let mut axis = vec![0.0; n];
        for (part, factor) in parts.iter().zip(&vectors[index * rank..(index + 1) * rank]) {
            let factor = factor / values[index].sqrt();
            axis.iter_mut().zip(part).for_each(|(sum, entry)| *sum += factor * entry);
        }
        axes.extend(axis);
        stretches.push((values[index] - rest) / (kept + rest));
    }
    Some((axes, stretches))
}

/// Updates the smoothed changes of the coordinates' variances and of the variances along directions.
fn smooth(distribution: &mut Distribution, variances: &[f64], along: &[f64]) {
    let Distribution { directions, covariance, .. } = distribution;
    let rate = 1.0 / variances.len() as f64;
    let changes = covariance.iter().zip(variances).map(|(now, before)| ln(now / before));
    directions.variances.iter_mut().zip(changes).for_each(|(smooth, change)| *smooth += rate * (change - *smooth));
    for (index, smooth) in directions.along.iter_mut().enumerate() {
        let now = directions.stretches.get(index).map_or(0.0, |stretch| ln(1.0 + stretch));
        *smooth += rate * (now - along.get(index).unwrap_or(&0.0) - *smooth);
    }
}

/// The variance of each coordinate before scaling by the diagonal.
fn within(distribution: &Distribution) -> Vec<f64> {
    let n = distribution.scales.len();
    let mut within = vec![1.0; n];
    for (axis, stretch) in distribution.axes.chunks_exact(n).zip(&distribution.directions.stretches) {
        within.iter_mut().zip(axis).for_each(|(sum, entry)| *sum += stretch * entry * entry);
    }
    within
}

/// Scales the determinant to 1, so that the step size alone determines how large steps are, and records the variances of the
/// coordinates.
fn normalise(distribution: &mut Distribution) {
    let n = distribution.scales.len() as f64;
    let logarithm = distribution.scales.iter().map(|scale| ln(*scale)).sum::<f64>()
        + 0.5 * distribution.directions.stretches.iter().map(|stretch| ln(1.0 + stretch)).sum::<f64>();
    let mean = exp(logarithm / n);
    distribution.scales.iter_mut().for_each(|scale| *scale /= mean);
    distribution.path.iter_mut().for_each(|entry| *entry /= mean);
    let within = within(distribution);
    let variances = within.iter().zip(&distribution.scales).map(|(within, scale)| within * scale * scale);
    distribution.covariance = variances.collect();
}

/// Adjusts the number of directions after a generation if it is time to. `sigma` is the step size before that generation.
pub(in super::super) fn choose(strategy: &Strategy, distribution: &mut Distribution, sigma: f64) {
    let n = strategy.n;
    let rate = 0.5 * (strategy.lambda as f64 / n as f64).min(1.0) / (VARIANCE / 10.0).max(1.0);
    let directions = &mut distribution.directions;
    directions.sigma += rate * (ln(distribution.sigma / sigma) - directions.sigma);
    directions.since += 1;
    let wait = 2.0 * n as f64 - 1.0;
    let since = directions.since as f64;
    if since <= wait {
        return;
    }
    let Rates { c_1, c_mu, .. } = rates(n as f64, directions.most as f64, strategy.mu_eff);
    let is_long = |index: usize| directions.stretches.get(index).is_some_and(|stretch| 1.0 + stretch > VARIANCE);
    let is_steady = |change: &f64| (change / (c_1 + c_mu)).abs() < VARIANCE_CHANGE;
    let grows = directions.most < directions_max(n)
        && (0..directions.most).all(is_long)
        && (directions.sigma / rate).abs() < SIGMA_CHANGE
        && directions.variances.iter().all(is_steady);
    if grows {
        let more = ((directions.most as f64 * GROWTH).ceil() as usize).max(directions.most + 1);
        directions.most = more.min(directions_max(n));
        directions.along.resize(directions.most, 0.0);
        directions.since = 0;
    } else if since > directions.most as f64 * wait {
        let stays = |index: &usize| is_long(*index) || directions.along[*index] >= 0.0;
        let kept: Vec<usize> = (0..directions.most).filter(stays).collect();
        if kept.len() < directions.most {
            keep(distribution, &kept);
        }
    }
}

/// Drops all directions but these.
fn keep(distribution: &mut Distribution, kept: &[usize]) {
    let n = distribution.scales.len();
    let Distribution { axes, directions, .. } = distribution;
    let present = || kept.iter().filter(|index| **index < directions.stretches.len());
    *axes = present().flat_map(|index| &axes[index * n..(index + 1) * n]).copied().collect();
    directions.stretches = present().map(|index| directions.stretches[*index]).collect();
    directions.along = kept.iter().map(|index| directions.along[*index]).collect();
    directions.most = kept.len();
    normalise(distribution);
}

#[cfg(test)]
mod tests {
    //! Tests of the matrix against its definition, and of the directions that a search finds.

    use super::*;
    use crate::algorithm::cma::covariance::Covariance;
    use evoxo_common::{math::pow, rng::Stream};

    /// Minimises a function of `n` coordinates until its value is below 1e-10 or `generations` have passed. Returns how many
    /// generations it took.
    fn minimise(n: usize, generations: u64, value: &dyn Fn(&[f64]) -> f64) -> (u64, Distribution) {
        let strategy = Strategy::new(n, 12, Covariance::Limited, true);
        let mut distribution = strategy.start(vec![0.3; n], 0.2);
        for generation in 0..generations {
            let birth = |index: u64| Stream::root(1).word(generation).word(index).rng();
            let samples: Vec<Sample> = (0..12).map(|index| strategy.sample(&distribution, &mut birth(index))).collect();
            let of = |sample: &Sample| {
                let Distribution { mean, sigma, .. } = &distribution;
                value(&mean.iter().zip(&sample.step).map(|(mean, step)| mean + sigma * step).collect::<Vec<f64>>())
            };
            let mut ranked: Vec<(f64, &Sample)> = samples.iter().map(|sample| (of(sample), sample)).collect();
            ranked.sort_by(|one, two| one.0.total_cmp(&two.0));
            if ranked[0].0 < 1e-10 {
                return (generation, distribution);
            }
            let ranked: Vec<&Sample> = ranked.into_iter().map(|(_, sample)| sample).collect();
            assert!(strategy.update(&mut distribution, &ranked, 0.0) && strategy.decompose(&mut distribution));
        }
        (generations, distribution)
    }

    /// A cigar along the diagonal of the space has one long direction. The search finds it, while a diagonal matrix alone
    /// does not solve the problem.
    #[test]
    fn a_needed_direction_is_found() {
        let n = 20;
        let cigar = |genes: &[f64]| {
            let along = genes.iter().sum::<f64>() / (n as f64).sqrt();
            1e6 * genes.iter().map(|gene| gene * gene).sum::<f64>() - (1e6 - 1.0) * along * along
        };
        let (took, found) = minimise(n, 3000, &cigar);
        assert!(took < 1500, "{took}");
        let (longest, stretch) = found
            .axes
            .chunks_exact(n)
            .zip(&found.directions.stretches)
            .max_by(|one, two| one.1.total_cmp(two.1))
            .expect("there is a direction");
        let along = longest.iter().sum::<f64>().abs() / (n as f64).sqrt();
        assert!(along > 0.9 && *stretch > 1e3, "{along} {stretch}");
    }

    /// If only the scales of the coordinates differ, the diagonal learns them and no direction is added.
    #[test]
    fn no_direction_is_added_where_a_diagonal_suffices() {
        let ellipsoid = |genes: &[f64]| (0..40).map(|i| pow(10.0, (i / 8) as f64) * genes[i] * genes[i]).sum::<f64>();
        let (took, found) = minimise(40, 3000, &ellipsoid);
        assert!(took < 1500 && found.directions.most == 0, "{took} {}", found.directions.most);
    }

    /// A distribution with three orthogonal directions.
    fn learnt() -> (Strategy, Distribution) {
        let (strategy, mut rng) = (Strategy::new(8, 12, Covariance::Limited, true), Stream::root(5).rng());
        let mut distribution = strategy.start(vec![0.0; 8], 0.5);
        distribution.directions.most = 3;
        distribution.directions.along = vec![0.0; 3];
        for _ in 0..30 {
            let samples: Vec<Sample> = (0..12).map(|_| strategy.sample(&distribution, &mut rng)).collect();
            assert!(strategy.update(&mut distribution, &samples.iter().collect::<Vec<_>>(), 0.0));
        }
        (strategy, distribution)
    }

    /// The matrix: D (I + V S V') D.
    fn matrix(distribution: &Distribution, n: usize) -> Vec<f64> {
        let mut matrix = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..n {
                let axes = distribution.axes.chunks_exact(n).zip(&distribution.directions.stretches);
                let sum = axes.map(|(axis, stretch)| stretch * axis[i] * axis[j]).sum::<f64>();
                let whole = sum + f64::from(u8::from(i == j));
                matrix[i * n + j] = whole * distribution.scales[i] * distribution.scales[j];
            }
        }
        matrix
    }

    /// The recorded variances of coordinates are those of the matrix, its determinant is 1, its directions are orthogonal,
    /// and `normal` inverts `step`.
    #[test]
    fn the_matrix_agrees_with_its_recorded_parts() {
        let (strategy, distribution) = learnt();
        let (n, whole) = (strategy.n, matrix(&distribution, strategy.n));
        assert_eq!(distribution.directions.stretches.len(), 3);
        assert!(
            (0..n)
                .all(|index| (whole[index * n + index] / strategy.variance(&distribution, index) - 1.0).abs() < 1e-12)
        );
        let (values, _) = eigen::symmetric(&whole, n).expect("it is symmetric");
        assert!(values.iter().map(|value| ln(*value)).sum::<f64>().abs() < 1e-9, "{values:?}");
        let axes: Vec<&[f64]> = distribution.axes.chunks_exact(n).collect();
        for (i, one) in axes.iter().enumerate() {
            for (j, two) in axes.iter().enumerate() {
                assert!((dot(one, two) - f64::from(u8::from(i == j))).abs() < 1e-9, "{i} {j}");
            }
        }
        let numbers: Vec<f64> = (0..n).map(|index| index as f64 - 2.5).collect();
        let again = normal(&distribution, &step(&distribution, &numbers));
        assert!(again.iter().zip(&numbers).all(|(again, number)| (again - number).abs() < 1e-12), "{again:?}");
    }

    /// Short directions that become shorter are dropped; the others stay.
    #[test]
    fn an_unneeded_direction_is_dropped() {
        let (strategy, mut distribution) = learnt();
        let before = distribution.clone();
        distribution.directions.stretches = vec![100.0, 1.0, 1.0];
        distribution.directions.along = vec![-1.0, 1.0, -1.0];
        distribution.directions.since = 1000;
        let sigma = distribution.sigma;
        choose(&strategy, &mut distribution, sigma);
        let Directions { most, stretches, along, .. } = &distribution.directions;
        assert_eq!((*most, &stretches[..], &along[..]), (2, &[100.0, 1.0][..], &[-1.0, 1.0][..]));
        assert_eq!(distribution.axes, before.axes[..16]);
    }
}
