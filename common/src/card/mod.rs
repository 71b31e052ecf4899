//! Champion cards: a player as a JSON text that people can read, write and send.
//!
//! ```json
//! {"kind": "table", "side": "O", "moves": {"X........": 4, ".X.......": 0}}
//! ```
//!
//! The key of a move is a board on which the side is asked, as a text from the top left; its value is the cell to play
//! there, 0 to 8 in the same order. Any of a board's eight images will do: the move turns with it. Boards that the
//! player cannot meet under its own moves may be left out. A card of any kind may also say where it comes from and how
//! strong it is (the keys of [`ABOUT`]), which is kept; it has no other keys.
//!
//! ```json
//! {"kind": "network", "architecture": {...}, "file": "deep-structured-3.safetensors", "sha256": "..."}
//! ```
//!
//! A network's weights are in a binary file beside the card, which is enough to play: it has the architecture in its
//! metadata. See [`Network`]. A card made by hand may leave out `architecture` and `sha256`.
//!
//! ```json
//! {"kind": "nndtf", "network": "double", "sweeps": 1, "numbering": "left-to-right", "genes": [0.25, -1, ...]}
//! ```
//!
//! A network of experiment `nndtf`: see [`NetworkPlayer`]. It plays either side.
//!
//! ```json
//! {"kind": "rules", "weight": 12, "rules": ["PPV******3 priority 2 weight 5"]}
//! ```
//!
//! A rule is nine letters from the top left (P own, C the opponent's, V empty, * anything) and the cell to play, 1 to 9 in
//! the same order; it must not be able to move to a taken cell. Without their weights rules weigh 0.
//!
//! ```json
//! {"kind": "ternary", "side": "X", "strings": "short", "alphabet": 3, "genome": "120011..."}
//! ```
//!
//! The letters of a string in the order of its index table: see [`Ternary`].

mod network;
mod nndtf;
mod rules;
mod safetensors;
mod table;
mod ternary;

pub(crate) use nndtf::decimals;

pub use network::{FILE_BYTES_MAX, FILE_ENDING, Network};

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::{
    board::{Side, quoted},
    experiment::{
        invincible::table::TableGenome, nndtf::network::NetworkPlayer, rules::agent::Agent, ternary::player::Ternary,
    },
};

/// Kinds of players, for people.
const KINDS: &str = "\"table\", \"network\", \"nndtf\", \"rules\" and \"ternary\"";

/// The longest card, in bytes.
pub const CARD_BYTES_MAX: usize = 1 << 20;

/// Keys that say what is known about a player of any kind.
pub const ABOUT: [&str; 13] = [
    "game",
    "experiment",
    "arm",
    "replica",
    "digest",
    "seed",
    "games",
    "cycles",
    "network",
    "wins",
    "strength",
    "fitness",
    "fitness_on_all_boards",
];

/// A player and what is known about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// The player.
    pub player: Player,
    /// The keys of [`ABOUT`], in the order of the card.
    pub about: Map<String, Value>,
}

/// A player of any kind that a card can hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Player {
    /// `"kind": "table"`: see [`TableGenome`].
    Table(TableGenome),
    /// `"kind": "network"`.
    Network(Network),
    /// `"kind": "nndtf"`: see [`NetworkPlayer`].
    Nndtf(NetworkPlayer),
    /// `"kind": "rules"`: see [`Agent`].
    Rules(Agent),
    /// `"kind": "ternary"`: see [`Ternary`].
    Ternary(Ternary),
}

