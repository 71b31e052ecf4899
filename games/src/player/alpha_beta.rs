//! Look-ahead: alpha-beta search (Knuth and Moore 1975) to a depth, with any evaluation, and exact late in the game.
//!
//! Values are those of plain minimax to the same depth. The moves that are cut away can only lose: moves other than a forced
//! block, and moves that let the opponent win at once. Late positions are solved to the end if this takes no more than a
//! fixed number of nodes. Nothing is random: among equal moves the first in a fixed order is chosen, and earlier questions to
//! a player make no difference.

use crate::board::{Board, Geometry, Position, cells};

/// The deepest search, in plies.
pub const DEPTH_MAX: u32 = 6;

/// The most nodes of the exact search of one position: some milliseconds.
pub const SOLVER_NODES: u32 = 200_000;

/// The value of a won game, reduced a little for every ply until the win. It is greater than any evaluation, which lies
/// between -1 and 1.
const WIN: f32 = 2.0;
const PLY: f32 = 1.0 / 128.0;

/// A move, with the result of the search for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// The cell to take.
    pub cell: u8,
    /// The value for the side to move: 1.5 to 2 for a win that is found (more if it is sooner), and likewise below 0 for a
    /// loss; 0 for a certain draw; otherwise between -1 and 1.
    pub value: f32,
    /// Whether the value is that of perfect play. It then only says who wins, not how soon.
    pub exact: bool,
}

/// A player that looks ahead. `E` evaluates a position that is not over, between -1 and 1, for the side to move.
#[derive(Debug)]
pub struct AlphaBeta<'g, E> {
    geometry: &'g Geometry,
    depth: u32,
    evaluate: E,
    solver: Solver<'g>,
}

impl<'g, E: FnMut(Position) -> f32> AlphaBeta<'g, E> {
    /// A player that looks `depth` plies ahead, 1 to [`DEPTH_MAX`].
    ///
    /// # Panics
    /// If the depth is out of range.
    pub fn new(geometry: &'g Geometry, depth: u32, evaluate: E) -> Self {
        assert!((1..=DEPTH_MAX).contains(&depth), "a search of {depth} plies, not 1 to {DEPTH_MAX}");
        Self { geometry, depth, evaluate, solver: Solver::new(geometry) }
    }

    /// The best move.
    ///
    /// # Panics
    /// If the game is over.
    pub fn choose(&mut self, position: Position) -> Choice {
        // Before half of the board is full, the solver would mostly give up.
        let late = 2 * position.board().pieces() >= self.geometry.cells().count_ones();
        if late && let Some((cell, outcome)) = self.solver.best(position) {
            return Choice { cell, value: WIN * f32::from(outcome), exact: true };
        }
        let (mut best, mut alpha) = (None, f32::NEG_INFINITY);
        for child in children(self.geometry, position, self.depth) {
            let value = self.after(position, child, self.depth, 0, alpha, f32::INFINITY);
            if value > alpha || best.is_none() {
                (best, alpha) = (Some(child), value);
            }
        }
        Choice { cell: best.expect("an unfinished game has a legal move"), value: alpha, exact: false }
    }

    /// The value of each legal move. Each move is searched by itself, including moves that win at once.
    pub fn values(&mut self, position: Position) -> Vec<Choice> {
        let late = 2 * position.board().pieces() >= self.geometry.cells().count_ones();
        let legal = position.legal(self.geometry);
        let of = |cell: u8| {
            let wins = position.wins(self.geometry, position.to_move()) >> cell & 1 == 1;
            let outcome = match (late, wins) {
                (true, true) => Some(1),
                (true, false) => self.solver.outcome(position.play(self.geometry, cell)).map(|outcome| -outcome),
                (false, _) => None,
            };
            match outcome {
                Some(outcome) => Choice { cell, value: WIN * f32::from(outcome), exact: true },
                None => {
                    let value = self.after(position, cell, self.depth, 0, f32::NEG_INFINITY, f32::INFINITY);
                    Choice { cell, value, exact: false }
                }
            }
        };
        cells(legal).map(of).collect()
    }

    /// The value of taking a cell, for the side that takes it.
    fn after(&mut self, position: Position, cell: u8, depth: u32, ply: u32, alpha: f32, beta: f32) -> f32 {
        if position.wins(self.geometry, position.to_move()) >> cell & 1 == 1 {
            return WIN - PLY * ply as f32;
        }
        -self.value(position.play(self.geometry, cell), depth - 1, ply + 1, -beta, -alpha)
    }

