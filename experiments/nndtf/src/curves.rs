//! The transfer functions of a network as curves, for `evoxo show --plots`. Figures 4 and 5 of the paper show samples with
//! means and spreads that its authors chose; here means and spreads are a network's genes.

use evoxo_common::report::{Drawn, Figure, Point, Series};
use evoxo_games::player::teacher::boards;

use super::network::{INPUTS, Kind, NetworkPlayer, logistics, steepness, tanh, transfer};

/// Steps of a curve from its left end to its right end.
const STEPS: u32 = 400;
/// How many boards a node's dynamic function is drawn for: the boards with the least and the greatest mean, and some between
/// them.
const SHAPES: usize = 5;

/// The figures of a network. One shows the functions that are the same on all boards: the static functions (equation 7) or
/// the hyperbolic tangent. For a network with double transfer functions, another shows the dynamic function (equation 9),
/// which changes with the outputs of a node's neighbours, for the node with the greatest weight at the output.
pub(super) fn figures(player: &NetworkPlayer) -> Vec<Figure> {
    let mut figures = vec![static_functions(player)];
    if player.network().kind == Kind::Double {
        figures.push(dynamic_function(player));
    }
    figures
}

/// The gene of a node in one of the parts that follow the first layer's weights. Each part has one gene per node.
fn gene(player: &NetworkPlayer, part: usize, node: usize) -> f64 {
    let hidden = player.network().hidden;
    f64::from(player.genes()[INPUTS * hidden + hidden * part + node])
}

/// A node's weighted sum of the inputs, on each board with X to move.
fn sums(player: &NetworkPlayer, node: usize) -> Vec<f64> {
    let (network, hidden) = (player.network(), player.network().hidden);
    let sum = |input: [f64; INPUTS]| {
        input.iter().enumerate().map(|(i, value)| f64::from(player.genes()[hidden * i + node]) * value).sum()
    };
    boards().iter().map(|board| sum(network.input(*board))).collect()
}

/// The range of some values, extended to at least -1 to 1 as in the paper's figures.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((-1.0, 1.0), |(least, most), value| (least.min(value), most.max(value)))
}

fn curve(name: String, (left, right): (f64, f64), function: impl Fn(f64) -> f64) -> Series {
    let point = |step: u32| {
        let x = left + (right - left) * f64::from(step) / f64::from(STEPS);
        let y = function(x);
        Point { x, mean: y, low: y, high: y }
    };
    Series { name, points: (0..=STEPS).map(point).collect() }
}

/// Rounds to two decimals, without -0.
fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0 + 0.0
}

/// The hidden nodes' functions, over the weighted sums that occur on boards.
fn static_functions(player: &NetworkPlayer) -> Figure {
    let hidden = player.network().hidden;
    let ends = range((0..hidden).flat_map(|node| sums(player, node)));
    let node = |node: usize| match player.network().kind {
        Kind::Double => {
            let (mean, spread) = (gene(player, 0, node), gene(player, 1, node));
            let name = format!("{}: m = {mean:.2}, s = {:.2}", node + 1, spread.abs());
            curve(name, ends, |x| transfer(x - mean, steepness(spread)))
        }
        Kind::Traditional => {
            let bias = gene(player, 0, node);
            curve(format!("{}: bias {bias:.2}", node + 1), ends, |x| tanh(x + bias))
        }
        Kind::Logistic => {
            let bias = gene(player, 0, node);
            curve(format!("{}: bias {bias:.2}", node + 1), ends, |x| logistics([x + bias])[0])
        }
    };
    Figure {
        name: "static".into(),
        title: "Transfer functions of the hidden nodes".into(),
        x_label: "weighted sum of the inputs".into(),
        y_label: "output".into(),
        y_range: Some((-1.0, 1.0)),
        drawn: Drawn::Lines,
        references: Vec::new(),
        series: (0..hidden).map(node).collect(),
    }
}

