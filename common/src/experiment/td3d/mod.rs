//! Experiment `td3d`: networks that learn a game by temporal differences and are tested against a benchmark player.
//!
//! A replica is one trial: so many games to learn from, and a test after every so many. It is farmed out as a chain of
//! tasks, each of which takes the weights and plays the next segment of the games; trials run side by side. With more than
//! one learner a trial is a chain of rounds instead: see `joint`. What is kept is the weights, their running average if
//! there is one, and the result of each test.

mod arm;
mod claims;
pub mod facts;
pub mod finale;
pub mod join;
pub mod joint;
pub mod part;
pub mod segment;
pub mod settings;
pub mod speed;
mod trial;
pub mod wire;

use bytes::Bytes;
use evoxo_proto::v1::{LearnTask, Output, Tally, Task, Td3dState, output, task};
use prost::Message as _;
use serde_json::{Map, json};

use super::{Column, Experiment, Identity};
use crate::{
    card::{Card, Network, Player},
    config::Values,
    rng::Stream,
};

use joint::Joint;
use wire::{Trial, read_weights, write_weights};

/// See [`super::Kind::columns`]. A row is a test: games against the benchmark player without exploring or learning.
pub const COLUMNS: &[Column] = &[
    Column { name: "games", doc: "games of the trial played before the test" },
    Column { name: "percent", doc: "wins in percent of the test's games, draws counting half" },
    Column { name: "wins", doc: "games won" },
    Column { name: "draws", doc: "games drawn" },
    Column { name: "losses", doc: "games lost" },
];

/// Games of a task if nothing else is said: some tenths of a second.
const SEGMENT_GAMES: u64 = 10_000;

/// One replica.
pub struct Td3d {
    trial: Trial,
    network: &'static str,
    seed: u64,
    test_every: u64,
    test_games: u32,
    /// Games a task; never shows in a result.
    segment: u64,
    /// How several workers learn together; `None` for the serial learner.
    joint: Option<Joint>,
    state: Td3dState,
    /// Tests that were known before the round just absorbed.
    tests_before: usize,
}

/// Games of a task.
fn segment_games(settings: &Values) -> u64 {
    match settings.integer("segment_games") {
        0 => SEGMENT_GAMES,
        games => games,
    }
}

/// How many rounds a trial takes.
#[must_use]
pub fn rounds(settings: &Values) -> u64 {
    let games = settings.integer("games");
    Joint::read(settings).map_or_else(|| games.div_ceil(segment_games(settings)), |joint| joint.rounds(games))
}

impl Td3d {
    /// Before the first game.
    #[must_use]
    pub fn start(identity: Identity<'_>) -> Self {
        let settings = identity.settings;
        Self {
            trial: Trial {
                architecture: settings::architecture(settings),
                learning: settings::learning(settings),
                stream: Stream::root(identity.seed).text("td3d").text(identity.arm).word(u64::from(identity.replica)),
            },
            network: settings.choice("network"),
            seed: identity.seed,
            test_every: settings.integer("test_every"),
            test_games: settings.integer("test_games") as u32,
            segment: segment_games(settings),
            joint: Joint::read(settings),
            state: Td3dState::default(),
            tests_before: 0,
        }
    }

    /// As saved.
    ///
    /// # Errors
    /// A sentence if the bytes are not a state that these settings can lead to.
    pub fn restore(identity: Identity<'_>, state: &[u8]) -> Result<Self, String> {
        let state = Td3dState::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?;
        let fresh = Self::start(identity);
        let games = fresh.trial.learning.rate.games;
        let lost = state.games > 0 && state.weights.is_empty();
        let tested = state.games.saturating_sub(u64::from(lost)) / fresh.test_every;
        let count = |kept: bool| if kept { fresh.trial.architecture.parameters() } else { 0 };
        let learnt = state.games > 0 && !lost;
        let weights = read_weights(&state.weights, count(learnt));
        let average = read_weights(&state.average, count(learnt && fresh.trial.learning.averaging_games > 0));
        let impossible = |tally: &Tally| u64::from(tally.wins) + u64::from(tally.draws) > u64::from(fresh.test_games);
        // Of several learners the test that is due may be still to come: it is a round of its own.
        let due = fresh.joint.is_some() && learnt && state.games.is_multiple_of(fresh.test_every);
        let tests = state.tests.len() as u64;
        let counted = tests == tested || due && tests + 1 == tested;
        if state.games > games || !counted || state.tests.iter().any(impossible) {
            return Err("the state does not fit the settings".into());
        }
        let fading = fresh.joint.is_some_and(|joint| joint.outer.momentum > 0.0);
        let velocity = read_weights(&state.velocity, count(learnt && fading));
        match weights.and(average).and(velocity) {
            Ok(_) => Ok(Self { tests_before: state.tests.len(), state, ..fresh }),
            Err(why) => Err(format!("the state does not fit the settings: {why}")),
        }
    }

