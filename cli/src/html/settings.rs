//! The settings of a run: those in which its arms differ, and those that are the same for all arms.

use evoxo_common::{experiment::Config, report::Table, settings::Value};

use super::{element::Html, recipe::details, tables::table};

/// Both tables.
pub(super) fn section(config: &Config) -> Option<Html> {
    let fields = config.kind.schema.fields();
    let value = |arm: usize, field: usize| {
        let mut values = config.arms[arm].settings.iter();
        values.nth(field).map(|(_, value): (_, &Value)| shown(&value.to_string())).unwrap_or_default()
    };
    let same = |field: &usize| (1..config.arms.len()).all(|arm| value(arm, *field) == value(0, *field));
    let (alike, differing): (Vec<usize>, Vec<usize>) = (0..fields.len()).partition(same);
    let mut parts = Vec::new();
    if !differing.is_empty() {
        let name = |field: &usize| fields[*field].name.to_owned();
        let row = |arm: usize| {
            let own = differing.iter().map(|field| value(arm, *field));
            std::iter::once(config.arms[arm].name.clone()).chain(own).collect()
        };
        let of_arms = table(&Table {
            title: "Settings in which the arms differ".into(),
            header: std::iter::once("arm".to_owned()).chain(differing.iter().map(name)).collect(),
            rows: (0..config.arms.len()).map(row).collect(),
        });
        let shown = Html::classed("div", "settings", of_arms);
        parts.push(match config.arms.len() {
            0..=ARMS_MAX => shown,
            more => details(&format!("Settings of each of the {more} arms"), shown),
        });
    }
    let row = |field: &usize| vec![fields[*field].name.to_owned(), value(0, *field), fields[*field].doc.to_owned()];
    let alike = table(&Table {
        title: if config.arms.len() > 1 { "Settings that are the same for all arms" } else { "All settings" }.into(),
        header: ["setting", "value", "meaning"].map(String::from).to_vec(),
        rows: alike.iter().map(row).collect(),
    });
    parts.push(Html::classed("div", "settings meanings", alike));
    Some(parts.into())
}

/// With more arms than this, their settings are folded.
const ARMS_MAX: usize = 24;

/// The most letters of a value. More would show nothing useful of a module or a long text.
const LETTERS_MAX: usize = 60;

/// A value as people read it.
fn shown(text: &str) -> String {
    let text = text.trim_matches('"');
    match text.char_indices().nth(LETTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
