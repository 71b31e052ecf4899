//! CMA-ES: an evolution strategy that learns the covariance matrix of its steps, for genomes of real and whole numbers.
//!
//! N. Hansen, "The CMA Evolution Strategy: A Tutorial", arXiv:1604.00772, 2016, with negative weights; restarts by IPOP and
//! BIPOP. The search runs in the box of the bounds, scaled to width 1 in each coordinate. If the bounds are kept, coordinates
//! outside the box are folded into it.

mod covariance;
mod eigen;
mod margin;
mod model;
mod restart;
mod saved;
mod stop;
mod strategy;
#[cfg(test)]
mod tests;

use std::{cmp::Ordering, ops::Range};

use evoxo_common::{choice, rng::unit, settings, settings::Values};

use super::{
    Algorithm, Given, Listed, Most, Noise, Part, Search, Wrong,
    coordinates::Coordinates,
    strategies::{STRATEGY, keeps_bounds, sigma},
    within,
};
use crate::{
    evaluation::Evaluation,
    genome::{Candidate, Genome},
};
use model::Model;
use restart::{DOUBLINGS_MAX, Schedule};
use stop::{HISTORY_MAX, History};
use strategy::{Distribution, Sample, Strategy};

pub use covariance::Covariance;
pub use restart::Restarts;

/// The greatest deviation of a coordinate if the bounds are kept, as a share of the box's width, as in pycma. A greater first
/// step raises the limit to itself.
const DEVIATION_MAX: f64 = 1.0 / 3.0;
/// The middle part of the box in which the mean of a run starts, as a share of the box's width. pycma's runs on BBOB start
/// there.
const BEGIN: f64 = 0.8;

/// The deviation that counts as small for a gene in any box: 1e-12 of the usual first step in a box from -5 to 5.
const STEP_LEAST: f64 = 2e-12;

/// The most genes for which the full matrix is learnt. The matrix has n^2 entries, and computing its eigenvectors takes time
/// proportional to n^3.
pub(super) const FULL_GENES_MAX: usize = 4000;

/// The most evaluations of a candidate of a noisy problem in a generation, as in pycma 4.5.
const DRAWS_MAX: usize = 30;

choice! {
    /// The covariance matrix of CMA-ES.
    enum CovarianceName {
        /// the full matrix, for up to some hundred genes
        Full = "full",
        /// diagonal, for genes that do not depend on each other (Ros and Hansen 2008)
        Separable = "separable",
        /// a diagonal and as many directions as needed, for long genomes (Akimoto and Hansen 2016)
        Limited = "limited",
    }
}

choice! {
    /// What CMA-ES does when a run has converged.
    enum RestartsName {
        /// the search ends
        None = "none",
        /// a new run starts with twice the population (Auger and Hansen 2005)
        Ipop = "ipop",
        /// runs with twice the population alternate with small ones (Hansen 2009)
        Bipop = "bipop",
    }
}

choice! {
    /// How CMA-ES makes the candidates of a generation.
    enum ModelName {
        /// they are drawn at random
        None = "none",
        /// a quadratic model of the objective makes one, and chooses the others among four times as many random ones
        Quadratic = "quadratic",
    }
}

settings! {
    /// CMA-ES.
    pub(super) struct Own, names OwnName, schema OWN {
        /// The form of the covariance matrix.
        covariance: CovarianceName = choice("full"),
        /// What happens when a run has converged.
        restarts: RestartsName = choice("bipop"),
        /// How the candidates of a generation are made. A model saves evaluations; there may be up to 40 genes.
        model: ModelName = addition choice("none"),
    }
}

impl Own {
    /// The form of the covariance matrix.
    pub(super) const fn form(&self) -> Covariance {
        match self.covariance {
            CovarianceName::Full => Covariance::Full,
            CovarianceName::Separable => Covariance::Separable,
            CovarianceName::Limited => Covariance::Limited,
        }
    }
}

/// Whether a model is possible with these settings.
pub(super) fn can_have_model(given: &Given<'_>) -> bool {
    Settings { model: true, ..Cma::settings(given) }.check(&given.genome).is_ok()
}

