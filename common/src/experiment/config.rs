//! The configuration that an experiment file describes.
//!
//! ```toml
//! experiment = "invincible"
//! seed = 1
//! replicas = 20
//!
//! [settings]          # for all arms
//! population = 1000
//!
//! [arms."never lose"] # an arm's own settings override those
//! penalty = 100
//! ```

use std::collections::BTreeSet;

use super::{Ends, Fork, Kind, Screen};
use crate::{
    digest::Digest,
    settings::{Condition, Field, Scope, Shape, Value, Values, toml_text},
    task::ProgramId,
    text::{quoted, size_text},
};

/// The most bytes of an experiment file.
pub const FILE_BYTES_MAX: usize = 1 << 20;
/// The most arms of a run.
pub const ARMS_MAX: usize = 64;
/// The most replicas of an arm.
pub const REPLICAS_MAX: u32 = 10_000;
/// The name of the only arm of a file without arms.
pub const ONLY_ARM: &str = "main";

/// What to compute: an experiment's arms, each with `replicas` replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The experiment.
    pub kind: &'static Kind,
    /// The seed from which all random numbers of the run are derived.
    pub seed: u64,
    /// The number of independent repetitions of every arm.
    pub replicas: u32,
    /// At least one, in the order of the file.
    pub arms: Vec<Arm>,
    /// The design that made the arms, if the arms are treatments of a design.
    pub screen: Option<Screen>,
    /// The conditions that end replicas before their length, if there are any.
    pub ends: Option<Ends>,
    /// The changes of settings after some round, in the order of rounds. Arms have the settings after the last one.
    pub forks: Vec<Fork>,
    /// How many bytes of states from the middle of the run stay in its store, so that forks and comparisons need not begin at
    /// its first round. No result depends on it.
    pub keep: u64,
}

/// One configuration of the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// 1 to 64 printable ASCII characters; part of the names of the arm's random streams.
    pub name: String,
    /// A value for every setting.
    pub settings: Values,
}

impl Config {
    /// The index, among the kind's columns, of the column that ranks replicas, if it is the same in all arms; otherwise of
    /// the primary metric.
    #[must_use]
    pub fn deciding_column(&self) -> usize {
        let mut columns = self.arms.iter().map(|arm| self.kind.deciding_column(&arm.settings));
        let first = columns.next().unwrap_or(self.kind.primary_metric);
        if columns.all(|column| column == first) { first } else { self.kind.primary_metric }
    }

