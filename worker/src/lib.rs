//! A worker: takes tasks from a coordinator, computes them on one OS thread per slot, gives the outputs back.
//!
//! It is stateless: what it computes is a function of the bytes it was sent. [`core`] decides everything and does
//! nothing; the rest does what the core decides and decides nothing.

pub mod core;
