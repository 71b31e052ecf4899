//! Figures as SVG: bands below, lines above, no smoothing; the effects of a screen; weights of networks. Written by hand,
//! because a plotting crate rounds to whole pixels, which turns smooth lines into steps.

mod diagram;
mod effects;
mod map;

use std::fmt::Write as _;

pub use diagram::{Diagram, Mark, Panel, diagram};
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

/// Pixels below the title for what lines and bands are.
const NOTE: f64 = 22.0;

/// Colours that people with colour blindness can distinguish (after Okabe and Ito 2008), each with a contrast of at least
/// 3 to 1 on white, and the dashes of lines if there are more curves than colours.
const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#008a64", "#b8578f", "#a6761d", "#3390cc", "#444444", "#882255"];
const DASHES: [&str; 3] = ["", " stroke-dasharray=\"7 3\"", " stroke-dasharray=\"2 3\""];

/// From this number of curves on, bands would hide one another: then only the last point's band is drawn, beside the axes;
/// and from the next number on none.
const MANY: usize = 5;
const CROWD: usize = COLOURS.len() + 1;

/// Pixels from one name to the next at the ends of curves, between the axes and these names, and from one band beside the
/// axes to the next.
const NAME: f64 = 16.0;
const GAP: f64 = 50.0;
const BESIDE: f64 = 3.0;

/// The look of a curve's line.
fn stroke(index: usize) -> String {
    let (colour, dashes) = (COLOURS[index % COLOURS.len()], DASHES[index / COLOURS.len() % DASHES.len()]);
    format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.2\" stroke-linejoin=\"round\"{dashes}")
}

/// The look of a name's mark for dots.
fn stroke_of_dots(index: usize) -> String {
    format!("stroke=\"{}\" stroke-opacity=\"0.7\"", COLOURS[index % COLOURS.len()])
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

/// The beginning of a picture of this size: what it is in words, its background and its title.
fn head(title: &str, description: &str, width: f64, height: f64) -> String {
    head_at(LEFT, title, description, width, height)
}

/// The same with the title at this distance from the left edge.
fn head_at(left: f64, title: &str, description: &str, width: f64, height: f64) -> String {
    let title = escape(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" fill=\"#333\">\n\
         <title>{title}</title>\n<desc>{}</desc>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"{left}\" y=\"28\" font-size=\"17\" font-weight=\"bold\">{title}</text>\n",
        escape(description)
    )
}

/// How bands are drawn.
#[derive(Clone, Copy, PartialEq)]
enum Bands {
    /// Around the lines.
    Around,
    /// Of the last points, beside the axes.
    AtTheEnd,
    Nowhere,
}

impl Bands {
    fn of(figure: &Figure) -> Self {
        match (figure.drawn, figure.series.len()) {
            (Drawn::Lines | Drawn::Dots, _) | (_, CROWD..) => Self::Nowhere,
            (_, MANY..) => Self::AtTheEnd,
            _ => Self::Around,
        }
    }

    fn note(self, figure: &Figure) -> &'static str {
        match (self, figure.drawn) {
            (_, Drawn::Lines | Drawn::Dots) => "",
            (Self::Around, _) => "line: mean; band: 10th to 90th percentile",
            (Self::AtTheEnd, _) => "line: mean; bar at its end: 10th to 90th percentile",
            (Self::Nowhere, _) => "line: mean",
        }
    }
}

/// What a picture shows, for those who do not see it: its axes, and where each curve begins and ends.
fn description(figure: &Figure) -> String {
    let curve = |Series { name, points }: &Series| match (points.first(), points.last()) {
        (Some(first), Some(last)) if figure.drawn != Drawn::Dots => {
            format!("{name}: from {} at {} to {} at {}", first.mean, first.x, last.mean, last.x)
        }
        _ => format!("{name}: {} points", points.len()),
    };
    let curves: Vec<String> = figure.series.iter().map(curve).collect();
    let references = figure.references.iter().map(|(name, value)| format!("; {name}: {value}"));
    let references: Vec<String> = references.collect();
    format!("{} by {}. {}{}.", figure.y_label, figure.x_label, curves.join("; "), references.concat())
}

