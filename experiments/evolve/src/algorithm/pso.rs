//! Particle swarm optimisation by its standard of 2011: particles move, remember their best positions, and tell a few others.
//!
//! M. Clerc, "Standard Particle Swarm Optimisation", hal-00764996, 2012; M. Zambrano-Bigiarini, M. Clerc and R. Rojas, "Standard
//! Particle Swarm Optimisation 2011 at CEC-2013: A baseline for future PSO improvements", CEC 2013. All particles move at the
//! same time, so that a generation is evaluated at the same time. Distances are shares of the width of the genes' bounds, as
//! Clerc advises for bounds of different widths, and a whole gene is rounded after each move.

use std::{f64::consts::LN_2, ops::Range};

use evoxo_common::{
    rng::{Generator, below, normal_pair, unit},
    settings,
};
use prost::Message as _;

use super::{Algorithm, Given, Individual, Listed, Most, Noise, Part, Search, Wrong, has_numbers, individual, within};
use crate::{
    evaluation::Evaluation,
    genome::{Candidate, Genes, Genome, Part as GenomePart, Type},
    messages::PsoState,
};

settings! {
    /// Particle swarms.
    struct Own, names OwnName, schema OWN {
        /// How many particles each particle informs about its best position, at random and perhaps one of them twice. After a
        /// generation without a better candidate it chooses them again.
        informed: usize = addition whole(1, 1000, "3"),
    }
}

/// The share of its velocity that a particle keeps.
const INERTIA: f64 = 0.5 / LN_2;
/// How far beyond its own best position, and that of its guide, a particle is attracted: this many times the way.
const ATTRACTION: f64 = 0.5 + LN_2;
/// The factor of a velocity that meets a bound.
const REBOUND: f64 = -0.5;

/// The settings of a particle swarm.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The number of particles, 2 to 100,000.
    pub population: usize,
    /// How many particles each one informs, 1 to 1,000.
    pub informed: usize,
    /// Whether best positions are evaluated again in each generation: under noise, a lucky value would otherwise survive for
    /// ever.
    pub reevaluate: bool,
}

impl Default for Settings {
    /// Those of the standard.
    fn default() -> Self {
        Self { population: 40, informed: 3, reevaluate: false }
    }
}

impl Settings {
    fn check(&self, genome: &Genome) -> Result<(), Wrong> {
        within("population", "the number of particles", self.population, 2..=100_000)?;
        within("informed", "the number of informed particles", self.informed, 1..=1000)?;
        has_numbers(genome)
    }
}

/// A particle swarm.
#[derive(Clone, Debug)]
pub struct Pso {
    settings: Settings,
    search: Search,
    births: u64,
    /// The best position so far of each particle.
    bests: Vec<Individual>,
    /// The present position and velocity of each particle.
    flights: Vec<Flight>,
    /// The evaluations after which the particles chose whom they inform.
    linked: u64,
    /// The particle with the best position among those that inform a particle, itself included.
    guides: Vec<usize>,
}

/// Where a particle is, and how it moves.
#[derive(Clone, Debug, PartialEq)]
struct Flight {
    position: Candidate,
    /// For each gene that is not fixed, the way of the last move as a share of the gene's width.
    velocity: Vec<f64>,
}

impl Listed for Pso {
    const NAME: &'static str = "pso";
    const DOC: &'static str = "particle swarm optimisation by its standard of 2011, for real and whole numbers";
    const PARTS: &'static [Part] = &[Part::of(&OWN)];
    const NOISE: Option<Noise> = Some(Noise { common: usize::MAX, draws: 1 });

    type Settings = Settings;

    fn settings(given: &Given<'_>) -> Settings {
        let usual = Settings::default();
        Settings {
            population: given.population.unwrap_or(usual.population),
            informed: Own::of(given.own).informed,
            reevaluate: given.noisy,
        }
    }

    fn check(given: &Given<'_>) -> Result<(), Wrong> {
        Self::settings(given).check(&given.genome)
    }

