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

/// 2 to the power of `-x`, for `x` of at least 0 (beyond 126 as for 126), from basic operations without a branch, so that
/// loops over it run in lanes. Relative error at most 2e-7; exactly 1 for 0.
///
/// With n the whole number nearest to x it is 2^-n times 2^(n - x); the second factor is the polynomial of degree 5 with the
/// least greatest relative error on [-0.5, 0.5] among those that are 1 at 0 (Lawson's algorithm, 1961, rounded).
#[inline(always)]
#[must_use]
pub fn exp2_negative(x: f32) -> f32 {
    exp2_negatives([x])[0]
}

/// [`exp2_negative`] of several numbers in step. Each operation waits for the one before it, and a processor looks only so
/// far ahead: so it finds one operation of each number to do meanwhile.
#[inline(always)]
#[must_use]
#[expect(
    clippy::approx_constant,
    reason = "a coefficient of the polynomial, near the natural logarithm of 2 but not it"
)]
pub fn exp2_negatives<const N: usize>(x: [f32; N]) -> [f32; N] {
    /// Added to a small number it leaves the nearest whole one in the low bits: 1.5 times 2^23.
    const ROUND: f32 = 12_582_912.0;
    /// From the highest power down.
    const COEFFICIENTS: [f32; 6] = [0.001_326_473, 0.009_671_514, 0.055_507_336, 0.240_222_42, 0.693_147, 1.0];
    let (mut shifted, mut rest, mut power) = ([0.0; N], [0.0; N], [COEFFICIENTS[0]; N]);
    for i in 0..N {
        rest[i] = if x[i] < 126.0 { x[i] } else { 126.0 };
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
        power[i] = f32::from_bits(power[i].to_bits().wrapping_sub(shifted[i].to_bits() << 23));
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
        for step in 0..1_260_000_u32 {
            let x = f64::from(step) / 10_000.0;
            let x = x as f32;
            worst = worst.max((f64::from(exp2_negative(x)) / libm::exp2(-f64::from(x)) - 1.0).abs());
        }
        assert!(worst < 2e-7, "{worst}");
        assert_eq!(exp2_negative(0.0), 1.0);
        assert_eq!([127.0, 1e30, f32::INFINITY, f32::NAN].map(exp2_negative), [exp2_negative(126.0); 4]);
    }

    #[test]
    fn bits_are_pinned() {
        let values: Vec<f32> = (0..37_u8).map(|i| f32::from(i) / 7.0 - 2.5).collect();
        let bits =
            [exp(0.3).to_bits(), exp(-7.25).to_bits(), tanh(0.3).to_bits(), tanh(-2.0).to_bits(), ln(10.0).to_bits()];
        insta::assert_snapshot!(format!("{bits:016x?} {:08x}", dot(&values, &values).to_bits()));
    }
}
