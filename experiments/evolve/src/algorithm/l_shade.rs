//! L-SHADE: differential evolution that learns its rates from the children that were better than their parents, in a
//! population that shrinks until the end of the search.
//!
//! R. Tanabe and A. S. Fukunaga, "Improving the Search Performance of SHADE Using Linear Population Size Reduction", CEC 2014;
//! the mutation current-to-pbest/1 with an archive is from J. Zhang and A. C. Sanderson, "JADE: Adaptive Differential
//! Evolution with Optional External Archive", IEEE Transactions on Evolutionary Computation 13, 2009.

use std::{cmp::Ordering, ops::Range};

use evoxo_common::rng::{Generator, below, normal_pair, unit};
use prost::Message as _;

use super::{Algorithm, Given, Individual, Listed, Most, Noise, Part, Search, Wrong, has_numbers, individual, within};
use crate::{
    evaluation::Evaluation,
    genome::{Candidate, Genes, Genome, Type},
    messages::LShadeState,
};

/// The smallest population, at the end.
const LEAST: usize = 4;
/// The entries of the memory of rates.
const MEMORY: usize = 6;
/// The share of the population among which a child's guide is drawn, but at least two.
const GUIDES: f64 = 0.11;
/// Replaced parents that are kept, as a multiple of the population.
const ARCHIVE: f64 = 2.6;
/// The spread of rates around an entry of the memory.
const SPREAD: f64 = 0.1;

/// The settings of L-SHADE.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Individuals at the beginning, 4 to 100,000.
    pub population: usize,
    /// Whether parents are evaluated again together with their children: under noise, a lucky value would otherwise survive
    /// for ever.
    pub reevaluate: bool,
}

impl Settings {
    /// The population for a search of this many genes that are not fixed: 18 for each gene, as in the paper, which gives
    /// each gene 10,000 evaluations. With fewer evaluations it is smaller, so that there are about 80 generations for each
    /// gene: of 5 to 100 times as few individuals as evaluations for each gene, 40 was best or close to it with 10 to 30 genes
    /// and 1,000 to 10,000 evaluations for each (Rosenbrock's, Rastrigin's and the ellipsoid function).
    fn usual(genes: usize, evaluations: u64) -> usize {
        let short = evaluations / (40 * genes.max(1) as u64);
        (18 * genes as u64).min(short).clamp(20, 100_000) as usize
    }

    fn check(&self, genome: &Genome) -> Result<(), Wrong> {
        within("population", "the population", self.population, LEAST..=100_000)?;
        has_numbers(genome)
    }
}

/// L-SHADE.
#[derive(Clone, Debug)]
pub struct LShade {
    settings: Settings,
    search: Search,
    births: u64,
    /// Each individual stays in its place until its child replaces it.
    population: Vec<Individual>,
    /// Parents that were replaced by better children.
    archive: Vec<Candidate>,
    memory: [Rates; MEMORY],
    /// The entry of the memory that changes next.
    next: usize,
    /// The places of the population, best first.
    order: Vec<usize>,
}

/// The rates of a child, or an entry of the memory.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rates {
    /// The length of steps.
    step: f64,
    /// The share of genes that step. In the memory `None` from the time when only children with one such gene were better.
    crossover: Option<f64>,
}

/// A child before its evaluation.
struct Child {
    candidate: Candidate,
    rates: Rates,
}

impl Listed for LShade {
    const NAME: &'static str = "l-shade";
    const DOC: &'static str = "differential evolution that adapts its rates (L-SHADE), for real and whole numbers";
    const PARTS: &'static [Part] = &[];
    const NOISE: Option<Noise> = Some(Noise { common: usize::MAX, draws: 1 });
    const SHRINKS: bool = true;

    type Settings = Settings;

    fn settings(given: &Given<'_>) -> Settings {
        let usual = || Settings::usual(given.genome.free_genes(), given.evaluations);
        Settings { population: given.population.unwrap_or_else(usual), reevaluate: given.noisy }
    }

    fn check(given: &Given<'_>) -> Result<(), Wrong> {
        Self::settings(given).check(&given.genome)
    }

