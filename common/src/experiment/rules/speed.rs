//! What one core plays in a second: games of two agents of 100 rules, and whole cycles of the page's example, by the index and
//! by the slow twin. For benchmarks.

use super::{
    agent::Agent,
    couple,
    index::Ready,
    options::Options,
    plain,
    population::{Played, Population},
};
use crate::{
    config::Config,
    rng::{Generator, Stream},
};

/// The page's example.
fn example() -> (Options, Population) {
    let config = Config::parse("rules", "experiment = \"rules\"", &[]).expect("the defaults are good settings");
    let options = Options::of(&config.arms[0].settings);
    let population = Population::start(&options, Stream::root(1).text("bench"));
    (options, population)
}

/// Two agents as they are after 100 cycles of the page's example.
#[must_use]
pub fn agents() -> [Agent; 2] {
    let (options, mut population) = example();
    let stream = Stream::root(1).text("bench");
    (0..100).for_each(|cycle| _ = population.cycle(&options, stream, cycle));
    [population.agents[0].clone(), population.agents[1].clone()]
}

/// Makes both ready and lets them play so many games; returns the difference of games won.
#[must_use]
pub fn fast(agents: &[Agent; 2], games: u32, rng: &mut Generator) -> i32 {
    couple::play(&mut agents.each_ref().map(Ready::new), games, rng).points
}

/// The same by the slow twin.
#[must_use]
pub fn slow(agents: &[Agent; 2], games: u32, rng: &mut Generator) -> i32 {
    plain::play(&mut agents.clone(), games, rng).points
}

/// Computes so many cycles of the page's example from its beginning; returns the best agent's weight.
#[must_use]
pub fn cycles(cycles: u32) -> i32 {
    let (options, mut population) = example();
    let stream = Stream::root(1).text("bench");
    (0..cycles).map(|cycle| population.cycle(&options, stream, cycle).best).last().unwrap_or_default()
}

/// The same with the games played by the slow twin.
#[must_use]
pub fn slow_cycles(cycles: u32) -> i32 {
    let (options, mut population) = example();
    let mut best = 0;
    for cycle in 0..cycles {
        let stream = Stream::root(1).text("bench").word(cycle.into());
        population.renew(&options, stream, cycle);
        let couples = population.couples(&options, stream);
        let play = |(number, couple): (u64, &[usize; 2])| {
            let before = couple.map(|agent| population.agents[agent].clone());
            let mut after = before.clone();
            let rng = &mut stream.text("couple").word(number).rng();
            let tally = plain::play(&mut after, options.games, rng);
            let change = |one: usize| after[one].weights.iter().zip(&before[one].weights).map(|(a, b)| a - b).collect();
            Played { tally, changes: [0, 1].map(change) }
        };
        let played: Vec<Played> = (0..).zip(&couples).map(play).collect();
        best = population.end_of_cycle(&options, stream, &couples, &played).best;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_compute_the_same() {
        assert_eq!(cycles(20), slow_cycles(20));
        let (agents, stream) = (agents(), Stream::root(2));
        assert_eq!(fast(&agents, 200, &mut stream.rng()), slow(&agents, 200, &mut stream.rng()));
    }
}
