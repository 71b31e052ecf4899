//! Weights of networks over lines, shared over the symmetries of a board: stored once, and read in every orientation.

#[allow(clippy::needless_range_loop, reason = "lanes are numbered alike in several arrays at once")]
mod head;
#[allow(clippy::needless_range_loop, reason = "blocks and rows are numbered alike in several arrays at once")]
mod lines;
mod ties;

pub(super) use head::QUADS_MAX;
pub(super) use lines::{Shared, quad_count};
pub(super) use ties::Ties;

use fearless_simd::prelude::*;

use super::lanes::{self, Across, Lanes, Quad};
use head::{Both, Head, Sums, nothing};
use ties::Turning;

/// One quad of many.
#[inline(always)]
fn quad<S: Simd>(from: &[Lanes<S>], quad: u16) -> &Quad {
    let quad = usize::from(quad);
    &from[quad / 4].as_chunks().0[quad % 4]
}

/// Four quads of many, side by side.
#[inline(always)]
fn gather<S: Simd>(simd: S, from: &[Lanes<S>], quads: [u16; 4]) -> Lanes<S> {
    let [first, second, third, fourth] = quads;
    lanes::of_quads(simd, [quad(from, first), quad(from, second), quad(from, third), quad(from, fourth)])
}

/// Writes four quads of many.
#[inline(always)]
fn scatter<S: Simd>(to: &mut [Lanes<S>], quads: [u16; 4], values: Lanes<S>) {
    let values = values.quads();
    for index in 0..4 {
        let quad = usize::from(quads[index]);
        values[index].store_slice(&mut to[quad / 4].as_chunks_mut::<4>().0[quad % 4]);
    }
}