    /// The weights to learn on from, and their average.
    fn weights(&self) -> (Bytes, Bytes) {
        if self.state.games > 0 {
            return (self.state.weights.clone(), self.state.average.clone());
        }
        let weights = write_weights(&self.trial.architecture.initial(self.trial.stream.text("weights")));
        let average = if self.trial.learning.averaging_games > 0 { weights.clone() } else { Bytes::new() };
        (weights, average)
    }

    /// Wins in percent, draws counting half.
    fn percent(&self, tally: &Tally) -> f64 {
        (f64::from(tally.wins) + f64::from(tally.draws) / 2.0) * 100.0 / f64::from(self.test_games)
    }

    fn losses(&self, tally: &Tally) -> u32 {
        self.test_games - tally.wins - tally.draws
    }
}

/// The serial learner.
impl Td3d {
    fn plan_segment(&self) -> Vec<Task> {
        let games = self.segment.min(self.trial.learning.rate.games - self.state.games);
        if games == 0 {
            return Vec::new();
        }
        let (weights, average) = self.weights();
        let segment = LearnTask {
            trial: Some(self.trial.write()),
            weights,
            average,
            first_game: self.state.games,
            games: games as u32,
            test_every: self.test_every as u32,
            test_games: self.test_games,
        };
        vec![task::Work::Learn(segment).into()]
    }

    fn absorb_segment(&mut self, outputs: &[Output]) -> Result<(), String> {
        let [Output { result: Some(output::Result::Learn(output)) }] = outputs else {
            panic!("a round of the serial learner is one segment, and has one output of its kind");
        };
        let segment = self.segment.min(self.trial.learning.rate.games - self.state.games);
        self.state.tests.extend(&output.tests);
        (self.state.weights, self.state.average) = (output.weights.clone(), output.average.clone());
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
    fn plan(&self) -> Vec<Task> {
        match &self.joint {
            None => self.plan_segment(),
            Some(joint) => {
                let (weights, average) = self.weights();
                joint.plan(&self.trial, &self.state, weights, average)
            }
        }
    }

    fn absorb(&mut self, outputs: &[Output]) -> Result<(), String> {
        self.tests_before = self.state.tests.len();
        match self.joint {
            None => self.absorb_segment(outputs),
            Some(joint) => {
                let (weights, average) = self.weights();
                joint.absorb(&self.trial, &mut self.state, (&weights, &average), outputs)
            }
        }
    }

    fn save(&self) -> Vec<u8> {
        self.state.encode_to_vec()
    }

    fn rows(&self) -> Vec<Vec<f64>> {
        let row = |(index, tally): (usize, &Tally)| {
            let games = (index as u64 + 1) * self.test_every;
            let counts = [tally.wins, tally.draws, self.losses(tally)].map(f64::from);
            [games as f64, self.percent(tally)].into_iter().chain(counts).collect()
        };
        self.state.tests.iter().enumerate().skip(self.tests_before).map(row).collect()
    }

    /// The weights that the last test tested, or would have.
    fn champion(&self) -> Option<Card> {
        let playing = if self.state.average.is_empty() { &self.state.weights } else { &self.state.average };
        let architecture = self.trial.architecture;
        let weights = read_weights(playing, architecture.parameters()).ok()?;
        let mut about = Map::new();
        about.insert("network".into(), self.network.into());
        about.insert("seed".into(), self.seed.into());
        about.insert("games".into(), self.state.games.into());
        about.insert("wins".into(), if self.trial.learning.exact_wins { "exact" } else { "learned" }.into());
        if let Some(tally) = self.state.tests.last() {
            let (losses, percent) = (self.losses(tally), self.percent(tally));
            let (games, wins, draws) = (self.test_games, tally.wins, tally.draws);
            let strength = json!({"games": games, "wins": wins, "draws": draws, "losses": losses, "percent": percent});
            about.insert("strength".into(), strength);
        }
        Some(Card { player: Player::Network(Network { architecture, weights }), about })
    }
}

#[cfg(test)]
mod tests;
