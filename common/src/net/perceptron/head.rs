//! What comes above the first hidden layer: the output unit alone, or a second hidden layer and the output unit.

use super::{Group, Layout, Lesson, QUADS, Quads, gather, scatter};
use crate::net::{
    Activation,
    activation::Curve,
    lanes::{LANES, Lanes, Quad, apart},
};

/// Above the first layer. Its sums are linear in the values of the first layer's units, so they can be kept.
pub(in crate::net) trait Head: Clone {
    /// Its sums, as they are kept.
    type Sums: Copy + std::fmt::Debug;
    /// All that is needed to read the output from them.
    type Settled: Copy + Default + std::fmt::Debug;
    /// A step of learning under way.
    type Errors: Copy;

    /// From canonical weights.
    fn new(layout: &Layout, weights: &[f32]) -> Self;

    /// Writes its weights to their canonical places.
    fn write(&self, layout: &Layout, weights: &mut [f32]);

    /// The sums of the biases alone.
    fn start(&self) -> Self::Sums;

    /// Adds what the units of these quads contribute when their values change by so much.
    fn add(&self, sums: &mut Self::Sums, quads: [u16; 4], change: &Lanes);

    /// The sums as they would be if the values of these blocks' units changed by so much.
    fn settle(&self, sums: &Self::Sums, blocks: &[[u16; 4]], changes: &[Lanes]) -> Self::Settled;

    /// For each of several boards the sums for the values of all units, of which each has so many blocks. What is left to be
    /// filled up to a multiple of four boards must have values, and its sums are left undefined.
    fn settle_all(&self, values: &[Lanes], blocks: usize, boards: usize, settled: &mut [Self::Settled; 64]);

    /// The sums for the past values of all units.
    #[inline(always)]
    fn sums(&self, groups: &[Group]) -> Self::Sums {
        let mut sums = self.start();
        for group in groups {
            self.add(&mut sums, group.quads, &group.past);
        }
        sums
    }

    /// The output unit's weighted sum, but for its bias, in sixteen parts.
    fn part(&self, settled: &Self::Settled) -> Lanes;

    /// The output unit's bias.
    fn bias(&self) -> f32;

    /// Begins a step of learning: learns what is above the connections to the first layer.
    fn begin(&mut self, sums: &Self::Sums, lesson: Lesson) -> Self::Errors;

    /// Minus the rate times the error that comes back to the units of these quads.
    fn back(&self, errors: &Self::Errors, quads: [u16; 4]) -> Lanes;

    /// Learns the connections to these groups' units, which are all that have a value, and computes its sums anew in V
    /// views.
    fn learn<const V: usize>(&mut self, errors: &Self::Errors, groups: &[Group]) -> [Self::Sums; V];
}

/// The output unit, and how it learns.
#[derive(Clone, Copy, Debug)]
struct Output {
    activation: Activation,
    biased: bool,
    bias: f32,
}

impl Output {
    fn new(layout: &Layout, weights: &[f32]) -> Self {
        let bias = &weights[layout.range("output.bias")];
        Self {
            activation: layout.architecture.activation,
            biased: layout.architecture.biases,
            bias: bias.first().copied().unwrap_or(0.0),
        }
    }

    /// Minus the rate times the error of the unit's weighted sum; learns the bias.
    #[inline(always)]
    fn begin(&mut self, sum: f32, lesson: Lesson) -> f32 {
        let value = self.activation.apply(sum);
        let mut error = value - lesson.target;
        if lesson.derivative {
            error *= self.activation.slope() * (1.0 - value * value);
        }
        let step = -lesson.rate * error;
        if self.biased {
            self.bias += step;
        }
        step
    }
}

/// The first layer joined to the output unit.
#[derive(Clone, Debug)]
pub(in crate::net) struct Flat {
    output: Output,
    weights: Box<Quads>,
}

impl Head for Flat {
    /// Sixteen parts of the output unit's weighted sum.
    type Sums = Lanes;
    type Settled = Lanes;
    type Errors = f32;

    fn new(layout: &Layout, weights: &[f32]) -> Self {
        let mut quads = Box::new([Quad::default(); QUADS]);
        for ((quad, lane), weight) in layout.places().zip(&weights[layout.range("output.weight")]) {
            quads[quad].0[lane] = *weight;
        }
        Self { output: Output::new(layout, weights), weights: quads }
    }

