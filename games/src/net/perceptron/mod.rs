//! The fast path of dense networks and of networks over lines, without shared weights.
//!
//! A move changes one input, so sums are kept and moved along instead of being computed anew: [`lines`] and [`dense`] keep
//! the first layer's, and what comes above it (a [`Head`]) is told what changed. Without biases a network is odd, V(-x) =
//! -V(x), and one set of sums, as X sees the board, serves both sides; with biases each side has its own. A step of learning
//! first takes back the moves since the board it is about, then corrects the kept sums in the same pass that changes the
//! weights.
//!
//! Units stand in quads of four, and everything works on four quads at a time. Units that fill up a quad or a block have
//! weights of 0 everywhere; all that is ever added to those is a product with 0.

mod dense;
#[allow(clippy::needless_range_loop, reason = "tiles and views are numbered alike in several arrays at once")]
mod head;
mod layout;
mod lines;

pub(super) use dense::Dense;
pub(super) use head::{Deep, Flat};
pub(super) use lines::Lines;

use fearless_simd::prelude::*;

use super::lanes::{self, Across, LANES, Lanes, Quad, zero};
use crate::board::Side;
use layout::Layout;

/// Quads of the first layer, at most; a power of two. The last one always stands for none.
const QUADS: usize = 512;
/// The quad of no units: all that is known of it stays 0.
const NONE: u16 = QUADS as u16 - 1;

/// Numbers for every unit of the first layer. Four quads in a row are a group.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(in crate::net) struct Quads([Quad; QUADS]);

impl Quads {
    fn zeros() -> Box<Self> {
        Box::new(Self([Quad::default(); QUADS]))
    }

    #[inline(always)]
    fn gather<S: Simd>(&self, simd: S, quads: [u16; 4]) -> Lanes<S> {
        let [first, second, third, fourth] = quads.map(|quad| usize::from(quad) % QUADS);
        lanes::of_quads(simd, [&self.0[first], &self.0[second], &self.0[third], &self.0[fourth]])
    }

    #[inline(always)]
    fn scatter<S: Simd>(&mut self, quads: [u16; 4], values: Lanes<S>) {
        let values = values.quads();
        for index in 0..4 {
            values[index].store_slice(&mut self.0[usize::from(quads[index]) % QUADS]);
        }
    }

    #[inline(always)]
    fn group<S: Simd>(&self, simd: S, group: usize) -> Lanes<S> {
        Lanes::simd_from(simd, self.0.as_flattened().as_chunks().0[group % (QUADS / 4)])
    }

    #[inline(always)]
    fn set_group<S: Simd>(&mut self, group: usize, values: Lanes<S>) {
        values.store_slice(&mut self.0.as_flattened_mut().as_chunks_mut::<LANES>().0[group % (QUADS / 4)]);
    }
}

/// The quads of a group.
#[inline(always)]
fn quads(group: usize) -> [u16; 4] {
    std::array::from_fn(|index| (4 * group + index) as u16 % QUADS as u16)
}

/// How a side sees the board: in which of the kept sets of sums, and with which sign.
#[derive(Clone, Copy, Debug)]
pub(in crate::net) struct Seat {
    pub(in crate::net) view: usize,
    /// What an own stone counts in that view, and what the view's value is to be multiplied with.
    pub(in crate::net) sign: f32,
}

impl Seat {
    /// With two views each side has its own; with one, O sees the negative of what X sees.
    #[inline(always)]
    pub(in crate::net) fn of(side: Side, views: usize) -> Self {
        match side {
            Side::X => Self { view: 0, sign: 1.0 },
            Side::O if views == 2 => Self { view: 1, sign: 1.0 },
            Side::O => Self { view: 0, sign: -1.0 },
        }
    }

    /// What a stone of this side counts in a view.
    #[inline(always)]
    pub(in crate::net) fn stone(side: Side, view: usize) -> f32 {
        if side as usize == view { 1.0 } else { -1.0 }
    }
}

/// Sixteen units of the first layer in a step of learning.
#[derive(Clone, Copy, Debug)]
pub(in crate::net) struct Group<S: Simd> {
    /// Their values on the board that is learnt from.
    past: Lanes<S>,
    /// Their values on the present board after the step, in each view.
    values: [Lanes<S>; 2],
}

impl<S: Simd> Group<S> {
    fn zero(simd: S) -> Self {
        Self { past: zero(simd), values: [zero(simd); 2] }
    }
}

/// A step of learning, as the output unit begins it.
#[derive(Clone, Copy, Debug)]
pub(in crate::net) struct Lesson {
    /// What the network should say, in the view.
    target: f32,
    rate: f32,
    /// Whether the slope of the output unit's activation is a factor of the error.
    derivative: bool,
}

/// Writes the outputs of up to sixteen moves to their places, from the parts of their weighted sums.
#[inline(always)]
pub(in crate::net) fn tell<S: Simd>(
    cells: &[u8],
    parts: &[Lanes<S>; LANES],
    sign: f32,
    bias: f32,
    out: &mut [f32; 64],
) {
    let sums = <[f32; LANES]>::from((lanes::sums(parts) + bias) * sign);
    for (cell, sum) in cells.iter().zip(sums) {
        out[usize::from(*cell) % 64] = sum;
    }
}
