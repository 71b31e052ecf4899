//! What a built-in problem is.

use evoxo_common::rng::{Generator, Stream};

use crate::evolve::{
    evaluation::Evaluation,
    genome::{Candidate, Genes, Genome, Part, Type},
    messages,
};

/// One of a problem's objectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Objective {
    /// Its name.
    pub name: &'static str,
    /// Whether it is to be maximised, not minimised.
    pub maximised: bool,
}

impl Objective {
    /// An objective to be minimised.
    #[must_use]
    pub const fn min(name: &'static str) -> Self {
        Self { name, maximised: false }
    }

    /// An objective to be maximised.
    #[must_use]
    pub const fn max(name: &'static str) -> Self {
        Self { name, maximised: true }
    }
}

/// A behaviour measure of a problem, for quality diversity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// Its name.
    pub name: &'static str,
    /// The least value.
    pub low: f64,
    /// The greatest value.
    pub high: f64,
}

/// A built-in problem. Its functions are pure and give the same bits on every machine.
#[derive(Debug)]
pub struct Problem {
    /// The name in experiment files.
    pub name: &'static str,
    /// One line: what it is, and its source.
    pub doc: &'static str,
    /// The objectives, one or more.
    pub objectives: &'static [Objective],
    /// The number of constraints.
    pub constraints: usize,
    /// The least and the greatest length (genes, bits, cities).
    pub lengths: (usize, usize),
    /// The usual length.
    pub length: usize,
    /// The genome for a length.
    pub genome: fn(length: usize) -> Genome,
    /// Evaluates a candidate of that genome without noise, with the objectives' own signs. Panics for others.
    pub evaluate: fn(&Candidate) -> messages::Evaluation,
    /// What is seen of the first objective's true value, if evaluations have noise in them.
    pub noise: Option<fn(f64, &mut Generator) -> f64>,
    /// The best value of the first objective for a length, where it is known; without noise.
    pub optimum: fn(length: usize) -> Option<f64>,
    /// The behaviour measures; most problems have none.
    pub measures: &'static [Measure],
    /// Of several objectives: the usual reference point of the hypervolume. Of one with behaviour measures: the value that is worth
    /// nothing. Else empty.
    pub reference: &'static [f64],
    /// Of several objectives: points of the best front for a length, evenly spread; empty where it is not known.
    pub front: fn(length: usize) -> Vec<Vec<f64>>,
}

impl Problem {
    /// Evaluates a candidate as a search sees it, with the noise of this seed.
    #[must_use]
    pub fn evaluate_with(&self, candidate: &Candidate, seed: u64) -> messages::Evaluation {
        let mut evaluation = (self.evaluate)(candidate);
        if let (Some(noise), Some(first)) = (self.noise, evaluation.objectives.first_mut()) {
            *first = noise(*first, &mut Stream::root(seed).text("noise").rng());
        }
        evaluation
    }

    /// Evaluates a candidate; objectives are turned so that all are to be minimised.
    #[must_use]
    pub fn minimised(&self, candidate: &Candidate) -> Evaluation {
        let maximised: Vec<bool> = self.objectives.iter().map(|objective| objective.maximised).collect();
        Evaluation::minimised(&(self.evaluate)(candidate), &maximised)
    }
}

/// An evaluation of these objectives, without constraints and measures.
pub(super) fn objectives(objectives: &[f64]) -> messages::Evaluation {
    messages::Evaluation { objectives: objectives.to_vec(), ..Default::default() }
}

/// A genome of parts with these names, lengths and types.
pub(super) fn genome(parts: &[(&str, usize, Type)]) -> Genome {
    let part = |(name, length, of): &(&str, usize, Type)| Part { name: (*name).into(), length: *length, of: *of };
    Genome { parts: parts.iter().map(part).collect(), bounded: true }
}

/// The real genes of all parts, one after another.
pub(super) fn reals(candidate: &Candidate) -> Vec<f64> {
    let part = |genes: &Genes| match genes {
        Genes::Real(genes) => genes.clone(),
        _ => panic!("the candidate is of another genome"),
    };
    candidate.parts.iter().flat_map(part).collect()
}

/// The bits of the first part.
pub(super) fn bits(candidate: &Candidate) -> &[bool] {
    match candidate.parts.as_slice() {
        [Genes::Bits(bits)] => bits,
        _ => panic!("the candidate is of another genome"),
    }
}

/// The permutation of the first part.
pub(super) fn permutation(candidate: &Candidate) -> &[u32] {
    match candidate.parts.as_slice() {
        [Genes::Permutation(order)] => order,
        _ => panic!("the candidate is of another genome"),
    }
}
