//! A picture of a network's weights. For networks over lines, it shows each line on its board with the weights of its
//! detectors, and lines that share weights once. For dense networks, it shows the first layer's weights as boards. For
//! tables, it shows the states of lines that count most.

use std::collections::BTreeSet;

use evoxo_common::plot::{Diagram, Mark, Panel};

use super::{
    Architecture, First, Network,
    planes::lines_by_plane,
    shared::{LineSymmetries, Ties},
    tuples,
};
use crate::board::{Geometry, Shape, cells};

/// The most panels of a picture.
const PANELS_MAX: usize = 18;
/// Pixels from one weight to the next, and the size of the names next to them.
const STEP: f64 = 16.0;
const NAMES: f64 = 30.0;
/// Pixels between the board and the items next to it.
const BESIDE: f64 = 24.0;

/// The picture of a network.
pub(super) fn diagram(network: &Network) -> Diagram {
    let architecture = &network.architecture;
    let geometry = Geometry::new(architecture.shape).expect("the architecture was checked");
    match architecture.first {
        First::Lines { detectors } if architecture.shared => {
            let Ties { unshared, weights: ties, .. } = Ties::new(architecture);
            let all: Vec<f32> = ties.iter().map(|tie| network.weights[*tie]).collect();
            let alike = LineSymmetries::new(architecture).orbits;
            of_lines(&geometry, &Layers::new(&unshared, &all), detectors, Some(&alike))
        }
        First::Lines { detectors } | First::Planes { detectors, .. } => {
            of_lines(&geometry, &Layers::new(architecture, &network.weights), detectors, None)
        }
        First::Dense { .. } => of_units(&geometry, &Layers::new(architecture, &network.weights)),
        First::Tuples { states } => of_states(&geometry, network, states),
    }
}

/// The first layer of a network of units, and each unit's influence on the output.
struct Layers<'a> {
    first: &'a [f32],
    /// For each unit of the first layer: the sum, over all paths from it to the output, of the products of weights (Olden and
    /// Jackson, 2002).
    onward: Vec<f32>,
}

impl<'a> Layers<'a> {
    fn new(architecture: &Architecture, weights: &'a [f32]) -> Self {
        let of = |name: &str| architecture.part(name, weights);
        let (second, output) = (of("second.weight"), of("output.weight"));
        let onward = match (architecture.first, second) {
            (First::Planes { detectors, units }, _) => {
                onward_by_planes(architecture, of("planes.weight"), output, (detectors, units))
            }
            (_, []) => output.to_vec(),
            _ => second.chunks(output.len()).map(|row| row.iter().zip(output).map(|(to, on)| to * on).sum()).collect(),
        };
        Self { first: of("first.weight"), onward }
    }
}

/// The same with units on planes in between. A line's detectors are connected to the units of each plane that contains the
/// line.
fn onward_by_planes(
    architecture: &Architecture,
    weights: &[f32],
    output: &[f32],
    (detectors, units): (usize, usize),
) -> Vec<f32> {
    let geometry = Geometry::new(architecture.shape).expect("the architecture was checked");
    let mut onward = vec![0.0; architecture.units()];
    let planes = lines_by_plane(&geometry);
    let inputs = planes.iter().zip(output.chunks(units)).flat_map(|(lines, output)| {
        lines.iter().flat_map(move |line| (line * detectors..(line + 1) * detectors).map(move |unit| (unit, output)))
    });
    for ((unit, output), row) in inputs.zip(weights.chunks(units)) {
        onward[unit] += row.iter().zip(output).map(|(to, on)| to * on).sum::<f32>();
    }
    onward
}

/// The norm of some weights.
fn norm(weights: impl Iterator<Item = f32>) -> f32 {
    weights.map(|weight| weight * weight).sum::<f32>().sqrt()
}

/// The greatest magnitude of a weight. It is positive, so it can be a divisor.
fn greatest(weights: &[f32]) -> f32 {
    weights.iter().fold(f32::MIN_POSITIVE, |most, weight| most.max(weight.abs()))
}

/// The indices of the greatest values, descending, at most as many as a picture has panels.
fn strongest(sizes: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by(|one, other| sizes[*other].total_cmp(&sizes[*one]));
    order.truncate(PANELS_MAX);
    order
}

fn weight(at: (f64, f64), weight: f32, most: f32, what: &str) -> Mark {
    Mark::Weight { at, share: f64::from(weight / most), says: format!("{what}: {weight:+.3}") }
}

/// The positions of cells: on a flat board as they are; with several layers as parallelograms, the highest on top.
struct Rack(Shape);