/// Where the mean of the first run starts. Later runs start at random points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mean {
    /// In the middle of the box.
    Middle,
    /// At a uniformly random point of the middle 80 % of the box.
    Random,
}

/// The settings of CMA-ES. Defaults are the tutorial's unless a field says otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Candidates of a generation, 4 to 100,000; by default 4 + 3 ln n, rounded down, where n is the number of genes that are
    /// not fixed.
    pub population: Option<usize>,
    /// The first step size as a share of the box's width, above 0 and at most 10. The default is 0.2, as in pycma's runs on
    /// BBOB.
    pub sigma: f64,
    /// Where the first run starts. By default a random point of the middle 80 %, as in pycma's runs on BBOB.
    pub mean: Mean,
    /// The form of the covariance matrix.
    pub covariance: Covariance,
    /// Whether the search also learns from bad steps (negative weights).
    pub active: bool,
    /// What follows when a run is over; BIPOP by default.
    pub restarts: Restarts,
    /// Whether a quadratic model of the objective helps to make candidates; it needs the full matrix of up to 40 genes.
    pub model: bool,
    /// A run is over when the objectives of many generations differ by less than this, 0 or more. The default is 1e-11, as in
    /// pycma.
    pub tolerance: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            population: None,
            sigma: 0.2,
            mean: Mean::Random,
            covariance: Covariance::Full,
            active: true,
            restarts: Restarts::Bipop,
            model: false,
            tolerance: 1e-11,
        }
    }
}

impl Settings {
    /// Checks that the settings make sense for this genome.
    ///
    /// # Errors
    /// The setting that is wrong, and why.
    pub fn check(&self, genome: &Genome) -> Result<(), Wrong> {
        let genes = Coordinates::of_numbers(genome)?.count();
        if self.covariance == Covariance::Full && genes > FULL_GENES_MAX {
            let sentence = format!(
                "the full covariance matrix of {genes} genes is too large, with more than {FULL_GENES_MAX}: set covariance = \
                 \"limited\""
            );
            return Err(Wrong::new("covariance", sentence));
        }
        if self.model && self.covariance != Covariance::Full {
            let sentence = "model = \"quadratic\" needs covariance = \"full\": set that, or set model = \"none\"";
            return Err(Wrong::new("model", sentence));
        }
        if self.model && genes > model::GENES_MAX {
            let most = model::GENES_MAX;
            let sentence = format!("a model is for at most {most} genes, and there are {genes}: set model = \"none\"");
            return Err(Wrong::new("model", sentence));
        }
        if let Some(population) = self.population {
            let most = if self.model { model::POPULATION_MAX } else { 100_000 };
            within("population", "the population", population, 4..=most)?;
        }
        if !(self.sigma > 0.0 && self.sigma <= 10.0) {
            let sentence = format!("the first step size is {:?}, but it must be above 0 and at most 10", self.sigma);
            return Err(Wrong::new("sigma", sentence));
        }
        if !(self.tolerance >= 0.0 && self.tolerance.is_finite()) {
            // No file sets the tolerance, so the name of the setting does not matter here.
            let sentence = format!("the tolerance is {:?}, but it must be 0 or more", self.tolerance);
            return Err(Wrong::new("algorithm", sentence));
        }
        Ok(())
    }

    /// The candidates of a generation of the first run.
    #[must_use]
    pub fn lambda(&self, genome: &Genome) -> usize {
        let usual = || 4 + (3.0 * evoxo_common::math::ln(genome.free_genes() as f64)).floor() as usize;
        self.population.unwrap_or_else(usual)
    }

