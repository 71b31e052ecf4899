//! The matchboxes: which boards have one, and all that a game needs to know about a board, by the board's code.
//!
//! A side has one box for each board on which it is to move and has a choice, up to the symmetries of the board. X, who moves
//! first, has 304 boxes (1, 12, 108 and 183 by their number of stones, like Michie's machine), and O has 289. The last cell
//! of the board needs no box.

use std::{collections::BTreeMap, sync::LazyLock};

use evoxo_games::board::{Board, Outcome, Side, cells, tic_tac_toe};

/// The cells of a board, and the numbers in a box.
pub const CELLS: usize = 9;

/// The number of codes: 3 to the power of 9.
const CODES: usize = 19_683;

/// The amount that an X on each cell adds to the code of a board. An O adds twice as much.
const POWERS: [u16; CELLS] = [1, 3, 9, 27, 81, 243, 729, 2187, 6561];

/// The box of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnedBox {
    /// The number of the box among those of the side to move.
    pub number: u16,
    /// The symmetry that leads from the board to the box's board, as an index into the symmetries.
    pub turn: u8,
}

/// What a game needs to know about a board.
#[derive(Clone, Copy, Debug, Default)]
pub struct Node {
    /// How the game has ended, if it has.
    pub over: Option<Outcome>,
    /// The board's box, if there is one.
    pub place: Option<TurnedBox>,
    /// The empty cells.
    pub empty: u16,
    /// The moves that keep the value of the board.
    pub kept: u16,
}

/// All boards of the game, and the boxes of both sides.
#[derive(Debug)]
pub struct Boxes {
    nodes: Vec<Node>,
    /// The codes of all boards that play can reach, by their number of stones.
    codes: Vec<u16>,
    /// The board of each box, by side.
    boards: [Vec<Board>; 2],
    /// For each symmetry: where the cells of a box's board are on the original board.
    back: Vec<[u8; CELLS]>,
}

/// A board's code.
#[must_use]
pub fn code_of(board: Board) -> u16 {
    let sum = |side: Side| cells(board.stones(side)).map(|cell| step(cell, side)).sum::<u16>();
    Side::BOTH.into_iter().map(sum).sum()
}

/// The amount that a stone adds to a board's code.
#[must_use]
#[inline]
pub const fn step(cell: u8, side: Side) -> u16 {
    POWERS[cell as usize] * (side as u16 + 1)
}

/// The empty cells, but only the lowest of those that are images of each other under the symmetries of the board.
#[must_use]
pub fn distinct(board: Board) -> u64 {
    let own: Vec<_> = tic_tac_toe().symmetries().iter().filter(|image| image.board(board) == board).collect();
    let lowest = |cell: &u8| own.iter().all(|image| image.cell(*cell) >= *cell);
    cells(tic_tac_toe().legal(board)).filter(lowest).fold(0, |mask, cell| mask | 1 << cell)
}

