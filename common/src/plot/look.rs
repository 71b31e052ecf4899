//! The look of curves: colours, dashes and marks, so that they can be told apart even in a print without colours.

use std::fmt::Write as _;

/// Colours that people with colour blindness can distinguish (after Okabe and Ito 2008), each with a contrast of at least
/// 3 to 1 on white.
pub(super) const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#008a64", "#b8578f", "#a6761d", "#3390cc", "#444444", "#882255"];
/// The dashes of lines. Their number has no common divisor with that of the colours.
const DASHES: [&str; 3] = ["", " stroke-dasharray=\"9 3\"", " stroke-dasharray=\"3 2\""];
/// Marks as paths around their centre: a disc, a square, a triangle, a diamond, a cross.
const MARKS: [&str; 5] = [
    "m-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0z",
    "m-3-3h6v6h-6z",
    "m0-4l3.8 6.8h-7.6z",
    "m0-4.2l3.8 4.2-3.8 4.2-3.8-4.2z",
    "m-3.6-1.3h2.3v-2.3h2.6v2.3h2.3v2.6h-2.3v2.3h-2.6v-2.3h-2.3z",
];
/// The number of marks on a curve.
const MARKS_OF_CURVE: usize = 6;

/// The colour of a curve.
pub(super) fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

/// The look of a curve's line.
pub(super) fn stroke(index: usize) -> String {
    let (colour, dashes) = (colour(index), DASHES[index % DASHES.len()]);
    format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.2\" stroke-linejoin=\"round\"{dashes}")
}

/// The look of the line for a known value, which belongs to one curve or to all.
pub(super) fn reference(of: Option<usize>) -> String {
    format!("stroke=\"{}\" stroke-width=\"1.2\" stroke-dasharray=\"1.5 3\"", of.map_or("#555", colour))
}

/// A line through these points, to a tenth of a pixel: the first position, then the step from each point to the next.
pub(super) fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let (mut path, mut last) = (String::new(), None);
    for (number, (right, down)) in points.enumerate() {
        let [x, y] = [right, down].map(|pixels| (10.0 * pixels).round() as i64);
        let (from_x, from_y) = last.replace((x, y)).unwrap_or_default();
        path.push_str(["M", "l", " "][number.min(2)]);
        push_tenths(&mut path, x - from_x);
        path.push(' ');
        push_tenths(&mut path, y - from_y);
    }
    path.replace(" -", "-")
}

/// A number of tenths, written as short as possible: 12.3, -.4, 5.
fn push_tenths(path: &mut String, tenths: i64) {
    let sign = if tenths < 0 { "-" } else { "" };
    let (whole, tenth) = (tenths.abs() / 10, tenths.abs() % 10);
    // Writing to a string cannot fail.
    let _ = match (whole, tenth) {
        (whole, 0) => write!(path, "{sign}{whole}"),
        (0, tenth) => write!(path, "{sign}.{tenth}"),
        (whole, tenth) => write!(path, "{sign}{whole}.{tenth}"),
    };
}

/// A curve's marks have edges if there are at most this many.
const CROWD: usize = 100;

/// A curve's mark at each of these positions.
pub(super) fn dots(index: usize, places: impl Iterator<Item = (f64, f64)>) -> String {
    let shape = MARKS[index % MARKS.len()];
    let marks: Vec<String> = places.map(|(right, down)| format!("M{right:.1} {down:.1}{shape}")).collect();
    // If marks overlap, their edges would hide other marks.
    let look = match marks.len() {
        0..=CROWD => "stroke=\"white\" stroke-width=\"0.7\"",
        _ => "fill-opacity=\"0.5\"",
    };
    format!("<path d=\"{}\" fill=\"{}\" {look}/>", marks.concat(), colour(index))
}

/// A few marks along the line of a curve, at other positions for each curve. The first curve has none.
pub(super) fn marks(index: usize, line: &[(f64, f64)]) -> String {
    if index == 0 || line.is_empty() {
        return String::new();
    }
    let shift = (index % MARKS.len()) as f64 / MARKS.len() as f64;
    let place = |mark: usize| {
        let share = (mark as f64 + shift) / MARKS_OF_CURVE as f64;
        line[(share * (line.len() - 1) as f64) as usize]
    };
    dots(index, (0..MARKS_OF_CURVE.min(line.len())).map(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_short_and_rounding_errors_do_not_add_up() {
        let points = [(10.0, 20.04), (10.26, 19.96), (10.52, 20.5), (4.0, 20.5)];
        assert_eq!(path(points.into_iter()), "M10 20l.3 0 .2 .5-6.5 0");
        let steps = path((0..1000).map(|step| (f64::from(step) * 0.04, 0.0)));
        let sum: f64 = steps[1..].split([' ', 'l']).step_by(2).map(|step| step.parse::<f64>().unwrap()).sum();
        assert!((sum - 40.0).abs() < 0.06, "{sum}");
        assert_eq!((path([(1.0, 2.0)].into_iter()), path(std::iter::empty())), ("M1 2".into(), String::new()));
    }

    #[test]
    fn two_dozen_curves_can_be_told_apart() {
        let looks: std::collections::BTreeSet<String> = (0..24).map(stroke).collect();
        assert_eq!(looks.len(), 24);
        let line = [(0.0, 0.0), (10.0, 0.0)];
        let grey = |index: usize| (stroke(index) + &marks(index, &line)).replace(colour(index), "");
        let looks: std::collections::BTreeSet<String> = (0..8).map(grey).collect();
        assert_eq!(looks.len(), 8);
        assert_eq!(marks(0, &line), "");
    }
}
