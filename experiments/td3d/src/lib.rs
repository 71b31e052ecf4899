//! Experiment `td3d`: networks learn a game by temporal differences and are tested against a benchmark player.
//!
//! A replica is one trial: games to learn from, with tests at equal distances. It is farmed out as a chain of tasks, each of
//! which takes the weights and plays the next segment of the games; trials run side by side. With more than one learner a
//! trial is a chain of rounds instead: see `joint`. The state has the weights, their running average if there is one, and the
//! result of each test.

mod arm;
mod claims;
pub mod facts;
mod headline;
pub mod join;
pub mod joint;
#[allow(missing_docs)]
#[rustfmt::skip]
pub mod messages;
pub mod part;
mod report;
pub mod segment;
pub mod settings;
mod speed;
#[cfg(test)]
#[path = "../../src/testing.rs"]
mod testing;
#[cfg(test)]
mod tests;
mod trial;
pub mod wire;

use std::ops::Range;

use bytes::Bytes;
use evoxo_common::{
    card::{Card, CardKind},
    experiment::{Config, Demand, Experiment, Identity, Kernel, Kind, Publication, Replica, Told, fits},
    headline::Headline,
    report::Report,
    row,
    settings::{Choice as _, WithText},
    task::{Task, TaskKind, checked},
};
use evoxo_games::net::{self, Network};
use serde_json::{Map, json};

use joint::Joint;
use messages::{LearnTask, State, Tally};
use part::PartOfRound;
use segment::{Learn, NAME};
use settings::{InitialBiases, Schedule, Settings};
use wire::{Trial, read_weights, write_trial, write_weights};

/// The kind.
pub const KIND: Kind = Kind::of::<Td3d>();

#[cfg(test)]
fn registry() -> evoxo_common::experiment::Registry {
    evoxo_common::experiment::Registry::new(&[KIND])
}

row! {
    /// A row is a test: games against the benchmark player without exploring or learning.
    struct Row, primary percent {
        /// games of the trial played before the test
        games: u64,
        /// wins in percent of the games of one test, draws counting half
        percent: f64,
        /// games won
        wins: u32,
        /// games drawn
        draws: u32,
        /// games lost
        losses: u32,
    }
}

/// One replica.
struct Td3d {
    trial: Trial,
    /// The trial in the form in which tasks carry it.
    message: messages::Trial,
    settings: Settings,
    seed: u64,
    /// How several workers learn together; `None` for the serial learner.
    joint: Option<Joint>,
    state: State,
}

impl Td3d {
    /// The current weights and their average.
    fn weights(&self) -> (Bytes, Bytes) {
        if self.state.games > 0 {
            return (self.state.weights.clone(), self.state.average.clone());
        }
        let architecture = &self.trial.architecture;
        let mut weights = architecture.initial(self.trial.stream.text("weights"));
        // With the paper's range, in which the weights are drawn, the factor is exactly 1.
        let factor = (self.settings.initial_weights.to_f64() / 0.5) as f32;
        weights.iter_mut().for_each(|weight| *weight *= factor);
        if self.settings.initial_biases == InitialBiases::Zero {
            let tensors = architecture.tensors();
            let biases = tensors.into_iter().filter(|tensor| tensor.name.ends_with(".bias"));
            biases.for_each(|tensor| weights[tensor.range].fill(0.0));
        }
        let weights = write_weights(&weights);
        let average = if self.trial.learning.averaging_games > 0 { weights.clone() } else { Bytes::new() };
        (weights, average)
    }

    /// Games won in percent, where draws count half.
    fn percent(&self, tally: &Tally) -> f64 {
        (f64::from(tally.wins) + f64::from(tally.draws) / 2.0) * 100.0 / f64::from(self.settings.test_games)
    }

    fn losses(&self, tally: &Tally) -> u32 {
        self.settings.test_games - tally.wins - tally.draws
    }
}

/// The serial learner.
impl Td3d {
    /// The number of games of the next segment; 0 after the last.
    fn segment(&self) -> u64 {
        self.settings.games_of_task().min(self.settings.games - self.state.games)
    }

