//! Finds the players of a league from their names and files. Files are part of the configuration, so nothing is read here.

use bytes::Bytes;
use evoxo_common::{
    card::{Card, CardKind},
    experiment::Kind,
    text::quoted,
};
use evoxo_games::{
    board::{Geometry, Side},
    player::{BUILT_IN, Player, alpha_beta::DEPTH_MAX, built_in},
};
use serde_json::Map;

use super::messages::Roster;
use crate::{invincible, menace, nndtf, rules, td3d, ternary};

/// The reason why a player cannot be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// A file with this path has to be read first.
    File(String),
    /// An error message.
    Wrong(String),
}

/// The kinds whose champions play games.
pub(super) const KINDS: [&Kind; 6] =
    [&invincible::KIND, &menace::KIND, &nndtf::KIND, &rules::KIND, &td3d::KIND, &ternary::KIND];

/// The players that play X and O for player `number` of the roster; `None` for a side that it does not play.
pub(super) fn sides(
    roster: &Roster,
    number: usize,
    geometry: &'static Geometry,
) -> Result<[Option<Player>; 2], Missing> {
    let named = &roster.players[number];
    let both = [&named.x, if named.o.is_empty() { &named.x } else { &named.o }];
    let mut found = [None, None];
    for ((place, who), side) in both.into_iter().enumerate().zip(Side::BOTH) {
        let player = find(roster, who, geometry)?;
        if player.side.is_none_or(|only| only == side) {
            found[place] = Some(player);
        } else if !named.o.is_empty() {
            let sentence = format!("{} does not play {}", quoted(who), side.letter());
            return Err(Missing::Wrong(sentence));
        }
    }
    Ok(found)
}

/// The player with this name or file.
fn find(roster: &Roster, who: &str, geometry: &'static Geometry) -> Result<Player, Missing> {
    let (name, plies) = match who.rsplit_once(':').map(|(name, plies)| (name, plies.parse::<u32>())) {
        Some((name, Ok(plies))) => (name, Some(plies)),
        _ => (who, None),
    };
    let mut player = match BUILT_IN.contains(&name) {
        true => built_in(name, geometry).map_err(Missing::Wrong)?,
        false => champion(roster, name, geometry)?,
    };
    match plies {
        Some(plies) if !(1..=DEPTH_MAX).contains(&plies) => {
            Err(Missing::Wrong(format!("{} looks {plies} plies ahead: give 1 to {DEPTH_MAX}", quoted(name))))
        }
        Some(plies) if !player.play.look_ahead(plies) => {
            Err(Missing::Wrong(format!("{} does not look ahead: leave out :{plies}", quoted(name))))
        }
        _ => Ok(player),
    }
}

fn champion(roster: &Roster, path: &str, geometry: &'static Geometry) -> Result<Player, Missing> {
    let wrong = |why: String| Missing::Wrong(format!("{}: {why}", quoted(path)));
    let content = content(roster, path).ok_or_else(|| Missing::File(path.into()))?;
    let player = card(roster, path, &content)?.capability::<Player>().map_err(wrong)?;
    let player = player.ok_or_else(|| wrong("it plays no game".into()))?;
    match player.geometry.shape() == geometry.shape() {
        true => Ok(player),
        false => Err(wrong("it does not play the league's game".into())),
    }
}

/// The champion in a file: either a card, together with the other file that the card may name, or a file that is a champion
/// without a card.
fn card(roster: &Roster, path: &str, bytes: &Bytes) -> Result<Card, Missing> {
    let wrong = |why: String| Missing::Wrong(format!("{}: {why}", quoted(path)));
    let kinds: Vec<&'static CardKind> = KINDS.iter().flat_map(|kind| kind.cards).collect();
    let alone = kinds.iter().filter_map(|kind| kind.file);
    for (ending, read) in alone {
        if path.rsplit_once('.').is_some_and(|(_, other)| other == ending) {
            return Ok(Card { champion: read(bytes).map_err(wrong)?, about: Map::new() });
        }
    }
    let text = std::str::from_utf8(bytes).map_err(|_| wrong("it is not a text".into()))?;
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    let mut asked = None;
    let mut beside = |other: &str| {
        let other = if directory.is_empty() { other.to_owned() } else { format!("{directory}/{other}") };
        let found = self::content(roster, &other);
        if found.is_none() {
            asked = Some(other);
        }
        found.map(|bytes| bytes.to_vec()).ok_or_else(|| "it is not there yet".to_owned())
    };
    let found = Card::read(&kinds, text, &mut beside);
    match asked {
        Some(file) => Err(Missing::File(file)),
        None => found.map_err(wrong),
    }
}

fn content(roster: &Roster, path: &str) -> Option<Bytes> {
    roster.files.iter().find(|file| file.path == path).map(|file| file.content.clone())
}
