//! The second layer of a network that shares weights: filters, each applied in all orientations of the board.
//!
//! Weights are laid out as in the network without shared weights: the connections of one quad of the first layer to four
//! filters are a *tile*. A filter in orientation k reads line L through its weights for the line k^-1 L. If k reverses the
//! line, neighbouring detectors are exchanged, so each tile is stored in both orders. Four filters (a *bank*) in four
//! orientations (a *set*) are one *group* of the second layer: sixteen units.

use fearless_simd::prelude::*;

use super::{LineSymmetries, Ties};
use crate::net::{
    Architecture,
    activation::{Curve, falls},
    lanes::{self, CrossLane, LANES, Quad, Vector, zero},
};

/// The number of orientations in a set, and of filters in a bank.
const FOUR: usize = 4;

/// Places for quads of the first layer: as many as [`PackedIndices`] can index.
const QUADS: usize = 512;
/// The most quads of the first layer. The last place is padding.
pub(in crate::net) const QUADS_MAX: usize = QUADS - 1;

/// Two items for each quad: one in the order of its detectors, and one with neighbouring detectors exchanged.
pub(super) type MirroredPairs<T> = [T; 2 * QUADS];

/// The indices of four items of [`MirroredPairs`] in sixteen bits each, of which the upper ten are the index. One shift and
/// one mask therefore give the offset in bytes, and no index needs a bounds check.
#[derive(Clone, Copy, Debug)]
struct PackedIndices(u64);

impl PackedIndices {
    fn new(indices: [u16; FOUR]) -> Self {
        Self(indices.iter().rev().fold(0, |all, index| all << 16 | u64::from(*index) << 6))
    }

    /// One of the four items.
    #[inline(always)]
    fn of<T>(self, pairs: &MirroredPairs<T>, at: usize) -> &T {
        &pairs[usize::from((self.0 >> (16 * at)) as u16 >> 6)]
    }
}

/// The same item in all places.
pub(super) fn filled<T: Copy>(value: T) -> Box<MirroredPairs<T>> {
    let all = vec![value; 2 * QUADS].into_boxed_slice().try_into();
    all.unwrap_or_else(|_| unreachable!("it has that length"))
}

/// The sums or errors of a group: one tile for each orientation of its set. A unit's sum is that of the four lanes of its
/// quad.
pub(super) type Sums<S> = [Vector<S>; FOUR];

/// The filters.
#[derive(Clone)]
pub(super) struct Head<S: Simd> {
    simd: S,
    curve: Curve,
    slope: f32,
    biased: bool,
    banks: Vec<Bank<S>>,
    sets: Vec<OrientationSet<S>>,
    /// One for each bank and set.
    groups: Vec<Group<S>>,
    /// For each line and part: its quad. All other quads are padding.
    line_quads: Vec<u16>,
}

/// The weights of four filters.
#[derive(Clone)]
struct Bank<S: Simd> {
    /// For each quad: the connections to the four filters, in both orders.
    tiles: Box<MirroredPairs<Vector<S>>>,
    /// A filter's bias is in the first lane of its quad.
    bias: Vector<S>,
    /// The output weight of filter q is in all four lanes of quad q, one lane for each orientation.
    output: Vector<S>,
}

/// Four orientations.
#[derive(Clone)]
struct OrientationSet<S: Simd> {
    /// For each quad and each orientation: twice the quad whose weights it is read with, plus 1 if the line is reversed.
    turns: Box<[PackedIndices]>,
    /// The inverse. For each quad and each orientation: twice the quad that is read with its weights, plus 1 if reversed.
    images: Box<[PackedIndices]>,
    /// 1 for orientations, 0 for padding.
    present: Vector<S>,
}

/// Sixteen units of the second layer: a bank in a set of orientations.
#[derive(Clone, Copy)]
struct Group<S: Simd> {
    bank: usize,
    set: usize,
    /// The units' values on the board that is learned from.
    values: Vector<S>,
}