    fn most(given: &Given<'_>) -> Most {
        let Settings { population, reevaluate } = Self::settings(given);
        let kept = archive_size(population) + population;
        Most {
            candidates: population as u64 * (1 + u64::from(reevaluate)),
            // At worst, all but the first batch are as small as the last one.
            batches: 1 + given.evaluations.div_ceil(LEAST as u64),
            kept: population as u64,
            state_bytes: individual::bytes_max(&given.genome, kept, given.numbers) + 32 * MEMORY as u64,
        }
    }

    fn start(settings: &Settings, search: Search) -> Result<Self, String> {
        settings.check(&search.genome)?;
        Ok(Self {
            settings: settings.clone(),
            search,
            births: 0,
            population: Vec::new(),
            archive: Vec::new(),
            memory: [Rates { step: 0.5, crossover: Some(0.5) }; MEMORY],
            next: 0,
            order: Vec::new(),
        })
    }

    fn restore(settings: &Settings, search: Search, state: &[u8]) -> Result<Self, String> {
        let state = LShadeState::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?;
        let fresh = Self::start(settings, search)?;
        let (search, births) = (&fresh.search, state.births);
        search.check_births(births)?;
        let population = Individual::read_all(&search.genome, &state.individuals)?;
        let candidate = |message| search.genome.candidate(message);
        let archive: Vec<Candidate> = state.archive.iter().map(candidate).collect::<Result<_, String>>()?;
        let is_rate = |rate: &f64| (0.0..=1.0).contains(rate);
        let lists = [&state.steps, &state.crossovers].map(|rates| rates.len() == MEMORY);
        let rates = state.steps.iter().all(|step| is_rate(step) && *step > 0.0)
            && state.crossovers.iter().all(|rate| is_rate(rate) || *rate == NEVER);
        let next = state.next as usize;
        let is_whole = births == 0 || births >= search.evaluations.min(settings.population as u64);
        let sizes = is_whole
            && population.len() == fresh.population_after(births)
            && archive.len() <= archive_size(population.len());
        if lists != [true; 2] || !rates || !sizes || next >= MEMORY {
            return Err("the state does not fit the settings".into());
        }
        let entry = |place: usize| Rates {
            step: state.steps[place],
            crossover: Some(state.crossovers[place]).filter(|rate| *rate != NEVER),
        };
        let memory = std::array::from_fn(entry);
        let order = ranked(&population);
        Ok(Self { births, population, archive, memory, next, order, ..fresh })
    }
}

/// Stands in saved states for a rate of crossover that is `None`.
const NEVER: f64 = -1.0;

/// The most replaced parents that are kept beside a population of this size.
fn archive_size(population: usize) -> usize {
    (ARCHIVE * population as f64).round() as usize
}

/// The places of a population, best first.
fn ranked(population: &[Individual]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..population.len()).collect();
    order.sort_by(|one, two| population[*one].evaluation.compare(&population[*two].evaluation));
    order
}

impl LShade {
    /// The size of the population after this many evaluations: it falls linearly from the first generation to the last.
    fn population_after(&self, births: u64) -> usize {
        let first = self.settings.population;
        match births {
            0 => 0,
            _ if births <= first as u64 => births as usize,
            _ => {
                let done = births as f64 / self.search.evaluations as f64;
                ((first as f64 - (first - LEAST) as f64 * done).round() as usize).max(LEAST)
            }
        }
    }

    /// The rates of a child, around a random entry of the memory: its crossover is normal, and its step is Cauchy and longer
    /// than 0.
    fn rates(&self, rng: &mut Generator) -> Rates {
        let entry = self.memory[below(rng, MEMORY as u64) as usize];
        let crossover = entry.crossover.map(|mean| (mean + SPREAD * normal_pair(rng)[0]).clamp(0.0, 1.0));
        let step = loop {
            // The ratio of two normal numbers is a Cauchy number.
            let [one, other] = normal_pair(rng);
            let step = entry.step + SPREAD * (one / other);
            if step > 0.0 {
                break step.min(1.0);
            }
        };
        Rates { step, crossover: Some(crossover.unwrap_or(0.0)) }
    }

