//! The exact odds of a player of 3x3 tic-tac-toe: its odds against random movers as fractions, and either the proof that it
//! never loses or the games that it loses.
//!
//! **The filter** moves before a side decides: it completes an own line, or else blocks the opponent's. If it has several
//! cells to choose from, it takes any of them with equal probability.
//!
//! **Why a filtered opponent's replies suffice** for a player that has the filter itself. Take a game that such a player
//! loses, and the opponent's first move in it that the filter would not have made. Either the opponent left a line
//! uncompleted: then completing it there ends a shorter game, which the player also loses, and in which the opponent followed
//! the filter throughout. Or the opponent left the player's line unblocked: then the player's filter completed that line and
//! won, so the game was not lost. A player that loses to anyone therefore loses to an opponent with the filter. A player
//! without the filter may fail to complete its line, so for such a player the proof walks every legal reply.

use crate::board::{Board, Outcome, Side, cells, tic_tac_toe};
use evoxo_common::ratio::Ratio;
use evoxo_common::text::quoted;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

mod foresight;
mod showing;

pub use foresight::{Foresight, Turns};
pub use showing::{exact_json, exact_text, proof_text, sides_showing};

/// The most losing lines that are kept. All of them are counted.
pub const LINES_MAX: usize = 20;

/// Exact probabilities of the three outcomes for one side. They add up to 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Odds {
    /// Probability to win.
    #[serde(with = "fraction")]
    pub win: Ratio,
    /// Probability of a draw.
    #[serde(with = "fraction")]
    pub draw: Ratio,
    /// Probability to lose.
    #[serde(with = "fraction")]
    pub loss: Ratio,
}

impl Odds {
    /// A certain win.
    pub const WIN: Self = Self { win: Ratio::ONE, draw: Ratio::ZERO, loss: Ratio::ZERO };
    /// A certain draw.
    pub const DRAW: Self = Self { win: Ratio::ZERO, draw: Ratio::ONE, loss: Ratio::ZERO };
    /// A certain loss.
    pub const LOSS: Self = Self { win: Ratio::ZERO, draw: Ratio::ZERO, loss: Ratio::ONE };

    /// The odds of a game that is over, for this side.
    #[must_use]
    pub fn of_outcome(outcome: Outcome, side: Side) -> Self {
        match outcome {
            Outcome::Draw => Self::DRAW,
            Outcome::Win(winner) if winner == side => Self::WIN,
            Outcome::Win(_) => Self::LOSS,
        }
    }

    /// The mean of these odds, all equally likely.
    ///
    /// # Panics
    /// If there are none.
    #[must_use]
    pub fn mean(parts: &[Self]) -> Self {
        let share = |part: fn(&Self) -> Ratio| {
            parts.iter().map(part).fold(Ratio::ZERO, |sum, part| sum + part) / Ratio::from(parts.len() as i64)
        };
        Self { win: share(|odds| odds.win), draw: share(|odds| odds.draw), loss: share(|odds| odds.loss) }
    }
}

/// Serde representation of a probability: the text of a fraction, such as "2/3".
mod fraction {
    use evoxo_common::ratio::Ratio;
    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(share: &Ratio, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(share)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Ratio, D::Error> {
        let text = String::deserialize(deserializer)?;
        let (above, below) = text.split_once('/').unwrap_or((&text, "1"));
        match (above.parse::<i64>(), below.parse::<i64>()) {
            (Ok(above), Ok(below)) if 0 <= above && above <= below && below > 0 => {
                Ok(Ratio::new(above.into(), below.into()))
            }
            _ => Err(D::Error::custom(format!("{text:?} is not a probability"))),
        }
    }
}

/// A player whose odds are computed.
pub struct Subject<'a> {
    /// The player's side.
    pub side: Side,
    /// Whether the filter moves before the player decides.
    pub filtered: bool,
    /// The cells that the player takes on a board on which it decides, as a mask. If there are several, the player draws one
    /// of them with equal probability. 0 if the player has no answer.
    pub choose: Box<dyn Fn(Board) -> u64 + 'a>,
}

/// The exact odds of a player, and the games that it loses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exact {
    /// Odds against a random mover with the filter.
    pub odds: Odds,
    /// Odds against a random mover without the filter. `None` if that mover can reach a board on which the player has no
    /// answer. (A table has no answer on boards that play with the filter cannot reach.)
    pub odds_unfiltered: Option<Odds>,
    /// The number of boards on which the player may have to decide against an opponent with the filter. Images of the same
    /// board count as one.
    pub boards_asked: usize,
    /// The number of different positions walked for the proof, including the empty board and finished ones. Images of the
    /// same position count as one.
    pub positions: usize,
    /// The number of games that the player loses, among all that the walk found. 0 proves that it never loses.
    pub losing_lines: u64,
    /// The first of these games, at most [`LINES_MAX`]. Each has the cells in the order in which they were taken.
    pub examples: Vec<Vec<u8>>,
}

