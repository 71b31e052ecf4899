//! How far a player of 3x3 tic-tac-toe looks ahead, measured exactly against a random mover with the filter.
//!
//! The filter completes and blocks lines for both sides. A side can therefore win only by a **double threat**: two cells at
//! once that each complete a line, of which the opponent can block only one. A player that decides well sees a double threat
//! a move or two ahead.

use super::{Subject, Walk};
use crate::board::{Board, Side, cells, tic_tac_toe};

/// Turns on which looking ahead separates good moves from bad ones, as expected numbers per game.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Turns {
    /// All such turns.
    pub all: f64,
    /// The turns on which the player makes a good move.
    pub good: f64,
}

impl Turns {
    /// Counts a turn that is reached with probability `chance`. All of `moves` are equally likely. Nothing is counted if all
    /// or none of the legal moves are good.
    fn count(&mut self, chance: f64, moves: u64, legal: u64, is_good: impl Fn(u8) -> bool) {
        let good = cells(legal).filter(|cell| is_good(*cell)).fold(0, |all, cell| all | 1 << cell);
        if good != 0 && good != legal {
            self.all += chance;
            self.good += chance * f64::from((moves & good).count_ones()) / f64::from(moves.count_ones());
        }
    }

    /// The share of good moves in percent; `None` if there were no such turns.
    #[must_use]
    pub fn percent(self) -> Option<f64> {
        (self.all > 0.0).then(|| 100.0 * self.good / self.all)
    }
}

/// What a player sees in the games in which it decides, as expected numbers per game.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Foresight {
    /// One move ahead, for itself: the player can make a double threat. Good moves make it.
    pub to_make: Turns,
    /// One move ahead, against the opponent: the player cannot make a double threat, and some of its moves let the opponent
    /// make one at once. Good moves do not.
    pub to_prevent: Turns,
    /// Two moves ahead: the player cannot make a double threat at once, but it can make a threat that forces the opponent to
    /// block where the player makes a double threat next. Good moves make such a threat.
    pub to_prepare: Turns,
    /// Games won by a double threat that the player decided to make.
    pub won_by_choice: f64,
    /// Games won by a double threat that arose by itself, from blocking the opponent's line.
    pub won_by_block: f64,
}

/// Whether this side has a double threat on a board on which the other side is to move and cannot complete a line.
fn has_double_threat(board: Board, side: Side) -> bool {
    let geometry = tic_tac_toe();
    geometry.completing(board, side).count_ones() > 1 && geometry.completing(board, side.other()) == 0
}

/// The moves of a side with the filter, including all those between which it may decide.
fn replies(board: Board) -> u64 {
    match tic_tac_toe().forced(board) {
        0 => tic_tac_toe().legal(board),
        forced => forced,
    }
}

/// Whether the side to move has a reply that makes a double threat.
fn may_make(board: Board) -> bool {
    let side = board.to_move();
    cells(replies(board)).any(|cell| has_double_threat(board.play(cell), side))
}

/// Whether after every reply of the side to move, the other side can make a double threat or complete a line.
fn is_prepared(board: Board) -> bool {
    let (geometry, side) = (tic_tac_toe(), board.to_move().other());
    let wins =
        |board: Board| geometry.outcome(board).is_none() && (geometry.completing(board, side) != 0 || may_make(board));
    geometry.outcome(board).is_none() && cells(replies(board)).all(|cell| wins(board.play(cell)))
}

impl Subject<'_> {
    /// What this player sees in games against a random mover with the filter. The player must have the filter, too.
    ///
    /// # Errors
    /// As [`Subject::exact`].
    ///
    /// # Panics
    /// If the player has no filter.
    pub fn foresight(&self) -> Result<Foresight, String> {
        assert!(self.filtered, "without the filter games are won in other ways, too");
        let mut found = Foresight::default();
        look(&Walk::new(self, true), Board::EMPTY, 1.0, &mut found)?;
        Ok(found)
    }
}

