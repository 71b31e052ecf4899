//! The fast path of networks over lines that share weights.
//!
//! As without sharing ([`crate::net::perceptron`]), sums are cached, and a stone changes only the detectors of the lines
//! through it. But a step of learning changes the weights of all images of a line, so all cached sums are wrong afterwards. A
//! view is therefore recomputed when it is next needed. In the usual order of play that is once per move.
//!
//! To make this fast, lines with the same weights are adjacent. A *group* has the same part (four detectors) of four lines of
//! one orbit, so it needs only one quad of weights for each cell of a line. Orbits that do not fill their last group are
//! padded with lines without cells, whose values are 0. The groups of an orbit and part are a *class*: they have the same
//! weights.

mod engine;
mod steps;

use fearless_simd::prelude::*;

use super::{Head, LineSymmetries, MirroredPairs, Sums, Ties, filled, gather, scatter};
use crate::{
    board::{Board, Side, cells},
    net::{
        Architecture, Engine, First,
        activation::Curve,
        lanes::{CrossLane, LANES, Quad, Vector, zero},
        perceptron::Perspective,
    },
};

/// The number of rows of inputs or weights that are read at once.
const ROWS: usize = 4;

/// Cached sums and values for a board as one side sees it.
#[derive(Clone)]
struct View<S: Simd> {
    /// The occupied cells of the board for which the view is valid; `None` if it is not valid.
    taken: Option<u64>,
    /// Weighted sums and values of the first layer, by group.
    sums: Box<[Vector<S>]>,
    values: Box<[Vector<S>]>,
    /// Weighted sums of the second layer, by group of it.
    above: Vec<Sums<S>>,
    /// Sixteen parts of the output unit's weighted sum, if there is no second layer.
    direct: Vector<S>,
}

/// The connection from a cell to a quad of detectors of a line.
#[derive(Clone, Copy, Debug)]
struct Connection {
    quad: u16,
    /// The connection's row in `inputs` and its row in `first`.
    input: u16,
    weights: u16,
}

/// A network over lines that shares weights.
#[derive(Clone)]
pub(in crate::net) struct Shared<S: Simd> {
    simd: S,
    ties: Ties,
    symmetries: LineSymmetries,
    detectors: usize,
    /// The number of quads of each line's detectors.
    parts: usize,
    /// The number of cells in a line, and of their rows of inputs and weights, padded to a multiple of [`ROWS`].
    k: usize,
    rows: usize,
    curve: Curve,
    slope: f32,
    head: Head<S>,
    biased: bool,
    bias: f32,
    /// For each line and part: the index of its quad.
    quads: Vec<u16>,
    /// For each group: its class. The last group has no units and a class of its own: it is padding.
    classes: Vec<u16>,
    /// For each class: its first group, and whether some symmetry reverses its lines.
    class_starts: Vec<(u16, bool)>,
    /// The connections of all cells, in blocks (the last block of a cell is padded), and for each cell the index of its first
    /// block.
    blocks: Vec<[Connection; 4]>,
    block_starts: [u16; 65],
    /// Weights by class and row; biases, and output weights without a second layer, by class. Each is a quad, repeated four
    /// times.
    first: Box<[Vector<S>]>,
    biases: Box<[Vector<S>]>,
    flat: Box<[Vector<S>]>,
    board: Board,
    /// The inputs of each line's cells, as X sees them, by group and row.
    inputs: Box<[Vector<S>]>,
    /// By group: 1 for units, 0 for padding.
    present: Box<[Vector<S>]>,
    /// One view, or with biases one for each side.
    views: Vec<View<S>>,
    /// Active groups, whose values can be other than 0: with biases all groups, otherwise those with a stone on one of their
    /// lines.
    active: Vec<u16>,
    is_active: Vec<bool>,
    scratch: Scratch<S>,
}

/// Buffers of single computations.
#[derive(Clone)]
struct Scratch<S: Simd> {
    /// For each move: the changes of values by block, and the preactivations of the second layer by group.
    changes: Box<[Vector<S>]>,
    preactivations: Box<[Vector<S>]>,
    /// Weighted sums of the second layer from which others are computed.
    above: Box<[Sums<S>]>,
    /// Errors of the second layer.
    errors: Vec<Sums<S>>,
    /// Steps of the first layer's weighted sums, by group.
    steps: Box<[Vector<S>]>,
    /// Steps of the first layer's weights, by class and row.
    rows: Box<[Vector<S>]>,
    /// Values of the first layer.
    mirrored_values: Box<MirroredPairs<Quad>>,
    /// Errors that are propagated back to the first layer, by group.
    back: Box<[Sums<S>]>,
}