impl Exact {
    /// Whether the player provably never loses, whatever the opponent does.
    #[must_use]
    pub const fn unbeatable(&self) -> bool {
        self.losing_lines == 0
    }
}

/// The boards of a game after each of its moves.
pub fn boards(line: &[u8]) -> impl Iterator<Item = Board> {
    line.iter().scan(Board::EMPTY, |board, cell| {
        *board = board.play(*cell);
        Some(*board)
    })
}

impl Subject<'_> {
    /// Walks all games of this player.
    ///
    /// # Errors
    /// If the player takes an occupied cell, or has no answer on a board that an opponent can reach (an opponent with the
    /// filter, if the player has it). The message names the board.
    pub fn exact(&self) -> Result<Exact, String> {
        let mut filtered = Walk::new(self, true);
        let odds = filtered.visit(Board::EMPTY)?.odds;
        let mut unfiltered = Walk::new(self, false);
        let odds_unfiltered = unfiltered.visit(Board::EMPTY).map(|fate| fate.odds);
        let boards_asked = filtered.asked.len();
        let (proof, odds_unfiltered) = match self.filtered {
            true => (filtered, odds_unfiltered.ok()),
            false => (unfiltered, Some(odds_unfiltered?)),
        };
        let mut examples = Vec::new();
        proof.losing_lines(Board::EMPTY, &mut Vec::new(), &mut examples)?;
        let losing_lines = proof.fates[&Board::EMPTY].losing_lines;
        let positions: BTreeSet<Board> = proof.fates.keys().map(|board| tic_tac_toe().canonical(*board).0).collect();
        Ok(Exact { odds, odds_unfiltered, boards_asked, positions: positions.len(), losing_lines, examples })
    }
}

/// The possible results from a position on.
#[derive(Clone, Copy)]
struct Fate {
    odds: Odds,
    losing_lines: u64,
}

/// All games against one kind of opponent.
struct Walk<'a> {
    subject: &'a Subject<'a>,
    opponent_filtered: bool,
    fates: BTreeMap<Board, Fate>,
    /// Canonical boards on which the player decided.
    asked: BTreeSet<Board>,
}

impl<'a> Walk<'a> {
    const fn new(subject: &'a Subject<'a>, opponent_filtered: bool) -> Self {
        Self { subject, opponent_filtered, fates: BTreeMap::new(), asked: BTreeSet::new() }
    }

    /// The moves that the side to move may make, and whether the player decided them.
    fn moves(&self, board: Board) -> Result<(u64, bool), String> {
        let geometry = tic_tac_toe();
        let own = board.to_move() == self.subject.side;
        let filtered = if own { self.subject.filtered } else { self.opponent_filtered };
        let forced = if filtered { geometry.forced(board) } else { 0 };
        match (forced, own) {
            (0, false) => Ok((geometry.legal(board), false)),
            (0, true) => {
                let chosen = (self.subject.choose)(board);
                if chosen == 0 || chosen & !geometry.legal(board) != 0 {
                    let problem = if chosen == 0 { "has no answer" } else { "takes a cell that is not empty" };
                    return Err(format!("the player {problem} on the board {}", quoted(&geometry.board_text(board))));
                }
                Ok((chosen, true))
            }
            (forced, _) => Ok((forced, false)),
        }
    }

    fn visit(&mut self, board: Board) -> Result<Fate, String> {
        if let Some(fate) = self.fates.get(&board) {
            return Ok(*fate);
        }
        let fate = match tic_tac_toe().outcome(board) {
            Some(outcome) => {
                let odds = Odds::of_outcome(outcome, self.subject.side);
                Fate { odds, losing_lines: u64::from(odds == Odds::LOSS) }
            }
            None => {
                let (moves, asked) = self.moves(board)?;
                if asked {
                    self.asked.insert(tic_tac_toe().canonical(board).0);
                }
                let fates = cells(moves).map(|cell| self.visit(board.play(cell))).collect::<Result<Vec<_>, _>>()?;
                let odds = Odds::mean(&fates.iter().map(|fate| fate.odds).collect::<Vec<_>>());
                Fate { odds, losing_lines: fates.iter().map(|fate| fate.losing_lines).sum() }
            }
        };
        self.fates.insert(board, fate);
        Ok(fate)
    }

