//! Index tables of 3x3: which place of a player's string has the decision for a board. After C. Karr and L. M. Freeman
//! (eds.), *Industrial Applications of Genetic Algorithms*, CRC Press 1998, chapter 17, pages 325 to 328.
//!
//! The chapter numbers the cells of the board 0 to 8. A board's code is nine digits (0 empty, 1 X, 2 O), cell 0 first, read
//! as a number of base 3. Boards that are variants of each other share an index, and the variation says how they are turned.
//!
//! The chapter speaks of flips and mirror images, but its sample table and its number of indices (612) fit only rotations by
//! quarter-turns, which keep mirror images apart. [`Classes`] has both. The sample table does not fit if the cells are
//! numbered row by row. It fits any numbering in which cells 6, 7 and 8 follow each other in quarter-turns. Ours
//! ([`PLACEMENT`]) is:
//!
//! ```text
//! 5 1 6
//! 4 0 2
//! 8 3 7
//! ```

use evoxo_common::choice;
use std::sync::LazyLock;

use crate::board::{Board, Side, tic_tac_toe};

/// The cell of [`tic_tac_toe`], row-major from the top left, for each of the chapter's cells.
pub const PLACEMENT: [u8; 9] = [4, 1, 5, 7, 3, 0, 2, 8, 6];

/// The cell to which 0 to 3 clockwise quarter-turns move each of the chapter's cells.
const TURNED: [[u8; 9]; 4] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8],
    [0, 2, 3, 4, 1, 6, 7, 8, 5],
    [0, 3, 4, 1, 2, 7, 8, 5, 6],
    [0, 4, 1, 2, 3, 8, 5, 6, 7],
];

/// The cell to which mirroring left and right moves each of the chapter's cells.
const MIRRORED: [u8; 9] = [0, 1, 4, 3, 2, 6, 5, 8, 7];

/// The amount that a 1 on each of the chapter's cells adds to a code.
const WEIGHTS: [u16; 9] = [6561, 2187, 729, 243, 81, 27, 9, 3, 1];

/// The number of codes: 3 to the power of 9.
pub const CODES: usize = 19_683;

choice! {
    /// The decisions that a string holds.
    pub enum Strings {
        /// for every board on which its side is to move
        Long = "long",
        /// only for boards that are not already decided by two rules (complete a line, or else block one)
        Short = "short",
    }
}

impl Strings {
    /// Both choices, the longer one first.
    pub const BOTH: [Self; 2] = [Self::Long, Self::Short];
}

choice! {
    /// Which boards share a place of a string.
    pub enum Classes {
        /// quarter-turns of each other, which gives the chapter's numbers
        Rotations = "rotations",
        /// also mirror images of each other, which the chapter mentions; strings are little more than half as long
        Symmetries = "symmetries",
    }
}

impl Classes {
    /// Both choices, the one with more classes first.
    pub const BOTH: [Self; 2] = [Self::Rotations, Self::Symmetries];

    /// The number of variations of a board.
    const fn variations(self) -> u8 {
        match self {
            Self::Rotations => 4,
            Self::Symmetries => 8,
        }
    }
}

/// The place of the decision for a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The chapter's index, but counted from 0.
    pub class: u16,
    /// The chapter's variation, which leads to the representative. 0 to 3 is the number of clockwise quarter-turns; 4 to 7
    /// are the same after mirroring the board left to right.
    pub variation: u8,
}

/// The table of one side.
#[derive(Debug)]
pub struct Index {
    entries: Vec<Option<Entry>>,
    representatives: Vec<u16>,
    taken: Vec<u16>,
}

