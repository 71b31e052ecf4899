//! The pure heart of evoxo: games, players, evolution, experiments and the tasks that workers compute.
//!
//! Invariant: nothing here has a clock, files, sockets, threads or an environment; `clippy.toml` of this crate bans them,
//! and with them everything whose bits differ between machines. Everything else in the repository may fail, repeat,
//! reorder or vanish; what is computed here does not notice.

pub mod audit;
pub mod board;
pub mod card;
pub mod config;
pub mod digest;
pub mod envelope;
pub mod evolve;
pub mod experiment;
pub mod finale;
pub mod local;
pub mod math;
pub mod net;
pub mod player;
pub mod ratio;
pub mod replica;
pub mod rng;
pub mod simd;
pub mod stats;
pub mod task;
pub mod time;
