//! The question of `menace`: from which opponent does a machine learn best to draw against a perfect player? This is easier
//! as X than as O, so only machines of the same side are compared.
//!
//! The name of every random stream contains the arm's name, so arms share nothing.

use evoxo_common::{
    experiment::{Config, groups},
    headline::{Answer, Entry, Headline, Question},
    settings::Choice as _,
};

use super::{Row, Settings, report::Arm};

pub(super) fn headline(config: &Config, arms: &[Arm]) -> Headline {
    // The share of draws, for each replica that has a row.
    let entry = |arm: usize| Entry {
        arm: config.arms[arm].name.clone(),
        values: (0..).zip(arms[arm].last.iter().map(|row| 100.0 * row[Row::perfect_draw])).collect(),
    };
    let question = |(side, places): &(super::settings::Side, Vec<usize>)| Question {
        asks: format!("From which opponent does a machine that plays {} learn best?", side.word()),
        figure: format!("% of draws against a perfect player as {}, computed", side.word()),
        by: Answer::Order,
        shared: None,
        arms: places.iter().copied().map(entry).collect(),
    };
    let groups = groups(config, |settings| Settings::of(settings).side);
    Headline { sentences: Vec::new(), questions: groups.iter().map(question).collect() }
}
