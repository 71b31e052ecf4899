//! The front page of a directory of reports: for each run a picture, its verdict and its digest.

use evoxo_common::{
    experiment::{Config, Kind},
    report::Report,
};
use serde_json::Value;

use super::{STYLE, element::Html, page_head, plots};

/// Styles of this page, in addition to those of reports.
const STYLE_MORE: &str = include_str!("gallery.css");

/// An entry for one run on the page.
pub(crate) struct Entry {
    kind: &'static Kind,
    content: Html,
}

impl Entry {
    /// The entry for the run with this name, whose report is in this file next to the page. `number` must differ between
    /// runs.
    pub(crate) fn new(
        number: usize,
        (name, file): (&str, &str),
        (config, result, report): (&Config, &Value, &Report),
        conclusion: String,
    ) -> Self {
        let mut parts: Vec<Html> = plots::small(config, report, &format!("small-{number}")).into_iter().collect();
        let link = Html::of("a", &[("href", file)], name);
        parts.push(Html::of("h3", &[], link));
        parts.push(Html::of("p", &[], conclusion));
        let digest = result["digest"].as_str().map(|digest| digest.chars().take(16).collect::<String>() + "…");
        let about = [Html::text("digest "), Html::of("code", &[], digest.unwrap_or_else(|| "none yet".into()))];
        parts.push(Html::classed("p", "soft", about));
        Self { kind: config.kind, content: Html::classed("article", "card", parts) }
    }
}

/// The page. Runs of the same kind stand together, in their order.
pub(crate) fn document(title: &str, entries: Vec<Entry>) -> String {
    let count = entries.len();
    let mut kinds: Vec<(&'static Kind, Vec<Html>)> = Vec::new();
    for Entry { kind, content } in entries {
        match kinds.iter_mut().find(|(there, _)| *there == kind) {
            Some((_, runs)) => runs.push(content),
            None => kinds.push((kind, vec![content])),
        }
    }
    let link = |(kind, _): &(&Kind, Vec<Html>)| Html::of("a", &[("href", &format!("#{}", kind.name))], kind.name);
    let links: Vec<Html> = kinds.iter().map(link).collect();
    let s = if count == 1 { "" } else { "s" };
    let header = [
        Html::classed("p", "kind", "evoxo"),
        Html::of("h1", &[], title),
        Html::classed("p", "soft", format!("{count} run{s}. Each has a page with its tables, plots and settings.")),
    ];
    let section = |(kind, runs): (&Kind, Vec<Html>)| {
        let heading = Html::of("h2", &[("id", kind.name)], kind.name);
        let about = Html::classed("p", "soft about", kind.schema.summary);
        let parts = [heading, about, Html::classed("div", "gallery", runs)];
        Html::of("section", &[("aria-labelledby", kind.name)], parts)
    };
    let main = [
        Html::of("header", &[], header),
        Html::of("nav", &[("aria-label", "Kinds")], links),
        Html::all(kinds.into_iter().map(section)),
    ];
    let footer = Html::of("p", &[], concat!("Made by evoxo ", env!("CARGO_PKG_VERSION")));
    let body = Html::of("body", &[], [Html::of("main", &[], main), Html::of("footer", &[], footer)]);
    let head = page_head(title, &format!("{STYLE}{STYLE_MORE}"));
    format!("<!doctype html>\n{}\n", Html::of("html", &[("lang", "en")], [head, body]).into_string())
}
