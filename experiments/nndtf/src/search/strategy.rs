//! An evolution strategy with covariance matrix adaptation, in the form that needs no eigenvectors: it adapts the matrix M
//! that turns independent normal numbers into steps, instead of M M^T.
//!
//! H.-G. Beyer and B. Sendhoff, "Simplify Your Covariance Matrix Adaptation Evolution Strategy", IEEE Transactions on
//! Evolutionary Computation 21(5), 2017 (MA-ES; figure 3 there). The constants are those of N. Hansen, "The CMA Evolution
//! Strategy: A Tutorial", 2016, with positive weights. The paper shows that MA-ES is as good as CMA-ES. Decomposing the
//! covariance matrix of a hundred genes would cost a thousand times as much as evaluating one of our players.

use evoxo_common::{
    kernel,
    math::{exp, ln},
    rng::{Generator, normal_pair},
};

/// The constants of the strategy.
#[derive(Clone, Debug)]
pub(super) struct Strategy {
    genes: usize,
    offspring: usize,
    /// The weights of the better half, best first; their sum is 1.
    weights: Vec<f64>,
    /// The variance-effective number of parents.
    effective: f64,
    path_rate: f64,
    damping: f64,
    rank_one: f64,
    rank_mu: f64,
    /// The expected length of a vector of normal numbers.
    length: f64,
}

/// The present state of the search.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Distribution {
    /// The step size.
    pub sigma: f64,
    /// One number per gene.
    pub mean: Vec<f64>,
    /// The smoothed path of the mean, in normal numbers.
    pub path: Vec<f64>,
    /// M, column by column.
    pub matrix: Vec<f64>,
}

/// One generation: for each individual, its normal numbers and the step that the matrix makes from them.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    normal: Vec<f64>,
    step: Vec<f64>,
}

impl Strategy {
    /// A strategy for these numbers of genes and of offspring per generation.
    ///
    /// # Panics
    /// If there are no genes, or fewer than four offspring.
    #[must_use]
    pub(super) fn new(genes: usize, offspring: usize) -> Self {
        assert!(genes > 0 && offspring >= 4, "{offspring} offspring with {genes} genes");
        let parents = offspring / 2;
        let raw: Vec<f64> = (1..=parents).map(|rank| ln((offspring as f64 + 1.0) / 2.0) - ln(rank as f64)).collect();
        let sum: f64 = raw.iter().sum();
        let weights: Vec<f64> = raw.iter().map(|weight| weight / sum).collect();
        let effective = 1.0 / weights.iter().map(|weight| weight * weight).sum::<f64>();
        let n = genes as f64;
        let path_rate = (effective + 2.0) / (n + effective + 5.0);
        let rank_one = 2.0 / ((n + 1.3) * (n + 1.3) + effective);
        let rank_mu = 2.0 * (effective - 2.0 + 1.0 / effective) / ((n + 2.0) * (n + 2.0) + effective);
        let damping = 1.0 + path_rate + 2.0 * (((effective - 1.0) / (n + 1.0)).sqrt() - 1.0).max(0.0);
        Self {
            genes,
            offspring,
            effective,
            path_rate,
            damping,
            rank_one,
            rank_mu: rank_mu.min(1.0 - rank_one),
            length: n.sqrt() * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n * n)),
            weights,
        }
    }

    /// An isotropic distribution.
    #[must_use]
    pub(super) fn start(&self, mean: Vec<f64>, sigma: f64) -> Distribution {
        assert_eq!(mean.len(), self.genes, "a mean has one number a gene");
        let mut matrix = vec![0.0; self.genes * self.genes];
        matrix.iter_mut().step_by(self.genes + 1).for_each(|entry| *entry = 1.0);
        Distribution { sigma, mean, path: vec![0.0; self.genes], matrix }
    }

    /// Draws a generation.
    pub(super) fn draw(&self, distribution: &Distribution, rng: &mut Generator) -> Steps {
        let count = self.genes * self.offspring;
        let mut normal = Vec::with_capacity(count + 1);
        while normal.len() < count {
            normal.extend(normal_pair(rng));
        }
        normal.truncate(count);
        let mut step = vec![0.0; count];
        multiply(&distribution.matrix, &normal, &mut step);
        Steps { normal, step }
    }

    /// The position of an individual.
    pub(super) fn individual(
        &self,
        distribution: &Distribution,
        steps: &Steps,
        index: usize,
    ) -> impl Iterator<Item = f64> {
        let step = &steps.step[index * self.genes..][..self.genes];
        distribution.mean.iter().zip(step).map(|(mean, step)| mean + distribution.sigma * step)
    }

    /// Updates the distribution; `order` lists the generation's individuals, best first.
    pub(super) fn adapt(&self, distribution: &mut Distribution, steps: &Steps, order: &[usize]) {
        let best = |all: &[f64]| {
            let mut mean = vec![0.0; self.genes];
            for (weight, index) in self.weights.iter().zip(order) {
                let one = &all[index * self.genes..][..self.genes];
                mean.iter_mut().zip(one).for_each(|(sum, value)| *sum += weight * value);
            }
            mean
        };
        let (normal, step) = (best(&steps.normal), best(&steps.step));
        distribution.mean.iter_mut().zip(&step).for_each(|(mean, step)| *mean += distribution.sigma * step);
        let (keep, add) = (1.0 - self.path_rate, (self.effective * self.path_rate * (2.0 - self.path_rate)).sqrt());
        distribution.path.iter_mut().zip(&normal).for_each(|(path, normal)| *path = keep * *path + add * normal);

        let mut turned = vec![0.0; self.genes];
        multiply(&distribution.matrix, &distribution.path, &mut turned);
        let rest = 1.0 - (self.rank_one + self.rank_mu) / 2.0;
        // The weighted outer products of steps and normal numbers; the product of the path comes first.
        let parts = std::iter::once((self.rank_one / 2.0, &turned[..], &distribution.path[..]));
        let ranked = self.weights.iter().zip(order).map(|(weight, index)| {
            let range = index * self.genes..(index + 1) * self.genes;
            (self.rank_mu / 2.0 * weight, &steps.step[range.clone()], &steps.normal[range])
        });
        let parts: Vec<(f64, &[f64], &[f64])> = parts.chain(ranked).collect();
        add_products(&mut distribution.matrix, rest, &parts);

        let length = distribution.path.iter().map(|path| path * path).sum::<f64>().sqrt();
        distribution.sigma *= exp(self.path_rate / self.damping * (length / self.length - 1.0));
    }
}

