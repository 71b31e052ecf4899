//! A map: the values of a grid's cells, as colours.

use std::fmt::Write as _;

use super::sheet::{BOTTOM, HEIGHT, LEFT, TOP, escape, head};
use crate::report::Map;

/// Pixels of the square of cells, of the space before the colour scale, and of the scale's width.
const SIDE: f64 = HEIGHT - TOP - BOTTOM;
const GAP: f64 = 28.0;
const SCALE: f64 = 16.0;
/// Pixels for the labels of the scale.
const LABELS: f64 = 110.0;
/// Colours from the worst to the best value. Their lightness rises evenly, so their order is visible without colour too
/// (viridis, by S. van der Walt and N. Smith).
const COLOURS: [[f64; 3]; 5] =
    [[68.0, 1.0, 84.0], [59.0, 82.0, 139.0], [33.0, 145.0, 140.0], [94.0, 201.0, 98.0], [253.0, 231.0, 37.0]];
/// The number of steps on the scale.
const STEPS: usize = 40;

/// The colour at this share of the way from the worst to the best value.
fn colour(share: f64) -> String {
    let place = share.clamp(0.0, 1.0) * (COLOURS.len() - 1) as f64;
    let below = (place as usize).min(COLOURS.len() - 2);
    let channel = |index: usize| {
        let (from, to) = (COLOURS[below][index], COLOURS[below + 1][index]);
        (from + (to - from) * (place - below as f64)).round() as u8
    };
    format!("#{:02x}{:02x}{:02x}", channel(0), channel(1), channel(2))
}

/// The picture of a map. Cells without a value stay grey.
#[must_use]
pub fn map(map: &Map) -> String {
    let (width, height) = (LEFT + SIDE + GAP + SCALE + LABELS, HEIGHT);
    let (bottom, right) = (TOP + SIDE, LEFT + SIDE);
    let (cells, all, what) = (map.cells.len(), map.columns * map.rows, &map.value_label);
    let described = format!("{what} in {cells} of {all} cells, by {} and {}.", map.x_label, map.y_label);
    let mut text = head(&map.title, &described, width.max(520.0), height);
    let _ = writeln!(text, "<rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"#eee\"/>");
    text.push_str("<g shape-rendering=\"crispEdges\">\n");
    let (low, high) = map
        .cells
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (_, _, value)| (low.min(*value), high.max(*value)));
    let share = |value: f64| {
        let share = if high > low { (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0) } else { 1.0 };
        if map.greater_is_better { share } else { 1.0 - share }
    };
    let (wide, tall) = (SIDE / map.columns as f64, SIDE / map.rows as f64);
    for (column, row, value) in &map.cells {
        let (x, y) = (LEFT + *column as f64 * wide, bottom - (*row + 1) as f64 * tall);
        let fill = colour(share(*value));
        let _ = writeln!(
            text,
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{wide:.2}\" height=\"{tall:.2}\" fill=\"{fill}\"/>"
        );
    }
    for step in 0..STEPS {
        let (tall, fill) = (SIDE / STEPS as f64, colour((step as f64 + 0.5) / STEPS as f64));
        let y = bottom - (step + 1) as f64 * tall;
        let _ = writeln!(
            text,
            "<rect x=\"{}\" y=\"{y:.2}\" width=\"{SCALE}\" height=\"{tall:.2}\" fill=\"{fill}\"/>",
            right + GAP
        );
    }
    text.push_str("</g>\n");
    let (worst, best) = if map.greater_is_better { (low, high) } else { (high, low) };
    let end = right + GAP + SCALE + 6.0;
    let number = |value: f64| if value.is_finite() { format!("{:.4}", value + 0.0) } else { "-".into() };
    let _ = writeln!(text, "<text x=\"{end}\" y=\"{:.1}\">{}</text>", bottom, number(worst));
    let _ = writeln!(text, "<text x=\"{end}\" y=\"{:.1}\">{}</text>", TOP + 10.0, number(best));
    let label = escape(&map.value_label);
    let _ = writeln!(text, "<text x=\"{end}\" y=\"{:.1}\">{label}</text>", TOP + SIDE / 2.0);
    let ends = |(low, high): (f64, f64)| [format!("{low}"), format!("{high}")];
    let ([left_text, right_text], [low_text, high_text]) = (ends(map.x), ends(map.y));
    let under = bottom + 18.0;
    let _ = writeln!(text, "<text x=\"{LEFT}\" y=\"{under}\">{left_text}</text>");
    let _ = writeln!(text, "<text x=\"{right}\" y=\"{under}\" text-anchor=\"end\">{right_text}</text>");
    let beside = LEFT - 8.0;
    let _ = writeln!(text, "<text x=\"{beside}\" y=\"{bottom}\" text-anchor=\"end\">{low_text}</text>");
    let _ = writeln!(text, "<text x=\"{beside}\" y=\"{}\" text-anchor=\"end\">{high_text}</text>", TOP + 12.0);
    let (middle, x_label, y_label) = (LEFT + SIDE / 2.0, escape(&map.x_label), escape(&map.y_label));
    let _ = writeln!(text, "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{x_label}</text>", height - 14.0);
    let _ = writeln!(
        text,
        "<text transform=\"translate(20 {}) rotate(-90)\" text-anchor=\"middle\">{y_label}</text>",
        TOP + SIDE / 2.0
    );
    text + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_is_pinned() {
        let picture = Map {
            name: "map".into(),
            title: "What is kept".into(),
            x_label: "x".into(),
            y_label: "y".into(),
            x: (-1.0, 1.0),
            y: (0.0, 2.5),
            columns: 3,
            rows: 2,
            cells: vec![(0, 0, 1.0), (2, 1, 3.0), (1, 1, 2.0)],
            value_label: "min <cost>".into(),
            greater_is_better: false,
        };
        insta::assert_snapshot!(map(&picture));
        let one = Map { cells: vec![(0, 0, 7.0)], ..picture };
        assert!(map(&one).contains(&colour(0.0)), "a single value is neither better nor worse");
    }

    #[test]
    fn colours_go_from_dark_to_light() {
        assert_eq!([0.0, 0.125, 1.0].map(colour), ["#440154", "#402a70", "#fde725"]);
        assert_eq!((colour(-1.0), colour(7.0)), (colour(0.0), colour(1.0)));
    }
}
