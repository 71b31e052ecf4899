//! The question of `nndtf`: is another contestant fitter than the first one? Some sets of training boards are easier to learn
//! than others. Replicas of the same number have the same training boards in all arms that draw equally many in the same way,
//! so such arms are compared replica by replica.
//!
//! Arms with another measure of fitness, or other boards, cannot be compared.

use evoxo_common::{
    experiment::{Config, ReplicaTold, groups},
    headline::{Answer, Headline, Question},
    settings::{Choice as _, Values},
};

use super::{
    arm::{Arm, Champion},
    boards::Source,
    measure::{Formula, Measure, Occupied},
    settings::Settings,
};

pub(super) fn headline(config: &Config, arms: &[Arm]) -> Headline {
    let groups = groups(config, figure);
    let entry = |arm: usize| {
        let fitness = |replica: &ReplicaTold<Champion>| Some(replica.figures.as_ref()?.training);
        ReplicaTold::entry(&config.arms[arm].name, &arms[arm].replicas, fitness)
    };
    let question = |(figure, places): &(String, Vec<usize>)| {
        let first = &config.arms[places[0]].name;
        let alone = places.len() == 1;
        Question {
            asks: format!("Is another contestant fitter than {first:?}?"),
            figure: figure.clone(),
            by: if alone { Answer::Sentences } else { Question::from_the_first(places.len()) },
            shared: (!alone).then_some("training boards"),
            arms: places.iter().copied().map(entry).collect(),
        }
    };
    let sentences =
        groups.iter().filter(|(_, places)| groups.len() > 1 && places.len() == 1).filter_map(|(figure, places)| {
            let entry = entry(places[0]);
            let estimate = entry.estimate()?.short();
            Some(format!("No other arm can be compared with {:?}: its {figure} is {estimate}.", entry.arm))
        });
    Headline { sentences: sentences.collect(), questions: groups.iter().map(question).collect() }
}

/// The figure that is measured in arms with these settings.
fn figure(settings: &Values) -> String {
    let settings = Settings::of(settings);
    let Source { training, stones } = settings.source();
    let Measure { formula, occupied } = settings.measure();
    let mut readings: Vec<&str> = Vec::new();
    if settings.source() != Source::USUAL {
        readings.extend([training.word(), stones.word()]);
    }
    if formula != Formula::MeanOfRatios {
        readings.push(formula.word());
    }
    if occupied != Occupied::Nearest {
        readings.push(occupied.word());
    }
    let readings = if readings.is_empty() { String::new() } else { format!(" ({})", readings.join(", ")) };
    let s = if settings.boards == 1 { "" } else { "s" };
    format!("fitness on {} training board{s}{readings}", settings.boards)
}
