//! A network's card, and the network as a player.

use std::{any::Any, sync::Arc};

use evoxo_common::{
    card::{CardKind, Champion, Entries, Load, Showing, brief},
    digest::Digest,
    plot::Diagram,
    rng::Generator,
};
use serde_json::{Map, Value, json};

use super::{Activation, Engine, Network, engine, file::FILE_ENDING, picture, reference};
use crate::{
    board::{Board, Geometry, Position, Shape, Side, cells, connect_four, qubic, score_four, tic_tac_toe},
    odds::{Exact, Subject, sides_showing},
    player::{Move, Play, Player, Thought, alpha_beta::AlphaBeta, look_ahead_move, look_ahead_thoughts, why},
};

/// `{"kind": "network", "architecture": {...}, "file": "deep-structured-3.safetensors", "sha256": "..."}`
///
/// The weights are in a file next to the card. The file alone is enough to play, because its metadata contains the
/// architecture. A card written by hand may leave out `architecture` and `sha256`. With `"wins": "exact"` the player takes
/// any move that wins at once, whatever the network's values, as it did in its tests. With "filtered" it first completes a
/// line, or else blocks one.
pub const CARD: CardKind = CardKind {
    name: "network",
    keys: &KEYS,
    about: &["network", "games", "wins", "strength"],
    read,
    file: Some((FILE_ENDING, |bytes| Ok(Arc::new(Network::of_file(bytes)?)))),
};

const KEYS: [&str; 4] = ["kind", "architecture", "file", "sha256"];

/// `kind`, `architecture`, the file's name and the digest of its bytes.
fn to_map(network: &Network, name: &str, bytes: &[u8]) -> Map<String, Value> {
    let values = ["network".into(), network.architecture_json(), name.into(), Digest::of(bytes).to_string().into()];
    KEYS.map(String::from).into_iter().zip(values).collect()
}

/// The network that a card describes; `load` reads the card's file.
fn read(card: &Entries, _: &str, load: &mut Load<'_>) -> Result<Arc<dyn Champion>, String> {
    let name = match card.get("file") {
        Some(Value::String(name)) => name,
        Some(other) => return Err(format!("the card's file is {}, not a name", brief(other))),
        None => return Err("the card has no \"file\": name the .safetensors file beside it".into()),
    };
    // Cards are untrusted: a name must not lead to another directory.
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) && !name.starts_with('.');
    if !plain || name.is_empty() || name.len() > 255 {
        return Err(format!("the card's file is {}, not the name of a file beside it", brief(&name.as_str().into())));
    }
    let bytes = load(name)?;
    let within = |why: String| format!("the card's file {name} cannot be used: {why}");
    let network = Network::of_file(&bytes).map_err(within)?;
    if card.get("architecture").is_some_and(|architecture| *architecture != network.architecture_json()) {
        return Err(within("its network has another architecture than the card says".into()));
    }
    if card.get("sha256").is_some_and(|digest| *digest != Digest::of(&bytes).to_string()) {
        return Err(within("it is not the file that the card was written with (its SHA-256 differs)".into()));
    }
    Ok(Arc::new(network))
}

impl Champion for Network {
    fn write(&self, stem: &str) -> (Map<String, Value>, Option<(String, Vec<u8>)>) {
        let (name, bytes) = (format!("{stem}.{FILE_ENDING}"), self.to_file());
        (to_map(self, &name, &bytes), Some((name, bytes)))
    }

    fn show(&self, first: usize) -> Showing {
        let architecture = &self.architecture;
        let Shape { width, height, depth, k, gravity } = architecture.shape;
        let gravity = if gravity { ", stones fall" } else { "" };
        let (weights, all) = (architecture.connections(), architecture.parameters());
        let biases = if all > weights { format!(" and {} biases", all - weights) } else { String::new() };
        let activation = match architecture.activation {
            Activation::Logistic | Activation::LogisticUnhalved => "logistic units, tanh(x / 2)",
            Activation::Tanh => "units with tanh(x)",
        };
        let mut text = format!(
            "A network for {width}x{height}x{depth} cells, {k} in a row{gravity}.\n{weights} weights{biases}; \
             {activation}.\n\n"
        );
        for tensor in architecture.tensors().into_iter().take(first) {
            let weights = &self.weights[tensor.range.clone()];
            let (least, most) = weights.iter().fold((f32::MAX, f32::MIN), |(a, b), w| (a.min(*w), b.max(*w)));
            let shape: Vec<String> = tensor.shape.iter().map(ToString::to_string).collect();
            let values = match weights {
                [only] => format!("{only:+.3}"),
                _ => format!("from {least:+.3} to {most:+.3}"),
            };
            text += &format!("  {:<16}{:>12}  {values}\n", tensor.name, shape.join(" x "));
        }
        let tensors = architecture.tensors().into_iter().take(first);
        Showing { text, json: tensors.map(|tensor| json!({"tensor": tensor.name, "shape": tensor.shape})).collect() }
    }