    fn most(given: &Given<'_>) -> Most {
        let Settings { population, reevaluate, .. } = Self::settings(given);
        let velocities = population as u64 * 8 * given.genome.free_genes() as u64;
        Most {
            candidates: population as u64 * (1 + u64::from(reevaluate)),
            batches: given.evaluations.div_ceil(population as u64),
            kept: population as u64,
            state_bytes: individual::bytes_max(&given.genome, 2 * population, given.numbers) + velocities + 32,
        }
    }

    fn start(settings: &Settings, search: Search) -> Result<Self, String> {
        settings.check(&search.genome)?;
        let settings = settings.clone();
        Ok(Self { settings, search, births: 0, bests: Vec::new(), flights: Vec::new(), linked: 0, guides: Vec::new() })
    }

    fn restore(settings: &Settings, search: Search, state: &[u8]) -> Result<Self, String> {
        let state = PsoState::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?;
        let fresh = Self::start(settings, search)?;
        let (search, births) = (&fresh.search, state.births);
        search.check_births(births)?;
        let bests = Individual::read_all(&search.genome, &state.bests)?;
        let candidate = |message| search.genome.candidate(message);
        let positions: Vec<Candidate> = state.positions.iter().map(candidate).collect::<Result<_, String>>()?;
        let (particles, genes) = (settings.population as u64, search.genome.free_genes());
        let is_whole = births == 0 || births >= search.evaluations.min(particles);
        let sizes = bests.len() as u64 == births.min(particles)
            && positions.len() == bests.len()
            && state.velocities.len() == positions.len() * genes;
        let numbers = state.velocities.iter().all(|velocity| velocity.is_finite()) && state.linked <= births;
        if !is_whole || !sizes || !numbers {
            return Err("the state does not fit the settings".into());
        }
        let velocities = state.velocities.chunks_exact(genes).map(<[f64]>::to_vec);
        let flights = positions.into_iter().zip(velocities).map(|(position, velocity)| Flight { position, velocity });
        let mut restored = Self { births, bests, flights: flights.collect(), linked: state.linked, ..fresh };
        restored.guides = restored.guides();
        Ok(restored)
    }
}

/// A gene that moves.
struct Gene {
    low: f64,
    high: f64,
    is_whole: bool,
}

impl Gene {
    fn width(&self) -> f64 {
        self.high - self.low
    }

    /// A way along the gene as a share of its width. Large bounds that differ may be the same number.
    fn share(&self, way: f64) -> f64 {
        if self.width() > 0.0 { way / self.width() } else { 0.0 }
    }
}

/// The genes that are not fixed.
fn genes(genome: &Genome) -> impl Iterator<Item = Gene> {
    let of_part = |part: &GenomePart| {
        let (low, high, is_whole) = match part.of {
            Type::Real { low, high } => (low, high, false),
            Type::Integer { low, high } => (low as f64, high as f64, true),
            _ => panic!("a part has a type that was refused at the beginning"),
        };
        (0..part.length).map(move |_| Gene { low, high, is_whole })
    };
    genome.parts.iter().filter(|part| part.fixed().is_none()).flat_map(of_part)
}

/// The values of the genes that are not fixed.
fn numbers(genome: &Genome, candidate: &Candidate) -> Vec<f64> {
    let of_part = |(part, genes): (&GenomePart, &Genes)| match genes {
        _ if part.fixed().is_some() => Vec::new(),
        Genes::Real(genes) => genes.clone(),
        Genes::Integer(genes) => genes.iter().map(|gene| *gene as f64).collect(),
        _ => panic!("a part has genes of a type that was refused at the beginning"),
    };
    genome.parts.iter().zip(&candidate.parts).flat_map(of_part).collect()
}

/// The candidate whose genes that are not fixed have these values, which lie within the bounds.
fn candidate(genome: &Genome, numbers: &[f64]) -> Candidate {
    let mut rest = numbers;
    let part = |part: &GenomePart| {
        if let Some(genes) = part.fixed() {
            return genes;
        }
        let (own, others) = rest.split_at(part.length);
        rest = others;
        match part.of {
            Type::Real { .. } => Genes::Real(own.to_vec()),
            // The nearest number to a bound of 64 bits may lie beyond it.
            Type::Integer { low, high } => {
                Genes::Integer(own.iter().map(|gene| (*gene as i64).clamp(low, high)).collect())
            }
            _ => panic!("a part has a type that was refused at the beginning"),
        }
    };
    Candidate { parts: genome.parts.iter().map(part).collect() }
}

