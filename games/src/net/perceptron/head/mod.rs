//! The layers above the first hidden layer: either only the output unit, or a second hidden layer (connected to all of the
//! first, or structured by planes) and the output unit.

mod deep;
mod flat;
mod planes;

pub(in crate::net) use deep::Deep;
pub(in crate::net) use flat::Flat;
pub(in crate::net) use planes::Planes;

use fearless_simd::prelude::*;

use super::{Group, Layout, Update, quads, write_outputs};
use crate::net::{
    Activation,
    activation::falls,
    lanes::{CrossLane, LANES, Vector},
};

/// The layers above the first. Their sums are linear in the values of the first layer's units, so they can be cached and
/// updated.
pub(in crate::net) trait Head<S: Simd>: Clone + 'static {
    /// The head's weighted sums in the form in which they are cached: in parts.
    type Sums: Copy;
    /// The weighted sums of the layer right above the first, as far as they must be added up to compute the output.
    type Preactivations: Copy;
    /// The errors of a step of learning.
    type Errors: Copy;

    /// A head with these weights, in canonical order.
    fn new(simd: S, layout: &Layout, weights: &[f32]) -> Self;

    /// Writes the weights to their canonical positions.
    fn write(&self, layout: &Layout, weights: &mut [f32]);

    /// The sums of the biases alone.
    fn start(&self) -> Self::Sums;

    /// Updates the sums for a change of the values of these quads' units.
    fn add(&self, sums: &mut Self::Sums, quads: [u16; 4], change: Vector<S>);

    /// Called before moves from the board with these sums are valued.
    #[inline(always)]
    fn prepare(&mut self, _: &Self::Sums) {}

    /// Preactivations of 0.
    fn zero_preactivations(&self) -> Self::Preactivations;

    /// Whether the changes of all moves are computed before the preactivations of the first move. If preactivations take
    /// long, the processor does not look ahead as far as the next move.
    const CHANGES_FIRST: bool = true;

    /// The preactivations after changes of the values of these blocks' units; `change` returns the change of a block.
    fn preactivations(
        &self,
        sums: &Self::Sums,
        blocks: &[[u16; 4]],
        change: impl Fn(usize) -> Vector<S>,
    ) -> Self::Preactivations;

    /// The sums for the past values of all units.
    #[inline(always)]
    fn sums(&self, groups: &[Group<S>]) -> Self::Sums {
        let mut sums = self.start();
        for (index, group) in groups.iter().enumerate() {
            self.add(&mut sums, quads(index), group.past);
        }
        sums
    }

    /// For each of the first `count` of these: the output unit's weighted sum without its bias, in sixteen parts. The others
    /// are undefined.
    fn parts(&self, preactivations: &[Self::Preactivations; LANES], count: usize) -> [Vector<S>; LANES];

    /// The output unit's bias.
    fn bias(&self) -> f32;

    /// Begins a step of learning: updates the weights and biases above the connections to the first layer.
    fn begin(&mut self, sums: &Self::Sums, update: Update) -> Self::Errors;

    /// Minus the rate times the error that is propagated back to the units of this group.
    fn back(&self, errors: &Self::Errors, group: usize) -> Vector<S>;

    /// Exchanges two quads.
    fn swap(&mut self, left: usize, right: usize);

    /// Updates the connections to the units of these groups (all other units have value 0), and recomputes the head's sums in
    /// V views.
    fn learn<const V: usize>(&mut self, errors: &Self::Errors, groups: &[Group<S>]) -> [Self::Sums; V];
}

/// A head for a dense first layer, all of whose values change with a move.
pub(in crate::net) trait DenseHead<S: Simd>: Head<S> {
    /// Calls `take` with [`Head::back`] of each of these groups in ascending order. Updates the connections to their units,
    /// whose past values are in the groups.
    #[inline(always)]
    fn back_and_learn(&mut self, errors: &Self::Errors, groups: &[Group<S>], mut take: impl FnMut(usize, Vector<S>)) {
        for index in 0..groups.len() {
            take(index, self.back(errors, index));
        }
        self.learn::<0>(errors, groups);
    }

    /// The preactivations of several boards, computed from the values of all units. `width` is the number of groups of the
    /// first layer, and `below(board, group)` returns the weighted sums of a group. If `boards` is not a multiple of four,
    /// the results for the padding boards up to the next multiple are undefined.
    fn preactivations_all(
        &mut self,
        boards: usize,
        width: usize,
        below: impl Fn(usize, usize) -> Vector<S>,
        preactivations: &mut [Self::Preactivations; 64],
    );
}

/// Four tiles: the weights from one quad of the first layer to a group of the second, or sums or errors in the same layout. A
/// unit of the second layer has a quad of lanes, one for each unit of the quad below. Values therefore need not be broadcast
/// one by one, and the four lanes of a sum are added up only when the sum is read.
type Tiles<S> = [Vector<S>; 4];

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

    /// Updates the output weights and biases of a group of the second layer by a step of this unit. Returns minus the rate
    /// times the group's errors. A unit's bias is in the first lane of its quad.
    #[inline(always)]
    fn learn_group<S: Simd>(
        &self,
        weights: &mut Vector<S>,
        biases: &mut Tiles<S>,
        values: Vector<S>,
        step: f32,
    ) -> Tiles<S> {
        let back = *weights * step * (falls(values) * self.activation.slope());
        *weights = values.fma(step, *weights);
        let mut errors = [back; 4];
        for tile in 0..4 {
            errors[tile] = back.broadcast_in_quads(tile);
            if self.biased {
                for lane in (0..LANES).step_by(4) {
                    biases[tile][lane] += errors[tile][lane];
                }
            }
        }
        errors
    }

    /// Updates the bias. Returns minus the rate times the error of the unit's weighted sum.
    #[inline(always)]
    fn begin(&mut self, sum: f32, update: Update) -> f32 {
        let value = self.activation.apply(sum);
        let mut error = value - update.target;
        if update.derivative {
            error *= self.activation.slope() * (1.0 - value * value);
        }
        let step = -update.rate * error;
        if self.biased {
            self.bias += step;
        }
        step
    }
}

/// Computes the outputs of moves to these cells. All parts are computed first, and then the sums over lanes of sixteen moves
/// at once, because a single sum over lanes is a chain of dependent operations.
#[inline(always)]
pub(super) fn outputs<S: Simd, H: Head<S>>(
    head: &H,
    preactivations: &[H::Preactivations; 64],
    cells: &[u8],
    sign: f32,
    out: &mut [f32; 64],
) {
    for (cells, preactivations) in cells.chunks(LANES).zip(preactivations.as_chunks::<LANES>().0) {
        let parts = head.parts(preactivations, cells.len());
        write_outputs(cells, &parts, sign, head.bias(), out);
    }
}
