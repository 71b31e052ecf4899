//! Tests whether two arms differ, and corrects the verdicts of several tests.

use super::student::{student_quantile, student_tails};
use crate::math::{erfc, mean};

/// The figures of a sample that a t-test or an interval needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The number of values.
    pub count: usize,
    /// The mean of the values.
    pub mean: f64,
    /// The standard deviation of the values, with `count - 1` in the denominator; 0 for a single value.
    pub deviation: f64,
}

impl Sample {
    /// The sample of these values; `None` without values.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let (count, mean) = (values.len(), mean(values)?);
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let deviation = if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 };
        Some(Self { count, mean, deviation })
    }

    /// The variance of the mean.
    pub(super) fn error_squared(&self) -> f64 {
        self.deviation * self.deviation / self.count as f64
    }
}

/// The difference between two samples' means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The first sample's mean minus the second's.
    pub mean: f64,
    /// Half the width of the difference's 95 % interval.
    pub half_width: f64,
    /// The difference in standard errors.
    pub t: f64,
    /// Degrees of freedom, not always whole.
    pub freedom: f64,
    /// The probability of a difference at least this large in either direction, if there were no true difference.
    pub p: f64,
}

impl Difference {
    /// The name of the test that gave the probability.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        if self.t.is_infinite() { "by ranks, because no value varies" } else { "Welch's test" }
    }
}

/// The largest difference of two samples' means, and the largest standard error, that rounding alone may cause if all values
/// are equal.
pub(super) fn rounding(one: Sample, two: Sample) -> f64 {
    4.0 * f64::EPSILON * one.mean.abs().max(two.mean.abs())
}

/// The unpaired t-test in Welch's form (Welch 1947). `None` unless both samples have two values, and if the values are too
/// large for a variance. If all values within each sample are equal, there is no variance to compare the difference with;
/// then the probability is [`rank_test_least`].
///
/// This is not Student's own test, which pools the variances: in the experiments here, variances of arms differ by a factor
/// of a hundred. For samples of the same size, t is the same in both forms. Only the degrees of freedom differ, and Welch's
/// are never more.
#[must_use]
pub fn t_test(one: Sample, two: Sample) -> Option<Difference> {
    if one.count < 2 || two.count < 2 {
        return None;
    }
    let mean = one.mean - two.mean;
    let (first, second) = (one.error_squared(), two.error_squared());
    let error = (first + second).sqrt();
    if !(mean.is_finite() && error.is_finite()) {
        return None;
    }
    if error <= rounding(one, two) {
        // If the values within each sample are equal, they do not show how much chance matters. But their order counts: all
        // values of one sample lie above all values of the other.
        let p = rank_test_least(one.count, two.count);
        let same = mean.abs() <= rounding(one, two);
        let (t, p) = if same { (0.0, 1.0) } else { (mean.signum() * f64::INFINITY, p) };
        return Some(Difference { mean, half_width: 0.0, t, freedom: (one.count + two.count - 2) as f64, p });
    }
    let part = |share: f64, count: usize| share * share / (count - 1) as f64;
    let (share, rest) = (first / (first + second), second / (first + second));
    let freedom = 1.0 / (part(share, one.count) + part(rest, two.count));
    let t = mean / error;
    let half_width = student_quantile(freedom) * error;
    Some(Difference { mean, half_width, t, freedom, p: student_tails(t, freedom) })
}

/// Student's t-test of the differences of pairs, against 0. `None` for fewer than two differences, and if they are too large
/// for a variance. If all differences are equal, there is no variance to compare them with; then the probability is
/// [`signed_rank_least`].
#[must_use]
pub fn paired_t_test(differences: &[f64]) -> Option<Difference> {
    let sample = Sample::of(differences).filter(|sample| sample.count > 1)?;
    let (mean, error, freedom) = (sample.mean, sample.error_squared().sqrt(), (sample.count - 1) as f64);
    if !(mean.is_finite() && error.is_finite()) {
        return None;
    }
    if error <= rounding(sample, sample) {
        let (t, p) = match mean == 0.0 {
            true => (0.0, 1.0),
            false => (mean.signum() * f64::INFINITY, signed_rank_least(sample.count)),
        };
        return Some(Difference { mean, half_width: 0.0, t, freedom, p });
    }
    let t = mean / error;
    let half_width = student_quantile(freedom) * error;
    Some(Difference { mean, half_width, t, freedom, p: student_tails(t, freedom) })
}

