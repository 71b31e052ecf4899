//! The task of `td3d`: plays a segment of a trial's games and learns from them, with the tests that fall in the segment.
//!
//! Results do not depend on where segments end. Games are counted over the whole trial and weights are transferred exactly.
//! If a learner diverges, the task finds the exact game after which it did.

use std::ops::Range;

use bytes::Bytes;
use evoxo_common::{
    rng::Stream,
    task::{Compute, Refusal},
};
use evoxo_games::{
    board::{Geometry, Shape},
    net::{
        Activation, Architecture, First, engine,
        learn::{Average, FinishedBoard, Learner, Learning, Opponent, Rate, Tally},
    },
};

use super::{
    messages::{LearnOutput, LearnTask},
    wire::{Trial, read_weights, write_weights},
};

/// The kind's name.
pub(super) const NAME: &str = "td3d";

/// The most games of one task.
pub const GAMES_MAX: u64 = 1_000_000;
/// The most tests in one task.
pub const TESTS_MAX: u64 = 10_000;
/// The most games of a trial.
pub const TRIAL_GAMES_MAX: u64 = 1_000_000_000;
/// The most games of a test.
pub const TEST_GAMES_MAX: u64 = 100_000;

/// Plays and learns a segment.
pub enum Learn {}

impl Compute for Learn {
    const EXPERIMENT: &'static str = NAME;
    const WORK: &'static str = "learn";
    type Task = LearnTask;
    type Output = LearnOutput;

    fn run(task: &LearnTask, _: &Bytes) -> Result<LearnOutput, Refusal> {
        run(task)
    }

    fn check(task: &LearnTask, _: &Bytes, output: &LearnOutput) -> Result<(), Refusal> {
        check(task, output)
    }

    fn workload() -> Vec<(LearnTask, Bytes)> {
        workload().into_iter().map(|task| (task, Bytes::new())).collect()
    }
}

/// The weights of a learner.
#[derive(Clone, Debug, PartialEq)]
pub struct Learnt {
    /// The weights, in canonical order.
    pub weights: Vec<f32>,
    /// The averaged weights: as many as weights, or none without averaging.
    pub average: Vec<f32>,
}

impl Learnt {
    fn is_finite(&self) -> bool {
        self.weights.iter().chain(&self.average).all(|weight| weight.is_finite())
    }

    /// The weights to play with: the averaged ones, if there are any.
    #[must_use]
    pub fn playing(&self) -> &[f32] {
        if self.average.is_empty() { &self.weights } else { &self.average }
    }
}

/// Plays these games of a trial and learns from them.
#[must_use]
pub fn train(trial: &Trial, geometry: &Geometry, learnt: &Learnt, games: Range<u64>) -> Learnt {
    let Trial { architecture, learning, stream } = *trial;
    let mut engine = engine(&architecture, &learnt.weights);
    let mut average = learnt.average.clone();
    let averaging =
        (learning.averaging_games > 0).then_some(Average { games: learning.averaging_games, weights: &mut average });
    Learner::new(&mut *engine, geometry, architecture.activation, learning).train(stream, games, averaging);
    Learnt { weights: engine.weights(), average }
}

/// Plays some of the games of the test that follows `played` games, with these weights.
#[must_use]
pub fn test(trial: &Trial, geometry: &Geometry, weights: &[f32], played: u64, games: Range<u32>) -> Tally {
    let Trial { architecture, learning, stream } = *trial;
    let mut engine = engine(&architecture, weights);
    Learner::new(&mut *engine, geometry, architecture.activation, learning)
        .test(stream.text("test").word(played), games)
}

/// The number of games after which the weights are no longer finite. They must not be finite at the end of the range. A
/// weight never becomes finite again, so bisection finds the number.
fn diverged_after(trial: &Trial, geometry: &Geometry, mut learnt: Learnt, mut games: Range<u64>) -> u64 {
    while games.end - games.start > 1 {
        let middle = games.start.midpoint(games.end);
        let half = train(trial, geometry, &learnt, games.start..middle);
        if half.is_finite() {
            (learnt, games.start) = (half, middle);
        } else {
            games.end = middle;
        }
    }
    games.end
}

/// Computes a task.
///
/// # Errors
/// A message if the task is invalid.
fn run(task: &LearnTask) -> Result<LearnOutput, Refusal> {
    let trial = Trial::read(task.trial.as_ref())?;
    let end = check_games(task)?;
    let count = trial.architecture.parameters();
    let averages = if trial.learning.averaging_games > 0 { count } else { 0 };
    let mut learnt =
        Learnt { weights: read_weights(&task.weights, count)?, average: read_weights(&task.average, averages)? };
    let geometry = Geometry::new(trial.architecture.shape).map_err(Refusal)?;
    let (mut played, mut tests) = (task.first_game, Vec::new());
    while played < end {
        let next = end.min((played / u64::from(task.test_every) + 1) * u64::from(task.test_every));
        let after = train(&trial, &geometry, &learnt, played..next);
        if !after.is_finite() {
            let diverged_after = diverged_after(&trial, &geometry, learnt, played..next);
            return Ok(LearnOutput { tests, diverged_after, ..LearnOutput::default() });
        }
        (learnt, played) = (after, next);
        if played.is_multiple_of(task.test_every.into()) {
            tests.push(test(&trial, &geometry, learnt.playing(), played, 0..task.test_games).into());
        }
    }
    let (weights, average) = (write_weights(&learnt.weights), write_weights(&learnt.average));
    Ok(LearnOutput { weights, average, tests, diverged_after: 0 })
}

