//! A genetic algorithm for genomes of every type: tournaments, elitism, and the operators of [`Variation`].
//!
//! D. E. Goldberg, *Genetic Algorithms in Search, Optimization and Machine Learning*, 1989; A. E. Eiben and J. E. Smith,
//! *Introduction to Evolutionary Computing*, 2nd ed. 2015, chapters 3 to 5.

use std::{collections::BTreeSet, ops::Range, sync::OnceLock};

use evoxo_common::{
    choice,
    ratio::Ratio,
    rng::{Generator, below},
    settings,
    settings::Values,
};

use super::{
    Algorithm, Begin, Descent, Given, Islands, IslandsSettings, Listed, Most, Noise, Part, Search, Steady, Wrong,
    individual::{self, Individual},
    operators::{OPERATORS, variation},
    steady, within,
};
use crate::{
    evaluation::Evaluation,
    genome::{Candidate, Genome, Type},
    variation::{Variation, new_child},
};

choice! {
    /// Which individuals make room for children.
    enum ReplacementName {
        /// restricted, with tournaments of four, if all genes are bits or symbols, the problem has no noise, and elite and
        /// tournament have their defaults; best otherwise
        Auto = "auto",
        /// the elite stay, and children replace the others
        Best = "best",
        /// each child replaces the most similar of 15 individuals drawn at random, unless it is worse (Harik 1995)
        Restricted = "restricted",
    }
}

settings! {
    /// The genetic algorithm.
    struct Own, names OwnName, schema OWN {
        /// Which individuals make room for children.
        replacement: ReplacementName = addition choice("auto"),
        /// How many of the best of a generation survive: a whole number, or a share of the population if below 1. With a
        /// window each child replaces the worst instead. With restricted replacement it only says how many children a
        /// generation has: population - elite.
        elite: Ratio = decimal(0, 99_999, "0.4"),
        /// The number of populations that evolve side by side, each with its share of population and evaluations.
        islands: usize = addition whole(1, 1_000, "1"),
        /// With islands: generations between two migrations.
        migration: usize = addition whole(1, 1_000_000, "10") when islands not ["1"],
        /// With islands: how many of the best migrate from each island to the next, where they replace the worst.
        migrants: usize = addition whole(1, 1_000, "1") when islands not ["1"],
        /// Candidates of a tournament, the best of which becomes a parent.
        tournament: usize = whole(1, 1_000, "2"),
    }
}

fn elsewhere(own: &Values, _: &str) -> Result<(), Wrong> {
    match Own::of(own).islands {
        1 => Ok(()),
        _ => {
            let sentence = "only the genetic algorithm has islands: set algorithm = \"ga\" or islands = 1";
            Err(Wrong::new("islands", sentence))
        }
    }
}

/// The individuals among which a child looks for the most similar one, with restricted replacement. The more there are, the
/// longer different solutions live side by side.
const RIVALS: usize = 15;
/// The individuals of a tournament where restricted replacement is the default: it keeps a population diverse, so that parents
/// may be chosen more greedily.
const TOURNAMENT_OF_RESTRICTED: usize = 4;

/// A batch with at most so many bytes, as messages, is kept from its planning until its evaluations arrive. Making it again
/// would take most of the time of a search whose candidates are evaluated quickly.
const KEPT_BYTES_MAX: u64 = 256 << 10;

/// The settings of the genetic algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Individuals, 2 to 100,000.
    pub population: usize,
    /// The number of the best that survive, while children replace the others: 0 to `population` - 1. An individual with the
    /// genes of another one is passed over for the next best. With few or none the algorithm is generational. With
    /// `population` - 1, one child replaces the worst: the steady-state algorithm GENITOR (D. Whitley, ICGA 1989), but
    /// candidates are then evaluated one by one.
    pub elite: usize,
    /// Whether survivors are evaluated again in each generation, as their own children: under noise, a lucky value would
    /// otherwise survive for ever. With a window they are not evaluated again.
    pub reevaluate: bool,
    /// Whether, instead, each of the `population` - `elite` children replaces the most similar of 15 individuals, drawn at
    /// random with replacement, unless it is worse: restricted tournament replacement (G. R. Harik, "Finding Multimodal
    /// Solutions Using Restricted Tournament Selection", ICGA 1995).
    pub restricted: bool,
    /// Individuals of a tournament, drawn with replacement, the best of which becomes a parent. 1 to 1,000.
    pub tournament: usize,
    /// How children are made.
    pub variation: Variation,
}