impl Card {
    /// Reads a card; `load` gives the bytes of a file that lies beside it, by its name, or a sentence why it cannot.
    ///
    /// # Errors
    /// If the text is too long, is not JSON or is not a card, as one sentence that says what is wrong and, of a board,
    /// which; the same of its file.
    pub fn read(text: &str, load: impl FnOnce(&str) -> Result<Vec<u8>, String>) -> Result<Self, String> {
        if text.len() > CARD_BYTES_MAX {
            return Err(format!("the card has {} bytes, more than {CARD_BYTES_MAX}", text.len()));
        }
        let entries: Entries = serde_json::from_str(text).map_err(|error| match error.is_data() {
            true => "it is not a card, which is a JSON object with a \"kind\"".into(),
            false => format!("the card is not JSON: {error}"),
        })?;
        if let Some(twice) = entries.twice() {
            return Err(format!("the card has the key {} twice", quoted(twice)));
        }
        let kind = entries.get("kind").ok_or_else(|| format!("the card has no \"kind\": there are {KINDS}"))?;
        let (player, keys) = match kind.as_str() {
            Some("table") => (Player::Table(table::read(text, &entries)?), table::KEYS.as_slice()),
            Some("network") => (Player::Network(network::read_card(&entries, load)?), network::KEYS.as_slice()),
            Some("nndtf") => (Player::Nndtf(nndtf::read(&entries)?), nndtf::KEYS.as_slice()),
            Some("rules") => (Player::Rules(rules::read(&entries)?), rules::KEYS.as_slice()),
            Some("ternary") => (Player::Ternary(ternary::read(&entries)?), ternary::KEYS.as_slice()),
            _ => return Err(format!("the card's kind is {}, but only {KINDS} are known", brief(kind))),
        };
        let known = |key: &&str| keys.contains(key) || ABOUT.contains(key);
        if let Some(other) = entries.0.iter().map(|(key, _)| key.as_str()).find(|key| !known(key)) {
            let (other, own) = (quoted(other), keys.join(", "));
            return Err(format!(
                "the card has an unknown key {other}: leave it out, or see whether one of {own} is meant"
            ));
        }
        let about = entries.0.into_iter().filter(|(key, _)| !keys.contains(&key.as_str())).collect();
        Ok(Self { player, about })
    }

    /// Whether its network takes any move that wins at once before it is asked for values, as it did in its tests:
    /// `"wins": "exact"`.
    ///
    /// # Errors
    /// A sentence if `wins` is something else than "exact" or "learned".
    pub fn exact_wins(&self) -> Result<bool, String> {
        match self.about.get("wins").map(|wins| (wins, wins.as_str())) {
            None | Some((_, Some("learned"))) => Ok(false),
            Some((_, Some("exact"))) => Ok(true),
            Some((wins, _)) => {
                Err(format!("the card's wins are {}, but only \"exact\" and \"learned\" are known", brief(wins)))
            }
        }
    }

    /// The card's text, ended by a line break, and the name and bytes of the file beside it, if its kind has one; `stem` is
    /// the card's own file name without ending. [`Card::read`] is the inverse.
    #[must_use]
    pub fn write(&self, stem: &str) -> (String, Option<(String, Vec<u8>)>) {
        let (mut map, file) = match &self.player {
            Player::Table(player) => (table::to_map(player), None),
            Player::Nndtf(player) => (nndtf::to_map(player), None),
            Player::Rules(agent) => (rules::to_map(agent), None),
            Player::Ternary(player) => (ternary::to_map(player), None),
            Player::Network(network) => {
                let (name, bytes) = (format!("{stem}.{FILE_ENDING}"), network.to_file());
                (network::to_map(network, &name, &bytes), Some((name, bytes)))
            }
        };
        map.extend(self.about.clone());
        (format!("{:#}\n", Value::Object(map)), file)
    }
}

impl From<Player> for Card {
    /// A player of which nothing else is known.
    fn from(player: Player) -> Self {
        Self { player, about: Map::new() }
    }
}

/// The side of a card.
fn side_of(entries: &Entries) -> Result<Side, String> {
    match entries.get("side") {
        Some(Value::String(side)) if side == "X" => Ok(Side::X),
        Some(Value::String(side)) if side == "O" => Ok(Side::O),
        Some(other) => Err(format!("the card's side is {}, not \"X\" or \"O\"", brief(other))),
        None => Err("the card has no \"side\": give \"X\" or \"O\"".into()),
    }
}

