//! A string's exact odds against a random mover, in floating point. The walk is the same as in [`evoxo_games::odds`], but
//! fast enough for the best string of every generation.

use super::player::Code;
use evoxo_games::board::{Board, Outcome, cells, tic_tac_toe};

/// The probabilities to win, to draw and to lose.
pub type Odds = [f64; 3];

/// The greatest probability to win that any player has, as X and as O, against a mover that takes any empty cell.
pub const WINS_MOST: [f64; 2] = [191.0 / 192.0, 887.0 / 945.0];
/// The probability that such a mover wins against another one, as X and as O. Its probability to lose is the other side's.
pub const WINS_AT_RANDOM: [f64; 2] = [737.0 / 1260.0, 121.0 / 420.0];

/// The odds of a string against a mover that takes any empty cell. With `rules`, the mover first completes or blocks a line;
/// several such cells are equally likely, as in [`evoxo_games::odds`]. If the string names a taken cell, it plays any empty
/// cell.
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
    use std::collections::BTreeMap;

    use evoxo_common::rng::Stream;
    use evoxo_games::board::Side;

    /// The probability that a side wins against a random other side. With `best` the side takes the best cell for this,
    /// otherwise a random one.
    fn wins(side: Side, best: bool, board: Board, known: &mut BTreeMap<Board, f64>) -> f64 {
        if let Some(outcome) = tic_tac_toe().outcome(board) {
            return f64::from(u8::from(outcome == Outcome::Win(side)));
        }
        if let Some(known) = known.get(&board) {
            return *known;
        }
        let next: Vec<f64> =
            cells(tic_tac_toe().legal(board)).map(|cell| wins(side, best, board.play(cell), known)).collect();
        let found = match best && board.to_move() == side {
            true => next.iter().copied().fold(0.0, f64::max),
            false => next.iter().sum::<f64>() / next.len() as f64,
        };
        known.insert(board, found);
        found
    }

    #[test]
    fn the_maximum_and_random_play_match_the_chapter() {
        for (best, written) in [(true, WINS_MOST), (false, WINS_AT_RANDOM)] {
            let found = Side::BOTH.map(|side| wins(side, best, Board::EMPTY, &mut BTreeMap::new()));
            assert!(found.iter().zip(written).all(|(found, written)| (found - written).abs() < 1e-12), "{found:?}");
        }
    }

    #[test]
    fn the_odds_match_the_exact_analysis() {
        for seed in 0..8 {
            let side = Side::BOTH[seed as usize % 2];
            let (strings, classes) = (Strings::BOTH[seed as usize / 2 % 2], Classes::BOTH[seed as usize / 4]);
            let code = Code { side, strings, classes, alphabet: Alphabet::Three };
            let genome = code.random(&mut Stream::root(seed).rng());
            let exact = code.subject(&genome).exact().unwrap();
            for (rules, exact) in [(true, exact.odds), (false, exact.odds_unfiltered.unwrap())] {
                let odds = odds(code, &genome, rules);
                for (part, exact) in odds.into_iter().zip([exact.win, exact.draw, exact.loss]) {
                    assert!((part - exact.to_f64()).abs() < 1e-12, "{part} {exact}");
                }
            }
        }
    }
}
