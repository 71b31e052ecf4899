//! The fast path of networks over lines that share weights.
//!
//! As without sharing ([`crate::net::perceptron`]), sums are kept and a stone changes only the detectors of the lines through
//! it. But a step of learning changes the weights of all lines' images, so afterwards nothing that is kept is right any more:
//! what a side sees is computed anew when it is next asked for. In the usual order of play that is once a move.

use super::{GROUP, Head, Sums, Ties, Turning};
use crate::{
    board::{Board, Side, cells},
    net::{
        Architecture, Engine, First,
        activation::Curve,
        lanes::{Lanes, Quad},
        perceptron::{NONE, QUADS, Quads, gather, scatter},
    },
};

/// What is kept of the board as one side sees it.
#[derive(Clone, Debug)]
struct View {
    /// Whether it is right.
    fresh: bool,
    /// Weighted sums of the first layer, and its values.
    sums: Box<Quads>,
    values: Box<Quads>,
    /// Sums of the second layer.
    above: Vec<Sums>,
    /// Sixteen parts of the output unit's sum, if there is no second layer.
    direct: Lanes,
}

/// A network over lines that shares weights.
#[derive(Clone, Debug)]
pub(in crate::net) struct Shared {
    ties: Ties,
    turning: Turning,
    detectors: usize,
    /// Quads of detectors of a line.
    parts: usize,
    curve: Curve,
    slope: f32,
    head: Head,
    bias: f32,
    /// Of each cell: where its blocks begin.
    blocks: [u16; 65],
    /// Of each block: the quads of detectors that look at its cell, and where their weights for it are in `first`; [`NONE`]
    /// and the last one fill it up.
    quads: Vec<[u16; 4]>,
    entries: Vec<[u16; 4]>,
    /// For each quad where its biases, or its output weights, are.
    units: Box<[u16; QUADS]>,
    /// Weights of each orbit's first line: by orbit, cell of the line, part; then biases and output weights, by orbit and
    /// part. The last of each is of no units.
    first: Vec<Quad>,
    biases: Vec<Quad>,
    flat: Vec<Quad>,
    board: Board,
    views: [View; 2],
    /// Quads that can have another value than 0, filled up with [`NONE`]: all with biases, else those with a stone on
    /// their line.
    awake: [u16; QUADS],
    awake_count: usize,
    is_awake: [bool; QUADS],
    /// Scratch: changes of values by a move; errors of the second layer; steps of the first layer's sums, and of the shared
    /// weights.
    changes: Vec<Lanes>,
    errors: Vec<Sums>,
    steps: Box<Quads>,
    first_steps: Vec<Quad>,
    bias_steps: Vec<Quad>,
    flat_steps: Vec<Quad>,
}

#[inline(always)]
fn gather_from(from: &[Quad], indices: [u16; 4]) -> Lanes {
    Lanes::of_quads(indices.map(|index| &from[usize::from(index)]))
}

#[inline(always)]
fn add(to: &mut Quad, step: &Quad, factor: f32) {
    for lane in 0..4 {
        to.0[lane] += step.0[lane] * factor;
    }
}

impl Shared {
    pub(in crate::net) fn new(architecture: &Architecture, weights: &[f32]) -> Self {
        let First::Lines { detectors } = architecture.first else {
            panic!("only networks over lines share weights so")
        };
        let turning = Turning::new(architecture);
        let parts = detectors.div_ceil(4);
        let (k, orbits) = (usize::from(architecture.shape.k), turning.reversible.len());
        let head = Head::new(architecture, &turning, parts);
        let none = || Box::new([Quad::default(); QUADS]);
        let zeros = |count: usize| vec![Quad::default(); count + 1];
        let view = || View {
            fresh: false,
            sums: none(),
            values: none(),
            above: vec![[[Lanes::ZERO; 2]; GROUP]; head.chunks()],
            direct: Lanes::ZERO,
        };
        let mut network = Self {
            detectors,
            parts,
            curve: architecture.activation.curve(),
            slope: architecture.activation.slope(),
            bias: 0.0,
            blocks: [0; 65],
            quads: Vec::new(),
            entries: Vec::new(),
            units: Box::new([(orbits * parts) as u16; QUADS]),
            first: zeros(orbits * k * parts),
            biases: zeros(orbits * parts),
            flat: zeros(orbits * parts),
            board: Board::EMPTY,
            views: [view(), view()],
            awake: [NONE; QUADS],
            awake_count: 0,
            is_awake: [false; QUADS],
            changes: Vec::new(),
            errors: vec![[[Lanes::ZERO; 2]; GROUP]; head.chunks()],
            steps: none(),
            first_steps: zeros(orbits * k * parts),
            bias_steps: zeros(orbits * parts),
            flat_steps: zeros(orbits * parts),
            ties: Ties::new(architecture),
            turning,
            head,
        };
        network.place();
        network.each(|weight, index| *weight = weights[index]);
        network.reset();
        network
    }

