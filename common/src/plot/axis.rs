//! Axes: ranges of values, with ticks at round numbers.

use std::f64::consts::LOG10_2;

use crate::text::thousands;

/// A range of values with ticks at round numbers.
pub(super) struct Axis {
    pub(super) low: f64,
    pub(super) high: f64,
    /// The values that have ticks, ascending. Some may be above `high`.
    ticks: Vec<f64>,
    /// The distance between ticks. Without it, values are exponents of ten.
    step: Option<f64>,
}

/// The numbers within a decade that have ticks, with their logarithms to base ten.
const OF_DECADE: [(u32, f64); 3] = [(1, 0.0), (2, LOG10_2), (5, 1.0 - LOG10_2)];
/// From this number of decades on, only powers of ten have ticks; from the next number on, only some of them.
const DECADES: f64 = 2.0;
const DECADES_MANY: f64 = 6.0;
/// The relative error that rounding may cause.
const NEAR: f64 = 1e-9;

/// Labels have exponents for values from this size on, and if ticks are closer together than the next size.
const LONG: f64 = 1e7;
const SHORT: f64 = 1e-5;
/// The smallest step for values that are not counts.
pub(super) const STEP_MIN: f64 = 1e-300;

/// The largest power of ten that is not above this positive value.
fn power_of_ten(value: f64) -> f64 {
    let (value, mut power) = (value.min(f64::MAX), 1.0);
    while power > value {
        power /= 10.0;
    }
    while 10.0 * power <= value {
        power *= 10.0;
    }
    power
}

impl Axis {
    /// Covers values from `low` to `high` with about `count` ticks; `least` is the smallest step.
    pub(super) fn new(low: f64, high: f64, count: f64, least: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        // Two numbers that hardly differ need room between them. The difference of two others may be too large for a float.
        let high = high.max(low + NEAR * low.abs()).min(f64::MAX);
        let low = low.min(high - NEAR * high.abs()).max(f64::MIN);
        let span = high - low;
        let rough = (if span.is_finite() { span / count } else { high / count - low / count }).max(least);
        let magnitude = power_of_ten(rough);
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|nice| nice * magnitude).find(|step| *step >= rough * 0.999);
        let step = step.unwrap_or(10.0 * magnitude).min(f64::MAX);
        let (low, high) = (((low / step).floor() * step).max(f64::MIN), ((high / step).ceil() * step).min(f64::MAX));
        let count = (high / step - low / step).round() as i64;
        // Computed in eighths, because so many steps may be too large for a float.
        let tick = |index: i64| (8.0 * (low / 8.0 + index as f64 * (step / 8.0))).min(f64::MAX);
        let ticks = (0..=count).map(tick).collect();
        Self { low, high, ticks, step: Some(step) }
    }

    /// The same axis, ending at this value instead of at a tick.
    pub(super) fn ending(self, high: f64) -> Self {
        Self { high, ..self }
    }

    /// A horizontal axis for values from `left` to `right`, with about `count` ticks. The values are rounds; or those of
    /// functions, if one is negative; or those of dots, which may be anywhere.
    pub(super) fn across(left: f64, right: f64, dots: bool, count: f64) -> Self {
        if dots {
            return Self::new(left, right, count, STEP_MIN);
        }
        let (left, right) = (left.min(0.0), right.max(1.0));
        // Rounds are whole numbers.
        let step = if left < 0.0 { STEP_MIN } else { 1.0 };
        Self::new(left, right, count, step).ending(right)
    }

    /// Covers powers of ten with exponents from `low` to `high`.
    pub(super) fn powers(low: f64, high: f64) -> Self {
        if high - low > DECADES_MANY {
            return Self { step: None, ..Self::new(low, high, DECADES_MANY, 1.0) };
        }
        let round = |value: f64| OF_DECADE.map(|(_, part)| value.floor() + part);
        let below = |value: f64| round(value).into_iter().rfind(|tick| *tick <= value + NEAR);
        let above = |value: f64| round(value).into_iter().find(|tick| *tick >= value - NEAR);
        let low = below(low).unwrap_or(low);
        let high = high.max(low + 0.1);
        let high = above(high).unwrap_or(high.floor() + 1.0);
        let decades = low.floor() as i64..=high.floor() as i64;
        let few = high - low < DECADES;
        let of = |decade: i64| OF_DECADE.into_iter().take(if few { 3 } else { 1 }).map(move |it| decade as f64 + it.1);
        let ticks = decades.flat_map(of).filter(|tick| (low - NEAR..=high + NEAR).contains(tick)).collect();
        Self { low, high, ticks, step: None }
    }

    pub(super) fn share(&self, value: f64) -> f64 {
        // Computed in halves, because the whole range may be too large for a float.
        (value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0)
    }

    pub(super) fn ticks(&self) -> impl Iterator<Item = f64> {
        // Computed in halves, as above.
        let above = self.high + NEAR * (self.high / 2.0 - self.low / 2.0);
        self.ticks.iter().copied().filter(move |tick| *tick <= above)
    }

    /// Lines across the picture at the ticks of a vertical axis, with their labels if there is room; `down` gives the height
    /// of a value.
    pub(super) fn grid(&self, left: f64, right: f64, labelled: bool, down: impl Fn(f64) -> f64) -> String {
        let across = |tick: f64| format!("M{left:.1} {:.1}H{right:.1}", down(tick));
        let across: String = self.ticks().map(across).collect();
        let label = |tick: f64| {
            let (x, y, label) = (left - 8.0, down(tick) + 4.5, self.label(tick));
            // Next to a longer label, such as 1.5e-14, there would be no room for the axis's name.
            let size = if label.len() > 6 { " font-size=\"11\"" } else { "" };
            format!("\n<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"end\"{size}>{label}</text>")
        };
        let labels: String = self.ticks().filter(|_| labelled).map(label).collect();
        format!("<path d=\"{across}\" stroke=\"#e3e3e3\"/>{labels}")
    }

    pub(super) fn label(&self, value: f64) -> String {
        let Some(step) = self.step else { return power(value) };
        if value.abs() < step * NEAR {
            return "0".into();
        }
        if value.abs() >= LONG || step < SHORT {
            // As many decimals as distinguish two ticks.
            let (magnitude, step) = (power_of_ten(value.abs()), power_of_ten(step * (1.0 + NEAR)));
            let mut powers = std::iter::successors(Some(step), |power| Some(10.0 * power)).take(16);
            let decimals = powers.position(|power| power >= magnitude * (1.0 - NEAR)).unwrap_or(16);
            return format!("{value:.decimals$e}");
        }
        let decimals =
            (0..6).find(|decimals| step * f64::from(10_u32.pow(*decimals)) >= 1.0 - NEAR).unwrap_or(6) as usize;
        let text = format!("{value:.decimals$}");
        match text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') {
            true => "0".into(),
            false if decimals == 0 && value.abs() >= 1000.0 => {
                format!("{}{}", if value < 0.0 { "-" } else { "" }, thousands(value.abs() as u64))
            }
            false => text,
        }
    }
}

