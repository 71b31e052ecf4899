//! A setting that makes no sense, and why.

/// A wrong setting of an algorithm, which does not know where the file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The setting to change, by its name in files.
    pub setting: &'static str,
    /// What is wrong with it.
    pub sentence: String,
}

impl Wrong {
    /// This sentence about this setting.
    #[must_use]
    pub fn new(setting: &'static str, sentence: impl Into<String>) -> Self {
        Self { setting, sentence: sentence.into() }
    }
}

impl From<Wrong> for String {
    fn from(wrong: Wrong) -> Self {
        wrong.sentence
    }
}
