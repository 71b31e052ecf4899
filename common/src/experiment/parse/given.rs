//! Notices about settings and overrides that do not do what they seem to do: settings without effect, and overrides of an
//! arm's own settings.

use toml::de::DeTable;

use super::{
    super::{ONLY_ARM, Registry, config::arms_text, written::Table},
    File,
};
use crate::settings::Values;

/// A sentence for each setting that is given but has no effect: a setting for all arms that has no effect in any arm, or an
/// arm's own setting. Factors of a screen are given to all treatments, so nothing is reported about a screen.
pub(super) fn idle(registry: &Registry, text: &str, overrides: &[(String, String)], arms: &[String]) -> Vec<String> {
    let mut found = File::new(registry, text);
    let Ok(table) = DeTable::parse(text) else { return Vec::new() };
    found.read_all(table.get_ref(), overrides, arms);
    let Some(kind) = found.kind() else { return Vec::new() };
    found.take_lists(Some(kind));
    let written = if found.arms.is_empty() { vec![(ONLY_ARM.into(), 1, Table::new())] } else { found.arms.clone() };
    if found.screen.is_some() {
        return Vec::new();
    }
    let resolved = written.iter().filter_map(|(name, line, own)| {
        let values = found.resolve_arm(kind.schema, name, *line, own, &mut Vec::new())?;
        Some((name.as_str(), own, values))
    });
    let resolved: Vec<(&str, &Table, Values)> = resolved.collect();
    let mut notes: Vec<(String, Vec<&str>)> = Vec::new();
    for field in kind.schema.fields() {
        let common = found.settings.contains_key(field.name);
        let why = |values: &Values| values.idle(field.name);
        // An arm with its own value does not read the common one.
        let mut readers = resolved.iter().filter(|(_, own, _)| !own.contains_key(field.name)).peekable();
        let nowhere = common && readers.peek().is_some() && readers.all(|(.., values)| why(values).is_some());
        for (name, own, values) in &resolved {
            let given = own.contains_key(field.name) || nowhere;
            let Some(why) = why(values).filter(|_| given) else { continue };
            let sentence = format!("`{}` has no effect with {why}", field.name);
            match notes.iter_mut().find(|(other, _)| *other == sentence) {
                Some((_, arms)) => arms.push(name),
                None => notes.push((sentence, vec![name])),
            }
        }
    }
    notes.into_iter().map(|(sentence, arms)| format!("{}: {sentence}", arms_text(&arms, resolved.len()))).collect()
}

/// A sentence for each override for all arms that changes an own setting of one of these arms.
pub(super) fn overruled(
    registry: &Registry,
    text: &str,
    overrides: &[(String, String)],
    arms: &[String],
) -> Vec<String> {
    let mut found = File::new(registry, text);
    if let Ok(table) = DeTable::parse(text) {
        found.read(table.get_ref());
    }
    let differs = |table: &Table, key: &str, value: &str| {
        table.get(key).is_some_and(|own| own.text.as_deref() != Ok(value.trim_matches('"')))
    };
    let of = |(key, value): &(String, String)| {
        let meant = found.arms.iter().filter(|(name, ..)| arms.is_empty() || arms.contains(name));
        let differing = meant.filter(|(.., table)| differs(table, key, value));
        let arms: Vec<String> = differing.map(|(name, ..)| format!("{name:?}")).collect();
        let what = match arms.as_slice() {
            [] => return None,
            [arm] => format!("arm {arm} says"),
            _ => format!("arms {} say", arms.join(", ")),
        };
        Some(format!("--set {key} overrides what {what}: their names may no longer fit"))
    };
    overrides.iter().filter_map(of).collect()
}