    /// Collects the first losing lines in the order of cells.
    fn losing_lines(&self, board: Board, line: &mut Vec<u8>, found: &mut Vec<Vec<u8>>) -> Result<(), String> {
        if found.len() == LINES_MAX || self.fates[&board].losing_lines == 0 {
            return Ok(());
        }
        if tic_tac_toe().outcome(board).is_some() {
            found.push(line.clone());
            return Ok(());
        }
        for cell in cells(self.moves(board)?.0) {
            line.push(cell);
            self.losing_lines(board.play(cell), line, found)?;
            line.pop();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{TableGenome, optimum, reference};
    use evoxo_common::rng::Stream;
    use proptest::prelude::*;

    /// Whether a player with the filter loses to anyone. It walks every legal reply and remembers nothing. If the player has
    /// no answer, it takes the first empty cell; the proof says that this cannot matter.
    fn loses(player: &TableGenome, board: Board) -> bool {
        let geometry = tic_tac_toe();
        match geometry.outcome(board) {
            Some(outcome) => outcome == Outcome::Win(player.side().other()),
            None if board.to_move() == player.side() => {
                let first = 1 << geometry.legal(board).trailing_zeros();
                let moves = match geometry.forced(board) {
                    0 => player.choose(board).map_or(first, |cell| 1 << cell),
                    forced => forced,
                };
                cells(moves).any(|cell| loses(player, board.play(cell)))
            }
            None => cells(geometry.legal(board)).any(|cell| loses(player, board.play(cell))),
        }
    }

    fn check(player: &TableGenome) -> Exact {
        let exact = player.exact();
        assert_eq!(exact.odds, reference::exact(player));
        assert_eq!(exact.unbeatable(), !loses(player, Board::EMPTY));
        assert_eq!(exact.unbeatable(), exact.odds.loss == Ratio::ZERO, "every reply has some probability");
        assert_eq!(exact.boards_asked, player.met().len());
        assert_eq!(exact.examples.len() as u64, exact.losing_lines.min(LINES_MAX as u64));
        for line in &exact.examples {
            let last = boards(line).last().unwrap();
            assert_eq!(tic_tac_toe().outcome(last), Some(Outcome::Win(player.side().other())));
            for board in boards(&line[..line.len() - 1]) {
                assert_eq!(tic_tac_toe().outcome(board), None);
            }
        }
        exact
    }

    proptest! {
        #[test]
        fn random_tables(side in prop::sample::select(Side::BOTH.to_vec()), seed: u64) {
            check(&TableGenome::random(side, &mut Stream::root(seed).rng()));
        }
    }

    #[test]
    fn optimal_tables() {
        for side in Side::BOTH {
            for penalty in ["0", "1", "2", "3", "4", "6.5", "100"] {
                check(&optimum::optimum(side, penalty.parse::<Ratio>().unwrap()).player);
            }
            let safe = check(&optimum::optimum(side, Ratio::from(100)).player);
            assert!(safe.unbeatable() && safe.odds_unfiltered.is_some_and(|odds| odds.loss == Ratio::ZERO));
        }
    }

    fn subject(side: Side, filtered: bool, choose: impl Fn(Board) -> u64 + 'static) -> Subject<'static> {
        Subject { side, filtered, choose: Box::new(choose) }
    }

    /// A random mover has exact odds too, and they are known.
    #[test]
    fn random_play() {
        let exact = subject(Side::X, false, |board| tic_tac_toe().legal(board)).exact().unwrap();
        let odds = exact.odds_unfiltered.unwrap();
        assert_eq!([odds.win, odds.draw, odds.loss].map(|part| part.to_string()), ["737/1260", "8/63", "121/420"]);
        assert_eq!((exact.positions, exact.losing_lines), (765, 77_904));
    }

    /// The number of games that X loses to anyone if it chooses like this without the filter. It walks every reply and
    /// remembers nothing.
    fn lost_games(choose: fn(Board) -> u64, board: Board) -> u64 {
        let moves = match (tic_tac_toe().outcome(board), board.to_move()) {
            (Some(outcome), _) => return u64::from(outcome == Outcome::Win(Side::O)),
            (None, Side::X) => choose(board),
            (None, Side::O) => tic_tac_toe().legal(board),
        };
        cells(moves).map(|cell| lost_games(choose, board.play(cell))).sum()
    }

    /// Without the filter, a player can throw away a game that only an opponent without the filter offers. The proof for such
    /// a player must therefore walk every reply.
    #[test]
    fn players_without_the_filter_meet_every_reply() {
        let lowest: fn(Board) -> u64 = |board| 1 << tic_tac_toe().legal(board).trailing_zeros();
        let exact = subject(Side::X, false, lowest).exact().unwrap();
        assert_eq!(exact.losing_lines, lost_games(lowest, Board::EMPTY));
        assert!(!exact.unbeatable() && exact.odds_unfiltered.is_some());
        let filtered = subject(Side::X, true, lowest).exact().unwrap();
        assert!(filtered.positions < exact.positions);
    }

    #[test]
    fn invalid_answers_are_reported() {
        let sentence = subject(Side::X, true, |_| 1 << 4).exact().unwrap_err();
        assert!(sentence.contains("not empty"), "{sentence}");
        let sentence = subject(Side::O, false, |_| 0).exact().unwrap_err();
        assert!(sentence.contains("no answer on the board \"X........\""), "{sentence}");
    }
}