/// A stranger's value for a one-line message. JSON escapes control characters; the rest is cut after 40 letters.
fn brief(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// A JSON object as it stands, with keys that come twice.
struct Entries(Vec<(String, Value)>);

impl Entries {
    fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(other, _)| other == key).map(|(_, value)| value)
    }

    /// A key that comes twice.
    fn twice(&self) -> Option<&str> {
        let mut keys: Vec<&str> = self.0.iter().map(|(key, _)| key.as_str()).collect();
        keys.sort_unstable();
        keys.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Entries;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Audit;
    use crate::board::{Side, cells, tic_tac_toe};
    use crate::config::Config;
    use crate::experiment::invincible::graph::Graph;
    use crate::local;
    use crate::rng::{Stream, below, shuffle};
    use proptest::prelude::*;
    use serde_json::json;

    fn random(side: Side, seed: u64) -> TableGenome {
        TableGenome::random(side, &mut Stream::root(seed).rng())
    }

    /// A card with nothing beside it.
    fn read(text: &str) -> Result<Card, String> {
        Card::read(text, |name| Err(format!("{name} is not there")))
    }

    fn sentence(text: &str) -> String {
        let sentence = read(text).unwrap_err();
        assert!(!sentence.contains('\n') && sentence.len() < 500, "{sentence}");
        sentence
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(side in prop::sample::select(Side::BOTH.to_vec()), seed: u64) {
            let about = Map::from_iter([("arm".to_owned(), json!("O-6.5")), ("replica".to_owned(), json!(7))]);
            let card = Card { player: Player::Table(random(side, seed)), about };
            prop_assert_eq!(read(&card.write("t").0), Ok(card));
        }

        /// A card made by hand: only the boards that are met, each as any of its images, in any order.
        #[test]
        fn images_and_boards_never_met(side in prop::sample::select(Side::BOTH.to_vec()), seed: u64) {
            let player = random(side, seed);
            let rng = &mut Stream::root(seed).text("images").rng();
            let mut entries = Vec::new();
            for class in player.met() {
                let image = &tic_tac_toe().symmetries()[below(rng, 8) as usize];
                let board = image.board(Graph::of(side).boards()[class]);
                entries.push((tic_tac_toe().board_text(board), json!(image.cell(player.genes()[class]))));
            }
            shuffle(rng, &mut entries);
            let text = json!({"moves": Map::from_iter(entries), "side": side.letter(), "kind": "table"}).to_string();
            let Player::Table(read) = read(&text).unwrap().player else { panic!("a table") };
            // The losing lines may be given as their images.
            prop_assert_eq!(Audit { examples: vec![], ..read.audit() }, Audit { examples: vec![], ..player.audit() });
            prop_assert_eq!(read.met(), player.met());
        }

        #[test]
        fn any_text_is_a_card_or_a_sentence(text in "[{}\\[\\]\",:XO.a-z0-9\u{1}]{0,60}") {
            prop_assert!(read(&text).is_err_and(|sentence| !sentence.contains('\n')));
        }
    }

    /// No experiment says of its champions what a card may not say.
    #[test]
    fn champions_of_every_experiment_are_read_back() {
        for (kind, settings) in [
            ("invincible", "population = 8\nfathers = 2\ngenerations = 1\ngames = 10"),
            ("td3d", "network = \"small\"\ngames = 4\ntest_every = 2\ntest_games = 2"),
            ("nndtf", "iterations = 1\nboards = 9"),
            ("rules", "agents = 4\nrules = 4\ngames = 1\ncycles = 1"),
            ("ternary", "population = 4\ngenerations = 1\nopponents = 1\nrandom_games = 1"),
        ] {
            let text = format!("experiment = {kind:?}\nreplicas = 1\n[settings]\n{settings}\n");
            let config = Config::parse(kind, &text, &[]).unwrap_or_else(|problems| panic!("{problems}"));
            let replicas = local::run(&config).unwrap();
            for card in replicas[0].population().into_iter().chain([replicas[0].champion().expect(kind)]) {
                let (text, file) = card.write("t");
                let read = Card::read(&text, |_| Ok(file.map(|(_, bytes)| bytes).unwrap_or_default()));
                // Decimals may differ in the last digit.
                let keys = |card: &Card| card.about.keys().cloned().collect::<Vec<_>>();
                let read = read.unwrap_or_else(|why| panic!("{kind}: {why}"));
                assert_eq!((&read.player, keys(&read)), (&card.player, keys(&card)), "{kind}");
            }
        }
    }

    #[test]
    fn a_card_says_whether_wins_are_exact() {
        let with = |about: &[(&str, Value)]| {
            let about = about.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
            Card { about, ..Player::Table(random(Side::X, 1)).into() }.exact_wins()
        };
        assert_eq!((with(&[]), with(&[("wins", json!("learned"))])), (Ok(false), Ok(false)));
        assert_eq!(with(&[("wins", json!("exact"))]), Ok(true));
        for wrong in [json!("exakt"), json!(3)] {
            let sentence = with(&[("wins", wrong.clone())]).unwrap_err();
            assert!(sentence.contains(&format!("wins are {wrong}, but only")), "{sentence}");
        }
    }

    #[test]
    fn a_card_is_pinned() {
        let genes =
            Graph::of(Side::O).boards().iter().enumerate().map(|(class, _)| Graph::of(Side::O).legal_cells(class)[0]);
        let player = TableGenome::new(Side::O, genes.collect()).unwrap();
        insta::assert_snapshot!(Card::from(Player::Table(player)).write("t").0);
    }

    #[test]
    fn what_is_no_card_is_refused_with_a_sentence() {
        for (text, says) in [
            ("", "not JSON"),
            ("[1]", "not a card"),
            ("3", "not a card"),
            ("{\"kind\":\"table\"", "not JSON"),
            ("{}", "no \"kind\""),
            (
                r#"{"kind":"chess","side":"X","moves":{}}"#,
                "only \"table\", \"network\", \"nndtf\", \"rules\" and \"ternary\" are known",
            ),
            (
                r#"{"kind":1,"side":"X","moves":{}}"#,
                "only \"table\", \"network\", \"nndtf\", \"rules\" and \"ternary\" are known",
            ),
            (r#"{"kind":"rules","rules":["V********1"],"rule":1}"#, "an unknown key \"rule\": leave it out"),
            (r#"{"kind":"table","moves":{}}"#, "no \"side\""),
            (r#"{"kind":"table","side":"x","moves":{}}"#, "not \"X\" or \"O\""),
            (r#"{"kind":"table","side":"X","side":"O","moves":{}}"#, "\"side\" twice"),
            (r#"{"kind":"table","side":"X"}"#, "no \"moves\""),
            (r#"{"kind":"table","side":"X","moves":[]}"#, "no \"moves\""),
            (r#"{"kind":"table","side":"X","moves":{}}"#, "can meet: \".........\""),
            (r#"{"kind":"table","side":"O","moves":{}}"#, "\"X........\", \".X.......\", \"....X....\""),
            (r#"{"kind":"table","side":"O","moves":{"X...":4}}"#, "4 cells instead of 9"),
            (r#"{"kind":"table","side":"O","moves":{"X.......x":4}}"#, "other than X, O and ."),
            (r#"{"kind":"table","side":"O","moves":{".........":4}}"#, "other side's turn"),
            (r#"{"kind":"table","side":"O","moves":{"XX.......":4}}"#, "numbers of stones"),
            (r#"{"kind":"table","side":"O","moves":{"XXX.O...O":4}}"#, "is over"),
            (r#"{"kind":"table","side":"O","moves":{"XX..O....":2}}"#, "the filter moves there"),
            (r#"{"kind":"table","side":"X","moves":{"XXO.OX...":3}}"#, "X is never asked on the board \"XXO.OX...\""),
            (r#"{"kind":"table","side":"O","moves":{"X........":0}}"#, "cell 0, which is taken"),
            (r#"{"kind":"table","side":"O","moves":{"X........":9}}"#, "is 9, not a cell"),
            (r#"{"kind":"table","side":"O","moves":{"X........":-1}}"#, "is -1, not a cell"),
            (r#"{"kind":"table","side":"O","moves":{"X........":"a1"}}"#, "not a cell 0 to 8"),
            (r#"{"kind":"table","side":"O","moves":{"X........":4,"..X......":4}}"#, "images of each other"),
            (r#"{"kind":"table","side":"O","moves":{"X........":4,"X........":4}}"#, "images of each other"),
            (r#"{"kind":"table","side":"O","moves":{"X........":4},"moves":{}}"#, "\"moves\" twice"),
        ] {
            assert!(sentence(text).contains(says), "{text}: {}", sentence(text));
        }
        assert!(sentence(&" ".repeat(CARD_BYTES_MAX + 1)).contains("bytes, more than"));
        assert!(sentence(&"[".repeat(CARD_BYTES_MAX)).contains("not a card"));
    }

    /// Each board that is met is needed, and the sentence names it.
    #[test]
    fn a_board_that_is_met_must_be_there() {
        for side in Side::BOTH {
            let player = random(side, 5);
            for class in cells((1 << Graph::of(side).len()) - 1).map(usize::from) {
                let board = tic_tac_toe().board_text(Graph::of(side).boards()[class]);
                let mut map = table::to_map(&player);
                map["moves"].as_object_mut().unwrap().shift_remove(&board);
                let read = read(&Value::Object(map).to_string());
                assert_eq!(read.is_ok(), !player.met().contains(&class));
                assert!(read.is_ok() || read.is_err_and(|sentence| sentence.contains(&format!("\"{board}\""))));
            }
        }
    }
}
