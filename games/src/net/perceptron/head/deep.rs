//! A second hidden layer and the output unit.

use fearless_simd::prelude::*;

use super::{Head, Output};
use crate::net::{
    First,
    activation::Curve,
    lanes::{Across, LANES, Lanes, sums_of_quads, sums_over_quads, tile, zero},
    perceptron::{Group, Layout, Lesson, QUADS},
};

/// Four blocks. Of the connections of one quad of the first layer to 16 units of the second: each unit of the second has a
/// quad of lanes, one for each unit of the first. Then nothing needs to be broadcast one by one, and sums over the first
/// layer are completed only when they are read.
type Tiles<S> = [Lanes<S>; 4];

/// A second layer of up to 16 N units, and the output unit.
#[derive(Clone)]
pub(in crate::net) struct Deep<S: Simd, const N: usize> {
    simd: S,
    output: Output,
    curve: Curve,
    /// Blocks that the second layer's units fill: four units each.
    blocks: usize,
    /// Of the output unit.
    weights: [Lanes<S>; N],
    /// In the first lane of each unit's four.
    biases: [Tiles<S>; N],
    /// By quad of the first layer.
    second: Box<[[Tiles<S>; N]; QUADS]>,
    /// Scratch: values of a dense first layer on up to 64 boards.
    values: Box<[Lanes<S>]>,
}

/// Where a unit of the second layer of so many is: which tiles, and in them its block and quad. Sixteen units fill four
/// blocks; fewer than that fill only as many as they need.
fn place(unit: usize, units: usize) -> (usize, usize, usize) {
    let (tiles, unit) = (unit / LANES, unit % LANES);
    let blocks = (units - tiles * LANES).min(LANES).div_ceil(4);
    (tiles, unit % blocks, unit / blocks)
}

impl<S: Simd, const N: usize> Deep<S, N> {
    /// Calls `f` with each weight and its canonical place.
    fn each(&mut self, layout: &Layout, mut f: impl FnMut(&mut f32, usize)) {
        let units = layout.architecture.second;
        let second = layout.range("second.weight");
        for ((quad, lane), row) in layout.places().zip(second.step_by(units)) {
            for unit in 0..units {
                let (tiles, block, at) = place(unit, units);
                f(&mut self.second[quad][tiles][block][4 * at + lane], row + unit);
            }
        }
        for (unit, index) in layout.range("second.bias").enumerate() {
            let (tiles, block, at) = place(unit, units);
            f(&mut self.biases[tiles][block][4 * at], index);
        }
        for (unit, index) in layout.range("output.weight").enumerate() {
            let (tiles, block, at) = place(unit, units);
            f(&mut self.weights[tiles][4 * at + block], index);
        }
        layout.range("output.bias").for_each(|index| f(&mut self.output.bias, index));
    }
}

/// Blocks that are summed at once, of one board or of four: what is loaded once serves several sums, and while one of them
/// waits for its last addition there are others to go on with.
const PAIR: usize = 2;
/// Boards whose values stay in the nearest cache together with those weights: a multiple of four.
const BOARDS: usize = 16;

