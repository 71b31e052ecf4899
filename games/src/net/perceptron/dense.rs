//! Networks whose first layer is connected to all cells: a stone changes all of its sums by one row of weights.

use std::ops::Range;

use fearless_simd::prelude::*;

use super::{
    Group, Layout, Perspective, Update,
    head::{DenseHead, outputs},
};
use crate::{
    board::{Board, Side, cells},
    net::{
        Architecture, Engine,
        activation::{Curve, falls},
        lanes::{CrossLane, LANES, Vector, zero},
    },
};

/// A dense network in play. The layers above the first are its [`Head`].
#[derive(Clone)]
pub(in crate::net) struct Dense<S: Simd, H: DenseHead<S>, const W: usize> {
    layout: Layout,
    curve: Curve,
    slope: f32,
    biased: bool,
    head: H,
    /// The number of groups of the first layer, which is the number of vectors in a row of weights. If W is not 0, it is W,
    /// known at compile time.
    width: usize,
    /// By cell, then by group.
    weights: Box<[Vector<S>]>,
    biases: Box<[Vector<S>]>,
    board: Board,
    /// Weighted sums of the first layer, by group: as X sees the board, and with biases also as O sees it.
    views: Box<[Box<[Vector<S>]>]>,
    /// Scratch: the head's preactivations after each move.
    preactivations: Box<[H::Preactivations; 64]>,
    /// Scratch: weighted sums of the board that is learned from, then the steps of these sums.
    past: Box<[Vector<S>]>,
    groups: Box<[Group<S>]>,
}

impl<S: Simd, H: DenseHead<S>, const W: usize> Dense<S, H, W> {
    pub(in crate::net) fn new(simd: S, architecture: &Architecture, weights: &[f32]) -> Self {
        let layout = Layout::new(architecture);
        let width = layout.architecture.units().div_ceil(LANES);
        assert!(W == 0 || W == width, "an engine for another number of units");
        let zeros = |count: usize| vec![zero(simd); count].into_boxed_slice();
        let head = H::new(simd, &layout, weights);
        let mut dense = Self {
            curve: architecture.activation.curve(),
            slope: architecture.activation.slope(),
            biased: architecture.biases,
            width,
            weights: zeros(64 * width),
            biases: zeros(width),
            board: Board::EMPTY,
            views: (0..if architecture.biases { 2 } else { 1 }).map(|_| zeros(width)).collect(),
            preactivations: Box::new([head.zero_preactivations(); 64]),
            past: zeros(width),
            groups: vec![Group::zero(simd); width].into_boxed_slice(),
            head,
            layout,
        };
        dense.each(|weight, index| *weight = weights[index]);
        dense.reset();
        dense
    }

    /// Calls `f` with each weight and bias of the first layer and its canonical index.
    fn each(&mut self, mut f: impl FnMut(&mut f32, usize)) {
        let units = self.layout.architecture.units();
        for (at, index) in self.layout.range("first.weight").enumerate() {
            let (cell, unit) = (at / units, at % units);
            f(&mut self.weights[cell * self.width + unit / LANES][unit % LANES], index);
        }
        for (unit, index) in self.layout.range("first.bias").enumerate() {
            f(&mut self.biases[unit / LANES][unit % LANES], index);
        }
    }

    #[inline(always)]
    fn width(&self) -> usize {
        if W == 0 { self.width } else { W }
    }

    #[inline(always)]
    fn perspective(&self, side: Side) -> Perspective {
        Perspective::of(side, self.views.len())
    }
}

/// The range of a cell's weights.
#[inline(always)]
fn row(cell: u8, width: usize) -> Range<usize> {
    let start = usize::from(cell) % 64 * width;
    start..start + width
}

/// Adds a row times a factor.
#[inline(always)]
fn add_row<S: Simd>(to: &mut [Vector<S>], row: &[Vector<S>], factor: f32) {
    for (to, row) in to.iter_mut().zip(row) {
        *to = row.fma(factor, *to);
    }
}