/// The axes that show all of it, or the given range.
fn scales(figure: &Figure, bands: Bands) -> (Axis, Axis) {
    let (y_log, dots) = (figure.drawn == Drawn::Powers, figure.drawn == Drawn::Dots);
    let points = || figure.series.iter().flat_map(|series| &series.points);
    let least = |value: fn(&Point) -> f64| points().map(value).fold(f64::INFINITY, f64::min);
    let most = |value: fn(&Point) -> f64| points().map(value).fold(f64::NEG_INFINITY, f64::max);
    let (bottom, top) = figure.y_range.unwrap_or_else(|| {
        let (bottom, top) = match bands {
            Bands::Around => (least(|point| point.low), most(|point| point.high)),
            Bands::AtTheEnd | Bands::Nowhere => (least(|point| point.mean), most(|point| point.mean)),
        };
        let also = |value: f64, pick: fn(f64, f64) -> f64| figure.references.iter().map(|it| it.1).fold(value, pick);
        (also(bottom, f64::min), also(top, f64::max))
    });
    let x = Axis::across(least(|point| point.x), most(|point| point.x), dots);
    (x, Axis { exponents: y_log, ..Axis::new(bottom, top, 6.0, if y_log { 1.0 } else { 1e-9 }) })
}

/// The picture of a figure.
#[must_use]
pub fn svg(figure: &Figure) -> String {
    svg_with_id(figure, &format!("axes-{}", escape(&figure.name)))
}

/// The same for a document that holds several pictures: the name of this one's axes occurs once in it. The name is letters,
/// digits and dashes.
#[must_use]
pub fn svg_with_id(figure: &Figure, axes: &str) -> String {
    let described = description(figure);
    let exponents = (figure.drawn == Drawn::Powers).then(|| exponents_of(figure));
    let figure = exponents.as_ref().unwrap_or(figure);
    let bands = Bands::of(figure);
    let (x, y) = scales(figure, bands);
    let ends = ends(figure, &y);
    let longest = ends.iter().map(|end| text_width(end.name)).fold(0.0, f64::max);
    let more = NAME * ends.len() as f64 - (HEIGHT - TOP - BOTTOM);
    let note = bands.note(figure);
    let top = TOP + if note.is_empty() { 0.0 } else { NOTE };
    let (width, height) = (WIDTH + GAP + longest, HEIGHT + top - TOP + more.max(0.0));
    let place = |px: f64, py: f64| {
        let right = LEFT + x.share(px) * (WIDTH - LEFT - RIGHT);
        let down = height - BOTTOM - y.share(py) * (height - top - BOTTOM);
        (right, down)
    };
    let mut text = head(&figure.title, &described, width, height);
    let mut add = |line: String| text.push_str(&(line + "\n"));
    add(format!("<text x=\"{LEFT}\" y=\"{}\" font-size=\"12\" fill=\"#666\">{note}</text>", TOP - 3.0));
    add(y.grid(place(x.low, y.low).0, place(x.high, y.low).0, |tick| place(x.low, tick).1));
    for tick in x.ticks().filter(|tick| *tick <= x.high) {
        let (right, down) = place(tick, y.low);
        add(format!("<path d=\"M{right:.1} {down:.1}v5\" stroke=\"#999\"/>"));
        let label = x.label(tick);
        add(format!("<text x=\"{right:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>", down + 20.0));
    }
    let ((left, down), (right, up)) = (place(x.low, y.low), place(x.high, y.high));
    add(format!("<path d=\"M{left:.1} {down:.1}H{:.1}\" stroke=\"#999\"/>", WIDTH - RIGHT));
    // Values outside a given range are not shown.
    let (inside, across) = (down - up, right - left);
    add(format!(
        "<clipPath id=\"{axes}\"><rect x=\"{left}\" y=\"{up}\" width=\"{across}\" height=\"{inside}\"/></clipPath>\n\
         <g clip-path=\"url(#{axes})\">"
    ));
    for (index, Series { points, .. }) in figure.series.iter().enumerate().filter(|_| bands == Bands::Around) {
        let high = points.iter().map(|p| place(p.x, p.high));
        let band = path(high.chain(points.iter().rev().map(|p| place(p.x, p.low))));
        add(format!("<path d=\"{band}Z\" {}/>", fill(index, 0.15)));
    }
    for (_, value) in &figure.references {
        let down = place(x.low, *value).1;
        add(format!("<path d=\"M{left:.1} {down:.1}H{right:.1}\" {REFERENCE}/>"));
    }
    for (index, series) in figure.series.iter().enumerate() {
        let points = series.points.iter().map(|p| place(p.x, p.mean));
        match figure.drawn {
            Drawn::Dots => add(circles(index, points)),
            _ => add(format!("<path d=\"{}\" {}/>", path(points), stroke(index))),
        }
    }
    add("</g>".into());
    let ends = ends.into_iter().map(|end| (place(end.x, end.y), end)).collect();
    add(names(ends, (up, down)));
    let inside = |value: f64| place(x.low, value.clamp(y.low, y.high)).1;
    if bands == Bands::AtTheEnd {
        for (index, last) in figure.series.iter().enumerate().filter_map(|(index, it)| Some((index, it.points.last()?)))
        {
            let (right, low, high) = (right + BESIDE * (index + 1) as f64, inside(last.low), inside(last.high));
            add(format!("<path d=\"M{right:.1} {low:.1}V{high:.1}\" {}/>", stroke(index)));
        }
    }
    add(labels(figure, top, height));
    text + "</svg>\n"
}