    /// The child of the individual at this place, with this number in the whole search.
    fn child(&self, place: usize, number: u64) -> Child {
        let (rng, size) = (&mut self.search.birth(number), self.population.len());
        let rates = self.rates(rng);
        let guides = ((GUIDES * size as f64).round() as usize).clamp(2, size);
        let guide = &self.population[self.order[below(rng, guides as u64) as usize]].candidate;
        // Two others, different from each other and from the parent: one of the population, one of it or the archive.
        let one = skip(below(rng, size as u64 - 1) as usize, &[place]);
        let taken = [place.min(one), place.max(one)];
        let two = skip(below(rng, (size + self.archive.len()) as u64 - 2) as usize, &taken);
        let one = &self.population[one].candidate;
        let two = self.population.get(two).map_or_else(|| &self.archive[two - size], |other| &other.candidate);
        let parent = &self.population[place].candidate;

        let mut candidate = parent.clone();
        let certain = below(rng, self.search.genome.free_genes() as u64) as usize;
        let mut gene = 0;
        let crossover = rates.crossover.expect("a child has a rate");
        let mut steps = |rng: &mut Generator| {
            gene += 1;
            // Both are drawn for every gene, so that the draws do not depend on each other.
            let drawn = unit(rng) < crossover;
            drawn || gene - 1 == certain
        };
        for (index, part) in self.search.genome.parts.iter().enumerate() {
            if part.fixed().is_some() {
                continue;
            }
            let stepped = |own: f64, guide: f64, one: f64, two: f64, low: f64, high: f64| {
                let to = own + rates.step * (guide - own) + rates.step * (one - two);
                // Beyond a bound, half of the way to it.
                if to < low {
                    f64::midpoint(low, own)
                } else if to > high {
                    f64::midpoint(high, own)
                } else {
                    to
                }
            };
            match (part.of, &mut candidate.parts[index], &guide.parts[index], &one.parts[index], &two.parts[index]) {
                (
                    Type::Real { low, high },
                    Genes::Real(own),
                    Genes::Real(guide),
                    Genes::Real(one),
                    Genes::Real(two),
                ) => {
                    for (at, own) in own.iter_mut().enumerate() {
                        if steps(rng) {
                            *own = stepped(*own, guide[at], one[at], two[at], low, high);
                        }
                    }
                }
                (
                    Type::Integer { low, high },
                    Genes::Integer(own),
                    Genes::Integer(guide),
                    Genes::Integer(one),
                    Genes::Integer(two),
                ) => {
                    for (at, own) in own.iter_mut().enumerate() {
                        if steps(rng) {
                            let [from, guide, one, two] = [*own, guide[at], one[at], two[at]].map(|gene| gene as f64);
                            let to = stepped(from, guide, one, two, low as f64, high as f64);
                            *own = (to.round() as i64).clamp(low, high);
                        }
                    }
                }
                _ => panic!("a part has genes of a type that was refused at the beginning"),
            }
        }
        Child { candidate, rates }
    }

    /// The candidates of the next batch that are evaluated again, before the children.
    fn again(&self) -> usize {
        if self.settings.reevaluate { self.population.len() } else { 0 }
    }

    /// Children replace parents that are not better. The rates of better ones are remembered.
    fn select(&mut self, evaluations: &[Evaluation]) {
        let first = self.births + self.again() as u64;
        let children: Vec<Child> =
            (0..evaluations.len()).map(|place| self.child(place, first + place as u64)).collect();
        let mut better = Vec::new();
        for ((place, child), evaluation) in children.into_iter().enumerate().zip(evaluations) {
            let parent = &mut self.population[place];
            let order = evaluation.compare(&parent.evaluation);
            if order == Ordering::Greater {
                continue;
            }
            if order == Ordering::Less {
                better.push((child.rates, gain(&parent.evaluation, evaluation)));
                let rng = &mut self.search.stream.text("archive").word(first + place as u64).rng();
                keep(&mut self.archive, archive_size(self.order.len()), parent.candidate.clone(), rng);
            }
            *parent = Individual { candidate: child.candidate, evaluation: evaluation.clone() };
        }
        self.remember(&better);
    }