impl<S: Simd, const N: usize> Deep<S, N> {
    /// B blocks of these tiles' sums for C boards, from the values of all units.
    #[inline(always)]
    fn sum_blocks<const C: usize, const B: usize>(
        &self,
        sums: &mut [Tiles<S>; C],
        tiles: usize,
        block: usize,
        values: [&[Lanes<S>]; C],
    ) {
        let mut kept = [[zero(self.simd); B]; C];
        for case in 0..C {
            for at in 0..B {
                kept[case][at] = self.biases[tiles][(block + at) % 4];
            }
        }
        let groups = self.second.as_chunks::<4>().0;
        for (at, quads) in groups.iter().enumerate().take(values[0].len()) {
            for (index, second) in quads.iter().enumerate() {
                for case in 0..C {
                    // Read four times over: moving lanes about is what the processor has least time for here.
                    let value = tile(self.simd, &values[case][at].as_chunks().0[index]);
                    for at in 0..B {
                        kept[case][at] += second[tiles][(block + at) % 4] * value;
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
        sums: &mut [Tiles<S>; BOARDS],
        tiles: usize,
        block: usize,
        (values, blocks, boards): (&[Lanes<S>], usize, usize),
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

impl<S: Simd, const N: usize> Head<S> for Deep<S, N> {
    type Sums = [Tiles<S>; N];
    /// The weighted sums of the second layer's units.
    type Settled = [Lanes<S>; N];
    /// Minus the rate times the errors of the second layer's weighted sums, each in the four lanes of its unit.
    type Errors = [Tiles<S>; N];

    fn new(simd: S, layout: &Layout, weights: &[f32]) -> Self {
        let tiles = [[zero(simd); 4]; N];
        let second = vec![tiles; QUADS].into_boxed_slice().try_into();
        let values = match layout.architecture.first {
            First::Dense { units } => 64 * units.div_ceil(LANES),
            First::Lines { .. } | First::Tuples { .. } => 0,
        };
        let mut deep = Self {
            simd,
            output: Output::new(layout, weights),
            curve: layout.architecture.activation.curve(),
            blocks: layout.architecture.second.div_ceil(4),
            weights: [zero(simd); N],
            biases: tiles,
            second: second.unwrap_or_else(|_| unreachable!("it has that length")),
            values: vec![zero(simd); values].into_boxed_slice(),
        };
        deep.each(layout, |weight, index| *weight = weights[index]);
        deep
    }

    fn write(&self, layout: &Layout, weights: &mut [f32]) {
        self.clone().each(layout, |weight, index| weights[index] = *weight);
    }

    #[inline(always)]
    fn start(&self) -> [Tiles<S>; N] {
        self.biases
    }

    #[inline(always)]
    fn add(&self, sums: &mut [Tiles<S>; N], quads: [u16; 4], change: Lanes<S>) {
        for index in 0..4 {
            let change = change.tiled(index);
            let weights = &self.second[usize::from(quads[index]) % QUADS];
            for tiles in 0..N {
                for block in 0..4 {
                    sums[tiles][block] += weights[tiles][block] * change;
                }
            }
        }
    }

    #[inline(always)]
    fn unsettled(&self) -> [Lanes<S>; N] {
        [zero(self.simd); N]
    }

    #[inline(always)]
    fn settle(&self, sums: &[Tiles<S>; N], blocks: &[[u16; 4]], changes: &[Lanes<S>]) -> [Lanes<S>; N] {
        let mut sums = *sums;
        for (quads, change) in blocks.iter().zip(changes) {
            self.add(&mut sums, *quads, *change);
        }
        let mut settled = self.unsettled();
        for tiles in 0..N {
            settled[tiles] = sums_of_quads(&sums[tiles]);
        }
        settled
    }

    #[inline(always)]
    fn settle_all(
        &mut self,
        boards: usize,
        blocks: usize,
        below: impl Fn(usize, usize) -> Lanes<S>,
        settled: &mut [[Lanes<S>; N]; 64],
    ) {
        for (board, values) in self.values.chunks_exact_mut(blocks).enumerate().take(boards) {
            self.curve.each(
                blocks,
                #[inline(always)]
                |block| below(board, block),
                #[inline(always)]
                |block, value| values[block] = value,
            );
        }
        let values = &self.values;
        let mut sums = [[zero(self.simd); 4]; BOARDS];
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
                    settled[tiles] = sums_of_quads(sums);
                }
            }
        }
    }

    #[inline(always)]
    fn part(&self, settled: &[Lanes<S>; N]) -> Lanes<S> {
        let (values, mut part) = (self.curve.blocks(*settled), zero(self.simd));
        for tiles in 0..N {
            part += values[tiles] * self.weights[tiles];
        }
        part
    }

    #[inline(always)]
    fn bias(&self) -> f32 {
        self.output.bias
    }

    #[inline(always)]
    fn begin(&mut self, sums: &[Tiles<S>; N], lesson: Lesson) -> [Tiles<S>; N] {
        let values = self.curve.blocks(self.settle(sums, &[], &[]));
        let mut sum = zero(self.simd);
        for tiles in 0..N {
            sum += values[tiles] * self.weights[tiles];
        }
        let step = self.output.begin(sum.sum() + self.output.bias, lesson);
        let slope = self.output.activation.slope();
        let mut errors = [[zero(self.simd); 4]; N];
        for tiles in 0..N {
            let (weights, values) = (self.weights[tiles], values[tiles]);
            let back = weights * step * ((1.0 - values * values) * slope);
            self.weights[tiles] = weights + values * step;
            for block in 0..4 {
                errors[tiles][block] = back.spread(block);
                if self.output.biased {
                    for lane in (0..LANES).step_by(4) {
                        self.biases[tiles][block][lane] += errors[tiles][block][lane];
                    }
                }
            }
        }
        errors
    }

    #[inline(always)]
    fn back(&self, errors: &[Tiles<S>; N], group: usize) -> Lanes<S> {
        let mut sums = [zero(self.simd); 4];
        let quads = &self.second.as_chunks::<4>().0[group % (QUADS / 4)];
        for index in 0..4 {
            for tiles in 0..N {
                for block in 0..4 {
                    sums[index] += quads[index][tiles][block] * errors[tiles][block];
                }
            }
        }
        sums_over_quads(&sums)
    }

    #[inline(always)]
    fn swap(&mut self, left: usize, right: usize) {
        self.second.swap(left % QUADS, right % QUADS);
    }

    #[inline(always)]
    fn learn<const V: usize>(&mut self, errors: &[Tiles<S>; N], groups: &[Group<S>]) -> [[Tiles<S>; N]; V] {
        let mut sums = [self.biases; V];
        for tiles in 0..N {
            for (group, quads) in groups.iter().zip(self.second.as_chunks_mut::<4>().0) {
                for index in 0..4 {
                    let weights = &mut quads[index][tiles];
                    let past = group.past.tiled(index);
                    for block in 0..4 {
                        weights[block] += errors[tiles][block] * past;
                    }
                    for view in 0..V {
                        let value = group.values[view].tiled(index);
                        for block in 0..4 {
                            sums[view][tiles][block] += weights[block] * value;
                        }
                    }
                }
            }
        }
        sums
    }
}
