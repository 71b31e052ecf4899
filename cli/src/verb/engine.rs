//! `evoxo engine WHO`: the Universal Game Interface on stdin and stdout, so that other programs can play against a champion.
//!
//! The protocol is that of chess engines (UCI) with other names: `ugi`, `isready`, `uginewgame`, `position startpos [moves
//! ...]` or `position fen BOARD SIDE [moves ...]`, `go`, `query p1turn|gameover|result`, `quit`. The board of a position is
//! given as rows from the top (`X2/1O1/3` or `X../.O./...`), the side as `x` or `o`. Unknown words are ignored, as the
//! protocol demands. See `docs/engine.md`.

use std::{
    io::{BufRead, Write},
    process::ExitCode,
};

use evoxo_common::experiment::Registry;
use evoxo_games::board::{Board, Geometry, Outcome, Position, Side};

use crate::player::{Opponent, PlayerSpec};

/// The longest line, in bytes; a longer one is read in pieces.
const LINE_BYTES_MAX: u64 = 4096;

/// The player.
#[derive(clap::Args)]
#[command(
    after_help = "Try it by hand: type ugi, isready, position startpos moves b2, go, query result, quit, one per line.

Moves are named as in evoxo play."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    who: PlayerSpec,
}

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    talk(&mut arguments.who.find(registry)?, std::io::stdin().lock(), crate::say::stdout())?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the conversation of a built-in player on these streams, so that lines of any bytes can be tried. Only in builds of
/// `cargo fuzz`.
///
/// # Errors
/// If there is no such player, or a stream fails.
#[cfg(fuzzing)]
pub fn speak(registry: &Registry, who: &str, input: impl BufRead, out: impl Write) -> anyhow::Result<()> {
    let (name, depth) = evoxo_games::player::find::split(who);
    let who = PlayerSpec::named(name, depth);
    Ok(talk(&mut who.find(registry)?, input, out)?)
}

fn talk(opponent: &mut Opponent, mut input: impl BufRead, mut out: impl Write) -> std::io::Result<()> {
    let geometry = opponent.player.geometry;
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
                writeln!(out, "id name evoxo {}", opponent.player.name)?;
                writeln!(out, "id author evoxo\nugiok")?;
            }
            ["isready", ..] => writeln!(out, "readyok")?,
            ["uginewgame", ..] => board = Board::EMPTY,
            ["position", rest @ ..] => match position(geometry, rest) {
                Ok(next) => board = next,
                Err(sentence) => writeln!(out, "info string {sentence}")?,
            },
            ["go", ..] => writeln!(out, "{}", go(opponent, board))?,
            ["query", what, ..] => {
                if let Some(response) = query(geometry, board, what) {
                    writeln!(out, "response {response}")?;
                }
            }
            ["quit", ..] => return Ok(()),
            _ => {}
        }
        out.flush()?;
    }
}

/// The board of a `position` command. If the command is invalid, the caller keeps the old board.
fn position(game: &Geometry, words: &[&str]) -> Result<Board, String> {
    let (mut board, moves) = match words {
        ["startpos", moves @ ..] => (Board::EMPTY, moves),
        ["fen", rows, side, moves @ ..] => (set_up(game, rows, side)?, moves),
        _ => return Err("a position is \"startpos\" or \"fen BOARD SIDE\", then perhaps \"moves\"".into()),
    };
    let moves = match moves {
        [] => moves,
        ["moves", moves @ ..] => moves,
        [other, ..] => return Err(format!("{other:?} is there instead of \"moves\"")),
    };
    for name in moves {
        let cell = game.move_named(board, name).filter(|_| game.outcome(board).is_none());
        board = board.play(cell.ok_or_else(|| format!("{name:?} is not a move on {}", game.board_rows(board)))?);
    }
    Ok(board)
}

/// The board with these rows; this side must be to move.
fn set_up(game: &Geometry, rows: &str, side: &str) -> Result<Board, String> {
    let board = game.board_of(&spread(rows))?;
    let (x, o) = (board.x.count_ones(), board.o.count_ones());
    if x != o && x != o + 1 {
        return Err(format!("no game has {x} stones for X and {o} for O"));
    }
    let to_move = board.to_move();
    if !side.eq_ignore_ascii_case(&to_move.letter().to_string()) {
        return Err(format!("it is {}'s turn on that board", to_move.letter()));
    }
    if game.has_line(board.stones(to_move)) {
        return Err(format!("{} has a line on that board, so it is not its turn", to_move.letter()));
    }
    if game.below(board.occupied()) & !board.occupied() != 0 {
        return Err("a stone on that board has nothing below it".into());
    }
    Ok(board)
}

/// A board's text in which each digit is replaced by that number of empty cells.
fn spread(rows: &str) -> String {
    let cells = |letter: char| match letter.to_digit(10) {
        Some(count) => ".".repeat(count as usize),
        None => letter.to_string(),
    };
    rows.chars().map(cells).collect()
}

/// A champion moves only for its own side.
fn go(opponent: &mut Opponent, board: Board) -> String {
    let game = opponent.player.geometry;
    if game.outcome(board).is_some() {
        return "info string the game is over\nbestmove 0000".into();
    }
    match opponent.player.side {
        Some(side) if side != board.to_move() => {
            format!("info string this champion plays {}\nbestmove 0000", side.letter())
        }
        _ => {
            let chosen = opponent.choose_move(Position::of(game, board));
            format!("info string {}\nbestmove {}", chosen.why, game.move_name(chosen.cell))
        }
    }
}

fn query(game: &Geometry, board: Board, what: &str) -> Option<&'static str> {
    let outcome = game.outcome(board);
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
    use crate::player::{Game, testing};

    fn output_of(mut opponent: Opponent, input: &[u8]) -> String {
        let mut out = Vec::new();
        talk(&mut opponent, input, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn output(input: &[u8]) -> String {
        output_of(testing::table(Side::O), input)
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
            "position fen XX1/OO1/3 x moves c3",
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
            "position fen XXX/OO1/O2 x",
            "position fen XX1/OO1/9 x",
            "position here",
            "dance",
            "",
            "quit",
            "isready",
        ];
        let outputs: Vec<String> = lines
            .iter()
            .scan(String::new(), |before, line| {
                *before += &format!("{line}\n");
                Some(before.clone())
            })
            .collect();
        let mut text = String::new();
        let mut known = 0;
        for (line, so_far) in lines.iter().zip(&outputs) {
            let all = output(so_far.as_bytes());
            text += &format!("> {line}\n{}", &all[known..]);
            known = all.len();
        }
        insta::assert_snapshot!(text);
    }

    #[test]
    fn invalid_input_is_ignored() {
        assert_eq!(output(&[0xff; 10_000]), "");
        assert_eq!(output(b"position\nquery\ngo"), output(b"position\ngo"));
        assert_eq!(output(b"stop\nsetoption name x value 1\n\n"), "");
    }

    #[test]
    fn stones_fall() {
        let four = |input: &str| output_of(testing::named("alpha-beta", Game::ScoreFour), input.as_bytes());
        assert!(four("position startpos moves a1 b1 a1 b1 a1 b1\ngo").contains("it sees a win\nbestmove a1"));
        assert!(four("position startpos moves a1 a1 a1 a1 a1").contains("\"a1\" is not a move on"));
        let hanging = format!("position fen X{}/O{} x", ".".repeat(31), ".".repeat(31));
        assert!(four(&hanging).contains("nothing below it"));
    }
}
