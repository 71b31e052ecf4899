//! The second layer of a network that shares weights: filters, each applied in all orientations of the board.
//!
//! Weights are laid out as in the unshared network: of the connections of one quad of the first layer to four filters each
//! filter has a quad of lanes (a *tile*). A filter in orientation k looks at line L through the weights that it has for the
//! line k^-1 L; if k reverses, neighbouring detectors change places, so each tile is kept both ways. Four filters (a *slab*)
//! in four orientations (a *group*) are one chunk of the second layer: sixteen units.

use fearless_simd::prelude::*;

use super::{Ties, Turning};
use crate::net::{
    Architecture,
    activation::Curve,
    lanes::{self, Across, LANES, Lanes, Quad, zero},
};

/// Orientations of a group, and filters of a slab.
const FOUR: usize = 4;

/// Places for quads of the first layer: what [`Four`] can number.
const QUADS: usize = 512;
/// Quads of the first layer, at most: the last place stands for none.
pub(in crate::net) const QUADS_MAX: usize = QUADS - 1;

/// Something of each quad, and the same with neighbouring detectors swapped.
pub(super) type Both<T> = [T; 2 * QUADS];

/// Of four of [`Both`] which they are. Sixteen bits for each, of which the upper ten are its number: so one shift and one mask
/// make the offset in bytes, and no number is too great.
#[derive(Clone, Copy, Debug)]
struct Four(u64);

impl Four {
    fn new(indices: [u16; FOUR]) -> Self {
        Self(indices.iter().rev().fold(0, |all, index| all << 16 | u64::from(*index) << 6))
    }

    /// One of the four.
    #[inline(always)]
    fn of<T>(self, both: &Both<T>, at: usize) -> &T {
        &both[usize::from((self.0 >> (16 * at)) as u16 >> 6)]
    }
}

/// Nothing of any quad.
pub(super) fn nothing<T: Copy>(nothing: T) -> Box<Both<T>> {
    let all = vec![nothing; 2 * QUADS].into_boxed_slice().try_into();
    all.unwrap_or_else(|_| unreachable!("it has that length"))
}

/// Sums, or errors, of four filters in four orientations; a sum is complete when a quad's four lanes are added.
pub(super) type Sums<S> = [Lanes<S>; FOUR];

/// The filters.
#[derive(Clone)]
pub(super) struct Head<S: Simd> {
    simd: S,
    curve: Curve,
    slope: f32,
    biased: bool,
    slabs: Vec<Slab<S>>,
    groups: Vec<Group<S>>,
    /// One for each slab and group.
    chunks: Vec<Chunk<S>>,
    /// The quads that there are: for each line and part one. The others fill up blocks.
    sources: Vec<u16>,
}

/// Four filters.
#[derive(Clone)]
struct Slab<S: Simd> {
    /// Of each quad the connections to the four filters.
    tiles: Box<Both<Lanes<S>>>,
    /// In the first lane of each filter's quad.
    bias: Lanes<S>,
    /// Filter q in the four lanes of quad q, which are its orientations.
    output: Lanes<S>,
}

/// Four orientations.
#[derive(Clone)]
struct Group<S: Simd> {
    /// For each quad: twice the quad whose weights are used in each orientation, plus 1 if reversed.
    turns: Box<[Four]>,
    /// For each quad: twice the quad at which its weights are used in each orientation, plus 1 if reversed.
    images: Box<[Four]>,
    /// 1 for the orientations there are, 0 for those that fill up.
    present: Lanes<S>,
}

/// Four filters in four orientations.
#[derive(Clone, Copy)]
struct Chunk<S: Simd> {
    slab: usize,
    group: usize,
    /// Of the board that is learnt from.
    values: Lanes<S>,
}

impl<S: Simd> Group<S> {
    /// The sums of some slabs in these orientations, as they become when the values of so many times four quads change by so
    /// much. What is looked up once serves all slabs.
    #[inline(always)]
    fn sums<'a, const W: usize>(
        &self,
        slabs: &[Slab<S>; W],
        mut sums: [Sums<S>; W],
        changes: impl Iterator<Item = ([u16; 4], &'a Lanes<S>)>,
    ) -> [Sums<S>; W] {
        for (quads, change) in changes {
            for index in 0..4 {
                let turn = self.turns[usize::from(quads[index])];
                let change = change.tiled(index);
                for slab in 0..W {
                    let (sum, tiles) = (&mut sums[slab], &slabs[slab].tiles);
                    sum[0] += *turn.of(tiles, 0) * change;
                    sum[1] += *turn.of(tiles, 1) * change;
                    sum[2] += *turn.of(tiles, 2) * change;
                    sum[3] += *turn.of(tiles, 3) * change;
                }
            }
        }
        sums
    }
}