    /// Settings that are allowed but probably not intended: a sentence for each, with its arms.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut found: Vec<(String, Vec<&str>)> = Vec::new();
        for arm in &self.arms {
            for sentence in (self.kind.schema.notes)(&arm.settings) {
                match found.iter_mut().find(|(other, _)| *other == sentence) {
                    Some((_, arms)) => arms.push(&arm.name),
                    None => found.push((sentence, vec![&arm.name])),
                }
            }
        }
        found.into_iter().map(|(sentence, arms)| format!("{}: {sentence}", arms_text(&arms, self.arms.len()))).collect()
    }

    /// The programs that the tasks of this run ask, sorted.
    #[must_use]
    pub fn programs(&self) -> Vec<ProgramId> {
        let Some(asks) = self.kind.asks else { return Vec::new() };
        let asked: BTreeSet<ProgramId> = self.arms.iter().filter_map(|arm| (asks.program)(&arm.settings)).collect();
        asked.into_iter().collect()
    }

    /// A file that some arm still needs, if there is one: its path relative to the directory of the experiment file.
    #[must_use]
    pub fn missing_file(&self) -> Option<String> {
        let reads = self.kind.reads?;
        self.arms.iter().find_map(|arm| (reads.file)(&arm.settings))
    }

    /// The configuration with the arms that the kind adds to a person's file, if there is room for them. Nothing is added to
    /// a configuration that is already complete, to one of which only some arms are wanted (`whole` is false), or to a
    /// screen.
    #[must_use]
    pub fn completed(self, whole: bool) -> Self {
        let (Some(complete), None) = (self.kind.complete, &self.screen) else { return self };
        let with = |whole| Self { arms: complete(&self.arms, whole), ..self.clone() };
        let all = with(whole);
        if all.arms.len() <= ARMS_MAX && all.to_toml().len() <= FILE_BYTES_MAX { all } else { with(false) }
    }

    /// The resolved configuration with every setting of every arm. [`Config::parse`] is the inverse.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let head = format!("experiment = \"{}\"\nseed = {}\nreplicas = {}\n", self.kind.name, self.seed, self.replicas);
        let head = head + &self.keep_toml() + &self.ends_toml() + &self.forks_toml();
        let Some(screen) = &self.screen else { return head + &arms_toml(self.arms_by_name(), |_, _| true) };
        let factors = |field: &Field| screen.sets(field.name);
        let response = self.kind.columns[screen.response].name;
        // For each arm of the file, the first of the arms that were made from it.
        let first = self.arms.iter().step_by(screen.design.treatments());
        let of_file = screen.arms.iter().map(String::as_str).zip(first);
        head + &screen.to_toml(response) + &arms_toml(of_file, |field, _| !factors(field))
    }

    /// SHA-256 of what each replica computes: the experiment, the seed, and the arms with the settings that results depend
    /// on. The number of replicas is not included, so that a finished run can be extended. The response of a screen is not
    /// included either, so that another response can be examined.
    #[must_use]
    pub fn hash(&self) -> Digest {
        let head = format!("evoxo configuration 1\n{}\n{}\n", self.kind.name, self.seed)
            + &self.ends_toml()
            + &self.forks_toml();
        Digest::of((head + &arms_toml(self.arms_by_name(), |field, value| self.counts(field, value))).as_bytes())
    }

    /// Whether results depend on this value of a setting. How the work is divided into rounds matters if something happens after
    /// a round; see [`Ends`] and [`Fork`].
    pub(super) fn counts(&self, field: &Field, value: &Value) -> bool {
        self.ends.is_some() || !self.forks.is_empty() || field.counts(value)
    }

    fn ends_toml(&self) -> String {
        self.ends.as_ref().map_or_else(String::new, |ends| ends.to_toml(self.kind.columns))
    }

    fn keep_toml(&self) -> String {
        if self.keep == 0 { String::new() } else { format!("keep = \"{}\"\n", size_text(self.keep)) }
    }

    fn forks_toml(&self) -> String {
        self.forks.iter().map(Fork::to_toml).collect()
    }

    /// Whether replicas of both configurations have the same states after the same rounds: all settings are equal, also those
    /// that only divide the work into rounds.
    #[must_use]
    pub fn has_states_of(&self, other: &Self) -> bool {
        *self == Self { replicas: self.replicas, keep: self.keep, ..other.clone() }
    }

    /// This configuration with the settings of another one on which no result depends. Rounds of a run that goes on have the
    /// size that they had.
    #[must_use]
    pub fn divided_as(mut self, there: &Self) -> Self {
        for arm in &mut self.arms {
            let Some(other) = there.arms.iter().find(|other| other.name == arm.name) else { continue };
            for (field, value) in other.settings.iter() {
                let now = arm.settings.iter().find(|(now, _)| now.name == field.name).map(|(_, now)| now.clone());
                if now.is_some_and(|now| now != *value && !field.counts(value) && !field.counts(&now)) {
                    arm.settings = arm.settings.clone().replaced(field.name, value.clone());
                }
            }
        }
        self
    }

    /// How this configuration differs from that of a run; see [`Change`].
    #[must_use]
    pub fn change_from(&self, there: &Self) -> Change {
        if self.hash() == there.hash() {
            return Change::None;
        }
        if let Some(what) = self.head_differs_from(there) {
            return Change::Other(what);
        }
        let mut longer = String::new();
        for (arm, there) in self.arms.iter().zip(&there.arms) {
            for ((field, value), (_, before)) in arm.settings.iter().zip(there.settings.iter()) {
                if before == value || !self.counts(field, value) && !self.counts(field, before) {
                    continue;
                }
                let what = format!("{} is {before} there, and {value} here", field.name);
                match (field.scope, before, value) {
                    (Scope::Length, Value::Integer(before), Value::Integer(value)) if before < value => {
                        if let Some(why) = (self.kind.depends_on_length)(&arm.settings) {
                            return Change::Other(format!("{what}, and {why}"));
                        }
                        longer = what;
                    }
                    _ => return Change::Other(what),
                }
            }
        }
        Change::Longer(longer)
    }

    /// The first difference from another run that is not a setting of an arm, in words.
    fn head_differs_from(&self, there: &Self) -> Option<String> {
        let missing = |from: &Self, other: &Self| {
            let is_missing = |arm: &&Arm| !other.arms.iter().any(|it| it.name == arm.name);
            from.arms.iter().find(is_missing).map(|arm| arm.name.clone())
        };
        let names = |config: &Self| config.arms.iter().map(|arm| arm.name.clone()).collect::<Vec<String>>();
        Some(match () {
            () if self.kind != there.kind => {
                format!("experiment is {:?} there, and {:?} here", there.kind.name, self.kind.name)
            }
            () if self.seed != there.seed => format!("seed is {} there, and {} here", there.seed, self.seed),
            () if self.ends != there.ends => "the table [ends] differs".into(),
            () if self.forks != there.forks => "the tables [[fork]] differ".into(),
            () if names(self) == names(there) => return None,
            () => match (missing(there, self), missing(self, there)) {
                (Some(name), _) => format!("arm {name:?} is there, and not here"),
                (None, Some(name)) => format!("arm {name:?} is here, and not there"),
                (None, None) => "the arms have another order there".into(),
            },
        })
    }

    fn arms_by_name(&self) -> impl Iterator<Item = (&str, &Arm)> {
        self.arms.iter().map(|arm| (arm.name.as_str(), arm))
    }
}

