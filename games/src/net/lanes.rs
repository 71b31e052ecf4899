//! Sixteen numbers side by side: one register of AVX-512, two of AVX2, four of SSE2 or NEON.
//!
//! Arithmetic is lane by lane; what needs lanes to meet (sums over them) has one fixed order. So every instruction set gives
//! the same bits.

use fearless_simd::{f32x4, f32x16, prelude::*};

pub(crate) use fearless_simd::Simd;

/// Lanes of a block.
pub(crate) const LANES: usize = 16;

/// A block, for an instruction set.
pub(crate) type Lanes<S> = f32x16<S>;

/// A quarter of a block, at rest: four units that look at the same cells.
pub(crate) type Quad = [f32; 4];

/// Nothing in every lane.
#[inline(always)]
pub(crate) fn zero<S: Simd>(simd: S) -> Lanes<S> {
    Lanes::splat(simd, 0.0)
}

/// The same quad four times.
#[inline(always)]
pub(crate) fn tile<S: Simd>(simd: S, quad: &Quad) -> Lanes<S> {
    Lanes::block_splat(f32x4::simd_from(simd, *quad))
}

/// Four quads side by side.
#[inline(always)]
pub(crate) fn of_quads<S: Simd>(simd: S, quads: [&Quad; 4]) -> Lanes<S> {
    let low = f32x4::simd_from(simd, *quads[0]).combine(f32x4::simd_from(simd, *quads[1]));
    let high = f32x4::simd_from(simd, *quads[2]).combine(f32x4::simd_from(simd, *quads[3]));
    low.combine(high)
}

/// Half as many sums: neighbours of the left block, then of the right one.
#[inline(always)]
fn add_neighbours<S: Simd>(left: Lanes<S>, right: Lanes<S>) -> Lanes<S> {
    let (even, odd) = left.deinterleave(right);
    even + odd
}

