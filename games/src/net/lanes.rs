//! Vectors of sixteen numbers: one register of AVX-512, two of AVX2, four of SSE2 or NEON.
//!
//! Arithmetic is lane by lane, and sums over lanes have one fixed order, so every instruction set gives the same bits. The
//! words for parts of vectors (lane, quad) and for their contents (group, block, tile) are defined in [`crate::net`].

#[cfg(target_arch = "x86_64")]
use fearless_simd::{Level, x86::Sse2};
use fearless_simd::{f32x4, f32x16, prelude::*};

pub(crate) use fearless_simd::Simd;

/// Lanes of a vector.
pub(crate) const LANES: usize = 16;

/// Sixteen numbers, for an instruction set.
pub(crate) type Vector<S> = f32x16<S>;

/// The numbers of four units that read the same cells, in memory: a quarter of a vector.
pub(crate) type Quad = [f32; 4];

/// 0 in every lane.
#[inline(always)]
pub(crate) fn zero<S: Simd>(simd: S) -> Vector<S> {
    Vector::splat(simd, 0.0)
}

/// A vector with this quad four times.
#[inline(always)]
pub(crate) fn broadcast_quad<S: Simd>(simd: S, quad: &Quad) -> Vector<S> {
    Vector::block_splat(f32x4::simd_from(simd, *quad))
}

/// A vector of these four quads.
#[inline(always)]
pub(crate) fn from_quads<S: Simd>(simd: S, quads: [&Quad; 4]) -> Vector<S> {
    let low = f32x4::simd_from(simd, *quads[0]).combine(f32x4::simd_from(simd, *quads[1]));
    let high = f32x4::simd_from(simd, *quads[2]).combine(f32x4::simd_from(simd, *quads[3]));
    low.combine(high)
}

/// Sums of neighbouring lanes: those of the left vector, then those of the right one.
#[inline(always)]
fn add_neighbours<S: Simd>(left: Vector<S>, right: Vector<S>) -> Vector<S> {
    let (even, odd) = left.deinterleave(right);
    even + odd
}

/// Sums of neighbouring quads: the two of the left vector, then the two of the right one.
#[inline(always)]
fn add_quads<S: Simd>(left: Vector<S>, right: Vector<S>) -> Vector<S> {
    let (vectors, mut even, mut odd) = ([left, right].map(<[f32; LANES]>::from), [0.0; LANES], [0.0; LANES]);
    for lane in 0..LANES {
        let (vector, from) = (&vectors[lane / 8], lane % 8 / 4 * 8 + lane % 4);
        (even[lane], odd[lane]) = (vector[from], vector[from + 4]);
    }
    Vector::simd_from(left.simd, even) + Vector::simd_from(left.simd, odd)
}

/// The sum of the lanes of each quad: those of the first vector, then the second, third and fourth. Each sum adds the first and
/// second lane, the third and fourth, then both.
#[inline(always)]
fn add_within_quads<S: Simd>([first, second, third, fourth]: &[Vector<S>; 4]) -> Vector<S> {
    add_neighbours(add_neighbours(*first, *second), add_neighbours(*third, *fourth))
}

/// The sum of the lanes of each quad (first and second, third and fourth, then both): quad q of vector v gives lane 4 q + v.
#[inline(always)]
pub(crate) fn sums_within_quads<S: Simd>(vectors: &[Vector<S>; 4]) -> Vector<S> {
    add_within_quads(vectors).permuted(
        #[inline(always)]
        |lane| lane % 4 * 4 + lane / 4,
    )
}

/// The sum of the quads of each vector (first and second, third and fourth, then both): vector v gives quad v.
#[inline(always)]
pub(crate) fn sums_across_quads<S: Simd>([first, second, third, fourth]: &[Vector<S>; 4]) -> Vector<S> {
    add_quads(add_quads(*first, *second), add_quads(*third, *fourth))
}

/// The sum of all lanes of each vector, with the bits of [`CrossLane::sum`]: vector v gives lane v.
#[inline(always)]
pub(crate) fn sums<S: Simd>(vectors: &[Vector<S>; LANES]) -> Vector<S> {
    let [first, second, third, fourth] = vectors.as_chunks().0 else { unreachable!("sixteen are four times four") };
    add_within_quads(&[
        add_within_quads(first),
        add_within_quads(second),
        add_within_quads(third),
        add_within_quads(fourth),
    ])
}

/// Operations that move numbers between lanes.
pub(crate) trait CrossLane<S: Simd>: Copy {
    /// The vector whose lane l has the number of lane `from(l)`. It compiles to one instruction if the vector is in a register;
    /// a vector that is only in memory is read number by number.
    fn permuted(self, from: impl Fn(usize) -> usize) -> Self;

    /// The vector's four quads.
    fn quads(self) -> [f32x4<S>; 4];

