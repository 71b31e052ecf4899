//! Is one player stronger than another? Wald's sequential test (1945), on pairs of games with sides exchanged.
//!
//! The two games from one opening are not independent, so one observation is the sum of their points: 0, 1/2, 1, 3/2 or 2
//! ("pentanomial"). The test compares the greatest likelihoods of these counts under two mean scores (the generalised
//! sequential probability ratio test: Li, Liu and Ying 2014, as in the testing of chess engines). The distribution of points
//! about their mean is estimated from the games, so nothing is assumed about draws or the first move.

use crate::math::{ln, pow};

/// The numbers of pairs in which the first player got 0, 1/2, 1, 3/2 and 2 points.
pub type Pentanomial = [u64; 5];

/// A test of the hypothesis that a player is at most `elo[0]` points stronger, against the hypothesis that it is at least
/// `elo[1]` points stronger. If the truth lies between the two, either verdict is possible.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sprt {
    /// In points on the usual scale, the smaller one first.
    elo: [f64; 2],
}

/// The greatest difference that can be tested, in points.
pub const ELO_MAX: f64 = 1000.0;

/// The probability of either error: to reject the smaller difference although it is true, or the greater one.
pub const ERROR: f64 = 0.05;

/// The verdict of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The player is stronger by less than the greater difference, which is rejected.
    Lesser,
    /// The player is stronger by more than the smaller difference, which is rejected.
    Greater,
    /// More games are needed.
    Open,
}

/// Added to each count, because a result that was never seen is not impossible.
const UNSEEN: f64 = 1e-3;

impl Sprt {
    /// A test between these differences in strength, in points on the usual scale.
    ///
    /// # Errors
    /// A sentence if the first is not less than the second, or if one is more than [`ELO_MAX`] from 0.
    pub fn new(elo0: f64, elo1: f64) -> Result<Self, String> {
        if !(-ELO_MAX..=ELO_MAX).contains(&elo0) || !(-ELO_MAX..=ELO_MAX).contains(&elo1) {
            return Err(format!("the differences are {elo0} and {elo1}: give points from {} to {ELO_MAX}", -ELO_MAX));
        }
        if elo0 >= elo1 {
            return Err(format!("the differences are {elo0} and {elo1}: give the smaller one first"));
        }
        Ok(Self { elo: [elo0, elo1] })
    }

    /// The differences, the smaller one first.
    #[must_use]
    pub const fn elo(&self) -> [f64; 2] {
        self.elo
    }

    /// The logarithm of the likelihood ratio of these pairs: positive if they favour the greater difference.
    #[must_use]
    pub fn ratio(&self, pairs: &Pentanomial) -> f64 {
        if pairs.iter().all(|count| *count == 0) {
            return 0.0;
        }
        let counts = pairs.map(|count| count as f64 + UNSEEN);
        let tilts = self.elo.map(|elo| (score(elo), tilt(&counts, score(elo))));
        let of = |(place, count): (usize, &f64)| {
            let [zero, one] = tilts.map(|(score, tilt)| 1.0 + tilt * (points(place) - score));
            count * ln(zero / one)
        };
        counts.iter().enumerate().map(of).sum()
    }

    /// The limits of the logarithm. At or below the first, the greater difference is rejected; at or above the second, the
    /// smaller one.
    #[must_use]
    pub fn bounds() -> [f64; 2] {
        [ln(ERROR / (1.0 - ERROR)), ln((1.0 - ERROR) / ERROR)]
    }

    /// The verdict on these pairs.
    #[must_use]
    pub fn verdict(&self, pairs: &Pentanomial) -> Verdict {
        let ([low, high], ratio) = (Self::bounds(), self.ratio(pairs));
        match () {
            () if ratio <= low => Verdict::Lesser,
            () if ratio >= high => Verdict::Greater,
            () => Verdict::Open,
        }
    }
}

/// The points of a pair at this position of the counts, as a share of 2.
fn points(place: usize) -> f64 {
    place as f64 / 4.0
}

/// The mean score of a player that is `elo` points stronger.
fn score(elo: f64) -> f64 {
    1.0 / (1.0 + pow(10.0, -elo / 400.0))
}

