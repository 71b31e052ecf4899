//! A machine of matchboxes. It plays its games as fast as possible, on codes of boards, with everything else looked up.

use evoxo_common::rng::{Generator, below};
use evoxo_games::board::{Board, Outcome, Side, cells, tic_tac_toe};

use super::{
    boxes::{Boxes, CELLS, distinct, step},
    messages::Rules,
};

/// The most beads that a move can have.
pub const BEADS_MAX: u32 = 1_000_000;

/// The most moves of a side for which there are boxes.
const MOVES: usize = 4;

/// A machine: the beads in the boxes of a side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The side that the machine plays.
    pub side: Side,
    /// Nine numbers for each box, in the order of [`Boxes::boards`].
    pub beads: Vec<u32>,
}

/// The opponent of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opponent {
    /// Takes any empty cell with equal probability.
    Random,
    /// Takes any move that keeps the value of the board, with equal probability.
    Perfect,
    /// A machine of the other side, which learns too.
    Machine(Machine),
}

/// How a game ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The outcome; a side that resigned has lost.
    pub outcome: Outcome,
    /// The side that resigned at an empty box.
    pub resigned: Option<Side>,
}

/// The beads in a box at the start.
#[must_use]
pub fn fresh_box(board: Board, rules: &Rules) -> [u32; CELLS] {
    let moves = if rules.all_moves { tic_tac_toe().legal(board) } else { distinct(board) };
    let mut beads = [0; CELLS];
    cells(moves).for_each(|cell| beads[usize::from(cell)] = rules.beads[board.pieces() as usize / 2]);
    beads
}

/// The number of beads of a move after a game.
#[must_use]
pub fn reinforced(beads: u32, reward: i32) -> u32 {
    beads.saturating_add_signed(reward).min(BEADS_MAX)
}

/// The reward for a side's moves in a game.
#[must_use]
pub fn reward(rules: &Rules, side: Side, outcome: Outcome) -> i32 {
    match outcome {
        Outcome::Draw => rules.draw,
        Outcome::Win(winner) if winner == side => rules.win,
        Outcome::Win(_) => rules.loss,
    }
}

impl Machine {
    /// A machine before its first game.
    #[must_use]
    pub fn fresh(side: Side, rules: &Rules) -> Self {
        let boards = Boxes::get().boards(side).iter();
        Self { side, beads: boards.flat_map(|board| fresh_box(*board, rules)).collect() }
    }

    /// A machine with these beads.
    ///
    /// # Errors
    /// A message if there are too many or too few numbers, or if a taken cell has beads.
    pub fn new(side: Side, beads: Vec<u32>) -> Result<Self, String> {
        let boards = Boxes::get().boards(side);
        if beads.len() != CELLS * boards.len() {
            let (count, wanted) = (beads.len(), CELLS * boards.len());
            return Err(format!("a machine that plays {} has {wanted} numbers of beads, not {count}", side.letter()));
        }
        if let Some(count) = beads.iter().find(|count| **count > BEADS_MAX) {
            return Err(format!("a move has {count} beads: at most {BEADS_MAX}"));
        }
        for (board, beads) in boards.iter().zip(beads.chunks(CELLS)) {
            if let Some(cell) = cells(board.occupied()).find(|cell| beads[usize::from(*cell)] > 0) {
                let (cell, text) = (tic_tac_toe().cell_name(cell), tic_tac_toe().board_text(*board));
                return Err(format!("the cell {cell} has beads on the board \"{text}\", but is taken"));
            }
        }
        Ok(Self { side, beads })
    }

    /// The beads of a box.
    #[must_use]
    pub fn beads(&self, number: usize) -> &[u32] {
        &self.beads[CELLS * number..][..CELLS]
    }

    /// The beads of the moves on a board, by the cells of that board. All are 0 if the board has no box, or if its box is
    /// empty.
    #[must_use]
    pub fn on_board(&self, code: u16) -> [u32; CELLS] {
        let mut found = [0; CELLS];
        if let Some(place) = Boxes::get().node(code).place {
            for (cell, count) in (0..).zip(self.beads(place.number.into())) {
                found[usize::from(Boxes::get().back(place, cell))] = *count;
            }
        }
        found
    }

    /// Draws a bead from a box. Returns the index of its number among all beads, and the cell of the box's board; `None` if
    /// the machine resigns.
    fn draw(&mut self, number: u16, rules: &Rules, rng: &mut Generator) -> Option<(usize, u8)> {
        let first = CELLS * usize::from(number);
        let mut total: u32 = self.beads(number.into()).iter().sum();
        if total == 0 {
            if rules.resigns {
                return None;
            }
            let fresh = fresh_box(Boxes::get().boards(self.side)[usize::from(number)], rules);
            self.beads[first..first + CELLS].copy_from_slice(&fresh);
            total = fresh.iter().sum();
        }
        let mut lot = below(rng, total.into()) as u32;
        let mut at = first;
        while lot >= self.beads[at] {
            lot -= self.beads[at];
            at += 1;
        }
        Some((at, (at - first) as u8))
    }
}

/// The moves that a machine made from its boxes.
#[derive(Default)]
struct Made {
    at: [usize; MOVES],
    count: usize,
}

impl Made {
    fn learn(&self, machine: &mut Machine, rules: &Rules, outcome: Outcome) {
        let reward = reward(rules, machine.side, outcome);
        for at in &self.at[..self.count] {
            machine.beads[*at] = reinforced(machine.beads[*at], reward);
        }
    }
}

/// A random cell of a mask; all are equally likely.
#[inline]
fn any_of(mut mask: u16, rng: &mut Generator) -> u8 {
    for _ in 0..below(rng, mask.count_ones().into()) {
        mask &= mask - 1;
    }
    mask.trailing_zeros() as u8
}

/// Plays a game. The machine learns from it, and so does an opponent that is a machine.
pub fn game(machine: &mut Machine, opponent: &mut Opponent, rules: &Rules, rng: &mut Generator) -> Ending {
    let boxes = Boxes::get();
    let perfect = matches!(opponent, Opponent::Perfect);
    let mut made: [Made; 2] = Default::default();
    let (mut code, mut side) = (0, Side::X);
    let ending = loop {
        let node = boxes.node(code);
        if let Some(outcome) = node.over {
            break Ending { outcome, resigned: None };
        }
        let drawing = match opponent {
            _ if side == machine.side => Some(&mut *machine),
            Opponent::Machine(other) => Some(other),
            _ => None,
        };
        let cell = match (drawing, node.place) {
            (None, _) => any_of(if perfect { node.kept } else { node.empty }, rng),
            (Some(_), None) => node.empty.trailing_zeros() as u8,
            (Some(drawing), Some(place)) => {
                let Some((at, cell)) = drawing.draw(place.number, rules, rng) else {
                    break Ending { outcome: Outcome::Win(side.other()), resigned: Some(side) };
                };
                let made = &mut made[side as usize];
                made.at[made.count] = at;
                made.count += 1;
                boxes.back(place, cell)
            }
        };
        code += step(cell, side);
        side = side.other();
    };
    made[machine.side as usize].learn(machine, rules, ending.outcome);
    if let Opponent::Machine(other) = opponent {
        made[other.side as usize].learn(other, rules, ending.outcome);
    }
    ending
}