impl<S: Simd> OrientationSet<S> {
    /// The sums of W banks in these orientations, updated for changes of the values of quads, four quads at a time. Each lookup
    /// serves all banks.
    #[inline(always)]
    fn sums<'a, const W: usize>(
        &self,
        banks: &[Bank<S>; W],
        mut sums: [Sums<S>; W],
        changes: impl Iterator<Item = ([u16; 4], &'a Vector<S>)>,
    ) -> [Sums<S>; W] {
        for (quads, change) in changes {
            for index in 0..4 {
                let turn = self.turns[usize::from(quads[index])];
                let change = change.broadcast_quad(index);
                for bank in 0..W {
                    let (sum, tiles) = (&mut sums[bank], &banks[bank].tiles);
                    sum[0] = turn.of(tiles, 0).fma(change, sum[0]);
                    sum[1] = turn.of(tiles, 1).fma(change, sum[1]);
                    sum[2] = turn.of(tiles, 2).fma(change, sum[2]);
                    sum[3] = turn.of(tiles, 3).fma(change, sum[3]);
                }
            }
        }
        sums
    }
}

impl<S: Simd> Head<S> {
    /// Filters with weights of 0, above `quads` quads and one group of padding. `place` gives the quad of a line and part.
    pub(super) fn new(
        simd: S,
        architecture: &Architecture,
        symmetries: &LineSymmetries,
        parts: usize,
        quads: usize,
        place: impl Fn(usize, usize) -> u16,
    ) -> Self {
        let none = 2 * quads as u16;
        let set = |orientations: &[Vec<(usize, bool)>]| {
            let all = || vec![[none; FOUR]; quads + FOUR].into_boxed_slice();
            let (mut turns, mut images, mut present) = (all(), all(), zero(simd));
            for (k, sources) in orientations.iter().enumerate() {
                for lane in (k..LANES).step_by(FOUR) {
                    present[lane] = 1.0;
                }
                for (line, (source, reversed)) in sources.iter().enumerate() {
                    for part in 0..parts {
                        let (to, from) = (place(line, part), place(*source, part));
                        turns[usize::from(to)][k] = 2 * from + u16::from(*reversed);
                        images[usize::from(from)][k] = 2 * to + u16::from(*reversed);
                    }
                }
            }
            let packed = |all: Box<[[u16; FOUR]]>| all.iter().map(|four| PackedIndices::new(*four)).collect();
            OrientationSet { turns: packed(turns), images: packed(images), present }
        };
        let sets: Vec<OrientationSet<S>> = symmetries.sources.chunks(FOUR).map(set).collect();
        let bank = |_| Bank { tiles: filled(zero(simd)), bias: zero(simd), output: zero(simd) };
        let banks: Vec<Bank<S>> = (0..architecture.second.div_ceil(FOUR)).map(bank).collect();
        let of_bank = |bank| (0..sets.len()).map(move |set| Group { bank, set, values: zero(simd) });
        let lines = (0..symmetries.cells.len()).flat_map(|line| (0..parts).map(move |part| (line, part)));
        Self {
            simd,
            curve: architecture.activation.curve(),
            slope: architecture.activation.slope(),
            biased: architecture.biases,
            groups: (0..banks.len()).flat_map(of_bank).collect(),
            line_quads: lines.map(|(line, part)| place(line, part)).collect(),
            banks,
            sets,
        }
    }

    /// Calls `f` with each copy of each weight and its index among the shared weights. Only the first order of each tile is
    /// visited. If tiles change, [`Head::mirror`] must update the other order.
    pub(super) fn each(&mut self, ties: &Ties, parts: usize, mut f: impl FnMut(&mut f32, usize)) {
        let tensors = ties.unshared.tensors();
        let start = |name: &str| tensors.iter().find(|tensor| tensor.name == name).map(|tensor| tensor.range.start);
        let Some(second) = start("second.weight") else { return };
        let (units, lines) = (ties.unshared.units(), tensors[0].shape[0]);
        let (detectors, row) = (units / lines, ties.unshared.second);
        for filter in 0..ties.filters {
            let bank = &mut self.banks[filter / FOUR];
            let lane = filter % FOUR * 4;
            for unit in 0..units {
                let (line, detector) = (unit / detectors, unit % detectors);
                let quad = usize::from(self.line_quads[line * parts + detector / 4]);
                f(&mut bank.tiles[2 * quad][lane + detector % 4], ties.weights[second + unit * row + filter]);
            }
            if let Some(bias) = start("second.bias") {
                f(&mut bank.bias[lane], ties.weights[bias + filter]);
            }
            let output = start("output.weight").expect("every network has output weights");
            for orientation in 0..FOUR {
                f(&mut bank.output[lane + orientation], ties.weights[output + filter]);
            }
        }
    }

