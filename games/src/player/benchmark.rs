//! The benchmark player of van de Steeg, Drugan and Wiering, Temporal Difference Learning for the Game Tic-Tac-Toe 3D (2015),
//! section V.A, for any geometry.
//!
//! The player looks at the legal moves in random order. It plays the first move that wins, or else the first that blocks, or
//! else the first that does not let the opponent win with a stone on top of it, or else (the paper does not say) the first
//! move. The first of some moves in random order is any of them with equal probability, so nothing is shuffled here.

use super::random::any_of;
use crate::board::{Geometry, Position};
use evoxo_common::rng::Generator;

/// The cell that the player takes.
///
/// # Panics
/// If no cell is legal.
#[inline(always)]
pub fn benchmark(position: Position, geometry: &Geometry, rng: &mut Generator) -> u8 {
    any_of(benchmark_cells(position, geometry), rng)
}

/// The cells among which the player chooses, as a mask.
#[inline(always)]
pub fn benchmark_cells(position: Position, geometry: &Geometry) -> u64 {
    let side = position.to_move();
    let legal = position.legal(geometry);
    let safe = || legal & !geometry.below(position.threats(side.other()));
    let choices = [position.wins(geometry, side), position.wins(geometry, side.other()), safe()];
    choices.into_iter().find(|cells| *cells != 0).unwrap_or(legal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        board::{Board, Outcome, Side, cells, connect_four, qubic, score_four, tic_tac_toe},
        player::random::{filtered, random},
    };
    use evoxo_common::rng::{Stream, below, shuffle};
    use proptest::prelude::*;

    /// The reference implementation: the moves that the player may make, found by trying, for every order, the first move
    /// that each rule allows.
    fn allowed(board: Board, geometry: &Geometry) -> u64 {
        let (side, legal) = (board.to_move(), geometry.legal(board));
        let with = |board: Board, side: Side, cell: u8| match side {
            Side::X => Board { x: board.x | 1 << cell, ..board },
            Side::O => Board { o: board.o | 1 << cell, ..board },
        };
        let wins = |board: Board, side: Side, cell: u8| geometry.has_line(with(board, side, cell).stones(side));
        let such =
            |rule: &dyn Fn(u8) -> bool| cells(legal).filter(|cell| rule(*cell)).fold(0, |mask, cell| mask | 1 << cell);
        let safe = |cell: u8| {
            let after = with(board, side, cell);
            let freed = geometry.legal(after) & !legal;
            !cells(freed).any(|on_top| wins(after, side.other(), on_top))
        };
        let rules: [u64; 3] =
            [such(&|cell| wins(board, side, cell)), such(&|cell| wins(board, side.other(), cell)), such(&safe)];
        rules.into_iter().find(|mask| *mask != 0).unwrap_or(legal)
    }

    proptest! {
        /// The player makes exactly the moves that the written rules allow, all of them equally often.
        #[test]
        fn moves_follow_the_published_rules(
            geometry in prop::sample::select(vec![tic_tac_toe(), connect_four(), qubic(), score_four()]), seed: u64
        ) {
            let mut rng = Stream::root(seed).rng();
            let mut position = Position::START;
            while geometry.outcome(position.board()).is_none() {
                let mask = allowed(position.board(), geometry);
                let mut seen = 0;
                // One of four moves is missed by chance in 1 of 10^18 cases.
                for _ in 0..150 {
                    let cell = benchmark(position, geometry, &mut rng);
                    prop_assert!(mask >> cell & 1 == 1);
                    seen |= 1 << cell;
                }
                prop_assert!(mask.count_ones() > 4 || seen == mask, "a move is never made");
                let moves: Vec<u8> = cells(geometry.legal(position.board())).collect();
                position = position.play(geometry, moves[below(&mut rng, moves.len() as u64) as usize]);
            }
        }
    }

    /// "The first in random order" and "any of them" have the same distribution.
    #[test]
    fn every_entry_of_a_shuffled_list_can_be_first() {
        let geometry = score_four();
        let mut rng = Stream::root(11).rng();
        let (mut fast, mut slow) = ([0_i32; 64], [0_i32; 64]);
        let mask = allowed(Board::EMPTY, geometry);
        for _ in 0..32_000 {
            fast[usize::from(benchmark(Position::START, geometry, &mut rng))] += 1;
            let mut moves: Vec<u8> = cells(geometry.legal(Board::EMPTY)).collect();
            shuffle(&mut rng, &mut moves);
            slow[usize::from(*moves.iter().find(|cell| mask >> **cell & 1 == 1).unwrap())] += 1;
        }
        // Each of 16 cells is expected 2,000 times, with a standard deviation of 43.
        assert!(cells(mask).all(|cell| (fast[usize::from(cell)] - 2000).abs() < 260), "{fast:?}");
        assert!(cells(mask).all(|cell| (slow[usize::from(cell)] - 2000).abs() < 260), "{slow:?}");
    }

    /// The paper leaves open what happens if every move lets the opponent win on top of it. The player then loses, whatever
    /// it plays.
    #[test]
    fn the_open_case_is_rare_and_lost() {
        let geometry = score_four();
        let (games, mut open) = (10_000, 0);
        for game in 0..games {
            let (mut rng, mut position) = (Stream::root(5).word(game).rng(), Position::START);
            while geometry.outcome(position.board()).is_none() {
                let side = position.to_move();
                let threats = [side, side.other()].map(|side| position.wins(geometry, side));
                let safe = position.legal(geometry) & !geometry.below(position.threats(side.other()));
                position = position.play(geometry, benchmark(position, geometry, &mut rng));
                if threats == [0, 0] && safe == 0 {
                    open += 1;
                    let lost =
                        geometry.outcome(position.board()).is_none() && position.wins(geometry, side.other()) != 0;
                    assert!(lost, "in game {game}");
                }
            }
        }
        // There are 828 with this seed. The limits are six standard deviations on both sides.
        assert!((650..1000).contains(&open), "{open} of {games} games");
    }

    type Mover = fn(Position, &Geometry, &mut Generator) -> u8;

    /// The first player's wins, the second player's wins, and plies, each per game.
    fn matches(first: Mover, second: Mover, games: u32) -> [f64; 3] {
        let geometry = score_four();
        let mut sums = [0.0; 3];
        for game in 0..games {
            let mut rng = Stream::root(3).word(game.into()).rng();
            let mut position = Position::START;
            while geometry.outcome(position.board()).is_none() {
                let mover = if position.to_move() == Side::X { first } else { second };
                position = position.play(geometry, mover(position, geometry, &mut rng));
            }
            match geometry.outcome(position.board()) {
                Some(Outcome::Win(Side::X)) => sums[0] += 1.0,
                Some(Outcome::Win(Side::O)) => sums[1] += 1.0,
                _ => {}
            }
            sums[2] += f64::from(position.board().pieces());
        }
        sums.map(|sum| sum / f64::from(games))
    }

    /// The expected values come from an independent implementation. The limits are six standard deviations.
    #[test]
    fn known_match_figures() {
        let near = |value: f64, expected: f64, tolerance: f64| {
            assert!((value - expected).abs() < tolerance, "{value} {expected}");
        };
        let games = 10_000;
        let [wins, _, plies] = matches(random, random, games);
        near(100.0 * wins, 55.4, 3.0);
        near(plies, 28.6, 0.6);
        let [wins, losses, plies] = matches(benchmark, benchmark, games);
        near(100.0 * wins, 50.2, 3.0);
        near(100.0 * losses, 47.3, 3.0);
        near(plies, 44.4, 0.7);
        near(100.0 * matches(benchmark, random, games / 2)[0], 99.6, 0.6);
        let [_, wins, _] = matches(random, benchmark, games / 2);
        near(100.0 * wins, 99.6, 0.6);
        // The filtered player lacks only the look at the cell on top.
        let [wins, losses, _] = matches(benchmark, filtered, games / 2);
        assert!(wins > losses + 0.2, "{wins} {losses}");
    }
}
