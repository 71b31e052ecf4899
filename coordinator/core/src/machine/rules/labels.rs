//! Which workers a run wants, by their labels. The term is only read here; `policy.rs` asks for the labels.

use evoxo_proto::{is_label, v1};

use super::{Rule, Term};

/// A run with this term is computed only by workers that have all of these labels.
static TERM: Term = Term {
    name: "where",
    values: "KEY=VALUE as in --label of a worker, several separated by commas, or empty for any worker",
    allows: |value| value.is_empty() || value.split(',').all(is_label),
};

pub(super) struct Labels;

impl Rule for Labels {
    fn term(&self) -> Option<&'static Term> {
        Some(&TERM)
    }
}

/// The labels that a worker must have for a run on these terms.
pub(in crate::machine) fn wanted(terms: &[v1::Term]) -> Vec<String> {
    let value = terms.iter().find(|term| term.name == TERM.name).map(|term| term.value.as_str()).unwrap_or_default();
    value.split(',').filter(|label| !label.is_empty()).map(str::to_owned).collect()
}