impl<S: Simd> Head<S> {
    /// Filters without weights, above so many quads and one of no units. `place` tells the quad of a line and part.
    pub(super) fn new(
        simd: S,
        architecture: &Architecture,
        turning: &Turning,
        parts: usize,
        quads: usize,
        place: impl Fn(usize, usize) -> u16,
    ) -> Self {
        let none = 2 * quads as u16;
        let group = |orientations: &[Vec<(usize, bool)>]| {
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
            let packed = |all: Box<[[u16; FOUR]]>| all.iter().map(|four| Four::new(*four)).collect();
            Group { turns: packed(turns), images: packed(images), present }
        };
        let groups: Vec<Group<S>> = turning.sources.chunks(FOUR).map(group).collect();
        let slab = |_| Slab { tiles: nothing(zero(simd)), bias: zero(simd), output: zero(simd) };
        let slabs: Vec<Slab<S>> = (0..architecture.second.div_ceil(FOUR)).map(slab).collect();
        let of_slab = |slab| (0..groups.len()).map(move |group| Chunk { slab, group, values: zero(simd) });
        let lines = (0..turning.cells.len()).flat_map(|line| (0..parts).map(move |part| (line, part)));
        Self {
            simd,
            curve: architecture.activation.curve(),
            slope: architecture.activation.slope(),
            biased: architecture.biases,
            chunks: (0..slabs.len()).flat_map(of_slab).collect(),
            sources: lines.map(|(line, part)| place(line, part)).collect(),
            slabs,
            groups,
        }
    }

    /// Calls `f` with each weight (those that are kept several times, as often) and its index among the shared weights.
    /// Tiles are met one way only: after that, [`Head::mirror`] makes the others.
    pub(super) fn each(&mut self, ties: &Ties, parts: usize, mut f: impl FnMut(&mut f32, usize)) {
        let tensors = ties.unshared.tensors();
        let start = |name: &str| tensors.iter().find(|tensor| tensor.name == name).map(|tensor| tensor.range.start);
        let Some(second) = start("second.weight") else { return };
        let (units, lines) = (ties.unshared.units(), tensors[0].shape[0]);
        let (detectors, row) = (units / lines, ties.unshared.second);
        for filter in 0..ties.filters {
            let slab = &mut self.slabs[filter / FOUR];
            let lane = filter % FOUR * 4;
            for unit in 0..units {
                let (line, detector) = (unit / detectors, unit % detectors);
                let quad = usize::from(self.sources[line * parts + detector / 4]);
                f(&mut slab.tiles[2 * quad][lane + detector % 4], ties.weights[second + unit * row + filter]);
            }
            if let Some(bias) = start("second.bias") {
                f(&mut slab.bias[lane], ties.weights[bias + filter]);
            }
            let output = start("output.weight").expect("every network has output weights");
            for orientation in 0..FOUR {
                f(&mut slab.output[lane + orientation], ties.weights[output + filter]);
            }
        }
    }

    /// Makes the swapped tiles.
    #[inline(always)]
    pub(super) fn mirror(&mut self) {
        for slab in &mut self.slabs {
            for tiles in slab.tiles.as_chunks_mut::<2>().0.iter_mut().take(self.groups[0].images.len()) {
                tiles[1] = tiles[0].swap(1);
            }
        }
    }

    /// How many chunks there are; none without a second layer.
    #[inline(always)]
    pub(super) fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// The sums of the biases alone.
    #[inline(always)]
    pub(super) fn start(&self, sums: &mut [Sums<S>]) {
        for (sums, chunk) in sums.iter_mut().zip(&self.chunks) {
            *sums = [self.slabs[chunk.slab].bias; FOUR];
        }
    }

    /// All sums as they become when the values of so many times four quads change by so much; `to` keeps them, or what is
    /// made of them.
    #[inline(always)]
    pub(super) fn add<'a, T>(
        &self,
        from: &[Sums<S>],
        to: &mut [T],
        changes: impl Iterator<Item = ([u16; 4], &'a Lanes<S>)> + Clone,
        make: impl Fn(&Sums<S>) -> T,
    ) {
        let (pairs, rest) = self.slabs.as_chunks();
        for (at, group) in self.groups.iter().enumerate() {
            for (pair, slabs) in pairs.iter().enumerate() {
                let chunks = [2 * pair, 2 * pair + 1].map(|slab| slab * self.groups.len() + at);
                let [left, right] = group.sums::<2>(slabs, chunks.map(|chunk| from[chunk]), changes.clone());
                to[chunks[0]] = make(&left);
                to[chunks[1]] = make(&right);
            }
            if let [last] = rest {
                let chunk = 2 * pairs.len() * self.groups.len() + at;
                let [sums] = group.sums::<1>(std::array::from_ref(last), [from[chunk]], changes.clone());
                to[chunk] = make(&sums);
            }
        }
    }

    /// Sixteen parts of the output unit's weighted sum, from the weighted sums of all chunks.
    #[inline(always)]
    pub(super) fn part(&self, settled: &[Lanes<S>]) -> Lanes<S> {
        let mut part = zero(self.simd);
        self.curve.each(
            self.chunks.len(),
            #[inline(always)]
            |chunk| settled[chunk],
            #[inline(always)]
            |chunk, values| part += self.present(chunk, values) * self.slabs[self.chunks[chunk].slab].output,
        );
        part
    }

