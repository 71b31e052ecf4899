//! A second hidden layer and the output unit.

use super::{Head, Output};
use crate::net::{
    activation::Curve,
    lanes::{LANES, Lanes, apart},
    perceptron::{Group, Layout, Lesson, QUADS},
};

/// Four blocks. Of the connections of one quad of the first layer to 16 units of the second: each unit of the second has a
/// quad of lanes, one for each unit of the first. Then nothing needs to be broadcast one by one, and sums over the first
/// layer are completed only when they are read.
type Tiles = [Lanes; 4];

/// A second layer of up to 16 N units, and the output unit.
#[derive(Clone, Debug)]
pub(in crate::net) struct Deep<const N: usize> {
    output: Output,
    curve: Curve,
    /// Blocks that the second layer's units fill: four units each.
    blocks: usize,
    /// Of the output unit.
    weights: [Lanes; N],
    /// In the first lane of each unit's four.
    biases: [Tiles; N],
    /// By quad of the first layer.
    second: Box<[[Tiles; N]; QUADS]>,
}

/// A block of weighted sums for each 16 units of the second layer.
#[derive(Clone, Copy, Debug)]
pub(in crate::net) struct Settled<const N: usize>([Lanes; N]);

impl<const N: usize> Default for Settled<N> {
    fn default() -> Self {
        Self([Lanes::ZERO; N])
    }
}

/// Where a unit of the second layer of so many is: which tiles, and in them its block and quad. Sixteen units fill four
/// blocks; fewer than that fill only as many as they need.
fn place(unit: usize, units: usize) -> (usize, usize, usize) {
    let (tiles, unit) = (unit / LANES, unit % LANES);
    let blocks = (units - tiles * LANES).min(LANES).div_ceil(4);
    (tiles, unit % blocks, unit / blocks)
}

impl<const N: usize> Deep<N> {
    /// Calls `f` with each weight and its canonical place.
    fn each(&mut self, layout: &Layout, mut f: impl FnMut(&mut f32, usize)) {
        let units = layout.architecture.second;
        let second = layout.range("second.weight");
        for ((quad, lane), row) in layout.places().zip(second.step_by(units)) {
            for unit in 0..units {
                let (tiles, block, at) = place(unit, units);
                f(&mut self.second[quad][tiles][block].0[4 * at + lane], row + unit);
            }
        }
        for (unit, index) in layout.range("second.bias").enumerate() {
            let (tiles, block, at) = place(unit, units);
            f(&mut self.biases[tiles][block].0[4 * at], index);
        }
        for (unit, index) in layout.range("output.weight").enumerate() {
            let (tiles, block, at) = place(unit, units);
            f(&mut self.weights[tiles].0[4 * at + block], index);
        }
        layout.range("output.bias").for_each(|index| f(&mut self.output.bias, index));
    }
}

/// Blocks that are summed at once, of one board or of four: what is loaded once serves several sums, and while one of them
/// waits for its last addition there are others to go on with.
const PAIR: usize = 2;
/// Boards whose values stay in the nearest cache together with those weights: a multiple of four.
const BOARDS: usize = 16;

impl<const N: usize> Deep<N> {
    /// B blocks of these tiles' sums for C boards, from the values of all units.
    #[inline(always)]
    fn sum_blocks<const C: usize, const B: usize>(
        &self,
        sums: &mut [Tiles; C],
        tiles: usize,
        block: usize,
        values: [&[Lanes]; C],
    ) {
        let mut kept = [[Lanes::ZERO; B]; C];
        for case in 0..C {
            for at in 0..B {
                kept[case][at] = self.biases[tiles][(block + at) % 4];
            }
        }
        let groups = self.second.as_chunks::<4>().0;
        for (at, quads) in groups.iter().enumerate().take(values[0].len()) {
            for (index, second) in quads.iter().enumerate() {
                for case in 0..C {
                    let value = values[case][at].tiled(index);
                    for at in 0..B {
                        kept[case][at] = kept[case][at].plus(second[tiles][(block + at) % 4], value);
                    }
                }
            }
        }
        for case in 0..C {
            for at in 0..B {
                sums[case][(block + at) % 4] = kept[case][at];
            }
        }
    }

