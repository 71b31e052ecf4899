//! A table player's card.

use std::{any::Any, sync::Arc};

use evoxo_common::{
    card::{CardKind, Champion, Entries, Load, Showing, brief},
    rng::Generator,
    text::quoted,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{TableGenome, graph::Graph};
use crate::{
    board::{Board, Geometry, Position, Side, Symmetry, cells, pictures, tic_tac_toe},
    odds::{exact_json, exact_text},
    player::{Move, Play, Player, Thought, filter_move, line_thoughts, side_of_card},
};

/// `{"kind": "table", "side": "O", "moves": {"X........": 4, ".X.......": 0}}`
///
/// The key of a move is a board on which the side decides, as a text from the top left. The value is the cell to play there,
/// 0 to 8 in the same order. Any of a board's eight images can be given, and the move turns with it. Boards that the player
/// cannot meet under its own moves may be left out.
pub const CARD: CardKind = CardKind { name: "table", keys: &KEYS, about: &[], read, file: None };

const KEYS: [&str; 3] = ["kind", "side", "moves"];

/// The table player that a card describes.
fn read(entries: &Entries, text: &str, _: &mut Load<'_>) -> Result<Arc<dyn Champion>, String> {
    let side = side_of_card(entries)?;
    // The text is parsed a second time, because a JSON value keeps only the last entry if a board occurs twice.
    #[derive(Deserialize)]
    struct Moves {
        moves: Entries,
    }
    let Moves { moves } = serde_json::from_str(text)
        .map_err(|error| format!("the card has no \"moves\" from boards to cells: {error}"))?;
    Ok(Arc::new(table_of(side, &moves)?))
}

impl Champion for TableGenome {
    fn write(&self, _: &str) -> (Map<String, Value>, Option<(String, Vec<u8>)>) {
        (to_map(self), None)
    }

    fn show(&self, first: usize) -> Showing {
        let (side, total) = (self.side().letter(), moves(self).count());
        let text = format!(
            "A table that plays {side}: its move on each of {total} boards; where a line can be completed or\n\
             must be blocked, it does that.\n\n"
        );
        let game = tic_tac_toe();
        let json = moves(self)
            .take(first)
            .map(|(board, cell)| json!({"board": game.board_text(board), "move": game.cell_name(cell)}));
        let drawn = moves(self).take(first).map(|(board, cell)| pictures::decision(board, cell)).collect();
        Showing { text: text + &pictures::side_by_side(drawn), json: json.collect() }
    }

    fn capability(&self, _: &Map<String, Value>) -> Result<Option<Box<dyn Any>>, String> {
        let name = format!("table {}", self.side().letter());
        let side = Some(self.side());
        Ok(Some(Box::new(Player { name, geometry: tic_tac_toe(), side, play: Box::new(self.clone()) })))
    }
}

/// The boards on which a table decides, with the cell that it takes.
fn moves(table: &TableGenome) -> impl Iterator<Item = (Board, u8)> + '_ {
    Graph::of(table.side()).boards().iter().copied().zip(table.genes().iter().copied())
}

impl Play for TableGenome {
    /// The filter moves first, as in evolution. The table has a move for every board on which the filter has none, including
    /// boards that only an opponent without the filter can bring about.
    fn choose_move(&mut self, _: &'static Geometry, position: Position, _: &mut Generator) -> Move {
        let own = || self.choose(position.board()).map(|cell| Move::new(cell, "its table says so"));
        filter_move(position)
            .or_else(own)
            .expect("a table has a move for every board of its side that is neither over nor the filter's")
    }

