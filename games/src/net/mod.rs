//! Networks that value boards and learn by playing.
//!
//! An [`Architecture`] describes the layers of a network; its weights are one flat vector, in the order of
//! [`Architecture::tensors`]. An [`Engine`] is a network in play: it caches its sums for the current board, values all moves
//! at once, and learns. `reference` is the reference implementation of every architecture, written for clarity; `perceptron`,
//! `shared` and `tuples` are fast. A [`Network`] is an architecture with weights: a file, a card and a player.
//!
//! # Terms of the fast implementations
//!
//! - **lane**: one of the sixteen numbers of a SIMD *vector* (`lanes::Vector`).
//! - **quad**: four units of the first layer that read the same cells, or their four numbers: a quarter of a vector. The
//!   detectors of a line are in one or more quads, its *parts*.
//! - **group**: sixteen units whose numbers fill one vector. In the first layer these are four quads that are adjacent in
//!   memory.
//! - **block**: up to four quads of detectors that read the same cell, wherever they are in memory. They are gathered into a
//!   vector to be computed, and scattered back.
//! - **tile**: the 4 x 4 weights from one quad to four units of the second layer, as one vector. Lane 4 u + d is the weight
//!   from detector d to unit u.
//! - **bank**: as many filters as have their weights in the same vectors: four in `shared`, eight in `tuples`.
//! - **view**: the cached sums as one side sees the board.
//! - **part** of a sum: the sum over some of its addends. The lanes of a vector often are sixteen parts of one sum.
//! - **padding**: places that exist only to fill a quad, group, block or bank. Their weights are 0 and stay 0.

mod activation;
mod architecture;
mod card;
mod dispatch;
mod engine;
mod file;
pub mod imitate;
mod lanes;
pub mod learn;
mod perceptron;
mod picture;
mod planes;
pub mod reference;
mod safetensors;
mod shared;
#[cfg(test)]
mod tests;
mod tuples;
mod unshared;
mod weights;

pub use activation::Activation;
pub use architecture::{Architecture, First, Tensor};
pub use card::CARD;
pub use engine::Engine;
pub use file::Network;

use crate::board::{Board, Side};
use dispatch::dispatch;
use lanes::Simd;
use perceptron::{Deep, Dense, Flat, Head, Lines, Planes};
use shared::Shared;
use tuples::{Filters, Linear};

/// The fastest engine for a network, with the best allowed instruction set.
///
/// # Panics
/// If [`Architecture::check`] rejects the architecture, or if the number of weights is not the architecture's.
#[must_use]
pub fn engine(architecture: &Architecture, weights: &[f32]) -> Box<dyn Engine> {
    dispatch!(simd => choose(simd, architecture, weights))
}

/// Selects and creates the engine.
#[inline(always)]
fn choose<S: Simd>(simd: S, architecture: &Architecture, weights: &[f32]) -> Box<dyn Engine> {
    assert_eq!(weights.len(), architecture.parameters(), "weights of another network");
    match (architecture.first, architecture.second) {
        (First::Lines { .. }, _) if architecture.shared => boxed(simd, Shared::new(simd, architecture, weights)),
        (First::Lines { .. }, 0) => lines::<S, Flat<S>>(simd, architecture, weights),
        (First::Lines { .. }, 1..=32) => lines::<S, Deep<S, 2, 4>>(simd, architecture, weights),
        (First::Lines { .. }, _) => lines::<S, Deep<S, 4, 4>>(simd, architecture, weights),
        (First::Planes { .. }, _) => lines::<S, Planes<S>>(simd, architecture, weights),
        // Loops of fixed length are 5 to 10 % faster, so common sizes have them.
        (First::Dense { units: 49..=64 }, 0) => boxed(simd, Dense::<S, Flat<S>, 4>::new(simd, architecture, weights)),
        (First::Dense { units: 161..=176 }, 0) => {
            boxed(simd, Dense::<S, Flat<S>, 11>::new(simd, architecture, weights))
        }
        (First::Dense { .. }, 0) => boxed(simd, Dense::<S, Flat<S>, 0>::new(simd, architecture, weights)),
        (First::Dense { units: 81..=96 }, 49..=52) => {
            boxed(simd, Dense::<S, Deep<S, 4, 1>, 6>::new(simd, architecture, weights))
        }
        (First::Dense { .. }, _) => boxed(simd, Dense::<S, Deep<S, 4, 4>, 0>::new(simd, architecture, weights)),
        (First::Tuples { .. }, 0) => boxed(simd, Linear::new(architecture, weights)),
        (First::Tuples { .. }, _) => boxed(simd, Filters::new(simd, architecture, weights)),
    }
}

/// A network over lines with this head. Without biases it has one view, known at compile time, which is about 5 % faster.
#[inline(always)]
fn lines<S: Simd, H: Head<S>>(simd: S, architecture: &Architecture, weights: &[f32]) -> Box<dyn Engine> {
    if architecture.biases {
        boxed(simd, Lines::<S, H, 2>::new(simd, architecture, weights))
    } else {
        boxed(simd, Lines::<S, H, 1>::new(simd, architecture, weights))
    }
}

/// Gives engines of different types one type. A call costs little compared with the work in it.
#[inline(always)]
fn boxed<S: Simd, E: Engine>(simd: S, engine: E) -> Box<dyn Engine> {
    Box::new(Vectorized { simd, engine })
}

/// An engine that enables its instruction set at each call. Everything that it calls in loops should be `#[inline(always)]`,
/// so that it is compiled for that instruction set, once for each engine.
struct Vectorized<S, E> {
    simd: S,
    engine: E,
}

impl<S: Simd, E: Engine> Engine for Vectorized<S, E> {
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

    fn value(&mut self, side: Side) -> f32 {
        self.simd.vectorize(
            #[inline(always)]
            || self.engine.value(side),
        )
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