    /// The same for all boards before the next blocks, whose weights are then still at hand.
    #[inline(always)]
    fn sum_boards<const B: usize>(
        &self,
        sums: &mut [Tiles; BOARDS],
        tiles: usize,
        block: usize,
        (values, blocks, boards): (&[Lanes], usize, usize),
    ) {
        let (fours, rest) = if boards % 4 == 1 { (boards / 4, true) } else { (boards.div_ceil(4), false) };
        let fours_of_values = values.chunks_exact(4 * blocks);
        for (sums, values) in sums.as_chunks_mut().0.iter_mut().zip(fours_of_values).take(fours) {
            let (low, high) = values.split_at(2 * blocks);
            let ((first, second), (third, fourth)) = (low.split_at(blocks), high.split_at(blocks));
            self.sum_blocks::<4, B>(sums, tiles, block, [first, second, third, fourth]);
        }
        if rest {
            let board = (boards - 1) % BOARDS;
            let values = &values[board * blocks..(board + 1) * blocks];
            self.sum_blocks::<1, B>(std::array::from_mut(&mut sums[board]), tiles, block, [values]);
        }
    }
}

impl<const N: usize> Head for Deep<N> {
    type Sums = [Tiles; N];
    /// The weighted sums of the second layer's units.
    type Settled = Settled<N>;
    /// Minus the rate times the errors of the second layer's weighted sums, each in the four lanes of its unit.
    type Errors = [Tiles; N];

    fn new(layout: &Layout, weights: &[f32]) -> Self {
        let mut deep = Self {
            output: Output::new(layout, weights),
            curve: layout.architecture.activation.curve(),
            blocks: layout.architecture.second.div_ceil(4),
            weights: [Lanes::ZERO; N],
            biases: [[Lanes::ZERO; 4]; N],
            second: Box::new([[[Lanes::ZERO; 4]; N]; QUADS]),
        };
        deep.each(layout, |weight, index| *weight = weights[index]);
        deep
    }

    fn write(&self, layout: &Layout, weights: &mut [f32]) {
        self.clone().each(layout, |weight, index| weights[index] = *weight);
    }

    #[inline(always)]
    fn start(&self) -> [Tiles; N] {
        self.biases
    }

    #[inline(always)]
    fn add(&self, sums: &mut [Tiles; N], quads: [u16; 4], change: &Lanes) {
        for (index, quad) in quads.into_iter().enumerate() {
            let change = change.tiled(index);
            let weights = &self.second[usize::from(quad) % QUADS];
            for tiles in 0..N {
                let (sum, weights) = (&mut sums[tiles], &weights[tiles]);
                sum[0] = sum[0].plus(weights[0], change);
                sum[1] = sum[1].plus(weights[1], change);
                sum[2] = sum[2].plus(weights[2], change);
                sum[3] = sum[3].plus(weights[3], change);
            }
        }
    }

    #[inline(always)]
    fn settle(&self, sums: &[Tiles; N], blocks: &[[u16; 4]], changes: &[Lanes]) -> Settled<N> {
        let mut sums = *sums;
        for (quads, change) in blocks.iter().zip(changes) {
            self.add(&mut sums, *quads, change);
        }
        let mut settled = Settled::default();
        for tiles in 0..N {
            settled.0[tiles] = Lanes::sums_of_quads(&sums[tiles]);
        }
        settled
    }

    #[inline(always)]
    fn settle_all(&self, values: &[Lanes], blocks: usize, boards: usize, settled: &mut [Settled<N>; 64]) {
        let mut sums = [[Lanes::ZERO; 4]; BOARDS];
        for (at, values) in values[..boards.next_multiple_of(4) * blocks].chunks(BOARDS * blocks).enumerate() {
            let settled = &mut settled[at * BOARDS..];
            let boards = (boards - at * BOARDS).min(BOARDS);
            for tiles in 0..N {
                let used = self.blocks.saturating_sub(4 * tiles).min(4);
                for block in (0..used - used % PAIR).step_by(PAIR) {
                    self.sum_boards::<PAIR>(&mut sums, tiles, block, (values, blocks, boards));
                }
                if used % PAIR == 1 {
                    self.sum_boards::<1>(&mut sums, tiles, used - 1, (values, blocks, boards));
                }
                for (settled, sums) in settled.iter_mut().zip(&sums).take(boards) {
                    settled.0[tiles] = Lanes::sums_of_quads(sums);
                }
            }
        }
    }

