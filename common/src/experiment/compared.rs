//! Which arms of a run can be compared, and how they differ. Headlines of kinds use this.

use super::Config;
use crate::settings::Values;

/// The arms of a run, grouped by a key of their settings, in the order of the file.
#[must_use]
pub fn groups<K: PartialEq>(config: &Config, key: impl Fn(&Values) -> K) -> Vec<(K, Vec<usize>)> {
    let mut groups: Vec<(K, Vec<usize>)> = Vec::new();
    for (index, arm) in config.arms.iter().enumerate() {
        let key = key(&arm.settings);
        match groups.iter_mut().find(|(other, _)| *other == key) {
            Some((_, arms)) => arms.push(index),
            None => groups.push((key, vec![index])),
        }
    }
    groups
}

/// The settings that results depend on, except for `but`.
#[must_use]
pub fn settings_but(settings: &Values, but: &[&str]) -> Vec<String> {
    let counting = settings.iter().filter(|(field, value)| field.counts(value) && !but.contains(&field.name));
    counting.map(|(field, value)| format!("{} = {value}", field.name)).collect()
}

/// The settings in which an arm differs from the other arms and from the defaults, except for `but`.
#[must_use]
pub fn distinguishing(config: &Config, arm: usize, but: &[&str]) -> Vec<String> {
    let everywhere = |line: &String| config.arms.iter().all(|arm| settings_but(&arm.settings, but).contains(line));
    let is_default = |line: &String| {
        let defaults = config.kind.schema.defaults();
        defaults.iter().any(|(field, value)| *line == format!("{} = {value}", field.name))
    };
    let own = settings_but(&config.arms[arm].settings, but);
    own.into_iter().filter(|line| !everywhere(line) && !is_default(line)).collect()
}

/// A setting that has different values in an arm of two configurations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differing {
    /// The arm, which both configurations have.
    pub arm: String,
    /// The setting.
    pub setting: &'static str,
    /// Its values, as in a file.
    pub values: [String; 2],
    /// Whether results depend on it, so that it enters the hash of the configuration.
    pub counts: bool,
}

/// The settings that differ in the arms that two configurations of one kind share.
#[must_use]
pub fn differing(one: &Config, other: &Config) -> Vec<Differing> {
    let mut found = Vec::new();
    for arm in &one.arms {
        let Some(twin) = other.arms.iter().find(|it| it.name == arm.name) else { continue };
        for ((field, value), (_, there)) in arm.settings.iter().zip(twin.settings.iter()) {
            if value != there {
                found.push(Differing {
                    arm: arm.name.clone(),
                    setting: field.name,
                    values: [value.to_string(), there.to_string()],
                    counts: one.counts(field, value) || other.counts(field, there),
                });
            }
        }
    }
    found
}

/// Joins words: "0, 7 and 20".
#[must_use]
pub fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
