//! Crossover and mutation of real genes between two bounds.

use crate::{
    math::pow,
    rng::{Generator, chance, normal_pair, unit},
};

/// Parents' genes that are closer than this are not crossed, as in Deb's program.
const NEAR: f64 = 1e-14;

/// Simulated binary crossover with bounds: the two children of two parents. Each gene is crossed with probability 1/2. The
/// children's genes then lie around the parents' genes as in one-point crossover of binary numbers; the greater `eta`, the
/// closer. Near a bound the distribution is cut and scaled, so that no child is outside.
///
/// K. Deb and R. B. Agrawal, "Simulated Binary Crossover for Continuous Search Space", Complex Systems 9(2), 1995; with
/// bounds as in K. Deb and A. Kumar, "Real-coded Genetic Algorithms with Simulated Binary Crossover", Complex Systems 9(6),
/// 1995, and in Deb's program for NSGA-II (revision 1.1.6).
///
/// # Panics
/// If the parents differ in length.
pub fn simulated_binary(
    rng: &mut Generator,
    mother: &[f64],
    father: &[f64],
    (low, high): (f64, f64),
    eta: f64,
) -> [Vec<f64>; 2] {
    assert_eq!(mother.len(), father.len(), "crossover needs parents of equal length");
    let (mut first, mut second) = (mother.to_vec(), father.to_vec());
    for (one, two) in first.iter_mut().zip(&mut second) {
        if chance(rng, 1, 2) || (*one - *two).abs() <= NEAR {
            continue;
        }
        let (least, most) = (one.min(*two), one.max(*two));
        let share = unit(rng);
        let middle = least / 2.0 + most / 2.0;
        let spread = |room: f64| (most - least) / 2.0 * spread_factor(share, 1.0 + 2.0 * room / (most - least), eta);
        let (below, above) = (middle - spread(least - low), middle + spread(high - most));
        (*one, *two) = (below.clamp(low, high), above.clamp(low, high));
        if chance(rng, 1, 2) {
            std::mem::swap(one, two);
        }
    }
    [first, second]
}

/// The distance of the children as a multiple of the parents' distance, if it may be at most `limit`: the quantile at `share`
/// of its distribution.
fn spread_factor(share: f64, limit: f64, eta: f64) -> f64 {
    let all = 2.0 - pow(limit, -(eta + 1.0));
    let base = if share <= 1.0 / all { share * all } else { 1.0 / (2.0 - share * all) };
    pow(base, 1.0 / (eta + 1.0))
}

/// Polynomial mutation with bounds, each gene with probability `rate`. Most steps are short, the more so the greater `eta`,
/// and none leads outside the bounds. Returns how many genes were changed.
///
/// K. Deb and M. Goyal, "A Combined Genetic Adaptive Search (GeneAS) for Engineering Design", Computer Science and
/// Informatics 26(4), 1996; with bounds as in Deb's program for NSGA-II (revision 1.1.6).
pub fn polynomial(rng: &mut Generator, genome: &mut [f64], (low, high): (f64, f64), eta: f64, rate: f64) -> usize {
    let (width, power) = (high - low, eta + 1.0);
    let mut count = 0;
    for gene in genome {
        if unit(rng) >= rate {
            continue;
        }
        let share = unit(rng);
        let step = if share < 0.5 {
            let room = pow(1.0 - (*gene - low) / width, power);
            pow(2.0 * share + (1.0 - 2.0 * share) * room, 1.0 / power) - 1.0
        } else {
            let room = pow(1.0 - (high - *gene) / width, power);
            1.0 - pow(2.0 * (1.0 - share) + (2.0 * share - 1.0) * room, 1.0 / power)
        };
        *gene = (*gene + step * width).clamp(low, high);
        count += 1;
    }
    count
}

