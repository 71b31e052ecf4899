//! Exact odds in words and as JSON.

use evoxo_common::card::Showing;
use serde_json::{Map, Value, json};

use super::{Exact, boards};
use crate::board::{Side, tic_tac_toe};

/// The results in a few lines.
#[must_use]
pub fn exact_text(exact: &Exact) -> String {
    let mut text = String::from("Against a random mover with that filter, exactly:\n");
    for (what, share) in [("wins", exact.odds.win), ("draws", exact.odds.draw), ("loses", exact.odds.loss)] {
        text += &format!("  {what:<6} {:>9.5} %   {share}\n", 100.0 * share.to_f64());
    }
    if let Some(odds) = exact.odds_unfiltered {
        text += &format!("Against a random mover without it: {}, {} and {}.\n", odds.win, odds.draw, odds.loss);
    }
    text += &format!("It may have to decide on {} boards.\n\n", exact.boards_asked);
    text + &proof_text(exact, "it loses")
}

/// Either the proof that the player never loses, or the first games that "it loses" or "it can lose".
#[must_use]
pub fn proof_text(exact: &Exact, loses: &str) -> String {
    if exact.unbeatable() {
        return format!("Never loses: proven over {} positions.\n", exact.positions);
    }
    let lines = if exact.losing_lines == 1 { "game" } else { "different games" };
    let head = format!("Can be beaten: {loses} {} {lines}. The first of them:\n", exact.losing_lines);
    let games: Vec<String> = exact.examples.iter().take(3).map(|line| line_text(line)).collect();
    head + &games.concat()
}

/// A lost game as its boards, side by side.
fn line_text(line: &[u8]) -> String {
    let game = tic_tac_toe();
    let names: Vec<String> = line.iter().map(|cell| format!("{:<5}", game.cell_name(*cell))).collect();
    let mut text = format!("\n  {}\n", names.join("").trim_end());
    let texts: Vec<String> = boards(line).map(|board| game.board_text(board)).collect();
    for row in 0..3 {
        let rows: Vec<&str> = texts.iter().map(|text| &text[3 * row..3 * row + 3]).collect();
        text += &format!("  {}\n", rows.join("  "));
    }
    text
}

/// Win, draw and loss as fractions, and the other results.
#[must_use]
pub fn exact_json(exact: &Exact) -> Value {
    let game = tic_tac_toe();
    let names = |line: &Vec<u8>| line.iter().map(|cell| game.cell_name(*cell)).collect::<Vec<_>>().join(" ");
    json!({
        "win": exact.odds.win.to_string(),
        "draw": exact.odds.draw.to_string(),
        "loss": exact.odds.loss.to_string(),
        "unfiltered": exact.odds_unfiltered.map(|odds| {
            json!({"win": odds.win.to_string(), "draw": odds.draw.to_string(), "loss": odds.loss.to_string()})
        }),
        "unbeatable": exact.unbeatable(),
        "boards_asked": exact.boards_asked,
        "positions": exact.positions,
        "losing_lines": exact.losing_lines,
        "examples": exact.examples.iter().map(names).collect::<Vec<_>>(),
    })
}

/// The odds of a player that plays both sides, either deciding every move itself or with the filter before it. `who` begins
/// a sentence.
#[must_use]
pub fn sides_showing(who: &str, filtered: bool, odds: &[(Side, Exact)]) -> Showing {
    let how = match filtered {
        true => "; both sides complete a line or block one before they choose.",
        false => ", which chooses every move itself. The filter completes a line or blocks one first.",
    };
    let text = |(side, exact): &(Side, Exact)| {
        let (side, exact) = (side.letter(), exact_text(exact));
        format!("{who} as {side}{how}\n\n{exact}")
    };
    let json = odds.iter().map(|(side, exact)| (side.letter().to_string(), exact_json(exact)));
    let json: Map<String, Value> = json.collect();
    Showing { text: odds.iter().map(text).collect::<Vec<_>>().join("\n"), json: json.into() }
}
