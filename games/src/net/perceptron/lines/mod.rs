//! Networks whose first layer reads lines: a stone changes only the detectors of the lines through it.

mod log;

use fearless_simd::prelude::*;

use super::{
    Group, Layout, NONE, Perspective, QUADS, Quads, Update,
    head::{Head, outputs},
    quads,
};
use crate::{
    board::{Board, Geometry, Side, cells},
    net::{
        Architecture, Engine,
        activation::{Curve, falls},
        lanes::{CrossLane, Quad, Vector, zero},
    },
};
use log::Log;

/// A block of a stone on the board, and the stone's input in the first view.
type Played = (u16, f32);

/// The factor that converts a stone's input from the first view to a view.
#[inline(always)]
fn sign(view: usize) -> f32 {
    Perspective::stone(Side::X, view)
}

/// Cached sums and values for the board as one side sees it.
#[derive(Clone, Debug)]
struct View<S> {
    /// Weighted sums of the first layer.
    sums: Box<Quads>,
    /// Values of the first layer.
    values: Box<Quads>,
    /// The head's sums.
    above: S,
}

impl<A> View<A> {
    /// The change of the values of these quads' units when a stone is placed on a cell that they read with these weights.
    #[inline(always)]
    fn change<S: Simd>(&self, curve: &Curve, weights: Vector<S>, stone: f32, quads: [u16; 4]) -> Vector<S> {
        let sums = weights.fma(stone, self.sums.gather(weights.simd, quads));
        curve.apply_vector(sums) - self.values.gather(weights.simd, quads)
    }
}

/// A network over lines in play, with V views: a single one, or with biases one for each side. The layers above the first are
/// its [`Head`].
#[derive(Clone)]
pub(in crate::net) struct Lines<S: Simd, H: Head<S>, const V: usize> {
    simd: S,
    layout: Layout,
    curve: Curve,
    slope: f32,
    head: H,
    /// For each cell the index of its first block.
    blocks: [u16; 65],
    /// Cells grouped by their number of blocks: the number, and the mask of the cells that have it.
    widths: Vec<(usize, u64)>,
    /// For each block: the places of the quads of detectors that read its cell, padded with [`NONE`].
    quads: Box<[[u16; 4]]>,
    /// For each place: the quad at that place. Quads are numbered in canonical order.
    order: [u16; QUADS],
    /// For each quad: the positions of its place in `quads`.
    entries: Box<[Vec<u16>]>,
    /// For each block: the weights of its detectors for its cell, without the steps in `log`.
    weights: Box<[Vector<S>]>,
    biases: Box<Quads>,
    board: Board,
    /// The blocks of the stones on the board, in the order of play. It is one flat list, because a loop over the one or two
    /// blocks of each stone is mispredicted.
    played: Vec<Played>,
    /// The number of these blocks that the views show. The blocks of a move that is learned from at once are never added to
    /// the views one by one, because a step of learning recomputes everything.
    shown: usize,
    views: Box<[View<H::Sums>; V]>,
    /// For each number of stones: the number of their blocks in `played`.
    ends: [u16; 65],
    /// The number of stones on each quad's line, in all four lanes, for the first `counted` blocks of `played`.
    stones: Box<Quads>,
    counted: usize,
    /// The number of active quads, whose values can be other than 0: with biases all quads, otherwise those with a stone on
    /// their line. They have the first places, in the order in which they became active, so that learning reads memory in
    /// order.
    active: usize,
    /// The steps that are not yet in `weights`.
    log: Log<S>,
    scratch: Scratch<S, H>,
}

/// Buffers of single computations.
#[derive(Clone)]
struct Scratch<S: Simd, H: Head<S>> {
    /// For each block: the change of its detectors' values when a stone is placed on its cell.
    changes: Box<[Vector<S>]>,
    /// The preactivations of the head after each move.
    preactivations: Box<[H::Preactivations; 64]>,
    /// Weighted sums of the board that is learned from, where they differ from the current ones.
    past: Box<Quads>,
    groups: Box<[Group<S>; QUADS / 4]>,
}