    /// What a search needs at most.
    pub(super) fn most(&self, genome: &Genome, evaluations: u64) -> Most {
        let (n, lambda) = (genome.free_genes() as u64, self.lambda(genome) as u64);
        let matrices = match self.covariance {
            Covariance::Full => 2 * n * n,
            Covariance::Separable => n,
            Covariance::Limited => {
                let directions = strategy::directions_max(genome.free_genes().max(1)) as u64;
                n * (directions + 2) + 2 * directions
            }
        };
        let doublings = if self.restarts == Restarts::None { 0 } else { DOUBLINGS_MAX };
        let points = if self.model { model::points_max(genome.free_genes()) as u64 * (n + 1) } else { 0 };
        let numbers = matrices + 6 * n + 2 * HISTORY_MAX as u64 + points;
        Most {
            candidates: (lambda << doublings).min(evaluations),
            batches: evaluations.div_ceil(lambda),
            kept: 0,
            state_bytes: 512 + 8 * numbers,
        }
    }
}

/// CMA-ES.
#[derive(Clone, Debug)]
pub struct Cma {
    settings: Settings,
    search: Search,
    coordinates: Coordinates,
    births: u64,
    /// The current run; none if the search ended before it used all its evaluations.
    run: Option<Run>,
}

/// A run between two restarts.
#[derive(Clone, Debug)]
struct Run {
    schedule: Schedule,
    strategy: Strategy,
    distribution: Distribution,
    history: History,
    model: Option<Model>,
}

impl Listed for Cma {
    const NAME: &'static str = "cma-es";
    const DOC: &'static str = "CMA-ES, for real and whole genes";
    const PARTS: &'static [Part] = &[STRATEGY, Part::of(&OWN)];
    const NOISE: Option<Noise> = Some(Noise { common: usize::MAX, draws: DRAWS_MAX });

    type Settings = Settings;

    fn settings(given: &Given<'_>) -> Settings {
        let (own, usual) = (Own::of(given.own), Settings::default());
        Settings {
            population: given.population,
            sigma: sigma(given.own, usual.sigma),
            covariance: own.form(),
            restarts: match own.restarts {
                RestartsName::None => Restarts::None,
                RestartsName::Ipop => Restarts::Ipop,
                RestartsName::Bipop => Restarts::Bipop,
            },
            model: own.model == ModelName::Quadratic,
            ..usual
        }
    }

    fn check(given: &Given<'_>) -> Result<(), Wrong> {
        Self::settings(given).check(&given.genome)
    }

    fn most(given: &Given<'_>) -> Most {
        Self::settings(given).most(&given.genome, given.evaluations)
    }

    fn keeps_bounds(own: &Values) -> bool {
        keeps_bounds(own)
    }

    fn start(settings: &Settings, search: Search) -> Result<Self, String> {
        settings.check(&search.genome)?;
        let coordinates = Coordinates::of_numbers(&search.genome)?;
        let schedule = Schedule::first(settings.lambda(&search.genome), settings.sigma);
        let mut fresh = Self { settings: settings.clone(), search, coordinates, births: 0, run: None };
        fresh.run = Some(fresh.run_of(schedule));
        Ok(fresh)
    }

    fn restore(settings: &Settings, search: Search, state: &[u8]) -> Result<Self, String> {
        let fresh = Self::start(settings, search)?;
        let first = fresh.settings.lambda(&fresh.search.genome);
        let has = (fresh.has_whole(), settings.model);
        let (births, run) = saved::read(state, first, has, &|schedule| fresh.strategy(schedule))?;
        fresh.search.check_births(births)?;
        let Some((schedule, distribution, history, model)) = run else {
            return Ok(Self { births, run: None, ..fresh });
        };
        let strategy = fresh.strategy(&schedule);
        Ok(Self { births, run: Some(Run { schedule, strategy, distribution, history, model }), ..fresh })
    }
}

impl Cma {
    fn strategy(&self, schedule: &Schedule) -> Strategy {
        Strategy::new(self.coordinates.count(), schedule.lambda, self.settings.covariance, self.settings.active)
    }

    /// Whether any gene is whole.
    fn has_whole(&self) -> bool {
        self.coordinates.whole().next().is_some()
    }

