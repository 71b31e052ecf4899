//! NSGA-II: a genetic algorithm for several objectives, with constraints.
//!
//! K. Deb, A. Pratap, S. Agarwal and T. Meyarivan, "A Fast and Elitist Multiobjective Genetic Algorithm: NSGA-II", IEEE
//! Transactions on Evolutionary Computation 6(2), 2002.

use std::{cmp::Ordering, ops::Range};

use super::{
    Algorithm, Begin, Descent, Given, Leaves, Listed, Most, Part, Search, Steady, Wrong,
    individual::{self, Individual},
    mating::Mating,
    operators::{OPERATORS, variation},
    steady, within,
};
use crate::{
    evaluation::Evaluation,
    genome::Candidate,
    pareto::{crowding, fronts},
    variation::Variation,
};

/// The most candidates whose fronts are kept. Sorting takes quadratic time and memory.
pub(super) const FRONT_MAX: usize = 2000;

/// The settings of NSGA-II.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Individuals, which is also the number of children of a batch, 4 to 2,000.
    pub population: usize,
    /// How children are made.
    pub variation: Variation,
}

impl Default for Settings {
    /// 100 individuals, as in the paper's section V.
    fn default() -> Self {
        Self { population: 100, variation: Variation::default() }
    }
}

impl Settings {
    /// Checks that the settings make sense.
    ///
    /// # Errors
    /// The setting that is wrong, and why.
    pub fn check(&self) -> Result<(), Wrong> {
        within("population", "the population", self.population, 4..=FRONT_MAX)?;
        self.variation.check()
    }
}

/// NSGA-II.
#[derive(Clone, Debug)]
pub struct Nsga2 {
    settings: Settings,
    search: Search,
    births: u64,
    population: Vec<Individual>,
    /// The standing of each individual.
    standing: Vec<Standing>,
}

/// An individual's front and crowding distance, by which it is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Standing {
    front: usize,
    crowding: f64,
}

impl Standing {
    /// The crowded-comparison operator (section III.B.2 of the paper).
    fn compare(&self, other: &Self) -> Ordering {
        self.front.cmp(&other.front).then(other.crowding.total_cmp(&self.crowding))
    }
}

/// The front of each individual, and the number of fronts. A copy of an earlier one comes after all fronts: it adds nothing to
/// a front, but in a sparse region both copies would count as isolated.
pub(super) fn ranks(population: &[Individual]) -> (Vec<usize>, usize) {
    let is_copy = |place: usize| population[..place].iter().any(|other| other.candidate == population[place].candidate);
    let first: Vec<usize> = (0..population.len()).filter(|place| !is_copy(*place)).collect();
    let fronts = fronts(&first.iter().map(|place| population[*place].evaluation.clone()).collect::<Vec<_>>());
    let last = fronts.iter().max().map_or(0, |front| front + 1);
    let mut ranks = vec![last; population.len()];
    first.iter().zip(fronts).for_each(|(place, front)| ranks[*place] = front);
    (ranks, last)
}

/// The standing of each individual among all of these.
fn standing(population: &[Individual]) -> Vec<Standing> {
    let (ranks, last) = ranks(population);
    let mut standing: Vec<Standing> = ranks.iter().map(|front| Standing { front: *front, crowding: 0.0 }).collect();
    for front in 0..last {
        let members: Vec<usize> = (0..ranks.len()).filter(|index| ranks[*index] == front).collect();
        let distances = crowding(&members.iter().map(|index| &population[*index].evaluation).collect::<Vec<_>>());
        members.iter().zip(distances).for_each(|(index, distance)| standing[*index].crowding = distance);
    }
    standing
}

/// The best of these: whole fronts, then the least crowded of the first front that does not fit.
pub(super) fn best(population: &[Individual], count: usize) -> Vec<Individual> {
    let places = standing(population);
    let mut order: Vec<usize> = (0..population.len()).collect();
    order.sort_by(|one, two| places[*one].compare(&places[*two]));
    order.into_iter().take(count).map(|index| population[index].clone()).collect()
}

