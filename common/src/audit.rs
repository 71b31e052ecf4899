//! The exact audit.

use crate::experiment::invincible::Score;
use crate::ratio::Ratio;

/// Exact probabilities of the three outcomes, seen from one side; they add up to 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Odds {
    /// Probability to win.
    pub win: Ratio,
    /// Probability of a draw.
    pub draw: Ratio,
    /// Probability to lose.
    pub loss: Ratio,
}

impl Odds {
    /// A certain win.
    pub const WIN: Self = Self { win: Ratio::ONE, draw: Ratio::ZERO, loss: Ratio::ZERO };
    /// A certain draw.
    pub const DRAW: Self = Self { win: Ratio::ZERO, draw: Ratio::ONE, loss: Ratio::ZERO };
    /// A certain loss.
    pub const LOSS: Self = Self { win: Ratio::ZERO, draw: Ratio::ZERO, loss: Ratio::ONE };

    /// The odds of a score whose numerators are over `whole`.
    #[must_use]
    pub fn of_score(score: Score, whole: u32) -> Self {
        let share = |part: u32| Ratio::new(part.into(), whole.into());
        Self { win: share(score.wins), draw: share(whole - score.wins - score.losses), loss: share(score.losses) }
    }

    /// The odds of one of these, each equally likely.
    ///
    /// # Panics
    /// If there are none.
    #[must_use]
    pub fn mean(parts: &[Self]) -> Self {
        let share = |part: fn(&Self) -> Ratio| {
            parts.iter().map(part).fold(Ratio::ZERO, |sum, part| sum + part) / Ratio::from(parts.len() as i64)
        };
        Self { win: share(|odds| odds.win), draw: share(|odds| odds.draw), loss: share(|odds| odds.loss) }
    }
}
