//! Figures as SVG: bands below, lines above, no smoothing; and the effects of a screen. Written by hand, because a plotting
//! crate rounds to whole pixels, which turns smooth lines into steps.

mod effects;
mod map;

use std::fmt::Write as _;

pub use effects::{HalfNormal, MainEffect, MainEffects};
pub use map::map;

use crate::{
    math::ln,
    report::{Drawn, Figure, Point, Series},
    text::thousands,
};

/// Pixels of the picture without its legend, and of the space around the axes.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 418.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 58.0;

/// Pixels from one row of the legend to the next.
const ROW: f64 = 22.0;

/// Colours that people with colour blindness can distinguish (Okabe and Ito 2008, with two darker ones instead of their
/// yellow and black), and the dashes of lines if there are more curves than colours.
const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444", "#882255"];
const DASHES: [&str; 3] = ["", " stroke-dasharray=\"7 3\"", " stroke-dasharray=\"2 3\""];

/// From this number of curves on, bands would hide one another: such a figure has no bands, and the curves' names are
/// at their ends.
const CROWD: usize = COLOURS.len() + 1;

/// What a curve and its band are, and the width of this text in pixels; what a curve is without bands.
const NOTE: &str = "line: mean; band: 10th to 90th percentile";
const NOTE_WIDTH: f64 = 250.0;
const NOTE_OF_CROWD: &str = "line: mean";

/// Pixels from one name to the next at the ends of curves, and between the axes and these names.
const NAME: f64 = 16.0;
const GAP: f64 = 30.0;

/// The look of a curve's line.
fn stroke(index: usize) -> String {
    let (colour, dashes) = (COLOURS[index % COLOURS.len()], DASHES[index / COLOURS.len() % DASHES.len()]);
    format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.2\" stroke-linejoin=\"round\"{dashes}")
}

/// The look of a curve's band, or of dots.
fn fill(index: usize, opacity: f64) -> String {
    format!("fill=\"{}\" fill-opacity=\"{opacity}\"", COLOURS[index % COLOURS.len()])
}

/// A range of values with ticks at round numbers.
struct Axis {
    low: f64,
    high: f64,
    step: f64,
    /// Whether values are exponents of ten.
    exponents: bool,
}

/// The largest power of ten that is not above this positive value.
fn power_of_ten(value: f64) -> f64 {
    let mut power = 1.0;
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
    fn new(low: f64, high: f64, count: f64, least: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        let rough = ((high - low) / count).max(least);
        let magnitude = power_of_ten(rough);
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|nice| nice * magnitude).find(|step| *step >= rough * 0.999);
        let step = step.unwrap_or(10.0 * magnitude);
        Self { low: (low / step).floor() * step, high: (high / step).ceil() * step, step, exponents: false }
    }

    /// The horizontal axis of values from `left` to `right`: of rounds, or of functions if one is negative, or of dots
    /// anywhere.
    fn across(left: f64, right: f64, dots: bool) -> Self {
        if dots {
            return Self::new(left, right, 8.0, 1e-9);
        }
        let (left, right) = (left.min(0.0), right.max(1.0));
        // Rounds are counted in whole numbers.
        let step = if left < 0.0 { 1e-9 } else { 1.0 };
        Self { high: right, ..Self::new(left, right, 10.0, step) }
    }

    fn share(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        let count = ((self.high - self.low) / self.step).round() as i64;
        (0..=count).map(|index| self.low + index as f64 * self.step)
    }

    /// Lines across the picture at the ticks of a vertical axis, with their labels; `down` places a value.
    fn grid(&self, left: f64, right: f64, down: impl Fn(f64) -> f64) -> String {
        let line = |tick: f64| {
            let (down, label) = (down(tick), self.label(tick));
            format!(
                "<path d=\"M{left:.1} {down:.1}H{right:.1}\" stroke=\"#e3e3e3\"/>\n\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                left - 8.0,
                down + 4.5
            )
        };
        self.ticks().map(line).collect::<Vec<String>>().join("\n")
    }

    fn label(&self, value: f64) -> String {
        let decimals =
            (0..6).find(|decimals| self.step * f64::from(10_u32.pow(*decimals)) >= 1.0 - 1e-9).unwrap_or(6) as usize;
        if self.exponents {
            return format!("1e{value:.0}");
        }
        let text = format!("{value:.decimals$}");
        match text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') {
            true => "0".into(),
            false if decimals == 0 && value >= 1000.0 => thousands(value as u64),
            false => text,
        }
    }
}

/// The beginning of a picture of this size: its background and its title.
fn head(title: &str, width: f64, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" fill=\"#333\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"28\" font-size=\"17\" font-weight=\"bold\">{}</text>\n",
        escape(title)
    )
}

