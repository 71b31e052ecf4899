//! Converts a learner between the form in which messages carry it and the types that compute. Messages are checked here and
//! nowhere else.

use bytes::Bytes;
use evoxo_common::{rng::Stream, task::Refusal};
use evoxo_games::{
    board::Shape,
    net::{
        Activation, Architecture, First,
        learn::{FinishedBoard, Learning, Opponent, Rate, Tally},
    },
};

use super::messages::{self, network};

/// The most weights of a network. Together with their averages, they fit in a task.
pub const WEIGHTS_MAX: usize = 1_000_000;

/// A network, how it learns, and where its random numbers come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// It has at most [`WEIGHTS_MAX`] weights.
    pub architecture: Architecture,
    /// See [`evoxo_games::net::learn`].
    pub learning: Learning,
    /// The replica's stream.
    pub stream: Stream,
}

impl Trial {
    /// Reads and checks a message.
    ///
    /// # Errors
    /// A message that says what is invalid.
    pub fn read(trial: Option<&messages::Trial>) -> Result<Self, Refusal> {
        let trial = trial.ok_or_else(|| Refusal("the task has no trial".into()))?;
        let (Some(network), Some(learning)) = (&trial.network, &trial.learning) else {
            return Err(Refusal("the trial has no network or no learning parameters".into()));
        };
        Ok(Self {
            architecture: read_network(network)?,
            learning: read_learning(learning)?,
            stream: Stream::from_words(trial.stream_high, trial.stream_low),
        })
    }

    /// The trial as a message. [`Trial::read`] is the inverse.
    #[must_use]
    pub fn write(&self) -> messages::Trial {
        messages::Trial {
            network: Some(write_network(&self.architecture)),
            learning: Some(write_learning(&self.learning)),
            stream_high: self.stream.high(),
            stream_low: self.stream.low(),
        }
    }
}

fn read_network(network: &messages::Network) -> Result<Architecture, Refusal> {
    let figures = network.shape.ok_or_else(|| Refusal("the network has no board".into()))?;
    let small =
        |figure: u32| u8::try_from(figure).map_err(|_| Refusal(format!("a board cannot have the size {figure}")));
    let first = match network.first {
        Some(network::First::DenseUnits(units)) => First::Dense { units: units as usize },
        Some(network::First::LineDetectors(detectors)) => First::Lines { detectors: detectors as usize },
        Some(network::First::Planes(messages::Planes { line_detectors, units })) => {
            First::Planes { detectors: line_detectors as usize, units: units as usize }
        }
        Some(network::First::TupleStates(states)) => First::Tuples { states: states as usize },
        None => return Err(Refusal("the network has no first layer".into())),
    };
    let activation = match network.activation() {
        messages::Activation::Logistic => Activation::Logistic,
        messages::Activation::LogisticUnhalved => Activation::LogisticUnhalved,
        messages::Activation::Tanh => Activation::Tanh,
        messages::Activation::Unspecified => {
            return Err(Refusal(format!(
                "{} is not an activation: give logistic, logistic-unhalved or tanh",
                network.activation
            )));
        }
    };
    let shape = Shape {
        width: small(figures.width)?,
        height: small(figures.height)?,
        depth: small(figures.depth)?,
        k: small(figures.k)?,
        gravity: figures.gravity,
    };
    let second = network.second as usize;
    let architecture =
        Architecture { shape, first, second, biases: network.biases, activation, shared: network.shared };
    check_network(&architecture).map_err(Refusal)?;
    Ok(architecture)
}

/// Checks that a network can be built and fits in a task.
///
/// # Errors
/// A message that says what is wrong.
pub fn check_network(architecture: &Architecture) -> Result<(), String> {
    architecture.check()?;
    match architecture.parameters() {
        0..=WEIGHTS_MAX => Ok(()),
        count => Err(format!("the network would have {count} weights: make it smaller, with at most {WEIGHTS_MAX}")),
    }
}

fn write_network(architecture: &Architecture) -> messages::Network {
    let Shape { width, height, depth, k, gravity } = architecture.shape;
    let [width, height, depth, k] = [width, height, depth, k].map(u32::from);
    let first = match architecture.first {
        First::Dense { units } => network::First::DenseUnits(units as u32),
        First::Lines { detectors } => network::First::LineDetectors(detectors as u32),
        First::Planes { detectors, units } => {
            network::First::Planes(messages::Planes { line_detectors: detectors as u32, units: units as u32 })
        }
        First::Tuples { states } => network::First::TupleStates(states as u32),
    };
    let activation = match architecture.activation {
        Activation::Logistic => messages::Activation::Logistic,
        Activation::LogisticUnhalved => messages::Activation::LogisticUnhalved,
        Activation::Tanh => messages::Activation::Tanh,
    };
    messages::Network {
        shape: Some(messages::BoardShape { width, height, depth, k, gravity }),
        first: Some(first),
        second: architecture.second as u32,
        biases: architecture.biases,
        activation: activation.into(),
        shared: architecture.shared,
    }
}

