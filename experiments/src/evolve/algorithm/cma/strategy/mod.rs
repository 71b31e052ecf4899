//! One generation of CMA-ES: constants, sampling, and the update of the distribution.
//!
//! N. Hansen, "The CMA Evolution Strategy: A Tutorial", arXiv:1604.00772, 2016: figure 6 and table 1. The separable
//! form is that of R. Ros and N. Hansen, "A Simple Modification in CMA-ES Achieving Linear Time and Space Complexity",
//! PPSN X, 2008. With many coordinates the step size follows two points of each generation, as in N. Hansen, A. Atamna and
//! A. Auger, "How to Assess Step-Size Adaptation Mechanisms in Randomised Search", PPSN XIII, 2014.

mod limited;
#[cfg(test)]
mod tests;

use evoxo_common::{
    math::{exp, ln, pow},
    rng::{Generator, normal_pair},
};

use super::{covariance::Covariance, eigen};

pub(super) use limited::{Directions, directions_max};

/// From this many coordinates on the step size follows two points instead of the length of a path. A path remembers about as
/// many generations as there are coordinates for each parent, and what it says is that much out of date. Measured with 20 to 300
/// coordinates: docs/decisions/steps-of-two-points.md.
const TWO_POINTS_FROM: usize = 100;
/// How much of the two points' trend is of the last generation: c of Hansen, Atamna and Auger 2014, and of pycma 4.5.
const TREND: f64 = 0.3;