impl Rack {
    fn place(&self, cell: u8) -> (f64, f64) {
        let [column, row, layer] = self.0.position(cell).map(f64::from);
        if self.0.depth == 1 {
            return (5.0 + 12.0 * column, 5.0 + 12.0 * row);
        }
        let height = f64::from(self.0.height);
        (5.0 + 12.0 * column + 6.0 * (height - 1.0 - row), 5.0 + 7.0 * row + (7.0 * height + 8.0) * layer)
    }

    fn size(&self) -> (f64, f64) {
        let Shape { width, height, depth, .. } = self.0;
        let [wide, tall, layers] = [width, height, depth].map(f64::from);
        match depth {
            1 => (12.0 * wide, 12.0 * tall),
            _ => (12.0 * wide + 6.0 * tall, (7.0 * tall + 8.0) * layers),
        }
    }

    /// The board with a line on it.
    fn marks(&self, geometry: &Geometry, line: u64) -> Vec<Mark> {
        let mut marks: Vec<Mark> = cells(geometry.cells()).map(|cell| Mark::Cell(self.place(cell))).collect();
        marks.push(Mark::Line(cells(line).map(|cell| self.place(cell)).collect()));
        marks
    }
}

/// "a11 to d11".
fn line_name(geometry: &Geometry, line: u64) -> String {
    let mut ends = [line.trailing_zeros(), 63 - line.leading_zeros()].map(|cell| geometry.cell_name(cell as u8));
    ends.sort();
    ends.join(" to ")
}

/// Each line with its detectors, one row per cell and one column per detector. `alike` numbers the lines that share weights.
fn of_lines(geometry: &Geometry, layers: &Layers<'_>, detectors: usize, alike: Option<&[usize]>) -> Diagram {
    let (k, lines) = (usize::from(geometry.shape().k), geometry.lines());
    let first = |line: usize, place: usize, unit: usize| layers.first[(line * k + place) * detectors + unit];
    let size = |line: usize| {
        let unit = |unit: usize| {
            norm((0..k).map(|place| first(line, place, unit))) * layers.onward[line * detectors + unit].abs()
        };
        norm((0..detectors).map(unit))
    };
    // Lines that share weights are drawn once.
    let shown: Vec<usize> = match alike {
        None => (0..lines.len()).collect(),
        Some(alike) => (0..lines.len()).filter(|line| !alike[..*line].contains(&alike[*line])).collect(),
    };
    let order = strongest(&shown.iter().map(|line| size(*line)).collect::<Vec<f32>>());
    let rack = Rack(geometry.shape());
    let (wide, tall) = rack.size();
    let (most, most_onward) = (greatest(layers.first), greatest(&layers.onward));
    let left = wide + BESIDE + NAMES;
    let panel = |line: usize| {
        let mut marks = rack.marks(geometry, lines[line]);
        let name = |unit: usize| format!("detector {}", unit + 1);
        for (place, cell) in cells(lines[line]).enumerate() {
            let (down, cell) = (8.0 + STEP * place as f64, geometry.cell_name(cell));
            marks.extend((0..detectors).map(|unit| {
                let at = (left + STEP * unit as f64, down);
                weight(at, first(line, place, unit), most, &format!("{}, {cell}", name(unit)))
            }));
            marks.push(Mark::Text((wide + BESIDE - 8.0, down + 4.0), cell));
        }
        let down = 8.0 + STEP * (k as f64 + 0.5);
        marks.push(Mark::Text((wide + BESIDE - 8.0, down + 4.0), "on".into()));
        marks.extend((0..detectors).map(|unit| {
            let onward = layers.onward[line * detectors + unit];
            weight((left + STEP * unit as f64, down), onward, most_onward, &format!("{} to the output", name(unit)))
        }));
        let note = alike.map_or_else(String::new, |alike| {
            let count = alike.iter().filter(|other| **other == alike[line]).count();
            if count == 1 { "no other is like it".into() } else { format!("{count} lines share these weights") }
        });
        Panel { title: line_name(geometry, lines[line]), note, marks }
    };
    let what = if alike.is_some() { "kinds of lines" } else { "lines" };
    Diagram {
        name: "weights".into(),
        title: title("Weights on the board's lines", order.len(), shown.len(), what),
        note: "Columns: detectors. Rows: weights of own stones in a cell; \"on\": the detector's weight at the output, over \
               all paths."
            .into(),
        size: (left + STEP * detectors as f64, tall.max(STEP * (k as f64 + 1.5))),
        panels: order.into_iter().map(|index| panel(shown[index])).collect(),
    }
}

/// "Weights on the board's lines: the strongest 18 of 76 lines".
fn title(what: &str, shown: usize, all: usize, of: &str) -> String {
    if shown == all { what.into() } else { format!("{what}: the strongest {shown} of {all} {of}") }
}

