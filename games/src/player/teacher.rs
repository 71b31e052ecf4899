//! The teacher of `nndtf` (Ling and Lam 2011, section 2): a score for every empty cell, and the boards on which it teaches.
//!
//! X counts 1, O counts -1, and an empty cell 0.5. To score a cell, the teacher puts X on it. The sum of the three cells of
//! each line through the cell gives the line's worth, and the cell's score is the sum over these lines. The teacher takes a
//! cell with the greatest score. As O it sees the board with the sides swapped.

use crate::{
    board::{Board, Side, cells, tic_tac_toe},
    odds::{Exact, Subject},
};
use std::{collections::BTreeSet, sync::LazyLock};

/// The number of boards with X to move that play can reach and on which the game is not over.
pub const BOARDS: usize = 2423;

/// The worth of a line in which X, including the stone just placed, has `own` cells and O has `other`: 7^7 for a sum of 3
/// (three X), 6^6 for -1 (two O blocked), 5^5 for 2.5, 4^4 for 2, 3^3 for 1 and 2^2 for 0.5.
const fn worth(own: u32, other: u32) -> u32 {
    match (own, other) {
        (3, 0) => 823_543,
        (1, 2) => 46_656,
        (2, 0) => 3_125,
        (1, 0) => 256,
        (2, 1) => 27,
        (1, 1) => 4,
        _ => panic!("a line through the stone just put there has at least that one, and three cells"),
    }
}

/// The score of each cell for X; 0 if the cell is not empty.
#[must_use]
pub fn scores(board: Board) -> [u32; 9] {
    let game = tic_tac_toe();
    let score = |cell: u8| {
        let own = board.x | 1 << cell;
        let through = game.lines().iter().filter(|line| **line >> cell & 1 == 1);
        through.map(|line| worth((line & own).count_ones(), (line & board.o).count_ones())).sum()
    };
    let mut scores = [0; 9];
    cells(game.legal(board)).for_each(|cell| scores[usize::from(cell)] = score(cell));
    scores
}

/// The board as the side to move sees it, with its own stones as X.
#[must_use]
pub const fn seen_by_mover(board: Board) -> Board {
    match board.to_move() {
        Side::X => board,
        Side::O => Board { x: board.o, o: board.x },
    }
}

/// The cells that the teacher would take, as a mask: those with the greatest score. 0 on a full board.
#[must_use]
pub fn choose(board: Board) -> u64 {
    let scores = scores(seen_by_mover(board));
    let best = scores.iter().max().copied().unwrap_or(0);
    cells(tic_tac_toe().legal(board))
        .filter(|cell| scores[usize::from(*cell)] == best)
        .fold(0, |all, cell| all | 1 << cell)
}

/// Walks all games in which the teacher plays this side. It has no filter. If several cells have the greatest score, they are
/// equally likely.
#[must_use]
pub fn exact(side: Side) -> Exact {
    let exact = Subject { side, filtered: false, choose: Box::new(choose) }.exact();
    exact.expect("the teacher has an answer on every board that is not full")
}

/// All [`BOARDS`] boards, in ascending order.
#[must_use]
pub fn boards() -> &'static [Board] {
    static ALL: LazyLock<Vec<Board>> = LazyLock::new(|| {
        let game = tic_tac_toe();
        let mut seen = BTreeSet::from([Board::EMPTY]);
        let mut waiting = vec![Board::EMPTY];
        while let Some(board) = waiting.pop() {
            let next = cells(game.legal(board)).map(|cell| board.play(cell));
            for board in next.filter(|board| game.outcome(*board).is_none()) {
                if seen.insert(board) {
                    waiting.push(board);
                }
            }
        }
        seen.into_iter().filter(|board| board.to_move() == Side::X).collect()
    });
    &ALL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_match_figure_1() {
        let board = tic_tac_toe().board_of("..X/OXX/OO.").unwrap();
        assert_eq!(scores(board), [52_906, 3_152, 0, 0, 0, 0, 0, 0, 873_324]);
        assert_eq!(choose(board), 1 << 8);
    }

    /// Computed literally as in the paper: sums of cell values, looked up in the paper's list.
    #[test]
    fn scores_match_the_sums() {
        let game = tic_tac_toe();
        for board in boards() {
            let scores = scores(*board);
            for cell in cells(game.cells()) {
                let mut expected = 0;
                if game.legal(*board) >> cell & 1 == 1 {
                    let after = Board { x: board.x | 1 << cell, o: board.o };
                    for line in game.lines().iter().filter(|line| **line >> cell & 1 == 1) {
                        let value =
                            |cell| f64::from((after.x >> cell & 1) as u8) - f64::from((after.o >> cell & 1) as u8);
                        let empty = |cell| if after.occupied() >> cell & 1 == 0 { 0.5 } else { 0.0 };
                        let sum: f64 = cells(*line).map(|cell| value(cell) + empty(cell)).sum();
                        let list = [
                            (3.0, 7_u32.pow(7)),
                            (-1.0, 6_u32.pow(6)),
                            (2.5, 5_u32.pow(5)),
                            (2.0, 4_u32.pow(4)),
                            (1.0, 3_u32.pow(3)),
                            (0.5, 2_u32.pow(2)),
                        ];
                        expected += list.iter().find(|(value, _)| *value == sum).unwrap().1;
                    }
                }
                assert_eq!(scores[usize::from(cell)], expected, "{} {cell}", game.board_rows(*board));
            }
        }
    }

    #[test]
    fn the_number_of_boards_matches_the_paper() {
        assert_eq!(boards().len(), BOARDS);
        assert!(boards().is_sorted());
        assert!(boards().iter().all(|board| tic_tac_toe().outcome(*board).is_none()));
    }

    /// The teacher never loses as X, but can be beaten as O.
    #[test]
    fn the_teacher_as_a_player() {
        let [x, o] = Side::BOTH.map(exact);
        assert!(x.unbeatable());
        assert!(!o.unbeatable());
        let names =
            |line: &Vec<u8>| line.iter().map(|cell| tic_tac_toe().cell_name(*cell)).collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = o.examples.iter().map(names).collect();
        insta::assert_snapshot!(format!(
            "X: {:?} over {} positions\nO: {:?}, {} lines\n{}",
            x.odds,
            x.positions,
            o.odds,
            o.losing_lines,
            lines.join("\n")
        ));
    }
}
