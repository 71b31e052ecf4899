//! `evoxo engine FILE`: the Universal Game Interface on stdin and stdout, so that other programs can play a champion.
//!
//! The protocol is that of chess engines (UCI) with other names: `ugi`, `isready`, `uginewgame`, `position startpos
//! [moves ...]` or `position fen BOARD SIDE [moves ...]`, `go`, `query p1turn|gameover|result`, `quit`. The board of a
//! position is its rows from the top (`X../.O./...`), the side `x` or `o`, the moves are cells from `a1` to `c3`. Unknown
//! words are ignored, as the protocol asks.

use std::{
    io::{BufRead, Write},
    path::PathBuf,
    process::ExitCode,
};

use evoxo_common::{
    board::{Board, Outcome, Side, tic_tac_toe},
    experiment::invincible::table::TableGenome,
};

use super::audit::read_table;
use crate::answer::answer;

/// The longest line that is read, in bytes; a longer one is read in pieces.
const LINE_BYTES_MAX: u64 = 4096;

/// Who plays.
#[derive(clap::Args)]
#[command(
    after_help = "Try it by hand: type ugi, isready, position startpos moves b2, go, query result, quit, one a line.
Moves are cells: a letter for the column, from the left, and a digit for the row, from the bottom."
)]
pub(crate) struct Arguments {
    /// The champion's card: JSON, as in a run's champions/ or made by hand
    file: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    talk(&read_table(&arguments.file)?, std::io::stdin().lock(), std::io::stdout().lock())?;
    Ok(ExitCode::SUCCESS)
}

fn talk(table: &TableGenome, mut input: impl BufRead, mut out: impl Write) -> std::io::Result<()> {
    let mut board = Board::EMPTY;
    loop {
        let mut line = Vec::new();
        if std::io::Read::take(&mut input, LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let line = String::from_utf8_lossy(&line);
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["ugi", ..] => {
                writeln!(out, "id name evoxo table {}", table.side().letter())?;
                writeln!(out, "id author evoxo\nugiok")?;
            }
            ["isready", ..] => writeln!(out, "readyok")?,
            ["uginewgame", ..] => board = Board::EMPTY,
            ["position", rest @ ..] => match position(rest) {
                Ok(next) => board = next,
                Err(sentence) => writeln!(out, "info string {sentence}")?,
            },
            ["go", ..] => writeln!(out, "{}", go(table, board))?,
            ["query", what, ..] => {
                if let Some(response) = query(board, what) {
                    writeln!(out, "response {response}")?;
                }
            }
            ["quit", ..] => return Ok(()),
            _ => {}
        }
        out.flush()?;
    }
}

/// The board of a `position` command; if it makes no sense the board stays as it was.
fn position(words: &[&str]) -> Result<Board, String> {
    let game = tic_tac_toe();
    let (mut board, moves) = match words {
        ["startpos", moves @ ..] => (Board::EMPTY, moves),
        ["fen", rows, side, moves @ ..] => {
            let board = game.board_of(rows)?;
            let (x, o) = (board.x.count_ones(), board.o.count_ones());
            if x != o && x != o + 1 {
                return Err(format!("no game has {x} stones for X and {o} for O"));
            }
            if !side.eq_ignore_ascii_case(&board.to_move().letter().to_string()) {
                return Err(format!("it is {}'s turn on that board", board.to_move().letter()));
            }
            (board, moves)
        }
        _ => return Err("a position is \"startpos\" or \"fen BOARD SIDE\", then perhaps \"moves\"".into()),
    };
    let moves = match moves {
        [] => moves,
        ["moves", moves @ ..] => moves,
        [other, ..] => return Err(format!("{other:?} stands where \"moves\" should")),
    };
    for name in moves {
        let cell = game.cell_named(name).filter(|cell| game.legal(board) >> cell & 1 == 1);
        let cell = cell.filter(|_| game.outcome(board).is_none());
        board = board.play(cell.ok_or_else(|| format!("{name:?} is not a move on {}", game.board_rows(board)))?);
    }
    Ok(board)
}

/// The champion moves for its own side only: a table knows nothing of the other's boards.
fn go(table: &TableGenome, board: Board) -> String {
    let game = tic_tac_toe();
    if game.outcome(board).is_some() {
        return "info string the game is over\nbestmove none".into();
    }
    let best = game.cell_name(answer(table, board));
    match board.to_move() == table.side() {
        true => format!("bestmove {best}"),
        false => format!(
            "info string this table plays {}: for {} it has only the filter\nbestmove {best}",
            table.side().letter(),
            board.to_move().letter()
        ),
    }
}

fn query(board: Board, what: &str) -> Option<&'static str> {
    let outcome = tic_tac_toe().outcome(board);
    let truth = |truth| if truth { "true" } else { "false" };
    match what {
        "p1turn" => Some(truth(board.to_move() == Side::X)),
        "gameover" => Some(truth(outcome.is_some())),
        "result" => Some(match outcome {
            None => "none",
            Some(Outcome::Draw) => "draw",
            Some(Outcome::Win(Side::X)) => "p1win",
            Some(Outcome::Win(Side::O)) => "p2win",
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::{experiment::invincible::optimum::optimum, ratio::Ratio};

    fn said(input: &[u8]) -> String {
        let player = optimum(Side::O, Ratio::from(100)).player;
        let mut out = Vec::new();
        talk(&player, input, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_conversation() {
        let lines = [
            "ugi",
            "isready",
            "uginewgame",
            "query p1turn",
            "position startpos moves a3",
            "query p1turn",
            "go movetime 100",
            "position fen X../.O./..X o",
            "go",
            "position fen XX./OO./... x moves c3",
            "query gameover",
            "query result",
            "go",
            "position startpos",
            "query result",
            "go",
            "position fen XXO/OOX/XOX o",
            "position fen XXO/OOX/XOX x",
            "position fen XXO/OOX/XXO o",
            "query result",
            "position startpos moves a3 a3",
            "position startpos a3",
            "position fen XXX/.../... o",
            "position here",
            "dance",
            "",
            "quit",
            "isready",
        ];
        let told: Vec<String> = lines
            .iter()
            .scan(String::new(), |before, line| {
                *before += &format!("{line}\n");
                Some(before.clone())
            })
            .collect();
        let mut text = String::new();
        let mut known = 0;
        for (line, so_far) in lines.iter().zip(&told) {
            let all = said(so_far.as_bytes());
            text += &format!("> {line}\n{}", &all[known..]);
            known = all.len();
        }
        insta::assert_snapshot!(text);
    }

    #[test]
    fn nothing_typed_makes_it_fail() {
        assert_eq!(said(&[0xff; 10_000]), "");
        assert_eq!(said(b"position\nquery\ngo"), said(b"position\ngo"));
    }
}
