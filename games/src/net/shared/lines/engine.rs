//! The network in play and in learning.

use super::{Shared, outputs, quads, weights};
use crate::{
    board::{Board, Side, cells},
    net::{
        Engine,
        lanes::{Across, LANES, Quad, Simd, sums_of_quads, zero},
        perceptron::tell,
        shared::gather,
    },
};

impl<S: Simd> Engine for Shared<S> {
    #[inline(always)]
    fn reset(&mut self) {
        let nothing = zero(self.simd);
        self.board = Board::EMPTY;
        self.inputs.fill(nothing);
        self.awake.clear();
        self.is_awake.fill(false);
        // Nobody need wake the block of no units.
        *self.is_awake.last_mut().expect("it has a place") = true;
        self.scratch.steps.fill(nothing);
        self.scratch.both.fill(Quad::default());
        for view in &mut self.views {
            view.taken = None;
            view.sums.fill(nothing);
            view.values.fill(nothing);
        }
        if self.biased {
            self.awake.extend(0..(self.owners.len() - 1) as u16);
            self.is_awake.fill(true);
        }
    }

    /// Each step is taken for all moves before the next, as without sharing.
    #[inline(always)]
    fn values(&mut self, legal: u64, out: &mut [f32; 64]) {
        let (simd, seat) = (self.simd, self.seat(self.board.to_move()));
        self.show(seat.view, self.board.occupied());
        let seen = &self.views[seat.view];
        let chunks = self.head.chunks();
        let mut order = [0_u8; 64];
        let (mut count, mut at) = (0, 0);
        for cell in cells(legal) {
            let looks = &self.looks[self.looks_of(cell)];
            let changes = &mut self.scratch.changes[at..at + looks.len()];
            let mut direct = seen.direct;
            for (change, looks) in changes.iter_mut().zip(looks) {
                let quads = quads(looks);
                let sums = gather(simd, &seen.sums, quads) + weights(simd, &self.first, looks) * seat.sign;
                *change = self.curve.lanes(sums) - gather(simd, &seen.values, quads);
                if chunks == 0 {
                    direct += outputs(simd, &self.flat, &self.owners, looks) * *change;
                }
            }
            if chunks == 0 {
                self.scratch.settled[count % 64] = direct;
            }
            at += looks.len();
            order[count % 64] = cell;
            count += 1;
        }
        let order = &order[..count.min(64)];
        at = 0;
        for (index, cell) in order.iter().enumerate() {
            let looks = &self.looks[self.looks_of(*cell)];
            let changes = &self.scratch.changes[at..at + looks.len()];
            at += looks.len();
            let changes = looks.iter().map(quads).zip(changes);
            let settled = &mut self.scratch.settled[index * chunks..][..chunks];
            self.head.add(
                &seen.above,
                settled,
                changes,
                #[inline(always)]
                |sums| sums_of_quads(sums),
            );
        }
        for (index, cells) in order.chunks(LANES).enumerate() {
            let mut parts = [zero(self.simd); LANES];
            for (at, part) in parts.iter_mut().take(cells.len()).enumerate() {
                let index = LANES * index + at;
                let settled = &self.scratch.settled;
                *part = if chunks == 0 { settled[index] } else { self.head.part(&settled[index * chunks..][..chunks]) };
            }
            tell(cells, &parts, seat.sign, self.bias, out);
        }
    }

    #[inline(always)]
    fn play(&mut self, cell: u8) {
        self.board = self.board.play(cell);
        self.wake(cell);
        self.set(cell, self.stone(cell, 0));
    }

    #[inline(always)]
    fn learn(&mut self, board: Board, side: Side, target: f32, rate: f32, derivative: bool) {
        let seat = self.seat(side);
        let later = self.board.occupied() & !board.occupied();
        self.show(seat.view, board.occupied());
        for cell in cells(later) {
            self.set(cell, 0.0);
        }
        let seen = &self.views[seat.view];
        let mut parts = seen.direct;
        for chunk in 0..self.head.chunks() {
            parts += self.head.keep(chunk, sums_of_quads(&seen.above[chunk]));
        }
        let value = self.curve.apply(parts.sum() + self.bias);
        let slope = if derivative { self.slope * (1.0 - value * value) } else { 1.0 };
        let step = -rate * ((value - seat.sign * target) * slope);
        for chunk in 0..self.head.chunks() {
            self.scratch.errors[chunk] = self.head.begin(chunk, step);
        }
        for chunk in 0..self.head.chunks() {
            self.head.finish(chunk, step, &self.scratch.errors[chunk]);
        }
        self.step(seat.view, step);
        self.head.learn(&self.scratch.errors, &self.scratch.both);
        self.descend(seat.view, step);
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
