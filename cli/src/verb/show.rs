//! `evoxo show FILE`: what a champion is made of, for people.

use std::{io::Write, path::PathBuf, process::ExitCode};

use evoxo_common::{
    board::{Board, Side, tic_tac_toe},
    card::{Card, Player},
    experiment::{
        invincible::{graph::Graph, table::TableGenome},
        nndtf::network::Kind,
        rules::{agent::Agent, rule::Rule},
        ternary::{
            index::{PLACEMENT, board_of},
            player::Ternary,
        },
    },
};
use serde_json::json;

use super::audit::read_card;

/// Which card.
#[derive(clap::Args)]
#[command(
    after_help = "Of an agent made of rules: each rule as a board, the heaviest first. P is a stone of its own, C one of its
opponent's, V no stone, * anything; [ ] is where it moves. Of a table or a string: each board with its move, in
brackets. Of a network: its layers, or its genes."
)]
pub(crate) struct Arguments {
    /// A champion's card: JSON, as in a run's champions/ or made by hand; or a network's file
    file: PathBuf,
    /// Only so many rules or boards
    #[arg(long, value_name = "COUNT")]
    first: Option<usize>,
    /// Print it as JSON: a list of {"when", "move", "priority", "weight"}, of {"board", "move"}, of {"tensor", "shape"}, or of {"gene"}
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let card = read_card(&arguments.file)?;
    let mut out = std::io::stdout().lock();
    let count = arguments.first.unwrap_or(usize::MAX);
    match arguments.json {
        true => writeln!(out, "{:#}", to_json(&card.player, count))?,
        false => show(&card, count, &mut out)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn to_json(player: &Player, count: usize) -> serde_json::Value {
    match player {
        Player::Rules(agent) => {
            let rule = |(rule, weight): (Rule, i32)| {
                let text = rule.to_string();
                let (when, to) = text.split_at(text.len() - 1);
                json!({"when": when, "move": to, "priority": rule.priority(), "weight": weight})
            };
            agent.heaviest_first().into_iter().take(count).map(rule).collect()
        }
        Player::Table(table) => boards(table)
            .take(count)
            .map(|(board, cell)| json!({"board": tic_tac_toe().board_text(board), "move": tic_tac_toe().cell_name(cell)}))
            .collect(),
        Player::Ternary(string) => decisions(string)
            .take(count)
            .map(|(board, cell)| json!({"board": tic_tac_toe().board_text(board), "move": tic_tac_toe().cell_name(cell)}))
            .collect(),
        Player::Nndtf(network) => network.genes().iter().take(count).map(|gene| json!({"gene": gene})).collect(),
        Player::Network(network) => {
            let tensors = network.architecture.tensors().into_iter().take(count);
            tensors.map(|tensor| json!({"tensor": tensor.name, "shape": tensor.shape})).collect()
        }
    }
}

fn show(card: &Card, count: usize, out: &mut impl Write) -> std::io::Result<()> {
    match &card.player {
        Player::Rules(agent) => {
            let (rules, weight) = (agent.rules.len(), agent.weight);
            writeln!(
                out,
                "An agent of {rules} rules, weight {weight}; the heaviest rules first. P is a stone of its own, C one"
            )?;
            writeln!(out, "of its opponent's, V no stone, * anything; [ ] is where it moves.\n")?;
            show_rules(agent, count, out)
        }
        Player::Table(table) => {
            let (side, total) = (table.side().letter(), boards(table).count());
            writeln!(
                out,
                "A table that plays {side}: its move on each of {total} boards; where a line can be completed or"
            )?;
            writeln!(out, "must be blocked, it does that.\n")?;
            let pictures = boards(table).take(count).map(|(board, cell)| table_picture(board, cell)).collect();
            side_by_side(pictures, out)
        }
        Player::Ternary(string) => {
            let (side, total) = (string.code.side.letter(), decisions(string).count());
            writeln!(
                out,
                "A string that plays {side}: its move on each of {total} boards and, turned, on their turns;"
            )?;
            writeln!(out, "where the brackets are around a stone it plays any empty cell.\n")?;
            let pictures = decisions(string).take(count).map(|(board, cell)| table_picture(board, cell)).collect();
            side_by_side(pictures, out)
        }
        Player::Nndtf(player) => {
            let (network, genes) = (player.network(), player.genes());
            let kind = match network.kind {
                Kind::Double => "double transfer functions",
                Kind::Traditional => "the hyperbolic tangent",
            };
            writeln!(out, "A network of experiment nndtf with {kind}: {} genes, of either side.\n", genes.len())?;
            for row in genes[..count.min(genes.len())].chunks(8) {
                writeln!(out, "  {}", row.iter().map(|gene| format!("{gene:+.4}")).collect::<Vec<_>>().join("  "))?;
            }
            Ok(())
        }
        Player::Network(network) => {
            let architecture = &network.architecture;
            let shape = architecture.shape;
            let gravity = if shape.gravity { ", stones fall" } else { "" };
            let (width, height, depth, k) = (shape.width, shape.height, shape.depth, shape.k);
            writeln!(out, "A network for {width}x{height}x{depth} cells, {k} in a row{gravity}.")?;
            let (connections, parameters) = (architecture.connections(), architecture.parameters());
            writeln!(
                out,
                "{connections} connections, {parameters} weights with biases; {:?}.\n",
                architecture.activation
            )?;
            for tensor in architecture.tensors().into_iter().take(count) {
                let weights = &network.weights[tensor.range.clone()];
                let (least, most) = weights.iter().fold((f32::MAX, f32::MIN), |(a, b), w| (a.min(*w), b.max(*w)));
                let shape: Vec<String> = tensor.shape.iter().map(ToString::to_string).collect();
                writeln!(out, "  {:<16}{:>12}  from {least:+.3} to {most:+.3}", tensor.name, shape.join(" x "))?;
            }
            Ok(())
        }
    }
}

/// The boards on which a table is asked, with the cell it takes.
fn boards(table: &TableGenome) -> impl Iterator<Item = (Board, u8)> + '_ {
    Graph::of(table.side()).boards().iter().copied().zip(table.genes().iter().copied())
}

/// The boards of a string's table, each with the cell that it names, taken or not.
fn decisions(string: &Ternary) -> impl Iterator<Item = (Board, u8)> + '_ {
    let decision = |code: &u16| {
        let decision = string.code.decision(&string.genome, *code)?;
        Some((board_of(*code), PLACEMENT[usize::from(decision.cell)]))
    };
    string.code.index().representatives().iter().filter_map(decision)
}

