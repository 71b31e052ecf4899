//! What a run is asked, and the figures that answer it: each kind declares its questions, which arms can be compared, and what
//! replicas of the same number share. [`crate::conclusion`] makes sentences of it.
//!
//! It is made from the arms of a `result.json`, so every kept result has the headline of this build.

use crate::stats::{Difference, Estimate, Sample, estimate, paired_t_test, t_test};

/// What a run answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Headline {
    /// Sentences that need no test, each with its full stop.
    pub sentences: Vec<String>,
    /// Questions with their figures. No arm is in two of them.
    pub questions: Vec<Question>,
}

/// A question about arms that can be compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The question, with its question mark.
    pub asks: String,
    /// What is measured, with its unit: the primary figure of the kind's tables. Equal texts mean that values can be compared, also
    /// between runs.
    pub figure: String,
    /// How it is answered.
    pub by: Answer,
    /// What replicas of the same number have in common in all these arms: "training boards". `None` if all replicas are
    /// independent.
    pub shared: Option<&'static str>,
    /// The arms, in the order of the file.
    pub arms: Vec<Entry>,
}

/// How a question is answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// By the kind's own sentences: its figures stand in tables, and between runs they can be compared.
    Sentences,
    /// By the order of the arms, greatest first; neighbours in this order are tested.
    Order,
    /// By these differences: of each pair the first arm less the second, by their places in the question's arms.
    Pairs(Vec<[usize; 2]>),
    /// By the tests that the kind has made, under `contests` in the result.
    Contests,
}

/// An arm of a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name.
    pub arm: String,
    /// The figure of each replica that has one, with the replica's number.
    pub values: Vec<(u32, f64)>,
}

impl Entry {
    /// The figures without the numbers of their replicas.
    #[must_use]
    pub fn figures(&self) -> Vec<f64> {
        self.values.iter().map(|(_, value)| *value).collect()
    }

    /// Their mean with its 95 % interval.
    #[must_use]
    pub fn estimate(&self) -> Option<Estimate> {
        estimate(&self.figures())
    }
}

impl Question {
    /// The first arm less the second, by their places: by pairs of replicas if those share something, else by Welch's test.
    /// `None` with fewer than two replicas of each, or of both.
    #[must_use]
    pub fn difference(&self, [one, two]: [usize; 2]) -> Option<Difference> {
        let [one, two] = [&self.arms[one], &self.arms[two]];
        if self.shared.is_none() {
            return t_test(Sample::of(&one.figures())?, Sample::of(&two.figures())?);
        }
        let of_two = |number: u32| two.values.iter().find(|(other, _)| *other == number).map(|(_, value)| *value);
        let differences = one.values.iter().filter_map(|(number, value)| Some(value - of_two(*number)?));
        paired_t_test(&differences.collect::<Vec<f64>>())
    }

    /// Differences from the first arm, of all others.
    #[must_use]
    pub fn from_the_first(arms: usize) -> Answer {
        Answer::Pairs((1..arms).map(|arm| [arm, 0]).collect())
    }
}