kernel! {
    /// Adds to `out` the products of a square matrix, stored column by column, with several vectors.
    fn multiply(matrix: &[f64], vectors: &[f64], out: &mut [f64]) {
        let n = matrix.len().isqrt();
        for (vector, out) in vectors.chunks_exact(n).zip(out.chunks_exact_mut(n)) {
            for (factor, column) in vector.iter().zip(matrix.chunks_exact(n)) {
                for (sum, entry) in out.iter_mut().zip(column) {
                    *sum += factor * entry;
                }
            }
        }
    }
}

kernel! {
    /// Replaces the matrix by `keep` times the matrix plus a weighted sum of outer products (weight, column, row), one after
    /// another.
    fn add_products(matrix: &mut [f64], keep: f64, parts: &[(f64, &[f64], &[f64])]) {
        let n = matrix.len().isqrt();
        for (j, entries) in matrix.chunks_exact_mut(n).enumerate() {
            for entry in entries.iter_mut() {
                *entry *= keep;
            }
            for (weight, column, row) in parts {
                let factor = weight * row[j];
                for (entry, value) in entries.iter_mut().zip(*column) {
                    *entry += factor * value;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::{
        evolve::select,
        rng::{Stream, unit},
        simd,
    };

    /// Minimises a function; returns the number of generations until it is below 1e-9.
    fn generations(genes: usize, worth: impl Fn(&[f64]) -> f64) -> usize {
        let strategy = Strategy::new(genes, 12);
        let mut distribution = strategy.start(vec![3.0; genes], 0.5);
        for generation in 0..20_000 {
            let steps = strategy.draw(&distribution, &mut Stream::root(1).word(generation as u64).rng());
            let values: Vec<f64> = (0..12)
                .map(|index| -worth(&strategy.individual(&distribution, &steps, index).collect::<Vec<f64>>()))
                .collect();
            let order = select::fittest(&values, 12);
            if -values[order[0]] < 1e-9 {
                return generation;
            }
            strategy.adapt(&mut distribution, &steps, &order);
        }
        panic!("it did not reach 1e-9");
    }

    /// As fast as CMA-ES commonly is: some 2,000 evaluations for ten genes of the sphere, some 6,000 for an ellipsoid of
    /// condition 1e6.
    #[test]
    fn known_functions_are_minimised() {
        let sphere = generations(10, |x| x.iter().map(|x| x * x).sum());
        let ellipsoid =
            generations(10, |x| x.iter().enumerate().map(|(i, x)| exp(ln(1e6) * i as f64 / 9.0) * x * x).sum());
        let square = |x: f64| x * x;
        let valley = |pair: &[f64]| 100.0 * square(pair[1] - square(pair[0])) + square(1.0 - pair[0]);
        let rosenbrock = generations(6, |x| x.windows(2).map(valley).sum());
        insta::assert_snapshot!(format!("{sphere} {ellipsoid} {rosenbrock}"));
        assert!(sphere < 200 && ellipsoid < 700 && rosenbrock < 500, "{sphere} {ellipsoid} {rosenbrock}");
    }

    /// Checks matrix times vector, and the sum of outer products, entry by entry, at every instruction level.
    #[test]
    fn kernels_agree_with_the_definition_at_every_level() {
        let mut rng = Stream::root(3).rng();
        let n = 19;
        let mut numbers = |count| (0..count).map(|_| unit(&mut rng) - 0.5).collect::<Vec<f64>>();
        let (matrix, vectors, row) = (numbers(n * n), numbers(2 * n), numbers(n));
        simd::at_each_level(|_| {
            let mut out = vec![0.0; 2 * n];
            multiply(&matrix, &vectors, &mut out);
            for (index, out) in out.iter().enumerate() {
                let (vector, i) = (&vectors[index / n * n..], index % n);
                assert_eq!(*out, (0..n).fold(0.0, |sum, j| sum + vector[j] * matrix[j * n + i]));
            }
            let mut sum = matrix.clone();
            add_products(&mut sum, 0.75, &[(0.5, &vectors[..n], &row), (0.25, &vectors[n..], &row)]);
            for (index, sum) in sum.iter().enumerate() {
                let (j, i) = (index / n, index % n);
                let first = 0.75 * matrix[index] + 0.5 * row[j] * vectors[i];
                assert_eq!(*sum, first + 0.25 * row[j] * vectors[n + i]);
            }
        });
    }
}
