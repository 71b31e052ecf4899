//! One generation of CMA-ES: constants, sampling, and the update of the distribution.
//!
//! N. Hansen, "The CMA Evolution Strategy: A Tutorial", arXiv:1604.00772, 2016: figure 6 and table 1. The separable
//! form is that of R. Ros and N. Hansen, "A Simple Modification in CMA-ES Achieving Linear Time and Space Complexity",
//! PPSN X, 2008.

use evoxo_common::{
    math::{exp, ln, pow},
    rng::{Generator, normal_pair},
};

use super::eigen;

/// The constants of a strategy; the names are those of the tutorial.
#[derive(Clone, Debug)]
pub(super) struct Strategy {
    /// Coordinates: n.
    pub(super) n: usize,
    /// Candidates of a generation: lambda.
    pub(super) lambda: usize,
    /// Whether the covariance matrix is diagonal.
    pub(super) separable: bool,
    /// The weights of all ranks, best first: positive ones that add up to 1, then negative ones or zeros.
    weights: Vec<f64>,
    /// The number of parents: those with positive weights.
    mu: usize,
    mu_eff: f64,
    c_sigma: f64,
    d_sigma: f64,
    c_c: f64,
    c_1: f64,
    c_mu: f64,
    /// The expected length of a vector of normal numbers.
    chi: f64,
}

/// A normal distribution, with the paths of its mean.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Distribution {
    /// Generations of this run so far: g.
    pub(super) generation: u64,
    /// The step size.
    pub(super) sigma: f64,
    /// The mean: m.
    pub(super) mean: Vec<f64>,
    /// The path for the step size.
    pub(super) path_sigma: Vec<f64>,
    /// The path for the covariance.
    pub(super) path: Vec<f64>,
    /// The covariance matrix C: entry (i, j) at `j * n + i`, where only i >= j counts; if separable, its diagonal.
    pub(super) covariance: Vec<f64>,
    /// Eigenvectors of an earlier C, one after another: B; if separable there are none.
    pub(super) axes: Vec<f64>,
    /// The roots of that matrix's eigenvalues, or of its diagonal: D.
    pub(super) scales: Vec<f64>,
    /// The generation of that matrix.
    pub(super) decomposed: u64,
}

/// A candidate of a generation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    /// Independent normal numbers: z.
    pub(super) normal: Vec<f64>,
    /// The step that they make, without the step size: y = B D z.
    pub(super) step: Vec<f64>,
}

impl Strategy {
    /// The defaults of the tutorial's table 1; without `active`, negative weights are 0.
    pub(super) fn new(n: usize, lambda: usize, separable: bool, active: bool) -> Self {
        let (dimension, mu) = (n as f64, lambda / 2);
        let raw: Vec<f64> = (1..=lambda).map(|rank| ln((lambda as f64 + 1.0) / 2.0) - ln(rank as f64)).collect();
        let effective = |weights: &[f64]| {
            let sum: f64 = weights.iter().sum();
            sum * sum / weights.iter().map(|weight| weight * weight).sum::<f64>()
        };
        let (mu_eff, mu_eff_negative) = (effective(&raw[..mu]), effective(&raw[mu..]));
        let c_1 = 2.0 / ((dimension + 1.3) * (dimension + 1.3) + mu_eff);
        let c_mu = 2.0 * (0.25 + mu_eff + 1.0 / mu_eff - 2.0) / ((dimension + 2.0) * (dimension + 2.0) + mu_eff);
        // A diagonal has fewer numbers to learn: Ros and Hansen 2008, section 3.
        let faster = if separable { (dimension + 2.0) / 3.0 } else { 1.0 };
        let c_1 = (c_1 * faster).min(1.0);
        let c_mu = (c_mu * faster).min(1.0 - c_1);
        let of_one = 1.0 + c_1 / c_mu;
        let of_effective = 1.0 + 2.0 * mu_eff_negative / (mu_eff + 2.0);
        let of_definite = (1.0 - c_1 - c_mu) / (dimension * c_mu);
        let negative = if active { of_one.min(of_effective).min(of_definite) } else { 0.0 };
        let sum = |sign: f64| raw.iter().map(|weight| (sign * weight).max(0.0)).sum::<f64>();
        let (above, below) = (sum(1.0), sum(-1.0));
        let weight = |raw: &f64| if *raw >= 0.0 { raw / above } else { negative * raw / below };
        let c_sigma = (mu_eff + 2.0) / (dimension + mu_eff + 5.0);
        Self {
            n,
            lambda,
            separable,
            weights: raw.iter().map(weight).collect(),
            mu,
            mu_eff,
            c_sigma,
            d_sigma: 1.0 + 2.0 * (((mu_eff - 1.0) / (dimension + 1.0)).sqrt() - 1.0).max(0.0) + c_sigma,
            c_c: (4.0 + mu_eff / dimension) / (dimension + 4.0 + 2.0 * mu_eff / dimension),
            c_1,
            c_mu,
            chi: dimension.sqrt() * (1.0 - 1.0 / (4.0 * dimension) + 1.0 / (21.0 * dimension * dimension)),
        }
    }

