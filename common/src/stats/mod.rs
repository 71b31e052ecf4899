//! Statistics over replicas. A claim is a mean with an interval, never the best run.

mod compare;
mod equivalence;
pub mod sequential;
mod student;

pub use compare::{
    Difference, RankTest, Sample, holm, paired_t_test, rank_test, rank_test_least, signed_rank_least, signed_rank_test,
    t_test,
};
pub use equivalence::{equivalence_test, rank_equivalence_test, rank_test_values};
pub use student::{fisher_tail, student_bound, student_quantile, student_tails};

use crate::rng::{Stream, below};

/// A mean with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean of the values.
    pub mean: f64,
    /// Half the width of the interval. `None` for a single value, which says nothing about others, and if the values are too
    /// large for a variance.
    pub half_width: Option<f64>,
}

impl Estimate {
    /// "44.63 ± 0.44", or without the interval if there is none.
    #[must_use]
    pub fn text(&self, decimals: usize) -> String {
        let half_width = self.half_width.map(|half_width| format!(" ± {half_width:.decimals$}"));
        let mean = format!("{:.decimals$}", self.mean);
        // Zero must not have a minus sign.
        let mean = if mean.contains(|c| matches!(c, '1'..='9')) { &mean } else { mean.trim_start_matches('-') };
        format!("{mean}{}", half_width.unwrap_or_default())
    }

    /// The same for a share in percent. A few replicas that differ may give an interval that is wider than all percentages;
    /// then the text shows the whole range of a share: "12.50 (0 to 100)".
    #[must_use]
    pub fn percent(&self, decimals: usize) -> String {
        match self.half_width {
            Some(half_width) if half_width >= 50.0 => format!("{:.decimals$} (0 to 100)", self.mean),
            _ => self.text(decimals),
        }
    }

    /// The decimals for [`Self::text`]: enough for two digits of the interval. Without an interval: two, or as many as show
    /// two digits of the mean.
    #[must_use]
    pub fn decimals(&self) -> usize {
        match self.half_width {
            Some(half_width) if half_width > 0.0 => (0..6).find(|more| half_width * TENS[*more] >= 10.0).unwrap_or(6),
            _ => (2..6).find(|more| self.mean.abs() * TENS[*more] >= 10.0 || self.mean == 0.0).unwrap_or(6),
        }
    }

    /// The text with these decimals, or as powers of ten if it would show only zeros or a long row of digits.
    #[must_use]
    pub fn short(&self) -> String {
        let greatest = self.mean.abs().max(self.half_width.unwrap_or(0.0));
        if is_plain(greatest) { self.text(self.decimals()) } else { self.powers() }
    }

    /// The text as powers of ten: "8.85e-9 ± 1.0e-8".
    #[must_use]
    pub fn powers(&self) -> String {
        let half_width = self.half_width.map(|half_width| format!(" ± {half_width:.1e}")).unwrap_or_default();
        format!("{:.2e}{half_width}", self.mean)
    }

    /// The lower and the upper end of the interval.
    #[must_use]
    pub fn ends(&self) -> [Option<f64>; 2] {
        [-1.0, 1.0].map(|sign| self.half_width.map(|half_width| self.mean + sign * half_width))
    }
}

/// Whether a number is easy to read without powers of ten.
#[must_use]
pub fn is_plain(number: f64) -> bool {
    number == 0.0 || (1e-3..1e7).contains(&number.abs())
}

/// Powers of ten.
const TENS: [f64; 6] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5];

/// The quantile 0.975 of the normal distribution.
const NORMAL: f64 = 1.959_964;

/// The mean of values and its 95 % interval by Student's t (Student 1908); `None` without values.
#[must_use]
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    let sample = Sample::of(values)?;
    let error = sample.error_squared().sqrt();
    let half_width = (sample.count > 1).then(|| student_quantile((sample.count - 1) as f64) * error);
    Some(Estimate { mean: sample.mean, half_width: half_width.filter(|half_width| half_width.is_finite()) })
}

/// The 95 % interval of a share of which `count` of `total` were seen (Wilson 1927); (0, 1) if `total` is 0.
#[must_use]
pub fn wilson(count: usize, total: usize) -> (f64, f64) {
    wilson_points(count as f64, total)
}

