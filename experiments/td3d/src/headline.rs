//! The questions of `td3d`. If several networks learn in the same way, as in the paper's tables, the question is their order.
//! Otherwise it is whether other arms get stronger than the first one. As in the tables, the figure is the mean of the last
//! two fifths of the tests.
//!
//! The name of every random stream contains the arm's name, so arms share nothing. Arms can be compared if they play the same
//! game and are tested in the same way.

use evoxo_common::{
    experiment::{Config, ReplicaTold, distinguishing, groups, settings_but},
    headline::{Answer, Headline, Question},
    settings::{Choice as _, Values},
};

use super::{
    arm::KeptTrials,
    settings::{Game, Settings, TrainingOpponent},
};

/// The settings that define the network.
const NETWORK: [&str; 5] = ["network", "units", "detectors", "states", "second"];

/// Of this many tests, how many of the last ones define a trial's strength.
pub(super) fn tail(tests: usize) -> usize {
    (2 * tests).div_ceil(5)
}

pub(super) fn headline(config: &Config, arms: &[KeptTrials]) -> Headline {
    let entry = |arm: &usize| {
        ReplicaTold::entry(&config.arms[*arm].name, &arms[*arm].replicas, |trial| Some(trial.figures.as_ref()?.end))
    };
    let networks = groups(config, |settings| (figure(settings), settings_but(settings, &NETWORK)));
    let question = |(figure, places): (&String, &Vec<usize>), asks: String, by: Answer| Question {
        asks,
        figure: figure.clone(),
        by,
        shared: None,
        arms: places.iter().map(entry).collect(),
    };
    let questions = match networks.iter().all(|(_, arms)| arms.len() > 1) {
        true => {
            let of = |((figure, _), places): &((String, Vec<String>), Vec<usize>)| {
                let by = Settings::of(&config.arms[places[0]].settings).opponent;
                let by = if by == TrainingOpponent::Itself { "in self-play" } else { "from the benchmark player" };
                let but: Vec<&str> = NETWORK.into_iter().chain(["opponent"]).collect();
                let own = distinguishing(config, places[0], &but);
                let own = if own.is_empty() { String::new() } else { format!(" with {}", own.join(" and ")) };
                question((figure, places), format!("Which network gets strongest, learning {by}{own}?"), Answer::Order)
            };
            networks.iter().map(of).collect()
        }
        false => {
            let of = |(figure, places): &(String, Vec<usize>)| {
                let first = &config.arms[places[0]].name;
                let by = Question::from_the_first(places.len());
                question((figure, places), format!("Does another arm get stronger than {first:?}?"), by)
            };
            groups(config, figure).iter().map(of).collect()
        }
    };
    Headline { sentences: Vec::new(), questions }
}

/// The figure that is measured in arms with these settings.
fn figure(settings: &Values) -> String {
    let settings = Settings::of(settings);
    let game = if settings.game == Game::ScoreFour { String::new() } else { format!(" in {}", settings.game.word()) };
    let first = if settings.learning().learner_first_in_tests { ", moving first" } else { "" };
    let explores = match settings.test_epsilon.to_f64() {
        0.0 => String::new(),
        share => format!(", with {share} of the moves at random"),
    };
    format!("% won against the benchmark player{game}{first}{explores}, mean of the last two fifths of the tests")
}
