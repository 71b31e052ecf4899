//! Weights of a network as circles, after Hinton's diagrams (Rumelhart and McClelland, 1986). The area of a circle is the
//! size of the weight. A positive weight is a filled circle and a negative one a ring, so no colour is needed to distinguish
//! them.

use std::fmt::Write as _;

use super::{
    look::path,
    sheet::{escape, head_at},
};

/// Pixels of the whole picture's minimum width; of its margin; and of the lines above the panels.
const WIDTH: f64 = 760.0;
const MARGIN: f64 = 20.0;
const ABOVE: f64 = 74.0;
/// Pixels of a panel's title and note, and between panels.
const HEADING: f64 = 42.0;
const GAP: f64 = 14.0;
/// The radius of the greatest weight, and the smallest visible radius.
const RADIUS: f64 = 7.0;
const RADIUS_MIN: f64 = 0.7;
const POSITIVE: &str = "#0072b2";
const NEGATIVE: &str = "#d55e00";

/// Pictures of parts of a network, side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagram {
    /// A name for files, of letters and dashes.
    pub name: String,
    /// The title: what the picture shows.
    pub title: String,
    /// A sentence that says how to read the picture.
    pub note: String,
    /// The width and height of each panel's drawing, in pixels.
    pub size: (f64, f64),
    /// The panels, in reading order.
    pub panels: Vec<Panel>,
}

/// A picture of one part.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// The title: what the part is.
    pub title: String,
    /// A further remark about it; may be empty.
    pub note: String,
    /// The marks, in the order in which they are drawn.
    pub marks: Vec<Mark>,
}

/// A mark at a position (right, down), in pixels from the panel's top left.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// A weight.
    Weight {
        /// The position.
        at: (f64, f64),
        /// The weight as a share of the greatest weight of its layer, from -1 to 1.
        share: f64,
        /// What the weight is, with its exact value.
        says: String,
    },
    /// A cell of a board.
    Cell((f64, f64)),
    /// A line of a board.
    Line(Vec<(f64, f64)>),
    /// A stone on the board: the side's own if true, else the other side's.
    Stone((f64, f64), bool),
    /// A text that begins at this position.
    Text((f64, f64), String),
}

/// The circle of a weight.
fn circle((x, y): (f64, f64), share: f64, says: &str) -> String {
    let radius = (RADIUS * share.abs().min(1.0).sqrt()).max(RADIUS_MIN);
    let says = if says.is_empty() { String::new() } else { format!("<title>{}</title>", escape(says)) };
    // A ring with the same outer radius; a very small one is a dot.
    match share < 0.0 && radius > 2.0 {
        true => format!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.2}\" fill=\"white\" stroke=\"{NEGATIVE}\" \
             stroke-width=\"1.8\">{says}</circle>",
            radius - 0.9
        ),
        false => {
            let colour = if share < 0.0 { NEGATIVE } else { POSITIVE };
            format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.2}\" fill=\"{colour}\">{says}</circle>")
        }
    }
}

fn mark(mark: &Mark) -> String {
    match mark {
        Mark::Weight { at, share, says } => circle(*at, *share, says),
        Mark::Cell((x, y)) => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"1.6\" fill=\"#999\"/>"),
        Mark::Line(places) => {
            format!("<path d=\"{}\" fill=\"none\" stroke=\"#333\" stroke-width=\"2\"/>", path(places.iter().copied()))
        }
        Mark::Stone((x, y), own) => {
            let fill = if *own { "#333" } else { "white" };
            let look = format!("fill=\"{fill}\" stroke=\"#333\" stroke-width=\"1.6\"");
            format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.4\" {look}/>")
        }
        Mark::Text((x, y), text) => format!("<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"11\">{}</text>", escape(text)),
    }
}

