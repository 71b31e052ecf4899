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

use super::lanes::{Lanes, Quad, apart};
use crate::board::Side;
use head::Head;
use layout::Layout;

/// Quads of the first layer, at most; a power of two. The last one always stands for none.
const QUADS: usize = 512;
/// The quad of no units: all that is known of it stays 0.
const NONE: u16 = QUADS as u16 - 1;

/// Numbers for every unit of the first layer.
type Quads = [Quad; QUADS];

#[inline(always)]
fn gather(from: &Quads, quads: [u16; 4]) -> Lanes {
    Lanes::of_quads(quads.map(|quad| &from[usize::from(quad) % QUADS]))
}

#[inline(always)]
fn scatter(to: &mut Quads, quads: [u16; 4], values: Lanes) {
    for index in 0..4 {
        to[usize::from(quads[index]) % QUADS] = values.quad(index);
    }
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
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::net) struct Group {
    quads: [u16; 4],
    /// Their values on the board that is learnt from.
    past: Lanes,
    /// Their values on the present board after the step, in each view.
    values: [Lanes; 2],
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

/// What the output unit makes of moves to these cells: four at a time, since each alone would wait for its own result.
#[inline(always)]
fn outputs<H: Head>(head: &H, settled: &[H::Settled; 64], cells: &[u8], sign: f32, out: &mut [f32; 64]) {
    for (cells, settled) in cells.chunks(4).zip(settled.as_chunks::<4>().0) {
        let mut parts = [Lanes::ZERO; 4];
        for (part, settled) in parts.iter_mut().zip(settled).take(cells.len()) {
            *part = head.part(settled);
        }
        for (cell, sum) in cells.iter().zip(Lanes::sums(&apart(&parts))) {
            out[usize::from(*cell) % 64] = sign * (sum + head.bias());
        }
    }
}