impl Default for Settings {
    /// 100 individuals, 40 of them elite, and tournaments of two: the best of the settings that `docs/benchmarks/suite.md`
    /// compares, for genes other than bits and symbols.
    fn default() -> Self {
        Self {
            population: 100,
            elite: 40,
            reevaluate: false,
            restricted: false,
            tournament: 2,
            variation: Variation::default(),
        }
    }
}

impl Settings {
    /// Checks that the settings make sense.
    ///
    /// # Errors
    /// The setting that is wrong, and why.
    pub fn check(&self) -> Result<(), Wrong> {
        within("population", "the population", self.population, 2..=100_000)?;
        within("elite", "the elite", self.elite, 0..=self.population - 1)?;
        within("tournament", "the size of a tournament", self.tournament, 1..=1000)?;
        self.variation.check()
    }

    /// The candidates of a generation after the first.
    #[must_use]
    pub fn generation(&self) -> usize {
        self.population - if self.reevaluate { 0 } else { self.elite }
    }

    /// What the algorithm needs at most, if an evaluation has this many numbers (objectives, constraints and measures).
    #[must_use]
    pub fn most(&self, genome: &Genome, numbers: u64, evaluations: u64) -> Most {
        let population = self.population as u64;
        let batches = 1 + evaluations.saturating_sub(population).div_ceil(self.generation().max(1) as u64);
        let state_bytes = individual::bytes_max(genome, self.population, numbers);
        Most { candidates: population, batches, kept: population, state_bytes }
    }
}

/// A genetic algorithm.
#[derive(Clone, Debug)]
pub struct Ga {
    settings: Settings,
    search: Search,
    births: u64,
    /// The children of the last batch, then the survivors, best first. Among equals the younger ones survive. With restricted
    /// replacement each individual stays in its place until a child takes it.
    population: Vec<Individual>,
    /// The candidates of the next batch, from the first time that some of them were asked for; see [`KEPT_BYTES_MAX`].
    batch: OnceLock<Vec<Candidate>>,
}

impl Listed for Ga {
    const NAME: &'static str = "ga";
    const DOC: &'static str = "a genetic algorithm, for genes of every type";
    const PARTS: &'static [Part] = &[Part { elsewhere, ..Part::of(&OWN) }, Part::of(&OPERATORS)];
    const NOISE: Option<Noise> = Some(Noise { common: usize::MAX, draws: 1 });
    const STEADY: Option<Begin<dyn Steady>> = Some(steady::<Self>);
    const HAS_PARENTS: bool = true;

    type Settings = Settings;

    /// The settings of one island, or of the whole algorithm if there is only one population.
    fn settings(given: &Given<'_>) -> Settings {
        let own = Own::of(given.own);
        let Own { elite, islands, tournament, .. } = own;
        let usual = is_restricted_by_default(given, &own);
        let population = given.population.unwrap_or(Settings::default().population) / islands;
        let (most, least) = (elite.numerator().unsigned_abs(), elite.denominator().unsigned_abs());
        Settings {
            population,
            // Below 1, the setting is a share, of which even a small population keeps one individual.
            elite: (if most < least { (population as u64 * most / least).max(most.min(1)) } else { most / least })
                as usize,
            reevaluate: given.noisy,
            restricted: usual || own.replacement == ReplacementName::Restricted,
            tournament: if usual { TOURNAMENT_OF_RESTRICTED } else { tournament },
            variation: variation(given),
        }
    }

    fn check(given: &Given<'_>) -> Result<(), Wrong> {
        let Own { elite, islands, replacement, .. } = Own::of(given.own);
        if given.noisy && replacement == ReplacementName::Restricted {
            let sentence = "restricted replacement compares values of different generations, which noise makes \
                            meaningless: set replacement = \"best\"";
            return Err(Wrong::new("replacement", sentence));
        }
        if given.window > 0 && islands > 1 {
            return Err(Wrong::new("window", "islands need whole generations: set window = 0 or islands = 1"));
        }
        if elite >= Ratio::ONE && elite.denominator() != 1 {
            let sentence = format!("elite is {}, but it must be a whole number, or a share below 1", elite.to_f64());
            return Err(Wrong::new("elite", sentence));
        }
        match archipelago(given) {
            None => Self::settings(given).check(),
            Some(islands) => islands.check(),
        }
    }