    fn write(&self, layout: &Layout, weights: &mut [f32]) {
        for ((quad, lane), weight) in layout.places().zip(&mut weights[layout.range("output.weight")]) {
            *weight = self.weights[quad].0[lane];
        }
        weights[layout.range("output.bias")].fill(self.output.bias);
    }

    #[inline(always)]
    fn start(&self) -> Lanes {
        Lanes::ZERO
    }

    #[inline(always)]
    fn add(&self, sums: &mut Lanes, quads: [u16; 4], change: &Lanes) {
        *sums = sums.plus(gather(&self.weights, quads), *change);
    }

    #[inline(always)]
    fn settle(&self, sums: &Lanes, blocks: &[[u16; 4]], changes: &[Lanes]) -> Lanes {
        let mut settled = *sums;
        for (quads, change) in blocks.iter().zip(changes) {
            self.add(&mut settled, *quads, change);
        }
        settled
    }

    #[inline(always)]
    fn settle_all(&self, values: &[Lanes], blocks: usize, boards: usize, settled: &mut [Lanes; 64]) {
        for (settled, values) in settled.iter_mut().zip(values.chunks_exact(blocks)).take(boards) {
            let mut sum = Lanes::ZERO;
            for (value, quads) in values.iter().zip(self.weights.as_chunks::<4>().0) {
                sum = sum.plus(Lanes::of_quads(quads.each_ref()), *value);
            }
            *settled = sum;
        }
    }

    #[inline(always)]
    fn part(&self, settled: &Lanes) -> Lanes {
        *settled
    }

    #[inline(always)]
    fn bias(&self) -> f32 {
        self.output.bias
    }

    #[inline(always)]
    fn begin(&mut self, sums: &Lanes, lesson: Lesson) -> f32 {
        self.output.begin(sums.sum() + self.output.bias, lesson)
    }

    #[inline(always)]
    fn back(&self, step: &f32, quads: [u16; 4]) -> Lanes {
        gather(&self.weights, quads).map(|weight| weight * step)
    }

    #[inline(always)]
    fn learn<const V: usize>(&mut self, step: &f32, groups: &[Group]) -> [Lanes; V] {
        let mut sums = [Lanes::ZERO; V];
        for group in groups {
            let learnt = gather(&self.weights, group.quads).plus(group.past, Lanes::splat(*step));
            scatter(&mut self.weights, group.quads, learnt);
            for view in 0..V {
                sums[view] = sums[view].plus(learnt, group.values[view]);
            }
        }
        sums
    }
}

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

impl<const N: usize> Deep<N> {
    #[inline(always)]
    fn add_tiles(&self, sum: &mut Tiles, tiles: usize, quads: [u16; 4], change: &Lanes) {
        for (index, quad) in quads.into_iter().enumerate() {
            let change = change.tiled(index);
            let weights = &self.second[usize::from(quad) % QUADS][tiles];
            sum[0] = sum[0].plus(weights[0], change);
            sum[1] = sum[1].plus(weights[1], change);
            sum[2] = sum[2].plus(weights[2], change);
            sum[3] = sum[3].plus(weights[3], change);
        }
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
        for tiles in 0..N {
            self.add_tiles(&mut sums[tiles], tiles, quads, change);
        }
    }

    #[inline(always)]
    fn settle(&self, sums: &[Tiles; N], blocks: &[[u16; 4]], changes: &[Lanes]) -> Settled<N> {
        let mut settled = Settled::default();
        for tiles in 0..N {
            let mut sum = sums[tiles];
            for (quads, change) in blocks.iter().zip(changes) {
                self.add_tiles(&mut sum, tiles, *quads, change);
            }
            settled.0[tiles] = Lanes::sums_of_quads(&apart(&sum));
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
                    settled.0[tiles] = Lanes::sums_of_quads(&apart(sums));
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
    fn back(&self, errors: &[Tiles; N], quads: [u16; 4]) -> Lanes {
        let mut sums = [Lanes::ZERO; 4];
        for index in 0..4 {
            let second = &self.second[usize::from(quads[index]) % QUADS];
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
        Lanes::sums_over_quads(&apart(&sums))
    }

    #[inline(always)]
    fn learn<const V: usize>(&mut self, errors: &[Tiles; N], groups: &[Group]) -> [[Tiles; N]; V] {
        let (errors, mut sums) = (apart(errors), [apart(&self.biases); V]);
        for tiles in 0..N {
            let (errors, mut sum) = (errors[tiles], sums.map(|sums| sums[tiles]));
            for group in groups {
                for index in 0..4 {
                    let weights = &mut self.second[usize::from(group.quads[index]) % QUADS][tiles];
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
