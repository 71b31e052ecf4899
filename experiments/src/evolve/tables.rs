//! The tables of an experiment file of `evolve`: the parts of its genome, and the measures of its grid.

use evoxo_common::{
    choice,
    ratio::Ratio,
    settings,
    settings::{FromValue, Value},
};

use super::genome::{Part, Type};

choice! {
    /// The type of a part's genes.
    pub enum TypeName {
        /// real numbers from low to high
        Real = "real",
        /// whole numbers from low to high
        Integer = "integer",
        /// bits
        Bits = "bits",
        /// the numbers from 0 to length - 1, each once
        Permutation = "permutation",
        /// letters of the alphabet
        Symbols = "symbols",
    }
}

/// The greatest bound; the least is its negative.
const BOUND_MAX: i64 = 1_000_000_000_000;

settings! {
    /// A part of the genome: genes of one type.
    pub struct PartSettings, names PartName, schema PART {
        /// The name by which the problem knows the part.
        name: String = text(32, "x"),
        /// The type of its genes.
        r#type: TypeName = choice("real"),
        /// The number of its genes.
        length: usize = whole(1, 100_000, "1"),
        /// The lower bound of real and whole numbers. Genes whose bounds are equal are fixed: they have the same value in
        /// every candidate.
        low: Ratio = real(-BOUND_MAX, BOUND_MAX, "0"),
        /// The upper bound of real and whole numbers.
        high: Ratio = real(-BOUND_MAX, BOUND_MAX, "1"),
        /// The symbols: different printable characters.
        alphabet: String = text(94, ""),
    }
    check(|part| part.problem().into_iter().collect())
}

impl PartSettings {
    fn problem(&self) -> Option<(PartName, String)> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if self.name.is_empty() || !self.name.chars().all(plain) {
            return Some((PartName::name, "a part's name has letters, digits and _".into()));
        }
        let (low, high) = (self.low.to_f64(), self.high.to_f64());
        match self.r#type {
            TypeName::Real | TypeName::Integer if low > high => {
                Some((PartName::high, "high must not be less than low".into()))
            }
            TypeName::Integer if self.low.denominator() != 1 || self.high.denominator() != 1 => {
                Some((PartName::low, "the bounds of whole numbers must be whole".into()))
            }
            TypeName::Symbols if self.alphabet.is_empty() => {
                Some((PartName::alphabet, "symbols need an alphabet, for example \"ACGT\"".into()))
            }
            _ if self.alphabet.chars().enumerate().any(|(place, symbol)| self.alphabet[..place].contains(symbol)) => {
                Some((PartName::alphabet, "the alphabet has a symbol twice".into()))
            }
            _ => None,
        }
    }

    pub(super) fn part(&self) -> Part {
        let of = match self.r#type {
            TypeName::Real => Type::Real { low: self.low.to_f64(), high: self.high.to_f64() },
            TypeName::Integer => Type::Integer { low: self.low.numerator(), high: self.high.numerator() },
            TypeName::Bits => Type::Bits,
            TypeName::Permutation => Type::Permutation,
            TypeName::Symbols => Type::Symbols { alphabet: self.alphabet.len() as u32 },
        };
        Part { name: self.name.clone(), length: self.length, of }
    }
}

settings! {
    /// A behaviour measure of MAP-Elites: its bounds and the number of cells between them.
    pub struct GridSettings, names GridName, schema GRID {
        /// The lower bound. Lower values count in the first cell.
        low: Ratio = real(-BOUND_MAX, BOUND_MAX, "0"),
        /// The upper bound. Higher values count in the last cell.
        high: Ratio = real(-BOUND_MAX, BOUND_MAX, "1"),
        /// The number of cells between the bounds.
        cells: usize = whole(1, 100_000, "20"),
    }
    check(|axis| match axis.low.to_f64() < axis.high.to_f64() {
        true => Vec::new(),
        false => vec![(GridName::high, "high must be greater than low".into())],
    })
}

/// The axes of a grid, as a file has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid(pub Vec<GridSettings>);

impl FromValue for Grid {
    fn from_value(value: &Value) -> Self {
        let Value::List(entries) = value else { panic!("a list was declared, not {value:?}") };
        Self(entries.iter().map(GridSettings::of).collect())
    }
}

/// The parts of a genome, as a file has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts(pub Vec<PartSettings>);

impl FromValue for Parts {
    fn from_value(value: &Value) -> Self {
        let Value::List(entries) = value else { panic!("a list was declared, not {value:?}") };
        Self(entries.iter().map(PartSettings::of).collect())
    }
}
