//! The list in `tests/mutations.toml`.

use std::fs;

use toml::de::{DeTable, DeValue};

use crate::programs::workspace;

/// One small change of a source file that the tests must notice.
pub struct Mutation {
    /// Path from the workspace.
    pub file: String,
    /// The fragment to replace, which occurs once in the file.
    pub old: String,
    /// The replacement.
    pub new: String,
}

/// All mutations.
///
/// # Panics
/// If the file is not a list of mutations.
#[must_use]
pub fn mutations() -> Vec<Mutation> {
    let text = fs::read_to_string(workspace().join("tests/mutations.toml")).expect("the list of mutations");
    let file = DeTable::parse(&text).unwrap_or_else(|error| panic!("tests/mutations.toml: {error}"));
    let list = file.get_ref().get("mutation").map(|list| list.get_ref());
    let Some(DeValue::Array(list)) = list else { panic!("there is no [[mutation]]") };
    let mutation = |entry: &DeValue<'_>| {
        let part = |name: &str| match entry.get(name).map(|value| value.get_ref()) {
            Some(DeValue::String(text)) => text.to_string(),
            _ => panic!("a mutation has no {name}: {entry:?}"),
        };
        Mutation { file: part("file"), old: part("old"), new: part("new") }
    };
    list.iter().map(|entry| mutation(entry.get_ref())).collect()
}
