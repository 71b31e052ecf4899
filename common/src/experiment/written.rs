//! Values as they are written in an experiment file or typed as an override, with their places. Other modules decide what
//! they mean.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use super::Column;
use crate::{
    settings::{Field, Shape, Value, setting_text},
    text::{hint, quoted},
};

/// Where a value is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WrittenAt {
    /// The line in the file, from 1.
    Line(usize),
    /// The key of the override that was typed.
    Override(String),
}

/// A value as written: its text or, if the value has an unexpected type, that type.
#[derive(Clone, Debug)]
pub(super) struct Raw {
    pub(super) text: Result<String, &'static str>,
    pub(super) place: WrittenAt,
}

/// Settings by name.
pub(super) type Table = BTreeMap<String, Raw>;

/// A sentence with its place.
pub(super) type Mistake = (WrittenAt, String);

/// The offsets at which lines begin.
pub(super) struct Lines(Vec<usize>);

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        Self(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(offset, _)| offset + 1).collect())
    }

    /// The line that contains an offset, from 1.
    pub(super) fn at(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset) + 1
    }

    /// The entries of a table.
    pub(super) fn table(&self, table: &DeTable<'_>) -> Table {
        let entry = |(key, value): (&toml::Spanned<toml::de::DeString<'_>>, &toml::Spanned<DeValue<'_>>)| {
            (key.get_ref().to_string(), raw(value.get_ref(), self.at(key.span().start)))
        };
        table.iter().map(entry).collect()
    }
}

/// The value, with its line.
pub(super) fn raw(value: &DeValue<'_>, line: usize) -> Raw {
    Raw { text: setting_text(value), place: WrittenAt::Line(line) }
}

/// The value of a field, or a sentence that says why it is not valid.
pub(super) fn read(field: &Field, raw: &Raw) -> Result<Value, String> {
    let text = raw.text.as_ref().map_err(|what| {
        let allowed = field.shape.allowed();
        match *what {
            "integer" => format!("{} must be {allowed}, written with decimal digits", field.name),
            what => format!("{} must be {allowed}, not of type {what}", field.name),
        }
    })?;
    field.read(text).map_err(|sentence| match field.shape {
        Shape::Choice(choices) if text.len() > 1 => sentence + &hint(text, choices.iter().map(|(name, _)| *name)),
        _ => sentence,
    })
}

/// A sentence for each key of a table that is not one of these keys.
pub(super) fn unknown_keys(table: &Table, name: &str, keys: &'static [&str]) -> Vec<Mistake> {
    let unknown = table.iter().filter(|(key, _)| !keys.contains(&key.as_str()));
    let sentence = |key: &str| format!("unknown key {} in {name}{}", quoted(key), hint(key, keys.iter().copied()));
    unknown.map(|(key, raw)| (raw.place.clone(), sentence(key))).collect()
}

/// The index of the column that a key names or, without the key, of the usual column.
pub(super) fn column(
    table: &Table,
    key: &str,
    columns: &'static [Column],
    usual: usize,
    mistakes: &mut Vec<Mistake>,
) -> Option<usize> {
    let Some(raw) = table.get(key) else { return Some(usual) };
    let names = || columns.iter().map(|column| column.name);
    let text = raw.text.clone().unwrap_or_default();
    let found = names().position(|name| name == text);
    if found.is_none() {
        let all = names().collect::<Vec<_>>().join(", ");
        let hint = hint(&text, names());
        mistakes.push((raw.place.clone(), format!("{key} must be a column of the history, one of {all}{hint}")));
    }
    found
}

/// The meaning of a word that is one of two.
pub(super) fn word<T: Copy>(
    table: &Table,
    key: &str,
    words: [(&'static str, T); 2],
    usual: T,
    mistakes: &mut Vec<Mistake>,
) -> Option<T> {
    let Some(raw) = table.get(key) else { return Some(usual) };
    let found = words.iter().find(|(word, _)| raw.text.as_deref() == Ok(*word)).map(|(_, value)| *value);
    if found.is_none() {
        let sentence = format!("{key} must be one of {:?}, {:?}", words[0].0, words[1].0);
        mistakes.push((raw.place.clone(), sentence));
    }
    found
}
