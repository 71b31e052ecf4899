//! The odds of a machine over all its games. They are computed in floating point, not sampled: exact fractions would need
//! more bits than we have.

use evoxo_games::board::{Outcome, Side, cells};

use super::{
    boxes::{Boxes, CELLS, step},
    machine::Machine,
};

/// The probabilities to win, to draw and to lose.
pub type Odds = [f64; 3];

/// Odds of boards, by their codes.
#[derive(Debug)]
pub struct Walk {
    odds: Vec<Odds>,
}

impl Walk {
    /// Room for any machine.
    #[must_use]
    pub fn new() -> Self {
        let most = Boxes::get().codes().iter().max().map_or(0, |code| usize::from(*code));
        Self { odds: vec![[0.0; 3]; most + 1] }
    }

    /// The odds of a machine that draws beads but does not learn, against a random mover or one that takes any move that
    /// keeps the value. At an empty box it takes any empty cell with equal probability.
    pub fn odds(&mut self, machine: &Machine, perfect: bool) -> Odds {
        let boxes = Boxes::get();
        for code in boxes.codes().iter().rev() {
            let node = boxes.node(*code);
            let odds = match node.over {
                Some(Outcome::Draw) => [0.0, 1.0, 0.0],
                Some(Outcome::Win(side)) if side == machine.side => [1.0, 0.0, 0.0],
                Some(Outcome::Win(_)) => [0.0, 0.0, 1.0],
                None => self.of_next(machine, perfect, *code),
            };
            self.odds[usize::from(*code)] = odds;
        }
        self.odds[0]
    }

    /// The odds of a board, computed from those of the boards after it.
    fn of_next(&self, machine: &Machine, perfect: bool, code: u16) -> Odds {
        let node = Boxes::get().node(code);
        let side = to_move(node.empty);
        let beads = if side == machine.side { machine.on_board(code) } else { [0; CELLS] };
        let total: u32 = beads.iter().sum();
        let among = if perfect && side != machine.side { node.kept } else { node.empty };
        let (mut sum, mut weights) = ([0.0; 3], 0.0);
        for cell in cells(among.into()) {
            let weight = if total == 0 { 1.0 } else { f64::from(beads[usize::from(cell)]) };
            let next = self.odds[usize::from(code + step(cell, side))];
            (0..3).for_each(|part| sum[part] += weight * next[part]);
            weights += weight;
        }
        sum.map(|part| part / weights)
    }
}

impl Default for Walk {
    fn default() -> Self {
        Self::new()
    }
}

/// The side to move if these cells are empty.
fn to_move(empty: u16) -> Side {
    if empty.count_ones() % 2 == 1 { Side::X } else { Side::O }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::menace::{
        boxes::code_of,
        messages::Rules,
        settings::{SCHEMA, Settings},
    };
    use evoxo_games::{
        board::{Board, tic_tac_toe},
        odds::Subject,
    };

    fn rules(all_moves: bool) -> Rules {
        Rules { all_moves, ..Settings::of(&SCHEMA.defaults()).rules() }
    }

    /// The exact odds has the same odds for a machine with equally many beads everywhere, and for one with beads for a
    /// single move.
    #[test]
    fn the_odds_match_the_exact_analysis() {
        let mut walk = Walk::new();
        for side in Side::BOTH {
            let even = Machine::fresh(side, &rules(true));
            let mut one = even.clone();
            for beads in one.beads.chunks_mut(CELLS) {
                let last = beads.iter().rposition(|count| *count > 0).unwrap();
                beads.iter_mut().enumerate().for_each(|(cell, count)| *count = u32::from(cell == last));
            }
            for machine in [even, one] {
                let choose = |board: Board| {
                    let beads = machine.on_board(code_of(board));
                    let mask = (0..9).filter(|cell| beads[*cell] > 0).fold(0, |mask, cell| mask | 1 << cell);
                    if mask == 0 { tic_tac_toe().legal(board) } else { mask }
                };
                let exact = Subject { side, filtered: false, choose: Box::new(choose) }.exact().unwrap();
                let exact = exact.odds_unfiltered.unwrap();
                let odds = walk.odds(&machine, false);
                for (part, exact) in odds.into_iter().zip([exact.win, exact.draw, exact.loss]) {
                    assert!((part - exact.to_f64()).abs() < 1e-12, "{part} {exact}");
                }
                let [win, draw, loss] = walk.odds(&machine, true);
                assert!(win == 0.0 && (draw + loss - 1.0).abs() < 1e-12, "no side wins against perfect play");
            }
        }
    }
}
