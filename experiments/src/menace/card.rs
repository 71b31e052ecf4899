//! A machine's card, and the machine as a player: it draws beads, but does not learn.

use std::{any::Any, sync::Arc};

use evoxo_common::{
    card::{CardKind, Champion, Entries, Load, Showing, brief},
    rng::{Generator, below},
    text::quoted,
};
use evoxo_games::{
    board::{Board, Geometry, Position, cells, tic_tac_toe},
    odds::{Exact, Subject, exact_json, exact_text, proof_text},
    player::{Move, Play, Player, Thought, side_of_card},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    boxes::{Boxes, CELLS, code_of},
    machine::{BEADS_MAX, Machine},
    odds::{Odds, Walk},
};

/// `{"kind": "menace", "side": "X", "boxes": {".........": [4, 4, 0, 0, 4, 0, 0, 0, 0]}}`
///
/// The key of a box is its board as a text from the top left, in any of the board's eight images. The value has the beads of
/// the cells in the same order. A box that is left out is empty, and at an empty box the player takes any empty cell.
pub(super) const CARD: CardKind = CardKind { name: "menace", keys: &KEYS, about: &[], read, file: None };

const KEYS: [&str; 3] = ["kind", "side", "boxes"];

fn read(entries: &Entries, text: &str, _: &mut Load<'_>) -> Result<Arc<dyn Champion>, String> {
    let side = side_of_card(entries)?;
    // The text is parsed a second time, because a JSON value keeps only the last entry if a board occurs twice.
    #[derive(Deserialize)]
    struct Content {
        boxes: Entries,
    }
    let Content { boxes } = serde_json::from_str(text)
        .map_err(|error| format!("the card has no \"boxes\" from boards to numbers of beads: {error}"))?;
    let mut beads = vec![0; CELLS * Boxes::get().boards(side).len()];
    let mut keys: Vec<Option<&str>> = vec![None; Boxes::get().boards(side).len()];
    for (key, value) in boxes.iter() {
        let board = tic_tac_toe().board_of(key)?;
        let found = Some(*Boxes::get().node(code_of(board))).filter(|_| board.to_move() == side);
        let place = found.and_then(|node| node.place);
        let place = place.ok_or_else(|| format!("{} has no box for the board {}", side.letter(), quoted(key)))?;
        let number = usize::from(place.number);
        if let Some(first) = keys[number].replace(key) {
            return Err(format!("the boards {} and {} are images of each other: keep one", quoted(first), quoted(key)));
        }
        for (cell, count) in counts(key, value)?.into_iter().enumerate() {
            let to = tic_tac_toe().symmetries()[usize::from(place.turn)].cell(cell as u8);
            beads[CELLS * number + usize::from(to)] = count;
        }
    }
    Ok(Arc::new(Machine::new(side, beads)?))
}

/// The nine numbers of a box.
fn counts(key: &str, value: &Value) -> Result<[u32; CELLS], String> {
    let whole = |count: &Value| Some(count.as_u64().filter(|count| *count <= BEADS_MAX.into())? as u32);
    let counts: Option<Vec<u32>> = value.as_array().and_then(|counts| counts.iter().map(whole).collect());
    counts.and_then(|counts| counts.try_into().ok()).ok_or_else(|| {
        let (key, value) = (quoted(key), brief(value));
        format!("the box of the board {key} has {value}, not nine whole numbers of beads, each at most {BEADS_MAX}")
    })
}

impl Machine {
    /// The boxes that are not empty, with their boards.
    fn filled(&self) -> impl Iterator<Item = (Board, &[u32])> {
        let boards = Boxes::get().boards(self.side).iter().copied();
        boards.zip(self.beads.chunks(CELLS)).filter(|(_, beads)| beads.iter().any(|count| *count > 0))
    }

    /// Whether the machine has beads for a board.
    fn has_beads(&self, board: Board) -> bool {
        self.on_board(code_of(board)).iter().any(|count| *count > 0)
    }

    /// The cells that the machine may take on a board, with their beads. If it has no beads for the board, each cell counts
    /// as one bead.
    fn choices(&self, board: Board) -> Vec<(u8, u32)> {
        let beads = self.on_board(code_of(board));
        let empty = cells(tic_tac_toe().legal(board));
        match self.has_beads(board) {
            true => empty.map(|cell| (cell, beads[usize::from(cell)])).filter(|(_, count)| *count > 0).collect(),
            false => empty.map(|cell| (cell, 1)).collect(),
        }
    }

    /// The exact odds of a player that takes one of the cells that `among` returns.
    fn exact_of(&self, among: fn(&[(u8, u32)]) -> u64) -> Result<Exact, String> {
        let choose = Box::new(|board| among(&self.choices(board)));
        Subject { side: self.side, filtered: false, choose }.exact()
    }

    /// The exact odds of the player that takes the move with the most beads, or any of several such moves.
    ///
    /// # Errors
    /// None, because the player's moves are always legal.
    pub fn exact_of_most(&self) -> Result<Exact, String> {
        self.exact_of(|choices| {
            let most = choices.iter().map(|(_, count)| *count).max().unwrap_or(0);
            choices.iter().filter(|(_, count)| *count == most).fold(0, |mask, (cell, _)| mask | 1 << cell)
        })
    }
}

