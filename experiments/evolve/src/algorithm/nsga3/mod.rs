//! NSGA-III: a genetic algorithm for many objectives. Reference directions, not distances between neighbours, spread its front.
//!
//! K. Deb and H. Jain, "An Evolutionary Many-Objective Optimization Algorithm Using Reference-Point-Based Nondominated Sorting
//! Approach, Part I: Solving Problems With Box Constraints", IEEE Transactions on Evolutionary Computation 18(4), 2014; with
//! constraints as in H. Jain and K. Deb, "Part II", in the same issue.

mod directions;
mod scale;
#[cfg(test)]
mod tests;

use std::ops::Range;

use evoxo_common::rng::below;
use prost::Message as _;

use super::{
    Algorithm, Begin, Descent, Given, Leaves, Listed, Most, Part, Search, Steady, Wrong,
    individual::{self, Individual},
    mating::{Mating, feasible_first},
    nsga2::{FRONT_MAX, ranks},
    operators::{OPERATORS, variation},
    steady, within,
};
use crate::{
    evaluation::Evaluation,
    genome::{Candidate, Genome, Type},
    messages::Nsga3State,
    variation::Variation,
};
use directions::directions;
use scale::Scale;

/// The settings of NSGA-III.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The number of objectives, at least 2.
    pub objectives: usize,
    /// Individuals, which is also the number of children of a batch, 4 to 2,000, and at least one for each objective. There are
    /// as many reference directions as can be spread evenly, but not more than individuals.
    pub population: usize,
    /// How children are made.
    pub variation: Variation,
}

/// These operators, with children nearer to one of the parents. With many objectives two parents are far apart, and a mixture
/// of both is good for neither direction (Deb and Jain 2014, section IV.F).
fn near(variation: Variation) -> Variation {
    Variation { stays_near: true, ..variation }
}

impl Settings {
    /// The settings for this many objectives, with the defaults of experiment files. The population is that of the paper for
    /// three, five, eight and fifteen objectives: a multiple of four with a place for each direction.
    #[must_use]
    pub fn of(objectives: usize) -> Self {
        let most = if objectives > 3 { 212.max(objectives) } else { 100 };
        let count = if objectives > 1 { directions(objectives, most).len() } else { most };
        Self { objectives, population: count.next_multiple_of(4), variation: near(Variation::default()) }
    }

    /// Checks that the settings make sense.
    ///
    /// # Errors
    /// The setting that is wrong, and why.
    pub fn check(&self) -> Result<(), Wrong> {
        if self.objectives < 2 {
            let sentence = "the problem has one objective, but nsga3 searches a front of several: choose ga or cma-es";
            return Err(Wrong::new("algorithm", sentence));
        }
        within("population", "the population", self.population, self.objectives.max(4)..=FRONT_MAX)?;
        self.variation.check()
    }
}

/// NSGA-III.
#[derive(Clone, Debug)]
pub struct Nsga3 {
    settings: Settings,
    search: Search,
    births: u64,
    population: Vec<Individual>,
    scale: Scale,
    directions: Vec<Vec<f64>>,
}

/// A point's place among the directions.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Niche {
    direction: usize,
    /// The square of the distance to the direction.
    distance: f64,
}

impl Listed for Nsga3 {
    const NAME: &'static str = "nsga3";
    const DOC: &'static str = "NSGA-III, for three objectives or more";
    const PARTS: &'static [Part] = &[Part::of(&OPERATORS)];
    const OBJECTIVES_MAX: usize = usize::MAX;
    const STEADY: Option<Begin<dyn Steady>> = Some(steady::<Self>);
    const HAS_PARENTS: bool = true;

    type Settings = Settings;

    fn settings(given: &Given<'_>) -> Settings {
        let usual = Settings::of(given.objectives);
        Settings {
            population: given.population.unwrap_or(usual.population),
            variation: near(variation(given)),
            ..usual
        }
    }

