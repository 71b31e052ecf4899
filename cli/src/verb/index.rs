//! `evoxo index --side X`: the file of indices and variations that the source behind `ternary` made for each side.

use std::{io::Write as _, process::ExitCode};

use evoxo_common::settings::Choice;
use evoxo_games::{
    board::{Side, tic_tac_toe},
    index::{CODES, Classes, Entry, Index, Strings, board_of},
};
use serde_json::{Value, json};

use super::optimum::side;
use crate::say::stdout;

/// The table to print.
#[derive(clap::Args)]
#[command(after_help = "Each line is a board on which the side is to move: its number (nine digits in base 3, cell 0 \
first; 0 empty, 1 X, 2 O), its place in the string, counted from 1, its variation (the number of clockwise \
quarter-turns to the representative, which is the lowest board of that place; from 4 on, after a mirror image), and \
the board itself, from the top left.

The cells are numbered
  5 1 6
  4 0 2
  8 3 7")]
pub(crate) struct Arguments {
    /// The side that is to move
    #[arg(long, value_parser = side)]
    side: Side,
    /// Boards that have a place: long means all boards, short only those on which no line can be completed or blocked
    #[arg(long, default_value = "long", value_parser = word::<Strings>)]
    strings: Strings,
    /// Boards that share a place: rotations, or symmetries (including mirror images)
    #[arg(long, default_value = "rotations", value_parser = word::<Classes>)]
    classes: Classes,
    /// Print JSON: a list of {"config", "index", "variation", "board"}
    #[arg(long)]
    json: bool,
}

/// Parses a choice from its word.
fn word<C: Choice>(text: &str) -> Result<C, String> {
    let words: Vec<&str> = C::choices().iter().map(|(word, _)| *word).collect();
    if words.contains(&text) { Ok(C::of(text)) } else { Err(format!("give {}", words.join(" or "))) }
}

/// The table's lines: the board's number, its place, its variation and its text.
fn rows(arguments: &Arguments) -> impl Iterator<Item = (u16, u16, u8, String)> {
    let index = Index::of(arguments.side, arguments.strings, arguments.classes);
    (0..CODES as u16).filter_map(|code| {
        let Entry { class, variation } = index.entry(code)?;
        Some((code, class + 1, variation, tic_tac_toe().board_text(board_of(code))))
    })
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut out = stdout();
    if arguments.json {
        let row = |(code, place, variation, board)| json!({"config": code, "index": place, "variation": variation, "board": board});
        writeln!(out, "{:#}", rows(arguments).map(row).collect::<Value>())?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "config,index,variation,board")?;
    for (code, place, variation, board) in rows(arguments) {
        writeln!(out, "{code},{place},{variation},{board}")?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part of the table that the chapter prints, and the number of lines: one for each board on which the side is to
    /// move.
    #[test]
    fn the_table_matches_the_chapter() {
        let table = |side, strings, classes| {
            rows(&Arguments { side, strings, classes, json: false }).collect::<Vec<(u16, u16, u8, String)>>()
        };
        let long = table(Side::X, Strings::Long, Classes::Rotations);
        let head: Vec<(u16, u16, u8)> =
            long[..6].iter().map(|(code, place, turns, _)| (*code, *place, *turns)).collect();
        assert_eq!(head, [(0, 1, 0), (5, 2, 0), (7, 3, 0), (11, 4, 0), (15, 2, 1), (19, 4, 2)]);
        assert_eq!((long[0].3.as_str(), long[1].3.as_str()), (".........", "......O.X"));
        assert_eq!((long.len(), long.iter().map(|row| row.1).max()), (2423, Some(612)));
        let mirrored = table(Side::O, Strings::Short, Classes::Symmetries);
        assert_eq!(mirrored.iter().map(|row| row.1).max(), Some(43));
        assert!(mirrored.iter().any(|row| row.2 > 3));
    }

    #[test]
    fn words_are_choices() {
        assert_eq!(word::<Classes>("symmetries"), Ok(Classes::Symmetries));
        assert_eq!(word::<Strings>("tall"), Err("give long or short".into()));
    }
}
