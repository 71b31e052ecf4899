//! A genetic algorithm for genomes of every type: tournaments, elitism, and the operators of [`Variation`].
//!
//! D. E. Goldberg, *Genetic Algorithms in Search, Optimization and Machine Learning*, 1989; A. E. Eiben and J. E.
//! Smith, *Introduction to Evolutionary Computing*, 2nd ed. 2015, chapters 3 to 5.

use std::ops::Range;

use evoxo_common::rng::{Generator, below};

use super::{
    Algorithm, Most, Search, Steady, Wrong,
    individual::{self, Individual},
    within,
};
use crate::evolve::{
    evaluation::Evaluation,
    genome::{Candidate, Genome},
    variation::Variation,
};

/// The settings of the genetic algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Individuals, 2 to 100,000.
    pub population: usize,
    /// The number of the best that stay, while the others are replaced by children: 0 to `population` - 1. With 0 or few the
    /// algorithm is generational. With `population` - 1 the worst is replaced by one child: the steady-state algorithm
    /// GENITOR (D. Whitley, ICGA 1989); but then candidates are evaluated one by one.
    pub elite: usize,
    /// Whether the best that stay are evaluated anew in each generation, as children of themselves: under noise a lucky value would
    /// otherwise stay for ever. With a window they are not.
    pub reevaluate: bool,
    /// Individuals of a tournament, drawn with replacement; the best becomes a parent. 1 to 1,000.
    pub tournament: usize,
    /// How children are made.
    pub variation: Variation,
}

impl Default for Settings {
    /// 100 individuals, one of them elite, tournaments of three (as in the tutorials of DEAP; Fortin et al. 2012).
    fn default() -> Self {
        Self { population: 100, elite: 1, reevaluate: false, tournament: 3, variation: Variation::default() }
    }
}

impl Settings {
    /// Checks that the figures make sense.
    ///
    /// # Errors
    /// A sentence.
    pub fn check(&self) -> Result<(), Wrong> {
        within("population", "the population", self.population, 2..=100_000)?;
        within("elite", "the elite", self.elite, 0..=self.population - 1)?;
        within("tournament", "the size of a tournament", self.tournament, 1..=1000)?;
        self.variation.check()
    }

    /// Candidates of a generation after the first.
    #[must_use]
    pub fn generation(&self) -> usize {
        self.population - if self.reevaluate { 0 } else { self.elite }
    }

    /// What it needs at most, where an evaluation has this many numbers (objectives, constraints and measures).
    #[must_use]
    pub fn most(&self, genome: &Genome, numbers: u64) -> Most {
        let state_bytes = individual::bytes_max(genome, self.population, numbers);
        Most { candidates: self.population as u64, state_bytes }
    }
}

/// A genetic algorithm.
#[derive(Clone, Debug)]
pub struct Ga {
    settings: Settings,
    search: Search,
    births: u64,
    /// The children of the last batch, then those that stayed, best first. Of equals the lower place counts as better,
    /// so the younger ones stay.
    population: Vec<Individual>,
}

impl Ga {
    /// A search at its beginning.
    ///
    /// # Errors
    /// A sentence, if a setting makes no sense.
    pub fn start(settings: &Settings, search: Search) -> Result<Self, String> {
        settings.check()?;
        Ok(Self { settings: settings.clone(), search, births: 0, population: Vec::new() })
    }

    /// A search from its saved state.
    ///
    /// # Errors
    /// A sentence, if the bytes are no state of this search.
    pub fn restore(settings: &Settings, search: Search, state: &[u8]) -> Result<Self, String> {
        let (births, population) = individual::restore(&search, settings.population, state)?;
        Ok(Self { births, population, ..Self::start(settings, search)? })
    }

    /// The best of the population, best first.
    pub(super) fn best(&self, count: usize) -> Vec<Individual> {
        let mut best: Vec<&Individual> = self.population.iter().collect();
        best.sort_by(|one, two| one.evaluation.compare(&two.evaluation));
        best.into_iter().take(count).cloned().collect()
    }

    /// These come in place of the worst.
    pub(super) fn admit(&mut self, migrants: Vec<Individual>) {
        let mut worst: Vec<usize> = (0..self.population.len()).collect();
        worst.sort_by(|one, two| self.population[*two].evaluation.compare(&self.population[*one].evaluation));
        for (place, migrant) in worst.into_iter().zip(migrants) {
            self.population[place] = migrant;
        }
    }

    /// A child of two parents, or at the beginning a random candidate.
    fn birth(&self, number: u64) -> Candidate {
        let mut rng = self.search.birth(number);
        if self.population.is_empty() {
            return self.search.genome.random(&mut rng);
        }
        let (mother, father) = (self.parent(&mut rng), self.parent(&mut rng));
        self.settings.variation.child(&self.search.genome, &mut rng, mother, father)
    }

