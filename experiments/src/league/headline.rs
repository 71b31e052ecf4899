//! The result of a league in one sentence: which player has the highest rating. The table shows how certain this is, by
//! resamples of the openings.

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

/// The most arms that the sentences mention.
const ARMS_MAX: usize = 4;
