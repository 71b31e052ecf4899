//! A worker: takes tasks from a coordinator, computes them on one OS thread per slot, gives the outputs back.
//!
//! It is stateless: what it computes is a function of the bytes it was sent. [`core`] decides everything and does
//! nothing; `link` (the stream), `pool` (the threads) and [`daemon`] (the loop between them) do what it decides.

pub mod cli;
pub mod core;
pub mod daemon;
mod link;
mod pool;

/// Version and commit of this build.
pub const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("EVOXO_COMMIT"), ")");
