//! Activation functions of units: the logistic function scaled to [-1, 1], which is tanh(x / 2), or tanh(x), and the slopes
//! that learning uses.
//!
//! tanh is computed in f32, only from operations that IEEE 754 rounds correctly (including fused multiply-add). It therefore
//! has the same bits everywhere, whether computed alone or sixteen at a time:
//!
//! ```text
//! tanh(x) = x P(x^2) / Q(x^2),  P and Q of degree 3, x clamped to [-7, 7]
//! ```
//!
//! The coefficients minimise the greatest relative error on [0, 7] (1.03e-6 before rounding). They come from a least-squares
//! fit in double precision on 4,000 Chebyshev nodes, in the Chebyshev basis of x^2, with weights raised where the error is
//! greatest (Lawson's method) and divided by the denominator of the previous iteration. With every operation rounded to f32,
//! the relative error is at most 1.3e-6 (3e-6 beyond 7), and the magnitude stays below 1, so slopes are positive. Degree 4
//! would have an error of 4e-7, and would cost the dense networks 4 to 8 % of their speed. The coefficients of tanh(x / 2)
//! are scaled by powers of two: exactly the same arithmetic, without dividing x.

use fearless_simd::prelude::*;
use serde::{Deserialize, Serialize};

use super::lanes::{CrossLane, Vector};
use evoxo_common::math;

/// The function that turns a unit's weighted sum into its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Activation {
    /// tanh(x / 2), which is the logistic function scaled to [-1, 1].
    Logistic,
    /// tanh(x / 2), learned as if its slope were that of tanh(x).
    LogisticUnhalved,
    /// tanh(x).
    Tanh,
}

/// Degrees of P and Q in x^2, plus 1.
const TERMS: usize = 4;
/// P, from the constant term up.
const ODD: [f32; TERMS] = [0.999_999, 0.123_220_54, 0.002_293_087_8, 3.995_866_3e-6];
/// Q, from the constant term up.
const EVEN: [f32; TERMS] = [1.0, 0.456_546_13, 0.021_151_61, 0.000_143_984_35];
/// The fit covers magnitudes up to this limit. Greater ones are clamped.
const LIMIT: f32 = 7.0;

impl Activation {
    /// The value of one weighted sum.
    #[must_use]
    #[inline(always)]
    pub fn apply(self, sum: f32) -> f32 {
        self.curve().apply(sum)
    }

    /// The value of one weighted sum in double precision, for reference implementations.
    #[must_use]
    pub fn apply_f64(self, sum: f64) -> f64 {
        match self {
            Self::Logistic | Self::LogisticUnhalved => math::tanh(sum / 2.0),
            Self::Tanh => math::tanh(sum),
        }
    }

    /// The factor of the slope that learning uses: at value v the slope is this factor times 1 - v^2.
    #[must_use]
    pub const fn slope(self) -> f32 {
        match self {
            Self::Logistic => 0.5,
            Self::LogisticUnhalved | Self::Tanh => 1.0,
        }
    }

    /// The rational function that computes the activation.
    #[must_use]
    #[inline(always)]
    pub(crate) const fn curve(self) -> Curve {
        let (mut odd, mut even, mut limit) = (ODD, EVEN, LIMIT);
        if matches!(self, Self::Logistic | Self::LogisticUnhalved) {
            limit *= 2.0;
            let (mut power, mut term) = (1.0, 0);
            while term < TERMS {
                odd[term] *= power * 0.5;
                even[term] *= power;
                power *= 0.25;
                term += 1;
            }
        }
        Curve { limit, odd, even }
    }
}

/// 1 - v^2 for each value v: the slope of the activation there, as a share of its slope at value 0 ([`Activation::slope`]).
#[inline(always)]
pub(crate) fn falls<S: Simd>(values: Vector<S>) -> Vector<S> {
    (-values).fma(values, Vector::splat(values.simd, 1.0))
}

/// An activation in the form in which the fast paths compute it: the coefficients of P and Q, and the limit at which the
/// argument is clamped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Curve {
    limit: f32,
    odd: [f32; TERMS],
    even: [f32; TERMS],
}

impl Curve {
    /// The value of one weighted sum; NaN for NaN.
    #[allow(clippy::disallowed_methods, reason = "the same operation as in lanes, rounded once")]
    #[inline(always)]
    pub(crate) fn apply(&self, sum: f32) -> f32 {
        let low = if -self.limit > sum { -self.limit } else { sum };
        let x = if self.limit < low { self.limit } else { low };
        let square = x * x;
        let (mut odd, mut even) = (self.odd[TERMS - 1], self.even[TERMS - 1]);
        for term in (0..TERMS - 1).rev() {
            odd = odd.mul_add(square, self.odd[term]);
            even = even.mul_add(square, self.even[term]);
        }
        x * odd / even
    }