    /// A run that is about to start.
    fn run_of(&self, schedule: Schedule) -> Run {
        let mut rng = self.search.stream.text("mean").word(schedule.run).rng();
        let middle = schedule.run == 0 && self.settings.mean == Mean::Middle;
        let share = || if middle { 0.5 } else { 0.5 + BEGIN * (unit(&mut rng) - 0.5) };
        let mean = match self.search.start.get(schedule.run as usize) {
            Some(candidate) => self.coordinates.of_candidate(candidate),
            None => self.coordinates.point(std::iter::repeat_with(share)),
        };
        self.run_from(schedule, mean)
    }

    /// A run that is about to start at this point.
    fn run_from(&self, schedule: Schedule, mean: Vec<f64>) -> Run {
        let strategy = self.strategy(&schedule);
        let mut distribution = strategy.start(mean, schedule.sigma);
        if self.has_whole() {
            distribution.stretched = vec![1.0; strategy.n];
        }
        let model = (self.settings.model && schedule.run == 0).then(Model::default);
        Run { schedule, strategy, distribution, history: History::default(), model }
    }

    /// Starts a new run with the first population and step at this candidate.
    pub(super) fn restart(&mut self, at: &Candidate) {
        let run = self.run.as_ref().map_or(0, |run| run.schedule.run + 1);
        let first = Schedule::first(self.settings.lambda(&self.search.genome), self.settings.sigma);
        let schedule = Schedule { run, began: self.births, ..first };
        self.run = Some(self.run_from(schedule, self.coordinates.of_candidate(at)));
    }

    /// Moves on with a whole generation that is ordered by something else than its evaluations, best first, and says whether
    /// the run can go on. The history of objectives is not used, so only the distribution can end the run.
    ///
    /// # Panics
    /// If the search has ended.
    pub(super) fn follow(&mut self, compare: &dyn Fn(usize, usize) -> Ordering) -> bool {
        let mut run = self.run.take().expect("the search has not ended");
        let ranking = Ranking::of(run.schedule.lambda, compare);
        let samples = self.samples(&run, 0..run.schedule.lambda);
        let goes_on = self.learn(&mut run, &samples, &ranking) && !self.over(&run, &[]);
        self.run = Some(run);
        goes_on
    }

    /// Updates the distribution with a whole generation. False if the result is no longer a distribution.
    fn learn(&mut self, run: &mut Run, samples: &[Sample], ranking: &Ranking) -> bool {
        self.births += samples.len() as u64;
        let ranked: Vec<&Sample> = ranking.order.iter().map(|index| &samples[*index]).collect();
        let ahead = if run.distribution.shift.is_empty() { 0.0 } else { ranking.ahead };
        let learnt = run.strategy.update(&mut run.distribution, &ranked, ahead);
        if self.coordinates.bounded {
            run.strategy.limit(&mut run.distribution, DEVIATION_MAX.max(run.schedule.sigma));
            for (index, place) in self.coordinates.outside(&run.distribution.mean) {
                run.strategy.mirror(&mut run.distribution, index, place);
            }
        }
        margin::keep(&run.strategy, &mut run.distribution, self.coordinates.whole());
        learnt && run.strategy.decompose(&mut run.distribution)
    }

    /// These candidates of the next generation, as drawn. If there is a pair, it comes first.
    fn samples(&self, run: &Run, range: Range<usize>) -> Vec<Sample> {
        let Run { strategy, distribution, model, .. } = run;
        let birth = |index: usize| self.search.birth(self.births + index as u64);
        let draw = |index: usize, count: usize| {
            let rng = &mut birth(index);
            (0..count).map(|_| strategy.sample(distribution, rng)).collect()
        };
        let own = (strategy, distribution);
        if let Some(chosen) = model.as_ref().and_then(|model| model.chosen(own, &self.coordinates, draw)) {
            return chosen[range].to_vec();
        }
        let pair = if range.start < 2 { strategy.pair(distribution, &mut birth(0)) } else { None };
        let sample = |index: usize| match &pair {
            Some(pair) if index < 2 => pair[index].clone(),
            _ => strategy.sample(distribution, &mut birth(index)),
        };
        range.map(sample).collect()
    }

