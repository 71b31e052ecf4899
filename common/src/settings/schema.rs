//! Settings as data: fields with their shapes, values, and how both are read and written.

use std::borrow::Cow;

use super::list;
use crate::{
    ratio::Ratio,
    text::{hint, quoted},
};

/// The settings of a kind of experiment.
#[derive(Debug)]
pub struct Schema {
    /// A description of the experiment in a sentence or two.
    pub summary: &'static str,
    /// The settings; see [`Schema::fields`].
    pub fields: fn() -> &'static [Field],
    /// The settings that few people change: a short file leaves them out where they have their defaults.
    pub rare: &'static [&'static str],
    /// The setting that chooses which settings of an included schema apply, if this schema includes another one.
    pub chooser: Option<&'static str>,
    /// Checks that involve several fields. Each problem is the name of the field to change, and a sentence.
    pub check: fn(&Values) -> Vec<(&'static str, String)>,
    /// Settings that are allowed but do not do what a person would expect: a sentence for each.
    pub notes: fn(&Values) -> Vec<String>,
    /// Values that follow from other settings where a file leaves them open; see [`Values::followed`].
    pub follows: fn(&Values) -> Vec<Follows>,
}

/// A value that follows from other settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Follows {
    /// The name of the setting.
    pub setting: &'static str,
    /// The value, written as in a file but without quotes.
    pub value: &'static str,
    /// Why the setting has this value, as the end of a sentence that begins with "because".
    pub why: String,
}

/// The word in a file that leaves open a setting whose value can follow from others, if it is one of the setting's choices: as if
/// the file did not have the setting.
pub const OPEN: &str = "auto";

/// One setting.
#[derive(Clone, Debug)]
pub struct Field {
    /// The name in experiment files.
    pub name: &'static str,
    /// What the setting does, with its unit and the source of its default.
    pub doc: &'static str,
    /// The values that it may have.
    pub shape: Shape,
    /// The default, written as in a file but without quotes or brackets.
    pub default: &'static str,
    /// Whether results depend on the setting.
    pub scope: Scope,
    /// The conditions under which the setting has an effect. If empty, it always has one.
    pub applies: Vec<Condition>,
}

/// A condition on another setting, without which a setting has no effect.
#[derive(Clone, Debug)]
pub struct Condition {
    /// The other setting.
    pub setting: &'static str,
    /// Whether the other setting must have one of the values (true) or none of them (false).
    pub is: bool,
    /// The values, written as in a file but without quotes.
    pub values: Vec<&'static str>,
}

/// The values that a setting may have.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// A whole number from `min` to `max`.
    Integer {
        /// The least.
        min: u64,
        /// The greatest.
        max: u64,
    },
    /// An integer from `min` to `max`, either of which may be negative; its value is a [`Value::Decimal`].
    Signed {
        /// The least.
        min: i64,
        /// The greatest.
        max: i64,
    },
    /// An exact decimal from `min` to `max`.
    Decimal {
        /// The least.
        min: i64,
        /// The greatest.
        max: i64,
        /// The most digits after the point.
        places: usize,
    },
    /// One of several words, each with its meaning.
    Choice(&'static [(&'static str, &'static str)]),
    /// Printable ASCII.
    Text {
        /// The longest, in bytes.
        bytes_max: usize,
    },
    /// A list of exact decimals, each from `min` to `max`.
    Numbers {
        /// The most numbers.
        count_max: usize,
        /// The least.
        min: i64,
        /// The greatest.
        max: i64,
        /// The most digits after the point of each.
        places: usize,
    },
    /// A list of tables, each with these settings: in a file, `[[name]]` at the top or a list on one line.
    List {
        /// The settings of an entry, none of which is a list of tables.
        schema: &'static Schema,
        /// The most entries.
        count_max: usize,
    },
}

/// Whether results depend on a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Results depend on it, and it is part of the configuration's hash.
    Semantic,
    /// Results depend on it, but a greater value only makes a run longer: everything up to then stays the same, so a run can
    /// be continued with a greater value. Must be a whole number.
    Length,
    /// Results depend on it, but the setting was added after runs whose names must stay the same. At its default, everything
    /// is as before the setting existed, and it is left out of the hash and of tasks.
    Addition,
    /// The results of an arm do not depend on it: it decides how the work is divided, or how a file is completed.
    Execution,
}

