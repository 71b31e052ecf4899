//! A second hidden layer and the output unit.

use fearless_simd::prelude::*;

use super::{DenseHead, Head, Output, Tiles};
use crate::net::{
    First,
    activation::Curve,
    lanes::{CrossLane, LANES, Vector, broadcast_quad, sums_across_quads, sums_within_quads, zero},
    perceptron::{Group, Layout, QUADS, Update},
};

/// A second layer of up to N groups, with the output unit. The last group needs up to LAST tiles for each quad.
#[derive(Clone)]
pub(in crate::net) struct Deep<S: Simd, const N: usize, const LAST: usize> {
    simd: S,
    output: Output,
    curve: Curve,
    /// The number of tiles that the second layer needs for each quad: one for four units.
    tiles: usize,
    /// Output weights, by group of the second layer.
    weights: [Vector<S>; N],
    /// By group of the second layer. A unit's bias is in the first lane of its quad, and the other three lanes are 0.
    biases: [Tiles<S>; N],
    /// Weights of the second layer, by quad of the first and group of the second.
    second: Box<[[Tiles<S>; N]; QUADS]>,
    /// Scratch: values of a dense first layer for up to 64 boards.
    values: Box<[Vector<S>]>,
}

/// The position of a unit in a second layer with `units` units: its group (`upper`), and its tile and quad within the group.
/// The units of an incomplete group use as few tiles as possible.
fn place(unit: usize, units: usize) -> (usize, usize, usize) {
    let (upper, unit) = (unit / LANES, unit % LANES);
    let tiles = (units - upper * LANES).min(LANES).div_ceil(4);
    (upper, unit % tiles, unit / tiles)
}

impl<S: Simd, const N: usize, const LAST: usize> Deep<S, N, LAST> {
    /// The tiles of a group of the second layer that can have non-zero weights.
    #[inline(always)]
    const fn tiles(upper: usize) -> usize {
        if upper + 1 == N { LAST } else { 4 }
    }

    /// Calls `f` with each weight and its canonical index.
    fn each(&mut self, layout: &Layout, mut f: impl FnMut(&mut f32, usize)) {
        let units = layout.architecture.second;
        let second = layout.range("second.weight");
        for ((quad, lane), row) in layout.places().zip(second.step_by(units)) {
            for unit in 0..units {
                let (upper, tile, at) = place(unit, units);
                f(&mut self.second[quad][upper][tile][4 * at + lane], row + unit);
            }
        }
        for (unit, index) in layout.range("second.bias").enumerate() {
            let (upper, tile, at) = place(unit, units);
            f(&mut self.biases[upper][tile][4 * at], index);
        }
        for (unit, index) in layout.range("output.weight").enumerate() {
            let (upper, tile, at) = place(unit, units);
            f(&mut self.weights[upper][4 * at + tile], index);
        }
        layout.range("output.bias").for_each(|index| f(&mut self.output.bias, index));
    }
}

/// The number of tiles that are summed at once, for one board or for four. A loaded weight then serves several sums, and the
/// additions of several sums are interleaved to hide their latency.
const PAIR: usize = 2;
/// The number of boards whose values fit in the first-level cache together with these weights: a multiple of four.
const BOARDS: usize = 16;

impl<S: Simd, const N: usize, const LAST: usize> Deep<S, N, LAST> {
    /// The sums of T tiles of a group of the second layer, from `tile` on, for C boards, computed from the values of all
    /// units.
    #[inline(always)]
    fn sum_tiles<const C: usize, const T: usize>(
        &self,
        sums: &mut [Tiles<S>; C],
        upper: usize,
        tile: usize,
        values: [&[Vector<S>]; C],
    ) {
        let mut accumulators = [[zero(self.simd); T]; C];
        for case in 0..C {
            for at in 0..T {
                accumulators[case][at] = self.biases[upper][(tile + at) % 4];
            }
        }
        let groups = self.second.as_chunks::<4>().0;
        for (at, quads) in groups.iter().enumerate().take(values[0].len()) {
            for (index, second) in quads.iter().enumerate() {
                for case in 0..C {
                    // Values are broadcast while loading, because shuffles in registers are the bottleneck of this loop.
                    let value = broadcast_quad(self.simd, &values[case][at].as_chunks().0[index]);
                    for at in 0..T {
                        let weights = second[upper][(tile + at) % 4];
                        accumulators[case][at] = weights.fma(value, accumulators[case][at]);
                    }
                }
            }
        }
        for case in 0..C {
            for at in 0..T {
                sums[case][(tile + at) % 4] = accumulators[case][at];
            }
        }
    }