/// The look of a line for a known value.
const REFERENCE: &str = "stroke=\"#555\" stroke-width=\"1.2\" stroke-dasharray=\"5 4\"";

/// A name beside the axes, and the end of what has it.
struct End<'a> {
    name: &'a str,
    /// Attributes of its line.
    look: String,
    /// Where it ends, in the axes' units and within them.
    x: f64,
    y: f64,
}

/// The names of what can be seen: a curve outside a given range keeps its colour, but has no name.
fn ends<'a>(figure: &'a Figure, y: &Axis) -> Vec<End<'a>> {
    let dots = figure.drawn == Drawn::Dots;
    let curves = figure.series.iter().enumerate().filter_map(|(index, series)| {
        let last = series.points.last()?;
        let seen = series.points.iter().any(|point| point.high >= y.low && point.low <= y.high);
        let look = if dots { format!("{} stroke-width=\"5\"", stroke_of_dots(index)) } else { stroke(index) };
        seen.then(|| End { name: &series.name, look, x: last.x, y: last.mean.clamp(y.low, y.high) })
    });
    let known = figure.references.iter().filter(|(_, value)| (y.low..=y.high).contains(value));
    let right = figure.series.iter().flat_map(|series| &series.points).map(|point| point.x).fold(0.0, f64::max);
    let known = known.map(|(name, value)| End { name, look: REFERENCE.into(), x: right, y: *value });
    curves.chain(known).collect()
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
    let references = figure.references.iter().map(|(name, value)| (name.clone(), exponent(*value))).collect();
    Figure { series: figure.series.iter().map(series).collect(), references, ..figure.clone() }
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

/// Names right of the axes, in the order of the ends, whose places in the picture are given.
fn names(mut ends: Vec<((f64, f64), End<'_>)>, range: (f64, f64)) -> String {
    ends.sort_by(|one, other| one.0.1.total_cmp(&other.0.1));
    let heights = apart(&ends.iter().map(|(place, _)| place.1).collect::<Vec<f64>>(), range);
    let (right, mut text) = (WIDTH - RIGHT + GAP, String::new());
    for (((x, y), End { name, look, .. }), height) in ends.into_iter().zip(heights) {
        let _ = writeln!(
            text,
            "<path d=\"M{x:.1} {y:.1}L{:.1} {height:.1}\" stroke=\"#ddd\"/><path d=\"M{:.1} {height:.1}h16\" {look}/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            right - 18.0,
            right - 18.0,
            right + 4.0,
            height + 4.5,
            escape(name)
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
mod tests;