/// A vector of this many numbers whose direction is equally likely everywhere, and whose length is uniform up to 1: denser
/// around the centre, as in Clerc's program.
fn within_sphere(rng: &mut Generator, count: usize) -> Vec<f64> {
    let mut normal: Vec<f64> = (0..count.div_ceil(2)).flat_map(|_| normal_pair(rng)).collect();
    normal.truncate(count);
    let length = normal.iter().map(|number| number * number).sum::<f64>().sqrt();
    let to = unit(rng);
    // All numbers are 0 hardly ever, and then this point is as good as any other.
    let scale = if length > 0.0 { to / length } else { 0.0 };
    normal.iter().map(|number| scale * number).collect()
}

impl Pso {
    /// The beginning of this particle: a candidate of the first population, and a velocity that keeps it within the bounds.
    fn begun(&self, number: u64) -> Flight {
        let position = self.search.first(number);
        let rng = &mut self.search.stream.text("velocity").word(number).rng();
        let own = numbers(&self.search.genome, &position);
        let velocity = genes(&self.search.genome).zip(own).map(|(gene, own)| gene.share(gene.low - own) + unit(rng));
        Flight { velocity: velocity.collect(), position }
    }

    /// The next flight of the particle in this place, whose candidate has this number in the whole search.
    fn moved(&self, place: usize, number: u64) -> Flight {
        let (genome, rng) = (&self.search.genome, &mut self.search.birth(number));
        let Flight { position, velocity } = &self.flights[place];
        let (own, best) = (numbers(genome, position), numbers(genome, &self.bests[place].candidate));
        // The way to the centre of the position and the two points that attract it. A particle that is its own guide is attracted
        // by one.
        let guide = self.guides[place];
        let guide = (guide != place).then(|| numbers(genome, &self.bests[guide].candidate));
        let centre: Vec<f64> = genes(genome)
            .enumerate()
            .map(|(index, gene)| {
                let way = |to: f64| ATTRACTION * gene.share(to - own[index]);
                match &guide {
                    Some(guide) => (way(best[index]) + way(guide[index])) / 3.0,
                    None => way(best[index]) / 2.0,
                }
            })
            .collect();
        let radius = centre.iter().map(|way| way * way).sum::<f64>().sqrt();
        let around = within_sphere(rng, own.len());
        let (mut to, mut speeds) = (Vec::new(), Vec::new());
        for (index, gene) in genes(genome).enumerate() {
            let speed = INERTIA * velocity[index] + centre[index] + radius * around[index];
            let place = own[index] + speed * gene.width();
            let place = if gene.is_whole { place.round() } else { place };
            let is_outside = !(gene.low..=gene.high).contains(&place);
            to.push(place.clamp(gene.low, gene.high));
            speeds.push(if is_outside { REBOUND * speed } else { speed });
        }
        Flight { position: candidate(genome, &to), velocity: speeds }
    }

    /// For each particle, the one with the best position among those that inform it. Of equal ones it is the particle itself,
    /// or else the first.
    fn guides(&self) -> Vec<usize> {
        let count = self.bests.len();
        let mut guides: Vec<usize> = (0..count).collect();
        let rng = &mut self.search.stream.text("links").word(self.linked).rng();
        for place in 0..count {
            for _ in 0..self.settings.informed {
                let guide = &mut guides[below(rng, count as u64) as usize];
                if self.bests[place].evaluation.better(&self.bests[*guide].evaluation) {
                    *guide = place;
                }
            }
        }
        guides
    }

    /// The candidates of the next batch that are evaluated again, before the new positions.
    fn again(&self) -> usize {
        if self.settings.reevaluate { self.bests.len() } else { 0 }
    }

    /// The best evaluation of all best positions.
    fn best(&self) -> &Evaluation {
        let all = self.bests.iter().map(|best| &best.evaluation);
        all.min_by(|one, two| one.compare(two)).expect("there are particles after the first batch")
    }

