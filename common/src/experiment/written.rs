//! Values as they are written in an experiment file or typed as an override, with their places. What they mean is decided
//! elsewhere.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use crate::{
    settings::{Field, Shape, Value, integer_text, plain},
    text::hint,
};

/// Where a value is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WrittenAt {
    /// From 1.
    Line(usize),
    /// The key that was typed.
    Override(String),
}

/// A value as it is written: its text, or the type that it has instead.
#[derive(Clone, Debug)]
pub(super) struct Raw {
    pub(super) text: Result<String, &'static str>,
    pub(super) place: WrittenAt,
}

/// Settings by name.
pub(super) type Table = BTreeMap<String, Raw>;

/// The offsets at which lines begin.
pub(super) struct Lines(Vec<usize>);

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        Self(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(offset, _)| offset + 1).collect())
    }

    /// The line of an offset, from 1.
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

/// A value in this line.
pub(super) fn raw(value: &DeValue<'_>, line: usize) -> Raw {
    let text = match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(integer) => integer_text(integer),
        DeValue::Float(float) => Ok(float.as_str().into()),
        DeValue::Array(list) if list.iter().any(|entry| entry.get_ref().is_table()) => plain(value),
        DeValue::Array(list) => {
            list.iter().map(|value| number(value.get_ref())).collect::<Result<Vec<_>, _>>().map(|it| it.join(", "))
        }
        other => Err(other.type_str()),
    };
    Raw { text, place: WrittenAt::Line(line) }
}

/// A number of a list, as it is written.
fn number(value: &DeValue<'_>) -> Result<String, &'static str> {
    match value {
        DeValue::Integer(integer) => integer_text(integer),
        DeValue::Float(float) => Ok(float.as_str().into()),
        _ => Err("array"),
    }
}

/// The value of a field, or a sentence if it is none.
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