    /// Updates the tiles with neighbouring detectors exchanged.
    #[inline(always)]
    pub(super) fn mirror(&mut self) {
        for bank in &mut self.banks {
            for tiles in bank.tiles.as_chunks_mut::<2>().0.iter_mut().take(self.sets[0].images.len()) {
                tiles[1] = tiles[0].swap(1);
            }
        }
    }

    /// The number of groups; 0 without a second layer.
    #[inline(always)]
    pub(super) fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// The sums of the biases alone.
    #[inline(always)]
    pub(super) fn start(&self, sums: &mut [Sums<S>]) {
        for (sums, group) in sums.iter_mut().zip(&self.groups) {
            *sums = [self.banks[group.bank].bias; FOUR];
        }
    }

    /// All sums, updated for changes of the values of quads, four quads at a time. `make` converts the sums of each group to
    /// the form that is stored in `to`.
    #[inline(always)]
    pub(super) fn add<'a, T>(
        &self,
        from: &[Sums<S>],
        to: &mut [T],
        changes: impl Iterator<Item = ([u16; 4], &'a Vector<S>)> + Clone,
        make: impl Fn(&Sums<S>) -> T,
    ) {
        let (pairs, rest) = self.banks.as_chunks();
        for (at, set) in self.sets.iter().enumerate() {
            for (pair, banks) in pairs.iter().enumerate() {
                let groups = [2 * pair, 2 * pair + 1].map(|bank| bank * self.sets.len() + at);
                let [left, right] = set.sums::<2>(banks, groups.map(|group| from[group]), changes.clone());
                to[groups[0]] = make(&left);
                to[groups[1]] = make(&right);
            }
            if let [last] = rest {
                let group = 2 * pairs.len() * self.sets.len() + at;
                let [sums] = set.sums::<1>(std::array::from_ref(last), [from[group]], changes.clone());
                to[group] = make(&sums);
            }
        }
    }

    /// Sixteen parts of the output unit's weighted sum, from the weighted sums of all groups.
    #[inline(always)]
    pub(super) fn part(&self, preactivations: &[Vector<S>]) -> Vector<S> {
        let mut part = zero(self.simd);
        self.curve.apply_each(
            self.groups.len(),
            #[inline(always)]
            |group| preactivations[group],
            #[inline(always)]
            |group, values| {
                let output = self.banks[self.groups[group].bank].output;
                part = self.present(group, values).fma(output, part);
            },
        );
        part
    }

    /// The values of a group's units, 0 for padding.
    #[inline(always)]
    fn present(&self, group: usize, values: Vector<S>) -> Vector<S> {
        values * self.sets[self.groups[group].set].present
    }

    /// The same as [`Head::part`] for one group. It also stores the group's values for [`Head::begin`].
    #[inline(always)]
    pub(super) fn part_of(&mut self, group: usize, preactivations: Vector<S>) -> Vector<S> {
        let values = self.present(group, self.curve.apply_vector(preactivations));
        self.groups[group].values = values;
        values * self.banks[self.groups[group].bank].output
    }

    /// Begins a step of learning. `step` is minus the rate times the error of the output unit's weighted sum. The result is
    /// the same for the second layer's weighted sums, each in all four lanes of its filter.
    #[inline(always)]
    pub(super) fn begin(&self, group: usize, step: f32) -> Sums<S> {
        let (slope, Group { bank, set, values }) = (self.slope, self.groups[group]);
        let output = self.banks[bank].output * self.sets[set].present;
        let back = output * step * (falls(values) * slope);
        [back.broadcast_in_quads(0), back.broadcast_in_quads(1), back.broadcast_in_quads(2), back.broadcast_in_quads(3)]
    }

