//! The tables `[[fork]]` of an experiment file: reads them, and reports every mistake with its place.

use toml::de::{DeTable, DeValue};

use super::{
    Arm, Kind,
    fork::{Earlier, FORKS_MAX, Fork},
    written::{Lines, Mistake, Table, WrittenAt, raw, read},
};
use crate::{
    settings::{Field, Scope, Values},
    text::{hint, quoted},
};

/// The keys of a table.
const KEYS: [&str; 3] = ["at", "settings", "arms"];

/// A table as written.
#[derive(Clone, Debug)]
pub(super) struct ForkTable {
    line: usize,
    /// `at`, and keys that should not exist.
    keys: Table,
    /// The earlier values in all arms.
    settings: Table,
    /// The earlier values in some arms, each with its line.
    arms: Vec<(String, usize, Table)>,
    mistakes: Vec<Mistake>,
}

impl ForkTable {
    /// Reads a table, which begins on this line.
    pub(super) fn read(lines: &Lines, line: usize, table: &DeTable<'_>) -> Self {
        let (keys, settings) = (Table::new(), Table::new());
        let mut found = Self { line, keys, settings, arms: Vec::new(), mistakes: Vec::new() };
        for (key, value) in table {
            let line = lines.at(key.span().start);
            let mut wrong = |line, sentence: &str| found.mistakes.push((WrittenAt::Line(line), sentence.into()));
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("settings", DeValue::Table(settings)) => found.settings = lines.table(settings),
                ("arms", DeValue::Table(arms)) => {
                    for (name, settings) in arms {
                        let line = lines.at(name.span().start);
                        match settings.get_ref() {
                            DeValue::Table(table) => {
                                found.arms.push((name.get_ref().to_string(), line, lines.table(table)));
                            }
                            _ => wrong(line, "an arm of [[fork]] must be a table of settings"),
                        }
                    }
                }
                ("settings" | "arms", _) => wrong(line, "settings and arms of [[fork]] must be tables"),
                (name, value) => drop(found.keys.insert(name.into(), raw(value, line))),
            }
        }
        found
    }

    fn wrong(&mut self, place: WrittenAt, sentence: String) {
        self.mistakes.push((place, sentence));
    }

    /// The round after which the settings change.
    fn at(&mut self) -> Option<u64> {
        let Some(raw) = self.keys.get("at").cloned() else {
            self.wrong(WrittenAt::Line(self.line), "[[fork]] has no round: give at = ROUND".into());
            return None;
        };
        let at = raw.text.ok().and_then(|text| text.parse().ok()).filter(|at| (1..=u64::MAX >> 1).contains(at));
        if at.is_none() {
            self.wrong(raw.place, "at must be the number of a round, 1 or more".into());
        }
        at
    }

    /// Reports unknown names, and settings that cannot change.
    fn check_names(&mut self, kind: &Kind, arms: &[Arm], left_out: &[&str]) {
        let mut wrong = Vec::new();
        for (key, raw) in self.keys.iter().filter(|(key, _)| !KEYS.contains(&key.as_str())) {
            let hint = hint(key, KEYS.into_iter());
            wrong.push((raw.place.clone(), format!("unknown key {} in [[fork]]{hint}", quoted(key))));
        }
        let fields = kind.schema.fields();
        let tables = std::iter::once(&self.settings).chain(self.arms.iter().map(|(.., table)| table));
        for (name, raw) in tables.flatten() {
            let sentence = match fields.iter().find(|field| field.name == name) {
                Some(field) => refusal(kind, field),
                None => {
                    let hint = hint(name, kind.may_change.iter().copied());
                    Some(format!("unknown setting {} in [[fork]]{hint}", quoted(name)))
                }
            };
            wrong.extend(sentence.map(|sentence| (raw.place.clone(), sentence)));
        }
        for (name, line, _) in &self.arms {
            if !arms.iter().any(|arm| arm.name == *name) && !left_out.contains(&name.as_str()) {
                let hint = hint(name, arms.iter().map(|arm| arm.name.as_str()));
                wrong.push((WrittenAt::Line(*line), format!("[[fork]] names no arm: {}{hint}", quoted(name))));
            }
        }
        self.mistakes.append(&mut wrong);
    }

    /// What changes in an arm that has these settings afterwards, which become the earlier ones.
    fn earlier(&mut self, kind: &Kind, arm: &str, at: u64, settings: &mut Values) -> Vec<Earlier> {
        let own = self.arms.iter().find(|(name, ..)| name == arm).map(|(.., table)| table);
        let (mut earlier, mut wrong, after) = (Vec::new(), Vec::new(), settings.clone());
        for (field, later) in after.iter().filter(|(field, _)| refusal(kind, field).is_none()) {
            let Some(raw) = own.and_then(|own| own.get(field.name)).or_else(|| self.settings.get(field.name)) else {
                continue;
            };
            match read(field, raw) {
                Ok(value) if value != *later => {
                    *settings = settings.clone().replaced(field.name, value.clone());
                    earlier.push((field.name, value));
                }
                Ok(_) => {}
                Err(sentence) => wrong.push((raw.place.clone(), sentence)),
            }
        }
        let place = || WrittenAt::Line(self.line);
        if wrong.is_empty() && !earlier.is_empty() {
            let conflicts = (kind.schema.check)(settings).into_iter().map(|(_, sentence)| sentence);
            wrong.extend(conflicts.map(|sentence| (place(), format!("arm {arm:?} before round {at}: {sentence}"))));
            if wrong.is_empty() && at >= (kind.rounds)(settings) {
                let rounds = (kind.rounds)(settings);
                let sentence =
                    format!("at is {at}, but a replica of arm {arm:?} has only {rounds} rounds: nothing would follow");
                wrong.push((place(), sentence));
            }
        }
        self.mistakes.append(&mut wrong);
        earlier
    }
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

/// The forks of a run with these arms. Arms that are left out may be named.
///
/// # Errors
/// All mistakes.
pub(super) fn resolve(
    mut tables: Vec<ForkTable>,
    kind: &Kind,
    arms: &[Arm],
    left_out: &[&str],
) -> Result<Vec<Fork>, Vec<Mistake>> {
    let (mut forks, mut next): (Vec<Fork>, Option<u64>) = (Vec::new(), None);
    if let Some(one_more) = tables.get_mut(FORKS_MAX) {
        one_more.wrong(WrittenAt::Line(one_more.line), format!("more than {FORKS_MAX} tables [[fork]]"));
    }
    let mut settings: Vec<Values> = arms.iter().map(|arm| arm.settings.clone()).collect();
    for table in tables.iter_mut().rev() {
        table.check_names(kind, arms, left_out);
        let Some(at) = table.at() else { continue };
        if next.is_some_and(|next| at >= next) {
            table.wrong(
                WrittenAt::Line(table.line),
                format!("at is {at}: the tables [[fork]] must be in the order of rounds"),
            );
        }
        next = Some(at);
        let arms = arms
            .iter()
            .zip(&mut settings)
            .map(|(arm, settings)| (arm.name.clone(), table.earlier(kind, &arm.name, at, settings)));
        let arms: Vec<(String, Vec<Earlier>)> = arms.filter(|(_, earlier)| !earlier.is_empty()).collect();
        if !arms.is_empty() {
            forks.insert(0, Fork { at, arms });
        }
    }
    let mistakes: Vec<Mistake> = tables.into_iter().flat_map(|table| table.mistakes).collect();
    if mistakes.is_empty() { Ok(forks) } else { Err(mistakes) }
}
