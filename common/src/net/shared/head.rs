//! The second layer of a network that shares weights: filters, each applied in all orientations of the board.
//!
//! Weights are laid out as in the unshared network: of the connections of one quad of the first layer to eight filters each
//! filter has a quad of lanes, in two blocks (a *tile*). A filter in orientation k looks at line L through the weights that
//! it has for the line k^-1 L; if k reverses, neighbouring detectors change places. More than eight filters are several
//! slabs, and orientations are handled eight at a time.

use super::{Ties, Turning};
use crate::net::{
    Architecture,
    activation::Curve,
    lanes::{LANES, Lanes},
    perceptron::{NONE, QUADS},
};

/// Orientations of a group.
pub(super) const GROUP: usize = 8;
/// Filters of a slab.
pub(super) const FILTERS: usize = 8;

/// Of one quad's units and eight filters: filter f in block f / 4, quad f % 4.
type Tile = [Lanes; 2];

/// Sums, or errors, of eight filters in eight orientations; a sum is complete when a quad's four lanes are added.
pub(super) type Sums = [Tile; GROUP];

/// The filters.
#[derive(Clone, Debug)]
pub(super) struct Head {
    curve: Curve,
    slope: f32,
    biased: bool,
    slabs: Vec<Slab>,
    /// How many times eight orientations there are.
    groups: usize,
    /// For each quad and group: twice the quad whose weights are used in each orientation, plus 1 if reversed.
    turns: Vec<[u16; GROUP]>,
    /// For each two orientations: 1 for those there are, 0 for those that fill up.
    present: Vec<Lanes>,
    /// The values of the second layer for the board that is learnt, two orientations at a time.
    values: Vec<Lanes>,
}

/// Eight filters.
#[derive(Clone, Debug)]
struct Slab {
    tiles: Box<[Tile; QUADS]>,
    /// In the first lane of each filter's quad.
    bias: Tile,
    /// As the values of two orientations lie: filter 4 b + q in lanes 4 q + b and 4 q + 2 + b.
    output: Lanes,
}

impl Head {
    /// Filters without weights.
    pub(super) fn new(architecture: &Architecture, turning: &Turning, parts: usize) -> Self {
        let orientations = turning.sources.len();
        let groups = orientations.div_ceil(GROUP);
        let mut turns = vec![[2 * NONE; GROUP]; QUADS * groups];
        for (k, sources) in turning.sources.iter().enumerate() {
            for (line, (source, reversed)) in sources.iter().enumerate() {
                for part in 0..parts {
                    let turn = 2 * (source * parts + part) as u16 + u16::from(*reversed);
                    turns[(line * parts + part) * groups + k / GROUP][k % GROUP] = turn;
                }
            }
        }
        let present = |pair: usize| {
            Lanes(std::array::from_fn(|lane| if 2 * pair + lane / 2 % 2 < orientations { 1.0 } else { 0.0 }))
        };
        let tile = [Lanes::ZERO; 2];
        let slab = || Slab { tiles: Box::new([tile; QUADS]), bias: tile, output: Lanes::ZERO };
        let slabs: Vec<Slab> = (0..architecture.second.div_ceil(FILTERS)).map(|_| slab()).collect();
        Self {
            curve: architecture.activation.curve(),
            slope: architecture.activation.slope(),
            biased: architecture.biases,
            values: vec![Lanes::ZERO; slabs.len() * groups * GROUP / 2],
            slabs,
            groups,
            turns,
            present: (0..groups * GROUP / 2).map(present).collect(),
        }
    }

    /// Calls `f` with each weight (those that are kept twice, twice) and its index among the shared weights.
    pub(super) fn each(&mut self, ties: &Ties, parts: usize, mut f: impl FnMut(&mut f32, usize)) {
        let tensors = ties.unshared.tensors();
        let start = |name: &str| tensors.iter().find(|tensor| tensor.name == name).map(|tensor| tensor.range.start);
        let (units, second) = match start("second.weight") {
            Some(second) => (ties.unshared.units(), second),
            None => return,
        };
        let lines = tensors[0].shape[0];
        let (detectors, row) = (units / lines, ties.unshared.second);
        let filters = ties.filters;
        for filter in 0..filters {
            let slab = &mut self.slabs[filter / FILTERS];
            let (block, quad) = (filter % FILTERS / 4, filter % 4);
            for unit in 0..units {
                let (line, detector) = (unit / detectors, unit % detectors);
                let tile = &mut slab.tiles[line * parts + detector / 4];
                f(&mut tile[block].0[4 * quad + detector % 4], ties.weights[second + unit * row + filter]);
            }
            if let Some(bias) = start("second.bias") {
                f(&mut slab.bias[block].0[4 * quad], ties.weights[bias + filter]);
            }
            let output = start("output.weight").expect("every network has output weights");
            f(&mut slab.output.0[4 * quad + block], ties.weights[output + filter]);
            f(&mut slab.output.0[4 * quad + 2 + block], ties.weights[output + filter]);
        }
    }

    /// How many [`Sums`] there are: for each slab, then for each group.
    #[inline(always)]
    pub(super) fn chunks(&self) -> usize {
        self.slabs.len() * self.groups
    }

    /// The sums of the biases alone.
    #[inline(always)]
    pub(super) fn start(&self, chunk: usize) -> Sums {
        [self.slabs[chunk / self.groups].bias; GROUP]
    }

    #[inline(always)]
    fn turn(&self, quad: u16, chunk: usize) -> &[u16; GROUP] {
        &self.turns[usize::from(quad) % QUADS * self.groups + chunk % self.groups]
    }

