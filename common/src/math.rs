//! Floating-point functions and sums that give the same bits on every machine.
//!
//! `exp`, `tanh`, `sin`, `cos`, `pow` and others come from `libm` (a port of musl's), which uses only basic IEEE 754
//! operations. The standard library calls the system's functions, which differ between systems.

use std::cmp::Ordering;

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

/// `x` to the power of `y`.
#[must_use]
pub fn pow(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}

/// The sine of an angle in radians.
#[must_use]
pub fn sin(x: f64) -> f64 {
    libm::sin(x)
}

/// The cosine of an angle in radians.
#[must_use]
pub fn cos(x: f64) -> f64 {
    libm::cos(x)
}

/// 2 to the power of `-x`, for `x` of at least 0 (values beyond 1,022 count as 1,022). It uses basic operations without
/// branches, so loops over it are vectorised. The relative error is at most 4e-16; the result for 0 is exactly 1.
///
/// Let n be the integer nearest to x. The result is 2^-n times 2^(n - x). The second factor is 1 + r q(r) for r = n - x,
/// where q is the polynomial of degree 10 that equals (2^r - 1) / r at the eleven Chebyshev points of [-0.5, 0.5]. Without
/// rounding, its relative error is below 2e-17.
#[inline(always)]
#[must_use]
pub fn exp2_negative(x: f64) -> f64 {
    exp2_negatives([x])[0]
}

/// [`exp2_negative`] of several numbers. N chains of operations are interleaved to hide their latency.
#[inline(always)]
#[must_use]
pub fn exp2_negatives<const N: usize>(x: [f64; N]) -> [f64; N] {
    /// 1.5 times 2^52: added to a small number, it leaves the nearest integer in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    /// The coefficients, from the highest power to the lowest.
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

/// The complementary error function: twice the tail of the normal distribution beyond `x` times the square root of 2.
#[must_use]
pub fn erfc(x: f64) -> f64 {
    libm::erfc(x)
}

/// The mean, summed from the first value to the last; `None` without values. It is finite if all values are: values whose sum
/// would overflow are summed as shares of the greatest.
#[must_use]
pub fn mean(values: &[f64]) -> Option<f64> {
    let (sum, count) = (values.iter().sum::<f64>(), values.len() as f64);
    let greatest = values.iter().fold(0.0_f64, |greatest, value| greatest.max(value.abs()));
    let mean = match sum.is_finite() || greatest.is_infinite() {
        true => sum / count,
        false => values.iter().map(|value| value / greatest).sum::<f64>() / count * greatest,
    };
    (!values.is_empty()).then_some(mean)
}

/// Compares numbers so that -0.0 and 0.0 are equal. NaN comes last or first, depending on its sign.
#[must_use]
pub fn order(one: f64, two: f64) -> Ordering {
    one.partial_cmp(&two).unwrap_or_else(|| one.total_cmp(&two))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_of_the_largest_floats_are_finite() {
        assert_eq!(mean(&[f64::MAX; 3]), Some(f64::MAX));
        assert_eq!(mean(&[f64::MAX, f64::MAX, f64::MIN, f64::MIN]), Some(0.0));
        assert!((mean(&[1e308, 1.5e308]).unwrap() / 1.25e308 - 1.0).abs() < 1e-15);
        assert_eq!((mean(&[]), mean(&[0.1, 0.2])), (None, Some((0.1 + 0.2) / 2.0)));
        assert_eq!(mean(&[f64::INFINITY, 1.0]), Some(f64::INFINITY));
    }

    #[test]
    fn exp2_negative_has_the_documented_error() {
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
        let bits =
            [exp(0.3).to_bits(), exp(-7.25).to_bits(), tanh(0.3).to_bits(), tanh(-2.0).to_bits(), ln(10.0).to_bits()];
        insta::assert_snapshot!(format!("{bits:016x?}"));
        let bits = [pow(0.3, 1.0 / 16.0), pow(7.25, -3.5), sin(0.3), sin(-1e6), cos(2.0), cos(1e9)].map(f64::to_bits);
        insta::assert_snapshot!(format!("{bits:016x?}"));
    }

    #[test]
    fn powers_and_angles_match_known_values() {
        assert_eq!([pow(2.0, 10.0), pow(9.0, 0.5), pow(5.0, 0.0), pow(0.0, 2.5)], [1024.0, 3.0, 1.0, 0.0]);
        for step in -100..100 {
            let x = f64::from(step) / 7.0;
            assert!((sin(x) * sin(x) + cos(x) * cos(x) - 1.0).abs() < 1e-15, "{x}");
            assert!((sin(2.0 * x) - 2.0 * sin(x) * cos(x)).abs() < 1e-15, "{x}");
        }
    }
}
