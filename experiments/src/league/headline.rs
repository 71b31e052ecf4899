//! What came of a league, in its own words: who has the highest rating. Resamples of the openings say how sure that is, in the table.

use evoxo_common::{experiment::Config, headline::Headline};

use super::{
    report::{Rated, rated, sentence},
    told::Arm,
};

pub(super) fn headline(config: &Config, arms: &[Arm]) -> Headline {
    let Ok(arms) = rated(config, arms) else { return Headline::default() };
    let said = |arm: &Rated<'_>| match config.arms.len() {
        1 => format!("{}.", sentence(arm)),
        _ => format!("In {:?}: {}.", arm.name, sentence(arm)),
    };
    let all: Vec<String> = arms.iter().map(said).collect();
    let more = if all.len() > ARMS_MAX { Some("And so on.".to_owned()) } else { None };
    Headline { sentences: all.into_iter().take(ARMS_MAX).chain(more).collect(), questions: Vec::new() }
}

/// Arms that are told in words.
const ARMS_MAX: usize = 4;
