//! SMS-EMOA: a genetic algorithm for two or three objectives. It drops the candidate that adds least to the hypervolume.
//!
//! N. Beume, B. Naujoks and M. Emmerich, "SMS-EMOA: Multiobjective Selection Based on Dominated Hypervolume", European Journal
//! of Operational Research 181(3), 2007.

use std::ops::Range;

use super::{
    Algorithm, Begin, Descent, Given, Leaves, Listed, Most, Part, Search, Steady, Wrong,
    individual::{self, Individual},
    mating::{Mating, feasible_first},
    nsga2::{Nsga2, Settings, ranks},
    operators::OPERATORS,
    steady, within,
};
use crate::{
    evaluation::Evaluation,
    genome::Candidate,
    pareto::{contributions, dominates},
};

/// The most individuals. With three objectives and 500 of them, a child takes some ten milliseconds.
const POPULATION_MAX: usize = 500;

fn check(settings: &Settings) -> Result<(), Wrong> {
    within("population", "the population", settings.population, 4..=POPULATION_MAX)?;
    settings.check()
}

/// SMS-EMOA.
#[derive(Clone, Debug)]
pub struct SmsEmoa {
    settings: Settings,
    search: Search,
    births: u64,
    population: Vec<Individual>,
}

/// How much each member of a front adds to its hypervolume. The reference point is as far behind the worst value of an objective
/// as this is behind the best, so units do not matter and the ends of a front count much. (In the paper it is 1 behind, and the
/// ends of a front with two objectives always stay.) A member with an infinite objective adds less than nothing.
fn added(front: &[&Evaluation]) -> Vec<f64> {
    let objectives = front[0].objectives.len();
    assert!((2..=3).contains(&objectives), "sms-emoa searches with two or three objectives, not {objectives}");
    let point = |member: &&Evaluation| (0..objectives).map(|index| member.objective(index)).collect::<Vec<f64>>();
    let points: Vec<Vec<f64>> = front.iter().map(point).collect();
    let is_finite = |point: &&Vec<f64>| point.iter().all(|value| value.is_finite());
    let finite: Vec<&Vec<f64>> = points.iter().filter(is_finite).collect();
    let range = |index: usize| {
        let values = || finite.iter().map(|point| point[index]);
        [values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max)]
    };
    let ranges: Vec<[f64; 2]> = (0..objectives).map(range).collect();
    // Halves, because the difference of two numbers may be too large for a number.
    let share = |(value, [least, most]): (&f64, &[f64; 2])| {
        let width = most / 2.0 - least / 2.0;
        if width > 0.0 { (value / 2.0 - least / 2.0) / width } else { 0.0 }
    };
    let shares: Vec<Vec<f64>> = finite.iter().map(|point| point.iter().zip(&ranges).map(share).collect()).collect();
    let shares: Vec<&[f64]> = shares.iter().map(Vec::as_slice).collect();
    let mut contributions = contributions(&shares, &vec![2.0; objectives]).into_iter();
    let of = |point: &Vec<f64>| match is_finite(&point) {
        true => contributions.next().expect("each finite point has a contribution"),
        false => -1.0,
    };
    points.iter().map(of).collect()
}

/// The place of the individual that is dropped (algorithms 2 and 3 of the paper). Of a single front, the one that adds least to its
/// hypervolume; otherwise, the one of the last front that most others dominate. Copies are dropped first, and of equals the newest.
fn worst(population: &[Individual]) -> usize {
    let (ranks, fronts) = ranks(population);
    let last = ranks.iter().copied().max().expect("a population is not empty");
    let members: Vec<usize> = (0..ranks.len()).filter(|place| ranks[*place] == last).collect();
    let of = |place: &usize| &population[*place].evaluation;
    let value: Vec<f64> = if last == fronts {
        vec![0.0; members.len()]
    } else if last > 0 || !of(&members[0]).feasible() {
        let dominators =
            |place: &usize| population.iter().filter(|other| dominates(&other.evaluation, of(place))).count();
        members.iter().map(|place| -(dominators(place) as f64)).collect()
    } else {
        added(&members.iter().map(of).collect::<Vec<_>>())
    };
    let least = value.iter().copied().fold(f64::INFINITY, f64::min);
    let newest = value.iter().rposition(|value| *value == least).expect("a front has members");
    members[newest]
}

impl Listed for SmsEmoa {
    const NAME: &'static str = "sms-emoa";
    const DOC: &'static str = "SMS-EMOA, for two or three objectives: the greatest hypervolume";
    const PARTS: &'static [Part] = &[Part::of(&OPERATORS)];
    const OBJECTIVES_MAX: usize = 3;
    const STEADY: Option<Begin<dyn Steady>> = Some(steady::<Self>);
    const HAS_PARENTS: bool = true;

    type Settings = Settings;

    /// Those of NSGA-II, with 100 individuals as in section 4 of the paper.
    fn settings(given: &Given<'_>) -> Settings {
        Nsga2::settings(given)
    }

    fn check(given: &Given<'_>) -> Result<(), Wrong> {
        if given.objectives < 2 {
            let sentence =
                "the problem has one objective, but sms-emoa searches a front of several: choose ga or cma-es";
            return Err(Wrong::new("algorithm", sentence));
        }
        check(&Self::settings(given))
    }

    fn most(given: &Given<'_>) -> Most {
        Nsga2::most(given)
    }

    fn leaves(_: usize) -> Leaves {
        Leaves::Front
    }