    fn check(given: &Given<'_>) -> Result<(), Wrong> {
        Self::settings(given).check()
    }

    fn most(given: &Given<'_>) -> Most {
        let Settings { objectives, population, .. } = Self::settings(given);
        let (kept, numbers) = (population as u64, objectives as u64 * (objectives as u64 + 1));
        let state_bytes = individual::bytes_max(&given.genome, population, given.numbers) + 8 * numbers + 32;
        Most { candidates: kept, batches: given.evaluations.div_ceil(kept), kept, state_bytes }
    }

    fn leaves(_: usize) -> Leaves {
        Leaves::Front
    }

    /// Table II of the paper.
    fn defaults(genome: &Genome) -> &'static [(&'static str, &'static str)] {
        let has_reals = genome.parts.iter().any(|part| matches!(part.of, Type::Real { .. }));
        if has_reals { &[("crossover", "1"), ("crossover_eta", "30")] } else { &[] }
    }

    fn start(settings: &Settings, search: Search) -> Result<Self, String> {
        settings.check()?;
        let directions = directions(settings.objectives, settings.population);
        let settings = settings.clone();
        Ok(Self { settings, search, births: 0, population: Vec::new(), scale: Scale::default(), directions })
    }

    fn restore(settings: &Settings, search: Search, state: &[u8]) -> Result<Self, String> {
        let Nsga3State { population, ideal, extremes } =
            Nsga3State::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?;
        let (births, population) = individual::restore(&search, settings.population, &population)?;
        let objectives = settings.objectives;
        let is_whole = ideal.is_empty() && extremes.is_empty()
            || ideal.len() == objectives && extremes.len() == objectives * objectives;
        if !is_whole || ideal.iter().chain(&extremes).any(|number| !number.is_finite()) {
            return Err(format!("the state does not have an ideal point and {objectives} extreme points"));
        }
        let scale = Scale { ideal, extremes: extremes.chunks(objectives.max(1)).map(<[f64]>::to_vec).collect() };
        Ok(Self { births, population, scale, ..Self::start(settings, search)? })
    }
}