fn read_learning(learning: &messages::Learning) -> Result<Learning, Refusal> {
    let opponent = match learning.opponent() {
        messages::Opponent::Itself => Opponent::Itself,
        messages::Opponent::Benchmark => Opponent::Benchmark,
        messages::Opponent::Unspecified => {
            return Err(Refusal(format!("{} is not an opponent: give itself or benchmark", learning.opponent)));
        }
    };
    let rates = [learning.rate_start, learning.rate_end];
    if rates.iter().any(|rate| !rate.is_finite() || *rate < 0.0) || learning.games == 0 {
        return Err(Refusal(format!(
            "a learning rate cannot go from {} to {} in {} games",
            rates[0], rates[1], learning.games
        )));
    }
    for (what, share) in
        [("epsilon", learning.epsilon), ("gamma", learning.gamma.into()), ("test_epsilon", learning.test_epsilon)]
    {
        if !(0.0..=1.0).contains(&share) {
            return Err(Refusal(format!("{what} is {share}: it must be from 0 to 1")));
        }
    }
    for (word, on, needs, other) in [
        ("rewards_both", learning.rewards_both, "bootstrapped_end", learning.bootstrapped_end),
        ("learns_best", learning.learns_best, "learns_explorations", learning.learns_explorations),
        (
            "bootstraps_opponents_end",
            learning.bootstraps_opponents_end,
            "learns_opponents_end",
            learning.learns_opponents_end,
        ),
    ] {
        if on && !other {
            return Err(Refusal(format!("{word} needs {needs}")));
        }
    }
    let finished_board = match messages::FinishedBoard::try_from(learning.finished_board) {
        Ok(messages::FinishedBoard::Skip) => FinishedBoard::Skip,
        Ok(messages::FinishedBoard::After) => FinishedBoard::After,
        Ok(messages::FinishedBoard::Before) => FinishedBoard::Before,
        Err(_) => return Err(Refusal(format!("{} is not a way to learn finished boards", learning.finished_board))),
    };
    Ok(Learning {
        opponent,
        rate: Rate { start: learning.rate_start, end: learning.rate_end, games: learning.games },
        epsilon: learning.epsilon,
        gamma: learning.gamma,
        explores_others: learning.explores_others,
        test_epsilon: learning.test_epsilon,
        learner_first: learning.learner_first,
        learner_first_in_tests: learning.learner_first_in_tests,
        output_derivative: learning.output_derivative,
        learns_explorations: learning.learns_explorations,
        learns_best: learning.learns_best,
        each_ply: learning.each_ply,
        learns_opponents_moves: learning.learns_opponents_moves,
        bootstrapped_end: learning.bootstrapped_end,
        rewards_both: learning.rewards_both,
        learns_opponents_end: learning.learns_opponents_end,
        bootstraps_opponents_end: learning.bootstraps_opponents_end,
        finished_board,
        exact_wins: learning.exact_wins,
        averaging_games: learning.averaging_games,
    })
}

fn write_learning(learning: &Learning) -> messages::Learning {
    let opponent = match learning.opponent {
        Opponent::Itself => messages::Opponent::Itself,
        Opponent::Benchmark => messages::Opponent::Benchmark,
    };
    let finished_board = match learning.finished_board {
        FinishedBoard::Skip => messages::FinishedBoard::Skip,
        FinishedBoard::After => messages::FinishedBoard::After,
        FinishedBoard::Before => messages::FinishedBoard::Before,
    };
    messages::Learning {
        opponent: opponent.into(),
        rate_start: learning.rate.start,
        rate_end: learning.rate.end,
        games: learning.rate.games,
        epsilon: learning.epsilon,
        gamma: learning.gamma,
        explores_others: learning.explores_others,
        test_epsilon: learning.test_epsilon,
        learner_first: learning.learner_first,
        learner_first_in_tests: learning.learner_first_in_tests,
        output_derivative: learning.output_derivative,
        learns_explorations: learning.learns_explorations,
        learns_best: learning.learns_best,
        each_ply: learning.each_ply,
        learns_opponents_moves: learning.learns_opponents_moves,
        bootstrapped_end: learning.bootstrapped_end,
        rewards_both: learning.rewards_both,
        learns_opponents_end: learning.learns_opponents_end,
        bootstraps_opponents_end: learning.bootstraps_opponents_end,
        finished_board: finished_board.into(),
        exact_wins: learning.exact_wins,
        averaging_games: learning.averaging_games,
    }
}

impl From<Tally> for messages::Tally {
    fn from(Tally { wins, draws, .. }: Tally) -> Self {
        Self { wins, draws }
    }
}

/// Weights as messages carry them and as they are stored: f32, little endian.
#[must_use]
pub fn write_weights(weights: &[f32]) -> Bytes {
    let mut bytes = vec![0; 4 * weights.len()];
    for (place, weight) in bytes.as_chunks_mut().0.iter_mut().zip(weights) {
        *place = weight.to_le_bytes();
    }
    bytes.into()
}

/// The inverse of [`write_weights`].
///
/// # Errors
/// A message if the number of weights is not `count`, or if one is not finite.
pub fn read_weights(bytes: &Bytes, count: usize) -> Result<Vec<f32>, Refusal> {
    let (chunks, rest) = bytes.as_chunks::<4>();
    if chunks.len() != count || !rest.is_empty() {
        return Err(Refusal(format!("{} bytes are not {count} weights of 4 bytes", bytes.len())));
    }
    let weights: Vec<f32> = chunks.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect();
    match weights.iter().position(|weight| !weight.is_finite()) {
        Some(index) => Err(Refusal(format!("weight {index} is not a finite number"))),
        None => Ok(weights),
    }
}