    /// The numbers of the covariance matrix, as it is stored.
    pub(super) const fn entries(&self) -> usize {
        if self.separable { self.n } else { self.n * self.n }
    }

    /// The numbers of the eigenvectors.
    pub(super) const fn axes(&self) -> usize {
        if self.separable { 0 } else { self.n * self.n }
    }

    /// The distribution of a run's first generation: all coordinates alike.
    pub(super) fn start(&self, mean: Vec<f64>, sigma: f64) -> Distribution {
        let (n, step) = (self.n, if self.separable { 1 } else { self.n + 1 });
        let mut identity = vec![0.0; self.entries()];
        identity.iter_mut().step_by(step).for_each(|entry| *entry = 1.0);
        Distribution {
            generation: 0,
            sigma,
            mean,
            path_sigma: vec![0.0; n],
            path: vec![0.0; n],
            axes: if self.separable { Vec::new() } else { identity.clone() },
            covariance: identity,
            scales: vec![1.0; n],
            decomposed: 0,
        }
    }

    /// Draws a candidate.
    pub(super) fn sample(&self, distribution: &Distribution, rng: &mut Generator) -> Sample {
        let mut normal = Vec::with_capacity(self.n + 1);
        while normal.len() < self.n {
            normal.extend(normal_pair(rng));
        }
        normal.truncate(self.n);
        let scaled: Vec<f64> = normal.iter().zip(&distribution.scales).map(|(z, scale)| z * scale).collect();
        let step = if self.separable { scaled } else { self.turn(distribution, &scaled) };
        Sample { normal, step }
    }