impl<S: Simd, H: Head<S>, const V: usize> Lines<S, H, V> {
    pub(in crate::net) fn new(simd: S, architecture: &Architecture, weights: &[f32]) -> Self {
        assert_eq!(V, if architecture.biases { 2 } else { 1 }, "an engine for another number of views");
        let layout = Layout::new(architecture);
        let geometry = Geometry::new(architecture.shape).expect("the architecture was checked");
        let parts = layout.parts();
        let (mut blocks, mut quads) = ([0; 65], Vec::new());
        let mut widths: Vec<(usize, u64)> = Vec::new();
        for cell in 0..64 {
            let through = geometry.line_indices_through(cell as u8).iter().map(|line| usize::from(*line));
            let all: Vec<u16> =
                through.flat_map(|line| line * parts..(line + 1) * parts).map(|quad| quad as u16).collect();
            for block in all.chunks(4) {
                quads.push(std::array::from_fn(|index| block.get(index).copied().unwrap_or(NONE)));
            }
            blocks[cell + 1] = quads.len() as u16;
            let width = all.len().div_ceil(4);
            match widths.iter_mut().find(|(known, _)| *known == width) {
                Some((_, cells)) => *cells |= 1 << cell,
                None => widths.push((width, 1 << cell)),
            }
        }
        let mut entries = vec![Vec::new(); geometry.lines().len() * parts];
        for (entry, quad) in quads.as_flattened().iter().enumerate().filter(|(_, quad)| **quad != NONE) {
            entries[usize::from(*quad)].push(entry as u16);
        }
        let head = H::new(simd, &layout, weights);
        let view = || View { sums: Quads::zeros(), values: Quads::zeros(), above: head.start() };
        let scratch = Scratch {
            changes: vec![zero(simd); quads.len()].into_boxed_slice(),
            preactivations: Box::new([head.zero_preactivations(); 64]),
            past: Quads::zeros(),
            groups: Box::new([Group::zero(simd); QUADS / 4]),
        };
        let mut lines = Self {
            simd,
            curve: architecture.activation.curve(),
            slope: architecture.activation.slope(),
            blocks,
            widths,
            weights: vec![zero(simd); quads.len()].into_boxed_slice(),
            played: Vec::with_capacity(quads.len()),
            shown: 0,
            quads: quads.into_boxed_slice(),
            biases: Quads::zeros(),
            board: Board::EMPTY,
            views: Box::new(std::array::from_fn(|_| view())),
            ends: [0; 65],
            stones: Quads::zeros(),
            counted: 0,
            order: std::array::from_fn(|quad| quad as u16),
            active: if architecture.biases { entries.len() } else { 0 },
            log: Log::new(simd, entries.len(), blocks[64].into()),
            entries: entries.into_boxed_slice(),
            scratch,
            head,
            layout,
        };
        lines.each(|weight, index| *weight = weights[index]);
        lines.reset();
        lines
    }

    /// Calls `f` with each weight and bias of the first layer and its canonical index.
    fn each(&mut self, mut f: impl FnMut(&mut f32, usize)) {
        let geometry = Geometry::new(self.layout.architecture.shape).expect("the architecture was checked");
        let places: Vec<(usize, usize)> = self.layout.places().collect();
        let detectors = places.len() / geometry.lines().len();
        let mut index = self.layout.range("first.weight").start;
        for (line, mask) in geometry.lines().iter().enumerate() {
            for cell in cells(*mask) {
                for (quad, lane) in &places[line * detectors..(line + 1) * detectors] {
                    let (block, at) = self.find(cell, *quad);
                    f(&mut self.weights[block][4 * at + lane], index);
                    index += 1;
                }
            }
        }
        for (index, (quad, lane)) in self.layout.range("first.bias").zip(places) {
            f(&mut self.biases.0[quad][lane], index);
        }
    }