/// The picture of weights.
#[must_use]
pub fn diagram(diagram: &Diagram) -> String {
    let (wide, tall) = (diagram.size.0 + GAP, diagram.size.1 + HEADING + GAP);
    let columns = (((WIDTH - 2.0 * MARGIN + GAP) / wide) as usize).clamp(1, diagram.panels.len().max(1));
    let width = (2.0 * MARGIN + wide * columns as f64 - GAP).max(WIDTH);
    let height = ABOVE + tall * diagram.panels.len().div_ceil(columns) as f64;
    let what = |panel: &Panel| format!("{}: {}", panel.title, panel.note);
    let described: Vec<String> = diagram.panels.iter().map(what).collect();
    let described = format!("{} {}.", diagram.note, described.join("; "));
    let mut text = head_at(MARGIN, &diagram.title, &described, width, height);
    let note = escape(&diagram.note);
    // Writing to a string cannot fail.
    let _ = writeln!(text, "<text x=\"{MARGIN}\" y=\"47\" font-size=\"12\" fill=\"#666\">{note}</text>");
    for (left, share, says) in [(MARGIN, 1.0, "positive"), (MARGIN + 84.0, -1.0, "negative")] {
        let _ = writeln!(
            text,
            "{}<text x=\"{}\" y=\"66\" font-size=\"12\" fill=\"#666\">{says}</text>",
            circle((left + RADIUS, 62.0), share, ""),
            left + 2.0 * RADIUS + 5.0
        );
    }
    let right = MARGIN + 172.0;
    let _ =
        writeln!(text, "<text x=\"{right}\" y=\"66\" font-size=\"12\" fill=\"#666\">area: size of the weight</text>");
    for (index, panel) in diagram.panels.iter().enumerate() {
        let (left, top) = (MARGIN + wide * (index % columns) as f64, ABOVE + tall * (index / columns) as f64);
        let (title, note) = (escape(&panel.title), escape(&panel.note));
        let marks: Vec<String> = panel.marks.iter().map(mark).collect();
        let _ = writeln!(
            text,
            "<g transform=\"translate({left:.1} {top:.1})\">\n<text y=\"16\" font-weight=\"bold\">{title}</text>\n\
             <text y=\"31\" font-size=\"11\" fill=\"#666\">{note}</text>\n\
             <g transform=\"translate(0 {HEADING})\">\n{}\n</g>\n</g>",
            marks.join("\n")
        );
    }
    text + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_is_pinned() {
        let weight = |x: f64, share: f64| Mark::Weight { at: (x, 10.0), share, says: format!("a <{share}>") };
        let panel =
            |title: &str, marks: Vec<Mark>| Panel { title: title.into(), note: "to the output +1".into(), marks };
        let places = vec![(10.0, 30.0), (40.0, 30.0)];
        let first =
            vec![weight(10.0, 1.0), weight(30.0, -0.25), weight(50.0, -0.001), Mark::Text((0.0, 60.0), "&".into())];
        let second = vec![Mark::Line(places), Mark::Cell((10.0, 30.0)), Mark::Stone((40.0, 30.0), false)];
        let picture = Diagram {
            name: "weights".into(),
            title: "Weights <of one>".into(),
            note: "A sentence.".into(),
            size: (400.0, 80.0),
            panels: vec![panel("1", first), panel("2", second)],
        };
        insta::assert_snapshot!(diagram(&picture));
    }

    /// The area of a circle is the weight, and its sign is visible without colour.
    #[test]
    fn areas_are_sizes_and_rings_are_negative() {
        let radius = |share: f64| -> f64 {
            let circle = circle((0.0, 0.0), share, "");
            let ring = if circle.contains("stroke=") { 0.9 } else { 0.0 };
            let text = circle.split(" r=\"").nth(1).unwrap();
            text[..text.find('"').unwrap()].parse::<f64>().unwrap() + ring
        };
        assert!((radius(0.25) * 2.0 - radius(1.0)).abs() < 0.02 && (radius(-0.5) - radius(0.5)).abs() < 0.02);
        assert!(circle((0.0, 0.0), -0.5, "").contains("fill=\"white\"") && radius(0.0) > 0.5);
    }
}