impl Listed for Nsga2 {
    const NAME: &'static str = "nsga2";
    const DOC: &'static str = "NSGA-II, for several objectives";
    const PARTS: &'static [Part] = &[Part::of(&OPERATORS)];
    const OBJECTIVES_MAX: usize = usize::MAX;
    const STEADY: Option<Begin<dyn Steady>> = Some(steady::<Self>);
    const HAS_PARENTS: bool = true;

    type Settings = Settings;

    fn settings(given: &Given<'_>) -> Settings {
        let population = given.population.unwrap_or(Settings::default().population);
        Settings { population, variation: variation(given) }
    }

    fn check(given: &Given<'_>) -> Result<(), Wrong> {
        Self::settings(given).check()
    }

    fn most(given: &Given<'_>) -> Most {
        let size = Self::settings(given).population;
        let (kept, state_bytes) = (size as u64, individual::bytes_max(&given.genome, size, given.numbers));
        Most { candidates: kept, batches: given.evaluations.div_ceil(kept), kept, state_bytes }
    }

    fn leaves(_: usize) -> Leaves {
        Leaves::Front
    }

    fn start(settings: &Settings, search: Search) -> Result<Self, String> {
        settings.check()?;
        Ok(Self { settings: settings.clone(), search, births: 0, population: Vec::new(), standing: Vec::new() })
    }

    fn restore(settings: &Settings, search: Search, state: &[u8]) -> Result<Self, String> {
        let (births, population) = individual::restore(&search, settings.population, state)?;
        let standing = standing(&population);
        Ok(Self { births, population, standing, ..Self::start(settings, search)? })
    }
}

impl Nsga2 {
    fn mating(&self) -> Mating<'_> {
        let Self { settings, search, births, population, standing } = self;
        let compare = |one: usize, other: usize| standing[one].compare(&standing[other]);
        Mating { variation: &settings.variation, search, births: *births, population, compare: Box::new(compare) }
    }

    /// Keeps the [best](best) of parents and children. Their crowding distances are then computed among themselves; in the
    /// paper, among the whole front.
    fn keep_best(&mut self) {
        self.population = best(&self.population, self.settings.population);
        self.standing = standing(&self.population);
    }
}

impl Algorithm for Nsga2 {
    fn size(&self) -> usize {
        self.search.batch(self.whole(), self.births)
    }

    fn whole(&self) -> usize {
        self.settings.population
    }

    fn ask(&self, range: Range<usize>) -> Vec<Candidate> {
        assert!(range.end <= self.size(), "candidates {range:?} of {}", self.size());
        self.mating().ask(range)
    }

    fn descents(&self) -> Vec<Option<Descent>> {
        self.mating().descents(self.size())
    }