    /// The same for all boards, so that these weights stay in the cache.
    #[inline(always)]
    fn sum_boards<const T: usize>(
        &self,
        sums: &mut [Tiles<S>; BOARDS],
        upper: usize,
        tile: usize,
        (values, width, boards): (&[Vector<S>], usize, usize),
    ) {
        let (fours, rest) = if boards % 4 == 1 { (boards / 4, true) } else { (boards.div_ceil(4), false) };
        let fours_of_values = values.chunks_exact(4 * width);
        for (sums, values) in sums.as_chunks_mut().0.iter_mut().zip(fours_of_values).take(fours) {
            let (low, high) = values.split_at(2 * width);
            let ((first, second), (third, fourth)) = (low.split_at(width), high.split_at(width));
            self.sum_tiles::<4, T>(sums, upper, tile, [first, second, third, fourth]);
        }
        if rest {
            let board = (boards - 1) % BOARDS;
            let values = &values[board * width..(board + 1) * width];
            self.sum_tiles::<1, T>(std::array::from_mut(&mut sums[board]), upper, tile, [values]);
        }
    }
}

impl<S: Simd, const N: usize, const LAST: usize> Head<S> for Deep<S, N, LAST> {
    type Sums = [Tiles<S>; N];
    /// The weighted sums of the second layer's units.
    type Preactivations = [Vector<S>; N];
    /// Minus the rate times the errors of the second layer's weighted sums, each in all four lanes of its unit.
    type Errors = [Tiles<S>; N];

