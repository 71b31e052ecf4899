//! Throughput of one core, for `evoxo bench`: games of a machine that learns against a random mover.

use std::hint::black_box;

use evoxo_common::{
    experiment::Kernel,
    rng::{Generator, Stream},
};
use evoxo_games::board::Side;

use super::{
    machine::{self, Ending, Machine, Opponent},
    messages::Rules,
    reference,
};

/// The benchmarked kernels.
pub(super) const KERNELS: &[Kernel] = &[Kernel {
    name: "menace_games",
    unit: "games/s",
    fast: || games(10_000, machine::game),
    reference: || games(30, reference::game),
    parts: None,
}];

/// Plays games and returns their number.
fn games(count: u64, play: fn(&mut Machine, &mut Opponent, &Rules, &mut Generator) -> Ending) -> u64 {
    let rules = Rules { all_moves: false, beads: vec![4, 3, 2, 1], win: 3, draw: 1, loss: -1, resigns: false };
    let mut machine = Machine::fresh(Side::X, &rules);
    let stream = Stream::root(1).text("bench");
    for number in 0..count {
        black_box(play(&mut machine, &mut Opponent::Random, &rules, &mut stream.word(number).rng()));
    }
    count
}
