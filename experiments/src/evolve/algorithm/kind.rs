//! An algorithm as a value: all that the rest of `evolve` asks about it. The file of an algorithm implements [`Listed`], and the table
//! [`ALGORITHMS`](super::ALGORITHMS) has a line for it. Nothing else names an algorithm.

use evoxo_common::{
    rng::Stream,
    settings::{Schema, Values},
};

use super::{Algorithm, Axis, Most, Search, Steady, Windowed, Wrong, windowed};
use crate::evolve::{
    genome::{Candidate, Genome},
    messages::Steps,
};

/// An algorithm that an experiment file can choose.
pub trait Listed: Algorithm + Sized + 'static {
    /// Its name in experiment files.
    const NAME: &'static str;
    /// What it is and for which problems, in a few words.
    const DOC: &'static str;
    /// The settings that have an effect with it, besides those that every algorithm has.
    const PARTS: &'static [Part];
    /// The most objectives that a problem may have.
    const OBJECTIVES_MAX: usize = 1;
    /// How it begins a search with a window: [`steady`] if it can, or `None` if it needs whole generations.
    const STEADY: Option<Begin<dyn Steady>> = None;
    /// How candidates are made from their numbers, if a task needs no genes: see [`Algorithm::steps`].
    const MADE: Option<Made> = None;

    /// Its settings, as its own code has them.
    type Settings;

    /// The settings of an experiment file.
    fn settings(given: &Given<'_>) -> Self::Settings;

    /// Checks that the settings of a file make sense. It looks at figures and starts nothing.
    ///
    /// # Errors
    /// A sentence, also if it cannot search this genome.
    fn check(given: &Given<'_>) -> Result<(), Wrong>;

    /// What a search needs at most.
    fn most(given: &Given<'_>) -> Most;

    /// A search at its beginning.
    ///
    /// # Errors
    /// A sentence, if a setting makes no sense or it cannot search this genome.
    fn start(settings: &Self::Settings, search: Search) -> Result<Self, String>;

    /// A search from its saved state.
    ///
    /// # Errors
    /// A sentence, if the bytes are no state of this search.
    fn restore(settings: &Self::Settings, search: Search, state: &[u8]) -> Result<Self, String>;

    /// A search with the settings of a file, at its beginning or from its saved state.
    ///
    /// # Errors
    /// Those of [`Self::start`] and [`Self::restore`].
    fn begin(given: &Given<'_>, search: Search, state: Option<&[u8]>) -> Result<Box<dyn Algorithm>, String> {
        Ok(Box::new(begun::<Self>(given, search, state)?))
    }

    /// What a search of a problem with this many objectives leaves besides its best candidate.
    fn leaves(_objectives: usize) -> Leaves {
        Leaves::Nothing
    }

    /// Whether no gene leaves its bounds.
    fn keeps_bounds(_own: &Values) -> bool {
        true
    }
}

/// Begins a search with the settings of a file, or continues it from a saved state.
pub type Begin<S> = fn(&Given<'_>, Search, Option<&[u8]>) -> Result<Box<S>, String>;

fn begun<L: Listed>(given: &Given<'_>, search: Search, state: Option<&[u8]>) -> Result<L, String> {
    let settings = L::settings(given);
    match state {
        None => L::start(&settings, search),
        Some(state) => L::restore(&settings, search, state),
    }
}

/// How an algorithm that makes candidates one by one begins a search with a window.
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

/// What an experiment file says to an algorithm.
pub struct Given<'a> {
    /// The settings of all algorithms.
    pub own: &'a Values,
    /// The search space.
    pub genome: Genome,
    /// Evaluations of the whole search, at most.
    pub evaluations: u64,
    /// Candidates of a batch, if the file says how many.
    pub population: Option<usize>,
    /// Candidates that are evaluated at the same time, without generations; 0 for whole generations.
    pub window: usize,
    /// Whether a candidate's value depends on its seed.
    pub noisy: bool,
    /// Objectives of the problem.
    pub objectives: usize,
    /// Objectives, constraints and measures of an evaluation together.
    pub numbers: u64,
    /// An axis for each behaviour measure.
    pub grid: Vec<Axis>,
}

impl Given<'_> {
    /// What is searched, with the random numbers of this stream.
    #[must_use]
    pub fn search(&self, stream: Stream) -> Search {
        Search { genome: self.genome.clone(), evaluations: self.evaluations, stream }
    }
}

/// Settings that an algorithm has, alone or with others.
pub struct Part {
    /// The settings.
    pub schema: &'static Schema,
    /// Those of them that this algorithm does not have.
    pub except: &'static [&'static str],
    /// What is wrong with their values if the algorithm is none of those that have them, whose names are given as in a sentence. Most
    /// settings have no effect then, and a note says so.
    pub elsewhere: fn(own: &Values, owners: &str) -> Result<(), Wrong>,
}

