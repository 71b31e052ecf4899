//! A figure as SVG: bands below, lines above, no smoothing. Written by hand: a plotting crate rounds to whole pixels,
//! which makes steps of smooth lines.

use std::fmt::Write as _;

use evoxo_common::finale::{Figure, Series};

/// Pixels of the picture, and of the space around the axes.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 72.0;
const BOTTOM: f64 = 58.0;

/// Colours that people who see colours differently can tell apart (Okabe and Ito 2008).
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/// A range of values with ticks at round numbers.
struct Axis {
    low: f64,
    high: f64,
    step: f64,
}

impl Axis {
    /// Covers values from `low` to `high` with about `count` ticks; `least` is the smallest step.
    fn new(low: f64, high: f64, count: f64, least: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        let rough = ((high - low) / count).max(least);
        let magnitude = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|nice| nice * magnitude).find(|step| *step >= rough * 0.999);
        let step = step.unwrap_or(10.0 * magnitude);
        Self { low: (low / step).floor() * step, high: (high / step).ceil() * step, step }
    }

    fn share(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        let count = ((self.high - self.low) / self.step).round() as i64;
        (0..=count).map(|index| self.low + index as f64 * self.step)
    }

    fn label(&self, value: f64) -> String {
        let decimals = (-self.step.log10().floor()).clamp(0.0, 6.0) as usize;
        let text = format!("{value:.decimals$}");
        if text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') { "0".into() } else { text }
    }
}

/// The picture of a figure.
pub(crate) fn svg(figure: &Figure) -> String {
    let points = || figure.series.iter().flat_map(|series| &series.points);
    let least = |value: fn(&evoxo_common::finale::Point) -> f64| points().map(value).fold(f64::INFINITY, f64::min);
    let most = |value: fn(&evoxo_common::finale::Point) -> f64| points().map(value).fold(f64::NEG_INFINITY, f64::max);
    let x = Axis { low: 0.0, ..Axis::new(0.0, most(|point| point.x), 10.0, 1.0) };
    let x = Axis { high: most(|point| point.x).max(1.0), ..x };
    let y = Axis::new(least(|point| point.low), most(|point| point.high), 6.0, 1e-9);
    let place = |px: f64, py: f64| {
        let right = LEFT + x.share(px) * (WIDTH - LEFT - RIGHT);
        let down = HEIGHT - BOTTOM - y.share(py) * (HEIGHT - TOP - BOTTOM);
        (right, down)
    };
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" fill=\"#333\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    let mut add = |line: String| text.push_str(&(line + "\n"));
    add(format!("<text x=\"{LEFT}\" y=\"28\" font-size=\"17\" font-weight=\"bold\">{}</text>", escape(&figure.title)));
    for tick in y.ticks() {
        let ((left, down), (right, _)) = (place(x.low, tick), place(x.high, tick));
        add(format!("<path d=\"M{left:.1} {down:.1}H{right:.1}\" stroke=\"#e3e3e3\"/>"));
        let label = y.label(tick);
        add(format!("<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>", left - 8.0, down + 4.5));
    }
    for tick in x.ticks().filter(|tick| *tick <= x.high) {
        let (right, down) = place(tick, y.low);
        add(format!("<path d=\"M{right:.1} {down:.1}v5\" stroke=\"#999\"/>"));
        let label = x.label(tick);
        add(format!("<text x=\"{right:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>", down + 20.0));
    }
    let (left, base) = place(x.low, y.low);
    add(format!("<path d=\"M{left:.1} {base:.1}H{:.1}\" stroke=\"#999\"/>", WIDTH - RIGHT));
    for (series, colour) in figure.series.iter().zip(COLOURS.iter().cycle()) {
        let band = path(
            series
                .points
                .iter()
                .map(|p| place(p.x, p.high))
                .chain(series.points.iter().rev().map(|p| place(p.x, p.low))),
        );
        add(format!("<path d=\"{band}Z\" fill=\"{colour}\" fill-opacity=\"0.18\"/>"));
    }
    for (series, colour) in figure.series.iter().zip(COLOURS.iter().cycle()) {
        let line = path(series.points.iter().map(|p| place(p.x, p.mean)));
        add(format!(
            "<path d=\"{line}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.2\" stroke-linejoin=\"round\"/>"
        ));
    }
    add(legend(&figure.series));
    let middle = (TOP + HEIGHT - BOTTOM) / 2.0;
    let x_middle = (LEFT + WIDTH - RIGHT) / 2.0;
    add(format!(
        "<text x=\"{x_middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
        HEIGHT - 14.0,
        escape(&figure.x_label)
    ));
    add(format!(
        "<text transform=\"translate(20 {middle}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        escape(&figure.y_label)
    ));
    text + "</svg>\n"
}

fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut path = String::new();
    for (index, (right, down)) in points.enumerate() {
        let letter = if index == 0 { 'M' } else { 'L' };
        // Writing to a text cannot fail.
        let _ = write!(path, "{letter}{right:.2} {down:.2}");
    }
    path
}

/// The names of the curves, in a row above the axes where they hide nothing.
fn legend(series: &[Series]) -> String {
    let mut right = LEFT;
    let mut text = String::new();
    for (series, colour) in series.iter().zip(COLOURS.iter().cycle()) {
        let _ = write!(
            text,
            "<path d=\"M{right:.1} 50h22\" stroke=\"{colour}\" stroke-width=\"2.2\"/>\
             <path d=\"M{right:.1} 45h22v10h-22z\" fill=\"{colour}\" fill-opacity=\"0.18\"/>\
             <text x=\"{:.1}\" y=\"54.5\">{}</text>",
            right + 28.0,
            escape(&series.name)
        );
        right += 52.0 + 7.0 * series.name.chars().count() as f64;
    }
    let end = WIDTH - RIGHT;
    text + &format!(
        "<text x=\"{end}\" y=\"54.5\" text-anchor=\"end\" fill=\"#777\">line: mean; band: 10th to 90th percentile</text>"
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use evoxo_common::finale::Point;

    use super::*;

    fn figure() -> Figure {
        let point = |index: u8| {
            let x = f64::from(index);
            Point { x, mean: -1.0 / x, low: -1.3 / x, high: -0.8 / x }
        };
        Figure {
            name: "t".into(),
            title: "a <title>".into(),
            x_label: "generation".into(),
            y_label: "points".into(),
            series: vec![Series { name: "best".into(), points: (1..=20).map(point).collect() }],
        }
    }

    #[test]
    fn the_picture_is_pinned() {
        insta::assert_snapshot!(svg(&figure()));
    }

    #[test]
    fn ticks_are_round_numbers_that_cover_the_values() {
        for (low, high) in [(-1.3, 0.2), (0.0, 0.0), (17.0, 17.3), (-650.0, 12.0)] {
            let axis = Axis::new(low, high, 6.0, 1e-9);
            assert!(axis.low <= low && axis.high >= high && axis.high > axis.low, "{low} to {high}");
            assert!(
                (2..=12).contains(&axis.ticks().count()),
                "{low} to {high}: {:?}",
                axis.ticks().collect::<Vec<_>>()
            );
        }
    }
}
