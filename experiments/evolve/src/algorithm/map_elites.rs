//! MAP-Elites: the best candidate for each kind of behaviour.
//!
//! J.-B. Mouret and J. Clune, "Illuminating Search Spaces by Mapping Elites", arXiv:1504.04909, 2015: a grid over the
//! behaviour measures. V. Vassiliades and J.-B. Mouret, "Discovering the Elite Hypervolume by Leveraging Interspecies
//! Correlation", GECCO 2018: the variation of real genes along the line between two elites.

use std::ops::Range;

use evoxo_common::{
    ratio::Ratio,
    rng::{Generator, below, normal_pair},
    settings,
    settings::Values,
};

use super::{
    Algorithm, Begin, Descent, Given, Leaves, Listed, Most, Part, Search, Steady, Wrong,
    elites::Elites,
    individual::{self, Individual},
    niches::{self, Axis},
    operators::{OF_REALS, OPERATORS, variation},
    steady, within,
};
use crate::{
    evaluation::Evaluation,
    genome::{Candidate, Genes, Type},
    variation::Variation,
};

settings! {
    /// MAP-Elites.
    pub(super) struct Own, names OwnName, schema OWN {
        /// Random candidates at the start.
        initial: usize = whole(1, 1_000_000, "100"),
        /// The number of regions of the archive, around centroids spread evenly over the bounds of the grid (CVT-MAP-Elites);
        /// suited to three or more measures. 0: the cells of the grid.
        centroids: usize = addition whole(0, 4096, "0"),
        /// The standard deviation of independent steps, as a share of the range.
        iso: Ratio = real(0, 1, "0.01"),
        /// The standard deviation of the step along the line between two elites, as a share of their distance.
        line: Ratio = real(0, 10, "0.2"),
    }
}

/// The regions of an archive with these settings; 0 if the archive is a grid.
#[must_use]
pub fn regions(own: &Values) -> usize {
    Own::of(own).centroids
}

/// The settings of MAP-Elites.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// One axis for each measure, in the problem's order; at most 100,000 cells together if the archive is a grid.
    pub grid: Vec<Axis>,
    /// The regions of a centroidal Voronoi tessellation of the measures' bounds, instead of grid cells: 2 to 4,096; 0 for the
    /// grid.
    pub centroids: usize,
    /// Candidates of a batch, 1 to 100,000.
    pub batch: usize,
    /// Random candidates at the start, 1 to 1,000,000.
    pub initial: usize,
    /// The standard deviation of independent steps of real genes, as a share of the width of the bounds, 0 to 1.
    pub iso: f64,
    /// The standard deviation of the step along the line between two elites, as a share of their distance, 0 to 10.
    pub line: f64,
    /// How genes that are not real are varied.
    pub variation: Variation,
}

impl Default for Settings {
    /// Steps of 0.01 and 0.2, as in section 4 of Vassiliades and Mouret 2018. The grid has no default.
    fn default() -> Self {
        Self {
            grid: Vec::new(),
            centroids: 0,
            batch: 100,
            initial: 100,
            iso: 0.01,
            line: 0.2,
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
        niches::check(&self.grid, self.centroids)?;
        within("population", "the batch of MAP-Elites", self.batch, 1..=100_000)?;
        within("initial", "the number of random candidates", self.initial, 1..=1_000_000)?;
        if !((0.0..=1.0).contains(&self.iso) && (0.0..=10.0).contains(&self.line)) {
            let sentence = format!(
                "iso is {:?} and line is {:?}, but they must be from 0 to 1 and from 0 to 10",
                self.iso, self.line
            );
            return Err(Wrong::new("iso", sentence));
        }
        self.variation.check()
    }
}

/// MAP-Elites.
#[derive(Clone, Debug)]
pub struct MapElites {
    settings: Settings,
    search: Search,
    births: u64,
    archive: Elites,
}

impl Listed for MapElites {
    const NAME: &'static str = "map-elites";
    const DOC: &'static str =
        "MAP-Elites, for the best of each kind of behaviour: the problem must have behaviour measures";
    const PARTS: &'static [Part] = &[Part { except: OF_REALS, ..Part::of(&OPERATORS) }, Part::of(&OWN)];
    const STEADY: Option<Begin<dyn Steady>> = Some(steady::<Self>);
    const HAS_PARENTS: bool = true;

    type Settings = Settings;

