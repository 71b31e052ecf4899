//! The card of a network of `nndtf`, and the network as a player.

use std::{any::Any, ops::RangeInclusive, sync::Arc};

use evoxo_common::{
    card::{CardKind, Champion, Entries, Load, Showing, brief},
    plot::Diagram,
    report::Figure,
    rng::Generator,
    settings::Choice,
};
use evoxo_games::{
    board::{Geometry, Position, Side, tic_tac_toe},
    odds::sides_showing,
    player::{Move, Play, Player, describe},
};
use serde_json::{Map, Value, json};

use super::curves;
use super::network::{
    Coupling, GENE_MAX, HIDDEN, HIDDEN_MAX, INPUTS, Kind, Network, NetworkPlayer, Numbering, SWEEPS_MAX,
};
use super::picture;

/// `{"kind": "nndtf", "network": "double", "sweeps": 1, "numbering": "left-to-right", "genes": [0.25, -1, ...]}`
///
/// These keys may be left out: `sweeps` is then 1, `numbering` left to right, `hidden` (the number of hidden nodes) 8, and
/// `in_place` (whether sweeps change one node after another) false. The network plays either side.
pub(super) const CARD: CardKind =
    CardKind { name: "nndtf", keys: &KEYS, about: &["fitness", "fitness_on_all_boards"], read, file: None };

const KEYS: [&str; 7] = ["kind", "network", "sweeps", "numbering", "genes", "hidden", "in_place"];

fn read(entries: &Entries, _: &str, _: &mut Load<'_>) -> Result<Arc<dyn Champion>, String> {
    let kind = word(entries, "network")?
        .ok_or("the card has no \"network\": give \"double\", \"traditional\" or \"logistic\"")?;
    let numbering = word(entries, "numbering")?.unwrap_or(Numbering::LeftToRight);
    let number = |key: &str, what: &str, range: RangeInclusive<u64>, usual: u64| match entries.get(key) {
        None => Ok(usual),
        Some(value) => match value.as_u64() {
            Some(number) if range.contains(&number) => Ok(number),
            _ => Err(format!("the card's {what} are {}, not {} to {}", brief(value), range.start(), range.end())),
        },
    };
    let sweeps = number("sweeps", "sweeps", 0..=SWEEPS_MAX.into(), 1)? as u32;
    let hidden = number("hidden", "hidden nodes", 1..=HIDDEN_MAX as u64, HIDDEN as u64)? as usize;
    let genes = entries.get("genes").and_then(Value::as_array).ok_or("the card has no \"genes\", a list of numbers")?;
    let gene = |(at, value): (usize, &Value)| {
        let gene = value.as_f64().map(|gene| gene as f32).filter(|gene| gene.is_finite());
        gene.ok_or_else(|| {
            format!(
                "the card's genes: gene {at} is {}, which is not a number from -{GENE_MAX} to {GENE_MAX}",
                brief(value)
            )
        })
    };
    let genes = genes.iter().enumerate().map(gene).collect::<Result<Vec<f32>, String>>()?;
    let in_place = match entries.get("in_place") {
        None => false,
        Some(value) => {
            value.as_bool().ok_or_else(|| format!("the card's in_place is {}, not true or false", brief(value)))?
        }
    };
    let player =
        NetworkPlayer::new(Network { kind, hidden, coupling: Coupling { sweeps, in_place }, numbering }, genes);
    Ok(Arc::new(player.map_err(|why| format!("the card's genes: {why}"))?))
}

/// The choice named by the text of a key.
fn word<C: Choice>(entries: &Entries, key: &str) -> Result<Option<C>, String> {
    let Some(value) = entries.get(key) else { return Ok(None) };
    let names: Vec<&str> = C::choices().iter().map(|(word, _)| *word).collect();
    match value.as_str().filter(|word| names.contains(word)) {
        Some(word) => Ok(Some(C::of(word))),
        None => Err(format!("the card's {key} is {}, not one of {}", brief(value), names.join(", "))),
    }
}

/// The keys of a player's card.
fn to_map(player: &NetworkPlayer) -> Map<String, Value> {
    let network = player.network();
    let values = [
        "nndtf".into(),
        network.kind.word().into(),
        network.coupling.sweeps.into(),
        network.numbering.word().into(),
        decimals(player.genes()),
    ];
    let unusual = [
        ("hidden", (network.hidden != HIDDEN).then(|| network.hidden.into())),
        ("in_place", network.coupling.in_place.then(|| true.into())),
    ];
    let unusual = unusual.into_iter().filter_map(|(key, value)| Some((key.into(), value?)));
    KEYS.map(String::from).into_iter().zip(values).chain(unusual).collect()
}

/// Each number as its shortest decimal.
pub(super) fn decimals(numbers: &[f32]) -> Value {
    let decimal = |number: &f32| number.to_string().parse::<f64>().expect("Rust reads its own numbers");
    numbers.iter().map(decimal).map(Value::from).collect()
}