/// Gaussian mutation, each gene with probability `rate`: a normal step whose standard deviation is `deviation` times the
/// distance of the bounds. A step that leads outside ends at the bound (Eiben and Smith 2015, section 4.4.3). Returns how
/// many genes were changed.
pub fn gaussian(rng: &mut Generator, genome: &mut [f64], (low, high): (f64, f64), deviation: f64, rate: f64) -> usize {
    let mut count = 0;
    for gene in genome {
        if unit(rng) < rate {
            let [normal, _] = normal_pair(rng);
            *gene = (*gene + normal * deviation * (high - low)).clamp(low, high);
            count += 1;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn children_stay_between_the_bounds(seed: u64, low in -1e6..1e6_f64, width in 1e-6..1e6_f64, eta in 0.0..50.0) {
            let (mut rng, bounds) = (Stream::root(seed).rng(), (low, low + width));
            let mut parent = || (0..20).map(|_| (low + unit(&mut rng) * width).min(low + width)).collect::<Vec<f64>>();
            let (mut mother, father) = (parent(), parent());
            (mother[0], mother[1]) = bounds;
            let [mut one, mut two] = simulated_binary(&mut rng, &mother, &father, bounds, eta);
            polynomial(&mut rng, &mut one, bounds, eta, 0.5);
            gaussian(&mut rng, &mut two, bounds, 0.3, 0.5);
            prop_assert!(one.iter().chain(&two).all(|gene| (bounds.0..=bounds.1).contains(gene)));
        }
    }

    /// Far from the bounds the children's mean is their parents', and the spread factor b has the density
    /// 0.5 (eta + 1) b^eta up to 1 and 0.5 (eta + 1) / b^(eta + 2) beyond: its mean is
    /// 0.5 (eta + 1) / (eta + 2) + 0.5 (eta + 1) / eta.
    #[test]
    fn the_spread_of_simulated_binary_crossover_matches_the_paper() {
        let mut rng = Stream::root(1).rng();
        for eta in [2.0, 15.0] {
            let (mut crossed, mut sum) = (0, 0.0);
            for _ in 0..100 {
                let (mother, father) = (vec![-1.0; 1000], vec![1.0; 1000]);
                let [one, two] = simulated_binary(&mut rng, &mother, &father, (-1e9, 1e9), eta);
                for (one, two) in one.iter().zip(&two).filter(|(one, two)| **one != -1.0 || **two != 1.0) {
                    assert!((one + two).abs() < 1e-9);
                    crossed += 1;
                    sum += (one - two).abs() / 2.0;
                }
            }
            let mean = 0.5 * (eta + 1.0) / (eta + 2.0) + 0.5 * (eta + 1.0) / eta;
            assert!((crossed - 50_000_i32).abs() < 1000, "{crossed}");
            assert!((sum / f64::from(crossed) - mean).abs() < 0.01, "eta {eta}: {} instead of {mean}", sum / 5e4);
        }
    }

    /// In the middle of the bounds, with delta the step divided by their distance, the density is
    /// 0.5 (eta + 1) (1 - |delta|)^eta, cut at 1/2: the mean of |delta| is about 1 / (eta + 2).
    #[test]
    fn mutations_have_their_rate_and_length() {
        let mut rng = Stream::root(2).rng();
        let mut genome = vec![0.0; 100_000];
        let count = polynomial(&mut rng, &mut genome, (-5.0, 5.0), 20.0, 0.2);
        assert!((count as i32 - 20_000).abs() < 800, "{count}");
        assert_eq!(genome.iter().filter(|gene| **gene != 0.0).count(), count);
        let mean = genome.iter().map(|gene| gene.abs() / 10.0).sum::<f64>() / count as f64;
        assert!((mean * 22.0 - 1.0).abs() < 0.03, "{mean}");
        let mut genome = vec![0.0; 100_000];
        let count = gaussian(&mut rng, &mut genome, (-5.0, 5.0), 0.05, 0.2);
        assert!((count as i32 - 20_000).abs() < 800, "{count}");
        let variance = genome.iter().map(|gene| gene * gene).sum::<f64>() / count as f64;
        assert!((variance - 0.25).abs() < 0.01, "{variance}");
    }

    #[test]
    fn equal_parents_have_equal_children() {
        let parent = [0.25, -3.0, 7.5];
        let children = simulated_binary(&mut Stream::root(3).rng(), &parent, &parent, (-10.0, 10.0), 15.0);
        assert_eq!(children, [parent.to_vec(), parent.to_vec()]);
    }
}
