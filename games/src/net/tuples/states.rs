//! The states of all lines during a game, as indices of tables.
//!
//! A line's cells are read in ascending order, the first as the lowest digit of a number in base 3 or 4. The digits are 0
//! empty, 1 own, 2 other's. With four states, 3 is an empty cell that can be played now, and 0 any other empty cell. The
//! number plus the line's index times the number of states of a line is a *configuration*, the index of a table's entry.

use crate::board::{Board, Geometry, Side, Symmetry, cells};

/// How the cells of lines are encoded as indices of tables.
#[derive(Clone, Debug)]
pub(super) struct Encoding {
    geometry: Geometry,
    states: u32,
}

impl Encoding {
    /// The encoding for this board, with 3 or 4 states per cell.
    pub(super) fn new(geometry: Geometry, states: usize) -> Self {
        Self { geometry, states: states as u32 }
    }

    /// The number of states of a line.
    pub(super) fn line_states(&self) -> usize {
        self.states.pow(self.geometry.shape().k.into()) as usize
    }

    /// The number of configurations: the states of all lines.
    pub(super) fn configurations(&self) -> usize {
        self.geometry.lines().len() * self.line_states()
    }

    /// The digit of a cell, as a side sees it.
    fn digit(&self, board: Board, side: Side, cell: u8) -> u32 {
        match (board.stones(side) >> cell & 1, board.stones(side.other()) >> cell & 1) {
            (1, _) => 1,
            (_, 1) => 2,
            _ if self.states == 4 && self.geometry.legal(board) >> cell & 1 == 1 => 3,
            _ => 0,
        }
    }

    /// The configuration of each line, as a side sees it.
    pub(super) fn configurations_of(&self, board: Board, side: Side) -> Vec<u32> {
        let state = |line: u64| {
            let digits = cells(line).map(|cell| self.digit(board, side, cell));
            digits.zip(self.weights()).map(|(digit, weight)| digit * weight).sum::<u32>()
        };
        let lines = self.geometry.lines().iter().enumerate();
        lines.map(|(index, line)| index as u32 * self.line_states() as u32 + state(*line)).collect()
    }

    /// The place values of the digits of a line.
    fn weights(&self) -> impl Iterator<Item = u32> + use<> {
        let states = self.states;
        (0..).map(move |power| states.pow(power))
    }

    /// For each symmetry and line: the image of the line, and the place value of each of the line's digits there.
    pub(super) fn images(&self) -> Vec<Vec<(usize, Vec<usize>)>> {
        let lines = self.geometry.lines();
        let symmetries = self.geometry.symmetries().iter();
        let image = |symmetry: &Symmetry, line: u64| {
            let mask = symmetry.mask(line);
            let index = lines.binary_search(&mask).expect("symmetries take lines to lines");
            let rank = |cell: u8| cells(mask).position(|other| other == symmetry.cell(cell));
            let ranks = cells(line).map(|cell| rank(cell).expect("the image of a line's cell is on its image"));
            (index, ranks.map(|rank| self.states.pow(rank as u32) as usize).collect())
        };
        symmetries.map(|symmetry| lines.iter().map(|line| image(symmetry, *line)).collect()).collect()
    }

    /// The image of a configuration; `images` is the entry of [`Encoding::images`] for a symmetry.
    pub(super) fn image(&self, images: &[(usize, Vec<usize>)], configuration: usize) -> usize {
        let (line, mut state) = (configuration / self.line_states(), configuration % self.line_states());
        let (image, weights) = &images[line];
        let mut turned = 0;
        for weight in weights {
            turned += state % self.states as usize * weight;
            state /= self.states as usize;
        }
        image * self.line_states() + turned
    }
}

/// The configurations of all boards of a game so far, as both sides see them.
#[derive(Clone, Debug)]
pub(super) struct Views {
    lines: usize,
    /// By number of stones on the board, then side, then line.
    configurations: Vec<u32>,
    boards: [Board; 65],
    stones: usize,
    changes: Vec<Change>,
    /// The changes of cell c are those from `bounds[c]` to `bounds[c + 1]`.
    bounds: Vec<usize>,
}

