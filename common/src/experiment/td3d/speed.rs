//! What one core learns in a second: self-play of the paper's five networks, and of some with shared weights, read
//! literally, by the fast engines and by the slow twins. For benchmarks.

use std::sync::OnceLock;

use super::{
    segment::{Learnt, train},
    wire::Trial,
};
use crate::{
    board::{Shape, score_four},
    net::{
        Activation, Architecture, Engine, First,
        learn::{Learner, Learning, Opponent, Rate},
        plain::{Plain, Shared, Tables},
    },
    rng::Stream,
};

/// Games a network has learnt from before it is measured: games grow longer with strength. Tests that are not optimised
/// need only see that it works.
const WARM_UP_GAMES: u64 = if cfg!(debug_assertions) { 20 } else { 20_000 };

/// Games that a measurement of [`Speed::fast`] asks for at once: enough that making the engine does not count, and that no
/// branch is known by heart. A task has ten thousand.
pub const GAMES: u64 = 2_000;

/// One of the networks.
#[derive(Debug)]
pub struct Speed {
    first: First,
    second: usize,
    shared: bool,
    warm: OnceLock<(Trial, Learnt)>,
}

/// 64-304-1, four detectors for each line.
pub static SMALL_STRUCTURED: Speed = Speed::new(First::Lines { detectors: 4 }, 0, false);
/// 64-304-32-1.
pub static DEEP_STRUCTURED: Speed = Speed::new(First::Lines { detectors: 4 }, 32, false);
/// 64-50-1, dense.
pub static SMALL: Speed = Speed::new(First::Dense { units: 50 }, 0, false);
/// 64-169-1, dense.
pub static WIDE: Speed = Speed::new(First::Dense { units: 169 }, 0, false);
/// 64-95-51-1, dense.
pub static DEEP: Speed = Speed::new(First::Dense { units: 95 }, 51, false);
/// Tables alone.
pub static LINEAR_TUPLES: Speed = Speed::new(First::Tuples { states: 4 }, 0, true);
/// Tables that feed 8 filters in 8 orientations.
pub static TUPLES: Speed = Speed::new(First::Tuples { states: 4 }, 8, true);
/// 64-304-64-1, four detectors for each line: as large as the next, without shared weights.
pub static UNSHARED: Speed = Speed::new(First::Lines { detectors: 4 }, 64, false);
/// 64-304-64-1 with shared weights: 8 filters in 8 orientations.
pub static SHARED: Speed = Speed::new(First::Lines { detectors: 4 }, 8, true);

/// All of them, by name.
pub static NETWORKS: [(&str, &Speed); 9] = [
    ("deep structured", &DEEP_STRUCTURED),
    ("small structured", &SMALL_STRUCTURED),
    ("small", &SMALL),
    ("wide", &WIDE),
    ("deep", &DEEP),
    ("linear tuples", &LINEAR_TUPLES),
    ("tuples", &TUPLES),
    ("unshared", &UNSHARED),
    ("shared", &SHARED),
];

impl Speed {
    const fn new(first: First, second: usize, shared: bool) -> Self {
        Self { first, second, shared, warm: OnceLock::new() }
    }

    /// The learner after so many games that it plays as it does for most of a trial.
    fn warm(&self) -> &(Trial, Learnt) {
        self.warm.get_or_init(|| {
            let (first, second, shape) = (self.first, self.second, Shape::SCORE_FOUR);
            let activation = Activation::Logistic;
            let architecture = Architecture { shape, first, second, biases: false, activation, shared: self.shared };
            let learning = Learning {
                opponent: Opponent::Itself,
                rate: Rate { start: 0.005, end: 0.005, games: 1 },
                epsilon: 0.1,
                gamma: 1.0,
                learner_first: false,
                output_derivative: true,
                learns_explorations: true,
                bootstrapped_end: false,
                learns_opponents_end: true,
                exact_wins: false,
                averaging_games: 0,
            };
            let trial = Trial { architecture, learning, stream: Stream::root(1).text("speed") };
            let weights = architecture.initial(trial.stream.text("weights"));
            let learnt = train(&trial, score_four(), &Learnt { weights, average: Vec::new() }, 0..WARM_UP_GAMES);
            (trial, learnt)
        })
    }

    /// Learns from so many games more, with the fast engine, and says one of the weights.
    #[must_use]
    pub fn fast(&self, games: u64) -> f32 {
        let (trial, learnt) = self.warm();
        train(trial, score_four(), learnt, WARM_UP_GAMES..WARM_UP_GAMES + games).weights[0]
    }

    /// The same with the slow twin.
    #[must_use]
    pub fn slow(&self, games: u64) -> f32 {
        let (trial, learnt) = self.warm();
        match self.first {
            First::Tuples { .. } => learn(Tables::new(&trial.architecture, &learnt.weights), trial, games),
            _ if self.shared => learn(Shared::new(&trial.architecture, &learnt.weights), trial, games),
            _ => learn(Plain::new(&trial.architecture, &learnt.weights), trial, games),
        }
    }
}

fn learn(mut engine: impl Engine, trial: &Trial, games: u64) -> f32 {
    let mut learner = Learner::new(&mut engine, score_four(), trial.architecture.activation, trial.learning);
    learner.train(trial.stream, WARM_UP_GAMES..WARM_UP_GAMES + games, None);
    engine.weights()[0]
}