/// A count with the 95 % interval of the share: "18 of 20 (70 to 97 %)". A dash if there is nothing.
#[must_use]
pub fn share_text(count: usize, total: usize) -> String {
    if total == 0 {
        return "-".into();
    }
    let (low, high) = wilson(count, total);
    // An end that is not exactly 0 or 100 % must not look like it.
    let percent = |end: f64| {
        let rest = 100.0 * end.min(1.0 - end);
        let decimals = TENS.iter().position(|ten| rest == 0.0 || rest * ten >= 0.5).unwrap_or(TENS.len());
        format!("{:.decimals$}", 100.0 * end)
    };
    format!("{count} of {total} ({} to {} %)", percent(low), percent(high))
}

/// The position, from 0, of the value at which the 95 % interval of the median begins, among `count` ascending values. The
/// interval ends as far from the other end. `None` for fewer than six values: the least and the greatest of them do not make
/// such an interval.
#[must_use]
pub fn median_interval(count: usize) -> Option<usize> {
    // The number of values below the median has the binomial distribution of fair coins. For many values it is nearly normal,
    // and the first probabilities would be too small for a float.
    if count > 1000 {
        return Some(((count as f64 - NORMAL * (count as f64).sqrt()) / 2.0) as usize);
    }
    let mut chance: f64 = std::iter::repeat_n(0.5, count).product();
    let (mut both_tails, mut places) = (2.0 * chance, 0);
    while both_tails <= 0.05 {
        places += 1;
        chance *= (count + 1 - places) as f64 / places as f64;
        both_tails += 2.0 * chance;
    }
    places.checked_sub(1)
}

/// The same for a share of points from `total` games, which gave 0 to 1 point each. If games can be drawn, the true interval
/// is narrower.
#[must_use]
pub fn wilson_points(points: f64, total: usize) -> (f64, f64) {
    if total == 0 {
        return (0.0, 1.0);
    }
    let (n, share, z2) = (total as f64, points / total as f64, NORMAL * NORMAL);
    let centre = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let spread = NORMAL / (1.0 + z2 / n) * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    // Seeing none does not exclude 0, and seeing all does not exclude 1; this must hold exactly, whatever the rounding above.
    let low = if points == 0.0 { 0.0 } else { centre - spread };
    let high = if points == n { 1.0 } else { centre + spread };
    (low, high)
}

/// The fewest values that are resampled. In tests, intervals of 95 % from 2 values held in 38 % of 40 runs, and from 5 values
/// in 72 %.
pub const BOOTSTRAP_MIN: usize = 10;
/// The resamples of [`odds_interval`]: with this number, its ends move by about a fiftieth of its width from one stream to
/// another.
const RESAMPLES: usize = 1000;

/// The 95 % interval of "mean wins to mean losses" over pairs of wins and losses, each at least 0, by the percentile
/// bootstrap (Efron 1979) with resamples drawn from `stream`. An end of the interval is infinite if it has no losses. `None`
/// for fewer than ten pairs, because resamples of so few pairs differ too little from each other.
///
/// The bootstrap resamples the share of wins in wins and losses, which is always finite; the ratio is an increasing function
/// of this share.
#[must_use]
pub fn odds_interval(pairs: &[(f64, f64)], stream: Stream) -> Option<(f64, f64)> {
    if pairs.len() < BOOTSTRAP_MIN {
        return None;
    }
    let mut rng = stream.rng();
    let mut resample = || {
        let draws = (0..pairs.len()).map(|_| pairs[below(&mut rng, pairs.len() as u64) as usize]);
        let (wins, losses) = draws.fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
        if wins + losses > 0.0 { wins / (wins + losses) } else { 0.5 }
    };
    let shares: Vec<f64> = (0..RESAMPLES).map(|_| resample()).collect();
    let odds = |p: f64| quantile(&shares, p) / (1.0 - quantile(&shares, p));
    Some((odds(0.025), odds(0.975)))
}

