//! Tables whose entries feed a second layer, read in several orientations of the board at once.
//!
//! A lane is one filter in one orientation. An entry of eight filters is half a vector, and the entries of two orientations
//! fill a vector. The entries of all images of a configuration are adjacent (see [`Orbits`](super::orbits::Orbits)), so one
//! lookup for each line serves all orientations. Every eight filters have tables of their own (a *bank*). Eight orientations
//! are handled together (a *set*). If a board has fewer, the set is padded with orientations whose values are multiplied by
//! 0; if it has more, there are several sets.

use fearless_simd::{f32x8, prelude::*};

use super::{Structure, Views, structure};
use crate::{
    board::{Board, Side},
    net::{
        Architecture, Engine,
        activation::{Curve, falls},
        lanes::{CrossLane, LANES, Vector, zero},
    },
};

/// The number of filters in a bank, which is the number of values in an entry.
const FILTERS: usize = LANES / 2;
/// The number of orientations in a set.
const ORIENTATIONS: usize = 8;
/// The images of a configuration are within this many adjacent entries, so their offsets are bytes.
const WINDOW: usize = 256;

/// An entry of a table: one number for each filter of a bank.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
struct Entry([f32; FILTERS]);

/// The numbers of a bank's filters in the orientations of a set, two orientations in each vector.
type Matrix<S> = [Vector<S>; ORIENTATIONS / 2];

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
    banks: Vec<Bank<S>>,
    bias: f32,
    /// Scratch: the entries of all lines of the board before a move.
    read: Vec<Matrix<S>>,
    /// Scratch: the second layer's values for the board that is learned from, by bank, then set.
    hidden: Vec<Matrix<S>>,
}

/// The positions of the entries of configurations' images.
#[derive(Clone)]
struct Images<S: Simd> {
    simd: S,
    /// By configuration, then set.
    windows: Vec<Window>,
    /// For each configuration: its own place.
    places: Vec<u32>,
    /// For each set: 1 for orientations, 0 for padding.
    present: Vec<Matrix<S>>,
}

/// The positions of the entries of a configuration's images in a set of orientations.
#[derive(Clone, Copy, Debug)]
struct Window {
    start: u32,
    /// For each orientation, counted from `start`.
    offsets: [u8; ORIENTATIONS],
}

/// The weights of eight filters.
#[derive(Clone)]
struct Bank<S: Simd> {
    /// By place. The table is padded with [`WINDOW`] entries of 0, so that a whole window can be read from every place.
    tables: Vec<Entry>,
    /// Biases and output weights. Each is stored twice, for the two orientations of a vector.
    bias: Vector<S>,
    output: Vector<S>,
}

impl<S: Simd> Filters<S> {
    pub(in crate::net) fn new(simd: S, architecture: &Architecture, weights: &[f32]) -> Self {
        let structure = structure(architecture);
        let images = Images::new(simd, &structure);
        let filters = architecture.second;
        let activation = architecture.activation;
        let lines = structure.encoding.configurations() / structure.encoding.line_states();
        let zeros = [zero(simd); ORIENTATIONS / 2];
        let mut network = Self {
            simd,
            views: structure.views.clone(),
            filters,
            biases: architecture.biases,
            curve: activation.curve(),
            slope: activation.slope(),
            banks: Vec::new(),
            bias: 0.0,
            read: vec![zeros; lines],
            hidden: vec![zeros; images.present.len() * filters.div_ceil(FILTERS)],
            images,
        };
        network.load(weights);
        network
    }

    /// Stores weights, given in canonical order, in the banks.
    fn load(&mut self, weights: &[f32]) {
        let (filters, places) = (self.filters, &self.images.places);
        let (tables, rest) = weights.split_at(places.len() * filters);
        let (bias, rest) = rest.split_at(if self.biases { filters } else { 0 });
        let (output, rest) = rest.split_at(filters);
        self.bias = rest.first().copied().unwrap_or(0.0);
        for first in (0..filters).step_by(FILTERS) {
            let entry_of =
                |from: &[f32]| Entry(std::array::from_fn(|lane| from.get(first + lane).copied().unwrap_or(0.0)));
            let mut padded = vec![entry_of(&[]); places.len() + WINDOW];
            for (place, entry) in places.iter().zip(tables.chunks_exact(filters)) {
                padded[*place as usize] = entry_of(entry);
            }
            let both = |from: &[f32]| side_by_side(self.simd, &entry_of(from), &entry_of(from));
            self.banks.push(Bank { tables: padded, bias: both(bias), output: both(output) });
        }
    }
}