    /// Whether a run is over, because of its distribution or because it has used its evaluations.
    fn over(&self, run: &Run, objectives: &[f64]) -> bool {
        let Run { schedule, strategy, distribution, history, .. } = run;
        let (n, lambda) = (strategy.n as f64, strategy.lambda as f64);
        // pycma's limit on the generations of a run.
        let long = 100.0 + (150.0 * (n + 3.0) * (n + 3.0) / lambda.sqrt()).floor();
        let restarts = self.settings.restarts != Restarts::None;
        let used = restarts && distribution.generation as f64 >= long;
        let begun = stop::Run {
            sigma: schedule.sigma,
            tolerance: self.settings.tolerance,
            least: STEP_LEAST / self.coordinates.widest(),
        };
        used || self.births - schedule.began >= schedule.limit
            || stop::stop(strategy, distribution, history, objectives, &begun).is_some()
    }
}

/// A generation in order.
struct Ranking {
    /// The numbers of its candidates, best first.
    order: Vec<usize>,
    /// How far the first candidate is ahead of the second: the share of the other candidates that are better than the second
    /// but not than the first; negative if the second is ahead.
    ahead: f64,
}

impl Ranking {
    fn of(size: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Self {
        let mut order: Vec<usize> = (0..size).collect();
        order.sort_by(|one, two| compare(*one, *two));
        let better = |than: usize| (0..size).filter(|one| compare(*one, than).is_lt()).count() as f64;
        Self { order, ahead: (better(1) - better(0)) / (size - 1) as f64 }
    }
}

impl Algorithm for Cma {
    fn size(&self) -> usize {
        self.search.batch(self.whole(), self.births)
    }

    fn whole(&self) -> usize {
        self.run.as_ref().map_or(0, |run| run.schedule.lambda)
    }

    fn ask(&self, range: Range<usize>) -> Vec<Candidate> {
        assert!(range.end <= self.size(), "candidates {range:?} of {}", self.size());
        let Some(run) = &self.run else { return Vec::new() };
        let candidate = |sample: Sample| self.coordinates.candidate(&run.distribution.point(&sample.step));
        self.samples(run, range).into_iter().map(candidate).collect()
    }

    fn tell(&mut self, evaluations: &[Evaluation]) {
        let size = self.size();
        assert_eq!(evaluations.len(), size, "there is one evaluation for each candidate");
        let Some(mut run) = self.run.take() else { return };
        // The last generation of a search may be cut short. Nothing is learnt from it then.
        if size < run.schedule.lambda {
            self.births += size as u64;
            self.run = Some(run);
            return;
        }
        let ranking = Ranking::of(size, &|one, two| evaluations[one].compare(&evaluations[two]));
        let objective = |index: &usize| match evaluations[*index].feasible() {
            true => evaluations[*index].objective(0),
            false => f64::INFINITY,
        };
        let objectives: Vec<f64> = ranking.order.iter().map(objective).collect();
        run.history.push(&objectives);
        let samples = self.samples(&run, 0..size);
        if let Some(model) = &mut run.model {
            let points = samples.iter().map(|sample| run.distribution.point(&sample.step));
            model.tell(&self.coordinates, points.zip((0..size).map(|index| objective(&index))));
        }
        let sound = self.learn(&mut run, &samples, &ranking);
        if sound && !self.over(&run, &objectives) {
            self.run = Some(run);
        } else if self.settings.restarts != Restarts::None {
            let first = (self.settings.lambda(&self.search.genome), self.settings.sigma);
            let mut rng = self.search.stream.text("restart").word(run.schedule.run).rng();
            let schedule = run.schedule.next(self.settings.restarts, self.births, first, &mut rng);
            self.run = Some(self.run_of(schedule));
        }
    }

    fn mean(&self) -> Option<Candidate> {
        Some(self.coordinates.candidate(&self.run.as_ref()?.distribution.mean))
    }

    fn births(&self) -> u64 {
        self.births
    }

    fn save(&self) -> Vec<u8> {
        let run = self.run.as_ref().map(|run| (&run.schedule, &run.distribution, &run.history, run.model.as_ref()));
        saved::write(self.births, run, self.settings.covariance)
    }
}
