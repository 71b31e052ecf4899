//! Sixteen numbers side by side: what fills a register of AVX-512, two of AVX2, four of SSE2.

/// Lanes of a block.
pub(crate) const LANES: usize = 16;

/// A block. All operations are lane by lane, so that every instruction set gives the same bits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(64))]
#[allow(dead_code, reason = "the fast engines come next")]
pub(crate) struct Lanes(pub [f32; LANES]);

#[allow(dead_code, reason = "the fast engines come next")]
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

    /// Adds `other` times `factor`.
    #[inline(always)]
    pub(crate) fn add_scaled(&mut self, other: &Self, factor: f32) {
        for lane in 0..LANES {
            self.0[lane] += other.0[lane] * factor;
        }
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
}
