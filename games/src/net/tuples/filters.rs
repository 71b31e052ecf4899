//! Tables whose entries feed a second layer, read in several orientations of the board at once.
//!
//! A lane is one filter in one orientation: eight filters are a *block*, the blocks of two orientations sixteen lanes. The
//! entries of a configuration's images stand side by side (see [`Orbits`](super::orbits::Orbits)), so that a line is one
//! lookup for all orientations. Of more than eight filters each eight have tables of their own (a *slab*). Eight
//! orientations are handled together (a *group*): if there are fewer, blocks that count for nothing fill up, and if there are
//! more, there are several groups.

use fearless_simd::{f32x8, prelude::*};

use super::{Structure, Views, structure};
use crate::{
    board::{Board, Side},
    net::{
        Architecture, Engine,
        activation::Curve,
        lanes::{Across, LANES, Lanes, zero},
    },
};

/// Filters of a block.
const FILTERS: usize = LANES / 2;
/// Orientations of a group.
const GROUP: usize = 8;
/// Blocks that the images of a configuration can be among: no more than a byte can tell apart.
const WINDOW: usize = 256;

/// An entry of eight filters.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
struct Block([f32; FILTERS]);

/// Numbers of eight filters in eight orientations, two side by side.
type Group<S> = [Lanes<S>; GROUP / 2];

/// An n-tuple network with a second layer.
#[derive(Clone)]
pub(in crate::net) struct Filters<S: Simd> {
    simd: S,
    views: Views,
    filters: usize,
    biases: bool,
    curve: Curve,
    slope: f32,
    images: Images<S>,
    slabs: Vec<Slab<S>>,
    bias: f32,
    /// The entries of all lines of the board before a move.
    read: Vec<Group<S>>,
    /// The second layer's values of the board that is learnt: by slab, then group.
    kept: Vec<Group<S>>,
}

/// Where the entries of configurations' images are.
#[derive(Clone)]
struct Images<S: Simd> {
    simd: S,
    /// By configuration, then group.
    windows: Vec<Window>,
    /// For each configuration its own place.
    places: Vec<u32>,
    /// For each group: 1 for orientations that there are, 0 for those that fill up.
    present: Vec<Group<S>>,
}

/// Where the entries of a configuration's images are, in a group of orientations.
#[derive(Clone, Copy, Debug)]
struct Window {
    start: u32,
    /// From there.
    offsets: [u8; GROUP],
}

/// The weights of eight filters.
#[derive(Clone)]
struct Slab<S: Simd> {
    /// By place; ends with zeros, so that as many blocks follow each place as can be asked for.
    tables: Vec<Block>,
    /// The same for both orientations, as are output weights.
    bias: Lanes<S>,
    output: Lanes<S>,
}

impl<S: Simd> Filters<S> {
    pub(in crate::net) fn new(simd: S, architecture: &Architecture, weights: &[f32]) -> Self {
        let structure = structure(architecture);
        let images = Images::new(simd, &structure);
        let filters = architecture.second;
        let activation = architecture.activation;
        let lines = structure.reading.configurations() / structure.reading.line_states();
        let nothing = [zero(simd); GROUP / 2];
        let mut network = Self {
            simd,
            views: structure.views.clone(),
            filters,
            biases: architecture.biases,
            curve: activation.curve(),
            slope: activation.slope(),
            slabs: Vec::new(),
            bias: 0.0,
            read: vec![nothing; lines],
            kept: vec![nothing; images.present.len() * filters.div_ceil(FILTERS)],
            images,
        };
        network.load(weights);
        network
    }

    /// Puts canonical weights where they are used.
    fn load(&mut self, weights: &[f32]) {
        let (filters, places) = (self.filters, &self.images.places);
        let (tables, rest) = weights.split_at(places.len() * filters);
        let (bias, rest) = rest.split_at(if self.biases { filters } else { 0 });
        let (output, rest) = rest.split_at(filters);
        self.bias = rest.first().copied().unwrap_or(0.0);
        for first in (0..filters).step_by(FILTERS) {
            let block =
                |from: &[f32]| Block(std::array::from_fn(|lane| from.get(first + lane).copied().unwrap_or(0.0)));
            let mut slab = vec![block(&[]); places.len() + WINDOW];
            for (place, entry) in places.iter().zip(tables.chunks_exact(filters)) {
                slab[*place as usize] = block(entry);
            }
            let both = |from: &[f32]| side_by_side(self.simd, &block(from), &block(from));
            self.slabs.push(Slab { tables: slab, bias: both(bias), output: both(output) });
        }
    }
}

