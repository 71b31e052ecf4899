//! The reference implementation of [`super::game`] on ordinary boards, for tests and benchmarks.

use super::{
    game::{Adversary, MoveTally, on_board},
    player::Code,
};
use evoxo_common::rng::{Generator, below};
use evoxo_games::board::{Board, Outcome, tic_tac_toe};
use evoxo_games::index::{Strings, code_of, numbers, ruled};

/// The same as [`super::game::game`] for the same random numbers, but on boards, and with moves chosen as for exact odds.
pub fn game(
    code: Code,
    genome: &mut [u8],
    opponent: Adversary<'_>,
    rng: &mut Generator,
    tally: &mut MoveTally,
) -> Outcome {
    let geometry = tic_tac_toe();
    let mut board = Board::EMPTY;
    loop {
        if let Some(outcome) = geometry.outcome(board) {
            tally.wins += u32::from(outcome == Outcome::Win(code.side));
            tally.losses += u32::from(outcome == Outcome::Win(code.side.other()));
            return outcome;
        }
        let own = board.to_move() == code.side;
        let chosen = match opponent {
            Adversary::Random { rules } if !own => match ruled(board).filter(|_| rules) {
                Some(cell) => 1 << on_board(cell),
                None => geometry.legal(board),
            },
            Adversary::String(other, string) if !own => other.choose(string, board),
            _ => code.choose(genome, board),
        };
        let count = u64::from(chosen.count_ones());
        let broken = own && !(code.strings == Strings::Short && ruled(board).is_some());
        let decision = code.decision(genome, code_of(board)).filter(|_| broken);
        let numbers: Vec<u8> = numbers(chosen).collect();
        let taken = decision.filter(|decision| board.occupied() >> on_board(decision.cell) & 1 == 1);
        let random = matches!(opponent, Adversary::Random { .. }) && !own && chosen == geometry.legal(board);
        let unruled = !matches!(opponent, Adversary::Random { rules: true } if ruled(board).is_some());
        let asked =
            if own { taken.is_some() } else { count > 1 || (random && unruled) || opponent_broken(opponent, board) };
        let cell = if asked { numbers[below(rng, count) as usize] } else { numbers[0] };
        if let Some(decision) = taken {
            code.repair(genome, decision, cell);
            tally.repairs += 1;
        }
        board = board.play(on_board(cell));
    }
}

/// Whether the opponent's string names a taken cell on this board.
fn opponent_broken(opponent: Adversary<'_>, board: Board) -> bool {
    let Adversary::String(code, genome) = opponent else { return false };
    let ruled = code.strings == Strings::Short && ruled(board).is_some();
    let decision = code.decision(genome, code_of(board)).filter(|_| !ruled);
    decision.is_some_and(|decision| board.occupied() >> on_board(decision.cell) & 1 == 1)
}
