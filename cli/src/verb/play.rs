//! `evoxo play WHO`: a game against a champion or a built-in player, in the terminal.

use std::{
    io::{BufRead, Write},
    process::ExitCode,
};

use clap::ValueEnum;
use evoxo_common::experiment::Registry;
use evoxo_games::board::{Board, Geometry, Outcome, Position, Side, cells};
use serde_json::json;

use crate::{
    player::{Opponent, PlayerSpec},
    say::usage,
};

/// The opponent and the person's side.
#[derive(clap::Args)]
#[command(
    after_help = "Type a move as in chess: a letter for the column, from the left, and a digit for the row, from the \
bottom; in Qubic also a digit for the layer. Where stones fall, name only the pile: a1 to d4 on 4x4x4, a to g in \
Connect Four. \"q\" ends the game. X moves first. After a game you are asked for another."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    who: PlayerSpec,
    /// Your side [default: the side that the champion does not play, else x]
    #[arg(long, value_enum, value_name = "SIDE")]
    side: Option<PersonSide>,
    /// Print one JSON object per position instead of boards: {"board", "to_move", "moved", "legal", "result"}
    #[arg(long)]
    json: bool,
}

/// X or O, in upper or lower case.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum PersonSide {
    /// Moves first
    X,
    /// Moves second
    O,
}

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let mut opponent = arguments.who.find(registry)?;
    let wanted = arguments.side.map(|side| if matches!(side, PersonSide::X) { Side::X } else { Side::O });
    let person = match (wanted, opponent.player.side) {
        (Some(wanted), Some(side)) if wanted == side => {
            return Err(usage(format!("this champion plays {} itself: leave out --side", side.letter())));
        }
        (Some(wanted), _) => wanted,
        (None, side) => side.map_or(Side::X, Side::other),
    };
    let (mut input, mut out) = (std::io::stdin().lock(), crate::say::stdout());
    match arguments.json {
        true => play(&mut opponent, person, &mut input, &mut Lines(&mut out))?,
        false => play(&mut opponent, person, &mut input, &mut Boards(&mut out))?,
    };
    Ok(ExitCode::SUCCESS)
}

/// A position and the move that led to it.
struct Scene<'a> {
    geometry: &'a Geometry,
    board: Board,
    moved: Option<u8>,
    /// The reason for the opponent's move, if the opponent made this move.
    why: Option<&'a str>,
    person: Side,
}

