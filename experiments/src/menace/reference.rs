//! The reference implementation of [`super::machine::game`], for tests and benchmarks. It plays on boards and finds boxes by
//! their canonical board.

use std::collections::BTreeMap;

use evoxo_common::rng::{Generator, below};
use evoxo_games::{
    board::{Board, Geometry, Outcome, Position, Side, cells, tic_tac_toe},
    player::random::any_of,
};

use super::{
    boxes::{Boxes, CELLS},
    machine::{self, Ending, Opponent, fresh_box, reinforced, reward},
    messages::Rules,
};

/// The boxes of a side, by their boards.
type Machine = BTreeMap<Board, [u32; CELLS]>;

fn of(machine: &machine::Machine) -> Machine {
    let of_box = |(number, board): (usize, &Board)| (*board, std::array::from_fn(|cell| machine.beads(number)[cell]));
    Boxes::get().boards(machine.side).iter().enumerate().map(of_box).collect()
}

fn into(machine: &mut machine::Machine, boxes: &Machine) {
    let boards = Boxes::get().boards(machine.side).iter();
    machine.beads = boards.flat_map(|board| boxes[board]).collect();
}

/// The value of a position for the side to move, by exhaustive search.
fn value(geometry: &Geometry, board: Board) -> i8 {
    match geometry.outcome(board) {
        Some(Outcome::Draw) => 0,
        Some(Outcome::Win(_)) => -1,
        None => cells(geometry.legal(board)).map(|cell| -value(geometry, board.play(cell))).max().unwrap_or(0),
    }
}

/// The moves that keep the value of a board, as a mask.
fn kept(geometry: &Geometry, board: Board) -> u64 {
    let best = value(geometry, board);
    let keeps = |cell: &u8| -value(geometry, board.play(*cell)) == best;
    cells(geometry.legal(board)).filter(keeps).fold(0, |mask, cell| mask | 1 << cell)
}

/// The same as [`super::machine::game`] for the same random numbers.
pub fn game(machine: &mut machine::Machine, opponent: &mut Opponent, rules: &Rules, rng: &mut Generator) -> Ending {
    let geometry = tic_tac_toe();
    let mut machines: [Option<Machine>; 2] = [None, None];
    machines[machine.side as usize] = Some(of(machine));
    if let Opponent::Machine(other) = opponent {
        machines[other.side as usize] = Some(of(other));
    }
    let mut made: Vec<(Side, Board, u8)> = Vec::new();
    let mut position = Position::START;
    let ending = loop {
        let board = position.board();
        if let Some(outcome) = geometry.outcome(board) {
            break Ending { outcome, resigned: None };
        }
        let (side, legal) = (board.to_move(), geometry.legal(board));
        let cell = match &mut machines[side as usize] {
            None if *opponent == Opponent::Perfect => any_of(kept(geometry, board), rng),
            None => any_of(legal, rng),
            Some(_) if legal.count_ones() == 1 => legal.trailing_zeros() as u8,
            Some(boxes) => {
                let (canonical, symmetry) = geometry.canonical(board);
                let beads = boxes.get_mut(&canonical).expect("there is a box wherever a side can choose");
                if beads.iter().sum::<u32>() == 0 {
                    if rules.resigns {
                        break Ending { outcome: Outcome::Win(side.other()), resigned: Some(side) };
                    }
                    *beads = fresh_box(canonical, rules);
                }
                let all: Vec<u8> = (0..9).flat_map(|cell| vec![cell; beads[usize::from(cell)] as usize]).collect();
                let drawn = all[below(rng, all.len() as u64) as usize];
                made.push((side, canonical, drawn));
                (0..9).find(|cell| symmetry.cell(*cell) == drawn).expect("a symmetry moves some cell to each")
            }
        };
        position = position.play(geometry, cell);
    };
    for (side, board, cell) in made {
        let boxes = machines[side as usize].as_mut().expect("only a machine draws beads");
        let beads = &mut boxes.get_mut(&board).expect("it was drawn from")[usize::from(cell)];
        *beads = reinforced(*beads, reward(rules, side, ending.outcome));
    }
    for (side, boxes) in Side::BOTH.into_iter().zip(&machines) {
        match (boxes, &mut *opponent) {
            (Some(boxes), _) if side == machine.side => into(machine, boxes),
            (Some(boxes), Opponent::Machine(other)) => into(other, boxes),
            _ => {}
        }
    }
    ending
}
