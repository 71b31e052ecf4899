//! A worker: it gets tasks from a coordinator, computes them on one OS thread per slot, and returns the outputs.
//!
//! The crate knows no experiments: the program passes a registry of kinds. A worker is stateless: an output is a function of
//! the bytes of its task. [`core`] makes all decisions; `link` (the stream), `pool` (the threads) and [`daemon`] (the loop
//! between them) carry them out.

pub mod cli;
pub mod core;
pub mod daemon;
mod link;
mod pool;
mod programs;
mod who;

pub use pool::compute_here;
pub use programs::{Processes, Program, end_programs_on_request, introduce};
