//! A run's report as one self-contained HTML file: it needs no network and no other file. It is made from the same report as
//! the tables of `evoxo report`, and from the files next to the result in the run's directory, if they exist.

mod champions;
mod element;
mod figures;
pub(crate) mod gallery;
mod game;
mod genes;
mod plots;
mod ratings;
mod recipe;
mod settings;
mod tables;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use evoxo_common::{digest::Digest, experiment::Config, report::Report};
use serde_json::Value;

pub(crate) use champions::{Champion, champions};

use element::Html;
pub(crate) use element::escape;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = concat!(include_str!("script.js"), include_str!("game.js"));

/// The contents of a document.
pub(crate) struct Told<'a> {
    /// The name under which people know the run: its directory's name.
    pub(crate) name: &'a str,
    pub(crate) config: &'a Config,
    /// The content of `result.json`.
    pub(crate) result: &'a Value,
    pub(crate) report: &'a Report,
    /// The run's conclusion, in sentences.
    pub(crate) conclusion: String,
    /// The best champion of each arm, as far as the champions are there.
    pub(crate) champions: Vec<Champion>,
    /// The number of champions that are not shown.
    pub(crate) more_champions: usize,
}

/// The document.
pub(crate) fn document(told: &Told<'_>) -> String {
    let sections = [
        ("plots", "Plots", plots::section(told)),
        ("results", "Results", tables::section(told.report)),
        ("champions", "Champions", champions::section(told)),
        ("settings", "Settings", settings::section(told.config)),
        ("recompute", "Compute it again", recipe::section(told)),
    ];
    let sections = sections.into_iter().filter_map(|(id, title, content)| Some((id, title, content?)));
    let (mut links, mut parts) = (Vec::new(), Vec::new());
    for (id, title, content) in sections {
        links.push(Html::of("a", &[("href", &format!("#{id}"))], title));
        let heading = Html::of("h2", &[("id", id)], title);
        parts.push(Html::of("section", &[("aria-labelledby", id)], [heading, content]));
    }
    let navigation = Html::of("nav", &[("aria-label", "Sections")], links);
    let main = Html::of("main", &[], [head(told), navigation, Html::all(parts)]);
    let footer = Html::of("footer", &[], Html::of("p", &[], recipe::provenance(told.result)));
    let body = Html::of("body", &[], [main, footer, Html::of("script", &[], Html::of_markup(SCRIPT))]);
    let html = Html::of("html", &[("lang", "en")], [page_head(told.name, STYLE), body]);
    format!("<!doctype html>\n{}\n", html.into_string())
}

/// The page's head. Above all it tells the browser that the file may fetch nothing and may run no script but its own.
fn page_head(title: &str, style: &str) -> Html {
    let source = |text: &str| format!("'sha256-{}'", STANDARD.encode(Digest::of(text.as_bytes()).0));
    let policy = format!(
        "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'",
        source(style),
        source(SCRIPT)
    );
    let meta = |name: &str, content: &str| Html::of("meta", &[("name", name), ("content", content)], "");
    let pieces = [
        Html::of("meta", &[("charset", "utf-8")], ""),
        Html::of("meta", &[("http-equiv", "Content-Security-Policy"), ("content", &policy)], ""),
        meta("viewport", "width=device-width, initial-scale=1"),
        meta("color-scheme", "light dark"),
        meta("generator", concat!("evoxo ", env!("CARGO_PKG_VERSION"))),
        Html::of("title", &[], format!("{title} · evoxo")),
        Html::of("style", &[], Html::of_markup(style)),
    ];
    Html::of("head", &[], pieces)
}

/// The run's name, conclusion and figures.
fn head(told: &Told<'_>) -> Html {
    let kind = told.config.kind;
    let mut pieces = vec![
        Html::classed("p", "kind", format!("evoxo · {}", kind.name)),
        Html::of("h1", &[], told.name),
        Html::classed("p", "conclusion", told.conclusion.as_str()),
        Html::classed("p", "soft", kind.schema.summary),
    ];
    if let Some(doubts) = told.result["doubts"].as_array().filter(|doubts| !doubts.is_empty()) {
        let sentence = format!(
            "These results are in doubt: {} tasks were computed twice with different outputs, and one worker of each \
             pair computes wrongly.",
            doubts.len()
        );
        pieces.push(Html::classed("p", "banner", sentence));
    }
    pieces.push(figures::figures(told));
    Html::of("header", &[], pieces)
}
