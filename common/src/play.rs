//! Playing against champions, as a value: a program that knows games passes it to code that knows none, such as a coordinator
//! with a page. Questions consist of names and moves as people write them; answers are JSON.

use serde_json::Value;

use crate::card::Card;

/// What a program offers to people who want to play.
#[derive(Debug)]
pub struct Play {
    /// The games, and their players without a card, as JSON: the possible values of [`Question::game`] and [`Who::Named`].
    pub offers: fn() -> Value,
    /// Answers a question. It is a pure function, so the same question always has the same answer, and it takes seconds at
    /// most.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the question.
    pub answer: fn(&Question<'_>) -> Result<Value, String>,
}

/// A position in a game, and what is asked about it.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The game's name; empty for a champion's own game.
    pub game: &'a str,
    /// The moves from the beginning, separated by points.
    pub moves: &'a str,
    /// The player that is asked.
    pub who: Who<'a>,
    /// Plies to look ahead, for players that look ahead.
    pub plies: Option<u32>,
    /// What is asked.
    pub wanted: Wanted,
}

/// A player.
#[derive(Clone, Copy, Debug)]
pub enum Who<'a> {
    /// Nobody: the question is about the position alone.
    Nobody,
    /// A player without a card, by name.
    Named(&'a str),
    /// A champion.
    Champion(&'a Card),
}

/// What is asked of a player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Which game the player plays, and on which side.
    Introduction,
    /// The position after these moves: the board, the side to move, the legal moves, and the winner.
    Position,
    /// The position after the player's reply, and the reply.
    Move,
    /// The player's valuation of the moves in this position.
    Thoughts,
}
