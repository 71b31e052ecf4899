//! Throughput of one core: learning in self-play of the paper's five networks, and of some with shared weights, in the
//! literal reading, by the fast engines and by the reference implementations. For `evoxo bench`.

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

/// The kernels.
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

/// Games a network learns from before it is measured, because games get longer with strength. Unoptimised tests only
/// check that it works.
const WARM_UP_GAMES: u64 = if cfg!(debug_assertions) { 20 } else { 20_000 };

/// Games of one measurement: enough that building the engine is negligible and branch prediction cannot learn them. A
/// task has ten thousand.
const GAMES: u64 = if cfg!(debug_assertions) { 20 } else { 2_000 };

/// One of the networks.
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
/// 64-304-64-1, four detectors for each line: as large as the next, without shared weights.
static UNSHARED: Speed = Speed::new(First::Lines { detectors: 4 }, 64, false);
/// 64-304-64-1 with shared weights: 8 filters in 8 orientations.
static SHARED: Speed = Speed::new(First::Lines { detectors: 4 }, 8, true);

impl Speed {
    const fn new(first: First, second: usize, shared: bool) -> Self {
        Self { first, second, shared, warm: OnceLock::new() }
    }

    /// The learner after enough games that it plays as in most of a trial.
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

    /// The same with the reference implementation.
    fn reference(&self, games: u64) -> Counted {
        let (trial, learnt) = self.warm();
        learn(reference::of(&trial.architecture, &learnt.weights), trial, games)
    }

    /// What a game consists of, on average over the games that are measured: they differ in length from the first to the last.
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

/// What some games took.
struct Counted {
    /// One of the weights after them.
    weight: f32,
    /// Moves that were valued.
    moves: u64,
    /// Steps of learning.
    steps: u64,
}

/// An engine that counts what it is asked.
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
