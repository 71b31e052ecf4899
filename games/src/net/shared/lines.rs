//! The fast path of networks over lines that share weights.
//!
//! As without sharing ([`crate::net::perceptron`]), sums are kept and a stone changes only the detectors of the lines through
//! it. But a step of learning changes the weights of all lines' images, so afterwards nothing that is kept is right any more:
//! what a side sees is computed anew when it is next asked for. In the usual order of play that is once a move.
//!
//! For that, lines stand side by side whose weights are the same: a *block* is four lines of one orbit, with the same four
//! detectors of each, and what it computes needs no weights but one quad for each cell of a line. Orbits that do not fill
//! their last block have lines of no cells in it, which stay 0.

mod engine;
mod steps;

use fearless_simd::prelude::*;

use super::{Both, Head, Sums, Ties, Turning, gather, nothing, scatter};
use crate::{
    board::{Board, Side, cells},
    net::{
        Architecture, Engine, First,
        activation::Curve,
        lanes::{LANES, Lanes, Quad, zero},
        perceptron::Seat,
    },
};

/// Rows that are read at once.
const ROWS: usize = 4;

/// What is kept of the board as one side sees it.
#[derive(Clone)]
struct View<S: Simd> {
    /// The cells that were taken on the board that it is right for, if it is for any.
    taken: Option<u64>,
    /// Weighted sums of the first layer, and its values; by block.
    sums: Box<[Lanes<S>]>,
    values: Box<[Lanes<S>]>,
    /// Sums of the second layer.
    above: Vec<Sums<S>>,
    /// Sixteen parts of the output unit's sum, if there is no second layer.
    direct: Lanes<S>,
}

/// A cell as four detectors of a line see it.
#[derive(Clone, Copy, Debug)]
struct Look {
    quad: u16,
    /// The row of inputs, and the row of weights.
    input: u16,
    weights: u16,
}

/// A network over lines that shares weights.
#[derive(Clone)]
pub(in crate::net) struct Shared<S: Simd> {
    simd: S,
    ties: Ties,
    turning: Turning,
    detectors: usize,
    /// Quads of detectors of a line.
    parts: usize,
    /// Cells of a line, and how many rows of inputs and weights there are for them, filled up to a multiple of [`ROWS`].
    k: usize,
    rows: usize,
    curve: Curve,
    slope: f32,
    head: Head<S>,
    biased: bool,
    bias: f32,
    /// For each line and part its quad.
    quads: Vec<u16>,
    /// For each block whose weights it has: the number of an orbit and part. The last block, of no units, has the last ones.
    owners: Vec<u16>,
    /// The blocks of each owner begin here; for each whether its lines are reversed by some symmetry.
    owned: Vec<(u16, bool)>,
    /// Who looks at each cell, in fours (the last of them filled up), and where each cell's begin.
    looks: Vec<[Look; 4]>,
    begins: [u16; 65],
    /// Weights, by owner and row; by owner biases, and output weights if there is no second layer; each quad four times.
    first: Box<[Lanes<S>]>,
    biases: Box<[Lanes<S>]>,
    flat: Box<[Lanes<S>]>,
    board: Board,
    /// The stones on each line's cells as X sees them, by block and row.
    inputs: Box<[Lanes<S>]>,
    /// By block: 1 for the units there are, 0 for those that fill up.
    present: Box<[Lanes<S>]>,
    /// One, or with biases one for each side.
    views: Vec<View<S>>,
    /// Blocks that can have another value than 0: all with biases, else those with a stone on some line.
    awake: Vec<u16>,
    is_awake: Vec<bool>,
    scratch: Scratch<S>,
}

/// What a computation needs for a moment.
#[derive(Clone)]
struct Scratch<S: Simd> {
    /// Of each move: changes of values, in fours of quads; what it makes of the sums of each chunk.
    changes: Box<[Lanes<S>]>,
    settled: Box<[Lanes<S>]>,
    /// Sums above: those that others are made from.
    above: Box<[Sums<S>]>,
    /// Errors of the second layer.
    errors: Vec<Sums<S>>,
    /// Steps of the first layer's sums, by block.
    steps: Box<[Lanes<S>]>,
    /// Steps of the first layer's weights, by owner and row.
    rows: Box<[Lanes<S>]>,
    /// Values of the first layer.
    both: Box<Both<Quad>>,
    /// Errors that come back to the first layer, by block.
    back: Box<[Sums<S>]>,
}