/// The distribution with this mean that makes the counts most likely has probabilities count / (1 + tilt (points - mean)).
/// This finds the tilt by bisection.
fn tilt(counts: &[f64; 5], mean: f64) -> f64 {
    let slope = |tilt: f64| -> f64 {
        let of = |(place, count): (usize, &f64)| {
            let apart = points(place) - mean;
            count * apart / (1.0 + tilt * apart)
        };
        counts.iter().enumerate().map(of).sum()
    };
    // Between these bounds all probabilities are positive, and the slope falls from plus to minus infinity.
    let (mut low, mut high) = (-1.0 / (1.0 - mean), 1.0 / mean);
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return middle;
        }
        if slope(middle) > 0.0 { low = middle } else { high = middle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Stream, unit};

    fn sprt(elo0: f64, elo1: f64) -> Sprt {
        Sprt::new(elo0, elo1).unwrap()
    }

    /// A slow twin: finds the best distribution with this mean by trying. Probabilities 1 to 3 are varied; 0 and 4 follow.
    fn best_likelihood(counts: &[f64; 5], mean: f64) -> f64 {
        let mut best = f64::NEG_INFINITY;
        let mut centre = [0.2, 0.2, 0.2];
        let mut width = 0.2;
        while width > 1e-7 {
            let mut found = centre;
            for step in 0..1331 {
                let at = |digit: usize| (step / [1, 11, 121][digit] % 11) as f64 / 5.0 - 1.0;
                let inner: [f64; 3] = std::array::from_fn(|place| centre[place] + width * at(place));
                let rest: f64 = 1.0 - inner.iter().sum::<f64>();
                let last = mean - inner.iter().enumerate().map(|(place, p)| p * points(place + 1)).sum::<f64>();
                let all = [rest - last, inner[0], inner[1], inner[2], last];
                if all.iter().any(|p| *p <= 0.0) {
                    continue;
                }
                let likelihood: f64 = counts.iter().zip(all).map(|(count, p)| count * ln(p)).sum();
                if likelihood > best {
                    (best, found) = (likelihood, inner);
                }
            }
            width *= if found == centre { 0.5 } else { 0.9 };
            centre = found;
        }
        best
    }

    #[test]
    fn the_ratio_is_that_of_the_maximum_likelihoods() {
        for (pairs, elo) in [([10, 20, 40, 25, 15], [0.0, 50.0]), ([3, 1, 7, 2, 9], [-20.0, 20.0])] {
            let counts = pairs.map(|count: u64| count as f64 + UNSEEN);
            let [zero, one] = elo.map(|elo| best_likelihood(&counts, score(elo)));
            let found = sprt(elo[0], elo[1]).ratio(&pairs);
            assert!((found - (one - zero)).abs() < 1e-4, "{found} and {}", one - zero);
        }
    }

    /// With many pairs, the ratio is nearly that of normal means: (s1 - s0) (2 mean - s0 - s1) / (2 variance of the mean).
    #[test]
    fn many_pairs_are_nearly_normal() {
        let pairs: Pentanomial = [900, 2100, 4000, 2200, 1000];
        let total: f64 = pairs.iter().sum::<u64>() as f64;
        let moment = |f: &dyn Fn(f64) -> f64| {
            pairs.iter().enumerate().map(|(place, count)| *count as f64 * f(points(place))).sum::<f64>() / total
        };
        let mean = moment(&|points| points);
        let variance = moment(&|points| (points - mean) * (points - mean)) / total;
        let [zero, one] = [0.0, 5.0].map(score);
        let normal = (one - zero) * (2.0 * mean - zero - one) / (2.0 * variance);
        let found = sprt(0.0, 5.0).ratio(&pairs);
        assert!((found / normal - 1.0).abs() < 0.02, "{found} and {normal}");
    }

    #[test]
    fn wins_and_losses_move_the_verdict() {
        let test = sprt(0.0, 100.0);
        assert_eq!((test.ratio(&[0; 5]), test.verdict(&[0; 5])), (0.0, Verdict::Open));
        assert_eq!(test.verdict(&[0, 0, 0, 0, 20]), Verdict::Greater);
        assert_eq!(test.verdict(&[20, 0, 0, 0, 0]), Verdict::Lesser);
        assert_eq!(test.verdict(&[1, 0, 0, 0, 1]), Verdict::Open);
        // The same games, seen from the other side, favour the other player equally.
        let turned = sprt(-100.0, 0.0);
        assert!((test.ratio(&[3, 1, 4, 1, 5]) + turned.ratio(&[5, 1, 4, 1, 3])).abs() < 1e-9);
        let [low, high] = Sprt::bounds();
        assert!((high - 2.944).abs() < 1e-3 && (low + high).abs() < 1e-12, "{low} {high}");
    }

    #[test]
    fn impossible_tests_are_rejected() {
        assert!(Sprt::new(5.0, 5.0).unwrap_err().contains("give the smaller one first"));
        assert!(Sprt::new(0.0, 1001.0).unwrap_err().contains("give points from -1000 to 1000"));
        assert!(Sprt::new(f64::NAN, 1.0).is_err());
    }

    /// For players that are exactly as strong as one of the hypotheses, about one verdict in twenty is wrong.
    #[test]
    fn errors_are_as_rare_as_promised() {
        let test = sprt(0.0, 40.0);
        let wrong = |elo: f64, error: Verdict| {
            let run = |seed: u64| {
                let mut rng = Stream::root(seed).text("sprt").rng();
                let (mut pairs, third) = ([0; 5], 0.3);
                loop {
                    // Each game is drawn in 30 of 100 cases, and the rest gives the score.
                    let mut game = || match unit(&mut rng) {
                        lot if lot < third => 1,
                        lot if lot < third + score(elo) - third / 2.0 => 2,
                        _ => 0,
                    };
                    pairs[game() + game()] += 1;
                    match test.verdict(&pairs) {
                        Verdict::Open => {}
                        verdict => return verdict == error,
                    }
                }
            };
            (0..200).filter(|seed| run(*seed)).count()
        };
        // At most 10 of 200 are expected, with a standard deviation of 3.
        let (greater, lesser) = (wrong(0.0, Verdict::Greater), wrong(40.0, Verdict::Lesser));
        assert!(greater <= 19 && lesser <= 19, "{greater} and {lesser} of 200");
    }
}