impl Champion for Machine {
    fn write(&self, _: &str) -> (Map<String, Value>, Option<(String, Vec<u8>)>) {
        let boxes = self.filled().map(|(board, beads)| (tic_tac_toe().board_text(board), json!(beads)));
        let boxes: Map<String, Value> = boxes.collect();
        let values = ["menace".into(), self.side.letter().to_string().into(), boxes.into()];
        (KEYS.map(String::from).into_iter().zip(values).collect(), None)
    }

    fn show(&self, first: usize) -> Showing {
        let (side, total, all) = (self.side.letter(), self.filled().count(), self.beads.len() / CELLS);
        let game = tic_tac_toe();
        let moves = |beads: &[u32]| -> Vec<(String, u32)> {
            let filled = beads.iter().enumerate().filter(|(_, count)| **count > 0);
            filled.map(|(cell, count)| (game.cell_name(cell as u8), *count)).collect()
        };
        let mut text = format!(
            "A machine of matchboxes that plays {side}: {total} of its {all} boxes have beads. Each board, from the top left,\n\
             with the beads of its moves; turned and mirrored boards share a box.\n\n"
        );
        for (board, beads) in self.filled().take(first) {
            let told: Vec<String> = moves(beads).iter().map(|(cell, count)| format!("{cell} {count}")).collect();
            text += &format!("  {}  {}\n", game.board_text(board), told.join("  "));
        }
        let json = self.filled().take(first).map(|(board, beads)| {
            let beads: Map<String, Value> =
                moves(beads).into_iter().map(|(cell, count)| (cell, count.into())).collect();
            json!({"board": game.board_text(board), "beads": beads})
        });
        Showing { text, json: json.collect() }
    }

    fn capability(&self, _: &Map<String, Value>) -> Result<Option<Box<dyn Any>>, String> {
        let name = format!("matchboxes {}", self.side.letter());
        let play = Box::new(self.clone());
        Ok(Some(Box::new(Player { name, geometry: tic_tac_toe(), side: Some(self.side), play })))
    }
}

/// A description of a move that has `count` of all beads.
fn told(count: u32, total: u32) -> String {
    format!("{count} of the {total} beads in its box")
}

impl Play for Machine {
    fn choose_move(&mut self, _: &'static Geometry, position: Position, rng: &mut Generator) -> Move {
        let board = position.board();
        let choices = self.choices(board);
        let total: u32 = choices.iter().map(|(_, count)| count).sum();
        let mut lot = below(rng, total.into()) as u32;
        let drawn = choices.iter().find(|(_, count)| {
            let here = lot < *count;
            lot = lot.saturating_sub(*count);
            here
        });
        let (cell, count) = *drawn.expect("the lot is less than all beads");
        match self.has_beads(board) {
            true => Move::new(cell, format!("it drew one of {}", told(count, total))),
            false => Move::new(cell, "it has no beads for this board"),
        }
    }

    fn is_random(&self) -> bool {
        true
    }

    fn thoughts(&mut self, _: &'static Geometry, position: Position, _: &mut Generator) -> Vec<Thought> {
        let filled = self.has_beads(position.board());
        let choices = self.choices(position.board());
        let total: u32 = choices.iter().map(|(_, count)| count).sum();
        let thought = |(cell, count): &(u8, u32)| Thought {
            cell: *cell,
            value: Some(f64::from(*count) / f64::from(total)),
            says: if filled { told(*count, total) } else { "it has no beads for this board".into() },
        };
        choices.iter().map(thought).collect()
    }

    fn shares(&mut self, _: &'static Geometry, position: Position) -> Option<Vec<(u8, u32)>> {
        Some(self.choices(position.board()))
    }

    fn exact(&self) -> Result<Showing, String> {
        let possible = self.exact_of(|choices| choices.iter().fold(0, |mask, (cell, _)| mask | 1 << cell))?;
        let most = self.exact_of_most()?;
        let [random, perfect] = {
            let mut walk = Walk::new();
            [false, true].map(|perfect| walk.odds(self, perfect))
        };
        let side = self.side.letter();
        let text = format!(
            "A machine of matchboxes that plays {side} and draws beads. Computed over all games, to {DIGITS} digits:\n\
             {}{}{}\n\
             The same machine if it always takes the move with the most beads. The filter completes or blocks a line before a\n\
             random move.\n\n{}",
            odds_text("a random mover", random),
            odds_text("a perfect player", perfect),
            proof_text(&possible, "it can lose"),
            exact_text(&most),
        );
        let json = json!({
            "random": odds_json(random),
            "perfect": odds_json(perfect),
            "losing_lines": possible.losing_lines,
            "unbeatable": possible.unbeatable(),
            "most_beads": exact_json(&most),
        });
        Ok(Showing { text, json })
    }
}

/// Digits that are correct whatever the rounding.
const DIGITS: usize = 7;

