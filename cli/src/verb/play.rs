//! `evoxo play FILE`: a game against a champion, in the terminal.

use std::{
    io::{BufRead, Write},
    path::PathBuf,
    process::ExitCode,
};

use evoxo_common::{
    board::{Board, Outcome, Side, cells, tic_tac_toe},
    experiment::invincible::table::TableGenome,
};
use serde_json::json;

use super::audit::read_table;
use crate::answer::answer;

/// Against whom.
#[derive(clap::Args)]
#[command(
    after_help = "Type a cell: a letter for its column, from the left, and a digit for its row, from the bottom, as in
chess. \"q\" ends the game. X moves first, so against an O champion you begin."
)]
pub(crate) struct Arguments {
    /// The champion's card: JSON, as in a run's champions/ or made by hand
    file: PathBuf,
    /// Print one JSON object a position instead of boards: {"board", "to_move", "moved", "legal", "result"}
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let player = read_table(&arguments.file)?;
    let (input, mut out) = (std::io::stdin().lock(), std::io::stdout().lock());
    match arguments.json {
        true => play(&player, input, &mut Lines(&mut out))?,
        false => play(&player, input, &mut Boards(&mut out))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Where a game is shown.
trait Table {
    /// The board, with the move that led to it, before the next move or at the end.
    fn show(&mut self, board: Board, moved: Option<u8>, champion: Side) -> std::io::Result<()>;
    /// What is wrong with what was typed.
    fn refuse(&mut self, sentence: &str) -> std::io::Result<()>;
    /// Asks for a move.
    fn ask(&mut self, side: Side) -> std::io::Result<()>;
}

fn play(genome: &TableGenome, mut input: impl BufRead, table: &mut impl Table) -> std::io::Result<()> {
    let (champion, game) = (genome.side(), tic_tac_toe());
    let (mut board, mut moved) = (Board::EMPTY, None);
    loop {
        table.show(board, moved, champion)?;
        if game.outcome(board).is_some() {
            return Ok(());
        }
        let cell = match board.to_move() == champion {
            true => answer(genome, board),
            false => match typed(board, &mut input, table)? {
                Some(cell) => cell,
                None => return Ok(()),
            },
        };
        (board, moved) = (board.play(cell), Some(cell));
    }
}

/// The person's move; None when they have had enough.
fn typed(board: Board, input: &mut impl BufRead, table: &mut impl Table) -> std::io::Result<Option<u8>> {
    let game = tic_tac_toe();
    loop {
        table.ask(board.to_move())?;
        let mut line = Vec::new();
        // A line that never ends is cut: nobody types so much.
        if std::io::Read::take(&mut *input, 1024).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let word = String::from_utf8_lossy(&line).trim().to_lowercase();
        match game.cell_named(&word) {
            _ if ["q", "quit", "exit"].contains(&word.as_str()) => return Ok(None),
            Some(cell) if game.legal(board) >> cell & 1 == 1 => return Ok(Some(cell)),
            Some(_) => table.refuse(&format!("{word} is taken."))?,
            None => table.refuse("Type a cell from a1 (bottom left) to c3 (top right), or q to end.")?,
        }
    }
}

/// Boards and sentences.
struct Boards<'a, W>(&'a mut W);

impl<W: Write> Table for Boards<'_, W> {
    fn show(&mut self, board: Board, moved: Option<u8>, champion: Side) -> std::io::Result<()> {
        let (game, out) = (tic_tac_toe(), &mut self.0);
        let person = champion.other();
        match moved {
            None => {
                let first = if person == Side::X { "You move first" } else { "It moves first" };
                writeln!(
                    out,
                    "You are {}, the champion is {}. {first}; q ends the game.",
                    person.letter(),
                    champion.letter()
                )?;
            }
            Some(cell) if board.to_move() == person => writeln!(out, "The champion plays {}.", game.cell_name(cell))?,
            Some(_) => {}
        }
        let outcome = game.outcome(board);
        if outcome.is_none() && board.to_move() == champion {
            return Ok(());
        }
        let text = game.board_text(board);
        writeln!(out)?;
        for (row, letters) in text.as_bytes().chunks(3).enumerate() {
            let letters: Vec<String> = letters.iter().map(|letter| char::from(*letter).to_string()).collect();
            writeln!(out, "  {}  {}", 3 - row, letters.join(" "))?;
        }
        writeln!(out, "     a b c\n")?;
        match outcome {
            None => Ok(()),
            Some(Outcome::Draw) => writeln!(out, "A draw."),
            Some(Outcome::Win(side)) if side == champion => writeln!(out, "The champion wins."),
            Some(Outcome::Win(_)) => writeln!(out, "You win!"),
        }
    }

    fn refuse(&mut self, sentence: &str) -> std::io::Result<()> {
        writeln!(self.0, "{sentence}")
    }

    fn ask(&mut self, side: Side) -> std::io::Result<()> {
        write!(self.0, "Your move, {}: ", side.letter())?;
        self.0.flush()
    }
}

/// One JSON object a line.
struct Lines<'a, W>(&'a mut W);

impl<W: Write> Table for Lines<'_, W> {
    fn show(&mut self, board: Board, moved: Option<u8>, _: Side) -> std::io::Result<()> {
        let game = tic_tac_toe();
        let outcome = game.outcome(board);
        let result = outcome.map(|outcome| match outcome {
            Outcome::Draw => "draw".to_owned(),
            Outcome::Win(side) => side.letter().to_string(),
        });
        let legal: Vec<String> = match outcome {
            Some(_) => Vec::new(),
            None => cells(game.legal(board)).map(|cell| game.cell_name(cell)).collect(),
        };
        let position = json!({
            "board": game.board_text(board),
            "to_move": outcome.is_none().then(|| board.to_move().letter().to_string()),
            "moved": moved.map(|cell| game.cell_name(cell)),
            "legal": legal,
            "result": result,
        });
        writeln!(self.0, "{position}")?;
        self.0.flush()
    }

    fn refuse(&mut self, sentence: &str) -> std::io::Result<()> {
        writeln!(self.0, "{}", json!({"error": sentence}))
    }

    fn ask(&mut self, _: Side) -> std::io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::{experiment::invincible::optimum::optimum, ratio::Ratio};

    fn champion(side: Side) -> TableGenome {
        optimum(side, Ratio::from(100)).player
    }

    #[test]
    fn a_game_as_it_is_seen() {
        let mut seen = Vec::new();
        play(&champion(Side::O), "B2\nb2\nd4\n\na1\nc1\nb1\na2\nc3\nb3\nc2\na3\n".as_bytes(), &mut Boards(&mut seen))
            .unwrap();
        insta::assert_snapshot!(String::from_utf8(seen).unwrap());
    }

    #[test]
    fn a_game_as_json_and_ended_early() {
        let mut seen = Vec::new();
        play(&champion(Side::X), "zz\nq\n".as_bytes(), &mut Lines(&mut seen)).unwrap();
        insta::assert_snapshot!(String::from_utf8(seen).unwrap());
    }

    #[test]
    fn endless_lines_and_odd_bytes_are_answered() {
        let mut seen = Vec::new();
        play(&champion(Side::O), [b'\xff'; 5000].as_slice(), &mut Boards(&mut seen)).unwrap();
        assert_eq!(String::from_utf8(seen).unwrap().matches("Type a cell").count(), 5);
    }
}
