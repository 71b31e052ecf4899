//! Steps of learning that have not been added to the weights of the first layer yet.
//!
//! A step changes the weights of all stones of its board. These weights are not read until the game ends or an earlier board
//! learns, because moves are valued with the weights of free cells. The steps are therefore kept, and each weight is loaded
//! and stored once for many of them. They are added one by one in their order, which gives the same bits as adding each step
//! at once.

use fearless_simd::prelude::*;

use crate::net::{
    lanes::{self, CrossLane, Vector, zero},
    perceptron::lines::Played,
};

/// The number of steps that are kept: more than most games have.
const STEPS: usize = 64;

/// The steps of the first layer's weighted sums, for the weights of the stones on the board.
#[derive(Clone)]
pub(super) struct Log<S: Simd> {
    /// By step, then by group, in the form of the first view.
    steps: Box<[Vector<S>]>,
    /// The number of groups in a row. The last quad is padding. The number is odd: with a power of two, the same quad of all
    /// steps would compete for the same few places of the cache.
    width: usize,
    /// The number of steps.
    count: usize,
    /// For each block of [`Played`]: the first step that counts for it.
    first: Box<[u16]>,
    /// The number of blocks of the board that learned last. The steps count for no other blocks.
    blocks: usize,
}

impl<S: Simd> Log<S> {
    /// An empty log for a network with this many quads and blocks.
    pub(super) fn new(simd: S, quads: usize, blocks: usize) -> Self {
        let width = (quads / 4 + 1) | 1;
        let (steps, first) = (vec![zero(simd); STEPS * width], vec![0; blocks]);
        Self { steps: steps.into_boxed_slice(), width, count: 0, first: first.into_boxed_slice(), blocks: 0 }
    }

    /// Whether the steps must be added to the weights before a board with this many blocks learns. If it is an earlier board,
    /// the weights of later stones are read.
    #[inline(always)]
    pub(super) fn must_end(&self, blocks: usize) -> bool {
        self.count == STEPS || blocks < self.blocks
    }

    /// Begins a step of a board with this many blocks. Returns the place where the step is to be written.
    #[inline(always)]
    pub(super) fn begin(&mut self, blocks: usize) -> &mut [Vector<S>] {
        self.first[self.blocks..blocks].fill(self.count as u16);
        self.blocks = blocks;
        self.count += 1;
        let end = self.count * self.width;
        &mut self.steps[end - self.width..end]
    }

    /// Adds the steps to the weights of these blocks, and then forgets the steps.
    #[inline(always)]
    pub(super) fn end(&mut self, simd: S, played: &[Played], quads: &[[u16; 4]], weights: &mut [Vector<S>]) {
        let steps = &self.steps[..self.count * self.width];
        for ((block, stone), first) in played[..self.blocks].iter().zip(&self.first) {
            let block = usize::from(*block);
            let places = quads[block].map(|place| usize::from(place).min(4 * self.width - 1));
            let mut sum = weights[block];
            for row in steps[usize::from(*first) * self.width..].chunks_exact(self.width) {
                let quads = places.map(
                    #[inline(always)]
                    |place| &row[place / 4].as_chunks().0[place % 4],
                );
                sum = lanes::from_quads(simd, quads).fma(*stone, sum);
            }
            weights[block] = sum;
        }
        (self.count, self.blocks) = (0, 0);
    }
}
