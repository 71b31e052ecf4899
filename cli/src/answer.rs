//! What a champion plays in a real game, where the opponent may do as it likes.

use evoxo_common::{
    board::{Board, cells, tic_tac_toe},
    experiment::invincible::table::TableGenome,
};

/// The cell that a player takes on a board on which it is to move and the game is not over.
///
/// The filter moves first, as it did in evolution: it completes an own line, else blocks the opponent's (the first cell
/// of several). Then the player is asked. A table has no gene for a board that only an opponent without the filter can
/// bring about; there it takes the first empty cell. A player that never loses is never that far: see
/// [`evoxo_common::audit`].
pub(crate) fn answer(table: &TableGenome, board: Board) -> u8 {
    let game = tic_tac_toe();
    let forced = cells(game.forced(board)).next();
    let chosen = forced.or_else(|| table.choose(board)).or_else(|| cells(game.legal(board)).next());
    chosen.expect("a game that is not over has an empty cell")
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_common::{
        board::{Outcome, Side},
        experiment::invincible::optimum::optimum,
        ratio::Ratio,
        rng::Stream,
    };

    /// Plays every game against anyone, and counts those that the player loses.
    fn lost(player: &TableGenome, side: Side, board: Board) -> u64 {
        let game = tic_tac_toe();
        match game.outcome(board) {
            Some(outcome) => u64::from(outcome == Outcome::Win(side.other())),
            None if board.to_move() == side => lost(player, side, board.play(answer(player, board))),
            None => cells(game.legal(board)).map(|cell| lost(player, side, board.play(cell))).sum(),
        }
    }

    #[test]
    fn whoever_is_proven_unbeatable_loses_to_nobody() {
        for side in Side::BOTH {
            let best = optimum(side, Ratio::from(100)).player;
            assert!(best.audit().unbeatable());
            assert_eq!(lost(&best, side, Board::EMPTY), 0);
        }
    }

    #[test]
    fn any_player_answers_on_any_board() {
        for (side, seed) in Side::BOTH.into_iter().flat_map(|side| (0..20).map(move |seed| (side, seed))) {
            let table = TableGenome::random(side, &mut Stream::root(seed).rng());
            let beatable = !table.audit().unbeatable();
            assert_eq!(lost(&table, side, Board::EMPTY) > 0, beatable);
        }
    }
}
