//! The network in play and in learning.

use fearless_simd::prelude::*;

use super::{Shared, output_weights, quads, weights};
use crate::{
    board::{Board, Side, cells},
    net::{
        Engine,
        lanes::{CrossLane, LANES, Quad, sums_within_quads, zero},
        perceptron::write_outputs,
        shared::gather,
    },
};

impl<S: Simd> Shared<S> {
    /// The output unit's weighted sum without its bias, for the board that the view shows.
    #[inline(always)]
    fn sum(&mut self, view: usize) -> f32 {
        let view = &self.views[view];
        let mut parts = view.direct;
        for upper in 0..self.head.group_count() {
            parts += self.head.part_of(upper, sums_within_quads(&view.above[upper]));
        }
        parts.sum()
    }
}

impl<S: Simd> Engine for Shared<S> {
    #[inline(always)]
    fn reset(&mut self) {
        let zeros = zero(self.simd);
        self.board = Board::EMPTY;
        self.inputs.fill(zeros);
        self.active.clear();
        self.is_active.fill(false);
        // The padding group never becomes active, so it counts as active already.
        *self.is_active.last_mut().expect("there is always the padding group") = true;
        self.scratch.steps.fill(zeros);
        self.scratch.mirrored_values.fill(Quad::default());
        for view in &mut self.views {
            view.taken = None;
            view.sums.fill(zeros);
            view.values.fill(zeros);
        }
        if self.biased {
            self.active.extend(0..(self.classes.len() - 1) as u16);
            self.is_active.fill(true);
        }
    }

    /// Computes each stage for all moves before the next stage, as without sharing.
    #[inline(always)]
    fn values(&mut self, legal: u64, out: &mut [f32; 64]) {
        let (simd, perspective) = (self.simd, self.perspective(self.board.to_move()));
        self.bring_to(perspective.view, self.board.occupied());
        let view = &self.views[perspective.view];
        let upper_groups = self.head.group_count();
        let mut order = [0_u8; 64];
        let (mut count, mut at) = (0, 0);
        for cell in cells(legal) {
            let blocks = &self.blocks[self.blocks_of(cell)];
            let changes = &mut self.scratch.changes[at..at + blocks.len()];
            let mut direct = view.direct;
            for (change, block) in changes.iter_mut().zip(blocks) {
                let quads = quads(block);
                let weights = weights(simd, &self.first, block);
                let sums = weights.fma(perspective.sign, gather(simd, &view.sums, quads));
                *change = self.curve.apply_vector(sums) - gather(simd, &view.values, quads);
                if upper_groups == 0 {
                    let weights = output_weights(simd, &self.flat, &self.classes, block);
                    direct = weights.fma(*change, direct);
                }
            }
            if upper_groups == 0 {
                self.scratch.preactivations[count % 64] = direct;
            }
            at += blocks.len();
            order[count % 64] = cell;
            count += 1;
        }
        let order = &order[..count.min(64)];
        at = 0;
        for (index, cell) in order.iter().enumerate() {
            let blocks = &self.blocks[self.blocks_of(*cell)];
            let changes = &self.scratch.changes[at..at + blocks.len()];
            at += blocks.len();
            let changes = blocks.iter().map(quads).zip(changes);
            let preactivations = &mut self.scratch.preactivations[index * upper_groups..][..upper_groups];
            self.head.add(
                &view.above,
                preactivations,
                changes,
                #[inline(always)]
                |sums| sums_within_quads(sums),
            );
        }
        for (index, cells) in order.chunks(LANES).enumerate() {
            let mut parts = [zero(self.simd); LANES];
            for (at, part) in parts.iter_mut().take(cells.len()).enumerate() {
                let index = LANES * index + at;
                let preactivations = &self.scratch.preactivations;
                *part = if upper_groups == 0 {
                    preactivations[index]
                } else {
                    self.head.part(&preactivations[index * upper_groups..][..upper_groups])
                };
            }
            write_outputs(cells, &parts, perspective.sign, self.bias, out);
        }
    }

    #[inline(always)]
    fn value(&mut self, side: Side) -> f32 {
        let perspective = self.perspective(side);
        self.bring_to(perspective.view, self.board.occupied());
        (self.sum(perspective.view) + self.bias) * perspective.sign
    }

    #[inline(always)]
    fn play(&mut self, cell: u8) {
        self.board = self.board.play(cell);
        self.activate(cell);
        self.set(cell, self.stone(cell, 0));
    }

    #[inline(always)]
    fn learn(&mut self, board: Board, side: Side, target: f32, rate: f32, derivative: bool) {
        let perspective = self.perspective(side);
        let later = self.board.occupied() & !board.occupied();
        self.bring_to(perspective.view, board.occupied());
        for cell in cells(later) {
            self.set(cell, 0.0);
        }
        let sum = self.sum(perspective.view) + self.bias;
        let value = self.curve.apply(sum);
        let slope = if derivative { self.slope * (1.0 - value * value) } else { 1.0 };
        let step = -rate * ((value - perspective.sign * target) * slope);
        for upper in 0..self.head.group_count() {
            self.scratch.errors[upper] = self.head.begin(upper, step);
        }
        for upper in 0..self.head.group_count() {
            self.head.finish(upper, step, &self.scratch.errors[upper]);
        }
        self.step(perspective.view, step);
        self.head.learn(&self.scratch.errors, &self.scratch.mirrored_values);
        self.descend(perspective.view, step);
        if self.biased {
            self.bias += step;
        }
        for cell in cells(later) {
            self.set(cell, self.stone(cell, 0));
        }
        self.views.iter_mut().for_each(|view| view.taken = None);
    }

    fn weights(&self) -> Vec<f32> {
        let count = self.ties.weights.iter().max().map_or(0, |last| last + 1);
        let mut weights = vec![0.0; count];
        self.clone().each(|weight, index| weights[index] = *weight);
        weights
    }
}
