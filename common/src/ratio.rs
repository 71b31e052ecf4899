//! Small exact fractions: probabilities of outcomes, penalties, and fitness.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, Div, Mul, Sub};

/// Whole numbers below this are exact as floats.
const EXACT: u64 = 1 << 53;

/// An exact fraction in lowest terms, both of which fit into 64 bits: enough for all figures of 3x3 games. An operation whose
/// result does not fit panics instead of returning a wrong figure.
///
/// ```
/// use evoxo_common::ratio::Ratio;
/// let penalty: Ratio = "6.5".parse()?;
/// assert_eq!(penalty.to_string(), "13/2");
/// assert_eq!((penalty - Ratio::new(1, 2)).to_string(), "6");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    numerator: i64,
    /// Positive, without a common factor with the numerator.
    denominator: i64,
}

impl Ratio {
    /// 0.
    pub const ZERO: Self = Self { numerator: 0, denominator: 1 };
    /// 1.
    pub const ONE: Self = Self { numerator: 1, denominator: 1 };

    /// `numerator` / `denominator`.
    ///
    /// # Panics
    /// If the denominator is 0, or a term in lowest terms does not fit into 64 bits.
    #[must_use]
    pub fn new(numerator: i128, denominator: i128) -> Self {
        assert!(denominator != 0, "the fraction {numerator}/0 was asked for");
        let divisor = gcd(numerator, denominator) * denominator.signum();
        let lowest = |term: i128| i64::try_from(term / divisor).expect("fractions of small games have small terms");
        Self { numerator: lowest(numerator), denominator: lowest(denominator) }
    }

    /// `numerator` / `denominator`; `None` if the denominator is 0, or a term in lowest terms does not fit into 64 bits.
    #[must_use]
    pub fn checked(numerator: i128, denominator: i128) -> Option<Self> {
        let divisor = gcd(numerator, denominator) * denominator.signum();
        let lowest = |term: i128| i64::try_from(term.checked_div(divisor)?).ok();
        Some(Self { numerator: lowest(numerator)?, denominator: lowest(denominator)? })
    }

    /// The numerator.
    #[must_use]
    pub const fn numerator(self) -> i64 {
        self.numerator
    }

    /// The denominator, which is positive.
    #[must_use]
    pub const fn denominator(self) -> i64 {
        self.denominator
    }

    /// The nearest float.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        let (above, below) = (self.numerator.unsigned_abs(), self.denominator.unsigned_abs());
        if above < EXACT && below < EXACT {
            return self.numerator as f64 / self.denominator as f64;
        }
        // Terms that are not exact as floats would be rounded before the division. So 64 or 65 bits of the quotient are
        // computed, the last of which says whether there is a remainder. Rounding these bits rounds the quotient correctly.
        let shift = 64 + above.leading_zeros() - below.leading_zeros();
        let (dividend, below) = (u128::from(above) << shift, u128::from(below));
        let quotient = (dividend / below) | u128::from(dividend % below != 0);
        let value = quotient as f64 / (1_u128 << shift) as f64;
        if self.numerator < 0 { -value } else { value }
    }

    /// Both terms, as integers so wide that the products and sums below cannot overflow.
    fn terms(self) -> (i128, i128) {
        (self.numerator.into(), self.denominator.into())
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}

impl From<i64> for Ratio {
    fn from(whole: i64) -> Self {
        Self { numerator: whole, denominator: 1 }
    }
}

impl Add for Ratio {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let ((a, b), (c, d)) = (self.terms(), other.terms());
        Self::new(a * d + c * b, b * d)
    }
}

impl Sub for Ratio {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        let ((a, b), (c, d)) = (self.terms(), other.terms());
        Self::new(a * d - c * b, b * d)
    }
}

impl Mul for Ratio {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let ((a, b), (c, d)) = (self.terms(), other.terms());
        Self::new(a * c, b * d)
    }
}

impl Div for Ratio {
    type Output = Self;
    /// # Panics
    /// If `other` is 0.
    fn div(self, other: Self) -> Self {
        let ((a, b), (c, d)) = (self.terms(), other.terms());
        Self::new(a * d, b * c)
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        let ((a, b), (c, d)) = (self.terms(), other.terms());
        (a * d).cmp(&(c * b))
    }
}

impl fmt::Display for Ratio {
    /// In lowest terms: `0`, `1`, `13/2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => write!(f, "{}", self.numerator),
            denominator => write!(f, "{}/{denominator}", self.numerator),
        }
    }
}

impl std::str::FromStr for Ratio {
    type Err = String;

    /// Parses an exact decimal number: at most six digits before the point and six after it, with an optional minus sign.
    fn from_str(text: &str) -> Result<Self, String> {
        let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
        let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
        let fits = |digits: &str| (1..=6).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
        if !fits(whole) || !fits(part) {
            return Err(format!(
                "{} is not a decimal number like 6.5, with at most six digits before and after the point",
                crate::text::quoted(text)
            ));
        }
        let all = format!("{whole}{part}").bytes().fold(0, |value, digit| value * 10 + i128::from(digit - b'0'));
        Ok(Self::new(if negative { -all } else { all }, 10_i128.pow(part.len() as u32)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimals_are_exact() {
        for (text, fraction) in [
            ("6.5", "13/2"),
            ("100", "100"),
            ("0", "0"),
            ("-0", "0"),
            ("-0.25", "-1/4"),
            ("0.1", "1/10"),
            ("007.50", "15/2"),
            ("999999.999999", "999999999999/1000000"),
        ] {
            assert_eq!(text.parse::<Ratio>().map(|ratio| ratio.to_string()), Ok(fraction.to_owned()));
        }
        for text in ["", ".", "1.", ".5", "+1", "1e3", "1/2", "--1", "1.2.3", "٣", "1234567", "0.1234567", " 1"] {
            assert!(text.parse::<Ratio>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn arithmetic_is_exact(a in -99..99_i128, b in 1..99_i128, c in -99..99_i128, d in 1..99_i128) {
            let (left, right) = (Ratio::new(a, b), Ratio::new(c, -d));
            prop_assert_eq!(right, Ratio::new(-c, d));
            prop_assert_eq!(left + right, Ratio::new(a * d - c * b, b * d));
            prop_assert_eq!(left - right + right, left);
            prop_assert_eq!(left * right, Ratio::new(-a * c, b * d));
            prop_assert_eq!(left < right, a * d < -c * b);
            if c != 0 {
                prop_assert_eq!(left / right * right, left);
            }
            prop_assert_eq!(gcd(left.terms().0, left.terms().1), 1);
            prop_assert!(right.denominator() > 0);
        }
    }

    proptest! {
        /// Compares with the standard library, which rounds a decimal number only once.
        #[test]
        fn the_float_is_the_nearest(terms: i64, places in 0..19_u32) {
            let ratio = Ratio::new(terms.into(), 10_i128.pow(places));
            prop_assert_eq!(ratio.to_f64(), format!("{terms}e-{places}").parse::<f64>().unwrap());
        }
    }

    #[test]
    #[should_panic(expected = "the fraction 3/0 was asked for")]
    fn division_by_zero_has_no_result() {
        let _ = Ratio::from(3) / Ratio::ZERO;
    }
}
