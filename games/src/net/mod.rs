//! Networks that value boards, and learn to.
//!
//! An [`Architecture`] says what a network is made of; its weights are one flat vector, in the order of
//! [`Architecture::tensors`]. An [`Engine`] is a network in play: it keeps what it knows of the board, values all moves at
//! once, and learns. `reference` is the reference implementation of every architecture, written for the eye; `perceptron`,
//! `shared` and `tuples` are fast. A [`Network`] with its weights is a file, a card and a player.

mod activation;
mod architecture;
mod card;
mod dispatch;
mod engine;
mod file;
mod lanes;
pub mod learn;
mod perceptron;
pub mod reference;
mod safetensors;
mod shared;
#[cfg(test)]
mod tests;
mod tuples;
mod weights;

pub use activation::Activation;
pub use architecture::{Architecture, First, Tensor};
pub use card::CARD;
pub use engine::{Engine, Job};
pub use file::Network;

use crate::board::{Board, Side};
use dispatch::dispatch;
use lanes::Simd;
use perceptron::{Deep, Dense, Flat, Lines};
use shared::Shared;
use tuples::{Filters, Linear};

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
        // Some numbers of blocks of 16 units have loops of fixed length, which are 5 to 10 % faster.
        (First::Dense { units: 49..=64 }, 0) => {
            task.run(simd, Dense::<S, Flat<S>, 4>::new(simd, architecture, weights))
        }
        (First::Dense { units: 161..=176 }, 0) => {
            task.run(simd, Dense::<S, Flat<S>, 11>::new(simd, architecture, weights))
        }
        (First::Dense { .. }, 0) => task.run(simd, Dense::<S, Flat<S>, 0>::new(simd, architecture, weights)),
        (First::Dense { units: 81..=96 }, _) => {
            task.run(simd, Dense::<S, Deep<S, 4>, 6>::new(simd, architecture, weights))
        }
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