    /// One of the vector's four quads, repeated four times.
    fn broadcast_quad(self, index: usize) -> Self;

    /// Repeats one of the four lanes of each quad four times within the quad.
    #[inline(always)]
    fn broadcast_in_quads(self, index: usize) -> Self {
        self.permuted(
            #[inline(always)]
            |lane| lane / 4 * 4 + index,
        )
    }

    /// Exchanges each lane with the one whose index differs in this bit.
    #[inline(always)]
    fn swap(self, bit: usize) -> Self {
        self.permuted(
            #[inline(always)]
            |lane| lane ^ bit,
        )
    }

    /// The sum of all lanes: neighbours, then pairs of neighbours, and so on.
    fn sum(self) -> f32;

    /// Fused multiply-add: the product with a factor, plus an addend, rounded once.
    fn fma(self, factor: impl SimdInto<Self, S>, addend: impl SimdInto<Self, S>) -> Self;
}

impl<S: Simd> CrossLane<S> for Vector<S> {
    #[inline(always)]
    fn permuted(self, from: impl Fn(usize) -> usize) -> Self {
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
    fn broadcast_quad(self, index: usize) -> Self {
        Self::block_splat(self.quads()[index])
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        let pairs = self + self.swap(1);
        let quads = pairs + pairs.swap(2);
        let halves = quads + quads.swap(4);
        (halves + halves.swap(8))[0]
    }

    #[allow(clippy::disallowed_methods, reason = "this is what all others call")]
    #[inline(always)]
    fn fma(self, factor: impl SimdInto<Self, S>, addend: impl SimdInto<Self, S>) -> Self {
        let (factor, addend): (Self, Self) = (factor.simd_into(self.simd), addend.simd_into(self.simd));
        // If this were inlined in every kernel, it would be three quarters of their code and of the time to compile them.
        #[cfg(target_arch = "x86_64")]
        if let Level::Sse2(sse2) = self.simd.level() {
            let [vector, factor, addend] = [self, factor, addend].map(<[f32; LANES]>::from);
            return Self::simd_from(self.simd, fma_in_software(sse2, &vector, &factor, &addend));
        }
        self.mul_add_precise(factor, addend)
    }
}

/// The same without a hardware instruction, which takes about two hundred other instructions.
#[cfg(target_arch = "x86_64")]
#[allow(clippy::disallowed_methods, reason = "as above")]
#[inline(never)]
fn fma_in_software(simd: Sse2, vector: &[f32; LANES], factor: &[f32; LANES], addend: &[f32; LANES]) -> [f32; LANES] {
    let [vector, factor, addend] = [vector, factor, addend].map(|lanes| Vector::simd_from(simd, *lanes));
    vector.mul_add_precise(factor, addend).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::simd;

    #[inline(always)]
    fn check<S: Simd>(simd: S) {
        let vector = |index: usize| {
            let lanes: [f32; LANES] = std::array::from_fn(|lane| (1 << index << (lane % 5)) as f32 + lane as f32);
            Vector::simd_from(simd, lanes)
        };
        let vectors: [Vector<S>; 4] = std::array::from_fn(vector);
        let (within, across) = (sums_within_quads(&vectors), sums_across_quads(&vectors));
        for lane in 0..LANES {
            let vector = <[f32; LANES]>::from(vectors[lane % 4]);
            assert_eq!(within[lane], vector[lane / 4 * 4..][..4].iter().sum::<f32>());
            let vector = vectors[lane / 4];
            assert_eq!(across[lane], (0..4).map(|quad| vector[4 * quad + lane % 4]).sum::<f32>());
        }
        assert_eq!(vectors.map(CrossLane::sum), vectors.map(|vector| <[f32; LANES]>::from(vector).iter().sum::<f32>()));
        let many = std::array::from_fn(|index| (vectors[index % 4] + index as f32) * 0.1);
        assert_eq!(<[f32; LANES]>::from(sums(&many)).map(f32::to_bits), many.map(|vector| vector.sum().to_bits()));
        assert_eq!(vectors[2].broadcast_quad(1)[10], vectors[2][6]);
        assert_eq!(vectors[2].broadcast_in_quads(1)[10], vectors[2][9]);
        assert_eq!(vectors[2].swap(4)[10], vectors[2][14]);
        let quads: [Quad; 4] = std::array::from_fn(|quad| [quad as f32; 4]);
        assert_eq!(from_quads(simd, quads.each_ref())[9], 2.0);
        assert_eq!(broadcast_quad(simd, &[0.0, 1.0, 2.0, 3.0])[6], 2.0);
    }

    #[test]
    fn sums_add_the_right_lanes() {
        simd::at_each_level(|_| crate::net::dispatch::dispatch!(simd => check(simd)));
    }
}
