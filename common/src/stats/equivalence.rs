//! Tests whether two arms are equal: two one-sided tests (Schuirmann 1987). Not seeing a difference shows nothing; what can
//! be shown is that a difference is smaller than a margin that was stated in advance.

use super::{
    compare::{Sample, rank_test, rank_test_least, rounding, t_test},
    student::student_tails,
};

/// The probability of means at least this close to each other if their difference were `margin` or more: the larger one of
/// two one-sided tests in Welch's form. `None` if [`t_test`] is `None`.
///
/// One minus it is the probability of means at least this far apart if their difference were at most the margin.
///
/// # Panics
/// If the margin is not positive.
#[must_use]
pub fn equivalence_test(margin: f64, one: Sample, two: Sample) -> Option<f64> {
    assert!(margin > 0.0, "a margin of {margin}: nothing is equal within it");
    let difference = t_test(one, two)?;
    let error = (one.error_squared() + two.error_squared()).sqrt();
    let room = margin - difference.mean.abs();
    if error <= rounding(one, two) {
        // As in the t-test: by ranks, but one-sided.
        let tail = rank_test_least(one.count, two.count) / 2.0;
        return Some(if room > 0.0 { tail } else { 1.0 - tail });
    }
    let tail = student_tails(room / error, difference.freedom) / 2.0;
    Some(if room > 0.0 { tail } else { 1.0 - tail })
}

/// The same by ranks: the larger one of two one-sided tests of Mann and Whitney, with the first sample moved by the margin in
/// either direction. `None` if a sample is empty.
///
/// # Panics
/// If the margin is not positive.
#[must_use]
pub fn rank_equivalence_test(margin: f64, one: &[f64], two: &[f64]) -> Option<f64> {
    assert!(margin > 0.0, "a margin of {margin}: nothing is equal within it");
    let half = (one.len() * two.len()) as f64 / 2.0;
    // If the samples differ by less than the margin, one that is moved down by the margin lies below the other, and one that
    // is moved up lies above it.
    let tail = |sign: f64| {
        let moved: Vec<f64> = one.iter().map(|value| value + sign * margin).collect();
        let found = rank_test(&moved, two)?;
        let expected = (found.u - half) * sign > 0.0;
        Some(if expected { found.p / 2.0 } else { 1.0 - found.p / 2.0 })
    };
    Some(tail(-1.0)?.max(tail(1.0)?))
}

