//! The person's own algorithm. A program has it, and a task asks the program for each batch: it gets the algorithm's saved state
//! and the values of the last batch, and returns the new state and the next batch. So this state machine makes no candidate
//! itself; it only remembers what the program wrote. `program/own.rs` has the conversation with the program.

use std::ops::Range;

use evoxo_common::{settings, settings::Values};
use prost::Message as _;
use rand_core::Rng as _;

use super::{
    Algorithm, Descent, Given, Individual, Leaves, Listed, Most, Part, Search, Wrong, individual, nsga2::best, within,
};
use crate::{
    evaluation::Evaluation,
    genome::{Candidate, Genome},
    messages::{AskOutput, AskTask, OwnState},
};

/// The most bytes of the state that the program returns.
pub const STATE_BYTES_MAX: usize = 1 << 20;
/// The usual limit of a batch.
const BATCH: usize = 1000;
/// The most genes of a batch, so that its line in JSON has less than 16 MiB.
const BATCH_GENES_MAX: usize = 400_000;
/// The most bytes of a batch with its evaluations, so that a task can tell it.
const BATCH_BYTES_MAX: u64 = 4 << 20;
/// How many of the best candidates are kept if there are several objectives.
const KEPT: usize = 100;

settings! {
    /// The person's own algorithm.
    pub struct Own, names OwnName, schema OWN {
        /// The name of your algorithm in its program. That is the program of the problem; for a built-in problem or a module
        /// it is the program of this name.
        own: String = addition text(64, ""),
        /// What your algorithm is given as its settings: an object in JSON, for example "{\"sigma\": 0.3}".
        own_settings: String = addition text(4000, "{}"),
        /// For a built-in problem or a module: the signature of the program. Empty: `evoxo run` and `evoxo submit` fill it in.
        own_signature: String = addition text(64, ""),
        /// The hash of your algorithm's answers to fixed questions. Each worker compares it with the answers of its own
        /// program. Empty: `evoxo run` and `evoxo submit` fill it in.
        own_answers: String = addition text(64, ""),
    }
}

/// The settings of the person's own algorithm in these settings of all algorithms.
#[must_use]
pub fn own(values: &Values) -> Own {
    Own::of(values)
}

/// The limits of a search with the person's own algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The most candidates of a batch, 1 to 100,000.
    pub batch: usize,
    /// How many of the best candidates are kept; 0 with one objective.
    pub kept: usize,
    /// The number of objectives.
    pub objectives: usize,
    /// The number of objectives, constraints and measures together.
    pub numbers: u64,
}

/// The person's own algorithm between two rounds. Either the next batch is there, or the program must be asked for it.
#[derive(Clone, Debug)]
pub struct OwnAlgorithm {
    settings: Settings,
    search: Search,
    births: u64,
    /// What the program wrote last.
    state: String,
    /// The next batch; empty if the program must be asked for it.
    batch: Vec<Candidate>,
    /// The last batch, which the program has not been told yet.
    told: Vec<Individual>,
    /// The best candidates so far; empty with one objective.
    kept: Vec<Individual>,
}

impl Listed for OwnAlgorithm {
    const NAME: &'static str = "own";
    const DOC: &'static str = "your own algorithm, which a program has";
    const PARTS: &'static [Part] = &[Part::of(&OWN)];
    const OBJECTIVES_MAX: usize = usize::MAX;
    const ASKS: bool = true;

    type Settings = Settings;

    fn settings(given: &Given<'_>) -> Settings {
        let genome = &given.genome;
        let bytes = individual::bytes_max(genome, 1, given.numbers);
        let most = (BATCH_GENES_MAX / genome.genes().max(1)).min((BATCH_BYTES_MAX / bytes) as usize).max(1);
        Settings {
            batch: given.population.unwrap_or(BATCH).min(most),
            kept: if given.objectives > 1 { KEPT } else { 0 },
            objectives: given.objectives,
            numbers: given.numbers,
        }
    }

    fn check(given: &Given<'_>) -> Result<(), Wrong> {
        within("population", "the most candidates of a batch", Self::settings(given).batch, 1..=100_000)?;
        let Own { own, own_settings, own_signature, own_answers } = own(given.own);
        let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        if own.is_empty() || !own.chars().all(plain) {
            let sentence =
                format!("own is {own:?}, but it must be the name of your algorithm: letters, digits, _, . and -");
            return Err(Wrong::new("own", sentence));
        }
        if !matches!(serde_json::from_str(&own_settings), Ok(serde_json::Value::Object(_))) {
            let sentence =
                format!("own_settings is {own_settings:?}, but it must be an object in JSON such as {{\"sigma\": 1}}");
            return Err(Wrong::new("own_settings", sentence));
        }
        let is_hash = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        for (name, text) in [("own_signature", own_signature), ("own_answers", own_answers)] {
            if !text.is_empty() && !is_hash(&text) {
                return Err(Wrong::new(name, format!("{name} must have 64 hexadecimal digits, or be empty")));
            }
        }
        match given.start.is_empty() {
            true => Ok(()),
            false => Err(Wrong::new(
                "start",
                "your own algorithm gets no start: give it its first candidates in own_settings",
            )),
        }
    }

    fn most(given: &Given<'_>) -> Most {
        let Settings { batch, kept, numbers, .. } = Self::settings(given);
        let individuals = individual::bytes_max(&given.genome, batch + kept, numbers);
        let state_bytes = 64 + STATE_BYTES_MAX as u64 + individuals;
        // Each batch has a round in which the program is asked for it, and one in which it is evaluated.
        let batches = given.evaluations.saturating_mul(2);
        Most { candidates: batch as u64, batches, kept: kept as u64, state_bytes }
    }

