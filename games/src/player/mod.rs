//! Players: those that need no learning, for any geometry, and what all players have in common.

pub mod alpha_beta;
pub mod benchmark;
mod built_in;
pub mod duel;
pub mod find;
pub mod mistakes;
pub mod random;
pub mod teacher;

use evoxo_common::{
    card::{Entries, Showing, brief},
    rng::{Generator, Stream},
};
use serde_json::{Map, Value};

pub use built_in::{BUILT_IN, built_in};
pub(crate) use built_in::{look_ahead_move, look_ahead_thoughts};

use crate::board::{Geometry, Position, Side, cells, tic_tac_toe};

/// A player of a game. A champion's card offers one to people who want to play against it.
pub struct Player {
    /// The player's name for itself.
    pub name: String,
    /// The player's game.
    pub geometry: &'static Geometry,
    /// The only side that the player plays; `None` if it plays both.
    pub side: Option<Side>,
    /// How the player plays.
    pub play: Box<dyn Play>,
}

/// A player's move and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The cell.
    pub cell: u8,
    /// The reason, as in "It plays b2: ...".
    pub why: String,
}

impl Move {
    /// A move to this cell, with the reason for it.
    #[must_use]
    pub fn new(cell: u8, why: impl Into<String>) -> Self {
        Self { cell, why: why.into() }
    }
}

/// A player's opinion of a move.
#[derive(Clone, Debug, PartialEq)]
pub struct Thought {
    /// The move.
    pub cell: u8,
    /// How good the move is, if the player compares moves by a number. Greater is better for the side that moves.
    pub value: Option<f64>,
    /// The opinion in words.
    pub says: String,
}

/// How a player plays.
pub trait Play {
    /// The move in a position that is not over and in which the player's side is to move. Random choices are drawn from
    /// `rng`.
    fn choose_move(&mut self, geometry: &'static Geometry, position: Position, rng: &mut Generator) -> Move;

    /// Whether the player makes random choices.
    fn is_random(&self) -> bool {
        false
    }

    /// The player's opinions of moves in a position that is not over and in which its side is to move: at least one. By
    /// default, it is the move that the player chooses.
    fn thoughts(&mut self, geometry: &'static Geometry, position: Position, rng: &mut Generator) -> Vec<Thought> {
        let Move { cell, why } = self.choose_move(geometry, position, rng);
        vec![Thought { cell, value: None, says: why }]
    }

    /// The cells among which the player chooses in a position that is not over and in which its side is to move, each with
    /// its share of the probability. `None` if the player does not know them.
    fn shares(&mut self, geometry: &'static Geometry, position: Position) -> Option<Vec<(u8, u32)>> {
        // A player without random choices draws nothing from this generator.
        let rng = &mut Stream::root(0).rng();
        (!self.is_random()).then(|| vec![(self.choose_move(geometry, position, rng).cell, 1)])
    }

    /// Makes the player look this number of plies ahead. Returns false if it cannot.
    fn look_ahead(&mut self, _plies: u32) -> bool {
        false
    }

    /// The player's exact odds, and either the proof that it never loses or the games that it loses.
    ///
    /// # Errors
    /// A message if the player has no exact odds, or breaks the rules.
    fn exact(&self) -> Result<Showing, String> {
        Err("only players of 3x3 that need no look-ahead have exact odds".into())
    }
}

impl Player {
    /// The cell of the player's move.
    pub fn choose(&mut self, position: Position, rng: &mut Generator) -> u8 {
        self.play.choose_move(self.geometry, position, rng).cell
    }
}

/// Equal shares for these cells: see [`Play::shares`].
#[must_use]
pub fn equal_shares(mask: u64) -> Option<Vec<(u8, u32)>> {
    Some(cells(mask).map(|cell| (cell, 1)).collect())
}

/// Reasons that several players give.
pub mod why {
    /// The move completes a line.
    pub const COMPLETES: &str = "it completes a line";
    /// The move blocks the opponent's line.
    pub const BLOCKS: &str = "it blocks your line";
    /// The move was drawn at random.
    pub const BY_CHANCE: &str = "by chance";
}

/// The answer of a player that looks at lines before it draws at random, and that took this cell.
#[must_use]
pub fn line_move(position: Position, geometry: &Geometry, cell: u8) -> Move {
    let side = position.to_move();
    let takes = |wins: u64| wins >> cell & 1 == 1;
    let why = match (takes(position.wins(geometry, side)), takes(position.wins(geometry, side.other()))) {
        (true, _) => why::COMPLETES,
        (_, true) => why::BLOCKS,
        _ => why::BY_CHANCE,
    };
    Move::new(cell, why)
}

/// The move of the filter of 3x3 before a side decides: it completes a line, or else blocks one, at the first of several
/// cells. `None` if the filter does nothing.
#[must_use]
pub fn filter_move(position: Position) -> Option<Move> {
    let (geometry, side) = (tic_tac_toe(), position.to_move());
    let first = |mask: u64, why: &str| (mask != 0).then(|| Move::new(mask.trailing_zeros() as u8, why));
    first(position.wins(geometry, side), why::COMPLETES)
        .or_else(|| first(position.wins(geometry, side.other()), why::BLOCKS))
}

/// The opinions of a player of 3x3 about the empty cells if a line is completed or blocked before it decides, and the player
/// takes this cell. The values are its shares of the probability.
#[must_use]
pub fn line_thoughts(position: Position, taken: &Move) -> Vec<Thought> {
    let (geometry, side) = (tic_tac_toe(), position.to_move());
    let (lines, also, otherwise) = match position.wins(geometry, side) {
        0 => {
            (position.wins(geometry, side.other()), "it would block your line too", "not while a line must be blocked")
        }
        own => (own, "it would complete a line too", "not while a line can be completed"),
    };
    let thought = |cell: u8| {
        let says = match lines >> cell & 1 == 1 {
            _ if cell == taken.cell => &taken.why,
            true => also,
            false => otherwise,
        };
        Thought { cell, value: Some(f64::from(u8::from(cell == taken.cell))), says: says.into() }
    };
    cells(position.legal(geometry)).map(thought).collect()
}

/// What a champion is and where it comes from, to begin a sentence with. It names the arm and the replica if the card has
/// them.
#[must_use]
pub fn describe(what: &str, about: &Map<String, Value>) -> String {
    // A card from outside may contain anything here. Quotes make it harmless.
    match (about.get("arm").and_then(Value::as_str), about.get("replica").and_then(Value::as_u64)) {
        (Some(arm), Some(replica)) => format!("{what} ({arm:?}, replica {replica})"),
        _ => what.to_owned(),
    }
}

/// The side that a card names.
///
/// # Errors
/// A message if it names none.
pub fn side_of_card(entries: &Entries) -> Result<Side, String> {
    match entries.get("side") {
        Some(Value::String(side)) if side == "X" => Ok(Side::X),
        Some(Value::String(side)) if side == "O" => Ok(Side::O),
        Some(other) => Err(format!("the card's side is {}, not \"X\" or \"O\"", brief(other))),
        None => Err("the card has no \"side\": give \"X\" or \"O\"".into()),
    }
}
