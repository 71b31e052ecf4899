//! The first layer joined to the output unit.

use fearless_simd::prelude::*;

use super::{Head, Output};
use crate::net::{
    activation::Curve,
    lanes::{Across, Lanes, zero},
    perceptron::{Group, Layout, Lesson, QUADS, Quads},
};

/// The output unit alone.
#[derive(Clone, Debug)]
pub(in crate::net) struct Flat<S> {
    simd: S,
    output: Output,
    /// Of the units below.
    curve: Curve,
    weights: Box<Quads>,
}

impl<S: Simd> Head<S> for Flat<S> {
    /// Sixteen parts of the output unit's weighted sum.
    type Sums = Lanes<S>;
    type Settled = Lanes<S>;
    type Errors = f32;

    fn new(simd: S, layout: &Layout, weights: &[f32]) -> Self {
        let mut quads = Quads::zeros();
        for ((quad, lane), weight) in layout.places().zip(&weights[layout.range("output.weight")]) {
            quads.0[quad][lane] = *weight;
        }
        let curve = layout.architecture.activation.curve();
        Self { simd, output: Output::new(layout, weights), curve, weights: quads }
    }

    fn write(&self, layout: &Layout, weights: &mut [f32]) {
        for ((quad, lane), weight) in layout.places().zip(&mut weights[layout.range("output.weight")]) {
            *weight = self.weights.0[quad][lane];
        }
        weights[layout.range("output.bias")].fill(self.output.bias);
    }

    #[inline(always)]
    fn start(&self) -> Lanes<S> {
        zero(self.simd)
    }

    #[inline(always)]
    fn add(&self, sums: &mut Lanes<S>, quads: [u16; 4], change: Lanes<S>) {
        *sums += self.weights.gather(self.simd, quads) * change;
    }

    #[inline(always)]
    fn unsettled(&self) -> Lanes<S> {
        zero(self.simd)
    }

    #[inline(always)]
    fn settle(&self, sums: &Lanes<S>, blocks: &[[u16; 4]], changes: &[Lanes<S>]) -> Lanes<S> {
        let mut settled = *sums;
        for (quads, change) in blocks.iter().zip(changes) {
            self.add(&mut settled, *quads, *change);
        }
        settled
    }

    #[inline(always)]
    fn settle_all(
        &mut self,
        boards: usize,
        blocks: usize,
        below: impl Fn(usize, usize) -> Lanes<S>,
        settled: &mut [Lanes<S>; 64],
    ) {
        for (board, settled) in settled.iter_mut().enumerate().take(boards) {
            let mut sum = zero(self.simd);
            self.curve.each(
                blocks,
                #[inline(always)]
                |block| below(board, block),
                #[inline(always)]
                |block, value| sum += self.weights.group(self.simd, block) * value,
            );
            *settled = sum;
        }
    }

    #[inline(always)]
    fn part(&self, settled: &Lanes<S>) -> Lanes<S> {
        *settled
    }

    #[inline(always)]
    fn bias(&self) -> f32 {
        self.output.bias
    }

    #[inline(always)]
    fn begin(&mut self, sums: &Lanes<S>, lesson: Lesson) -> f32 {
        self.output.begin(sums.sum() + self.output.bias, lesson)
    }

    #[inline(always)]
    fn back(&self, step: &f32, group: usize) -> Lanes<S> {
        self.weights.group(self.simd, group) * *step
    }

    #[inline(always)]
    fn swap(&mut self, left: usize, right: usize) {
        self.weights.0.swap(left % QUADS, right % QUADS);
    }

    #[inline(always)]
    fn learn<const V: usize>(&mut self, step: &f32, groups: &[Group<S>]) -> [Lanes<S>; V] {
        let mut sums = [zero(self.simd); V];
        for (index, group) in groups.iter().enumerate() {
            let learnt = self.weights.group(self.simd, index) + group.past * *step;
            self.weights.set_group(index, learnt);
            for view in 0..V {
                sums[view] += learnt * group.values[view];
            }
        }
        sums
    }
}