/// The constants of a strategy; the names are those of the tutorial.
#[derive(Clone, Debug)]
pub(super) struct Strategy {
    /// Coordinates: n.
    pub(super) n: usize,
    /// Candidates of a generation: lambda.
    pub(super) lambda: usize,
    /// What is learnt of the covariance matrix.
    pub(super) covariance: Covariance,
    /// The weights of all ranks, best first: positive ones that add up to 1, then negative ones or zeros.
    pub(super) weights: Vec<f64>,
    /// The number of parents: those with positive weights.
    pub(super) mu: usize,
    pub(super) mu_eff: f64,
    c_sigma: f64,
    d_sigma: f64,
    c_c: f64,
    c_1: f64,
    c_mu: f64,
    /// The expected length of a vector of normal numbers.
    chi: f64,
    /// Whether the step size follows two points.
    pub(super) two_points: bool,
    /// How slowly it does.
    damping: f64,
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
    /// The covariance matrix C: entry (i, j) at `j * n + i`, where only i >= j counts; if separable or limited, its diagonal.
    pub(super) covariance: Vec<f64>,
    /// Eigenvectors of an earlier C, one after another: B; if separable there are none; if limited the directions.
    pub(super) axes: Vec<f64>,
    /// The roots of that matrix's eigenvalues, or of its diagonal: D; if limited, what the directions do not make of the diagonal.
    pub(super) scales: Vec<f64>,
    /// The generation of that matrix.
    pub(super) decomposed: u64,
    /// The last step of the mean, without the step size: the direction of the two points. Empty where the step size does not
    /// follow two points, or the run has just begun.
    pub(super) shift: Vec<f64>,
    /// Whether longer steps have been better of late: -1 to 1.
    pub(super) trend: f64,
    /// Of a limited matrix: what it has besides its diagonal.
    pub(super) directions: Directions,
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
    pub(super) fn new(n: usize, lambda: usize, covariance: Covariance, active: bool) -> Self {
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
        let faster = if covariance == Covariance::Separable { (dimension + 2.0) / 3.0 } else { 1.0 };
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
            covariance,
            weights: raw.iter().map(weight).collect(),
            mu,
            mu_eff,
            c_sigma,
            d_sigma: 1.0 + 2.0 * (((mu_eff - 1.0) / (dimension + 1.0)).sqrt() - 1.0).max(0.0) + c_sigma,
            c_c: (4.0 + mu_eff / dimension) / (dimension + 4.0 + 2.0 * mu_eff / dimension),
            c_1,
            c_mu,
            two_points: n >= TWO_POINTS_FROM,
            // pycma 4.5; the paper has the root of n, with which steps shrink too late from 1,000 coordinates on.
            damping: 0.7 + 2.0 * ln(dimension) + 2.0 * ln((lambda as f64 - dimension).max(1.0)),
            chi: dimension.sqrt() * (1.0 - 1.0 / (4.0 * dimension) + 1.0 / (21.0 * dimension * dimension)),
        }
    }

    /// Whether only the variances of coordinates are stored of the covariance matrix.
    pub(super) const fn has_diagonal(&self) -> bool {
        !matches!(self.covariance, Covariance::Full)
    }

    /// The numbers of the covariance matrix, as it is stored.
    pub(super) const fn entries(&self) -> usize {
        if self.has_diagonal() { self.n } else { self.n * self.n }
    }

    /// The numbers of the eigenvectors.
    pub(super) const fn axes(&self) -> usize {
        if self.has_diagonal() { 0 } else { self.n * self.n }
    }

    /// The distribution of a run's first generation: all coordinates alike.
    pub(super) fn start(&self, mean: Vec<f64>, sigma: f64) -> Distribution {
        let (n, step) = (self.n, if self.has_diagonal() { 1 } else { self.n + 1 });
        let mut identity = vec![0.0; self.entries()];
        identity.iter_mut().step_by(step).for_each(|entry| *entry = 1.0);
        Distribution {
            generation: 0,
            sigma,
            mean,
            path_sigma: vec![0.0; n],
            path: vec![0.0; n],
            axes: if self.has_diagonal() { Vec::new() } else { identity.clone() },
            covariance: identity,
            scales: vec![1.0; n],
            decomposed: 0,
            shift: Vec::new(),
            trend: 0.0,
            directions: if self.covariance == Covariance::Limited {
                Directions::start(n)
            } else {
                Directions::default()
            },
        }
    }

    /// Draws a candidate.
    pub(super) fn sample(&self, distribution: &Distribution, rng: &mut Generator) -> Sample {
        let normal = self.normal(rng);
        if self.covariance == Covariance::Limited {
            return Sample { step: limited::step(distribution, &normal), normal };
        }
        let scaled: Vec<f64> = normal.iter().zip(&distribution.scales).map(|(z, scale)| z * scale).collect();
        let step = if self.has_diagonal() { scaled } else { self.turn(distribution, &scaled) };
        Sample { normal, step }
    }

    /// The two candidates along the last step of the mean, forwards and backwards, as far from the mean as a candidate that is
    /// drawn with these numbers. `None` if there is no such step.
    pub(super) fn pair(&self, distribution: &Distribution, rng: &mut Generator) -> Option<[Sample; 2]> {
        let Distribution { shift, scales, axes, .. } = distribution;
        let along = |axis: &[f64]| axis.iter().zip(shift).map(|(axis, step)| axis * step).sum::<f64>();
        if shift.is_empty() {
            return None;
        }
        let over_scales = |turned: &[f64]| turned.iter().zip(scales).map(|(step, scale)| step / scale).collect();
        let normal: Vec<f64> = match self.covariance {
            Covariance::Full => over_scales(&axes.chunks_exact(self.n).map(along).collect::<Vec<f64>>()),
            Covariance::Separable => over_scales(shift),
            Covariance::Limited => limited::normal(distribution, shift),
        };
        let length = |vector: &[f64]| vector.iter().map(|entry| entry * entry).sum::<f64>().sqrt();
        let factor = length(&self.normal(rng)) / length(&normal);
        let sample = |sign: f64| {
            let times = |vector: &[f64]| vector.iter().map(|entry| sign * factor * entry).collect();
            Sample { normal: times(&normal), step: times(shift) }
        };
        factor.is_finite().then(|| [sample(1.0), sample(-1.0)])
    }

    /// Independent normal numbers, one for each coordinate.
    fn normal(&self, rng: &mut Generator) -> Vec<f64> {
        let mut normal = Vec::with_capacity(self.n + 1);
        while normal.len() < self.n {
            normal.extend(normal_pair(rng));
        }
        normal.truncate(self.n);
        normal
    }

    /// B times a vector.
    fn turn(&self, distribution: &Distribution, vector: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.n];
        for (factor, axis) in vector.iter().zip(distribution.axes.chunks_exact(self.n)) {
            out.iter_mut().zip(axis).for_each(|(sum, entry)| *sum += factor * entry);
        }
        out
    }

    /// Updates the distribution with a generation, best first (figure 6 of the tutorial). `ahead` is the share of the others by
    /// which the first of the [`Self::pair`] is better than the second, -1 to 1; 0 if there is none. False if the
    /// matrix has become none of a distribution.
    pub(super) fn update(&self, distribution: &mut Distribution, ranked: &[&Sample], ahead: f64) -> bool {
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
        let whitened = if self.has_diagonal() { normal } else { self.turn(distribution, &normal) };
        let (keep, add) = (1.0 - self.c_sigma, (self.c_sigma * (2.0 - self.c_sigma) * self.mu_eff).sqrt());
        distribution.path_sigma.iter_mut().zip(&whitened).for_each(|(path, step)| *path = keep * *path + add * step);
        let length = distribution.path_sigma.iter().map(|path| path * path).sum::<f64>().sqrt();
        let begun = 1.0 - pow(keep, 2.0 * (distribution.generation as f64 + 1.0));
        let calm = length / begun.sqrt() < (1.4 + 2.0 / (self.n as f64 + 1.0)) * self.chi;
        let c_c = match self.covariance {
            Covariance::Limited => limited::path_rate(self, distribution),
            Covariance::Full | Covariance::Separable => self.c_c,
        };
        let (keep, add) = (1.0 - c_c, (c_c * (2.0 - c_c) * self.mu_eff).sqrt());
        let add = if calm { add } else { 0.0 };
        distribution.path.iter_mut().zip(&step).for_each(|(path, step)| *path = keep * *path + add * step);

        let is_limited = self.covariance == Covariance::Limited;
        let sound = match is_limited {
            true => limited::adapt(self, distribution, ranked, calm),
            false => {
                self.adapt(distribution, ranked, calm);
                true
            }
        };
        if self.two_points {
            // The root, as pycma 4.5: small differences of ranks count for more.
            let ahead = ahead.abs().sqrt().copysign(ahead);
            distribution.trend += TREND * (ahead - distribution.trend);
            distribution.sigma *= exp(distribution.trend / self.damping);
            distribution.shift = step;
        } else {
            distribution.sigma *= exp(self.c_sigma / self.d_sigma * (length / self.chi - 1.0));
        }
        if is_limited && sound {
            limited::choose(self, distribution, sigma);
        }
        distribution.generation += 1;
        sound
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
        if self.has_diagonal() {
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
        let every =
            if self.has_diagonal() { 1.0 } else { (1.0 / (10.0 * n * (self.c_1 + self.c_mu))).floor().max(1.0) };
        if ((distribution.generation - distribution.decomposed) as f64) < every {
            return true;
        }
        if self.covariance == Covariance::Limited {
            distribution.decomposed = distribution.generation;
            return true;
        }
        let variances = if self.has_diagonal() {
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
                if self.covariance == Covariance::Limited {
                    distribution.scales[index] *= factor;
                }
                let others = if self.has_diagonal() { 0..0 } else { 0..self.n };
                others
                    .for_each(|other| distribution.covariance[other.min(index) * self.n + other.max(index)] *= factor);
                let own = if self.has_diagonal() { factor * factor } else { factor };
                distribution.covariance[self.diagonal(index)] *= own;
            }
        }
    }

    /// Mirrors a coordinate, with the mean of its mirror image: all that is learnt of it turns its sign.
    pub(super) fn mirror(&self, distribution: &mut Distribution, index: usize, mean: f64) {
        let Distribution { path, path_sigma, shift, axes, covariance, .. } = distribution;
        distribution.mean[index] = mean;
        let turned = [path.get_mut(index), path_sigma.get_mut(index), shift.get_mut(index)];
        turned.into_iter().flatten().for_each(|entry| *entry = -*entry);
        axes.chunks_exact_mut(self.n).for_each(|axis| axis[index] = -axis[index]);
        let others = if self.has_diagonal() { 0..0 } else { 0..self.n };
        for other in others.filter(|other| *other != index) {
            let entry = &mut covariance[other.min(index) * self.n + other.max(index)];
            *entry = -*entry;
        }
    }

    /// The variance of a coordinate, without the step size.
    pub(super) fn variance(&self, distribution: &Distribution, index: usize) -> f64 {
        distribution.covariance[self.diagonal(index)]
    }

    /// The place of a coordinate's variance among the entries of the covariance matrix.
    const fn diagonal(&self, index: usize) -> usize {
        if self.has_diagonal() { index } else { index * self.n + index }
    }
}
