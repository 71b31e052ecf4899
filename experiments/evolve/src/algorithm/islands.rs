//! Islands: several genetic algorithms side by side. Now and then the best individuals migrate along a ring.
//!
//! R. Tanese, "Distributed Genetic Algorithms", ICGA 1989; E. Cantú-Paz, *Efficient and Accurate Parallel Genetic
//! Algorithms*, 2000, chapter 6 (rates and topologies of migration).

use std::ops::Range;

use prost::Message as _;

use super::{Algorithm, Descent, Ga, GaSettings, Individual, Listed as _, Most, Search, Wrong, within};
use crate::{
    evaluation::Evaluation,
    genome::{Candidate, Genome},
    messages::IslandsState,
};

/// The settings of islands.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The settings of the genetic algorithm on each island.
    pub ga: GaSettings,
    /// The number of islands, 2 to 1,000.
    pub islands: usize,
    /// Generations between two migrations, 1 to 1,000,000.
    pub interval: usize,
    /// How many individuals migrate from each island to the next: the best of one replace the worst of the other. 1 to half
    /// of an island's population.
    pub migrants: usize,
}

impl Settings {
    /// Checks that the settings make sense.
    ///
    /// # Errors
    /// The setting that is wrong, and why.
    pub fn check(&self) -> Result<(), Wrong> {
        within("islands", "the number of islands", self.islands, 2..=1000)?;
        within("migration", "the number of generations between migrations", self.interval, 1..=1_000_000)?;
        let each =
            |Wrong { setting, sentence }| Wrong::new(setting, format!("each of {} islands: {sentence}", self.islands));
        self.ga.check().map_err(each)?;
        within("migrants", "the number of migrants", self.migrants, 1..=self.ga.population / 2)
    }

    /// What the algorithm needs at most, if an evaluation has this many numbers (objectives, constraints and measures).
    #[must_use]
    pub fn most(&self, genome: &Genome, numbers: u64, evaluations: u64) -> Most {
        let islands = self.islands as u64;
        let Most { candidates, batches, kept, state_bytes } =
            self.ga.most(genome, numbers, evaluations.div_ceil(islands));
        let state_bytes = 16 + islands * (state_bytes + 16);
        Most { candidates: islands * candidates, batches, kept: islands * kept, state_bytes }
    }
}

/// Genetic algorithms with migration.
pub struct Islands {
    settings: Settings,
    search: Search,
    islands: Vec<Ga>,
    generations: u64,
    /// The individuals of all islands, one island after another.
    all: Vec<Individual>,
}

impl Islands {
    /// Starts a search.
    ///
    /// # Errors
    /// If a setting makes no sense; the sentence says which.
    pub fn start(settings: &Settings, search: &Search) -> Result<Self, String> {
        settings.check()?;
        let islands =
            (0..settings.islands).map(|island| Ga::start(&settings.ga, of_island(search, island, settings.islands)));
        let islands = islands.collect::<Result<Vec<Ga>, String>>()?;
        Ok(Self { settings: settings.clone(), search: search.clone(), islands, generations: 0, all: Vec::new() })
    }

    /// Restores a search from its saved state.
    ///
    /// # Errors
    /// If the bytes are not a state of this search; the sentence says why.
    pub fn restore(settings: &Settings, search: &Search, state: &[u8]) -> Result<Self, String> {
        let IslandsState { generations, islands } =
            IslandsState::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?;
        settings.check()?;
        if islands.len() != settings.islands {
            return Err(format!("the state has {} islands, not {}", islands.len(), settings.islands));
        }
        let island = |(island, state): (usize, _)| {
            let state: &bytes::Bytes = state;
            Ga::restore(&settings.ga, of_island(search, island, settings.islands), state)
        };
        let islands = islands.iter().enumerate().map(island).collect::<Result<Vec<Ga>, String>>()?;
        let mut restored =
            Self { settings: settings.clone(), search: search.clone(), islands, generations, all: Vec::new() };
        search.check_births(restored.births())?;
        restored.collect();
        Ok(restored)
    }

    fn collect(&mut self) {
        self.all = self.islands.iter().flat_map(Algorithm::population).cloned().collect();
    }

    /// The best of each island replace the worst of the next one.
    fn migrate(&mut self) {
        let leaving: Vec<Vec<Individual>> =
            self.islands.iter().map(|island| island.best(self.settings.migrants)).collect();
        let count = self.islands.len();
        for (from, migrants) in leaving.into_iter().enumerate() {
            self.islands[(from + 1) % count].admit(migrants);
        }
    }
}

