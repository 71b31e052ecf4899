//! The second layer of a network that shares weights: filters, each applied in all orientations of the board.
//!
//! Weights are laid out as in the unshared network: of the connections of one quad of the first layer to four filters each
//! filter has a quad of lanes (a *tile*). A filter in orientation k looks at line L through the weights that it has for the
//! line k^-1 L; if k reverses, neighbouring detectors change places, so each tile is kept both ways. Four filters (a *slab*)
//! in four orientations (a *group*) are one chunk of the second layer: sixteen units.

use super::{Ties, Turning};
use crate::net::{
    Architecture,
    activation::Curve,
    lanes::{LANES, Lanes},
};

/// Orientations of a group, and filters of a slab.
const FOUR: usize = 4;

/// Sums, or errors, of four filters in four orientations; a sum is complete when a quad's four lanes are added.
pub(super) type Sums = [Lanes; FOUR];

/// The filters.
#[derive(Clone, Debug)]
pub(super) struct Head {
    curve: Curve,
    slope: f32,
    biased: bool,
    slabs: Vec<Slab>,
    groups: Vec<Group>,
    /// One for each slab and group.
    chunks: Vec<Chunk>,
    /// The quads that there are: for each line and part one. The others fill up blocks.
    sources: Vec<u16>,
}

/// Four filters.
#[derive(Clone, Debug)]
struct Slab {
    /// For each quad its tile, and the same with neighbouring detectors swapped.
    tiles: Box<[Lanes]>,
    /// In the first lane of each filter's quad.
    bias: Lanes,
    /// Filter q in the four lanes of quad q, which are its orientations.
    output: Lanes,
}

/// Four orientations.
#[derive(Clone, Debug)]
struct Group {
    /// For each quad: twice the quad whose weights are used in each orientation, plus 1 if reversed.
    turns: Box<[[u16; FOUR]]>,
    /// For each quad: twice the quad at which its weights are used in each orientation, plus 1 if reversed.
    images: Box<[[u16; FOUR]]>,
    /// 1 for the orientations there are, 0 for those that fill up.
    present: Lanes,
}

/// Four filters in four orientations.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    slab: usize,
    group: usize,
    /// Of the board that is learnt from.
    values: Lanes,
}

/// The connections of a chunk to the first layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joints<'a> {
    tiles: &'a [Lanes],
    turns: &'a [[u16; FOUR]],
}

impl Joints<'_> {
    /// Adds what the units of four quads contribute when their values change by so much.
    #[inline(always)]
    pub(super) fn add(self, sums: &mut Sums, quads: [u16; 4], change: &Lanes) {
        for index in 0..4 {
            let turn = self.turns[usize::from(quads[index])];
            let change = change.tiled(index);
            sums[0] = sums[0].plus(self.tiles[usize::from(turn[0])], change);
            sums[1] = sums[1].plus(self.tiles[usize::from(turn[1])], change);
            sums[2] = sums[2].plus(self.tiles[usize::from(turn[2])], change);
            sums[3] = sums[3].plus(self.tiles[usize::from(turn[3])], change);
        }
    }
}

