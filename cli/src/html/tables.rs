//! The tables of a report and the notes below them.

use evoxo_common::report::{Report, Table};

use super::element::Html;

/// The section of all tables and notes; `None` if there are none.
pub(super) fn section(report: &Report) -> Option<Html> {
    let mut parts: Vec<Html> = report.tables.iter().map(table).collect();
    if !report.notes.is_empty() {
        let notes = report.notes.iter().map(|note| Html::of("li", &[], note.as_str()));
        parts.push(Html::classed("ul", "notes", notes.collect::<Vec<_>>()));
    }
    (!parts.is_empty()).then(|| parts.into())
}

/// A table that scrolls on its own if it is too wide.
pub(super) fn table(table: &Table) -> Html {
    let row = |row: &Vec<String>, head: bool| {
        let cell = |(column, cell): (usize, &String)| match (head, column) {
            (true, _) => Html::of("th", &[("scope", "col")], cell.as_str()),
            (false, 0) => Html::of("th", &[("scope", "row")], cell.as_str()),
            (false, _) => Html::of("td", &[], cell.as_str()),
        };
        Html::of("tr", &[], row.iter().enumerate().map(cell).collect::<Vec<_>>())
    };
    let rows: Vec<Html> = table.rows.iter().map(|cells| row(cells, false)).collect();
    let parts = [
        Html::of("caption", &[], table.title.as_str()),
        Html::of("thead", &[], row(&table.header, true)),
        Html::of("tbody", &[], rows),
    ];
    scrolling("card", &table.title, Html::of("table", &[], parts))
}

/// Content that may be wider than the page. The keyboard can scroll it too.
pub(super) fn scrolling(class: &str, name: &str, content: Html) -> Html {
    let class = format!("scroll {class}");
    Html::of("div", &[("class", &class), ("tabindex", "0"), ("role", "group"), ("aria-label", name)], content)
}
