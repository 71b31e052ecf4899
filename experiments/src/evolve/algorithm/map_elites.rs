//! MAP-Elites: the best candidate for every kind of behaviour.
//!
//! J.-B. Mouret and J. Clune, "Illuminating Search Spaces by Mapping Elites", arXiv:1504.04909, 2015: a grid over the
//! behaviour measures. V. Vassiliades and J.-B. Mouret, "Discovering the Elite Hypervolume by Leveraging Interspecies
//! Correlation", GECCO 2018: the variation of real genes, along the line between two elites.

use std::ops::Range;

use evoxo_common::rng::{Generator, below, normal_pair};

use super::{
    Algorithm, Most, Search,
    individual::{self, Individual},
    within,
};
use crate::evolve::{
    evaluation::Evaluation,
    genome::{Candidate, Genes, Genome, Type},
    variation::Variation,
};

/// One measure of the grid. Values outside its bounds count as those at the bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    /// The lower bound.
    pub low: f64,
    /// The upper bound, greater than the lower one.
    pub high: f64,
    /// Cells, 1 to 100,000.
    pub cells: usize,
}

/// The settings of MAP-Elites.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The grid: one axis for each measure, in the problem's order; at most 100,000 cells together.
    pub grid: Vec<Axis>,
    /// Candidates of a batch, 1 to 100,000.
    pub batch: usize,
    /// Random candidates at the beginning, 1 to 1,000,000.
    pub initial: usize,
    /// The deviation of the independent steps of real genes, as a share of the bounds' distance, 0 to 1.
    pub iso: f64,
    /// The deviation of the step along the line between two elites, as a share of their distance, 0 to 10.
    pub line: f64,
    /// How the genes are varied that are not real.
    pub variation: Variation,
}

impl Default for Settings {
    /// Steps of 0.01 and 0.2, as in section 4 of Vassiliades and Mouret 2018; the grid must be given.
    fn default() -> Self {
        Self { grid: Vec::new(), batch: 100, initial: 100, iso: 0.01, line: 0.2, variation: Variation::default() }
    }
}

/// The most cells of a grid.
const CELLS_MAX: usize = 100_000;

impl Settings {
    /// Checks that the figures make sense.
    ///
    /// # Errors
    /// A sentence.
    pub fn check(&self) -> Result<(), String> {
        if self.grid.is_empty() {
            return Err("MAP-Elites needs a problem with behaviour measures, and a grid over them".into());
        }
        for Axis { low, high, cells } in &self.grid {
            within("the number of cells of a measure", *cells, 1..=CELLS_MAX)?;
            if !(low < high && (high - low).is_finite()) {
                return Err(format!("a measure's bounds are {low:?} and {high:?}, but the lower must be less"));
            }
        }
        let cells = self.grid.iter().try_fold(1_usize, |product, axis| product.checked_mul(axis.cells));
        within("the number of cells", cells.unwrap_or(usize::MAX), 1..=CELLS_MAX)?;
        within("the batch of MAP-Elites", self.batch, 1..=100_000)?;
        within("the number of random candidates", self.initial, 1..=1_000_000)?;
        if !((0.0..=1.0).contains(&self.iso) && (0.0..=10.0).contains(&self.line)) {
            return Err(format!("the steps are {:?} and {:?}: give 0 to 1 and 0 to 10", self.iso, self.line));
        }
        self.variation.check()
    }

    /// The number of cells.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.grid.iter().map(|axis| axis.cells).product()
    }

    /// The cell of these measures, counted with the last measure fastest; none if a measure is missing or no number.
    #[must_use]
    pub fn cell(&self, measures: &[f64]) -> Option<usize> {
        let place = |cell: usize, (axis, measure): (&Axis, &f64)| {
            let share = (measure - axis.low) / (axis.high - axis.low);
            let own = ((share * axis.cells as f64) as usize).min(axis.cells - 1);
            (!share.is_nan()).then_some(cell * axis.cells + own)
        };
        (measures.len() == self.grid.len()).then(|| self.grid.iter().zip(measures).try_fold(0, place)).flatten()
    }

    /// What it needs at most, where an evaluation has this many numbers (objectives, constraints and measures).
    #[must_use]
    pub fn most(&self, genome: &Genome, numbers: u64) -> Most {
        let state_bytes = individual::bytes_max(genome, self.cells(), numbers);
        Most { candidates: self.batch.max(self.initial) as u64, state_bytes }
    }
}

/// MAP-Elites.
#[derive(Clone, Debug)]
pub struct MapElites {
    settings: Settings,
    search: Search,
    births: u64,
    /// The elites, by ascending cell.
    archive: Vec<Individual>,
    /// The cell of each.
    cells: Vec<usize>,
}

impl MapElites {
    /// A search at its beginning.
    ///
    /// # Errors
    /// A sentence, if a setting makes no sense.
    pub fn start(settings: &Settings, search: Search) -> Result<Self, String> {
        settings.check()?;
        Ok(Self { settings: settings.clone(), search, births: 0, archive: Vec::new(), cells: Vec::new() })
    }

    /// A search from its saved state.
    ///
    /// # Errors
    /// A sentence, if the bytes are no state of this search.
    pub fn restore(settings: &Settings, search: Search, state: &[u8]) -> Result<Self, String> {
        let fresh = Self::start(settings, search)?;
        let (births, archive) = individual::read(&fresh.search, state)?;
        let cell = |elite: &Individual| settings.cell(&elite.evaluation.measures).filter(|_| !elite.evaluation.failed);
        let cells: Option<Vec<usize>> = archive.iter().map(cell).collect();
        let cells = cells.ok_or("an elite of the state has no cell")?;
        if cells.len() as u64 > births || !cells.is_sorted_by(|one, two| one < two) {
            return Err("the state's elites are not in the order of their cells".into());
        }
        Ok(Self { births, archive, cells, ..fresh })
    }

