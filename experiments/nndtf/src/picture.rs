//! A picture of the weights of a network of `nndtf`: for each hidden node, a board with the weights from the cells.

use evoxo_common::plot::{Diagram, Mark, Panel};
use evoxo_games::board::tic_tac_toe;

use super::network::{INPUTS, Kind, NetworkPlayer};

/// Pixels from one cell to the next.
const STEP: f64 = 22.0;
/// The width of a panel in pixels, with room for its note.
const WIDTH: f64 = 160.0;

/// The picture of a network.
pub(super) fn diagram(player: &NetworkPlayer) -> Diagram {
    let (network, genes) = (player.network(), player.genes());
    let hidden = network.hidden;
    let first = |place: usize, node: usize| genes[hidden * place + node];
    // The gene of node j in a part that follows the first layer's weights. Each part has one gene per node.
    let of_node = |part: usize, node: usize| genes[hidden * (INPUTS + part) + node];
    let most = genes[..INPUTS * hidden].iter().fold(f32::MIN_POSITIVE, |most, gene| most.max(gene.abs()));
    let panel = |node: usize| {
        let mark = |place: usize| {
            let (cell, weight) = (network.numbering.cell(place), first(place, node));
            let at = (STEP * ((cell % 3) as f64 + 0.5), STEP * ((cell / 3) as f64 + 0.5));
            let says = format!("{}: {weight:+.3}", tic_tac_toe().cell_name(cell as u8));
            Mark::Weight { at, share: f64::from(weight / most), says }
        };
        let note = match network.kind {
            Kind::Double => {
                format!("w {:+.2}, m {:+.2}, s {:.2}", of_node(4, node), of_node(0, node), of_node(1, node).abs())
            }
            Kind::Traditional | Kind::Logistic => format!("w {:+.2}, bias {:+.2}", of_node(1, node), of_node(0, node)),
        };
        Panel { title: format!("node {}", node + 1), note, marks: (0..INPUTS).map(mark).collect() }
    };
    let rest = match network.kind {
        Kind::Double => "w: its weight at the output; m, s: mean and spread of its transfer function.",
        Kind::Traditional | Kind::Logistic => "w: its weight at the output.",
    };
    Diagram {
        name: "weights".into(),
        title: "Weights from the cells to the hidden nodes".into(),
        note: format!("A board for each node: the weight of each cell. {rest}"),
        size: (WIDTH, 3.0 * STEP),
        panels: (0..hidden).map(panel).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Coupling, Network, Numbering};
    use evoxo_common::plot;

    /// Each weight is drawn at its cell, whatever the numbering. The notes show the node's own genes.
    #[test]
    fn weights_stand_at_their_cells() {
        for (kind, note) in
            [(Kind::Double, "w +106.00, m +74.00, s 82.00"), (Kind::Traditional, "w +82.00, bias +74.00")]
        {
            let network =
                Network { kind, hidden: 8, coupling: Coupling::at_once(1), numbering: Numbering::RightToLeft };
            let genes = (0..network.genes()).map(|gene| gene as f32).collect();
            let picture = diagram(&NetworkPlayer::new(network, genes).unwrap());
            assert_eq!((picture.panels.len(), picture.panels[2].note.as_str()), (8, note));
            // The first input is the upper right cell. Its weight to node 3 is gene 2, and the greatest weight is gene 71.
            let Mark::Weight { at, share, says } = &picture.panels[2].marks[0] else { panic!("a weight comes first") };
            assert_eq!((*at, says.as_str()), ((2.5 * STEP, 0.5 * STEP), "c3: +2.000"));
            assert!((share - 2.0 / 71.0).abs() < 1e-6);
            assert!(plot::diagram(&picture).ends_with("</svg>\n"));
        }
    }
}
