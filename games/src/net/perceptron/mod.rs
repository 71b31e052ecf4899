//! The fast path of dense networks and of networks over lines, without shared weights.
//!
//! A move changes one input, so weighted sums are cached and updated instead of being recomputed. [`lines`] and [`dense`]
//! cache those of the first layer, and the layers above it (a [`Head`]) get the changes of its values. A network without
//! biases is odd, V(-x) = -V(x), so one view, as X sees the board, serves both sides. With biases each side has its own view.
//! A step of learning first takes back the moves that were made since the board that it learns from. Then it corrects the
//! cached sums in the same pass that changes the weights. Over lines, a move is added to the cached sums when moves are
//! valued or when a step begins at it. A move that is learned from at once is never added, because the step recomputes all
//! sums.
//!
//! All work is done on four quads at a time. Padding units have weights of 0, and only products with 0 are ever added to
//! them.

mod dense;
#[allow(clippy::needless_range_loop, reason = "tiles and views index several arrays at once")]
mod head;
mod layout;
mod lines;

pub(super) use dense::Dense;
pub(super) use head::{Deep, Flat, Head, Planes};
pub(super) use lines::Lines;

use fearless_simd::prelude::*;

use super::lanes::{self, CrossLane, LANES, Quad, Vector, zero};
use crate::board::Side;
use layout::Layout;

/// The most quads of the first layer: a power of two. The last one is padding.
const QUADS: usize = 512;
/// The padding quad. It has no units, and its numbers stay 0.
const NONE: u16 = QUADS as u16 - 1;

/// One number for each unit of the first layer. Four quads in a row form a group.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(in crate::net) struct Quads([Quad; QUADS]);

impl Quads {
    fn zeros() -> Box<Self> {
        Box::new(Self([Quad::default(); QUADS]))
    }

    #[inline(always)]
    fn gather<S: Simd>(&self, simd: S, quads: [u16; 4]) -> Vector<S> {
        let [first, second, third, fourth] = quads.map(|quad| usize::from(quad) % QUADS);
        lanes::from_quads(simd, [&self.0[first], &self.0[second], &self.0[third], &self.0[fourth]])
    }

    #[inline(always)]
    fn scatter<S: Simd>(&mut self, quads: [u16; 4], values: Vector<S>) {
        let values = values.quads();
        for index in 0..4 {
            values[index].store_slice(&mut self.0[usize::from(quads[index]) % QUADS]);
        }
    }

    #[inline(always)]
    fn group<S: Simd>(&self, simd: S, group: usize) -> Vector<S> {
        Vector::simd_from(simd, self.0.as_flattened().as_chunks().0[group % (QUADS / 4)])
    }

    #[inline(always)]
    fn set_group<S: Simd>(&mut self, group: usize, values: Vector<S>) {
        values.store_slice(&mut self.0.as_flattened_mut().as_chunks_mut::<LANES>().0[group % (QUADS / 4)]);
    }
}

/// The quads of a group.
#[inline(always)]
fn quads(group: usize) -> [u16; 4] {
    std::array::from_fn(|index| (4 * group + index) as u16 % QUADS as u16)
}

/// How a side sees the board: through which view, and with which sign.
#[derive(Clone, Copy, Debug)]
pub(in crate::net) struct Perspective {
    pub(in crate::net) view: usize,
    /// The input of an own stone in that view, which is also the factor of the view's value.
    pub(in crate::net) sign: f32,
}

impl Perspective {
    /// With two views each side has its own. With one view, O's inputs and value are the negatives of X's.
    #[inline(always)]
    pub(in crate::net) fn of(side: Side, views: usize) -> Self {
        match side {
            Side::X => Self { view: 0, sign: 1.0 },
            Side::O if views == 2 => Self { view: 1, sign: 1.0 },
            Side::O => Self { view: 0, sign: -1.0 },
        }
    }

    /// The input of a stone of this side in a view.
    #[inline(always)]
    pub(in crate::net) fn stone(side: Side, view: usize) -> f32 {
        if side as usize == view { 1.0 } else { -1.0 }
    }
}

/// A group of the first layer in a step of learning.
#[derive(Clone, Copy, Debug)]
pub(in crate::net) struct Group<S: Simd> {
    /// The units' values on the board that is learned from.
    past: Vector<S>,
    /// The units' values on the current board after the step, in each view.
    values: [Vector<S>; 2],
}

impl<S: Simd> Group<S> {
    fn zero(simd: S) -> Self {
        Self { past: zero(simd), values: [zero(simd); 2] }
    }
}

/// The parameters of a step of learning.
#[derive(Clone, Copy, Debug)]
pub(in crate::net) struct Update {
    /// The target for the network's value in the view.
    target: f32,
    rate: f32,
    /// Whether the slope of the output unit's activation is a factor of the error.
    derivative: bool,
}

/// Writes the outputs of up to sixteen moves to their cells; `parts` are sixteen parts of each weighted sum.
#[inline(always)]
pub(in crate::net) fn write_outputs<S: Simd>(
    cells: &[u8],
    parts: &[Vector<S>; LANES],
    sign: f32,
    bias: f32,
    out: &mut [f32; 64],
) {
    let sums = <[f32; LANES]>::from((lanes::sums(parts) + bias) * sign);
    for (cell, sum) in cells.iter().zip(sums) {
        out[usize::from(*cell) % 64] = sum;
    }
}