    /// The values of sixteen weighted sums, each with the bits of [`Curve::apply`].
    #[inline(always)]
    pub(crate) fn apply_vector<S: Simd>(&self, sums: Vector<S>) -> Vector<S> {
        let [values] = self.apply_vectors([sums]);
        values
    }

    /// The values of `count` vectors: `sums` gives the weighted sums of each, `take` receives their values in ascending order.
    /// Four or two vectors are computed at a time, as in [`Curve::apply_vectors`].
    #[inline(always)]
    pub(crate) fn apply_each<S: Simd>(
        &self,
        count: usize,
        sums: impl Fn(usize) -> Vector<S>,
        mut take: impl FnMut(usize, Vector<S>),
    ) {
        let mut index = 0;
        while index + 4 <= count {
            let values = self.apply_vectors([sums(index), sums(index + 1), sums(index + 2), sums(index + 3)]);
            for (at, values) in values.into_iter().enumerate() {
                take(index + at, values);
            }
            index += 4;
        }
        if index + 2 <= count {
            let values = self.apply_vectors([sums(index), sums(index + 1)]);
            for (at, values) in values.into_iter().enumerate() {
                take(index + at, values);
            }
            index += 2;
        }
        if index < count {
            take(index, self.apply_vector(sums(index)));
        }
    }

    /// The values of N vectors. Each vector is one long chain of dependent operations; N chains are interleaved to hide their
    /// latency.
    #[inline(always)]
    pub(crate) fn apply_vectors<S: Simd, const N: usize>(&self, sums: [Vector<S>; N]) -> [Vector<S>; N] {
        let (mut x, mut squares) = (sums, sums);
        for (x, square) in x.iter_mut().zip(&mut squares) {
            // If either operand is NaN, the result is the second one.
            *x = Vector::splat(x.simd, self.limit).min(Vector::splat(x.simd, -self.limit).max(*x));
            *square = *x * *x;
        }
        let (mut odd, mut even) = (squares, squares);
        for (odd, even) in odd.iter_mut().zip(&mut even) {
            *odd = Vector::splat(odd.simd, self.odd[TERMS - 1]);
            *even = Vector::splat(even.simd, self.even[TERMS - 1]);
        }
        for term in (0..TERMS - 1).rev() {
            for ((odd, even), square) in odd.iter_mut().zip(&mut even).zip(squares) {
                *odd = odd.fma(square, self.odd[term]);
                *even = even.fma(square, self.even[term]);
            }
        }
        for ((x, odd), even) in x.iter_mut().zip(odd).zip(even) {
            *x = *x * odd / even;
        }
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::simd;

    /// Every 4,999th finite f32.
    fn numbers() -> impl Iterator<Item = f32> {
        (0..=u32::MAX).step_by(4999).map(f32::from_bits).filter(|number| number.is_finite())
    }

    #[test]
    fn tanh_has_the_documented_error_and_is_below_one() {
        for x in numbers().filter(|x| x.abs() > 1e-30) {
            let (value, exact) = (Activation::Tanh.apply(x), math::tanh(x.into()));
            let limit = if x.abs() <= LIMIT { 1.3e-6 } else { 3e-6 };
            assert!((f64::from(value) / exact - 1.0).abs() < limit && value.abs() < 1.0, "tanh({x}) = {value}");
        }
        assert_eq!(Activation::Tanh.apply(0.0), 0.0);
    }

    #[test]
    fn the_logistic_function_is_tanh_of_half() {
        for x in numbers().filter(|x| x.abs() > 1e-30) {
            let (value, tanh) = (Activation::Logistic.apply(x), Activation::Tanh.apply(x / 2.0));
            assert_eq!(value.to_bits(), tanh.to_bits(), "of {x}");
            assert!((f64::from(value) - Activation::Logistic.apply_f64(x.into())).abs() < 3e-6, "of {x}");
        }
    }

    #[test]
    fn both_functions_are_exactly_odd_and_propagate_nan() {
        for activation in [Activation::Logistic, Activation::Tanh] {
            assert!(numbers().all(|x| activation.apply(-x).to_bits() == (-activation.apply(x)).to_bits()));
            assert!(activation.apply(f32::NAN).is_nan());
            assert_eq!(activation.apply(f32::INFINITY), activation.apply(1e30));
        }
    }

    #[test]
    fn sixteen_values_at_a_time_have_the_same_bits_as_one() {
        let numbers: Vec<f32> = numbers().step_by(7).chain([f32::NAN; 16]).collect();
        for sixteen in numbers.as_chunks().0 {
            for activation in [Activation::Logistic, Activation::Tanh] {
                let expected = sixteen.map(|sum| activation.apply(sum).to_bits());
                simd::at_each_level(|level| {
                    let bits = crate::net::dispatch::dispatch!(simd => {
                        <[f32; 16]>::from(activation.curve().apply_vector(Vector::simd_from(simd, *sixteen))).map(f32::to_bits)
                    });
                    assert_eq!(bits, expected, "at {level:?}");
                });
            }
        }
    }
}