    /// The value of a position that no side has won, for the side to move.
    fn value(&mut self, position: Position, depth: u32, ply: u32, mut alpha: f32, beta: f32) -> f32 {
        if position.board().occupied() == self.geometry.cells() {
            return 0.0;
        }
        if depth == 0 {
            return (self.evaluate)(position);
        }
        let mut best = f32::NEG_INFINITY;
        for cell in children(self.geometry, position, depth) {
            best = best.max(self.after(position, cell, depth, ply, alpha, beta));
            alpha = alpha.max(best);
            if alpha >= beta {
                break;
            }
        }
        best
    }
}

/// The moves to search to this depth, in order: only a win, if there is one; else only a block, if the opponent's answer is
/// within the depth; else all moves, first those that do not let the opponent win on top of them.
fn children(geometry: &Geometry, position: Position, depth: u32) -> impl Iterator<Item = u8> {
    let (side, legal) = (position.to_move(), position.legal(geometry));
    let (own, other) = (position.wins(geometry, side), position.wins(geometry, side.other()));
    let masks = if own != 0 {
        [own & own.wrapping_neg(), 0]
    } else if other != 0 && depth > 1 {
        [other & other.wrapping_neg(), 0]
    } else {
        let unsafe_cells = geometry.below(position.threats(side.other()));
        [legal & !unsafe_cells, legal & unsafe_cells]
    };
    masks.into_iter().flat_map(cells)
}

/// Computes the result of perfect play from a position on, for the side to move: 1, 0 or -1.
#[derive(Debug)]
pub struct Solver<'g> {
    geometry: &'g Geometry,
    nodes_max: u32,
    /// The table has two to the power of `table_bits` places.
    table_bits: u32,
    /// Boards of searches so far, placed by their hash. A later board replaces an earlier one. The table is allocated when it
    /// is first needed.
    table: Vec<Entry>,
    /// The number of the current search. Entries of other searches are ignored, so an answer never depends on earlier
    /// questions.
    search: u32,
    nodes: u32,
}

/// What a search knows about a board.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    board: Board,
    search: u32,
    /// Bounds on the outcome, for the side to move.
    low: i8,
    high: i8,
}

/// The table of a player's solver has two to the power of this many places.
const TABLE_BITS: u32 = 16;

impl<'g> Solver<'g> {
    /// A solver for positions of this game.
    #[must_use]
    pub const fn new(geometry: &'g Geometry) -> Self {
        Self::with_limits(geometry, SOLVER_NODES, TABLE_BITS)
    }

    /// The same, but a search may take `nodes_max` nodes instead of [`SOLVER_NODES`], with a table of two to the power of
    /// `table_bits` places, 1 to 32.
    #[must_use]
    pub const fn with_limits(geometry: &'g Geometry, nodes_max: u32, table_bits: u32) -> Self {
        Self { geometry, nodes_max, table_bits, table: Vec::new(), search: 0, nodes: 0 }
    }

    /// The number of nodes in the last search.
    #[must_use]
    pub const fn nodes(&self) -> u32 {
        self.nodes
    }

    fn begin(&mut self) {
        if self.search == 0 || self.search == u32::MAX {
            (self.table, self.search) = (vec![Entry::default(); 1 << self.table_bits], 0);
        }
        (self.search, self.nodes) = (self.search + 1, 0);
    }

    /// The outcome of a position that no side has won; `None` if this takes too many nodes.
    pub fn outcome(&mut self, position: Position) -> Option<i8> {
        self.begin();
        self.solve(position, -1, 1)
    }

    /// The first of the best moves, with the outcome; `None` if this takes too many nodes.
    ///
    /// # Panics
    /// If the game is over.
    pub fn best(&mut self, position: Position) -> Option<(u8, i8)> {
        self.begin();
        let mut best: Option<(u8, i8)> = None;
        // Among losing moves the safe ones come first, which delays the loss.
        for cell in children(self.geometry, position, 2) {
            let least = best.map_or(-1, |(_, outcome)| outcome);
            let outcome = self.after(position, cell, least, 1)?;
            if best.is_none_or(|(_, best)| outcome > best) {
                best = Some((cell, outcome));
            }
            if outcome == 1 {
                break;
            }
        }
        Some(best.expect("an unfinished game has a legal move"))
    }

    /// All of the best moves as a mask, with the outcome. If some moves win at once, only those are included. `None` if this
    /// takes too many nodes.
    pub fn all_best(&mut self, position: Position) -> Option<(u64, i8)> {
        let wins = position.wins(self.geometry, position.to_move());
        if wins != 0 {
            return Some((wins, 1));
        }
        let outcome = self.outcome(position)?;
        // The same search continues. For each move it only finds out whether the move keeps the outcome.
        let mut best = 0;
        for cell in cells(position.legal(self.geometry)) {
            if self.after(position, cell, outcome - 1, outcome)? >= outcome {
                best |= 1 << cell;
            }
        }
        Some((best, outcome))
    }