/// The smallest probability that the rank test of two samples of these sizes can give: the one for all values of one sample
/// above all values of the other, in either direction. With few values it is too large for any verdict.
#[must_use]
pub fn rank_test_least(one: usize, two: usize) -> f64 {
    // 1 over the number of ways to choose the first sample's ranks.
    let share: f64 = (1..=one).map(|index| index as f64 / (two + index) as f64).product();
    (2.0 * share).min(1.0)
}

/// The most values, in both samples together, for which [`rank_test`] counts all orders instead of approximating.
const EXACT_MAX: usize = 100;
/// The same limit if some values are equal, which takes longer to count.
const EXACT_TIED_MAX: usize = 20;

/// The result of a rank test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankTest {
    /// The number of pairs in which the first sample's value is the greater one; equal values count half.
    pub u: f64,
    /// The probability of a U at least this far from half the pairs, in either direction, if both samples came from the same
    /// distribution.
    pub p: f64,
}

/// The test of Mann and Whitney (1947), which makes no assumption about the shape of the distributions; `None` if a sample is
/// empty.
///
/// It is exact up to 100 values if all of them differ, and up to 20 values if some are equal. Beyond that, it uses the normal
/// approximation with the corrections for ties and for continuity.
#[must_use]
pub fn rank_test(one: &[f64], two: &[f64]) -> Option<RankTest> {
    if one.is_empty() || two.is_empty() {
        return None;
    }
    let point = |a: f64, b: f64| if a > b { 1.0 } else { f64::from(u8::from(a == b)) / 2.0 };
    let u: f64 = one.iter().flat_map(|a| two.iter().map(move |b| point(*a, *b))).sum();
    let mut all: Vec<f64> = one.iter().chain(two).copied().collect();
    all.sort_by(f64::total_cmp);
    let ties: Vec<usize> = all.chunk_by(|a, b| a == b).map(<[f64]>::len).collect();
    let (n, m) = (one.len(), two.len());
    let p = match ties.len() == all.len() {
        true if all.len() <= EXACT_MAX => exact_tails(u, n, m),
        false if all.len() <= EXACT_TIED_MAX => tied_tails(u, n, &ties),
        _ => normal_tails(u, n, m, &ties),
    };
    Some(RankTest { u, p })
}

/// The most differences for which [`signed_rank_test`] counts all signs instead of approximating.
const EXACT_SIGNS_MAX: usize = 100;

/// The signed-rank test of paired values (F. Wilcoxon, "Individual Comparisons by Ranking Methods", Biometrics Bulletin 1(6),
/// 1945): the probability that the sum of the ranks of positive differences is at least this far from half of all ranks, in
/// either direction, if each difference were equally likely to have either sign. Differences of 0 are left out; the result is
/// 1 if there are no others.
///
/// It is exact up to 100 differences that are not 0; equal ones have the mean of their ranks. Beyond that, it uses the normal
/// approximation with the corrections for ties and for continuity.
#[must_use]
pub fn signed_rank_test(differences: &[f64]) -> f64 {
    let mut all: Vec<f64> = differences.iter().copied().filter(|difference| *difference != 0.0).collect();
    all.sort_by(|one, two| one.abs().total_cmp(&two.abs()));
    // Ranks may end in one half, so doubled ranks are whole numbers.
    let (mut ranks, mut cubes) = (Vec::with_capacity(all.len()), 0.0);
    for tie in all.chunk_by(|one, two| one.abs() == two.abs()) {
        ranks.extend(std::iter::repeat_n(2 * ranks.len() + tie.len() + 1, tie.len()));
        cubes += (tie.len() * tie.len() * tie.len() - tie.len()) as f64;
    }
    let positive: usize =
        all.iter().zip(&ranks).filter(|(difference, _)| **difference > 0.0).map(|(_, rank)| rank).sum();
    let total: usize = ranks.iter().sum();
    if all.len() > EXACT_SIGNS_MAX {
        let n = all.len() as f64;
        let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - cubes / 48.0;
        let distance = (positive as f64 - total as f64 / 2.0).abs() / 2.0 - 0.5;
        return erfc(distance.max(0.0) / (2.0 * variance).sqrt());
    }
    // shares[sum]: the share of all signs of the ranks so far for which the positive ranks have this sum.
    let mut shares = one_at(0, total + 1);
    for rank in &ranks {
        for sum in (0..=total).rev() {
            shares[sum] = (shares[sum] + if sum >= *rank { shares[sum - rank] } else { 0.0 }) / 2.0;
        }
    }
    let distance = (2 * positive).abs_diff(total);
    let far = |(sum, share): (usize, &f64)| if (2 * sum).abs_diff(total) >= distance { *share } else { 0.0 };
    shares.iter().enumerate().map(far).sum::<f64>().min(1.0)
}

