//! CMA-MAE: several CMA-ES search for candidates that improve a map of elites, each by how much.
//!
//! M. C. Fontaine and S. Nikolaidis, "Covariance Matrix Adaptation MAP-Annealing", GECCO 2023. Each cell has a threshold: the
//! objective that a candidate must improve. It follows the candidates that improve it, slowly, so a search stays for a while
//! at a place where it finds better candidates, and then moves on. M. C. Fontaine, J. Togelius, S. Nikolaidis and A. K. Hoover,
//! "Covariance Matrix Adaptation for the Rapid Illumination of Behavior Space", GECCO 2020, introduced emitters: CMA-ES that
//! restart at an elite.

use std::{cmp::Ordering, ops::Range};

use evoxo_common::{ratio::Ratio, rng::below, settings, settings::Values};
use prost::Message as _;

use super::{
    Algorithm, Axis, Given, Leaves, Listed, Most, Part, Search, Wrong,
    cma::{self, Cma, FULL_GENES_MAX, Restarts},
    elites::Elites,
    individual::{self, Individual},
    map_elites, niches,
    strategies::{STRATEGY, keeps_bounds, sigma},
    within,
};
use crate::{
    evaluation::Evaluation,
    genome::{Candidate, Genome},
    messages::CmaMaeState,
};

settings! {
    /// CMA-MAE.
    struct Own, names OwnName, schema OWN {
        /// The number of CMA-ES that search at the same time.
        emitters: usize = addition whole(1, 1000, "5"),
        /// How far the threshold of a cell moves to each candidate that improves it: 0 stays for ever, as in CMA-ES, and with 1
        /// only candidates that are better than the elite improve the map, as in CMA-ME.
        learning_rate: Ratio = addition real(0, 1, "0.1"),
    }
}

/// Gains that differ by less than this are the same, as in pyribs.
const FLAT: f64 = 1e-12;

/// The settings of CMA-MAE.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// One axis for each measure, in the problem's order; at most 100,000 cells together if the archive is a grid.
    pub grid: Vec<Axis>,
    /// The regions of a centroidal Voronoi tessellation instead of grid cells: 2 to 4,096; 0 for the grid.
    pub centroids: usize,
    /// Random candidates at the start, 1 to 1,000,000. Emitters begin at the elites among them.
    pub initial: usize,
    /// The number of emitters, 1 to 1,000.
    pub emitters: usize,
    /// How far a threshold moves to a candidate that improves it, 0 to 1.
    pub rate: f64,
    /// The first threshold of each cell, with the objective to be minimised. If `None`, a candidate in an empty cell is a
    /// greater improvement than any other, as in CMA-ME, and its objective becomes the threshold.
    pub worthless: Option<f64>,
    /// The settings of each emitter, which does not restart by itself.
    pub emitter: cma::Settings,
}

impl Settings {
    /// The settings with this grid, and the defaults of experiment files.
    #[must_use]
    pub fn of(grid: Vec<Axis>) -> Self {
        let emitter = cma::Settings {
            population: Some(36),
            sigma: 0.1,
            active: false,
            restarts: Restarts::None,
            ..cma::Settings::default()
        };
        Self { grid, centroids: 0, initial: 100, emitters: 5, rate: 0.1, worthless: None, emitter }
    }

    fn check(&self, genome: &Genome) -> Result<(), Wrong> {
        niches::check(&self.grid, self.centroids)?;
        within("initial", "the number of random candidates", self.initial, 1..=1_000_000)?;
        within("emitters", "the number of emitters", self.emitters, 1..=1000)?;
        if !(0.0..=1.0).contains(&self.rate) {
            let sentence = format!("learning_rate is {:?}, but it must be from 0 to 1", self.rate);
            return Err(Wrong::new("learning_rate", sentence));
        }
        self.emitter.check(genome)?;
        let genes = genome.free_genes();
        let is_full = self.emitter.covariance == cma::Covariance::Full;
        if is_full && self.emitters.saturating_mul(genes * genes) > FULL_GENES_MAX * FULL_GENES_MAX {
            let sentence = format!(
                "the full covariance matrices of {} emitters with {genes} genes are too large: set covariance = \"limited\"",
                self.emitters
            );
            return Err(Wrong::new("covariance", sentence));
        }
        Ok(())
    }

