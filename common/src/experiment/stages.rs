//! The settings of an arm before and after each fork of a run, and what the forks change, in words.

use std::{collections::VecDeque, iter::successors};

use serde_json::Value as Json;

use super::{Arm, Config, config::arms_text, fork::Fork};

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

    /// The configuration of the run from which this one forks last, and the last round that both have in common.
    #[must_use]
    pub fn past(&self) -> Option<(u64, Self)> {
        let mut past = self.clone();
        let at = past.forks.pop()?.at;
        for arm in &mut past.arms {
            let (stage, _) = self.stage(arm, at);
            arm.settings = stage.settings;
        }
        Some((at, past))
    }

    /// The pasts of this run, the last one first: see [`Self::past`].
    pub fn pasts(&self) -> impl Iterator<Item = (u64, Self)> {
        successors(self.past(), |(_, past)| past.past())
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
