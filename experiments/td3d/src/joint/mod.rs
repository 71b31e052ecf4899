//! One learner with several workers. In each round, all workers start from the same weights, play some games and learn from
//! them. Then the changed weights are joined in the order of the tasks.
//!
//! Games are numbered over the whole trial, and each game draws from a stream of its own, so results do not depend on which
//! worker plays a game, or when. Results do depend on how many workers learn at once, and on how many games they play before
//! they are joined: both are settings. Tests come after exact numbers of games, in rounds of their own, and are those of the
//! serial learner. A single worker whose weights are taken unchanged *is* the serial learner, bit for bit.

use std::ops::Range;

use bytes::Bytes;
use evoxo_common::task::{Task, checked};
use evoxo_games::net::learn::Average;

use super::{
    join::{Outer, Over, from_bytes, join},
    messages::{self, LearnGames, PartTask, State, Tally, TestGames, WeightUpdate, part_output, part_task::Part},
    part::PartOfRound,
    settings::{Join, Settings},
    wire::{Trial, write_weights},
};

/// The fewest games in one part of a test, to keep building the network from being most of the work.
const TEST_PART_GAMES_MIN: u32 = 20;

/// The number of workers of one learner, and how they are joined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Joint {
    /// Workers per round, at least 1.
    pub learners: u64,
    /// Games of each worker per round, at least 1.
    pub episodes: u64,
    /// How the workers' weights are joined.
    pub outer: Outer,
    /// Games of the trial.
    pub games: u64,
    /// Games between two tests.
    pub test_every: u64,
    /// Games per test.
    pub test_games: u32,
}

impl Joint {
    /// The workers that these settings describe; `None` for the serial learner, which equals a single worker.
    #[must_use]
    pub fn of(settings: &Settings) -> Option<Self> {
        let outer = Outer {
            over: if settings.join == Join::All { Over::All } else { Over::Touched },
            rate: settings.outer_rate.to_f64(),
            momentum: settings.momentum.to_f64(),
        };
        let Settings { learners, episodes, games, test_every, test_games, .. } = *settings;
        let serial = learners == 1 && outer.is_plain();
        (!serial).then_some(Self { learners, episodes, outer, games, test_every, test_games })
    }

    /// The number of rounds of the trial.
    #[must_use]
    pub fn rounds(&self) -> u64 {
        let tests = self.games / self.test_every;
        tests * (self.test_every.div_ceil(self.learners * self.episodes) + 1)
    }

    /// The greatest number of tasks in a round.
    #[must_use]
    pub fn tasks_max(&self) -> u64 {
        self.learners.max(self.test_games.div_ceil(self.test_part()).into())
    }

    /// The number of tasks of the round that begins from this state; 0 after the last game.
    #[must_use]
    pub fn tasks(&self, state: &State) -> usize {
        if self.test_is_due(state) {
            return self.test_games.div_ceil(self.test_part()) as usize;
        }
        (self.round_end(state.games) - state.games).div_ceil(self.episodes) as usize
    }

    /// Some tasks of that round, with these weights and averages: either parts of the due test, or each worker's games.
    #[must_use]
    pub fn plan(
        &self,
        trial: &messages::Trial,
        state: &State,
        weights: Bytes,
        average: Bytes,
        tasks: Range<usize>,
    ) -> Vec<Task> {
        let (played, test) = (state.games, self.test_is_due(state));
        let end = self.round_end(played);
        let part = |number: usize| {
            if test {
                let first_game = number as u32 * self.test_part();
                let games = self.test_part().min(self.test_games - first_game);
                return Part::Test(TestGames { played, first_game, games });
            }
            let first_game = played + number as u64 * self.episodes;
            Part::Learn(LearnGames { first_game, games: self.episodes.min(end - first_game) as u32 })
        };
        let shared = if test && !average.is_empty() { average } else { weights };
        let task = |number: usize| {
            let task = PartTask { trial: Some(trial.clone()), part: Some(part(number)) };
            Task::of::<PartOfRound>(&task).sharing(shared.clone())
        };
        tasks.map(task).collect()
    }

    /// The number of games in one part of a test.
    fn test_part(&self) -> u32 {
        self.test_games.div_ceil(self.learners as u32).max(TEST_PART_GAMES_MIN)
    }

    fn test_is_due(&self, state: &State) -> bool {
        state.games / self.test_every > state.tests.len() as u64
    }

    /// The number of games played by the end of the round that starts after `played` games. Tests and the end of the trial
    /// shorten a round.
    fn round_end(&self, played: u64) -> u64 {
        let next_test = (played / self.test_every + 1) * self.test_every;
        self.games.min(next_test).min(played + self.learners * self.episodes)
    }

    /// Advances by the round that was planned with these weights and averages and that returned these outputs.
    ///
    /// # Errors
    /// A message if a weight is no longer finite. The state then has no weights.
    pub fn absorb(
        &self,
        trial: &Trial,
        state: &mut State,
        (weights, average): (&Bytes, &Bytes),
        outputs: &[Bytes],
    ) -> Result<(), String> {
        let parts = outputs.iter().map(|output| checked::<PartOfRound>(output).part);
        if self.test_is_due(state) {
            let tally = parts.map(|part| match part {
                Some(part_output::Part::Tally(tally)) => tally,
                other => panic!("a part of a test was checked to have a tally: {other:?}"),
            });
            let sum = |sum: Tally, part: Tally| Tally { wins: sum.wins + part.wins, draws: sum.draws + part.draws };
            state.tests.push(tally.fold(Tally::default(), sum));
            return Ok(());
        }
        let update = parts.map(|part| match part {
            Some(part_output::Part::Update(update)) => update,
            other => panic!("games to learn from were checked to have an update: {other:?}"),
        });
        let updates: Vec<WeightUpdate> = update.collect();
        let played = state.games;
        state.games = self.round_end(played);
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

#[cfg(test)]
mod tests;