impl Field {
    /// Parses a value of the field.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the text.
    pub fn read(&self, text: &str) -> Result<Value, String> {
        self.shape.read(text).map_err(|why| match self.shape {
            Shape::List { .. } => format!("{}{why}", self.name),
            _ => format!("{} is {}, but must be {why}", self.name, shown(text)),
        })
    }

    /// The default.
    fn usual(&self) -> Value {
        self.shape.read(self.default).unwrap_or_else(|why| panic!("{}: {why}", self.name))
    }

    /// Whether this value of the field is part of the configuration's hash, and of tasks that carry settings.
    #[must_use]
    pub fn counts(&self, value: &Value) -> bool {
        match self.scope {
            Scope::Semantic | Scope::Length => true,
            Scope::Addition => self.shape.read(self.default).as_ref() != Ok(value),
            Scope::Execution => false,
        }
    }
}

/// A setting's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// For [`Shape::Integer`].
    Integer(u64),
    /// For [`Shape::Decimal`] and [`Shape::Signed`], exactly.
    Decimal(Ratio),
    /// For [`Shape::Choice`].
    Choice(&'static str),
    /// For [`Shape::Text`].
    Text(String),
    /// For [`Shape::Numbers`].
    Numbers(Vec<Ratio>),
    /// For [`Shape::List`].
    List(Vec<Values>),
}

impl std::fmt::Display for Value {
    /// Writes the value as in an experiment file.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer(value) => write!(f, "{value}"),
            Self::Decimal(value) => f.write_str(&write_decimal(*value)),
            Self::Choice(value) => f.write_str(&toml_text(value)),
            Self::Text(value) => f.write_str(&toml_text(value)),
            Self::Numbers(values) => {
                let values: Vec<String> = values.iter().map(|value| write_decimal(*value)).collect();
                write!(f, "[{}]", values.join(", "))
            }
            Self::List(entries) => f.write_str(&list::write(entries)),
        }
    }
}

