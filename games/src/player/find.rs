//! Finds players from what people type: a name, a name with plies, or a champion's card. Only this module does so.

use evoxo_common::card::Card;

use super::{BUILT_IN, Player, built_in};
use crate::game::Game;

/// A name, and the plies that may follow it: `alpha-beta:6`.
#[must_use]
pub fn split(name: &str) -> (&str, Option<u32>) {
    match name.rsplit_once(':').map(|(name, plies)| (name, plies.parse())) {
        Some((name, Ok(plies))) => (name, Some(plies)),
        _ => (name, None),
    }
}

/// Whether this is the name of a player without a card.
#[must_use]
pub fn is_built_in(name: &str) -> bool {
    BUILT_IN.contains(&name)
}

/// Whether a built-in player plays only tic-tac-toe.
#[must_use]
pub fn is_of_one_game(name: &str) -> bool {
    built_in(name, Game::ScoreFour.geometry()).is_err()
}

/// A built-in player of a game. If `game` is `None`, it is the largest game that the player knows.
///
/// # Errors
/// A message if there is no such player, or if it does not play this game.
pub fn find_built_in(name: &str, game: Option<Game>) -> Result<(Game, Player), String> {
    let only = if is_of_one_game(name) { Game::TicTacToe } else { Game::ScoreFour };
    let game = game.unwrap_or(only);
    Ok((game, built_in(name, game.geometry())?))
}

/// The player of a champion's card, and its game; `None` if the champion plays no game.
///
/// # Errors
/// A message if the card describes the player wrongly, or if the game is unknown here.
pub fn player_of_card(card: &Card) -> Result<Option<(Game, Player)>, String> {
    let Some(player) = card.capability::<Player>()? else { return Ok(None) };
    let game = Game::of_shape(player.geometry.shape()).ok_or("it plays no game that is known here")?;
    Ok(Some((game, player)))
}