    /// The values of a chunk's units, as far as there are any.
    #[inline(always)]
    fn present(&self, chunk: usize, values: Lanes<S>) -> Lanes<S> {
        values * self.groups[self.chunks[chunk].group].present
    }

    /// As [`Head::part`] of one chunk, and keeps the values for [`Head::begin`].
    #[inline(always)]
    pub(super) fn keep(&mut self, chunk: usize, settled: Lanes<S>) -> Lanes<S> {
        let values = self.present(chunk, self.curve.lanes(settled));
        self.chunks[chunk].values = values;
        values * self.slabs[self.chunks[chunk].slab].output
    }

    /// Begins a step of learning, `step` being minus the rate times the error of the output unit's sum: gives the same of the
    /// second layer's sums, each in the four lanes of its filter.
    #[inline(always)]
    pub(super) fn begin(&self, chunk: usize, step: f32) -> Sums<S> {
        let (slope, Chunk { slab, group, values }) = (self.slope, self.chunks[chunk]);
        let output = self.slabs[slab].output * self.groups[group].present;
        let back = output * step * ((1.0 - values * values) * slope);
        [back.spread(0), back.spread(1), back.spread(2), back.spread(3)]
    }

    /// Learns output weights and biases, when the errors of all chunks are made.
    #[inline(always)]
    pub(super) fn finish(&mut self, chunk: usize, step: f32, errors: &Sums<S>) {
        let Chunk { slab, values, .. } = self.chunks[chunk];
        let slab = &mut self.slabs[slab];
        // All orientations have the same weight.
        let pairs = values + values.swap(1);
        let all = pairs + pairs.swap(2);
        slab.output += all * step;
        if self.biased {
            for lane in (0..LANES).step_by(4) {
                for error in errors {
                    slab.bias[lane] += error[lane];
                }
            }
        }
    }

    /// Adds minus the rate times the errors that come back to the units of these blocks; for each of their quads the sum over
    /// quads of lanes is still to be made.
    #[inline(always)]
    pub(super) fn back(&self, errors: &[Sums<S>], blocks: &[u16], sums: &mut [Sums<S>]) {
        for (chunk, errors) in self.chunks.iter().zip(errors) {
            let (tiles, errors) = (&*self.slabs[chunk.slab].tiles, *errors);
            let turns = self.groups[chunk.group].turns.as_chunks::<FOUR>().0;
            for block in blocks {
                let block = usize::from(*block);
                for (sum, turn) in sums[block].iter_mut().zip(&turns[block]) {
                    let mut quad = *sum;
                    quad += *turn.of(tiles, 0) * errors[0];
                    quad += *turn.of(tiles, 1) * errors[1];
                    quad += *turn.of(tiles, 2) * errors[2];
                    quad += *turn.of(tiles, 3) * errors[3];
                    *sum = quad;
                }
            }
        }
    }

    /// Learns the connections to all quads. `values` are those of the first layer.
    #[inline(always)]
    pub(super) fn learn(&mut self, errors: &[Sums<S>], values: &Both<Quad>) {
        let (pairs, rest) = self.slabs.as_chunks_mut();
        let last = 2 * pairs.len();
        for (at, pair) in pairs.iter_mut().enumerate() {
            learn_slabs::<S, 2>(self.simd, pair, 2 * at, &self.groups, errors, values);
        }
        if let [slab] = rest {
            learn_slabs::<S, 1>(self.simd, std::array::from_mut(slab), last, &self.groups, errors, values);
        }
    }
}

/// [`Head::learn`] of some slabs, of which the first has this number.
#[inline(always)]
fn learn_slabs<S: Simd, const W: usize>(
    simd: S,
    slabs: &mut [Slab<S>; W],
    first: usize,
    groups: &[Group<S>],
    errors: &[Sums<S>],
    values: &Both<Quad>,
) {
    for (at, group) in groups.iter().enumerate() {
        let mut steps = [[zero(simd); FOUR]; W];
        for slab in 0..W {
            steps[slab] = errors[(first + slab) * groups.len() + at];
        }
        for (quad, image) in group.images.iter().enumerate().take(QUADS) {
            let seen = [
                lanes::tile(simd, image.of(values, 0)),
                lanes::tile(simd, image.of(values, 1)),
                lanes::tile(simd, image.of(values, 2)),
                lanes::tile(simd, image.of(values, 3)),
            ];
            for slab in 0..W {
                let (steps, tiles) = (&steps[slab], &mut slabs[slab].tiles[2 * quad..][..2]);
                let mut learnt = tiles[0];
                learnt += steps[0] * seen[0];
                learnt += steps[1] * seen[1];
                learnt += steps[2] * seen[2];
                learnt += steps[3] * seen[3];
                tiles[0] = learnt;
                tiles[1] = learnt.swap(1);
            }
        }
    }
}
