//! A setting that makes no sense, and why.

use super::Name;

/// What makes no sense in the settings of an algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The setting to change, as a file has it.
    pub setting: Name,
    /// What is wrong with it.
    pub sentence: String,
}

impl Wrong {
    /// This sentence about this setting.
    #[must_use]
    pub fn new(setting: Name, sentence: impl Into<String>) -> Self {
        Self { setting, sentence: sentence.into() }
    }
}

impl From<Wrong> for String {
    fn from(wrong: Wrong) -> Self {
        wrong.sentence
    }
}
