//! The levels that a screen favours, and whether they also help in an arm that had no part in the choice. A screen's choice
//! also follows its own noise, so what it promises for its own choice is only a prediction.

use super::{
    Config, Factor, Screen,
    screen_responses::{Screened, response_text},
};
use crate::{
    math::mean,
    report::Table,
    screen::{Effects, Word},
    stats::{Estimate, estimate, is_plain},
};

/// A factor at one of its levels, with the sign of its effect.
struct Choice<'a> {
    factor: &'a Factor,
    sign: f64,
}

/// For each factor whose main effect is found, its better level.
fn choices<'a>(screen: &'a Screen, effects: &Effects) -> Vec<Choice<'a>> {
    let of = |factor: &'a Factor| {
        let effect = effects.effects.iter().find(|effect| effect.aliases[0].word == factor.letter)?;
        effect.is_found().then(|| Choice { factor, sign: effect.estimate.signum() * screen.goal.sign() })
    };
    screen.factors.iter().filter_map(of).collect()
}

/// "A 40, C tenth".
fn levels_text(choices: &[Choice<'_>]) -> String {
    let text = |choice: &Choice<'_>| {
        format!("{} {}", choice.factor.letter, choice.factor.level(usize::from(choice.sign > 0.0)))
    };
    choices.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// What these levels change from the mean of all treatments, if effects add up: half of each effect. There is one number for
/// each replica, so the interval requires of the errors only that replicas are independent.
fn gains(screen: &Screen, choices: &[Choice<'_>], responses: &[Vec<f64>]) -> Vec<f64> {
    let design = &screen.design;
    let weight = |treatment: usize| {
        let signs = choices.iter().map(|choice| choice.sign * design.sign(choice.factor.letter, treatment));
        signs.sum::<f64>() / design.treatments() as f64
    };
    let weights: Vec<f64> = (0..design.treatments()).map(weight).collect();
    let replicas = responses.first().map_or(0, Vec::len);
    let of = |replica: usize| weights.iter().zip(responses).map(|(weight, list)| weight * list[replica]).sum();
    (0..replicas).map(of).collect()
}

fn text(estimate: Option<Estimate>) -> String {
    estimate.map_or_else(|| "-".into(), |estimate| estimate.short())
}

/// The levels that the only arm favours, and the response predicted for them.
pub(super) fn favoured(config: &Config, screen: &Screen, arm: &Screened<'_>) -> Option<Table> {
    let effects = arm.effects.as_ref()?;
    let choices = choices(screen, effects);
    if choices.is_empty() {
        return None;
    }
    // Per replica, from the replica's own mean: what its treatments have in common is part of the error.
    let gains = gains(screen, &choices, &arm.whole);
    let of_replica = |replica: usize| arm.whole.iter().map(|responses| responses[replica]).collect::<Vec<f64>>();
    let means: Vec<f64> = (0..gains.len()).filter_map(|replica| mean(&of_replica(replica))).collect();
    let predicted: Vec<f64> = means.iter().zip(&gains).map(|(mean, gain)| mean + gain).collect();
    let chosen = choices.iter().fold(Word::default(), |word, choice| word.times(choice.factor.letter));
    // Interactions that change, or may change, which level of a chosen factor is better.
    let interactions: Vec<String> = effects
        .effects
        .iter()
        .filter(|effect| effect.aliases[0].word.length() > 1 && effect.is_found())
        .filter(|effect| {
            effect
                .aliases
                .iter()
                .any(|alias| alias.word.letters().any(|it| chosen.letters().any(|letter| letter == it)))
        })
        .map(|effect| effect.aliases[0].word.to_string())
        .collect();
    let mut rows = vec![
        vec!["levels".into(), levels_text(&choices)],
        vec!["predicted if main effects add up".into(), text(estimate(&predicted))],
        vec!["mean of all treatments".into(), text(estimate(&means))],
    ];
    if !interactions.is_empty() {
        rows.push(vec!["interactions found, which may change it".into(), interactions.join(", ")]);
    }
    Some(Table {
        title: format!(
            "Levels that the main effects found favour for {} ({})",
            response_text(config, screen),
            screen.goal.word()
        ),
        header: ["", "± 95 % interval"].map(String::from).to_vec(),
        rows,
    })
}

/// For each arm, the levels that the other arms together favour, and what these levels change in the arm, where they were not
/// chosen. `None` if an arm has no effects yet.
pub(super) fn favoured_elsewhere(screen: &Screen, arms: &[Screened<'_>]) -> Option<Table> {
    let replicas = arms.iter().map(|arm| arm.whole.first().map_or(0, Vec::len)).min().filter(|count| *count > 0)?;
    let row = |place: usize| {
        let others: Vec<&Screened<'_>> =
            arms.iter().enumerate().filter(|(other, _)| *other != place).map(|(_, arm)| arm).collect();
        let mean = |treatment: usize, replica: usize| {
            others.iter().map(|arm| arm.whole[treatment][replica]).sum::<f64>() / others.len() as f64
        };
        let of_treatment = |treatment: usize| (0..replicas).map(|replica| mean(treatment, replica)).collect();
        let pooled: Vec<Vec<f64>> = (0..screen.design.treatments()).map(of_treatment).collect();
        let choices = choices(screen, &Effects::of(&screen.design, &pooled)?);
        let gain = |responses: &[Vec<f64>]| match choices.is_empty() {
            true => None,
            false => estimate(&gains(screen, &choices, responses)),
        };
        let (there, here) = (gain(&pooled), gain(&arms[place].whole));
        let levels = if choices.is_empty() { "nothing found".into() } else { levels_text(&choices) };
        // The levels were chosen from these numbers, so an interval would be misleading.
        let there = there.map_or_else(
            || "-".into(),
            |it| {
                if is_plain(it.mean) { format!("{:.*}", it.decimals(), it.mean) } else { format!("{:.2e}", it.mean) }
            },
        );
        Some(vec![arms[place].arm.to_owned(), levels, there, text(here)])
    };
    let rows = (0..arms.len()).map(row).collect::<Option<Vec<Vec<String>>>>()?;
    Some(Table {
        title: "Do levels hold where they were not chosen? Change from the mean of all treatments, ± 95 % interval"
            .into(),
        header: ["arm", "levels that the other arms favour", "change there", "change here"].map(String::from).to_vec(),
        rows,
    })
}