    /// All particles move, and remember positions that are better.
    fn fly(&mut self, evaluations: &[Evaluation]) {
        let first = self.births + self.again() as u64;
        let flights: Vec<Flight> =
            (0..evaluations.len()).map(|place| self.moved(place, first + place as u64)).collect();
        let before = self.best().clone();
        for ((place, flight), evaluation) in flights.into_iter().enumerate().zip(evaluations) {
            if evaluation.better(&self.bests[place].evaluation) {
                self.bests[place] = Individual { candidate: flight.position.clone(), evaluation: evaluation.clone() };
            }
            self.flights[place] = flight;
        }
        if !self.best().better(&before) {
            self.linked = self.births + (self.again() + evaluations.len()) as u64;
        }
    }
}

impl Algorithm for Pso {
    fn size(&self) -> usize {
        self.search.batch(self.whole(), self.births)
    }

    fn whole(&self) -> usize {
        if self.births == 0 { self.settings.population } else { self.again() + self.bests.len() }
    }

    fn ask(&self, range: Range<usize>) -> Vec<Candidate> {
        assert!(range.end <= self.size(), "candidates {range:?} of {}", self.size());
        let candidate = |index: usize| {
            let number = self.births + index as u64;
            match index.checked_sub(self.again()) {
                _ if self.births == 0 => self.search.first(number),
                None => self.bests[index].candidate.clone(),
                Some(place) => self.moved(place, number).position,
            }
        };
        range.map(candidate).collect()
    }

    fn tell(&mut self, evaluations: &[Evaluation]) {
        assert_eq!(evaluations.len(), self.size(), "there is one evaluation for each candidate");
        let count = evaluations.len() as u64;
        if self.births == 0 {
            self.flights = (0..count).map(|number| self.begun(number)).collect();
            let positions = self.flights.iter().map(|flight| flight.position.clone()).collect();
            self.bests = individual::evaluated(positions, evaluations).collect();
            self.linked = count;
        } else {
            let (again, moved) = evaluations.split_at(self.again().min(evaluations.len()));
            // Particles move by the earlier values, which chose their guides.
            self.bests.iter_mut().zip(again).for_each(|(best, now)| best.evaluation = now.clone());
            self.fly(moved);
        }
        self.births += count;
        self.guides = self.guides();
    }

    fn population(&self) -> &[Individual] {
        &self.bests
    }

    fn births(&self) -> u64 {
        self.births
    }

    fn save(&self) -> Vec<u8> {
        PsoState {
            births: self.births,
            bests: self.bests.iter().map(Individual::message).collect(),
            positions: self.flights.iter().map(|flight| flight.position.message()).collect(),
            velocities: self.flights.iter().flat_map(|flight| flight.velocity.clone()).collect(),
            linked: self.linked,
        }
        .encode_to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        algorithm::tests::{evaluate, minimise, search},
        problem,
    };

    fn started(name: &str, length: usize, evaluations: u64, settings: &Settings) -> Pso {
        let problem = problem::find(name).unwrap();
        Pso::start(settings, search(problem, length, evaluations)).unwrap()
    }

    fn reals(candidate: &Candidate) -> Vec<f64> {
        match &candidate.parts[0] {
            Genes::Real(genes) => genes.clone(),
            other => panic!("{other:?}"),
        }
    }

