//! The engine of evoxo: experiments and tasks, and what both are made of. It knows no particular experiment or game.
//!
//! Invariant: nothing here has a clock, files, sockets, threads or an environment. The `clippy.toml` of this crate bans them,
//! and it bans functions whose results are known to differ between machines. The rest of the repository may fail, repeat or
//! reorder work: results computed here stay the same.

pub mod candidates;
pub mod card;
pub mod comparison;
pub mod conclusion;
pub mod digest;
pub mod envelope;
pub mod evolve;
pub mod experiment;
pub mod headline;
pub mod local;
pub mod math;
pub mod parallel;
pub mod play;
pub mod plot;
pub mod prelude;
pub mod promises;
pub mod ratio;
pub mod report;
pub mod rng;
pub mod screen;
pub mod settings;
pub mod simd;
pub mod stats;
pub mod task;
#[cfg(test)]
mod testing;
pub mod text;
pub mod time;

/// The examples in docs/library.md, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/library.md")]
struct LibraryPage;