/// The smallest sample size at which the least of `tests` rank tests can reach `level` after Holm's correction.
#[must_use]
pub fn rank_test_values(tests: usize, level: f64) -> usize {
    (1..).find(|values| rank_test_least(*values, *values) * tests as f64 <= level).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        rng::{Stream, below},
        stats::Sample,
    };

    #[track_caller]
    fn near(one: f64, two: f64, within: f64) {
        assert!((one - two).abs() <= within, "{one} and {two}");
    }

    fn sample(count: usize, mean: f64, deviation: f64) -> Sample {
        Sample { count, mean, deviation }
    }

    /// Two samples of ten whose means are 0.1 apart, with standard errors that give t = 2.9 / 1.4142 on 18 degrees of freedom.
    #[test]
    fn known_values() {
        let (one, two) = (sample(10, 5.1, 10.0_f64.sqrt()), sample(10, 5.0, 10.0_f64.sqrt()));
        let p = equivalence_test(3.0, one, two).unwrap();
        near(p, student_tails(2.9 / 2.0_f64.sqrt(), 18.0) / 2.0, 1e-12);
        near(p, 0.027_63, 1e-4);
        assert_eq!(equivalence_test(3.0, two, one), Some(p));
        // At the margin, both verdicts are equally likely. Beyond it, the probability of equality is that of the other
        // verdict.
        near(equivalence_test(0.1, one, two).unwrap(), 0.5, 1e-6);
        let far = sample(10, 8.0, 10.0_f64.sqrt());
        near(1.0 - equivalence_test(0.1, far, two).unwrap(), p, 1e-9);
        assert_eq!(equivalence_test(1.0, sample(1, 0.0, 0.0), two), None);
    }

    /// Not seeing a difference is not equality: few values that scatter show neither.
    #[test]
    fn few_scattered_values_are_not_equal() {
        let (one, two) = (sample(3, 41.7, 5.7), sample(3, 42.0, 5.7));
        assert!(t_test(one, two).unwrap().p > 0.9);
        assert!(equivalence_test(3.0, one, two).unwrap() > 0.25);
        let (one, two) = ([40.0, 42.0, 47.0], [41.0, 43.0, 46.0]);
        assert!(rank_equivalence_test(3.0, &one, &two).unwrap() > 0.05);
    }

    #[test]
    fn values_that_do_not_differ_are_equal() {
        near(equivalence_test(1.0, sample(2, 5.0, 0.0), sample(3, 5.5, 0.0)).unwrap(), 0.1, 1e-12);
        near(equivalence_test(1.0, sample(2, 5.0, 0.0), sample(3, 6.5, 0.0)).unwrap(), 0.9, 1e-12);
    }

    #[test]
    fn ranks_of_known_data() {
        // Moved by 20 in either direction, all values of one sample are below or above the others: one of 252 orders each.
        let one = [1.0, 3.0, 5.0, 7.0, 9.0];
        let two = [2.0, 4.0, 6.0, 8.0, 10.0];
        near(rank_equivalence_test(20.0, &one, &two).unwrap(), 1.0 / 252.0, 1e-12);
        // Values that are 30 apart do not overlap after that move.
        let far = two.map(|value| value + 30.0);
        near(rank_equivalence_test(20.0, &one, &far).unwrap(), 1.0 - 1.0 / 252.0, 1e-12);
        assert_eq!(rank_equivalence_test(1.0, &[], &two), None);
    }

    #[test]
    fn least_probabilities() {
        near(rank_test_least(3, 3), 0.1, 1e-12);
        near(rank_test_least(10, 10), 2.0 / 184_756.0, 1e-18);
        assert_eq!(rank_test_least(0, 3), 1.0);
        near(rank_test_least(2, 5), rank_test(&[1.0, 2.0], &[3.0, 4.0, 5.0, 6.0, 7.0]).unwrap().p, 1e-12);
        assert_eq!([1, 6, 26].map(|tests| rank_test_values(tests, 0.05)), [4, 5, 7]);
    }

    /// Both tests call a difference of exactly the margin equal about as often as they claim, and call equal samples equal
    /// nearly always.
    #[test]
    fn one_in_twenty_at_the_margin_is_declared_equal() {
        let mut rng = Stream::root(1).text("equal").rng();
        // Nearly normal with mean 0 and variance 1: the sum of twelve uniform numbers.
        let mut value = || (0..12).map(|_| below(&mut rng, 1 << 20) as f64 / f64::from(1 << 20)).sum::<f64>() - 6.0;
        let (mut welch, mut ranks, mut equal) = (0, 0, 0);
        for _ in 0..2000 {
            let [one, two] = [(); 2].map(|()| (0..8).map(|_| value()).collect::<Vec<f64>>());
            let moved: Vec<f64> = one.iter().map(|value| value + 3.0).collect();
            let of = |one: &[f64]| equivalence_test(3.0, Sample::of(one).unwrap(), Sample::of(&two).unwrap()).unwrap();
            welch += u32::from(of(&moved) <= 0.05);
            ranks += u32::from(rank_equivalence_test(3.0, &moved, &two).unwrap() <= 0.05);
            equal += u32::from(of(&one) <= 0.05);
        }
        // 100 are expected, with a standard deviation of 10.
        assert!((70..=130).contains(&welch) && (70..=130).contains(&ranks) && equal > 1980, "{welch} {ranks} {equal}");
    }
}
