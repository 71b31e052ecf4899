//! The questions of `ternary`: the chapter's arguments, each tested between two arms that differ in nothing else. If a file
//! has no such arms, the question is whether champions of other arms win more than those of the first arm.
//!
//! The name of every random stream contains the arm's name, so arms share nothing. Arms can be compared if they play the same
//! side and a loss costs the same.

use evoxo_common::{
    experiment::{Config, ReplicaTold, groups, settings_but},
    headline::{Answer, Headline, Question},
    ratio::Ratio,
    settings::{Choice as _, Values},
};

use super::{
    settings::{Settings, Side},
    told::{Arm, win},
};

/// The chapter's arguments: a setting, the value that the chapter favours, another value, and the question.
pub(super) const ARGUMENTS: [(&str, &str, &str, &str); 3] = [
    ("strings", "short", "long", "do shorter strings win more"),
    ("alphabet", "3", "9", "do smaller alphabets win more"),
    ("classes", "symmetries", "rotations", "do strings win more if mirrored boards share a place"),
];

/// Pairs of arms that differ only in one of the arguments, with the index of the argument. The favoured arm comes first.
pub(super) fn pairs(config: &Config) -> Vec<(usize, [usize; 2])> {
    let mut pairs = Vec::new();
    for (argument, (key, favoured, other, _)) in ARGUMENTS.iter().enumerate() {
        let is = |arm: &usize, word: &str| {
            let value = config.arms[*arm].settings.iter().find(|(field, _)| field.name == *key);
            value.is_some_and(|(_, value)| value.to_string().trim_matches('"') == word)
        };
        let rest = |arm: usize| settings_but(&config.arms[arm].settings, &[key]);
        let arms = 0..config.arms.len();
        for better in arms.clone().filter(|arm| is(arm, favoured)) {
            let worse = arms.clone().filter(|arm| is(arm, other) && rest(*arm) == rest(better));
            pairs.extend(worse.map(|worse| (argument, [better, worse])));
        }
    }
    pairs
}

pub(super) fn headline(config: &Config, arms: &[Arm]) -> Headline {
    let all = pairs(config);
    let question = |((side, penalty), places): &((Side, Ratio), Vec<usize>)| {
        let place = |arm: usize| places.iter().position(|place| *place == arm);
        let own: Vec<(usize, [usize; 2])> = all
            .iter()
            .filter_map(|(argument, [better, worse])| Some((*argument, [place(*better)?, place(*worse)?])))
            .collect();
        let first = &config.arms[places[0]].name;
        let asked = ARGUMENTS.iter().enumerate().filter(|(at, _)| own.iter().any(|(argument, _)| argument == at));
        let asked: Vec<&str> = asked.map(|(_, (.., words))| *words).collect();
        let (asks, by) = match (own.is_empty(), places.len()) {
            (false, _) => {
                let pairs = own.iter().map(|(_, pair)| *pair).collect();
                (format!("As {}, {}?", side.word(), asked.join(", and ")), Answer::Pairs(pairs))
            }
            (true, 1) => (String::new(), Answer::Sentences),
            (true, count) => (
                format!("As {}, do other champions win more than those of {first:?}?", side.word()),
                Question::from_the_first(count),
            ),
        };
        Question {
            asks,
            figure: figure(*side, *penalty),
            by,
            shared: None,
            arms: places
                .iter()
                .map(|arm| ReplicaTold::entry(&config.arms[*arm].name, &arms[*arm].replicas, win))
                .collect(),
        }
    };
    let of = |settings: &Values| {
        let settings = Settings::of(settings);
        (settings.side, settings.penalty)
    };
    Headline { sentences: Vec::new(), questions: groups(config, of).iter().map(question).collect() }
}

/// The figure that is measured.
fn figure(side: Side, penalty: Ratio) -> String {
    let costs = if penalty == Ratio::ONE { String::new() } else { format!(" where a loss costs {}", penalty.to_f64()) };
    format!("% that the champion wins as {} against a random mover, exactly{costs}", side.word())
}