/// The display of a game.
trait Table {
    /// Shows the board and the move that led to it, before the next move or at the end.
    fn show(&mut self, scene: &Scene<'_>) -> std::io::Result<()>;
    /// Says what is wrong with the input.
    fn refuse(&mut self, sentence: &str) -> std::io::Result<()>;
    /// Asks for a move.
    fn ask(&mut self, side: Side) -> std::io::Result<()>;
    /// Asks for another game; false if there is only one.
    fn ask_again(&mut self) -> std::io::Result<bool>;
    /// Ends the display after the input has ended, perhaps in the middle of a question.
    fn end(&mut self) -> std::io::Result<()>;
}

/// Plays games until the person ends it.
fn play(
    opponent: &mut Opponent,
    person: Side,
    input: &mut impl BufRead,
    table: &mut impl Table,
) -> std::io::Result<()> {
    while game(opponent, person, input, table)? && again(input, table)? {}
    Ok(())
}

/// Plays one game; returns false if the person left it.
fn game(
    opponent: &mut Opponent,
    person: Side,
    input: &mut impl BufRead,
    table: &mut impl Table,
) -> std::io::Result<bool> {
    let geometry = opponent.player.geometry;
    let (mut position, mut moved, mut why) = (Position::START, None, None);
    loop {
        let board = position.board();
        table.show(&Scene { geometry, board, moved, why: why.as_deref(), person })?;
        if geometry.outcome(board).is_some() {
            return Ok(true);
        }
        let cell = if position.to_move() == person {
            let Some(cell) = typed(geometry, board, input, table)? else { return Ok(false) };
            why = None;
            cell
        } else {
            let chosen = opponent.choose_move(position);
            why = Some(chosen.why);
            chosen.cell
        };
        (position, moved) = (position.play(geometry, cell), Some(cell));
    }
}

/// The person's move; `None` if the person ends the game.
fn typed(
    geometry: &Geometry,
    board: Board,
    input: &mut impl BufRead,
    table: &mut impl Table,
) -> std::io::Result<Option<u8>> {
    loop {
        table.ask(board.to_move())?;
        let Some(word) = word(input, table)? else { return Ok(None) };
        if let Some(cell) = geometry.move_named(board, &word) {
            return Ok(Some(cell));
        }
        let names: Vec<String> = cells(geometry.cells()).map(|cell| geometry.move_name(cell)).collect();
        if names.contains(&word) {
            let taken = if geometry.shape().gravity { "full" } else { "taken" };
            table.refuse(&format!("{word} is {taken}."))?;
        } else {
            let (least, most) = (names.iter().min(), names.iter().max());
            let range = least.zip(most).map(|(least, most)| format!("from {least} to {most}")).unwrap_or_default();
            table.refuse(&format!("Type a move {range}, or q to end."))?;
        }
    }
}

/// Whether the person wants another game.
fn again(input: &mut impl BufRead, table: &mut impl Table) -> std::io::Result<bool> {
    while table.ask_again()? {
        match word(input, table)?.as_deref() {
            Some("y" | "yes") => return Ok(true),
            None | Some("n" | "no") => return Ok(false),
            Some(_) => table.refuse("Type y for another game, or n to end.")?,
        }
    }
    Ok(false)
}

/// A line of input in lower case; `None` if the person leaves.
fn word(input: &mut impl BufRead, table: &mut impl Table) -> std::io::Result<Option<String>> {
    let mut line = Vec::new();
    // Limits the length of a line.
    if std::io::Read::take(&mut *input, 1024).read_until(b'\n', &mut line)? == 0 {
        table.end()?;
        return Ok(None);
    }
    let word = String::from_utf8_lossy(&line).trim().to_lowercase();
    Ok((!["q", "quit", "exit"].contains(&word.as_str())).then_some(word))
}

/// Shows boards and sentences.
struct Boards<'a, W>(&'a mut W);

impl<W: Write> Table for Boards<'_, W> {
    fn show(&mut self, scene: &Scene<'_>) -> std::io::Result<()> {
        let Scene { geometry, board, moved, why, person } = *scene;
        let (out, opponent) = (&mut self.0, person.other());
        match (moved, why) {
            (None, _) => {
                let first = if person == Side::X { "You move first" } else { "It moves first" };
                let (you, it) = (person.letter(), opponent.letter());
                writeln!(out, "You are {you}, your opponent is {it}. {first}; q ends the game.")?;
            }
            (Some(cell), Some(why)) => writeln!(out, "It plays {}: {why}.", geometry.move_name(cell))?,
            (Some(_), None) => {}
        }
        let outcome = geometry.outcome(board);
        if outcome.is_none() && board.to_move() == opponent {
            return Ok(());
        }
        writeln!(out, "\n{}", picture(geometry, board))?;
        match outcome {
            None => Ok(()),
            Some(Outcome::Draw) => writeln!(out, "A draw."),
            Some(Outcome::Win(side)) if side == person => writeln!(out, "You win!"),
            Some(Outcome::Win(_)) => writeln!(out, "You lose."),
        }
    }

    fn refuse(&mut self, sentence: &str) -> std::io::Result<()> {
        writeln!(self.0, "{sentence}")
    }

    fn ask(&mut self, side: Side) -> std::io::Result<()> {
        write!(self.0, "Your move, {}: ", side.letter())?;
        self.0.flush()
    }

    fn ask_again(&mut self) -> std::io::Result<bool> {
        write!(self.0, "Another game (y or n)? ")?;
        self.0.flush().map(|()| true)
    }

    fn end(&mut self) -> std::io::Result<()> {
        writeln!(self.0)
    }
}

