//! Uniform random search: the baseline that every other algorithm must beat. With several objectives it keeps as many of the
//! best candidates as NSGA-II would with the same population, so that their fronts can be compared.

use std::ops::Range;

use super::{
    Algorithm, Begin, Given, Individual, Leaves, Listed, Most, Part, Search, Steady, Wrong, individual,
    nsga2::{FRONT_MAX, best},
    steady, within,
};
use crate::{evaluation::Evaluation, genome::Candidate};

/// The settings of random search. They do not affect which candidates are drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Candidates of a batch, 1 to 100,000.
    pub batch: usize,
    /// How many of the best candidates it keeps, ordered by fronts: 0 to 2,000.
    pub kept: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { batch: 100, kept: 0 }
    }
}

impl Settings {
    /// Checks that the settings make sense.
    ///
    /// # Errors
    /// The setting that is wrong, and why.
    pub fn check(&self) -> Result<(), Wrong> {
        within("population", "the batch of random search", self.batch, 1..=100_000)?;
        within("population", "the number of candidates that random search keeps", self.kept, 0..=FRONT_MAX)
    }
}

/// Uniform random search.
#[derive(Clone, Debug)]
pub struct Random {
    settings: Settings,
    search: Search,
    births: u64,
    /// The best candidates so far; empty with one objective.
    kept: Vec<Individual>,
}

impl Listed for Random {
    const NAME: &'static str = "random";
    const DOC: &'static str = "uniform random search, the baseline";
    const PARTS: &'static [Part] = &[];
    const OBJECTIVES_MAX: usize = usize::MAX;
    const STEADY: Option<Begin<dyn Steady>> = Some(steady::<Self>);

    type Settings = Settings;

    fn settings(given: &Given<'_>) -> Settings {
        let batch = given.population.unwrap_or(Settings::default().batch);
        Settings { batch, kept: if given.objectives > 1 { batch } else { 0 } }
    }

    fn check(given: &Given<'_>) -> Result<(), Wrong> {
        Self::settings(given).check()
    }

    fn most(given: &Given<'_>) -> Most {
        let Settings { batch, kept } = Self::settings(given);
        let state_bytes = individual::bytes_max(&given.genome, kept, given.numbers);
        let (batch, kept) = (batch as u64, kept as u64);
        Most { candidates: batch, batches: given.evaluations.div_ceil(batch), kept, state_bytes }
    }

    fn leaves(objectives: usize) -> Leaves {
        if objectives > 1 { Leaves::Front } else { Leaves::Nothing }
    }

    fn start(settings: &Settings, search: Search) -> Result<Self, String> {
        settings.check()?;
        Ok(Self { settings: settings.clone(), search, births: 0, kept: Vec::new() })
    }

    fn restore(settings: &Settings, search: Search, state: &[u8]) -> Result<Self, String> {
        let (births, kept) = individual::restore(&search, settings.kept, state)?;
        Ok(Self { births, kept, ..Self::start(settings, search)? })
    }
}

impl Random {
    fn keep(&mut self, individuals: impl Iterator<Item = Individual>) {
        if self.settings.kept > 0 {
            self.kept.extend(individuals);
            self.kept = best(&self.kept, self.settings.kept);
        }
    }
}

impl Algorithm for Random {
    fn size(&self) -> usize {
        self.search.batch(self.whole(), self.births)
    }

    fn whole(&self) -> usize {
        self.settings.batch
    }

    fn ask(&self, range: Range<usize>) -> Vec<Candidate> {
        assert!(range.end <= self.size(), "candidates {range:?} of {}", self.size());
        range.map(|index| self.candidate(self.births + index as u64)).collect()
    }

    fn tell(&mut self, evaluations: &[Evaluation]) {
        assert_eq!(evaluations.len(), self.size(), "there is one evaluation for each candidate");
        let first = self.births;
        self.births += evaluations.len() as u64;
        let candidates: Vec<Candidate> = match self.settings.kept {
            0 => Vec::new(),
            _ => (first..self.births).map(|number| self.candidate(number)).collect(),
        };
        self.keep(individual::evaluated(candidates, evaluations));
    }

    fn population(&self) -> &[Individual] {
        &self.kept
    }

    fn births(&self) -> u64 {
        self.births
    }

    fn save(&self) -> Vec<u8> {
        individual::save(self.births, &self.kept)
    }
}

impl Steady for Random {
    fn made(&self, number: u64, _: &mut dyn FnMut([usize; 2], &Candidate)) -> Candidate {
        self.search.first(number)
    }

    fn take(&mut self, individual: Individual) {
        self.births += 1;
        self.keep(std::iter::once(individual));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        algorithm::tests::{evaluate, search},
        pareto::{dominates, hypervolume},
        problem,
    };

    /// The first front of everything that was drawn is kept. If it is larger than what can be kept, hardly any hypervolume is
    /// lost.
    #[test]
    fn the_front_of_all_candidates_is_kept() {
        let problem = problem::find("zdt1").unwrap();
        for (length, kept) in [(4, 60), (2, 12)] {
            let settings = Settings { batch: 40, kept };
            let mut random = Random::start(&settings, search(problem, length, 1000)).unwrap();
            let mut all: Vec<Evaluation> = Vec::new();
            while random.size() > 0 {
                let evaluations = evaluate(&random, problem);
                random.tell(&evaluations);
                all.extend(evaluations);
            }
            let is_best = |one: &&Evaluation| !all.iter().any(|other| dominates(other, one));
            let front: Vec<&Evaluation> = all.iter().filter(is_best).collect();
            let kept_ones: Vec<&Evaluation> = random.population().iter().map(|one| &one.evaluation).collect();
            assert_eq!(kept_ones.len(), kept);
            if front.len() <= kept {
                assert!(front.iter().all(|one| kept_ones.contains(one)), "{} in the front", front.len());
            }
            let volume = |list: &[&Evaluation]| {
                let points: Vec<&[f64]> = list.iter().map(|one| one.objectives.as_slice()).collect();
                hypervolume(&points, &[11.0, 11.0])
            };
            let (of_kept, of_all) = (volume(&kept_ones), volume(&front));
            assert!(of_kept <= of_all && of_kept > 0.99 * of_all, "{of_kept} of {of_all}");
        }
    }

    #[test]
    fn no_front_is_kept_for_one_objective() {
        let problem = problem::find("sphere").unwrap();
        let mut random = Random::start(&Settings::default(), search(problem, 4, 1000)).unwrap();
        random.tell(&evaluate(&random, problem));
        assert!(random.population().is_empty() && random.save().len() < 4);
    }
}
