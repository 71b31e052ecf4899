//! The reference implementation of networks over lines that share weights. It is the same network without shared weights, and
//! after each step all copies of a shared weight are made equal.

use super::{Plain, Reference};
use crate::{
    board::{Board, Side},
    net::{Architecture, Engine, shared::Ties},
};

/// The reference implementation of networks over lines that share weights.
#[derive(Clone, Debug)]
pub struct Shared {
    ties: Vec<usize>,
    weights: Vec<f64>,
    network: Plain,
}

impl Shared {
    /// A network with these weights, in canonical order, before the first move.
    ///
    /// # Panics
    /// If [`Architecture::check`] rejects the architecture, if it is not one over lines that shares weights, or if the number
    /// of weights is not the architecture's.
    #[must_use]
    pub fn new(architecture: &Architecture, weights: &[f32]) -> Self {
        let Ties { unshared, weights: ties, .. } = Ties::new(architecture);
        let all: Vec<f32> = ties.iter().map(|tie| weights[*tie]).collect();
        let network = Plain::new(&unshared, &all);
        Self { ties, weights: weights.iter().map(|weight| f64::from(*weight)).collect(), network }
    }
}

impl Reference for Shared {
    fn sum(&self, board: Board, side: Side) -> f64 {
        self.network.sum(board, side)
    }
}

impl Engine for Shared {
    fn reset(&mut self) {
        self.network.reset();
    }

    fn values(&mut self, legal: u64, out: &mut [f32; 64]) {
        self.network.values(legal, out);
    }

    fn value(&mut self, side: Side) -> f32 {
        self.network.value(side)
    }

    fn play(&mut self, cell: u8) {
        self.network.play(cell);
    }

    /// The derivative by a shared weight is the sum of the derivatives by its copies.
    fn learn(&mut self, board: Board, side: Side, target: f32, rate: f32, derivative: bool) {
        self.network.learn(board, side, target, rate, derivative);
        let mut steps = vec![0.0; self.weights.len()];
        for (tie, weight) in self.ties.iter().zip(&self.network.weights) {
            steps[*tie] += weight - self.weights[*tie];
        }
        self.weights.iter_mut().zip(steps).for_each(|(weight, step)| *weight += step);
        for (tie, weight) in self.ties.iter().zip(&mut self.network.weights) {
            *weight = self.weights[*tie];
        }
    }

    fn weights(&self) -> Vec<f32> {
        self.weights.iter().map(|weight| *weight as f32).collect()
    }
}
