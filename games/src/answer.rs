//! Answers for people who play: positions, moves and thoughts as JSON, for a page that knows no rules.

use evoxo_common::{
    play::{Play, Question, Wanted, Who},
    rng::{Generator, Stream},
};
use serde_json::{Value, json};

use crate::{
    board::{Geometry, Outcome, Position, Side, cells},
    game::Game,
    player::{
        BUILT_IN, Player, Thought,
        find::{find_built_in, is_built_in, is_of_one_game, player_of_card},
    },
};

/// What this crate offers to people who play.
pub static PLAY: Play = Play { offers, answer };

/// The most plies that a player looks ahead here, so that an answer takes seconds at most. In games with as many possible
/// moves as cells, it is fewer.
const PLIES_MAX: u32 = 4;
const PLIES_MAX_OF_QUBIC: u32 = 2;

fn plies_max(game: Game) -> u32 {
    if game == Game::Qubic { PLIES_MAX_OF_QUBIC } else { PLIES_MAX }
}

/// The games with their boards and their players.
fn offers() -> Value {
    let game = |game: Game| {
        let geometry = game.geometry();
        let shape = geometry.shape();
        let players = BUILT_IN.into_iter().filter(|name| game == Game::TicTacToe || !is_of_one_game(name));
        json!({
            "name": game.name(),
            "about": game.about(),
            "width": shape.width,
            "height": shape.height,
            "depth": shape.depth,
            "gravity": shape.gravity,
            "cells": cells(geometry.cells()).map(|cell| geometry.cell_name(cell)).collect::<Vec<_>>(),
            "players": players.map(|name| json!({"name": name, "looks_ahead": looks_ahead(name, game)})).collect::<Vec<_>>(),
            "plies_max": plies_max(game),
        })
    };
    json!({"games": Game::ALL.map(game)})
}

fn looks_ahead(name: &str, game: Game) -> bool {
    find_built_in(name, Some(game)).is_ok_and(|(_, mut player)| player.play.look_ahead(1))
}

fn answer(question: &Question<'_>) -> Result<Value, String> {
    let wanted = match question.game {
        "" => None,
        name => Some(Game::named(name).ok_or_else(|| format!("there is no game {name:?}"))?),
    };
    let Some((game, player)) = player(question, wanted)? else {
        let game = wanted.ok_or("the question names no game")?;
        let position = position(game, question.moves)?;
        return match question.wanted {
            Wanted::Position => Ok(position_json(game, position)),
            _ => Err("the question names no player".into()),
        };
    };
    let mut player = prepared(game, player, question)?;
    if question.wanted == Wanted::Introduction {
        return Ok(json!({
            "name": player.name,
            "game": game.name(),
            "side": player.side.map(|side| side.letter().to_string()),
            "looks_ahead": player.play.look_ahead(1),
            "by_chance": player.play.is_random(),
        }));
    }
    let (geometry, position) = (game.geometry(), position(game, question.moves)?);
    if question.wanted == Wanted::Position {
        return Ok(position_json(game, position));
    }
    if geometry.outcome(position.board()).is_some() {
        return Err("the game is over".into());
    }
    let to_move = position.to_move();
    if let Some(side) = player.side.filter(|side| *side != to_move) {
        return Err(format!("this champion plays {} only, and it is {}'s turn", side.letter(), to_move.letter()));
    }
    // Random numbers depend only on the moves, so the same question always has the same answer.
    let rng = &mut Stream::root(0).text("page").text(game.name()).text(question.moves).rng();
    Ok(match question.wanted {
        Wanted::Thoughts => json!({"thoughts": thoughts(game, &mut player, position, rng)}),
        _ => {
            let chosen = player.play.choose_move(geometry, position, rng);
            let mut json = position_json(game, position.play(geometry, chosen.cell));
            json["move"] = geometry.move_name(chosen.cell).into();
            json["why"] = chosen.why.into();
            json
        }
    })
}

/// The player that a question names, and its game; `None` if it names no player.
fn player(question: &Question<'_>, wanted: Option<Game>) -> Result<Option<(Game, Player)>, String> {
    let found = match question.who {
        Who::Nobody => return Ok(None),
        Who::Named(name) if !is_built_in(name) => return Err(format!("there is no player {name:?}")),
        Who::Named(name) => find_built_in(name, wanted)?,
        Who::Champion(card) => player_of_card(card)?.ok_or("this champion plays no game")?,
    };
    match wanted.filter(|wanted| *wanted != found.0) {
        Some(wanted) => Err(format!("this champion plays {}, not {}", found.0.name(), wanted.name())),
        None => Ok(Some(found)),
    }
}