    /// Finds out which detectors look at which cells.
    fn place(&mut self) {
        let (turning, parts) = (&self.turning, self.parts);
        let k = turning.cells[0].len();
        for cell in 0..64_u8 {
            let mut through = Vec::new();
            for (line, line_cells) in turning.cells.iter().enumerate() {
                if let Some(at) = line_cells.iter().position(|other| *other == cell) {
                    let entry = |part| ((turning.orbits[line] * k + at) * parts + part) as u16;
                    through.extend((0..parts).map(|part| ((line * parts + part) as u16, entry(part))));
                }
            }
            let last = (self.first.len() - 1) as u16;
            for chunk in through.chunks(4) {
                let of = |index: usize| chunk.get(index).copied().unwrap_or((NONE, last));
                self.quads.push(std::array::from_fn(|index| of(index).0));
                self.entries.push(std::array::from_fn(|index| of(index).1));
            }
            self.blocks[usize::from(cell) + 1] = self.quads.len() as u16;
        }
        for (line, orbit) in turning.orbits.iter().enumerate() {
            for part in 0..parts {
                self.units[line * parts + part] = (orbit * parts + part) as u16;
            }
        }
        let most = (0..64).map(|cell| self.blocks_of(cell).len()).max().unwrap_or(0);
        self.changes = vec![Lanes::ZERO; most];
    }