    /// Replaces the next entry of the memory by weighted means of these rates, each of which comes with its gain.
    fn remember(&mut self, better: &[(Rates, Gain)]) {
        if better.is_empty() {
            return;
        }
        let weights = weights(better.iter().map(|(_, gain)| *gain));
        let crossover = |rates: &Rates| rates.crossover.unwrap_or(0.0);
        let mean = |rate: &dyn Fn(&Rates) -> f64| lehmer(better.iter().map(|(rates, _)| rate(rates)).zip(&weights));
        let entry = &mut self.memory[self.next];
        let is_over = entry.crossover.is_none() || better.iter().all(|(rates, _)| crossover(rates) == 0.0);
        entry.crossover = if is_over { None } else { mean(&crossover) };
        entry.step = mean(&|rates| rates.step).expect("steps are longer than 0");
        self.next = (self.next + 1) % MEMORY;
    }

    /// Removes the worst until the population has the size that it has after this many evaluations, and as many of the
    /// archive as no longer fit, at random.
    fn shrink(&mut self) {
        let (size, order) = (self.population_after(self.births), ranked(&self.population));
        let mut gone: Vec<usize> = order.into_iter().skip(size).collect();
        gone.sort_unstable();
        gone.iter().rev().for_each(|place| drop(self.population.remove(*place)));
        self.order = ranked(&self.population);
        let rng = &mut self.search.stream.text("forgotten").word(self.births).rng();
        while self.archive.len() > archive_size(size) {
            let place = below(rng, self.archive.len() as u64) as usize;
            self.archive.swap_remove(place);
        }
    }
}

/// The number at this place among those that are not taken, which are sorted.
fn skip(mut number: usize, taken: &[usize]) -> usize {
    taken.iter().for_each(|taken| number += usize::from(number >= *taken));
    number
}

/// Adds a candidate to the archive. In a full one it replaces a random one.
fn keep(archive: &mut Vec<Candidate>, most: usize, candidate: Candidate, rng: &mut Generator) {
    match archive.len() < most {
        true => archive.push(candidate),
        false => archive[below(rng, most as u64) as usize] = candidate,
    }
}

/// By how much a child is better than its parent. Gains of different kinds cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Gain {
    /// Both satisfy the constraints: the difference of the objective.
    Objective(f64),
    /// Neither does: the difference of the violation.
    Violation(f64),
    /// Only the child does, or only the child has values.
    Kind,
}

fn gain(parent: &Evaluation, child: &Evaluation) -> Gain {
    match (parent.failed, parent.feasible(), child.feasible()) {
        (false, true, true) => Gain::Objective(parent.objective(0) - child.objective(0)),
        (false, false, false) => Gain::Violation(parent.violation() - child.violation()),
        _ => Gain::Kind,
    }
}

/// The weights of better children, with a sum of 1: each kind of gain has the share of its children, and within a kind they
/// are in proportion to the gains.
fn weights(gains: impl Iterator<Item = Gain>) -> Vec<f64> {
    // An infinite gain, from a parent that was infinitely bad, counts as the greatest finite one.
    let amount = |gain: Gain| match gain {
        Gain::Objective(by) => (0, by.min(f64::MAX)),
        Gain::Violation(by) => (1, by.min(f64::MAX)),
        Gain::Kind => (2, 1.0),
    };
    let all: Vec<(usize, f64)> = gains.map(amount).collect();
    let of_kind = |kind: usize| all.iter().filter(move |(other, _)| *other == kind).map(|(_, by)| *by);
    // Divided by the greatest first, so that no sum is infinite.
    let greatest = [0, 1, 2].map(|kind| of_kind(kind).fold(0.0, f64::max));
    let sums = [0, 1, 2].map(|kind| of_kind(kind).map(|by| by / greatest[kind]).sum::<f64>());
    let count = [0, 1, 2].map(|kind| of_kind(kind).count() as f64 / all.len() as f64);
    all.iter().map(|(kind, by)| count[*kind] * (by / greatest[*kind]) / sums[*kind]).collect()
}

