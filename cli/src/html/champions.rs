//! The best champion of each arm: a description, boards if the champion consists of boards, its curves, and its card.

use std::collections::BTreeSet;

use evoxo_common::{card::Card, experiment::Config, plot, text::number};
use evoxo_games::board::tic_tac_toe;
use serde_json::Value;

use super::{
    Told,
    element::Html,
    game, genes,
    recipe::{details, pre},
    tables::scrolling,
};
use crate::history::{Best, LastRows};

/// The most champions in a report: those of the first arms.
const CHAMPIONS_MAX: usize = 12;
/// The most parts of a champion that are shown: rules, boards, layers.
const PARTS: usize = 48;
/// The most letters of a champion's description, and of a card.
const TEXT_MAX: usize = 20_000;
/// The size of a board's cell, in pixels.
const CELL: u32 = 20;

/// A champion that is shown.
pub(crate) struct Champion {
    pub(crate) arm: String,
    pub(crate) replica: u32,
    /// The number of replicas among which this champion is the best.
    pub(crate) of: usize,
    /// The name of the column that ranks replicas.
    pub(crate) metric: &'static str,
    /// The champion's value in that column, at the end.
    pub(crate) value: f64,
    pub(crate) card: Card,
}

/// The champions that a report shows, among those that have a card, and how many more there are.
pub(crate) fn champions(
    rows: &LastRows,
    config: &Config,
    mut card: impl FnMut(&Best) -> anyhow::Result<Option<Card>>,
) -> anyhow::Result<(Vec<Champion>, usize)> {
    let (mut champions, mut more) = (Vec::new(), 0);
    for best in rows.best(config) {
        let Some(card) = card(&best)? else { continue };
        let Best { arm, replica, of, column, value } = best;
        let metric = config.kind.columns[column].name;
        match champions.len() {
            CHAMPIONS_MAX => more += 1,
            _ => champions.push(Champion { arm: config.arms[arm].name.clone(), replica, of, metric, value, card }),
        }
    }
    Ok((champions, more))
}

/// The section of the champions; `None` if there are no champions.
pub(super) fn section(told: &Told<'_>) -> Option<Html> {
    if told.champions.is_empty() {
        return None;
    }
    let metrics: BTreeSet<&str> = told.champions.iter().map(|champion| champion.metric).collect();
    let metrics = Vec::from_iter(metrics).join(" or ");
    let lead = format!(
        "The best replica's of each arm, by {metrics} at the end. Where that is measured with chance in it, the best of \
         several overstates itself."
    );
    let mut parts = vec![Html::classed("p", "soft", lead)];
    let all = told.champions.iter().enumerate();
    parts.extend(all.map(|(index, champion)| article(index, champion, told.config)));
    if told.more_champions > 0 {
        let sentence = format!("Champions of {} further arms are in the run's directory.", told.more_champions);
        parts.push(Html::classed("p", "soft", sentence));
    }
    Some(parts.into())
}