    /// The block of a cell that contains this quad, and its position in the block.
    fn find(&self, cell: u8, quad: usize) -> (usize, usize) {
        let mut found = self.blocks_of(cell).flat_map(|block| (0..4).map(move |at| (block, at)));
        found.find(|(block, at)| usize::from(self.quads[*block][*at]) == quad).expect("the line goes through the cell")
    }

    #[inline(always)]
    fn blocks_of(&self, cell: u8) -> std::ops::Range<usize> {
        let cell = usize::from(cell) % 64;
        usize::from(self.blocks[cell])..usize::from(self.blocks[cell + 1])
    }

    #[inline(always)]
    fn perspective(&self, side: Side) -> Perspective {
        Perspective::of(side, V)
    }

    /// The weighted sums of a block's detectors when the input of its cell changes by `stone`.
    #[inline(always)]
    fn sums_after(&self, sums: &Quads, block: usize, stone: f32) -> Vector<S> {
        self.weights[block].fma(stone, sums.gather(self.simd, self.quads[block]))
    }

    /// Makes `stones` count the stones of this number of blocks of `played`. Boards that learn one after the other differ by
    /// a few stones, and only these are counted.
    #[inline(always)]
    fn count(&mut self, count: usize) {
        let (changed, change) = match count.checked_sub(self.counted) {
            Some(_) => (self.counted..count, 1.0),
            None => (count..self.counted, -1.0),
        };
        for (block, _) in &self.played[changed] {
            // The count of NONE is meaningless and harmless, because the steps of its detectors are 0.
            let quads = self.quads[usize::from(*block)];
            let counted = self.stones.gather(self.simd, quads) + change;
            self.stones.scatter(quads, counted);
        }
        self.counted = count;
    }

    /// Makes the quads of a cell's lines active, before a stone is placed on the cell.
    #[inline(always)]
    fn activate(&mut self, cell: u8) {
        if V == 2 {
            return;
        }
        for block in self.blocks_of(cell) {
            for at in 0..4 {
                let place = self.quads[block][at];
                if place != NONE && usize::from(place) >= self.active {
                    self.swap(usize::from(place), self.active);
                    self.active += 1;
                }
            }
        }
    }

    /// Exchanges the places of two inactive quads.
    #[inline(always)]
    fn swap(&mut self, left: usize, right: usize) {
        self.order.swap(left % QUADS, right % QUADS);
        self.head.swap(left, right);
        for place in [left, right] {
            for entry in &self.entries[usize::from(self.order[place % QUADS])] {
                self.quads.as_flattened_mut()[usize::from(*entry)] = place as u16;
            }
        }
    }

    /// Makes the views show this number of blocks of `played`.
    #[inline(always)]
    fn show(&mut self, count: usize) {
        for (block, stone) in &self.played[self.shown..count] {
            let (block, quads) = (usize::from(*block), self.quads[usize::from(*block)]);
            for view in 0..V {
                let sums = self.sums_after(&self.views[view].sums, block, stone * sign(view));
                let values = self.curve.apply_vector(sums);
                let cached = &mut self.views[view];
                let change = values - cached.values.gather(self.simd, quads);
                self.head.add(&mut cached.above, quads, change);
                cached.sums.scatter(quads, sums);
                cached.values.scatter(quads, values);
            }
        }
        self.shown = count;
    }

    /// Takes back all blocks of `played` from `count` on that a view shows. This changes its values and the head's sums,
    /// which are returned, but not the weighted sums of the first layer.
    #[inline(always)]
    fn take_back(&mut self, view: usize, count: usize) -> H::Sums {
        let mut above = self.views[view].above;
        let later = &self.played[count..self.shown];
        for (block, _) in later {
            let quads = self.quads[usize::from(*block)];
            let sums = self.views[view].sums.gather(self.simd, quads);
            self.scratch.past.scatter(quads, sums);
        }
        for (block, stone) in later {
            let (block, quads) = (usize::from(*block), self.quads[usize::from(*block)]);
            let sums = self.sums_after(&self.scratch.past, block, -stone * sign(view));
            let values = self.curve.apply_vector(sums);
            let change = values - self.views[view].values.gather(self.simd, quads);
            self.head.add(&mut above, quads, change);
            self.scratch.past.scatter(quads, sums);
            self.views[view].values.scatter(quads, values);
        }
        above
    }