    /// Updates output weights and biases, after the errors of all groups have been computed.
    #[inline(always)]
    pub(super) fn finish(&mut self, group: usize, step: f32, errors: &Sums<S>) {
        let Group { bank, values, .. } = self.groups[group];
        let bank = &mut self.banks[bank];
        // All orientations of a filter share one weight.
        let pairs = values + values.swap(1);
        let all = pairs + pairs.swap(2);
        bank.output = all.fma(step, bank.output);
        if self.biased {
            for lane in (0..LANES).step_by(4) {
                for error in errors {
                    bank.bias[lane] += error[lane];
                }
            }
        }
    }

    /// Propagates the errors back to the units of active groups: adds minus the rate times the errors to `sums`, one vector
    /// per quad. The caller adds up the four quads of each vector.
    #[inline(always)]
    pub(super) fn back(&self, errors: &[Sums<S>], active: &[u16], sums: &mut [Sums<S>]) {
        for (upper, errors) in self.groups.iter().zip(errors) {
            let (tiles, errors) = (&*self.banks[upper.bank].tiles, *errors);
            let turns = self.sets[upper.set].turns.as_chunks::<FOUR>().0;
            for group in active {
                let group = usize::from(*group);
                for (sum, turn) in sums[group].iter_mut().zip(&turns[group]) {
                    let mut quad = *sum;
                    quad = turn.of(tiles, 0).fma(errors[0], quad);
                    quad = turn.of(tiles, 1).fma(errors[1], quad);
                    quad = turn.of(tiles, 2).fma(errors[2], quad);
                    quad = turn.of(tiles, 3).fma(errors[3], quad);
                    *sum = quad;
                }
            }
        }
    }

    /// Updates the connections to all quads. `values` are those of the first layer, in both orders.
    #[inline(always)]
    pub(super) fn learn(&mut self, errors: &[Sums<S>], values: &MirroredPairs<Quad>) {
        let (pairs, rest) = self.banks.as_chunks_mut();
        let last = 2 * pairs.len();
        for (at, pair) in pairs.iter_mut().enumerate() {
            learn_banks::<S, 2>(self.simd, pair, 2 * at, &self.sets, errors, values);
        }
        if let [bank] = rest {
            learn_banks::<S, 1>(self.simd, std::array::from_mut(bank), last, &self.sets, errors, values);
        }
    }
}

/// The same as [`Head::learn`] for W banks, starting with the one at index `first`.
#[inline(always)]
fn learn_banks<S: Simd, const W: usize>(
    simd: S,
    banks: &mut [Bank<S>; W],
    first: usize,
    sets: &[OrientationSet<S>],
    errors: &[Sums<S>],
    values: &MirroredPairs<Quad>,
) {
    for (at, set) in sets.iter().enumerate() {
        let mut steps = [[zero(simd); FOUR]; W];
        for bank in 0..W {
            steps[bank] = errors[(first + bank) * sets.len() + at];
        }
        for (quad, image) in set.images.iter().enumerate().take(QUADS) {
            let read = [
                lanes::broadcast_quad(simd, image.of(values, 0)),
                lanes::broadcast_quad(simd, image.of(values, 1)),
                lanes::broadcast_quad(simd, image.of(values, 2)),
                lanes::broadcast_quad(simd, image.of(values, 3)),
            ];
            for bank in 0..W {
                let (steps, tiles) = (&steps[bank], &mut banks[bank].tiles[2 * quad..][..2]);
                let mut learnt = tiles[0];
                learnt = steps[0].fma(read[0], learnt);
                learnt = steps[1].fma(read[1], learnt);
                learnt = steps[2].fma(read[2], learnt);
                learnt = steps[3].fma(read[3], learnt);
                tiles[0] = learnt;
                tiles[1] = learnt.swap(1);
            }
        }
    }
}
