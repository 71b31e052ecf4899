//! The tables of an experiment file of `evolve`: the parts of its genome, and the measures of its grid.

use evoxo_common::{
    choice,
    math::ln,
    ratio::Ratio,
    settings,
    settings::{FromValue, Value},
};

use super::{
    genome::{Part, Type},
    notation::{Notation, after},
};

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
        /// one of several words
        Choice = "choice",
    }
}

choice! {
    /// How the values of a part are spread.
    pub enum ScaleName {
        /// differences count: random values are uniform between the bounds
        Linear = "linear",
        /// ratios count: random values are as often from 1 to 10 as from 10 to 100
        Log = "log",
    }
}

/// The least number of choices.
const CHOICES_MIN: usize = 2;
/// The most steps between two bounds: more could not be counted exactly.
const STEPS_MAX: f64 = 1e12;

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
        /// Whether differences or ratios of real and whole numbers count. With log the lower bound must be above 0.
        scale: ScaleName = addition choice("linear"),
        /// The distance between two values of real or whole numbers, the first of which is the lower bound. 0: none.
        step: Ratio = addition real(0, BOUND_MAX, "0"),
        /// The words or numbers to choose from, separated by commas.
        choices: String = addition text(1000, ""),
        /// The part is there only while another part has one of these values, as in "optimizer = adam, sgd". The other part
        /// is a choice, a whole number, a bit or a symbol, of length 1. Empty: the part is always there.
        when: String = addition text(1000, ""),
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
        let is_number = matches!(self.r#type, TypeName::Real | TypeName::Integer);
        let words = self.words();
        match self.r#type {
            TypeName::Real | TypeName::Integer if low > high => {
                Some((PartName::high, "high must not be less than low".into()))
            }
            TypeName::Integer if self.low.denominator() != 1 || self.high.denominator() != 1 => {
                Some((PartName::low, "the bounds of whole numbers must be whole".into()))
            }
            TypeName::Integer if self.step.denominator() != 1 => {
                Some((PartName::step, "the step of whole numbers must be whole".into()))
            }
            _ if !is_number && (self.scale == ScaleName::Log || self.step != Ratio::ZERO) => {
                Some((PartName::scale, "only real and whole numbers have a scale or a step".into()))
            }
            _ if self.scale == ScaleName::Log && self.low <= Ratio::ZERO => {
                Some((PartName::low, "with a logarithmic scale low must be above 0".into()))
            }
            _ if self.scale == ScaleName::Log && self.step != Ratio::ZERO => {
                Some((PartName::step, "a logarithmic scale has no steps: leave out scale or step".into()))
            }
            _ if self.step != Ratio::ZERO && (high - low) / self.step.to_f64() > STEPS_MAX => {
                Some((PartName::step, "there are more than 1000000000000 steps: give a greater step, or none".into()))
            }
            TypeName::Choice if words.len() < CHOICES_MIN || words.contains(&String::new()) => {
                Some((PartName::choices, "give at least two choices, for example \"adam, sgd\"".into()))
            }
            TypeName::Choice if words.iter().enumerate().any(|(place, word)| words[..place].contains(word)) => {
                Some((PartName::choices, "a choice is there twice".into()))
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

    fn words(&self) -> Vec<String> {
        self.choices.split(',').map(|word| word.trim().to_owned()).collect()
    }

    /// Whether genes are logarithms. If all values are equal, they have no scale.
    fn is_log(&self) -> bool {
        self.scale == ScaleName::Log && self.low != self.high
    }

    /// The most steps from the lower bound that do not pass the upper one.
    fn steps(&self) -> i64 {
        let [low, high, step] = [self.low, self.high, self.step].map(Ratio::to_f64);
        let mut steps = ((high - low) / step).round() as i64;
        // Rounding can be one step off, and the last step may pass the bound.
        while steps > 0 && after(self.low, self.step, steps) > high {
            steps -= 1;
        }
        steps
    }

    pub(super) fn part(&self) -> Part {
        let (low, high) = (self.low.to_f64(), self.high.to_f64());
        let of = match self.r#type {
            // Each whole number gets the logarithms that are rounded to it.
            TypeName::Integer if self.is_log() => Type::Real { low: ln(low - 0.5), high: ln(high + 0.5) },
            TypeName::Real if self.is_log() => Type::Real { low: ln(low), high: ln(high) },
            TypeName::Real | TypeName::Integer if self.step != Ratio::ZERO => {
                Type::Integer { low: 0, high: self.steps() }
            }
            TypeName::Real => Type::Real { low, high },
            TypeName::Integer => Type::Integer { low: self.low.numerator(), high: self.high.numerator() },
            TypeName::Bits => Type::Bits,
            TypeName::Permutation => Type::Permutation,
            TypeName::Symbols => Type::Symbols { alphabet: self.alphabet.len() as u32 },
            TypeName::Choice => Type::Symbols { alphabet: self.words().len() as u32 },
        };
        Part { name: self.name.clone(), length: self.length, of }
    }

    /// What the genes of the part stand for. `bounded` is that of the [genome](super::genome::Genome).
    pub(super) fn notation(&self, bounded: bool) -> Notation {
        let whole = self.r#type == TypeName::Integer;
        match self.r#type {
            TypeName::Real | TypeName::Integer if self.is_log() => {
                let (low, high) =
                    if bounded { (self.low.to_f64(), self.high.to_f64()) } else { (f64::MIN_POSITIVE, f64::MAX) };
                Notation::Logarithm { low, high, whole }
            }
            TypeName::Real | TypeName::Integer if self.step != Ratio::ZERO => {
                Notation::Steps { low: self.low, step: self.step, whole }
            }
            TypeName::Symbols => Notation::Letters(self.alphabet.clone()),
            TypeName::Choice => Notation::Words(self.words()),
            _ => Notation::Plain,
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::genome::{Genes, Genome};
    use evoxo_common::rng::Stream;
    use serde_json::{Value as Json, json};

    fn part(settings: &str) -> Result<PartSettings, String> {
        PART.read(&settings.replace("; ", "\n")).map(|values| PartSettings::of(&values))
    }

    /// The values of a thousand random genes, and of the genes at both ends.
    fn values(settings: &str) -> Vec<Json> {
        let part = part(settings).unwrap();
        let genome = Genome { parts: vec![part.part()], bounded: true };
        assert_eq!(genome.valid(), Ok(()), "{settings}");
        let mut rng = Stream::root(1).rng();
        let genes = |part: &Part, high: bool| match part.of {
            Type::Real { low, high: last } => Genes::Real(vec![if high { last } else { low }]),
            Type::Integer { low, high: last } => Genes::Integer(vec![if high { last } else { low }]),
            _ => Genes::Symbols(vec![0]),
        };
        let ends = [false, true].map(|high| genes(&genome.parts[0], high));
        let drawn = (0..1000).map(|_| genome.random(&mut rng).parts.remove(0));
        drawn.chain(ends).map(|genes| part.notation(true).json(&genes)[0].clone()).collect()
    }

    fn numbers(settings: &str) -> Vec<f64> {
        values(settings).iter().map(|value| value.as_f64().unwrap()).collect()
    }

    /// As many random values between 0.0001 and 0.001 as between 0.1 and 1, and the ends are exact.
    #[test]
    fn logarithms_are_uniform() {
        let values = numbers("scale = log; low = 0.0001; high = 1");
        for (low, high) in [(0.0001, 0.001), (0.001, 0.01), (0.01, 0.1), (0.1, 1.0)] {
            let share = values.iter().filter(|value| (low..high).contains(*value)).count();
            assert!((200..300).contains(&share), "{share} from {low} to {high}");
        }
        assert_eq!(values[1000..], [0.0001, 1.0]);
        let whole = numbers("type = integer; scale = log; low = 1; high = 3");
        let count = |number: f64| whole.iter().filter(|value| **value == number).count();
        // ln(1.5 / 0.5), ln(2.5 / 1.5) and ln(3.5 / 2.5) of ln(3.5 / 0.5)
        for (number, wanted) in [(1.0, 565), (2.0, 263), (3.0, 173)] {
            assert!(count(number).abs_diff(wanted) < 60, "{} times {number}", count(number));
        }
        assert_eq!(numbers("scale = log; low = 0.3; high = 0.3")[0], 0.3);
    }

    #[test]
    fn steps_are_decimals_as_a_person_writes_them() {
        let mut values = numbers("low = 0; high = 0.96; step = 0.1");
        assert_eq!(values.split_off(1000), [0.0, 0.9]);
        values.sort_by(f64::total_cmp);
        values.dedup();
        assert_eq!(values, [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]);
        assert_eq!(numbers("low = -1; high = 1; step = 0.02")[1001], 1.0);
        let whole = values_of_whole("type = integer; low = 16; high = 130; step = 16");
        assert_eq!(whole[1000..], [16, 128]);
        assert!(whole.iter().all(|value| value % 16 == 0));
        assert_eq!(numbers("low = 2; high = 2; step = 0.5")[0], 2.0);
    }

    fn values_of_whole(settings: &str) -> Vec<i64> {
        values(settings).iter().map(|value| value.as_i64().unwrap()).collect()
    }

    #[test]
    fn words_are_chosen_equally_often() {
        let values = values("type = choice; choices = adam, sgd ,rmsprop");
        for word in ["adam", "sgd", "rmsprop"] {
            let count = values.iter().filter(|value| **value == word).count();
            assert!((280..390).contains(&count), "{count} times {word}");
        }
        let numbers = super::tests::values("type = choice; choices = 32, 1e-05, true, null, 1x, 123456789012345678901");
        for number in [json!(32), json!(1e-5), json!(true), Json::Null, json!("1x"), json!("123456789012345678901")] {
            assert!(numbers.contains(&number), "{number}");
        }
    }

    #[test]
    fn parts_that_make_no_sense_are_rejected() {
        for (settings, sentence) in [
            ("scale = log; low = 0; high = 1", "with a logarithmic scale low must be above 0"),
            ("scale = log; low = 1; high = 2; step = 0.5", "a logarithmic scale has no steps: leave out scale or step"),
            ("type = bits; scale = log", "only real and whole numbers have a scale or a step"),
            ("type = permutation; step = 1", "only real and whole numbers have a scale or a step"),
            ("type = integer; low = 0; high = 9; step = 0.5", "the step of whole numbers must be whole"),
            (
                "low = 0; high = 1000000000000; step = 0.000000000000000001",
                "there are more than 1000000000000 steps: give a greater step, or none",
            ),
            ("type = choice", "give at least two choices, for example \"adam, sgd\""),
            ("type = choice; choices = adam,", "give at least two choices, for example \"adam, sgd\""),
            ("type = choice; choices = adam, sgd, adam", "a choice is there twice"),
        ] {
            assert_eq!(part(settings), Err(sentence.into()), "{settings}");
        }
    }
}
