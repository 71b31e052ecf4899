//! The genes of a candidate as a problem gets them. A search moves in numbers that suit it: in logarithms of values whose
//! order of magnitude is unknown, in numbers of steps, in numbers of words. Problems, cards and tables have the values.

use evoxo_common::{
    math::{exp, ln},
    ratio::Ratio,
};
use serde_json::{Value, json};

use super::genome::Genes;

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

/// A word for cards and programs. Numbers, true, false and null are values of JSON, so that a choice of batch sizes is one of
/// numbers. Whole numbers that would be rounded stay words.
fn chosen(word: &str) -> Value {
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