/// How a configuration differs from that of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It computes the same; the number of replicas may differ.
    None,
    /// It computes the same and then continues: only settings with the scope [`Scope::Length`] differ, and they are greater.
    /// The text describes one of them.
    Longer(String),
    /// It computes something else. The text describes the first difference that shows this.
    Other(String),
}

impl Change {
    /// The difference, in words.
    #[must_use]
    pub fn words(&self) -> Option<&str> {
        match self {
            Self::None => None,
            Self::Longer(what) | Self::Other(what) => Some(what),
        }
    }
}

/// The tables `[arms.NAME]` of these arms.
fn arms_toml<'a>(arms: impl Iterator<Item = (&'a str, &'a Arm)>, shown: impl Fn(&Field, &Value) -> bool) -> String {
    let mut text = String::new();
    for (name, arm) in arms {
        text += &format!("\n[arms.{}]\n", toml_text(name));
        for (field, value) in arm.settings.iter().filter(|(field, value)| shown(field, value)) {
            text += &format!("{} = {value}\n", field.name);
        }
    }
    text
}

/// The name of the arm that a screen makes from an arm of the file and a treatment: "small, abd". For the only arm of a file
/// without arms, it is just "abd".
pub(super) fn screened_name(arm: &str, treatment: &str) -> String {
    if arm == ONLY_ARM { treatment.to_owned() } else { format!("{arm}, {treatment}") }
}

/// A sentence names at most this many arms.
const NAMED_MAX: usize = 8;

/// The arms that a sentence is about, out of `count` arms: "arm \"a\"", "arms \"a\", \"b\"" or "in all arms".
pub(super) fn arms_text(arms: &[&str], count: usize) -> String {
    let names: Vec<String> = arms.iter().map(|name| format!("{name:?}")).collect();
    match names.as_slice() {
        [name] => format!("arm {name}"),
        all if all.len() == count => "in all arms".into(),
        many if many.len() > NAMED_MAX => format!("arm {} and {} more arms", many[0], many.len() - 1),
        some => format!("arms {}", some.join(", ")),
    }
}

/// A sentence that no arm has this name, with the names that exist.
pub(super) fn no_arm(name: &str, there: &[&str]) -> String {
    let name = quoted(name);
    match there {
        [] => format!("no arm is called {name}: the file has no arms, so give SETTING=VALUE"),
        there => {
            let there: Vec<String> = there.iter().map(|name| format!("{name:?}")).collect();
            format!("no arm is called {name}: the arms are {}", there.join(", "))
        }
    }
}