    /// Candidates of a batch after the first.
    fn batch(&self, genome: &Genome) -> usize {
        self.emitters * self.emitter.lambda(genome)
    }
}

/// CMA-MAE.
#[derive(Clone, Debug)]
pub struct CmaMae {
    settings: Settings,
    search: Search,
    births: u64,
    archive: Elites,
    /// The threshold of each cell: candidates with lesser objectives improve it. Infinite while everything does.
    thresholds: Vec<f64>,
    /// None before the first batch.
    emitters: Vec<Cma>,
}

impl Listed for CmaMae {
    const NAME: &'static str = "cma-mae";
    const DOC: &'static str = "CMA-MAE, as map-elites for genes that are numbers: several CMA-ES fill the map";
    const PARTS: &'static [Part] = &[
        STRATEGY,
        Part { except: &["restarts", "model"], ..Part::of(&cma::OWN) },
        Part { except: &["iso", "line"], ..Part::of(&map_elites::OWN) },
        Part::of(&OWN),
    ];

    type Settings = Settings;

    fn settings(given: &Given<'_>) -> Settings {
        let (own, map) = (Own::of(given.own), map_elites::Own::of(given.own));
        let usual = Settings::of(given.grid.clone());
        Settings {
            centroids: map.centroids,
            initial: map.initial,
            emitters: own.emitters,
            rate: own.learning_rate.to_f64(),
            worthless: given.worthless,
            emitter: cma::Settings {
                population: given.population.or(usual.emitter.population),
                sigma: sigma(given.own, usual.emitter.sigma),
                covariance: cma::Own::of(given.own).form(),
                ..usual.emitter
            },
            ..usual
        }
    }

    fn check(given: &Given<'_>) -> Result<(), Wrong> {
        Self::settings(given).check(&given.genome)
    }

    fn most(given: &Given<'_>) -> Most {
        let settings = Self::settings(given);
        let (batch, initial) = (settings.batch(&given.genome) as u64, settings.initial as u64);
        let niches = niches::count(&settings.grid, settings.centroids);
        let emitter = settings.emitter.most(&given.genome, given.evaluations);
        Most {
            candidates: batch.max(initial),
            batches: 1 + given.evaluations.saturating_sub(initial).div_ceil(batch),
            kept: niches as u64,
            state_bytes: individual::bytes_max(&given.genome, niches, given.numbers)
                + 16
                + 8 * niches as u64
                + settings.emitters as u64 * (16 + emitter.state_bytes),
        }
    }

    fn leaves(_: usize) -> Leaves {
        Leaves::Archive
    }

    fn keeps_bounds(own: &Values) -> bool {
        keeps_bounds(own)
    }

    fn start(settings: &Settings, search: Search) -> Result<Self, String> {
        settings.check(&search.genome)?;
        let archive = Elites::new(&settings.grid, settings.centroids);
        let first = settings.worthless.unwrap_or(f64::INFINITY);
        let thresholds = vec![first; niches::count(&settings.grid, settings.centroids)];
        Ok(Self { settings: settings.clone(), search, births: 0, archive, thresholds, emitters: Vec::new() })
    }

    fn restore(settings: &Settings, search: Search, state: &[u8]) -> Result<Self, String> {
        let state = CmaMaeState::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?;
        let mut fresh = Self::start(settings, search)?;
        let births = state.births;
        fresh.search.check_births(births)?;
        let elites = Individual::read_all(&fresh.search.genome, &state.elites)?;
        fresh.archive = fresh.archive.restored(elites, births)?;
        let cells = fresh.archive.cells();
        if state.thresholds.len() != cells.len() || state.thresholds.iter().any(|number| number.is_nan()) {
            return Err("the state does not have a threshold for each elite".into());
        }
        cells.iter().zip(&state.thresholds).for_each(|(cell, threshold)| fresh.thresholds[*cell] = *threshold);
        let begun = births.checked_sub(fresh.settings.initial as u64);
        let batch = fresh.settings.batch(&fresh.search.genome) as u64;
        // Only the last batch of a search may be cut short.
        let is_whole = births == 0 || begun.is_some_and(|begun| begun % batch == 0);
        if !is_whole && births < fresh.search.evaluations {
            return Err("the state is not one between two batches".into());
        }
        if state.emitters.len() != if begun.is_some() { fresh.settings.emitters } else { 0 } {
            return Err("the state has the wrong number of emitters".into());
        }
        let emitter = |(place, state): (usize, &prost::bytes::Bytes)| {
            Cma::restore(&fresh.settings.emitter, fresh.search_of(place, Vec::new()), state)
        };
        let emitters: Vec<Cma> = state.emitters.iter().enumerate().map(emitter).collect::<Result<_, String>>()?;
        let lambda = fresh.settings.emitter.lambda(&fresh.search.genome) as u64;
        let generations = begun.unwrap_or(0) / batch;
        if emitters.iter().any(|emitter| emitter.births() != generations * lambda || emitter.whole() as u64 != lambda) {
            return Err("an emitter of the state has the wrong number of evaluations".into());
        }
        Ok(Self { births, emitters, ..fresh })
    }
}

