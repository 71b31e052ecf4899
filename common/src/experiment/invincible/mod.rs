//! `invincible`: table players of 3x3 tic-tac-toe that evolve until they stop losing.

pub mod exact;
pub mod facts;
pub mod graph;
pub mod optimum;
pub mod plain;
pub mod sampled;
pub mod score;
pub mod table;

/// How a table player fares: games (sampled), or numerators over [`graph::Graph::denominator`] (exact).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Games won, or the numerator of the probability to win.
    pub wins: u32,
    /// Games lost, or the numerator of the probability to lose.
    pub losses: u32,
}
