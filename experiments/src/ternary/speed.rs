//! Throughput of one core, for `evoxo bench`: games of two short strings with three letters. The first string is repaired.

use std::hint::black_box;

use evoxo_common::{
    experiment::Kernel,
    rng::{Generator, Stream},
};
use evoxo_games::board::{Outcome, Side};

use super::{
    game::{self, Adversary, MoveTally},
    player::{Alphabet, Code},
    reference,
};
use evoxo_games::index::{Classes, Strings};

/// The benchmarked kernels.
pub(super) const KERNELS: &[Kernel] = &[Kernel {
    name: "ternary_games",
    unit: "games/s",
    fast: || games(10_000, game::game),
    reference: || games(100, reference::game),
    parts: None,
}];

/// Plays games and returns their number.
fn games(count: u64, play: fn(Code, &mut [u8], Adversary<'_>, &mut Generator, &mut MoveTally) -> Outcome) -> u64 {
    let rng = &mut Stream::root(1).text("bench").rng();
    let (strings, classes, alphabet) = (Strings::Short, Classes::Rotations, Alphabet::Three);
    let [code, other] = Side::BOTH.map(|side| Code { side, strings, classes, alphabet });
    let (mut genome, opponent) = (code.random(rng), other.random(rng));
    let mut tally = MoveTally::default();
    for _ in 0..count {
        black_box(play(code, &mut genome, Adversary::String(other, &opponent), rng, &mut tally));
    }
    count
}