    /// A child of two elites.
    fn child(&self, rng: &mut Generator) -> Candidate {
        let mut draw = || below(rng, self.archive.len() as u64) as usize;
        let [mother, father] = [draw(), draw()].map(|index| &self.archive[index].candidate);
        let genome = &self.search.genome;
        let mut child = self.settings.variation.child(genome, rng, mother, father);
        let [along, _] = normal_pair(rng);
        for (index, part) in genome.parts.iter().enumerate() {
            let (Type::Real { low, high }, Genes::Real(one), Genes::Real(two)) =
                (part.of, &mother.parts[index], &father.parts[index])
            else {
                continue;
            };
            let mut gene = |(one, two): (&f64, &f64)| {
                let [alone, _] = normal_pair(rng);
                let step = self.settings.iso * alone * (high - low) + self.settings.line * along * (two - one);
                (one + step).clamp(low, high)
            };
            child.parts[index] = Genes::Real(one.iter().zip(two).map(&mut gene).collect());
        }
        child
    }
}

impl Algorithm for MapElites {
    fn size(&self) -> usize {
        let Settings { batch, initial, .. } = self.settings;
        self.search.batch(if self.births == 0 { initial } else { batch }, self.births)
    }

    fn ask(&self, range: Range<usize>) -> Vec<Candidate> {
        assert!(range.end <= self.size(), "candidates {range:?} of {}", self.size());
        let candidate = |index: usize| {
            let mut rng = self.search.birth(self.births + index as u64);
            match self.archive.is_empty() {
                true => self.search.genome.random(&mut rng),
                false => self.child(&mut rng),
            }
        };
        range.map(candidate).collect()
    }

    /// Each candidate in turn takes its cell if that is empty, or its elite not better.
    fn tell(&mut self, evaluations: &[Evaluation]) {
        assert_eq!(evaluations.len(), self.size(), "there is one evaluation for each candidate");
        let candidates = self.ask(0..evaluations.len());
        for (candidate, evaluation) in candidates.into_iter().zip(evaluations) {
            let Some(cell) = self.settings.cell(&evaluation.measures).filter(|_| !evaluation.failed) else { continue };
            let individual = Individual { candidate, evaluation: evaluation.clone() };
            match self.cells.binary_search(&cell) {
                Ok(place) if self.archive[place].evaluation.better(evaluation) => {}
                Ok(place) => self.archive[place] = individual,
                Err(place) => {
                    self.cells.insert(place, cell);
                    self.archive.insert(place, individual);
                }
            }
        }
        self.births += evaluations.len() as u64;
    }

    fn population(&self) -> &[Individual] {
        &self.archive
    }

    fn save(&self) -> Vec<u8> {
        individual::save(self.births, &self.archive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evolve::{
        algorithm::tests::{evaluate, grid, search},
        problem,
    };

    #[test]
    fn cells_are_counted_row_by_row() {
        let axis = |cells| Axis { low: -1.0, high: 1.0, cells };
        let settings = Settings { grid: vec![axis(2), axis(4)], ..Settings::default() };
        let cells = [[-1.0, -1.0], [-0.1, 0.99], [0.0, -1.0], [1.0, 1.0], [9.0, -9.0], [f64::INFINITY, 0.25]];
        assert_eq!(cells.map(|measures| settings.cell(&measures)), [0, 3, 4, 7, 4, 6].map(Some));
        assert_eq!((settings.cell(&[0.0, f64::NAN]), settings.cell(&[0.0]), settings.cells()), (None, None, 8));
    }

    /// An arm of 10 joints reaches the unit disc: pi / 4 of 2,500 cells, and those at its edge.
    #[test]
    fn an_arm_learns_to_reach_its_surroundings() {
        let problem = problem::find("arm").unwrap();
        let mut search = MapElites::start(&grid(problem, 50), search(problem, 10, 20_000)).unwrap();
        let (mut cells, mut sum) = (0, 0.0);
        while search.size() > 0 {
            let evaluations = evaluate(&search, problem);
            search.tell(&evaluations);
            let now: f64 = search.population().iter().map(|elite| 10.0 - elite.evaluation.objective(0)).sum();
            assert!(search.cells.len() >= cells && now >= sum - 1e-9, "the quality of all elites never falls");
            (cells, sum) = (search.cells.len(), now);
        }
        let variance = 10.0 - sum / cells as f64;
        insta::assert_snapshot!(format!("{cells} cells, mean variance {variance:.5}"));
        assert!(cells > 1500 && variance < 0.6, "{cells} {variance}");
    }

    #[test]
    fn settings_that_make_no_sense_have_a_sentence() {
        let good = || grid(problem::find("arm").unwrap(), 10);
        let axis = |low, cells| vec![Axis { low, high: 1.0, cells }];
        let wrong = [
            Settings { grid: Vec::new(), ..good() },
            Settings { grid: axis(2.0, 10), ..good() },
            Settings { grid: axis(0.0, 0), ..good() },
            Settings { grid: [axis(0.0, 1000), axis(0.0, 1000)].concat(), ..good() },
            Settings { iso: -1.0, ..good() },
        ];
        let sentences: Vec<String> = wrong.iter().map(|settings| settings.check().unwrap_err()).collect();
        insta::assert_snapshot!(sentences.join("\n"));
        assert_eq!(good().check(), Ok(()));
    }
}
