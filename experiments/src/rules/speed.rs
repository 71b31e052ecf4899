//! Throughput of one core, for `evoxo bench`: games of two agents with 100 rules, and whole cycles of the page's example. It
//! measures the index and the reference implementation.

use std::{hint::black_box, sync::LazyLock};

use evoxo_common::{
    experiment::Kernel,
    rng::{Generator, Stream},
};

use super::{
    agent::Agent,
    couple,
    index::{IndexedAgent, with_blocks},
    population::{Played, Population},
    reference,
    settings::{SCHEMA, Settings},
};

/// The benchmarked kernels.
pub(super) const KERNELS: &[Kernel] = &[
    Kernel {
        name: "rules_games",
        unit: "games/s",
        fast: || counted(1000, |games| fast_games(&AGENTS, games, &mut Stream::root(1).rng())),
        reference: || counted(1000, |games| reference_games(&AGENTS, games, &mut Stream::root(1).rng())),
        parts: None,
    },
    Kernel {
        name: "rules_cycles",
        unit: "cycles/s",
        fast: || counted(20, fast_cycles),
        reference: || counted(2, reference_cycles),
        parts: None,
    },
];

/// Plays games or cycles, and returns their number.
fn counted(count: u32, play: impl FnOnce(u32) -> i32) -> u64 {
    black_box(play(black_box(count)));
    count.into()
}

/// The page's example.
fn example() -> (Settings, Population) {
    let settings = Settings::of(&SCHEMA.defaults());
    let population = Population::start(&settings, Stream::root(1).text("bench"));
    (settings, population)
}

/// Two agents after 100 cycles of the page's example.
static AGENTS: LazyLock<[Agent; 2]> = LazyLock::new(|| {
    let (settings, mut population) = example();
    let stream = Stream::root(1).text("bench");
    (0..100).for_each(|cycle| _ = population.cycle(&settings, stream, cycle));
    [population.agents[0].clone(), population.agents[1].clone()]
});

/// Prepares both agents and plays games. Returns the difference of games won.
fn fast_games(agents: &[Agent; 2], games: u32, rng: &mut Generator) -> i32 {
    with_blocks!(agents[0].rules.len(), BLOCKS => {
        couple::play(&mut agents.each_ref().map(IndexedAgent::<BLOCKS>::new), games, rng).points
    })
}

/// The same, with the reference implementation.
fn reference_games(agents: &[Agent; 2], games: u32, rng: &mut Generator) -> i32 {
    reference::play(&mut agents.clone(), games, rng).points
}

/// Computes cycles of the page's example from its beginning. Returns the best agent's weight.
fn fast_cycles(cycles: u32) -> i32 {
    let (settings, mut population) = example();
    let stream = Stream::root(1).text("bench");
    (0..cycles).map(|cycle| population.cycle(&settings, stream, cycle).best).last().unwrap_or_default()
}

/// The same, but the reference implementation plays the games.
fn reference_cycles(cycles: u32) -> i32 {
    let (settings, mut population) = example();
    let mut best = 0;
    for cycle in 0..cycles {
        let stream = Stream::root(1).text("bench").word(cycle.into());
        population.renew(&settings, stream, cycle);
        let couples = population.couples(&settings, stream);
        let play = |(number, couple): (u64, &[usize; 2])| {
            let before = couple.map(|agent| population.agents[agent].clone());
            let mut after = before.clone();
            let rng = &mut stream.text("couple").word(number).rng();
            let tally = reference::play(&mut after, settings.games, rng);
            let change = |one: usize| after[one].weights.iter().zip(&before[one].weights).map(|(a, b)| a - b).collect();
            Played { tally, changes: [0, 1].map(change) }
        };
        let played: Vec<Played> = (0..).zip(&couples).map(play).collect();
        best = population.end_of_cycle(&settings, stream, &couples, &played).best;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_implementations_agree() {
        assert_eq!(fast_cycles(20), reference_cycles(20));
        let stream = Stream::root(2);
        let [fast, reference] = [fast_games, reference_games].map(|play| play(&AGENTS, 200, &mut stream.rng()));
        assert_eq!(fast, reference);
    }
}
