//! The folded game: everything that can happen to a table player of 3x3 tic-tac-toe, with forced moves and mirror images
//! folded away.
//!
//! **The filter.** Before either side chooses, the rules act: complete an own line if possible, or else block the opponent's.
//! If the filter has several cells to choose from, the result is the same for each. A side that can complete two lines has
//! won. A side that would have to block two cells has lost, because the opponent also has the filter and completes the other
//! line.
//!
//! **Decision boards** of a side are the boards on which it decides: the game is not over, it is the side's turn, neither
//! side can complete a line, and play can reach the board if both sides have the filter and otherwise move freely. Boards
//! that turn or mirror into each other form one class. The class's *canonical* board is the one whose text comes last (`.`
//! before `O` before `X`, read from the top left).
//!
//! **Their order**, which is the order of genes on the wire, is by number of stones, fewest first. Among boards with equally
//! many stones, the one whose canonical text comes last is first. For O it begins `X........`, `.X.......`, `....X....`.
//!
//! **Between decisions** the opponent moves. After the side's move and all forced moves, either the game is over, or the side
//! decides again, or the opponent has a choice. The board is turned to its canonical image only when the side decides. The
//! opponent therefore chooses on the board as it has been since then, and its options are the empty cells in order.

use crate::board::{Board, Outcome, Side, Symmetry, cells, tic_tac_toe};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// The state of the game once all forced moves are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// The side decides, on the board of this class.
    Decide(usize),
    /// The opponent has the choice with this index.
    Choose(usize),
    /// The game is over.
    End(Outcome),
}

/// A board on which the opponent decides.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The board, in the orientation that it has had since the side last decided.
    pub board: Board,
    /// The result of each of the opponent's moves: one for each empty cell, in the order of cells. All are equally likely for
    /// a random mover.
    pub targets: Vec<Target>,
}

/// The folded game of one side.
#[derive(Clone, Debug)]
pub struct Graph {
    side: Side,
    boards: Vec<Board>,
    legal_cells: Vec<Vec<u8>>,
    after: Vec<[Option<Target>; 9]>,
    choices: Vec<Choice>,
    start: Target,
}

