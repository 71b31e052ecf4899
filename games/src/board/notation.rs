//! How cells and boards are written.
//!
//! A cell is a letter for its column, from the left, and a digit for its row, from the bottom, as in chess. A board of
//! several layers adds a digit for the layer, from the bottom. A board is a text of `X`, `O` and `.`, cell by cell from the
//! top left, the top layer first; `/` and white space between cells are ignored.

use evoxo_common::text::quoted;

use super::{Board, Geometry};

impl Geometry {
    /// A cell's name: `a1` to `c3` on the 3x3 board.
    ///
    /// ```
    /// use evoxo_games::board::tic_tac_toe;
    /// assert_eq!(tic_tac_toe().cell_name(0), "a3");
    /// assert_eq!(tic_tac_toe().cell_named("b1"), Some(7));
    /// ```
    #[must_use]
    pub fn cell_name(&self, cell: u8) -> String {
        let [_, height, depth] = self.shape().sizes();
        let [column, row, layer] = self.shape().position(cell);
        let letter = char::from(b'a' + column as u8);
        match depth {
            1 => format!("{letter}{}", height - row),
            _ => format!("{letter}{}{}", height - row, depth - layer),
        }
    }

    /// The cell with this name, if there is one.
    #[must_use]
    pub fn cell_named(&self, name: &str) -> Option<u8> {
        super::cells(self.cells()).find(|cell| self.cell_name(*cell) == name)
    }

    /// A move's name: the cell's name without the part that gravity decides. On 4x4x4 with gravity it is the pile, `a1` to
    /// `d4`; in Connect Four it is the column, `a` to `g`.
    ///
    /// ```
    /// use evoxo_games::board::{Board, connect_four, score_four};
    /// assert_eq!(score_four().move_name(48), "a4");
    /// assert_eq!(connect_four().move_named(Board::EMPTY, "g"), Some(41));
    /// ```
    #[must_use]
    pub fn move_name(&self, cell: u8) -> String {
        let mut name = self.cell_name(cell);
        if self.shape().gravity {
            name.truncate(if self.shape().depth == 1 { 1 } else { 2 });
        }
        name
    }

    /// The legal move with this name, if there is one.
    #[must_use]
    pub fn move_named(&self, board: Board, name: &str) -> Option<u8> {
        super::cells(self.legal(board)).find(|cell| self.move_name(*cell) == name)
    }

    /// A board as one word, as on champion cards.
    ///
    /// ```
    /// use evoxo_games::board::{Board, tic_tac_toe};
    /// assert_eq!(tic_tac_toe().board_text(Board::EMPTY.play(4).play(0)), "O...X....");
    /// ```
    #[must_use]
    pub fn board_text(&self, board: Board) -> String {
        super::cells(self.cells()).map(|cell| ['.', 'O', 'X'][board.rank(u32::from(cell)) as usize]).collect()
    }

    /// A board as its rows, with `/` between them: `X../.O./...`.
    #[must_use]
    pub fn board_rows(&self, board: Board) -> String {
        let text = self.board_text(board);
        let rows = text.as_bytes().chunks(usize::from(self.shape().width));
        rows.map(|row| row.iter().map(|letter| char::from(*letter)).collect::<String>()).collect::<Vec<_>>().join("/")
    }

    /// The board that a text describes. It does not check whether play can reach the board.
    ///
    /// # Errors
    /// A message if the text has another letter or another number of cells.
    pub fn board_of(&self, text: &str) -> Result<Board, String> {
        let count = self.cells().count_ones();
        let mut board = Board::EMPTY;
        let mut cell = 0;
        for letter in text.chars().filter(|letter| *letter != '/' && !letter.is_whitespace()) {
            match letter {
                _ if cell == count => return Err(format!("the board {} has more than {count} cells", quoted(text))),
                '.' => {}
                'X' => board.x |= 1 << cell,
                'O' => board.o |= 1 << cell,
                _ => return Err(format!("the board {} has a letter other than X, O and .", quoted(text))),
            }
            cell += 1;
        }
        match cell == count {
            true => Ok(board),
            false => Err(format!("the board {} has {cell} cells instead of {count}", quoted(text))),
        }
    }
}
