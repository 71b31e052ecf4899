//! Notices about what a file does not show: settings without effect, values that follow from others, and overrides of an
//! arm's own settings.

use toml::de::DeTable;

use super::{
    super::{Kind, ONLY_ARM, Registry, config::arms_text, written::Table},
    File,
};
use crate::settings::{Follows, Values};

/// An arm of a file: its name, its own settings, a value for every setting, and what follows from others.
type ResolvedArm = (String, Table, Values, Vec<Follows>);

/// The file with its arms; none if it has a screen, whose factors are given to all treatments.
fn resolved<'a>(
    registry: &'a Registry,
    text: &str,
    overrides: &[(String, String)],
    arms: &[String],
) -> Option<(File<'a>, &'static Kind, Vec<ResolvedArm>)> {
    let mut found = File::new(registry, text);
    let table = DeTable::parse(text).ok()?;
    found.read_all(table.get_ref(), overrides, arms);
    let kind = found.kind()?;
    found.take_lists(Some(kind));
    if found.screen.is_some() {
        return None;
    }
    let written = if found.arms.is_empty() { vec![(ONLY_ARM.into(), 1, Table::new())] } else { found.arms.clone() };
    let resolved = written.into_iter().filter_map(|(name, line, own)| {
        let (values, follows) = found.resolve_arm(kind.schema, &name, line, &own, &mut Vec::new())?;
        Some((name, own, values, follows))
    });
    let resolved = resolved.collect();
    Some((found, kind, resolved))
}

/// Sentences, each with the arms that it is about.
#[derive(Default)]
struct Notes<'a>(Vec<(String, Vec<&'a str>)>);

impl<'a> Notes<'a> {
    fn add(&mut self, sentence: String, arm: &'a str) {
        match self.0.iter_mut().find(|(other, _)| *other == sentence) {
            Some((_, arms)) => arms.push(arm),
            None => self.0.push((sentence, vec![arm])),
        }
    }

    /// The sentences for a file with this many arms.
    fn told(self, arms: usize) -> Vec<String> {
        self.0.into_iter().map(|(sentence, those)| format!("{}: {sentence}", arms_text(&those, arms))).collect()
    }
}

/// A sentence for each setting that is given but has no effect: a setting for all arms that has no effect in any arm, or an
/// arm's own setting. Nothing is reported about a screen.
pub(super) fn idle(registry: &Registry, text: &str, overrides: &[(String, String)], arms: &[String]) -> Vec<String> {
    let Some((found, kind, resolved)) = resolved(registry, text, overrides, arms) else { return Vec::new() };
    let mut notes = Notes::default();
    for field in kind.schema.fields() {
        let common = found.settings.contains_key(field.name);
        let why = |values: &Values| values.idle(field.name);
        // An arm with its own value does not read the common one.
        let mut readers = resolved.iter().filter(|(_, own, ..)| !own.contains_key(field.name)).peekable();
        let nowhere = common && readers.peek().is_some() && readers.all(|(_, _, values, _)| why(values).is_some());
        for (name, own, values, _) in &resolved {
            let given = own.contains_key(field.name) || nowhere;
            let Some(why) = why(values).filter(|_| given) else { continue };
            notes.add(format!("`{}` has no effect with {why}", field.name), name);
        }
    }
    notes.told(resolved.len())
}

/// A sentence for each value that follows from other settings. Nothing is reported about a screen, in which nothing follows.
pub(super) fn follows(registry: &Registry, text: &str, overrides: &[(String, String)], arms: &[String]) -> Vec<String> {
    let Some((.., resolved)) = resolved(registry, text, overrides, arms) else { return Vec::new() };
    let mut notes = Notes::default();
    for (name, _, values, follows) in &resolved {
        for Follows { setting, why, .. } in follows {
            notes.add(format!("{setting} = {}, because {why}", values.value(setting)), name);
        }
    }
    notes.told(resolved.len())
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