/// The picture of a figure.
#[must_use]
pub fn svg(figure: &Figure) -> String {
    let exponents;
    let (y_log, dots) = (figure.drawn == Drawn::Powers, figure.drawn == Drawn::Dots);
    let explained = if matches!(figure.drawn, Drawn::Means | Drawn::Powers) { NOTE } else { "" };
    let figure = match y_log {
        true => {
            exponents = exponents_of(figure);
            &exponents
        }
        false => figure,
    };
    let points = || figure.series.iter().flat_map(|series| &series.points);
    let least = |value: fn(&Point) -> f64| points().map(value).fold(f64::INFINITY, f64::min);
    let most = |value: fn(&Point) -> f64| points().map(value).fold(f64::NEG_INFINITY, f64::max);
    let x = Axis::across(least(|point| point.x), most(|point| point.x), dots);
    let crowded = figure.series.len() >= CROWD;
    let (bottom, top) = figure.y_range.unwrap_or_else(|| match crowded {
        true => (least(|point| point.mean), most(|point| point.mean)),
        false => (least(|point| point.low), most(|point| point.high)),
    });
    let y = Axis { exponents: y_log, ..Axis::new(bottom, top, 6.0, if y_log { 1.0 } else { 1e-9 }) };
    let (legend, rows, aside, more) = if crowded {
        let longest = figure.series.iter().map(|series| text_width(&series.name)).fold(0.0, f64::max);
        let more = NAME * figure.series.len() as f64 - (HEIGHT - TOP - BOTTOM);
        let note = if explained.is_empty() { String::new() } else { note(0.0, NOTE_OF_CROWD) };
        (note, 1.0, GAP + longest, more.max(0.0))
    } else {
        // A curve outside a given range keeps its colour, but is not in the legend.
        let seen = |series: &&Series| series.points.iter().any(|point| point.high >= y.low && point.low <= y.high);
        let (legend, rows) = legend(figure.series.iter().enumerate().filter(|(_, series)| seen(series)), explained);
        (legend, rows, 0.0, 0.0)
    };
    let (top, width, height) = (TOP + ROW * rows, WIDTH + aside, HEIGHT + ROW * rows + more);
    let place = |px: f64, py: f64| {
        let right = LEFT + x.share(px) * (WIDTH - LEFT - RIGHT);
        let down = height - BOTTOM - y.share(py) * (height - top - BOTTOM);
        (right, down)
    };
    let mut text = head(&figure.title, width, height);
    let mut add = |line: String| text.push_str(&(line + "\n"));
    add(y.grid(place(x.low, y.low).0, place(x.high, y.low).0, |tick| place(x.low, tick).1));
    for tick in x.ticks().filter(|tick| *tick <= x.high) {
        let (right, down) = place(tick, y.low);
        add(format!("<path d=\"M{right:.1} {down:.1}v5\" stroke=\"#999\"/>"));
        let label = x.label(tick);
        add(format!("<text x=\"{right:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>", down + 20.0));
    }
    let (left, base) = place(x.low, y.low);
    add(format!("<path d=\"M{left:.1} {base:.1}H{:.1}\" stroke=\"#999\"/>", WIDTH - RIGHT));
    let ((left, down), (right, up)) = (place(x.low, y.low), place(x.high, y.high));
    // Values outside a given range are not shown.
    let (inside, width) = (down - up, right - left);
    add(format!(
        "<clipPath id=\"axes\"><rect x=\"{left}\" y=\"{up}\" width=\"{width}\" height=\"{inside}\"/></clipPath>\n\
         <g clip-path=\"url(#axes)\">"
    ));
    for (index, Series { points, .. }) in figure.series.iter().enumerate().filter(|_| !crowded && !dots) {
        let high = points.iter().map(|p| place(p.x, p.high));
        let band = path(high.chain(points.iter().rev().map(|p| place(p.x, p.low))));
        add(format!("<path d=\"{band}Z\" {}/>", fill(index, 0.15)));
    }
    for (index, series) in figure.series.iter().enumerate() {
        let points = series.points.iter().map(|p| place(p.x, p.mean));
        match dots {
            true => add(circles(index, points)),
            false => add(format!("<path d=\"{}\" {}/>", path(points), stroke(index))),
        }
    }
    add("</g>".into());
    if crowded {
        let end = |series: &Series| {
            let last = series.points.last();
            last.map_or((left, down), |point| place(point.x, point.mean.max(y.low).min(y.high)))
        };
        add(names(&figure.series, &figure.series.iter().map(end).collect::<Vec<_>>(), (up, down)));
    }
    add(legend);
    add(labels(figure, top, height));
    text + "</svg>\n"
}

