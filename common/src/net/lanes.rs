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

/// The value, by way of memory. Between a loop that works lane by lane and one that moves lanes about: otherwise the
/// compiler, which sees single numbers only, looks for an order that suits both, and finds one that suits neither.
#[inline(always)]
pub(crate) fn apart<T: Copy>(value: &T) -> T {
    *std::hint::black_box(value)
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

    /// Lane by lane one of two blocks: the second where the lane's number has this bit.
    #[inline(always)]
    fn blend(self, other: Self, bit: usize) -> Self {
        let mut out = Self::ZERO;
        for lane in 0..LANES {
            out.0[lane] = if lane & bit == 0 { self.0[lane] } else { other.0[lane] };
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

    /// Adds lanes whose numbers differ in this bit: those of `self` where the bit is 0, those of `other` where it is 1.
    #[inline(always)]
    fn fold(self, other: Self, bit: usize) -> Self {
        self.blend(other, bit).zip(other.blend(self, bit).swap(bit), |left, right| left + right)
    }

    /// The sum of all lanes: neighbours, then pairs of neighbours, and so on.
    #[inline(always)]
    pub(crate) fn sum(self) -> f32 {
        let mut lanes = self;
        for bit in [1, 2, 4, 8] {
            lanes = lanes.zip(lanes.swap(bit), |left, right| left + right);
        }
        lanes.0[0]
    }

    /// The sums of all lanes of four blocks, each with the bits of [`Lanes::sum`].
    #[inline(always)]
    pub(crate) fn sums(blocks: &[Self; 4]) -> [f32; 4] {
        let mut lanes = Self::sums_of_quads(blocks);
        for bit in [4, 8] {
            lanes = lanes.zip(lanes.swap(bit), |left, right| left + right);
        }
        lanes.quad(0).0
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
        blocks[0].fold(blocks[1], 1).fold(blocks[2].fold(blocks[3], 1), 2)
    }

    /// For each of four blocks the sum of its quads (first and second, third and fourth, both), side by side.
    #[inline(always)]
    pub(crate) fn sums_over_quads(blocks: &[Self; 4]) -> Self {
        blocks[0].fold(blocks[1], 4).fold(blocks[2].fold(blocks[3], 4), 8)
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
        assert_eq!(Lanes::sums(&blocks), blocks.map(Lanes::sum));
        assert_eq!(blocks[2].tiled(1).0[10], blocks[2].0[6]);
        assert_eq!(blocks[2].spread(1).0[10], blocks[2].0[9]);
    }
}
