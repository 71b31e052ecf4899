//! The headline question of `evolve`: which arm finds better candidates? The tests between arms that search the same problem
//! answer it. They determine what they compare: replicas of noisy problems are paired, because they have the same fresh
//! seeds.

use evoxo_common::{
    experiment::Config,
    headline::{Answer, Entry, Headline, Question},
};

use super::{
    report::Arm,
    rows::{HYPERVOLUME, KEPT, QUALITY},
    settings::Settings,
};

pub(super) fn headline(config: &Config, arms: &[Arm]) -> Headline {
    let decides = config.deciding_column();
    let decisive = |arm: &Arm| match decides {
        HYPERVOLUME => arm.hypervolume.clone(),
        KEPT => arm.kept.clone(),
        QUALITY => arm.qd_score.clone(),
        _ => arm.best.clone(),
    };
    // With a target, a search ends as soon as it reaches it, so its value depends on what the rest of its batch happened to
    // find.
    let of_target = |(arm, Arm { reached, .. }): (usize, &Arm)| {
        let all = !reached.is_empty() && reached.iter().all(|evaluation| *evaluation > 0.0);
        (all && Settings::of(&config.arms[arm].settings).target_number().is_some()).then(|| reached.clone())
    };
    let sooner: Option<Vec<Vec<f64>>> = arms.iter().enumerate().map(of_target).collect();
    let entry = |(arm, kept): (usize, &Arm)| {
        if let Some(all) = &sooner {
            let values = (0..).zip(all[arm].iter().copied()).collect();
            return Entry { arm: config.arms[arm].name.clone(), values };
        }
        let values = decisive(kept).into_iter().zip(&kept.violations);
        // The value of a candidate that breaks a constraint says nothing.
        let solutions = values.filter(|(_, violation)| **violation == 0.0).map(|(value, _)| value);
        Entry { arm: config.arms[arm].name.clone(), values: (0..).zip(solutions).collect() }
    };
    let question = Question {
        asks: "Which arm searches better?".into(),
        figure: match decides {
            _ if sooner.is_some() => "the number of evaluations to the target".into(),
            HYPERVOLUME => "the hypervolume".into(),
            KEPT => "the number of cells filled".into(),
            QUALITY => "the QD score".into(),
            _ => best_of(config),
        },
        by: Answer::Contests,
        shared: None,
        arms: arms.iter().enumerate().map(entry).collect(),
    };
    Headline { sentences: Vec::new(), questions: vec![question] }
}

/// The name of the best value, such as "the least cost".
fn best_of(config: &Config) -> String {
    let mut firsts = config.arms.iter().map(|arm| Settings::of(&arm.settings).objectives().into_iter().next());
    match firsts.next().flatten() {
        Some((maximised, name)) if firsts.all(|other| other.as_ref() == Some(&(maximised, name.clone()))) => {
            format!("the {} {name}", if maximised { "greatest" } else { "least" })
        }
        _ => "the best objective".into(),
    }
}
