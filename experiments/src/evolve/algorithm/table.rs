//! What follows from the table of algorithms: their settings, their checks, and the choices of the setting `algorithm`.

use std::sync::{LazyLock, OnceLock};

use evoxo_common::settings::{Choice, Condition, Field, Schema, Scope, Values};

use super::{ALGORITHMS, AlgorithmKind, Given, Part, Wrong};

/// The setting that chooses an algorithm.
pub const SETTING: &str = "algorithm";

/// The algorithms of this program. They are data of the program, like its kinds of experiments, and never change.
static TABLE: OnceLock<Vec<&'static AlgorithmKind>> = OnceLock::new();

/// The algorithms that an experiment file can choose: evoxo's own, and after them those that were [added](add).
#[must_use]
pub fn algorithms() -> &'static [&'static AlgorithmKind] {
    TABLE.get_or_init(|| ALGORITHMS.to_vec())
}

/// The algorithms that come from another crate.
#[must_use]
pub fn added() -> &'static [&'static AlgorithmKind] {
    &algorithms()[ALGORITHMS.len()..]
}

/// Adds algorithms of another crate. It is done once, before anything else reads the table.
///
/// # Panics
/// If an algorithm does not fit into the table (the sentence says why), or if the table has been read.
pub fn add(more: &'static [AlgorithmKind]) {
    let all = joined(more).unwrap_or_else(|why| panic!("{why}"));
    let table = TABLE.get_or_init(|| all.clone());
    assert!(*table == all, "algorithms are added once, before anything else of `evolve` is used");
}

/// The table with these algorithms at its end.
///
/// # Errors
/// Why it would change the configurations or the tasks of others.
fn joined(more: &'static [AlgorithmKind]) -> Result<Vec<&'static AlgorithmKind>, String> {
    let mut all = ALGORITHMS.to_vec();
    for kind in more {
        let name = kind.name;
        if all.contains(&kind) {
            return Err(format!("there are two algorithms with the name {name:?}: give yours another one"));
        }
        if kind.made.is_some() || kind.asks {
            return Err(format!("{name}: only evoxo's own algorithms make candidates in tasks, or ask programs"));
        }
        for (part, field) in
            kind.parts.iter().flat_map(|part| part.schema.fields().iter().map(move |field| (part, field)))
        {
            let is_taken = |other: &&Part| other.schema.fields().iter().any(|its| its.name == field.name);
            let others = |kinds: &[&'static AlgorithmKind]| kinds.iter().flat_map(|kind| kind.parts).find(is_taken);
            let (own, more) = all.split_at(ALGORITHMS.len());
            if others(own).is_some() || others(more).is_some_and(|other| !other.is_like(part)) {
                let sentence = "another algorithm has a setting with this name";
                return Err(format!("{name}: {sentence}: rename {:?}", field.name));
            }
            if field.scope != Scope::Addition {
                let sentence = "would be part of the hash of every configuration: declare it as an addition";
                return Err(format!("{name}: the setting {:?} {sentence}", field.name));
            }
        }
        all.push(kind);
    }
    Ok(all)
}

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
    let all = || algorithms().iter().flat_map(|kind| kind.parts);
    all()
        .enumerate()
        .filter(move |(place, part)| !all().take(*place).any(|other| other.is_like(part)))
        .map(|(_, part)| part)
}

/// The names of the algorithms for which `holds` is true.
#[must_use]
pub fn having(holds: impl Fn(&AlgorithmKind) -> bool) -> Vec<&'static str> {
    algorithms().iter().filter(|kind| holds(kind)).map(|kind| kind.name).collect()
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
    fn choices() -> &'static [(&'static str, &'static str)] {
        static CHOICES: LazyLock<Vec<(&str, &str)>> =
            LazyLock::new(|| algorithms().iter().map(|kind| (kind.name, kind.doc)).collect());
        &CHOICES
    }

    fn of(word: &str) -> Self {
        let found = algorithms().iter().find(|kind| kind.name == word);
        found.unwrap_or_else(|| panic!("there is no algorithm {word:?}"))
    }

    fn word(&self) -> &'static str {
        self.name
    }
}

#[cfg(test)]
mod tests {
    use evoxo_common::settings;

    use super::{
        super::{Cma, Listed as _, OpenAiEs, Random},
        *,
    };

    settings! {
        /// Settings of an algorithm from outside.
        struct Own, names Name, schema OWN {
            /// It may be added.
            patience: u32 = addition whole(1, 9, "3"),
        }
    }

    settings! {
        /// Settings that would change the hashes of all configurations.
        struct Wide, names WideName, schema WIDE {
            /// It may not be added.
            patience: u32 = whole(1, 9, "3"),
        }
    }

    settings! {
        /// Settings with a name that is taken.
        struct Taken, names TakenName, schema TAKEN {
            /// cma-mae has it.
            emitters: u32 = addition whole(1, 9, "3"),
        }
    }

    const OTHER: AlgorithmKind =
        AlgorithmKind { name: "other", parts: &[Part::of(&OWN)], ..AlgorithmKind::of::<Random>() };

    #[test]
    fn an_added_algorithm_changes_nothing_for_others() {
        static TWO: [AlgorithmKind; 2] = [OTHER, AlgorithmKind { name: "another", ..OTHER }];
        let all = joined(&TWO).unwrap();
        assert_eq!((&all[..ALGORITHMS.len()], all.len()), (ALGORITHMS, ALGORITHMS.len() + 2));

        let refused = |more: &'static [AlgorithmKind], sentence: &str| {
            let why = joined(more).unwrap_err();
            assert!(why.contains(sentence), "{why}");
        };
        refused(&[AlgorithmKind::of::<Random>()], "two algorithms with the name \"random\"");
        refused(&[OTHER, OTHER], "two algorithms with the name \"other\"");
        const OES: AlgorithmKind = AlgorithmKind { made: OpenAiEs::MADE, ..OTHER };
        refused(&[OES], "only evoxo's own algorithms make candidates in tasks");
        refused(&[AlgorithmKind { asks: true, ..OTHER }], "or ask programs");
        refused(&[AlgorithmKind { parts: Cma::PARTS, ..OTHER }], "has a setting with this name: rename \"sigma\"");
        refused(&[AlgorithmKind { parts: &[Part::of(&TAKEN)], ..OTHER }], "rename \"emitters\"");
        refused(&[AlgorithmKind { parts: &[Part::of(&WIDE)], ..OTHER }], "\"patience\" would be part of the hash");
        const WIDE_TOO: AlgorithmKind = AlgorithmKind { name: "wide", parts: &[Part::of(&TAKEN)], ..OTHER };
        refused(&[OTHER, WIDE_TOO], "rename \"emitters\"");
    }
}
