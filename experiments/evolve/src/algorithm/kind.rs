//! An algorithm as a value: everything that the rest of `evolve` needs to know about it. The file of an algorithm implements
//! [`Listed`], and the table [`ALGORITHMS`](super::ALGORITHMS) has a line for it. No other code names an algorithm. An algorithm
//! of another crate does the same, and its program [adds](super::add) it.

use evoxo_common::{
    rng::Stream,
    settings::{Schema, Values},
};

use super::{Algorithm, Averaged, Axis, Most, Noise, Search, Steady, Windowed, Wrong, averaged, windowed};
use crate::{
    genome::{Candidate, Genome},
    messages::Steps,
};

/// An algorithm that an experiment file can choose.
pub trait Listed: Algorithm + Sized + 'static {
    /// The algorithm's name in experiment files.
    const NAME: &'static str;
    /// What the algorithm is and which problems it suits, in a few words.
    const DOC: &'static str;
    /// The settings that have an effect with this algorithm, besides those that all algorithms share.
    const PARTS: &'static [Part];
    /// The most objectives that a problem may have.
    const OBJECTIVES_MAX: usize = 1;
    /// How the algorithm starts a search with a window: [`steady`], or `None` if it needs whole generations.
    const STEADY: Option<Begin<dyn Steady>> = None;
    /// Whether candidates are made from individuals that the algorithm keeps: see [`Algorithm::descents`].
    const HAS_PARENTS: bool = false;
    /// Whether something shrinks until the last evaluation, so that a longer search is another one from its beginning.
    const SHRINKS: bool = false;
    /// How the algorithm treats noise, see [`Averaged`]. `None` if each candidate is evaluated once and has its own seed.
    const NOISE: Option<Noise> = None;
    /// How candidates are made from their numbers, if tasks need no genes: see [`Algorithm::steps`].
    const MADE: Option<Made> = None;
    /// Whether batches come from a program: see [`Algorithm::question`].
    const ASKS: bool = false;

    /// The algorithm's settings, as its own code uses them.
    type Settings;

    /// The algorithm's settings from an experiment file.
    fn settings(given: &Given<'_>) -> Self::Settings;

    /// Checks that the settings of a file make sense. It looks at values only and starts nothing.
    ///
    /// # Errors
    /// The setting that is wrong, and why; also if the algorithm cannot search this genome.
    fn check(given: &Given<'_>) -> Result<(), Wrong>;

    /// What a search needs at most.
    fn most(given: &Given<'_>) -> Most;

    /// Starts a search.
    ///
    /// # Errors
    /// If a setting makes no sense or the algorithm cannot search this genome; the sentence says why.
    fn start(settings: &Self::Settings, search: Search) -> Result<Self, String>;

    /// Restores a search from its saved state.
    ///
    /// # Errors
    /// If the bytes are not a state of this search; the sentence says why.
    fn restore(settings: &Self::Settings, search: Search, state: &[u8]) -> Result<Self, String>;

    /// Starts a search with the settings of a file, or restores it from a saved state.
    ///
    /// # Errors
    /// Those of [`Self::start`] and [`Self::restore`].
    fn begin(given: &Given<'_>, search: Search, state: Option<&[u8]>) -> Result<Box<dyn Algorithm>, String> {
        Ok(Box::new(begun::<Self>(given, search, state)?))
    }

    /// What a search of a problem with this many objectives leaves, apart from its best candidate.
    fn leaves(_objectives: usize) -> Leaves {
        Leaves::Nothing
    }

    /// Whether all genes stay within their bounds with these settings.
    fn keeps_bounds(_own: &Values) -> bool {
        true
    }

    /// The defaults with this genome that are not those of the settings' parts, for files that leave these settings out.
    fn defaults(_genome: &Genome) -> &'static [(&'static str, &'static str)] {
        &[]
    }
}

/// Starts a search with the settings of a file, or restores it from a saved state.
pub type Begin<S> = fn(&Given<'_>, Search, Option<&[u8]>) -> Result<Box<S>, String>;

fn begun<L: Listed>(given: &Given<'_>, search: Search, state: Option<&[u8]>) -> Result<L, String> {
    let settings = L::settings(given);
    match state {
        None => L::start(&settings, search),
        Some(state) => L::restore(&settings, search, state),
    }
}

/// Starts a search with a window, or restores it, for an algorithm that makes candidates one by one.
///
/// # Errors
/// Those of [`Listed::start`] and [`Listed::restore`].
pub fn steady<L: Listed + Steady>(
    given: &Given<'_>,
    search: Search,
    state: Option<&[u8]>,
) -> Result<Box<dyn Steady>, String> {
    Ok(Box::new(begun::<L>(given, search, state)?))
}

/// What an algorithm gets from an experiment file.
pub struct Given<'a> {
    /// The settings of all algorithms.
    pub own: &'a Values,
    /// The genome that is searched.
    pub genome: Genome,
    /// The most evaluations of the whole search.
    pub evaluations: u64,
    /// The candidates of a batch, if the file sets them.
    pub population: Option<usize>,
    /// The number of candidates that are evaluated at the same time, without generations; 0 for whole generations.
    pub window: usize,
    /// Whether a candidate's value depends on its seed.
    pub noisy: bool,
    /// The number of objectives.
    pub objectives: usize,
    /// The number of objectives, constraints and measures of an evaluation together.
    pub numbers: u64,
    /// An axis for each behaviour measure.
    pub grid: Vec<Axis>,
    /// The value of the objective, to be minimised, that is worth nothing to an archive; `None` if it is not known.
    pub worthless: Option<f64>,
    /// The candidates with which the search begins.
    pub start: Vec<Candidate>,
}

impl Given<'_> {
    /// The search that these settings describe, with the random numbers of this stream.
    #[must_use]
    pub fn search(&self, stream: Stream) -> Search {
        Search { genome: self.genome.clone(), evaluations: self.evaluations, start: self.start.clone(), stream }
    }
}