/// The weighted Lehmer mean, which prefers greater numbers; `None` if all numbers are 0.
fn lehmer<'a>(weighted: impl Iterator<Item = (f64, &'a f64)>) -> Option<f64> {
    let add = |(squares, sum): (f64, f64), (number, weight): (f64, &f64)| {
        (squares + weight * number * number, sum + weight * number)
    };
    let (squares, sum) = weighted.fold((0.0, 0.0), add);
    (sum > 0.0).then(|| (squares / sum).min(1.0))
}

impl Algorithm for LShade {
    fn size(&self) -> usize {
        self.search.batch(self.whole(), self.births)
    }

    fn whole(&self) -> usize {
        if self.births == 0 { self.settings.population } else { self.again() + self.population.len() }
    }

    fn ask(&self, range: Range<usize>) -> Vec<Candidate> {
        assert!(range.end <= self.size(), "candidates {range:?} of {}", self.size());
        let candidate = |index: usize| {
            let number = self.births + index as u64;
            match index.checked_sub(self.again()) {
                _ if self.births == 0 => self.search.first(number),
                None => self.population[index].candidate.clone(),
                Some(place) => self.child(place, number).candidate,
            }
        };
        range.map(candidate).collect()
    }

    fn tell(&mut self, evaluations: &[Evaluation]) {
        assert_eq!(evaluations.len(), self.size(), "there is one evaluation for each candidate");
        if self.births == 0 {
            self.population = individual::evaluated(self.ask(0..evaluations.len()), evaluations).collect();
        } else {
            let (again, children) = evaluations.split_at(self.again().min(evaluations.len()));
            // The order by the earlier values, from which children are made, stays until all are selected.
            self.population.iter_mut().zip(again).for_each(|(parent, now)| parent.evaluation = now.clone());
            self.select(children);
        }
        self.births += evaluations.len() as u64;
        self.shrink();
    }

    fn population(&self) -> &[Individual] {
        &self.population
    }

    fn births(&self) -> u64 {
        self.births
    }

    fn save(&self) -> Vec<u8> {
        LShadeState {
            births: self.births,
            individuals: self.population.iter().map(Individual::message).collect(),
            archive: self.archive.iter().map(Candidate::message).collect(),
            steps: self.memory.iter().map(|rates| rates.step).collect(),
            crossovers: self.memory.iter().map(|rates| rates.crossover.unwrap_or(NEVER)).collect(),
            next: self.next as u32,
        }
        .encode_to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        algorithm::tests::{evaluate, minimise, search},
        genome::Part as GenomePart,
        problem,
    };

    fn started(name: &str, length: usize, evaluations: u64, settings: &Settings) -> LShade {
        let problem = problem::find(name).unwrap();
        LShade::start(settings, search(problem, length, evaluations)).unwrap()
    }

    /// The child by the formulas of the paper, gene by gene, from the same random numbers.
    #[test]
    fn a_child_is_made_as_in_the_paper() {
        let problem = problem::find("rosenbrock").unwrap();
        let mut search = started("rosenbrock", 5, 2000, &Settings { population: 40, reevaluate: false });
        let reals = |candidate: &Candidate| match &candidate.parts[0] {
            Genes::Real(genes) => genes.clone(),
            other => panic!("{other:?}"),
        };
        let mut of_archive = 0;
        while search.size() > 0 {
            for place in 0..if search.births == 0 { 0 } else { search.size() } {
                let number = search.births + place as u64;
                let rng = &mut search.search.birth(number);
                let rates = search.rates(rng);
                let size = search.population.len();
                let best = search.order[..(0.11 * size as f64).round().max(2.0) as usize].to_vec();
                let guide = best[below(rng, best.len() as u64) as usize];
                let others: Vec<usize> = (0..size).filter(|other| *other != place).collect();
                let one = others[below(rng, others.len() as u64) as usize];
                let both = (0..size + search.archive.len()).filter(|other| ![place, one].contains(other));
                let both: Vec<usize> = both.collect();
                let two = both[below(rng, both.len() as u64) as usize];
                of_archive += usize::from(two >= size);
                let certain = below(rng, 5) as usize;
                let genes = |at: usize| reals(&search.population[at].candidate);
                let two = if two < size { genes(two) } else { reals(&search.archive[two - size]) };
                let (own, guide, one) = (genes(place), genes(guide), genes(one));
                let expected = (0..5).map(|gene| {
                    if unit(rng) >= rates.crossover.unwrap() && gene != certain {
                        return own[gene];
                    }
                    let step = rates.step;
                    match own[gene] + step * (guide[gene] - own[gene]) + step * (one[gene] - two[gene]) {
                        to if to < -5.0 => f64::midpoint(-5.0, own[gene]),
                        to if to > 10.0 => f64::midpoint(10.0, own[gene]),
                        to => to,
                    }
                });
                let expected: Vec<f64> = expected.collect();
                assert_eq!(reals(&search.child(place, number).candidate), expected);
            }
            let evaluations = evaluate(&search, problem);
            search.tell(&evaluations);
        }
        assert!(of_archive > 100, "{of_archive}");
    }

