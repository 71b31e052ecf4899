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

use std::collections::VecDeque;

use serde_json::{Map, Value as Json, json};

use super::{Arm, Config, Kind, config::arms_text};
use crate::settings::{Field, Scope, Value, toml_text};

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
    fn to_toml(&self) -> String {
        let mut text = format!("\n[[fork]]\nat = {}\n", self.at);
        for (arm, earlier) in &self.arms {
            text += &format!("\n[fork.arms.{}]\n", toml_text(arm));
            earlier.iter().for_each(|(name, value)| text += &format!("{name} = {value}\n"));
        }
        text
    }

    /// The change as an entry of `result.json`.
    fn to_json(&self) -> Json {
        let values = |earlier: &[Earlier]| -> Map<String, Json> {
            let text = |value: &Value| value.to_string().trim_matches('"').into();
            earlier.iter().map(|(name, value)| ((*name).to_owned(), text(value))).collect()
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

/// The reason why a setting cannot change after a round, if there is one.
pub(super) fn refusal(kind: &Kind, field: &Field) -> Option<String> {
    let name = field.name;
    if kind.may_change.contains(&name) {
        return None;
    }
    if field.scope == Scope::Length {
        return Some(format!(
            "{name} counts for the whole run, because it only makes a run longer: leave it out of [[fork]]"
        ));
    }
    Some(match kind.may_change {
        [] => format!("{name} cannot change after a round: no setting of {} can", kind.name),
        some => format!("{name} cannot change after a round; these settings of {} can: {}", kind.name, some.join(", ")),
    })
}

impl Config {
    /// The settings of an arm's replicas: each stage with the number of rounds after which it begins. The first one begins
    /// after 0 rounds.
    #[must_use]
    pub fn stages(&self, arm: &Arm) -> VecDeque<(u64, Arm)> {
        let (mut stages, mut arm) = (VecDeque::new(), arm.clone());
        for fork in self.forks.iter().rev() {
            let Some((_, earlier)) = fork.arms.iter().find(|(name, _)| *name == arm.name) else { continue };
            stages.push_front((fork.at, arm.clone()));
            arm.settings = earlier.iter().fold(arm.settings, |all, (name, value)| all.replaced(name, value.clone()));
        }
        stages.push_front((0, arm));
        stages
    }

    /// The stage of a replica after this many rounds, and the stages after that one. A change that is due after exactly these
    /// rounds is still to come.
    pub(super) fn stage(&self, arm: &Arm, rounds: u64) -> (Arm, VecDeque<(u64, Arm)>) {
        let mut stages = self.stages(arm);
        let begun = stages.iter().skip(1).take_while(|(at, _)| *at < rounds).count();
        let later = stages.split_off(begun + 1);
        let (_, stage) = stages.pop_back().expect("there is a first stage");
        (stage, later)
    }

    /// The tables `[[fork]]` of an experiment file.
    pub(super) fn forks_toml(&self) -> String {
        self.forks.iter().map(Fork::to_toml).collect()
    }

    /// The forks as an entry of `result.json`.
    pub(super) fn forks_json(&self) -> Json {
        self.forks.iter().map(Fork::to_json).collect()
    }

    /// What changes after which round, a sentence for each change.
    #[must_use]
    pub fn forks_text(&self) -> Vec<String> {
        let mut found: Vec<(u64, String, Vec<&str>)> = Vec::new();
        for arm in &self.arms {
            let stages = self.stages(arm);
            for ((_, before), (at, after)) in stages.iter().zip(stages.iter().skip(1)) {
                let pairs = before.settings.iter().zip(after.settings.iter());
                let words = pairs
                    .filter(|((_, old), (_, new))| old != new)
                    .map(|((field, old), (_, new))| format!("{} changes from {old} to {new}", field.name));
                let words = words.collect::<Vec<String>>().join(", and ");
                match found.iter_mut().find(|(other, same, _)| other == at && *same == words) {
                    Some((.., arms)) => arms.push(&arm.name),
                    None => found.push((*at, words, vec![&arm.name])),
                }
            }
        }
        found.sort_by_key(|(at, ..)| *at);
        let count = self.arms.len();
        let of = |(at, words, arms): (u64, String, Vec<&str>)| {
            let arms = if count == 1 { String::new() } else { format!(" ({})", arms_text(&arms, count)) };
            format!("After round {at}, {words}{arms}.")
        };
        found.into_iter().map(of).collect()
    }
}