impl<S: Simd> Shared<S> {
    pub(in crate::net) fn new(simd: S, architecture: &Architecture, weights: &[f32]) -> Self {
        let First::Lines { detectors } = architecture.first else {
            panic!("only networks over lines share weights in this way")
        };
        let symmetries = LineSymmetries::new(architecture);
        let (parts, k) = (detectors.div_ceil(4), usize::from(architecture.shape.k));
        let rows = k.next_multiple_of(ROWS);
        let (mut quads, mut classes, mut class_starts) =
            (vec![0; symmetries.cells.len() * parts], Vec::new(), Vec::new());
        for (orbit, reversible) in symmetries.reversible.iter().enumerate() {
            let lines: Vec<usize> =
                (0..symmetries.cells.len()).filter(|line| symmetries.orbits[*line] == orbit).collect();
            for part in 0..parts {
                class_starts.push((classes.len() as u16, *reversible));
                for lines in lines.chunks(4) {
                    for (index, line) in lines.iter().enumerate() {
                        quads[line * parts + part] = (4 * classes.len() + index) as u16;
                    }
                    classes.push((class_starts.len() - 1) as u16);
                }
            }
        }
        let groups = classes.len();
        class_starts.push((groups as u16, false));
        classes.push((class_starts.len() - 1) as u16);
        let zeros = |count: usize| vec![zero(simd); count].into_boxed_slice();
        let head =
            Head::new(simd, architecture, &symmetries, parts, 4 * groups, |line, part| quads[line * parts + part]);
        let view = || View {
            taken: None,
            sums: zeros(groups + 1),
            values: zeros(groups + 1),
            above: vec![[zero(simd); 4]; head.group_count()],
            direct: zero(simd),
        };
        let (blocks, block_starts) = Self::connect(&symmetries, &quads, &classes, rows);
        let most = block_starts.windows(2).map(|pair| usize::from(pair[1] - pair[0])).max().unwrap_or(0);
        let mut network = Self {
            simd,
            detectors,
            parts,
            k,
            rows,
            curve: architecture.activation.curve(),
            slope: architecture.activation.slope(),
            biased: architecture.biases,
            bias: 0.0,
            blocks,
            block_starts,
            first: zeros(class_starts.len() * rows),
            biases: zeros(class_starts.len()),
            flat: zeros(class_starts.len()),
            board: Board::EMPTY,
            inputs: zeros((groups + 1) * rows),
            present: zeros(groups),
            views: (0..if architecture.biases { 2 } else { 1 }).map(|_| view()).collect(),
            active: Vec::with_capacity(groups),
            is_active: vec![false; groups + 1],
            scratch: Scratch {
                changes: zeros(64 * most),
                preactivations: zeros(64 * head.group_count().max(1)),
                above: vec![[zero(simd); 4]; head.group_count()].into_boxed_slice(),
                errors: vec![[zero(simd); 4]; head.group_count()],
                steps: zeros(groups + 1),
                rows: zeros(class_starts.len() * rows),
                mirrored_values: filled(Quad::default()),
                back: vec![[zero(simd); 4]; groups].into_boxed_slice(),
            },
            ties: Ties::new(architecture),
            symmetries,
            quads,
            classes,
            class_starts,
            head,
        };
        for quad in &network.quads {
            network.present[usize::from(quad / 4)].as_chunks_mut::<4>().0[usize::from(quad % 4)] = [1.0; 4];
        }
        network.each(|weight, index| *weight = weights[index]);
        network.head.mirror();
        network.reset();
        network
    }

