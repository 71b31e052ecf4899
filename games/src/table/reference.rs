//! The reference implementation: the same games played on plain boards, with nothing folded or precomputed. Tests compare the
//! fast kernels with it, and the benchmark prints both.

use super::Score;
use super::genome::TableGenome;
use crate::board::{Board, Outcome, cells, tic_tac_toe};
use crate::odds::Odds;
use evoxo_common::rng::Generator;
use rand_core::Rng;

/// A player's exact odds against a random mover, both with the filter. This is the reference implementation of
/// [`super::exact`].
#[must_use]
pub fn exact(player: &TableGenome) -> Odds {
    odds(player, Board::EMPTY)
}

fn odds(player: &TableGenome, board: Board) -> Odds {
    let geometry = tic_tac_toe();
    if let Some(outcome) = geometry.outcome(board) {
        return Odds::of_outcome(outcome, player.side());
    }
    match cells(geometry.forced(board)).next() {
        Some(cell) => odds(player, board.play(cell)),
        None if board.to_move() == player.side() => odds(player, board.play(decision(player, board))),
        None => {
            let replies = cells(geometry.legal(board)).map(|cell| odds(player, board.play(cell)));
            Odds::mean(&replies.collect::<Vec<_>>())
        }
    }
}

/// Plays games against a random mover, both with the filter, on boards. This is the reference of sampled scores: it gives the
/// same counts for the same random numbers.
pub fn sampled(player: &TableGenome, games: u32, rng: &mut Generator) -> Score {
    let mut score = Score::default();
    for _ in 0..games {
        match game(player, rng.next_u64()) {
            Outcome::Draw => {}
            Outcome::Win(side) if side == player.side() => score.wins += 1,
            Outcome::Win(_) => score.losses += 1,
        }
    }
    score
}

/// Plays one game, whose random choices all come from one word.
fn game(player: &TableGenome, mut word: u64) -> Outcome {
    let geometry = tic_tac_toe();
    let mut board = Board::EMPTY;
    loop {
        if let Some(outcome) = geometry.outcome(board) {
            return outcome;
        }
        let cell = match cells(geometry.forced(board)).next() {
            Some(cell) => cell,
            None if board.to_move() == player.side() => {
                board = geometry.canonical(board).0;
                decision(player, board)
            }
            None => {
                let options = geometry.legal(board);
                let product = u128::from(word) * u128::from(options.count_ones());
                word = product as u64;
                cells(options).nth((product >> 64) as usize).expect("the number drawn is less than the options")
            }
        };
        board = board.play(cell);
    }
}

fn decision(player: &TableGenome, board: Board) -> u8 {
    player.choose(board).expect("a board on which neither the filter nor the opponent moves is a decision board")
}