    #[inline(always)]
    fn part(&self, settled: &Settled<N>) -> Lanes {
        let mut part = Lanes::ZERO;
        for tiles in 0..N {
            part = part.plus(self.curve.lanes(settled.0[tiles]), self.weights[tiles]);
        }
        part
    }

    #[inline(always)]
    fn bias(&self) -> f32 {
        self.output.bias
    }

    #[inline(always)]
    fn begin(&mut self, sums: &[Tiles; N], lesson: Lesson) -> [Tiles; N] {
        let settled = self.settle(sums, &[], &[]);
        let mut values = [Lanes::ZERO; N];
        let mut sum = Lanes::ZERO;
        for tiles in 0..N {
            values[tiles] = self.curve.lanes(settled.0[tiles]);
            sum = sum.plus(values[tiles], self.weights[tiles]);
        }
        let step = self.output.begin(sum.sum() + self.output.bias, lesson);
        let slope = self.output.activation.slope();
        let mut errors = [[Lanes::ZERO; 4]; N];
        for tiles in 0..N {
            let back =
                self.weights[tiles].zip(values[tiles], |weight, value| weight * step * (slope * (1.0 - value * value)));
            self.weights[tiles] = self.weights[tiles].plus(values[tiles], Lanes::splat(step));
            for block in 0..4 {
                errors[tiles][block] = back.spread(block);
                if self.output.biased {
                    let bias = &mut self.biases[tiles][block];
                    for lane in 0..LANES {
                        bias.0[lane] += if lane % 4 == 0 { errors[tiles][block].0[lane] } else { 0.0 };
                    }
                }
            }
        }
        errors
    }

    #[inline(always)]
    fn back(&self, errors: &[Tiles; N], group: usize) -> Lanes {
        let mut sums = [Lanes::ZERO; 4];
        let quads = &self.second.as_chunks::<4>().0[group % (QUADS / 4)];
        for index in 0..4 {
            let second = &quads[index];
            let mut sum = Lanes::ZERO;
            for tiles in 0..N {
                let (weights, errors) = (&second[tiles], &errors[tiles]);
                sum = sum.plus(weights[0], errors[0]);
                sum = sum.plus(weights[1], errors[1]);
                sum = sum.plus(weights[2], errors[2]);
                sum = sum.plus(weights[3], errors[3]);
            }
            sums[index] = sum;
        }
        Lanes::sums_over_quads(&sums)
    }

    #[inline(always)]
    fn swap(&mut self, left: usize, right: usize) {
        self.second.swap(left % QUADS, right % QUADS);
    }

    #[inline(always)]
    fn learn<const V: usize>(&mut self, errors: &[Tiles; N], groups: &[Group]) -> [[Tiles; N]; V] {
        let (errors, mut sums) = (apart(errors), [apart(&self.biases); V]);
        for tiles in 0..N {
            let (errors, mut sum) = (errors[tiles], sums.map(|sums| sums[tiles]));
            for (group, quads) in groups.iter().zip(self.second.as_chunks_mut::<4>().0) {
                for index in 0..4 {
                    let weights = &mut quads[index][tiles];
                    let past = group.past.tiled(index);
                    // Not read back from where it is written to: the compiler would lose sight of some lanes.
                    let learnt = [
                        weights[0].plus(errors[0], past),
                        weights[1].plus(errors[1], past),
                        weights[2].plus(errors[2], past),
                        weights[3].plus(errors[3], past),
                    ];
                    *weights = learnt;
                    for view in 0..V {
                        let (sum, value) = (&mut sum[view], group.values[view].tiled(index));
                        sum[0] = sum[0].plus(learnt[0], value);
                        sum[1] = sum[1].plus(learnt[1], value);
                        sum[2] = sum[2].plus(learnt[2], value);
                        sum[3] = sum[3].plus(learnt[3], value);
                    }
                }
            }
            for view in 0..V {
                sums[view][tiles] = sum[view];
            }
        }
        sums
    }
}
