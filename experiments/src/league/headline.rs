//! The result of a league in one sentence: which player has the highest rating. The table shows how certain this is, by
//! resamples of the openings.

use evoxo_common::{experiment::Config, headline::Headline};

use super::{report::report, told::Arm};

pub(super) fn headline(config: &Config, arms: &[Arm]) -> Headline {
    let Ok(report) = report(config, arms) else { return Headline::default() };
    let said = |name: &str| {
        let sentence = report.json["summary"][name]["sentence"].as_str()?;
        Some(if config.arms.len() == 1 { format!("{sentence}.") } else { format!("In {name:?}: {sentence}.") })
    };
    let all: Vec<String> = config.arms.iter().filter_map(|arm| said(&arm.name)).collect();
    let more = if all.len() > ARMS_MAX { Some("And so on.".to_owned()) } else { None };
    Headline { sentences: all.into_iter().take(ARMS_MAX).chain(more).collect(), questions: Vec::new() }
}

/// The most arms that the sentences mention.
const ARMS_MAX: usize = 4;
