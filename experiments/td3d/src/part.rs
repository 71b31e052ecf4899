//! The task of a learner with several workers: learns from a few games, or plays some games of a test. All tasks of a round
//! share the weights from which they start.

use std::ops::Range;

use bytes::Bytes;
use evoxo_common::task::{Compute, Refusal};
use evoxo_games::{board::Geometry, net::learn::Learning};

use super::{
    join::{self, difference},
    messages::{LearnGames, LearnTask, PartOutput, PartTask, TestGames, part_output, part_task::Part},
    segment::{self, Learnt, NAME},
    settings::{GAMES_MAX, TEST_GAMES_MAX},
    wire::{Trial, read_trial, read_weights},
};

/// Computes a part of a round.
pub enum PartOfRound {}

impl Compute for PartOfRound {
    const EXPERIMENT: &'static str = NAME;
    const WORK: &'static str = "part";
    type Task = PartTask;
    type Output = PartOutput;

    fn run(task: &PartTask, shared: &Bytes) -> Result<PartOutput, Refusal> {
        run(task, shared)
    }

    fn check(task: &PartTask, shared: &Bytes, output: &PartOutput) -> Result<(), Refusal> {
        check(task, shared, output)
    }

    fn workload() -> Vec<(PartTask, Bytes)> {
        workload()
    }
}

/// Computes a task. `shared` has the weights from which all tasks start.
///
/// # Errors
/// A message if the task is invalid.
fn run(task: &PartTask, shared: &Bytes) -> Result<PartOutput, Refusal> {
    let (trial, _) = read_trial(task.trial.as_ref())?;
    // The coordinator has the averages, because they are taken over rounds.
    let trial = Trial { learning: Learning { averaging_games: 0, ..trial.learning }, ..trial };
    let weights = read_weights(shared, trial.architecture.parameters())?;
    let geometry = Geometry::new(trial.architecture.shape).map_err(Refusal)?;
    let part = match task.part {
        Some(Part::Learn(part)) => {
            let games = learn_games(part)?;
            let old = Learnt { weights, average: Vec::new() };
            let new = segment::train(&trial, &geometry, &old, games);
            part_output::Part::Update(difference(&old.weights, &new.weights))
        }
        Some(Part::Test(part)) => {
            let games = test_games(part)?;
            let tally = segment::test(&trial, &geometry, &weights, part.played, games);
            part_output::Part::Tally(tally.into())
        }
        None => return Err(no_part()),
    };
    Ok(PartOutput { part: Some(part) })
}

fn learn_games(LearnGames { first_game, games }: LearnGames) -> Result<Range<u64>, Refusal> {
    match first_game.checked_add(games.into()) {
        Some(end) if (1..=GAMES_MAX).contains(&games.into()) => Ok(first_game..end),
        _ => Err(Refusal(format!("{games} games from {first_game} on are not part of a trial: give 1 to {GAMES_MAX}"))),
    }
}

fn test_games(TestGames { first_game, games, .. }: TestGames) -> Result<Range<u32>, Refusal> {
    match first_game.checked_add(games) {
        Some(end) if games > 0 && u64::from(end) <= TEST_GAMES_MAX => Ok(first_game..end),
        _ => Err(Refusal(format!(
            "{games} games from {first_game} on are not part of a test of at most {TEST_GAMES_MAX}"
        ))),
    }
}

fn no_part() -> Refusal {
    Refusal("the task has neither games to learn from nor games of a test".into())
}

/// Checks that an output fits its task: either an update of its weights or a result of its games.
///
/// # Errors
/// A message that describes the mismatch.
fn check(task: &PartTask, shared: &Bytes, output: &PartOutput) -> Result<(), Refusal> {
    match (&task.part, &output.part) {
        (Some(Part::Learn(_)), Some(part_output::Part::Update(update))) => {
            join::check(update, shared.len() / 4).map_err(Refusal)
        }
        (Some(Part::Test(part)), Some(part_output::Part::Tally(tally))) => {
            if u64::from(tally.wins) + u64::from(tally.draws) <= u64::from(part.games) {
                return Ok(());
            }
            let (wins, draws) = (tally.wins, tally.draws);
            Err(Refusal(format!("{wins} wins and {draws} draws in {} games of a test", part.games)))
        }
        _ => Err(Refusal("the output is an update and the task is a test, or the other way round".into())),
    }
}

/// The fixed workload behind the behaviour signature. It learns from a few games and tests, starting from the first weights
/// of the networks that also sign segments.
fn workload() -> Vec<(PartTask, Bytes)> {
    let parts = |segment: LearnTask| {
        let learn = Part::Learn(LearnGames { first_game: segment.first_game, games: segment.games });
        let test = Part::Test(TestGames { played: 100, first_game: 3, games: 5 });
        [learn, test].map(|part| (PartTask { trial: segment.trial.clone(), part: Some(part) }, segment.weights.clone()))
    };
    segment::workload().into_iter().flat_map(parts).collect()
}