fn look(walk: &Walk<'_>, board: Board, chance: f64, found: &mut Foresight) -> Result<(), String> {
    let (geometry, side) = (tic_tac_toe(), board.to_move());
    if geometry.outcome(board).is_some() {
        return Ok(());
    }
    let (moves, decided) = walk.moves(board)?;
    if decided {
        let legal = geometry.legal(board);
        let makes = |cell: u8| has_double_threat(board.play(cell), side);
        if cells(legal).any(makes) {
            found.to_make.count(chance, moves, legal, makes);
        } else {
            found.to_prevent.count(chance, moves, legal, |cell| !may_make(board.play(cell)));
            found.to_prepare.count(chance, moves, legal, |cell| is_prepared(board.play(cell)));
        }
    }
    let chance = chance / f64::from(moves.count_ones());
    for cell in cells(moves) {
        let after = board.play(cell);
        if side == walk.subject.side && geometry.outcome(after).is_none() && has_double_threat(after, side) {
            *(if decided { &mut found.won_by_choice } else { &mut found.won_by_block }) += chance;
        } else {
            look(walk, after, chance, found)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{TableGenome, optimum};
    use evoxo_common::{ratio::Ratio, rng::Stream};
    use proptest::prelude::*;

    fn foresight(player: &TableGenome) -> Foresight {
        let choose = Box::new(|board| player.choose(board).map_or(0, |cell| 1 << cell));
        Subject { side: player.side(), filtered: true, choose }.foresight().unwrap()
    }

    proptest! {
        /// Every win comes from a double threat, and every double threat wins.
        #[test]
        fn wins_are_double_threats(side in prop::sample::select(Side::BOTH.to_vec()), seed: u64) {
            let player = TableGenome::random(side, &mut Stream::root(seed).rng());
            let found = foresight(&player);
            let won = player.exact().odds.win.to_f64();
            prop_assert!((found.won_by_choice + found.won_by_block - won).abs() < 1e-12, "{:?} {}", found, won);
            for turns in [found.to_make, found.to_prevent, found.to_prepare] {
                prop_assert!(0.0 <= turns.good && turns.good <= turns.all + 1e-12);
            }
        }
    }

    /// The share of good moves, in percent, if the player to move on this board takes one of these cells; `None` if looking
    /// ahead shows nothing.
    fn turn(text: &str, moves: &[u8], which: fn(Foresight) -> Turns) -> Option<f64> {
        let board = tic_tac_toe().board_of(text).unwrap();
        let moves = moves.iter().fold(0, |all, cell| all | 1 << cell);
        let subject = Subject { side: board.to_move(), filtered: true, choose: Box::new(move |_| moves) };
        let mut found = Foresight::default();
        // After this turn, there may be a board on which these cells are taken.
        let _ = look(&Walk::new(&subject, true), board, 1.0, &mut found);
        which(found).percent()
    }

    #[test]
    fn known_boards() {
        // X took a corner, and O the edge beside it. If X takes the centre, O must block at the far corner; then 3 and 6 each
        // give X two lines.
        assert_eq!(turn("XO.......", &[4], |found| found.to_prepare), Some(100.0));
        assert_eq!(turn("XO.......", &[5], |found| found.to_prepare), Some(0.0), "it threatens nothing");
        // The famous trap: X has opposite corners and O has the centre. A corner loses, an edge does not.
        let trap = |cell: u8| turn("X...O...X", &[cell], |found| found.to_prevent);
        assert_eq!([trap(2), trap(1)], [Some(0.0), Some(100.0)]);
        assert_eq!(turn("X...O...X", &[1, 2], |found| found.to_prevent), Some(50.0));
        // O took the corner. The filter blocks for X, which makes two threats. They therefore arose by themselves.
        let board = tic_tac_toe().board_of("X.O.O...X").unwrap();
        let subject = Subject { side: Side::X, filtered: true, choose: Box::new(|_| 0) };
        let mut found = Foresight::default();
        look(&Walk::new(&subject, true), board, 1.0, &mut found).unwrap();
        assert_eq!((found.won_by_block, found.won_by_choice), (1.0, 0.0));
        assert_eq!(turn("X.......O", &[2], |found| found.to_make), None, "there is no double threat to make so early");
        assert_eq!(turn("X.O...X.O", &[4], |found| found.to_make), None, "the filter decides");
    }

    /// A player that never loses prevents everything that can be prevented.
    #[test]
    fn the_safe_table_prevents_every_double_threat() {
        for side in Side::BOTH {
            let safe = foresight(&optimum::optimum(side, Ratio::from(100)).player);
            assert!(
                safe.to_prevent.all > 0.0 && (safe.to_prevent.all - safe.to_prevent.good).abs() < 1e-12,
                "{safe:?}"
            );
            assert!(safe.to_make.percent().is_none_or(|good| good > 99.999), "a double threat wins: {safe:?}");
        }
    }
}