/// The dynamic function of the node with the greatest weight at the output, on boards that give it different shapes.
fn dynamic_function(player: &NetworkPlayer) -> Figure {
    let hidden = player.network().hidden;
    let weight = |node: usize| gene(player, 4, node).abs();
    let node = (0..hidden).fold(0, |best, node| if weight(node) > weight(best) { node } else { best });
    let outputs = |node: usize| {
        let (mean, spread) = (gene(player, 0, node), steepness(gene(player, 1, node)));
        sums(player, node).into_iter().map(move |sum| transfer(sum - mean, spread))
    };
    // The neighbours' static outputs. With several sweeps, the figure therefore shows the function of the first sweep.
    let neighbours = outputs((node + 1) % hidden).zip(outputs((node + hidden - 1) % hidden));
    let read: Vec<(f64, f64)> =
        if player.network().coupling.sweeps == 0 { vec![(1.0, 1.0)] } else { neighbours.collect() };
    let mut shapes: Vec<(f64, f64)> = read
        .into_iter()
        .map(|(after, behind)| (gene(player, 2, node) * after, (gene(player, 3, node) * behind).abs()))
        .collect();
    shapes.sort_by(|one, two| one.0.total_cmp(&two.0).then(one.1.total_cmp(&two.1)));
    let count = SHAPES.min(shapes.len());
    let on = if count > 1 { format!(" on {count} boards") } else { String::new() };
    let shape = |index: usize| {
        let (mean, spread) = shapes[index * (shapes.len() - 1) / (SHAPES - 1)];
        curve(format!("m = {:.2}, s = {spread:.2}", rounded(mean)), (-1.0, 1.0), |k| {
            transfer(k - mean, steepness(spread))
        })
    };
    Figure {
        name: "dynamic".into(),
        title: format!("Dynamic transfer function of node {}{on}", node + 1),
        x_label: "the node's static output".into(),
        y_label: "output".into(),
        y_range: Some((-1.0, 1.0)),
        drawn: Drawn::Lines,
        references: Vec::new(),
        series: (0..count).map(shape).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Coupling, Network};
    use evoxo_common::{plot::svg, rng::Stream};

    #[test]
    fn curves_show_the_networks_functions() {
        let kinds = [(Kind::Double, 1), (Kind::Double, 0), (Kind::Traditional, 1), (Kind::Logistic, 1)];
        for (kind, sweeps) in kinds {
            let network = Network { hidden: 5, coupling: Coupling::at_once(sweeps), ..Network::paper(kind) };
            let player = NetworkPlayer::new(network, network.random(&mut Stream::root(4).rng())).unwrap();
            let figures = figures(&player);
            assert_eq!(figures.len(), if kind == Kind::Double { 2 } else { 1 });
            assert_eq!(figures[0].series.len(), 5);
            assert!(figures.get(1).is_none_or(|dynamic| dynamic.series.len() == if sweeps == 0 { 1 } else { 5 }));
            for figure in &figures {
                let points = || figure.series.iter().flat_map(|series| &series.points);
                assert!(points().all(|point| (-1.0..=1.0).contains(&point.mean)), "{}", figure.name);
                // Every curve rises from left to right, as in the paper's figures.
                assert!(figure.series.iter().all(|series| series.points.is_sorted_by(|a, b| a.mean <= b.mean)));
                assert!(svg(figure).ends_with("</svg>\n"));
            }
            // All sums that occur on boards are within the figure.
            let all: Vec<f64> = (0..5).flat_map(|node| sums(&player, node)).collect();
            let (left, right) = (figures[0].series[0].points[0].x, figures[0].series[0].points[400].x);
            assert!(all.iter().all(|sum| (left..=right).contains(sum)));
        }
    }

    /// The network's output can be computed from its curves: first the node's static output, then its dynamic one.
    #[test]
    fn a_network_of_one_node_is_its_two_curves() {
        let network = Network { hidden: 1, ..Network::paper(Kind::Double) };
        let player = NetworkPlayer::new(network, network.random(&mut Stream::root(5).rng())).unwrap();
        for (index, board) in boards().iter().enumerate().step_by(97) {
            let static_output = transfer(sums(&player, 0)[index] - gene(&player, 0, 0), steepness(gene(&player, 1, 0)));
            let (mean, spread) = (gene(&player, 2, 0) * static_output, gene(&player, 3, 0) * static_output);
            let node = transfer(static_output - mean, steepness(spread)) * gene(&player, 4, 0);
            let (mean, spread) = (f64::from(player.genes()[14]), f64::from(player.genes()[15]));
            let output = transfer(node - mean, steepness(spread));
            assert_eq!(network.output(player.genes(), &network.input(*board)), output);
        }
    }
}