impl Graph {
    /// The folded game of a side.
    #[must_use]
    pub fn of(side: Side) -> &'static Self {
        static GRAPHS: LazyLock<[Graph; 2]> = LazyLock::new(|| Side::BOTH.map(Graph::build));
        &GRAPHS[side as usize]
    }

    /// The side that decides.
    #[must_use]
    pub const fn side(&self) -> Side {
        self.side
    }

    /// The canonical decision boards, in the order of genes. The index of a board here names its class.
    #[must_use]
    pub fn boards(&self) -> &[Board] {
        &self.boards
    }

    /// The number of classes, which is the number of genes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a graph is never empty")]
    pub const fn len(&self) -> usize {
        self.boards.len()
    }

    /// The cells that may be played on the canonical board of a class, in order.
    #[must_use]
    pub fn legal_cells(&self, class: usize) -> &[u8] {
        &self.legal_cells[class]
    }

    /// The result of playing a cell on the canonical board of a class; `None` if the cell is taken or does not exist.
    #[must_use]
    pub fn after(&self, class: usize, cell: u8) -> Option<Target> {
        *self.after[class].get(usize::from(cell))?
    }

    /// Whether a cell may be played on the canonical board of a class.
    #[must_use]
    pub fn is_legal(&self, class: usize, cell: u8) -> bool {
        self.after(class, cell).is_some()
    }

    /// The opponent's choices. A choice never leads to an earlier one.
    #[must_use]
    pub fn choices(&self) -> &[Choice] {
        &self.choices
    }

    /// The beginning of the game.
    #[must_use]
    pub const fn start(&self) -> Target {
        self.start
    }

    /// A board's class, and the symmetry that turns the board to its canonical image; `None` if the side never decides on
    /// this board.
    #[must_use]
    pub fn class(&self, board: Board) -> Option<(usize, &'static Symmetry)> {
        let (canonical, symmetry) = tic_tac_toe().canonical(board);
        let class = self.boards.binary_search_by_key(&rank(canonical), |board| rank(*board)).ok()?;
        Some((class, symmetry))
    }

    /// The classes that a player meets if it plays one of `options(class)` on each class, in order.
    pub fn met(&self, options: impl Fn(usize) -> Vec<u8>) -> BTreeSet<usize> {
        let (mut met, mut choices, mut open) = (BTreeSet::new(), BTreeSet::new(), vec![self.start]);
        while let Some(target) = open.pop() {
            match target {
                Target::Decide(class) if met.insert(class) => {
                    open.extend(options(class).into_iter().filter_map(|cell| self.after(class, cell)));
                }
                Target::Choose(choice) if choices.insert(choice) => open.extend(&self.choices[choice].targets),
                _ => {}
            }
        }
        met
    }

    /// The common denominator of all probabilities: the product of the numbers of options in the opponent's choices of the
    /// longest game. It is 384 = 8 x 6 x 4 x 2 for X and 945 = 9 x 7 x 5 x 3 for O. A choice on a board with e empty cells
    /// has e options. On all the opponent's boards e has the same parity, so the options of a game multiply to a divisor of
    /// the denominator.
    #[must_use]
    pub fn denominator(&self) -> u32 {
        options_product(match self.side {
            Side::X => 8,
            Side::O => 9,
        })
    }

    fn build(side: Side) -> Self {
        let mut found = Found::default();
        let start = settle(side, Board::EMPTY);
        found.explore(side, start);
        let mut boards: Vec<Board> = found.decisions.into_iter().collect();
        boards.sort_unstable_by_key(|board| rank(*board));
        let mut choices: Vec<Board> = found.choices.into_iter().collect();
        choices.sort_unstable_by_key(|board| rank(*board));
        let classes: BTreeMap<Board, usize> = boards.iter().copied().zip(0..).collect();
        let choice_index: BTreeMap<Board, usize> = choices.iter().copied().zip(0..).collect();
        let target = |stand| match stand {
            Stand::Decide(board) => Target::Decide(classes[&board]),
            Stand::Choose(board) => Target::Choose(choice_index[&board]),
            Stand::End(outcome) => Target::End(outcome),
        };
        let play = |board: Board, cell| target(settle(side, board.play(cell)));
        let options = |board: &Board| cells(tic_tac_toe().legal(*board)).collect::<Vec<u8>>();
        let row = |board: &Board| {
            let mut row = [None; 9];
            options(board).into_iter().for_each(|cell| row[usize::from(cell)] = Some(play(*board, cell)));
            row
        };
        let choice = |board: &Board| {
            let targets = options(board).into_iter().map(|cell| play(*board, cell)).collect();
            Choice { board: *board, targets }
        };
        Self {
            side,
            start: target(start),
            legal_cells: boards.iter().map(options).collect(),
            after: boards.iter().map(row).collect(),
            choices: choices.iter().map(choice).collect(),
            boards,
        }
    }
}

/// e x (e - 2) x (e - 4) ... down to 2 or 1: the greatest number of ways in which an opponent can continue if it chooses
/// between `empty` cells, then between at least two fewer, and so on.
pub(super) fn options_product(empty: u32) -> u32 {
    (1..=empty).rev().step_by(2).product()
}

/// The order of decision boards as a key: fewest stones first, then the text that comes last.
fn rank(board: Board) -> (u32, std::cmp::Reverse<Board>) {
    (board.pieces(), std::cmp::Reverse(board))
}

/// A [`Target`] before indices are assigned.
#[derive(Clone, Copy)]
enum Stand {
    /// The canonical board on which the side decides.
    Decide(Board),
    /// The board on which the opponent chooses.
    Choose(Board),
    End(Outcome),
}

