//! What `invincible` can be told.

use evoxo_common::{choice, ratio::Ratio, settings};
use evoxo_games::board;

choice! {
    /// A side of the board.
    pub enum Side {
        /// 58 boards to know, the empty one included
        X = "X",
        /// 43 boards to know
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
    /// How a player is judged.
    pub enum Fitness {
        /// by games against the random mover, as in the source
        Sampled = "sampled",
        /// by its exact probabilities to win and to lose, without luck
        Exact = "exact",
    }
}

settings! {
    /// Table players of 3x3 tic-tac-toe that evolve until they stop losing. Both sides complete a line or block one before
    /// they choose; what is left to a player is one move for every other board it can meet. All play against a random mover.
    pub struct Settings, names Name, schema SCHEMA {
        /// The side that evolves; X moves first.
        side: Side = choice("O"),
        /// Fitness is wins minus this times losses. The source tried 1, 100, and 6 or 7, which it calls best.
        penalty: Ratio = decimal(0, 1_000_000, "6.5"),
        /// How a player is judged.
        fitness: Fitness = choice("sampled"),
        /// Games each player plays in a generation; only for sampled fitness. The source: 1000.
        games: u32 = whole(1, 1_000_000, "1000"),
        /// Players of a generation. The source: 1000.
        population: usize = whole(2, 65_536, "1000"),
        /// Number of fittest players that are kept and become the parents of the others. The source: 10.
        fathers: usize = whole(1, 65_536, "10"),
        /// Generations judged; the champion is the best of the last. The source saw the peak within 6 to 10.
        generations: u32 = whole(1, 100_000, "20"),
        /// The share of children with more than one gene changed. The source says a small number; the figure is ours.
        more_mutations: Ratio = decimal(0, 1, "0.1"),
        /// The most genes changed in one of those children; each number from 2 is equally likely. Ours.
        mutations_max: u64 = whole(2, 16, "4"),
        /// Players scored by one task; 0 makes tasks of some ten milliseconds.
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