    /// Adds the blocks that are not shown to the weighted sums of the first layer, before everything else is recomputed.
    #[inline(always)]
    fn add_hidden(&mut self) {
        for (block, stone) in &self.played[self.shown..] {
            let (block, quads) = (usize::from(*block), self.quads[usize::from(*block)]);
            for view in 0..V {
                let sums = self.sums_after(&self.views[view].sums, block, stone * sign(view));
                self.views[view].sums.scatter(quads, sums);
            }
        }
        self.shown = self.played.len();
    }

    /// Adds the kept steps to the weights.
    #[inline(always)]
    fn end_log(&mut self) {
        self.log.end(self.simd, &self.played, &self.quads, &mut self.weights);
    }

    /// Stores the values that are learned from, computes the steps of the first layer's weighted sums from the errors above
    /// it, and corrects these sums.
    #[inline(always)]
    fn step(&mut self, perspective: Perspective, errors: &H::Errors, count: usize) {
        let (simd, slope, bias) = (self.simd, self.slope, if V == 2 { 1.0 } else { 0.0 });
        let Self { head, views, stones, biases, scratch, .. } = self;
        let groups = &mut scratch.groups[..self.active.div_ceil(4)];
        for (index, (group, log)) in groups.iter_mut().zip(self.log.begin(count)).enumerate() {
            group.past = views[perspective.view % V].values.group(simd, index);
            let steps = head.back(errors, index) * (falls(group.past) * slope);
            *log = steps * sign(perspective.view);
            let stones = stones.group(simd, index);
            for view in 0..V {
                // A step changes a sum once for the bias, and once for each stone of its line that was learned from.
                let sign = if view == perspective.view { 1.0 } else { -1.0 };
                let sums = &mut views[view].sums;
                sums.set_group(index, steps.fma(stones * sign + bias, sums.group(simd, index)));
            }
            if V == 2 {
                biases.set_group(index, biases.group(simd, index) + steps);
            }
        }
    }

    /// Recomputes the values of the first layer and the head's sums.
    #[inline(always)]
    fn recompute(&mut self, errors: &H::Errors) {
        let (simd, curve) = (self.simd, self.curve);
        let groups = &mut self.scratch.groups[..self.active.div_ceil(4)];
        for (view, cached) in self.views.iter_mut().enumerate() {
            let View { sums, values, .. } = cached;
            curve.apply_each(
                groups.len(),
                #[inline(always)]
                |index| sums.group(simd, index),
                #[inline(always)]
                |index, computed| {
                    values.set_group(index, computed);
                    groups[index].values[view] = computed;
                },
            );
        }
        for (cached, above) in self.views.iter_mut().zip(self.head.learn::<V>(errors, groups)) {
            cached.above = above;
        }
    }
}

impl<S: Simd, H: Head<S>, const V: usize> Engine for Lines<S, H, V> {
    #[inline(always)]
    fn reset(&mut self) {
        self.end_log();
        self.board = Board::EMPTY;
        self.played.clear();
        self.shown = 0;
        self.counted = 0;
        // The rest is padding. Its sums and values stay 0, and its counts are meaningless.
        let used = self.entries.len();
        self.stones.0[..used].fill(Quad::default());
        for view in &mut *self.views {
            view.sums.0[..used].copy_from_slice(&self.biases.0[..used]);
            view.values.0[..used].fill(Quad::default());
            view.above = self.head.start();
        }
        if V == 1 {
            self.active = 0;
            return;
        }
        for index in 0..self.active.div_ceil(4) {
            let values = self.curve.apply_vector(self.biases.group(self.simd, index));
            for view in &mut *self.views {
                view.values.set_group(index, values);
                self.head.add(&mut view.above, quads(index), values);
            }
        }
    }

