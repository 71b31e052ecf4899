//! k-in-a-row on grids of up to 64 cells, as two words of bits. The grid is data (see [`Shape`]).
//!
//! Cells are numbered from the top left: first along a row, then down the rows, then down the layers. Bit `c` of a mask is
//! cell `c`. On the 3x3 board:
//!
//! ```text
//! 0 1 2      a3 b3 c3
//! 3 4 5      a2 b2 c2
//! 6 7 8      a1 b1 c1
//! ```

mod geometry;
mod lines;
mod notation;
pub mod pictures;
mod position;
mod symmetry;
#[cfg(test)]
mod tests;

pub use geometry::{Geometry, Shape, connect_four, qubic, score_four, tic_tac_toe};
pub use position::Position;
pub use symmetry::Symmetry;

use std::cmp::Ordering;

/// One of the two players. X moves first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The first player.
    X,
    /// The second player.
    O,
}

impl Side {
    /// Both sides, the first player first.
    pub const BOTH: [Self; 2] = [Self::X, Self::O];

    /// The opponent.
    #[must_use]
    #[inline(always)]
    pub const fn other(self) -> Self {
        match self {
            Self::X => Self::O,
            Self::O => Self::X,
        }
    }

    /// `X` or `O`.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::X => 'X',
            Self::O => 'O',
        }
    }
}

/// How a game ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// This side has a line.
    Win(Side),
    /// The board is full and has no line.
    Draw,
}

/// The stones on a board. Boards are ordered like their texts, read from the top left, with `.` before `O` before `X`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Board {
    /// The cells of the first player.
    pub x: u64,
    /// The cells of the second player, none of them in `x`.
    pub o: u64,
}

impl Board {
    /// The board before the first move.
    pub const EMPTY: Self = Self { x: 0, o: 0 };

    /// The cells that this side has taken.
    #[must_use]
    #[inline(always)]
    pub const fn stones(self, side: Side) -> u64 {
        match side {
            Side::X => self.x,
            Side::O => self.o,
        }
    }

    /// The cells that either side has taken.
    #[must_use]
    #[inline(always)]
    pub const fn occupied(self) -> u64 {
        self.x | self.o
    }

    /// The number of stones, which is the number of moves played.
    #[must_use]
    #[inline(always)]
    pub const fn pieces(self) -> u32 {
        self.occupied().count_ones()
    }

    /// The side to move: X if the number of stones is even, otherwise O.
    #[must_use]
    #[inline(always)]
    pub const fn to_move(self) -> Side {
        if self.pieces().is_multiple_of(2) { Side::X } else { Side::O }
    }

    /// The board after the side to move has taken `cell`.
    ///
    /// # Panics
    /// If the cell is taken.
    #[must_use]
    #[inline(always)]
    pub fn play(self, cell: u8) -> Self {
        let bit = 1 << cell;
        assert!(self.occupied() & bit == 0, "cell {cell} was played though it is taken");
        match self.to_move() {
            Side::X => Self { x: self.x | bit, o: self.o },
            Side::O => Self { x: self.x, o: self.o | bit },
        }
    }

    /// The content of a cell, as its rank in the order of boards: 0 empty, 1 O, 2 X.
    const fn rank(self, cell: u32) -> u64 {
        2 * (self.x >> cell & 1) + (self.o >> cell & 1)
    }
}

impl Ord for Board {
    fn cmp(&self, other: &Self) -> Ordering {
        let differing = (self.x ^ other.x) | (self.o ^ other.o);
        match differing.trailing_zeros() {
            64 => Ordering::Equal,
            first => self.rank(first).cmp(&other.rank(first)),
        }
    }
}

impl PartialOrd for Board {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The cells of a mask, in order.
#[inline]
pub fn cells(mut mask: u64) -> impl Iterator<Item = u8> {
    std::iter::from_fn(
        #[inline]
        move || {
            let cell = mask.trailing_zeros();
            mask &= mask.wrapping_sub(1);
            (cell < 64).then_some(cell as u8)
        },
    )
}
