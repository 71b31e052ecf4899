//! The question of `menace`: from whom does a machine learn best to draw against a perfect player? As X this is easier than as O, so
//! only machines of one side are compared.
//!
//! All random streams have the arm's name in theirs, so arms share nothing.

use evoxo_common::{
    experiment::{Config, groups},
    headline::{Answer, Entry, Headline, Question},
    settings::Choice as _,
};
use serde_json::Value;

use super::{Row, Settings};

pub(super) fn headline(config: &Config, arms: &[Value]) -> Headline {
    let question = |(side, places): &(super::settings::Side, Vec<usize>)| Question {
        asks: format!("From whom does a machine that plays {} learn best?", side.word()),
        figure: format!("% of draws against a perfect player as {}, computed", side.word()),
        by: Answer::Order,
        shared: None,
        arms: places.iter().map(|arm| entry(config, *arm, &arms[*arm])).collect(),
    };
    let groups = groups(config, |settings| Settings::of(settings).side);
    Headline { sentences: Vec::new(), questions: groups.iter().map(question).collect() }
}

/// An arm with the last rows of its replicas.
fn entry(config: &Config, arm: usize, json: &Value) -> Entry {
    let rows = json["last"].as_array().into_iter().flatten();
    let percent = |row: &Value| row[Row::perfect_draw].as_f64().map(|share| 100.0 * share);
    let values = (0..).zip(rows).filter_map(|(number, row)| Some((number, percent(row)?))).collect();
    Entry { arm: config.arms[arm].name.clone(), values }
}
