//! Weights of networks over lines, shared over the symmetries of a board: stored once, and read in every orientation.

#[allow(clippy::needless_range_loop, reason = "lanes are numbered alike in several arrays at once")]
mod head;
#[allow(clippy::needless_range_loop, reason = "blocks and rows are numbered alike in several arrays at once")]
mod lines;
mod ties;

pub(super) use head::QUADS_MAX;
pub(super) use lines::{Shared, quad_count};
pub(super) use ties::Ties;

use super::lanes::Lanes;
use head::{Both, Head, Sums, nothing};
use ties::Turning;

/// Four quads of many, side by side.
#[inline(always)]
fn gather(from: &[Lanes], quads: [u16; 4]) -> Lanes {
    let mut out = Lanes::ZERO;
    for (quad, out) in quads.into_iter().zip(out.0.as_chunks_mut::<4>().0) {
        let quad = usize::from(quad);
        *out = from[quad / 4].0.as_chunks::<4>().0[quad % 4];
    }
    out
}

/// Writes four quads of many.
#[inline(always)]
fn scatter(to: &mut [Lanes], quads: [u16; 4], values: Lanes) {
    for (index, quad) in quads.into_iter().enumerate() {
        let quad = usize::from(quad);
        to[quad / 4].0.as_chunks_mut::<4>().0[quad % 4] = values.quad(index).0;
    }
}
