//! Throughput of one core, for `evoxo bench`: sampled games and exact odds of random tables.

use std::{hint::black_box, sync::LazyLock};

use evoxo_common::{experiment::Kernel, rng::Stream};
use evoxo_games::{
    board::Side,
    table::{TableGenome, exact::Scorer, reference},
};

use super::sampled::Program;

/// Games of a player in one measurement step.
const GAMES: u32 = 1000;

/// Random tables of both sides.
static PLAYERS: LazyLock<Vec<TableGenome>> = LazyLock::new(|| {
    let mut rng = Stream::root(1).text("bench").rng();
    (0..64).flat_map(|_| Side::BOTH).map(|side| TableGenome::random(side, &mut rng)).collect()
});

/// The benchmarked kernels.
pub(super) const KERNELS: &[Kernel] = &[
    Kernel {
        name: "sampled_games",
        unit: "games/s",
        fast: || {
            let mut rng = Stream::root(1).text("games").rng();
            let play = |player: &TableGenome| Program::compile(player.side(), player.genes()).play(GAMES, &mut rng);
            black_box(PLAYERS.iter().map(play).fold(0, |sum, score| sum ^ score.wins));
            PLAYERS.len() as u64 * u64::from(GAMES)
        },
        reference: || {
            let mut rng = Stream::root(1).text("games").rng();
            let play = |player| reference::sampled(player, GAMES, &mut rng).wins;
            black_box(PLAYERS[..2].iter().map(play).fold(0, |sum, wins| sum ^ wins));
            2 * u64::from(GAMES)
        },
        parts: None,
    },
    Kernel {
        name: "exact_fitness",
        unit: "players/s",
        fast: || {
            let score = |player: &TableGenome| Scorer::of(player.side()).score(player.genes()).wins;
            let all = || black_box(&*PLAYERS).iter().fold(0, |sum, player| sum ^ score(player));
            black_box((0..100).fold(0, |sum, _| sum ^ all()));
            100 * PLAYERS.len() as u64
        },
        reference: || {
            PLAYERS[..2].iter().for_each(|player| _ = black_box(reference::exact(player)));
            2
        },
        parts: None,
    },
];
