//! What a player does wrong against the benchmark player, in the words of a strong player: why it lost its games, and how
//! often it missed what looking one move ahead shows.
//!
//! The benchmark player wins wherever it can. A game is therefore lost with the loser's last move, after which the benchmark
//! player can complete a line. That move and the position before it show the reason ([`Fault::of`]).

use std::ops::{AddAssign, Range};

use super::{Player, benchmark::benchmark};
use crate::board::{Geometry, Position, Side, cells};
use evoxo_common::rng::Stream;

/// The reason why the opponent can complete a line after a move. Another move would have avoided the first three. Before a
/// move of the last three, the game was already lost against an opponent that completes its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The player could complete a line itself, but did not.
    WinNotSeen,
    /// The opponent had one cell that completes a line, and the player took another cell, although the opponent could not
    /// have completed a line on top of the first.
    ThreatNotStopped,
    /// The opponent had no such cell, and the player put a stone under one, although it had other moves.
    UnderAThreat,
    /// The opponent had two such cells or more, and one move can stop only one of them.
    TwoThreats,
    /// The opponent had one such cell, and another one right on top of it.
    ThreatOnTop,
    /// The opponent had no such cell, but there was one on top of every legal cell.
    NoSafeMove,
}

impl Fault {
    /// All faults, in the order of declaration.
    pub const ALL: [Self; 6] = [
        Self::WinNotSeen,
        Self::ThreatNotStopped,
        Self::UnderAThreat,
        Self::TwoThreats,
        Self::ThreatOnTop,
        Self::NoSafeMove,
    ];

    /// The fault in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::WinNotSeen => "a win not seen",
            Self::ThreatNotStopped => "a threat not stopped",
            Self::UnderAThreat => "a stone put under a threat",
            Self::TwoThreats => "two threats at once",
            Self::ThreatOnTop => "a threat on top of the one to stop",
            Self::NoSafeMove => "a threat on top of every cell",
        }
    }

    /// The fault of a legal move; `None` if the opponent cannot complete a line after it.
    ///
    /// # Panics
    /// If the cell is taken.
    #[must_use]
    pub fn of(position: Position, cell: u8, geometry: &Geometry) -> Option<Self> {
        let (side, other) = (position.to_move(), position.to_move().other());
        let own = position.wins(geometry, side);
        let loses = |cell: u8| position.play(geometry, cell).wins(geometry, other) != 0;
        if own >> cell & 1 == 1 || !loses(cell) {
            return None;
        }
        let threats = position.wins(geometry, other);
        Some(match threats.count_ones() {
            _ if own != 0 => Self::WinNotSeen,
            0 if cells(position.legal(geometry)).all(loses) => Self::NoSafeMove,
            0 => Self::UnderAThreat,
            1 if loses(threats.trailing_zeros() as u8) => Self::ThreatOnTop,
            1 => Self::ThreatNotStopped,
            _ => Self::TwoThreats,
        })
    }
}

/// Turns on which looking one move ahead separates good moves from bad ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// All such turns.
    pub all: u32,
    /// The turns on which the move was bad.
    pub bad: u32,
}

impl Turns {
    fn count(&mut self, bad: bool) {
        self.all += 1;
        self.bad += u32::from(bad);
    }
}

/// The results and mistakes of a player in some games.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mistakes {
    /// Games that the player won.
    pub wins: u32,
    /// Games that ended in a draw.
    pub draws: u32,
    /// Games that the player lost, by the last fault, in the order of [`Fault::ALL`].
    pub losses: [u32; 6],
    /// Turns on which the player could complete a line. Bad moves did not.
    pub to_win: Turns,
    /// Turns on which the player could not, and the opponent had one cell that completes a line, with none on top of it,
    /// among several legal cells. Bad moves took another cell.
    pub to_stop: Turns,
    /// Turns on which neither side had such a cell, and some but not all legal moves would have let the opponent complete a
    /// line on top of them. Bad moves did so.
    pub to_keep_off: Turns,
}

impl Mistakes {
    /// The number of games that the player lost.
    #[must_use]
    pub fn lost(&self) -> u32 {
        self.losses.iter().sum()
    }

    /// Counts a move of the player.
    fn turn(&mut self, position: Position, cell: u8, geometry: &Geometry) {
        let (side, other) = (position.to_move(), position.to_move().other());
        let (own, threats) = (position.wins(geometry, side), position.wins(geometry, other));
        let fault = Fault::of(position, cell, geometry);
        if own != 0 {
            self.to_win.count(own >> cell & 1 == 0);
        } else if threats == 0 {
            let under = position.legal(geometry) & geometry.below(position.threats(other));
            if under != 0 && under != position.legal(geometry) {
                self.to_keep_off.count(fault == Some(Fault::UnderAThreat));
            }
        } else if threats.is_power_of_two()
            && position.legal(geometry) != threats
            && position.play(geometry, threats.trailing_zeros() as u8).wins(geometry, other) == 0
        {
            self.to_stop.count(fault == Some(Fault::ThreatNotStopped));
        }
    }
}

