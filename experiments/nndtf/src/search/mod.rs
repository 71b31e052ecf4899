//! The searches of `nndtf`, each as a pair of pure functions: `ask` returns the chromosomes to evaluate, and `tell` takes
//! their fitness and advances.
//!
//! The searches do not know where evaluation happens, nor how many rounds one task covers. Both ways of farming the work
//! therefore lead to the same state.

mod adaptation;
mod improved;
mod strategy;
mod traditional;

use super::{
    messages,
    network::{self, Bounds},
    settings::{Algorithm, Joins, Parents, Settings},
};
use evoxo_common::{
    evolve::select,
    rng::{Generator, Stream},
};
use strategy::Steps;

/// Rows of a history.
pub const ROWS: u64 = 100;

/// Chromosomes to evaluate.
#[derive(Clone, Debug)]
pub struct Candidates {
    /// The chromosomes, one after another.
    pub genes: Vec<f32>,
    /// For the evolution strategy: the random steps that gave these chromosomes.
    steps: Option<Steps>,
}

impl From<Vec<f32>> for Candidates {
    fn from(genes: Vec<f32>) -> Self {
        Self { genes, steps: None }
    }
}

/// A search for the genes of a network.
#[derive(Clone, Debug)]
pub struct Search {
    /// The length of a chromosome.
    genes: usize,
    bounds: Bounds,
    settings: Settings,
    iterations: u64,
    stream: Stream,
}

impl Search {
    /// The search that these settings describe, with this replica's stream.
    #[must_use]
    pub fn new(settings: &Settings, stream: Stream) -> Self {
        Self {
            genes: settings.architecture().genes(),
            bounds: settings.bounds(),
            iterations: settings.search_iterations(),
            settings: settings.clone(),
            stream,
        }
    }