    /// Clerc's pseudocode, gene by gene, from the same random numbers: positions and velocities in genes, from -5 to 10.
    fn moved_by_the_paper(swarm: &Pso, place: usize, number: u64) -> (Vec<f64>, Vec<f64>) {
        const W: f64 = 0.721_347_520_444_481_7;
        const C: f64 = 1.193_147_180_559_945_3;
        let Flight { position, velocity } = &swarm.flights[place];
        let x = reals(position);
        let v: Vec<f64> = velocity.iter().map(|share| 15.0 * share).collect();
        let p = reals(&swarm.bests[place].candidate);
        // The informants of a particle, from the same draws.
        let (count, links) = (swarm.bests.len(), &mut swarm.search.stream.text("links").word(swarm.linked).rng());
        let mut best = place;
        for informant in 0..count {
            for _ in 0..3 {
                let informed = below(links, count as u64) as usize;
                let value = |of: usize| swarm.bests[of].evaluation.objective(0);
                if informed == place && value(informant) < value(best) {
                    best = informant;
                }
            }
        }
        let l = reals(&swarm.bests[best].candidate);
        let each = 0..x.len();
        let g: Vec<f64> = match best == place {
            true => each.clone().map(|d| (x[d] + (x[d] + C * (p[d] - x[d]))) / 2.0).collect(),
            false => {
                each.clone().map(|d| (x[d] + (x[d] + C * (p[d] - x[d])) + (x[d] + C * (l[d] - x[d]))) / 3.0).collect()
            }
        };
        let distance = each.clone().map(|d| (g[d] - x[d]) * (g[d] - x[d])).sum::<f64>().sqrt();
        let point = within_sphere(&mut swarm.search.birth(number), x.len());
        let v: Vec<f64> = each.map(|d| W * v[d] + g[d] + distance * point[d] - x[d]).collect();
        x.iter()
            .zip(v)
            .map(|(x, v)| match x + v {
                to if to < -5.0 => (-5.0, -0.5 * v),
                to if to > 10.0 => (10.0, -0.5 * v),
                to => (to, v),
            })
            .unzip()
    }

    #[test]
    fn particles_move_as_in_the_paper() {
        let problem = problem::find("rosenbrock").unwrap();
        let mut swarm = started("rosenbrock", 5, 3000, &Settings::default());
        let (mut rebounds, mut own_guides) = (0, 0);
        while swarm.size() > 0 {
            for place in 0..if swarm.births == 0 { 0 } else { swarm.size() } {
                let number = swarm.births + place as u64;
                let flight = swarm.moved(place, number);
                let (position, velocity) = moved_by_the_paper(&swarm, place, number);
                let near = |one: f64, two: f64| (one - two).abs() < 1e-12 * (1.0 + one.abs());
                assert!(reals(&flight.position).iter().zip(&position).all(|(one, two)| near(*one, *two)));
                assert!(flight.velocity.iter().zip(&velocity).all(|(one, two)| near(15.0 * one, *two)));
                rebounds += usize::from(position.iter().any(|gene| [-5.0, 10.0].contains(gene)));
                own_guides += usize::from(swarm.guides[place] == place);
            }
            let evaluations = evaluate(&swarm, problem);
            swarm.tell(&evaluations);
        }
        assert!(rebounds > 20 && own_guides > 100, "{rebounds} {own_guides}");
    }

    /// Particles choose whom they inform after the first generation and after each without a better candidate, only.
    #[test]
    fn links_change_when_nothing_better_is_found() {
        let problem = problem::find("sphere").unwrap();
        let mut swarm = started("sphere", 4, 2000, &Settings::default());
        let (mut best, mut linked, mut changes) = (f64::INFINITY, 0, 0);
        while swarm.size() > 0 {
            let evaluations = evaluate(&swarm, problem);
            let now = evaluations.iter().fold(best, |best, one| best.min(one.objective(0)));
            swarm.tell(&evaluations);
            let expected = if linked > 0 && now < best { linked } else { swarm.births };
            assert_eq!(swarm.linked, expected);
            changes += usize::from(expected != linked);
            (best, linked) = (now, expected);
        }
        assert!((5..45).contains(&changes), "{changes}");
    }

    /// A point within the sphere: its distance is uniform, and no direction is preferred.
    #[test]
    fn points_lie_within_the_sphere() {
        let rng = &mut evoxo_common::rng::Stream::root(1).rng();
        let points: Vec<Vec<f64>> = (0..20_000).map(|_| within_sphere(rng, 3)).collect();
        let lengths: Vec<f64> =
            points.iter().map(|point| point.iter().map(|one| one * one).sum::<f64>().sqrt()).collect();
        let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / 20_000.0;
        assert!(lengths.iter().all(|length| *length < 1.0 + 1e-12));
        assert!((mean(&mut lengths.iter().copied()) - 0.5).abs() < 0.01);
        for gene in 0..3 {
            assert!(mean(&mut points.iter().map(|point| point[gene])).abs() < 0.01);
            // A third of the mean square of a uniform length.
            assert!((mean(&mut points.iter().map(|point| point[gene] * point[gene])) - 1.0 / 9.0).abs() < 0.005);
        }
    }

