//! Optimisers. Each is a pure state machine between batches of evaluations.

mod auto;
mod averaged;
mod cma;
mod cma_mae;
mod coordinates;
mod elites;
mod ga;
mod individual;
mod islands;
mod kind;
mod l_shade;
mod map_elites;
mod mating;
mod niches;
mod nsga2;
mod nsga3;
mod openai_es;
mod operators;
mod own;
mod pso;
mod random;
mod sms_emoa;
mod strategies;
mod table;
#[cfg(test)]
pub(super) mod tests;
mod windowed;

use std::ops::Range;

use evoxo_common::rng::{Generator, Stream};

use super::{
    evaluation::Evaluation,
    genome::{Candidate, Genome, Part as GenomePart, Type},
    messages::{AskOutput, AskTask, Steps},
    wrong::Wrong,
};

pub use auto::{AUTO, Situation};
pub use averaged::{Averaged, Noise};
pub use cma::{Cma, Covariance as CmaCovariance, Mean as CmaMean, Restarts as CmaRestarts, Settings as CmaSettings};
pub use cma_mae::{CmaMae, Settings as CmaMaeSettings};
pub use ga::{Ga, Settings as GaSettings};
pub use individual::Individual;
pub use islands::{Islands, Settings as IslandsSettings};
pub use kind::{AlgorithmKind, Begin, Given, Leaves, Listed, Made, Make, Part, steady};
pub use l_shade::{LShade, Settings as LShadeSettings};
pub use map_elites::{MapElites, Settings as MapElitesSettings, regions};
pub use niches::Axis;
pub use nsga2::{Nsga2, Settings as Nsga2Settings};
pub use nsga3::{Nsga3, Settings as Nsga3Settings};
pub use openai_es::{OpenAiEs, Settings as OpenAiEsSettings};
pub use own::{Own, OwnAlgorithm, STATE_BYTES_MAX, check_answer, own};
pub use pso::{Pso, Settings as PsoSettings};
pub use random::{Random, Settings as RandomSettings};
pub use sms_emoa::SmsEmoa;
pub use table::{SETTING, SETTINGS, add, added, algorithms, having, listed, open_or_having};
pub use windowed::{Steady, WINDOW_MAX, Windowed};

/// The algorithm that all others must beat.
pub const BASELINE: &AlgorithmKind = &AlgorithmKind::of::<Random>();

/// The algorithms that come with evoxo, in the order in which they are shown. A new one goes last, and its settings have the
/// scope `addition`, so that configurations keep their hashes.
pub const ALGORITHMS: &[&AlgorithmKind] = &[
    BASELINE,
    &AlgorithmKind::of::<Ga>(),
    &AlgorithmKind::of::<Cma>(),
    &AlgorithmKind::of::<OpenAiEs>(),
    &AlgorithmKind::of::<Nsga2>(),
    &AlgorithmKind::of::<MapElites>(),
    &AlgorithmKind::of::<LShade>(),
    &AlgorithmKind::of::<CmaMae>(),
    &AlgorithmKind::of::<OwnAlgorithm>(),
    &AlgorithmKind::of::<Nsga3>(),
    &AlgorithmKind::of::<Pso>(),
    &AlgorithmKind::of::<SmsEmoa>(),
];

/// An optimiser between two batches: a pure state machine.
///
/// Its random numbers come from streams named by the candidate's number in the whole search, so nothing depends on how a
/// batch is cut up.
pub trait Algorithm: Send + Sync {
    /// The number of candidates in the next batch; 0 at the end.
    fn size(&self) -> usize;

    /// The number of candidates in the next batch if the search does not end within it; 0 if the algorithm has ended, however many
    /// evaluations are left.
    fn whole(&self) -> usize;

    /// These candidates of the next batch. They are the same until [`Self::tell`], whatever ranges are requested.
    ///
    /// # Panics
    /// If the range does not lie within the batch.
    fn ask(&self, range: Range<usize>) -> Vec<Candidate>;

    /// How each candidate of the next batch is made from individuals that the algorithm keeps; `None` if it is made otherwise.
    fn descents(&self) -> Vec<Option<Descent>> {
        vec![None; self.size()]
    }

    /// The candidates that are made from the individuals that the algorithm keeps now, each with how it is made.
    fn newest(&self) -> Vec<(Candidate, Option<Descent>)> {
        self.ask(0..self.size()).into_iter().zip(self.descents()).collect()
    }

    /// The number of a candidate of the next batch in the whole search.
    fn number(&self, index: usize) -> u64 {
        self.births() + index as u64
    }

    /// Which seed of the next batch this candidate gets, if the problem is noisy and candidates of a batch share seeds.
    /// Otherwise each has its own.
    fn seed(&self, _index: usize) -> Option<u64> {
        None
    }

    /// What a worker needs to make the candidates of the next batch from their numbers in the whole search, if that is less
    /// than all their genes: see [`Made`].
    fn steps(&self) -> Option<Steps> {
        None
    }

    /// Whether the algorithm needs the evaluations of a whole batch at once. If not, it moves on with the evaluation of the
    /// first candidate, and the others stay in the batch.
    fn has_barrier(&self) -> bool {
        true
    }