    fn start(settings: &Settings, search: Search) -> Result<Self, String> {
        check(settings)?;
        Ok(Self { settings: settings.clone(), search, births: 0, population: Vec::new() })
    }

    fn restore(settings: &Settings, search: Search, state: &[u8]) -> Result<Self, String> {
        let (births, population) = individual::restore(&search, settings.population, state)?;
        let mut counts =
            population.iter().filter(|one| !one.evaluation.failed).map(|one| one.evaluation.objectives.len());
        if let Some(wrong) = counts.find(|count| !(2..=3).contains(count)) {
            return Err(format!("an individual of the state has {wrong} objectives, not two or three"));
        }
        Ok(Self { births, population, ..Self::start(settings, search)? })
    }
}

impl SmsEmoa {
    /// Parents are random, as in the paper; with constraints, the better of two.
    fn mating(&self) -> Mating<'_> {
        let Self { settings, search, births, population } = self;
        let compare = Box::new(feasible_first(population));
        Mating { variation: &settings.variation, search, births: *births, population, compare }
    }
}

impl Algorithm for SmsEmoa {
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

    /// Children enter the population one after another, as in the paper, but the parents of a batch are of the batch before.
    fn tell(&mut self, evaluations: &[Evaluation]) {
        assert_eq!(evaluations.len(), self.size(), "there is one evaluation for each candidate");
        let children = self.ask(0..evaluations.len());
        individual::evaluated(children, evaluations).for_each(|child| self.take(child));
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

/// With a window of 1 this is the paper's algorithm.
impl Steady for SmsEmoa {
    fn made(&self, number: u64, crossed: &mut dyn FnMut([usize; 2], &Candidate)) -> Candidate {
        self.mating().made(self.settings.population, number, crossed)
    }

    fn take(&mut self, individual: Individual) {
        self.births += 1;
        self.population.push(individual);
        if self.population.len() > self.settings.population {
            self.population.remove(worst(&self.population));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        algorithm::tests::{evaluate, search},
        genome::Genes,
        pareto::hypervolume,
        problem,
    };

    fn of(objectives: &[f64]) -> Evaluation {
        Evaluation { objectives: objectives.to_vec(), ..Default::default() }
    }

    /// Individuals with these objectives, and different genes.
    fn population(all: &[&[f64]]) -> Vec<Individual> {
        let individual = |(number, objectives): (usize, &&[f64])| {
            let candidate = Candidate { parts: vec![Genes::Integer(vec![number as i64])] };
            Individual { candidate, evaluation: of(objectives) }
        };
        all.iter().enumerate().map(individual).collect()
    }

    #[test]
    fn who_adds_least_is_dropped() {
        // A staircase: the third adds the smallest rectangle, whatever the unit of an objective.
        for unit in [1.0, 1e9] {
            let all =
                [[0.0, 10.0], [2.0, 5.0], [3.0, 4.5], [6.0, 1.0], [10.0, 0.0]].map(|[one, two]| [one, two * unit]);
            assert_eq!(worst(&population(&all.iter().map(|point| &point[..]).collect::<Vec<_>>())), 2);
        }
        // With several fronts, the one of the last front with most dominators; of equals, the newest.
        assert_eq!(worst(&population(&[&[0.0, 5.0], &[1.0, 1.0], &[1.5, 6.0], &[2.0, 2.0]])), 2);
        assert_eq!(worst(&population(&[&[1.0, 1.0], &[2.0, 3.0], &[3.0, 2.0]])), 2);
        // Infinite objectives, and values that are all equal.
        assert_eq!(worst(&population(&[&[0.0, f64::INFINITY], &[1.0, 2.0], &[2.0, 1.0]])), 0);
        assert_eq!(worst(&population(&[&[1.0, 1.0], &[1.0, 1.0]])), 1);
        assert_eq!(worst(&population(&[&[-1e308, 1e308], &[1e308, 0.0], &[0.0, 1.0], &[9e307, 0.5]])), 3);
        // A copy goes first, even from the first front.
        let mut copies = population(&[&[1.0, 1.0], &[2.0, 2.0], &[1.0, 1.0]]);
        copies[2].candidate = copies[0].candidate.clone();
        assert_eq!(worst(&copies), 2);
        // Less violation is better.
        let mut broken = population(&[&[1.0, 1.0], &[2.0, 2.0]]);
        broken[0].evaluation.constraints = vec![2.0];
        broken[1].evaluation.constraints = vec![1.0];
        assert_eq!(worst(&broken), 0);
    }

    /// The hypervolume of the last population.
    fn volume(name: &str, evaluations: u64) -> f64 {
        let problem = problem::find(name).unwrap();
        let mut algorithm = SmsEmoa::start(&Settings::default(), search(problem, problem.length, evaluations)).unwrap();
        while algorithm.size() > 0 {
            let evaluations = evaluate(&algorithm, problem);
            algorithm.tell(&evaluations);
        }
        let points: Vec<&[f64]> = algorithm.population.iter().map(|one| &one.evaluation.objectives[..]).collect();
        hypervolume(&points, problem.reference)
    }

    /// The best hypervolumes of 100 points are about 0.8722, 0.5389 and 0.76.
    #[test]
    fn fronts_have_more_hypervolume_than_those_of_nsga2() {
        let volumes = [volume("zdt1", 25_000), volume("zdt2", 25_000), volume("dtlz2", 10_000)];
        insta::assert_snapshot!(format!("{volumes:.5?}"));
        assert!(volumes[0] > 0.871 && volumes[1] > 0.537 && volumes[2] > 0.73, "{volumes:?}");
    }
}