    fn leaves(objectives: usize) -> Leaves {
        if objectives > 1 { Leaves::Front } else { Leaves::Nothing }
    }

    fn start(settings: &Settings, search: Search) -> Result<Self, String> {
        let (settings, state) = (settings.clone(), String::new());
        Ok(Self { settings, search, births: 0, state, batch: Vec::new(), told: Vec::new(), kept: Vec::new() })
    }

    fn restore(settings: &Settings, search: Search, state: &[u8]) -> Result<Self, String> {
        let OwnState { births, state, batch, told, kept } =
            OwnState::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?;
        search.check_births(births)?;
        let genome = &search.genome;
        let (told, kept) = (Individual::read_all(genome, &told)?, Individual::read_all(genome, &kept)?);
        let batch = batch.iter().map(|one| genome.candidate(one)).collect::<Result<Vec<_>, String>>()?;
        let fits = |one: &Individual| {
            let Evaluation { objectives, constraints, measures, failed } = &one.evaluation;
            let lists = [objectives, constraints, measures];
            let numbers: usize = lists.iter().map(|list| list.len()).sum();
            let finite = lists.iter().all(|list| list.iter().all(|number| number.is_finite()));
            let whole = objectives.len() == settings.objectives && numbers as u64 == settings.numbers;
            finite && if *failed { numbers == 0 } else { whole }
        };
        let is_between = batch.is_empty() != told.is_empty() || (births == 0 && told.is_empty() && state.is_empty());
        let sizes = batch.len().max(told.len()) <= settings.batch && told.len() as u64 <= births;
        if !is_between || !sizes || state.len() > STATE_BYTES_MAX || !told.iter().all(fits) {
            return Err("the state is not one of an algorithm of a program with these settings".into());
        }
        if kept.len() as u64 != births.min(settings.kept as u64) {
            return Err(format!("the state has {} individuals after {births} evaluations", kept.len()));
        }
        Ok(Self { births, state, batch, told, kept, ..Self::start(settings, search)? })
    }
}

impl Algorithm for OwnAlgorithm {
    fn size(&self) -> usize {
        self.search.batch(self.whole(), self.births)
    }

    fn whole(&self) -> usize {
        // Before the program is asked, it is only known that there is a next batch.
        self.batch.len().max(1)
    }

    fn ask(&self, range: Range<usize>) -> Vec<Candidate> {
        self.batch[range].to_vec()
    }

    fn newest(&self) -> Vec<(Candidate, Option<Descent>)> {
        self.batch.iter().take(self.size()).map(|candidate| (candidate.clone(), None)).collect()
    }

    fn is_asking(&self) -> bool {
        self.batch.is_empty() && self.size() > 0
    }

    fn question(&self) -> AskTask {
        assert!(self.is_asking(), "the program is asked only for a batch that is not there yet");
        AskTask {
            seed: self.search.stream.text("ask").word(self.births).rng().next_u64(),
            state: self.state.clone(),
            told: self.told.iter().map(Individual::message).collect(),
            most: self.settings.batch as u64,
            ..AskTask::default()
        }
    }

    fn answer(&mut self, AskOutput { state, candidates }: AskOutput) {
        assert!(self.is_asking(), "the program is asked only for a batch that is not there yet");
        let read =
            |message| self.search.genome.candidate(message).expect("answers are checked before they are absorbed");
        self.batch = candidates.iter().map(read).collect();
        self.state = state;
        self.told.clear();
    }

    fn tell(&mut self, evaluations: &[Evaluation]) {
        assert_eq!(evaluations.len(), self.size(), "there is one evaluation for each candidate");
        self.births += evaluations.len() as u64;
        let batch = std::mem::take(&mut self.batch);
        let evaluated = batch.into_iter().zip(evaluations.iter().cloned());
        self.told = evaluated.map(|(candidate, evaluation)| Individual { candidate, evaluation }).collect();
        if self.settings.kept > 0 {
            self.kept.extend(self.told.iter().cloned());
            self.kept = best(&self.kept, self.settings.kept);
        }
    }

    fn population(&self) -> &[Individual] {
        &self.kept
    }

    fn births(&self) -> u64 {
        self.births
    }

    fn save(&self) -> Vec<u8> {
        let messages = |list: &[Individual]| list.iter().map(Individual::message).collect();
        OwnState {
            births: self.births,
            state: self.state.clone(),
            batch: self.batch.iter().map(Candidate::message).collect(),
            told: messages(&self.told),
            kept: messages(&self.kept),
        }
        .encode_to_vec()
    }
}

/// Checks a program's answer, so that [`Algorithm::answer`] can rely on it.
///
/// # Errors
/// A clause that says what is wrong with it.
pub fn check_answer(genome: &Genome, most: u64, answer: &AskOutput) -> Result<(), String> {
    let (bytes, count) = (answer.state.len(), answer.candidates.len());
    if bytes > STATE_BYTES_MAX {
        return Err(format!("its saved state has {bytes} bytes, more than {STATE_BYTES_MAX}: save less"));
    }
    if bytes == 0 {
        return Err("its saved state is empty: return a text, for example \"0\"".into());
    }
    if count == 0 {
        return Err(
            "its batch is empty: a search ends with its evaluations or at its target, so return a candidate".into()
        );
    }
    if count as u64 > most {
        return Err(format!(
            "its batch has {count} candidates, more than {most}: return fewer, or set a greater population"
        ));
    }
    let check = |(index, message)| {
        genome.candidate(message).map(drop).map_err(|why| format!("candidate {} of its batch: {why}", index + 1))
    };
    answer.candidates.iter().enumerate().try_for_each(check)
}