impl CmaMae {
    /// What an emitter searches. It does not know the end of the whole search.
    fn search_of(&self, emitter: usize, start: Vec<Candidate>) -> Search {
        let stream = self.search.stream.text("emitter").word(emitter as u64);
        Search { genome: self.search.genome.clone(), evaluations: u64::MAX, start, stream }
    }

    /// Where an emitter starts now: at a random elite, or at random if there is none.
    fn origin(&self, emitter: usize) -> Candidate {
        let rng = &mut self.search.stream.text("origin").word(self.births).word(emitter as u64).rng();
        match self.archive.all() {
            [] => self.search.genome.random(rng),
            elites => elites[below(rng, elites.len() as u64) as usize].candidate.clone(),
        }
    }

    /// Takes a candidate into the map, and says by how much it improves its cell; `None` if it is not feasible.
    fn take(&mut self, individual: Individual) -> Option<f64> {
        let evaluation = &individual.evaluation;
        let (cell, objective) = (self.archive.cell(evaluation), evaluation.objective(0));
        let cell = cell.filter(|_| evaluation.feasible());
        self.archive.place(individual);
        let threshold = &mut self.thresholds[cell?];
        let gain = *threshold - objective;
        // A rate of 1 reaches the objective exactly, also from far away.
        if gain == f64::INFINITY || gain > 0.0 && self.settings.rate == 1.0 {
            *threshold = objective;
        } else if gain > 0.0 {
            *threshold -= self.settings.rate * gain;
        }
        // The difference of infinite numbers is not a number, and no improvement.
        Some(if gain.is_nan() { f64::NEG_INFINITY } else { gain })
    }

    /// Moves the emitters on, each with its part of a whole batch.
    fn follow(&mut self, evaluations: &[Evaluation], gains: &[Option<f64>]) {
        let lambda = self.settings.emitter.lambda(&self.search.genome);
        let parts = evaluations.chunks_exact(lambda).zip(gains.chunks_exact(lambda));
        for (place, (evaluations, gains)) in parts.enumerate() {
            let compare = |one: usize, two: usize| {
                let by_gain = match (gains[one], gains[two]) {
                    (Some(one), Some(two)) => two.total_cmp(&one),
                    (Some(_), None) => Ordering::Less,
                    (None, Some(_)) => Ordering::Greater,
                    (None, None) => Ordering::Equal,
                };
                by_gain.then_with(|| evaluations[one].compare(&evaluations[two]))
            };
            let order = |one: &usize, two: &usize| compare(*one, *two);
            let ends = (0..lambda).min_by(order).zip((0..lambda).max_by(order));
            // If the best and the worst are equal, the batch says nothing about where to go. In empty cells without a threshold,
            // an emitter goes on nevertheless.
            let is_flat = ends.is_some_and(|(best, worst)| match (gains[best], gains[worst]) {
                (Some(best), Some(worst)) => best == f64::NEG_INFINITY || best - worst < FLAT,
                _ => compare(best, worst).is_eq(),
            });
            if !self.emitters[place].follow(&compare) || is_flat {
                let origin = self.origin(place);
                self.emitters[place].restart(&origin);
            }
        }
    }
}

impl Algorithm for CmaMae {
    fn size(&self) -> usize {
        self.search.batch(self.whole(), self.births)
    }

    fn whole(&self) -> usize {
        if self.births == 0 { self.settings.initial } else { self.settings.batch(&self.search.genome) }
    }

