//! The questions of `invincible`. How much must a loss cost, so that players never lose? And among arms in which a win, a
//! draw and a loss are worth the same: which arm's champions are worth more? The best player at one price says nothing about
//! another price.
//!
//! The name of every random stream contains the arm's name, so arms share nothing.

use evoxo_common::{
    experiment::{Config, ReplicaTold, distinguishing, groups, listed, settings_but},
    headline::{Answer, Headline, Question},
    settings::Choice as _,
};

use super::{kept::KeptArm, settings::Settings};

pub(super) fn headline(config: &Config, arms: &[KeptArm]) -> Headline {
    Headline { sentences: sentences(config, arms), questions: questions(config, arms) }
}

/// How many champions never lose, for each cost of a loss.
fn sentences(config: &Config, arms: &[KeptArm]) -> Vec<String> {
    let never_lose = |arm: usize| {
        let entry = ReplicaTold::entry(&config.arms[arm].name, &arms[arm].replicas, |it| {
            Some(f64::from(it.figures.as_ref()?.unbeatable))
        });
        (entry.figures().iter().sum::<f64>() as usize, entry.values.len())
    };
    let of_group = |arms: &[usize]| {
        let counts: Vec<(usize, usize)> = arms.iter().map(|arm| never_lose(*arm)).collect();
        let settings = |arm: usize| Settings::of(&config.arms[arm].settings);
        let prices: Vec<String> = arms.iter().map(|arm| settings(*arm).penalty.to_f64().to_string()).collect();
        let total = counts.first().map_or(0, |(_, total)| *total);
        if counts.iter().any(|(_, other)| *other == 0) {
            return None;
        }
        let words = match counts.iter().all(|(_, other)| *other == total) {
            true => format!(
                "{} of {total}",
                listed(&counts.iter().map(|(count, _)| count.to_string()).collect::<Vec<String>>())
            ),
            false => {
                listed(&counts.iter().map(|(count, total)| format!("{count} of {total}")).collect::<Vec<String>>())
            }
        };
        let own = distinguishing(config, arms[0], &["side", "penalty"]);
        let own = if own.is_empty() { String::new() } else { format!(", with {}", own.join(" and ")) };
        let (side, prices) = (settings(arms[0]).side.word(), listed(&prices));
        Some(format!("{side} never loses in {words} replicas if a loss costs {prices}{own}."))
    };
    let groups = groups(config, |settings| settings_but(settings, &["penalty"]));
    groups.iter().filter_map(|(_, arms)| of_group(arms)).collect()
}

/// Questions about the worth of champions. Champions can be compared if their outcomes are worth the same.
fn questions(config: &Config, arms: &[KeptArm]) -> Vec<Question> {
    let groups = groups(config, |settings| {
        let settings = Settings::of(settings);
        (settings.side, settings.points())
    });
    let question = |((side, points), places): &((super::settings::Side, _), Vec<usize>)| {
        let (side, first) = (side.word(), &config.arms[places[0]].name);
        let entry = |arm: &usize| {
            ReplicaTold::entry(&config.arms[*arm].name, &arms[*arm].replicas, |it| Some(it.figures.as_ref()?.worth))
        };
        Question {
            asks: format!("Are champions that play {side} at {points} worth more than those of {first:?}?"),
            figure: format!("worth of the champion as {side}, exactly, in points a game at {points}"),
            by: if places.len() > 1 { Question::from_the_first(places.len()) } else { Answer::Sentences },
            shared: None,
            arms: places.iter().map(entry).collect(),
        }
    };
    groups.iter().map(question).collect()
}
