//! The coordinator: owns populations and state, schedules tasks, keeps checkpoints.

pub mod core;
pub mod names;
pub mod saved;