/// Each unit's weights as a board, with its layers next to each other.
fn of_units(geometry: &Geometry, layers: &Layers<'_>) -> Diagram {
    let (shape, units) = (geometry.shape(), layers.onward.len());
    let first = |place: usize, unit: usize| layers.first[place * units + unit];
    let places = || cells(geometry.cells()).enumerate();
    let size = |unit: usize| norm(places().map(|(place, _)| first(place, unit))) * layers.onward[unit].abs();
    let order = strongest(&(0..units).map(size).collect::<Vec<f32>>());
    let most = greatest(layers.first);
    let [wide, tall, depth] = [shape.width, shape.height, shape.depth].map(f64::from);
    let across = STEP * wide + 12.0;
    let panel = |unit: usize| {
        let mark = |(place, cell): (usize, u8)| {
            let [column, row, layer] = shape.position(cell).map(f64::from);
            // The lowest layer is on the left.
            let at = (across * (depth - 1.0 - layer) + STEP * (column + 0.5), STEP * (row + 0.5));
            weight(at, first(place, unit), most, &geometry.cell_name(cell))
        };
        let note = format!("to the output {:+.3}", layers.onward[unit]);
        Panel { title: format!("unit {}", unit + 1), note, marks: places().map(mark).collect() }
    };
    let beside = if shape.depth == 1 { "" } else { ", the lowest layer left" };
    Diagram {
        name: "weights".into(),
        title: title("Weights of the first layer", order.len(), units, "units"),
        note: format!(
            "A board for each unit{beside}: the weight of own stones in each cell; and its effect on the output."
        ),
        size: (across * depth - 12.0, STEP * tall),
        panels: order.into_iter().map(panel).collect(),
    }
}

