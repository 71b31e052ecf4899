//! Playing against champions, as a value: what a program that knows games hands to code that knows none, such as a
//! coordinator with a page. Questions are names and moves as people write them, answers are JSON.

use serde_json::Value;

use crate::card::Card;

/// What a program offers to those who want to play.
#[derive(Debug)]
pub struct Play {
    /// The games and their players without a card, as JSON: what [`Question::game`] and [`Who::Named`] may be.
    pub offers: fn() -> Value,
    /// Answers a question. It is a pure function that takes a limited time, seconds at most: the same question has the same
    /// answer.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the question.
    pub answer: fn(&Question<'_>) -> Result<Value, String>,
}

/// A position of a game, and what is asked about it.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The game's name; empty for the game of a champion.
    pub game: &'a str,
    /// The moves from the beginning, with points between them.
    pub moves: &'a str,
    /// Who is asked.
    pub who: Who<'a>,
    /// Plies to look ahead, for players that do.
    pub plies: Option<u32>,
    /// What is asked.
    pub wanted: Wanted,
}

/// A player.
#[derive(Clone, Copy, Debug)]
pub enum Who<'a> {
    /// Nobody: the question is about the position alone.
    Nobody,
    /// A player without a card, by its name.
    Named(&'a str),
    /// A champion.
    Champion(&'a Card),
}

/// What is asked of a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Which game it plays, and which side.
    Introduction,
    /// The position after these moves: the board, whose turn it is, which moves there are, who has won.
    Position,
    /// The same after the player's answer, with the answer.
    Move,
    /// What it thinks of the moves in this position.
    Thoughts,
}