    /// The connections of all cells in blocks, and for each cell the index of its first block.
    fn connect(
        symmetries: &LineSymmetries,
        quads: &[u16],
        classes: &[u16],
        rows: usize,
    ) -> (Vec<[Connection; 4]>, [u16; 65]) {
        let parts = quads.len() / symmetries.cells.len();
        let connection = |quad: u16, row: usize| {
            let group = usize::from(quad / 4);
            let input = (group * rows + row) as u16;
            Connection { quad, input, weights: (usize::from(classes[group]) * rows + row) as u16 }
        };
        let none = connection(4 * (classes.len() - 1) as u16, 0);
        let (mut blocks, mut block_starts) = (Vec::new(), [0; 65]);
        for cell in 0..64_u8 {
            let mut all = Vec::new();
            for (line, line_cells) in symmetries.cells.iter().enumerate() {
                if let Some(row) = line_cells.iter().position(|other| *other == cell) {
                    all.extend(quads[line * parts..(line + 1) * parts].iter().map(|quad| connection(*quad, row)));
                }
            }
            let padded = |block: &[Connection]| std::array::from_fn(|index| block.get(index).copied().unwrap_or(none));
            blocks.extend(all.chunks(4).map(padded));
            block_starts[usize::from(cell) + 1] = blocks.len() as u16;
        }
        (blocks, block_starts)
    }

    /// Calls `f` with each copy of each weight and its index among the shared weights.
    fn each(&mut self, mut f: impl FnMut(&mut f32, usize)) {
        let tensors = self.ties.unshared.tensors();
        let start = |name: &str| tensors.iter().find(|tensor| tensor.name == name).map(|tensor| tensor.range.start);
        let (k, rows, parts, detectors) = (self.k, self.rows, self.parts, self.detectors);
        for orbit in 0..self.symmetries.reversible.len() {
            // The cells of an orbit's first line are in ascending order, as in the unshared network.
            let is_of_orbit = |other: &usize| *other == orbit;
            let line = self.symmetries.orbits.iter().position(is_of_orbit).expect("an orbit has a line");
            for detector in 0..detectors {
                let class = orbit * parts + detector / 4;
                let unit = line * detectors + detector;
                for lane in (detector % 4..LANES).step_by(4) {
                    for row in 0..k {
                        let tie = self.ties.weights[(line * k + row) * detectors + detector];
                        f(&mut self.first[class * rows + row][lane], tie);
                    }
                    if let Some(start) = start("first.bias") {
                        f(&mut self.biases[class][lane], self.ties.weights[start + unit]);
                    }
                    if self.ties.filters == 0 {
                        let start = start("output.weight").expect("every network has output weights");
                        f(&mut self.flat[class][lane], self.ties.weights[start + unit]);
                    }
                }
            }
        }
        self.head.each(&self.ties, parts, &mut f);
        if let Some(start) = start("output.bias") {
            f(&mut self.bias, self.ties.weights[start]);
        }
    }

    #[inline(always)]
    fn blocks_of(&self, cell: u8) -> std::ops::Range<usize> {
        let cell = usize::from(cell) % 64;
        usize::from(self.block_starts[cell])..usize::from(self.block_starts[cell + 1])
    }

    #[inline(always)]
    fn perspective(&self, side: Side) -> Perspective {
        Perspective::of(side, self.views.len())
    }

    /// The input of a stone of the board in a view.
    #[inline(always)]
    fn stone(&self, cell: u8, view: usize) -> f32 {
        Perspective::stone(if self.board.x >> cell & 1 != 0 { Side::X } else { Side::O }, view)
    }

    /// Sets the input of a cell, as X sees it.
    #[inline(always)]
    fn set(&mut self, cell: u8, stone: f32) {
        for block in &self.blocks[self.blocks_of(cell)] {
            for connection in block {
                // Padding rows are read only with weights of 0.
                let quad = usize::from(connection.quad) % 4;
                self.inputs[usize::from(connection.input)].as_chunks_mut::<4>().0[quad] = [stone; 4];
            }
        }
    }

    /// Makes the groups of a cell's lines active, before a stone is placed on the cell.
    #[inline(always)]
    fn activate(&mut self, cell: u8) {
        for block in &self.blocks[self.blocks_of(cell)] {
            for connection in block {
                let group = connection.quad / 4;
                let is_active = &mut self.is_active[usize::from(group)];
                if !*is_active {
                    *is_active = true;
                    self.active.push(group);
                }
            }
        }
    }

    /// Makes a view valid for the board of this game whose occupied cells are `taken`. Recomputes the view if it is not
    /// valid, and adds or takes back stones.
    #[inline(always)]
    fn bring_to(&mut self, view: usize, taken: u64) {
        if self.views[view].taken.is_none() {
            self.recompute(view);
        }
        let valid_for = self.views[view].taken.unwrap_or(taken);
        for cell in cells(valid_for ^ taken) {
            let stone = self.stone(cell, view);
            self.change_input(view, cell, if taken >> cell & 1 != 0 { stone } else { -stone });
        }
        self.views[view].taken = Some(taken);
    }