    fn diagrams(&self) -> Vec<Diagram> {
        vec![picture::diagram(self)]
    }

    fn capability(&self, about: &Map<String, Value>) -> Result<Option<Box<dyn Any>>, String> {
        let shape = self.architecture.shape;
        let games = [tic_tac_toe(), connect_four(), qubic(), score_four()];
        let geometry = games.into_iter().find(|geometry| geometry.shape() == shape);
        let geometry = geometry.ok_or("it plays none of the games that are known here")?;
        let description = crate::player::describe(&format!("The network of {} weights", self.weights.len()), about);
        let play = NetworkPlay {
            network: self.clone(),
            engine: BoxedEngine(engine(&self.architecture, &self.weights)),
            wins: wins(about)?,
            depth: None,
            description,
        };
        Ok(Some(Box::new(Player { name: "network".into(), geometry, side: None, play: Box::new(play) })))
    }
}

/// What a network's player does regardless of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wins {
    /// Nothing: `"wins": "learned"`, or no such key.
    Learned,
    /// It takes a move that wins at once: `"exact"`.
    Exact,
    /// It completes a line, or else blocks one: `"filtered"`.
    Filtered,
}

impl Wins {
    /// The cells of which it takes the lowest when its side is to move, regardless of their values; 0 if there are none.
    fn cells(self, geometry: &Geometry, position: Position) -> u64 {
        let side = position.to_move();
        match (self, position.wins(geometry, side)) {
            (Self::Learned, _) => 0,
            (Self::Filtered, 0) => position.wins(geometry, side.other()),
            (_, wins) => wins,
        }
    }
}

/// What the card says about wins.
fn wins(about: &Map<String, Value>) -> Result<Wins, String> {
    match about.get("wins").map(|wins| (wins, wins.as_str())) {
        None | Some((_, Some("learned"))) => Ok(Wins::Learned),
        Some((_, Some("exact"))) => Ok(Wins::Exact),
        Some((_, Some("filtered"))) => Ok(Wins::Filtered),
        Some((wins, _)) => {
            let wins = brief(wins);
            Err(format!("the card's wins are {wins}, but only \"exact\", \"filtered\" and \"learned\" are known"))
        }
    }
}

/// A network as a player.
struct NetworkPlay {
    network: Network,
    engine: BoxedEngine,
    /// What the player does regardless of the values.
    wins: Wins,
    /// The number of plies that the player looks ahead. If `None`, it compares the values of its moves.
    depth: Option<u32>,
    /// A description of the player, to begin a sentence with.
    description: String,
}

/// The engine of a player.
struct BoxedEngine(Box<dyn Engine>);

impl NetworkPlay {
    /// The move with the highest value (the lowest cell of several), and the value. The value of an exact win is the reward, 1.
    fn best(&mut self, geometry: &Geometry, position: Position) -> (u8, f32) {
        let forced = self.wins.cells(geometry, position);
        if forced & position.wins(geometry, position.to_move()) != 0 {
            return (forced.trailing_zeros() as u8, 1.0);
        }
        self.engine.set_up(position.board());
        let mut sums = [0.0; 64];
        self.engine.0.values(position.legal(geometry), &mut sums);
        let activation = self.network.architecture.activation;
        let value = |cell: u8| (cell, activation.apply(sums[usize::from(cell)]));
        if forced != 0 {
            return value(forced.trailing_zeros() as u8);
        }
        let moves = cells(position.legal(geometry)).map(value);
        moves
            .reduce(|best, next| if next.1 > best.1 { next } else { best })
            .expect("an unfinished game has a legal move")
    }
}

impl BoxedEngine {
    /// Sets up a board stone by stone. The result does not depend on the order of stones.
    fn set_up(&mut self, board: Board) {
        self.0.reset();
        let mut x = cells(board.x);
        let mut o = cells(board.o);
        for turn in 0..board.pieces() {
            let next = if turn % 2 == 0 { x.next() } else { o.next() };
            self.0.play(next.expect("X has as many stones as O, or one more"));
        }
    }
}

