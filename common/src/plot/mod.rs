//! Figures as SVG: curves with their bands, effects of a screen, maps, weights of networks. Written by hand, because a
//! plotting crate rounds to whole pixels, which turns smooth lines into steps.

mod axis;
mod curves;
mod diagram;
mod effects;
mod frame;
mod look;
mod map;
mod panels;
mod sheet;

pub use diagram::{Diagram, Mark, Panel, diagram};
pub use effects::{HalfNormal, MainEffect, MainEffects};
pub use map::map;

use crate::{
    math::ln,
    report::{Drawn, Figure, Point, Reference, Series},
    text::number,
};

/// The most points of a curve that a picture with one panel can show: one for every two pixels.
const POINTS_MAX: usize = 310;

/// The most points of a curve that the picture of this figure can show; further points would be invisible.
#[must_use]
pub fn points_max(figure: &Figure) -> usize {
    if in_panels(figure) { panels::POINTS_MAX } else { POINTS_MAX }
}

/// Whether each series has its own panel.
fn in_panels(figure: &Figure) -> bool {
    figure.drawn == Drawn::Panels || figure.series.len() >= panels::CROWD
}

/// The picture of a figure.
#[must_use]
pub fn svg(figure: &Figure) -> String {
    svg_with_id(figure, &format!("axes-{}", sheet::escape(&figure.name)))
}

/// The picture of a figure, for a document that holds several pictures: IDs in this picture begin with `axes`, which consists
/// of letters, digits and dashes.
#[must_use]
pub fn svg_with_id(figure: &Figure, axes: &str) -> String {
    let described = description(figure);
    let figure = &figure.thinned(points_max(figure));
    let exponents = figure.drawn.is_logarithmic().then(|| exponents_of(figure));
    let (figure, remark) = exponents.as_ref().map_or((figure, ""), |(figure, remark)| (figure, remark.as_str()));
    match in_panels(figure) {
        true => panels::svg(figure, &described, axes, remark),
        false => curves::svg(figure, &described, axes, remark),
    }
}

/// A description for people who cannot see the picture: its axes, and where each curve begins and ends.
fn description(figure: &Figure) -> String {
    let curve = |Series { name, points }: &Series| match (points.first(), points.last()) {
        (Some(first), Some(last)) if figure.drawn != Drawn::Dots => {
            let [begin, from, end, to] = [first.mean, first.x, last.mean, last.x].map(number);
            format!("{name}: from {begin} at {from} to {end} at {to}")
        }
        _ => format!("{name}: {} points", points.len()),
    };
    let curves: Vec<String> = figure.series.iter().map(curve).collect();
    let references = figure.references.iter().map(|known| format!("; {}: {}", known.name, number(known.value)));
    let references: Vec<String> = references.collect();
    format!("{} by {}. {}{}.", figure.y_label, figure.x_label, curves.join("; "), references.concat())
}

/// The figure with the exponents of ten of its values, and a remark. Zero is not a power of ten, so values of 0 are drawn at
/// the least of the other values.
fn exponents_of(figure: &Figure) -> (Figure, String) {
    let points = || figure.series.iter().flat_map(|series| &series.points);
    let values = || points().flat_map(|point| [point.mean, point.low, point.high]);
    let least = values().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    let least = if least.is_finite() { least } else { 1.0 };
    let exponent = |value: f64| ln(value.max(least)) / ln(10.0);
    let point = |point: &Point| Point {
        mean: exponent(point.mean),
        low: exponent(point.low),
        high: exponent(point.high),
        ..*point
    };
    let series =
        |series: &Series| Series { name: series.name.clone(), points: series.points.iter().map(point).collect() };
    let known = |known: &Reference| Reference { value: exponent(known.value), ..known.clone() };
    let references = figure.references.iter().filter(|known| known.value > 0.0).map(known).collect();
    let zero = values().any(|value| value <= 0.0);
    let remark = if zero { format!("; 0 is drawn at {}", number(least)) } else { String::new() };
    (Figure { series: figure.series.iter().map(series).collect(), references, ..figure.clone() }, remark)
}

#[cfg(test)]
mod tests;
