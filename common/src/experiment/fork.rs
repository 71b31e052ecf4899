//! Settings that change after a round: the tables `[[fork]]` of an experiment file.
//!
//! ```toml
//! [[fork]]                 # until the end of this round, settings have the values below
//! at = 30
//! [fork.settings]          # in all arms
//! penalty = 6.5
//! [fork.arms."never lose"] # an arm's own values override those
//! penalty = 100
//! ```
//!
//! The file's other settings are those after the last change. A replica reaches the round with the earlier settings, keeps its
//! state, and goes on with the later ones. So the file alone says what is computed, and a run that forks from another one is
//! an ordinary run.

use serde_json::{Map, Value as Json, json};

use crate::settings::{Value, toml_text};

/// The most forks of a run.
pub const FORKS_MAX: usize = 8;

/// A change of settings after a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fork {
    /// The last round with the earlier settings, counted from 1.
    pub at: u64,
    /// The arms whose settings change, each with the earlier values of these settings, in the order of the schema.
    pub arms: Vec<(String, Vec<Earlier>)>,
}

/// A setting that changes, with its value before.
pub type Earlier = (&'static str, Value);

impl Fork {
    /// The table in an experiment file.
    pub(super) fn to_toml(&self) -> String {
        let mut text = format!("\n[[fork]]\nat = {}\n", self.at);
        for (arm, earlier) in &self.arms {
            text += &format!("\n[fork.arms.{}]\n", toml_text(arm));
            earlier.iter().for_each(|(name, value)| text += &format!("{name} = {value}\n"));
        }
        text
    }

    /// The change as an entry of `result.json`.
    pub(super) fn to_json(&self) -> Json {
        let values = |earlier: &[Earlier]| -> Map<String, Json> {
            earlier.iter().map(|(name, value)| ((*name).to_owned(), value.bare().into())).collect()
        };
        let arms: Map<String, Json> = self.arms.iter().map(|(arm, it)| (arm.clone(), values(it).into())).collect();
        json!({"at": self.at, "arms": arms})
    }
}

/// The tables in an experiment file whose result has this entry.
pub(super) fn of_result(told: &Json) -> Option<String> {
    let mut text = String::new();
    for fork in told.as_array()? {
        text += &format!("[[fork]]\nat = {}\n", fork["at"]);
        for (arm, earlier) in fork["arms"].as_object()? {
            text += &format!("[fork.arms.{arm:?}]\n");
            earlier.as_object()?.iter().for_each(|(name, value)| text += &format!("{name} = {value}\n"));
        }
    }
    Some(text)
}