    fn tell(&mut self, evaluations: &[Evaluation]) {
        assert_eq!(evaluations.len(), self.size(), "there is one evaluation for each candidate");
        let children = self.ask(0..evaluations.len());
        self.population.extend(individual::evaluated(children, evaluations));
        self.keep_best();
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

/// As many random candidates as the population has places. Then each child comes from two binary tournaments, and the worst
/// of parents and child is dropped: the steady-state NSGA-II (J. J. Durillo, A. J. Nebro, F. Luna and E. Alba, "On the Effect
/// of the Steady-State Selection Scheme in Multi-Objective Genetic Algorithms", EMO 2009).
impl Steady for Nsga2 {
    fn made(&self, number: u64, crossed: &mut dyn FnMut([usize; 2], &Candidate)) -> Candidate {
        self.mating().made(self.settings.population, number, crossed)
    }

    fn take(&mut self, individual: Individual) {
        self.births += 1;
        self.population.push(individual);
        self.keep_best();
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

    /// A front of whole numbers, where most children are already known.
    #[test]
    fn a_front_has_no_duplicates() {
        let problem = problem::find("zdt5").unwrap();
        let mut nsga2 = Nsga2::start(&Settings::default(), search(problem, 35, 4_000)).unwrap();
        while nsga2.size() > 0 {
            let evaluations = evaluate(&nsga2, problem);
            nsga2.tell(&evaluations);
            let first = || {
                (0..100)
                    .filter(|place| nsga2.standing[*place].front == 0)
                    .map(|place| &nsga2.population[place].candidate)
            };
            let copies =
                first().enumerate().filter(|(place, one)| first().take(*place).any(|other| other == *one)).count();
            assert_eq!((copies, nsga2.population.len()), (0, 100));
        }
    }

    /// The hypervolume of the last population.
    fn volume(name: &str, evaluations: u64) -> f64 {
        let problem = problem::find(name).unwrap();
        let mut nsga2 = Nsga2::start(&Settings::default(), search(problem, problem.length, evaluations)).unwrap();
        while nsga2.size() > 0 {
            let evaluations = evaluate(&nsga2, problem);
            nsga2.tell(&evaluations);
        }
        let points: Vec<&[f64]> = nsga2.population.iter().map(|one| &one.evaluation.objectives[..]).collect();
        hypervolume(&points, problem.reference)
    }

    /// After 25,000 evaluations pymoo 0.6.2 has 0.8696 to 0.8699, 0.5363 to 0.5364 and 1.3273 to 1.3277. With eight other
    /// seeds ours had 0.8693 to 0.8700, 0.5362 to 0.5366 and 1.3270 to 1.3279 (and once 1.2445, where a piece of the front
    /// was lost).
    #[test]
    fn fronts_are_as_good_as_pymoos() {
        let volumes = ["zdt1", "zdt2", "zdt3"].map(|name| volume(name, 25_000));
        insta::assert_snapshot!(format!("{volumes:.5?}"));
        assert!(volumes[0] > 0.8692 && volumes[1] > 0.536 && volumes[2] > 1.3268, "{volumes:?}");
    }

    #[test]
    fn fronts_of_harder_problems_are_reached() {
        let volumes = ["zdt4", "zdt6", "dtlz2"].map(|name| volume(name, 25_000));
        insta::assert_snapshot!(format!("{volumes:.5?}"));
        // The best possible values are 0.8767, 0.5079 and 0.8074. With three objectives, crowding spreads candidates badly.
        assert!(volumes[0] > 0.83 && volumes[1] > 0.48 && volumes[2] > 0.68, "{volumes:?}");
    }

    #[test]
    fn no_candidate_is_replaced_by_one_that_it_dominates() {
        let problem = problem::find("zdt3").unwrap();
        let settings = Settings { population: 30, ..Settings::default() };
        let mut nsga2 = Nsga2::start(&settings, search(problem, 6, 600)).unwrap();
        while nsga2.size() > 0 {
            let before: Vec<Evaluation> = nsga2.population.iter().map(|one| one.evaluation.clone()).collect();
            let children = evaluate(&nsga2, problem);
            nsga2.tell(&children);
            let now: Vec<Evaluation> = nsga2.population.iter().map(|one| one.evaluation.clone()).collect();
            let gone: Vec<&Evaluation> = before.iter().chain(&children).filter(|one| !now.contains(one)).collect();
            assert_eq!(now.len(), 30);
            assert!(!now.iter().any(|stays| gone.iter().any(|gone| dominates(gone, stays))));
        }
    }

    #[test]
    fn one_objective_with_constraints_is_solved() {
        let problem = problem::find("g06").unwrap();
        let mut nsga2 = Nsga2::start(&Settings::default(), search(problem, 2, 10_000)).unwrap();
        while nsga2.size() > 0 {
            let evaluations = evaluate(&nsga2, problem);
            nsga2.tell(&evaluations);
        }
        assert!(nsga2.population.iter().all(|one| one.evaluation.feasible()));
        let best = nsga2.population.iter().map(|one| one.evaluation.objective(0)).fold(f64::INFINITY, f64::min);
        assert!(best < -6500.0, "{best}");
    }
}