    /// Whether a program must be asked before there is a next batch: only if the algorithm is [a program's](Listed::ASKS). Until
    /// then the batch counts as one candidate, which cannot be [asked for](Self::ask).
    fn is_asking(&self) -> bool {
        false
    }

    /// What the program is asked.
    ///
    /// # Panics
    /// If it need not be [asked](Self::is_asking).
    fn question(&self) -> AskTask {
        panic!("only an algorithm that asks has a question");
    }

    /// Takes the program's [checked](check_answer) answer to the [question](Self::question).
    ///
    /// # Panics
    /// If it was not asked.
    fn answer(&mut self, _: AskOutput) {
        panic!("only an algorithm with a question gets an answer");
    }

    /// Moves on with the evaluations of all candidates of the batch, in order, or without a barrier with that of the first
    /// one only. After a batch that the end of the search has cut off, the algorithm may only be looked at: a longer search
    /// continues from the state before that batch.
    ///
    /// # Panics
    /// If the number of evaluations is wrong.
    fn tell(&mut self, evaluations: &[Evaluation]);

    /// The evaluated candidates that the algorithm keeps: a population or an archive. Algorithms that learn a distribution
    /// keep none.
    fn population(&self) -> &[Individual] {
        &[]
    }

    /// The mean of the distribution that the algorithm learns, if it learns one. It is a candidate that was never evaluated.
    fn mean(&self) -> Option<Candidate> {
        None
    }

    /// The number of candidates whose evaluations the algorithm has received.
    fn births(&self) -> u64;

    /// The state, as the algorithm's message.
    fn save(&self) -> Vec<u8>;
}

/// How a candidate is made from its parents.
#[derive(Clone, Debug)]
pub struct Descent {
    /// The places of mother and father in [`Algorithm::population`].
    pub parents: [usize; 2],
    /// The candidate after crossover, before mutation.
    pub crossed: Candidate,
}

impl Descent {
    /// The descent of the candidate that `make` makes; `None` if it has no parents. `make` tells parents and crossed candidate
    /// to the function that it gets; if a child is made again because it exists already, the last ones count.
    fn of(make: impl FnOnce(&mut dyn FnMut([usize; 2], &Candidate)) -> Candidate) -> Option<Self> {
        let mut descent = None;
        make(&mut |parents, crossed| descent = Some(Self { parents, crossed: crossed.clone() }));
        descent
    }
}

/// What is searched, and for how long: what every algorithm is made from, besides its settings.
#[derive(Clone, Debug)]
pub struct Search {
    /// The search space. It is [valid](Genome::valid).
    pub genome: Genome,
    /// The most evaluations of the whole search.
    pub evaluations: u64,
    /// The candidates with which the search begins; if there are fewer than a first population needs, random ones follow.
    pub start: Vec<Candidate>,
    /// The replica's stream; the streams of candidates are derived from it.
    pub stream: Stream,
}

impl Search {
    /// The random numbers of a candidate, by its number in the whole search.
    #[must_use]
    pub fn birth(&self, number: u64) -> Generator {
        self.stream.text("birth").word(number).rng()
    }

    /// A candidate of the first population, by its number in the whole search.
    #[must_use]
    pub fn first(&self, number: u64) -> Candidate {
        match self.start.get(number as usize) {
            Some(candidate) => candidate.clone(),
            None => self.genome.random(&mut self.birth(number)),
        }
    }

    /// The size of the next batch: `size`, or the evaluations left after `births` if they are fewer.
    #[must_use]
    pub fn batch(&self, size: usize, births: u64) -> usize {
        self.evaluations.saturating_sub(births).min(size as u64) as usize
    }

    /// Checks the number of births of a saved state.
    ///
    /// # Errors
    /// If the search has fewer evaluations.
    pub fn check_births(&self, births: u64) -> Result<(), String> {
        match births <= self.evaluations {
            true => Ok(()),
            false => Err(format!("the state has {births} evaluations, but the search has only {}", self.evaluations)),
        }
    }
}

/// Upper bounds of what an algorithm needs, for planning a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Most {
    /// Candidates of a batch.
    pub candidates: u64,
    /// Batches of a search.
    pub batches: u64,
    /// Candidates that the algorithm keeps.
    pub kept: u64,
    /// Bytes of a saved state.
    pub state_bytes: u64,
}

/// Checks that a number is within its range; the error names the setting.
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

/// Checks that all genes that are not fixed are real or whole numbers, and that there is one.
fn has_numbers(genome: &Genome) -> Result<(), Wrong> {
    let other =
        |part: &&GenomePart| part.fixed().is_none() && !matches!(part.of, Type::Real { .. } | Type::Integer { .. });
    if let Some(part) = genome.parts.iter().find(other) {
        let (name, of) = (&part.name, part.of.name());
        let sentence = format!("this algorithm searches real and whole numbers, but part \"{name}\" has type {of}");
        return Err(Wrong::new("algorithm", sentence));
    }
    match genome.free_genes() {
        0 => Err(Wrong::new("algorithm", "this algorithm needs a gene that is not fixed")),
        _ => Ok(()),
    }
}