    fn most(given: &Given<'_>) -> Most {
        match archipelago(given) {
            None => Self::settings(given).most(&given.genome, given.numbers, given.evaluations),
            Some(islands) => islands.most(&given.genome, given.numbers, given.evaluations),
        }
    }

    fn start(settings: &Settings, search: Search) -> Result<Self, String> {
        settings.check()?;
        Ok(Self { settings: settings.clone(), search, births: 0, population: Vec::new(), batch: OnceLock::new() })
    }

    fn restore(settings: &Settings, search: Search, state: &[u8]) -> Result<Self, String> {
        let (births, population) = individual::restore(&search, settings.population, state)?;
        Ok(Self { births, population, ..Self::start(settings, search)? })
    }

    fn begin(given: &Given<'_>, search: Search, state: Option<&[u8]>) -> Result<Box<dyn Algorithm>, String> {
        let own = Self::settings(given);
        Ok(match (archipelago(given), state) {
            (Some(islands), None) => Box::new(Islands::start(&islands, &search)?),
            (Some(islands), Some(state)) => Box::new(Islands::restore(&islands, &search, state)?),
            (None, None) => Box::new(Self::start(&own, search)?),
            (None, Some(state)) => Box::new(Self::restore(&own, search, state)?),
        })
    }
}

/// Whether replacement is restricted because the file does not say otherwise. Children of bits and symbols differ from their
/// parents in whole genes, so solutions that are similar share building blocks, and a niche is a combination of them.
fn is_restricted_by_default(given: &Given<'_>, own: &Own) -> bool {
    let usual = Own::of(&OWN.defaults());
    let of_strings = |of: Type| matches!(of, Type::Bits | Type::Symbols { .. });
    own.replacement == ReplacementName::Auto
        && (own.elite, own.tournament) == (usual.elite, usual.tournament)
        && !given.noisy
        && given.genome.parts.iter().filter(|part| part.fixed().is_none()).all(|part| of_strings(part.of))
}

/// The settings of the islands, if there are several.
fn archipelago(given: &Given<'_>) -> Option<IslandsSettings> {
    let Own { islands, migration, migrants, .. } = Own::of(given.own);
    let ga = Ga::settings(given);
    (islands > 1).then_some(IslandsSettings { ga, islands, interval: migration, migrants })
}

impl Ga {
    /// The best of the population, best first.
    pub(super) fn best(&self, count: usize) -> Vec<Individual> {
        let mut best: Vec<&Individual> = self.population.iter().collect();
        best.sort_by(|one, two| one.evaluation.compare(&two.evaluation));
        best.into_iter().take(count).cloned().collect()
    }

    /// Replaces the worst by these.
    pub(super) fn admit(&mut self, migrants: Vec<Individual>) {
        let mut worst: Vec<usize> = (0..self.population.len()).collect();
        worst.sort_by(|one, two| self.population[*two].evaluation.compare(&self.population[*one].evaluation));
        for (place, migrant) in worst.into_iter().zip(migrants) {
            self.population[place] = migrant;
        }
        self.batch = OnceLock::new();
    }

    /// A child of two parents that is not `known` yet, see [`new_child`]. In the first generation, a random candidate.
    fn birth(&self, number: u64, known: &dyn Fn(&Candidate) -> bool) -> Candidate {
        match self.population.is_empty() {
            true => self.search.first(number),
            false => self.child(number, known, &mut |_, _| ()),
        }
    }

    /// A child of two parents. `crossed` sees the places of the parents, and the child before mutation; if it is drawn again,
    /// the last call counts.
    fn child(
        &self,
        number: u64,
        known: &dyn Fn(&Candidate) -> bool,
        crossed: &mut dyn FnMut([usize; 2], &Candidate),
    ) -> Candidate {
        let mut rng = self.search.birth(number);
        new_child(known, || {
            let parents = [self.parent(&mut rng), self.parent(&mut rng)];
            let of = parents.map(|place| &self.population[place].candidate);
            self.settings.variation.watched(&self.search.genome, &mut rng, of, &mut |child| crossed(parents, child))
        })
    }

    /// Makes candidates of the next batch.
    fn make(&self, range: Range<usize>) -> Vec<Candidate> {
        let again = if self.settings.reevaluate { self.best(self.settings.elite) } else { Vec::new() };
        let marks = self.marks();
        let known = |child: &Candidate| marks.binary_search(&child.mark()).is_ok();
        let candidate = |index: usize| match again.get(index) {
            Some(elite) => elite.candidate.clone(),
            None => self.birth(self.births + index as u64, &known),
        };
        range.map(candidate).collect()
    }

