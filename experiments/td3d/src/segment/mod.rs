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
    board::Geometry,
    net::{
        engine,
        learn::{Average, Learner, Tally},
    },
};

use super::{
    messages::{LearnOutput, LearnTask},
    settings::{GAMES_MAX, Settings, TESTS_MAX},
    wire::{Trial, read_trial, read_weights, write_trial, write_weights},
};

/// The kind's name.
pub(super) const NAME: &str = "td3d";

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
    let (trial, settings) = read_trial(task.trial.as_ref())?;
    let end = check_games(task, &settings)?;
    let count = trial.architecture.parameters();
    let averages = if trial.learning.averaging_games > 0 { count } else { 0 };
    let mut learnt =
        Learnt { weights: read_weights(&task.weights, count)?, average: read_weights(&task.average, averages)? };
    let geometry = Geometry::new(trial.architecture.shape).map_err(Refusal)?;
    let (mut played, mut tests) = (task.first_game, Vec::new());
    while played < end {
        let next = end.min((played / settings.test_every + 1) * settings.test_every);
        let after = train(&trial, &geometry, &learnt, played..next);
        if !after.is_finite() {
            let diverged_after = diverged_after(&trial, &geometry, learnt, played..next);
            return Ok(LearnOutput { tests, diverged_after, ..LearnOutput::default() });
        }
        (learnt, played) = (after, next);
        if played.is_multiple_of(settings.test_every) {
            tests.push(test(&trial, &geometry, learnt.playing(), played, 0..settings.test_games).into());
        }
    }
    let (weights, average) = (write_weights(&learnt.weights), write_weights(&learnt.average));
    Ok(LearnOutput { weights, average, tests, diverged_after: 0 })
}

/// The number of the trial's games after the task, if the task's numbers are valid.
fn check_games(task: &LearnTask, settings: &Settings) -> Result<u64, Refusal> {
    let games = u64::from(task.games);
    let end = task.first_game.checked_add(games).filter(|end| *end <= settings.games);
    match end {
        Some(end) if (1..=GAMES_MAX).contains(&games) && tests_between(task, settings, end) <= TESTS_MAX => Ok(end),
        _ => Err(Refusal(format!(
            "not a segment of a trial of {} games with a test every {}: {games} games from {} on",
            settings.games, settings.test_every, task.first_game
        ))),
    }
}

/// The number of tests between the beginning of the task and this number of games.
fn tests_between(task: &LearnTask, settings: &Settings, end: u64) -> u64 {
    end / settings.test_every - task.first_game / settings.test_every
}

/// Checks that an output fits its task. The weights must be finite, or else the output names the game after which they were
/// not. There must be the right number of tests, none with more wins and draws than games.
///
/// # Errors
/// A message that describes the mismatch.
fn check(task: &LearnTask, output: &LearnOutput) -> Result<(), Refusal> {
    let (_, settings) = read_trial(task.trial.as_ref())?;
    let end = check_games(task, &settings)?;
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
    let expected = tests_between(task, &settings, last);
    if output.tests.len() as u64 != expected {
        return Err(Refusal(format!("{} tests, not {expected}", output.tests.len())));
    }
    let impossible =
        output.tests.iter().find(|tally| tally.wins.checked_add(tally.draws).is_none_or(|n| n > settings.test_games));
    impossible.map_or(Ok(()), |tally| {
        let (wins, draws, games) = (tally.wins, tally.draws, settings.test_games);
        Err(Refusal(format!("a test of {games} games with {wins} wins and {draws} draws")))
    })
}

/// The fixed workload of the behaviour signature. It contains every kind of network, both opponents, and together every
/// reading.
pub(super) fn workload() -> Vec<LearnTask> {
    let cases = [
        "network = small-structured\nreading = literal\n",
        "network = deep-structured\n",
        "network = small\nreading = literal\nactivation = tanh\nexploring_moves = others\ntest_epsilon = 0.1\n",
        "network = deep\nreading = literal\n",
        "network = deep-structured\nreading = literal\nactivation = tanh\ngame = tic-tac-toe\ndetectors = 3\nsecond = 5\n",
        "network = small\nreading = literal\ngame = connect-four\nunits = 17\nopponents_moves = learn\n",
        "network = tuples\nshared = yes\n",
        "network = linear-tuples\nreading = literal\nactivation = tanh\ngame = connect-four\nstates = 3\nshared = yes\n\
         learns_from = each-ply\n",
        "network = deep-structured\nsecond = 4\nshared = yes\n",
        "network = planes\n",
        "network = deep-structured\nactivation = logistic-unhalved\nexploring = best\nlast_step = both\n\
         finished_board = after\n",
        "network = wide\nexploring = best\nfinished_board = before\nloser = bootstrapped\n",
    ];
    let task = |(index, case): (usize, &str)| {
        let opponent = ["self", "benchmark"][index % 2];
        let loser = if index.is_multiple_of(3) { "loser = skip\n" } else { "" };
        let wins = if index % 3 == 1 { "wins = exact\n" } else { "" };
        let averaging_games = if index.is_multiple_of(2) { 1000 } else { 0 };
        let settings = format!(
            "{case}{loser}{wins}opponent = {opponent}\naveraging_games = {averaging_games}\nalpha = 0.01\n\
             schedule = linear\nalpha_end = 0.001\ngamma = 0.99\ngames = 100\ntest_every = 50\ntest_games = 4\n"
        );
        let message = write_trial(settings, Stream::root(0).text("signature").word(index as u64));
        let (trial, _) = read_trial(Some(&message)).expect("good settings");
        let weights = write_weights(&trial.architecture.initial(trial.stream.text("weights")));
        let average = if averaging_games > 0 { weights.clone() } else { Bytes::new() };
        LearnTask { trial: Some(message), weights, average, first_game: 96, games: 4 }
    };
    cases.into_iter().enumerate().map(task).collect()
}

#[cfg(test)]
mod tests;