impl<S: Simd, H: DenseHead<S>, const W: usize> Engine for Dense<S, H, W> {
    #[inline(always)]
    fn reset(&mut self) {
        self.board = Board::EMPTY;
        for view in &mut self.views {
            view.copy_from_slice(&self.biases);
        }
    }

    #[inline(always)]
    fn values(&mut self, legal: u64, out: &mut [f32; 64]) {
        let perspective = self.perspective(self.board.to_move());
        let width = self.width();
        let sums = &self.views[perspective.view % self.views.len()][..width];
        let (mut order, mut count) = ([0; 64], 0);
        for cell in cells(legal) {
            order[count % 64] = cell;
            count += 1;
        }
        self.head.preactivations_all(
            count.min(64),
            width,
            #[inline(always)]
            |board, group| {
                let weights = self.weights[row(order[board % 64], width)][group];
                weights.fma(perspective.sign, sums[group])
            },
            &mut self.preactivations,
        );
        outputs(&self.head, &self.preactivations, &order[..count.min(64)], perspective.sign, out);
    }

    #[inline(always)]
    fn value(&mut self, side: Side) -> f32 {
        let perspective = self.perspective(side);
        let width = self.width();
        let sums = &self.views[perspective.view % self.views.len()][..width];
        self.head.preactivations_all(
            1,
            width,
            #[inline(always)]
            |_, group| sums[group],
            &mut self.preactivations,
        );
        let mut out = [0.0; 64];
        outputs(&self.head, &self.preactivations, &[0], perspective.sign, &mut out);
        out[0]
    }

    #[inline(always)]
    fn play(&mut self, cell: u8) {
        let side = self.board.to_move();
        self.board = self.board.play(cell);
        let width = self.width();
        let weights = &self.weights[row(cell, width)];
        for (view, sums) in self.views.iter_mut().enumerate() {
            add_row(&mut sums[..width], weights, Perspective::stone(side, view));
        }
    }

    #[inline(always)]
    fn learn(&mut self, board: Board, side: Side, target: f32, rate: f32, derivative: bool) {
        let perspective = self.perspective(side);
        let now = self.board;
        let stone =
            |cell: u8| Perspective::stone(if now.x >> cell & 1 != 0 { Side::X } else { Side::O }, perspective.view);
        let width = self.width();
        let (past, groups) = (&mut self.past[..width], &mut self.groups[..width]);
        past.copy_from_slice(&self.views[perspective.view % self.views.len()][..width]);
        for cell in cells(now.occupied() & !board.occupied()) {
            add_row(past, &self.weights[row(cell, width)], -stone(cell));
        }
        self.curve.apply_each(
            width,
            #[inline(always)]
            |group| past[group],
            #[inline(always)]
            |group, value| groups[group].past = value,
        );
        let update = Update { target: perspective.sign * target, rate, derivative };
        let above = self.head.sums(groups);
        let errors = self.head.begin(&above, update);
        let steps = past;
        self.head.back_and_learn(
            &errors,
            groups,
            #[inline(always)]
            |index, back| steps[index] = back * (falls(groups[index].past) * self.slope),
        );
        // All stones of that board are also on the current one, so each step changes the current sums once for each stone.
        let (bias, stones) = (if self.biased { 1.0 } else { 0.0 }, board.pieces() as f32);
        for (view, sums) in self.views.iter_mut().enumerate() {
            add_row(&mut sums[..width], steps, bias + if view == perspective.view { stones } else { -stones });
        }
        if self.biased {
            add_row(&mut self.biases[..width], steps, 1.0);
        }
        for side in Side::BOTH {
            let stone = Perspective::stone(side, perspective.view);
            for cell in cells(board.stones(side)) {
                add_row(&mut self.weights[row(cell, width)], steps, stone);
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