    #[test]
    fn the_population_shrinks_linearly_and_ends_with_four() {
        let problem = problem::find("sphere").unwrap();
        let mut search = started("sphere", 6, 5000, &Settings { population: 108, reevaluate: false });
        let mut sizes = Vec::new();
        while search.size() > 0 {
            let evaluations = evaluate(&search, problem);
            search.tell(&evaluations);
            sizes.push((search.births, search.population.len()));
            assert!(search.archive.len() <= archive_size(search.population.len()));
        }
        assert_eq!(sizes[0], (108, 108));
        assert!(sizes.is_sorted_by(|one, two| one.1 >= two.1));
        let middle = sizes.iter().find(|(births, _)| *births >= 2500).unwrap();
        assert!((55..=56).contains(&middle.1), "{middle:?}");
        assert_eq!(sizes.last().unwrap(), &(5000, 4));
    }

    /// The values of the worked example: two children with gains 1 and 3.
    #[test]
    fn rates_of_better_children_are_remembered_by_their_gains() {
        let mut search = started("sphere", 3, 1000, &Settings { population: 20, reevaluate: false });
        let better =
            |step: f64, crossover: f64, by: f64| (Rates { step, crossover: Some(crossover) }, Gain::Objective(by));
        search.remember(&[better(0.2, 0.4, 1.0), better(0.6, 0.8, 3.0)]);
        // (0.25 * 0.04 + 0.75 * 0.36) / (0.25 * 0.2 + 0.75 * 0.6) and the same for 0.4 and 0.8.
        let [step, crossover] = [0.28 / 0.5, 0.52 / 0.7];
        let entry = search.memory[0];
        assert!((entry.step - step).abs() < 1e-12 && (entry.crossover.unwrap() - crossover).abs() < 1e-12, "{entry:?}");
        assert_eq!((search.next, search.memory[1]), (1, Rates { step: 0.5, crossover: Some(0.5) }));
        // If only children with one stepping gene are better, the entry stays there.
        search.next = 0;
        search.remember(&[better(0.2, 0.0, 1.0)]);
        search.next = 0;
        search.remember(&[better(0.2, 0.7, 1.0)]);
        assert_eq!(search.memory[0].crossover, None);
        search.remember(&[]);
        assert_eq!(search.next, 1, "nothing is learnt without better children");
    }

    #[test]
    fn gains_of_different_kinds_share_the_weight() {
        let all = [Gain::Objective(1.0), Gain::Objective(3.0), Gain::Violation(f64::INFINITY), Gain::Kind];
        assert_eq!(weights(all.into_iter()), [0.125, 0.375, 0.25, 0.25]);
        let infinite = weights([f64::INFINITY, 1.0].map(Gain::Objective).into_iter());
        assert!(infinite[0] == 1.0 && infinite[1] < 1e-300, "{infinite:?}");
        let of = |objective: f64, broken: f64| Evaluation {
            objectives: vec![objective],
            constraints: vec![broken],
            ..Evaluation::default()
        };
        assert_eq!(gain(&of(5.0, 0.0), &of(2.0, -1.0)), Gain::Objective(3.0));
        assert_eq!(gain(&of(1.0, 4.0), &of(2.0, 1.0)), Gain::Violation(3.0));
        assert_eq!(gain(&of(1.0, 4.0), &of(2.0, 0.0)), Gain::Kind);
        assert_eq!(gain(&Evaluation { failed: true, ..Evaluation::default() }, &of(2.0, 0.0)), Gain::Kind);
    }