impl Play for NetworkPlay {
    /// The move with the highest value, or the move that look-ahead finds.
    fn choose_move(&mut self, geometry: &'static Geometry, position: Position, _: &mut Generator) -> Move {
        match self.depth {
            None => {
                let (cell, value) = self.best(geometry, position);
                let wins = position.wins(geometry, position.to_move()) >> cell & 1 == 1;
                let why = match (wins, self.wins.cells(geometry, position)) {
                    (true, _) => why::COMPLETES.into(),
                    (false, 0) => format!("it values this at {value:+.3}"),
                    (false, _) => why::BLOCKS.into(),
                };
                Move { cell, why }
            }
            Some(depth) => {
                let evaluate = |position: Position| self.best(geometry, position).1;
                look_ahead_move(AlphaBeta::new(geometry, depth, evaluate).choose(position), depth)
            }
        }
    }

    /// The network's value of each move that it considers, or the result of look-ahead for it.
    fn thoughts(&mut self, geometry: &'static Geometry, position: Position, _: &mut Generator) -> Vec<Thought> {
        if let Some(depth) = self.depth {
            let evaluate = |position: Position| self.best(geometry, position).1;
            return look_ahead_thoughts(AlphaBeta::new(geometry, depth, evaluate).values(position), depth);
        }
        let (forced, wins) = (self.wins.cells(geometry, position), position.wins(geometry, position.to_move()));
        let considered = if forced == 0 { position.legal(geometry) } else { forced };
        let activation = self.network.architecture.activation;
        self.engine.set_up(position.board());
        let mut sums = [0.0; 64];
        self.engine.0.values(considered, &mut sums);
        let of = |cell: u8| {
            let value = activation.apply(sums[usize::from(cell)]);
            let says = match (forced, wins >> cell & 1) {
                (0, _) => format!("it values this at {value:+.3}"),
                (_, 0) => why::BLOCKS.into(),
                _ => why::COMPLETES.into(),
            };
            Thought { cell, value: Some(f64::from(value)), says }
        };
        cells(considered).map(of).collect()
    }

    fn look_ahead(&mut self, plies: u32) -> bool {
        self.depth = Some(plies);
        true
    }

    fn exact(&self) -> Result<Showing, String> {
        Ok(sides_showing(&self.description, self.wins == Wins::Filtered, &odds_of_sides(&self.network, self.wins)?))
    }
}

