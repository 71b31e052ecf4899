//! Populations of evaluated candidates, and their messages.

use prost::Message as _;

use super::Search;
use crate::evolve::{
    evaluation::Evaluation,
    genome::{Candidate, Genome},
    messages::{self, PopulationState},
};

/// A candidate with its evaluation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Individual {
    pub(super) candidate: Candidate,
    pub(super) evaluation: Evaluation,
}

/// The state of a population of `births` candidates so far.
pub(super) fn save(births: u64, population: &[Individual]) -> Vec<u8> {
    let individual = |Individual { candidate, evaluation }: &Individual| messages::Individual {
        candidate: Some(candidate.message()),
        evaluation: Some(evaluation.message()),
    };
    PopulationState { births, individuals: population.iter().map(individual).collect() }.encode_to_vec()
}

/// The births and the population of a saved state, for populations of this size.
pub(super) fn restore(search: &Search, size: usize, state: &[u8]) -> Result<(u64, Vec<Individual>), String> {
    let PopulationState { births, individuals } =
        PopulationState::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?;
    search.check_births(births)?;
    if individuals.len() as u64 != births.min(size as u64) {
        return Err(format!("the state has {} individuals after {births} evaluations", individuals.len()));
    }
    let individual = |message: &messages::Individual| {
        let candidate = message.candidate.as_ref().ok_or("an individual of the state has no candidate")?;
        let evaluation = message.evaluation.as_ref().ok_or("an individual of the state has no evaluation")?;
        Ok(Individual { candidate: search.genome.candidate(candidate)?, evaluation: Evaluation::stored(evaluation) })
    };
    let population: Result<Vec<Individual>, String> = individuals.iter().map(individual).collect();
    Ok((births, population?))
}

/// The most bytes of a state, where an evaluation has this many numbers.
pub(super) fn bytes_max(genome: &Genome, size: usize, numbers: u64) -> u64 {
    16 + size as u64 * (genome.bytes_max() + 8 * numbers + 64)
}
