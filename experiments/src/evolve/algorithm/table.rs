//! What follows from the table of algorithms: their settings, their checks, and the choices of the setting `algorithm`.

use std::sync::LazyLock;

use evoxo_common::settings::{Choice, Condition, Field, Schema, Values};

use super::{ALGORITHMS, AlgorithmKind, Given, Part, Wrong};

/// The setting that chooses an algorithm.
const SETTING: &str = "algorithm";

/// The settings of all algorithms. Each applies only to the algorithms that have it.
pub static SETTINGS: Schema = Schema {
    summary: "The settings of all algorithms.",
    fields: || {
        static FIELDS: LazyLock<Vec<Field>> = LazyLock::new(fields);
        &FIELDS
    },
    rare: &[],
    chooser: None,
    check: |_| Vec::new(),
    notes: |_| Vec::new(),
};

fn fields() -> Vec<Field> {
    let field = |part: &Part, field: &Field| {
        let values = having(|kind| kind.has(part, field.name));
        let owners = Condition { setting: SETTING, is: true, values };
        Field { applies: [vec![owners], field.applies.clone()].concat(), ..field.clone() }
    };
    parts().flat_map(|part| part.schema.fields().iter().map(move |own| field(part, own))).collect()
}

/// The settings of all algorithms, with each group once.
fn parts() -> impl Iterator<Item = &'static Part> {
    let all = || ALGORITHMS.iter().flat_map(|kind| kind.parts);
    all()
        .enumerate()
        .filter(move |(place, part)| !all().take(*place).any(|other| other.is_like(part)))
        .map(|(_, part)| part)
}

/// The names of the algorithms for which `holds` is true.
#[must_use]
pub fn having(holds: impl Fn(&AlgorithmKind) -> bool) -> Vec<&'static str> {
    ALGORITHMS.iter().filter(|kind| holds(kind)).map(|kind| kind.name).collect()
}

/// Names as in a sentence: "a, b and c".
#[must_use]
pub fn listed(names: &[&str], and: &str) -> String {
    match names {
        [before @ .., last] if !before.is_empty() => format!("{} {and} {last}", before.join(", ")),
        names => names.concat(),
    }
}

impl AlgorithmKind {
    /// What is wrong with the settings of other algorithms if this one is chosen. Most of them have no effect then; a few
    /// must not be set.
    #[must_use]
    pub fn foreign(&self, own: &Values) -> Vec<Wrong> {
        let others = parts().filter(|part| !self.parts.iter().any(|mine| mine.is_like(part)));
        let wrong = |part: &Part| {
            let owners = having(|kind| kind.parts.iter().any(|its| its.is_like(part)));
            (part.elsewhere)(own, &listed(&owners, "and")).err()
        };
        others.filter_map(wrong).collect()
    }

    /// Checks that the settings of a file make sense with this algorithm.
    ///
    /// # Errors
    /// The setting that is wrong, and why.
    pub fn check_all(&self, given: &Given<'_>) -> Result<(), Wrong> {
        if let Some(wrong) = self.foreign(given.own).into_iter().next() {
            return Err(wrong);
        }
        if given.window > 0 && !self.has_windows() {
            let others = having(|kind| !kind.has_windows());
            let sentence = format!(
                "{} need whole generations: set window = 0, or choose another algorithm",
                listed(&others, "and")
            );
            return Err(Wrong::new("window", sentence));
        }
        (self.check)(given)
    }
}

impl Choice for &'static AlgorithmKind {
    const CHOICES: &'static [(&'static str, &'static str)] = &{
        let mut choices = [("", ""); ALGORITHMS.len()];
        let mut place = 0;
        while place < choices.len() {
            choices[place] = (ALGORITHMS[place].name, ALGORITHMS[place].doc);
            place += 1;
        }
        choices
    };

    fn of(word: &str) -> Self {
        let found = ALGORITHMS.iter().find(|kind| kind.name == word);
        found.unwrap_or_else(|| panic!("there is no algorithm {word:?}"))
    }

    fn word(&self) -> &'static str {
        self.name
    }
}
