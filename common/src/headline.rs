//! The questions of a run, and the figures that answer them: each kind declares its questions, which arms can be compared,
//! and what replicas with the same number share. [`crate::conclusion`] turns a headline into sentences.
//!
//! A headline is made from the arms of a `result.json`, so every stored result gets the headline of the present build.

use crate::stats::{Difference, Estimate, Sample, estimate, paired_t_test, t_test};

/// The questions that a run answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Headline {
    /// Sentences that need no test, each with its full stop.
    pub sentences: Vec<String>,
    /// Questions with their figures. Each arm belongs to at most one question.
    pub questions: Vec<Question>,
}

/// A question about arms that can be compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The question, with its question mark.
    pub asks: String,
    /// What is measured, with its unit: the primary figure of the kind's tables. Equal texts mean that values can be
    /// compared, even between runs.
    pub figure: String,
    /// How the question is answered.
    pub by: Answer,
    /// What replicas with the same number have in common in all these arms: "training boards". `None` if all replicas are
    /// independent.
    pub shared: Option<&'static str>,
    /// The arms, in the order of the file.
    pub arms: Vec<Entry>,
}

/// How a question is answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// By the kind's own sentences. Its figures are in tables, and can be compared between runs.
    Sentences,
    /// By the order of the arms, the greatest first. Neighbours in this order are tested.
    Order,
    /// By the differences of these pairs: the first arm minus the second, by their indices among the question's arms.
    Pairs(Vec<[usize; 2]>),
    /// By the tests that the kind itself has made, in `contests` of the result.
    Contests,
}

/// An arm of a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The arm's name.
    pub arm: String,
    /// The figure of each replica that has one, with the replica's number.
    pub values: Vec<(u32, f64)>,
}

impl Entry {
    /// The figures, without the numbers of their replicas.
    #[must_use]
    pub fn figures(&self) -> Vec<f64> {
        self.values.iter().map(|(_, value)| *value).collect()
    }

    /// The mean of the figures, with its 95 % interval.
    #[must_use]
    pub fn estimate(&self) -> Option<Estimate> {
        estimate(&self.figures())
    }
}

/// The first arm minus the second: by pairs of replicas with the same number, or else by Welch's test. `None` if an arm has
/// fewer than two replicas, or if there are fewer than two pairs.
#[must_use]
pub fn difference([one, two]: [&Entry; 2], in_pairs: bool) -> Option<Difference> {
    if !in_pairs {
        return t_test(Sample::of(&one.figures())?, Sample::of(&two.figures())?);
    }
    let of_two = |number: u32| two.values.iter().find(|(other, _)| *other == number).map(|(_, value)| *value);
    let differences = one.values.iter().filter_map(|(number, value)| Some(value - of_two(*number)?));
    paired_t_test(&differences.collect::<Vec<f64>>())
}

impl Question {
    /// The first arm minus the second, by their indices. The test is by pairs of replicas if replicas share something, else
    /// Welch's. `None` if an arm has fewer than two replicas, or if there are fewer than two pairs.
    #[must_use]
    pub fn difference(&self, [one, two]: [usize; 2]) -> Option<Difference> {
        difference([&self.arms[one], &self.arms[two]], self.shared.is_some())
    }

    /// An answer by the differences of every other arm from the first arm.
    #[must_use]
    pub fn from_the_first(arms: usize) -> Answer {
        Answer::Pairs((1..arms).map(|arm| [arm, 0]).collect())
    }
}