/// Dots at these places.
fn circles(index: usize, places: impl Iterator<Item = (f64, f64)>) -> String {
    let look = fill(index, 0.7);
    let dot = |(right, down)| format!("<circle cx=\"{right:.2}\" cy=\"{down:.2}\" r=\"2.6\" {look}/>");
    places.map(dot).collect::<Vec<String>>().join("\n")
}

/// The same figure with the exponents of ten of its values.
fn exponents_of(figure: &Figure) -> Figure {
    let exponent = |value: f64| ln(value) / ln(10.0);
    let point = |point: &Point| Point {
        mean: exponent(point.mean),
        low: exponent(point.low),
        high: exponent(point.high),
        ..*point
    };
    let series =
        |series: &Series| Series { name: series.name.clone(), points: series.points.iter().map(point).collect() };
    Figure { series: figure.series.iter().map(series).collect(), ..figure.clone() }
}

/// The labels of the axes, for a picture whose axes begin at `top` and which ends at `height`.
fn labels(figure: &Figure, top: f64, height: f64) -> String {
    let (right, down) = ((LEFT + WIDTH - RIGHT) / 2.0, (top + height - BOTTOM) / 2.0);
    format!(
        "<text x=\"{right}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n\
         <text transform=\"translate(20 {down}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        height - 14.0,
        escape(&figure.x_label),
        escape(&figure.y_label)
    )
}

fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut path = String::new();
    for (index, (right, down)) in points.enumerate() {
        let letter = if index == 0 { 'M' } else { 'L' };
        // Writing to a string cannot fail.
        let _ = write!(path, "{letter}{right:.2} {down:.2}");
    }
    path
}

/// The names of the curves, in rows above the axes where they hide nothing, then what lines are; and the number of rows.
fn legend<'a>(series: impl Iterator<Item = (usize, &'a Series)>, explained: &str) -> (String, f64) {
    let (mut right, mut row, mut text) = (LEFT, 0.0, String::new());
    for (index, series) in series {
        let width = 52.0 + text_width(&series.name);
        if right > LEFT && right + width > WIDTH {
            (right, row) = (LEFT, row + 1.0);
        }
        let down = TOP + ROW * row;
        let _ = writeln!(
            text,
            "<path d=\"M{right:.1} {:.1}h22v10h-22z\" {}/><path d=\"M{right:.1} {down:.1}h22\" {}/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            down - 5.0,
            fill(index, 0.15),
            stroke(index),
            right + 28.0,
            down + 4.5,
            escape(&series.name)
        );
        right += width;
    }
    // To the right of the last name if there is room.
    let end = WIDTH - RIGHT;
    if right + NOTE_WIDTH > end && !explained.is_empty() {
        row += 1.0;
    }
    if !explained.is_empty() {
        text.push_str(&note(row, explained));
    }
    (text, row + 1.0)
}

/// The explanation of lines, at the end of a row of the legend.
fn note(row: f64, text: &str) -> String {
    let (end, down) = (WIDTH - RIGHT, TOP + ROW * row + 4.5);
    format!("<text x=\"{end}\" y=\"{down:.1}\" text-anchor=\"end\" font-size=\"11\" fill=\"#777\">{text}</text>")
}

/// The names of many curves, right of the axes, in the order of the curves' ends.
fn names(series: &[Series], ends: &[(f64, f64)], range: (f64, f64)) -> String {
    let mut order: Vec<usize> = (0..series.len()).collect();
    order.sort_by(|one, other| ends[*one].1.total_cmp(&ends[*other].1));
    let heights = apart(&order.iter().map(|index| ends[*index].1).collect::<Vec<f64>>(), range);
    let (right, mut text) = (WIDTH - RIGHT + GAP, String::new());
    for (index, height) in order.into_iter().zip(heights) {
        let (x, y) = ends[index];
        let _ = writeln!(
            text,
            "<path d=\"M{x:.1} {y:.1}L{:.1} {height:.1}\" stroke=\"#ccc\"/><path d=\"M{:.1} {height:.1}h16\" {}/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            right - 18.0,
            right - 18.0,
            stroke(index),
            right + 4.0,
            height + 4.5,
            escape(&series[index].name)
        );
    }
    text
}

/// Ascending heights at least [`NAME`] apart between `up` and `down`, with the least squares of distances from the
/// given heights, which ascend too. Heights that would be too near to one another are spaced evenly around their mean.
fn apart(heights: &[f64], (up, down): (f64, f64)) -> Vec<f64> {
    let last = heights.len().saturating_sub(1) as f64;
    // For each group the sum and the count of heights, minus the distances of the names before.
    let mut groups: Vec<(f64, usize)> = Vec::new();
    for (index, height) in heights.iter().enumerate() {
        let (mut sum, mut count) = (height - NAME * index as f64, 1);
        while let Some(above) = groups.pop_if(|above| above.0 * count as f64 >= sum * above.1 as f64) {
            (sum, count) = (sum + above.0, count + above.1);
        }
        groups.push((sum, count));
    }
    let means = groups.into_iter().flat_map(|(sum, count)| std::iter::repeat_n(sum / count as f64, count));
    let inside = means.map(|mean| mean.min(down - NAME * last).max(up));
    inside.enumerate().map(|(index, mean)| mean + NAME * index as f64).collect()
}

