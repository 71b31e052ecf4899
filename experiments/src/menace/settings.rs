//! The settings of `menace`.

use evoxo_common::{choice, settings};
use evoxo_games::board;

use super::messages;

choice! {
    /// The side that the machine plays.
    pub enum Side {
        /// 304 boxes, like Michie's machine
        X = "X",
        /// 289 boxes
        O = "O",
    }
}

choice! {
    /// The opponent of the machine.
    pub enum Opponent {
        /// takes any empty cell with equal probability
        Random = "random",
        /// takes any move that keeps the value of the position, with equal probability
        Perfect = "perfect",
        /// a second machine with boxes of its own, which learns too
        Itself = "itself",
    }
}

choice! {
    /// Which cells have beads in a box.
    pub enum Moves {
        /// only one of several cells that are images of each other under the symmetries of the board
        Distinct = "distinct",
        /// every empty cell
        All = "all",
    }
}

choice! {
    /// What happens at a box without beads.
    pub enum Empty {
        /// it is filled as it was at the start
        Refill = "refill",
        /// the machine resigns, which counts as a loss
        Resign = "resign",
    }
}

impl From<Side> for board::Side {
    fn from(side: Side) -> Self {
        match side {
            Side::X => Self::X,
            Side::O => Self::O,
        }
    }
}

impl From<Opponent> for messages::Opponent {
    fn from(opponent: Opponent) -> Self {
        match opponent {
            Opponent::Random => Self::Random,
            Opponent::Perfect => Self::Perfect,
            Opponent::Itself => Self::Itself,
        }
    }
}

/// The most games of a replica.
pub const GAMES_MAX: u32 = 1_000_000;
/// The most games between two rows.
pub const EVERY_MAX: u32 = 100_000;
/// The most rows of a replica.
pub const ROWS_MAX: u32 = 100_000;

settings! {
    /// MENACE, Michie's machine of matchboxes, learns 3x3 tic-tac-toe (1961, 1963). There is a box for each board, up to
    /// symmetry. It has beads for the moves, and the machine draws one. After the game, each move that the machine made gets
    /// beads or loses them.
    pub struct Settings, names Name, schema SCHEMA {
        /// The side that the machine plays. X moves first, as Michie's machine did.
        side: Side = choice("X"),
        /// The opponent of the machine.
        opponent: Opponent = choice("random"),
        /// Games that the machine plays; a multiple of every. Michie's first tournament had 220.
        games: u32 = length whole(1, GAMES_MAX as u64, "1000"),
        /// Games between two rows of the history.
        every: u32 = whole(1, EVERY_MAX as u64, "10"),
        /// Which cells have beads in a box. Our choice, because the available sources do not say.
        moves: Moves = choice("distinct"),
        /// Beads of each move at the start, in the box for the first move. Michie: 4.
        beads_1: u32 = whole(1, 1_000, "4"),
        /// The same for second moves. Michie: 3.
        beads_2: u32 = whole(1, 1_000, "3"),
        /// The same for third moves. Michie: 2.
        beads_3: u32 = whole(1, 1_000, "2"),
        /// The same for fourth moves. Michie: 1.
        beads_4: u32 = whole(1, 1_000, "1"),
        /// Beads that a won game adds to each move that the machine made. A negative number removes beads. Michie: 3.
        win: i32 = signed(-1_000, 1_000, "3"),
        /// The same for a drawn game. Michie: 1.
        draw: i32 = signed(-1_000, 1_000, "1"),
        /// The same for a lost game. Michie: -1, because the drawn bead is not put back.
        loss: i32 = signed(-1_000, 1_000, "-1"),
        /// What happens at a box without beads. Our choice: with refill, the machine never stops learning.
        empty: Empty = choice("refill"),
        /// Games per task. With 0, a task has as many games as 50 rows need.
        slice: u32 = execution whole(0, GAMES_MAX as u64, "0"),
    }
    check(check)
}

fn check(settings: &Settings) -> Vec<(Name, String)> {
    let Settings { games, every, .. } = *settings;
    if !games.is_multiple_of(every) {
        return vec![(Name::games, format!("games is {games}, which is not a multiple of every, {every}"))];
    }
    if games / every > ROWS_MAX {
        let rows = games / every;
        return vec![(Name::every, format!("that would be {rows} rows of the history: the maximum is {ROWS_MAX}"))];
    }
    Vec::new()
}

impl Settings {
    /// Games per task.
    #[must_use]
    pub fn slice(&self) -> u32 {
        let games = if self.slice == 0 { self.every.saturating_mul(50) } else { self.slice };
        games.min(self.games)
    }

    /// How beads are added and removed.
    #[must_use]
    pub fn rules(&self) -> messages::Rules {
        messages::Rules {
            all_moves: self.moves == Moves::All,
            beads: vec![self.beads_1, self.beads_2, self.beads_3, self.beads_4],
            win: self.win,
            draw: self.draw,
            loss: self.loss,
            resigns: self.empty == Empty::Resign,
        }
    }
}