impl AddAssign for Mistakes {
    fn add_assign(&mut self, more: Self) {
        self.wins += more.wins;
        self.draws += more.draws;
        self.losses.iter_mut().zip(more.losses).for_each(|(sum, more)| *sum += more);
        for (sum, more) in [&mut self.to_win, &mut self.to_stop, &mut self.to_keep_off].into_iter().zip([
            more.to_win,
            more.to_stop,
            more.to_keep_off,
        ]) {
            sum.all += more.all;
            sum.bad += more.bad;
        }
    }
}

/// A lost game: the position before the loser's last move, the move, and its fault.
pub type Lost = (Position, u8, Fault);

/// Plays games of a player against the benchmark player. They are the games of a test of td3d if the stream is the test's:
/// game i draws from `stream`, i. If `begins`, the player begins in all games, otherwise in those with an even number. `lost`
/// is called with the end of each lost game.
///
/// # Panics
/// If the player takes a cell that it cannot take.
pub fn mistakes(
    player: &mut Player,
    begins: bool,
    stream: Stream,
    games: Range<u64>,
    lost: &mut dyn FnMut(Lost),
) -> Mistakes {
    let geometry = player.geometry;
    let mut sum = Mistakes::default();
    for game in games {
        let mut rng = stream.word(game).rng();
        let side = if begins || game.is_multiple_of(2) { Side::X } else { Side::O };
        let (mut position, mut last) = (Position::START, None);
        loop {
            let mover = position.to_move();
            let cell = if mover == side {
                let cell = player.choose(position, &mut rng);
                sum.turn(position, cell, geometry);
                last = Some((position, cell));
                cell
            } else {
                benchmark(position, geometry, &mut rng)
            };
            let won = position.wins(geometry, mover) >> cell & 1 == 1;
            if won && mover == side {
                sum.wins += 1;
                break;
            }
            if won {
                let (before, cell) = last.expect("a line has two stones, and both sides move in turn");
                let fault = Fault::of(before, cell, geometry).expect("the opponent has completed a line after it");
                sum.losses[fault as usize] += 1;
                lost((before, cell, fault));
                break;
            }
            position = position.play(geometry, cell);
            if position.board().occupied() == geometry.cells() {
                sum.draws += 1;
                break;
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        board::{Board, score_four},
        net::{
            Activation, Architecture, CARD, First, Network, engine,
            learn::{Learner, Learning},
        },
        player::built_in,
    };
    use evoxo_common::card::Card;
    use proptest::prelude::*;

    /// A cell by column and layer. The cells of a column are stacked on each other.
    fn cell(column: u8, layer: u8) -> u8 {
        let geometry = score_four();
        let bottom = cells(geometry.legal(Board::EMPTY)).nth(column.into()).unwrap();
        (0..layer).fold(bottom, |cell, _| {
            let on_top = cells(geometry.cells()).find(|other| geometry.below(1 << other) == 1 << cell);
            on_top.unwrap()
        })
    }

    /// A position with these stones of X, which made the last move, and of O, which is to move.
    fn position(x: &[(u8, u8)], o: &[(u8, u8)]) -> Position {
        let stones =
            |stones: &[(u8, u8)]| stones.iter().fold(0, |all, (column, layer)| all | 1 << cell(*column, *layer));
        let position = Position::of(score_four(), Board { x: stones(x), o: stones(o) });
        assert_eq!(position.to_move(), Side::O);
        position
    }

    /// Each fault on a board made for it, with X's threat and O's move.
    #[test]
    fn each_fault_has_its_board() {
        let of = |position: Position, column: u8, layer: u8| Fault::of(position, cell(column, layer), score_four());
        // Columns 0 to 3 are a row of the bottom layer, and X threatens column 3.
        let one = position(&[(0, 0), (1, 0), (2, 0)], &[(5, 0), (10, 0)]);
        assert_eq!((of(one, 3, 0), of(one, 15, 0)), (None, Some(Fault::ThreatNotStopped)));
        // O could complete columns 4 to 7 itself.
        let win = position(&[(0, 0), (1, 0), (2, 0), (8, 0)], &[(4, 0), (5, 0), (6, 0)]);
        assert_eq!((of(win, 7, 0), of(win, 3, 0), of(win, 15, 0)), (None, None, Some(Fault::WinNotSeen)));
        // Columns 0, 4, 8 and 12 are a row in the other direction, so X has two threats.
        let two = position(&[(0, 0), (1, 0), (2, 0), (4, 0), (8, 0)], &[(5, 0), (10, 0), (15, 0), (13, 0)]);
        assert_eq!((of(two, 3, 0), of(two, 7, 0)), (Some(Fault::TwoThreats), Some(Fault::TwoThreats)));
        // X has columns 0 to 2 in the second layer, and column 3 is empty, so a stone there would be under the threat.
        let x = [(0, 1), (1, 1), (2, 1), (0, 0), (9, 0)];
        let under = position(&x, &[(1, 0), (2, 0), (5, 0), (14, 0)]);
        assert_eq!((of(under, 3, 0), of(under, 15, 0)), (Some(Fault::UnderAThreat), None));
        // The same, but X also threatens the cell below. Stopping that threat lets X complete the upper row.
        let x = [(0, 1), (1, 1), (2, 1), (0, 0), (1, 0), (2, 0)];
        let on_top = position(&x, &[(9, 0), (6, 0), (5, 0), (15, 0), (14, 0)]);
        assert_eq!((of(on_top, 3, 0), of(on_top, 13, 0)), (Some(Fault::ThreatOnTop), Some(Fault::ThreatOnTop)));
    }

    proptest! {
        /// There is a fault exactly if the opponent can complete a line next, and turns are counted as their descriptions
        /// say. The test tries every move.
        #[test]
        fn faults_and_turns_match_their_description(seed: u64) {
            let geometry = score_four();
            let mut rng = Stream::root(seed).rng();
            let mut position = Position::START;
            while geometry.outcome(position.board()).is_none() {
                let side = position.to_move();
                let legal: Vec<u8> = cells(position.legal(geometry)).collect();
                let wins = |board: Board| geometry.has_line(board.stones(side));
                let loses = |cell: u8| {
                    let after = position.board().play(cell);
                    !wins(after) && cells(geometry.legal(after)).any(|reply| geometry.has_line(after.play(reply).stones(side.other())))
                };
                let winning = legal.iter().filter(|cell| wins(position.board().play(**cell))).count();
                for cell in &legal {
                    let fault = Fault::of(position, *cell, geometry);
                    prop_assert_eq!(fault.is_some(), loses(*cell));
                    let mut turn = Mistakes::default();
                    turn.turn(position, *cell, geometry);
                    prop_assert_eq!(turn.to_win.all, u32::from(winning > 0));
                    let chosen = [turn.to_win, turn.to_stop, turn.to_keep_off];
                    prop_assert!(chosen.iter().map(|turns| turns.all).sum::<u32>() <= 1);
                    let other = chosen[1].all + chosen[2].all > 0;
                    // Some moves lose at once, and some do not.
                    prop_assert_eq!(other, winning == 0 && legal.iter().any(|cell| loses(*cell)) && !legal.iter().all(|cell| loses(*cell)));
                    if other {
                        prop_assert_eq!(chosen[1].bad + chosen[2].bad > 0, loses(*cell));
                    }
                }
                let moves = benchmark(position, geometry, &mut rng);
                position = position.play(geometry, moves);
            }
        }
    }

    /// The benchmark player itself misses nothing: it loses only games that were already lost. The page about the
    /// reproduction quotes these numbers.
    #[test]
    fn the_benchmark_player_makes_no_avoidable_mistake() {
        let mut player = built_in("benchmark", score_four()).unwrap();
        let mut ends = 0;
        let found = mistakes(&mut player, false, Stream::root(1), 0..200, &mut |_| ends += 1);
        assert_eq!(found.wins + found.draws + found.lost(), 200);
        assert_eq!(found.lost(), ends);
        assert!(found.lost() > 50, "{found:?}");
        assert_eq!(found.losses[..3], [0; 3]);
        assert_eq!([found.to_win.bad, found.to_stop.bad, found.to_keep_off.bad], [0; 3]);
        assert!(found.to_win.all > 50 && found.to_stop.all > 500 && found.to_keep_off.all > 100, "{found:?}");
    }

    /// The games are those of a test of the network that learns.
    #[test]
    fn the_games_match_those_of_a_test() {
        let architecture = Architecture {
            shape: score_four().shape(),
            first: First::Dense { units: 9 },
            second: 0,
            biases: true,
            activation: Activation::Tanh,
            shared: false,
        };
        let weights = architecture.initial(Stream::root(1));
        let mut engine = engine(&architecture, &weights);
        for learner_first_in_tests in [true, false] {
            let learning = Learning { learner_first_in_tests, ..Learning::PLAIN };
            let mut learner = Learner::new(&mut *engine, score_four(), architecture.activation, learning);
            let tally = learner.test(Stream::root(2), 0..300);
            let card = Card::new(Network { architecture, weights: weights.clone() });
            let mut player: Player = card.capability().unwrap().unwrap();
            let found = mistakes(&mut player, learner_first_in_tests, Stream::root(2), 0..300, &mut |_| {});
            assert_eq!((found.wins, found.draws, found.lost()), (tally.wins, tally.draws, tally.losses));
            assert!(found.lost() > 250 && found.losses[..3].iter().sum::<u32>() > 200, "{found:?}");
            let mut twice = found;
            twice += found;
            assert_eq!((twice.lost(), twice.to_stop.all), (2 * found.lost(), 2 * found.to_stop.all));
        }
        assert_eq!(CARD.name, "network");
    }
}
