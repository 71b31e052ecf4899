//! The reference implementation of every network. Weights have double precision, and every value is recomputed from the
//! board.

mod layer;
mod shared;
mod tables;
#[cfg(test)]
mod tests;

pub use shared::Shared;
pub use tables::Tables;

use super::{Architecture, Engine, First};
use crate::board::{Board, Side, cells};
use layer::Layer;

/// A network that is written for clarity, not for speed.
pub trait Reference: Engine {
    /// The weighted sum of the output unit, before its activation, for a board as a side sees it.
    fn sum(&self, board: Board, side: Side) -> f64;
}

/// The reference implementation of a network.
///
/// # Panics
/// If [`Architecture::check`] rejects the architecture, or if the number of weights is not the architecture's.
#[must_use]
pub fn of(architecture: &Architecture, weights: &[f32]) -> Box<dyn Reference> {
    match architecture.first {
        First::Tuples { .. } => Box::new(Tables::new(architecture, weights)),
        _ if architecture.shared => Box::new(Shared::new(architecture, weights)),
        _ => Box::new(Plain::new(architecture, weights)),
    }
}

/// The reference implementation of networks of units that do not share weights.
#[derive(Clone, Debug)]
pub struct Plain {
    architecture: Architecture,
    layers: Vec<Layer>,
    weights: Vec<f64>,
    board: Board,
}

impl Plain {
    /// A network with these weights, in canonical order, before the first move.
    ///
    /// # Panics
    /// If [`Architecture::check`] rejects the architecture, if it has tables or shares weights, or if the number of weights
    /// is not the architecture's.
    #[must_use]
    pub fn new(architecture: &Architecture, weights: &[f32]) -> Self {
        assert_eq!(weights.len(), architecture.parameters(), "weights of another network");
        let weights = weights.iter().map(|weight| f64::from(*weight)).collect();
        Self { architecture: *architecture, layers: layer::layers(architecture), weights, board: Board::EMPTY }
    }

    /// The values of all layers below the output unit, inputs first, and the output unit's weighted sum.
    fn forward(&self, board: Board, side: Side) -> (Vec<Vec<f64>>, f64) {
        let mut values = vec![layer::inputs(board, side)];
        let (output, hidden) = self.layers.split_last().expect("a network has an output unit");
        for (index, layer) in hidden.iter().enumerate() {
            let sums = layer.sums(&self.weights, &values[index]);
            values.push(sums.into_iter().map(|sum| self.architecture.activation.apply_f64(sum)).collect());
        }
        let sum = output.sums(&self.weights, &values[hidden.len()])[0];
        (values, sum)
    }
}

impl Reference for Plain {
    fn sum(&self, board: Board, side: Side) -> f64 {
        self.forward(board, side).1
    }
}

impl Engine for Plain {
    fn reset(&mut self) {
        self.board = Board::EMPTY;
    }

    fn values(&mut self, legal: u64, out: &mut [f32; 64]) {
        for cell in cells(legal) {
            out[usize::from(cell)] = self.sum(self.board.play(cell), self.board.to_move()) as f32;
        }
    }

    fn value(&mut self, side: Side) -> f32 {
        self.sum(self.board, side) as f32
    }

    fn play(&mut self, cell: u8) {
        self.board = self.board.play(cell);
    }

    fn learn(&mut self, board: Board, side: Side, target: f32, rate: f32, derivative: bool) {
        let activation = self.architecture.activation;
        let slope = |value: f64| f64::from(activation.slope()) * (1.0 - value * value);
        let (values, sum) = self.forward(board, side);
        let value = activation.apply_f64(sum);
        let error = value - f64::from(target);
        let mut errors = vec![if derivative { error * slope(value) } else { error }];
        for (layer, below) in self.layers.iter().zip(&values).rev() {
            let back = layer.errors(&self.weights, below, &errors);
            layer.descend(&mut self.weights, below, &errors, -f64::from(rate));
            errors = back.iter().zip(below).map(|(back, value)| back * slope(*value)).collect();
        }
    }

    fn weights(&self) -> Vec<f32> {
        self.weights.iter().map(|weight| *weight as f32).collect()
    }
}
