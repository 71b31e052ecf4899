//! Experiment `evolve`: anybody's fitness function. This is its pure core: genomes, evaluations, algorithms, and
//! problems that are built in.

pub mod algorithm;
pub mod evaluation;
pub mod genome;
pub mod pareto;
pub mod problem;
pub mod variation;

/// The messages of `evolve.proto`.
#[allow(missing_docs)]
#[rustfmt::skip]
pub mod messages;