/// A file with these settings that explains each of them at length. Settings that belong only to other choices, such as those
/// of another algorithm, are left out.
#[must_use]
pub fn template(kind: &Kind, settings: &Values) -> String {
    let schema = kind.schema;
    let mut text = comment(schema.summary);
    text += &format!("experiment = \"{}\"\n\n", kind.name);
    text += &comment("All random numbers follow from the seed: the same file gives the same results, bit for bit.");
    text += "seed = 1\n\n";
    text += &comment("Independent repetitions of every arm; figures are means over them, with an interval.");
    text += "replicas = 20\n\n";
    text += &comment("Settings for all arms.");
    text += "[settings]\n";
    let (mut plain, mut lists) = (String::new(), String::new());
    for (field, value) in settings.iter().filter(|(field, _)| settings.is_chosen(field)) {
        match value {
            Value::List(entries) => {
                lists += &comment(field.doc);
                lists += &entries.iter().map(|entry| list_entry(field.name, entry)).collect::<String>();
            }
            value => plain += &format!("{}{}{} = {value}\n\n", explained(field), choice(kind, field), field.name),
        }
    }
    text += &(plain + &lists);
    text += &comment(
        "Arms are compared with each other: give each a name and the settings in which it differs, for example",
    );
    let first = &schema.fields()[0];
    text += &format!("# [arms.\"another\"]\n# {} = {}\n", first.name, usual(first));
    text
}

/// The same experiment as that of [`template`] on about a screen, to start a new one from: a line for each setting, with the
/// beginning of what it means. Settings that few people change are left out. A list of tables without entries has an example.
#[must_use]
pub fn short_template(kind: &Kind, settings: &Values) -> String {
    let mut text = format!("experiment = \"{}\"\nseed = 1\nreplicas = 20\n\n[settings]\n", kind.name);
    let (mut plain, mut lists, mut left_out) = (Vec::new(), String::new(), 0);
    for (field, value) in settings.iter().filter(|(field, _)| settings.is_chosen(field)) {
        match (value, field.shape) {
            (Value::List(entries), Shape::List { schema, .. }) if entries.is_empty() => {
                let comment_of = |field: &'static Field| (format!("# {} = {}", field.name, usual(field)), field);
                let example: Vec<_> = schema.fields().iter().map(comment_of).collect();
                lists += &format!("\n{}# [[{}]]\n{}", comment(field.doc), field.name, beside(&example));
            }
            (Value::List(entries), _) => {
                for entry in entries {
                    let lines: Vec<_> = entry.iter().map(line).collect();
                    lists += &format!("\n[[{}]]\n{}", field.name, beside(&lines));
                }
            }
            (value, _) if kind.schema.rare.contains(&field.name) && value.to_string() == usual(field) => left_out += 1,
            (value, _) => plain.push(line((field, value))),
        }
    }
    text += &(beside(&plain) + &lists);
    let which = match left_out {
        0 => "all settings".into(),
        _ => format!("these settings and {left_out} more"),
    };
    text + "\n" + &comment(&format!("`evoxo new {} --all` explains {which}.", kind.name))
}

/// The most letters of a line of a short file, and those of a setting beside which comments begin in one column.
const LINE_LETTERS: usize = 110;
const SETTING_LETTERS: usize = 34;

/// A setting with its value as a line of a file.
fn line<'a>((field, value): (&'a Field, &Value)) -> (String, &'a Field) {
    (format!("{} = {value}", field.name), field)
}

/// Lines of a file, each with the beginning of what it means beside it.
fn beside(lines: &[(String, &Field)]) -> String {
    let width = lines.iter().map(|(line, _)| line.len()).filter(|length| *length <= SETTING_LETTERS).max().unwrap_or(0);
    let explained = |(line, field): &(String, &Field)| {
        let room = LINE_LETTERS.saturating_sub(line.len().max(width) + 4);
        format!("{}\n", format!("{line:<width$}  # {}", brief(field, room)).trim_end())
    };
    lines.iter().map(explained).collect()
}