impl Value {
    /// The value as in an experiment file, but without the quotes of a text or a choice.
    #[must_use]
    pub fn bare(&self) -> String {
        match self {
            Self::Choice(word) => (*word).to_owned(),
            Self::Text(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

/// The text of a TOML string that [`toml_text`] has written; anything else is returned as it is.
fn bare_text(written: &str) -> Cow<'_, str> {
    let inner = written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(written);
    // A list has the texts of its entries as they were written.
    if inner.len() == written.len() || !inner.contains('\\') {
        return inner.into();
    }
    let mut text = String::with_capacity(inner.len());
    let mut escaped = false;
    for letter in inner.chars() {
        escaped = letter == '\\' && !escaped;
        if !escaped {
            text.push(letter);
        }
    }
    text.into()
}

/// A text as a TOML string.
pub(crate) fn toml_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
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

impl Condition {
    /// Whether the condition holds if the other setting has this value.
    fn holds(&self, value: &Value) -> bool {
        self.values.contains(&value.bare().as_str()) == self.is
    }
}

impl Schema {
    /// The settings, in the order in which they are shown.
    #[must_use]
    pub fn fields(&self) -> &'static [Field] {
        (self.fields)()
    }

    /// All fields at their defaults.
    ///
    /// # Panics
    /// If a default is not a valid value of its field.
    #[must_use]
    pub fn defaults(&'static self) -> Values {
        Values::new(self, self.fields().iter().map(Field::usual).collect())
    }
}

impl Schema {
    /// The most equals signs and opening brackets in the written settings of an arm. In a text, at most two are counted.
    #[must_use]
    pub fn keys_max(&self) -> usize {
        let of = |field: &Field| match field.shape {
            Shape::Text { .. } => 3,
            Shape::Numbers { .. } => 2,
            Shape::List { schema, count_max } => 2 + count_max * schema.keys_max(),
            _ => 1,
        };
        1 + self.fields().iter().map(of).sum::<usize>()
    }

    /// Reads a text with one `name = value` per line, as [`Values::to_text`] writes it. Missing settings have their defaults.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the text.
    pub fn read(&'static self, written: &str) -> Result<Values, String> {
        let fields = self.fields();
        let mut given: Vec<Option<Value>> = vec![None; fields.len()];
        let mut next = 0;
        for line in written.lines() {
            let (name, value) = line.split_once(" = ").ok_or_else(|| format!("{} is not a setting", quoted(line)))?;
            // Usually the lines are in the order of the fields, and every task reads them.
            let place = (next..fields.len()).chain(0..next).find(|place| fields[*place].name == name);
            let place = place.ok_or_else(|| format!("there is no setting {}", quoted(name)))?;
            given[place] = Some(fields[place].read(&bare_text(value))?);
            next = place + 1;
        }
        let or_default = |(value, field): (Option<Value>, &Field)| value.unwrap_or_else(|| field.usual());
        let values = Values::new(self, given.into_iter().zip(fields).map(or_default).collect());
        match (self.check)(&values).into_iter().next() {
            Some((_, problem)) => Err(problem),
            None => Ok(values),
        }
    }
}

impl Values {
    pub(crate) fn new(schema: &'static Schema, values: Vec<Value>) -> Self {
        assert_eq!(schema.fields().len(), values.len(), "every field has a value");
        Self { schema, values }
    }

    /// Every field with its value, in the schema's order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Field, &Value)> {
        self.schema.fields().iter().zip(&self.values)
    }

    /// The reason why the setting with this name has no effect: the value of another setting, as written in a file. `None` if
    /// the setting has an effect.
    ///
    /// # Panics
    /// If a condition names a setting that does not exist.
    #[must_use]
    pub fn idle(&self, name: &str) -> Option<String> {
        let of = |name: &str| self.iter().find(|(field, _)| field.name == name);
        let (field, _) = of(name)?;
        field.applies.iter().find_map(|condition| {
            // If the other setting has no effect itself, the reason for that is the answer.
            self.idle(condition.setting).or_else(|| {
                let (_, value) = of(condition.setting).unwrap_or_else(|| panic!("no setting {}", condition.setting));
                (!condition.holds(value)).then(|| format!("{} = {value}", condition.setting))
            })
        })
    }

    /// Whether a setting belongs to the present value of the schema's [chooser](Schema::chooser), or does not depend on the
    /// chooser.
    #[must_use]
    pub fn is_chosen(&self, field: &Field) -> bool {
        let mut choices = field.applies.iter().filter(|condition| Some(condition.setting) == self.schema.chooser);
        choices.all(|condition| self.named(&[condition.setting]).all(|value| condition.holds(value)))
    }

    /// The settings that results depend on, one per line, for tasks. [`Schema::read`] is the inverse.
    #[must_use]
    pub fn to_text(&self) -> String {
        let counting = self.iter().filter(|(field, value)| field.counts(value));
        counting.map(|(field, value)| format!("{} = {value}\n", field.name)).collect()
    }

    /// The values of these settings, which must be named in the schema's order: the input of the struct that
    /// [`settings!`](crate::settings!) declares.
    ///
    /// # Panics
    /// If the schema does not have these settings in this order.
    pub fn named<'a>(&'a self, names: &'a [&'static str]) -> impl Iterator<Item = &'a Value> {
        let mut rest = self.iter();
        names.iter().map(move |name| match rest.find(|(field, _)| field.name == *name) {
            Some((_, value)) => value,
            None => panic!("values of another kind of experiment: there is no setting {name}, or in another order"),
        })
    }

    /// The values of the settings of another schema. This schema must have all of them.
    ///
    /// # Panics
    /// If this schema lacks one of them.
    #[must_use]
    pub fn part(&self, schema: &'static Schema) -> Self {
        let names: Vec<&'static str> = schema.fields().iter().map(|field| field.name).collect();
        Self::new(schema, self.named(&names).cloned().collect())
    }

    /// The same values, with one setting changed to this value, which its field must have read.
    ///
    /// # Panics
    /// If there is no such setting.
    pub(crate) fn replaced(mut self, name: &str, value: Value) -> Self {
        let place = self.schema.fields().iter().position(|field| field.name == name);
        self.values[place.unwrap_or_else(|| panic!("no setting {name}"))] = value;
        self
    }

    /// The value of a setting of this schema.
    pub(crate) fn value(&self, name: &str) -> &Value {
        let found = self.iter().find(|(field, _)| field.name == name);
        found.map_or_else(|| panic!("there is no setting {name}"), |(_, value)| value)
    }

    /// The same values, with those that follow from others, and what follows: of the settings for which `is_open` holds.
    #[must_use]
    pub fn followed(&self, is_open: impl Fn(&str) -> bool) -> (Self, Vec<Follows>) {
        let follows: Vec<Follows> =
            (self.schema.follows)(self).into_iter().filter(|follows| is_open(follows.setting)).collect();
        (follows.iter().fold(self.clone(), |values, follows| values.with(follows.setting, follows.value)), follows)
    }

    /// The same values, with one setting changed to this text.
    ///
    /// # Panics
    /// If there is no such setting, or if the text is not a valid value.
    #[must_use]
    pub fn with(&self, name: &str, text: &str) -> Self {
        self.set(name, text).unwrap_or_else(|why| panic!("{why}"))
    }

    /// The same values, with one setting changed to this text.
    ///
    /// # Errors
    /// A sentence if there is no such setting, or if the text is not a valid value.
    pub fn set(&self, name: &str, text: &str) -> Result<Self, String> {
        let names = || self.schema.fields().iter().map(|field| field.name);
        let unknown = || format!("unknown setting {}{}", quoted(name), hint(name, names()));
        let place = names().position(|other| other == name).ok_or_else(unknown)?;
        let mut values = self.values.clone();
        values[place] = self.schema.fields()[place].read(text)?;
        Ok(Self::new(self.schema, values))
    }
}