    /// Adds what the units of these quads contribute when their values change by so much.
    #[inline(always)]
    pub(super) fn add(&self, chunk: usize, sums: &mut Sums, quads: [u16; 4], change: Lanes) {
        let tiles = &self.slabs[chunk / self.groups].tiles;
        for index in 0..4 {
            let straight = change.tiled(index);
            let changes = [straight, straight.swap(1)];
            let turn = self.turn(quads[index], chunk);
            for k in 0..GROUP {
                let tile = &tiles[usize::from(turn[k] / 2) % QUADS];
                let change = changes[usize::from(turn[k] % 2)];
                sums[k][0] = sums[k][0].plus(tile[0], change);
                sums[k][1] = sums[k][1].plus(tile[1], change);
            }
        }
    }

    /// The values of two orientations.
    #[inline(always)]
    fn pair(&self, chunk: usize, pair: usize, sums: &Sums) -> Lanes {
        let (left, right) = (&sums[2 * pair], &sums[2 * pair + 1]);
        let values = self.curve.lanes(Lanes::sums_of_quads(&[left[0], left[1], right[0], right[1]]));
        let present = self.present[chunk % self.groups * (GROUP / 2) + pair];
        values.zip(present, |value, present| value * present)
    }

    /// What these sums add to the output unit's.
    #[inline(always)]
    pub(super) fn output(&self, chunk: usize, sums: &Sums) -> f32 {
        let weights = self.slabs[chunk / self.groups].output;
        let mut all = Lanes::ZERO;
        for pair in 0..GROUP / 2 {
            all = all.plus(self.pair(chunk, pair, sums), weights);
        }
        all.sum()
    }

    /// As [`Head::output`], and keeps the values for [`Head::begin`].
    #[inline(always)]
    pub(super) fn keep(&mut self, chunk: usize, sums: &Sums) -> f32 {
        let weights = self.slabs[chunk / self.groups].output;
        let mut all = Lanes::ZERO;
        for pair in 0..GROUP / 2 {
            let values = self.pair(chunk, pair, sums);
            self.values[chunk * (GROUP / 2) + pair] = values;
            all = all.plus(values, weights);
        }
        all.sum()
    }

    /// Begins a step of learning, `step` being minus the rate times the error of the output unit's sum: gives the same of the
    /// second layer's sums, each in the four lanes of its filter.
    #[inline(always)]
    pub(super) fn begin(&mut self, chunk: usize, step: f32, errors: &mut Sums) {
        let slope = self.slope;
        let slab = &self.slabs[chunk / self.groups];
        let mut all = Lanes::ZERO;
        for pair in 0..GROUP / 2 {
            let values = self.values[chunk * (GROUP / 2) + pair];
            let present = self.present[chunk % self.groups * (GROUP / 2) + pair];
            let back = slab.output.zip(values, |weight, value| weight * step * (slope * (1.0 - value * value)));
            let back = back.zip(present, |back, present| back * present);
            all = all.zip(values, |all, value| all + value);
            for half in 0..2 {
                errors[2 * pair + half] = [back.spread(2 * half), back.spread(2 * half + 1)];
            }
        }
        // Both orientations of a pair have the same weight.
        self.values[chunk * (GROUP / 2)] = all.zip(all.swap(2), |left, right| left + right);
    }

    /// Learns output weights and biases, when the errors of all chunks are made.
    #[inline(always)]
    pub(super) fn finish(&mut self, chunk: usize, step: f32, errors: &Sums) {
        let slab = &mut self.slabs[chunk / self.groups];
        slab.output = slab.output.plus(self.values[chunk * (GROUP / 2)], Lanes::splat(step));
        if self.biased {
            for block in 0..2 {
                for lane in (0..LANES).step_by(4) {
                    for error in errors {
                        slab.bias[block].0[lane] += error[block].0[lane];
                    }
                }
            }
        }
    }

    /// Minus the rate times the error that comes back to the units of a quad: the four sums over quads of lanes are still to
    /// be added.
    #[inline(always)]
    pub(super) fn back(&self, chunk: usize, errors: &Sums, quad: u16) -> Lanes {
        let tiles = &self.slabs[chunk / self.groups].tiles;
        let turn = self.turn(quad, chunk);
        let mut sum = Lanes::ZERO;
        for k in 0..GROUP {
            let tile = &tiles[usize::from(turn[k] / 2) % QUADS];
            let back = tile[0].zip(errors[k][0], |weight, error| weight * error).plus(tile[1], errors[k][1]);
            let back = if turn[k] % 2 == 1 { back.swap(1) } else { back };
            sum = sum.zip(back, |sum, back| sum + back);
        }
        sum
    }

    /// Learns the connections to the units of these quads, which had these values.
    #[inline(always)]
    pub(super) fn learn(&mut self, chunk: usize, errors: &Sums, quads: [u16; 4], values: Lanes) {
        let slab = chunk / self.groups;
        for index in 0..4 {
            let straight = values.tiled(index);
            let both = [straight, straight.swap(1)];
            let turn = *self.turn(quads[index], chunk);
            let tiles = &mut self.slabs[slab].tiles;
            for k in 0..GROUP {
                let tile = &mut tiles[usize::from(turn[k] / 2) % QUADS];
                let values = both[usize::from(turn[k] % 2)];
                tile[0] = tile[0].plus(errors[k][0], values);
                tile[1] = tile[1].plus(errors[k][1], values);
            }
        }
    }
}
