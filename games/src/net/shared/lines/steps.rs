//! A step of learning of the first layer.

use fearless_simd::prelude::*;

use super::{ROWS, Shared};
use crate::net::lanes::{Across, Lanes, sums_over_quads, zero};

impl<S: Simd> Shared<S> {
    /// Over all units that can have a value: the steps of the first layer's sums.
    #[inline(always)]
    pub(super) fn step(&mut self, view: usize, step: f32) {
        let slope = self.slope;
        let scratch = &mut self.scratch;
        if self.head.chunks() > 0 {
            for block in &self.awake {
                let block = usize::from(*block);
                let (values, both) = (self.views[view].values[block], &mut scratch.both[8 * block..][..8]);
                let (straight, swapped) = (values.quads(), values.swap(1).quads());
                for index in 0..4 {
                    straight[index].store_slice(&mut both[2 * index]);
                    swapped[index].store_slice(&mut both[2 * index + 1]);
                }
                scratch.back[block] = [zero(self.simd); 4];
            }
            self.head.back(&scratch.errors, &self.awake, &mut scratch.back);
        }
        for block in &self.awake {
            let block = usize::from(*block);
            let values = self.views[view].values[block];
            let back = if self.head.chunks() == 0 {
                self.flat[usize::from(self.owners[block])] * step
            } else {
                sums_over_quads(&scratch.back[block])
            };
            scratch.steps[block] = back * ((1.0 - values * values) * slope);
        }
    }

    /// Learns the weights of the first layer, and output weights: a step of each is that of all lines of its orbit, and if
    /// they are reversible of the mirrored detector too.
    #[inline(always)]
    pub(super) fn descend(&mut self, view: usize, step: f32) {
        let sign = if view == 0 { 1.0 } else { -1.0 };
        let (rows, is_flat) = (self.rows, self.head.chunks() == 0);
        let scratch = &mut self.scratch;
        for (pair, sums) in self.owned.windows(2).zip(scratch.rows.chunks_exact_mut(rows)) {
            let blocks = usize::from(pair[0].0)..usize::from(pair[1].0);
            let inputs = self.inputs[blocks.start * rows..blocks.end * rows].chunks_exact(rows);
            let blocks = inputs.zip(&scratch.steps[blocks]);
            for (four, sums) in sums.as_chunks_mut::<ROWS>().0.iter_mut().enumerate() {
                let mut kept = [zero(self.simd); ROWS];
                for (inputs, steps) in blocks.clone() {
                    let inputs = &inputs.as_chunks::<ROWS>().0[four];
                    kept[0] += inputs[0] * *steps;
                    kept[1] += inputs[1] * *steps;
                    kept[2] += inputs[2] * *steps;
                    kept[3] += inputs[3] * *steps;
                }
                *sums = kept;
            }
        }
        for sums in scratch.rows.as_chunks_mut::<ROWS>().0 {
            let over = sums_over_quads(sums) * sign;
            for row in 0..ROWS {
                sums[row] = over.tiled(row);
            }
        }
        let owners = self.owned.iter().zip(self.first.chunks_exact_mut(rows)).zip(scratch.rows.chunks_exact(rows));
        for (((_, reversible), weights), steps) in owners {
            let steps = &steps[..self.k];
            for ((weights, step), twin) in weights.iter_mut().zip(steps).zip(steps.iter().rev()) {
                let both = with_mirror(*step, *twin, *reversible);
                *weights += both;
            }
        }
        if !self.biased && !is_flat {
            return;
        }
        for (owner, pair) in self.owned.windows(2).enumerate() {
            let ((begin, reversible), (end, _)) = (pair[0], pair[1]);
            let blocks = usize::from(begin)..usize::from(end);
            if self.biased {
                let mut sum = zero(self.simd);
                for block in blocks.clone() {
                    sum += self.present[block] * self.scratch.steps[block];
                }
                let steps = over_quads(sum);
                let both = with_mirror(steps, steps, reversible);
                self.biases[owner] += both;
            }
            if is_flat {
                let mut values = zero(self.simd);
                for values_of in &self.views[view].values[blocks] {
                    values += *values_of;
                }
                let values = over_quads(values);
                let both = with_mirror(values, values, reversible);
                self.flat[owner] += both * step;
            }
        }
    }
}

/// The sum of the quads, four times.
#[inline(always)]
fn over_quads<S: Simd>(lanes: Lanes<S>) -> Lanes<S> {
    let pairs = lanes + lanes.swap(4);
    pairs + pairs.swap(8)
}

/// What goes to weights that are shared by mirrored detectors too if lines can be reversed: the twin's have changed places.
#[inline(always)]
fn with_mirror<S: Simd>(lanes: Lanes<S>, twin: Lanes<S>, reversible: bool) -> Lanes<S> {
    lanes + if reversible { twin.swap(1) } else { zero(lanes.simd) }
}
