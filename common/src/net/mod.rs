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
    simd::dispatch,
};
use lanes::Simd;
use perceptron::{Deep, Dense, Flat, Lines};
use shared::Shared;
use tuples::{Filters, Linear};

/// A network in play and in learning, on one board that begins empty.
pub trait Engine: 'static {
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

/// What to do with an engine, whichever it is.
pub trait Job {
    /// What comes of it.
    type Output;

    /// Does it. Should be `#[inline(always)]`, as everything that is called from it in loops: then it is compiled once for
    /// each engine and each instruction set, with nothing between the loop of games and the arithmetic.
    fn run<E: Engine>(self, engine: &mut E) -> Self::Output;
}

/// Makes the fastest engine there is for a network, and does the job in it with the best instructions allowed.
///
/// # Panics
/// If [`Architecture::check`] refuses the architecture, or it has another number of weights.
pub fn with_engine<J: Job>(architecture: &Architecture, weights: &[f32], job: J) -> J::Output {
    dispatch!(simd => choose(simd, architecture, weights, Direct(job)))
}

/// The engine of a network, to be asked now and then: whoever plays many games has them played by a [`Job`].
///
/// # Panics
/// As [`with_engine`].
#[must_use]
pub fn engine(architecture: &Architecture, weights: &[f32]) -> Box<dyn Engine> {
    dispatch!(simd => choose(simd, architecture, weights, Keep))
}

/// What to do with an engine for this instruction set.
trait Task<S: Simd> {
    type Output;

    fn run<E: Engine>(self, simd: S, engine: E) -> Self::Output;
}

/// Makes the engine and does something with it.
#[inline(always)]
fn choose<S: Simd, T: Task<S>>(simd: S, architecture: &Architecture, weights: &[f32], task: T) -> T::Output {
    assert_eq!(weights.len(), architecture.parameters(), "weights of another network");
    match (architecture.first, architecture.second) {
        (First::Lines { .. }, _) if architecture.shared => task.run(simd, Shared::new(simd, architecture, weights)),
        (First::Lines { .. }, 0) => task.run(simd, Lines::<S, Flat<S>>::new(simd, architecture, weights)),
        (First::Lines { .. }, 1..=32) => task.run(simd, Lines::<S, Deep<S, 2>>::new(simd, architecture, weights)),
        (First::Lines { .. }, _) => task.run(simd, Lines::<S, Deep<S, 4>>::new(simd, architecture, weights)),
        // Those of the paper have loops of fixed length.
        (First::Dense { units: 50 }, 0) => task.run(simd, Dense::<S, Flat<S>, 4>::new(simd, architecture, weights)),
        (First::Dense { units: 169 }, 0) => task.run(simd, Dense::<S, Flat<S>, 11>::new(simd, architecture, weights)),
        (First::Dense { .. }, 0) => task.run(simd, Dense::<S, Flat<S>, 0>::new(simd, architecture, weights)),
        (First::Dense { units: 95 }, _) => task.run(simd, Dense::<S, Deep<S, 4>, 6>::new(simd, architecture, weights)),
        (First::Dense { .. }, _) => task.run(simd, Dense::<S, Deep<S, 4>, 0>::new(simd, architecture, weights)),
        (First::Tuples { .. }, 0) => task.run(simd, Linear::new(architecture, weights)),
        (First::Tuples { .. }, _) => task.run(simd, Filters::new(simd, architecture, weights)),
    }
}

/// The job itself.
struct Direct<J>(J);

impl<S: Simd, J: Job> Task<S> for Direct<J> {
    type Output = J::Output;

    #[inline(always)]
    fn run<E: Engine>(self, simd: S, mut engine: E) -> J::Output {
        // Each engine apart: together they would be one function that takes long to compile.
        simd.vectorize(
            #[inline(always)]
            || self.0.run(&mut engine),
        )
    }
}

/// Keeps the engine.
struct Keep;

impl<S: Simd> Task<S> for Keep {
    type Output = Box<dyn Engine>;

    #[inline(always)]
    fn run<E: Engine>(self, simd: S, engine: E) -> Box<dyn Engine> {
        Box::new(Entered { simd, engine })
    }
}

/// An engine that is called from where the instruction set is not known.
struct Entered<S, E> {
    simd: S,
    engine: E,
}

impl<S: Simd, E: Engine> Engine for Entered<S, E> {
    fn reset(&mut self) {
        self.simd.vectorize(
            #[inline(always)]
            || self.engine.reset(),
        );
    }

    fn values(&mut self, legal: u64, out: &mut [f32; 64]) {
        self.simd.vectorize(
            #[inline(always)]
            || self.engine.values(legal, out),
        );
    }

    fn play(&mut self, cell: u8) {
        self.simd.vectorize(
            #[inline(always)]
            || self.engine.play(cell),
        );
    }

    fn learn(&mut self, board: Board, side: Side, target: f32, rate: f32, derivative: bool) {
        self.simd.vectorize(
            #[inline(always)]
            || self.engine.learn(board, side, target, rate, derivative),
        );
    }

    fn weights(&self) -> Vec<f32> {
        self.engine.weights()
    }
}
