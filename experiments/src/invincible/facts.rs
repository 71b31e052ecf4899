//! Facts about the game itself, independent of the players. The report compares them with the source.
//!
//! **315 games.** The source multiplies the numbers of X's options at its moves, 3 x 7 x 5 x 3 x 1 = 315, as an upper limit
//! of the number of games. It ignores O's replies, which increase the number, and forced moves, mirror images and early ends,
//! which decrease it. [`games`] counts the games that can really be played. They are more than 315, because of the replies.

use evoxo_common::rng::Stream;
use evoxo_games::board::{Board, Side, cells, tic_tac_toe};
use evoxo_games::odds::{Odds, Subject};
use evoxo_games::player::random::any_of;
use evoxo_games::table::graph::Graph;
use std::collections::BTreeSet;

/// The number of decision boards: exactly, and in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoardCounts {
    /// All boards on which the side has to decide: 58 for X, 43 for O.
    pub exact: usize,
    /// The source found its numbers by sampling a million games. For X they include all boards except the empty one (57), and
    /// for O all boards except those with two empty cells (38). No single rule for both sides gives both numbers.
    pub source: usize,
}

/// Counts the decision boards of a side.
#[must_use]
pub fn board_counts(side: Side) -> BoardCounts {
    let boards = Graph::of(side).boards();
    let left_out = match side {
        Side::X => 0,
        Side::O => 7,
    };
    let source = boards.iter().filter(|board| board.pieces() != left_out).count();
    BoardCounts { exact: boards.len(), source }
}

/// The number of games that the source played to find its boards.
pub const SEARCH_GAMES: u32 = 1_000_000;

/// The decision boards that random games reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoardSearch {
    /// The number of different boards, where images count as one.
    pub boards: usize,
    /// The game that found the last new board, counted from 1.
    pub last_game: u32,
}

/// Searches for boards as the source does: two random movers with the filter play games, and every new board on which one of
/// them has to decide is added. Returns the results for X and for O.
///
/// Once all decision boards are found, further games cannot find others, and are not played. Game g draws from `stream`, g.
#[must_use]
pub fn search(stream: Stream, games: u32) -> [BoardSearch; 2] {
    let geometry = tic_tac_toe();
    let (mut boards, mut found) = ([BTreeSet::new(), BTreeSet::new()], [BoardSearch::default(); 2]);
    for game in 1..=games {
        let (mut board, rng) = (Board::EMPTY, &mut stream.word(game.into()).rng());
        while geometry.outcome(board).is_none() {
            let forced = geometry.forced(board);
            let side = usize::from(board.to_move() == Side::O);
            if forced == 0 && boards[side].insert(geometry.canonical(board).0) {
                found[side] = BoardSearch { boards: boards[side].len(), last_game: game };
            }
            board = board.play(any_of(if forced == 0 { geometry.legal(board) } else { forced }, rng));
        }
        if found.map(|found| found.boards) == Side::BOTH.map(|side| Graph::of(side).len()) {
            break;
        }
    }
    found
}

/// X's odds if both sides move at random. `filtered` applies the filter to both.
#[must_use]
pub fn random_play(filtered: bool) -> Odds {
    let choose = Box::new(|board| tic_tac_toe().legal(board));
    let exact = Subject { side: Side::X, filtered, choose }.exact().expect("a random mover takes empty cells");
    match filtered {
        true => exact.odds,
        false => exact.odds_unfiltered.expect("a random mover has a move on every board"),
    }
}

/// The number of different games if both sides have the filter and otherwise move freely. Moves that lead to images of the
/// same board count as one.
#[must_use]
pub fn games() -> u64 {
    games_from(Board::EMPTY)
}

fn games_from(board: Board) -> u64 {
    let geometry = tic_tac_toe();
    if geometry.outcome(board).is_some() {
        return 1;
    }
    let moves = match geometry.forced(board) {
        0 => geometry.legal(board),
        forced => forced,
    };
    let next: BTreeSet<Board> = cells(moves).map(|cell| geometry.canonical(board.play(cell)).0).collect();
    next.into_iter().map(games_from).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::ratio::Ratio;
    use evoxo_games::table::optimum::{never_losing, optimum};

    /// A million games find every decision board long before the last game. The source's 57 and 38 are therefore not bad
    /// luck.
    #[test]
    fn the_published_search_finds_all_boards() {
        for seed in 0..3 {
            let found = search(Stream::root(seed), SEARCH_GAMES);
            assert_eq!(found.map(|found| found.boards), [58, 43]);
            let last = found.map(|found| found.last_game).into_iter().max().unwrap();
            assert!(last < SEARCH_GAMES / 10, "{last}");
            // With one game fewer, a board is missing, and the same games find the same boards.
            let fewer = search(Stream::root(seed), last - 1).map(|found| found.boards);
            assert_eq!(fewer.iter().sum::<usize>(), 58 + 43 - 1);
            assert_eq!(search(Stream::root(seed), last), found);
        }
        assert_eq!(search(Stream::root(0), 1).map(|found| found.last_game), [1, 1]);
    }

    /// Every figure of this module and of the optimum, as one text.
    #[test]
    fn figures_are_pinned() {
        let odds = |odds: Odds| format!("win {} draw {} loss {}", odds.win, odds.draw, odds.loss);
        let mut lines = vec![format!("{} games", games())];
        for filtered in [false, true] {
            lines.push(format!("random, filtered {filtered}: {}", odds(random_play(filtered))));
        }
        for side in Side::BOTH {
            let counts = board_counts(side);
            lines.push(format!("{side:?}: {} boards, {} in the source", counts.exact, counts.source));
            for penalty in ["0", "1", "3", "6.5", "100"] {
                let best = optimum(side, penalty.parse::<Ratio>().unwrap());
                let ties = best.ties.iter().map(|tie| format!("{}:{:?}", tie.board.pieces(), tie.cells));
                lines.push(format!(
                    "{side:?} penalty {penalty}: fitness {}, {}, meets {}, ties {}",
                    best.fitness,
                    odds(best.odds),
                    best.player.met().len(),
                    ties.collect::<Vec<_>>().join(" ")
                ));
            }
            let (player, safe, penalty) = never_losing(side).unwrap();
            assert!(player.exact().unbeatable());
            lines.push(format!("{side:?} never loses from penalty {penalty}: {}", odds(safe)));
            let below = optimum(side, penalty - Ratio::new(1, 1000));
            assert!(penalty == Ratio::ZERO || below.odds.loss > Ratio::ZERO);
            assert_eq!(optimum(side, penalty).odds, safe, "of equally fit players, the one that loses least is chosen");
        }
        insta::assert_snapshot!(lines.join("\n"));
    }
}
