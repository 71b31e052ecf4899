//! Tables whose entries are added up, without a hidden layer.

use super::{Views, structure};
use crate::{
    board::{Board, Side},
    net::{Architecture, Engine, activation::Curve},
};

/// A linear n-tuple network. If weights are shared over the symmetries, all images of a configuration have one weight, so the
/// sum over all images of the board is the sum over its lines.
#[derive(Clone, Debug)]
pub(in crate::net) struct Linear {
    views: Views,
    /// For each configuration: the index of its weight.
    indices: Vec<u32>,
    weights: Vec<f32>,
    bias: Option<f32>,
    curve: Curve,
    slope: f32,
}

impl Linear {
    pub(in crate::net) fn new(architecture: &Architecture, weights: &[f32]) -> Self {
        let structure = structure(architecture);
        let indices = structure.orbits.ranks();
        let (weights, bias) = if architecture.biases {
            let (bias, weights) = weights.split_last().expect("a network with biases has at least one weight");
            (weights, Some(*bias))
        } else {
            (weights, None)
        };
        let activation = architecture.activation;
        let (curve, slope) = (activation.curve(), activation.slope());
        Self { views: structure.views.clone(), indices, weights: weights.to_vec(), bias, curve, slope }
    }

    #[inline(always)]
    fn entry(&self, configuration: u32) -> f32 {
        self.weights[self.indices[configuration as usize] as usize]
    }

    /// The output unit's sum: four partial sums of lines, then the bias.
    #[inline(always)]
    fn sum(&self, configurations: &[u32]) -> f32 {
        let mut sums = [0.0; 4];
        let (chunks, rest) = configurations.as_chunks::<4>();
        for chunk in chunks {
            for lane in 0..4 {
                sums[lane] += self.entry(chunk[lane]);
            }
        }
        for (lane, configuration) in rest.iter().enumerate() {
            sums[lane] += self.entry(*configuration);
        }
        (sums[0] + sums[2]) + (sums[1] + sums[3]) + self.bias.unwrap_or(0.0)
    }
}

impl Engine for Linear {
    #[inline(always)]
    fn reset(&mut self) {
        self.views.reset();
    }

    #[inline(always)]
    fn values(&mut self, legal: u64, out: &mut [f32; 64]) {
        let now = self.views.now(self.views.to_move());
        let sum = self.sum(now);
        let mut rest = legal;
        while rest != 0 {
            let cell = rest.trailing_zeros();
            let mut value = sum;
            for change in self.views.changes(cell) {
                let before = now[change.line as usize];
                value += self.entry(before.wrapping_add(change.own)) - self.entry(before);
            }
            out[cell as usize % 64] = value;
            rest &= rest - 1;
        }
    }

    #[inline(always)]
    fn value(&mut self, side: Side) -> f32 {
        self.sum(self.views.now(side))
    }

    #[inline(always)]
    fn play(&mut self, cell: u8) {
        self.views.play(cell);
    }

    #[inline(always)]
    fn learn(&mut self, board: Board, side: Side, target: f32, rate: f32, derivative: bool) {
        let configurations = self.views.of(board, side);
        let value = self.curve.apply(self.sum(configurations));
        let slope = if derivative { self.slope * (1.0 - value * value) } else { 1.0 };
        let step = rate * (target - value) * slope;
        for configuration in configurations {
            self.weights[self.indices[*configuration as usize] as usize] += step;
        }
        if let Some(bias) = &mut self.bias {
            *bias += step;
        }
    }

    fn weights(&self) -> Vec<f32> {
        self.weights.iter().copied().chain(self.bias).collect()
    }
}