fn article(index: usize, champion: &Champion, config: &Config) -> Html {
    let Champion { arm, replica, of, metric, value, card } = champion;
    let showing = card.champion.show(PARTS);
    let id = format!("champion-{index}");
    let about = format!("Replica {replica} of {of}; {metric} {} at the end.", number(*value));
    let mut parts = vec![Html::of("h3", &[("id", &id)], arm.as_str()), Html::classed("p", "soft", about)];
    parts.extend(game::place(card));
    let quantities = config.arms.iter().find(|of| of.name == *arm).map(|of| (config.kind.quantities)(&of.settings));
    let candidate = genes::candidate(card, &quantities.unwrap_or_default());
    match (candidate, boards(&showing.json)) {
        (Some(nodes), _) => parts.extend(nodes),
        (None, Some(boards)) => {
            // Below its first paragraph, the text draws the boards too.
            let words = showing.text.split("\n\n").next().unwrap_or_default().replace('\n', " ");
            let whole = card.champion.show(PARTS + 1).json.as_array().is_none_or(|parts| parts.len() <= PARTS);
            let shown = if whole { String::new() } else { format!(" The first {PARTS} are shown.") };
            parts.extend([Html::of("p", &[], words + &shown), Html::classed("div", "boards", boards)]);
        }
        (None, None) => parts.push(pre(&cut(&showing.text))),
    }
    for diagram in card.champion.diagrams() {
        parts.push(scrolling("plot", &diagram.title, Html::of_markup(plot::diagram(&diagram))));
    }
    let mut curves = Vec::new();
    for (figure, axes) in card.champion.figures().iter().zip(0_usize..) {
        let svg = plot::svg_with_id(figure, &format!("{id}-axes-{axes}"));
        curves.push(scrolling("plot", &figure.title, Html::of_markup(svg)));
    }
    if !curves.is_empty() {
        parts.push(Html::classed("div", "plots curves", curves));
    }
    let (text, file) = card.write(&format!("champion-{index}"));
    match file {
        None if text.len() <= TEXT_MAX => {
            parts.push(details("Its card", pre(&text)));
        }
        None => {}
        Some((_, bytes)) => {
            let sentence =
                format!("Its card and the file with its weights ({} bytes) are in the run's directory.", bytes.len());
            parts.push(Html::classed("p", "soft", sentence));
        }
    }
    Html::of("article", &[("class", "card"), ("aria-labelledby", &id)], parts)
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(TEXT_MAX) {
        Some((end, _)) => format!("{}\n…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The parts of a champion as boards, if each part is a 3x3 board or a rule about one.
fn boards(parts: &Value) -> Option<Vec<Html>> {
    let parts = parts.as_array().filter(|parts| !parts.is_empty())?;
    parts.iter().map(board).collect()
}

/// A board with the move marked on it.
fn board(part: &Value) -> Option<Html> {
    let text = |key: &str| part[key].as_str();
    let (letters, to, says) = match (text("board"), text("when"), text("move")?) {
        (Some(board), None, to) => (board, tic_tac_toe().cell_named(to)?, String::new()),
        (None, Some(when), to) => {
            let to: u8 = to.parse::<u8>().ok()?.checked_sub(1)?;
            (when, to, format!("weight {}, priority {}", part["weight"], part["priority"]))
        }
        _ => return None,
    };
    let letters: Vec<char> = letters.chars().collect();
    if letters.len() != 9 || to > 8 {
        return None;
    }
    let mut svg = String::new();
    for (cell, letter) in letters.iter().enumerate() {
        let (column, row) = (cell as u32 % 3, cell as u32 / 3);
        let (x, y) = (column * CELL + 1, row * CELL + 1);
        let class = if cell == usize::from(to) { "cell to" } else { "cell" };
        svg += &format!("<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{CELL}\" height=\"{CELL}\"/>");
        // Both letters are shown as an empty cell: '*' stands for any content, and '.' for a cell that must be empty.
        let shown = if matches!(letter, '.' | '*') { ' ' } else { *letter };
        let (x, y) = (x + CELL / 2, y + CELL / 2 + 5);
        let letter = Html::text(&shown.to_string()).into_string();
        svg += &format!("<text x=\"{x}\" y=\"{y}\">{letter}</text>");
    }
    let (size, move_name) = ((3 * CELL + 2).to_string(), tic_tac_toe().cell_name(to));
    let rows: Vec<String> = letters.chunks(3).map(|row| row.iter().collect()).collect();
    let label = format!("{}: {move_name}", rows.join("/"));
    let view = format!("0 0 {size} {size}");
    let attributes = [("class", "board"), ("role", "img"), ("aria-label", label.as_str()), ("viewBox", view.as_str())];
    let picture = Html::of("svg", &attributes, Html::of_markup(svg));
    let caption = if says.is_empty() { move_name } else { says };
    Some(Html::of("figure", &[], [picture, Html::of("figcaption", &[], caption)]))
}
