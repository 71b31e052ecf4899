//! The first layer joined to the output unit.

use std::hint::black_box;

use super::{Head, Output};
use crate::net::{
    lanes::Lanes,
    perceptron::{Group, Layout, Lesson, QUADS, Quads},
};

/// The output unit alone.
#[derive(Clone, Debug)]
pub(in crate::net) struct Flat {
    output: Output,
    weights: Box<Quads>,
}

impl Head for Flat {
    /// Sixteen parts of the output unit's weighted sum.
    type Sums = Lanes;
    type Settled = Lanes;
    type Errors = f32;

    fn new(layout: &Layout, weights: &[f32]) -> Self {
        let mut quads = Quads::zeros();
        for ((quad, lane), weight) in layout.places().zip(&weights[layout.range("output.weight")]) {
            quads.0[quad].0[lane] = *weight;
        }
        Self { output: Output::new(layout, weights), weights: quads }
    }

    fn write(&self, layout: &Layout, weights: &mut [f32]) {
        for ((quad, lane), weight) in layout.places().zip(&mut weights[layout.range("output.weight")]) {
            *weight = self.weights.0[quad].0[lane];
        }
        weights[layout.range("output.bias")].fill(self.output.bias);
    }

    #[inline(always)]
    fn start(&self) -> Lanes {
        Lanes::ZERO
    }

    #[inline(always)]
    fn add(&self, sums: &mut Lanes, quads: [u16; 4], change: &Lanes) {
        *sums = sums.plus(self.weights.gather(quads), *change);
    }

    #[inline(always)]
    fn settle(&self, sums: &Lanes, blocks: &[[u16; 4]], changes: &[Lanes]) -> Lanes {
        let mut settled = *sums;
        for (quads, change) in blocks.iter().zip(changes) {
            self.add(&mut settled, *quads, change);
        }
        settled
    }

    #[inline(always)]
    fn settle_all(&self, values: &[Lanes], blocks: usize, boards: usize, settled: &mut [Lanes; 64]) {
        for (settled, values) in settled.iter_mut().zip(values.chunks_exact(blocks)).take(boards) {
            let mut sum = Lanes::ZERO;
            for (value, quads) in values.iter().zip(self.weights.0.as_chunks::<4>().0) {
                sum = sum.plus(Lanes::of_quads(quads.each_ref()), *value);
            }
            *settled = sum;
        }
    }

    #[inline(always)]
    fn part(&self, settled: &Lanes) -> Lanes {
        *settled
    }

    #[inline(always)]
    fn bias(&self) -> f32 {
        self.output.bias
    }

    #[inline(always)]
    fn begin(&mut self, sums: &Lanes, lesson: Lesson) -> f32 {
        self.output.begin(sums.sum() + self.output.bias, lesson)
    }

    #[inline(always)]
    fn back(&self, step: &f32, group: usize) -> Lanes {
        self.weights.group(group).map(|weight| weight * step)
    }

    #[inline(always)]
    fn swap(&mut self, left: usize, right: usize) {
        self.weights.0.swap(left % QUADS, right % QUADS);
    }

    #[inline(always)]
    fn learn<const V: usize>(&mut self, step: &f32, groups: &[Group]) -> [Lanes; V] {
        let mut sums = [Lanes::ZERO; V];
        for (group, quads) in groups.iter().zip(self.weights.0.as_chunks_mut::<4>().0) {
            // Group by group: left to itself the compiler gathers the same lane of several groups.
            let quads = black_box(quads);
            let learnt = Lanes::of_quads(quads.each_ref()).plus(group.past, Lanes::splat(*step));
            *quads = std::array::from_fn(|index| learnt.quad(index));
            for view in 0..V {
                sums[view] = sums[view].plus(learnt, group.values[view]);
            }
        }
        sums
    }
}
