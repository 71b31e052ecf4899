//! Settings as data: one table per experiment drives parsing, checking, the commented file of `evoxo new` and the hash.

use crate::ratio::Ratio;

/// What an experiment can be told.
#[derive(Debug)]
pub struct Schema {
    /// What the experiment is, in a sentence or two.
    pub summary: &'static str,
    /// Its settings, in the order in which they are shown.
    pub fields: &'static [Field],
    /// What single fields cannot say: the name of the field to change and a sentence, for each problem.
    pub check: fn(&Values) -> Vec<(&'static str, String)>,
}

/// One setting.
#[derive(Debug)]
pub struct Field {
    /// As in the file.
    pub name: &'static str,
    /// What it does, with its unit and where its default comes from.
    pub doc: &'static str,
    /// What it may be.
    pub shape: Shape,
    /// As it would be written in a file, without quotes.
    pub default: &'static str,
    /// Whether results depend on it.
    pub scope: Scope,
}

/// What a setting may be.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// A whole number from `min` to `max`.
    Integer {
        /// The least.
        min: u64,
        /// The greatest.
        max: u64,
    },
    /// A whole number from `min` to `max`, of which either may be negative; a [`Value::Decimal`].
    Signed {
        /// The least.
        min: i64,
        /// The greatest.
        max: i64,
    },
    /// An exact decimal from `min` to `max` with at most six digits behind the point.
    Decimal {
        /// The least.
        min: i64,
        /// The greatest.
        max: i64,
    },
    /// One of some words, each with what it means.
    Choice(&'static [(&'static str, &'static str)]),
}

/// Whether results depend on a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// They do: it is part of the configuration's hash.
    What,
    /// They do not: it only says how the work is cut up.
    How,
}

/// A setting's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Of [`Shape::Integer`].
    Integer(u64),
    /// Of [`Shape::Decimal`] and [`Shape::Signed`], exactly.
    Decimal(Ratio),
    /// Of [`Shape::Choice`].
    Choice(&'static str),
}

/// A value for every field of a schema.
#[derive(Clone, Debug)]
pub struct Values {
    schema: &'static Schema,
    values: Vec<Value>,
}

impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.schema, other.schema) && self.values == other.values
    }
}

impl Eq for Values {}

impl Values {
    pub(super) fn new(schema: &'static Schema, values: Vec<Value>) -> Self {
        assert_eq!(schema.fields.len(), values.len(), "every field has a value");
        Self { schema, values }
    }

    /// Every field with its value, in the schema's order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Field, &Value)> {
        self.schema.fields.iter().zip(&self.values)
    }

    fn get(&self, name: &str) -> &Value {
        let found = self.iter().find(|(field, _)| field.name == name);
        found.map(|(_, value)| value).unwrap_or_else(|| panic!("no setting is called {name}"))
    }

    /// The value of a whole number.
    ///
    /// # Panics
    /// If the schema has no such field.
    #[must_use]
    pub fn integer(&self, name: &str) -> u64 {
        match self.get(name) {
            Value::Integer(value) => *value,
            other => panic!("setting {name} is not a whole number but {other:?}"),
        }
    }

    /// The value of an exact decimal.
    ///
    /// # Panics
    /// If the schema has no such field.
    #[must_use]
    pub fn decimal(&self, name: &str) -> Ratio {
        match self.get(name) {
            Value::Decimal(value) => *value,
            other => panic!("setting {name} is not a decimal but {other:?}"),
        }
    }

    /// The value of a choice.
    ///
    /// # Panics
    /// If the schema has no such field.
    #[must_use]
    pub fn choice(&self, name: &str) -> &'static str {
        match self.get(name) {
            Value::Choice(value) => value,
            other => panic!("setting {name} is not a choice but {other:?}"),
        }
    }
}

impl Shape {
    /// Reads a value from its text.
    ///
    /// # Errors
    /// What is allowed, as the end of a sentence "... must be".
    pub fn read(&self, text: &str) -> Result<Value, String> {
        let value = match self {
            Self::Integer { min, max } => {
                text.parse().ok().filter(|value| (*min..=*max).contains(value)).map(Value::Integer)
            }
            Self::Signed { min, max } => read_decimal(text)
                .filter(|value| value.denominator() == 1 && in_range(*value, *min, *max))
                .map(Value::Decimal),
            Self::Decimal { min, max } => {
                read_decimal(text).filter(|value| in_range(*value, *min, *max)).map(Value::Decimal)
            }
            Self::Choice(choices) => {
                choices.iter().find(|(name, _)| *name == text).map(|(name, _)| Value::Choice(name))
            }
        };
        value.ok_or_else(|| self.allowed())
    }

    /// What is allowed, as the end of a sentence "... must be".
    pub(super) fn allowed(&self) -> String {
        match self {
            Self::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Self::Signed { min, max } => format!("a whole number from {min} to {max}"),
            Self::Decimal { min, max } => {
                format!("a decimal from {min} to {max} with at most {DECIMALS_MAX} digits behind the point")
            }
            Self::Choice(choices) => {
                let names: Vec<String> = choices.iter().map(|(name, _)| format!("{name:?}")).collect();
                format!("one of {}", names.join(", "))
            }
        }
    }
}

const DECIMALS_MAX: usize = 6;

/// "-6.5" exactly; no exponents.
fn read_decimal(text: &str) -> Option<Ratio> {
    if let Some(positive) = text.strip_prefix('-') {
        return read_decimal(positive).filter(|_| !positive.starts_with('-')).map(|value| Ratio::ZERO - value);
    }
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(decimals) || whole.len() > 12 || decimals.len() > DECIMALS_MAX {
        return None;
    }
    let numerator = format!("{whole}{decimals}").parse().ok()?;
    Some(Ratio::new(numerator, 10_i128.pow(decimals.len() as u32)))
}

fn in_range(value: Ratio, min: i64, max: i64) -> bool {
    let (numerator, denominator) = (i128::from(value.numerator()), i128::from(value.denominator()));
    i128::from(min) * denominator <= numerator && numerator <= i128::from(max) * denominator
}

/// A decimal as it would be written in a file.
pub(super) fn write_decimal(value: Ratio) -> String {
    let denominator = i128::from(value.denominator());
    let numerator = i128::from(value.numerator());
    let sign = if numerator < 0 { "-" } else { "" };
    let (whole, rest) = (numerator.abs() / denominator, numerator.abs() % denominator);
    let decimals = format!("{:0width$}", rest * 10_i128.pow(DECIMALS_MAX as u32) / denominator, width = DECIMALS_MAX);
    let decimals = decimals.trim_end_matches('0');
    if decimals.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{decimals}") }
}
