//! Tables whose entries feed a second layer, read in several orientations of the board at once.
//!
//! A lane is one filter in one orientation: eight filters are a *block*, the blocks of two orientations sixteen lanes. The
//! entries of a configuration's images stand side by side (see [`Orbits`](super::orbits::Orbits)), so that a line is one
//! lookup for all orientations. Of more than eight filters each eight have tables of their own (a *slab*). Eight
//! orientations are handled together (a *group*): if there are fewer, blocks that count for nothing fill up, and if there are
//! more, there are several groups.

use super::{Structure, Views, structure};
use crate::{
    board::{Board, Side},
    net::{
        Architecture, Engine,
        activation::Curve,
        lanes::{LANES, Lanes},
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
type Group = [Lanes; GROUP / 2];

/// An n-tuple network with a second layer.
#[derive(Clone, Debug)]
pub(in crate::net) struct Filters {
    views: Views,
    filters: usize,
    biases: bool,
    curve: Curve,
    slope: f32,
    images: Images,
    slabs: Vec<Slab>,
    bias: f32,
    /// The entries of all lines of the board before a move.
    read: Vec<Group>,
    /// The second layer's values of the board that is learnt: by slab, then group.
    kept: Vec<Group>,
}

/// Where the entries of configurations' images are.
#[derive(Clone, Debug)]
struct Images {
    /// By configuration, then group.
    windows: Vec<Window>,
    /// For each configuration its own place.
    places: Vec<u32>,
    /// For each group: 1 for orientations that there are, 0 for those that fill up.
    present: Vec<Group>,
}

/// Where the entries of a configuration's images are, in a group of orientations.
#[derive(Clone, Copy, Debug)]
struct Window {
    start: u32,
    /// From there.
    offsets: [u8; GROUP],
}

/// The weights of eight filters.
#[derive(Clone, Debug)]
struct Slab {
    /// By place; ends with zeros, so that as many blocks follow each place as can be asked for.
    tables: Vec<Block>,
    /// The same for both orientations, as are output weights.
    bias: Lanes,
    output: Lanes,
}

impl Filters {
    pub(in crate::net) fn new(architecture: &Architecture, weights: &[f32]) -> Self {
        let structure = structure(architecture);
        let images = Images::new(&structure);
        let filters = architecture.second;
        let activation = architecture.activation;
        let lines = structure.reading.configurations() / structure.reading.line_states();
        let nothing = [Lanes::ZERO; GROUP / 2];
        let mut network = Self {
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
            let both = |from: &[f32]| side_by_side(&block(from), &block(from));
            self.slabs.push(Slab { tables: slab, bias: both(bias), output: both(output) });
        }
    }
}

impl Images {
    fn new(structure: &Structure) -> Self {
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
        let present =
            |group| std::array::from_fn(|pair| Lanes(std::array::from_fn(|lane| is_there(group, pair, lane))));
        Self { windows, places: orbits.places.clone(), present: (0..groups).map(present).collect() }
    }

    #[inline(always)]
    fn window(&self, group: usize, configuration: u32) -> &Window {
        &self.windows[configuration as usize * self.present.len() + group]
    }

    /// The entries of a configuration in a group of orientations.
    #[inline(always)]
    fn entries(&self, slab: &Slab, group: usize, configuration: u32) -> Group {
        let window = self.window(group, configuration);
        let blocks: &[Block; WINDOW] =
            slab.tables[window.start as usize..].first_chunk().expect("tables end with a window");
        let mut entries = [Lanes::ZERO; GROUP / 2];
        for (pair, entries) in entries.iter_mut().enumerate() {
            let block = |k: usize| &blocks[usize::from(window.offsets[k])];
            *entries = side_by_side(block(2 * pair), block(2 * pair + 1));
        }
        entries
    }

    /// Adds steps to the entries of a configuration in a group of orientations, one after the other: some may be the same.
    #[inline(always)]
    fn step(&self, slab: &mut Slab, group: usize, configuration: u32, steps: &Group) {
        let window = self.window(group, configuration);
        let blocks: &mut [Block; WINDOW] =
            slab.tables[window.start as usize..].first_chunk_mut().expect("tables end with a window");
        for k in 0..GROUP {
            let block = &mut blocks[usize::from(window.offsets[k])];
            let mut sum = *block;
            for lane in 0..FILTERS {
                sum.0[lane] += steps[k / 2].0[k % 2 * FILTERS + lane];
            }
            *block = sum;
        }
    }

    /// Of all lines' configurations in a group of orientations: the second layer's sums.
    #[inline(always)]
    fn sums(&self, slab: &Slab, group: usize, configurations: &[u32]) -> Group {
        let mut sums = [slab.bias; GROUP / 2];
        for configuration in configurations {
            sums = zip(&sums, &self.entries(slab, group, *configuration), |sum, entry| sum + entry);
        }
        sums
    }
}

/// The entries of two orientations.
#[inline(always)]
fn side_by_side(left: &Block, right: &Block) -> Lanes {
    let mut out = Lanes::ZERO;
    for lane in 0..FILTERS {
        out.0[lane] = left.0[lane];
        out.0[FILTERS + lane] = right.0[lane];
    }
    out
}

#[inline(always)]
fn zip(left: &Group, right: &Group, f: impl Fn(f32, f32) -> f32) -> Group {
    let mut out = [Lanes::ZERO; GROUP / 2];
    for pair in 0..GROUP / 2 {
        out[pair] = left[pair].zip(right[pair], &f);
    }
    out
}

/// The second layer's values, 0 for orientations that there are not.
#[inline(always)]
fn hidden(curve: &Curve, present: &Group, sums: &Group) -> Group {
    let mut values = [Lanes::ZERO; GROUP / 2];
    for pair in 0..GROUP / 2 {
        values[pair] = curve.lanes(sums[pair]).zip(present[pair], |value, present| value * present);
    }
    values
}

/// The sum over all pairs of orientations, the first to the last.
#[inline(always)]
fn folded(values: &Group) -> Lanes {
    values[1..].iter().fold(values[0], |sum, pair| sum.zip(*pair, |sum, value| sum + value))
}

/// The sum over all orientations, for both.
#[inline(always)]
fn total(values: &Group) -> Lanes {
    let pairs = folded(values);
    pairs.zip(pairs.swap(FILTERS), |left, right| left + right)
}

/// What these values of the second layer add to the output unit's sum.
#[inline(always)]
fn output(slab: &Slab, hidden: &Group) -> f32 {
    folded(hidden).zip(slab.output, |value, weight| value * weight).sum()
}

impl Engine for Filters {
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
                    before = zip(&before, &entries, |sum, entry| sum + entry);
                    *read = entries;
                }
                let mut rest = legal;
                while rest != 0 {
                    let cell = rest.trailing_zeros();
                    let mut sums = before;
                    for change in self.views.changes(cell) {
                        let line = change.line as usize;
                        let come = self.images.entries(slab, group, now[line].wrapping_add(change.own));
                        let change = zip(&come, &self.read[line], |come, gone| come - gone);
                        sums = zip(&sums, &change, |sum, change| sum + change);
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
            let factor = slab.output.map(|weight| step * weight * self.slope);
            for (group, (hidden, present)) in kept.iter().zip(&self.images.present).enumerate() {
                let steps = zip(hidden, &[factor; GROUP / 2], |value, factor| factor * (1.0 - value * value));
                let steps = zip(&steps, present, |step, present| step * present);
                for configuration in configurations {
                    self.images.step(slab, group, *configuration, &steps);
                }
                slab.output = slab.output.zip(total(hidden), |weight, value| weight + step * value);
                if self.biases {
                    slab.bias = slab.bias.zip(total(&steps), |weight, step| weight + step);
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
            slabs().for_each(|(first, slab)| put(first, &slab.bias.0));
        }
        slabs().for_each(|(first, slab)| put(first, &slab.output.0));
        weights.extend(self.biases.then_some(self.bias));
        weights
    }
}
