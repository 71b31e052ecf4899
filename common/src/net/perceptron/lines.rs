//! Networks whose first layer looks at lines: a stone changes only the detectors of the lines through it.

use super::{Group, Head, Layout, Lesson, NONE, QUADS, Quads, Seat, gather, outputs, scatter};
use crate::{
    board::{Board, Geometry, Side, cells},
    net::{
        Architecture, Engine,
        activation::Curve,
        lanes::{Lanes, Quad},
    },
};

/// What is kept of the board as one side sees it.
#[derive(Clone, Debug)]
struct View<S> {
    /// Weighted sums of the first layer.
    sums: Box<Quads>,
    /// Its values.
    values: Box<Quads>,
    above: S,
}

/// A network over lines in play. What lies above its first layer is its [`Head`].
#[derive(Clone, Debug)]
pub(in crate::net) struct Lines<H: Head> {
    layout: Layout,
    curve: Curve,
    slope: f32,
    biased: bool,
    head: H,
    /// Of each cell: where its blocks begin.
    blocks: [u16; 65],
    /// Cells with so many blocks, as masks.
    widths: Vec<(usize, u64)>,
    /// Of each block: the quads of detectors that look at its cell; [`NONE`] fills it up.
    quads: Box<[[u16; 4]]>,
    /// Of each block: the weights of those detectors for that cell.
    weights: Box<[Lanes]>,
    biases: Box<Quads>,
    board: Board,
    /// One, or with biases one for each side.
    views: Box<[View<H::Sums>]>,
    /// How many cells of each quad's line are taken, in all its lanes.
    stones: Box<Quads>,
    /// Quads that can have another value than 0, filled up with [`NONE`]: all with biases, else those with a stone on
    /// their line.
    awake: [u16; QUADS],
    awake_count: usize,
    quad_count: usize,
    scratch: Scratch<H>,
}

/// What a computation needs for a moment.
#[derive(Clone, Debug)]
struct Scratch<H: Head> {
    /// By block: how the values of its detectors would change by a stone on its cell.
    changes: Box<[Lanes]>,
    /// Of each move: what it makes of the sums above.
    settled: Box<[H::Settled; 64]>,
    /// Sums of the board that is learnt from, where they differ from the present ones.
    past: Box<Quads>,
    /// Steps of the first layer's sums.
    steps: Box<Quads>,
    groups: Box<[Group; QUADS / 4]>,
}

impl<H: Head> Lines<H> {
    pub(in crate::net) fn new(architecture: &Architecture, weights: &[f32]) -> Self {
        let layout = Layout::new(architecture);
        let geometry = Geometry::new(architecture.shape).expect("the architecture was checked");
        let parts = layout.parts();
        let (mut blocks, mut quads) = ([0; 65], Vec::new());
        let mut widths: Vec<(usize, u64)> = Vec::new();
        for cell in 0..64 {
            let through = geometry.line_indices_through(cell as u8).iter().map(|line| usize::from(*line));
            let all: Vec<u16> =
                through.flat_map(|line| line * parts..(line + 1) * parts).map(|quad| quad as u16).collect();
            for chunk in all.chunks(4) {
                quads.push(std::array::from_fn(|index| chunk.get(index).copied().unwrap_or(NONE)));
            }
            blocks[cell + 1] = quads.len() as u16;
            let width = all.len().div_ceil(4);
            match widths.iter_mut().find(|(known, _)| *known == width) {
                Some((_, cells)) => *cells |= 1 << cell,
                None => widths.push((width, 1 << cell)),
            }
        }
        let none = || Box::new([Quad::default(); QUADS]);
        let head = H::new(&layout, weights);
        let view = || View { sums: none(), values: none(), above: head.start() };
        let scratch = Scratch {
            changes: vec![Lanes::ZERO; quads.len()].into_boxed_slice(),
            settled: Box::new([H::Settled::default(); 64]),
            past: none(),
            steps: none(),
            groups: Box::new([Group::default(); QUADS / 4]),
        };
        let mut lines = Self {
            curve: architecture.activation.curve(),
            slope: architecture.activation.slope(),
            biased: architecture.biases,
            blocks,
            widths,
            weights: vec![Lanes::ZERO; quads.len()].into_boxed_slice(),
            quads: quads.into_boxed_slice(),
            biases: none(),
            board: Board::EMPTY,
            views: (0..if architecture.biases { 2 } else { 1 }).map(|_| view()).collect(),
            stones: none(),
            awake: [NONE; QUADS],
            awake_count: 0,
            quad_count: geometry.lines().len() * parts,
            scratch,
            head,
            layout,
        };
        lines.each(|weight, index| *weight = weights[index]);
        lines.reset();
        lines
    }

