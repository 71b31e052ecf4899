//! A learning step of the first layer.

use fearless_simd::prelude::*;

use super::{ROWS, Shared};
use crate::net::{
    activation::falls,
    lanes::{CrossLane, Vector, sums_across_quads, zero},
};

impl<S: Simd> Shared<S> {
    /// Computes the steps of the first layer's weighted sums, for all active groups.
    #[inline(always)]
    pub(super) fn step(&mut self, view: usize, step: f32) {
        let slope = self.slope;
        let scratch = &mut self.scratch;
        if self.head.group_count() > 0 {
            for group in &self.active {
                let group = usize::from(*group);
                let (values, mirrored) =
                    (self.views[view].values[group], &mut scratch.mirrored_values[8 * group..][..8]);
                let (straight, swapped) = (values.quads(), values.swap(1).quads());
                for index in 0..4 {
                    straight[index].store_slice(&mut mirrored[2 * index]);
                    swapped[index].store_slice(&mut mirrored[2 * index + 1]);
                }
                scratch.back[group] = [zero(self.simd); 4];
            }
            self.head.back(&scratch.errors, &self.active, &mut scratch.back);
        }
        for group in &self.active {
            let group = usize::from(*group);
            let values = self.views[view].values[group];
            let back = if self.head.group_count() == 0 {
                self.flat[usize::from(self.classes[group])] * step
            } else {
                sums_across_quads(&scratch.back[group])
            };
            scratch.steps[group] = back * (falls(values) * slope);
        }
    }

    /// Updates the weights of the first layer, and output weights. The step of a weight is the sum over all lines of its
    /// orbit, and, if these lines are reversible, over the mirrored detectors.
    #[inline(always)]
    pub(super) fn descend(&mut self, view: usize, step: f32) {
        let sign = if view == 0 { 1.0 } else { -1.0 };
        let (rows, is_flat) = (self.rows, self.head.group_count() == 0);
        let scratch = &mut self.scratch;
        for (pair, sums) in self.class_starts.windows(2).zip(scratch.rows.chunks_exact_mut(rows)) {
            let groups = usize::from(pair[0].0)..usize::from(pair[1].0);
            let inputs = self.inputs[groups.start * rows..groups.end * rows].chunks_exact(rows);
            let groups = inputs.zip(&scratch.steps[groups]);
            for (four, sums) in sums.as_chunks_mut::<ROWS>().0.iter_mut().enumerate() {
                let mut accumulators = [zero(self.simd); ROWS];
                for (inputs, steps) in groups.clone() {
                    let inputs = &inputs.as_chunks::<ROWS>().0[four];
                    accumulators[0] = inputs[0].fma(*steps, accumulators[0]);
                    accumulators[1] = inputs[1].fma(*steps, accumulators[1]);
                    accumulators[2] = inputs[2].fma(*steps, accumulators[2]);
                    accumulators[3] = inputs[3].fma(*steps, accumulators[3]);
                }
                *sums = accumulators;
            }
        }
        for sums in scratch.rows.as_chunks_mut::<ROWS>().0 {
            let sums_by_row = sums_across_quads(sums) * sign;
            for row in 0..ROWS {
                sums[row] = sums_by_row.broadcast_quad(row);
            }
        }
        let classes =
            self.class_starts.iter().zip(self.first.chunks_exact_mut(rows)).zip(scratch.rows.chunks_exact(rows));
        for (((_, reversible), weights), steps) in classes {
            let steps = &steps[..self.k];
            for ((weights, step), reversed) in weights.iter_mut().zip(steps).zip(steps.iter().rev()) {
                let both = with_mirror(*step, *reversed, *reversible);
                *weights += both;
            }
        }
        if !self.biased && !is_flat {
            return;
        }
        for (class, pair) in self.class_starts.windows(2).enumerate() {
            let ((begin, reversible), (end, _)) = (pair[0], pair[1]);
            let groups = usize::from(begin)..usize::from(end);
            if self.biased {
                let mut sum = zero(self.simd);
                for group in groups.clone() {
                    sum = self.present[group].fma(self.scratch.steps[group], sum);
                }
                let steps = over_quads(sum);
                let both = with_mirror(steps, steps, reversible);
                self.biases[class] += both;
            }
            if is_flat {
                let mut values = zero(self.simd);
                for values_of in &self.views[view].values[groups] {
                    values += *values_of;
                }
                let values = over_quads(values);
                let both = with_mirror(values, values, reversible);
                self.flat[class] = both.fma(step, self.flat[class]);
            }
        }
    }
}

/// The sum of the four quads, repeated four times.
#[inline(always)]
fn over_quads<S: Simd>(vector: Vector<S>) -> Vector<S> {
    let pairs = vector + vector.swap(4);
    pairs + pairs.swap(8)
}

/// The step of a quad of weights. If lines can be reversed, the step of the mirrored detectors is added: `reversed` is the
/// step of the same detectors for the reversed line, whose neighbouring lanes are exchanged.
#[inline(always)]
fn with_mirror<S: Simd>(vector: Vector<S>, reversed: Vector<S>, reversible: bool) -> Vector<S> {
    vector + if reversible { reversed.swap(1) } else { zero(vector.simd) }
}