impl Shape {
    /// Parses a value from its text.
    ///
    /// # Errors
    /// The allowed values, as the end of a sentence "... must be"; for a list of tables, everything that follows the name.
    pub fn read(&self, text: &str) -> Result<Value, String> {
        let value = match self {
            Self::List { schema, count_max } => return list::read(schema, *count_max, text).map(Value::List),
            Self::Integer { min, max } => {
                text.parse().ok().filter(|value| (*min..=*max).contains(value)).map(Value::Integer)
            }
            Self::Signed { min, max } => read_decimal(text, PLACES_EXACT)
                .filter(|value| value.denominator() == 1 && in_range(*value, *min, *max))
                .map(Value::Decimal),
            Self::Decimal { min, max, places } => {
                read_decimal(text, *places).filter(|value| in_range(*value, *min, *max)).map(Value::Decimal)
            }
            Self::Choice(choices) => {
                choices.iter().find(|(name, _)| *name == text).map(|(name, _)| Value::Choice(name))
            }
            Self::Text { bytes_max } => {
                let good = text.len() <= *bytes_max && text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
                good.then(|| Value::Text(text.into()))
            }
            Self::Numbers { count_max, min, max, places } => {
                let number =
                    |text: &str| read_decimal(text.trim(), *places).filter(|value| in_range(*value, *min, *max));
                let numbers: Option<Vec<Ratio>> = match text.trim_matches(['[', ']', ' ']) {
                    "" => Some(Vec::new()),
                    list => list.split(',').map(number).collect(),
                };
                numbers.filter(|numbers| numbers.len() <= *count_max).map(Value::Numbers)
            }
        };
        value.ok_or_else(|| self.allowed())
    }