/// The first sentence about a setting, or its beginning, with the words that the setting may be.
fn brief(field: &Field, letters_max: usize) -> String {
    let doc = field.doc.split_whitespace().collect::<Vec<&str>>().join(" ");
    let mut text = doc.split(". ").next().unwrap_or_default().trim_end_matches('.').to_owned();
    let is_choice = matches!(field.shape, Shape::Choice(_));
    if let Shape::Choice(choices) = field.shape {
        text += ": ";
        text += &choices.iter().map(|(word, _)| *word).collect::<Vec<&str>>().join(", ");
    } else if let Some(clause) = text.find([':', ';', '(']).filter(|_| text.chars().count() > letters_max) {
        text.truncate(clause);
    }
    if text.chars().count() <= letters_max {
        return text.trim_end().to_owned();
    }
    let fits = |place: &usize| text[..*place].chars().count() + 4 <= letters_max;
    let last = |separator: &'static str| text.rmatch_indices(separator).map(|(place, _)| place).find(fits);
    match last(", ").filter(|_| !is_choice) {
        Some(end) => text[..end].to_owned(),
        None => format!("{} ...", &text[..last(" ").unwrap_or(0)]),
    }
}

/// The default of a setting as a file has it.
fn usual(field: &Field) -> String {
    match field.shape {
        Shape::Choice(_) | Shape::Text { .. } => toml_text(field.default),
        Shape::Numbers { .. } | Shape::List { .. } => format!("[{}]", field.default),
        _ => field.default.to_owned(),
    }
}

/// A comment that says how to see the settings of another choice, if this setting is one that chooses.
fn choice(kind: &Kind, field: &Field) -> String {
    if kind.schema.chooser != Some(field.name) {
        return String::new();
    }
    let other = format!("evoxo new {} --all --set {}=NAME", kind.name, field.name);
    comment(&format!("Some settings apply to one choice only: `{other}` shows them."))
}

/// Comments that say what a setting means and which values it may have.
fn explained(field: &Field) -> String {
    let mut text = comment(field.doc);
    match field.shape {
        Shape::Integer { min, max } => text += &comment(&format!("From {min} to {max}.")),
        Shape::Signed { min, max } => text += &comment(&format!("A whole number from {min} to {max}.")),
        Shape::Decimal { min, max, .. } => text += &comment(&format!("A decimal from {min} to {max}.")),
        Shape::Choice(choices) => {
            choices.iter().for_each(|(name, doc)| text += &comment(&format!("\"{name}\": {doc}")));
        }
        Shape::Text { bytes_max } => text += &comment(&format!("A text of at most {bytes_max} characters.")),
        Shape::Numbers { count_max, min, max, .. } => {
            text += &comment(&format!("At most {count_max} decimals from {min} to {max}."));
        }
        Shape::List { .. } => {}
    }
    if !field.applies.is_empty() {
        let of = |condition: &Condition| {
            let word = if condition.is { "is" } else { "is not" };
            format!("{} {word} {}", condition.setting, condition.values.join(" or "))
        };
        let all: Vec<String> = field.applies.iter().map(of).collect();
        text += &comment(&format!("It has an effect only if {}.", all.join(", and ")));
    }
    if field.scope == Scope::Execution {
        text += &comment("The results of an arm do not depend on it.");
    }
    if field.scope == Scope::Length {
        text += &comment("`evoxo run` continues a finished run if this value is increased.");
    }
    text
}

/// An entry of a list of tables, with comments.
fn list_entry(name: &str, entry: &Values) -> String {
    let setting = |(field, value): (&Field, &Value)| format!("{}{} = {value}\n", explained(field), field.name);
    format!("[[{name}]]\n{}\n", entry.iter().map(setting).collect::<String>())
}

/// A text as comment lines of at most 100 characters.
fn comment(text: &str) -> String {
    let mut lines = vec![String::from("#")];
    for word in text.split_whitespace() {
        if lines.last().is_some_and(|line| line.len() + 1 + word.len() > 100) {
            lines.push("#".into());
        }
        if let Some(line) = lines.last_mut() {
            line.push(' ');
            line.push_str(word);
        }
    }
    lines.join("\n") + "\n"
}
