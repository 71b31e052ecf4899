//! Random search as an arm of every file: a search that does not beat it has learnt nothing.

use evoxo_common::experiment::Arm;

use super::{
    algorithm::BASELINE,
    settings::{BaselineName, SCHEMA, Settings},
};

/// The name of the added arm.
const NAME: &str = "random search";

/// The arms of a file that a person wrote. If `whole`, these are all of its arms, and random search is added for each problem
/// that lacks it: see the setting `baseline`. Then `baseline` becomes `none` in every arm, so a completed file stays as it
/// is.
pub(super) fn completed(arms: &[Arm], whole: bool) -> Vec<Arm> {
    let all: Vec<Settings> = arms.iter().map(|arm| Settings::of(&arm.settings)).collect();
    let mut complete = arms.to_vec();
    for (place, settings) in all.iter().enumerate().filter(|_| whole) {
        let same = |other: &&Settings| other.same_problem(settings);
        let first = all[..place].iter().find(same).is_none();
        let searched = all.iter().filter(same).any(|other| other.algorithm == BASELINE);
        if first && !searched && takes_one(settings) {
            complete.push(random(&complete, &arms[place]));
        }
    }
    for arm in &mut complete {
        arm.settings = arm.settings.with("baseline", "none");
    }
    complete
}

/// Whether random search is wanted and possible: not for programs, nor if candidates have no order.
fn takes_one(settings: &Settings) -> bool {
    settings.baseline == BaselineName::Random && settings.program().is_none() && settings.has_order()
}

/// Random search with the settings of another arm, under a name that no arm has.
fn random(arms: &[Arm], like: &Arm) -> Arm {
    let free = |name: &String| arms.iter().all(|arm| arm.name != *name);
    let numbered = (2..).map(|number| format!("{NAME} {number}"));
    let name = std::iter::once(NAME.to_owned()).chain(numbered).find(free).expect("there are as many numbers as arms");
    let settings = like.settings.with("algorithm", BASELINE.name);
    let foreign = BASELINE.foreign(&Settings::of(&settings).own);
    let settings = foreign.iter().fold(settings, |settings, wrong| {
        let field =
            SCHEMA.fields().iter().find(|field| field.name == wrong.setting).expect("a setting of an algorithm");
        settings.with(field.name, field.default)
    });
    Arm { name, settings }
}
