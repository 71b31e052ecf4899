//! Networks whose first layer looks at lines: a stone changes only the detectors of the lines through it.

use super::{Head, Layout, Lesson, NONE, QUADS, Quads, Seat, gather, scatter};
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
    biased: f32,
    head: H,
    /// Of each cell: where its blocks begin.
    blocks: [u16; 65],
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
    /// Scratch: sums of the board that is learnt from, where they differ; steps of the first layer's sums.
    past: Box<Quads>,
    steps: Box<Quads>,
}

impl<H: Head> Lines<H> {
    pub(in crate::net) fn new(architecture: &Architecture, weights: &[f32]) -> Self {
        let layout = Layout::new(architecture);
        let geometry = Geometry::new(architecture.shape).expect("the architecture was checked");
        let parts = layout.parts();
        let (mut blocks, mut quads) = ([0; 65], Vec::new());
        for cell in 0..64 {
            let through = geometry.lines().iter().enumerate().filter(|(_, line)| *line >> cell & 1 != 0);
            let cell_quads: Vec<u16> =
                through.flat_map(|(line, _)| (line * parts..(line + 1) * parts).map(|quad| quad as u16)).collect();
            for chunk in cell_quads.chunks(4) {
                quads.push(std::array::from_fn(|index| chunk.get(index).copied().unwrap_or(NONE)));
            }
            blocks[cell + 1] = quads.len() as u16;
        }
        let none = || Box::new([Quad::default(); QUADS]);
        let head = H::new(&layout, weights);
        let views = if architecture.biases { 2 } else { 1 };
        let view = || View { sums: none(), values: none(), above: head.start() };
        let mut lines = Self {
            curve: architecture.activation.curve(),
            slope: architecture.activation.slope(),
            biased: if architecture.biases { 1.0 } else { 0.0 },
            blocks,
            weights: vec![Lanes::ZERO; quads.len()].into_boxed_slice(),
            quads: quads.into_boxed_slice(),
            biases: none(),
            board: Board::EMPTY,
            views: (0..views).map(|_| view()).collect(),
            stones: none(),
            awake: [NONE; QUADS],
            awake_count: 0,
            quad_count: geometry.lines().len() * parts,
            past: none(),
            steps: none(),
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

    /// Takes back a stone of the board in the view that is learnt in: in the values and in `above`, not in the sums.
    #[inline(always)]
    fn take_back(&mut self, view: usize, cell: u8, stone: f32, above: &mut H::Sums) {
        for block in self.blocks_of(cell) {
            let quads = self.quads[block];
            let sums = gather(&self.past, quads).plus(self.weights[block], Lanes::splat(-stone));
            let values = self.curve.lanes(sums);
            let before = gather(&self.views[view].values, quads);
            self.head.add(above, quads, values.zip(before, |value, before| value - before));
            scatter(&mut self.past, quads, sums);
            scatter(&mut self.views[view].values, quads, values);
            self.count(quads, -1.0);
        }
    }

    /// A stone more, or less, on the lines of these quads.
    #[inline(always)]
    fn count(&mut self, quads: [u16; 4], stones: f32) {
        // NONE has no line, but its detectors' steps are 0, so that what is counted there does no harm.
        let counted = gather(&self.stones, quads).map(|count| count + stones);
        scatter(&mut self.stones, quads, counted);
    }

    /// The pass over all units that can have a value: learns the head's connections and the biases, keeps the steps of the
    /// sums for the first layer's weights, and computes the views of the present board anew.
    #[inline(always)]
    fn pass(&mut self, seat: Seat, errors: &H::Errors) {
        for view in 0..self.views.len() {
            self.views[view].above = self.head.start();
        }
        let (slope, biased) = (self.slope, self.biased);
        for at in (0..self.awake_count).step_by(4) {
            let quads = std::array::from_fn(|index| self.awake[(at + index) % QUADS]);
            let past = gather(&self.views[seat.view].values, quads);
            let back = self.head.back(errors, quads);
            let steps = back.zip(past, |back, value| back * (slope * (1.0 - value * value)));
            scatter(&mut self.steps, quads, steps);
            self.head.learn(errors, quads, past);
            if biased != 0.0 {
                let biases = gather(&self.biases, quads).zip(steps, |bias, step| bias + step);
                scatter(&mut self.biases, quads, biases);
            }
            let stones = gather(&self.stones, quads);
            for view in 0..self.views.len() {
                let sign = if view == seat.view { 1.0 } else { -1.0 };
                let weight = stones.map(|stones| biased + sign * stones);
                let sums = gather(&self.views[view].sums, quads).plus(steps, weight);
                let values = self.curve.lanes(sums);
                scatter(&mut self.views[view].sums, quads, sums);
                scatter(&mut self.views[view].values, quads, values);
                let mut above = self.views[view].above;
                self.head.add(&mut above, quads, values);
                self.views[view].above = above;
            }
        }
    }
}

impl<H: Head> Engine for Lines<H> {
    #[inline(always)]
    fn reset(&mut self) {
        self.board = Board::EMPTY;
        self.awake_count = 0;
        self.stones.fill(Quad::default());
        for view in 0..self.views.len() {
            self.views[view].sums.copy_from_slice(&*self.biases);
            self.views[view].values.fill(Quad::default());
            self.views[view].above = self.head.start();
        }
        if self.biased == 0.0 {
            return;
        }
        self.awake_count = self.quad_count;
        for at in (0..self.quad_count).step_by(4) {
            let quads: [u16; 4] = std::array::from_fn(|index| {
                let quad = at + index;
                if quad < self.quad_count { quad as u16 } else { NONE }
            });
            self.awake[at..at + 4].copy_from_slice(&quads);
            let values = self.curve.lanes(gather(&self.biases, quads));
            for view in 0..self.views.len() {
                scatter(&mut self.views[view].values, quads, values);
                let mut above = self.views[view].above;
                self.head.add(&mut above, quads, values);
                self.views[view].above = above;
            }
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
            let mut above = view.above;
            for block in self.blocks_of(cell) {
                let quads = self.quads[block];
                let sums = gather(&view.sums, quads).plus(self.weights[block], Lanes::splat(seat.sign));
                let change = self.curve.lanes(sums).zip(gather(&view.values, quads), |new, old| new - old);
                self.head.add(&mut above, quads, change);
            }
            out[usize::from(cell) % 64] = seat.sign * self.head.output(&above);
        }
    }

    #[inline(always)]
    fn play(&mut self, cell: u8) {
        let side = self.board.to_move();
        self.board = self.board.play(cell);
        for block in self.blocks_of(cell) {
            let quads = self.quads[block];
            for view in 0..self.views.len() {
                let kept = &mut self.views[view];
                let stone = Lanes::splat(Seat::stone(side, view));
                let sums = gather(&kept.sums, quads).plus(self.weights[block], stone);
                let values = self.curve.lanes(sums);
                let change = values.zip(gather(&kept.values, quads), |new, old| new - old);
                self.head.add(&mut kept.above, quads, change);
                scatter(&mut kept.sums, quads, sums);
                scatter(&mut kept.values, quads, values);
            }
            if self.biased == 0.0 {
                for quad in quads {
                    if quad != NONE && self.stones[usize::from(quad) % QUADS].0[0] == 0.0 {
                        self.awake[self.awake_count % QUADS] = quad;
                        self.awake_count += 1;
                    }
                }
            }
            self.count(quads, 1.0);
        }
        for index in self.awake_count..self.awake_count.next_multiple_of(4) {
            self.awake[index % QUADS] = NONE;
        }
    }

    #[inline(always)]
    fn learn(&mut self, board: Board, side: Side, target: f32, rate: f32, derivative: bool) {
        let seat = self.seat(side);
        let later = self.board.occupied() & !board.occupied();
        let stone =
            |stones: Board, cell: u8| Seat::stone(if stones.x >> cell & 1 != 0 { Side::X } else { Side::O }, seat.view);
        let mut above = self.views[seat.view].above;
        for cell in cells(later) {
            for block in self.blocks_of(cell) {
                let quads = self.quads[block];
                let sums = gather(&self.views[seat.view].sums, quads);
                scatter(&mut self.past, quads, sums);
            }
        }
        for cell in cells(later) {
            self.take_back(seat.view, cell, stone(self.board, cell), &mut above);
        }
        let errors = self.head.begin(&above, Lesson { target: seat.sign * target, rate, derivative });
        self.pass(seat, &errors);
        for cell in cells(later) {
            for block in self.blocks_of(cell) {
                self.count(self.quads[block], 1.0);
            }
        }
        for cell in cells(board.occupied()) {
            let stone = Lanes::splat(stone(board, cell));
            for block in self.blocks_of(cell) {
                self.weights[block] = self.weights[block].plus(gather(&self.steps, self.quads[block]), stone);
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