    /// The algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.settings.algorithm
    }

    /// The replica's stream.
    #[must_use]
    pub const fn stream(&self) -> Stream {
        self.stream
    }

    /// Checks that this search can have this state.
    ///
    /// # Errors
    /// A message that names the mismatch.
    pub fn check(&self, state: &messages::State) -> Result<(), String> {
        if state.iteration > self.iterations {
            return Err(format!(
                "the state is of iteration {}, but the search has only {}",
                state.iteration, self.iterations
            ));
        }
        if state.genes.len() != state.sums.len() * self.genes {
            return Err("the number of genes in the state does not fit its chromosomes".into());
        }
        state.genes.chunks(self.genes).try_for_each(|genes| network::check(self.genes, self.bounds, genes))?;
        let fits = match self.settings.algorithm {
            Algorithm::Improved => self.population_fits(state) && state.offspring <= 4 && state.distribution.is_empty(),
            Algorithm::Traditional => {
                self.population_fits(state) && state.offspring == 0 && state.distribution.is_empty()
            }
            Algorithm::CmaEs => state.offspring == 0 && adaptation::fits(self, state),
        };
        if fits { Ok(()) } else { Err("the state does not fit the search's settings".into()) }
    }

    /// Whether the population is complete, or empty as at the very beginning.
    fn population_fits(&self, state: &messages::State) -> bool {
        state.sums.len() == self.settings.population as usize
            || (state.sums.is_empty() && state.iteration == 0 && state.offspring == 0)
    }

    /// Whether all iterations are done.
    #[must_use]
    pub fn finished(&self, state: &messages::State) -> bool {
        state.iteration == self.iterations
    }

    /// The chromosomes to evaluate next.
    ///
    /// # Panics
    /// If the search is finished.
    #[must_use]
    pub fn ask(&self, state: &messages::State) -> Candidates {
        assert!(!self.finished(state), "a finished search has nothing to evaluate");
        let mut asked = match self.settings.algorithm {
            Algorithm::Improved => improved::ask(self, state).into(),
            Algorithm::Traditional => traditional::ask(self, state).into(),
            Algorithm::CmaEs => adaptation::ask(self, state),
        };
        // Because of rounding, a blend of two genes may lie slightly beyond the bounds.
        asked.genes.iter_mut().for_each(|gene| *gene = gene.clamp(self.bounds.0, self.bounds.1));
        asked
    }

    /// Advances with the sums of the chromosomes that [`ask`](Self::ask) returned. Returns a row if the iteration belongs in
    /// the history.
    ///
    /// # Panics
    /// If there is not exactly one sum per chromosome.
    pub fn tell(&self, state: &mut messages::State, asked: Candidates, sums: &[u64]) -> Option<messages::Row> {
        assert_eq!(asked.genes.len(), sums.len() * self.genes, "one sum for each chromosome");
        let before = state.iteration;
        match self.settings.algorithm {
            Algorithm::Improved => improved::tell(self, state, asked.genes, sums),
            Algorithm::Traditional => traditional::tell(self, state, asked.genes, sums),
            Algorithm::CmaEs => adaptation::tell(self, state, asked, sums),
        }
        let every = self.iterations.div_ceil(ROWS);
        let due = state.iteration > before && (state.iteration.is_multiple_of(every) || self.finished(state));
        let of_population = if state.distribution.is_empty() { &state.sums[..] } else { sums };
        due.then(|| messages::Row {
            iteration: state.iteration,
            best: state.sums.iter().max().copied().unwrap_or(0),
            total: of_population.iter().sum(),
        })
    }

    /// The number of chromosomes evaluated up to this iteration, counted between two rounds.
    #[must_use]
    pub fn evaluations(&self, iteration: u64) -> u64 {
        let first = if self.settings.algorithm == Algorithm::CmaEs { 0 } else { self.settings.population.into() };
        first + self.of_an_iteration() * iteration
    }

    /// The number of chromosomes evaluated in an iteration.
    #[must_use]
    pub fn of_an_iteration(&self) -> u64 {
        match self.settings.algorithm {
            Algorithm::Improved => 7 + u64::from(self.settings.joins == Joins::OffspringToo),
            Algorithm::Traditional => traditional::births(&self.settings).into(),
            Algorithm::CmaEs => self.settings.offspring.into(),
        }
    }

    /// The number of sums that a row's total adds up.
    #[must_use]
    pub fn population(&self) -> u32 {
        match self.settings.algorithm {
            Algorithm::Improved | Algorithm::Traditional => self.settings.population,
            Algorithm::CmaEs => self.settings.offspring,
        }
    }

    /// The stream of the current iteration for this purpose.
    fn rng(&self, state: &messages::State, purpose: &str) -> Generator {
        self.stream.word(state.iteration).text(purpose).rng()
    }

    /// A first population.
    fn random(&self, state: &messages::State) -> Vec<f32> {
        let mut rng = self.rng(state, "births");
        (0..self.settings.population as usize * self.genes).map(|_| network::gene(&mut rng, self.bounds)).collect()
    }

    fn chromosome<'a>(&self, genes: &'a [f32], index: usize) -> &'a [f32] {
        &genes[index * self.genes..][..self.genes]
    }
}

/// The fittest chromosome of a state, or the first of several; `genes` is its length. `None` before the first evaluation.
#[must_use]
pub fn champion(genes: usize, state: &messages::State) -> Option<(&[f32], u64)> {
    let best = first_greatest(&state.sums)?;
    Some((&state.genes[best * genes..][..genes], state.sums[best]))
}

/// The index of the greatest sum, or of the first of several.
fn first_greatest(sums: &[u64]) -> Option<usize> {
    (!sums.is_empty()).then(|| select::fittest(sums, 1)[0])
}

/// The index of the least sum, or of the first of several.
fn first_least(sums: &[u64]) -> usize {
    let least = sums.iter().enumerate().min_by_key(|(_, sum)| **sum);
    least.map(|(index, _)| index).expect("a population is never empty")
}

/// The indices of two parents, chosen by the roulette wheel. If the parents must differ, the first one is taken off the wheel
/// before the second spin.
fn parents(rng: &mut Generator, sums: &[u64], may: Parents) -> [usize; 2] {
    let mut fitness: Vec<f64> = sums.iter().map(|sum| *sum as f64).collect();
    let mother = select::roulette(rng, &fitness);
    if may == Parents::Any {
        return [mother, select::roulette(rng, &fitness)];
    }
    fitness.remove(mother);
    let father = select::roulette(rng, &fitness);
    [mother, father + usize::from(father >= mother)]
}

#[cfg(test)]
mod readings;
#[cfg(test)]
mod tests;
