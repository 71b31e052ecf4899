//! A figure with many curves: a small panel for each curve, or for a few, on common axes. All other curves are drawn in grey
//! behind it.

use std::fmt::Write as _;

use super::{
    axis::Axis,
    frame::{Bands, Frame, Numbered, axes, beyond},
    look::{colour, path},
    sheet::{BOTTOM, LEFT, TOP, escape, head},
};
use crate::{
    report::{Drawn, Figure, Series, spread},
    text::wrapped,
};

/// From this number of curves on, one panel would show a tangle.
pub(super) const CROWD: usize = 9;
/// The most points of a curve that a panel can show.
pub(super) const POINTS_MAX: usize = 60;
/// The most panels. If there are more curves, several share a panel.
const PANELS_MAX: usize = 24;
/// The most panels side by side, and the number of panels from which on a row has that many.
const COLUMNS: usize = 5;
const COLUMNS_FROM: usize = 17;
/// Pixels: the width of all panels together, the space between them, their height, and the height of a line of their
/// headings.
const ACROSS: f64 = 800.0;
const BETWEEN: f64 = 28.0;
const TALL: f64 = 104.0;
const LINE: f64 = 15.0;
/// The approximate numbers of ticks to the right and upwards.
const TICKS: (f64, f64) = (4.0, 5.0);
/// The number of points of a curve, and of dots, that are drawn behind other curves.
const BEHIND_POINTS: usize = 40;
const BEHIND_DOTS: usize = 200;

/// The picture of a figure with this description. `remark` is a further remark about its axes.
pub(super) fn svg(figure: &Figure, described: &str, clip: &str, remark: &str) -> String {
    let bands = if figure.drawn.has_bands() { Bands::Around } else { Bands::Nowhere };
    let all: Vec<Numbered<'_>> = figure.series.iter().enumerate().collect();
    let panels: Vec<&[Numbered<'_>]> = all.chunks(all.len().div_ceil(PANELS_MAX)).collect();
    let columns = if panels.len() < COLUMNS_FROM { COLUMNS - 1 } else { COLUMNS };
    let wide = (ACROSS - BETWEEN * (columns - 1) as f64) / columns as f64;
    let y = axes(figure, bands, TICKS).1;
    let headings: Vec<Vec<(usize, String)>> = panels.iter().map(|curves| heading(figure, &y, curves, wide)).collect();
    let lines = headings.iter().map(Vec::len).max().unwrap_or(1) as f64;
    let (row, rows) = (TALL + lines * LINE + BETWEEN, panels.len().div_ceil(columns));
    let top = TOP + 16.0;
    let (width, height) = (LEFT + ACROSS + BETWEEN, top + rows as f64 * row + BOTTOM - BETWEEN);
    let mut text = head(&figure.title, described, width, height);
    let _ = writeln!(
        text,
        "<text x=\"{LEFT}\" y=\"{}\" font-size=\"12\" fill=\"#666\">{}{remark}</text>",
        TOP - 3.0,
        escape(&note(figure, bands))
    );
    let frame = |index: usize| {
        let (x, y) = axes(figure, bands, TICKS);
        let left = LEFT + (index % columns) as f64 * (wide + BETWEEN);
        let up = top + (index / columns) as f64 * row + lines * LINE;
        Frame { x, y, left, right: left + wide, up, down: up + TALL }
    };
    let first = frame(0);
    let _ = writeln!(text, "<defs><g id=\"{clip}-all\">{}</g></defs>\n<g font-size=\"11\">", behind(figure, &first));
    for (index, (curves, heading)) in panels.iter().zip(headings).enumerate() {
        let frame = frame(index);
        let count = heading.len() as f64;
        for (line, (number, words)) in heading.into_iter().enumerate() {
            let up = frame.up - 6.0 - LINE * (count - 1.0 - line as f64);
            let (left, fill) = (frame.left, colour(number));
            let _ = writeln!(
                text,
                "<text x=\"{left:.1}\" y=\"{up:.1}\" fill=\"{fill}\" font-weight=\"bold\">{}</text>",
                escape(&words)
            );
        }
        text += &frame.ticks(index % columns == 0, index + columns >= panels.len());
        let (right, down) = (frame.left - first.left, frame.up - first.up);
        let others = format!("<use href=\"#{clip}-all\" x=\"{right:.1}\" y=\"{down:.1}\"/>");
        text += &frame.inner(figure, curves, bands, &format!("{clip}-{index}"), &others);
    }
    let middle = (first.up + frame(panels.len() - 1).down) / 2.0;
    let _ = writeln!(
        text,
        "</g>\n<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n\
         <text transform=\"translate(20 {middle}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        LEFT + ACROSS / 2.0,
        height - 10.0,
        escape(&figure.x_label),
        escape(&figure.y_label)
    );
    text + "</svg>\n"
}

/// The names of a panel's curves, on lines as wide as the panel, each with its curve's number.
fn heading(figure: &Figure, y: &Axis, curves: &[Numbered<'_>], wide: f64) -> Vec<(usize, String)> {
    let letters = (wide / 6.2) as usize;
    let lines = |(number, series): &Numbered<'_>| {
        let of: Vec<String> = figure
            .references
            .iter()
            .filter(|known| figure.number_of(known) == Some(*number))
            .map(|known| format!("; dotted: {}", known.name))
            .collect();
        let words = wrapped(&format!("{}{}{}", series.name, beyond(series, y), of.concat()), letters, "");
        words.lines().map(|line| (*number, line.to_owned())).collect::<Vec<_>>()
    };
    curves.iter().flat_map(lines).collect()
}

/// The note that says what the lines are.
fn note(figure: &Figure, bands: Bands) -> String {
    let known = figure.references.iter().filter(|known| figure.number_of(known).is_none());
    let known = known.map(|known| known.name.as_str()).collect::<Vec<_>>().join("; ");
    let known = if known.is_empty() { known } else { format!("; dotted: {known}") };
    let [of_line, of_band] = figure.drawn.line_and_band();
    let line = match (bands, figure.drawn) {
        (Bands::Nowhere, Drawn::Dots) => "grey: all others".to_owned(),
        (Bands::Nowhere, _) => "line: one of them; grey: all others".to_owned(),
        _ => format!("line: {of_line}; band: {of_band}; grey: the {of_line}s of all others"),
    };
    format!("{line}{known}")
}

/// All curves in grey, at their positions in this frame.
fn behind(figure: &Figure, frame: &Frame) -> String {
    let dots = figure.drawn == Drawn::Dots;
    let most = if dots { BEHIND_DOTS } else { BEHIND_POINTS };
    let curve = |series: &Series| {
        let chosen = spread(series.points.len(), most).map(|index| &series.points[index]);
        let places = chosen.map(|point| frame.place(point.x, point.mean));
        match dots {
            true => places.map(|(right, down)| format!("M{right:.1} {down:.1}h2v2h-2z")).collect(),
            false => path(places),
        }
    };
    let curves: String = figure.series.iter().map(curve).collect();
    let look = if dots { "fill=\"#ccc\"" } else { "fill=\"none\" stroke=\"#ccc\"" };
    format!("<path d=\"{curves}\" {look}/>")
}