impl Boxes {
    /// The shared instance.
    #[must_use]
    pub fn get() -> &'static Self {
        static BOXES: LazyLock<Boxes> = LazyLock::new(Boxes::build);
        &BOXES
    }

    fn build() -> Self {
        let geometry = tic_tac_toe();
        let mut levels = vec![vec![Board::EMPTY]];
        for _ in 0..CELLS {
            let last = levels.last().expect("the first level exists").iter();
            let open = last.filter(|board| geometry.outcome(**board).is_none());
            let mut next: Vec<Board> =
                open.flat_map(|board| cells(geometry.legal(*board)).map(|cell| board.play(cell))).collect();
            next.sort_unstable();
            next.dedup();
            levels.push(next);
        }
        let all: Vec<Board> = levels.concat();
        let (mut boards, mut numbers) = ([Vec::new(), Vec::new()], BTreeMap::new());
        for board in &all {
            let chooses = geometry.outcome(*board).is_none() && geometry.legal(*board).count_ones() > 1;
            if chooses && geometry.canonical(*board).0 == *board {
                let side = &mut boards[board.to_move() as usize];
                numbers.insert(*board, side.len() as u16);
                side.push(*board);
            }
        }
        let place = |board: Board| {
            let (canonical, symmetry) = geometry.canonical(board);
            let turn = geometry.symmetries().iter().position(|other| other == symmetry)?;
            Some(TurnedBox { number: *numbers.get(&canonical)?, turn: turn as u8 })
        };
        let mut nodes = vec![Node::default(); CODES];
        let mut values = vec![0_i8; CODES];
        for board in all.iter().rev() {
            let (code, over) = (code_of(*board), geometry.outcome(*board));
            let empty = geometry.legal(*board);
            let value = |cell: u8| -values[usize::from(code + step(cell, board.to_move()))];
            let best = match over {
                Some(Outcome::Draw) => 0,
                Some(Outcome::Win(_)) => -1,
                None => cells(empty).map(value).max().unwrap_or(0),
            };
            let kept = cells(empty).filter(|cell| over.is_none() && value(*cell) == best);
            let kept = kept.fold(0, |mask, cell| mask | 1 << cell);
            let place = if over.is_none() { place(*board) } else { None };
            nodes[usize::from(code)] = Node { over, place, empty: empty as u16, kept };
            values[usize::from(code)] = best;
        }
        let back = geometry.symmetries().iter().map(|symmetry| {
            let mut back = [0; CELLS];
            (0..CELLS as u8).for_each(|cell| back[usize::from(symmetry.cell(cell))] = cell);
            back
        });
        Self { nodes, codes: all.iter().map(|board| code_of(*board)).collect(), boards, back: back.collect() }
    }

    /// The board of each of a side's boxes.
    #[must_use]
    pub fn boards(&self, side: Side) -> &[Board] {
        &self.boards[side as usize]
    }

    /// All that is known about the board with this code. The node is empty if play cannot reach the board.
    #[must_use]
    #[inline]
    pub fn node(&self, code: u16) -> &Node {
        &self.nodes[usize::from(code)]
    }

    /// The codes of all boards. Boards with fewer stones come first.
    #[must_use]
    pub fn codes(&self) -> &[u16] {
        &self.codes
    }

    /// The cell of a board that corresponds to this cell of its box's board.
    #[must_use]
    #[inline]
    pub fn back(&self, place: TurnedBox, cell: u8) -> u8 {
        self.back[usize::from(place.turn)][usize::from(cell)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_games::{board::Position, player::built_in};

    /// Michie's machine had 304 boxes: 1, 12, 108 and 183 for its four moves.
    #[test]
    fn the_number_of_boxes_matches_michies() {
        let count =
            |side: Side, stones: u32| Boxes::get().boards(side).iter().filter(|board| board.pieces() == stones).count();
        assert_eq!([0, 2, 4, 6].map(|stones| count(Side::X, stones)), [1, 12, 108, 183]);
        assert_eq!([1, 3, 5, 7].map(|stones| count(Side::O, stones)), [3, 38, 153, 95]);
        assert_eq!(Side::BOTH.map(|side| Boxes::get().boards(side).len()), [304, 289]);
    }

    #[test]
    fn boards_lead_to_their_boxes_and_back() {
        let (geometry, boxes) = (tic_tac_toe(), Boxes::get());
        let mut perfect = built_in("perfect", geometry).unwrap();
        let mut board_count = 0;
        for code in boxes.codes() {
            let stone =
                |cell: u8, side: Side| u64::from(code / POWERS[usize::from(cell)] % 3 == side as u16 + 1) << cell;
            let mask = |side| (0..9).fold(0, |mask, cell| mask | stone(cell, side));
            let board = Board { x: mask(Side::X), o: mask(Side::O) };
            assert_eq!(code_of(board), *code);
            let node = boxes.node(*code);
            assert_eq!((node.over, u64::from(node.empty)), (geometry.outcome(board), geometry.legal(board)));
            board_count += 1;
            if node.over.is_some() {
                assert_eq!((node.place, node.kept), (None, 0));
                continue;
            }
            let position = Position::of(geometry, board);
            let kept =
                perfect.play.shares(geometry, position).unwrap().iter().fold(0, |mask, (cell, _)| mask | 1 << cell);
            let wins = position.wins(geometry, board.to_move());
            // If there are several wins, the player without a file knows only the immediate ones.
            assert!(if wins == 0 { u64::from(node.kept) == kept } else { u64::from(node.kept) & kept == kept });
            let Some(place) = node.place else {
                assert_eq!(node.empty.count_ones(), 1);
                continue;
            };
            let of_box = boxes.boards(board.to_move())[usize::from(place.number)];
            let symmetry = &geometry.symmetries()[usize::from(place.turn)];
            assert_eq!(symmetry.board(board), of_box);
            (0..9).for_each(|cell| assert_eq!(symmetry.cell(boxes.back(place, cell)), cell));
        }
        assert_eq!(board_count, 5478);
    }

    #[test]
    fn images_of_a_move_share_one_cell() {
        let distinct = |text: &str| distinct(tic_tac_toe().board_of(text).unwrap()).count_ones();
        assert_eq!((distinct("........."), distinct("X........"), distinct("XO.......")), (3, 5, 7));
    }
}
