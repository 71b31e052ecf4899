//! A screen: a design whose factors are settings, crossed with the arms of an experiment file.
//!
//! ```toml
//! [screen]
//! generators = ["D = ABC"]      # without generators: a full factorial design
//!
//! [screen.factors]              # a letter, and its settings with two levels each: low, high
//! A.agents = [20, 40]
//! B.mutation = [0.01, 0.1]
//! C = { cycles = [100, 200], games = [10, 5] }
//! D.selection = ["half", "tenth"]
//! ```

use crate::{
    math::order,
    screen::{Design, Word},
    settings::Value,
};

/// The most arms of a run with a screen: arms of the file, times treatments.
pub const SCREEN_ARMS_MAX: usize = 512;

/// A design, with the settings that its factors stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Which factors are high in which treatment, and what is aliased.
    pub design: Design,
    /// The factors, in the order of the design's letters.
    pub factors: Vec<Factor>,
    /// The names of the file's arms. Arm `a * treatments + t` of the configuration is arm `a` of the file with treatment `t`.
    pub arms: Vec<String>,
    /// The response: the index, among the kind's columns, of what is measured of a replica.
    pub response: usize,
    /// The row of the history from which the response is taken.
    pub at: At,
    /// Whether greater or smaller responses are better.
    pub goal: Goal,
}

/// A factor of a screen: settings that change together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factor {
    /// Its letter.
    pub letter: Word,
    /// Each setting's name with its value at the low level and at the high one; at least one.
    pub settings: Vec<(&'static str, [Value; 2])>,
}

/// The row of a history that a response is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The last row.
    End,
    /// The best row by the goal. If measurements are noisy, chance makes it look too good, for all treatments alike if they
    /// have the same number of rows.
    Peak,
}

/// Whether greater or smaller responses are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Greater responses are better.
    Maximize,
    /// Smaller responses are better.
    Minimize,
}

impl At {
    /// The words in files.
    pub(super) const WORDS: [(&'static str, Self); 2] = [("end", Self::End), ("peak", Self::Peak)];

    /// The word in files.
    #[must_use]
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize].0
    }
}

impl Goal {
    /// The words in files.
    pub(super) const WORDS: [(&'static str, Self); 2] = [("maximize", Self::Maximize), ("minimize", Self::Minimize)];

    /// The word in files.
    #[must_use]
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize].0
    }

    /// 1 if greater responses are better, -1 if smaller ones are.
    #[must_use]
    pub fn sign(self) -> f64 {
        if self == Self::Maximize { 1.0 } else { -1.0 }
    }
}

impl Factor {
    /// The names of its settings: "agents" or "cycles and games".
    #[must_use]
    pub fn name(&self) -> String {
        let names: Vec<&str> = self.settings.iter().map(|(name, _)| *name).collect();
        names.join(" and ")
    }

    /// One of its levels, 0 or 1, written as in a file but without quotes: "20" or "100 and 10".
    ///
    /// # Panics
    /// If there is no such level.
    #[must_use]
    pub fn level(&self, level: usize) -> String {
        let values = self.settings.iter().map(|(_, levels)| levels[level].bare());
        values.collect::<Vec<_>>().join(" and ")
    }
}

impl Screen {
    /// Whether a factor sets this setting.
    #[must_use]
    pub fn sets(&self, setting: &str) -> bool {
        self.factors.iter().any(|factor| factor.settings.iter().any(|(name, _)| *name == setting))
    }

    /// The response of a replica with this history, taken from the rows that have a value. `None` if no row has one, or if
    /// the last row counts and has none.
    #[must_use]
    pub fn response_of(&self, history: &[Vec<f64>], value: impl Fn(&[f64]) -> Option<f64>) -> Option<f64> {
        match self.at {
            At::End => value(history.last()?),
            At::Peak => history
                .iter()
                .filter_map(|row| value(row))
                .max_by(|one, other| order(self.goal.sign() * one, self.goal.sign() * other)),
        }
    }

    /// The table `[screen]` in an experiment file; `response` is the column's name.
    pub(super) fn to_toml(&self, response: &str) -> String {
        let generators: Vec<String> = self.design.generators().iter().map(|text| format!("\"{text}\"")).collect();
        let mut text = format!(
            "\n[screen]\ngenerators = [{}]\nresponse = \"{response}\"\nat = \"{}\"\ngoal = \"{}\"\n\n[screen.factors]\n",
            generators.join(", "),
            self.at.word(),
            self.goal.word()
        );
        for Factor { letter, settings } in &self.factors {
            for (name, [low, high]) in settings {
                text += &format!("{letter}.{name} = [{low}, {high}]\n");
            }
        }
        text
    }
}
