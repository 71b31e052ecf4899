//! The best values that noisy searches saw, compared with the values of their answers under fresh seeds.

use evoxo_common::{
    math::pow,
    report::Table,
    stats::{Estimate, estimate},
};

use super::settings::Settings;

/// An arm whose problem is noisy.
pub(super) struct Noisy<'a> {
    pub(super) name: &'a str,
    pub(super) settings: &'a Settings,
    /// The best value that the search of each replica saw, for replicas with an answer.
    pub(super) seen: &'a [f64],
    /// The confirmed value of each replica's answer.
    pub(super) confirmed: &'a [f64],
    /// Half the width of the 95 % interval of each answer.
    pub(super) errors: &'a [f64],
}

/// The table of these arms; `None` without arms.
pub(super) fn table(arms: &[Noisy<'_>]) -> Option<Table> {
    let text = |values: &[f64]| estimate(values).as_ref().map_or_else(|| "-".into(), Estimate::short);
    let row = |arm: &Noisy<'_>| {
        let error = estimate(arm.errors)
            .map_or_else(|| "-".into(), |it| format!("± {}", Estimate { half_width: None, ..it }.short()));
        vec![arm.name.to_owned(), text(arm.seen), text(arm.confirmed), error]
    };
    (!arms.is_empty()).then(|| Table {
        title: "Noise: the best that a search saw, and its answer with fresh seeds: mean ± 95 % interval over replicas"
            .into(),
        header: ["arm", "seen", "confirmed", "one replica's own interval"].map(String::from).to_vec(),
        rows: arms.iter().map(row).collect(),
    })
}

/// A note on how values were confirmed, and at what cost.
pub(super) fn note(arms: &[Noisy<'_>]) -> Option<String> {
    let settings = arms.first()?.settings;
    let all = || arms.iter().flat_map(|arm| arm.errors);
    let equal = match (all().filter(|error| **error == 0.0).count(), all().count()) {
        (0, _) => String::new(),
        (equal, all) => format!(
            " In {equal} of {all} replicas all fresh values are equal, so the interval has no width: up to {:.0} % of further evaluations \
             may have other values.",
            // If this share of evaluations has other values, all confirmations miss them with a probability of 5 %.
            100.0 * (1.0 - pow(0.05, 1.0 / settings.confirmations as f64))
        ),
    };
    let (draws, finalists) = (settings.confirmations, settings.finalists);
    let chosen = match settings.objectives().len() {
        1 => format!(
            "the best of up to {} finalists by the mean of {draws} evaluations each; {draws} more with other seeds say what it is worth",
            2 * finalists + 1
        ),
        _ => format!(
            "the first front of the finalists by the means of {draws} evaluations each; {draws} more of each with other seeds say \
             what it is worth"
        ),
    };
    Some(format!(
        "The problem is noisy, and the best value that a search saw is mostly luck. So a replica's answer is {chosen}. These evaluations \
         are in addition to those of the search. Curves show what the searches saw.{equal}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::parse;

    #[test]
    fn intervals_without_width_are_explained() {
        let config = parse("experiment = \"evolve\"\n[settings]\nproblem = \"noisy-sphere\"\n");
        let settings = Settings::of(&config.arms[0].settings);
        let told = |errors: &[f64]| {
            note(&[Noisy { name: "main", settings: &settings, seen: &[], confirmed: &[], errors }]).unwrap()
        };
        assert!(told(&[1.0, 0.5]).ends_with("Curves show what the searches saw."));
        // 0.905^30 is 5 %.
        let some = told(&[0.0, 0.5]);
        assert!(some.contains("In 1 of 2 replicas all fresh values are equal"), "{some}");
        assert!(some.ends_with("up to 10 % of further evaluations may have other values."), "{some}");
    }
}
