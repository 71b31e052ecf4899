//! The last thing that a run prints: the best candidate that it found, in rounded numbers. The cards have all digits.

use std::path::Path;

use evoxo_common::{
    card::{Answer, Card},
    experiment::{Config, champion_stem},
    report::Table,
    text::wrapped,
};

use crate::history::Best;

/// If a run has more arms than this, a table of their candidates would be too long to read, and only a hint is printed.
const ARMS_MAX: usize = 20;
/// The most letters that are shown of one part of a candidate.
const LETTERS_MAX: usize = 600;
/// Lines are at most this long, however wide the terminal is.
const WIDTH_MAX: usize = 100;

/// The text that shows the best candidate of all arms and the best of each arm, for the run in this directory. The text is
/// empty for kinds whose champions are not answers to a problem. `first` is the arm with the best candidate, if arms can be
/// compared.
pub(crate) fn answer_text(
    config: &Config,
    found: &[(Best, Card)],
    first: Option<usize>,
    directory: &Path,
    width: usize,
) -> String {
    let answers = found.iter().filter_map(|(best, card)| Some((best, card.champion.answer()?)));
    let answers: Vec<(&Best, Answer)> = answers.collect();
    // If the first value has another name, the arms have other objectives, and their values cannot be compared.
    let name = |answer: &Answer| answer.values.first().map(|(name, _)| name.clone());
    let comparable = answers.windows(2).all(|two| name(&two[0].1) == name(&two[1].1));
    let first = answers.iter().find(|(best, _)| comparable && first == Some(best.arm));
    let alone = first.map(|(best, answer)| alone(config, best, answer, directory, width.min(WIDTH_MAX)));
    let each = match answers.len() {
        0 => None,
        1 if alone.is_some() => None,
        1..=ARMS_MAX => Some(of_arms(config, &answers, directory).within(width)),
        _ => Some(format!("`evoxo best {}` shows the best candidate of each arm\n", directory.display())),
    };
    alone.into_iter().chain(each).collect::<Vec<_>>().join("\n")
}

fn alone(config: &Config, best: &Best, answer: &Answer, directory: &Path, width: usize) -> String {
    let card = directory.join("champions").join(champion_stem(config, best.arm, best.replica) + ".json");
    let mut of = if best.of > 1 { format!(", of replica {} (from 0)", best.replica) } else { String::new() };
    if config.arms.len() > 1 {
        of += &format!(" of {:?}", config.arms[best.arm].name);
    }
    let mut text = format!("{}{of}; all digits are in {}\n", answer.what, card.display());
    let named = || answer.values.iter().chain(&answer.parts);
    let margin = named().map(|(name, _)| name.chars().count()).max().unwrap_or(0) + 4;
    for (name, value) in named() {
        let lines = wrapped(&beginning(value), width.max(2 * margin) - margin, "");
        text += &format!("  {name:<0$}{1}\n", margin - 2, lines.replace('\n', &format!("\n{}", " ".repeat(margin))));
    }
    text
}

/// The beginning of a part: as much as a person would read.
fn beginning(text: &str) -> String {
    if text.chars().count() <= LETTERS_MAX {
        return text.to_owned();
    }
    let cut: String = text.chars().take(LETTERS_MAX).collect();
    let words = text.split(' ').count();
    match cut.rsplit_once(' ') {
        Some((whole, _)) => format!("{whole} ... ({words} in all)"),
        None => format!("{cut}... ({} letters in all)", text.chars().count()),
    }
}

fn of_arms(config: &Config, answers: &[(&Best, Answer)], directory: &Path) -> Table {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in answers.iter().flat_map(|(_, answer)| &answer.values) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let row = |(best, answer): &(&Best, Answer)| {
        let value = |name: &&str| answer.values.iter().find(|(of, _)| of == name).map_or("", |(_, value)| value);
        let beginning = [config.arms[best.arm].name.as_str(), &best.replica.to_string()].map(str::to_owned);
        beginning.into_iter().chain(names.iter().map(|name| value(name).to_owned())).collect()
    };
    Table {
        title: format!("The best candidate of each arm; `evoxo best {}` shows the cards", directory.display()),
        header: ["arm", "replica (from 0)"].into_iter().chain(names.iter().copied()).map(String::from).collect(),
        rows: answers.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_parts_are_cut_between_words() {
        assert_eq!(beginning("0.5 1"), "0.5 1");
        let genes = vec!["0.25"; 1000].join(" ");
        let shown = beginning(&genes);
        assert!(shown.ends_with("0.25 ... (1000 in all)") && shown.len() < 640, "{shown}");
        assert!(beginning(&"0".repeat(700)).ends_with("0... (700 letters in all)"));
    }
}