fn odds_text(whom: &str, [win, draw, loss]: Odds) -> String {
    let percent = |share: f64| format!("{:.5} %", 100.0 * share);
    format!("  against {whom} it wins {}, draws {}, loses {}\n", percent(win), percent(draw), percent(loss))
}

fn odds_json([win, draw, loss]: Odds) -> Value {
    json!({"win": win, "draw": draw, "loss": loss})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::menace::settings::{SCHEMA, Settings};
    use evoxo_common::{card::Card, rng::Stream};
    use evoxo_games::board::Side;

    fn fresh(side: Side) -> Machine {
        Machine::fresh(side, &Settings::of(&SCHEMA.defaults()).rules())
    }

    fn read_card(text: &str) -> Result<Card, String> {
        Card::read(&[&CARD], text, &mut |_| Err("no file".into()))
    }

    #[test]
    fn cards_of_machines_are_read_back() {
        for side in Side::BOTH {
            let mut machine = fresh(side);
            machine.beads[..CELLS].fill(0);
            let text = Card::new(machine.clone()).write("stem").0;
            let read = read_card(&text).unwrap();
            assert_eq!(read.champion_as::<Machine>(), Some(&machine));
        }
    }

    #[test]
    fn invalid_cards_are_rejected_with_a_reason() {
        let sentence =
            |boxes: &str| read_card(&format!(r#"{{"kind":"menace","side":"X","boxes":{boxes}}}"#)).unwrap_err();
        assert!(sentence("3").contains("no \"boxes\" from boards"));
        let beads = |text: &str, beads: &str| sentence(&format!("{{\"{text}\":{beads}}}"));
        assert_eq!(beads("X........", "[0,0,0,0,1,0,0,0,0]"), "X has no box for the board \"X........\"");
        assert_eq!(beads("XXX.OO...", "[0,0,0,0,0,0,0,0,0]"), "X has no box for the board \"XXX.OO...\"");
        assert!(beads("XO.......", "[0,0,1]").contains("nine whole numbers of beads"));
        assert!(beads("XO.......", "[0,0,1,0,0,0,0,0,1000001]").contains("at most 1000000"));
        let taken = beads("XO.......", "[1,0,0,0,0,0,0,0,0]");
        assert!(taken.contains("has beads on the board") && taken.contains("is taken"), "{taken}");
        let empty = "[0,0,0,0,0,0,0,0,0]";
        let twice = sentence(&format!("{{\"XO.......\":{empty},\".......OX\":{empty}}}"));
        assert_eq!(twice, "the boards \"XO.......\" and \".......OX\" are images of each other: keep one");
        assert!(beads("XOXOXOXO", empty).contains("XOXOXOXO"));
    }

    /// The machine draws in proportion to its beads, turned with the board, and says so.
    #[test]
    fn a_machine_plays_by_its_beads() {
        let card = r#"{"kind":"menace","side":"X","boxes":{".......XO":[0,0,0,0,3,0,1,0,0]}}"#;
        let card = read_card(card).unwrap();
        let mut player: Player = card.capability().unwrap().unwrap();
        assert_eq!((player.name.as_str(), player.side, player.play.is_random()), ("matchboxes X", Some(Side::X), true));
        let geometry = tic_tac_toe();
        let position = |text: &str| Position::of(geometry, geometry.board_of(text).unwrap());
        let turned = position("OX.......");
        let shares = player.play.shares(geometry, turned).unwrap();
        assert_eq!(shares, [(2, 1), (4, 3)]);
        let rng = &mut Stream::root(3).rng();
        let drawn: Vec<Move> = (0..400).map(|_| player.play.choose_move(geometry, turned, rng)).collect();
        let centre = drawn.iter().filter(|drawn| drawn.cell == 4).count();
        assert!((240..360).contains(&centre) && drawn.iter().all(|drawn| [2, 4].contains(&drawn.cell)), "{centre}");
        assert!(drawn.contains(&Move::new(4, "it drew one of 3 of the 4 beads in its box")));
        let thoughts = player.play.thoughts(geometry, turned, rng);
        assert_eq!((thoughts.len(), thoughts[1].value), (2, Some(0.75)));
        let empty = player.play.thoughts(geometry, Position::START, rng);
        assert!(empty.len() == 9 && empty[0].says == "it has no beads for this board");
        let last = player.play.choose_move(geometry, position("XOXXOOOX."), rng);
        assert_eq!(last, Move::new(8, "it has no beads for this board"));
    }

    /// The text of the odds. Its second half is about the move with the most beads.
    #[test]
    fn machines_are_analysed_exactly() {
        let showing = fresh(Side::X).exact().unwrap();
        insta::assert_snapshot!(showing.text);
        assert_eq!(showing.json["unbeatable"], false);
        let mut centre = fresh(Side::X);
        centre.beads[4] = 5;
        let most = centre.exact_of_most().unwrap();
        assert!(most.losing_lines < fresh(Side::X).exact_of_most().unwrap().losing_lines);
        insta::assert_snapshot!(fresh(Side::O).show(2).text);
    }
}
