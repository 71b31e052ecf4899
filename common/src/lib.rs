//! The engine of evoxo: what an experiment is, what a task is, and what both are made of. It knows no experiment and no
//! game.
//!
//! Invariant: nothing here has a clock, files, sockets, threads or an environment; `clippy.toml` of this crate bans them,
//! and with them what is known to differ between machines. Everything else in the repository may fail, repeat, reorder or
//! vanish; what is computed here does not notice.

pub mod card;
pub mod digest;
pub mod envelope;
pub mod evolve;
pub mod experiment;
pub mod local;
pub mod math;
pub mod plot;
pub mod promises;
pub mod ratio;
pub mod report;
pub mod rng;
pub mod settings;
pub mod simd;
pub mod stats;
pub mod task;
#[cfg(test)]
mod testing;
pub mod text;
pub mod time;

/// The examples of docs/library.md, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/library.md")]
struct LibraryPage;
