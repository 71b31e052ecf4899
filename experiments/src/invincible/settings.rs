//! The settings of `invincible`.

use evoxo_common::{choice, ratio::Ratio, settings};
use evoxo_games::{board, table::Points};

choice! {
    /// A side of the board.
    pub enum Side {
        /// decides on 58 boards, including the empty one
        X = "X",
        /// decides on 43 boards
        O = "O",
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

choice! {
    /// How a player's fitness is computed.
    pub enum Fitness {
        /// from games against the random mover, as in the source
        Sampled = "sampled",
        /// from the player's exact probabilities to win and to lose, without luck
        Exact = "exact",
    }
}

impl Settings {
    /// The points for the outcomes of a game.
    #[must_use]
    pub fn points(&self) -> Points {
        Points { win: self.win, draw: self.draw, penalty: self.penalty }
    }
}

settings! {
    /// Table players of 3x3 tic-tac-toe evolve until they stop losing. Both sides first complete a line, or else block one.
    /// On every other board a player has one fixed move. All players play against a random mover.
    pub struct Settings, names Name, schema SCHEMA {
        /// The side that evolves; X moves first.
        side: Side = choice("O"),
        /// The cost of a loss in points; fitness is the points of all games. The source tried 1, 100, and 6 or 7, which it
        /// calls best.
        penalty: Ratio = decimal(0, 1_000_000, "6.5"),
        /// Points for a win. The source: 1. If a win is worth more than a draw, players rank as with win = 1, draw = 0 and a
        /// penalty of (penalty + draw) / (win - draw).
        win: Ratio = addition decimal(-1_000_000, 1_000_000, "1"),
        /// Points for a draw. The source: 0.
        draw: Ratio = addition decimal(-1_000_000, 1_000_000, "0"),
        /// How a player's fitness is computed.
        fitness: Fitness = choice("sampled"),
        /// Games of each player per generation. The source: 1000.
        games: u32 = whole(1, 1_000_000, "1000") when fitness is ["sampled"],
        /// Players per generation. The source: 1000.
        population: usize = whole(2, 65_536, "1000"),
        /// Number of fittest players that are kept and become the parents of the others. The source: 10.
        fathers: usize = whole(1, 65_536, "10"),
        /// Number of generations. The champion is the best player of the last one. The source saw the peak within 6 to 10.
        generations: u32 = length whole(1, 100_000, "20"),
        /// The share of children with more than one gene changed. The source says a small number; this value is our choice.
        more_mutations: Ratio = decimal(0, 1, "0.1"),
        /// The most genes changed in one of those children. Each number from 2 up to it is equally likely. Our choice.
        mutations_max: u64 = whole(2, 16, "4") when more_mutations not ["0"],
        /// Players per task. With 0, a task takes about 10 ms.
        slice: usize = execution whole(0, 65_536, "0"),
    }
    check(|settings| {
        let Settings { fathers, population, .. } = *settings;
        match fathers > population {
            true => vec![(Name::fathers, format!("fathers is {fathers}, but the population is only {population}"))],
            false => Vec::new(),
        }
    })
}