/// The change of one line by a stone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    /// The line's index.
    pub line: u32,
    /// The amount that is added (modulo 2^32) to the configuration as the stone's owner sees it, and as the other side sees
    /// it.
    pub own: u32,
    other: u32,
}

impl Views {
    pub(super) fn new(encoding: &Encoding) -> Self {
        let geometry = &encoding.geometry;
        let lines = geometry.lines().len();
        let mut configurations = vec![0; 65 * 2 * lines];
        for side in Side::BOTH {
            let start = side as usize * lines;
            configurations[start..start + lines].copy_from_slice(&encoding.configurations_of(Board::EMPTY, side));
        }
        let (mut changes, mut bounds) = (Vec::new(), vec![0]);
        for cell in cells(geometry.cells()) {
            let freed = geometry.legal(Board { x: 1 << cell, o: 0 }) & !geometry.legal(Board::EMPTY);
            for (index, line) in geometry.lines().iter().enumerate() {
                if line & (1 << cell | freed) != 0 {
                    changes.push(change(encoding, index as u32, *line, cell, freed));
                }
            }
            bounds.push(changes.len());
        }
        Self { lines, configurations, boards: [Board::EMPTY; 65], stones: 0, changes, bounds }
    }

    /// Returns to the empty board.
    #[inline(always)]
    pub(super) fn reset(&mut self) {
        self.stones = 0;
    }

    /// The side to move.
    #[inline(always)]
    pub(super) fn to_move(&self) -> Side {
        if self.stones.is_multiple_of(2) { Side::X } else { Side::O }
    }

    /// The current configuration of each line.
    #[inline(always)]
    pub(super) fn now(&self, side: Side) -> &[u32] {
        self.at(self.stones, side)
    }

    /// The configuration of each line on a board of this game.
    #[inline(always)]
    pub(super) fn of(&self, board: Board, side: Side) -> &[u32] {
        let stones = board.pieces() as usize;
        assert!(
            stones <= self.stones && self.boards[stones] == board,
            "a board that did not occur in this game was learnt"
        );
        self.at(stones, side)
    }

    #[inline(always)]
    fn at(&self, stones: usize, side: Side) -> &[u32] {
        &self.configurations[(2 * stones + side as usize) * self.lines..][..self.lines]
    }

    /// The changes of all lines by a stone on this cell.
    #[inline(always)]
    pub(super) fn changes(&self, cell: u32) -> &[Change] {
        &self.changes[self.bounds[cell as usize]..self.bounds[cell as usize + 1]]
    }

    /// Takes a cell for the side to move.
    #[inline(always)]
    pub(super) fn play(&mut self, cell: u8) {
        let side = self.to_move() as usize;
        let (before, after) = self.configurations.split_at_mut(2 * (self.stones + 1) * self.lines);
        let after = &mut after[..2 * self.lines];
        after.copy_from_slice(&before[2 * self.stones * self.lines..]);
        let (x, o) = after.split_at_mut(self.lines);
        let (own, other) = if side == 0 { (x, o) } else { (o, x) };
        for change in &self.changes[self.bounds[usize::from(cell)]..self.bounds[usize::from(cell) + 1]] {
            let line = change.line as usize;
            own[line] = own[line].wrapping_add(change.own);
            other[line] = other[line].wrapping_add(change.other);
        }
        let board = self.boards[self.stones].play(cell);
        self.stones += 1;
        self.boards[self.stones] = board;
    }
}

/// The change of a line by a stone on `cell`, which makes the cells `freed` playable.
fn change(encoding: &Encoding, index: u32, line: u64, cell: u8, freed: u64) -> Change {
    let mut change = Change { line: index, own: 0, other: 0 };
    for (place, weight) in cells(line).zip(encoding.weights()) {
        let four = encoding.states == 4;
        if place == cell {
            let before = if four { 3 } else { 0 };
            change.own = change.own.wrapping_add(weight.wrapping_mul(1_u32.wrapping_sub(before)));
            change.other = change.other.wrapping_add(weight.wrapping_mul(2_u32.wrapping_sub(before)));
        } else if four && freed >> place & 1 == 1 {
            change.own = change.own.wrapping_add(3 * weight);
            change.other = change.other.wrapping_add(3 * weight);
        }
    }
    change
}