impl Index {
    /// The table for a side. With rotations it has 612 classes for X and 526 for O in long strings, and 104 and 68 in short
    /// ones. With all symmetries it has 338 and 289 in long strings, and 58 and 43 in short ones.
    #[must_use]
    pub fn of(side: Side, strings: Strings, classes: Classes) -> &'static Self {
        static TABLES: LazyLock<[Index; 8]> = LazyLock::new(|| {
            let table = |number: usize| {
                Index::build(Side::BOTH[number / 2 % 2], Strings::BOTH[number % 2], Classes::BOTH[number / 4])
            };
            std::array::from_fn(table)
        });
        &TABLES[4 * classes as usize + 2 * side as usize + strings as usize]
    }

    fn build(side: Side, strings: Strings, classes: Classes) -> Self {
        let mut entries = vec![None; CODES];
        let mut representatives = Vec::new();
        for code in 0..CODES as u16 {
            if entries[usize::from(code)].is_some() || !decides(side, strings, board_of(code)) {
                continue;
            }
            // The first code of a class is its representative. An image made by the inverse of a variation is led back by
            // that variation.
            let class = representatives.len() as u16;
            representatives.push(code);
            for variation in 0..classes.variations() {
                let image = moved(code, inverse(variation));
                entries[usize::from(image)].get_or_insert(Entry { class, variation });
            }
        }
        let taken =
            |code: &u16| numbers(!tic_tac_toe().legal(board_of(*code))).fold(0, |taken, cell| taken | 1 << cell);
        let taken = representatives.iter().map(taken).collect();
        Self { entries, representatives, taken }
    }

    /// The number of classes, which is the number of decisions in a string.
    #[must_use]
    pub fn len(&self) -> usize {
        self.representatives.len()
    }

    /// Whether there are no classes, which is never the case.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.representatives.is_empty()
    }

    /// The entry for a code; `None` if the string has no decision for it.
    #[must_use]
    pub fn entry(&self, code: u16) -> Option<Entry> {
        self.entries[usize::from(code)]
    }

    /// The code of each class's representative, ascending.
    #[must_use]
    pub fn representatives(&self) -> &[u16] {
        &self.representatives
    }

    /// For each class, the cells that are taken on its representative: bit k is the chapter's cell k.
    #[must_use]
    pub fn taken(&self) -> &[u16] {
        &self.taken
    }
}

/// Whether a string has a decision for this board.
fn decides(side: Side, strings: Strings, board: Board) -> bool {
    let geometry = tic_tac_toe();
    let ahead = board.x.count_ones() as i32 - board.o.count_ones() as i32;
    let turn = ahead == i32::from(side == Side::O);
    turn && geometry.outcome(board).is_none() && (strings == Strings::Long || geometry.forced(board) == 0)
}

/// The amount that a stone of a side on one of the chapter's cells adds to a code.
#[must_use]
pub const fn weight(cell: u8, side: Side) -> u16 {
    WEIGHTS[cell as usize] * (side as u16 + 1)
}

/// The code of a board.
#[must_use]
pub fn code_of(board: Board) -> u16 {
    let stones = |side: Side| {
        let taken = move |cell: &u8| board.stones(side) >> PLACEMENT[usize::from(*cell)] & 1 == 1;
        (0..9).filter(taken).map(move |cell| weight(cell, side))
    };
    Side::BOTH.into_iter().flat_map(stones).sum()
}

/// The board with this code: the inverse of [`code_of`].
#[must_use]
pub fn board_of(code: u16) -> Board {
    (0..9_u8).fold(Board::EMPTY, |board, cell| {
        let bit = 1 << PLACEMENT[usize::from(cell)];
        match code / weight(cell, Side::X) % 3 {
            0 => board,
            1 => Board { x: board.x | bit, ..board },
            _ => Board { o: board.o | bit, ..board },
        }
    })
}

/// The code of a board after a variation.
fn moved(code: u16, variation: u8) -> u16 {
    (0..9_u8).map(|cell| code / weight(cell, Side::X) % 3 * weight(moved_cell(cell, variation), Side::X)).sum()
}

/// The cell to which a variation, 0 to 7, moves one of the chapter's cells: see [`Entry::variation`].
#[must_use]
pub fn moved_cell(cell: u8, variation: u8) -> u8 {
    let cell = if variation < 4 { cell } else { MIRRORED[usize::from(cell)] };
    TURNED[usize::from(variation % 4)][usize::from(cell)]
}

/// The inverse of a variation. A turned mirror image is a mirror image in another axis, so it is its own inverse.
#[must_use]
pub const fn inverse(variation: u8) -> u8 {
    if variation < 4 { (4 - variation) % 4 } else { variation }
}