    /// Calls `f` with each weight and bias of the first layer and its canonical place.
    fn each(&mut self, mut f: impl FnMut(&mut f32, usize)) {
        let geometry = Geometry::new(self.layout.architecture.shape).expect("the architecture was checked");
        let places: Vec<(usize, usize)> = self.layout.places().collect();
        let detectors = places.len() / geometry.lines().len();
        let mut index = self.layout.range("first.weight").start;
        for (line, mask) in geometry.lines().iter().enumerate() {
            for cell in cells(*mask) {
                for (quad, lane) in &places[line * detectors..(line + 1) * detectors] {
                    let (block, at) = self.find(cell, *quad);
                    f(&mut self.weights[block].0[4 * at + lane], index);
                    index += 1;
                }
            }
        }
        for (index, (quad, lane)) in self.layout.range("first.bias").zip(places) {
            f(&mut self.biases[quad].0[lane], index);
        }
    }

    /// The block of a cell that has this quad, and where.
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
    fn seat(&self, side: Side) -> Seat {
        Seat::of(side, self.views.len())
    }

    /// The sums of a cell's detectors with a stone more, or less, on it.
    #[inline(always)]
    fn moved(&self, sums: &Quads, block: usize, stone: f32) -> Lanes {
        gather(sums, self.quads[block]).plus(self.weights[block], Lanes::splat(stone))
    }

    /// A stone more, or less, on the lines of a cell.
    #[inline(always)]
    fn count(&mut self, cell: u8, stones: f32) {
        for block in self.blocks_of(cell) {
            // NONE has no line, but its detectors' steps are 0, so that what is counted there does no harm.
            let quads = self.quads[block];
            let counted = gather(&self.stones, quads).map(|count| count + stones);
            scatter(&mut self.stones, quads, counted);
        }
    }

    /// The lines of a cell are about to have a stone.
    #[inline(always)]
    fn wake(&mut self, cell: u8) {
        if self.biased {
            return;
        }
        for block in self.blocks_of(cell) {
            for quad in self.quads[block] {
                let new = quad != NONE && self.stones[usize::from(quad) % QUADS].0[0] == 0.0;
                self.awake[self.awake_count % QUADS] = quad;
                self.awake_count += usize::from(new);
            }
        }
        for index in 0..3 {
            self.awake[(self.awake_count + index) % QUADS] = NONE;
        }
    }

    /// Takes stones back, in one view: in its values, in the count of stones, and in the sums above,
    /// which are returned, but not in the sums of the first layer.
    #[inline(always)]
    fn take_back(&mut self, view: usize, later: u64) -> H::Sums {
        let mut above = self.views[view].above;
        for cell in cells(later) {
            for block in self.blocks_of(cell) {
                let quads = self.quads[block];
                let sums = gather(&self.views[view].sums, quads);
                scatter(&mut self.scratch.past, quads, sums);
            }
        }
        for cell in cells(later) {
            self.count(cell, -1.0);
            let stone = self.stone(cell, view);
            for block in self.blocks_of(cell) {
                let quads = self.quads[block];
                let sums = self.moved(&self.scratch.past, block, -stone);
                let values = self.curve.lanes(sums);
                let change = values.zip(gather(&self.views[view].values, quads), |new, old| new - old);
                self.head.add(&mut above, quads, &change);
                scatter(&mut self.scratch.past, quads, sums);
                scatter(&mut self.views[view].values, quads, values);
            }
        }
        above
    }

    /// What a stone of the board counts in a view.
    #[inline(always)]
    fn stone(&self, cell: u8, view: usize) -> f32 {
        Seat::stone(if self.board.x >> cell & 1 != 0 { Side::X } else { Side::O }, view)
    }

    /// The steps of all sums of the first layer, from the errors above it; keeps the values of the board that is learnt from.
    #[inline(always)]
    fn step(&mut self, view: usize, errors: &H::Errors) {
        let slope = self.slope;
        for (index, group) in self.scratch.groups[..self.awake_count.div_ceil(4)].iter_mut().enumerate() {
            group.quads = std::array::from_fn(|at| self.awake[(4 * index + at) % QUADS]);
            let past = gather(&self.views[view].values, group.quads);
            group.past = past;
            let back = self.head.back(errors, group.quads);
            let steps = back.zip(past, |back, value| back * (slope * (1.0 - value * value)));
            scatter(&mut self.scratch.steps, group.quads, steps);
        }
    }

