//! The settings of `ternary`.

use evoxo_common::{choice, ratio::Ratio, settings};
use evoxo_games::board;

use super::player::{Alphabet, Code};
use evoxo_games::index::{Classes, Strings};

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
    /// The rules of the random mover. If several cells complete a line, or several block one, it takes the lowest. The exact
    /// odds with the rules are against a mover that takes any of them with equal probability.
    pub enum RandomMover {
        /// none: every empty cell is equally likely
        Plain = "plain",
        /// it completes a line, or else blocks one
        Rules = "rules",
    }
}

choice! {
    /// How two parents make two children.
    pub enum Crossover {
        /// the parts after one cut are exchanged
        OnePoint = "one-point",
        /// the part between two cuts is exchanged
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

impl Settings {
    /// The meaning of the reported side's strings.
    #[must_use]
    pub fn code(&self) -> Code {
        let Self { side, strings, classes, alphabet, .. } = *self;
        Code { side: side.into(), strings, classes, alphabet }
    }
}

settings! {
    /// Players of 3x3 tic-tac-toe whose moves are the letters of a string. The string has one place for every board, and
    /// rotated boards share one. Where a string names a taken cell, it is repaired: a random empty cell is played and written
    /// instead. The chapter ends before its genetic algorithm, so the operators and their parameters are our choice.
    pub struct Settings, names Name, schema SCHEMA {
        /// The side that is reported; X moves first.
        side: Side = choice("X"),
        /// The decisions that a string holds.
        strings: Strings = choice("short"),
        /// Which boards share a place of the string.
        classes: Classes = addition choice("rotations"),
        /// Letters of the alphabet: 9 (one letter is a cell) or 3 (two letters are a cell). The chapter uses 3.
        alphabet: Alphabet = choice("3"),
        /// Number of generations. The champion is the best player of the last one.
        generations: u32 = length whole(1, 100_000, "200"),
        /// Strings per side.
        population: usize = whole(2, 4_096, "100"),
        /// Games of each player per generation against strings drawn from the other side's population, which evolves in the
        /// same way. With 0, there is no such population.
        opponents: u32 = whole(0, 65_536, "50"),
        /// Games of each player per generation against a random mover.
        random_games: u32 = whole(0, 1_000_000, "50"),
        /// The rules of the random mover. If several cells complete a line, or several block one, it takes the lowest. The
        /// exact odds with the rules are against a mover that takes any of them with equal probability.
        random_mover: RandomMover = choice("plain") when random_games not ["0"],
        /// The cost of a loss: fitness is wins minus this number times losses.
        penalty: Ratio = decimal(0, 1_000_000, "1"),
        /// Number of fittest strings of each side that are kept unchanged. The others are children of parents chosen by
        /// binary tournament.
        elite: usize = whole(1, 4_096, "2"),
        /// How two parents make two children.
        crossover: Crossover = choice("two-point"),
        /// The share of pairs that are crossed. The others are copied.
        crossover_rate: Ratio = decimal(0, 1, "0.9") when crossover not ["none"],
        /// The mean number of letters of a child that are redrawn. Each letter is equally likely.
        mutations: Ratio = decimal(0, 68, "1"),
        /// Players per task. With 0, a side's whole population is one task.
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
    let shortest = board::Side::BOTH.map(|side| Code { side, ..settings.code() }.len()).into_iter().min().unwrap_or(0);
    if settings.mutations > Ratio::from(shortest as i64) {
        let sentence =
            format!("mutations is {}, but a string has only {shortest} letters", settings.mutations.to_f64());
        problems.push((Name::mutations, sentence));
    }
    if settings.opponents + settings.random_games == 0 {
        let sentence = "opponents and random_games are both 0, so there would be no games: give one of them";
        problems.push((Name::opponents, sentence.into()));
    }
    problems
}