    fn new(simd: S, layout: &Layout, weights: &[f32]) -> Self {
        let tiles = layout.architecture.second.div_ceil(4);
        assert!(tiles <= 4 * (N - 1) + LAST, "a head for a smaller second layer");
        let zeros = [[zero(simd); 4]; N];
        let second = vec![zeros; QUADS].into_boxed_slice().try_into();
        let values = match layout.architecture.first {
            First::Dense { units } => 64 * units.div_ceil(LANES),
            First::Lines { .. } | First::Planes { .. } | First::Tuples { .. } => 0,
        };
        let mut deep = Self {
            simd,
            output: Output::new(layout, weights),
            curve: layout.architecture.activation.curve(),
            tiles,
            weights: [zero(simd); N],
            biases: zeros,
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
    fn add(&self, sums: &mut [Tiles<S>; N], quads: [u16; 4], change: Vector<S>) {
        for index in 0..4 {
            let change = change.broadcast_quad(index);
            let weights = &self.second[usize::from(quads[index]) % QUADS];
            for upper in 0..N {
                for tile in 0..Self::tiles(upper) {
                    sums[upper][tile] = weights[upper][tile].fma(change, sums[upper][tile]);
                }
            }
        }
    }

    #[inline(always)]
    fn zero_preactivations(&self) -> [Vector<S>; N] {
        [zero(self.simd); N]
    }

    #[inline(always)]
    fn preactivations(
        &self,
        sums: &[Tiles<S>; N],
        blocks: &[[u16; 4]],
        change: impl Fn(usize) -> Vector<S>,
    ) -> [Vector<S>; N] {
        let mut sums = *sums;
        for (at, quads) in blocks.iter().enumerate() {
            self.add(&mut sums, *quads, change(at));
        }
        let mut preactivations = self.zero_preactivations();
        for upper in 0..N {
            preactivations[upper] = sums_within_quads(&sums[upper]);
        }
        preactivations
    }

    #[inline(always)]
    fn parts(&self, preactivations: &[[Vector<S>; N]; LANES], count: usize) -> [Vector<S>; LANES] {
        let mut parts = [zero(self.simd); LANES];
        for (part, preactivations) in parts.iter_mut().zip(preactivations).take(count) {
            let values = self.curve.apply_vectors(*preactivations);
            for upper in 0..N {
                *part = values[upper].fma(self.weights[upper], *part);
            }
        }
        parts
    }

    #[inline(always)]
    fn bias(&self) -> f32 {
        self.output.bias
    }

    #[inline(always)]
    fn begin(&mut self, sums: &[Tiles<S>; N], update: Update) -> [Tiles<S>; N] {
        let values = self.curve.apply_vectors(self.preactivations(sums, &[], |_| zero(self.simd)));
        let mut sum = zero(self.simd);
        for upper in 0..N {
            sum = values[upper].fma(self.weights[upper], sum);
        }
        let step = self.output.begin(sum.sum() + self.output.bias, update);
        let mut errors = [[zero(self.simd); 4]; N];
        for upper in 0..N {
            let (weights, biases) = (&mut self.weights[upper], &mut self.biases[upper]);
            errors[upper] = self.output.learn_group(weights, biases, values[upper], step);
        }
        errors
    }

    #[inline(always)]
    fn back(&self, errors: &[Tiles<S>; N], group: usize) -> Vector<S> {
        let mut sums = [zero(self.simd); 4];
        let quads = &self.second.as_chunks::<4>().0[group % (QUADS / 4)];
        for index in 0..4 {
            for upper in 0..N {
                for tile in 0..Self::tiles(upper) {
                    sums[index] = quads[index][upper][tile].fma(errors[upper][tile], sums[index]);
                }
            }
        }
        sums_across_quads(&sums)
    }

    #[inline(always)]
    fn swap(&mut self, left: usize, right: usize) {
        self.second.swap(left % QUADS, right % QUADS);
    }

    #[inline(always)]
    fn learn<const V: usize>(&mut self, errors: &[Tiles<S>; N], groups: &[Group<S>]) -> [[Tiles<S>; N]; V] {
        let mut sums = [self.biases; V];
        for upper in 0..N {
            for (group, quads) in groups.iter().zip(self.second.as_chunks_mut::<4>().0) {
                for index in 0..4 {
                    let weights = &mut quads[index][upper];
                    let past = group.past.broadcast_quad(index);
                    for tile in 0..Self::tiles(upper) {
                        weights[tile] = errors[upper][tile].fma(past, weights[tile]);
                    }
                    for view in 0..V {
                        let value = group.values[view].broadcast_quad(index);
                        for tile in 0..Self::tiles(upper) {
                            let sum = &mut sums[view][upper][tile];
                            *sum = weights[tile].fma(value, *sum);
                        }
                    }
                }
            }
        }
        sums
    }
}

impl<S: Simd, const N: usize, const LAST: usize> DenseHead<S> for Deep<S, N, LAST> {
    /// Works in one pass, so each weight is read once.
    #[inline(always)]
    fn back_and_learn(&mut self, errors: &[Tiles<S>; N], groups: &[Group<S>], mut take: impl FnMut(usize, Vector<S>)) {
        for (number, (group, quads)) in groups.iter().zip(self.second.as_chunks_mut::<4>().0).enumerate() {
            let mut sums = [zero(self.simd); 4];
            for index in 0..4 {
                let past = group.past.broadcast_quad(index);
                for upper in 0..N {
                    for tile in 0..Self::tiles(upper) {
                        let (weights, error) = (&mut quads[index][upper][tile], errors[upper][tile]);
                        sums[index] = weights.fma(error, sums[index]);
                        *weights = error.fma(past, *weights);
                    }
                }
            }
            take(number, sums_across_quads(&sums));
        }
    }

    #[inline(always)]
    fn preactivations_all(
        &mut self,
        boards: usize,
        width: usize,
        below: impl Fn(usize, usize) -> Vector<S>,
        preactivations: &mut [[Vector<S>; N]; 64],
    ) {
        for (board, values) in self.values.chunks_exact_mut(width).enumerate().take(boards) {
            self.curve.apply_each(
                width,
                #[inline(always)]
                |group| below(board, group),
                #[inline(always)]
                |group, value| values[group] = value,
            );
        }
        let values = &self.values;
        let mut sums = [[zero(self.simd); 4]; BOARDS];
        for (at, values) in values[..boards.next_multiple_of(4) * width].chunks(BOARDS * width).enumerate() {
            let preactivations = &mut preactivations[at * BOARDS..];
            let boards = (boards - at * BOARDS).min(BOARDS);
            for upper in 0..N {
                let used = self.tiles.saturating_sub(4 * upper).min(4);
                for tile in (0..used - used % PAIR).step_by(PAIR) {
                    self.sum_boards::<PAIR>(&mut sums, upper, tile, (values, width, boards));
                }
                if used % PAIR == 1 {
                    self.sum_boards::<1>(&mut sums, upper, used - 1, (values, width, boards));
                }
                for (preactivations, sums) in preactivations.iter_mut().zip(&sums).take(boards) {
                    preactivations[upper] = sums_within_quads(sums);
                }
            }
        }
    }
}
