//! The genes of a candidate as a problem gets them. A search moves in numbers that suit it: in logarithms of values whose
//! order of magnitude is unknown, in numbers of steps, in numbers of words. Problems, cards and tables have the values.

use evoxo_common::{
    math::{exp, ln},
    ratio::Ratio,
};
use serde_json::{Value, json};

use super::genome::{Genes, Part, Type};

/// What the genes of a part stand for.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Notation {
    /// For themselves.
    #[default]
    Plain,
    /// Symbols for the characters of an alphabet, as one text.
    Letters(String),
    /// Symbols for words.
    Words(Vec<String>),
    /// Real numbers for the values of which they are the natural logarithms.
    Logarithm {
        /// The least value.
        low: f64,
        /// The greatest value.
        high: f64,
        /// Whether the values are whole numbers.
        whole: bool,
    },
    /// Whole numbers for `low` and this many steps.
    Steps {
        /// The value of gene 0.
        low: Ratio,
        /// The distance between two values.
        step: Ratio,
        /// Whether the values are whole numbers.
        whole: bool,
    },
}

/// The values of a part.
enum Values<'a> {
    Reals(Vec<f64>),
    Wholes(Vec<i64>),
    Bits(&'a [bool]),
    Order(&'a [u32]),
    Text(String),
    /// The words, and the number of each gene's word.
    Words(&'a [String], &'a [u32]),
}

impl Notation {
    fn values<'a>(&'a self, genes: &'a Genes) -> Values<'a> {
        match (self, genes) {
            (Self::Logarithm { low, high, whole: true }, Genes::Real(genes)) => {
                Values::Wholes(genes.iter().map(|gene| exp(*gene).round().clamp(*low, *high) as i64).collect())
            }
            (Self::Logarithm { low, high, .. }, Genes::Real(genes)) => {
                Values::Reals(genes.iter().map(|gene| value(*gene, *low, *high)).collect())
            }
            (Self::Steps { low, step, whole: true }, Genes::Integer(genes)) => {
                let (low, step) = (low.numerator(), step.numerator());
                Values::Wholes(genes.iter().map(|gene| low + gene * step).collect())
            }
            (Self::Steps { low, step, .. }, Genes::Integer(genes)) => {
                Values::Reals(genes.iter().map(|gene| after(*low, *step, *gene)).collect())
            }
            (Self::Words(words), Genes::Symbols(genes)) => Values::Words(words, genes),
            (Self::Letters(alphabet), Genes::Symbols(genes)) => {
                let letter = |gene: &u32| alphabet.as_bytes().get(*gene as usize).map_or('?', |byte| char::from(*byte));
                Values::Text(genes.iter().map(letter).collect())
            }
            (_, Genes::Real(genes)) => Values::Reals(genes.clone()),
            (_, Genes::Integer(genes)) => Values::Wholes(genes.clone()),
            (_, Genes::Bits(genes)) => Values::Bits(genes),
            (_, Genes::Permutation(genes) | Genes::Symbols(genes)) => Values::Order(genes),
        }
    }

    /// The values for cards and programs.
    pub(super) fn json(&self, genes: &Genes) -> Value {
        match self.values(genes) {
            Values::Reals(values) => json!(values),
            Values::Wholes(values) => json!(values),
            Values::Bits(values) => values.iter().map(|bit| u8::from(*bit)).collect::<Vec<u8>>().into(),
            Values::Order(values) => json!(values),
            Values::Text(text) => text.into(),
            Values::Words(words, genes) => genes.iter().map(|gene| chosen(&words[*gene as usize])).collect(),
        }
    }

    /// A part as programs declare it, with its name.
    pub(super) fn declaration(&self, part: &Part) -> Value {
        let real = |low: f64, high: f64| json!({"type": "real", "low": low, "high": high});
        let integer = |low: i64, high: i64| json!({"type": "integer", "low": low, "high": high});
        let mut said = match (self, part.of) {
            (Self::Letters(alphabet), _) => json!({"type": "symbols", "alphabet": alphabet}),
            (Self::Words(words), _) => {
                let choices: Vec<Value> = words.iter().map(|word| chosen(word)).collect();
                json!({"type": "choice", "choices": choices})
            }
            (Self::Logarithm { low, high, whole }, _) => {
                let mut said = if *whole { integer(*low as i64, *high as i64) } else { real(*low, *high) };
                said["scale"] = "log".into();
                said
            }
            (Self::Steps { low, step, whole: true }, Type::Integer { high, .. }) => {
                let mut said = integer(low.numerator(), low.numerator() + high * step.numerator());
                said["step"] = step.numerator().into();
                said
            }
            (Self::Steps { low, step, .. }, Type::Integer { high, .. }) => {
                let mut said = real(low.to_f64(), after(*low, *step, high));
                said["step"] = step.to_f64().into();
                said
            }
            (_, Type::Real { low, high }) => real(low, high),
            (_, Type::Integer { low, high }) => integer(low, high),
            // The genes of such a part are numbers.
            (_, Type::Symbols { alphabet }) => integer(0, i64::from(alphabet) - 1),
            (_, of @ (Type::Bits | Type::Permutation)) => json!({"type": of.name()}),
        };
        said["name"] = part.name.as_str().into();
        said["length"] = part.length.into();
        said
    }

    /// The genes of a part with these values, as [`Self::json`] writes them. Lengths and bounds are not checked, except where
    /// values outside of the bounds have no genes.
    pub(super) fn read(&self, part: &Part, values: &Value) -> Result<Genes, String> {
        match (self, part.of) {
            (Self::Letters(alphabet), _) => {
                let text = values.as_str().ok_or("its genes are one text")?;
                let symbol = |letter: char| {
                    let found = alphabet.chars().position(|own| own == letter);
                    found.map(|place| place as u32).ok_or_else(|| format!("its alphabet has no {letter:?}"))
                };
                Ok(Genes::Symbols(text.chars().map(symbol).collect::<Result<_, String>>()?))
            }
            (Self::Words(words), _) => {
                let number = |value: &Value| {
                    let found = words.iter().position(|word| chosen(word) == *value || value.as_str() == Some(word));
                    found.map(|place| place as u32).ok_or_else(|| format!("{value} is none of its choices"))
                };
                Ok(Genes::Symbols(each(values, number)?))
            }
            (Self::Logarithm { low, high, whole }, _) => {
                let gene = |value: &Value| match number(value)? {
                    number if !(*low..=*high).contains(&number) => {
                        Err(format!("{number:?} must be from {low:?} to {high:?}"))
                    }
                    number if *whole && number.fract() != 0.0 => Err(format!("{number:?} is not whole")),
                    number => Ok(ln(number)),
                };
                Ok(Genes::Real(each(values, gene)?))
            }
            (Self::Steps { low, step, .. }, _) => {
                let gene = |value: &Value| {
                    let number = number(value)?;
                    let steps = ((number - low.to_f64()) / step.to_f64()).round() as i64;
                    let off = (after(*low, *step, steps) - number).abs();
                    // A step is a decimal number as a person writes it, which a float need not hit.
                    match off <= step.to_f64() * STEP_TOLERANCE {
                        true => Ok(steps),
                        false => Err(format!("{number:?} is between two steps")),
                    }
                };
                Ok(Genes::Integer(each(values, gene)?))
            }
            (Self::Plain, Type::Real { .. }) => Ok(Genes::Real(each(values, number)?)),
            (Self::Plain, Type::Integer { .. }) => Ok(Genes::Integer(each(values, whole)?)),
            (Self::Plain, Type::Bits) => {
                let bit = |value: &Value| match value.as_bool().map_or_else(|| whole(value), |bit| Ok(bit.into())) {
                    Ok(0) => Ok(false),
                    Ok(1) => Ok(true),
                    _ => Err(format!("{value} is neither 0 nor 1")),
                };
                Ok(Genes::Bits(each(values, bit)?))
            }
            (Self::Plain, of @ (Type::Permutation | Type::Symbols { .. })) => {
                let entry = |value: &Value| {
                    u32::try_from(whole(value)?).map_err(|_| format!("{value} must be 0 or more, and less than 2^32"))
                };
                let entries = each(values, entry)?;
                Ok(if of == Type::Permutation { Genes::Permutation(entries) } else { Genes::Symbols(entries) })
            }
        }
    }

    /// The values for a module, with numbers in little-endian order: a real or whole number has 8 bytes, an entry of a
    /// permutation and the number of a word 4, a bit and a character 1.
    pub(super) fn bytes(&self, genes: &Genes) -> Vec<u8> {
        match self.values(genes) {
            Values::Reals(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Values::Wholes(values) => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            Values::Bits(values) => values.iter().map(|bit| u8::from(*bit)).collect(),
            Values::Text(text) => text.into_bytes(),
            Values::Order(numbers) | Values::Words(_, numbers) => {
                numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
            }
        }
    }

    /// Whether all genes of a part are one text, so that they have one column in a table.
    pub(super) fn is_text(&self) -> bool {
        matches!(self, Self::Letters(_))
    }
}

/// How far a value may be from a step, as a share of the step.
const STEP_TOLERANCE: f64 = 1e-6;

/// Each gene of a list, or of a single value.
fn each<T>(values: &Value, gene: impl Fn(&Value) -> Result<T, String>) -> Result<Vec<T>, String> {
    match values {
        Value::Array(list) => {
            let numbered = |(index, one)| gene(one).map_err(|why| format!("gene {}: {why}", index + 1));
            list.iter().enumerate().map(numbered).collect()
        }
        one => Ok(vec![gene(one)?]),
    }
}

/// A number in JSON, or in a text, as cards have large ones.
fn number(value: &Value) -> Result<f64, String> {
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    number.filter(|number: &f64| number.is_finite()).ok_or_else(|| format!("{value} is no number"))
}

/// A whole number in JSON, which may be written as 3.0, or in a text.
fn whole(value: &Value) -> Result<i64, String> {
    let exact = value.as_i64().or_else(|| value.as_str()?.trim().parse().ok());
    let rounded = || value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 9e15).map(|it| it as i64);
    exact.or_else(rounded).ok_or_else(|| format!("{value} is no whole number"))
}

/// A word for cards and programs. Numbers, true, false and null are values of JSON, so that a choice of batch sizes is one of
/// numbers. Whole numbers that would be rounded stay words.
pub(super) fn chosen(word: &str) -> Value {
    match serde_json::from_str(word) {
        Ok(value @ (Value::Bool(_) | Value::Null)) => value,
        Ok(Value::Number(number)) if !number.is_f64() || word.contains(['.', 'e', 'E']) => number.into(),
        _ => word.into(),
    }
}

/// The value of a logarithm. The ends are exact, which the exponential function alone would miss by rounding.
fn value(logarithm: f64, low: f64, high: f64) -> f64 {
    if logarithm <= ln(low) {
        low
    } else if logarithm >= ln(high) {
        high
    } else {
        exp(logarithm).clamp(low, high)
    }
}

/// The float nearest to a value after this many steps, if its fraction fits into 64 bits.
pub(super) fn after(low: Ratio, step: Ratio, steps: i64) -> f64 {
    let [low_above, low_below, above, below] =
        [low.numerator(), low.denominator(), step.numerator(), step.denominator()].map(i128::from);
    let whole = low_above
        .checked_mul(below)
        .zip(i128::from(steps).checked_mul(above).and_then(|it| it.checked_mul(low_below)))
        .and_then(|(one, other)| one.checked_add(other));
    let exact = whole.and_then(|sum| Ratio::checked(sum, low_below * below));
    exact.map_or_else(|| low.to_f64() + step.to_f64() * steps as f64, Ratio::to_f64)
}
