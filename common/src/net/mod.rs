//! Networks that value boards, and learn to.
//!
//! An [`Architecture`] says what a network is made of; its weights are one flat vector, in the order of
//! [`Architecture::tensors`]. An [`Engine`] is a network in play: it keeps what it knows of the board, values all moves at
//! once, and learns. `plain` is the slow twin of every architecture, written for the eye; `perceptron`, `shared` and
//! `tuples` are fast.

mod activation;
mod architecture;
mod lanes;
pub mod learn;
mod perceptron;
pub mod plain;
mod shared;
#[cfg(test)]
mod tests;
mod tuples;

pub use activation::Activation;
pub use architecture::{Architecture, First, Tensor};

use crate::{
    board::{Board, Side},
    simd::kernel,
};
use perceptron::{Deep, Dense, Flat, Lines};
use shared::Shared;
use tuples::{Filters, Linear};

/// A network in play and in learning, on one board that begins empty.
pub trait Engine {
    /// Goes back to the empty board.
    fn reset(&mut self);

    /// For each legal cell: the output unit's weighted sum, before its activation, of the board after the side to move has
    /// taken that cell, seen by that side. What stands at other cells is left undefined.
    fn values(&mut self, legal: u64, out: &mut [f32; 64]);

    /// The side to move takes the cell, which is free.
    fn play(&mut self, cell: u8);

    /// One step of online backpropagation: the value of `board`, as `side` sees it, goes towards `target` by gradient
    /// descent on half the squared error, with this rate. `derivative` says whether the slope of the output unit's
    /// activation is a factor of the error. The board is one of this game up to now; it may be the present one.
    fn learn(&mut self, board: Board, side: Side, target: f32, rate: f32, derivative: bool);

    /// The weights as they are, in canonical order.
    fn weights(&self) -> Vec<f32>;
}

/// An engine that can be kept for later.
pub trait Kept: Engine + Clone + 'static {}

impl<E: Engine + Clone + 'static> Kept for E {}

/// What to do with an engine, whichever it is.
pub trait Job {
    /// What comes of it.
    type Output;

    /// Does it. Should be `#[inline(always)]`, as everything that is called from it in loops: then it is compiled once for
    /// each engine and each instruction set, with nothing between the loop of games and the arithmetic.
    fn run<E: Kept>(self, engine: &mut E) -> Self::Output;
}

/// Makes the fastest engine there is for a network, and does the job in it with the best instructions allowed.
///
/// # Panics
/// If [`Architecture::check`] refuses the architecture, or it has another number of weights.
pub fn with_engine<J: Job>(architecture: &Architecture, weights: &[f32], job: J) -> J::Output {
    assert_eq!(weights.len(), architecture.parameters(), "weights of another network");
    match (architecture.first, architecture.second) {
        (First::Lines { .. }, _) if architecture.shared => run(&mut Shared::new(architecture, weights), job),
        (First::Lines { .. }, 0) => run(&mut Lines::<Flat>::new(architecture, weights), job),
        (First::Lines { .. }, 1..=32) => run(&mut Lines::<Deep<2>>::new(architecture, weights), job),
        (First::Lines { .. }, _) => run(&mut Lines::<Deep<4>>::new(architecture, weights), job),
        (First::Dense { .. }, 0) => run(&mut Dense::<Flat>::new(architecture, weights), job),
        (First::Dense { .. }, _) => run(&mut Dense::<Deep<4>>::new(architecture, weights), job),
        (First::Tuples { .. }, 0) => run(&mut Linear::new(architecture, weights), job),
        (First::Tuples { .. }, _) => run(&mut Filters::new(architecture, weights), job),
    }
}

/// The engine of a network, to be asked now and then: whoever plays many games has them played by a [`Job`].
///
/// # Panics
/// As [`with_engine`].
#[must_use]
pub fn engine(architecture: &Architecture, weights: &[f32]) -> Box<dyn Engine> {
    struct Keep;
    impl Job for Keep {
        type Output = Box<dyn Engine>;

        fn run<E: Kept>(self, engine: &mut E) -> Box<dyn Engine> {
            Box::new(engine.clone())
        }
    }
    with_engine(architecture, weights, Keep)
}

kernel! {
    fn run<E: Kept, J: Job>(engine: &mut E, job: J) -> J::Output { job.run(engine) }
}