    /// Calls `f` with each weight (those that are kept twice, twice) and its index among the shared weights.
    fn each(&mut self, mut f: impl FnMut(&mut f32, usize)) {
        let tensors = self.ties.unshared.tensors();
        let start = |name: &str| tensors.iter().find(|tensor| tensor.name == name).map(|tensor| tensor.range.start);
        let (k, parts, detectors) = (self.turning.cells[0].len(), self.parts, self.detectors);
        for orbit in 0..self.turning.reversible.len() {
            // The direction of an orbit's first line is ascending, as the unshared network has its cells.
            let of_orbit = |other: &usize| *other == orbit;
            let line = self.turning.orbits.iter().position(of_orbit).expect("an orbit has a line");
            for detector in 0..detectors {
                let (part, lane) = (detector / 4, detector % 4);
                for at in 0..k {
                    let tie = self.ties.weights[(line * k + at) * detectors + detector];
                    f(&mut self.first[(orbit * k + at) * parts + part].0[lane], tie);
                }
                let unit = line * detectors + detector;
                if let Some(start) = start("first.bias") {
                    f(&mut self.biases[orbit * parts + part].0[lane], self.ties.weights[start + unit]);
                }
                if self.ties.filters == 0 {
                    let start = start("output.weight").expect("every network has output weights");
                    f(&mut self.flat[orbit * parts + part].0[lane], self.ties.weights[start + unit]);
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
        usize::from(self.blocks[cell])..usize::from(self.blocks[cell + 1])
    }

    /// The places of biases and output weights of these quads.
    #[inline(always)]
    fn units_of(&self, quads: [u16; 4]) -> [u16; 4] {
        quads.map(|quad| self.units[usize::from(quad) % QUADS])
    }

    /// Wakes quads up: from now on they count.
    #[inline(always)]
    fn wake(&mut self, quads: [u16; 4]) {
        for quad in quads {
            let is_awake = &mut self.is_awake[usize::from(quad) % QUADS];
            if quad != NONE && !*is_awake {
                *is_awake = true;
                self.awake[self.awake_count % QUADS] = quad;
                self.awake_count += 1;
            }
        }
        self.fill_up();
    }

    /// Fills the last four quads up.
    #[inline(always)]
    fn fill_up(&mut self) {
        for index in self.awake_count..self.awake_count.next_multiple_of(4) {
            self.awake[index % QUADS] = NONE;
        }
    }

    #[inline(always)]
    fn awake_at(&self, at: usize) -> [u16; 4] {
        std::array::from_fn(|index| self.awake[(at + index) % QUADS])
    }

    /// Computes anew what a side sees, if it is not right.
    #[inline(always)]
    fn refresh(&mut self, side: Side) {
        if self.views[side as usize].fresh {
            return;
        }
        for at in (0..self.awake_count).step_by(4) {
            let quads = self.awake_at(at);
            let biases = gather_from(&self.biases, self.units_of(quads));
            scatter(&mut self.views[side as usize].sums, quads, biases);
        }
        for cell in cells(self.board.occupied()) {
            let stone = Lanes::splat(stone(self.board, side, cell));
            for block in self.blocks_of(cell) {
                let quads = self.quads[block];
                let sums = &mut self.views[side as usize].sums;
                let moved = gather(sums, quads).plus(gather_from(&self.first, self.entries[block]), stone);
                scatter(sums, quads, moved);
            }
        }
        let mut direct = Lanes::ZERO;
        for at in (0..self.awake_count).step_by(4) {
            let quads = self.awake_at(at);
            let view = &mut self.views[side as usize];
            let values = self.curve.lanes(gather(&view.sums, quads));
            scatter(&mut view.values, quads, values);
            direct = direct.plus(gather_from(&self.flat, self.units_of(quads)), values);
        }
        self.views[side as usize].direct = direct;
        for chunk in 0..self.head.chunks() {
            let mut above = self.head.start(chunk);
            for at in (0..self.awake_count).step_by(4) {
                let quads = self.awake_at(at);
                self.head.add(chunk, &mut above, quads, gather(&self.views[side as usize].values, quads));
            }
            self.views[side as usize].above[chunk] = above;
        }
        self.views[side as usize].fresh = true;
    }

    /// Moves what a side sees along when a cell's input changes by `stone`.
    #[inline(always)]
    fn shift(&mut self, side: Side, cell: u8, stone: f32) {
        let view = &mut self.views[side as usize];
        let range =
            usize::from(self.blocks[usize::from(cell) % 64])..usize::from(self.blocks[usize::from(cell) % 64 + 1]);
        for (change, block) in self.changes.iter_mut().zip(range.clone()) {
            let quads = self.quads[block];
            let sums =
                gather(&view.sums, quads).plus(gather_from(&self.first, self.entries[block]), Lanes::splat(stone));
            let values = self.curve.lanes(sums);
            *change = values.zip(gather(&view.values, quads), |new, old| new - old);
            scatter(&mut view.sums, quads, sums);
            scatter(&mut view.values, quads, values);
            let units = quads.map(|quad| self.units[usize::from(quad) % QUADS]);
            view.direct = view.direct.plus(gather_from(&self.flat, units), *change);
        }
        for chunk in 0..self.head.chunks() {
            let mut above = view.above[chunk];
            for (change, block) in self.changes.iter().zip(range.clone()) {
                self.head.add(chunk, &mut above, self.quads[block], *change);
            }
            view.above[chunk] = above;
        }
    }

    /// Over all units that can have a value: keeps the steps of the first layer's sums, those of biases and output weights
    /// added up, and learns the connections to the head.
    #[inline(always)]
    fn pass(&mut self, side: Side, step: f32) {
        let slope = self.slope;
        for at in (0..self.awake_count).step_by(4) {
            let quads = self.awake_at(at);
            let units = self.units_of(quads);
            let values = gather(&self.views[side as usize].values, quads);
            let mut back = gather_from(&self.flat, units).map(|weight| weight * step);
            for (chunk, errors) in self.errors.iter().enumerate() {
                let sums = quads.map(|quad| self.head.back(chunk, errors, quad));
                back = back.zip(Lanes::sums_over_quads(&sums), |back, sum| back + sum);
            }
            let steps = back.zip(values, |back, value| back * (slope * (1.0 - value * value)));
            scatter(&mut self.steps, quads, steps);
            for (index, unit) in units.into_iter().enumerate() {
                add(&mut self.bias_steps[usize::from(unit)], &steps.quad(index), 1.0);
                add(&mut self.flat_steps[usize::from(unit)], &values.quad(index), step);
            }
        }
        // Only now: the weights that one line learns are those through which errors come back to its images.
        for (chunk, errors) in self.errors.iter().enumerate() {
            for at in (0..self.awake_count).step_by(4) {
                let quads = self.awake_at(at);
                self.head.learn(chunk, errors, quads, gather(&self.views[side as usize].values, quads));
            }
        }
    }

    /// Adds the steps of shared weights: each of a reversible orbit is that of its mirrored twin too.
    #[inline(always)]
    fn descend(&mut self) {
        let (k, parts) = (self.turning.cells[0].len(), self.parts);
        let biased = self.ties.unshared.biases;
        for (orbit, reversible) in self.turning.reversible.iter().enumerate() {
            for part in 0..parts {
                let at = |cell: usize| (orbit * k + cell) * parts + part;
                let unit = orbit * parts + part;
                for cell in 0..k {
                    let twin = if *reversible { at(k - 1 - cell) } else { usize::MAX };
                    tied(&mut self.first[at(cell)], &self.first_steps, at(cell), twin);
                }
                let twin = if *reversible { unit } else { usize::MAX };
                if biased {
                    tied(&mut self.biases[unit], &self.bias_steps, unit, twin);
                }
                if self.ties.filters == 0 {
                    tied(&mut self.flat[unit], &self.flat_steps, unit, twin);
                }
            }
        }
        self.first_steps.fill(Quad::default());
        self.bias_steps.fill(Quad::default());
        self.flat_steps.fill(Quad::default());
    }
}

/// What a stone counts as a side sees it.
#[inline(always)]
fn stone(board: Board, side: Side, cell: u8) -> f32 {
    if board.stones(side) >> cell & 1 != 0 { 1.0 } else { -1.0 }
}

/// Adds a quad of steps and, if there is one, its twin's, in which neighbours have changed places.
#[inline(always)]
fn tied(weights: &mut Quad, steps: &[Quad], at: usize, twin: usize) {
    for lane in 0..4 {
        let other = steps.get(twin).map_or(0.0, |twin| twin.0[lane ^ 1]);
        weights.0[lane] += steps[at].0[lane] + other;
    }
}

impl Engine for Shared {
    #[inline(always)]
    fn reset(&mut self) {
        self.board = Board::EMPTY;
        self.awake_count = 0;
        self.is_awake.fill(false);
        for view in &mut self.views {
            view.fresh = false;
            view.sums.fill(Quad::default());
            view.values.fill(Quad::default());
        }
        if self.ties.unshared.biases {
            for quad in 0..self.turning.cells.len() * self.parts {
                self.is_awake[quad % QUADS] = true;
                self.awake[quad % QUADS] = quad as u16;
            }
            self.awake_count = self.turning.cells.len() * self.parts;
            self.fill_up();
        }
    }

    #[inline(always)]
    fn values(&mut self, legal: u64, out: &mut [f32; 64]) {
        let side = self.board.to_move();
        self.refresh(side);
        let mut rest = legal;
        while rest != 0 {
            let cell = rest.trailing_zeros() as u8;
            rest &= rest - 1;
            let view = &self.views[side as usize];
            let range = self.blocks_of(cell);
            let mut direct = view.direct;
            for (slot, block) in range.clone().enumerate() {
                let quads = self.quads[block];
                let weights = gather_from(&self.first, self.entries[block]);
                let sums = gather(&view.sums, quads).zip(weights, |sum, weight| sum + weight);
                let change = self.curve.lanes(sums).zip(gather(&view.values, quads), |new, old| new - old);
                direct = direct.plus(gather_from(&self.flat, self.units_of(quads)), change);
                self.changes[slot] = change;
            }
            let mut sum = direct.sum() + self.bias;
            for chunk in 0..self.head.chunks() {
                let mut above = view.above[chunk];
                for (change, block) in self.changes.iter().zip(range.clone()) {
                    self.head.add(chunk, &mut above, self.quads[block], *change);
                }
                sum += self.head.output(chunk, &above);
            }
            out[usize::from(cell) % 64] = sum;
        }
    }

    #[inline(always)]
    fn play(&mut self, cell: u8) {
        self.board = self.board.play(cell);
        if !self.ties.unshared.biases {
            for block in self.blocks_of(cell) {
                self.wake(self.quads[block]);
            }
        }
        for side in Side::BOTH {
            if self.views[side as usize].fresh {
                self.shift(side, cell, stone(self.board, side, cell));
            }
        }
    }

    #[inline(always)]
    fn learn(&mut self, board: Board, side: Side, target: f32, rate: f32, derivative: bool) {
        self.refresh(side);
        for cell in cells(self.board.occupied() & !board.occupied()) {
            self.shift(side, cell, -stone(self.board, side, cell));
        }
        let mut sum = self.views[side as usize].direct.sum() + self.bias;
        for chunk in 0..self.head.chunks() {
            sum += self.head.keep(chunk, &self.views[side as usize].above[chunk]);
        }
        let value = self.curve.apply(sum);
        let slope = if derivative { self.slope * (1.0 - value * value) } else { 1.0 };
        let step = -rate * ((value - target) * slope);
        for chunk in 0..self.head.chunks() {
            self.head.begin(chunk, step, &mut self.errors[chunk]);
        }
        for chunk in 0..self.head.chunks() {
            self.head.finish(chunk, step, &self.errors[chunk]);
        }
        self.pass(side, step);
        for cell in cells(board.occupied()) {
            let stone = stone(board, side, cell);
            for block in self.blocks_of(cell) {
                let quads = self.quads[block].into_iter().zip(self.entries[block]);
                for (quad, entry) in quads {
                    add(&mut self.first_steps[usize::from(entry)], &self.steps[usize::from(quad) % QUADS], stone);
                }
            }
        }
        self.descend();
        if self.ties.unshared.biases {
            self.bias += step;
        }
        self.views.iter_mut().for_each(|view| view.fresh = false);
    }

    fn weights(&self) -> Vec<f32> {
        let count = self.ties.weights.iter().max().map_or(0, |last| last + 1);
        let mut weights = vec![0.0; count];
        self.clone().each(|weight, index| weights[index] = *weight);
        weights
    }
}
