//! What follows from the table of algorithms: their settings, their checks, and the choices of the setting `algorithm`.

use std::sync::{LazyLock, OnceLock};

use evoxo_common::settings::{Choice, Condition, Field, Schema, Scope, Values};

use super::{ALGORITHMS, AUTO, AlgorithmKind, Given, Part, Wrong};

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

/// Adds algorithms of another crate. It is done once, before anything else reads the table. `is_taken` knows the names of the
/// settings that all algorithms share.
///
/// # Panics
/// If an algorithm does not fit into the table (the sentence says why), or if the table has been read.
pub fn add(more: &'static [AlgorithmKind], is_taken: fn(&str) -> bool) {
    let all = joined(more, is_taken).unwrap_or_else(|why| panic!("{why}"));
    let table = TABLE.get_or_init(|| all.clone());
    assert!(*table == all, "algorithms are added once, before anything else of `evolve` is used");
}

/// The table with these algorithms at its end.
///
/// # Errors
/// Why it would change the configurations or the tasks of others.
fn joined(more: &'static [AlgorithmKind], is_taken: fn(&str) -> bool) -> Result<Vec<&'static AlgorithmKind>, String> {
    let mut all = ALGORITHMS.to_vec();
    let mut names: Vec<(&str, &Part)> = Vec::new();
    let is_used = |name: &str| {
        is_taken(name)
            || ALGORITHMS
                .iter()
                .any(|kind| kind.parts.iter().any(|part| part.schema.fields().iter().any(|own| own.name == name)))
    };
    for kind in more {
        let name = kind.name;
        if kind == AUTO || all.contains(&kind) {
            return Err(format!("there are two algorithms with the name {name:?}: give yours another one"));
        }
        if kind.made.is_some() || kind.asks {
            return Err(format!("{name}: only evoxo's own algorithms make candidates in tasks, or ask programs"));
        }
        for part in kind.parts {
            if names.iter().any(|(_, other)| other.is_like(part)) {
                continue;
            }
            for field in part.schema.fields() {
                if is_used(field.name) || names.iter().any(|(other, _)| *other == field.name) {
                    return Err(format!("{name}: there are two settings with the name {:?}: rename yours", field.name));
                }
                if field.scope != Scope::Addition {
                    return Err(format!("{name}: declare the setting {:?} as an addition", field.name));
                }
                names.push((field.name, part));
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
    follows: |_| Vec::new(),
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

/// The same, with the word of a file whose algorithm is still open: for settings on which the choice may depend.
#[must_use]
pub fn open_or_having(holds: impl Fn(&AlgorithmKind) -> bool) -> Vec<&'static str> {
    [vec![AUTO.name], having(holds)].concat()
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
        // A task names an added algorithm as the baseline, which keeps the bounds.
        if added().contains(&self) && !(self.keeps_bounds)(given.own) {
            return Err(Wrong::new(
                SETTING,
                format!("{}: only evoxo's own algorithms can leave the bounds", self.name),
            ));
        }
        (self.check)(given)
    }
}

impl Choice for &'static AlgorithmKind {
    fn choices() -> &'static [(&'static str, &'static str)] {
        static CHOICES: LazyLock<Vec<(&str, &str)>> =
            LazyLock::new(|| [&AUTO].into_iter().chain(algorithms()).map(|kind| (kind.name, kind.doc)).collect());
        &CHOICES
    }

    fn of(word: &str) -> Self {
        let found = [&AUTO].into_iter().chain(algorithms()).find(|kind| kind.name == word);
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
        /// Settings with a name that all algorithms share.
        struct Fuel, names FuelName, schema FUEL {
            /// It is taken.
            fuel: u32 = addition whole(1, 9, "3"),
        }
    }

    const OTHER: AlgorithmKind =
        AlgorithmKind { name: "other", parts: &[Part::of(&OWN)], ..AlgorithmKind::of::<Random>() };

    #[test]
    fn an_added_algorithm_changes_nothing_for_others() {
        static TWO: [AlgorithmKind; 2] = [OTHER, AlgorithmKind { name: "another", ..OTHER }];
        let all = joined(&TWO, |_| false).unwrap();
        assert_eq!((&all[..ALGORITHMS.len()], all.len()), (ALGORITHMS, ALGORITHMS.len() + 2));

        let refused = |more: &'static [AlgorithmKind], sentence: &str| {
            let why = joined(more, |name| name == "fuel").unwrap_err();
            assert!(why.contains(sentence), "{why}");
        };
        const RANDOM: AlgorithmKind = AlgorithmKind::of::<Random>();
        const OPEN: AlgorithmKind = AlgorithmKind { name: "auto", ..OTHER };
        const OES: AlgorithmKind = AlgorithmKind { made: OpenAiEs::MADE, ..OTHER };
        const ASKING: AlgorithmKind = AlgorithmKind { asks: true, ..OTHER };
        const WITH_SIGMA: AlgorithmKind = AlgorithmKind { parts: Cma::PARTS, ..OTHER };
        const WITH_FUEL: AlgorithmKind = AlgorithmKind { parts: &[Part::of(&FUEL)], ..OTHER };
        const WIDE_ONE: AlgorithmKind = AlgorithmKind { parts: &[Part::of(&WIDE)], ..OTHER };
        const LATER: AlgorithmKind = AlgorithmKind { name: "later", ..WIDE_ONE };
        const TWICE: AlgorithmKind = AlgorithmKind { parts: &[Part::of(&OWN), Part::of(&WIDE)], ..OTHER };
        refused(&[RANDOM], "two algorithms with the name \"random\"");
        refused(&[OPEN], "two algorithms with the name \"auto\"");
        refused(&[OTHER, OTHER], "two algorithms with the name \"other\"");
        refused(&[OES], "only evoxo's own algorithms make candidates in tasks");
        refused(&[ASKING], "or ask programs");
        refused(&[WITH_SIGMA], "two settings with the name \"sigma\"");
        refused(&[WITH_FUEL], "two settings with the name \"fuel\"");
        refused(&[WIDE_ONE], "declare the setting \"patience\" as an addition");
        refused(&[OTHER, LATER], "two settings with the name \"patience\"");
        refused(&[TWICE], "two settings with the name \"patience\"");
    }
}