/// The search of one island, with its own random numbers and its share of the candidates with which the search begins. All
/// islands have generations of the same size, so each has its share of the evaluations too.
fn of_island(search: &Search, island: usize, islands: usize) -> Search {
    let stream = search.stream.text("island").word(island as u64);
    let start = search.start.iter().skip(island).step_by(islands).cloned().collect();
    Search { stream, start, ..search.clone() }
}

impl Algorithm for Islands {
    fn size(&self) -> usize {
        self.search.batch(self.whole(), self.births())
    }

    fn whole(&self) -> usize {
        self.islands.iter().map(Algorithm::whole).sum()
    }

    fn ask(&self, range: Range<usize>) -> Vec<Candidate> {
        assert!(range.end <= self.size(), "candidates {range:?} of {}", self.size());
        let (mut first, mut candidates) = (0, Vec::with_capacity(range.len()));
        for island in &self.islands {
            let end = first + island.whole();
            let (from, to) = (range.start.clamp(first, end), range.end.clamp(first, end));
            candidates.extend(island.ask(from - first..to - first));
            first = end;
        }
        candidates
    }

    fn descents(&self) -> Vec<Option<Descent>> {
        let (mut all, mut place) = (Vec::new(), 0);
        for island in &self.islands {
            let own = island.descents().into_iter();
            let here = |descent: Descent| Descent { parents: descent.parents.map(|parent| place + parent), ..descent };
            all.extend(own.map(|descent| descent.map(here)));
            place += island.population().len();
        }
        all.truncate(self.size());
        all
    }

    fn tell(&mut self, evaluations: &[Evaluation]) {
        assert_eq!(evaluations.len(), self.size(), "there is one evaluation for each candidate");
        let mut rest = evaluations;
        for island in &mut self.islands {
            let (own, others) = rest.split_at(island.whole().min(rest.len()));
            rest = others;
            // If the last batch of a search is cut off, it may have no evaluations for the last islands.
            if !own.is_empty() {
                island.tell(own);
            }
        }
        self.generations += 1;
        if self.generations.is_multiple_of(self.settings.interval as u64) {
            self.migrate();
        }
        self.collect();
    }

    fn population(&self) -> &[Individual] {
        &self.all
    }

    fn births(&self) -> u64 {
        self.islands.iter().map(Algorithm::births).sum()
    }

    fn save(&self) -> Vec<u8> {
        let islands = self.islands.iter().map(|island| island.save().into()).collect();
        IslandsState { generations: self.generations, islands }.encode_to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        algorithm::tests::{minimise, search},
        problem,
    };

    fn settings(islands: usize, interval: usize) -> Settings {
        let ga = GaSettings { population: 20, elite: 1, ..GaSettings::default() };
        Settings { ga, islands, interval, migrants: 2 }
    }

    /// Without migration each island is an independent genetic algorithm. With migration the best individual soon reaches
    /// every island.
    #[test]
    fn the_best_candidates_migrate_round_the_ring() {
        let problem = problem::find("sphere").unwrap();
        let best_of_each = |interval| {
            let search = search(problem, 10, 5 * (20 + 19 * 30));
            let mut islands = Islands::start(&settings(5, interval), &search).unwrap();
            minimise(&mut islands, problem);
            let best = |island: &Ga| island.best(1)[0].evaluation.objective(0);
            islands.islands.iter().map(best).collect::<Vec<f64>>()
        };
        let apart = best_of_each(1_000_000);
        let alone = (0..5).map(|island| {
            let search =
                Search { evaluations: 20 + 19 * 30, ..of_island(&search(problem, 10, 5 * (20 + 19 * 30)), island, 5) };
            let mut ga = Ga::start(&settings(5, 1).ga, search).unwrap();
            minimise(&mut ga, problem).objective(0)
        });
        assert_eq!(apart, alone.collect::<Vec<f64>>());
        let spread = |values: &[f64]| {
            let (least, most) =
                values.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), one| (least.min(*one), most.max(*one)));
            most / least
        };
        let together = best_of_each(1);
        assert!(spread(&together) < spread(&apart), "{together:?} {apart:?}");
    }

    #[test]
    fn invalid_settings_are_rejected_with_a_reason() {
        let wrong = [settings(1, 10), settings(5, 0), Settings { migrants: 11, ..settings(5, 10) }];
        let sentences: Vec<String> = wrong.iter().map(|settings| settings.check().unwrap_err().sentence).collect();
        insta::assert_snapshot!(sentences.join("\n"));
        let search = search(problem::find("sphere").unwrap(), 3, 100);
        let saved = Islands::start(&settings(5, 10), &search).unwrap().save();
        let why = Islands::restore(&settings(4, 10), &search, &saved).err().unwrap();
        assert_eq!(why, "the state has 5 islands, not 4");
    }
}
