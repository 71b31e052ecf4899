//! The worth of a game's outcomes to a table player.
//!
//! **Why a penalty is enough.** Of N games with W wins and L losses, the points are win W + draw (N - W - L) - penalty L =
//! (win - draw) W - (penalty + draw) L + draw N. The last term is the same for every player. If a win is worth more than a
//! draw, players therefore rank as with 1 for a win, 0 for a draw and a loss that costs (penalty + draw) / (win - draw):
//! [`Points::as_penalty`]. For example, three points for a win and one for a draw correspond to a penalty of 1/2.

use std::fmt;

use evoxo_common::ratio::Ratio;

use super::Score;
use crate::odds::Odds;

/// Points for a win, a draw and a loss. They are exact decimals from -1,000,000 to 1,000,000 with at most six digits after
/// the point, as in settings and on the command line, so that no sum below overflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Points {
    /// Points for a win.
    pub win: Ratio,
    /// Points for a draw.
    pub draw: Ratio,
    /// The cost of a loss: a loss gets minus this number.
    pub penalty: Ratio,
}

impl From<Ratio> for Points {
    /// 1 for a win, 0 for a draw, minus this penalty for a loss.
    fn from(penalty: Ratio) -> Self {
        Self { win: Ratio::ONE, draw: Ratio::ZERO, penalty }
    }
}

impl Points {
    /// The worth of a player with these odds, in points per game.
    #[must_use]
    pub fn worth(self, odds: Odds) -> Ratio {
        self.win * odds.win + self.draw * odds.draw - self.penalty * odds.loss
    }

    /// The least number that makes all three points whole by multiplication: at most 1,000,000.
    #[must_use]
    pub fn scale(self) -> i64 {
        [self.draw, self.penalty].into_iter().fold(self.win.denominator(), |scale, points| {
            // In lowest terms, the denominator of scale / denominator is the factor that the scale lacks.
            scale * Ratio::new(scale.into(), points.denominator().into()).denominator()
        })
    }

    /// The points of this number of games with this score, times [`Points::scale`].
    #[must_use]
    pub fn total(self, score: Score, games: u32) -> i64 {
        let scale = self.scale();
        let whole = |points: Ratio| points.numerator() * (scale / points.denominator());
        let draws = games - score.wins - score.losses;
        whole(self.win) * i64::from(score.wins) + whole(self.draw) * i64::from(draws)
            - whole(self.penalty) * i64::from(score.losses)
    }

    /// The penalty that ranks players as these points do, with 1 for a win and 0 for a draw; `None` if a win is not worth
    /// more than a draw.
    #[must_use]
    pub fn as_penalty(self) -> Option<Ratio> {
        (self.win > self.draw).then(|| (self.penalty + self.draw) / (self.win - self.draw))
    }

    /// How much better a win is than a draw, and how much worse a loss is. Both are multiplied by the same positive number.
    pub(super) fn gain_and_cost(self) -> (i128, i128) {
        let (gain, cost) = (self.win - self.draw, self.penalty + self.draw);
        let whole = |part: Ratio, other: Ratio| i128::from(part.numerator()) * i128::from(other.denominator());
        (whole(gain, cost), whole(cost, gain))
    }
}

impl fmt::Display for Points {
    /// Only the penalty, as in `6.5`, if 1 is for a win and 0 for a draw; otherwise all three points, as in `3, 1, 0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [win, draw, penalty] = [self.win, self.draw, self.penalty].map(Ratio::to_f64);
        if *self == Self::from(self.penalty) {
            return write!(f, "{penalty}");
        }
        // This avoids 0 - 0, which would be -0.
        write!(f, "{win}, {draw}, {}", if penalty == 0.0 { 0.0 } else { -penalty })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn points(win: &str, draw: &str, penalty: &str) -> Points {
        let [win, draw, penalty] = [win, draw, penalty].map(|text| text.parse().unwrap());
        Points { win, draw, penalty }
    }

    #[test]
    fn points_are_written_in_the_usual_form() {
        let texts = [("1", "0", "6.5"), ("3", "1", "0"), ("1", "0.5", "0.25"), ("0", "-1", "2")];
        let texts = texts.map(|(win, draw, penalty)| points(win, draw, penalty).to_string());
        assert_eq!(texts, ["6.5", "3, 1, 0", "1, 0.5, -0.25", "0, -1, -2"]);
    }

    #[test]
    fn points_as_a_penalty() {
        let penalty = |win, draw, penalty| points(win, draw, penalty).as_penalty().map(|ratio| ratio.to_string());
        assert_eq!(penalty("1", "0", "6.5").as_deref(), Some("13/2"));
        assert_eq!(penalty("3", "1", "0").as_deref(), Some("1/2"));
        assert_eq!(penalty("2", "0", "13").as_deref(), Some("13/2"));
        assert_eq!(penalty("1", "1", "0"), None, "wins are worth no more than draws");
    }

    /// The largest points and the most games that settings allow do not overflow, and the sums equal those of fractions.
    #[test]
    fn the_largest_points_do_not_overflow() {
        let largest = points("999999.999999", "-999999.999998", "999999.999997");
        assert_eq!(largest.scale(), 1_000_000);
        let score = Score { wins: 1_000_000, losses: 0 };
        assert_eq!(largest.total(score, 1_000_000), 999_999_999_999_000_000);
        assert_eq!(points("0.5", "0.2", "0.25").scale(), 20);
    }

    proptest! {
        #[test]
        fn totals_match_exact_fractions(
            win in -4000..4000_i128, draw in -4000..4000_i128, penalty in 0..4000_i128, wins in 0..400_u32, losses in 0..500_u32
        ) {
            let points = Points { win: Ratio::new(win, 40), draw: Ratio::new(draw, 1000), penalty: Ratio::new(penalty, 8) };
            let (score, games) = (Score { wins, losses }, 945);
            let total = Ratio::from(points.total(score, games));
            let worth = points.worth(score.odds(games));
            prop_assert_eq!(total, worth * Ratio::from(points.scale()) * Ratio::from(i64::from(games)));
            let (gain, cost) = points.gain_and_cost();
            prop_assert_eq!(points.as_penalty(), (gain > 0).then(|| Ratio::new(cost, gain)));
        }
    }
}