    fn after(&mut self, position: Position, cell: u8, alpha: i8, beta: i8) -> Option<i8> {
        if position.wins(self.geometry, position.to_move()) >> cell & 1 == 1 {
            return Some(1);
        }
        Some(-self.solve(position.play(self.geometry, cell), -beta, -alpha)?)
    }

    /// The outcome, if it is between alpha and beta. Otherwise a bound on it, beyond alpha or beta.
    fn solve(&mut self, position: Position, alpha: i8, beta: i8) -> Option<i8> {
        self.nodes += 1;
        if self.nodes > self.nodes_max {
            return None;
        }
        let side = position.to_move();
        let legal = position.legal(self.geometry);
        if legal == 0 {
            return Some(0);
        }
        if position.wins(self.geometry, side) != 0 {
            return Some(1);
        }
        let blocks = position.wins(self.geometry, side.other());
        let allowed = if blocks == 0 { legal } else { blocks };
        let moves = allowed & !self.geometry.below(position.threats(side.other()));
        if blocks.count_ones() > 1 || moves == 0 {
            return Some(-1);
        }
        let place = place(position.board(), self.table_bits);
        let known =
            Some(self.table[place]).filter(|known| (known.board, known.search) == (position.board(), self.search));
        let (mut low, mut high) = known.map_or((-1, 1), |known| (known.low, known.high));
        let (start, beta) = (alpha.max(low), beta.min(high));
        if start >= beta {
            return Some(start);
        }
        let (mut alpha, mut best) = (start, -1);
        let (order, count) = self.ordered(position, moves);
        for cell in &order[..count] {
            best = best.max(-self.solve(position.play(self.geometry, *cell), -beta, -alpha)?);
            alpha = alpha.max(best);
            if alpha >= beta {
                break;
            }
        }
        // A value that raised alpha is a lower bound, and a value below beta is an upper bound. If both hold, it is the
        // outcome.
        if best > start {
            low = best;
        }
        if best < beta {
            high = best;
        }
        self.table[place] = Entry { board: position.board(), search: self.search, low, high };
        Some(best)
    }

    /// These moves in order, and their number. Moves that leave more threats of the own side come first; threats that can be
    /// played at once count more than all others.
    fn ordered(&self, position: Position, moves: u64) -> ([u8; 64], usize) {
        let side = position.to_move();
        let (mut order, mut keys, mut count) = ([0; 64], [0; 64], 0);
        for cell in cells(moves) {
            let after = position.play(self.geometry, cell);
            let key = 64 * after.wins(self.geometry, side).count_ones() + after.threats(side).count_ones();
            let mut at = count;
            while at > 0 && keys[at - 1] < key {
                (keys[at], order[at]) = (keys[at - 1], order[at - 1]);
                at -= 1;
            }
            (keys[at], order[at]) = (key, cell);
            count += 1;
        }
        (order, count)
    }
}

/// The place of a board in a table of two to the power of `bits` places.
fn place(board: Board, bits: u32) -> usize {
    let mixed = (board.x ^ board.o.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29 ^ board.o).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> (64 - bits)) as usize
}

/// A plain evaluation for any geometry, between -1 and 1, for the side to move. A line on which only one side has stones
/// counts for that side, by 4 to the power of their number, minus 1. A value of 1 corresponds to all lines having k - 1
/// stones.
#[must_use]
pub fn line_count(geometry: &Geometry, position: Position) -> f32 {
    let (own, other) =
        (position.board().stones(position.to_move()), position.board().stones(position.to_move().other()));
    let k = u32::from(geometry.shape().k);
    let worth = |stones: u64| (1_i64 << (2 * stones.count_ones())) - 1;
    let sum: i64 = geometry.lines().iter().fold(0, |sum, line| match (line & own, line & other) {
        (mine, 0) => sum + worth(mine),
        (0, theirs) => sum - worth(theirs),
        _ => sum,
    });
    let scale = geometry.lines().len() as f32 * (1_i64 << (2 * (k - 1))) as f32;
    (sum as f32 / scale).clamp(-1.0, 1.0)
}