    fn ask(&self, range: Range<usize>) -> Vec<Candidate> {
        assert!(range.end <= self.size(), "candidates {range:?} of {}", self.size());
        if self.births == 0 {
            return range.map(|number| self.search.first(number as u64)).collect();
        }
        let lambda = self.settings.emitter.lambda(&self.search.genome);
        let part = |(place, emitter): (usize, &Cma)| {
            let bound = |number: usize| number.saturating_sub(place * lambda).min(lambda);
            emitter.ask(bound(range.start)..bound(range.end))
        };
        self.emitters.iter().enumerate().flat_map(part).collect()
    }

    fn tell(&mut self, evaluations: &[Evaluation]) {
        assert_eq!(evaluations.len(), self.size(), "there is one evaluation for each candidate");
        let (is_first, is_whole) = (self.births == 0, evaluations.len() == self.whole());
        let candidates = self.ask(0..evaluations.len());
        let individuals = individual::evaluated(candidates, evaluations);
        let gains: Vec<Option<f64>> = individuals.map(|individual| self.take(individual)).collect();
        self.births += evaluations.len() as u64;
        // The last batch of a search may be cut short. Nothing is learnt from it then.
        match (is_whole, is_first) {
            (false, _) => {}
            (true, false) => self.follow(evaluations, &gains),
            (true, true) => {
                let emitter = |place: usize| {
                    Cma::start(&self.settings.emitter, self.search_of(place, vec![self.origin(place)]))
                        .expect("the settings of emitters were checked at the start")
                };
                self.emitters = (0..self.settings.emitters).map(emitter).collect();
            }
        }
    }

    fn population(&self) -> &[Individual] {
        self.archive.all()
    }

    fn births(&self) -> u64 {
        self.births
    }

    fn save(&self) -> Vec<u8> {
        CmaMaeState {
            births: self.births,
            elites: self.archive.all().iter().map(Individual::message).collect(),
            thresholds: self.archive.cells().iter().map(|cell| self.thresholds[*cell]).collect(),
            emitters: self.emitters.iter().map(|emitter| emitter.save().into()).collect(),
        }
        .encode_to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        algorithm::tests::{evaluate, grid, search},
        genome::{Genes, Part as GenomePart, Type},
        problem,
    };

    fn arm(cells: usize) -> Settings {
        Settings::of(grid(problem::find("arm").unwrap(), cells).grid)
    }

    fn started(settings: &Settings, evaluations: u64) -> CmaMae {
        CmaMae::start(settings, search(problem::find("arm").unwrap(), 10, evaluations)).unwrap()
    }

    fn individual(map: &CmaMae, objective: f64, broken: f64) -> Individual {
        let evaluation = Evaluation {
            objectives: vec![objective],
            constraints: vec![broken],
            measures: vec![0.1, 0.1],
            ..Default::default()
        };
        Individual { candidate: map.search.first(0), evaluation }
    }

    /// The QD score as docs/benchmarks/quality.md defines it, with the settings of the peer: see there for what 11 searches of
    /// pyribs reached.
    #[test]
    fn the_qd_score_of_an_arm_is_that_of_pyribs() {
        let problem = problem::find("arm").unwrap();
        let score = |settings: &Settings| {
            let mut map = started(settings, 10_000);
            while map.size() > 0 {
                let evaluations = evaluate(&map, problem);
                map.tell(&evaluations);
            }
            let worst = std::f64::consts::PI * std::f64::consts::PI;
            map.population().iter().map(|elite| 100.0 * (1.0 - elite.evaluation.objective(0) / worst)).sum::<f64>()
        };
        let usual = Settings { worthless: Some(10.0), ..arm(50) };
        let found = [score(&usual), score(&Settings { rate: 1.0, ..usual.clone() }), score(&arm(50))];
        insta::assert_snapshot!(format!("{found:.0?}"));
        assert!(found[0] > 180_000.0, "{found:?}");
    }

    #[test]
    fn thresholds_follow_the_candidates_that_improve_them() {
        let mut map = started(&Settings { worthless: Some(10.0), rate: 0.25, ..arm(5) }, 4);
        let mut gain = |objective: f64, broken: f64| {
            let one = individual(&map, objective, broken);
            map.take(one)
        };
        // The thresholds are 10, 9, 8.75 and again 8.75.
        assert_eq!([6.0, 8.0, 9.0, 8.75].map(|objective| gain(objective, 0.0)), [4.0, 1.0, -0.25, 0.0].map(Some));
        assert_eq!([gain(1.0, 0.5), gain(f64::NAN, 0.0)], [None, Some(f64::NEG_INFINITY)]);
        let elites: Vec<f64> = map.population().iter().map(|elite| elite.evaluation.objective(0)).collect();
        assert_eq!(elites, [6.0], "the map keeps the best, whatever the threshold is");
        let again = CmaMae::restore(&map.settings, map.search.clone(), &CmaMae { births: 4, ..map.clone() }.save());
        assert_eq!(again.unwrap().thresholds, map.thresholds);
    }