impl<S: Simd> Images<S> {
    fn new(simd: S, structure: &Structure) -> Self {
        let orbits = &structure.orbits;
        let orientations = orbits.orientations;
        let sets = orientations.div_ceil(ORIENTATIONS);
        let mut windows = Vec::with_capacity(sets * orbits.rows.len());
        for row in &orbits.rows {
            let all_offsets = &orbits.offsets[row.offsets as usize * orientations..][..orientations];
            for set in all_offsets.chunks(ORIENTATIONS) {
                let offsets = std::array::from_fn(|k| set.get(k).copied().unwrap_or(0));
                windows.push(Window { start: row.start, offsets });
            }
        }
        let is_there = |set: usize, pair: usize, lane: usize| {
            f32::from(set * ORIENTATIONS + 2 * pair + lane / FILTERS < orientations)
        };
        let pair = |set, pair| Vector::from_fn(simd, |lane| is_there(set, pair, lane));
        let present = |set| std::array::from_fn(|at| pair(set, at));
        Self { simd, windows, places: orbits.places.clone(), present: (0..sets).map(present).collect() }
    }

    #[inline(always)]
    fn window(&self, set: usize, configuration: u32) -> &Window {
        &self.windows[configuration as usize * self.present.len() + set]
    }

    /// The entries of a configuration in a set of orientations.
    #[inline(always)]
    fn entries(&self, bank: &Bank<S>, set: usize, configuration: u32) -> Matrix<S> {
        let window = self.window(set, configuration);
        let window_entries: &[Entry; WINDOW] =
            bank.tables[window.start as usize..].first_chunk().expect("tables end with a window");
        let mut entries = [zero(self.simd); ORIENTATIONS / 2];
        for (pair, entries) in entries.iter_mut().enumerate() {
            let [left, right] = [window.offsets[2 * pair], window.offsets[2 * pair + 1]].map(usize::from);
            *entries = side_by_side(self.simd, &window_entries[left], &window_entries[right]);
        }
        entries
    }

    /// Adds steps to the entries of a configuration in a set of orientations. They are added one after the other, because two
    /// orientations may have the same entry.
    #[inline(always)]
    fn step(&self, bank: &mut Bank<S>, set: usize, configuration: u32, steps: &Matrix<S>) {
        let window = self.window(set, configuration);
        let window_entries: &mut [Entry; WINDOW] =
            bank.tables[window.start as usize..].first_chunk_mut().expect("tables end with a window");
        for pair in 0..ORIENTATIONS / 2 {
            let (left, right) = steps[pair].split();
            for (k, steps) in [(2 * pair, left), (2 * pair + 1, right)] {
                let entry = &mut window_entries[usize::from(window.offsets[k])];
                (f32x8::simd_from(self.simd, entry.0) + steps).store_slice(&mut entry.0);
            }
        }
    }

    /// The second layer's weighted sums in a set of orientations, from the configurations of all lines.
    #[inline(always)]
    fn sums(&self, bank: &Bank<S>, set: usize, configurations: &[u32]) -> Matrix<S> {
        let mut sums = [bank.bias; ORIENTATIONS / 2];
        for configuration in configurations {
            add(&mut sums, &self.entries(bank, set, *configuration));
        }
        sums
    }
}

/// A vector of the entries of two orientations.
#[inline(always)]
fn side_by_side<S: Simd>(simd: S, left: &Entry, right: &Entry) -> Vector<S> {
    f32x8::simd_from(simd, left.0).combine(f32x8::simd_from(simd, right.0))
}

#[inline(always)]
fn add<S: Simd>(to: &mut Matrix<S>, more: &Matrix<S>) {
    for pair in 0..ORIENTATIONS / 2 {
        to[pair] += more[pair];
    }
}

/// The second layer's values, 0 for padding.
#[inline(always)]
fn hidden<S: Simd>(curve: &Curve, present: &Matrix<S>, sums: &Matrix<S>) -> Matrix<S> {
    let mut values = curve.apply_vectors(*sums);
    for pair in 0..ORIENTATIONS / 2 {
        values[pair] *= present[pair];
    }
    values
}

