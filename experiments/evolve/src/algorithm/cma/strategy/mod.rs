//! One generation of CMA-ES: constants, sampling, and the update of the distribution.
//!
//! N. Hansen, "The CMA Evolution Strategy: A Tutorial", arXiv:1604.00772, 2016: figure 6 and table 1. The separable form
//! follows R. Ros and N. Hansen, "A Simple Modification in CMA-ES Achieving Linear Time and Space Complexity", PPSN X, 2008.
//! With many coordinates, two points of each generation control the step size, as in N. Hansen, A. Atamna and A. Auger, "How
//! to Assess Step-Size Adaptation Mechanisms in Randomised Search", PPSN XIII, 2014.

mod limited;
#[cfg(test)]
mod tests;

use evoxo_common::{
    math::{exp, ln, pow},
    rng::{Generator, normal_pair},
};

use super::{covariance::Covariance, eigen};

pub(super) use limited::{Directions, directions_max};

/// From this many coordinates on, two points control the step size instead of the length of an evolution path. A path
/// remembers about n / mu generations, so with many coordinates its information is that old. Measured with 20 to 300
/// coordinates: docs/decisions/steps-of-two-points.md.
const TWO_POINTS_FROM: usize = 100;
/// The weight of the last generation in the trend of the two points: c of Hansen, Atamna and Auger 2014, and of pycma 4.5.
const TREND: f64 = 0.3;

/// The constants of a strategy, with the tutorial's names.
#[derive(Clone, Debug)]
pub(super) struct Strategy {
    /// The number of coordinates: n.
    pub(super) n: usize,
    /// Candidates of a generation: lambda.
    pub(super) lambda: usize,
    /// The form of the covariance matrix.
    pub(super) covariance: Covariance,
    /// The weights of all ranks, best first: positive ones that add up to 1, then negative ones or zeros.
    pub(super) weights: Vec<f64>,
    /// The number of parents, which are the candidates with positive weights.
    pub(super) mu: usize,
    pub(super) mu_eff: f64,
    c_sigma: f64,
    d_sigma: f64,
    c_c: f64,
    c_1: f64,
    c_mu: f64,
    /// The expected length of a vector of normal numbers.
    chi: f64,
    /// Whether two points control the step size.
    pub(super) two_points: bool,
    /// The damping of step-size control by two points.
    damping: f64,
}

/// A normal distribution, with its evolution paths.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Distribution {
    /// Generations of this run so far: g.
    pub(super) generation: u64,
    /// The step size.
    pub(super) sigma: f64,
    /// The mean: m.
    pub(super) mean: Vec<f64>,
    /// The evolution path of the step size.
    pub(super) path_sigma: Vec<f64>,
    /// The evolution path of the covariance.
    pub(super) path: Vec<f64>,
    /// The covariance matrix C: entry (i, j) is at `j * n + i`, and only i >= j counts. If separable or limited, only its
    /// diagonal.
    pub(super) covariance: Vec<f64>,
    /// The eigenvectors of the last C that was decomposed, one after another: B. Empty if separable; the directions if
    /// limited.
    pub(super) axes: Vec<f64>,
    /// The square roots of the eigenvalues of that C, or of its diagonal: D. If limited, the part of the diagonal that the
    /// directions do not account for.
    pub(super) scales: Vec<f64>,
    /// The generation in which C was last decomposed.
    pub(super) decomposed: u64,
    /// The last step of the mean, without the step size: the direction of the two points. Empty if two points do not control
    /// the step size, or if the run has just started.
    pub(super) shift: Vec<f64>,
    /// Whether longer steps have recently been better: -1 to 1.
    pub(super) trend: f64,
    /// The part of a limited matrix beyond its diagonal.
    pub(super) directions: Directions,
    /// The factor of the steps of each coordinate, by which whole genes keep their margin: A of Hamano et al. 2022. Empty if no
    /// gene is whole.
    pub(super) stretched: Vec<f64>,
}

impl Distribution {
    /// The factor of the steps of a coordinate.
    fn stretch(&self, index: usize) -> f64 {
        self.stretched.get(index).copied().unwrap_or(1.0)
    }

    /// The standard deviation of a coordinate.
    pub(super) fn deviation(&self, strategy: &Strategy, index: usize) -> f64 {
        self.sigma * strategy.variance(self, index).sqrt() * self.stretch(index)
    }

    /// The point that a step leads to.
    pub(super) fn point(&self, step: &[f64]) -> Vec<f64> {
        let place = |(index, step): (usize, &f64)| self.mean[index] + self.sigma * step * self.stretch(index);
        step.iter().enumerate().map(place).collect()
    }
}

