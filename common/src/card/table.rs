//! A table player as part of its card.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Entries, brief, side_of};
use crate::{
    board::{Board, Side, Symmetry, quoted, tic_tac_toe},
    experiment::invincible::{graph::Graph, table::TableGenome},
};

/// The keys that belong to the player.
pub(super) const KEYS: [&str; 3] = ["kind", "side", "moves"];

/// The table player of a card.
pub(super) fn read(text: &str, entries: &Entries) -> Result<TableGenome, String> {
    let side = side_of(entries)?;
    #[derive(Deserialize)]
    struct Moves {
        moves: Entries,
    }
    let Moves { moves } = serde_json::from_str(text)
        .map_err(|error| format!("the card has no \"moves\" from boards to cells: {error}"))?;
    table_of(side, &moves)
}

/// `kind`, `side` and `moves`, with a move for every decision board.
pub(super) fn to_map(player: &TableGenome) -> Map<String, Value> {
    let boards = Graph::of(player.side()).boards().iter().map(|board| tic_tac_toe().board_text(*board));
    let moves: Map<String, Value> = boards.zip(player.genes().iter().map(|gene| Value::from(*gene))).collect();
    let values = ["table".into(), player.side().letter().to_string().into(), moves.into()];
    KEYS.map(String::from).into_iter().zip(values).collect()
}

/// The player of these moves.
fn table_of(side: Side, moves: &Entries) -> Result<TableGenome, String> {
    let graph = Graph::of(side);
    let mut genes: Vec<Option<(u8, &str)>> = vec![None; graph.len()];
    for (key, value) in &moves.0 {
        let board = tic_tac_toe().board_of(key)?;
        let (class, symmetry) = graph.class(board).ok_or_else(|| {
            format!("{} is never asked on the board {}: {}", side.letter(), quoted(key), reason(side, board))
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
    // A board that is never met may have any move.
    let genes =
        genes.iter().enumerate().map(|(class, gene)| gene.map_or(graph.legal_cells(class)[0], |(cell, _)| cell));
    TableGenome::new(side, genes.collect())
}

/// The gene of a move on a board that `symmetry` takes to its canonical image.
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

/// Why a side is never asked on a board.
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