/// The states of lines that count most; states that share an entry are shown once.
fn of_states(geometry: &Geometry, network: &Network, states: usize) -> Diagram {
    let sums = tuples::sums(&network.architecture, &network.weights);
    let entries = states.pow(geometry.shape().k.into());
    let (mut known, mut chosen) = (BTreeSet::new(), Vec::new());
    let mut order: Vec<usize> = (0..sums.len()).collect();
    order.sort_by(|one, other| sums[*other].1.abs().total_cmp(&sums[*one].1.abs()).then(one.cmp(other)));
    let all = sums.iter().map(|(alike, _)| *alike).collect::<BTreeSet<usize>>().len();
    for configuration in order {
        if chosen.len() < PANELS_MAX && known.insert(sums[configuration].0) {
            chosen.push(configuration);
        }
    }
    let rack = Rack(geometry.shape());
    let (wide, tall) = rack.size();
    let most = chosen.first().map_or(1.0, |strongest| sums[*strongest].1.abs().max(f32::MIN_POSITIVE));
    let panel = |configuration: usize| {
        let (line, mut state) = (geometry.lines()[configuration / entries], configuration % entries);
        let mut marks = rack.marks(geometry, line);
        for cell in cells(line) {
            match state % states {
                1 => marks.push(Mark::Stone(rack.place(cell), true)),
                2 => marks.push(Mark::Stone(rack.place(cell), false)),
                3 => {
                    let (right, down) = rack.place(cell);
                    marks.push(Mark::Text((right - 3.5, down - 4.0), "+".into()));
                }
                _ => {}
            }
            state /= states;
        }
        let value = sums[configuration].1;
        marks.push(weight((wide + BESIDE, 10.0), value, most, "its weight"));
        Panel { title: line_name(geometry, line), note: format!("weight {value:+.3}"), marks }
    };
    let playable = if states == 4 { "; +: empty, and can be played now" } else { "" };
    Diagram {
        name: "weights".into(),
        title: title("States of lines", chosen.len(), all, "states"),
        note: format!(
            "Black: own stones; white: the other side's{playable}. The circle: what the state adds to the value."
        ),
        size: (wide + 2.0 * BESIDE, tall),
        panels: chosen.into_iter().map(panel).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        board::score_four,
        net::{Activation, reference},
    };
    use evoxo_common::{plot, rng::Stream};

    fn network(first: First, second: usize, shared: bool, shape: Shape) -> Network {
        let architecture =
            Architecture { shape, first, second, biases: true, activation: Activation::Logistic, shared };
        let weights = architecture.initial(Stream::root(3)).iter().map(|weight| weight + 0.01).collect();
        Network { architecture, weights }
    }

    fn shares(panel: &Panel) -> Vec<(f64, String)> {
        let of = |mark: &Mark| match mark {
            Mark::Weight { share, says, .. } => Some((*share, says.clone())),
            _ => None,
        };
        panel.marks.iter().filter_map(of).collect()
    }

    #[test]
    fn every_architecture_has_a_picture() {
        let (lines, dense) = (First::Lines { detectors: 4 }, First::Dense { units: 20 });
        let (three, four) = (First::Tuples { states: 3 }, First::Tuples { states: 4 });
        let cases = [
            (lines, 0, false, Shape::SCORE_FOUR, 18, "the strongest 18 of 76 lines"),
            (First::Planes { detectors: 4, units: 3 }, 0, false, Shape::QUBIC, 18, "the strongest 18 of 76 lines"),
            (lines, 32, false, Shape::TIC_TAC_TOE, 8, "Weights on the board's lines"),
            (lines, 0, true, Shape::SCORE_FOUR, 18, "Weights on the board's lines"),
            (lines, 4, true, Shape::QUBIC, 6, "Weights on the board's lines"),
            (dense, 5, false, Shape::SCORE_FOUR, 18, "the strongest 18 of 20 units"),
            (dense, 0, false, Shape::CONNECT_FOUR, 18, "Weights of the first layer"),
            (four, 0, true, Shape::SCORE_FOUR, 18, "States of lines: the strongest 18 of"),
            (three, 2, true, Shape::SCORE_FOUR, 18, "States of lines"),
            (three, 2, false, Shape::TIC_TAC_TOE, 18, "the strongest 18 of 216 states"),
        ];
        for (first, second, shared, shape, panels, title) in cases {
            let picture = diagram(&network(first, second, shared, shape));
            assert_eq!(picture.panels.len(), panels, "{}", picture.title);
            assert!(picture.title.contains(title), "{}", picture.title);
            let circles = || picture.panels.iter().flat_map(shares);
            assert!(circles().all(|(share, _)| (-1.0..=1.0).contains(&share)));
            assert!(circles().any(|(share, _)| share.abs() > 0.5), "the scale is that of the weights");
            assert!(plot::diagram(&picture).ends_with("</svg>\n"));
        }
    }

    /// The weights drawn for a line are those that move the value: the derivative by a stone, if units are linear.
    #[test]
    fn paths_are_derivatives_at_small_weights() {
        let (lines, planes) = (First::Lines { detectors: 2 }, First::Planes { detectors: 2, units: 3 });
        for (first, second, shared) in [(lines, 3, false), (lines, 3, true), (planes, 0, false)] {
            let mut small = network(first, second, shared, Shape::SCORE_FOUR);
            small.architecture.biases = false;
            small.weights = small.architecture.initial(Stream::root(4)).iter().map(|weight| weight * 1e-3).collect();
            let picture = diagram(&Network { ..small.clone() });
            let network = reference::of(&small.architecture, &small.weights);
            // With one own stone in a corner, this is the sum of its lines' paths. Each of two units is halved by tanh(x /
            // 2).
            let sum = network.sum(crate::board::Board { x: 1, o: 0 }, crate::board::Side::X) * 4.0;
            let layers_of = |architecture: &Architecture, weights: &[f32]| {
                let layers = Layers::new(architecture, weights);
                let (k, mut paths) = (4, 0.0);
                for (line, mask) in score_four().lines().iter().enumerate() {
                    let place = cells(*mask).position(|cell| cell == 0);
                    for (unit, place) in (0..2).filter_map(|unit| Some((unit, place?))) {
                        paths += layers.first[(line * k + place) * 2 + unit] * layers.onward[line * 2 + unit];
                    }
                }
                f64::from(paths)
            };
            let paths = match shared {
                false => layers_of(&small.architecture, &small.weights),
                true => {
                    let Ties { unshared, weights, .. } = Ties::new(&small.architecture);
                    let all: Vec<f32> = weights.iter().map(|tie| small.weights[*tie]).collect();
                    layers_of(&unshared, &all)
                }
            };
            assert!((sum - paths).abs() < 1e-4 * paths.abs(), "{shared}: {sum} instead of {paths}");
            assert_eq!(picture.panels.len(), 18);
        }
    }

    /// A line's own name, its cells from the card, and its exact weights.
    #[test]
    fn a_line_shows_its_weights() {
        let mut network = network(First::Lines { detectors: 1 }, 0, false, Shape::TIC_TAC_TOE);
        network.weights = vec![0.0; network.weights.len()];
        // The first line's second cell, and its detector's weight at the output.
        let line = tic_tac_toe_line();
        (network.weights[3 * line + 1], network.weights[24 + 8 + line]) = (-0.5, 2.0);
        let picture = diagram(&network);
        assert_eq!(picture.panels[0].title, "a3 to c3");
        let shown = shares(&picture.panels[0]);
        assert_eq!(shown[1], (-1.0, "detector 1, b3: -0.500".into()));
        assert_eq!(shown[3], (1.0, "detector 1 to the output: +2.000".into()));
        assert!(shown[0].0 == 0.0 && shown[2].0 == 0.0);
    }

    /// The index of the upper row among the lines of 3x3.
    fn tic_tac_toe_line() -> usize {
        crate::board::tic_tac_toe().lines().iter().position(|line| *line == 0b111).unwrap()
    }
}