impl Champion for NetworkPlayer {
    fn write(&self, _: &str) -> (Map<String, Value>, Option<(String, Vec<u8>)>) {
        (to_map(self), None)
    }

    fn show(&self, first: usize) -> Showing {
        let named = genes(self).flat_map(|(_, genes)| genes).take(first);
        Showing {
            text: genes_text(self, first),
            json: named.map(|(name, gene)| json!({"name": name, "gene": gene})).collect(),
        }
    }

    fn figures(&self) -> Vec<Figure> {
        curves::figures(self)
    }

    fn diagrams(&self) -> Vec<Diagram> {
        vec![picture::diagram(self)]
    }

    fn capability(&self, about: &Map<String, Value>) -> Result<Option<Box<dyn Any>>, String> {
        let what = match self.network().kind {
            Kind::Double => "The nndtf network with double transfer functions",
            Kind::Traditional => "The nndtf network with the hyperbolic tangent",
            Kind::Logistic => "The nndtf network with the logistic function",
        };
        let play = Box::new(NetworkPlay { player: self.clone(), description: describe(what, about) });
        Ok(Some(Box::new(Player { name: "nndtf network".into(), geometry: tic_tac_toe(), side: None, play })))
    }
}

/// A network as a player.
struct NetworkPlay {
    player: NetworkPlayer,
    /// A description of the network, to begin a sentence with.
    description: String,
}

impl Play for NetworkPlay {
    fn choose_move(&mut self, _: &'static Geometry, position: Position, _: &mut Generator) -> Move {
        let cell = self.player.choose(position.board()).expect("an unfinished game has an empty cell");
        Move::new(cell, "its output is nearest to that cell's number")
    }

    fn exact(&self) -> Result<Showing, String> {
        Ok(sides_showing(&self.description, false, &Side::BOTH.map(|side| (side, self.player.exact(side)))))
    }
}

/// A network's genes with their names, in rows of genes that belong together. Each row has a name too.
fn genes(player: &NetworkPlayer) -> impl Iterator<Item = (String, Vec<(String, f32)>)> + '_ {
    let hidden = player.network().hidden;
    let per_node: &[&str] = match player.network().kind {
        Kind::Double => &["ms", "ss", "p(j+1,j)", "p(j-1,j)", "w"],
        Kind::Traditional | Kind::Logistic => &["bias", "w"],
    };
    let of_output: &[&str] = match player.network().kind {
        Kind::Double => &["mo", "so"],
        Kind::Traditional | Kind::Logistic => &["output bias"],
    };
    let node = |name: &str, j: usize| match name.strip_prefix("p(") {
        None => format!("{name}_{j}"),
        Some("j+1,j)") => format!("p({},{j})", j % hidden + 1),
        Some(_) => format!("p({},{j})", (j + hidden - 2) % hidden + 1),
    };
    let nodes = |row: &dyn Fn(usize) -> String| (1..=hidden).map(row).collect::<Vec<String>>();
    let mut rows: Vec<(String, Vec<String>)> =
        (1..=INPUTS).map(|i| (format!("v_{i}j"), nodes(&|j| format!("v_{i}{j}")))).collect();
    let label = |name: &str| if name.starts_with("p(") { name.to_owned() } else { format!("{name}_j") };
    rows.extend(per_node.iter().map(|name| (label(name), nodes(&|j| node(name, j)))));
    rows.extend(of_output.iter().map(|name| ((*name).to_owned(), vec![(*name).to_owned()])));
    let mut genes = player.genes().iter().copied();
    rows.into_iter().map(move |(label, names)| (label, names.into_iter().zip(genes.by_ref()).collect()))
}

