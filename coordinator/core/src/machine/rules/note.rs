//! What somebody has noted about a run, for people: a line in the lists of runs. Nothing depends on it.

use super::{Rule, Term};

/// The note of a run.
static TERM: Term = Term {
    name: "note",
    values: "one line of at most 64 bytes, or empty for no note",
    allows: |value| !value.chars().any(char::is_control),
};

pub(super) struct Note;

impl Rule for Note {
    fn term(&self) -> Option<&'static Term> {
        Some(&TERM)
    }
}