impl<S: Simd> Images<S> {
    fn new(simd: S, structure: &Structure) -> Self {
        let orbits = &structure.orbits;
        let orientations = orbits.orientations;
        let groups = orientations.div_ceil(GROUP);
        let mut windows = Vec::with_capacity(groups * orbits.rows.len());
        for row in &orbits.rows {
            let turn = &orbits.turns[row.turn as usize * orientations..][..orientations];
            for group in turn.chunks(GROUP) {
                let offsets = std::array::from_fn(|k| group.get(k).copied().unwrap_or(0));
                windows.push(Window { start: row.start, offsets });
            }
        }
        let is_there = |group: usize, pair: usize, lane: usize| {
            f32::from(group * GROUP + 2 * pair + lane / FILTERS < orientations)
        };
        let pair = |group, pair| Lanes::from_fn(simd, |lane| is_there(group, pair, lane));
        let present = |group| std::array::from_fn(|at| pair(group, at));
        Self { simd, windows, places: orbits.places.clone(), present: (0..groups).map(present).collect() }
    }

    #[inline(always)]
    fn window(&self, group: usize, configuration: u32) -> &Window {
        &self.windows[configuration as usize * self.present.len() + group]
    }

    /// The entries of a configuration in a group of orientations.
    #[inline(always)]
    fn entries(&self, slab: &Slab<S>, group: usize, configuration: u32) -> Group<S> {
        let window = self.window(group, configuration);
        let blocks: &[Block; WINDOW] =
            slab.tables[window.start as usize..].first_chunk().expect("tables end with a window");
        let mut entries = [zero(self.simd); GROUP / 2];
        for (pair, entries) in entries.iter_mut().enumerate() {
            let [left, right] = [window.offsets[2 * pair], window.offsets[2 * pair + 1]].map(usize::from);
            *entries = side_by_side(self.simd, &blocks[left], &blocks[right]);
        }
        entries
    }

    /// Adds steps to the entries of a configuration in a group of orientations, one after the other: some may be the same.
    #[inline(always)]
    fn step(&self, slab: &mut Slab<S>, group: usize, configuration: u32, steps: &Group<S>) {
        let window = self.window(group, configuration);
        let blocks: &mut [Block; WINDOW] =
            slab.tables[window.start as usize..].first_chunk_mut().expect("tables end with a window");
        for pair in 0..GROUP / 2 {
            let (left, right) = steps[pair].split();
            for (k, steps) in [(2 * pair, left), (2 * pair + 1, right)] {
                let block = &mut blocks[usize::from(window.offsets[k])];
                (f32x8::simd_from(self.simd, block.0) + steps).store_slice(&mut block.0);
            }
        }
    }

    /// Of all lines' configurations in a group of orientations: the second layer's sums.
    #[inline(always)]
    fn sums(&self, slab: &Slab<S>, group: usize, configurations: &[u32]) -> Group<S> {
        let mut sums = [slab.bias; GROUP / 2];
        for configuration in configurations {
            add(&mut sums, &self.entries(slab, group, *configuration));
        }
        sums
    }
}

/// The entries of two orientations.
#[inline(always)]
fn side_by_side<S: Simd>(simd: S, left: &Block, right: &Block) -> Lanes<S> {
    f32x8::simd_from(simd, left.0).combine(f32x8::simd_from(simd, right.0))
}

#[inline(always)]
fn add<S: Simd>(to: &mut Group<S>, more: &Group<S>) {
    for pair in 0..GROUP / 2 {
        to[pair] += more[pair];
    }
}

/// The second layer's values, 0 for orientations that there are not.
#[inline(always)]
fn hidden<S: Simd>(curve: &Curve, present: &Group<S>, sums: &Group<S>) -> Group<S> {
    let mut values = curve.blocks(*sums);
    for pair in 0..GROUP / 2 {
        values[pair] *= present[pair];
    }
    values
}

/// The sum over all pairs of orientations, the first to the last.
#[inline(always)]
fn folded<S: Simd>(values: &Group<S>) -> Lanes<S> {
    let mut sum = values[0];
    for pair in &values[1..] {
        sum += *pair;
    }
    sum
}