fn genes_text(player: &NetworkPlayer, first: usize) -> String {
    let network = player.network();
    let with_bias = "bias_j is its bias and w_j its weight at the output, which has a bias too.";
    let (kind, legend) = match network.kind {
        Kind::Double if network.coupling.sweeps == 0 => (
            "double transfer functions, where no node reads another",
            "ms_j and ss_j are its first mean and spread, p(j+1,j) and p(j-1,j) its second ones,\n\
             w_j its weight at the output; mo and so are the output's mean and spread.",
        ),
        Kind::Double => (
            "double transfer functions",
            "ms_j and ss_j are its mean and spread, p(j+1,j) and p(j-1,j) the weights of its neighbours,\n\
             w_j its weight at the output; mo and so are the output's mean and spread.",
        ),
        Kind::Traditional => ("the hyperbolic tangent", with_bias),
        Kind::Logistic => ("the logistic function", with_bias),
    };
    let order = match network.numbering {
        Numbering::LeftToRight => "left to right",
        Numbering::RightToLeft => "right to left",
    };
    let (count_all, sweeps, hidden) = (player.genes().len(), network.coupling.sweeps, network.hidden);
    let sweeps = match network.kind {
        Kind::Double if sweeps > 0 => {
            let how = if network.coupling.in_place { " in place" } else { "" };
            format!(", {sweeps} {}{how}", if sweeps == 1 { "sweep" } else { "sweeps" })
        }
        _ => String::new(),
    };
    let mut text = format!(
        "A network of experiment nndtf with {kind}: {count_all} genes{sweeps}, of either side.\n\
         v_ij is the weight from cell i, numbered from {order}, to hidden node j (1 to {hidden}).\n\
         Of node j, {legend}\n\n"
    );
    let mut left = first;
    for (label, genes) in genes(player) {
        let shown = &genes[..left.min(genes.len())];
        left -= shown.len();
        if !shown.is_empty() {
            let row: Vec<String> = shown.iter().map(|(_, gene)| format!("{gene:+.4}")).collect();
            text += &format!("  {label:<12}{}\n", row.join("  "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::{card::Card, rng::Stream};

    fn read(text: &str) -> Result<Card, String> {
        Card::read(&[&CARD], text, &mut |_| panic!("the card has no file next to it"))
    }

    #[test]
    fn a_card_survives_a_round_trip() {
        for (kind, hidden, sweeps, numbering) in [
            (Kind::Double, 8, 3, Numbering::RightToLeft),
            (Kind::Double, 1, 1, Numbering::LeftToRight),
            (Kind::Double, 8, 0, Numbering::LeftToRight),
            (Kind::Traditional, 16, 1, Numbering::LeftToRight),
            (Kind::Logistic, 8, 1, Numbering::LeftToRight),
        ] {
            for coupling in [Coupling::at_once(sweeps), Coupling::in_place(sweeps)] {
                let network = Network { kind, hidden, coupling, numbering };
                let genes = network.random(&mut Stream::root(1).rng());
                let card = Card::new(NetworkPlayer::new(network, genes).unwrap());
                let (text, file) = card.write("one");
                assert_eq!((read(&text), file), (Ok(card), None));
            }
        }
    }

    #[test]
    fn invalid_cards_are_rejected_with_a_reason() {
        let genes = vec!["0.5"; 89].join(", ");
        let card = |rest: &str| read(&format!("{{\"kind\": \"nndtf\", {rest}}}")).map(|_| ()).unwrap_err();
        let good = format!("\"network\": \"traditional\", \"genes\": [{genes}]");
        assert!(read(&format!("{{\"kind\": \"nndtf\", {good}}}")).is_ok());
        insta::assert_snapshot!(
            [
                card("\"network\": \"double\""),
                card(&format!("\"genes\": [{genes}]")),
                card(&format!("\"network\": \"treble\", \"genes\": [{genes}]")),
                card(&good.replace("traditional", "double")),
                card(&good.replacen("0.5", "1000.5", 1)),
                card(&good.replacen("0.5", "null", 1)),
                card(&good.replacen("0.5, 0.5", "0.5, 1e300", 1)),
                card(&format!("{good}, \"coupling\": \"final\"")),
                card(&format!("{good}, \"sweeps\": 65")),
                card(&format!("{good}, \"hidden\": 17")),
                card(&format!("{good}, \"hidden\": 4")),
                card(&format!("{good}, \"numbering\": 7")),
            ]
            .join("\n")
        );
    }

    /// Every gene has its name, in the order of the card.
    #[test]
    fn genes_have_names() {
        for (kind, name) in [(Kind::Double, "double"), (Kind::Traditional, "traditional")] {
            let network = Network::paper(kind);
            let all = (0..network.genes()).map(|gene| gene as f32 / 1000.0);
            let player = NetworkPlayer::new(network, all.collect()).unwrap();
            let shown: Vec<(String, f32)> = genes(&player).flat_map(|(_, genes)| genes).collect();
            assert!(shown.iter().map(|(_, gene)| gene).eq(player.genes()));
            let names: std::collections::BTreeSet<&str> = shown.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names.len(), shown.len());
            let of = |name: &str| shown.iter().position(|(other, _)| other == name);
            if kind == Kind::Double {
                let places = ["v_11", "v_12", "v_98", "ms_1", "p(1,8)", "p(8,1)", "so"].map(of);
                assert_eq!(places, [0, 1, 71, 72, 95, 96, 113].map(Some));
            }
            let Showing { text, json } = player.show(1000);
            let json: Vec<Value> = json.as_array().unwrap().iter().take(2).cloned().collect();
            insta::assert_snapshot!(name, format!("{text}{:#}\n", Value::from(json)));
        }
    }

    #[test]
    fn a_network_plays_both_sides_to_the_end() {
        let network = Network::paper(Kind::Double);
        let player = NetworkPlayer::new(network, network.random(&mut Stream::root(1).rng())).unwrap();
        let mut opponent: Player = Card::new(player.clone()).capability().unwrap().unwrap();
        assert_eq!(opponent.name, "nndtf network");
        let mut position = Position::START;
        while opponent.geometry.outcome(position.board()).is_none() {
            let cell = opponent.choose(position, &mut Stream::root(1).rng());
            assert_eq!(Some(cell), player.choose(position.board()));
            position = position.play(opponent.geometry, cell);
        }
        assert!(position.board().pieces() >= 5);
    }
}