    /// Under noise the parents come first, and are measured again with their children.
    #[test]
    fn parents_are_measured_again_under_noise() {
        let problem = problem::find("sphere").unwrap();
        let mut search = started("sphere", 3, 300, &Settings { population: 10, reevaluate: true });
        let evaluations = evaluate(&search, problem);
        search.tell(&evaluations);
        let parents: Vec<Candidate> = search.population.iter().map(|one| one.candidate.clone()).collect();
        assert_eq!((search.size(), search.ask(0..parents.len())), (20, parents));
        let all = evaluate(&search, problem);
        // With worse values than before, all parents give way to their children.
        let worse = Evaluation { objectives: vec![f64::MAX], ..Evaluation::default() };
        let (children, before) = (search.ask(10..20), search.births);
        search.tell(&[vec![worse; 10], all[10..].to_vec()].concat());
        assert_eq!(search.births, before + 20);
        assert!(search.population.iter().all(|one| children.contains(&one.candidate)));
    }

    #[test]
    fn valleys_and_many_local_optima_are_searched() {
        let best = |name: &str, length: usize, evaluations: u64| {
            let problem = problem::find(name).unwrap();
            let usual = Settings { population: Settings::usual(length, evaluations), reevaluate: false };
            minimise(&mut started(name, length, evaluations, &usual), problem).objective(0)
        };
        let found = [("rosenbrock", 10), ("rastrigin", 10), ("ellipsoid", 15)].map(|(name, n)| best(name, n, 50_000));
        assert!(found.iter().all(|best| *best < 1e-3), "{found:?}");
    }

    #[test]
    fn whole_numbers_stay_whole_and_other_genes_are_refused() {
        let whole = |low: i64, high: i64| GenomePart { name: "n".into(), length: 4, of: Type::Integer { low, high } };
        let mut search = search(problem::find("sphere").unwrap(), 2, 600);
        search.genome.parts.push(whole(-3, 9));
        search.genome.parts.push(whole(5, 5));
        let mut started = LShade::start(&Settings { population: 20, reevaluate: false }, search).unwrap();
        let cost = |candidate: &Candidate| match (&candidate.parts[0], &candidate.parts[1]) {
            (Genes::Real(reals), Genes::Integer(whole)) => {
                reals.iter().map(|gene| gene * gene).sum::<f64>()
                    + whole.iter().map(|gene| (gene - 7).pow(2)).sum::<i64>() as f64
            }
            other => panic!("{other:?}"),
        };
        let mut best = f64::INFINITY;
        while started.size() > 0 {
            let candidates = started.ask(0..started.size());
            assert!(candidates.iter().all(|one| started.search.genome.check(one) == Ok(())));
            let evaluations: Vec<Evaluation> = candidates
                .iter()
                .map(|one| Evaluation { objectives: vec![cost(one)], ..Evaluation::default() })
                .collect();
            best = evaluations.iter().fold(best, |best, one| best.min(one.objective(0)));
            started.tell(&evaluations);
        }
        assert!(best < 1e-3, "{best}");

        let refused = |name: &str, settings: &Settings| {
            let problem = problem::find(name).unwrap();
            LShade::start(settings, super::super::tests::search(problem, 10, 100)).unwrap_err()
        };
        let usual = Settings { population: 20, reevaluate: false };
        let sentences = [refused("onemax", &usual), refused("sphere", &Settings { population: 3, ..usual })];
        assert_eq!(
            sentences,
            [
                "this algorithm searches real and whole numbers, but part \"bits\" has type bits",
                "the population is 3, but it must be from 4 to 100000",
            ]
        );
    }
}
