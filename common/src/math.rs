//! Floating-point functions and sums with the same bits on every machine.
//!
//! `exp` and `tanh` come from `libm` (a port of musl's), built from basic IEEE 754 operations only; the standard
//! library's call the system's, which differ. Sums run in a fixed number of lanes and end in a fixed tree, so the order
//! of additions does not depend on the width of the machine's registers. Nothing is fused.

use crate::simd::kernel;

/// Lanes of a sum: enough to fill an AVX-512 register.
const LANES: usize = 16;

/// e to the power of `x`.
#[must_use]
pub fn exp(x: f64) -> f64 {
    libm::exp(x)
}

/// The hyperbolic tangent.
#[must_use]
pub fn tanh(x: f64) -> f64 {
    libm::tanh(x)
}

/// The natural logarithm.
#[must_use]
pub fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// 2 to the power of `-x`, for `x` of at least 0 (beyond 1,022 as for 1,022), from basic operations without a branch, so
/// that loops over it run in lanes. Relative error at most 4e-16; exactly 1 for 0.
///
/// With n the whole number nearest to x it is 2^-n times 2^(n - x). The second factor is 1 + r q(r) for r = n - x, where q
/// is the polynomial of degree 10 that agrees with (2^r - 1) / r at the eleven Chebyshev points of [-0.5, 0.5]; without
/// rounding its relative error is below 2e-17.
#[inline(always)]
#[must_use]
pub fn exp2_negative(x: f64) -> f64 {
    exp2_negatives([x])[0]
}

/// [`exp2_negative`] of several numbers in step: interleaves N chains of operations to hide their latency.
#[inline(always)]
#[must_use]
pub fn exp2_negatives<const N: usize>(x: [f64; N]) -> [f64; N] {
    /// Added to a small number it leaves the nearest whole one in the low bits: 1.5 times 2^52.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    /// From the highest power down.
    const COEFFICIENTS: [f64; 12] = [
        4.454_960_598_186_546_5e-10,
        7.072_585_949_269_223e-9,
        1.017_806_244_584_577_4e-7,
        1.321_544_258_792_169e-6,
        1.525_273_382_983_612e-5,
        1.540_353_044_173_605e-4,
        0.001_333_355_814_641_693_6,
        0.009_618_129_107_606_888,
        0.055_504_108_664_821_6,
        0.240_226_506_959_100_97,
        core::f64::consts::LN_2,
        1.0,
    ];
    let (mut shifted, mut rest, mut power) = ([0.0; N], [0.0; N], [COEFFICIENTS[0]; N]);
    for i in 0..N {
        rest[i] = if x[i] < 1022.0 { x[i] } else { 1022.0 };
    }
    for i in 0..N {
        shifted[i] = rest[i] + ROUND;
    }
    for i in 0..N {
        rest[i] = (shifted[i] - ROUND) - rest[i];
    }
    for coefficient in &COEFFICIENTS[1..] {
        for i in 0..N {
            power[i] *= rest[i];
        }
        for power in &mut power {
            *power += *coefficient;
        }
    }
    for i in 0..N {
        power[i] = f64::from_bits(power[i].to_bits().wrapping_sub(shifted[i].to_bits() << 52));
    }
    power
}

/// The natural logarithm of the gamma function.
#[must_use]
pub fn ln_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// The complement of the error function: twice the normal distribution's tail beyond `x` times the root of 2.
#[must_use]
pub fn erfc(x: f64) -> f64 {
    libm::erfc(x)
}

kernel! {
    /// The sum of products of two slices of equal length: lane i takes the elements whose index is i modulo 16, the
    /// lanes are added pairwise (i and i + 8, then i + 4, i + 2, i + 1).
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn dot(left: &[f32], right: &[f32]) -> f32 {
        assert_eq!(left.len(), right.len(), "a dot product of slices of different lengths");
        let mut lanes = [0.0_f32; LANES];
        let (left_chunks, left_rest) = left.as_chunks::<LANES>();
        let (right_chunks, right_rest) = right.as_chunks::<LANES>();
        for (left, right) in left_chunks.iter().zip(right_chunks) {
            for lane in 0..LANES {
                lanes[lane] += left[lane] * right[lane];
            }
        }
        for (lane, (left, right)) in lanes.iter_mut().zip(left_rest.iter().zip(right_rest)) {
            *lane += left * right;
        }
        for width in [8, 4, 2, 1] {
            for lane in 0..width {
                lanes[lane] += lanes[lane + width];
            }
        }
        lanes[0]
    }
}

/// The slow twin of [`dot`], as its documentation says it: for tests and benchmarks.
#[must_use]
pub fn dot_plain(left: &[f32], right: &[f32]) -> f32 {
    let lane = |lane: usize| {
        let indices = (lane..left.len()).step_by(LANES);
        indices.fold(0.0_f32, |sum, index| sum + left[index] * right[index])
    };
    let mut lanes: Vec<f32> = (0..LANES).map(lane).collect();
    while lanes.len() > 1 {
        let half = lanes.split_off(lanes.len() / 2);
        lanes.iter_mut().zip(half).for_each(|(lane, other)| *lane += other);
    }
    lanes[0]
}

/// The mean, summed from the first to the last; `None` of nothing.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{rng, simd};

    #[test]
    fn dot_has_the_same_bits_at_every_level() {
        let mut rng = rng::Stream::root(1).rng();
        for length in [0, 1, 15, 16, 17, 100, 1024] {
            let mut draw = || (0..length).map(|_| rng::unit(&mut rng) as f32 - 0.5).collect::<Vec<_>>();
            let (left, right) = (draw(), draw());
            let expected = dot_plain(&left, &right).to_bits();
            simd::at_each_level(|level| {
                assert_eq!(dot(&left, &right).to_bits(), expected, "length {length} at {level:?}");
            });
        }
    }

    #[test]
    fn exp2_negative_is_as_good_as_it_says() {
        let mut worst = 0.0_f64;
        for step in 0..2_044_000_u32 {
            let x = f64::from(step) / 2_000.0;
            worst = worst.max((exp2_negative(x) / libm::exp2(-x) - 1.0).abs());
        }
        assert!(worst < 4e-16, "{worst}");
        assert_eq!(exp2_negative(0.0), 1.0);
        assert_eq!([1023.0, 1e300, f64::INFINITY, f64::NAN].map(exp2_negative), [exp2_negative(1022.0); 4]);
    }

    #[test]
    fn bits_are_pinned() {
        let values: Vec<f32> = (0..37_u8).map(|i| f32::from(i) / 7.0 - 2.5).collect();
        let bits =
            [exp(0.3).to_bits(), exp(-7.25).to_bits(), tanh(0.3).to_bits(), tanh(-2.0).to_bits(), ln(10.0).to_bits()];
        insta::assert_snapshot!(format!("{bits:016x?} {:08x}", dot(&values, &values).to_bits()));
    }
}