    /// The [marks](Candidate::mark) of the population, in order.
    fn marks(&self) -> Vec<u64> {
        let mut marks: Vec<u64> = self.population.iter().map(|individual| individual.candidate.mark()).collect();
        marks.sort_unstable();
        marks
    }

    /// The elite stay, and children replace the others.
    fn best_survive(&mut self, next: Vec<Individual>) {
        let evaluations = next.len();
        let mut before = std::mem::take(&mut self.population);
        before.sort_by(|one, two| one.evaluation.compare(&two.evaluation));
        // A copy of another individual survives only if there is nothing else left, because a population of copies finds
        // nothing.
        let mut seen = BTreeSet::new();
        let mut is_new = |individual: &Individual| seen.insert(individual.candidate.mark());
        let (mut next, copies): (Vec<Individual>, Vec<Individual>) = next.into_iter().partition(&mut is_new);
        let (stay, old): (Vec<Individual>, Vec<Individual>) = before.into_iter().partition(&mut is_new);
        let missing = self.settings.population.min((self.births as usize).saturating_add(evaluations)) - next.len();
        next.extend(stay.into_iter().chain(copies).chain(old).take(missing));
        self.population = next;
    }

    /// Children in order, each with [`Self::join`]. A copy of another individual is passed over, because a population of copies
    /// finds nothing.
    fn restricted(&mut self, next: Vec<Individual>) {
        let mut seen: BTreeSet<u64> = self.marks().into_iter().collect();
        for (number, child) in (self.births..).zip(next) {
            if seen.insert(child.candidate.mark()) {
                self.join(number, child);
            }
        }
    }

    /// A child takes the place of the most similar of some individuals, unless it is worse. Among equally similar ones that is
    /// the one drawn first.
    fn join(&mut self, number: u64, child: Individual) {
        let mut rng = self.search.stream.text("rivals").word(number).rng();
        let rivals = (0..RIVALS).map(|_| below(&mut rng, self.population.len() as u64) as usize);
        let distance =
            |place: usize| (self.search.genome.distance(&self.population[place].candidate, &child.candidate), place);
        let nearest = rivals.map(distance).reduce(|best, other| if other.0 < best.0 { other } else { best });
        let (_, place) = nearest.expect("there are rivals");
        if child.evaluation.compare(&self.population[place].evaluation).is_le() {
            self.population[place] = child;
        }
    }

    /// The place of an individual that wins a tournament.
    fn parent(&self, rng: &mut Generator) -> usize {
        let mut draw = || below(rng, self.population.len() as u64) as usize;
        let first = draw();
        // Among equals the one that was drawn first wins, so all of them win equally often.
        let better = |best: usize, other: usize| {
            let order = self.population[other].evaluation.compare(&self.population[best].evaluation);
            if order.is_lt() { other } else { best }
        };
        (1..self.settings.tournament).fold(first, |best, _| better(best, draw()))
    }
}

impl Algorithm for Ga {
    fn size(&self) -> usize {
        self.search.batch(self.whole(), self.births)
    }

    fn whole(&self) -> usize {
        if self.population.is_empty() { self.settings.population } else { self.settings.generation() }
    }

    fn ask(&self, range: Range<usize>) -> Vec<Candidate> {
        assert!(range.end <= self.size(), "candidates {range:?} of {}", self.size());
        match self.search.genome.bytes_max() * self.size() as u64 <= KEPT_BYTES_MAX {
            true => self.batch.get_or_init(|| self.make(0..self.size()))[range].to_vec(),
            false => self.make(range),
        }
    }

    fn descents(&self) -> Vec<Option<Descent>> {
        let again = if self.settings.reevaluate { self.settings.elite } else { 0 };
        let marks = self.marks();
        let known = |child: &Candidate| marks.binary_search(&child.mark()).is_ok();
        let descent = |index: usize| Descent::of(|crossed| self.child(self.births + index as u64, &known, crossed));
        let is_child = |index: usize| !self.population.is_empty() && index >= again;
        (0..self.size()).map(|index| if is_child(index) { descent(index) } else { None }).collect()
    }

