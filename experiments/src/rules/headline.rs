//! The question of `rules`: how strong is the best agent with each change, and without it? The figure is the mean of the last
//! tenth of the cycles, as in the tables.
//!
//! The name of every random stream contains the arm's name, so arms share nothing. Strength is exact and against the same
//! random mover, so all arms can be compared.

use evoxo_common::{
    experiment::{Config, ReplicaTold},
    headline::{Headline, Question},
};

use super::{
    Row,
    facts::{Arm, Facts},
};

/// Of this many cycles, how many of the last ones strength is averaged over.
pub(super) fn tail(cycles: usize) -> usize {
    cycles.div_ceil(10)
}

pub(super) fn headline(config: &Config, arms: &[Arm]) -> Headline {
    let strength = |replica: &ReplicaTold<Facts>| Some(replica.figures.as_ref()?.ends(Row::strength).last);
    let entry = |(arm, told): (usize, &Arm)| ReplicaTold::entry(&config.arms[arm].name, &told.replicas, strength);
    let first = &config.arms[0].name;
    let question = Question {
        asks: format!("Is the best agent of another arm stronger than that of {first:?}?"),
        figure: "% of the points against a random mover, mean of the last tenth of the cycles".into(),
        by: Question::from_the_first(arms.len()),
        shared: None,
        arms: arms.iter().enumerate().map(entry).collect(),
    };
    Headline { sentences: Vec::new(), questions: vec![question] }
}