/// The approximate width of a text in pixels.
fn text_width(text: &str) -> f64 {
    6.8 * text.chars().count() as f64
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {

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
            y_range: None,
            drawn: Drawn::Means,
            series: vec![Series { name: "best".into(), points: (1..=20).map(point).collect() }],
        }
    }

    #[test]
    fn the_picture_is_pinned() {
        insta::assert_snapshot!(svg(&figure()));
    }

    /// Functions have values at negative x too, and nothing is said of means and bands.
    #[test]
    fn a_graph_has_negative_values_and_no_bands() {
        let point = |index: i32| {
            let (x, mean) = (f64::from(index) / 10.0, f64::from(index * index));
            Point { x, mean, low: mean, high: mean }
        };
        let series = vec![Series { name: "square".into(), points: (-10..=10).map(point).collect() }];
        let text = svg(&Figure { series, drawn: Drawn::Lines, ..figure() });
        assert!(text.contains(">-0.8<") && text.contains(">0.8<") && !text.contains("band"), "{text}");
        // The vertex is in the middle.
        let middle = format!("L{:.2} ", (LEFT + WIDTH - RIGHT) / 2.0);
        assert!(text.contains(&middle), "{text}");
    }

    /// Dots may lie anywhere, and nothing joins them.
    #[test]
    fn dots_are_apart() {
        let point = |x: f64| Point { x, mean: 2.0 * x, low: 2.0 * x, high: 2.0 * x };
        let series = vec![Series { name: "front".into(), points: vec![point(100.25), point(100.5), point(101.0)] }];
        let text = svg(&Figure { series, drawn: Drawn::Dots, ..figure() });
        assert_eq!((text.matches("<circle").count(), text.matches(" L").count()), (3, 0), "{text}");
        assert!(text.contains(">100.2<") && !text.contains(">0<"), "{text}");
    }

    /// Many long names: rows that stay within the picture, and distinct looks.
    #[test]
    fn a_long_legend_has_rows() {
        let series = |index: i32| Series { name: format!("a rather long name, {index}"), points: Vec::new() };
        let (text, rows) = legend((0..10).map(series).collect::<Vec<Series>>().iter().enumerate(), NOTE);
        insta::assert_snapshot!("legend", text);
        assert_eq!(rows, 4.0);
        let looks: std::collections::BTreeSet<String> = (0..24).map(stroke).collect();
        assert_eq!(looks.len(), 24);
    }

    #[test]
    fn many_curves_have_names_at_their_ends_and_no_bands() {
        let points = figure().series.remove(0).points;
        let series = |index: u32| Series { name: format!("curve {index}"), points: points.clone() };
        let crowd = Figure { series: (0..30).map(series).collect(), ..figure() };
        let text = svg(&crowd);
        assert_eq!((text.matches(">curve ").count(), text.matches("fill-opacity").count()), (30, 0));
        let few = Figure { series: (0..8).map(series).collect(), ..figure() };
        assert_eq!(svg(&few).matches("fill-opacity").count(), 16);
    }

    #[test]
    fn a_curve_beyond_the_range_is_not_in_the_legend_and_others_keep_their_colours() {
        let series = |name: &str, mean: f64| {
            let points = vec![Point { x: 1.0, mean, low: mean, high: mean }];
            Series { name: name.into(), points }
        };
        let series = vec![series("below", 5.0), series("within", 95.0)];
        let text = svg(&Figure { series, y_range: Some((90.0, 100.0)), ..figure() });
        assert!(!text.contains(">below<") && text.contains(">within<"), "{text}");
        let legend = text.lines().find(|line| line.contains(">within<")).unwrap();
        assert!(legend.contains(COLOURS[1]), "{legend}");
    }

    #[test]
    fn names_are_apart_and_near_their_ends() {
        assert_eq!(apart(&[50.0, 90.0, 90.0, 90.0, 200.0], (0.0, 300.0)), [50.0, 74.0, 90.0, 106.0, 200.0]);
        assert_eq!(apart(&[5.0, 5.0, 100.0, 100.0], (0.0, 100.0)), [0.0, 16.0, 84.0, 100.0]);
        assert!(apart(&[], (0.0, 100.0)).is_empty());
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