    /// Under noise the best positions come first, and are measured again with the new ones.
    #[test]
    fn best_positions_are_measured_again_under_noise() {
        let problem = problem::find("sphere").unwrap();
        let noisy = Settings { population: 10, reevaluate: true, ..Settings::default() };
        let mut swarm = started("sphere", 3, 300, &noisy);
        let evaluations = evaluate(&swarm, problem);
        swarm.tell(&evaluations);
        let bests: Vec<Candidate> = swarm.bests.iter().map(|best| best.candidate.clone()).collect();
        assert_eq!((swarm.size(), swarm.ask(0..bests.len())), (20, bests));
        let all = evaluate(&swarm, problem);
        // With worse values than before, all best positions give way to the new ones.
        let worse = Evaluation { objectives: vec![f64::MAX], ..Evaluation::default() };
        let (moved, linked) = (swarm.ask(10..20), swarm.linked);
        swarm.tell(&[vec![worse; 10], all[10..].to_vec()].concat());
        assert_eq!((swarm.births, swarm.linked), (30, linked));
        assert!(swarm.bests.iter().all(|best| moved.contains(&best.candidate)));
    }

    #[test]
    fn rotated_valleys_and_spheres_are_searched() {
        let best = |name: &str, length: usize| {
            let problem = problem::find(name).unwrap();
            minimise(&mut started(name, length, 50_000, &Settings::default()), problem).objective(0)
        };
        let found = [("sphere", 10), ("rosenbrock", 5), ("rastrigin", 3)].map(|(name, length)| best(name, length));
        assert!(found[0] < 1e-20 && found[1] < 1.0 && found[2] < 1e-6, "{found:?}");
    }

    #[test]
    fn whole_numbers_stay_whole_and_other_genes_are_refused() {
        let whole = |low: i64, high: i64| GenomePart { name: "n".into(), length: 2, of: Type::Integer { low, high } };
        let mut search = search(problem::find("sphere").unwrap(), 2, 4000);
        search.genome.parts.extend([
            whole(-300, 900),
            whole(5, 5),
            whole(i64::MIN, i64::MAX),
            whole(1 << 53, (1 << 53) + 1),
        ]);
        let mut swarm = Pso::start(&Settings::default(), search).unwrap();
        let cost = |candidate: &Candidate| match (&candidate.parts[0], &candidate.parts[1]) {
            (Genes::Real(reals), Genes::Integer(whole)) => {
                reals.iter().map(|gene| gene * gene).sum::<f64>()
                    + whole.iter().map(|gene| (gene - 7).pow(2)).sum::<i64>() as f64
            }
            other => panic!("{other:?}"),
        };
        let mut best = f64::INFINITY;
        while swarm.size() > 0 {
            let candidates = swarm.ask(0..swarm.size());
            assert!(candidates.iter().all(|one| swarm.search.genome.check(one) == Ok(())));
            let evaluations: Vec<Evaluation> = candidates
                .iter()
                .map(|one| Evaluation { objectives: vec![cost(one)], ..Evaluation::default() })
                .collect();
            best = evaluations.iter().fold(best, |best, one| best.min(one.objective(0)));
            swarm.tell(&evaluations);
        }
        assert!(best < 2.0, "{best}");

        let refused = |name: &str, settings: &Settings| {
            let problem = problem::find(name).unwrap();
            Pso::start(settings, super::super::tests::search(problem, 10, 100)).unwrap_err()
        };
        let usual = Settings::default;
        let sentences = [
            refused("onemax", &usual()),
            refused("sphere", &Settings { population: 1, ..usual() }),
            refused("sphere", &Settings { informed: 0, ..usual() }),
        ];
        assert_eq!(
            sentences,
            [
                "this algorithm searches real and whole numbers, but part \"bits\" has type bits",
                "the number of particles is 1, but it must be from 2 to 100000",
                "the number of informed particles is 0, but it must be from 1 to 1000",
            ]
        );
    }
}