/// The player with the look-ahead that the question asks for.
fn prepared(game: Game, mut player: Player, question: &Question<'_>) -> Result<Player, String> {
    let most = plies_max(game);
    match question.plies {
        // By default, a player without a card may look further ahead than is allowed here.
        None if matches!(question.who, Who::Named(_)) => drop(player.play.look_ahead(most)),
        None => {}
        Some(plies) if !(1..=most).contains(&plies) => {
            return Err(format!("{plies} plies are too many or too few: give 1 to {most} in {}", game.name()));
        }
        Some(plies) if !player.play.look_ahead(plies) => return Err("this player does not look ahead".into()),
        Some(_) => {}
    }
    Ok(player)
}

/// The position after these moves.
fn position(game: Game, moves: &str) -> Result<Position, String> {
    let geometry = game.geometry();
    let mut position = Position::START;
    for name in moves.split('.').filter(|name| !name.is_empty()) {
        let board = position.board();
        if geometry.outcome(board).is_some() {
            return Err(format!("the move {name:?} comes after the end of the game"));
        }
        let cell = geometry.move_named(board, name).ok_or_else(|| format!("{name:?} is not a legal move here"))?;
        position = position.play(geometry, cell);
    }
    Ok(position)
}

fn position_json(game: Game, position: Position) -> Value {
    let (geometry, board) = (game.geometry(), position.board());
    let outcome = geometry.outcome(board);
    let result = outcome.map(|outcome| match outcome {
        Outcome::Draw => "draw".to_owned(),
        Outcome::Win(side) => side.letter().to_string(),
    });
    let legal: Vec<Value> = match outcome {
        Some(_) => Vec::new(),
        None => {
            cells(geometry.legal(board)).map(|cell| json!({"move": geometry.move_name(cell), "cell": cell})).collect()
        }
    };
    json!({
        "game": game.name(),
        "board": geometry.board_text(board),
        "to_move": outcome.is_none().then(|| board.to_move().letter().to_string()),
        "legal": legal,
        "result": result,
        "line": line(geometry, position),
    })
}

/// The cells of the winning lines.
fn line(geometry: &Geometry, position: Position) -> Vec<u8> {
    let complete = |line: &&u64| Side::BOTH.iter().any(|side| *line & position.board().stones(*side) == **line);
    cells(geometry.lines().iter().filter(complete).fold(0, |all, line| all | line)).collect()
}