/// The smallest probability that [`signed_rank_test`] of this many differences can give: the one for all differences with the
/// same sign.
#[must_use]
pub fn signed_rank_least(count: usize) -> f64 {
    (0..count).fold(2.0, |share: f64, _| share / 2.0).min(1.0)
}

/// Twice the share of all orders of `n` and `m` values whose U is at most the smaller of `u` and its mirror image.
fn exact_tails(u: f64, n: usize, m: usize) -> f64 {
    let least = u.min((n * m) as f64 - u) as usize;
    // shares[i][u]: the share of the orders of i values of one sample and j of the other that have this u; j grows below. The
    // greatest of all values is one of the i with probability i / (i + j), and then it is above all j others.
    let mut shares: Vec<Vec<f64>> = (0..=n).map(|_| one_at(0, least + 1)).collect();
    for j in 1..=m {
        for i in 1..=n {
            let chance = i as f64 / (i + j) as f64;
            for u in (0..=least).rev() {
                let above = if u >= j { shares[i - 1][u - j] } else { 0.0 };
                shares[i][u] = chance * above + (1.0 - chance) * shares[i][u];
            }
        }
    }
    (2.0 * shares[n].iter().sum::<f64>()).min(1.0)
}

/// The share of all ways to draw `n` of the values whose U is at least as far from half the pairs as `u`, in either
/// direction. `ties` are the sizes of the groups of equal values; equal values have the mean of their ranks.
fn tied_tails(u: f64, n: usize, ties: &[usize]) -> f64 {
    // Doubled ranks, which are whole numbers, and the doubled sum of the ranks of the drawn values.
    let ranks: Vec<usize> = ties
        .iter()
        .scan(0, |below, tie| {
            let rank = 2 * *below + tie + 1;
            *below += tie;
            Some(std::iter::repeat_n(rank, *tie))
        })
        .flatten()
        .collect();
    let all = ranks.len();
    let most: usize = ranks.iter().rev().take(n).sum();
    // shares[k][sum]: the share of the ways to draw from the values so far that have drawn k of them, with this sum.
    let mut shares: Vec<Vec<f64>> =
        (0..=n).map(|drawn| if drawn == 0 { one_at(0, most + 1) } else { vec![0.0; most + 1] }).collect();
    for (place, rank) in ranks.iter().enumerate() {
        for drawn in (0..=n.min(place + 1)).rev() {
            for sum in (0..=most).rev() {
                let chance = |drawn: usize| n.saturating_sub(drawn) as f64 / (all - place) as f64;
                let with =
                    if drawn > 0 && sum >= *rank { shares[drawn - 1][sum - rank] * chance(drawn - 1) } else { 0.0 };
                shares[drawn][sum] = with + shares[drawn][sum] * (1.0 - chance(drawn));
            }
        }
    }
    let middle = (n * (all + 1)) as f64;
    let distance = (2.0 * u + (n * (n + 1)) as f64 - middle).abs();
    let far = |(sum, share): (usize, &f64)| if (sum as f64 - middle).abs() >= distance { *share } else { 0.0 };
    shares[n].iter().enumerate().map(far).sum::<f64>().min(1.0)
}

/// A distribution over 0 to `count - 1` in which `place` is certain.
fn one_at(place: usize, count: usize) -> Vec<f64> {
    (0..count).map(|index| f64::from(u8::from(index == place))).collect()
}