    /// The allowed values, as the end of a sentence "... must be".
    pub(crate) fn allowed(&self) -> String {
        match self {
            Self::Integer { min, max } => format!("a whole number from {min} to {max}"),
            Self::Signed { min, max } => format!("a whole number from {min} to {max}"),
            Self::Decimal { min, max, places } => {
                format!("a decimal from {min} to {max} with at most {places} digits after the point")
            }
            Self::Choice(choices) => {
                let names: Vec<String> = choices.iter().map(|(name, _)| format!("{name:?}")).collect();
                format!("one of {}", names.join(", "))
            }
            Self::Text { bytes_max } => format!("a text of at most {bytes_max} printable ASCII characters"),
            Self::Numbers { count_max, min, max, places } => format!(
                "a list of at most {count_max} decimals from {min} to {max} with at most {places} digits after the point"
            ),
            Self::List { count_max, .. } => list::allowed(*count_max),
        }
    }
}

/// The most digits after the point of a decimal that is computed exactly.
pub const PLACES_EXACT: usize = 6;
/// The most digits after the point of a decimal that becomes a float. All 17 digits of a float fit, unless it is less than
/// about 0.01.
pub const PLACES_FLOAT: usize = 18;
/// The most digits before the point: those of a million million, which no setting exceeds.
const DIGITS_MAX: usize = 13;

/// At most this many characters of a wrong value are shown in a message.
const SHOWN_MAX: usize = 60;

/// A written value, for a one-line message.
fn shown(text: &str) -> String {
    let all = text.escape_debug();
    match all.clone().nth(SHOWN_MAX) {
        Some(_) => all.take(SHOWN_MAX).chain("...".chars()).collect(),
        None => all.collect(),
    }
}

/// Parses "-6.5" or "-65e-1" exactly. Trailing zeros do not count as digits after the point.
fn read_decimal(text: &str, places: usize) -> Option<Ratio> {
    if let Some(positive) = text.strip_prefix('-') {
        let plain = !positive.starts_with(['-', '+']);
        return read_decimal(positive, places).filter(|_| plain).map(|value| Ratio::ZERO - value);
    }
    let text = text.strip_prefix('+').unwrap_or(text);
    let (whole, decimals) = match text.split_once(['e', 'E']) {
        Some((digits, exponent)) => shifted(digits, exponent.parse().ok()?)?,
        None => {
            let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
            (whole.to_owned(), decimals.to_owned())
        }
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(&whole) || !digits(&decimals) || whole.len() > DIGITS_MAX {
        return None;
    }
    let decimals = decimals.trim_end_matches('0');
    let power = u32::try_from(decimals.len()).ok().filter(|_| decimals.len() <= places)?;
    // At most 31 digits.
    let numerator: i128 = format!("{whole}{decimals}").parse().ok()?;
    Ratio::checked(numerator, 10_i128.pow(power))
}

/// A number without an exponent, times this power of ten: its digits before and after the point.
fn shifted(digits: &str, power: i32) -> Option<(String, String)> {
    let most = DIGITS_MAX + PLACES_FLOAT;
    if power.unsigned_abs() as usize > most || digits.len() > most + 1 {
        return None;
    }
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    let zeros = "0".repeat(most);
    let all = format!("{zeros}{whole}{decimals}{zeros}");
    let point = (zeros.len() + whole.len()).checked_add_signed(power as isize)?;
    let (before, behind) = all.split_at_checked(point)?;
    let (before, behind) = (before.trim_start_matches('0'), behind.trim_end_matches('0'));
    let digit = |text: &str| if text.is_empty() { "0".to_owned() } else { text.to_owned() };
    (!whole.is_empty()).then(|| (digit(before), digit(behind)))
}

fn in_range(value: Ratio, min: i64, max: i64) -> bool {
    let (numerator, denominator) = (i128::from(value.numerator()), i128::from(value.denominator()));
    i128::from(min) * denominator <= numerator && numerator <= i128::from(max) * denominator
}

/// A decimal, written as in a file.
pub(crate) fn write_decimal(value: Ratio) -> String {
    let denominator = i128::from(value.denominator());
    let numerator = i128::from(value.numerator());
    let sign = if numerator < 0 { "-" } else { "" };
    let (whole, rest) = (numerator.abs() / denominator, numerator.abs() % denominator);
    let decimals = format!("{:0PLACES_FLOAT$}", rest * 10_i128.pow(PLACES_FLOAT as u32) / denominator);
    let decimals = decimals.trim_end_matches('0');
    if decimals.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{decimals}") }
}
