//! Screening: two-level factorial designs, full or fractional, and the effects that they estimate. This module knows neither
//! experiments nor files; `experiment::Screen` is a design whose factors are settings.
//!
//! The terms are those of Box, Hunter and Hunter, Statistics for Experimenters (2nd edition 2005, chapters 5 and 6);
//! Montgomery, Design and Analysis of Experiments (chapters 6 to 8); and Wu and Hamada, Experiments (chapters 4 and 5).

mod design;
mod effects;
#[cfg(test)]
mod tests;

pub use design::{Alias, Design, FACTORS_MAX, TREATMENTS_MAX, Word};
pub use effects::{Basis, Effect, Effects};
