//! A worker: takes tasks from a coordinator, computes them on one OS thread per slot, gives the outputs back.
//!
//! It names no experiment: the program that runs it hands it a registry of kinds. It is stateless: what it computes is a function of the bytes it was sent. [`core`] decides everything and does
//! nothing; `link` (the stream), `pool` (the threads) and [`daemon`] (the loop between them) do what it decides.

pub mod cli;
pub mod core;
pub mod daemon;
mod link;
mod pool;

pub use pool::compute_here;

/// Version and commit of this build.
pub const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("EVOXO_COMMIT"), ")");
