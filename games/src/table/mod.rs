//! Table players of 3x3: one move for every board that the filter leaves to them. This module defines which boards there are,
//! the exact worth of a table, and the best table for any points.

mod card;
pub mod exact;
mod genome;
pub mod graph;
pub mod optimum;
mod points;
pub mod reference;

pub use card::CARD;
pub use genome::{TableGenome, check};
pub use points::Points;

use evoxo_common::ratio::Ratio;

use crate::odds::Odds;

/// The results of a table player: numbers of games (sampled), or numerators over [`graph::Graph::denominator`] (exact).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Games won, or the numerator of the probability to win.
    pub wins: u32,
    /// Games lost, or the numerator of the probability to lose.
    pub losses: u32,
}

impl Score {
    /// The odds, if `whole` is the denominator of the numerators.
    #[must_use]
    pub fn odds(self, whole: u32) -> Odds {
        let share = |part: u32| Ratio::new(part.into(), whole.into());
        Odds { win: share(self.wins), draw: share(whole - self.wins - self.losses), loss: share(self.losses) }
    }
}