/// The sum of the vectors, from the first to the last.
#[inline(always)]
fn sum_of_pairs<S: Simd>(values: &Matrix<S>) -> Vector<S> {
    let mut sum = values[0];
    for pair in &values[1..] {
        sum += *pair;
    }
    sum
}

/// The sum over all orientations, in both halves of the vector.
#[inline(always)]
fn total<S: Simd>(values: &Matrix<S>) -> Vector<S> {
    let pairs = sum_of_pairs(values);
    pairs + pairs.swap(FILTERS)
}

/// The contribution of these values of the second layer to the output unit's sum.
#[inline(always)]
fn output<S: Simd>(bank: &Bank<S>, hidden: &Matrix<S>) -> f32 {
    (sum_of_pairs(hidden) * bank.output).sum()
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
        for bank in &self.banks {
            for (set, present) in self.images.present.iter().enumerate() {
                let mut before = [bank.bias; ORIENTATIONS / 2];
                for (configuration, read) in now.iter().zip(&mut self.read) {
                    let entries = self.images.entries(bank, set, *configuration);
                    add(&mut before, &entries);
                    *read = entries;
                }
                let mut rest = legal;
                while rest != 0 {
                    let cell = rest.trailing_zeros();
                    let mut sums = before;
                    for change in self.views.changes(cell) {
                        let line = change.line as usize;
                        let after = self.images.entries(bank, set, now[line].wrapping_add(change.own));
                        for pair in 0..ORIENTATIONS / 2 {
                            sums[pair] += after[pair] - self.read[line][pair];
                        }
                    }
                    out[cell as usize % 64] += output(bank, &hidden(&self.curve, present, &sums));
                    rest &= rest - 1;
                }
            }
        }
    }

    #[inline(always)]
    fn value(&mut self, side: Side) -> f32 {
        let configurations = self.views.now(side);
        let mut sum = self.bias;
        for bank in &self.banks {
            for (set, present) in self.images.present.iter().enumerate() {
                sum += output(bank, &hidden(&self.curve, present, &self.images.sums(bank, set, configurations)));
            }
        }
        sum
    }

    #[inline(always)]
    fn play(&mut self, cell: u8) {
        self.views.play(cell);
    }

    #[inline(always)]
    fn learn(&mut self, board: Board, side: Side, target: f32, rate: f32, derivative: bool) {
        let configurations = self.views.of(board, side);
        let sets = self.images.present.len();
        let mut sum = self.bias;
        for (index, bank) in self.banks.iter().enumerate() {
            for (set, present) in self.images.present.iter().enumerate() {
                let hidden = hidden(&self.curve, present, &self.images.sums(bank, set, configurations));
                sum += output(bank, &hidden);
                self.hidden[index * sets + set] = hidden;
            }
        }
        let value = self.curve.apply(sum);
        let slope = if derivative { self.slope * (1.0 - value * value) } else { 1.0 };
        let step = rate * (target - value) * slope;
        for (bank, hidden) in self.banks.iter_mut().zip(self.hidden.chunks_exact(sets)) {
            let factor = bank.output * step * self.slope;
            for (set, (hidden, present)) in hidden.iter().zip(&self.images.present).enumerate() {
                let mut steps = *hidden;
                for pair in 0..ORIENTATIONS / 2 {
                    steps[pair] = factor * falls(hidden[pair]) * present[pair];
                }
                for configuration in configurations {
                    self.images.step(bank, set, *configuration, &steps);
                }
                bank.output = total(hidden).fma(step, bank.output);
                if self.biases {
                    bank.bias += total(&steps);
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
        let banks = || (0..self.filters).step_by(FILTERS).zip(&self.banks);
        let mut put = |first: usize, numbers: &[f32]| {
            weights.extend_from_slice(&numbers[..FILTERS.min(self.filters - first)]);
        };
        for place in places {
            banks().for_each(|(first, bank)| put(first, &bank.tables[*place as usize].0));
        }
        if self.biases {
            banks().for_each(|(first, bank)| put(first, bank.bias.as_slice()));
        }
        banks().for_each(|(first, bank)| put(first, bank.output.as_slice()));
        weights.extend(self.biases.then_some(self.bias));
        weights
    }
}
