//! `evoxo show FILE`: the contents of a champion in readable form; or of the champions in a directory, or of all players of a
//! run.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use evoxo_common::{
    card::{Answer, Card},
    experiment::Registry,
    plot,
    report::Table,
};
use serde_json::{Map, Value};

use crate::{
    champion, file,
    kept::RESULT_BYTES_MAX,
    plots,
    say::{notice, stdout, usage, whole},
    stored,
};

/// The card and the output.
#[derive(clap::Args)]
#[command(
    after_help = "An agent made of rules is shown as one board for each rule, the heaviest first. P is one of its \
own stones, C one of its opponent's, V an empty cell, * anything; [ ] is its move. A table or a string is shown as \
boards, each with its move in brackets. A network is shown as its layers, or as its genes.

Examples:
  evoxo show out/rules                    its champions, three rules of each
  evoxo show out/rules --populations --first 1
      All agents of the last populations, with their heaviest rule.
  evoxo show out/nndtf/champions/proposed-0.json --plots plots   also drawn"
)]
pub(crate) struct Arguments {
    /// A champion's card (JSON), from a run's champions/ or made by hand; or a network's file; or a run's directory, or a
    /// directory of cards
    file: PathBuf,
    /// With a run's directory: show all players of its last populations, instead of the champions
    #[arg(long)]
    populations: bool,
    /// Number of rules, boards, layers or genes to show [default: all; 3 of each champion in a directory]
    #[arg(
        long,
        value_name = "COUNT",
        allow_negative_numbers = true,
        value_parser = whole::<usize>(0, 1_000_000)
    )]
    first: Option<usize>,
    /// Print JSON: a list of {"when", "move", "priority", "weight"}, of {"board", "move"}, of {"tensor", "shape"}, or of
    /// {"name", "gene"}. For a directory: such a list for the name of each card
    #[arg(long)]
    json: bool,
    /// Also draw a network's weights, as SVG, into this directory; for a network of nndtf also its transfer functions
    #[arg(long, value_name = "DIRECTORY")]
    plots: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let first = arguments.first.unwrap_or(usize::MAX);
    let mut out = stdout();
    if arguments.file.is_dir() {
        if arguments.plots.is_some() {
            return Err(usage("--plots draws one champion: give its file instead of a directory"));
        }
        let cards = players(registry, &arguments.file, arguments.populations)?;
        if arguments.json {
            let all: Map<String, Value> =
                cards.into_iter().map(|(name, card)| (name, card.champion.show(first).json)).collect();
            writeln!(out, "{:#}", Value::from(all))?;
            return Ok(ExitCode::SUCCESS);
        }
        if arguments.populations {
            for (name, card) in cards {
                writeln!(out, "{name}: {}", card.champion.show(first).text)?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        write!(out, "{}", page(&cards, arguments.first.unwrap_or(PARTS)))?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.populations {
        return Err(usage("--populations shows the players of a run: give the run's directory"));
    }
    let card = champion::read(registry, &arguments.file)?;
    if let Some(directory) = &arguments.plots {
        draw(&card, &arguments.file, directory)?;
    }
    let showing = card.champion.show(first);
    match arguments.json {
        true => writeln!(out, "{:#}", showing.json)?,
        false => write!(out, "{}", showing.text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// On a page of several champions, the number of rules, boards or layers of each.
const PARTS: usize = 3;
/// The most champions on a page.
const CHAMPIONS_MAX: usize = 20;
/// The most letters of the genes in a table's column.
const LETTERS_MAX: usize = 40;

/// A page of text about these champions: a table if they are answers to a problem, else each champion with its first parts.
fn page(cards: &[(String, Card)], first: usize) -> String {
    let shown = &cards[..cards.len().min(CHAMPIONS_MAX)];
    let answers: Option<Vec<(&str, Answer)>> =
        shown.iter().map(|(name, card)| Some((name.as_str(), card.champion.answer()?))).collect();
    let mut text = match answers {
        Some(answers) => table(&answers).to_string(),
        None => shown.iter().map(|(name, card)| format!("{name}: {}\n", card.champion.show(first).text)).collect(),
    };
    if cards.len() > shown.len() {
        text += &format!("and {} more, which --json shows too\n", cards.len() - shown.len());
    }
    text
}

fn table(answers: &[(&str, Answer)]) -> Table {
    let mut header = vec!["champion".to_owned()];
    let named = |answer: &Answer| -> Vec<(String, String)> { [&answer.values[..], &answer.parts].concat() };
    for (name, _) in answers.iter().flat_map(|(_, answer)| named(answer)) {
        if !header.contains(&name) {
            header.push(name);
        }
    }
    let row = |(card, answer): &(&str, Answer)| {
        let entries = named(answer);
        let entry = |name: &String| {
            let text = entries.iter().find(|(of, _)| of == name).map_or("", |(_, text)| text);
            match text.char_indices().nth(LETTERS_MAX) {
                Some((end, _)) => {
                    format!("{} ...", text[..end].rsplit_once(' ').map_or(&text[..end], |(whole, _)| whole))
                }
                None => text.to_owned(),
            }
        };
        [vec![(*card).to_owned()], header[1..].iter().map(entry).collect()].concat()
    };
    let rows = answers.iter().map(row).collect();
    Table { title: "Champions, in rounded numbers: their cards have all digits".into(), header, rows }
}

/// Draws a champion's weights and curves as pictures.
fn draw(card: &Card, file: &Path, directory: &Path) -> anyhow::Result<()> {
    let (diagrams, figures) = (card.champion.diagrams(), card.champion.figures());
    if diagrams.is_empty() && figures.is_empty() {
        let name = file.display();
        return Err(usage(format_args!(
            "{name} has no weights or curves to draw: leave out --plots (networks have some)"
        )));
    }
    let diagrams = diagrams.iter().map(|diagram| (diagram.name.clone(), plot::diagram(diagram)));
    plots::write(directory, diagrams.chain(figures.iter().map(|figure| (figure.name.clone(), plot::svg(figure)))))
}

/// The champions in a directory or, with `populations`, all players. In a run's directory they come from the store, or from
/// the cards that were fetched; in any other directory, from its cards.
fn players(registry: &Registry, directory: &Path, populations: bool) -> anyhow::Result<Vec<(String, Card)>> {
    let of_run = directory.join("config.toml").is_file();
    if of_run && directory.join("store").is_dir() {
        let stored = stored::read(registry, directory)?;
        let stored = stored.with_context(|| format!("nothing is stored yet in {}", directory.display()))?;
        let players = if populations { stored.players() } else { stored.champion_cards() };
        if players.is_empty() {
            return Err(usage(format_args!("the run in {} has no players", directory.display())));
        }
        say_if_unfinished(stored.state(), directory);
        return Ok(players);
    }
    let result = directory.join("result.json");
    if of_run && result.is_file() {
        let result: Value = serde_json::from_slice(&file::read(&result, RESULT_BYTES_MAX, "")?).unwrap_or_default();
        say_if_unfinished(result["state"].as_str().unwrap_or_default(), directory);
    }
    let names: &[&str] = if populations { &["populations", "champions"] } else { &["champions"] };
    let below: Vec<PathBuf> = names.iter().map(|name| directory.join(name)).collect();
    let directory = below.iter().find(|below| of_run && below.is_dir()).map_or(directory, PathBuf::as_path);
    let read = |path: &PathBuf| Ok((stem(path), champion::read(registry, path)?));
    cards(directory)?.iter().map(read).collect()
}

fn say_if_unfinished(state: &str, directory: &Path) {
    if state == "unfinished" {
        notice(format_args!("the run in {} is not finished: these are its players so far", directory.display()));
    }
}

/// The cards in a directory, with numbers in names sorted as numbers.
fn cards(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(directory).with_context(|| format!("cannot read the directory {}", directory.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut cards: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect();
    if cards.is_empty() {
        let name = directory.display();
        return Err(usage(format_args!("there are no cards in {name}: give a run's champions/ or populations/")));
    }
    cards.sort_by_key(|path| in_order(&stem(path)));
    Ok(cards)
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// A sort key with which page-2 comes before page-10: each letter, with the number that follows it.
fn in_order(name: &str) -> Vec<(u64, String)> {
    let mut parts: Vec<(u64, String)> = Vec::new();
    for letter in name.chars() {
        match (letter.to_digit(10), parts.last_mut()) {
            (Some(digit), Some((number, _))) => *number = number.saturating_mul(10).saturating_add(digit.into()),
            (Some(digit), None) => parts.push((digit.into(), String::new())),
            (None, _) => parts.push((0, letter.to_string())),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use evoxo_games::table::optimum::optimum;

    #[test]
    fn files_in_a_directory_are_sorted_by_number() {
        let directory = tempfile::tempdir().unwrap();
        let card = Card::new(optimum(evoxo_games::board::Side::O, evoxo_common::ratio::Ratio::ONE).player);
        for name in ["page-0-10.json", "page-0-9.json", "page-0-100.json", "other.txt", "best-1.json"] {
            fs::write(directory.path().join(name), card.write("x").0).unwrap();
        }
        let names: Vec<String> = cards(directory.path()).unwrap().iter().map(|path| stem(path)).collect();
        assert_eq!(names, ["best-1", "page-0-9", "page-0-10", "page-0-100"]);
        let empty = tempfile::tempdir().unwrap();
        assert!(cards(empty.path()).unwrap_err().to_string().contains("there are no cards"));
        let sentence = draw(&card, Path::new("o.json"), empty.path()).unwrap_err().to_string();
        assert!(sentence.starts_with("o.json has no weights or curves to draw"), "{sentence}");
    }
}
