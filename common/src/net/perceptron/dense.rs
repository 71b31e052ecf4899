//! Networks whose first layer is joined to all cells: a stone changes all of its sums by one row of weights.

use super::{Group, Head, Layout, Lesson, QUADS, Seat};
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
    biased: f32,
    head: H,
    /// Blocks of 16 units in the first layer.
    blocks: usize,
    /// By cell, then by block.
    weights: Box<[Lanes]>,
    biases: Box<[Lanes]>,
    board: Board,
    /// Weighted sums of the first layer, by block: as X sees the board, and with biases as O does.
    views: Box<[Box<[Lanes]>]>,
    /// Scratch: sums of the board that is learnt from, then steps; its values.
    past: Box<[Lanes]>,
    values: Box<[Lanes]>,
    groups: Box<[Group<H::Values>]>,
}

/// The quads of a block.
#[inline(always)]
fn quads(block: usize) -> [u16; 4] {
    std::array::from_fn(|index| (4 * block + index) as u16 % QUADS as u16)
}

impl<H: Head> Dense<H> {
    pub(in crate::net) fn new(architecture: &Architecture, weights: &[f32]) -> Self {
        let layout = Layout::new(architecture);
        let blocks = layout.architecture.units().div_ceil(LANES);
        let zeros = |count: usize| vec![Lanes::ZERO; count].into_boxed_slice();
        let mut dense = Self {
            curve: architecture.activation.curve(),
            slope: architecture.activation.slope(),
            biased: if architecture.biases { 1.0 } else { 0.0 },
            head: H::new(&layout, weights),
            blocks,
            weights: zeros(64 * blocks),
            biases: zeros(blocks),
            board: Board::EMPTY,
            views: (0..if architecture.biases { 2 } else { 1 }).map(|_| zeros(blocks)).collect(),
            past: zeros(blocks),
            values: zeros(blocks),
            groups: (0..blocks).map(|block| Group { quads: quads(block), ..Group::default() }).collect(),
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

    /// The weights of a cell.
    #[inline(always)]
    fn row(&self, cell: u8) -> &[Lanes] {
        let start = usize::from(cell) % 64 * self.blocks;
        &self.weights[start..start + self.blocks]
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
        let view = &self.views[seat.view % self.views.len()];
        let mut rest = legal;
        while rest != 0 {
            let cell = rest.trailing_zeros() as u8;
            rest &= rest - 1;
            let mut above = self.head.start();
            for (block, (sums, weights)) in view.iter().zip(self.row(cell)).enumerate() {
                let values = self.curve.lanes(sums.plus(*weights, Lanes::splat(seat.sign)));
                self.head.add(&mut above, quads(block), &H::values(values));
            }
            let settled = self.head.settle(&above, &[], &[]);
            out[usize::from(cell) % 64] = seat.sign * (self.head.part(&settled).sum() + self.head.bias());
        }
    }

    #[inline(always)]
    fn play(&mut self, cell: u8) {
        let side = self.board.to_move();
        self.board = self.board.play(cell);
        let start = usize::from(cell) % 64 * self.blocks;
        let row = &self.weights[start..start + self.blocks];
        for (view, sums) in self.views.iter_mut().enumerate() {
            let stone = Lanes::splat(Seat::stone(side, view));
            sums.iter_mut().zip(row).for_each(|(sum, weights)| *sum = sum.plus(*weights, stone));
        }
    }

    #[inline(always)]
    fn learn(&mut self, board: Board, side: Side, target: f32, rate: f32, derivative: bool) {
        let seat = self.seat(side);
        let stone = |stones: Board, cell: u8| {
            Lanes::splat(Seat::stone(if stones.x >> cell & 1 != 0 { Side::X } else { Side::O }, seat.view))
        };
        self.past.copy_from_slice(&self.views[seat.view % self.views.len()]);
        for cell in cells(self.board.occupied() & !board.occupied()) {
            let start = usize::from(cell) % 64 * self.blocks;
            let row = &self.weights[start..start + self.blocks];
            let back = stone(self.board, cell).map(|stone| -stone);
            self.past.iter_mut().zip(row).for_each(|(sum, weights)| *sum = sum.plus(*weights, back));
        }
        let mut above = self.head.start();
        for (block, (sums, group)) in self.past.iter().zip(&mut self.groups).enumerate() {
            self.values[block] = self.curve.lanes(*sums);
            group.past = H::values(self.values[block]);
            self.head.add(&mut above, quads(block), &group.past);
        }
        let errors = self.head.begin(&above, Lesson { target: seat.sign * target, rate, derivative });
        // Every stone of that board is on the present one, so each step reaches its sums once per stone.
        let (slope, stones) = (self.slope, board.pieces() as f32);
        for (block, (values, steps)) in self.values.iter().zip(&mut self.past).enumerate() {
            *steps = self
                .head
                .back(&errors, quads(block))
                .zip(*values, |back, value| back * (slope * (1.0 - value * value)));
        }
        self.head.learn::<0>(&errors, &self.groups);
        for (view, sums) in self.views.iter_mut().enumerate() {
            let weight = self.biased + if view == seat.view { stones } else { -stones };
            sums.iter_mut().zip(&self.past).for_each(|(sum, step)| *sum = sum.plus(*step, Lanes::splat(weight)));
        }
        if self.biased != 0.0 {
            self.biases
                .iter_mut()
                .zip(&self.past)
                .for_each(|(bias, step)| *bias = bias.zip(*step, |bias, step| bias + step));
        }
        for cell in cells(board.occupied()) {
            let start = usize::from(cell) % 64 * self.blocks;
            let row = &mut self.weights[start..start + self.blocks];
            let stone = stone(board, cell);
            row.iter_mut().zip(&self.past).for_each(|(weights, step)| *weights = weights.plus(*step, stone));
        }
    }

    fn weights(&self) -> Vec<f32> {
        let mut weights = vec![0.0; self.layout.architecture.parameters()];
        self.clone().each(|weight, index| weights[index] = *weight);
        self.head.write(&self.layout, &mut weights);
        weights
    }
}