/// The number of the trial's games after the task, if the task's numbers are valid.
fn check_games(task: &LearnTask) -> Result<u64, Refusal> {
    let end = task.first_game.checked_add(task.games.into()).filter(|end| *end <= TRIAL_GAMES_MAX);
    let sensible = (1..=GAMES_MAX).contains(&task.games.into())
        && (1..=TEST_GAMES_MAX).contains(&task.test_games.into())
        && task.test_every > 0;
    match end {
        Some(end) if sensible && tests_between(task, end) <= TESTS_MAX => Ok(end),
        _ => Err(Refusal(format!(
            "not a segment of a trial: {} games with a test of {} games every {}",
            task.games, task.test_games, task.test_every
        ))),
    }
}

/// The number of tests between the beginning of the task and this number of games.
fn tests_between(task: &LearnTask, end: u64) -> u64 {
    let every = u64::from(task.test_every);
    end / every - task.first_game / every
}

/// Checks that an output fits its task. The weights must be finite, or else the output names the game after which they were
/// not. There must be the right number of tests, none with more wins and draws than games.
///
/// # Errors
/// A message that describes the mismatch.
fn check(task: &LearnTask, output: &LearnOutput) -> Result<(), Refusal> {
    let end = check_games(task)?;
    let last = match output.diverged_after {
        0 => {
            read_weights(&output.weights, task.weights.len() / 4)?;
            read_weights(&output.average, task.average.len() / 4)?;
            end
        }
        after if (task.first_game + 1..=end).contains(&after) => {
            read_weights(&output.weights, 0)?;
            read_weights(&output.average, 0)?;
            after - 1
        }
        after => return Err(Refusal(format!("the weights cannot have diverged after game {after}"))),
    };
    let expected = tests_between(task, last);
    if output.tests.len() as u64 != expected {
        return Err(Refusal(format!("{} tests, not {expected}", output.tests.len())));
    }
    let impossible =
        output.tests.iter().find(|tally| tally.wins.checked_add(tally.draws).is_none_or(|n| n > task.test_games));
    impossible.map_or(Ok(()), |tally| {
        let (wins, draws, games) = (tally.wins, tally.draws, task.test_games);
        Err(Refusal(format!("a test of {games} games with {wins} wins and {draws} draws")))
    })
}

/// The fixed workload of the behaviour signature. It contains every kind of network, both opponents, and together every
/// reading.
pub(super) fn workload() -> Vec<LearnTask> {
    use First::{Dense, Lines, Planes, Tuples};
    let (logistic, tanh) = (Activation::Logistic, Activation::Tanh);
    let cases = [
        (Shape::SCORE_FOUR, Lines { detectors: 4 }, 0, logistic, false),
        (Shape::SCORE_FOUR, Lines { detectors: 4 }, 32, logistic, true),
        (Shape::SCORE_FOUR, Dense { units: 50 }, 0, tanh, false),
        (Shape::SCORE_FOUR, Dense { units: 95 }, 51, logistic, false),
        (Shape::TIC_TAC_TOE, Lines { detectors: 3 }, 5, tanh, false),
        (Shape::CONNECT_FOUR, Dense { units: 17 }, 0, logistic, false),
        (Shape::SCORE_FOUR, Tuples { states: 4 }, 8, logistic, true),
        (Shape::CONNECT_FOUR, Tuples { states: 3 }, 0, tanh, false),
        (Shape::SCORE_FOUR, Lines { detectors: 4 }, 4, logistic, true),
        (Shape::SCORE_FOUR, Planes { detectors: 4, units: 13 }, 0, logistic, true),
        (Shape::SCORE_FOUR, Lines { detectors: 4 }, 32, Activation::LogisticUnhalved, true),
        (Shape::SCORE_FOUR, Dense { units: 169 }, 0, logistic, true),
    ];
    let task =
        |(index, (shape, first, second, activation, nearest)): (usize, (Shape, First, usize, Activation, bool))| {
            let shared = (6..9).contains(&index);
            let architecture = Architecture { shape, first, second, biases: nearest, activation, shared };
            let learning = Learning {
                opponent: if index % 2 == 0 { Opponent::Itself } else { Opponent::Benchmark },
                rate: Rate { start: 0.01, end: 0.001, games: 100 },
                epsilon: 0.1,
                gamma: 0.99,
                learner_first: nearest,
                learner_first_in_tests: nearest,
                output_derivative: !nearest,
                learns_explorations: !nearest || index >= 10,
                learns_best: index >= 10,
                bootstrapped_end: nearest,
                rewards_both: index == 10,
                learns_opponents_end: index % 3 != 0,
                bootstraps_opponents_end: index == 11,
                finished_board: match index {
                    10 => FinishedBoard::After,
                    11 => FinishedBoard::Before,
                    _ => FinishedBoard::Skip,
                },
                exact_wins: index % 3 == 1,
                averaging_games: if index % 2 == 0 { 1000 } else { 0 },
                explores_others: index == 2,
                test_epsilon: if index == 2 { 0.1 } else { 0.0 },
                each_ply: index == 7,
                learns_opponents_moves: index == 5,
            };
            let trial = Trial { architecture, learning, stream: Stream::root(0).text("signature").word(index as u64) };
            let weights = write_weights(&architecture.initial(trial.stream.text("weights")));
            let average = if learning.averaging_games > 0 { weights.clone() } else { Bytes::new() };
            let (first_game, games, test_every, test_games) = (98, 4, 51, 4);
            let trial = Some(trial.write());
            LearnTask { trial, weights, average, first_game, games, test_every, test_games }
        };
    cases.into_iter().enumerate().map(task).collect()
}

#[cfg(test)]
mod tests;
