//! Reads champions from files.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use evoxo_common::{
    card::{CARD_BYTES_MAX, Card, CardKind, FILE_BYTES_MAX},
    experiment::Registry,
};
use evoxo_games::{
    game::Game,
    player::{Player, find::player_of_card},
};
use serde_json::Map;

use crate::{file, say::program};

/// Reads a champion: from a card, with the file next to it if the card names one, or from a file that is a champion without a
/// card. Error messages name the file.
pub(crate) fn read(registry: &Registry, path: &Path) -> anyhow::Result<Card> {
    let wrong = |why: String| anyhow!("{}: {why}", path.display());
    let ending = path.extension().and_then(|ending| ending.to_str());
    let alone = |card: &CardKind| card.file.filter(|(known, _)| Some(*known) == ending).map(|(_, read)| read);
    if let Some(read) = registry.cards().find_map(alone) {
        let champion = read(&file::read(path, FILE_BYTES_MAX, "")?).map_err(wrong)?;
        return Ok(Card { champion, about: Map::new() });
    }
    let text = String::from_utf8(file::read(path, CARD_BYTES_MAX, "")?);
    let text = text.with_context(|| format!("{} is not a text", path.display()))?;
    let mut beside =
        |other: &str| file::read(&path.with_file_name(other), FILE_BYTES_MAX, "").map_err(|why| format!("{why:#}"));
    registry.read_card(&text, &mut beside).map_err(wrong)
}

/// Reads a champion as a player, with its game.
pub(crate) fn read_player(registry: &Registry, path: &Path) -> anyhow::Result<(Game, Player)> {
    let player = player_of_card(&read(registry, path)?).map_err(|why| anyhow!("{}: {why}", path.display()))?;
    player.ok_or_else(|| anyhow!("{} does not play a game: `{} show` describes it", path.display(), program()))
}
