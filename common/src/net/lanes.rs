//! Sixteen numbers side by side: what fills a register of AVX-512, two of AVX2, four of SSE2.
//!
//! Everything is written lane by lane over arrays of fixed size, which the compiler turns into whole registers; what needs
//! lanes to meet (sums over them) has one fixed order. So every instruction set gives the same bits.

use std::hint::black_box;

/// Lanes of a block.
pub(crate) const LANES: usize = 16;

/// A block.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(64))]
pub(crate) struct Lanes(pub [f32; LANES]);

/// A quarter of a block: four units that look at the same cells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(16))]
pub(crate) struct Quad(pub [f32; 4]);

/// The value, by way of memory. Between a loop that works lane by lane and one that moves lanes about: there the compiler,
/// which sees single numbers only, may look for an order that suits both, and find one that suits neither. A copy goes there,
/// so that what it is a copy of can stay in registers.
#[inline(always)]
pub(crate) fn apart<T: Copy>(value: &T) -> T {
    black_box(*value)
}

impl Quad {
    /// The same quad four times.
    #[inline(always)]
    pub(crate) fn tiled(self) -> Lanes {
        let mut out = Lanes::ZERO;
        for lane in 0..LANES {
            out.0[lane] = self.0[lane % 4];
        }
        out
    }
}

impl Lanes {
    pub(crate) const ZERO: Self = Self([0.0; LANES]);

    #[inline(always)]
    pub(crate) fn splat(value: f32) -> Self {
        Self([value; LANES])
    }

    #[inline(always)]
    pub(crate) fn map(self, f: impl Fn(f32) -> f32) -> Self {
        let mut out = Self::ZERO;
        for lane in 0..LANES {
            out.0[lane] = f(self.0[lane]);
        }
        out
    }

    #[inline(always)]
    pub(crate) fn zip(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        let mut out = Self::ZERO;
        for lane in 0..LANES {
            out.0[lane] = f(self.0[lane], other.0[lane]);
        }
        out
    }

    /// This plus `left` times `right`, each rounded.
    #[inline(always)]
    pub(crate) fn plus(self, left: Self, right: Self) -> Self {
        let mut out = Self::ZERO;
        for lane in 0..LANES {
            out.0[lane] = self.0[lane] + left.0[lane] * right.0[lane];
        }
        out
    }

    /// Every lane changes places with that whose number differs in this bit.
    #[inline(always)]
    pub(crate) fn swap(self, bit: usize) -> Self {
        let mut out = Self::ZERO;
        for lane in 0..LANES {
            out.0[lane] = self.0[lane ^ bit];
        }
        out
    }

    /// Sums of neighbours: in each quad the two of `self`, then the two of `other`.
    #[inline(always)]
    fn add_neighbours(self, other: Self) -> Self {
        let (mut even, mut odd) = (Self::ZERO, Self::ZERO);
        for quad in 0..4 {
            for pair in 0..2 {
                even.0[4 * quad + pair] = self.0[4 * quad + 2 * pair];
                even.0[4 * quad + 2 + pair] = other.0[4 * quad + 2 * pair];
                odd.0[4 * quad + pair] = self.0[4 * quad + 2 * pair + 1];
                odd.0[4 * quad + 2 + pair] = other.0[4 * quad + 2 * pair + 1];
            }
        }
        even.zip(odd, |left, right| left + right)
    }

    /// Sums of neighbouring quads: the two of `self`, then the two of `other`.
    #[inline(always)]
    fn add_quads(self, other: Self) -> Self {
        let (mut even, mut odd) = (Self::ZERO, Self::ZERO);
        for lane in 0..4 {
            for pair in 0..2 {
                even.0[4 * pair + lane] = self.0[8 * pair + lane];
                even.0[8 + 4 * pair + lane] = other.0[8 * pair + lane];
                odd.0[4 * pair + lane] = self.0[8 * pair + 4 + lane];
                odd.0[8 + 4 * pair + lane] = other.0[8 * pair + 4 + lane];
            }
        }
        even.zip(odd, |left, right| left + right)
    }

