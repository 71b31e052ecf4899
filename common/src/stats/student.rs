//! Student's t distribution, by the incomplete beta function.

use crate::math::{exp, ln, ln_gamma};

/// The probability that |t| is at least this large by chance, with this number of degrees of freedom (Student 1908).
///
/// # Panics
/// If the degrees of freedom are not positive.
#[must_use]
pub fn student_tails(t: f64, freedom: f64) -> f64 {
    assert!(freedom > 0.0, "Student's t with {freedom} degrees of freedom");
    if t.is_infinite() { 0.0 } else { incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5) }
}

/// The t whose two tails together have the probability 0.05: half the width of a 95 % interval in standard errors. It is
/// 12.706 with one degree of freedom, and 1.960 with very many.
///
/// # Panics
/// If the degrees of freedom are not positive.
#[must_use]
pub fn student_quantile(freedom: f64) -> f64 {
    student_bound(freedom, 0.05)
}

/// The t whose two tails together have the probability `tails`, which must be more than 0 and less than 1. Several
/// simultaneous intervals need 0.05 divided by their number (Bonferroni).
///
/// # Panics
/// If the degrees of freedom are not positive.
#[must_use]
pub fn student_bound(freedom: f64, tails: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    while student_tails(high, freedom) > tails {
        high *= 2.0;
    }
    // Bisects until there is no number in between.
    loop {
        let middle = f64::midpoint(low, high);
        match middle {
            _ if middle <= low || middle >= high => return high,
            _ if student_tails(middle, freedom) > tails => low = middle,
            _ => high = middle,
        }
    }
}

/// The probability that the ratio of two variances with equal expectation is at least this large by chance, with these
/// degrees of freedom of the numerator and the denominator (Fisher 1924; Snedecor 1934).
///
/// # Panics
/// If the degrees of freedom are not positive, or the ratio is negative.
#[must_use]
pub fn fisher_tail(ratio: f64, above: f64, below: f64) -> f64 {
    assert!(above > 0.0 && below > 0.0 && ratio >= 0.0, "F = {ratio} with {above} and {below} degrees of freedom");
    if ratio.is_infinite() { 0.0 } else { incomplete_beta(below / (below + above * ratio), below / 2.0, above / 2.0) }
}

/// The regularised incomplete beta function I_x(a, b), for x from 0 to 1 and positive a and b.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges fast on this side of the mean. On the other side, one minus its mirror image is used.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = exp(a * ln(x) + b * ln(1.0 - x) + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b)) / a;
    front / fraction(x, a, b)
}

/// The continued fraction 1 + d1/(1 + d2/(1 + ...)) of the incomplete beta function (Abramowitz and Stegun 26.5.8), by
/// Lentz's method.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let apart = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (mut value, mut above, mut below) = (1.0, 1.0, 0.0);
    for index in 1..=1000_u32 {
        let m = f64::from(index / 2);
        let term = match index % 2 {
            0 => m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            _ => -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        };
        below = 1.0 / apart(1.0 + term * below);
        above = apart(1.0 + term / above);
        value *= above * below;
        if (above * below - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn near(one: f64, two: f64, within: f64) {
        assert!((one - two).abs() <= within, "{one} and {two}");
    }

    /// There are closed forms for one, two and four degrees of freedom.
    #[test]
    fn tails_agree_with_closed_forms() {
        for step in 0..200 {
            let t = f64::from(step) * 0.25;
            #[allow(clippy::disallowed_methods)] // Compared within a tolerance.
            near(student_tails(t, 1.0), 1.0 - 2.0 / std::f64::consts::PI * t.atan(), 1e-13);
            near(student_tails(t, 2.0), 1.0 - t / (2.0 + t * t).sqrt(), 1e-13);
            let s = t / (4.0 + t * t).sqrt();
            near(student_tails(t, 4.0), 1.0 - 1.5 * (s - s * s * s / 3.0), 1e-13);
            assert_eq!(student_tails(t, 7.5).to_bits(), student_tails(-t, 7.5).to_bits());
        }
        assert_eq!(student_tails(f64::INFINITY, 3.0), 0.0);
    }

    /// Fisher and Yates 1938, table III.
    #[test]
    fn quantiles_agree_with_the_table() {
        const TABLE: [f64; 30] = [
            12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
            2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
        ];
        for (freedom, quantile) in (1..).zip(TABLE) {
            near(student_quantile(f64::from(freedom)), quantile, 5.01e-4);
        }
        for (freedom, quantile) in [(40.0, 2.021), (60.0, 2.000), (120.0, 1.980), (1e7, 1.960)] {
            near(student_quantile(freedom), quantile, 5.01e-4);
        }
    }

    #[test]
    fn bounds_agree_with_tables() {
        // Two-sided 0.01: Fisher and Yates 1938, table III.
        for (freedom, bound) in [(1.0, 63.657), (5.0, 4.032), (10.0, 3.169), (30.0, 2.750)] {
            near(student_bound(freedom, 0.01), bound, 5.01e-4);
        }
        assert_eq!(student_bound(7.0, 0.05).to_bits(), student_quantile(7.0).to_bits());
    }

    /// The 5 % points of F in common tables (Snedecor 1934), and the square of t.
    #[test]
    fn ratios_of_variances_agree_with_the_table() {
        for (above, below, point) in [(1.0, 10.0, 4.965), (4.0, 20.0, 2.866), (9.0, 9.0, 3.179), (2.0, 60.0, 3.150)] {
            near(fisher_tail(point, above, below), 0.05, 1e-4);
        }
        near(fisher_tail(2.5 * 2.5, 1.0, 8.0), student_tails(2.5, 8.0), 1e-14);
        assert_eq!((fisher_tail(0.0, 3.0, 4.0), fisher_tail(f64::INFINITY, 3.0, 4.0)), (1.0, 0.0));
    }
}