/// [`AlphaBeta`] with [`line_count`]: the built-in player "alpha-beta".
pub fn built_in(geometry: &Geometry, depth: u32) -> AlphaBeta<'_, impl FnMut(Position) -> f32 + '_> {
    AlphaBeta::new(geometry, depth, move |position| line_count(geometry, position))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        board::{Outcome, connect_four, qubic, score_four, tic_tac_toe},
        player::random::random,
    };
    use evoxo_common::rng::Stream;
    use proptest::prelude::*;

    /// The reference implementation: searches every move to the same depth.
    fn minimax(geometry: &Geometry, board: Board, depth: u32, ply: u32) -> f32 {
        match geometry.outcome(board) {
            Some(Outcome::Draw) => return 0.0,
            // The side that has just moved has won.
            Some(Outcome::Win(_)) => return -(WIN - PLY * (ply - 1) as f32),
            None if depth == 0 => return line_count(geometry, Position::of(geometry, board)),
            None => {}
        }
        let values = cells(geometry.legal(board)).map(|cell| -minimax(geometry, board.play(cell), depth - 1, ply + 1));
        values.fold(f32::NEG_INFINITY, f32::max)
    }

    /// Perfect play, by exhaustive search.
    fn perfect(geometry: &Geometry, board: Board) -> i8 {
        match geometry.outcome(board) {
            Some(Outcome::Draw) => 0,
            Some(Outcome::Win(_)) => -1,
            None => cells(geometry.legal(board)).map(|cell| -perfect(geometry, board.play(cell))).max().unwrap(),
        }
    }

    /// A position after `plies` random moves, if the game is not over by then.
    fn drawn(geometry: &Geometry, plies: usize, seed: u64) -> Option<Position> {
        let mut rng = Stream::root(seed).rng();
        let mut position = Position::START;
        for _ in 0..plies {
            position = position.play(geometry, random(position, geometry, &mut rng));
            if geometry.outcome(position.board()).is_some() {
                return None;
            }
        }
        Some(position)
    }

    proptest! {
        #[test]
        fn values_match_minimax(game in 0..4_usize, plies in 0..28_usize, depth in 1..4_u32, seed: u64) {
            let geometry = [tic_tac_toe(), connect_four(), qubic(), score_four()][game];
            let depth = if game == 2 { depth.min(2) } else { depth };
            let plies = plies.min(geometry.cells().count_ones() as usize / 2 - 1);
            if let Some(position) = drawn(geometry, plies, seed) {
                let choice = built_in(geometry, depth).choose(position);
                prop_assert_eq!(choice.value, minimax(geometry, position.board(), depth, 0));
                let after = position.board().play(choice.cell);
                prop_assert_eq!(choice.value, -minimax(geometry, after, depth - 1, 1));
            }
        }

        #[test]
        fn late_positions_are_solved(game in 0..3_usize, empty in 1..10_usize, seed: u64) {
            let geometry = [tic_tac_toe(), connect_four(), score_four()][game];
            let plies = geometry.cells().count_ones() as usize - empty.min(9);
            if let Some(position) = drawn(geometry, plies, seed) {
                let expected = perfect(geometry, position.board());
                let mut solver = Solver::new(geometry);
                prop_assert_eq!(solver.outcome(position), Some(expected));
                let (cell, outcome) = solver.best(position).unwrap();
                prop_assert_eq!(outcome, expected);
                let after = position.board().play(cell);
                prop_assert_eq!(-perfect(geometry, after), expected, "the move keeps the outcome");
                let wins = position.wins(geometry, position.to_move());
                let keeps = |cell: &u8| -perfect(geometry, position.board().play(*cell)) == expected;
                let all = cells(geometry.legal(position.board())).filter(keeps).fold(0, |all, cell| all | 1 << cell);
                prop_assert_eq!(solver.all_best(position), Some((if wins == 0 { all } else { wins }, expected)));
            }
        }
    }

    /// Earlier questions to a solver change neither what it solves nor what it gives up.
    #[test]
    fn answers_do_not_depend_on_earlier_answers() {
        let mut solver = Solver::new(score_four());
        let positions: Vec<Position> = (0..200).filter_map(|seed| drawn(score_four(), 32, seed)).take(8).collect();
        let once: Vec<_> = positions.iter().map(|position| Solver::new(score_four()).best(*position)).collect();
        let again: Vec<_> = positions.iter().map(|position| solver.best(*position)).collect();
        let nodes = solver.nodes;
        assert_eq!(once, again);
        let last = *positions.last().unwrap();
        assert_eq!((solver.best(last), solver.nodes), (again[7], nodes), "the search takes as many nodes as before");
    }

    #[test]
    fn tic_tac_toe_is_a_draw() {
        assert_eq!(Solver::new(tic_tac_toe()).outcome(Position::START), Some(0));
    }

    /// With 36 of 64 stones on the board, almost every position is solved within the allowed nodes.
    #[test]
    fn positions_with_36_stones_are_solved() {
        let mut solver = Solver::new(score_four());
        let positions: Vec<Position> = (0..400).filter_map(|seed| drawn(score_four(), 36, seed)).collect();
        let solved = positions.iter().filter(|position| solver.outcome(**position).is_some()).count();
        assert!(positions.len() > 50 && 20 * solved >= 19 * positions.len(), "{solved} of {}", positions.len());
    }
}