/// The label of a tick with this exponent of ten: 0.05, 2, 1,000, or 1e-8.
fn power(exponent: f64) -> String {
    let decade = (exponent + NEAR).floor();
    let part = exponent - decade;
    let (number, _) =
        OF_DECADE.into_iter().min_by(|a, b| (a.1 - part).abs().total_cmp(&(b.1 - part).abs())).unwrap_or((1, 0.0));
    match decade as i32 {
        whole @ 0..=4 => thousands(u64::from(number) * 10_u64.pow(whole.unsigned_abs())),
        small @ -3..0 => format!("0.{number:0>width$}", width = small.unsigned_abs() as usize),
        other => format!("{number}e{other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_that_cover_the_values() {
        for (low, high) in [(-1.3, 0.2), (0.0, 0.0), (17.0, 17.3), (-650.0, 12.0)] {
            let axis = Axis::new(low, high, 6.0, 1e-9);
            assert!(axis.low <= low && axis.high >= high && axis.high > axis.low, "{low} to {high}");
            assert!((2..=12).contains(&axis.ticks().count()), "{low} to {high}: {:?}", axis.ticks);
        }
    }

    /// For any finite values, ticks and labels are distinct numbers that cover the values.
    #[test]
    fn the_largest_floats_have_an_axis() {
        let (most, wide) = (f64::MAX, 9_007_199_254_740_992.0);
        let all =
            [(-most, most), (0.0, most), (most, most), (-most, -most), (1e200, 1.1e200), (wide, wide), (-wide, -wide)];
        for (low, high) in all {
            for count in [2.0, 6.0] {
                let axis = Axis::new(low, high, count, NEAR);
                let (shares, ticks) = ([low, high].map(|value| axis.share(value)), axis.ticks().collect::<Vec<f64>>());
                assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{low} to {high}: {shares:?}");
                assert!((1..=12).contains(&ticks.len()) && ticks.iter().all(|tick| tick.is_finite()), "{ticks:?}");
                let mut labels: Vec<String> = ticks.iter().map(|tick| axis.label(*tick)).collect();
                labels.dedup();
                assert_eq!(labels.len(), ticks.len(), "{low} to {high}: {labels:?}");
            }
        }
        assert_eq!(Axis::new(0.0, 1.2e308, 6.0, NEAR).label(1.2e308), "1.2e308");
    }

    #[test]
    fn logarithmic_ticks_are_familiar_numbers() {
        let labels = |low: f64, high: f64| {
            let axis = Axis::powers(low, high);
            assert!(axis.low <= low && axis.high >= high && axis.high > axis.low, "{low} to {high}");
            axis.ticks().map(|tick| axis.label(tick)).collect::<Vec<String>>().join(" ")
        };
        assert_eq!(labels(-1.3, 1.66), "0.1 1 10");
        assert_eq!(labels(0.1, 1.2), "1 2 5 10 20");
        assert_eq!(labels(-2.0, -2.0), "0.01 0.02");
        assert_eq!(labels(-9.5, 3.2), "1e-10 1e-5 1 1e5");
    }
}