/// A group of settings that one or several algorithms have.
pub struct Part {
    /// The settings.
    pub schema: &'static Schema,
    /// The names of those that this algorithm does not have.
    pub except: &'static [&'static str],
    /// Checks the values of these settings for an algorithm that does not have them. `owners` names the algorithms that do,
    /// as in a sentence. Most settings merely have no effect then, and a note says so.
    pub elsewhere: fn(own: &Values, owners: &str) -> Result<(), Wrong>,
}

impl Part {
    /// The whole group.
    #[must_use]
    pub const fn of(schema: &'static Schema) -> Self {
        Self { schema, except: &[], elsewhere: |_, _| Ok(()) }
    }

    /// Whether both are parts of the same group.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        std::ptr::eq(self.schema, other.schema)
    }
}

/// What a search leaves, apart from its best candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// Nothing.
    Nothing,
    /// The first front of the candidates that the algorithm keeps.
    Front,
    /// An archive: the best candidate for each kind of behaviour.
    Archive,
}

/// Makes the candidates with these numbers from what the tasks of a batch share.
pub type Make = fn(&Given<'_>, &Search, &Steps, &[u64]) -> Result<Vec<Candidate>, String>;

/// How candidates are made from their numbers in the whole search.
#[derive(Clone, Copy)]
pub struct Made {
    /// Makes the candidates in a task.
    pub candidates: Make,
    /// Settings with which some candidates lie beyond the bounds. The kind's behaviour signature covers them.
    pub example: &'static str,
}

/// An algorithm as a value.
pub struct AlgorithmKind {
    /// The algorithm's name in experiment files.
    pub name: &'static str,
    /// What the algorithm is and which problems it suits, in a few words.
    pub doc: &'static str,
    /// The settings that have an effect with this algorithm, besides those that all algorithms share.
    pub parts: &'static [Part],
    /// The most objectives that a problem may have.
    pub objectives_max: usize,
    /// What a search of a problem with this many objectives leaves, apart from its best candidate.
    pub leaves: fn(usize) -> Leaves,
    /// How candidates are made from their numbers, if tasks need no genes.
    pub made: Option<Made>,
    /// Whether all genes stay within their bounds with these settings.
    pub keeps_bounds: fn(&Values) -> bool,
    /// Checks that the settings of a file make sense.
    pub check: fn(&Given<'_>) -> Result<(), Wrong>,
    /// Whether candidates are made from individuals that the algorithm keeps: see [`Algorithm::descents`].
    pub has_parents: bool,
    /// Whether something shrinks until the last evaluation, so that a longer search is another one from its beginning.
    pub shrinks: bool,
    /// Whether batches come from a program: see [`Algorithm::question`].
    pub asks: bool,
    /// The defaults that are not those of the settings' parts, each with the setting's name: see [`Listed::defaults`].
    pub defaults: fn(&Genome) -> &'static [(&'static str, &'static str)],
    pub(super) noise: Option<Noise>,
    pub(super) most: fn(&Given<'_>) -> Most,
    pub(super) begin: Begin<dyn Algorithm>,
    pub(super) steady: Option<Begin<dyn Steady>>,
}

impl AlgorithmKind {
    /// The algorithm that `L` defines.
    #[must_use]
    pub const fn of<L: Listed>() -> Self {
        Self {
            name: L::NAME,
            doc: L::DOC,
            parts: L::PARTS,
            objectives_max: L::OBJECTIVES_MAX,
            leaves: L::leaves,
            made: L::MADE,
            keeps_bounds: L::keeps_bounds,
            check: L::check,
            noise: L::NOISE,
            most: L::most,
            begin: L::begin,
            steady: L::STEADY,
            has_parents: L::HAS_PARENTS,
            shrinks: L::SHRINKS,
            asks: L::ASKS,
            defaults: L::defaults,
        }
    }

    /// Whether the algorithm can search with a window.
    #[must_use]
    pub const fn has_windows(&self) -> bool {
        self.steady.is_some()
    }

    /// Whether searches with this algorithm can leave this, for some number of objectives.
    #[must_use]
    pub fn can_leave(&self, what: Leaves) -> bool {
        [1, 2].into_iter().any(|objectives| objectives <= self.objectives_max && (self.leaves)(objectives) == what)
    }

    /// Whether this setting of a part has an effect with this algorithm.
    #[must_use]
    pub fn has(&self, part: &Part, setting: &str) -> bool {
        self.parts.iter().any(|own| own.is_like(part) && !own.except.contains(&setting))
    }

    /// What a search needs at most.
    #[must_use]
    pub fn most(&self, given: &Given<'_>) -> Most {
        let own = (self.most)(given);
        match (given.window, self.noise(given)) {
            (0, None) => own,
            (0, Some(noise)) => averaged::most(own, noise, given.evaluations),
            _ => windowed::most(own, given),
        }
    }

    /// The algorithm's part of a replica's state after this many evaluations; `None` if the search has not begun. An algorithm
    /// with a program has begun when the program was asked for the first batch.
    #[must_use]
    pub fn saved<'a>(&self, evaluations: u64, state: &'a [u8]) -> Option<&'a [u8]> {
        (evaluations > 0 || self.asks && !state.is_empty()).then_some(state)
    }

    /// How the algorithm treats the noise of this problem, if there is any.
    fn noise(&self, given: &Given<'_>) -> Option<Noise> {
        self.noise.filter(|_| given.noisy && given.window == 0)
    }

    /// Starts a search, or restores it from its saved state.
    ///
    /// # Errors
    /// If a setting makes no sense or the bytes are not a state of this search; the sentence says why.
    pub fn begin(&self, given: &Given<'_>, search: Search, state: Option<&[u8]>) -> Result<Box<dyn Algorithm>, String> {
        let own = search.clone();
        if let Some(noise) = self.noise(given) {
            return Ok(Box::new(match state {
                None => Averaged::start((self.begin)(given, own, None)?, search, noise),
                Some(state) => Averaged::restore(|state| (self.begin)(given, own, Some(state)), search, noise, state)?,
            }));
        }
        let Some(steady) = self.steady.filter(|_| given.window > 0) else { return (self.begin)(given, search, state) };
        Ok(Box::new(match state {
            None => Windowed::start(steady(given, own, None)?, search, given.window)?,
            Some(state) => Windowed::restore(|state| steady(given, own, Some(state)), search, given.window, state)?,
        }))
    }
}

impl PartialEq for AlgorithmKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for AlgorithmKind {}

impl std::fmt::Debug for AlgorithmKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
