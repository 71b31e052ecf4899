//! What comes above the first hidden layer: the output unit alone, or a second hidden layer and the output unit.

mod deep;
mod flat;

pub(in crate::net) use deep::Deep;
pub(in crate::net) use flat::Flat;

use super::{Group, Layout, Lesson, quads, tell};
use crate::net::{
    Activation,
    lanes::{LANES, Lanes, Simd, zero},
};

/// Above the first layer. Its sums are linear in the values of the first layer's units, so they can be kept.
pub(in crate::net) trait Head<S: Simd>: Clone + 'static {
    /// Its sums, as they are kept.
    type Sums: Copy;
    /// All that is needed to read the output from them.
    type Settled: Copy;
    /// A step of learning under way.
    type Errors: Copy;

    /// From canonical weights.
    fn new(simd: S, layout: &Layout, weights: &[f32]) -> Self;

    /// Writes its weights to their canonical places.
    fn write(&self, layout: &Layout, weights: &mut [f32]);

    /// The sums of the biases alone.
    fn start(&self) -> Self::Sums;

    /// Adds what the units of these quads contribute when their values change by so much.
    fn add(&self, sums: &mut Self::Sums, quads: [u16; 4], change: Lanes<S>);

    /// To be settled.
    fn unsettled(&self) -> Self::Settled;

    /// The sums as they would be if the values of these blocks' units changed by so much.
    fn settle(&self, sums: &Self::Sums, blocks: &[[u16; 4]], changes: &[Lanes<S>]) -> Self::Settled;

    /// For each of so many boards the sums for the values of all units, of which each has so many blocks. `below` tells the
    /// weighted sums of a board's block. What is settled for boards that fill up a multiple of four is undefined.
    fn settle_all(
        &mut self,
        boards: usize,
        blocks: usize,
        below: impl Fn(usize, usize) -> Lanes<S>,
        settled: &mut [Self::Settled; 64],
    );

    /// The sums for the past values of all units.
    #[inline(always)]
    fn sums(&self, groups: &[Group<S>]) -> Self::Sums {
        let mut sums = self.start();
        for (index, group) in groups.iter().enumerate() {
            self.add(&mut sums, quads(index), group.past);
        }
        sums
    }

    /// The output unit's weighted sum, but for its bias, in sixteen parts.
    fn part(&self, settled: &Self::Settled) -> Lanes<S>;

    /// The output unit's bias.
    fn bias(&self) -> f32;

    /// Begins a step of learning: learns what is above the connections to the first layer.
    fn begin(&mut self, sums: &Self::Sums, lesson: Lesson) -> Self::Errors;

    /// Minus the rate times the error that comes back to the units of this group.
    fn back(&self, errors: &Self::Errors, group: usize) -> Lanes<S>;

    /// Two quads change places.
    fn swap(&mut self, left: usize, right: usize);

    /// Learns the connections to the first groups' units, which are all that have a value, and computes its sums anew in V
    /// views.
    fn learn<const V: usize>(&mut self, errors: &Self::Errors, groups: &[Group<S>]) -> [Self::Sums; V];
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

/// What the output unit makes of moves to these cells. All parts come before all sums: a sum over lanes is a chain of which
/// each step waits for the one before.
#[inline(always)]
pub(super) fn outputs<S: Simd, H: Head<S>>(
    simd: S,
    head: &H,
    settled: &[H::Settled; 64],
    cells: &[u8],
    sign: f32,
    out: &mut [f32; 64],
) {
    for (cells, settled) in cells.chunks(LANES).zip(settled.as_chunks::<LANES>().0) {
        let mut parts = [zero(simd); LANES];
        for (part, settled) in parts.iter_mut().zip(settled).take(cells.len()) {
            *part = head.part(settled);
        }
        tell(cells, &parts, sign, head.bias(), out);
    }
}