impl Part {
    /// All of these settings.
    pub(super) const fn of(schema: &'static Schema) -> Self {
        Self { schema, except: &[], elsewhere: |_, _| Ok(()) }
    }

    /// Whether both are of the same settings.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        std::ptr::eq(self.schema, other.schema)
    }
}

/// What a search leaves besides its best candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// Nothing.
    Nothing,
    /// The first front of what it keeps.
    Front,
    /// An archive: the best of every kind of behaviour.
    Archive,
}

/// The candidates with these numbers, from what a batch has in common.
pub type Make = fn(&Given<'_>, &Search, &Steps, &[u64]) -> Result<Vec<Candidate>, String>;

/// How candidates are made from their numbers in the whole search.
#[derive(Clone, Copy)]
pub struct Made {
    /// Makes them, in a task.
    pub candidates: Make,
    /// Settings with which some candidates lie beyond the bounds, for the kind's behaviour signature.
    pub example: &'static str,
}

/// An algorithm as a value.
pub struct AlgorithmKind {
    /// Its name in experiment files.
    pub name: &'static str,
    /// What it is and for which problems, in a few words.
    pub doc: &'static str,
    /// The settings that have an effect with it, besides those that every algorithm has.
    pub parts: &'static [Part],
    /// The most objectives that a problem may have.
    pub objectives_max: usize,
    /// What a search of a problem with so many objectives leaves besides its best candidate.
    pub leaves: fn(usize) -> Leaves,
    /// How candidates are made from their numbers, if a task needs no genes.
    pub made: Option<Made>,
    /// Whether no gene leaves its bounds, with these settings.
    pub keeps_bounds: fn(&Values) -> bool,
    /// Checks that the settings of a file make sense.
    pub check: fn(&Given<'_>) -> Result<(), Wrong>,
    most: fn(&Given<'_>) -> Most,
    begin: Begin<dyn Algorithm>,
    steady: Option<Begin<dyn Steady>>,
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
            most: L::most,
            begin: L::begin,
            steady: L::STEADY,
        }
    }

    /// Whether it can search with a window.
    #[must_use]
    pub const fn has_windows(&self) -> bool {
        self.steady.is_some()
    }

    /// Whether a search of some problem leaves this.
    #[must_use]
    pub fn can_leave(&self, what: Leaves) -> bool {
        [1, 2].into_iter().any(|objectives| objectives <= self.objectives_max && (self.leaves)(objectives) == what)
    }

    /// Whether this setting of a part has an effect with it.
    #[must_use]
    pub fn has(&self, part: &Part, setting: &str) -> bool {
        self.parts.iter().any(|own| own.is_like(part) && !own.except.contains(&setting))
    }

    /// What a search needs at most.
    #[must_use]
    pub fn most(&self, given: &Given<'_>) -> Most {
        let own = (self.most)(given);
        if given.window > 0 { windowed::most(own, given) } else { own }
    }

    /// A search at its beginning, or from its saved state.
    ///
    /// # Errors
    /// A sentence, if a setting makes no sense or the bytes are no state of this search.
    pub fn begin(&self, given: &Given<'_>, search: Search, state: Option<&[u8]>) -> Result<Box<dyn Algorithm>, String> {
        let Some(steady) = self.steady.filter(|_| given.window > 0) else { return (self.begin)(given, search, state) };
        let own = search.clone();
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