/// Makes the forced moves.
fn settle(side: Side, mut board: Board) -> Stand {
    let geometry = tic_tac_toe();
    loop {
        if let Some(outcome) = geometry.outcome(board) {
            return Stand::End(outcome);
        }
        match cells(geometry.forced(board)).next() {
            Some(cell) => board = board.play(cell),
            None if board.to_move() == side => return Stand::Decide(geometry.canonical(board).0),
            None => return Stand::Choose(board),
        }
    }
}

/// The boards found so far.
#[derive(Default)]
struct Found {
    decisions: BTreeSet<Board>,
    choices: BTreeSet<Board>,
}

impl Found {
    /// Adds everything that can follow.
    fn explore(&mut self, side: Side, stand: Stand) {
        let (board, new) = match stand {
            Stand::Decide(board) => (board, self.decisions.insert(board)),
            Stand::Choose(board) => (board, self.choices.insert(board)),
            Stand::End(_) => return,
        };
        if new {
            cells(tic_tac_toe().legal(board)).for_each(|cell| self.explore(side, settle(side, board.play(cell))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(side: Side) -> String {
        let boards = Graph::of(side).boards().iter().map(|board| tic_tac_toe().board_text(*board));
        boards.collect::<Vec<_>>().join("\n")
    }

    /// The order of genes on the wire. Changing it breaks every stored genome.
    #[test]
    fn the_order_of_decision_boards_is_pinned() {
        insta::assert_snapshot!("decision_boards_x", texts(Side::X));
        insta::assert_snapshot!("decision_boards_o", texts(Side::O));
    }

    #[test]
    fn known_counts() {
        assert_eq!(Side::BOTH.map(|side| Graph::of(side).len()), [58, 43]);
        assert_eq!(Side::BOTH.map(|side| Graph::of(side).denominator()), [384, 945]);
        assert_eq!(Graph::of(Side::X).start(), Target::Decide(0));
        assert_eq!(Graph::of(Side::O).start(), Target::Choose(0));
    }

    /// The graph has exactly the boards on which the rules leave a decision to a side. The test finds them by playing
    /// unfolded games.
    #[test]
    fn the_classes_match_unfolded_play() {
        let geometry = tic_tac_toe();
        let mut level = BTreeSet::from([Board::EMPTY]);
        let mut asked = [BTreeSet::new(), BTreeSet::new()];
        while !level.is_empty() {
            let open = level.iter().filter(|board| geometry.outcome(**board).is_none());
            let next = open.flat_map(|board| {
                let forced = geometry.forced(*board);
                if forced == 0 {
                    let class = geometry.canonical(*board).0;
                    asked[usize::from(board.to_move() == Side::O)].insert(class);
                    assert_eq!(Graph::of(board.to_move()).boards().iter().filter(|other| **other == class).count(), 1);
                    assert!(Graph::of(board.to_move().other()).class(*board).is_none());
                }
                cells(if forced == 0 { geometry.legal(*board) } else { forced }).map(|cell| board.play(cell))
            });
            level = next.collect();
        }
        assert_eq!(asked.map(|classes| classes.len()), [58, 43]);
    }

    /// The kernels rely on this: every target is a later one.
    #[test]
    fn targets_lie_ahead() {
        for graph in Side::BOTH.map(Graph::of) {
            let pieces = |target| match target {
                Target::Decide(index) => graph.boards()[index].pieces(),
                Target::Choose(index) => graph.choices()[index].board.pieces(),
                Target::End(_) => 10,
            };
            for (class, board) in graph.boards().iter().enumerate() {
                for cell in 0..12 {
                    let after = graph.after(class, cell);
                    assert_eq!(after.is_some(), graph.legal_cells(class).contains(&cell));
                    assert!(after.is_none_or(|target| pieces(target) > board.pieces()));
                }
            }
            for choice in graph.choices() {
                assert_eq!(choice.targets.len(), 9 - choice.board.pieces() as usize);
                assert!(choice.targets.iter().all(|target| pieces(*target) > choice.board.pieces()));
            }
        }
    }
}