    /// B times a vector.
    fn turn(&self, distribution: &Distribution, vector: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.n];
        for (factor, axis) in vector.iter().zip(distribution.axes.chunks_exact(self.n)) {
            out.iter_mut().zip(axis).for_each(|(sum, entry)| *sum += factor * entry);
        }
        out
    }

    /// Updates the distribution with a generation, best first (figure 6 of the tutorial).
    pub(super) fn update(&self, distribution: &mut Distribution, ranked: &[&Sample]) {
        let mean_of = |part: fn(&Sample) -> &Vec<f64>| {
            let mut mean = vec![0.0; self.n];
            for (weight, sample) in self.weights[..self.mu].iter().zip(ranked) {
                mean.iter_mut().zip(part(sample)).for_each(|(sum, value)| *sum += weight * value);
            }
            mean
        };
        let (normal, step) = (mean_of(|sample| &sample.normal), mean_of(|sample| &sample.step));
        let sigma = distribution.sigma;
        distribution.mean.iter_mut().zip(&step).for_each(|(mean, step)| *mean += sigma * step);

        // C^-1/2 y is B z, because y is B D z.
        let whitened = if self.separable { normal } else { self.turn(distribution, &normal) };
        let (keep, add) = (1.0 - self.c_sigma, (self.c_sigma * (2.0 - self.c_sigma) * self.mu_eff).sqrt());
        distribution.path_sigma.iter_mut().zip(&whitened).for_each(|(path, step)| *path = keep * *path + add * step);
        let length = distribution.path_sigma.iter().map(|path| path * path).sum::<f64>().sqrt();
        let begun = 1.0 - pow(keep, 2.0 * (distribution.generation as f64 + 1.0));
        let calm = length / begun.sqrt() < (1.4 + 2.0 / (self.n as f64 + 1.0)) * self.chi;
        let (keep, add) = (1.0 - self.c_c, (self.c_c * (2.0 - self.c_c) * self.mu_eff).sqrt());
        let add = if calm { add } else { 0.0 };
        distribution.path.iter_mut().zip(&step).for_each(|(path, step)| *path = keep * *path + add * step);

        self.adapt(distribution, ranked, calm);
        distribution.sigma *= exp(self.c_sigma / self.d_sigma * (length / self.chi - 1.0));
        distribution.generation += 1;
    }

    /// Updates the covariance matrix (equation 47 of the tutorial).
    fn adapt(&self, distribution: &mut Distribution, ranked: &[&Sample], calm: bool) {
        let Distribution { covariance, path, .. } = distribution;
        let lost = if calm { 0.0 } else { self.c_1 * self.c_c * (2.0 - self.c_c) };
        let keep = 1.0 + lost - self.c_1 - self.c_mu * self.weights.iter().sum::<f64>();
        let factor = |(weight, sample): (&f64, &&Sample)| {
            // A bad step takes no more away than its direction has.
            let length: f64 = sample.normal.iter().map(|z| z * z).sum();
            self.c_mu * if *weight >= 0.0 { *weight } else { weight * self.n as f64 / length }
        };
        let ranked_factors = self.weights.iter().zip(ranked).map(factor);
        let parts: Vec<(f64, &[f64])> = std::iter::once((self.c_1, &path[..]))
            .chain(ranked_factors.zip(ranked).map(|(factor, sample)| (factor, &sample.step[..])))
            .filter(|(factor, _)| *factor != 0.0)
            .collect();
        if self.separable {
            for (i, entry) in covariance.iter_mut().enumerate() {
                *entry = parts.iter().fold(keep * *entry, |sum, (factor, y)| sum + factor * y[i] * y[i]);
            }
            return;
        }
        for (j, column) in covariance.chunks_exact_mut(self.n).enumerate() {
            let lower = &mut column[j..];
            lower.iter_mut().for_each(|entry| *entry *= keep);
            for (factor, y) in &parts {
                let scale = factor * y[j];
                lower.iter_mut().zip(&y[j..]).for_each(|(entry, value)| *entry += scale * value);
            }
        }
    }

    /// Decomposes the covariance matrix if it is time: so seldom that it costs no more than sampling (section B.2 of
    /// the tutorial). False if the matrix has become none of a distribution.
    pub(super) fn decompose(&self, distribution: &mut Distribution) -> bool {
        let n = self.n as f64;
        let every = if self.separable { 1.0 } else { (1.0 / (10.0 * n * (self.c_1 + self.c_mu))).floor().max(1.0) };
        if ((distribution.generation - distribution.decomposed) as f64) < every {
            return true;
        }
        let variances = if self.separable {
            distribution.covariance.clone()
        } else {
            let Some((values, axes)) = eigen::symmetric(&distribution.covariance, self.n) else { return false };
            distribution.axes = axes;
            values
        };
        distribution.decomposed = distribution.generation;
        if !variances.iter().all(|variance| *variance > 0.0 && variance.is_finite()) {
            return false;
        }
        distribution.scales = variances.iter().map(|variance| variance.sqrt()).collect();
        true
    }

    /// Shortens each coordinate whose deviation is above `most`, in the covariance matrix and in its path. Of a coordinate
    /// that is longer than the box, good and bad steps do not differ, because the map repeats the box: nothing else would
    /// shorten it again.
    pub(super) fn limit(&self, distribution: &mut Distribution, most: f64) {
        for index in 0..self.n {
            let deviation = distribution.sigma * self.variance(distribution, index).sqrt();
            if deviation > most {
                let factor = most / deviation;
                distribution.path[index] *= factor;
                let others = if self.separable { 0..0 } else { 0..self.n };
                others
                    .for_each(|other| distribution.covariance[other.min(index) * self.n + other.max(index)] *= factor);
                let own = if self.separable { factor * factor } else { factor };
                distribution.covariance[self.diagonal(index)] *= own;
            }
        }
    }

    /// The variance of a coordinate, without the step size.
    pub(super) fn variance(&self, distribution: &Distribution, index: usize) -> f64 {
        distribution.covariance[self.diagonal(index)]
    }

    /// The place of a coordinate's variance among the entries of the covariance matrix.
    const fn diagonal(&self, index: usize) -> usize {
        if self.separable { index } else { index * self.n + index }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::rng::Stream;

    /// The constants for ten coordinates, as the tutorial's formulas and pycma 4.5 have them: mu_eff 3.167, c_sigma
    /// 0.2844.
    #[test]
    fn constants_are_those_of_the_tutorial() {
        let strategy = Strategy::new(10, 10, false, true);
        assert_eq!(strategy.mu, 5);
        assert!((strategy.mu_eff - 3.167_299).abs() < 1e-6, "{}", strategy.mu_eff);
        assert!((strategy.c_sigma - 5.167_299 / 18.167_299).abs() < 1e-6);
        assert!((strategy.d_sigma - 1.0 - strategy.c_sigma).abs() < 1e-12);
        assert!((strategy.weights[..5].iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(strategy.weights.windows(2).all(|pair| pair[0] > pair[1]));
        // Negative weights never take more than there is.
        let taken = -strategy.weights[5..].iter().sum::<f64>() * strategy.c_mu * 10.0;
        assert!(taken <= 1.0 - strategy.c_1 - strategy.c_mu + 1e-12, "{taken}");
        let passive = Strategy::new(10, 10, false, false);
        assert!(passive.weights[5..].iter().all(|weight| *weight == 0.0));
    }

    /// If steps are ranked at random, the matrix stays what it is on average: its trace drifts by nothing systematic.
    #[test]
    fn neutral_selection_changes_no_shape() {
        for (separable, active) in [(false, false), (false, true), (true, true)] {
            let strategy = Strategy::new(5, 8, separable, active);
            let mut ratio = Vec::new();
            for replica in 0..40 {
                let mut distribution = strategy.start(vec![0.0; 5], 1.0);
                for generation in 0..100 {
                    let mut rng = Stream::root(replica).word(generation).rng();
                    let samples: Vec<_> = (0..8).map(|_| strategy.sample(&distribution, &mut rng)).collect();
                    strategy.update(&mut distribution, &samples.iter().collect::<Vec<_>>());
                    assert!(strategy.decompose(&mut distribution));
                }
                ratio.push(ln(strategy.variance(&distribution, 0) / strategy.variance(&distribution, 4)));
            }
            let mean = ratio.iter().sum::<f64>() / 40.0;
            assert!(mean.abs() < 1.0, "separable {separable}, active {active}: {mean}");
        }
    }

    /// A coordinate that is too long becomes as long as it may be; its correlations, and the other coordinates, stay.
    #[test]
    fn long_coordinates_are_shortened() {
        for separable in [false, true] {
            let strategy = Strategy::new(4, 8, separable, true);
            let mut distribution = strategy.start(vec![0.0; 4], 0.3);
            for generation in 0..20 {
                let mut rng = Stream::root(3).word(generation).rng();
                let samples: Vec<_> = (0..8).map(|_| strategy.sample(&distribution, &mut rng)).collect();
                strategy.update(&mut distribution, &samples.iter().collect::<Vec<_>>());
                assert!(strategy.decompose(&mut distribution));
            }
            let deviation = |of: &Distribution, index| of.sigma * strategy.variance(of, index).sqrt();
            let mut lengths: Vec<f64> = (0..4).map(|index| deviation(&distribution, index)).collect();
            lengths.sort_by(f64::total_cmp);
            let most = (lengths[1] + lengths[2]) / 2.0;
            let before = distribution.clone();
            strategy.limit(&mut distribution, most);
            let factor = |index| (most / deviation(&before, index)).min(1.0);
            for index in 0..4 {
                let wanted = deviation(&before, index).min(most);
                assert!((deviation(&distribution, index) / wanted - 1.0).abs() < 1e-12);
                assert!((distribution.path[index] - factor(index) * before.path[index]).abs() < 1e-12);
                for below in index + 1..if separable { 0 } else { 4 } {
                    let wanted = factor(index) * factor(below) * before.covariance[index * 4 + below];
                    assert!((distribution.covariance[index * 4 + below] - wanted).abs() < 1e-12);
                }
            }
            assert_eq!((distribution.sigma, &distribution.mean), (before.sigma, &before.mean));
        }
    }

    /// The update by the definition, entry by entry, in a generation with axes that are turned.
    #[test]
    fn the_update_agrees_with_the_definition() {
        let strategy = Strategy::new(4, 6, false, true);
        let mut distribution = strategy.start(vec![0.5; 4], 0.3);
        for generation in 0..12 {
            let mut rng = Stream::root(7).word(generation).rng();
            let samples: Vec<_> = (0..6).map(|_| strategy.sample(&distribution, &mut rng)).collect();
            let before = distribution.clone();
            strategy.update(&mut distribution, &samples.iter().collect::<Vec<_>>());
            let path = &distribution.path;
            let calm = path.iter().zip(&before.path).any(|(new, old)| (new - (1.0 - strategy.c_c) * old).abs() > 1e-12);
            for j in 0..4 {
                for i in j..4 {
                    let mut sum = 1.0 - strategy.c_1 - strategy.c_mu * strategy.weights.iter().sum::<f64>();
                    sum += if calm { 0.0 } else { strategy.c_1 * strategy.c_c * (2.0 - strategy.c_c) };
                    sum *= before.covariance[j * 4 + i];
                    sum += strategy.c_1 * path[i] * path[j];
                    for (weight, Sample { normal: z, step: y }) in strategy.weights.iter().zip(&samples) {
                        let length: f64 = z.iter().map(|z| z * z).sum();
                        let weight = if *weight < 0.0 { weight * 4.0 / length } else { *weight };
                        sum += strategy.c_mu * weight * y[i] * y[j];
                    }
                    assert!((sum - distribution.covariance[j * 4 + i]).abs() < 1e-12, "entry {i} {j}");
                }
            }
            assert!(strategy.decompose(&mut distribution));
        }
    }
}
