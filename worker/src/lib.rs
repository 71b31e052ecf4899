//! A worker: gets tasks from a coordinator, computes them on one OS thread per slot, and returns the outputs.
//!
//! It does not know the experiments: its program passes a registry of kinds. It is stateless: an output is a function
//! of the bytes of its task. [`core`] decides everything; `link` (the stream), `pool` (the threads) and [`daemon`] (the
//! loop between them) carry it out.

pub mod cli;
pub mod core;
pub mod daemon;
mod link;
mod pool;
mod programs;
mod who;

pub use pool::compute_here;
pub use programs::{Processes, Program, end_programs_on_request, introduce};

/// Version and commit of this build.
pub const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("EVOXO_COMMIT"), ")");
