//! Whole genes: each keeps a probability of changing, however small the steps of the search become.
//!
//! R. Hamano, S. Saito, M. Nomura and S. Shirakawa, "CMA-ES with Margin: Lower-Bounding Marginal Probability for Mixed-Integer
//! Black-Box Optimization", GECCO 2022, sections 4.2 and 4.3. Whole genes are rounded coordinates. Without a margin, the
//! deviation of a coordinate becomes much smaller than the distance between whole numbers, and the gene never changes again.

use evoxo_common::math::{erfc, exp};

use super::{
    super::coordinates::Whole,
    strategy::{Distribution, Strategy},
};

/// Moves the means of whole genes and stretches their steps, so that each gene has a probability of at least 1 / (n lambda) of
/// not being the most probable number.
pub(super) fn keep(strategy: &Strategy, distribution: &mut Distribution, whole: impl Iterator<Item = (usize, Whole)>) {
    let margin = 1.0 / (strategy.n * strategy.lambda) as f64;
    for (index, Whole { low, high }) in whole {
        let width = high - low;
        let deviation = distribution.deviation(strategy, index) * width;
        let (mean, factor) = kept((low, high), distribution.mean[index] * width, deviation, margin);
        distribution.mean[index] = mean / width;
        distribution.stretched[index] *= factor;
    }
}

/// The mean of a whole gene and the factor of its deviation that keep the margin.
fn kept((low, high): (f64, f64), mean: f64, deviation: f64, margin: f64) -> (f64, f64) {
    let likely = mean.round().clamp(low, high);
    let (below, above) = (likely - 0.5, likely + 0.5);
    // Where halves are lost to rounding, numbers that follow each other are the same gene.
    if !(deviation > 0.0 && deviation.is_finite() && below < likely && likely < above) {
        return (mean, 1.0);
    }
    if likely == low || likely == high {
        // The other numbers all lie on one side: it gets the whole margin, by a shift of the mean.
        let border = if likely == low { above } else { below };
        let most = deviation * tail_quantile(margin);
        return (border + (mean - border).clamp(-most, most), 1.0);
    }
    let least = margin / 2.0;
    let (left, right) = (tail((mean - below) / deviation), tail((above - mean) / deviation));
    if left >= least && right >= least {
        return (mean, 1.0);
    }
    let middle = 1.0 - left - right;
    let (more_left, more_right) = (left.max(least), right.max(least));
    // What one side gains, all others lose in proportion to what they have above the least.
    let share = (1.0 - more_left - more_right - middle) / (more_left + more_right + middle - 3.0 * least);
    let given = |own: f64| tail_quantile(own + share * (own - least));
    let (left, right) = (given(more_left), given(more_right));
    let spread = 1.0 / (left + right);
    (below + left * spread, spread / deviation)
}

/// The probability that a normal number is above `x`.
fn tail(x: f64) -> f64 {
    0.5 * erfc(x * std::f64::consts::FRAC_1_SQRT_2)
}

/// The number that a normal number exceeds with this probability, above 0 and at most 1/2. Newton's method approaches it from
/// below, because the tail is convex.
fn tail_quantile(probability: f64) -> f64 {
    let mut x = 0.0;
    for _ in 0..100 {
        let density = exp(-0.5 * x * x) * 0.398_942_280_401_432_7;
        let next = x + (tail(x) - probability) / density;
        // At the end, rounding errors make steps of no length or back.
        if next <= x {
            break;
        }
        x = next;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_tables() {
        let known = [
            (0.5, 0.0),
            (0.25, 0.674_489_750_196_081_7),
            (0.025, 1.959_963_984_540_054),
            (1e-9, 5.997_807_015_007_686_5),
        ];
        for (probability, quantile) in known {
            assert!((tail_quantile(probability) - quantile).abs() < 1e-12, "{probability}");
            assert!((tail(quantile) / probability - 1.0).abs() < 1e-12, "{probability}");
        }
    }

    /// However small the deviation and wherever the mean is: every number next to the most probable one keeps its share.
    #[test]
    fn a_gene_keeps_the_probability_of_changing() {
        let (low, high, margin) = (-2.0, 3.0, 0.01);
        for step in -60..=80 {
            let mean = f64::from(step) / 20.0;
            for deviation in [1e-9, 0.01, 0.1, 0.3, 1.0, 20.0] {
                let (moved, factor) = kept((low, high), mean, deviation, margin);
                let deviation = deviation * factor;
                let likely = moved.round().clamp(low, high);
                assert_eq!(likely, mean.round().clamp(low, high), "the most probable number stays: {mean}");
                let left = if likely == low { 0.0 } else { tail((moved - likely + 0.5) / deviation) };
                let right = if likely == high { 0.0 } else { tail((likely + 0.5 - moved) / deviation) };
                let least = if likely == low || likely == high { margin } else { margin / 2.0 };
                for (is_end, share) in [(likely == low, left), (likely == high, right)] {
                    assert!(is_end || share >= least * (1.0 - 1e-6), "{mean} {deviation}: {share}");
                }
            }
        }
    }

    #[test]
    fn a_wide_distribution_and_huge_numbers_stay_as_they_are() {
        assert_eq!(kept((0.0, 9.0), 4.2, 1.0, 0.01), (4.2, 1.0));
        assert_eq!(kept((0.0, 9.0), 0.3, 1.0, 0.01), (0.3, 1.0));
        assert_eq!(kept((0.0, 1e18), 1e17, 1e-3, 0.01), (1e17, 1.0));
    }
}
