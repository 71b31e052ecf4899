//! The experiments that come with evoxo: one folder each, and one line in [`registry`]. The largest are crates of their own
//! beside this one, so that a change of one does not build and test the others.
//!
//! The folder of a kind has its settings, its messages (`KIND.proto`), its tasks with their kernels and reference
//! implementations, its state machine, its cards and its report.
//!
//! Invariant: as in `evoxo-common`, no code here uses a clock, files, sockets, threads or the environment.

pub mod calls;
pub mod dispatch;
pub use evoxo_evolve as evolve;
pub mod invincible;
pub mod league;
#[cfg(test)]
mod lineage_tests;
pub mod menace;
pub use evoxo_nndtf as nndtf;
pub mod rules;
pub use evoxo_td3d as td3d;
pub mod ternary;
#[cfg(test)]
mod testing;

use evolve::algorithm::AlgorithmKind;
use evoxo_common::experiment::{Kind, Registry};

/// All kinds.
static KINDS: [Kind; 10] = [
    dispatch::KIND,
    evolve::KIND,
    invincible::KIND,
    league::KIND,
    menace::KIND,
    nndtf::KIND,
    rules::KIND,
    td3d::KIND,
    ternary::KIND,
    calls::KIND,
];

/// The experiments that come with evoxo, and the games that their champions play.
#[must_use]
pub fn registry() -> Registry {
    Registry::new(&KINDS).playing(&evoxo_games::answer::PLAY)
}

/// The same, with algorithms of another crate for the experiment [`evolve`].
///
/// # Panics
/// If a name or a setting of an algorithm is taken, or if `evolve` has been used before.
#[must_use]
pub fn registry_with(algorithms: &'static [AlgorithmKind]) -> Registry {
    evolve::add(algorithms);
    registry()
}