    fn settings(given: &Given<'_>) -> Settings {
        let own = Own::of(given.own);
        Settings {
            grid: given.grid.clone(),
            centroids: own.centroids,
            batch: given.population.unwrap_or(Settings::default().batch),
            initial: own.initial,
            iso: own.iso.to_f64(),
            line: own.line.to_f64(),
            variation: variation(given),
        }
    }

    fn check(given: &Given<'_>) -> Result<(), Wrong> {
        Self::settings(given).check()
    }

    fn most(given: &Given<'_>) -> Most {
        let Settings { grid, centroids, batch, initial, .. } = Self::settings(given);
        let (batch, initial, niches) = (batch as u64, initial as u64, niches::count(&grid, centroids));
        Most {
            candidates: batch.max(initial),
            batches: 1 + given.evaluations.saturating_sub(initial).div_ceil(batch),
            kept: niches as u64,
            state_bytes: individual::bytes_max(&given.genome, niches, given.numbers),
        }
    }

    fn leaves(_: usize) -> Leaves {
        Leaves::Archive
    }

    fn start(settings: &Settings, search: Search) -> Result<Self, String> {
        settings.check()?;
        let archive = Elites::new(&settings.grid, settings.centroids);
        Ok(Self { settings: settings.clone(), search, births: 0, archive })
    }

    fn restore(settings: &Settings, search: Search, state: &[u8]) -> Result<Self, String> {
        let fresh = Self::start(settings, search)?;
        let (births, elites) = individual::read(&fresh.search, state)?;
        Ok(Self { births, archive: fresh.archive.restored(elites, births)?, ..fresh })
    }
}

impl MapElites {
    /// A child of two elites. `crossed` sees their places, and the child before mutation and before the steps of real genes.
    fn child(&self, rng: &mut Generator, crossed: &mut dyn FnMut([usize; 2], &Candidate)) -> Candidate {
        let mut draw = || below(rng, self.archive.all().len() as u64) as usize;
        let parents = [draw(), draw()];
        let [mother, father] = parents.map(|index| &self.archive.all()[index].candidate);
        let genome = &self.search.genome;
        let watch = &mut |child: &Candidate| crossed(parents, child);
        let mut child = self.settings.variation.watched(genome, rng, [mother, father], watch);
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
        self.search.batch(self.whole(), self.births)
    }

    fn whole(&self) -> usize {
        let Settings { batch, initial, .. } = self.settings;
        if self.births == 0 { initial } else { batch }
    }

    fn ask(&self, range: Range<usize>) -> Vec<Candidate> {
        assert!(range.end <= self.size(), "candidates {range:?} of {}", self.size());
        range.map(|index| self.candidate(self.births + index as u64)).collect()
    }

    fn descents(&self) -> Vec<Option<Descent>> {
        (0..self.size()).map(|index| self.descent(self.births + index as u64)).collect()
    }

    fn tell(&mut self, evaluations: &[Evaluation]) {
        assert_eq!(evaluations.len(), self.size(), "there is one evaluation for each candidate");
        let candidates = self.ask(0..evaluations.len());
        individual::evaluated(candidates, evaluations).for_each(|individual| self.archive.place(individual));
        self.births += evaluations.len() as u64;
    }

    fn population(&self) -> &[Individual] {
        self.archive.all()
    }

    fn births(&self) -> u64 {
        self.births
    }

    fn save(&self) -> Vec<u8> {
        individual::save(self.births, self.archive.all())
    }
}

impl Steady for MapElites {
    /// A child of two elites; a random candidate at the beginning, and while the archive is empty.
    fn made(&self, number: u64, crossed: &mut dyn FnMut([usize; 2], &Candidate)) -> Candidate {
        match number < self.settings.initial as u64 || self.archive.all().is_empty() {
            true => self.search.first(number),
            false => self.child(&mut self.search.birth(number), crossed),
        }
    }

    /// The steps of real genes lead along the line from one elite to the other, so they count as crossover.
    fn descent(&self, number: u64) -> Option<Descent> {
        let Descent { parents, mut crossed } = Descent::of(|crossed| self.made(number, crossed))?;
        let parts = crossed.parts.iter_mut().zip(self.candidate(number).parts);
        parts.filter(|(part, _)| matches!(part, Genes::Real(_))).for_each(|(part, own)| *part = own);
        Some(Descent { parents, crossed })
    }

