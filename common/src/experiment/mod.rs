//! Experiments.

pub mod invincible;