/// The exact odds of both sides. The network takes the legal move with the highest value, or the lowest of several such cells.
pub(super) fn odds_of_sides(network: &Network, wins: Wins) -> Result<Vec<(Side, Exact)>, String> {
    let (game, architecture) = (tic_tac_toe(), &network.architecture);
    if architecture.shape != game.shape() {
        let Shape { width, height, depth, .. } = architecture.shape;
        return Err(format!(
            "a network for {width}x{height}x{depth} cells has too many games to walk them all: exact odds are only for 3x3"
        ));
    }
    let network = reference::of(architecture, &network.weights);
    let found = |side: Side| {
        let best = |board: Board| {
            let values = cells(game.legal(board)).map(|cell| (network.sum(board.play(cell), side), cell));
            let best = values.reduce(|best, next| if next.0 > best.0 { next } else { best });
            let wins = if wins == Wins::Exact { game.completing(board, side) } else { 0 };
            // Of several wins, the player takes the lowest cell, as in play.
            if wins != 0 { wins & wins.wrapping_neg() } else { best.map_or(0, |(_, cell)| 1 << cell) }
        };
        let filtered = wins == Wins::Filtered;
        Ok((side, Subject { side, filtered, choose: Box::new(best) }.exact()?))
    };
    Side::BOTH.into_iter().map(found).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        net::{Architecture, First},
        odds::boards,
    };
    use evoxo_common::{card::Card, rng::Stream};

    fn deep_structured() -> Network {
        let architecture = Architecture {
            shape: Shape::SCORE_FOUR,
            first: First::Lines { detectors: 4 },
            second: 32,
            biases: true,
            activation: Activation::Logistic,
            shared: false,
        };
        Network { architecture, weights: architecture.initial(Stream::root(3)) }
    }

    fn read_card(text: &str, load: &mut Load<'_>) -> Result<Card, String> {
        Card::read(&[&CARD], text, load)
    }

    fn card() -> (Card, String, Vec<u8>) {
        let about =
            Map::from_iter([("network".to_owned(), json!("deep-structured")), ("replica".to_owned(), json!(3))]);
        let card = Card { about, ..Card::new(deep_structured()) };
        let (text, file) = card.write("deep-structured-3");
        let (name, bytes) = file.unwrap();
        assert_eq!(name, "deep-structured-3.safetensors");
        (card, text, bytes)
    }

    #[test]
    fn a_card_with_its_file() {
        let (card, text, file) = card();
        insta::assert_snapshot!("card", text);
        let load = |name: &str| (name == "deep-structured-3.safetensors").then(|| file.clone()).ok_or_else(String::new);
        assert_eq!(read_card(&text, &mut { load }), Ok(card));
        let bare = r#"{"kind": "network", "file": "deep-structured-3.safetensors"}"#;
        assert_eq!(read_card(bare, &mut { load }), Ok(Card::new(deep_structured())));
    }

    #[test]
    fn a_mismatched_card_is_rejected_with_a_reason() {
        let (_, text, file) = card();
        let read = |text: &str, file: &[u8]| read_card(text, &mut |_| Ok(file.to_vec())).unwrap_err();
        let changed = |old: &str, new: &str| read(&text.replacen(old, new, 1), &file);
        assert!(changed("\"second\": 32", "\"second\": 16").contains("another architecture than the card says"));
        assert!(changed("\"sha256\": \"", "\"sha256\": \"0").contains("not the file that the card was written with"));
        assert!(changed("\"file\": ", "\"life\": ").contains("the card has no \"file\""));
        for name in ["../t.safetensors", "/etc/passwd", "a\\\\b", ".t", ""] {
            assert!(
                changed("deep-structured-3.safetensors", name).contains("not the name of a file beside it"),
                "{name}"
            );
        }
        let missing = read_card(&text, &mut |name| Err(format!("cannot read {name}: it is not there")));
        assert_eq!(missing.unwrap_err(), "cannot read deep-structured-3.safetensors: it is not there");
        let cut = read(&text, &file[..file.len() - 3]);
        assert_eq!(
            cut,
            "the card's file deep-structured-3.safetensors cannot be used: it ends within the tensor \"output.bias\": it is truncated"
        );
        let mut flipped = file.clone();
        *flipped.last_mut().unwrap() ^= 1;
        assert!(read(&text, &flipped).contains("its SHA-256 differs"));
    }

    /// The move that the network plays in a position.
    fn chosen(network: &Network, wins: &str, plies: Option<u32>, position: Position) -> Move {
        let about = Map::from_iter([("wins".to_owned(), json!(wins))]);
        let mut player: Player = Card { about, ..Card::new(network.clone()) }.capability().unwrap().unwrap();
        assert!(plies.is_none_or(|plies| player.play.look_ahead(plies)));
        player.play.choose_move(player.geometry, position, &mut Stream::root(1).rng())
    }

    /// The network plays the move that it values most. If it must complete or block a line, it considers nothing else.
    #[test]
    fn a_network_plays_what_it_thinks() {
        let network = deep_structured();
        let thoughts = |wins: &str, position: Position| {
            let about = Map::from_iter([("wins".to_owned(), json!(wins))]);
            let mut player: Player = Card { about, ..Card::new(network.clone()) }.capability().unwrap().unwrap();
            player.play.thoughts(player.geometry, position, &mut Stream::root(1).rng())
        };
        let mut position = Position::START;
        for cell in [48, 63, 49, 62, 50] {
            let all = thoughts("learned", position);
            let best = all.iter().rev().max_by(|one, other| one.value.partial_cmp(&other.value).unwrap()).unwrap();
            assert_eq!((all.len(), best.cell), (16, chosen(&network, "learned", None, position).cell));
            position = position.play(score_four(), cell);
        }
        let only = |wins: &str| thoughts(wins, position).iter().map(|thought| thought.cell).collect::<Vec<u8>>();
        assert_eq!((only("filtered"), only("exact").len()), (vec![51], 16), "O must block d4");
        let of_block = thoughts("filtered", position);
        assert_eq!(of_block[0].says, why::BLOCKS);
    }

    /// A network's values do not depend on the order in which its board was set up, and look-ahead finds a win.
    #[test]
    fn a_network_answers_any_position() {
        let network = deep_structured();
        let position =
            [48, 63, 49, 62, 50].into_iter().fold(Position::START, |position, cell| position.play(score_four(), cell));
        let greedy = chosen(&network, "exact", None, position);
        assert!(greedy.why.starts_with("it values this at"), "{}", greedy.why);
        assert!(position.legal(score_four()) >> greedy.cell & 1 == 1);
        let position = position.play(score_four(), 61);
        assert_eq!(chosen(&network, "learned", Some(2), position), Move::new(51, "it sees a win"));
        // Unless its card says that wins are exact, the network does not take a win that it does not value highest.
        let architecture = network.architecture;
        let mut networks =
            (0..20).map(|seed| Network { architecture, weights: architecture.initial(Stream::root(seed)) });
        let blind = networks.find(|network| chosen(network, "learned", None, position).cell != 51).unwrap();
        assert_eq!(chosen(&blind, "exact", None, position), Move::new(51, why::COMPLETES));
        assert_eq!(chosen(&blind, "filtered", None, position), Move::new(51, why::COMPLETES));
    }

    /// A network with the filter blocks lines that its values ignore, and therefore loses less often.
    #[test]
    fn a_filtered_network_completes_and_blocks() {
        let odds = |wins| self::odds_of_sides(&small(), wins).unwrap();
        for ((side, filtered), (_, learned)) in odds(Wins::Filtered).iter().zip(&odds(Wins::Learned)) {
            assert!(
                filtered.odds.loss < learned.odds.loss,
                "{side:?}: {} and {}",
                filtered.odds.loss,
                learned.odds.loss
            );
        }
        let at = |text: &str| Position::of(tic_tac_toe(), tic_tac_toe().board_of(text).unwrap());
        let [blocks, completes] =
            [at("XX./.O./..."), at("XX./OO./X..")].map(|position| chosen(&small(), "filtered", None, position));
        assert_eq!((blocks, completes), (Move::new(2, why::BLOCKS), Move::new(5, why::COMPLETES)));
    }

    #[test]
    fn wins_are_either_exact_or_learned() {
        let with = |about: &[(&str, Value)]| {
            wins(&about.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
        };
        assert_eq!((with(&[]), with(&[("wins", json!("learned"))])), (Ok(Wins::Learned), Ok(Wins::Learned)));
        assert_eq!(with(&[("wins", json!("exact"))]), Ok(Wins::Exact));
        assert_eq!(with(&[("wins", json!("filtered"))]), Ok(Wins::Filtered));
        for wrong in [json!("exakt"), json!(3)] {
            let sentence = with(&[("wins", wrong.clone())]).unwrap_err();
            assert!(sentence.contains(&format!("wins are {wrong}, but only")), "{sentence}");
        }
    }

    fn small() -> Network {
        let architecture = Architecture {
            shape: Shape::TIC_TAC_TOE,
            first: First::Dense { units: 5 },
            second: 0,
            biases: true,
            activation: Activation::Logistic,
            shared: false,
        };
        Network { architecture, weights: architecture.initial(Stream::root(2)) }
    }

    /// An untrained network can lose, and its odds say so. In each losing line the other side wins.
    #[test]
    fn networks_on_3x3_are_analysed_as_both_sides() {
        let odds = odds_of_sides(&small(), Wins::Learned).unwrap();
        for (side, found) in &odds {
            assert!(!found.unbeatable() && found.odds_unfiltered.is_some(), "{side:?}: {found:?}");
            let last = boards(&found.examples[0]).last().unwrap();
            assert!(tic_tac_toe().has_line(last.stones(side.other())), "{side:?}: {last:?}");
        }
        // With exact wins it may still lose, but it wins more often, and no losing line misses a win.
        for ((side, exact), (_, found)) in self::odds_of_sides(&small(), Wins::Exact).unwrap().iter().zip(&odds) {
            assert!(exact.odds.win > found.odds.win, "{side:?}: {} and {}", exact.odds.win, found.odds.win);
            let missed = |board: Board| board.to_move() == *side && tic_tac_toe().completing(board, *side) != 0;
            assert!(!exact.examples.iter().any(|line| boards(&line[..line.len() - 1]).any(missed)), "{side:?}");
        }
        assert!(
            self::odds_of_sides(&deep_structured(), Wins::Exact)
                .unwrap_err()
                .contains("4x4x4 cells has too many games")
        );
    }

    #[test]
    fn a_network_has_a_short_description() {
        let network = Network {
            architecture: Architecture { first: First::Lines { detectors: 4 }, second: 3, ..small().architecture },
            ..small()
        };
        let weights = network.architecture.initial(Stream::root(1));
        let network = Network { weights, ..network };
        insta::assert_snapshot!("shown", format!("{}{:#}\n", network.show(100).text, network.show(2).json));
    }
}