fn show_rules(agent: &Agent, count: usize, out: &mut impl Write) -> std::io::Result<()> {
    let picture = |(rule, weight): (Rule, i32)| {
        let mut lines = vec![format!("weight {weight}"), format!("priority {}", rule.priority())];
        lines.extend(rows(|cell| rule.need(cell).letter(), rule.to()));
        lines
    };
    side_by_side(agent.heaviest_first().into_iter().take(count).map(picture).collect(), out)
}

fn table_picture(board: Board, to: u8) -> Vec<String> {
    let letter = |cell: u8| match (board.stones(Side::X) >> cell & 1, board.stones(Side::O) >> cell & 1) {
        (0, 0) => '.',
        (1, _) => 'X',
        _ => 'O',
    };
    rows(letter, to).collect()
}

/// Three lines of three cells, with brackets around the one to move to.
fn rows(letter: impl Fn(u8) -> char, to: u8) -> impl Iterator<Item = String> {
    (0..3).map(move |row| {
        let cell = |column: u8| {
            let number = 3 * row + column;
            let letter = letter(number);
            if number == to { format!("[{letter}]") } else { format!(" {letter} ") }
        };
        (0..3).map(cell).collect()
    })
}

/// Pictures of so many letters' width.
const PICTURE: usize = 13;
/// Pictures in a row: a terminal of 80 columns has room for them.
const IN_A_ROW: usize = 6;

/// Pictures in rows, with an empty line below each row.
fn side_by_side(pictures: Vec<Vec<String>>, out: &mut impl Write) -> std::io::Result<()> {
    for row in pictures.chunks(IN_A_ROW) {
        let height = row.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            let parts: Vec<String> = row.iter().map(|picture| format!("{:<PICTURE$}", picture[line])).collect();
            writeln!(out, "{}", parts.concat().trim_end())?;
        }
        writeln!(out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::{
        card::Network,
        experiment::{invincible::optimum::optimum, rules::rule::read},
        net::{Activation, Architecture, First},
        ratio::Ratio,
        rng::Stream,
    };

    fn shown(player: Player, count: usize) -> String {
        let mut out = Vec::new();
        let card = Card::from(player);
        show(&card, count, &mut out).unwrap();
        format!("{}{:#}\n", String::from_utf8(out).unwrap(), to_json(&card.player, count.min(2)))
    }

    #[test]
    fn an_agent_is_drawn_as_boards() {
        let rules = [("PPV******3", 2), ("C***V***C5", 3), ("*********9", 0), ("VVVVPVVVV1", 1), ("PCPCPC**V9", 1)];
        let mut agent = Agent::newborn(rules.iter().map(|(text, priority)| read(text, *priority).unwrap()).collect());
        (agent.weight, agent.weights) = (7, vec![12, -100, 0, 12, 3]);
        agent.rules.extend([agent.rules[0]; 2]);
        agent.weights.extend([-1, -2]);
        insta::assert_snapshot!(shown(Player::Rules(agent.clone()), 100));
        assert_eq!(shown(Player::Rules(agent), 1).matches("priority ").count(), 1);
    }

    #[test]
    fn a_table_and_a_network_are_told_in_short() {
        let table = optimum(Side::X, Ratio::from(100)).player;
        insta::assert_snapshot!("table", shown(Player::Table(table), 7));
        let architecture = Architecture {
            shape: tic_tac_toe().shape(),
            first: First::Lines { detectors: 4 },
            second: 3,
            biases: true,
            activation: Activation::Logistic,
            shared: false,
        };
        let weights = architecture.initial(Stream::root(1));
        insta::assert_snapshot!("network", shown(Player::Network(Network { architecture, weights }), 100));
    }
}