/// The chapter's numbers for the cells in a mask of [`tic_tac_toe`], ascending.
pub fn numbers(mask: u64) -> impl Iterator<Item = u8> {
    (0..9).filter(move |cell: &u8| mask >> PLACEMENT[usize::from(*cell)] & 1 == 1)
}

/// The cell that the rules take, the first in the chapter's order: one that completes an own line, or else one that blocks.
/// `None` if no line can be completed.
#[must_use]
pub fn ruled(board: Board) -> Option<u8> {
    numbers(tic_tac_toe().forced(board)).next()
}

/// The chapter's number for a cell of [`tic_tac_toe`].
#[must_use]
pub fn number_of(cell: u8) -> u8 {
    numbers(1 << cell).next().expect("every cell of the board has a number")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::cells;
    use std::collections::BTreeSet;

    /// The chapter's table of the first boards on which X is to move.
    #[test]
    fn the_sample_table_matches_the_chapter() {
        let index = Index::of(Side::X, Strings::Long, Classes::Rotations);
        let sample = [(0, 1, 0), (5, 2, 0), (7, 3, 0), (11, 4, 0), (15, 2, 1), (19, 4, 2)];
        for (code, class, variation) in sample {
            assert_eq!(index.entry(code), Some(Entry { class: class - 1, variation }), "code {code}");
        }
        let listed: Vec<u16> = (0..20).filter(|code| index.entry(*code).is_some()).collect();
        assert_eq!(listed, sample.map(|(code, ..)| code));
    }

    #[test]
    fn the_number_of_classes_matches_the_chapter() {
        let counts = |classes: Classes| {
            Side::BOTH.map(|side| Strings::BOTH.map(|strings| Index::of(side, strings, classes).len()))
        };
        assert_eq!(counts(Classes::Rotations), [[612, 104], [526, 68]]);
        assert_eq!(counts(Classes::Symmetries), [[338, 58], [289, 43]]);
    }

    /// Boards share a class only by rotations, or by all symmetries, and every board leads to its representative.
    #[test]
    fn every_variation_of_a_board_leads_to_its_representative() {
        let quarter = tic_tac_toe().symmetries().iter().find(|turn| turn.cell(0) == 2 && turn.cell(2) == 8).unwrap();
        let mirror = tic_tac_toe().symmetries().iter().find(|turn| turn.cell(0) == 2 && turn.cell(8) == 6).unwrap();
        let tables =
            (0..8).map(|number| (Side::BOTH[number / 4], Strings::BOTH[number / 2 % 2], Classes::BOTH[number % 2]));
        for (side, strings, classes) in tables {
            let index = Index::of(side, strings, classes);
            let mut seen = BTreeSet::new();
            for code in 0..CODES as u16 {
                let mut board = board_of(code);
                assert_eq!(code_of(board), code);
                let Some(entry) = index.entry(code) else { continue };
                assert_eq!(board.to_move(), side);
                assert!(entry.variation < classes.variations());
                if entry.variation >= 4 {
                    board = mirror.board(board);
                }
                for _ in 0..entry.variation % 4 {
                    board = quarter.board(board);
                }
                assert_eq!(code_of(board), index.representatives()[usize::from(entry.class)]);
                seen.insert(entry.class);
            }
            assert!(seen.len() == index.len() && !index.is_empty());
        }
    }

    #[test]
    fn cells_are_numbered_as_documented() {
        for cell in cells(tic_tac_toe().cells()) {
            assert_eq!(PLACEMENT[usize::from(number_of(cell))], cell);
        }
        let quarter = tic_tac_toe().symmetries().iter().find(|turn| turn.cell(0) == 2 && turn.cell(2) == 8).unwrap();
        for cell in 0..9 {
            assert_eq!(PLACEMENT[usize::from(moved_cell(cell, 1))], quarter.cell(PLACEMENT[usize::from(cell)]));
            (0..8).for_each(|variation| assert_eq!(moved_cell(moved_cell(cell, variation), inverse(variation)), cell));
        }
        assert_eq!(ruled(tic_tac_toe().board_of("XX.OO....").unwrap()), Some(number_of(2)));
        assert_eq!(ruled(tic_tac_toe().board_of("XX.O.....").unwrap()), Some(number_of(2)), "O blocks");
        assert_eq!(ruled(Board::EMPTY), None);
    }
}