    fn parent(&self, rng: &mut Generator) -> &Candidate {
        let mut draw = || below(rng, self.population.len() as u64) as usize;
        let first = draw();
        let better = |best: usize, other: usize| {
            let order = self.population[other].evaluation.compare(&self.population[best].evaluation);
            if order.then(other.cmp(&best)).is_lt() { other } else { best }
        };
        &self.population[(1..self.settings.tournament).fold(first, |best, _| better(best, draw()))].candidate
    }
}

impl Algorithm for Ga {
    fn size(&self) -> usize {
        let whole = if self.population.is_empty() { self.settings.population } else { self.settings.generation() };
        self.search.batch(whole, self.births)
    }

    fn ask(&self, range: Range<usize>) -> Vec<Candidate> {
        assert!(range.end <= self.size(), "candidates {range:?} of {}", self.size());
        let again = if self.settings.reevaluate { self.best(self.settings.elite) } else { Vec::new() };
        let candidate = |index: usize| match again.get(index) {
            Some(elite) => elite.candidate.clone(),
            None => self.birth(self.births + index as u64),
        };
        range.map(candidate).collect()
    }

    fn tell(&mut self, evaluations: &[Evaluation]) {
        assert_eq!(evaluations.len(), self.size(), "there is one evaluation for each candidate");
        let children = self.ask(0..evaluations.len());
        let individual = |(candidate, evaluation): (Candidate, &Evaluation)| Individual {
            candidate,
            evaluation: evaluation.clone(),
        };
        let mut next: Vec<Individual> = children.into_iter().zip(evaluations).map(individual).collect();
        let mut before = std::mem::take(&mut self.population);
        before.sort_by(|one, two| one.evaluation.compare(&two.evaluation));
        before.truncate(self.settings.population - next.len());
        next.append(&mut before);
        self.population = next;
        self.births += evaluations.len() as u64;
    }

    fn population(&self) -> &[Individual] {
        &self.population
    }

    fn births(&self) -> u64 {
        self.births
    }

    fn save(&self) -> Vec<u8> {
        individual::save(self.births, &self.population)
    }
}

/// As many random candidates as the population has places; then each child replaces the worst, unless it is worse itself.
impl Steady for Ga {
    fn candidate(&self, number: u64) -> Candidate {
        if number < self.settings.population as u64 {
            return self.search.genome.random(&mut self.search.birth(number));
        }
        self.birth(number)
    }

    fn take(&mut self, individual: Individual) {
        self.births += 1;
        // Of equals the younger ones stay, as in a generation.
        self.population.insert(0, individual);
        if self.population.len() > self.settings.population {
            let evaluation = |place: usize| &self.population[place].evaluation;
            let worse = |worst, place| if evaluation(place).compare(evaluation(worst)).is_ge() { place } else { worst };
            self.population.remove((1..self.population.len()).fold(0, worse));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evolve::{
        algorithm::tests::{minimise, search},
        problem,
    };

    fn best(name: &str, length: usize, settings: &Settings, evaluations: u64) -> f64 {
        let problem = problem::find(name).unwrap();
        let mut ga = Ga::start(settings, search(problem, length, evaluations)).unwrap();
        minimise(&mut ga, problem).objective(0)
    }

    /// Mutation and elitism alone need about e n ln n = 1,250 evaluations for 100 bits.
    #[test]
    fn steady_state_solves_onemax() {
        let settings = Settings { population: 10, elite: 9, ..Settings::default() };
        assert_eq!(best("onemax", 100, &settings, 3000), -100.0);
        assert_eq!(best("leadingones", 40, &settings, 6000), -40.0);
    }

    #[test]
    fn it_beats_random_search_everywhere() {
        let settings = Settings::default();
        let got = [("sphere", 10), ("rastrigin", 10), ("tsp", 30), ("g06", 2), ("nk", 20)]
            .map(|(name, length)| best(name, length, &settings, 20_000));
        // Of random trips through 30 cities on a circle the mean length is 38; the best is 6.27.
        let limits = [1e-3, 2.0, 7.5, -6500.0, -0.7];
        assert!(got.iter().zip(&limits).all(|(got, limit)| got < limit), "{got:?}");
    }

    #[test]
    fn elites_stay() {
        let problem = problem::find("rastrigin").unwrap();
        let mut ga = Ga::start(&Settings { elite: 3, ..Settings::default() }, search(problem, 5, 2000)).unwrap();
        let mut before = f64::INFINITY;
        while ga.size() > 0 {
            let evaluations: Vec<Evaluation> =
                ga.ask(0..ga.size()).iter().map(|candidate| problem.minimised(candidate)).collect();
            ga.tell(&evaluations);
            let best = ga.population.iter().map(|one| one.evaluation.objective(0)).fold(f64::INFINITY, f64::min);
            assert!(best <= before && ga.population.len() == 100);
            before = best;
        }
        assert_eq!(ga.births, 2000);
    }
}
