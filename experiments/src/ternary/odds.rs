//! A string's exact odds against a random mover in floating point: the same walk as [`evoxo_games::audit`], but fast
//! enough for the best string of every generation.

use super::player::Code;
use evoxo_games::board::{Board, Outcome, cells, tic_tac_toe};

/// Probabilities to win, to draw and to lose.
pub type Odds = [f64; 3];

/// The odds of a string against a mover that takes any empty cell. With `rules` the mover first completes or blocks a
/// line (each of several such cells is then equally likely, as in [`evoxo_games::audit`]). Where the string names a
/// taken cell, it plays any empty one.
#[must_use]
pub fn odds(code: Code, genome: &[u8], rules: bool) -> Odds {
    walk(code, genome, rules, Board::EMPTY)
}

fn walk(code: Code, genome: &[u8], rules: bool, board: Board) -> Odds {
    let geometry = tic_tac_toe();
    match geometry.outcome(board) {
        Some(Outcome::Draw) => return [0.0, 1.0, 0.0],
        Some(Outcome::Win(side)) => return if side == code.side { [1.0, 0.0, 0.0] } else { [0.0, 0.0, 1.0] },
        None => {}
    }
    let moves = match board.to_move() == code.side {
        true => code.choose(genome, board),
        false if rules && geometry.forced(board) != 0 => geometry.forced(board),
        false => geometry.legal(board),
    };
    let mut sum = [0.0; 3];
    for cell in cells(moves) {
        let odds = walk(code, genome, rules, board.play(cell));
        (0..3).for_each(|part| sum[part] += odds[part]);
    }
    sum.map(|part| part / f64::from(moves.count_ones()))
}

#[cfg(test)]
mod tests {
    use super::super::{
        index::{Classes, Strings},
        player::Alphabet,
    };
    use super::*;
    use evoxo_common::rng::Stream;
    use evoxo_games::board::Side;

    #[test]
    fn the_odds_are_those_of_the_audit() {
        for seed in 0..8 {
            let side = Side::BOTH[seed as usize % 2];
            let (strings, classes) = (Strings::BOTH[seed as usize / 2 % 2], Classes::BOTH[seed as usize / 4]);
            let code = Code { side, strings, classes, alphabet: Alphabet::Three };
            let genome = code.random(&mut Stream::root(seed).rng());
            let audit = code.subject(&genome).audit().unwrap();
            for (rules, exact) in [(true, audit.odds), (false, audit.odds_unfiltered.unwrap())] {
                let odds = odds(code, &genome, rules);
                for (part, exact) in odds.into_iter().zip([exact.win, exact.draw, exact.loss]) {
                    assert!((part - exact.to_f64()).abs() < 1e-12, "{part} {exact}");
                }
            }
        }
    }
}