/// The sum over all orientations, for both.
#[inline(always)]
fn total<S: Simd>(values: &Group<S>) -> Lanes<S> {
    let pairs = folded(values);
    pairs + pairs.swap(FILTERS)
}

/// What these values of the second layer add to the output unit's sum.
#[inline(always)]
fn output<S: Simd>(slab: &Slab<S>, hidden: &Group<S>) -> f32 {
    (folded(hidden) * slab.output).sum()
}

impl<S: Simd> Engine for Filters<S> {
    #[inline(always)]
    fn reset(&mut self) {
        self.views.reset();
    }

    #[inline(always)]
    fn values(&mut self, legal: u64, out: &mut [f32; 64]) {
        let now = self.views.now(self.views.to_move());
        let mut rest = legal;
        while rest != 0 {
            out[rest.trailing_zeros() as usize % 64] = self.bias;
            rest &= rest - 1;
        }
        for slab in &self.slabs {
            for (group, present) in self.images.present.iter().enumerate() {
                let mut before = [slab.bias; GROUP / 2];
                for (configuration, read) in now.iter().zip(&mut self.read) {
                    let entries = self.images.entries(slab, group, *configuration);
                    add(&mut before, &entries);
                    *read = entries;
                }
                let mut rest = legal;
                while rest != 0 {
                    let cell = rest.trailing_zeros();
                    let mut sums = before;
                    for change in self.views.changes(cell) {
                        let line = change.line as usize;
                        let come = self.images.entries(slab, group, now[line].wrapping_add(change.own));
                        for pair in 0..GROUP / 2 {
                            sums[pair] += come[pair] - self.read[line][pair];
                        }
                    }
                    out[cell as usize % 64] += output(slab, &hidden(&self.curve, present, &sums));
                    rest &= rest - 1;
                }
            }
        }
    }

    #[inline(always)]
    fn play(&mut self, cell: u8) {
        self.views.play(cell);
    }

    #[inline(always)]
    fn learn(&mut self, board: Board, side: Side, target: f32, rate: f32, derivative: bool) {
        let configurations = self.views.of(board, side);
        let groups = self.images.present.len();
        let mut sum = self.bias;
        for (index, slab) in self.slabs.iter().enumerate() {
            for (group, present) in self.images.present.iter().enumerate() {
                let hidden = hidden(&self.curve, present, &self.images.sums(slab, group, configurations));
                sum += output(slab, &hidden);
                self.kept[index * groups + group] = hidden;
            }
        }
        let value = self.curve.apply(sum);
        let slope = if derivative { self.slope * (1.0 - value * value) } else { 1.0 };
        let step = rate * (target - value) * slope;
        for (slab, kept) in self.slabs.iter_mut().zip(self.kept.chunks_exact(groups)) {
            let factor = slab.output * step * self.slope;
            for (group, (hidden, present)) in kept.iter().zip(&self.images.present).enumerate() {
                let mut steps = *hidden;
                for pair in 0..GROUP / 2 {
                    steps[pair] = factor * (1.0 - hidden[pair] * hidden[pair]) * present[pair];
                }
                for configuration in configurations {
                    self.images.step(slab, group, *configuration, &steps);
                }
                slab.output += total(hidden) * step;
                if self.biases {
                    slab.bias += total(&steps);
                }
            }
        }
        if self.biases {
            self.bias += step;
        }
    }

    fn weights(&self) -> Vec<f32> {
        let places = &self.images.places;
        let mut weights = Vec::with_capacity((places.len() + 2) * self.filters + 1);
        let slabs = || (0..self.filters).step_by(FILTERS).zip(&self.slabs);
        let mut put = |first: usize, numbers: &[f32]| {
            weights.extend_from_slice(&numbers[..FILTERS.min(self.filters - first)]);
        };
        for place in places {
            slabs().for_each(|(first, slab)| put(first, &slab.tables[*place as usize].0));
        }
        if self.biases {
            slabs().for_each(|(first, slab)| put(first, slab.bias.as_slice()));
        }
        slabs().for_each(|(first, slab)| put(first, slab.output.as_slice()));
        weights.extend(self.biases.then_some(self.bias));
        weights
    }
}
