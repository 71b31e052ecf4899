//! Small boards of 3x3 as text, several in a row.

use super::{Board, Side};

/// The width of a picture in letters.
const WIDTH: usize = 13;
/// Pictures per row, to fit in a terminal with 80 columns.
const IN_A_ROW: usize = 6;

/// A board with brackets around the cell to move to.
#[must_use]
pub fn decision(board: Board, to: u8) -> Vec<String> {
    let letter = |cell: u8| match (board.stones(Side::X) >> cell & 1, board.stones(Side::O) >> cell & 1) {
        (0, 0) => '.',
        (1, _) => 'X',
        _ => 'O',
    };
    rows(letter, to).collect()
}

/// Three lines of three cells, with brackets around the cell to move to.
pub fn rows(letter: impl Fn(u8) -> char, to: u8) -> impl Iterator<Item = String> {
    (0..3).map(move |row| {
        let cell = |column: u8| {
            let number = 3 * row + column;
            let letter = letter(number);
            if number == to { format!("[{letter}]") } else { format!(" {letter} ") }
        };
        (0..3).map(cell).collect()
    })
}

/// Pictures in rows, with an empty line below each row.
#[must_use]
pub fn side_by_side(pictures: Vec<Vec<String>>) -> String {
    let mut text = String::new();
    for row in pictures.chunks(IN_A_ROW) {
        let height = row.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            let parts: Vec<String> = row.iter().map(|picture| format!("{:<WIDTH$}", picture[line])).collect();
            text += &format!("{}\n", parts.concat().trim_end());
        }
        text.push('\n');
    }
    text
}
