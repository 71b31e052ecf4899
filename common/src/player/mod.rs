//! Players that need no learning, for any geometry.

pub mod benchmark;
pub mod random;
