//! Players that need no learning, for any geometry.

pub mod alpha_beta;
pub mod benchmark;
pub mod duel;
pub mod random;
