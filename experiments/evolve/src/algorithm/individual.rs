//! Evaluated candidates, populations of them, and their messages.

use prost::Message as _;

use super::Search;
use crate::{
    evaluation::Evaluation,
    genome::{Candidate, Genome},
    messages::{self, PopulationState},
};

/// A candidate with its evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct Individual {
    /// The candidate.
    pub candidate: Candidate,
    /// Its evaluation.
    pub evaluation: Evaluation,
}

impl Individual {
    /// The individual as a message.
    #[must_use]
    pub fn message(&self) -> messages::Individual {
        messages::Individual { candidate: Some(self.candidate.message()), evaluation: Some(self.evaluation.message()) }
    }

    /// Reads an individual from its message.
    ///
    /// # Errors
    /// If the message has no candidate of this genome, or no evaluation.
    pub fn read(genome: &Genome, message: &messages::Individual) -> Result<Self, String> {
        let candidate = message.candidate.as_ref().ok_or("an individual of the state has no candidate")?;
        let evaluation = message.evaluation.as_ref().ok_or("an individual of the state has no evaluation")?;
        Ok(Self { candidate: genome.candidate(candidate)?, evaluation: Evaluation::stored(evaluation) })
    }

    /// Reads individuals from their messages.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn read_all(genome: &Genome, messages: &[messages::Individual]) -> Result<Vec<Self>, String> {
        messages.iter().map(|message| Self::read(genome, message)).collect()
    }
}

/// Candidates with their evaluations.
pub(super) fn evaluated(candidates: Vec<Candidate>, evaluations: &[Evaluation]) -> impl Iterator<Item = Individual> {
    let individual = |(candidate, evaluation): (Candidate, &Evaluation)| {
        let evaluation = evaluation.clone();
        Individual { candidate, evaluation }
    };
    candidates.into_iter().zip(evaluations).map(individual)
}

/// The state of a population after `births` candidates.
pub(super) fn save(births: u64, population: &[Individual]) -> Vec<u8> {
    PopulationState { births, individuals: population.iter().map(Individual::message).collect() }.encode_to_vec()
}

/// The births and the individuals in a saved state.
pub(super) fn read(search: &Search, state: &[u8]) -> Result<(u64, Vec<Individual>), String> {
    let PopulationState { births, individuals } =
        PopulationState::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?;
    search.check_births(births)?;
    Ok((births, Individual::read_all(&search.genome, &individuals)?))
}

/// The same for a population of this size. A state with fewer births must have one individual for each birth.
pub(super) fn restore(search: &Search, size: usize, state: &[u8]) -> Result<(u64, Vec<Individual>), String> {
    let (births, population) = read(search, state)?;
    match population.len() as u64 == births.min(size as u64) {
        true => Ok((births, population)),
        false => Err(format!("the state has {} individuals after {births} evaluations", population.len())),
    }
}

/// The most bytes of a state, if an evaluation has this many numbers.
pub(super) fn bytes_max(genome: &Genome, size: usize, numbers: u64) -> u64 {
    16 + size as u64 * (genome.bytes_max() + 8 * numbers + 64)
}