impl<S: Simd> Shared<S> {
    pub(in crate::net) fn new(simd: S, architecture: &Architecture, weights: &[f32]) -> Self {
        let First::Lines { detectors } = architecture.first else {
            panic!("only networks over lines share weights so")
        };
        let turning = Turning::new(architecture);
        let (parts, k) = (detectors.div_ceil(4), usize::from(architecture.shape.k));
        let rows = k.next_multiple_of(ROWS);
        let (mut quads, mut owners, mut owned) = (vec![0; turning.cells.len() * parts], Vec::new(), Vec::new());
        for (orbit, reversible) in turning.reversible.iter().enumerate() {
            let lines: Vec<usize> = (0..turning.cells.len()).filter(|line| turning.orbits[*line] == orbit).collect();
            for part in 0..parts {
                owned.push((owners.len() as u16, *reversible));
                for four in lines.chunks(4) {
                    for (index, line) in four.iter().enumerate() {
                        quads[line * parts + part] = (4 * owners.len() + index) as u16;
                    }
                    owners.push((owned.len() - 1) as u16);
                }
            }
        }
        let blocks = owners.len();
        owned.push((blocks as u16, false));
        owners.push((owned.len() - 1) as u16);
        let zeros = |count: usize| vec![zero(simd); count].into_boxed_slice();
        let head = Head::new(simd, architecture, &turning, parts, 4 * blocks, |line, part| quads[line * parts + part]);
        let view = || View {
            taken: None,
            sums: zeros(blocks + 1),
            values: zeros(blocks + 1),
            above: vec![[zero(simd); 4]; head.chunks()],
            direct: zero(simd),
        };
        let (looks, begins) = Self::look(&turning, &quads, &owners, rows);
        let most = begins.windows(2).map(|pair| usize::from(pair[1] - pair[0])).max().unwrap_or(0);
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
            looks,
            begins,
            first: zeros(owned.len() * rows),
            biases: zeros(owned.len()),
            flat: zeros(owned.len()),
            board: Board::EMPTY,
            inputs: zeros((blocks + 1) * rows),
            present: zeros(blocks),
            views: (0..if architecture.biases { 2 } else { 1 }).map(|_| view()).collect(),
            awake: Vec::with_capacity(blocks),
            is_awake: vec![false; blocks + 1],
            scratch: Scratch {
                changes: zeros(64 * most),
                settled: zeros(64 * head.chunks().max(1)),
                above: vec![[zero(simd); 4]; head.chunks()].into_boxed_slice(),
                errors: vec![[zero(simd); 4]; head.chunks()],
                steps: zeros(blocks + 1),
                rows: zeros(owned.len() * rows),
                both: nothing(Quad::default()),
                back: vec![[zero(simd); 4]; blocks].into_boxed_slice(),
            },
            ties: Ties::new(architecture),
            turning,
            quads,
            owners,
            owned,
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

    /// Who looks at which cell, and where each cell's begin.
    fn look(turning: &Turning, quads: &[u16], owners: &[u16], rows: usize) -> (Vec<[Look; 4]>, [u16; 65]) {
        let parts = quads.len() / turning.cells.len();
        let look = |quad: u16, row: usize| {
            let block = usize::from(quad / 4);
            let input = (block * rows + row) as u16;
            Look { quad, input, weights: (usize::from(owners[block]) * rows + row) as u16 }
        };
        let none = look(4 * (owners.len() - 1) as u16, 0);
        let (mut looks, mut begins) = (Vec::new(), [0; 65]);
        for cell in 0..64_u8 {
            let mut all = Vec::new();
            for (line, line_cells) in turning.cells.iter().enumerate() {
                if let Some(row) = line_cells.iter().position(|other| *other == cell) {
                    all.extend(quads[line * parts..(line + 1) * parts].iter().map(|quad| look(*quad, row)));
                }
            }
            let four = |four: &[Look]| std::array::from_fn(|index| four.get(index).copied().unwrap_or(none));
            looks.extend(all.chunks(4).map(four));
            begins[usize::from(cell) + 1] = looks.len() as u16;
        }
        (looks, begins)
    }

    /// Calls `f` with each weight (those that are kept several times, as often) and its index among the shared weights.
    fn each(&mut self, mut f: impl FnMut(&mut f32, usize)) {
        let tensors = self.ties.unshared.tensors();
        let start = |name: &str| tensors.iter().find(|tensor| tensor.name == name).map(|tensor| tensor.range.start);
        let (k, rows, parts, detectors) = (self.k, self.rows, self.parts, self.detectors);
        for orbit in 0..self.turning.reversible.len() {
            // The direction of an orbit's first line is ascending, as the unshared network has its cells.
            let of_orbit = |other: &usize| *other == orbit;
            let line = self.turning.orbits.iter().position(of_orbit).expect("an orbit has a line");
            for detector in 0..detectors {
                let owner = orbit * parts + detector / 4;
                let unit = line * detectors + detector;
                for lane in (detector % 4..LANES).step_by(4) {
                    for row in 0..k {
                        let tie = self.ties.weights[(line * k + row) * detectors + detector];
                        f(&mut self.first[owner * rows + row][lane], tie);
                    }
                    if let Some(start) = start("first.bias") {
                        f(&mut self.biases[owner][lane], self.ties.weights[start + unit]);
                    }
                    if self.ties.filters == 0 {
                        let start = start("output.weight").expect("every network has output weights");
                        f(&mut self.flat[owner][lane], self.ties.weights[start + unit]);
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
    fn looks_of(&self, cell: u8) -> std::ops::Range<usize> {
        let cell = usize::from(cell) % 64;
        usize::from(self.begins[cell])..usize::from(self.begins[cell + 1])
    }

    #[inline(always)]
    fn seat(&self, side: Side) -> Seat {
        Seat::of(side, self.views.len())
    }

    /// What a stone of the board counts in a view.
    #[inline(always)]
    fn stone(&self, cell: u8, view: usize) -> f32 {
        Seat::stone(if self.board.x >> cell & 1 != 0 { Side::X } else { Side::O }, view)
    }

    /// What a cell's lines see on it, as X sees it.
    #[inline(always)]
    fn set(&mut self, cell: u8, stone: f32) {
        for looks in &self.looks[self.looks_of(cell)] {
            for look in looks {
                // The rows of no units are read with weights of 0 only.
                let quad = usize::from(look.quad) % 4;
                self.inputs[usize::from(look.input)].as_chunks_mut::<4>().0[quad] = [stone; 4];
            }
        }
    }

    /// The lines of a cell are about to have a stone.
    #[inline(always)]
    fn wake(&mut self, cell: u8) {
        for looks in &self.looks[self.looks_of(cell)] {
            for look in looks {
                let block = look.quad / 4;
                let is_awake = &mut self.is_awake[usize::from(block)];
                if !*is_awake {
                    *is_awake = true;
                    self.awake.push(block);
                }
            }
        }
    }

    /// Sees to it that a view is right for the board as it was when so many cells were taken: takes back or adds stones
    /// if it is right for another, and otherwise computes it anew.
    #[inline(always)]
    fn show(&mut self, view: usize, taken: u64) {
        if self.views[view].taken.is_none() {
            self.refresh(view);
        }
        let shown = self.views[view].taken.unwrap_or(taken);
        for cell in cells(shown ^ taken) {
            let stone = self.stone(cell, view);
            self.shift(view, cell, if taken >> cell & 1 != 0 { stone } else { -stone });
        }
        self.views[view].taken = Some(taken);
    }

    /// Computes anew what is seen in a view of the present board.
    #[inline(always)]
    fn refresh(&mut self, view: usize) {
        let sign = if view == 0 { 1.0 } else { -1.0 };
        let (rows, seen) = (self.rows, &mut self.views[view]);
        let simd = self.simd;
        seen.direct = zero(simd);
        for block in &self.awake {
            let block = usize::from(*block);
            let owner = usize::from(self.owners[block]);
            let (inputs, weights) = (&self.inputs[block * rows..][..rows], &self.first[owner * rows..][..rows]);
            let mut sums = zero(simd);
            for (inputs, weights) in inputs.as_chunks::<ROWS>().0.iter().zip(weights.as_chunks::<ROWS>().0) {
                sums += inputs[0] * weights[0];
                sums += inputs[1] * weights[1];
                sums += inputs[2] * weights[2];
                sums += inputs[3] * weights[3];
            }
            sums *= sign;
            if self.biased {
                sums += self.present[block] * self.biases[owner];
            }
            let values = self.curve.lanes(sums);
            seen.sums[block] = sums;
            seen.values[block] = values;
            seen.direct += self.flat[owner] * values;
        }
        self.head.start(&mut self.scratch.above);
        let changes = self.awake.iter().map(|block| (quads_of(*block), &seen.values[usize::from(*block)]));
        self.head.add(
            &self.scratch.above,
            &mut seen.above,
            changes,
            #[inline(always)]
            |sums| *sums,
        );
        seen.taken = Some(self.board.occupied());
    }

    /// Moves what is seen in a view along when a cell's input changes by `stone`.
    #[inline(always)]
    fn shift(&mut self, view: usize, cell: u8, stone: f32) {
        let (simd, range) = (self.simd, self.looks_of(cell));
        let (seen, looks) = (&mut self.views[view], &self.looks[range]);
        let changes = &mut self.scratch.changes[..looks.len()];
        for (change, looks) in changes.iter_mut().zip(looks) {
            let quads = quads(looks);
            let sums = gather(simd, &seen.sums, quads) + weights(simd, &self.first, looks) * stone;
            let values = self.curve.lanes(sums);
            *change = values - gather(simd, &seen.values, quads);
            scatter(&mut seen.sums, quads, sums);
            scatter(&mut seen.values, quads, values);
            seen.direct += outputs(simd, &self.flat, &self.owners, looks) * *change;
        }
        let changes = looks.iter().map(quads).zip(&*changes);
        self.head.add(
            &seen.above,
            &mut self.scratch.above,
            changes,
            #[inline(always)]
            |sums| *sums,
        );
        seen.above.copy_from_slice(&self.scratch.above);
    }
}

/// Quads of detectors of such a network, those that fill up blocks included.
pub(in crate::net) fn quad_count(architecture: &Architecture) -> usize {
    let First::Lines { detectors } = architecture.first else { return 0 };
    let turning = Turning::new(architecture);
    let lines_of = |orbit| turning.orbits.iter().filter(|other| **other == orbit).count();
    (0..turning.reversible.len()).map(|orbit| lines_of(orbit).next_multiple_of(4)).sum::<usize>()
        * detectors.div_ceil(4)
}

/// The weights with which four look at a cell.
#[inline(always)]
fn weights<S: Simd>(simd: S, first: &[Lanes<S>], looks: &[Look; 4]) -> Lanes<S> {
    let [a, b, c, d] = looks;
    let rows = [a.weights, b.weights, c.weights, d.weights];
    gather(simd, first, rows.map(|row| 4 * row))
}

/// The output weights of four who look at a cell.
#[inline(always)]
fn outputs<S: Simd>(simd: S, flat: &[Lanes<S>], owners: &[u16], looks: &[Look; 4]) -> Lanes<S> {
    gather(simd, flat, quads(looks).map(|quad| 4 * owners[usize::from(quad / 4)]))
}

/// The quads of a block.
#[inline(always)]
fn quads_of(block: u16) -> [u16; 4] {
    [4 * block, 4 * block + 1, 4 * block + 2, 4 * block + 3]
}

/// The quads of four who look at a cell.
#[inline(always)]
fn quads(looks: &[Look; 4]) -> [u16; 4] {
    [looks[0].quad, looks[1].quad, looks[2].quad, looks[3].quad]
}
