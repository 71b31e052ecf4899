//! Networks over lines whose weights are shared over the symmetries of a board. Weights are stored once, and read in every
//! orientation.

#[allow(clippy::needless_range_loop, reason = "lanes index several arrays at once")]
mod head;
#[allow(clippy::needless_range_loop, reason = "groups and rows index several arrays at once")]
mod lines;
mod ties;

pub(super) use head::QUADS_MAX;
pub(super) use lines::{Shared, quad_count};
pub(super) use ties::{LineSymmetries, Ties};

use fearless_simd::prelude::*;

use super::lanes::{self, CrossLane, Quad, Vector};
use head::{Head, MirroredPairs, Sums, filled};

/// The quad with this index.
#[inline(always)]
fn quad<S: Simd>(from: &[Vector<S>], quad: u16) -> &Quad {
    let quad = usize::from(quad);
    &from[quad / 4].as_chunks().0[quad % 4]
}

/// A vector of the four quads with these indices.
#[inline(always)]
fn gather<S: Simd>(simd: S, from: &[Vector<S>], quads: [u16; 4]) -> Vector<S> {
    let [first, second, third, fourth] = quads;
    lanes::from_quads(simd, [quad(from, first), quad(from, second), quad(from, third), quad(from, fourth)])
}

/// Writes a vector to the four quads with these indices.
#[inline(always)]
fn scatter<S: Simd>(to: &mut [Vector<S>], quads: [u16; 4], values: Vector<S>) {
    let values = values.quads();
    for index in 0..4 {
        let quad = usize::from(quads[index]);
        values[index].store_slice(&mut to[quad / 4].as_chunks_mut::<4>().0[quad % 4]);
    }
}
