//! Networks whose first layer is joined to all cells: a stone changes all of its sums by one row of weights.

use std::ops::Range;

use fearless_simd::prelude::*;

use super::{
    Group, Layout, Lesson, Seat,
    head::{Head, outputs},
};
use crate::{
    board::{Board, Side, cells},
    net::{
        Architecture, Engine,
        activation::Curve,
        lanes::{LANES, Lanes, zero},
    },
};

/// A dense network in play. What lies above its first layer is its [`Head`].
#[derive(Clone)]
pub(in crate::net) struct Dense<S: Simd, H: Head<S>, const B: usize> {
    simd: S,
    layout: Layout,
    curve: Curve,
    slope: f32,
    biased: bool,
    head: H,
    /// Blocks of 16 units in the first layer: B of them, unless that is 0.
    blocks: usize,
    /// By cell, then by block.
    weights: Box<[Lanes<S>]>,
    biases: Box<[Lanes<S>]>,
    board: Board,
    /// Weighted sums of the first layer, by block: as X sees the board, and with biases as O does.
    views: Box<[Box<[Lanes<S>]>]>,
    /// Scratch: what each move makes of the head's sums.
    settled: Box<[H::Settled; 64]>,
    /// Sums of the board that is learnt from, then steps.
    past: Box<[Lanes<S>]>,
    groups: Box<[Group<S>]>,
}

impl<S: Simd, H: Head<S>, const B: usize> Dense<S, H, B> {
    pub(in crate::net) fn new(simd: S, architecture: &Architecture, weights: &[f32]) -> Self {
        let layout = Layout::new(architecture);
        let blocks = layout.architecture.units().div_ceil(LANES);
        assert!(B == 0 || B == blocks, "an engine for another number of units");
        let zeros = |count: usize| vec![zero(simd); count].into_boxed_slice();
        let head = H::new(simd, &layout, weights);
        let mut dense = Self {
            simd,
            curve: architecture.activation.curve(),
            slope: architecture.activation.slope(),
            biased: architecture.biases,
            blocks,
            weights: zeros(64 * blocks),
            biases: zeros(blocks),
            board: Board::EMPTY,
            views: (0..if architecture.biases { 2 } else { 1 }).map(|_| zeros(blocks)).collect(),
            settled: Box::new([head.unsettled(); 64]),
            past: zeros(blocks),
            groups: vec![Group::zero(simd); blocks].into_boxed_slice(),
            head,
            layout,
        };
        dense.each(|weight, index| *weight = weights[index]);
        dense.reset();
        dense
    }

    /// Calls `f` with each weight and bias of the first layer and its canonical place.
    fn each(&mut self, mut f: impl FnMut(&mut f32, usize)) {
        let units = self.layout.architecture.units();
        for (at, index) in self.layout.range("first.weight").enumerate() {
            let (cell, unit) = (at / units, at % units);
            f(&mut self.weights[cell * self.blocks + unit / LANES][unit % LANES], index);
        }
        for (unit, index) in self.layout.range("first.bias").enumerate() {
            f(&mut self.biases[unit / LANES][unit % LANES], index);
        }
    }

    #[inline(always)]
    fn blocks(&self) -> usize {
        if B == 0 { self.blocks } else { B }
    }

    #[inline(always)]
    fn seat(&self, side: Side) -> Seat {
        Seat::of(side, self.views.len())
    }
}

/// Where the weights of a cell are.
#[inline(always)]
fn row(cell: u8, blocks: usize) -> Range<usize> {
    let start = usize::from(cell) % 64 * blocks;
    start..start + blocks
}

/// Adds a row times a factor.
#[inline(always)]
fn add_row<S: Simd>(to: &mut [Lanes<S>], row: &[Lanes<S>], factor: f32) {
    for (to, row) in to.iter_mut().zip(row) {
        *to += *row * factor;
    }
}

impl<S: Simd, H: Head<S>, const B: usize> Engine for Dense<S, H, B> {
    #[inline(always)]
    fn reset(&mut self) {
        self.board = Board::EMPTY;
        for view in &mut self.views {
            view.copy_from_slice(&self.biases);
        }
    }

    #[inline(always)]
    fn values(&mut self, legal: u64, out: &mut [f32; 64]) {
        let seat = self.seat(self.board.to_move());
        let blocks = self.blocks();
        let sums = &self.views[seat.view % self.views.len()][..blocks];
        let (mut order, mut count) = ([0; 64], 0);
        for cell in cells(legal) {
            order[count % 64] = cell;
            count += 1;
        }
        self.head.settle_all(
            count.min(64),
            blocks,
            #[inline(always)]
            |board, block| sums[block] + self.weights[row(order[board % 64], blocks)][block] * seat.sign,
            &mut self.settled,
        );
        outputs(self.simd, &self.head, &self.settled, &order[..count.min(64)], seat.sign, out);
    }

    #[inline(always)]
    fn play(&mut self, cell: u8) {
        let side = self.board.to_move();
        self.board = self.board.play(cell);
        let blocks = self.blocks();
        let weights = &self.weights[row(cell, blocks)];
        for (view, sums) in self.views.iter_mut().enumerate() {
            add_row(&mut sums[..blocks], weights, Seat::stone(side, view));
        }
    }

    #[inline(always)]
    fn learn(&mut self, board: Board, side: Side, target: f32, rate: f32, derivative: bool) {
        let seat = self.seat(side);
        let now = self.board;
        let stone = |cell: u8| Seat::stone(if now.x >> cell & 1 != 0 { Side::X } else { Side::O }, seat.view);
        let blocks = self.blocks();
        let (past, groups) = (&mut self.past[..blocks], &mut self.groups[..blocks]);
        past.copy_from_slice(&self.views[seat.view % self.views.len()][..blocks]);
        for cell in cells(now.occupied() & !board.occupied()) {
            add_row(past, &self.weights[row(cell, blocks)], -stone(cell));
        }
        self.curve.each(
            blocks,
            #[inline(always)]
            |block| past[block],
            #[inline(always)]
            |block, value| groups[block].past = value,
        );
        let lesson = Lesson { target: seat.sign * target, rate, derivative };
        let above = self.head.sums(groups);
        let errors = self.head.begin(&above, lesson);
        let steps = past;
        for (block, (group, steps)) in groups.iter().zip(&mut *steps).enumerate() {
            let back = self.head.back(&errors, block);
            *steps = back * ((1.0 - group.past * group.past) * self.slope);
        }
        self.head.learn::<0>(&errors, groups);
        // Every stone of that board is on the present one, so each step reaches its sums once per stone.
        let (bias, stones) = (if self.biased { 1.0 } else { 0.0 }, board.pieces() as f32);
        for (view, sums) in self.views.iter_mut().enumerate() {
            add_row(&mut sums[..blocks], steps, bias + if view == seat.view { stones } else { -stones });
        }
        if self.biased {
            add_row(&mut self.biases[..blocks], steps, 1.0);
        }
        for side in Side::BOTH {
            let stone = Seat::stone(side, seat.view);
            for cell in cells(board.stones(side)) {
                add_row(&mut self.weights[row(cell, blocks)], steps, stone);
            }
        }
    }

    fn weights(&self) -> Vec<f32> {
        let mut weights = vec![0.0; self.layout.architecture.parameters()];
        self.clone().each(|weight, index| weights[index] = *weight);
        self.head.write(&self.layout, &mut weights);
        weights
    }
}