/// A player's thoughts, the best first.
fn thoughts(game: Game, player: &mut Player, position: Position, rng: &mut Generator) -> Vec<Value> {
    let geometry = game.geometry();
    let mut thoughts: Vec<Thought> = player.play.thoughts(geometry, position, rng);
    let value = |thought: &Thought| thought.value.unwrap_or_default();
    thoughts.sort_by(|one, other| value(other).total_cmp(&value(one)).then(one.cell.cmp(&other.cell)));
    let told = |thought: Thought| {
        let Thought { cell, value, says } = thought;
        json!({"move": geometry.move_name(cell), "cell": cell, "value": value, "says": says})
    };
    thoughts.into_iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::{card::Card, ratio::Ratio};

    use crate::table::optimum::optimum;

    fn ask(game: &str, moves: &str, who: Who<'_>, wanted: Wanted) -> Result<Value, String> {
        answer(&Question { game, moves, who, plies: None, wanted })
    }

    #[test]
    fn positions_moves_and_ends_are_answered() {
        let start = ask("score-four", "", Who::Nobody, Wanted::Position).unwrap();
        assert_eq!((start["to_move"].as_str(), start["legal"].as_array().map(Vec::len)), (Some("X"), Some(16)));
        let won = ask("tic-tac-toe", "a1.b2.b1.b3.c1", Who::Nobody, Wanted::Position).unwrap();
        assert_eq!((&won["result"], &won["line"], &won["legal"]), (&json!("X"), &json!([6, 7, 8]), &json!([])));
        let blocked = ask("tic-tac-toe", "b2.a3.a1", Who::Named("perfect"), Wanted::Move).unwrap();
        assert_eq!((&blocked["move"], &blocked["board"]), (&json!("c3"), &json!("O.O.X.X..")));
        let again = ask("tic-tac-toe", "b2.a3.a1", Who::Named("perfect"), Wanted::Move).unwrap();
        assert_eq!(blocked, again);
    }

    #[test]
    fn thoughts_of_built_in_players() {
        let thoughts = |game: &str, moves: &str, name: &str| {
            let json = ask(game, moves, Who::Named(name), Wanted::Thoughts).unwrap();
            let thoughts = json["thoughts"].as_array().unwrap().clone();
            assert!(!thoughts.is_empty());
            thoughts
        };
        // In reply to a corner opening at the centre, only corners and sides that keep the draw come first, never a loss.
        let perfect = thoughts("tic-tac-toe", "a1", "perfect");
        assert_eq!((perfect.len(), &perfect[0]["move"], &perfect[0]["value"]), (8, &json!("b2"), &json!(0.0)));
        assert!(perfect[1..].iter().all(|thought| thought["value"] == json!(-1.0)));
        let ahead = thoughts("score-four", "a1.b1.a1.b1.a1.b1", "alpha-beta");
        assert_eq!((ahead.len(), &ahead[0]["move"], &ahead[0]["says"]), (16, &json!("a1"), &json!("it sees a win")));
        let teacher = thoughts("tic-tac-toe", "", "teacher");
        assert_eq!((teacher.len(), &teacher[0]["move"]), (9, &json!("b2")));
        assert_eq!(thoughts("qubic", "", "random").len(), 1);
    }

    #[test]
    fn champions_play_their_side_of_their_game() {
        let card = Card::new(optimum(Side::O, Ratio::from(100)).player);
        let who = Who::Champion(&card);
        let introduction = ask("", "", who, Wanted::Introduction).unwrap();
        assert_eq!((&introduction["game"], &introduction["side"]), (&json!("tic-tac-toe"), &json!("O")));
        assert!(ask("", "b2", who, Wanted::Move).unwrap()["move"].is_string());
        assert_eq!(ask("", "b2", who, Wanted::Thoughts).unwrap()["thoughts"].as_array().map(Vec::len), Some(8));
        let sentence = ask("", "", who, Wanted::Move).unwrap_err();
        assert_eq!(sentence, "this champion plays O only, and it is X's turn");
        let sentence = ask("qubic", "", who, Wanted::Move).unwrap_err();
        assert_eq!(sentence, "this champion plays tic-tac-toe, not qubic");
    }

    #[test]
    fn garbage_is_rejected_with_a_reason() {
        let wrong = |game: &str, moves: &str, who: Who<'_>, wanted: Wanted| ask(game, moves, who, wanted).unwrap_err();
        assert_eq!(wrong("chess", "", Who::Nobody, Wanted::Position), "there is no game \"chess\"");
        assert_eq!(wrong("qubic", "z9", Who::Nobody, Wanted::Position), "\"z9\" is not a legal move here");
        assert_eq!(wrong("tic-tac-toe", "a1.a1", Who::Nobody, Wanted::Position), "\"a1\" is not a legal move here");
        let late = wrong("tic-tac-toe", "a1.b2.b1.b3.c1.c2", Who::Nobody, Wanted::Position);
        assert_eq!(late, "the move \"c2\" comes after the end of the game");
        assert_eq!(wrong("tic-tac-toe", "a1.b2.b1.b3.c1", Who::Named("random"), Wanted::Move), "the game is over");
        assert_eq!(wrong("qubic", "", Who::Named("somebody"), Wanted::Move), "there is no player \"somebody\"");
        assert!(wrong("qubic", "", Who::Named("perfect"), Wanted::Move).contains("plays only tic-tac-toe"));
        assert_eq!(wrong("qubic", "", Who::Nobody, Wanted::Move), "the question names no player");
        let plies = |plies| {
            let who = Who::Named("alpha-beta");
            answer(&Question { game: "qubic", moves: "", who, plies: Some(plies), wanted: Wanted::Move })
        };
        assert!(plies(2).is_ok() && plies(3).unwrap_err().contains("give 1 to 2 in qubic"));
        assert!(plies(0).is_err() && plies(u32::MAX).is_err());
    }

    #[test]
    fn offers_name_every_game_and_its_players() {
        let offers = offers();
        let games = offers["games"].as_array().unwrap();
        let players = |game: usize| games[game]["players"].as_array().unwrap().len();
        assert_eq!((games.len(), players(0), players(3)), (4, 6, 4));
        assert_eq!(games[1]["cells"].as_array().map(Vec::len), Some(42));
        assert_eq!(games[0]["players"][3], json!({"name": "alpha-beta", "looks_ahead": true}));
    }
}