    /// The changes of several moves are independent, so the processor computes them side by side.
    #[inline(always)]
    fn values(&mut self, legal: u64, out: &mut [f32; 64]) {
        self.show(self.played.len());
        let (curve, perspective) = (self.curve, self.perspective(self.board.to_move()));
        let Self { head, quads, weights, blocks, widths, views, scratch, .. } = self;
        let Scratch { changes, preactivations, .. } = scratch;
        let view = &views[perspective.view % V];
        if H::CHANGES_FIRST {
            for (width, mask) in &*widths {
                for cell in cells(legal & mask) {
                    let start = usize::from(blocks[usize::from(cell) % 64]);
                    for block in start..start + width {
                        changes[block] = view.change(&curve, weights[block], perspective.sign, quads[block]);
                    }
                }
            }
        }
        head.prepare(&view.above);
        let (mut order, mut count) = ([0; 64], 0);
        for (width, mask) in &*widths {
            for cell in cells(legal & mask) {
                let start = usize::from(blocks[usize::from(cell) % 64]);
                let (quads, weights) = (&quads[start..start + width], &weights[start..start + width]);
                preactivations[count % 64] = head.preactivations(
                    &view.above,
                    quads,
                    #[inline(always)]
                    |at| match H::CHANGES_FIRST {
                        true => changes[start + at],
                        false => view.change(&curve, weights[at], perspective.sign, quads[at]),
                    },
                );
                order[count % 64] = cell;
                count += 1;
            }
        }
        outputs(head, preactivations, &order[..count.min(64)], perspective.sign, out);
    }

    #[inline(always)]
    fn value(&mut self, side: Side) -> f32 {
        self.show(self.played.len());
        let (simd, perspective) = (self.simd, self.perspective(side));
        let above = self.views[perspective.view % V].above;
        self.head.prepare(&above);
        // This stands for a move that changes nothing.
        self.scratch.preactivations[0] = self.head.preactivations(
            &above,
            &[],
            #[inline(always)]
            |_| zero(simd),
        );
        let mut out = [0.0; 64];
        outputs(&self.head, &self.scratch.preactivations, &[0], perspective.sign, &mut out);
        out[0]
    }

    #[inline(always)]
    fn play(&mut self, cell: u8) {
        let side = self.board.to_move();
        self.board = self.board.play(cell);
        self.activate(cell);
        let blocks = self.blocks_of(cell);
        self.played.extend(blocks.map(|block| (block as u16, Perspective::stone(side, 0))));
        self.ends[self.board.pieces() as usize % 65] = self.played.len() as u16;
    }

    #[inline(always)]
    fn learn(&mut self, board: Board, side: Side, target: f32, rate: f32, derivative: bool) {
        let perspective = self.perspective(side);
        // The stones of an earlier board are the first ones.
        let count = usize::from(self.ends[board.pieces() as usize % 65]);
        if self.log.must_end(count) {
            self.end_log();
        }
        self.show(count.max(self.shown));
        self.count(count);
        let above = self.take_back(perspective.view, count);
        let errors = self.head.begin(&above, Update { target: perspective.sign * target, rate, derivative });
        self.add_hidden();
        self.step(perspective, &errors, count);
        self.recompute(&errors);
    }

    fn weights(&self) -> Vec<f32> {
        let mut weights = vec![0.0; self.layout.architecture.parameters()];
        let mut lines = self.clone();
        lines.end_log();
        // Moves quads back to their canonical places, with their weights.
        for place in 0..QUADS {
            while usize::from(lines.order[place]) != place {
                lines.swap(place, lines.order[place].into());
            }
        }
        lines.each(|weight, index| weights[index] = *weight);
        lines.head.write(&self.layout, &mut weights);
        weights
    }
}
