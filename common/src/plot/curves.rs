//! A figure in one panel, with the names of curves at their ends.

use std::fmt::Write as _;

use super::{
    axis::Axis,
    frame::{Bands, Frame, axes, beyond},
    look::{dots, marks, reference, stroke},
    sheet::{BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, escape, head, text_width},
};
use crate::report::{Drawn, Figure};

/// Pixels below the title for the note that explains lines and bands.
const NOTE: f64 = 22.0;
/// Pixels between two names at the ends of curves; between the axes and the names; and between two bands next to the axes.
const NAME: f64 = 16.0;
const GAP: f64 = 50.0;
const BESIDE: f64 = 3.0;
/// Pixels of a line's sample before its name.
const SAMPLE: f64 = 16.0;

/// From this number of curves on, bands would hide one another. Then only the band of the last point is drawn, next to the
/// axes.
const MANY: usize = 5;

fn bands_of(figure: &Figure) -> Bands {
    match (figure.drawn.has_bands(), figure.series.len()) {
        (false, _) => Bands::Nowhere,
        (_, MANY..) => Bands::AtTheEnd,
        _ => Bands::Around,
    }
}

/// The picture of a figure with this description. `remark` is a further remark about its axes.
pub(super) fn svg(figure: &Figure, described: &str, clip: &str, remark: &str) -> String {
    let bands = bands_of(figure);
    let (x, y) = axes(figure, bands, (10.0, 6.0));
    let [of_line, of_band] = figure.drawn.line_and_band();
    let note = match bands {
        Bands::Around => format!("line: {of_line}; band: {of_band}"),
        Bands::AtTheEnd => format!("line: {of_line}; bar at its end: {of_band}"),
        Bands::Nowhere => String::new(),
    };
    let ends = ends(figure, &y);
    let longest = ends.iter().map(|end| text_width(&end.name)).fold(0.0, f64::max);
    let more = NAME * ends.len() as f64 - (HEIGHT - TOP - BOTTOM);
    let top = TOP + if note.is_empty() { 0.0 } else { NOTE };
    let (width, height) = (WIDTH + GAP + longest, HEIGHT + top - TOP + more.max(0.0));
    let frame = Frame { x, y, left: LEFT, right: WIDTH - RIGHT, up: top, down: height - BOTTOM };
    let curves: Vec<_> = figure.series.iter().enumerate().collect();
    let mut text = head(&figure.title, described, width, height);
    let _ =
        writeln!(text, "<text x=\"{LEFT}\" y=\"{}\" font-size=\"12\" fill=\"#666\">{note}{remark}</text>", TOP - 3.0);
    text += &frame.ticks(true, true);
    text += &frame.inner(figure, &curves, bands, clip, "");
    text += &names(ends, &frame);
    for (index, series) in curves.iter().filter(|_| bands == Bands::AtTheEnd) {
        let Some(last) = series.points.last() else { continue };
        let right = frame.right + BESIDE * (index + 1) as f64;
        let (low, high) = (frame.inside(last.x, last.low).1, frame.inside(last.x, last.high).1);
        let _ = writeln!(text, "<path d=\"M{right:.1} {low:.1}V{high:.1}\" {}/>", stroke(*index));
    }
    text += &labels(figure, &frame);
    text + "</svg>\n"
}

/// A name next to the axes, and the end of the curve or line that it belongs to.
struct End {
    name: String,
    /// Its sample in the picture, centred on a point.
    sample: Sample,
    /// Where the curve ends, in the axes' units and limited to their range.
    x: f64,
    y: f64,
}

enum Sample {
    Curve(usize),
    Dots(usize),
    Known(Option<usize>),
}

impl Sample {
    fn svg(&self, (x, y): (f64, f64)) -> String {
        let line = |look: String| format!("<path d=\"M{:.1} {y:.1}h{SAMPLE}\" {look}/>", x - SAMPLE / 2.0);
        match self {
            Self::Curve(index) => line(stroke(*index)) + &marks(*index, &[(x, y)]),
            Self::Dots(index) => dots(*index, std::iter::once((x, y))),
            Self::Known(of) => line(reference(*of)),
        }
    }
}

/// The names of all curves, with a remark if one ends above or below the axes, and the names of known values that are
/// visible.
fn ends(figure: &Figure, y: &Axis) -> Vec<End> {
    let curves = figure.series.iter().enumerate().filter_map(|(index, series)| {
        let last = series.points.last()?;
        let sample = if figure.drawn == Drawn::Dots { Sample::Dots(index) } else { Sample::Curve(index) };
        let name = format!("{}{}", series.name, beyond(series, y));
        Some(End { name, sample, x: last.x, y: last.mean.clamp(y.low, y.high) })
    });
    let right = figure.series.iter().flat_map(|series| &series.points).map(|point| point.x).fold(0.0, f64::max);
    let known = figure.references.iter().filter(|known| (y.low..=y.high).contains(&known.value));
    let known = known.map(|known| {
        let sample = Sample::Known(figure.number_of(known));
        End { name: known.name.clone(), sample, x: right, y: known.value }
    });
    curves.chain(known).collect()
}

/// The labels of the axes.
fn labels(figure: &Figure, frame: &Frame) -> String {
    let (right, down) = ((frame.left + frame.right) / 2.0, (frame.up + frame.down) / 2.0);
    format!(
        "<text x=\"{right}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n\
         <text transform=\"translate(20 {down}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
        frame.down + BOTTOM - 14.0,
        escape(&figure.x_label),
        escape(&figure.y_label)
    )
}

/// The names to the right of the axes, in the order of the ends.
fn names(ends: Vec<End>, frame: &Frame) -> String {
    let mut ends: Vec<((f64, f64), End)> = ends.into_iter().map(|end| (frame.place(end.x, end.y), end)).collect();
    ends.sort_by(|one, other| one.0.1.total_cmp(&other.0.1));
    let heights = apart(&ends.iter().map(|(place, _)| place.1).collect::<Vec<f64>>(), (frame.up, frame.down));
    let (left, mut text) = (frame.right + GAP - 18.0, String::new());
    for (((x, y), End { name, sample, .. }), height) in ends.into_iter().zip(heights) {
        let _ = writeln!(
            text,
            "<path d=\"M{x:.1} {y:.1}L{left:.1} {height:.1}\" stroke=\"#ddd\"/>{}<text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            sample.svg((left + SAMPLE / 2.0, height)),
            left + 22.0,
            height + 4.5,
            escape(&name)
        );
    }
    text
}

/// Ascending heights between `up` and `down` that are at least [`NAME`] apart, with the least sum of squared distances from
/// the given heights, which ascend too. Heights that would be too close to one another are spaced evenly around their mean.
fn apart(heights: &[f64], (up, down): (f64, f64)) -> Vec<f64> {
    let last = heights.len().saturating_sub(1) as f64;
    // For each group: the sum of its heights, each minus the distances of the names before it, and their count.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_do_not_overlap_and_are_near_their_curves_ends() {
        assert_eq!(apart(&[50.0, 90.0, 90.0, 90.0, 200.0], (0.0, 300.0)), [50.0, 74.0, 90.0, 106.0, 200.0]);
        assert_eq!(apart(&[5.0, 5.0, 100.0, 100.0], (0.0, 100.0)), [0.0, 16.0, 84.0, 100.0]);
        assert!(apart(&[], (0.0, 100.0)).is_empty());
    }
}
