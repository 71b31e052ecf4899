//! One learner, many workers: in each round all begin from the same weights, each plays and learns a few games by itself,
//! and what became of the weights is joined in the order of the tasks.
//!
//! Games are numbered over the whole trial, and a game draws from its own stream: which worker plays it, and when, does not
//! show. How many play at once, and for how long before they are joined, does: both are settings. Tests fall after exact
//! numbers of games, in rounds of their own, and are the serial learner's; one worker whose weights are taken as they are
//! *is* the serial learner, bit for bit.

use bytes::Bytes;
use evoxo_proto::v1::{
    LearnGames, LearnPartOutput, LearnPartTask, Output, Tally, Task, Td3dState, TestGames, WeightUpdate,
    learn_part_output, learn_part_task::Part, output, task,
};

use super::{
    join::{Outer, Over, from_bytes, join},
    wire::{Trial, write_weights},
};
use crate::{config::Values, net::learn::Average};

/// Games of one part of a test, at least: to set up a network must not be most of the work.
const TEST_PART_GAMES_MIN: u32 = 20;

/// How many workers one learner has, and how they are joined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Joint {
    /// Workers in a round, at least 1.
    pub learners: u64,
    /// Games of each in a round, at least 1.
    pub episodes: u64,
    /// What is made of their weights.
    pub outer: Outer,
    /// Games between two tests.
    pub test_every: u64,
    /// Games of a test.
    pub test_games: u32,
}

impl Joint {
    /// As the settings have it; `None` for the serial learner, which is what one worker alone comes to.
    #[must_use]
    pub fn read(settings: &Values) -> Option<Self> {
        let outer = Outer {
            over: if settings.choice("join") == "all" { Over::All } else { Over::Touched },
            rate: settings.decimal("outer_rate").to_f64(),
            momentum: settings.decimal("momentum").to_f64(),
        };
        let learners = settings.integer("learners");
        let serial = learners == 1 && outer.is_plain();
        (!serial).then(|| Self {
            learners,
            episodes: settings.integer("episodes"),
            outer,
            test_every: settings.integer("test_every"),
            test_games: settings.integer("test_games") as u32,
        })
    }

    /// How many rounds a trial of so many games takes.
    #[must_use]
    pub fn rounds(&self, games: u64) -> u64 {
        let tests = games / self.test_every;
        tests * (self.test_every.div_ceil(self.learners * self.episodes) + 1)
    }

    /// The tasks of the round that goes on from this state, with these weights and averages: parts of the test that is due,
    /// or each worker's games.
    #[must_use]
    pub fn plan(&self, trial: &Trial, state: &Td3dState, weights: Bytes, average: Bytes) -> Vec<Task> {
        let played = state.games;
        let (shared, parts): (Bytes, Vec<Part>) = if self.test_is_due(state) {
            let size = self.test_games.div_ceil(self.learners as u32).max(TEST_PART_GAMES_MIN);
            let part = |first_game: u32| {
                let games = size.min(self.test_games - first_game);
                Part::Test(TestGames { played, first_game, games })
            };
            let playing = if average.is_empty() { weights } else { average };
            (playing, (0..self.test_games).step_by(size as usize).map(part).collect())
        } else {
            let end = self.round_end(trial, played);
            let part = |first_game| {
                let games = self.episodes.min(end - first_game) as u32;
                Part::Learn(LearnGames { first_game, games })
            };
            (weights, (played..end).step_by(self.episodes as usize).map(part).collect())
        };
        let trial = trial.write();
        let task = |part| {
            let work = task::Work::LearnPart(LearnPartTask { trial: Some(trial), part: Some(part) });
            Task { work: Some(work), shared: shared.clone() }
        };
        parts.into_iter().map(task).collect()
    }

    fn test_is_due(&self, state: &Td3dState) -> bool {
        state.games / self.test_every > state.tests.len() as u64
    }

    /// The games played after the round that begins after so many: tests and the trial's end cut it short.
    fn round_end(&self, trial: &Trial, played: u64) -> u64 {
        let next_test = (played / self.test_every + 1) * self.test_every;
        trial.learning.rate.games.min(next_test).min(played + self.learners * self.episodes)
    }

    /// Moves on by the round that was planned with these weights and averages, and had these outputs.
    ///
    /// # Errors
    /// A sentence if a weight is no longer finite. No weights are left then.
    pub fn absorb(
        &self,
        trial: &Trial,
        state: &mut Td3dState,
        (weights, average): (&Bytes, &Bytes),
        outputs: &[Output],
    ) -> Result<(), String> {
        if self.test_is_due(state) {
            let sum = |sum: Tally, part: &Tally| Tally { wins: sum.wins + part.wins, draws: sum.draws + part.draws };
            state.tests.push(parts(outputs, |part| tally(part)).fold(Tally::default(), sum));
            return Ok(());
        }
        let updates: Vec<&WeightUpdate> = parts(outputs, |part| update(part)).collect();
        let played = state.games;
        state.games = self.round_end(trial, played);
        let mut weights: Vec<f32> = from_bytes(weights).collect();
        let mut average: Vec<f32> = from_bytes(average).collect();
        let mut velocity = if self.outer.momentum == 0.0 { Vec::new() } else { vec![0.0; weights.len()] };
        velocity.iter_mut().zip(from_bytes(&state.velocity)).for_each(|(speed, known)| *speed = known);
        join(&mut weights, &mut velocity, &updates, self.outer);
        if !average.is_empty() {
            Average { games: trial.learning.averaging_games, weights: &mut average }.update(
                &weights,
                state.games,
                state.games - played,
            );
        }
        let finite = [&weights, &average, &velocity].into_iter().flatten().all(|number| number.is_finite());
        if !finite {
            (state.weights, state.average, state.velocity) = Default::default();
            let games = state.games;
            return Err(format!(
                "the weights are no longer finite when joined after game {games}: lower alpha or outer_rate"
            ));
        }
        state.weights = write_weights(&weights);
        state.average = write_weights(&average);
        state.velocity = write_weights(&velocity);
        Ok(())
    }
}

/// What the outputs of a round have of a kind, in the order of its tasks.
fn parts<'a, T>(
    outputs: &'a [Output],
    of: impl Fn(&'a learn_part_output::Part) -> Option<T>,
) -> impl Iterator<Item = T> {
    outputs.iter().map(move |output| {
        let part = match &output.result {
            Some(output::Result::LearnPart(LearnPartOutput { part: Some(part) })) => of(part),
            _ => None,
        };
        part.expect("the outputs of a round were checked to be answers to its tasks")
    })
}

fn tally(part: &learn_part_output::Part) -> Option<&Tally> {
    if let learn_part_output::Part::Tally(tally) = part { Some(tally) } else { None }
}

fn update(part: &learn_part_output::Part) -> Option<&WeightUpdate> {
    if let learn_part_output::Part::Update(update) = part { Some(update) } else { None }
}

#[cfg(test)]
mod tests;