    /// The sum of all lanes: neighbours, then pairs of neighbours, and so on.
    #[inline(always)]
    pub(crate) fn sum(self) -> f32 {
        let quads = apart(&self.add_neighbours(self)).0;
        let sums: [f32; 4] = std::array::from_fn(|quad| quads[4 * quad] + quads[4 * quad + 1]);
        (sums[0] + sums[1]) + (sums[2] + sums[3])
    }

    /// The sums of all lanes of sixteen blocks, each with the bits of [`Lanes::sum`].
    #[inline(always)]
    pub(crate) fn sums(blocks: &[Self; LANES]) -> Self {
        let mut fours = [Self::ZERO; 4];
        for (four, blocks) in fours.iter_mut().zip(blocks.as_chunks().0) {
            *black_box(four) = Self::sums_of_quads(blocks);
        }
        Self::sums_over_quads(&fours)
    }

    /// Four quads side by side.
    #[inline(always)]
    pub(crate) fn of_quads(quads: [&Quad; 4]) -> Self {
        let mut out = Self::ZERO;
        for (index, quad) in quads.into_iter().enumerate() {
            for lane in 0..4 {
                out.0[4 * index + lane] = quad.0[lane];
            }
        }
        out
    }

    /// One of its four quads.
    #[inline(always)]
    pub(crate) fn quad(&self, index: usize) -> Quad {
        Quad(std::array::from_fn(|lane| self.0[4 * index + lane]))
    }

    /// One of its four quads, four times.
    #[inline(always)]
    pub(crate) fn tiled(&self, index: usize) -> Self {
        let mut out = Self::ZERO;
        for lane in 0..LANES {
            out.0[lane] = self.0[4 * index + lane % 4];
        }
        out
    }

    /// In each of its quads that number of the four, four times.
    #[inline(always)]
    pub(crate) fn spread(&self, index: usize) -> Self {
        let mut out = Self::ZERO;
        for lane in 0..LANES {
            out.0[lane] = self.0[lane / 4 * 4 + index];
        }
        out
    }

    /// For each quad of four blocks the sum of its numbers (first and second, third and fourth, both): those of quad q of
    /// block b in lane 4 q + b.
    #[inline(always)]
    pub(crate) fn sums_of_quads(blocks: &[Self; 4]) -> Self {
        blocks[0].add_neighbours(blocks[1]).add_neighbours(blocks[2].add_neighbours(blocks[3]))
    }

    /// For each of four blocks the sum of its quads (first and second, third and fourth, both), side by side.
    #[inline(always)]
    pub(crate) fn sums_over_quads(blocks: &[Self; 4]) -> Self {
        blocks[0].add_quads(blocks[1]).add_quads(blocks[2].add_quads(blocks[3]))
    }
}

/// For each quad of each block the sum of its numbers, as [`Lanes::sums_of_quads`] orders them.
impl From<[Self; 4]> for Lanes {
    #[inline(always)]
    fn from(blocks: [Self; 4]) -> Self {
        Self::sums_of_quads(&blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_of_the_right_lanes() {
        let blocks: [Lanes; 4] = std::array::from_fn(|block| {
            Lanes(std::array::from_fn(|lane| (1 << block << (lane % 5)) as f32 + lane as f32))
        });
        let of = Lanes::sums_of_quads(&blocks);
        let over = Lanes::sums_over_quads(&blocks);
        for lane in 0..LANES {
            let block = &blocks[lane % 4].0;
            assert_eq!(of.0[lane], block[lane / 4 * 4..][..4].iter().sum::<f32>());
            let block = &blocks[lane / 4].0;
            assert_eq!(over.0[lane], (0..4).map(|quad| block[4 * quad + lane % 4]).sum::<f32>());
        }
        assert_eq!(blocks.map(Lanes::sum), blocks.map(|block| block.0.iter().sum::<f32>()));
        let blocks = std::array::from_fn(|index| blocks[index % 4].map(|number| number + index as f32));
        assert_eq!(Lanes::sums(&blocks).0, blocks.map(Lanes::sum));
        assert_eq!(blocks[2].tiled(1).0[10], blocks[2].0[6]);
        assert_eq!(blocks[2].spread(1).0[10], blocks[2].0[9]);
    }
}