impl Head {
    /// Filters without weights, above so many quads and one of no units. `place` tells the quad of a line and part.
    pub(super) fn new(
        architecture: &Architecture,
        turning: &Turning,
        parts: usize,
        quads: usize,
        place: impl Fn(usize, usize) -> u16,
    ) -> Self {
        let none = 2 * quads as u16;
        let group = |orientations: &[Vec<(usize, bool)>]| {
            let all = || vec![[none; FOUR]; quads + 1].into_boxed_slice();
            let (mut turns, mut images, mut present) = (all(), all(), Lanes::ZERO);
            for (k, sources) in orientations.iter().enumerate() {
                for lane in (k..LANES).step_by(FOUR) {
                    present.0[lane] = 1.0;
                }
                for (line, (source, reversed)) in sources.iter().enumerate() {
                    for part in 0..parts {
                        let (to, from) = (place(line, part), place(*source, part));
                        turns[usize::from(to)][k] = 2 * from + u16::from(*reversed);
                        images[usize::from(from)][k] = 2 * to + u16::from(*reversed);
                    }
                }
            }
            Group { turns, images, present }
        };
        let groups: Vec<Group> = turning.sources.chunks(FOUR).map(group).collect();
        let slab = |_| Slab {
            tiles: vec![Lanes::ZERO; 2 * quads + 2].into_boxed_slice(),
            bias: Lanes::ZERO,
            output: Lanes::ZERO,
        };
        let slabs: Vec<Slab> = (0..architecture.second.div_ceil(FOUR)).map(slab).collect();
        let of_slab = |slab| (0..groups.len()).map(move |group| Chunk { slab, group, values: Lanes::ZERO });
        let lines = (0..turning.cells.len()).flat_map(|line| (0..parts).map(move |part| (line, part)));
        Self {
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
    /// Tiles are met one way only: after a change, [`Head::mirror`] makes the others.
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
                f(&mut slab.tiles[2 * quad].0[lane + detector % 4], ties.weights[second + unit * row + filter]);
            }
            if let Some(bias) = start("second.bias") {
                f(&mut slab.bias.0[lane], ties.weights[bias + filter]);
            }
            let output = start("output.weight").expect("every network has output weights");
            for orientation in 0..FOUR {
                f(&mut slab.output.0[lane + orientation], ties.weights[output + filter]);
            }
        }
    }

    /// Makes the swapped tiles.
    pub(super) fn mirror(&mut self) {
        for slab in &mut self.slabs {
            for tiles in slab.tiles.as_chunks_mut::<2>().0 {
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
    pub(super) fn start(&self, chunk: usize) -> Sums {
        [self.slabs[self.chunks[chunk].slab].bias; FOUR]
    }

    /// The connections of a chunk.
    #[inline(always)]
    pub(super) fn joints(&self, chunk: usize) -> Joints<'_> {
        let Chunk { slab, group, .. } = self.chunks[chunk];
        Joints { tiles: &self.slabs[slab].tiles, turns: &self.groups[group].turns }
    }

    /// The values of a chunk.
    #[inline(always)]
    fn values(&self, chunk: usize, settled: Lanes) -> Lanes {
        let present = self.groups[self.chunks[chunk].group].present;
        self.curve.lanes(settled).zip(present, |value, present| value * present)
    }

    /// Adds what a chunk makes of its weighted sums to sixteen parts of the output unit's.
    #[inline(always)]
    pub(super) fn output(&self, chunk: usize, settled: Lanes, parts: Lanes) -> Lanes {
        parts.plus(self.values(chunk, settled), self.slabs[self.chunks[chunk].slab].output)
    }

    /// As [`Head::output`], and keeps the values for [`Head::begin`].
    #[inline(always)]
    pub(super) fn keep(&mut self, chunk: usize, settled: Lanes, parts: Lanes) -> Lanes {
        self.chunks[chunk].values = self.values(chunk, settled);
        self.output(chunk, settled, parts)
    }

    /// Begins a step of learning, `step` being minus the rate times the error of the output unit's sum: gives the same of the
    /// second layer's sums, each in the four lanes of its filter.
    #[inline(always)]
    pub(super) fn begin(&self, chunk: usize, step: f32) -> Sums {
        let (slope, Chunk { slab, group, values }) = (self.slope, self.chunks[chunk]);
        let output = self.slabs[slab].output.zip(self.groups[group].present, |weight, present| weight * present);
        let back = output.zip(values, |weight, value| weight * step * (slope * (1.0 - value * value)));
        [back.spread(0), back.spread(1), back.spread(2), back.spread(3)]
    }

    /// Learns output weights and biases, when the errors of all chunks are made.
    #[inline(always)]
    pub(super) fn finish(&mut self, chunk: usize, step: f32, errors: &Sums) {
        let Chunk { slab, values, .. } = self.chunks[chunk];
        let slab = &mut self.slabs[slab];
        // All orientations have the same weight.
        let pairs = values.zip(values.swap(1), |left, right| left + right);
        let all = pairs.zip(pairs.swap(2), |left, right| left + right);
        slab.output = slab.output.plus(all, Lanes::splat(step));
        if self.biased {
            for lane in (0..LANES).step_by(4) {
                for error in errors {
                    slab.bias.0[lane] += error.0[lane];
                }
            }
        }
    }

    /// Minus the rate times the error that comes back to the units of a quad: the four sums over quads of lanes are still to
    /// be added.
    #[inline(always)]
    pub(super) fn back(&self, errors: &[Sums], quad: u16) -> Lanes {
        let mut sum = Lanes::ZERO;
        for (chunk, errors) in self.chunks.iter().zip(errors) {
            let tiles = &*self.slabs[chunk.slab].tiles;
            let turn = self.groups[chunk.group].turns[usize::from(quad)];
            sum = sum.plus(tiles[usize::from(turn[0])], errors[0]);
            sum = sum.plus(tiles[usize::from(turn[1])], errors[1]);
            sum = sum.plus(tiles[usize::from(turn[2])], errors[2]);
            sum = sum.plus(tiles[usize::from(turn[3])], errors[3]);
        }
        sum
    }

    /// Learns the connections to all quads. `values` are those of the first layer, each quad four times: as it is, and
    /// with neighbours swapped.
    #[inline(always)]
    pub(super) fn learn(&mut self, errors: &[Sums], values: &[Lanes]) {
        let groups = &self.groups;
        for (slab, errors) in self.slabs.iter_mut().zip(errors.chunks_exact(groups.len())) {
            for source in &self.sources {
                let at = 2 * usize::from(*source);
                let mut tile = slab.tiles[at];
                for (group, errors) in groups.iter().zip(errors) {
                    let image = group.images[usize::from(*source)];
                    tile = tile.plus(errors[0], values[usize::from(image[0])]);
                    tile = tile.plus(errors[1], values[usize::from(image[1])]);
                    tile = tile.plus(errors[2], values[usize::from(image[2])]);
                    tile = tile.plus(errors[3], values[usize::from(image[3])]);
                }
                slab.tiles[at] = tile;
                slab.tiles[at + 1] = tile.swap(1);
            }
        }
    }
}
