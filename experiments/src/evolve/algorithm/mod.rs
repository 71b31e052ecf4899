//! Optimisers, each a pure state machine between batches of evaluations.

mod cma;
mod coordinates;
mod ga;
mod individual;
mod islands;
mod kind;
mod map_elites;
mod niches;
mod nsga2;
mod openai_es;
mod operators;
mod random;
mod strategies;
mod table;
#[cfg(test)]
mod tests;
mod windowed;

use std::ops::Range;

use evoxo_common::rng::{Generator, Stream};

use super::{
    evaluation::Evaluation,
    genome::{Candidate, Genome},
    messages::Steps,
    wrong::Wrong,
};

pub use cma::{Cma, Covariance as CmaCovariance, Mean as CmaMean, Restarts as CmaRestarts, Settings as CmaSettings};
pub use ga::{Ga, Settings as GaSettings};
pub use individual::Individual;
pub use islands::{Islands, Settings as IslandsSettings};
pub use kind::{AlgorithmKind, Begin, Given, Leaves, Listed, Made, Make, Part, steady};
pub use map_elites::{MapElites, Settings as MapElitesSettings, regions};
pub use niches::Axis;
pub use nsga2::{Nsga2, Settings as Nsga2Settings};
pub use openai_es::{OpenAiEs, Settings as OpenAiEsSettings};
pub use random::{Random, Settings as RandomSettings};
pub use table::{SETTINGS, having, listed};
pub use windowed::{Steady, WINDOW_MAX, Windowed};

/// The algorithm that all others must beat.
pub const BASELINE: &AlgorithmKind = &AlgorithmKind::of::<Random>();

/// The algorithms that an experiment file can choose, in the order in which they are shown. A new one comes last, and its settings
/// have the scope `addition`, so that configurations keep their hashes.
pub const ALGORITHMS: &[&AlgorithmKind] = &[
    BASELINE,
    &AlgorithmKind::of::<Ga>(),
    &AlgorithmKind::of::<Cma>(),
    &AlgorithmKind::of::<OpenAiEs>(),
    &AlgorithmKind::of::<Nsga2>(),
    &AlgorithmKind::of::<MapElites>(),
];

/// An optimiser between two batches: a pure state machine.
///
/// Its numbers are drawn from streams that are named by the number of the candidate in the whole search, so nothing
/// depends on how a batch is cut up.
pub trait Algorithm: Send {
    /// Candidates of the next batch; 0 at the end.
    fn size(&self) -> usize;

    /// Candidates of the next batch if the search does not end within it; 0 if the algorithm is at its end, however many evaluations
    /// are left.
    fn whole(&self) -> usize;

    /// These candidates of the next batch: the same until [`Self::tell`], in whatever ranges they are asked for.
    ///
    /// # Panics
    /// If the range does not lie within the batch.
    fn ask(&self, range: Range<usize>) -> Vec<Candidate>;

    /// What the candidates of the next batch can be made from by their numbers in the whole search, if that is less than all
    /// their genes: see [`Made`].
    fn steps(&self) -> Option<Steps> {
        None
    }

    /// Whether it needs the evaluations of a whole batch at once. If not, it moves on with that of the first candidate; the
    /// others stay in the batch.
    fn has_barrier(&self) -> bool {
        true
    }

    /// Moves on with the evaluations of all candidates of the batch, in order; without a barrier, of the first one. After a batch
    /// that the end of the search has cut off, it is of use no more than to be looked at: a longer search goes on from its state
    /// before that batch.
    ///
    /// # Panics
    /// If there is not one evaluation for each candidate.
    fn tell(&mut self, evaluations: &[Evaluation]);

    /// The evaluated candidates that the algorithm keeps: a population or an archive. Those that learn a distribution
    /// keep none.
    fn population(&self) -> &[Individual] {
        &[]
    }

    /// The middle of the distribution that it learns, if it learns one: a candidate that was never evaluated.
    fn mean(&self) -> Option<Candidate> {
        None
    }

    /// Candidates whose evaluations it has been told.
    fn births(&self) -> u64;

    /// The state, as the algorithm's message.
    fn save(&self) -> Vec<u8>;
}

/// What is searched, and with how much: what every algorithm is made from, beside its settings.
#[derive(Clone, Debug)]
pub struct Search {
    /// The search space; [valid](Genome::valid).
    pub genome: Genome,
    /// Evaluations of the whole search, at most.
    pub evaluations: u64,
    /// The replica's stream. The streams of candidates are below it.
    pub stream: Stream,
}

impl Search {
    /// The random numbers of a candidate, by its number in the whole search.
    fn birth(&self, number: u64) -> Generator {
        self.stream.text("birth").word(number).rng()
    }

    /// A batch of this size, or as many evaluations as are left after `births`.
    fn batch(&self, size: usize, births: u64) -> usize {
        self.evaluations.saturating_sub(births).min(size as u64) as usize
    }

    /// Checks the number of births in a saved state.
    fn check_births(&self, births: u64) -> Result<(), String> {
        match births <= self.evaluations {
            true => Ok(()),
            false => Err(format!("the state has {births} evaluations, but the search has only {}", self.evaluations)),
        }
    }
}

/// What an algorithm needs at most, for a run to be planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Most {
    /// Candidates of a batch.
    pub candidates: u64,
    /// Batches of a search.
    pub batches: u64,
    /// Candidates that it keeps.
    pub kept: u64,
    /// Bytes of a saved state.
    pub state_bytes: u64,
}

/// Whether a sentence about this setting is needed, for a number outside its range.
fn within(
    setting: &'static str,
    name: &str,
    value: usize,
    range: std::ops::RangeInclusive<usize>,
) -> Result<(), Wrong> {
    match range.contains(&value) {
        true => Ok(()),
        false => {
            let (least, most) = (range.start(), range.end());
            Err(Wrong::new(setting, format!("{name} is {value}, but it must be from {least} to {most}")))
        }
    }
}