/// The value below which a share `p` of the values lies, linear between neighbours (Hyndman and Fan 1996, type 7).
///
/// # Panics
/// If there are no values, or `p` is not from 0 to 1.
#[must_use]
pub fn quantile(values: &[f64], p: f64) -> f64 {
    assert!(!values.is_empty() && (0.0..=1.0).contains(&p), "a quantile {p} of {} values", values.len());
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = p * (sorted.len() - 1) as f64;
    let low = place.floor() as usize;
    let high = (low + 1).min(sorted.len() - 1);
    let (share, below, above) = (place - low as f64, sorted[low], sorted[high]);
    // The difference of two numbers may be too large for a float.
    if (above - below).is_infinite() { (1.0 - share) * below + share * above } else { below + share * (above - below) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(one: f64, two: f64) -> bool {
        (one - two).abs() < 5e-4
    }

    #[test]
    fn known_values() {
        let five = estimate(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!(near(five.mean, 3.0) && near(five.half_width.unwrap(), 1.9633), "{five:?}");
        assert_eq!(five.text(1), "3.0 ± 2.0");
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        let hundred = estimate(&values).unwrap();
        assert!(near(hundred.mean, 49.5) && near(hundred.half_width.unwrap(), 5.7566), "{hundred:?}");
        assert_eq!(estimate(&[7.0]), Some(Estimate { mean: 7.0, half_width: None }));
        assert_eq!(estimate(&[7.0]).unwrap().text(2), "7.00");
        let shares = [[0.0, 25.0], [12.0, 13.0]].map(|two| estimate(&two).unwrap().percent(2));
        assert_eq!(shares, ["12.50 (0 to 100)", "12.50 ± 6.35"]);
        let short = |mean, half_width| Estimate { mean, half_width }.short();
        assert_eq!(short(8.854e-9, Some(9.98e-9)), "8.85e-9 ± 1.0e-8");
        assert_eq!([short(-2e9, None), short(0.0, None), short(12.93, Some(9.04))], ["-2.00e9", "0.00", "12.9 ± 9.0"]);
        assert_eq!(short(-1e-9, Some(3.1)), "0.0 ± 3.1");
        assert_eq!(estimate(&[]), None);
        let (low, high) = wilson(8, 10);
        assert!(near(low, 0.4902) && near(high, 0.9433), "{low} {high}");
        let (low, high) = wilson(20, 20);
        assert!(near(low, 0.8389), "{low}");
        assert_eq!((high, wilson(0, 3).0), (1.0, 0.0));
        assert_eq!(wilson(0, 0), (0.0, 1.0));
        assert!(near(quantile(&[4.0, 1.0, 3.0, 2.0], 0.5), 2.5) && near(quantile(&[1.0], 0.9), 1.0));
        assert!(near(quantile(&values, 0.1), 9.9));
    }

    #[test]
    fn the_largest_floats_have_a_mean_and_quantiles() {
        let estimate = estimate(&[f64::MAX, 1e300, 0.0]).unwrap();
        assert!(estimate.mean.is_finite() && estimate.half_width.is_none(), "{estimate:?}");
        assert_eq!(quantile(&[f64::MIN, f64::MAX], 0.5), 0.0);
        assert_eq!(quantile(&[f64::MIN, f64::MAX], 1.0), f64::MAX);
    }

    #[test]
    fn shares_have_intervals() {
        assert_eq!(share_text(18, 20), "18 of 20 (70 to 97 %)");
        assert_eq!(share_text(0, 3), "0 of 3 (0 to 56 %)");
        assert_eq!(share_text(0, 0), "-");
        // An end that is not exactly 0 or 100 % must not look like it.
        assert_eq!(share_text(0, 1000), "0 of 1000 (0 to 0.4 %)");
        assert_eq!(share_text(1, 50), "1 of 50 (0.4 to 10 %)");
    }

    /// As in tables of the sign test's interval: for ten values the second to the ninth, for twenty the sixth to the
    /// fifteenth.
    #[test]
    fn medians_of_at_least_six_values_have_intervals() {
        let found = [0, 1, 5, 6, 8, 9, 10, 20, 100, 1000, 1001].map(median_interval);
        let known =
            [None, None, None, 0.into(), 0.into(), 1.into(), 1.into(), 5.into(), 39.into(), 468.into(), 469.into()];
        assert_eq!(found, known);
    }

    #[test]
    fn odds_have_an_interval() {
        let stream = Stream::root(1);
        // If all pairs are equal, nothing is left to chance.
        let (low, high) = odds_interval(&[(0.6, 0.2); 10], stream).unwrap();
        assert!(near(low, 3.0) && near(high, 3.0), "{low} {high}");
        // 50 pairs of 3 to 1 and 50 of 1 to 1: 2 to 1, and by the delta method 0.1 * 1.96 in either direction.
        let pairs: Vec<(f64, f64)> = (0..100).map(|i| (if i % 2 == 0 { 3.0 } else { 1.0 }, 1.0)).collect();
        let (low, high) = odds_interval(&pairs, stream).unwrap();
        assert!((low - 1.804).abs() < 0.04 && (high - 2.196).abs() < 0.04, "{low} {high}");
        assert_eq!(odds_interval(&[(0.5, 0.0); 10], stream), Some((f64::INFINITY, f64::INFINITY)));
        assert_eq!(odds_interval(&[(0.0, 0.0); 10], stream), Some((1.0, 1.0)));
        assert_eq!(odds_interval(&[(0.5, 0.1); 9], stream), None);
    }
}