    /// Each empty cell, with what the filter or the table's entry says about it. The value is 1 for the cell that the player
    /// takes.
    fn thoughts(&mut self, geometry: &'static Geometry, position: Position, rng: &mut Generator) -> Vec<Thought> {
        let chosen = self.choose_move(geometry, position, rng);
        let graph = Graph::of(self.side());
        let (None, Some((class, _))) = (filter_move(position), graph.class(position.board())) else {
            return line_thoughts(position, &chosen);
        };
        let (gene, board) = (geometry.cell_name(self.genes()[class]), geometry.board_text(graph.boards()[class]));
        let entry = format!("entry {} of {}, for the board {board} and its images", class + 1, graph.len());
        let thought = |cell: u8| match cell == chosen.cell {
            true => Thought { cell, value: Some(1.0), says: format!("its table says so: {entry}, is {gene}") },
            false => Thought { cell, value: Some(0.0), says: format!("not by its table: {entry}, is {gene}") },
        };
        cells(position.legal(geometry)).map(thought).collect()
    }

    fn exact(&self) -> Result<Showing, String> {
        let exact = TableGenome::exact(self);
        let head = format!(
            "A table that plays {}; both sides complete a line or block one before they choose.\n\n",
            self.side().letter()
        );
        Ok(Showing { text: head + &exact_text(&exact), json: exact_json(&exact) })
    }
}

/// `kind`, `side` and `moves`, with a move for every decision board.
fn to_map(player: &TableGenome) -> Map<String, Value> {
    let boards = Graph::of(player.side()).boards().iter().map(|board| tic_tac_toe().board_text(*board));
    let moves: Map<String, Value> = boards.zip(player.genes().iter().map(|gene| Value::from(*gene))).collect();
    let values = ["table".into(), player.side().letter().to_string().into(), moves.into()];
    KEYS.map(String::from).into_iter().zip(values).collect()
}

/// The player with these moves.
fn table_of(side: Side, moves: &Entries) -> Result<TableGenome, String> {
    let graph = Graph::of(side);
    let mut genes: Vec<Option<(u8, &str)>> = vec![None; graph.len()];
    for (key, value) in moves.iter() {
        let board = tic_tac_toe().board_of(key)?;
        let (class, symmetry) = graph.class(board).ok_or_else(|| {
            format!("{} never decides on the board {}: {}", side.letter(), quoted(key), reason(side, board))
        })?;
        if let Some((_, first)) = genes[class] {
            return Err(format!("the boards {} and {} are images of each other: keep one", quoted(first), quoted(key)));
        }
        genes[class] = Some((gene(board, symmetry, key, value)?, key));
    }
    let met = graph.met(|class| genes[class].iter().map(|(cell, _)| *cell).collect());
    let missing: Vec<String> = met
        .into_iter()
        .filter(|class| genes[*class].is_none())
        .map(|class| format!("\"{}\"", tic_tac_toe().board_text(graph.boards()[class])))
        .collect();
    if !missing.is_empty() {
        let (shown, rest) = missing.split_at(missing.len().min(5));
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        return Err(format!("moves are missing for boards that this player can meet: {}{more}", shown.join(", ")));
    }
    // The player never meets this board, so any move will do.
    let genes =
        genes.iter().enumerate().map(|(class, gene)| gene.map_or(graph.legal_cells(class)[0], |(cell, _)| cell));
    TableGenome::new(side, genes.collect())
}

/// The gene for a move on a board that `symmetry` turns to its canonical image.
fn gene(board: Board, symmetry: &Symmetry, key: &str, value: &Value) -> Result<u8, String> {
    let cell = value.as_u64().filter(|cell| *cell < 9).map(|cell| cell as u8);
    match cell {
        None => Err(format!("the move on the board {} is {}, not a cell 0 to 8", quoted(key), brief(value))),
        Some(cell) if board.occupied() >> cell & 1 == 1 => {
            Err(format!("the move on the board {} is cell {cell}, which is taken", quoted(key)))
        }
        Some(cell) => Ok(symmetry.cell(cell)),
    }
}

