//! Throughput of one core, for `evoxo bench`: learning in self-play with the paper's five networks and with some that share
//! weights, in the literal reading. It measures the fast engines and the reference implementations.

use std::{hint::black_box, sync::OnceLock};

use evoxo_common::{experiment::Kernel, rng::Stream};
use evoxo_games::{
    board::{Board, Shape, Side, score_four},
    net::{
        Activation, Architecture, Engine, First, engine,
        learn::{Learner, Learning},
        reference,
    },
};

use super::{
    segment::{Learnt, train},
    wire::Trial,
};

/// A kernel that learns from some games with one of the networks.
macro_rules! learning {
    ($name:literal, $speed:ident) => {
        Kernel {
            name: $name,
            unit: "games/s",
            fast: || learn_games(GAMES, |games| $speed.fast(games)),
            reference: || learn_games(4, |games| $speed.reference(games).weight),
            parts: Some(|| $speed.parts()),
        }
    };
}

/// Learns from games; returns their number.
fn learn_games(games: u64, learn: impl Fn(u64) -> f32) -> u64 {
    black_box(learn(games));
    games
}

/// The benchmarked kernels.
pub(super) const KERNELS: &[Kernel] = &[
    learning!("deep_structured", DEEP_STRUCTURED),
    learning!("small_structured", SMALL_STRUCTURED),
    learning!("small", SMALL),
    learning!("wide", WIDE),
    learning!("deep", DEEP),
    learning!("linear_tuples", LINEAR_TUPLES),
    learning!("tuples", TUPLES),
    learning!("unshared", UNSHARED),
    learning!("shared", SHARED),
];

/// The games that a network learns from before it is measured, because games get longer as it gets stronger. Unoptimised
/// tests only check that this works.
const WARM_UP_GAMES: u64 = if cfg!(debug_assertions) { 20 } else { 20_000 };

/// The games of one measurement. They are enough to make building the engine negligible, and to keep branch prediction from
/// learning them. A task has ten thousand.
const GAMES: u64 = if cfg!(debug_assertions) { 20 } else { 2_000 };

/// A network to benchmark.
struct Speed {
    first: First,
    second: usize,
    shared: bool,
    warm: OnceLock<(Trial, Learnt)>,
}

/// 64-304-1, four detectors for each line.
static SMALL_STRUCTURED: Speed = Speed::new(First::Lines { detectors: 4 }, 0, false);
/// 64-304-32-1.
static DEEP_STRUCTURED: Speed = Speed::new(First::Lines { detectors: 4 }, 32, false);
/// 64-50-1, dense.
static SMALL: Speed = Speed::new(First::Dense { units: 50 }, 0, false);
/// 64-169-1, dense.
static WIDE: Speed = Speed::new(First::Dense { units: 169 }, 0, false);
/// 64-95-51-1, dense.
static DEEP: Speed = Speed::new(First::Dense { units: 95 }, 51, false);
/// Tables alone.
static LINEAR_TUPLES: Speed = Speed::new(First::Tuples { states: 4 }, 0, true);
/// Tables that feed 8 filters in 8 orientations.
static TUPLES: Speed = Speed::new(First::Tuples { states: 4 }, 8, true);
/// 64-304-64-1, four detectors for each line: as large as [`SHARED`], but without shared weights.
static UNSHARED: Speed = Speed::new(First::Lines { detectors: 4 }, 64, false);
/// 64-304-64-1 with shared weights: 8 filters in 8 orientations.
static SHARED: Speed = Speed::new(First::Lines { detectors: 4 }, 8, true);

impl Speed {
    const fn new(first: First, second: usize, shared: bool) -> Self {
        Self { first, second, shared, warm: OnceLock::new() }
    }

    /// The learner after enough games to play as in most of a trial.
    fn warm(&self) -> &(Trial, Learnt) {
        self.warm.get_or_init(|| {
            let (first, second, shape) = (self.first, self.second, Shape::SCORE_FOUR);
            let activation = Activation::Logistic;
            let architecture = Architecture { shape, first, second, biases: false, activation, shared: self.shared };
            let learning = Learning {
                output_derivative: true,
                learns_explorations: true,
                learns_opponents_end: true,
                ..Learning::PLAIN
            };
            let trial = Trial { architecture, learning, stream: Stream::root(1).text("speed") };
            let weights = architecture.initial(trial.stream.text("weights"));
            let learnt = train(&trial, score_four(), &Learnt { weights, average: Vec::new() }, 0..WARM_UP_GAMES);
            (trial, learnt)
        })
    }

    /// Learns from more games with the fast engine, and returns one of the weights.
    fn fast(&self, games: u64) -> f32 {
        let (trial, learnt) = self.warm();
        train(trial, score_four(), learnt, WARM_UP_GAMES..WARM_UP_GAMES + games).weights[0]
    }

    /// The same, with the reference implementation.
    fn reference(&self, games: u64) -> Counted {
        let (trial, learnt) = self.warm();
        learn(reference::of(&trial.architecture, &learnt.weights), trial, games)
    }

    /// The average contents of a game, over the measured games. Later games differ in length from the first ones.
    fn parts(&self) -> Vec<(&'static str, f64)> {
        let (trial, learnt) = self.warm();
        let Counted { moves, steps, .. } = learn(engine(&trial.architecture, &learnt.weights), trial, GAMES);
        [("moves valued/s", moves), ("learning steps/s", steps)].map(|(name, n)| (name, n as f64 / GAMES as f64)).into()
    }
}

fn learn(engine: Box<dyn Engine>, trial: &Trial, games: u64) -> Counted {
    let mut counting = Counting { engine, moves: 0, steps: 0 };
    let mut learner = Learner::new(&mut counting, score_four(), trial.architecture.activation, trial.learning);
    learner.train(trial.stream, WARM_UP_GAMES..WARM_UP_GAMES + games, None);
    Counted { weight: counting.engine.weights()[0], moves: counting.moves, steps: counting.steps }
}

/// The counts of some games.
struct Counted {
    /// One of the weights after the games.
    weight: f32,
    /// Moves that were evaluated.
    moves: u64,
    /// Steps of learning.
    steps: u64,
}

/// An engine that counts the calls it gets.
struct Counting {
    engine: Box<dyn Engine>,
    moves: u64,
    steps: u64,
}

impl Engine for Counting {
    fn reset(&mut self) {
        self.engine.reset();
    }

    fn values(&mut self, legal: u64, out: &mut [f32; 64]) {
        self.moves += u64::from(legal.count_ones());
        self.engine.values(legal, out);
    }

    fn value(&mut self, side: Side) -> f32 {
        self.moves += 1;
        self.engine.value(side)
    }

    fn play(&mut self, cell: u8) {
        self.engine.play(cell);
    }

    fn learn(&mut self, board: Board, side: Side, target: f32, rate: f32, derivative: bool) {
        self.steps += 1;
        self.engine.learn(board, side, target, rate, derivative);
    }

    fn weights(&self) -> Vec<f32> {
        self.engine.weights()
    }
}