    /// Recomputes a view for the current board.
    #[inline(always)]
    fn recompute(&mut self, view: usize) {
        let sign = if view == 0 { 1.0 } else { -1.0 };
        let (rows, view) = (self.rows, &mut self.views[view]);
        let simd = self.simd;
        view.direct = zero(simd);
        for group in &self.active {
            let group = usize::from(*group);
            let class = usize::from(self.classes[group]);
            let (inputs, weights) = (&self.inputs[group * rows..][..rows], &self.first[class * rows..][..rows]);
            let mut sums = zero(simd);
            for (inputs, weights) in inputs.as_chunks::<ROWS>().0.iter().zip(weights.as_chunks::<ROWS>().0) {
                sums = inputs[0].fma(weights[0], sums);
                sums = inputs[1].fma(weights[1], sums);
                sums = inputs[2].fma(weights[2], sums);
                sums = inputs[3].fma(weights[3], sums);
            }
            sums *= sign;
            if self.biased {
                sums = self.present[group].fma(self.biases[class], sums);
            }
            let values = self.curve.apply_vector(sums);
            view.sums[group] = sums;
            view.values[group] = values;
            view.direct = self.flat[class].fma(values, view.direct);
        }
        self.head.start(&mut self.scratch.above);
        let changes = self.active.iter().map(|group| (quads_of(*group), &view.values[usize::from(*group)]));
        self.head.add(
            &self.scratch.above,
            &mut view.above,
            changes,
            #[inline(always)]
            |sums| *sums,
        );
        view.taken = Some(self.board.occupied());
    }

    /// Updates a view when a cell's input changes by `stone`.
    #[inline(always)]
    fn change_input(&mut self, view: usize, cell: u8, stone: f32) {
        let (simd, range) = (self.simd, self.blocks_of(cell));
        let (view, blocks) = (&mut self.views[view], &self.blocks[range]);
        let changes = &mut self.scratch.changes[..blocks.len()];
        for (change, block) in changes.iter_mut().zip(blocks) {
            let quads = quads(block);
            let sums = weights(simd, &self.first, block).fma(stone, gather(simd, &view.sums, quads));
            let values = self.curve.apply_vector(sums);
            *change = values - gather(simd, &view.values, quads);
            scatter(&mut view.sums, quads, sums);
            scatter(&mut view.values, quads, values);
            let weights = output_weights(simd, &self.flat, &self.classes, block);
            view.direct = weights.fma(*change, view.direct);
        }
        let changes = blocks.iter().map(quads).zip(&*changes);
        self.head.add(
            &view.above,
            &mut self.scratch.above,
            changes,
            #[inline(always)]
            |sums| *sums,
        );
        view.above.copy_from_slice(&self.scratch.above);
    }
}

/// The number of quads of detectors in such a network, including padding.
pub(in crate::net) fn quad_count(architecture: &Architecture) -> usize {
    let First::Lines { detectors } = architecture.first else { return 0 };
    let symmetries = LineSymmetries::new(architecture);
    let lines_of = |orbit| symmetries.orbits.iter().filter(|other| **other == orbit).count();
    (0..symmetries.reversible.len()).map(|orbit| lines_of(orbit).next_multiple_of(4)).sum::<usize>()
        * detectors.div_ceil(4)
}

/// The weights of a block.
#[inline(always)]
fn weights<S: Simd>(simd: S, first: &[Vector<S>], block: &[Connection; 4]) -> Vector<S> {
    let [a, b, c, d] = block;
    let rows = [a.weights, b.weights, c.weights, d.weights];
    gather(simd, first, rows.map(|row| 4 * row))
}

/// The output weights of a block's detectors.
#[inline(always)]
fn output_weights<S: Simd>(simd: S, flat: &[Vector<S>], classes: &[u16], block: &[Connection; 4]) -> Vector<S> {
    gather(simd, flat, quads(block).map(|quad| 4 * classes[usize::from(quad / 4)]))
}

/// The quads of a group.
#[inline(always)]
fn quads_of(group: u16) -> [u16; 4] {
    [4 * group, 4 * group + 1, 4 * group + 2, 4 * group + 3]
}

/// The quads of a block.
#[inline(always)]
fn quads(block: &[Connection; 4]) -> [u16; 4] {
    [block[0].quad, block[1].quad, block[2].quad, block[3].quad]
}
