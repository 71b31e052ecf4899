//! Networks whose first layer is joined to all cells: a stone changes all of its sums by one row of weights.

use std::{hint::black_box, ops::Range};

use super::{Group, Head, Layout, Lesson, Seat, outputs};
use crate::{
    board::{Board, Side, cells},
    net::{
        Architecture, Engine,
        activation::Curve,
        lanes::{LANES, Lanes},
    },
};

/// A dense network in play. What lies above its first layer is its [`Head`].
#[derive(Clone, Debug)]
pub(in crate::net) struct Dense<H: Head> {
    layout: Layout,
    curve: Curve,
    slope: f32,
    biased: bool,
    head: H,
    /// Blocks of 16 units in the first layer.
    blocks: usize,
    /// By cell, then by block.
    weights: Box<[Lanes]>,
    biases: Box<[Lanes]>,
    board: Board,
    /// Weighted sums of the first layer, by block: as X sees the board, and with biases as O does.
    views: Box<[Box<[Lanes]>]>,
    /// Scratch: values after each move, by block; what they make of the head's sums.
    moves: Box<[Lanes]>,
    settled: Box<[H::Settled; 64]>,
    /// Sums of the board that is learnt from, then steps; its values.
    past: Box<[Lanes]>,
    values: Box<[Lanes]>,
    groups: Box<[Group]>,
}

impl<H: Head> Dense<H> {
    pub(in crate::net) fn new(architecture: &Architecture, weights: &[f32]) -> Self {
        let layout = Layout::new(architecture);
        let blocks = layout.architecture.units().div_ceil(LANES);
        let zeros = |count: usize| vec![Lanes::ZERO; count].into_boxed_slice();
        let mut dense = Self {
            curve: architecture.activation.curve(),
            slope: architecture.activation.slope(),
            biased: architecture.biases,
            head: H::new(&layout, weights),
            blocks,
            weights: zeros(64 * blocks),
            biases: zeros(blocks),
            board: Board::EMPTY,
            views: (0..if architecture.biases { 2 } else { 1 }).map(|_| zeros(blocks)).collect(),
            moves: zeros(64 * blocks),
            settled: Box::new([H::Settled::default(); 64]),
            past: zeros(blocks),
            values: zeros(blocks),
            groups: vec![Group::default(); blocks].into_boxed_slice(),
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
            f(&mut self.weights[cell * self.blocks + unit / LANES].0[unit % LANES], index);
        }
        for (unit, index) in self.layout.range("first.bias").enumerate() {
            f(&mut self.biases[unit / LANES].0[unit % LANES], index);
        }
    }

    #[inline(always)]
    fn seat(&self, side: Side) -> Seat {
        Seat::of(side, self.views.len())
    }

    /// Where the weights of a cell are.
    #[inline(always)]
    fn row(&self, cell: u8) -> Range<usize> {
        let start = usize::from(cell) % 64 * self.blocks;
        start..start + self.blocks
    }
}

/// Adds a row times a factor.
#[inline(always)]
fn add_row(to: &mut [Lanes], row: &[Lanes], factor: f32) {
    for (to, row) in to.iter_mut().zip(row) {
        // Block by block: left to itself the compiler gathers the same lane of several blocks.
        let to = black_box(to);
        *to = to.plus(*row, Lanes::splat(factor));
    }
}

impl<H: Head> Engine for Dense<H> {
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
        let sums = &self.views[seat.view % self.views.len()];
        let mut order = [0; 64];
        let mut count = 0;
        for (cell, values) in cells(legal).zip(self.moves.chunks_exact_mut(self.blocks)) {
            let row = usize::from(cell) % 64 * self.blocks;
            for ((value, sum), weights) in values.iter_mut().zip(sums).zip(&self.weights[row..row + self.blocks]) {
                *black_box(value) = self.curve.lanes(sum.plus(*weights, Lanes::splat(seat.sign)));
            }
            order[count % 64] = cell;
            count += 1;
        }
        self.head.settle_all(&self.moves, self.blocks, count, &mut self.settled);
        outputs(&self.head, &self.settled, &order[..count.min(64)], seat.sign, out);
    }

    #[inline(always)]
    fn play(&mut self, cell: u8) {
        let side = self.board.to_move();
        self.board = self.board.play(cell);
        let row = self.row(cell);
        for (view, sums) in self.views.iter_mut().enumerate() {
            add_row(sums, &self.weights[row.clone()], Seat::stone(side, view));
        }
    }

    #[inline(always)]
    fn learn(&mut self, board: Board, side: Side, target: f32, rate: f32, derivative: bool) {
        let seat = self.seat(side);
        let now = self.board;
        let stone = |cell: u8| Seat::stone(if now.x >> cell & 1 != 0 { Side::X } else { Side::O }, seat.view);
        self.past.copy_from_slice(&self.views[seat.view % self.views.len()]);
        for cell in cells(now.occupied() & !board.occupied()) {
            let row = self.row(cell);
            add_row(&mut self.past, &self.weights[row], -stone(cell));
        }
        for ((sums, values), group) in self.past.iter().zip(&mut self.values).zip(&mut self.groups) {
            let values = black_box(values);
            *values = self.curve.lanes(*sums);
            group.past = *values;
        }
        let lesson = Lesson { target: seat.sign * target, rate, derivative };
        let above = self.head.sums(&self.groups);
        let errors = self.head.begin(&above, lesson);
        for (block, (values, steps)) in self.values.iter().zip(&mut self.past).enumerate() {
            let back = self.head.back(&errors, block);
            *black_box(steps) = back.zip(*values, |back, value| back * (self.slope * (1.0 - value * value)));
        }
        self.head.learn::<0>(&errors, &self.groups);
        // Every stone of that board is on the present one, so each step reaches its sums once per stone.
        let (bias, stones) = (if self.biased { 1.0 } else { 0.0 }, board.pieces() as f32);
        for (view, sums) in self.views.iter_mut().enumerate() {
            add_row(sums, &self.past, bias + if view == seat.view { stones } else { -stones });
        }
        if self.biased {
            add_row(&mut self.biases, &self.past, 1.0);
        }
        for cell in cells(board.occupied()) {
            let row = self.row(cell);
            // By way of memory: else the compiler makes a branch of it, which is mispredicted at every other stone.
            add_row(&mut self.weights[row], &self.past, black_box(stone(cell)));
        }
    }

    fn weights(&self) -> Vec<f32> {
        let mut weights = vec![0.0; self.layout.architecture.parameters()];
        self.clone().each(|weight, index| weights[index] = *weight);
        self.head.write(&self.layout, &mut weights);
        weights
    }
}