    /// Corrects the sums of the first layer, computes its values anew, and with them all that is above.
    #[inline(always)]
    fn renew(&mut self, seat: Seat, errors: &H::Errors) {
        let bias = if self.biased { 1.0 } else { 0.0 };
        let groups = &mut self.scratch.groups[..self.awake_count.div_ceil(4)];
        for group in &mut *groups {
            let steps = gather(&self.scratch.steps, group.quads);
            let stones = gather(&self.stones, group.quads);
            for (view, kept) in self.views.iter_mut().enumerate() {
                // A step reaches a sum once for the bias and once for each stone of its line that was learnt from.
                let sign = if view == seat.view { 1.0 } else { -1.0 };
                let times = stones.map(|stones| bias + sign * stones);
                let sums = gather(&kept.sums, group.quads).plus(steps, times);
                let values = self.curve.lanes(sums);
                scatter(&mut kept.sums, group.quads, sums);
                scatter(&mut kept.values, group.quads, values);
                group.values[view] = values;
            }
            if self.biased {
                let biases = gather(&self.biases, group.quads).zip(steps, |bias, step| bias + step);
                scatter(&mut self.biases, group.quads, biases);
            }
        }
        if let [x, o] = &mut *self.views {
            [x.above, o.above] = self.head.learn::<2>(errors, groups);
        } else {
            [self.views[0].above] = self.head.learn::<1>(errors, groups);
        }
    }
}

impl<H: Head> Engine for Lines<H> {
    #[inline(always)]
    fn reset(&mut self) {
        self.board = Board::EMPTY;
        self.awake_count = 0;
        self.stones.fill(Quad::default());
        for view in &mut self.views {
            view.sums.copy_from_slice(&*self.biases);
            view.values.fill(Quad::default());
            view.above = self.head.start();
        }
        if self.biased {
            self.awake_count = self.quad_count;
            for (index, quad) in self.awake.iter_mut().enumerate() {
                *quad = if index < self.quad_count { index as u16 } else { NONE };
            }
            for quads in self.awake[..self.quad_count.next_multiple_of(4)].as_chunks().0 {
                let values = self.curve.lanes(gather(&self.biases, *quads));
                for view in &mut self.views {
                    scatter(&mut view.values, *quads, values);
                    self.head.add(&mut view.above, *quads, &values);
                }
            }
        }
    }

    /// Each step is taken for all moves before the next, so that the processor has something to do while it waits for a
    /// result: each of them alone is one long chain.
    #[inline(always)]
    fn values(&mut self, legal: u64, out: &mut [f32; 64]) {
        let seat = self.seat(self.board.to_move());
        let view = &self.views[seat.view % self.views.len()];
        for (width, cells) in &self.widths {
            let mut rest = legal & cells;
            while rest != 0 {
                let start = self.blocks_of(rest.trailing_zeros() as u8).start;
                rest &= rest - 1;
                for block in start..start + width {
                    let values = self.curve.lanes(self.moved(&view.sums, block, seat.sign));
                    let before = gather(&view.values, self.quads[block]);
                    self.scratch.changes[block] = values.zip(before, |new, old| new - old);
                }
            }
        }
        let mut order = [0; 64];
        let mut count = 0;
        for (width, cells) in &self.widths {
            let mut rest = legal & cells;
            while rest != 0 {
                let cell = rest.trailing_zeros() as u8;
                rest &= rest - 1;
                let start = self.blocks_of(cell).start;
                let blocks = start..start + width;
                self.scratch.settled[count % 64] =
                    self.head.settle(&view.above, &self.quads[blocks.clone()], &self.scratch.changes[blocks]);
                order[count % 64] = cell;
                count += 1;
            }
        }
        outputs(&self.head, &self.scratch.settled, &order[..count.min(64)], seat.sign, out);
    }

    #[inline(always)]
    fn play(&mut self, cell: u8) {
        let side = self.board.to_move();
        self.board = self.board.play(cell);
        self.wake(cell);
        self.count(cell, 1.0);
        for view in 0..self.views.len() {
            for block in self.blocks_of(cell) {
                let (quads, kept) = (self.quads[block], &self.views[view]);
                let sums = self.moved(&kept.sums, block, Seat::stone(side, view));
                let values = self.curve.lanes(sums);
                let change = values.zip(gather(&kept.values, quads), |new, old| new - old);
                let kept = &mut self.views[view];
                self.head.add(&mut kept.above, quads, &change);
                scatter(&mut kept.sums, quads, sums);
                scatter(&mut kept.values, quads, values);
            }
        }
    }

    #[inline(always)]
    fn learn(&mut self, board: Board, side: Side, target: f32, rate: f32, derivative: bool) {
        let seat = self.seat(side);
        let later = self.board.occupied() & !board.occupied();
        let above = self.take_back(seat.view, later);
        let errors = self.head.begin(&above, Lesson { target: seat.sign * target, rate, derivative });
        self.step(seat.view, &errors);
        self.renew(seat, &errors);
        for cell in cells(board.occupied()) {
            let stone = Lanes::splat(self.stone(cell, seat.view));
            for block in self.blocks_of(cell) {
                self.weights[block] = self.weights[block].plus(gather(&self.scratch.steps, self.quads[block]), stone);
            }
        }
        for cell in cells(later) {
            self.count(cell, 1.0);
        }
    }

    fn weights(&self) -> Vec<f32> {
        let mut weights = vec![0.0; self.layout.architecture.parameters()];
        self.clone().each(|weight, index| weights[index] = *weight);
        self.head.write(&self.layout, &mut weights);
        weights
    }
}