/// The reason why a side never decides on a board.
fn reason(side: Side, board: Board) -> &'static str {
    let (x, o) = (board.x.count_ones(), board.o.count_ones());
    match () {
        () if x != o && x != o + 1 => "no game has these numbers of stones",
        () if board.to_move() != side => "it is the other side's turn",
        () if tic_tac_toe().outcome(board).is_some() => "the game is over",
        () if tic_tac_toe().forced(board) != 0 => "the filter moves there",
        () => "play with the filter does not lead there",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        board::{Outcome, cells},
        odds::Exact,
        player::why,
        table::optimum::optimum,
    };
    use evoxo_common::{
        card::Card,
        ratio::Ratio,
        rng::{Stream, below, shuffle},
    };
    use proptest::prelude::*;
    use serde_json::json;

    fn random(side: Side, seed: u64) -> TableGenome {
        TableGenome::random(side, &mut Stream::root(seed).rng())
    }

    /// Reads a card that needs no other file.
    fn read_card(text: &str) -> Result<Card, String> {
        Card::read(&[&CARD], text, &mut |name| Err(format!("{name} is not there")))
    }

    fn sentence(text: &str) -> String {
        let sentence = read_card(text).unwrap_err();
        assert!(!sentence.contains('\n') && sentence.len() < 500, "{sentence}");
        sentence
    }

    proptest! {
        #[test]
        fn writing_and_reading_are_inverse(side in prop::sample::select(Side::BOTH.to_vec()), seed: u64) {
            let about = Map::from_iter([("arm".to_owned(), json!("O-6.5")), ("replica".to_owned(), json!(7))]);
            let card = Card { about, ..Card::new(random(side, seed)) };
            prop_assert_eq!(read_card(&card.write("t").0), Ok(card));
        }

        /// A card written by hand: it has only the boards that the player meets, each as any of its images, in any order.
        #[test]
        fn cards_may_use_images_and_omit_unmet_boards(side in prop::sample::select(Side::BOTH.to_vec()), seed: u64) {
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
            let card = read_card(&text).unwrap();
            let read: &TableGenome = card.champion_as().unwrap();
            // The losing lines may be reported as their images.
            prop_assert_eq!(Exact { examples: vec![], ..read.exact() }, Exact { examples: vec![], ..player.exact() });
            prop_assert_eq!(read.met(), player.met());
        }

        #[test]
        fn any_text_is_a_card_or_rejected_with_a_reason(text in "[{}\\[\\]\",:XO.a-z0-9\u{1}]{0,60}") {
            prop_assert!(read_card(&text).is_err_and(|sentence| !sentence.contains('\n')));
        }
    }

    #[test]
    fn a_card_is_pinned() {
        let genes =
            Graph::of(Side::O).boards().iter().enumerate().map(|(class, _)| Graph::of(Side::O).legal_cells(class)[0]);
        let player = TableGenome::new(Side::O, genes.collect()).unwrap();
        insta::assert_snapshot!(Card::new(player).write("t").0);
    }

    #[test]
    fn invalid_tables_are_rejected_with_a_reason() {
        for (text, says) in [
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
            (r#"{"kind":"table","side":"X","moves":{"XXO.OX...":3}}"#, "X never decides on the board \"XXO.OX...\""),
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
    }

    /// Each board that the player meets is required, and the error message names it.
    #[test]
    fn a_reachable_board_must_be_in_the_table() {
        for side in Side::BOTH {
            let player = random(side, 5);
            for class in cells((1 << Graph::of(side).len()) - 1).map(usize::from) {
                let board = tic_tac_toe().board_text(Graph::of(side).boards()[class]);
                let mut map = to_map(&player);
                map["moves"].as_object_mut().unwrap().shift_remove(&board);
                let read = read_card(&Value::Object(map).to_string());
                assert_eq!(read.is_ok(), !player.met().contains(&class));
                assert!(read.is_ok() || read.is_err_and(|sentence| sentence.contains(&format!("\"{board}\""))));
            }
        }
    }

    fn chosen(table: &TableGenome, board: Board) -> Move {
        let position = Position::of(tic_tac_toe(), board);
        table.clone().choose_move(tic_tac_toe(), position, &mut Stream::root(1).rng())
    }

    /// Plays every game against any opponent, and counts those that the player loses.
    fn lost(player: &TableGenome, side: Side, board: Board) -> u64 {
        let game = tic_tac_toe();
        match game.outcome(board) {
            Some(outcome) => u64::from(outcome == Outcome::Win(side.other())),
            None if board.to_move() == side => lost(player, side, board.play(chosen(player, board).cell)),
            None => cells(game.legal(board)).map(|cell| lost(player, side, board.play(cell))).sum(),
        }
    }

    #[test]
    fn a_table_proven_unbeatable_never_loses() {
        for side in Side::BOTH {
            let best = optimum(side, Ratio::from(100)).player;
            assert!(best.exact().unbeatable());
            assert_eq!(lost(&best, side, Board::EMPTY), 0);
        }
    }

    #[test]
    fn a_move_comes_with_its_reason() {
        let table = optimum(Side::O, Ratio::from(100)).player;
        for (board, cell, why) in [
            ("XX./OO./X..", 5, why::COMPLETES),
            ("XX./.O./...", 2, why::BLOCKS),
            ("X../.../...", 4, "its table says so"),
        ] {
            let board = tic_tac_toe().board_of(board).unwrap();
            assert_eq!(chosen(&table, board), Move::new(cell, why), "{board:?}");
        }
    }

    #[test]
    fn every_move_has_the_tables_knowledge() {
        let table = optimum(Side::O, Ratio::from(100)).player;
        let thoughts = |board: &str| {
            let board = tic_tac_toe().board_of(board).unwrap();
            let position = Position::of(tic_tac_toe(), board);
            let all = table.clone().thoughts(tic_tac_toe(), position, &mut Stream::root(1).rng());
            assert!(all.iter().map(|thought| thought.cell).eq(cells(tic_tac_toe().legal(board))));
            let taken: Vec<u8> = all.iter().filter(|it| it.value == Some(1.0)).map(|thought| thought.cell).collect();
            assert_eq!(taken, [chosen(&table, board).cell], "{all:?}");
            all.into_iter().map(|thought| (thought.cell, thought.says)).collect::<Vec<(u8, String)>>()
        };
        let says = |board: &str, cell: u8| thoughts(board).into_iter().find(|(it, _)| *it == cell).unwrap().1;
        let entry = "entry 1 of 43, for the board X........ and its images, is b2";
        assert_eq!(says("X../.../...", 4), format!("its table says so: {entry}"));
        assert_eq!(says("X../.../...", 8), format!("not by its table: {entry}"));
        // The entry belongs to the canonical image.
        assert_eq!(says(".../.../..X", 0), format!("not by its table: {entry}"));
        assert_eq!(says("XX./.O./...", 2), why::BLOCKS);
        assert_eq!(says("XX./.O./...", 3), "not while a line must be blocked");
        assert_eq!(says("XX./OO./X..", 5), why::COMPLETES);
        assert_eq!(says("XX./OO./X..", 2), "not while a line can be completed");
        assert_eq!(says("X.X/.O./X.O", 1), why::BLOCKS);
        assert_eq!(says("X.X/.O./X.O", 3), "it would block your line too");
    }

    /// This includes boards that play cannot reach, which a user may set up in an engine.
    #[test]
    fn every_board_has_an_answer() {
        let game = tic_tac_toe();
        for (side, boards) in [(Side::X, 2423), (Side::O, 2097)] {
            let table = random(side, 1);
            let all = (0..512).flat_map(|x| (0..512).map(move |o| Board { x, o })).filter(|board| {
                let extra = board.x.count_ones().checked_sub(board.o.count_ones());
                board.x & board.o == 0 && matches!(extra, Some(0 | 1)) && board.to_move() == side
            });
            let open = all.filter(|board| game.outcome(*board).is_none());
            let answered = open.filter(|board| game.legal(*board) >> chosen(&table, *board).cell & 1 == 1);
            assert_eq!(answered.count(), boards, "{side:?}");
        }
    }

    #[test]
    fn a_table_is_drawn_as_boards() {
        let table = optimum(Side::X, Ratio::from(100)).player;
        insta::assert_snapshot!("shown", format!("{}{:#}\n", table.show(7).text, table.show(2).json));
    }
}