/// A board as lines of text, with layers side by side and the lowest layer on the left.
fn picture(geometry: &Geometry, board: Board) -> String {
    let [width, height, depth] =
        [geometry.shape().width, geometry.shape().height, geometry.shape().depth].map(usize::from);
    let text = geometry.board_text(board);
    let rows: Vec<&[u8]> = text.as_bytes().chunks(width).collect();
    let spaced = |row: &[u8]| row.iter().map(|letter| char::from(*letter).to_string()).collect::<Vec<_>>().join(" ");
    let gap = "     ";
    let side_by_side = |part: &dyn Fn(usize) -> String| (0..depth).rev().map(part).collect::<Vec<_>>().join(gap);
    let mut lines = Vec::new();
    if depth > 1 {
        let title = |layer: usize| {
            let name = match depth - layer {
                1 => "1: lowest".to_owned(),
                number if number == depth => format!("{number}: top"),
                number => number.to_string(),
            };
            format!("{name:<pad$}", pad = 2 * width - 1 + gap.len())
        };
        let titles: Vec<String> = (0..depth).rev().map(title).collect();
        lines.push(format!("     {}", titles.concat().trim_end()));
    }
    // If stones fall within a flat board, a move names only its column, so rows have no names.
    let flat_gravity = geometry.shape().gravity && depth == 1;
    for row in 0..height {
        let name = if flat_gravity { " ".to_owned() } else { (height - row).to_string() };
        lines.push(format!("  {name}  {}", side_by_side(&|layer| spaced(rows[layer * height + row]))));
    }
    let letters: Vec<u8> = (b'a'..).take(width).collect();
    lines.push(format!("     {}", side_by_side(&|_| spaced(&letters))));
    lines.join("\n") + "\n"
}

/// Prints one JSON object per line.
struct Lines<'a, W>(&'a mut W);

impl<W: Write> Table for Lines<'_, W> {
    fn show(&mut self, scene: &Scene<'_>) -> std::io::Result<()> {
        let Scene { geometry, board, moved, .. } = *scene;
        let outcome = geometry.outcome(board);
        let result = outcome.map(|outcome| match outcome {
            Outcome::Draw => "draw".to_owned(),
            Outcome::Win(side) => side.letter().to_string(),
        });
        let legal: Vec<String> = match outcome {
            Some(_) => Vec::new(),
            None => cells(geometry.legal(board)).map(|cell| geometry.move_name(cell)).collect(),
        };
        let position = json!({
            "board": geometry.board_text(board),
            "to_move": outcome.is_none().then(|| board.to_move().letter().to_string()),
            "moved": moved.map(|cell| geometry.move_name(cell)),
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

    fn ask_again(&mut self) -> std::io::Result<bool> {
        Ok(false)
    }

    fn end(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::player::{Game, testing};

    /// The output for this input.
    fn output(mut opponent: Opponent, person: Side, typed: &[u8]) -> String {
        let mut seen = Vec::new();
        play(&mut opponent, person, &mut &*typed, &mut Boards(&mut seen)).unwrap();
        String::from_utf8(seen).unwrap()
    }

    #[test]
    fn the_output_of_a_game() {
        let input = "B2\nb2\nd4\n\na1\nc1\nperhaps\ny\na3\nc1\nb2\n";
        insta::assert_snapshot!(output(testing::table(Side::O), Side::X, input.as_bytes()));
    }

    #[test]
    fn the_output_of_a_game_in_layers() {
        let input = "a1\na1\na1\na1\na1\na5\nb1\n";
        insta::assert_snapshot!(output(testing::named("alpha-beta", Game::ScoreFour), Side::O, input.as_bytes()));
    }

    #[test]
    fn the_output_of_a_game_of_connect_four() {
        insta::assert_snapshot!(output(testing::named("alpha-beta", Game::ConnectFour), Side::X, b"d\nd\n9\n"));
    }

    #[test]
    fn a_game_as_json_and_ended_early() {
        let mut seen = Vec::new();
        play(&mut testing::table(Side::X), Side::O, &mut "zz\nq\n".as_bytes(), &mut Lines(&mut seen)).unwrap();
        insta::assert_snapshot!(String::from_utf8(seen).unwrap());
    }

    #[test]
    fn endless_lines_and_invalid_bytes_are_rejected() {
        let seen = output(testing::table(Side::O), Side::X, &[b'\xff'; 5000]);
        assert_eq!(seen.matches("Type a move").count(), 5);
    }
}