    /// Without a value that is worth nothing, the first candidate of a cell improves the map more than any other.
    #[test]
    fn empty_cells_come_first() {
        let mut map = started(&arm(5), 2000);
        let mut gain = |objective: f64| {
            let one = individual(&map, objective, 0.0);
            map.take(one)
        };
        let gains = [gain(7.0), gain(5.0), gain(6.9)];
        assert_eq!(gains[..2], [Some(f64::INFINITY), Some(2.0)]);
        assert!((gains[2].unwrap() + 0.1).abs() < 1e-12, "{gains:?}");
    }

    /// If all candidates gain the same, emitters start again, each at an elite.
    #[test]
    fn emitters_restart_at_elites() {
        let mut map = started(&arm(5), 2000);
        while map.births < 1500 {
            let evaluations = vec![individual(&map, 3.0, 0.0).evaluation; map.size()];
            map.tell(&evaluations);
            let [elite] = map.population() else { panic!("all candidates are in one cell") };
            let apart = |emitter: &Cma| map.search.genome.distance(&emitter.mean().unwrap(), &elite.candidate);
            assert!(map.emitters.iter().all(|emitter| apart(emitter) < 1e-12));
            // The same if all candidates fail: none takes the place of the elite.
            let mut failed = map.clone();
            failed.tell(&vec![Evaluation { failed: true, ..Default::default() }; map.size()]);
            assert!(failed.emitters.iter().all(|emitter| apart(emitter) < 1e-12));
        }
        assert_eq!(map.births, 1540);
    }

    /// No candidate is better than another, so only the measures guide the search; half of the genes are whole numbers.
    #[test]
    fn a_map_is_filled_without_any_objective() {
        let mut search = search(problem::find("sphere").unwrap(), 2, 4000);
        let whole = Type::Integer { low: 0, high: 60 };
        search.genome.parts.push(GenomePart { name: "n".into(), length: 2, of: whole });
        let axis = |high: f64, cells: usize| Axis { low: 0.0, high, cells };
        let settings = Settings { initial: 5, ..Settings::of(vec![axis(10.0, 10), axis(120.0, 30)]) };
        let mut map = CmaMae::start(&settings, search).unwrap();
        while map.size() > 0 {
            let evaluation = |candidate: Candidate| match &candidate.parts[..] {
                [Genes::Real(reals), Genes::Integer(whole)] => Evaluation {
                    objectives: vec![0.0],
                    measures: vec![reals.iter().map(|gene| gene.abs()).sum(), whole.iter().sum::<i64>() as f64],
                    ..Default::default()
                },
                other => panic!("{other:?}"),
            };
            let evaluations: Vec<Evaluation> = map.ask(0..map.size()).into_iter().map(evaluation).collect();
            map.tell(&evaluations);
        }
        assert!(map.population().len() > 200, "{}", map.population().len());
    }

    #[test]
    fn invalid_settings_are_rejected_with_a_reason() {
        let good = arm(10);
        let emitter = |sigma: f64| cma::Settings { sigma, ..good.emitter.clone() };
        let wrong = [
            Settings { grid: Vec::new(), ..good.clone() },
            Settings { initial: 0, ..good.clone() },
            Settings { emitters: 0, ..good.clone() },
            Settings { rate: 1.5, ..good.clone() },
            Settings { centroids: 5000, ..good.clone() },
            Settings { emitter: emitter(0.0), ..good.clone() },
        ];
        let genome = search(problem::find("arm").unwrap(), 10, 100).genome;
        let sentences: Vec<String> =
            wrong.iter().map(|settings| settings.check(&genome).unwrap_err().sentence).collect();
        insta::assert_snapshot!(sentences.join("\n"));
        let order = search(problem::find("tsp").unwrap(), 5, 100).genome;
        let sentence = good.check(&order).unwrap_err().sentence;
        assert_eq!(sentence, "this algorithm searches numbers, but part \"trip\" has type permutation");
    }
}