/// Sums of neighbouring quads: the two of the left block, then the two of the right one.
#[inline(always)]
fn add_quads<S: Simd>(left: Lanes<S>, right: Lanes<S>) -> Lanes<S> {
    let (blocks, mut even, mut odd) = ([left, right].map(<[f32; LANES]>::from), [0.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        let (block, from) = (&blocks[lane / 8], lane % 8 / 4 * 8 + lane % 4);
        (even[lane], odd[lane]) = (block[from], block[from + 4]);
    }
    Lanes::simd_from(left.simd, even) + Lanes::simd_from(left.simd, odd)
}

/// For each of four blocks, one after the other, the sums of its quads' numbers (first and second, third and fourth, both).
#[inline(always)]
fn add_fours<S: Simd>([first, second, third, fourth]: &[Lanes<S>; 4]) -> Lanes<S> {
    add_neighbours(add_neighbours(*first, *second), add_neighbours(*third, *fourth))
}

/// For each quad of four blocks the sum of its numbers (first and second, third and fourth, both): those of quad q of block b
/// in lane 4 q + b.
#[inline(always)]
pub(crate) fn sums_of_quads<S: Simd>(blocks: &[Lanes<S>; 4]) -> Lanes<S> {
    add_fours(blocks).moved(
        #[inline(always)]
        |lane| lane % 4 * 4 + lane / 4,
    )
}

/// For each of four blocks the sum of its quads (first and second, third and fourth, both), side by side.
#[inline(always)]
pub(crate) fn sums_over_quads<S: Simd>([first, second, third, fourth]: &[Lanes<S>; 4]) -> Lanes<S> {
    add_quads(add_quads(*first, *second), add_quads(*third, *fourth))
}

/// The sums of all lanes of sixteen blocks, each with the bits of [`Across::sum`].
#[inline(always)]
pub(crate) fn sums<S: Simd>(blocks: &[Lanes<S>; LANES]) -> Lanes<S> {
    let [first, second, third, fourth] = blocks.as_chunks().0 else { unreachable!("sixteen are four times four") };
    add_fours(&[add_fours(first), add_fours(second), add_fours(third), add_fours(fourth)])
}

/// What lanes do with each other.
pub(crate) trait Across<S: Simd>: Copy {
    /// In each lane the number that was in the lane of this number. The compiler makes one instruction of it if the block is
    /// in a register; if it would have to be read for this alone, it reads number by number.
    fn moved(self, from: impl Fn(usize) -> usize) -> Self;

    /// Its four quads.
    fn quads(self) -> [f32x4<S>; 4];

    /// One of its four quads, four times.
    fn tiled(self, index: usize) -> Self;

    /// In each of its quads that number of the four, four times.
    #[inline(always)]
    fn spread(self, index: usize) -> Self {
        self.moved(
            #[inline(always)]
            |lane| lane / 4 * 4 + index,
        )
    }

    /// Every lane changes places with that whose number differs in this bit.
    #[inline(always)]
    fn swap(self, bit: usize) -> Self {
        self.moved(
            #[inline(always)]
            |lane| lane ^ bit,
        )
    }

    /// The sum of all lanes: neighbours, then pairs of neighbours, and so on.
    fn sum(self) -> f32;
}

impl<S: Simd> Across<S> for Lanes<S> {
    #[inline(always)]
    fn moved(self, from: impl Fn(usize) -> usize) -> Self {
        let (before, mut after) = (<[f32; LANES]>::from(self), [0.0; LANES]);
        for lane in 0..LANES {
            after[lane] = before[from(lane)];
        }
        Self::simd_from(self.simd, after)
    }

    #[inline(always)]
    fn quads(self) -> [f32x4<S>; 4] {
        let (low, high) = self.split();
        let ((first, second), (third, fourth)) = (low.split(), high.split());
        [first, second, third, fourth]
    }

    #[inline(always)]
    fn tiled(self, index: usize) -> Self {
        Self::block_splat(self.quads()[index])
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        let pairs = self + self.swap(1);
        let quads = pairs + pairs.swap(2);
        let halves = quads + quads.swap(4);
        (halves + halves.swap(8))[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::simd;

    #[inline(always)]
    fn check<S: Simd>(simd: S) {
        let block = |block: usize| {
            let lanes: [f32; LANES] = std::array::from_fn(|lane| (1 << block << (lane % 5)) as f32 + lane as f32);
            Lanes::simd_from(simd, lanes)
        };
        let blocks: [Lanes<S>; 4] = std::array::from_fn(block);
        let (of, over) = (sums_of_quads(&blocks), sums_over_quads(&blocks));
        for lane in 0..LANES {
            let block = <[f32; LANES]>::from(blocks[lane % 4]);
            assert_eq!(of[lane], block[lane / 4 * 4..][..4].iter().sum::<f32>());
            let block = blocks[lane / 4];
            assert_eq!(over[lane], (0..4).map(|quad| block[4 * quad + lane % 4]).sum::<f32>());
        }
        assert_eq!(blocks.map(Across::sum), blocks.map(|block| <[f32; LANES]>::from(block).iter().sum::<f32>()));
        let many = std::array::from_fn(|index| (blocks[index % 4] + index as f32) * 0.1);
        assert_eq!(<[f32; LANES]>::from(sums(&many)).map(f32::to_bits), many.map(|block| block.sum().to_bits()));
        assert_eq!(blocks[2].tiled(1)[10], blocks[2][6]);
        assert_eq!(blocks[2].spread(1)[10], blocks[2][9]);
        assert_eq!(blocks[2].swap(4)[10], blocks[2][14]);
        let quads: [Quad; 4] = std::array::from_fn(|quad| [quad as f32; 4]);
        assert_eq!(of_quads(simd, quads.each_ref())[9], 2.0);
        assert_eq!(tile(simd, &[0.0, 1.0, 2.0, 3.0])[6], 2.0);
    }

    #[test]
    fn sums_are_of_the_right_lanes() {
        simd::at_each_level(|_| crate::net::dispatch::dispatch!(simd => check(simd)));
    }
}
