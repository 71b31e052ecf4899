//! Uniform random search: the baseline that every other algorithm must beat.

use std::ops::Range;

use prost::Message as _;

use super::{Algorithm, Begin, Given, Individual, Listed, Most, Part, Search, Steady, Wrong, steady, within};
use crate::evolve::{evaluation::Evaluation, genome::Candidate, messages::RandomState};

/// The settings of random search. They do not change which candidates are drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Candidates of a batch, 1 to 100,000.
    pub batch: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { batch: 100 }
    }
}

impl Settings {
    /// Checks that the figures make sense.
    ///
    /// # Errors
    /// A sentence.
    pub fn check(&self) -> Result<(), Wrong> {
        within("population", "the batch of random search", self.batch, 1..=100_000)
    }
}

/// Uniform random search.
#[derive(Clone, Debug)]
pub struct Random {
    batch: usize,
    search: Search,
    births: u64,
}

impl Listed for Random {
    const NAME: &'static str = "random";
    const DOC: &'static str = "uniform random search, the baseline";
    const PARTS: &'static [Part] = &[];
    const STEADY: Option<Begin<dyn Steady>> = Some(steady::<Self>);

    type Settings = Settings;

    fn settings(given: &Given<'_>) -> Settings {
        Settings { batch: given.population.unwrap_or(Settings::default().batch) }
    }

    fn check(given: &Given<'_>) -> Result<(), Wrong> {
        Self::settings(given).check()
    }

    fn most(given: &Given<'_>) -> Most {
        let batch = Self::settings(given).batch as u64;
        Most { candidates: batch, batches: given.evaluations.div_ceil(batch), kept: 0, state_bytes: 16 }
    }

    fn start(settings: &Settings, search: Search) -> Result<Self, String> {
        settings.check()?;
        Ok(Self { batch: settings.batch, search, births: 0 })
    }

    fn restore(settings: &Settings, search: Search, state: &[u8]) -> Result<Self, String> {
        let RandomState { births } =
            RandomState::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?;
        search.check_births(births)?;
        Ok(Self { births, ..Self::start(settings, search)? })
    }
}

impl Algorithm for Random {
    fn size(&self) -> usize {
        self.search.batch(self.batch, self.births)
    }

    fn ask(&self, range: Range<usize>) -> Vec<Candidate> {
        assert!(range.end <= self.size(), "candidates {range:?} of {}", self.size());
        range.map(|index| self.candidate(self.births + index as u64)).collect()
    }

    fn tell(&mut self, evaluations: &[Evaluation]) {
        assert_eq!(evaluations.len(), self.size(), "there is one evaluation for each candidate");
        self.births += evaluations.len() as u64;
    }

    fn births(&self) -> u64 {
        self.births
    }

    fn save(&self) -> Vec<u8> {
        RandomState { births: self.births }.encode_to_vec()
    }
}

impl Steady for Random {
    fn candidate(&self, number: u64) -> Candidate {
        self.search.genome.random(&mut self.search.birth(number))
    }

    fn take(&mut self, _: Individual) {
        self.births += 1;
    }
}