    fn tell(&mut self, evaluations: &[Evaluation]) {
        assert!(evaluations.len() <= self.size(), "there is at most one evaluation for each candidate");
        let children = self.batch.take().unwrap_or_else(|| self.make(0..evaluations.len()));
        let next: Vec<Individual> = individual::evaluated(children, evaluations).collect();
        match self.settings.restricted && !self.population.is_empty() {
            true => self.restricted(next),
            false => self.best_survive(next),
        }
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

/// As many random candidates as the population has places. Then each child replaces the worst individual, unless the child is
/// worse. With restricted replacement it does what it does in a generation.
impl Steady for Ga {
    fn made(&self, number: u64, crossed: &mut dyn FnMut([usize; 2], &Candidate)) -> Candidate {
        // A window may be wider than the population: then candidates are made before there are parents.
        if number < self.settings.population as u64 || self.population.is_empty() {
            return self.search.first(number);
        }
        let known = |child: &Candidate| self.population.iter().any(|individual| individual.candidate == *child);
        self.child(number, &known, crossed)
    }

    fn take(&mut self, individual: Individual) {
        let number = self.births;
        self.births += 1;
        if self.settings.restricted && self.population.len() == self.settings.population {
            // While it was evaluated, another child with the same genes may have come.
            if self.population.iter().all(|one| one.candidate != individual.candidate) {
                self.join(number, individual);
            }
            return;
        }
        // Among equals the younger one comes first, as in a generation.
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
    use crate::testing::{parse, problems};
    use crate::{
        algorithm::{
            Windowed,
            tests::{minimise, search},
        },
        genome::{Genes, Part, Type},
        problem,
        settings::Settings as EvolveSettings,
    };
    use evoxo_common::rng::Stream;

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
    fn the_ga_beats_random_search_on_every_problem() {
        let settings = Settings::default();
        let got = [("sphere", 10), ("rastrigin", 10), ("tsp", 30), ("g06", 2), ("nk", 20)]
            .map(|(name, length)| best(name, length, &settings, 20_000));
        // Random round trips through 30 cities on a circle have a mean length of 38; the best is 6.27.
        let limits = [1e-3, 2.0, 7.5, -6500.0, -0.7];
        assert!(got.iter().zip(&limits).all(|(got, limit)| got < limit), "{got:?}");
    }

    /// If all candidates are equally good, each parent is equally likely.
    #[test]
    fn equal_candidates_win_equally_often() {
        let problem = problem::find("sphere").unwrap();
        let mut ga = Ga::start(&Settings::default(), search(problem, 3, 2000)).unwrap();
        ga.tell(&vec![Evaluation { objectives: vec![0.0], ..Evaluation::default() }; 100]);
        let mut counts = [0_i32; 100];
        for number in 0..20_000 {
            let parent = ga.parent(&mut ga.search.birth(number));
            counts[parent] += 1;
        }
        assert!(counts.iter().all(|count| (count - 200).abs() < 75), "{counts:?}");
    }

    /// Five bits have 32 candidates. A population of 20 has no copies; one of 40 has every candidate and some copies.
    #[test]
    fn copies_survive_only_if_no_other_candidates_exist() {
        let problem = problem::find("onemax").unwrap();
        for population in [20, 40] {
            let settings = Settings { population, elite: population / 2, ..Settings::default() };
            let mut ga = Ga::start(&settings, search(problem, 5, 2000)).unwrap();
            minimise(&mut ga, problem);
            let mut marks = ga.marks();
            assert_eq!(marks.len(), population);
            marks.dedup();
            assert!(
                if population == 20 { marks.len() == 20 } else { (20..=32).contains(&marks.len()) },
                "{}",
                marks.len()
            );
        }
    }

    /// Lower genes are better, but the greatest number is best of all, and only long steps reach it.
    #[test]
    fn integer_steps_have_any_length() {
        let part = Part { name: "x".into(), length: 10, of: Type::Integer { low: 0, high: 9 } };
        let genome = Genome { parts: vec![part], bounded: true };
        let cost = |gene: &i64| if *gene == 9 { 0 } else { 1 + gene };
        for seed in 0..9 {
            let stream = Stream::root(seed);
            let search = Search { genome: genome.clone(), evaluations: 20_000, start: Vec::new(), stream };
            let mut ga = Ga::start(&Settings::default(), search).unwrap();
            let mut best = i64::MAX;
            while ga.size() > 0 {
                let candidates = ga.ask(0..ga.size());
                let evaluation = |candidate: &Candidate| {
                    let Genes::Integer(genes) = &candidate.parts[0] else { unreachable!() };
                    let sum: i64 = genes.iter().map(cost).sum();
                    best = best.min(sum);
                    Evaluation { objectives: vec![sum as f64], ..Default::default() }
                };
                let evaluations: Vec<Evaluation> = candidates.iter().map(evaluation).collect();
                ga.tell(&evaluations);
            }
            assert_eq!(best, 0, "seed {seed}");
        }
    }

    /// Two peaks, all ones and all zeros: children compete with the individuals that are like them, so both are kept.
    #[test]
    fn different_solutions_live_side_by_side_with_restricted_replacement() {
        let ones = |candidate: &Candidate| match &candidate.parts[0] {
            Genes::Bits(bits) => bits.iter().filter(|bit| **bit).count(),
            _ => unreachable!("the genome has bits only"),
        };
        let peaks = |restricted: bool, window: usize| {
            let search = search(problem::find("onemax").unwrap(), 30, 10_000);
            let ga = Ga::start(&Settings { restricted, ..Settings::default() }, search.clone()).unwrap();
            let mut algorithm: Box<dyn Algorithm> = match window {
                0 => Box::new(ga),
                _ => Box::new(Windowed::start(Box::new(ga), search, window).unwrap()),
            };
            while algorithm.size() > 0 {
                let told = if algorithm.has_barrier() { algorithm.size() } else { 1 };
                let height = |candidate: &Candidate| Evaluation {
                    objectives: vec![-(ones(candidate).max(30 - ones(candidate)) as f64)],
                    ..Evaluation::default()
                };
                let evaluations: Vec<Evaluation> = algorithm.ask(0..told).iter().map(height).collect();
                algorithm.tell(&evaluations);
            }
            assert_eq!(algorithm.population().len(), 100);
            [0, 30].map(|peak| algorithm.population().iter().any(|one| ones(&one.candidate) == peak))
        };
        assert_eq!(peaks(true, 0), [true, true]);
        assert_eq!(peaks(true, 7), [true, true]);
        assert_eq!(peaks(false, 0).iter().filter(|found| **found).count(), 1, "the best survive on one peak");
    }

    #[test]
    fn a_file_chooses_how_individuals_are_replaced() {
        let chosen = |text: &str| {
            let config = parse(&format!("experiment = \"evolve\"\n[settings]\nalgorithm = \"ga\"\n{text}\n"));
            let settings = EvolveSettings::of(&config.arms[0].settings);
            let given = settings.given();
            let own = Ga::settings(&given);
            (own.restricted, own.tournament, own.generation())
        };
        let (best, restricted) = ((false, 2, 60), (true, 4, 60));
        let symbols = "\n[[genome]]\nname = \"s\"\ntype = \"symbols\"\nlength = 9\nalphabet = \"ABC\"\n";
        let fixed = "\n[[genome]]\nname = \"f\"\ntype = \"real\"\nlength = 2\nlow = 1\nhigh = 1\n";
        let real = "\n[[genome]]\nname = \"f\"\ntype = \"real\"\nlength = 2\nlow = 0\nhigh = 1\n";
        let own = "problem = \"program:x\"\nobjectives = \"min f\"";
        assert_eq!(chosen("problem = \"onemax\""), restricted);
        assert_eq!(chosen(&format!("{own}{symbols}{fixed}")), restricted);
        assert_eq!(chosen(&format!("{own}{symbols}{real}")), best);
        assert_eq!(chosen("problem = \"sphere\""), best);
        assert_eq!(chosen("problem = \"tsp\""), best);
        assert_eq!(chosen("problem = \"onemax\"\nreplacement = \"best\""), best);
        assert_eq!(chosen("problem = \"onemax\"\nelite = 50"), (false, 2, 50));
        assert_eq!(chosen("problem = \"onemax\"\ntournament = 3"), (false, 3, 60));
        assert_eq!(chosen("problem = \"sphere\"\nreplacement = \"restricted\""), (true, 2, 60));
        assert_eq!(chosen("problem = \"onemax\"\nnoise = \"yes\""), (false, 2, 100));
        let noisy = "experiment = \"evolve\"\n[settings]\nalgorithm = \"ga\"\nproblem = \"noisy-sphere\"\n\
                     replacement = \"restricted\"\n";
        let sentence = problems(noisy).to_string();
        assert!(sentence.contains("which noise makes meaningless: set replacement = \"best\""), "{sentence}");
    }

    #[test]
    fn elites_survive() {
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
