//! The axes of one panel, and its curves: bands below, lines above, no smoothing.

use std::fmt::Write as _;

use super::{
    axis::{Axis, STEP_MIN},
    look::{colour, dots, marks, path, reference, stroke},
};
use crate::report::{Drawn, Figure, Point, Series};

/// Where bands are drawn.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Bands {
    /// Around the lines.
    Around,
    /// Only for the last points, next to the axes.
    AtTheEnd,
    Nowhere,
}

/// A curve of a figure, with its number, on which its look depends.
pub(super) type Numbered<'a> = (usize, &'a Series);

/// The remark about a named curve that ends above or below the axes.
pub(super) fn beyond(series: &Series, y: &Axis) -> &'static str {
    match series.points.last() {
        Some(last) if last.mean < y.low => ", below the axis",
        Some(last) if last.mean > y.high => ", above the axis",
        _ => "",
    }
}

/// The position of the axes in the picture, in pixels, and the values that they cover.
pub(super) struct Frame {
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) up: f64,
    pub(super) down: f64,
}

/// Axes that show all of a figure, or its given range, with about these numbers of ticks to the right and upwards.
pub(super) fn axes(figure: &Figure, bands: Bands, (across, up): (f64, f64)) -> (Axis, Axis) {
    let (powers, dots) = (figure.drawn.is_logarithmic(), figure.drawn == Drawn::Dots);
    let points = || figure.series.iter().flat_map(|series| &series.points);
    let least = |value: fn(&Point) -> f64| points().map(value).fold(f64::INFINITY, f64::min);
    let most = |value: fn(&Point) -> f64| points().map(value).fold(f64::NEG_INFINITY, f64::max);
    let (bottom, top) = figure.y_range.unwrap_or_else(|| {
        let (bottom, top) = match bands {
            Bands::Around => (least(|point| point.low), most(|point| point.high)),
            Bands::AtTheEnd | Bands::Nowhere => (least(|point| point.mean), most(|point| point.mean)),
        };
        let ends = figure.series.iter().filter_map(|series| series.points.last()).filter(|_| bands == Bands::AtTheEnd);
        let others = ends.flat_map(|end| [end.low, end.high]).chain(figure.references.iter().map(|it| it.value));
        others.fold((bottom, top), |(bottom, top), value| (bottom.min(value), top.max(value)))
    });
    let x = Axis::across(least(|point| point.x), most(|point| point.x), dots, across);
    (x, if powers { Axis::powers(bottom, top) } else { Axis::new(bottom, top, up, STEP_MIN) })
}

impl Frame {
    /// The position of a point in the picture.
    pub(super) fn place(&self, x: f64, y: f64) -> (f64, f64) {
        let right = self.left + self.x.share(x) * (self.right - self.left);
        let down = self.down - self.y.share(y) * (self.down - self.up);
        (right, down)
    }

    /// The same, but at the edge of the axes if the point is above or below them.
    pub(super) fn inside(&self, x: f64, y: f64) -> (f64, f64) {
        self.place(x, y.clamp(self.y.low, self.y.high))
    }

    /// Ticks with their lines and, if there is room, with their labels to the left and below.
    pub(super) fn ticks(&self, to_the_left: bool, below: bool) -> String {
        let mut lines = vec![self.y.grid(self.left, self.right, to_the_left, |tick| self.place(self.x.low, tick).1)];
        let base = self.down;
        let mut axis = format!("M{:.1} {base:.1}H{:.1}", self.left, self.right);
        for tick in self.x.ticks().filter(|tick| *tick <= self.x.high) {
            let right = self.place(tick, self.y.low).0;
            let _ = write!(axis, "M{right:.1} {base:.1}v5");
            if below {
                let (y, label) = (base + 20.0, self.x.label(tick));
                lines.push(format!("<text x=\"{right:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{label}</text>"));
            }
        }
        lines.push(format!("<path d=\"{axis}\" stroke=\"#999\"/>\n"));
        lines.join("\n")
    }

    /// Everything inside the axes: `behind`, then these curves of a figure and its known values, except known values of other
    /// curves. Values outside a given range are not shown. `clip` is the name of the clip path.
    pub(super) fn inner(
        &self,
        figure: &Figure,
        curves: &[Numbered<'_>],
        bands: Bands,
        clip: &str,
        behind: &str,
    ) -> String {
        let Self { left, right, up, down, .. } = self;
        let mut lines = vec![format!(
            "<clipPath id=\"{clip}\"><rect x=\"{left:.1}\" y=\"{up:.1}\" width=\"{:.1}\" height=\"{:.1}\"/></clipPath>\n\
             <g clip-path=\"url(#{clip})\">{behind}",
            right - left,
            down - up
        )];
        for (index, Series { points, .. }) in curves.iter().filter(|_| bands == Bands::Around) {
            let high = points.iter().map(|point| self.place(point.x, point.high));
            let band = path(high.chain(points.iter().rev().map(|point| self.place(point.x, point.low))));
            lines.push(format!("<path d=\"{band}Z\" fill=\"{}\" fill-opacity=\"0.15\"/>", colour(*index)));
        }
        for known in &figure.references {
            let of = figure.number_of(known);
            if of.is_none_or(|of| curves.iter().any(|(index, _)| *index == of)) {
                let (height, look) = (self.place(self.x.low, known.value).1, reference(of));
                lines.push(format!("<path d=\"M{left:.1} {height:.1}H{right:.1}\" {look}/>"));
            }
        }
        for (index, series) in curves {
            let places: Vec<_> = series.points.iter().map(|point| self.place(point.x, point.mean)).collect();
            lines.push(match figure.drawn {
                Drawn::Dots => dots(*index, places.into_iter()),
                _ => {
                    let line = format!("<path d=\"{}\" {}/>", path(places.iter().copied()), stroke(*index));
                    // A line of one point would be invisible.
                    let marks = match places.len() {
                        1 => dots(*index, places.into_iter()),
                        _ => marks(*index, &places),
                    };
                    line + &marks
                }
            });
        }
        lines.push("</g>\n".into());
        lines.join("\n")
    }
}
