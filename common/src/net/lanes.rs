//! Sixteen numbers side by side: what fills a register of AVX-512, two of AVX2, four of SSE2.
//!
//! Everything is written lane by lane over arrays of fixed size, which the compiler turns into whole registers; what needs
//! lanes to meet (sums over them) has one fixed order. So every instruction set gives the same bits.

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

    /// The sum of all lanes: 8 and 8, 4 and 4, 2 and 2, 1 and 1.
    #[inline(always)]
    pub(crate) fn sum(self) -> f32 {
        let mut lanes = self.0;
        for width in [8, 4, 2, 1] {
            for lane in 0..width {
                lanes[lane] += lanes[lane + width];
            }
        }
        lanes[0]
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

    /// The four numbers of one of its four quads, each four times.
    #[inline(always)]
    pub(crate) fn spread(&self, index: usize) -> Self {
        let mut out = Self::ZERO;
        for lane in 0..LANES {
            out.0[lane] = self.0[4 * index + lane / 4];
        }
        out
    }

    /// For each quad of four blocks the sum of its numbers (first and second, third and fourth, both): 16 sums.
    #[inline(always)]
    pub(crate) fn sums_of_quads(blocks: &[Self; 4]) -> Self {
        let mut out = Self::ZERO;
        for lane in 0..LANES {
            let (block, at) = (&blocks[lane / 4].0, lane % 4 * 4);
            out.0[lane] = (block[at] + block[at + 1]) + (block[at + 2] + block[at + 3]);
        }
        out
    }

    /// For each of four blocks the sum of its quads (first and second, third and fourth, both), side by side.
    #[inline(always)]
    pub(crate) fn sums_over_quads(blocks: &[Self; 4]) -> Self {
        let mut out = Self::ZERO;
        for lane in 0..LANES {
            let (block, at) = (&blocks[lane / 4].0, lane % 4);
            out.0[lane] = (block[at] + block[at + 4]) + (block[at + 8] + block[at + 12]);
        }
        out
    }
}