/// The same as `exact_tails`, by the normal approximation; `ties` are the sizes of the groups of equal values.
fn normal_tails(u: f64, n: usize, m: usize, ties: &[usize]) -> f64 {
    let (n, m) = (n as f64, m as f64);
    let cubes: f64 = ties.iter().map(|tie| *tie as f64).map(|tie| tie * tie * tie - tie).sum();
    let variance = n * m / 12.0 * (n + m + 1.0 - cubes / ((n + m) * (n + m - 1.0)));
    let distance = ((u - n * m / 2.0).abs() - 0.5).max(0.0);
    if variance <= 0.0 { 1.0 } else { erfc(distance / (2.0 * variance).sqrt()) }
}

/// Probabilities corrected for their number by Holm's method (1979), in the given order. If all hypotheses with a corrected
/// probability of at most 0.05 are rejected, the probability of any wrong rejection is at most 0.05.
#[must_use]
pub fn holm(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|one, two| probabilities[*one].total_cmp(&probabilities[*two]));
    let mut corrected = vec![0.0; probabilities.len()];
    let mut least = 0.0_f64;
    for (rank, index) in order.into_iter().enumerate() {
        least = least.max((probabilities.len() - rank) as f64 * probabilities[index]).min(1.0);
        corrected[index] = least;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Stream, below};

    #[track_caller]
    fn near(one: f64, two: f64, within: f64) {
        assert!((one - two).abs() <= within, "{one} and {two}");
    }

    /// Hours of sleep that two drugs add (Student 1908): a data set whose tests are printed in many textbooks.
    const SLEEP: [[f64; 10]; 2] =
        [[0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0], [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]];

    #[test]
    fn values_without_a_variance_are_not_tested() {
        let sample = |values: &[f64]| Sample::of(values).unwrap();
        assert_eq!(t_test(sample(&[1e200, 2e200]), sample(&[1.0, 2.0])), None);
        assert_eq!(t_test(sample(&[f64::MAX; 2]), sample(&[f64::MIN; 2])), None);
    }

    #[test]
    fn welch_on_known_data() {
        let [one, two] = SLEEP.map(|values| Sample::of(&values).unwrap());
        near(one.deviation, 1.789_010, 1e-6);
        let found = t_test(one, two).unwrap();
        near(found.t, -1.8608, 5e-5);
        near(found.freedom, 17.776, 5e-4);
        near(found.p, 0.07939, 5e-6);
        near(found.mean - found.half_width, -3.365_483, 1e-6);
        near(found.mean + found.half_width, 0.205_483, 1e-6);
    }

    /// Student's own data, paired as he did (1908): t = 4.0621 of 9 degrees of freedom, P = 0.002833.
    #[test]
    fn pairs_on_known_data() {
        let differences: Vec<f64> = SLEEP[0].iter().zip(SLEEP[1]).map(|(one, two)| two - one).collect();
        let found = paired_t_test(&differences).unwrap();
        near(found.mean, 1.58, 1e-12);
        near(found.t, 4.0621, 5e-5);
        near(found.p, 0.002_833, 5e-7);
        near(found.half_width, 0.879_882, 1e-5);
        assert_eq!((paired_t_test(&[1.0]), paired_t_test(&[1e200, -1e300])), (None, None));
        let same = paired_t_test(&[2.0; 6]).unwrap();
        assert_eq!((same.mean, same.half_width, same.p), (2.0, 0.0, 0.03125));
        assert_eq!(paired_t_test(&[0.0; 6]).unwrap().p, 1.0);
        // Rounding errors must not count as variance.
        let rounded: Vec<f64> = [0.1, 0.2, 0.3].iter().map(|value| (value + 0.7) - value).collect();
        assert!(paired_t_test(&rounded).unwrap().half_width < 1e-12);
    }

    /// A data set from textbooks, and differences so few that their signs can be counted by hand.
    #[test]
    fn signed_ranks_on_known_data() {
        // Darwin's maize (Fisher 1935), as scipy.stats.wilcoxon has it: W = 24, P = 0.041260 exact.
        let maize = [49.0, -67.0, 8.0, 16.0, 6.0, 23.0, 28.0, 41.0, 14.0, 29.0, 56.0, 24.0, 75.0, 60.0, -48.0];
        near(signed_rank_test(&maize), 0.041_260, 1e-6);
        let sleep: Vec<f64> = SLEEP[0].iter().zip(SLEEP[1]).map(|(one, two)| two - one).collect();
        near(signed_rank_test(&sleep), 2.0 / 512.0, 1e-12);
        near(signed_rank_test(&[1.0, 2.0, 3.0, -4.0]), 14.0 / 16.0, 1e-12);
        // Equal sizes share a rank: the ranks are 2, 2, 2 and 4, with the sums 0 to 10.
        near(signed_rank_test(&[1.0, 1.0, 1.0, 5.0]), 2.0 / 16.0, 1e-12);
        assert_eq!((signed_rank_test(&[0.0, -0.0]), signed_rank_test(&[])), (1.0, 1.0));
        assert_eq!([0, 1, 5, 6].map(signed_rank_least), [1.0, 1.0, 0.0625, 0.03125]);
        let same: Vec<f64> = (1..=6).map(f64::from).collect();
        assert_eq!(signed_rank_test(&same), signed_rank_least(6));
        // The normal approximation takes over where it is equally good.
        let alternating = |count: u32| -> Vec<f64> {
            (1..=count).map(|rank| if rank % 3 == 0 { -f64::from(rank) } else { f64::from(rank) }).collect()
        };
        near(signed_rank_test(&alternating(100)), signed_rank_test(&alternating(101)), 2e-3);
    }

    #[test]
    fn constant_samples_have_a_conservative_p_value() {
        let sample = |values: &[f64]| Sample::of(values).unwrap();
        let same = t_test(sample(&[2.0, 2.0]), sample(&[2.0; 3])).unwrap();
        assert_eq!((same.t, same.p, same.half_width), (0.0, 1.0, 0.0));
        let other = t_test(sample(&[2.0, 2.0]), sample(&[3.0; 3])).unwrap();
        assert_eq!(other.t, f64::NEG_INFINITY);
        assert!((other.p - 0.2).abs() < 1e-12, "{other:?}");
        let rounded = t_test(sample(&[0.1; 3]), sample(&[0.7; 6])).unwrap();
        assert!((rounded.p - 2.0 / 84.0).abs() < 1e-12 && rounded.half_width == 0.0, "{rounded:?}");
        assert_eq!(t_test(sample(&[0.1; 3]), sample(&[0.1; 6])).unwrap().p, 1.0);
        assert_eq!(t_test(sample(&[1.0]), sample(&[1.0, 2.0])), None);
        assert_eq!((Sample::of(&[]), rank_test(&[], &[1.0])), (None, None));
        assert_eq!(rank_test(&[1.0; 4], &[1.0; 3]), Some(RankTest { u: 6.0, p: 1.0 }));
    }

    #[test]
    fn ranks_of_known_data() {
        // With ties: 12,160 of 184,756 ways to draw ten of the values; then by the approximation.
        let found = rank_test(&SLEEP[0], &SLEEP[1]).unwrap();
        assert_eq!(found.u, 25.5);
        near(found.p, 12_160.0 / 184_756.0, 1e-12);
        near(normal_tails(25.5, 10, 10, &[1, 1, 1, 1, 2, 1, 1, 2, 1, 1, 1, 1, 2, 1, 1, 1, 1]), 0.06933, 5e-6);
        // Three times the greater value against three times the smaller one: 2 of 20 ways.
        near(rank_test(&[2.0; 3], &[1.0; 3]).unwrap().p, 0.1, 1e-14);
        // Hollander and Wolfe 1973, p. 69: permeability of a membrane; 0.1272 one-sided.
        let term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let found = rank_test(&term, &[1.15, 0.88, 0.90, 0.74, 1.21]).unwrap();
        assert_eq!(found.u, 35.0);
        near(found.p, 2.0 * 0.1272, 1e-4);
        // All of ten values above all of ten others: one order of 184,756 in each direction.
        let ten: Vec<f64> = (0..10).map(f64::from).collect();
        let above: Vec<f64> = ten.iter().map(|value| value + 20.0).collect();
        near(rank_test(&above, &ten).unwrap().p, 2.0 / 184_756.0, 1e-18);
    }

    /// The reference implementation: all ways to draw the first sample's values from all of them.
    #[test]
    fn tied_ranks_agree_with_counting() {
        let values = [3.0, 1.0, 1.0, 2.0, 5.0, 2.0, 2.0, 1.0, 4.0, 5.0];
        let u_of = |one: &[f64], two: &[f64]| rank_test(one, two).unwrap().u;
        for n in 1..values.len() {
            let split = |drawn: u32| -> (Vec<f64>, Vec<f64>) {
                let of = |first: bool| {
                    let chosen = (0..values.len()).filter(move |place| (drawn >> place & 1 == 1) == first);
                    chosen.map(|place| values[place]).collect()
                };
                (of(true), of(false))
            };
            let ways: Vec<u32> =
                (0..1 << values.len()).filter(|drawn: &u32| drawn.count_ones() as usize == n).collect();
            let middle = (n * (values.len() - n)) as f64 / 2.0;
            let distances: Vec<f64> =
                ways.iter().map(|drawn| split(*drawn)).map(|(one, two)| (u_of(&one, &two) - middle).abs()).collect();
            for drawn in ways.iter().step_by(17) {
                let (one, two) = split(*drawn);
                let found = rank_test(&one, &two).unwrap();
                let far = distances.iter().filter(|distance| **distance >= (found.u - middle).abs()).count();
                near(found.p, far as f64 / ways.len() as f64, 1e-12);
            }
        }
    }

    /// The reference implementation: all ways to choose which ranks are the first sample's.
    #[test]
    fn exact_ranks_agree_with_counting() {
        for (n, m) in [(1, 1), (1, 6), (4, 3), (5, 6), (7, 2)] {
            let us: Vec<u32> = (0_u32..1 << (n + m))
                .filter(|ranks| ranks.count_ones() == n)
                .map(|ranks| {
                    let chosen = (0..n + m).filter(|rank| ranks >> rank & 1 == 1);
                    chosen.map(|rank| (!ranks & ((1 << rank) - 1)).count_ones()).sum()
                })
                .collect();
            for u in 0..=n * m {
                let least = u.min(n * m - u);
                let share = us.iter().filter(|other| **other <= least).count() as f64 / us.len() as f64;
                near(exact_tails(f64::from(u), n as usize, m as usize), (2.0 * share).min(1.0), 1e-14);
            }
        }
    }

    #[test]
    fn the_approximation_is_near_the_exact_tails() {
        for u in 150..300 {
            let (exact, normal) = (exact_tails(f64::from(u), 20, 20), normal_tails(f64::from(u), 20, 20, &[1; 40]));
            near(normal, exact, 0.005);
        }
    }

    #[test]
    fn holm_on_known_data() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, known) in corrected.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            near(*found, known, 1e-15);
        }
        assert_eq!(holm(&[0.7, 0.6]), [1.0, 1.0]);
        assert_eq!(holm(&[]), [0.0; 0]);
    }

    /// Both tests reject true hypotheses about as often as they claim.
    #[test]
    fn one_in_twenty_is_rejected_by_chance() {
        let mut rng = Stream::root(1).text("null").rng();
        let mut sample = || -> Vec<f64> {
            // Nearly normal: the sum of twelve uniform numbers.
            (0..8).map(|_| (0..12).map(|_| below(&mut rng, 1 << 20) as f64).sum()).collect()
        };
        let (mut welch, mut ranks) = (0, 0);
        for _ in 0..4000 {
            let (one, two) = (sample(), sample());
            let found = t_test(Sample::of(&one).unwrap(), Sample::of(&two).unwrap()).unwrap();
            welch += u32::from(found.p <= 0.05);
            ranks += u32::from(rank_test(&one, &two).unwrap().p <= 0.05);
        }
        // 200 and 199.7 are expected (the exact test's level below 0.05 is 0.04988 here), with a standard deviation of 14.
        assert!((150..=245).contains(&welch) && (150..=245).contains(&ranks), "{welch} {ranks}");
    }
}
