//! From what people say to a player: a name, a name with plies, a champion's card. The only place that does so.

use evoxo_common::card::Card;

use super::{BUILT_IN, Player, built_in};
use crate::game::Game;

/// A name, and the plies after it: `alpha-beta:6`.
#[must_use]
pub fn split(name: &str) -> (&str, Option<u32>) {
    match name.rsplit_once(':').map(|(name, plies)| (name, plies.parse())) {
        Some((name, Ok(plies))) => (name, Some(plies)),
        _ => (name, None),
    }
}

/// Whether it is the name of a player without a card.
#[must_use]
pub fn is_built_in(name: &str) -> bool {
    BUILT_IN.contains(&name)
}

/// Whether a built-in player plays tic-tac-toe only.
#[must_use]
pub fn is_of_one_game(name: &str) -> bool {
    built_in(name, Game::ScoreFour.geometry()).is_err()
}

/// A built-in player of a game; without one it plays the largest game that it knows.
///
/// # Errors
/// A sentence if there is none, or it does not play that game.
pub fn find_built_in(name: &str, game: Option<Game>) -> Result<(Game, Player), String> {
    let only = if is_of_one_game(name) { Game::TicTacToe } else { Game::ScoreFour };
    let game = game.unwrap_or(only);
    Ok((game, built_in(name, game.geometry())?))
}

/// The player of a champion's card, and its game; `None` if it plays no game.
///
/// # Errors
/// A sentence if the card's description of it is invalid, or the game is not one that is known here.
pub fn player_of_card(card: &Card) -> Result<Option<(Game, Player)>, String> {
    let Some(player) = card.capability::<Player>()? else { return Ok(None) };
    let game = Game::of_shape(player.geometry.shape()).ok_or("it plays no game that is known here")?;
    Ok(Some((game, player)))
}
