//! `evoxo show FILE`: what a champion is made of, for people.

use std::{io::Write, path::PathBuf, process::ExitCode};

use evoxo_common::{
    board::{Board, Side, tic_tac_toe},
    card::{Card, Player},
    experiment::{
        invincible::{graph::Graph, table::TableGenome},
        nndtf::network::{HIDDEN, INPUTS, Kind, NetworkPlayer, Numbering},
        rules::{agent::Agent, rule::Rule},
        ternary::{
            index::{PLACEMENT, board_of},
            player::Ternary,
        },
    },
    net::Activation,
};
use serde_json::json;

use super::audit::read_card;
use crate::arguments::whole;

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
    /// Only so many rules, boards, layers or genes
    #[arg(
        long,
        value_name = "COUNT",
        allow_negative_numbers = true,
        value_parser = whole::<usize>(0, 1_000_000)
    )]
    first: Option<usize>,
    /// Print it as JSON: a list of {"when", "move", "priority", "weight"}, of {"board", "move"}, of {"tensor", "shape"}, or of {"name", "gene"}
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
        Player::Nndtf(network) => genes(network)
            .flat_map(|(_, genes)| genes)
            .take(count)
            .map(|(name, gene)| json!({"name": name, "gene": gene}))
            .collect(),
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
        Player::Nndtf(player) => show_genes(player, count, out),
        Player::Network(network) => {
            let architecture = &network.architecture;
            let shape = architecture.shape;
            let gravity = if shape.gravity { ", stones fall" } else { "" };
            let (width, height, depth, k) = (shape.width, shape.height, shape.depth, shape.k);
            writeln!(out, "A network for {width}x{height}x{depth} cells, {k} in a row{gravity}.")?;
            let (weights, all) = (architecture.connections(), architecture.parameters());
            let biases = if all > weights { format!(" and {} biases", all - weights) } else { String::new() };
            let activation = match architecture.activation {
                Activation::Logistic => "logistic units, tanh(x / 2)",
                Activation::Tanh => "units with tanh(x)",
            };
            writeln!(out, "{weights} weights{biases}; {activation}.\n")?;
            for tensor in architecture.tensors().into_iter().take(count) {
                let weights = &network.weights[tensor.range.clone()];
                let (least, most) = weights.iter().fold((f32::MAX, f32::MIN), |(a, b), w| (a.min(*w), b.max(*w)));
                let shape: Vec<String> = tensor.shape.iter().map(ToString::to_string).collect();
                let values = match weights {
                    [only] => format!("{only:+.3}"),
                    _ => format!("from {least:+.3} to {most:+.3}"),
                };
                writeln!(out, "  {:<16}{:>12}  {values}", tensor.name, shape.join(" x "))?;
            }
            Ok(())
        }
    }
}

/// A network's genes by name: rows of those that belong together, each with its own name.
fn genes(player: &NetworkPlayer) -> impl Iterator<Item = (String, Vec<(String, f32)>)> + '_ {
    let per_node: &[&str] = match player.network().kind {
        Kind::Double => &["ms", "ss", "p(j+1,j)", "p(j-1,j)", "w"],
        Kind::Traditional => &["bias", "w"],
    };
    let of_output: &[&str] = match player.network().kind {
        Kind::Double => &["mo", "so"],
        Kind::Traditional => &["output bias"],
    };
    let node = |name: &str, j: usize| match name.strip_prefix("p(") {
        None => format!("{name}_{j}"),
        Some("j+1,j)") => format!("p({},{j})", j % HIDDEN + 1),
        Some(_) => format!("p({},{j})", (j + HIDDEN - 2) % HIDDEN + 1),
    };
    let nodes = |row: &dyn Fn(usize) -> String| (1..=HIDDEN).map(row).collect::<Vec<String>>();
    let mut rows: Vec<(String, Vec<String>)> =
        (1..=INPUTS).map(|i| (format!("v_{i}j"), nodes(&|j| format!("v_{i}{j}")))).collect();
    let label = |name: &str| if name.starts_with("p(") { name.to_owned() } else { format!("{name}_j") };
    rows.extend(per_node.iter().map(|name| (label(name), nodes(&|j| node(name, j)))));
    rows.extend(of_output.iter().map(|name| ((*name).to_owned(), vec![(*name).to_owned()])));
    let mut genes = player.genes().iter().copied();
    rows.into_iter().map(move |(label, names)| (label, names.into_iter().zip(genes.by_ref()).collect()))
}

fn show_genes(player: &NetworkPlayer, count: usize, out: &mut impl Write) -> std::io::Result<()> {
    let network = player.network();
    let (kind, legend) = match network.kind {
        Kind::Double => (
            "double transfer functions",
            "ms_j and ss_j are its mean and spread, p(j+1,j) and p(j-1,j) the weights of its neighbours,\n\
             w_j its weight at the output; mo and so are the output's mean and spread.",
        ),
        Kind::Traditional => {
            ("the hyperbolic tangent", "bias_j is its bias and w_j its weight at the output, which has a bias too.")
        }
    };
    let order = match network.numbering {
        Numbering::LeftToRight => "left to right",
        Numbering::RightToLeft => "right to left",
    };
    let (count_all, sweeps) = (player.genes().len(), network.coupling.sweeps);
    let sweeps = match network.kind {
        Kind::Double => format!(", {sweeps} {}", if sweeps == 1 { "sweep" } else { "sweeps" }),
        Kind::Traditional => String::new(),
    };
    writeln!(out, "A network of experiment nndtf with {kind}: {count_all} genes{sweeps}, of either side.")?;
    writeln!(out, "v_ij is the weight from cell i, numbered from {order}, to hidden node j (1 to {HIDDEN}).")?;
    writeln!(out, "Of node j, {legend}\n")?;
    let mut left = count;
    for (label, genes) in genes(player) {
        let shown = &genes[..left.min(genes.len())];
        left -= shown.len();
        if !shown.is_empty() {
            let row: Vec<String> = shown.iter().map(|(_, gene)| format!("{gene:+.4}")).collect();
            writeln!(out, "  {label:<12}{}", row.join("  "))?;
        }
    }
    Ok(())
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
        experiment::nndtf::network::{Coupling, Network as Nndtf},
        experiment::{invincible::optimum::optimum, rules::rule::read},
        net::{Architecture, First},
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

    /// Each gene with its name, in the order of the card.
    #[test]
    fn genes_have_names() {
        for (kind, name) in [(Kind::Double, "double"), (Kind::Traditional, "traditional")] {
            let network = Nndtf { kind, coupling: Coupling { sweeps: 1 }, numbering: Numbering::LeftToRight };
            let all = (0..kind.genes()).map(|gene| gene as f32 / 1000.0);
            let player = NetworkPlayer::new(network, all.collect()).unwrap();
            let told: Vec<(String, f32)> = genes(&player).flat_map(|(_, genes)| genes).collect();
            assert!(told.iter().map(|(_, gene)| gene).eq(player.genes()));
            let names: std::collections::BTreeSet<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names.len(), told.len());
            let of = |name: &str| told.iter().position(|(other, _)| other == name);
            if kind == Kind::Double {
                let places = ["v_11", "v_12", "v_98", "ms_1", "p(1,8)", "p(8,1)", "so"].map(of);
                assert_eq!(places, [0, 1, 71, 72, 95, 96, 113].map(Some));
            }
            insta::assert_snapshot!(name, shown(Player::Nndtf(player), 1000));
        }
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
