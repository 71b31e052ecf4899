//! The definition of a built-in problem.

use evoxo_common::rng::{Generator, Stream};

use crate::{
    evaluation::Evaluation,
    genome::{Candidate, Genes, Genome, Part, Type},
    messages,
};

/// One of a problem's objectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Objective {
    /// The objective's name.
    pub name: &'static str,
    /// Whether the objective is to be maximised instead of minimised.
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
    /// The measure's name.
    pub name: &'static str,
    /// The least value of the measure.
    pub low: f64,
    /// The greatest value of the measure.
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
    /// The least and the greatest length (genes, bits or cities).
    pub lengths: (usize, usize),
    /// The default length.
    pub length: usize,
    /// Makes the genome for a length.
    pub genome: fn(length: usize) -> Genome,
    /// Evaluates a candidate of that genome without noise, with the objectives' own signs. Panics for candidates of other
    /// genomes.
    pub evaluate: fn(&Candidate) -> messages::Evaluation,
    /// If evaluations are noisy: adds noise to the true value of the first objective.
    pub noise: Option<fn(f64, &mut Generator) -> f64>,
    /// The best noise-free value of the first objective for a length, if it is known.
    pub optimum: fn(length: usize) -> Option<f64>,
    /// The behaviour measures; most problems have none.
    pub measures: &'static [Measure],
    /// With several objectives: the usual reference point of the hypervolume. With one objective and behaviour measures: the
    /// value that is worth nothing. Otherwise empty.
    pub reference: &'static [f64],
    /// With several objectives: evenly spread points of the best front for a length; empty if it is not known.
    pub front: fn(length: usize) -> Vec<Vec<f64>>,
}

impl Problem {
    /// Evaluates a candidate as a search sees it, with the noise that belongs to this seed.
    #[must_use]
    pub fn evaluate_with(&self, candidate: &Candidate, seed: u64) -> messages::Evaluation {
        let mut evaluation = (self.evaluate)(candidate);
        if let (Some(noise), Some(first)) = (self.noise, evaluation.objectives.first_mut()) {
            *first = noise(*first, &mut Stream::root(seed).text("noise").rng());
        }
        evaluation
    }

    /// Evaluates a candidate without noise, with signs turned so that all objectives are to be minimised.
    #[must_use]
    pub fn minimised(&self, candidate: &Candidate) -> Evaluation {
        let maximised: Vec<bool> = self.objectives.iter().map(|objective| objective.maximised).collect();
        Evaluation::minimised(&(self.evaluate)(candidate), &maximised)
    }
}

/// An evaluation with these objectives and no constraints or measures.
pub(super) fn objectives(objectives: &[f64]) -> messages::Evaluation {
    messages::Evaluation { objectives: objectives.to_vec(), ..Default::default() }
}

/// A genome of parts with these names, lengths and types.
pub(super) fn genome(parts: &[(&str, usize, Type)]) -> Genome {
    let part = |(name, length, of): &(&str, usize, Type)| Part { name: (*name).into(), length: *length, of: *of };
    Genome { parts: parts.iter().map(part).collect(), bounded: true }
}

/// The real genes of all parts, one part after another.
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
