//! What `ternary` can be told.

use evoxo_common::{choice, ratio::Ratio, settings};
use evoxo_games::board;

use super::{index::Strings, player::Alphabet};

choice! {
    /// The side that is reported; X moves first.
    pub enum Side {
        /// 612 or 104 decisions
        X = "X",
        /// 526 or 68 decisions
        O = "O",
    }
}

choice! {
    /// What the random mover knows. Of several cells that complete a line, or block one, it takes the lowest; the
    /// exact odds with the rules are against one that takes any of them, each equally likely.
    pub enum RandomMover {
        /// nothing: every empty cell is equally likely
        Plain = "plain",
        /// to complete a line, else to block one
        Rules = "rules",
    }
}

choice! {
    /// How two parents make two children.
    pub enum Crossover {
        /// tails behind one cut are exchanged
        OnePoint = "one-point",
        /// the stretch between two cuts is exchanged
        TwoPoint = "two-point",
        /// children are copies
        None = "none",
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

settings! {
    /// Players of 3x3 tic-tac-toe whose moves are letters of a string, one place for every board (turned boards share
    /// one). A string that names a taken cell is repaired: a random empty one is played and written instead. The
    /// chapter ends before its genetic algorithm, so the operators and their figures are ours.
    pub struct Settings, names Name, schema SCHEMA {
        /// The side that is reported; X moves first.
        side: Side = choice("X"),
        /// Which decisions a string holds.
        strings: Strings = choice("short"),
        /// Letters of the alphabet: 9 (a letter is a cell) or 3 (two letters are a cell). The chapter takes 3.
        alphabet: Alphabet = choice("3"),
        /// Generations played; the champion is the best of the last.
        generations: u32 = whole(1, 100_000, "200"),
        /// Strings of a side.
        population: usize = whole(2, 4_096, "100"),
        /// Games of each player in a generation against strings drawn from the other side's population, which evolves
        /// alike; with 0 there is none.
        opponents: u32 = whole(0, 65_536, "50"),
        /// Games of each player in a generation against a random mover.
        random_games: u32 = whole(0, 1_000_000, "50"),
        /// What the random mover knows. Of several cells that complete a line, or block one, it takes the lowest; the
        /// exact odds with the rules are against one that takes any of them, each equally likely.
        random_mover: RandomMover = choice("plain"),
        /// Fitness is wins minus this times losses.
        penalty: Ratio = decimal(0, 1_000_000, "1"),
        /// The fittest so many of a side stay as they are; the others are children of parents chosen by binary
        /// tournament.
        elite: usize = whole(1, 4_096, "2"),
        /// How two parents make two children.
        crossover: Crossover = choice("two-point"),
        /// The share of pairs that cross; the others are copied.
        crossover_rate: Ratio = decimal(0, 1, "0.9"),
        /// Letters of a child that are redrawn, on average: each with this over the number of letters.
        mutations: Ratio = decimal(0, 68, "1"),
        /// Players of one task; 0 sends a side's whole population as one.
        slice: usize = execution whole(0, 4_096, "0"),
    }
    check(check)
}

fn check(settings: &Settings) -> Vec<(Name, String)> {
    let mut problems = Vec::new();
    let Settings { elite, population, .. } = *settings;
    if elite > population {
        problems.push((Name::elite, format!("elite is {elite}, but the population is only {population}")));
    }
    if settings.opponents + settings.random_games == 0 {
        let sentence = "opponents and random_games are both 0, so nobody would play: give one of them";
        problems.push((Name::opponents, sentence.into()));
    }
    problems
}