/// A candidate of a generation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    /// Independent normal numbers: z.
    pub(super) normal: Vec<f64>,
    /// The step that they give, without the step size: y = B D z.
    pub(super) step: Vec<f64>,
}

impl Strategy {
    /// The defaults of the tutorial's table 1. Without `active`, negative weights are 0.
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
        // A diagonal has fewer parameters to learn: Ros and Hansen 2008, section 3.
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
            // As in pycma 4.5. The paper has the square root of n, with which steps shrink too late from 1,000 coordinates
            // on.
            damping: 0.7 + 2.0 * ln(dimension) + 2.0 * ln((lambda as f64 - dimension).max(1.0)),
            chi: dimension.sqrt() * (1.0 - 1.0 / (4.0 * dimension) + 1.0 / (21.0 * dimension * dimension)),
        }
    }

    /// Whether only the variances of the coordinates are stored, not the whole covariance matrix.
    pub(super) const fn has_diagonal(&self) -> bool {
        !matches!(self.covariance, Covariance::Full)
    }

    /// How many numbers of the covariance matrix are stored.
    pub(super) const fn entries(&self) -> usize {
        if self.has_diagonal() { self.n } else { self.n * self.n }
    }

    /// How many numbers the eigenvectors have.
    pub(super) const fn axes(&self) -> usize {
        if self.has_diagonal() { 0 } else { self.n * self.n }
    }

    /// The distribution for the first generation of a run: the same variance in every coordinate.
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
            stretched: Vec::new(),
        }
    }

    /// Draws a candidate.
    pub(super) fn sample(&self, distribution: &Distribution, rng: &mut Generator) -> Sample {
        self.sample_of(distribution, self.normal(rng))
    }

    /// The candidate with these normal numbers.
    pub(super) fn sample_of(&self, distribution: &Distribution, normal: Vec<f64>) -> Sample {
        if self.covariance == Covariance::Limited {
            return Sample { step: limited::step(distribution, &normal), normal };
        }
        let scaled: Vec<f64> = normal.iter().zip(&distribution.scales).map(|(z, scale)| z * scale).collect();
        let step = if self.has_diagonal() { scaled } else { self.turn(distribution, &scaled) };
        Sample { normal, step }
    }

    /// The two candidates along the last step of the mean, forwards and backwards. Their distance from the mean is that of a
    /// candidate drawn with the same random numbers. `None` if there was no step.
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

    /// The normal numbers of the candidate at this point, if the full matrix is learnt.
    pub(super) fn normal_of(&self, distribution: &Distribution, point: &[f64]) -> Vec<f64> {
        let Distribution { mean, sigma, scales, axes, .. } = distribution;
        let step = |(index, place): (usize, &f64)| (place - mean[index]) / (sigma * distribution.stretch(index));
        let step: Vec<f64> = point.iter().enumerate().map(step).collect();
        let along =
            |(axis, scale): (&[f64], &f64)| axis.iter().zip(&step).map(|(axis, step)| axis * step).sum::<f64>() / scale;
        axes.chunks_exact(self.n).zip(scales).map(along).collect()
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

    /// The product of B and a vector.
    fn turn(&self, distribution: &Distribution, vector: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.n];
        for (factor, axis) in vector.iter().zip(distribution.axes.chunks_exact(self.n)) {
            out.iter_mut().zip(axis).for_each(|(sum, entry)| *sum += factor * entry);
        }
        out
    }

    /// Updates the distribution with the candidates of a generation, best first (figure 6 of the tutorial). `ahead` is the
    /// share of the other candidates by which the first of the [`Self::pair`] is ahead of the second, -1 to 1; 0 without a
    /// pair. False if the result is no longer a covariance matrix.
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
            // The square root, as in pycma 4.5, gives small differences of ranks more weight.
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
            // A bad step takes away no more variance than its direction has.
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

    /// Decomposes the covariance matrix if it is time to. This is so rare that decomposing costs no more than sampling
    /// (section B.2 of the tutorial). False if the matrix is no longer a covariance matrix.
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

    /// Limits the deviation of each coordinate to `most`, in the covariance matrix and in its path. Nothing else would
    /// shorten a coordinate whose deviation exceeds the box: the map repeats the box, so good and bad steps no longer differ.
    pub(super) fn limit(&self, distribution: &mut Distribution, most: f64) {
        for index in 0..self.n {
            let deviation = distribution.deviation(self, index);
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

    /// Mirrors a coordinate and moves its mean to `mean`, the mirror image: everything learnt about the coordinate changes
    /// sign.
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

    /// The index of a coordinate's variance among the entries of the covariance matrix.
    const fn diagonal(&self, index: usize) -> usize {
        if self.has_diagonal() { index } else { index * self.n + index }
    }
}