    fn plan_segment(&self) -> Task {
        let (weights, average) = self.weights();
        Task::of::<Learn>(&LearnTask {
            trial: Some(self.message.clone()),
            weights,
            average,
            first_game: self.state.games,
            games: self.segment() as u32,
        })
    }

    fn absorb_segment(&mut self, outputs: &[Bytes]) -> Result<(), String> {
        let [output] = outputs else { panic!("a round of the serial learner is one segment") };
        let (output, segment) = (checked::<Learn>(output), self.segment());
        self.state.tests.extend(&output.tests);
        (self.state.weights, self.state.average) = (output.weights, output.average);
        match output.diverged_after {
            0 => self.state.games += segment,
            after => {
                self.state.games = after;
                return Err(format!("the weights are no longer finite after game {after}: lower alpha"));
            }
        }
        Ok(())
    }
}

impl Experiment for Td3d {
    const NAME: &'static str = NAME;
    const TASKS: &'static [TaskKind] = &[TaskKind::of::<Learn>(), TaskKind::of::<PartOfRound>()];
    const SOURCES: &'static [Publication] = &[Publication {
        key: "vandesteeg2015",
        entry: "misc",
        fields: &[
            ("author", "{van de Steeg}, M. and Drugan, M. and Wiering, M."),
            (
                "title",
                "Temporal Difference Learning for the Game Tic-Tac-Toe 3D: Applying Structure to Neural Networks",
            ),
            ("year", "2015"),
        ],
    }];
    const CARDS: &'static [CardKind] = &[net::CARD];
    const KERNELS: &'static [Kernel] = speed::KERNELS;
    const MAY_CHANGE: &'static [&'static str] = &[
        "opponent",
        "exploring",
        "exploring_moves",
        "learns_from",
        "opponents_moves",
        "alpha",
        "schedule",
        "alpha_end",
        "epsilon",
        "test_epsilon",
        "gamma",
        "join",
        "outer_rate",
    ];
    type Settings = WithText<Settings>;
    type State = State;
    type Row = Row;
    type Told = arm::KeptTrials;

    fn rounds(WithText { settings, .. }: &WithText<Settings>) -> u64 {
        Joint::of(settings).map_or_else(|| settings.games.div_ceil(settings.games_of_task()), |joint| joint.rounds())
    }

    fn depends_on_length(WithText { settings, .. }: &WithText<Settings>) -> Option<&'static str> {
        let falls = settings.schedule == Schedule::Linear;
        falls.then_some("with schedule = \"linear\" the learning rate depends on the games of the whole trial")
    }

    fn demand(WithText { settings, text }: &WithText<Settings>) -> Demand {
        let weights = 4 * settings.architecture().parameters() as u64;
        let averages = if settings.averaging_games > 0 { weights } else { 0 };
        // A test takes at most two varints of 3 bytes, their keys, and the key and length of the whole. The other numbers of
        // a message take less than 100 bytes.
        let (tests, test_bytes, message) = (settings.games / settings.test_every, 10, text.len() as u64 + 128);
        let Some(joint) = Joint::of(settings) else {
            let output_tests = (settings.games_of_task() / settings.test_every + 1).min(tests);
            return Demand {
                tasks: 1,
                task_bytes: weights + averages + message,
                shared_bytes: 0,
                output_bytes: weights + averages + output_tests * test_bytes + message,
                state_bytes: weights + averages + tests * test_bytes + message,
                rows: tests,
                ..Demand::default()
            };
        };
        let velocity = if joint.outer.momentum > 0.0 { weights } else { 0 };
        Demand {
            tasks: joint.tasks_max(),
            task_bytes: message,
            shared_bytes: weights,
            // This is the size if all weights change. There is one bit for each four bytes.
            output_bytes: weights + weights / 32 + message,
            state_bytes: weights + averages + velocity + tests * test_bytes + message,
            rows: tests,
            ..Demand::default()
        }
    }

    fn restore(identity: Identity<'_, Self>, state: State) -> Result<Self, String> {
        let Identity { seed, settings: WithText { settings, text }, stream, .. } = identity;
        let (trial, message) = (Trial::new(&settings, stream), write_trial(text, stream));
        let joint = Joint::of(&settings);
        let lost = state.games > 0 && state.weights.is_empty();
        let tested = state.games.saturating_sub(u64::from(lost)) / settings.test_every;
        let count = |kept: bool| if kept { trial.architecture.parameters() } else { 0 };
        let learnt = state.games > 0 && !lost;
        let weights = read_weights(&state.weights, count(learnt));
        let average = read_weights(&state.average, count(learnt && trial.learning.averaging_games > 0));
        let impossible =
            |tally: &Tally| u64::from(tally.wins) + u64::from(tally.draws) > u64::from(settings.test_games);
        // With several learners, the due test may not have been played yet, because it is a round of its own.
        let due = joint.is_some() && learnt && state.games.is_multiple_of(settings.test_every);
        let tests = state.tests.len() as u64;
        let counted = tests == tested || due && tests + 1 == tested;
        fits(state.games <= settings.games && counted && !state.tests.iter().any(impossible))?;
        let fading = joint.is_some_and(|joint| joint.outer.momentum > 0.0);
        let velocity = read_weights(&state.velocity, count(learnt && fading));
        match weights.and(average).and(velocity) {
            Ok(_) => Ok(Self { trial, message, joint, settings, seed, state }),
            Err(why) => Err(format!("the state does not fit the settings: {why}")),
        }
    }

    fn save(&self) -> State {
        self.state.clone()
    }

    fn tasks(&self) -> usize {
        match &self.joint {
            None => usize::from(self.segment() > 0),
            Some(joint) => joint.tasks(&self.state),
        }
    }

    fn plan(&self, tasks: Range<usize>) -> Vec<Task> {
        match &self.joint {
            None => tasks.map(|_| self.plan_segment()).collect(),
            Some(joint) => {
                let (weights, average) = self.weights();
                joint.plan(&self.message, &self.state, weights, average, tasks)
            }
        }
    }

    fn absorb(&mut self, outputs: &[Bytes], history: &mut Vec<Row>) -> Result<(), String> {
        let before = self.state.tests.len();
        let outcome = match self.joint {
            None => self.absorb_segment(outputs),
            Some(joint) => {
                let (weights, average) = self.weights();
                joint.absorb(&self.trial, &mut self.state, (&weights, &average), outputs)
            }
        };
        let row = |(index, tally): (usize, &Tally)| Row {
            games: (index as u64 + 1) * self.settings.test_every,
            percent: self.percent(tally),
            wins: tally.wins,
            draws: tally.draws,
            losses: self.losses(tally),
        };
        history.extend(self.state.tests.iter().enumerate().skip(before).map(row));
        outcome
    }

    /// The weights that the last test used, or would have used.
    fn champion(&self) -> Option<Card> {
        let playing = if self.state.average.is_empty() { &self.state.weights } else { &self.state.average };
        let architecture = self.trial.architecture;
        let weights = read_weights(playing, architecture.parameters()).ok()?;
        let mut about = Map::new();
        about.insert("network".into(), self.settings.network.word().into());
        about.insert("seed".into(), self.seed.into());
        about.insert("games".into(), self.state.games.into());
        about.insert("wins".into(), if self.trial.learning.exact_wins { "exact" } else { "learned" }.into());
        if let Some(tally) = self.state.tests.last() {
            let (losses, percent) = (self.losses(tally), self.percent(tally));
            let (games, wins, draws) = (self.settings.test_games, tally.wins, tally.draws);
            let strength = json!({"games": games, "wins": wins, "draws": draws, "losses": losses, "percent": percent});
            about.insert("strength".into(), strength);
        }
        Some(Card { about, ..Card::new(Network { architecture, weights }) })
    }

    fn tail(tests: usize) -> usize {
        headline::tail(tests)
    }
}

impl Told for arm::KeptTrials {
    fn of(config: &Config, arm: usize, replicas: &[Vec<&Replica>]) -> Self {
        Self::measured(config, arm, replicas)
    }

    fn report(config: &Config, arms: &[Self]) -> Result<Report, String> {
        let arms: Vec<arm::Arm<'_>> =
            arms.iter().enumerate().map(|(index, told)| arm::Arm::new(config, index, told)).collect();
        Ok(report::of_arms(&arms))
    }

    fn headline(config: &Config, arms: &[Self]) -> Headline {
        headline::headline(config, arms)
    }
}