    fn take(&mut self, individual: Individual) {
        self.births += 1;
        self.archive.place(individual);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        algorithm::tests::{evaluate, grid, search},
        problem,
    };

    /// An arm of 10 joints reaches the unit disc: pi / 4 of 2,500 cells, and the cells at its edge.
    #[test]
    fn an_arm_learns_to_reach_its_whole_disc() {
        let problem = problem::find("arm").unwrap();
        let mut search = MapElites::start(&grid(problem, 50), search(problem, 10, 20_000)).unwrap();
        let (mut cells, mut sum) = (0, 0.0);
        while search.size() > 0 {
            let evaluations = evaluate(&search, problem);
            search.tell(&evaluations);
            let now: f64 = search.population().iter().map(|elite| 10.0 - elite.evaluation.objective(0)).sum();
            assert!(search.population().len() >= cells && now >= sum - 1e-9, "the quality of all elites never falls");
            (cells, sum) = (search.population().len(), now);
        }
        let variance = 10.0 - sum / cells as f64;
        insta::assert_snapshot!(format!("{cells} cells, mean variance {variance:.5}"));
        assert!(cells > 1500 && variance < 0.6, "{cells} {variance}");
    }

    /// The QD score as docs/benchmarks/quality.md defines it: the sum over all cells, where the best variance is worth 100
    /// and the greatest 0. With as many evaluations, 11 searches of pyribs reached 158,774 to 169,971.
    #[test]
    fn the_qd_score_matches_pyribs() {
        let problem = problem::find("arm").unwrap();
        let mut map = MapElites::start(&grid(problem, 50), search(problem, 10, 10_000)).unwrap();
        let mut first = 0.0;
        while map.size() > 0 {
            let evaluations = evaluate(&map, problem);
            map.tell(&evaluations);
            if first == 0.0 {
                first = score(&map);
            }
        }
        let all = score(&map);
        insta::assert_snapshot!(format!("{all:.0}"));
        assert!((158_774.0..169_971.0).contains(&all), "{all}");
        // What 10,000 random candidates leave: the map of a search that starts with as many.
        let settings = Settings { initial: 10_000, ..grid(problem, 50) };
        let mut random = MapElites::start(&settings, search(problem, 10, 10_000)).unwrap();
        let evaluations = evaluate(&random, problem);
        random.tell(&evaluations);
        let drawn = score(&random);
        assert!(random.size() == 0 && first < drawn && drawn < 0.7 * all, "{first} {drawn} {all}");
    }

    fn score(map: &MapElites) -> f64 {
        let worst = std::f64::consts::PI * std::f64::consts::PI;
        map.population().iter().map(|elite| 100.0 * (1.0 - elite.evaluation.objective(0) / worst)).sum()
    }

    /// As many regions as the grid has cells within the disc.
    #[test]
    fn regions_around_centroids_are_filled() {
        let problem = problem::find("arm").unwrap();
        let settings = Settings { centroids: 200, ..grid(problem, 50) };
        let mut search = MapElites::start(&settings, search(problem, 10, 10_000)).unwrap();
        while search.size() > 0 {
            let evaluations = evaluate(&search, problem);
            search.tell(&evaluations);
        }
        // The arm cannot reach some regions in the corners of the square.
        assert!((150..200).contains(&search.population().len()), "{}", search.population().len());
        let again = MapElites::restore(&settings, search.search.clone(), &search.save()).unwrap();
        assert_eq!(again.population(), search.population());
    }

    #[test]
    fn invalid_settings_are_rejected_with_a_reason() {
        let good = || grid(problem::find("arm").unwrap(), 10);
        let axis = |low, cells| vec![Axis { low, high: 1.0, cells }];
        let wrong = [
            Settings { grid: Vec::new(), ..good() },
            Settings { grid: axis(2.0, 10), ..good() },
            Settings { grid: axis(0.0, 0), ..good() },
            Settings { grid: [axis(0.0, 1000), axis(0.0, 1000)].concat(), ..good() },
            Settings { iso: -1.0, ..good() },
            Settings { centroids: 5000, ..good() },
        ];
        let sentences: Vec<String> = wrong.iter().map(|settings| settings.check().unwrap_err().sentence).collect();
        insta::assert_snapshot!(sentences.join("\n"));
        assert_eq!(good().check(), Ok(()));
    }
}
