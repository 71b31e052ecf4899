//! Experiment files: TOML, typed, every mistake reported at once with its place and the nearest right name.
//!
//! ```toml
//! experiment = "invincible"
//! seed = 1
//! replicas = 20
//!
//! [settings]          # for all arms
//! population = 1000
//!
//! [arms."never lose"] # an arm's own settings go before those
//! penalty = 100
//! ```

mod parse;
mod schema;

pub use parse::{Problem, Problems};
pub use schema::{Field, Schema, Scope, Shape, Value, Values};

use crate::{digest::Digest, experiment};

/// Bytes of an experiment file.
pub const FILE_BYTES_MAX: usize = 1 << 20;
/// Arms of a run.
pub const ARMS_MAX: usize = 64;
/// Replicas of an arm.
pub const REPLICAS_MAX: u32 = 10_000;
/// The name of the only arm of a file without arms.
pub const ONLY_ARM: &str = "main";

/// The experiments there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Measures what a cluster costs.
    Dispatch,
    /// Table players of 3x3 tic-tac-toe that stop losing.
    Invincible,
    /// Networks that learn by temporal differences.
    Td3d,
    /// Networks that learn from a teacher by genetic algorithms.
    Nndtf,
    /// Agents made of rules that learn from games among themselves.
    Rules,
    /// Strings that play 3x3 tic-tac-toe and are repaired as they play.
    Ternary,
}

impl Kind {
    /// All of them, by name.
    pub const ALL: [Self; 6] = [Self::Dispatch, Self::Invincible, Self::Td3d, Self::Nndtf, Self::Rules, Self::Ternary];

    /// As in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dispatch => "dispatch",
            Self::Invincible => "invincible",
            Self::Td3d => "td3d",
            Self::Nndtf => "nndtf",
            Self::Rules => "rules",
            Self::Ternary => "ternary",
        }
    }

    /// The kind of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Its settings.
    #[must_use]
    pub fn schema(self) -> &'static Schema {
        match self {
            Self::Dispatch => &experiment::dispatch::SCHEMA,
            Self::Invincible => &experiment::invincible::settings::SCHEMA,
            Self::Td3d => &experiment::td3d::settings::SCHEMA,
            Self::Nndtf => &experiment::nndtf::settings::SCHEMA,
            Self::Rules => &experiment::rules::settings::SCHEMA,
            Self::Ternary => &experiment::ternary::settings::SCHEMA,
        }
    }
}

/// What to compute: an experiment's arms, each with `replicas` seeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The experiment.
    pub kind: Kind,
    /// All random numbers of the run follow from it.
    pub seed: u64,
    /// Independent repetitions of every arm.
    pub replicas: u32,
    /// At least one, in the order of the file.
    pub arms: Vec<Arm>,
}

/// One configuration of the experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// Printable ASCII, 1 to 64 characters; part of the names of its random streams.
    pub name: String,
    /// A value for every setting.
    pub settings: Values,
}

impl Config {
    /// Reads an experiment file. `overrides` are pairs of key and value that go before the file's: `seed`, `replicas`, the
    /// name of a setting (for all arms), or `arms.NAME.SETTING`.
    ///
    /// # Errors
    /// All problems at once.
    pub fn parse(file: &str, text: &str, overrides: &[(String, String)]) -> Result<Self, Problems> {
        parse::parse(file, text, overrides)
    }

    /// The arm that an override is for, if it is for one.
    #[must_use]
    pub fn arm_of(key: &str) -> Option<&str> {
        parse::of_arm(key).map(|(arm, _)| arm)
    }

    /// Of the same text and overrides: which overrides for all arms change what these arms (all, if none is named) say
    /// themselves, a sentence for each.
    #[must_use]
    pub fn overruled(text: &str, overrides: &[(String, String)], arms: &[String]) -> Vec<String> {
        parse::overruled(text, overrides, arms)
    }

    /// The resolved configuration: every setting of every arm spelled out. [`Config::parse`] is the inverse.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let head =
            format!("experiment = \"{}\"\nseed = {}\nreplicas = {}\n", self.kind.name(), self.seed, self.replicas);
        head + &self.arms_toml(|_| true)
    }

    /// SHA-256 of what each replica computes: the experiment, the seed, the arms with the settings that results depend on.
    /// How many replicas there are is not part of it, so a finished run can be extended.
    #[must_use]
    pub fn hash(&self) -> Digest {
        let head = format!("evoxo configuration 1\n{}\n{}\n", self.kind.name(), self.seed);
        Digest::of((head + &self.arms_toml(|field| field.scope == Scope::What)).as_bytes())
    }

    fn arms_toml(&self, shown: impl Fn(&Field) -> bool) -> String {
        let mut text = String::new();
        for arm in &self.arms {
            text += &format!("\n[arms.{}]\n", quote(&arm.name));
            for (field, value) in arm.settings.iter().filter(|(field, _)| shown(field)) {
                text += &format!("{} = {}\n", field.name, written(value));
            }
        }
        text
    }
}

/// A value as in a file.
#[must_use]
pub fn written(value: &Value) -> String {
    match value {
        Value::Integer(value) => value.to_string(),
        Value::Decimal(value) => schema::write_decimal(*value),
        Value::Choice(value) => quote(value),
    }
}

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A commented file with every setting at its default: where a new experiment begins.
#[must_use]
pub fn template(kind: Kind) -> String {
    let schema = kind.schema();
    let mut text = comment(schema.summary);
    text += &format!("experiment = \"{}\"\n\n", kind.name());
    text += &comment("All random numbers follow from the seed: the same file gives the same results, bit for bit.");
    text += "seed = 1\n\n";
    text += &comment("Independent repetitions of every arm; figures are means over them, with an interval.");
    text += "replicas = 20\n\n";
    text += &comment("Settings for all arms.");
    text += "[settings]\n";
    for field in schema.fields {
        text += &comment(field.doc);
        let default = match field.shape {
            Shape::Integer { min, max } => {
                text += &comment(&format!("From {min} to {max}."));
                field.default.to_owned()
            }
            Shape::Signed { min, max } => {
                text += &comment(&format!("A whole number from {min} to {max}."));
                field.default.to_owned()
            }
            Shape::Decimal { min, max } => {
                text += &comment(&format!("A decimal from {min} to {max}."));
                field.default.to_owned()
            }
            Shape::Choice(choices) => {
                choices.iter().for_each(|(name, doc)| text += &comment(&format!("\"{name}\": {doc}")));
                quote(field.default)
            }
        };
        if field.scope == Scope::How {
            text += &comment("Only says how the work is cut up: results do not depend on it.");
        }
        text += &format!("{} = {default}\n\n", field.name);
    }
    text += &comment(
        "Arms are compared with each other: give each a name and the settings in which it differs, for example",
    );
    let first = &schema.fields[0];
    let example = match first.shape {
        Shape::Choice(_) => quote(first.default),
        _ => first.default.to_owned(),
    };
    text += &format!("# [arms.\"another\"]\n# {} = {example}\n", first.name);
    text
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

#[cfg(test)]
mod tests;
