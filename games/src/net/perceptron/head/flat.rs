//! The output unit directly above the first layer.

use fearless_simd::prelude::*;

use super::{DenseHead, Head, Output};
use crate::net::{
    activation::Curve,
    lanes::{CrossLane, LANES, Vector, zero},
    perceptron::{Group, Layout, QUADS, Quads, Update},
};

/// The output unit alone.
#[derive(Clone, Debug)]
pub(in crate::net) struct Flat<S> {
    simd: S,
    output: Output,
    /// The activation of the first layer.
    curve: Curve,
    weights: Box<Quads>,
}

impl<S: Simd> Head<S> for Flat<S> {
    /// Sixteen parts of the output unit's weighted sum.
    type Sums = Vector<S>;
    type Preactivations = Vector<S>;
    type Errors = f32;
    const CHANGES_FIRST: bool = false;

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
    fn start(&self) -> Vector<S> {
        zero(self.simd)
    }

    #[inline(always)]
    fn add(&self, sums: &mut Vector<S>, quads: [u16; 4], change: Vector<S>) {
        *sums = self.weights.gather(self.simd, quads).fma(change, *sums);
    }

    #[inline(always)]
    fn zero_preactivations(&self) -> Vector<S> {
        zero(self.simd)
    }

    #[inline(always)]
    fn preactivations(&self, sums: &Vector<S>, blocks: &[[u16; 4]], change: impl Fn(usize) -> Vector<S>) -> Vector<S> {
        let mut preactivations = *sums;
        for (at, quads) in blocks.iter().enumerate() {
            self.add(&mut preactivations, *quads, change(at));
        }
        preactivations
    }

    #[inline(always)]
    fn parts(&self, preactivations: &[Vector<S>; LANES], _: usize) -> [Vector<S>; LANES] {
        *preactivations
    }

    #[inline(always)]
    fn bias(&self) -> f32 {
        self.output.bias
    }

    #[inline(always)]
    fn begin(&mut self, sums: &Vector<S>, update: Update) -> f32 {
        self.output.begin(sums.sum() + self.output.bias, update)
    }

    #[inline(always)]
    fn back(&self, step: &f32, group: usize) -> Vector<S> {
        self.weights.group(self.simd, group) * *step
    }

    #[inline(always)]
    fn swap(&mut self, left: usize, right: usize) {
        self.weights.0.swap(left % QUADS, right % QUADS);
    }

    #[inline(always)]
    fn learn<const V: usize>(&mut self, step: &f32, groups: &[Group<S>]) -> [Vector<S>; V] {
        let mut sums = [zero(self.simd); V];
        for (index, group) in groups.iter().enumerate() {
            let learnt = group.past.fma(*step, self.weights.group(self.simd, index));
            self.weights.set_group(index, learnt);
            for view in 0..V {
                sums[view] = learnt.fma(group.values[view], sums[view]);
            }
        }
        sums
    }
}

impl<S: Simd> DenseHead<S> for Flat<S> {
    #[inline(always)]
    fn preactivations_all(
        &mut self,
        boards: usize,
        width: usize,
        below: impl Fn(usize, usize) -> Vector<S>,
        preactivations: &mut [Vector<S>; 64],
    ) {
        for (board, preactivations) in preactivations.iter_mut().enumerate().take(boards) {
            let mut sum = zero(self.simd);
            self.curve.apply_each(
                width,
                #[inline(always)]
                |group| below(board, group),
                #[inline(always)]
                |group, value| sum = self.weights.group(self.simd, group).fma(value, sum),
            );
            *preactivations = sum;
        }
    }
}