impl Nsga3 {
    /// Feasible parents are equally good (Jain and Deb 2014, section III.C): selection is the work of the directions.
    fn mating(&self) -> Mating<'_> {
        let Self { settings, search, births, population, .. } = self;
        let compare = Box::new(feasible_first(population));
        Mating { variation: &settings.variation, search, births: *births, population, compare }
    }

    /// Keeps whole fronts of parents and children, and of the first front that does not fit, those that spread the population
    /// over the directions. Of a front that is not feasible, and of copies, the first ones stay.
    fn keep_best(&mut self) {
        let count = self.settings.population;
        if self.population.len() <= count {
            return;
        }
        let (ranks, fronts) = ranks(&self.population);
        let mut order: Vec<usize> = (0..ranks.len()).collect();
        order.sort_by_key(|place| ranks[*place]);
        let last = ranks[order[count - 1]];
        let [begin, end] = [last, last + 1].map(|rank| order.partition_point(|place| ranks[*place] < rank));
        if last < fronts && end > count && self.population[order[begin]].evaluation.feasible() {
            order.truncate(end);
            let first = order.partition_point(|place| ranks[*place] == 0);
            let chosen: Vec<usize> = self.spread(&order, first, begin).into_iter().map(|place| order[place]).collect();
            order.splice(begin.., chosen);
        }
        self.population = order.into_iter().take(count).map(|place| self.population[place].clone()).collect();
    }

    /// Chooses among the feasible individuals in these places as many as there is room for, from number `begin` on. Those before
    /// `first` are the first front.
    fn spread(&mut self, places: &[usize], first: usize, begin: usize) -> Vec<usize> {
        let point = |place: &usize| {
            let evaluation = &self.population[*place].evaluation;
            (0..self.settings.objectives).map(|index| evaluation.objective(index)).collect::<Vec<f64>>()
        };
        let points: Vec<Vec<f64>> = places.iter().map(point).collect();
        let is_finite = |point: &&[f64]| point.iter().all(|number| number.is_finite());
        let finite = |count: usize| points[..count].iter().map(Vec::as_slice).filter(is_finite).collect::<Vec<_>>();
        let (front, all) = (finite(first), finite(points.len()));
        self.scale.follow(&front);
        let widths = self.scale.widths(&front, &all);
        let niches: Vec<Niche> = points.iter().map(|point| self.niche(&self.scale.shares(point, &widths))).collect();
        self.choose(&niches, begin)
    }

    /// The direction nearest to a point; for infinite points the first one, infinitely far away.
    fn niche(&self, point: &[f64]) -> Niche {
        let mut nearest = Niche { direction: 0, distance: f64::INFINITY };
        for (number, direction) in self.directions.iter().enumerate() {
            let along: f64 = point.iter().zip(direction).map(|(value, part)| value * part).sum();
            let square = |(value, part): (&f64, &f64)| (value - along * part) * (value - along * part);
            let distance: f64 = point.iter().zip(direction).map(square).sum();
            if distance < nearest.distance {
                nearest = Niche { direction: number, distance };
            }
        }
        nearest
    }

    /// Fills the population from those with number `begin` and later, each time for a direction with the fewest members so far.
    /// The first member of a direction is the one nearest to it; later ones are random.
    fn choose(&self, niches: &[Niche], begin: usize) -> Vec<usize> {
        let mut rng = self.search.stream.text("niches").word(self.births).rng();
        let mut draw = |count: usize| below(&mut rng, count as u64) as usize;
        let mut members = vec![0_usize; self.directions.len()];
        niches[..begin].iter().for_each(|niche| members[niche.direction] += 1);
        let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); self.directions.len()];
        (begin..niches.len()).for_each(|number| waiting[niches[number].direction].push(number));
        let mut open: Vec<usize> = (0..waiting.len()).filter(|direction| !waiting[*direction].is_empty()).collect();
        let mut chosen = Vec::new();
        while begin + chosen.len() < self.settings.population {
            let fewest = open.iter().map(|direction| members[*direction]).min();
            let fewest = fewest.expect("the front has more individuals than there is room for");
            let least: Vec<usize> = open.iter().copied().filter(|direction| members[*direction] == fewest).collect();
            let direction = least[draw(least.len())];
            let own = &mut waiting[direction];
            let nearer = |best: usize, place: usize| match niches[own[place]].distance < niches[own[best]].distance {
                true => place,
                false => best,
            };
            let place = if fewest == 0 { (1..own.len()).fold(0, nearer) } else { draw(own.len()) };
            chosen.push(own.remove(place));
            if own.is_empty() {
                open.retain(|other| *other != direction);
            }
            members[direction] += 1;
        }
        chosen
    }
}

impl Algorithm for Nsga3 {
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
        self.births += evaluations.len() as u64;
        self.keep_best();
    }

    fn population(&self) -> &[Individual] {
        &self.population
    }

    fn births(&self) -> u64 {
        self.births
    }

    fn save(&self) -> Vec<u8> {
        Nsga3State {
            population: individual::save(self.births, &self.population).into(),
            ideal: self.scale.ideal.clone(),
            extremes: self.scale.extremes.concat(),
        }
        .encode_to_vec()
    }
}

/// As [for NSGA-II](super::Nsga2): each child competes with the whole population for its place.
impl Steady for Nsga3 {
    fn made(&self, number: u64, crossed: &mut dyn FnMut([usize; 2], &Candidate)) -> Candidate {
        self.mating().made(self.settings.population, number, crossed)
    }

    fn take(&mut self, individual: Individual) {
        self.births += 1;
        self.population.push(individual);
        self.keep_best();
    }
}
