//! A board in play, together with what a player looks at first: the cells that complete a line.

use super::{Board, Geometry, Side};

/// A board that was reached move by move. The threats of both sides are updated as stones are added.
///
/// ```
/// use evoxo_games::board::{Position, Side, tic_tac_toe};
/// let geometry = tic_tac_toe();
/// let position = [0, 4, 1].into_iter().fold(Position::START, |position, cell| position.play(geometry, cell));
/// assert_eq!(position.wins(geometry, Side::X), 1 << 2);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    board: Board,
    /// For each side: the cells that complete one of its lines, whether or not a stone can be placed there now. Cells that
    /// were taken later may be among them.
    threats: [u64; 2],
}

impl Position {
    /// The position before the first move.
    pub const START: Self = Self { board: Board::EMPTY, threats: [0; 2] };

    /// The position of a board, however it was reached.
    #[must_use]
    pub fn of(geometry: &Geometry, board: Board) -> Self {
        let threats = |side: Side| {
            let missing = geometry.lines().iter().map(|line| line & !board.stones(side));
            missing.filter(|missing| missing.is_power_of_two()).fold(0, |all, cell| all | cell)
        };
        Self { board, threats: Side::BOTH.map(threats) }
    }

    /// The stones.
    #[must_use]
    #[inline(always)]
    pub const fn board(self) -> Board {
        self.board
    }

    /// The side to move.
    #[must_use]
    #[inline(always)]
    pub const fn to_move(self) -> Side {
        self.board.to_move()
    }

    /// The cells on which a stone can be placed.
    #[must_use]
    #[inline(always)]
    pub const fn legal(self, geometry: &Geometry) -> u64 {
        geometry.legal(self.board)
    }

    /// The legal cells on which this side would complete a line. The result is that of [`Geometry::completing`], without
    /// looking at every line.
    #[must_use]
    #[inline(always)]
    pub const fn wins(self, geometry: &Geometry, side: Side) -> u64 {
        self.threats[side as usize] & geometry.legal(self.board)
    }

    /// The empty cells that would complete a line of this side if a stone could be placed there, now or later.
    #[must_use]
    #[inline(always)]
    pub const fn threats(self, side: Side) -> u64 {
        self.threats[side as usize] & !self.board.occupied()
    }

    /// The position after the side to move has taken `cell`.
    ///
    /// # Panics
    /// If the cell is taken.
    #[must_use]
    #[inline(always)]
    pub fn play(self, geometry: &Geometry, cell: u8) -> Self {
        let side = self.to_move();
        let board = self.board.play(cell);
        let own = board.stones(side);
        let mut threats = self.threats;
        for line in geometry.through(cell) {
            let missing = line & !own;
            if missing & missing.wrapping_sub(1) == 0 {
                threats[side as usize] |= missing;
            }
        }
        Self { board, threats }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Shape, cells, connect_four, qubic, score_four, tic_tac_toe};
    use evoxo_common::rng::{Stream, below};
    use proptest::prelude::*;

    fn geometries() -> impl Strategy<Value = &'static Geometry> {
        prop::sample::select(vec![tic_tac_toe(), connect_four(), qubic(), score_four()])
    }

    proptest! {
        /// In a random game, the threats are those that are found by looking at every line.
        #[test]
        fn threats_are_updated_with_each_move(geometry in geometries(), seed: u64) {
            let mut rng = Stream::root(seed).rng();
            let mut position = Position::START;
            while geometry.outcome(position.board()).is_none() {
                let board = position.board();
                let fresh = Position::of(geometry, board);
                for side in Side::BOTH {
                    prop_assert_eq!(position.wins(geometry, side), geometry.completing(board, side));
                    prop_assert_eq!(position.threats(side), fresh.threats(side));
                }
                prop_assert_eq!((position.to_move(), position.legal(geometry)), (board.to_move(), geometry.legal(board)));
                let legal: Vec<u8> = cells(geometry.legal(board)).collect();
                let cell = legal[below(&mut rng, legal.len() as u64) as usize];
                let wins = position.wins(geometry, position.to_move()) >> cell & 1 == 1;
                position = position.play(geometry, cell);
                prop_assert_eq!(wins, geometry.has_line(position.board().stones(board.to_move())));
            }
        }
    }

    #[test]
    fn lines_through_cells() {
        for geometry in [tic_tac_toe(), connect_four(), qubic(), score_four()] {
            for cell in cells(geometry.cells()) {
                let through = geometry.through(cell).to_vec();
                let expected: Vec<u64> =
                    geometry.lines().iter().filter(|line| *line >> cell & 1 == 1).copied().collect();
                assert_eq!(through, expected);
                let indices = geometry.line_indices_through(cell);
                assert_eq!(
                    indices.iter().map(|line| geometry.lines()[usize::from(*line)]).collect::<Vec<_>>(),
                    expected
                );
            }
        }
        let on = |count: usize| (0..64).filter(|cell| score_four().through(*cell).len() == count).count();
        assert_eq!((on(7), on(4)), (16, 48));
    }

    /// The numbers of lines: 76 on 4x4x4 (along an axis, in a plane, through space), and those of the other games.
    #[test]
    fn lines_of_every_game() {
        let axes = |line: &u64| {
            let ends: Vec<[i32; 3]> = cells(*line).map(|cell| Shape::QUBIC.position(cell)).collect();
            (0..3).filter(|axis| ends[0][*axis] != ends[3][*axis]).count()
        };
        for geometry in [qubic(), score_four()] {
            let along = |count: usize| geometry.lines().iter().filter(|line| axes(line) == count).count();
            assert_eq!([along(1), along(2), along(3)], [48, 24, 4]);
        }
        assert_eq!((connect_four().lines().len(), tic_tac_toe().lines().len()), (69, 8));
    }

    /// The number of move sequences of `plies` plies. Games that are over do not continue.
    fn perft(geometry: &Geometry, position: Position, plies: u32) -> u64 {
        if plies == 0 {
            return 1;
        }
        let wins = position.wins(geometry, position.to_move());
        cells(position.legal(geometry))
            .map(|cell| match wins >> cell & 1 == 1 {
                true => u64::from(plies == 1),
                false => perft(geometry, position.play(geometry, cell), plies - 1),
            })
            .sum()
    }

    /// For Connect Four these are the numbers that engines compare (8 plies: 5,673,234). On 4x4x4 no side can win before the
    /// seventh ply, so until then the numbers are products: for four plies all 16 piles take every stone, and from the fifth
    /// ply on, sequences that overfill a pile are missing.
    #[test]
    fn perft_figures() {
        let counts = |geometry: &Geometry, last: u32| {
            (0..=last).map(|plies| perft(geometry, Position::START, plies)).collect::<Vec<_>>()
        };
        assert_eq!(counts(connect_four(), 7), [1, 7, 49, 343, 2401, 16_807, 117_649, 823_536]);
        assert_eq!(counts(qubic(), 4), [1, 64, 64 * 63, 64 * 63 * 62, 64 * 63 * 62 * 61]);
        let full = 16_u64.pow(5) - 16;
        assert_eq!(counts(score_four(), 5), [1, 16, 256, 4096, 65_536, full]);
        let games = |plies: u32| perft(tic_tac_toe(), Position::START, plies);
        assert_eq!([5, 6, 7, 8, 9].map(games), [15_120, 54_720, 148_176, 200_448, 127_872]);
    }
}
