//! A kind of experiment as a value: everything that the tool, the coordinator and the workers need to know about it.

use std::{cmp::Ordering, fmt};

use evoxo_proto::v1;
use prost::Message as _;
use serde_json::{Value, json};

use super::{
    Arm, Column, Config, Experiment, Replica, Row as _, Told,
    running::{Restored, Running},
};
use crate::{
    card::CardKind,
    digest::Digest,
    headline::Headline,
    math::mean,
    report::Report,
    rng::Stream,
    settings::{Schema, Typed, Values},
    task::{Encoded, ProgramId, Programs, Refusal, Task, TaskKind},
    text::quoted,
};

/// The identity of a replica: its states are a function of this.
pub struct Identity<'a, E: Experiment> {
    /// The run's seed.
    pub seed: u64,
    /// The arm's name.
    pub arm: &'a str,
    /// From 0.
    pub replica: u32,
    /// The arm's settings.
    pub settings: E::Settings,
}

impl<'a, E: Experiment> Identity<'a, E> {
    /// Replica number `replica` of an arm of a run.
    #[must_use]
    pub fn new(config: &Config, arm: &'a Arm, replica: u32) -> Self {
        Self { seed: config.seed, arm: &arm.name, replica, settings: E::Settings::of(&arm.settings) }
    }

    /// The replica's own stream: no other replica has the streams below it.
    #[must_use]
    pub fn stream(&self) -> Stream {
        Stream::root(self.seed).text(E::NAME).text(self.arm).word(self.replica.into())
    }
}

/// A replica between two rounds, as it was saved: for [`Experiment::lengthen`].
#[derive(Clone, Debug, PartialEq)]
pub struct Saved<S> {
    /// The state.
    pub state: S,
    /// Rounds so far.
    pub rounds: u64,
    /// The rows so far, with a number for each column.
    pub history: Vec<Vec<f64>>,
    /// Whether the state is one in the middle of a round, which the next one completes.
    pub is_amid_round: bool,
}

/// For [`Experiment::restore`]: whether the settings can lead to a state.
///
/// # Errors
/// The sentence if they cannot.
pub fn fits(can: bool) -> Result<(), String> {
    can.then_some(()).ok_or_else(|| "the state does not fit the settings".into())
}

/// The most that a replica needs: limits that hold for every round. Bytes are those of encoded messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Tasks of a round.
    pub tasks: u64,
    /// Bytes of one task without its shared bytes.
    pub task_bytes: u64,
    /// Shared bytes of a round's tasks, in all pieces together.
    pub shared_bytes: u64,
    /// Bytes of one output.
    pub output_bytes: u64,
    /// Bytes of the saved state.
    pub state_bytes: u64,
    /// Rows of the history.
    pub rows: u64,
    /// Milliseconds after which a worker itself stops a task; 0 if nothing but its end stops it.
    pub task_ms: u64,
}

/// An optimized kernel and its reference implementation, for `evoxo bench`. Each does some work and returns the amount.
#[derive(Clone, Copy)]
pub struct Kernel {
    /// The name for `--only`.
    pub name: &'static str,
    /// The unit of the amount, per second.
    pub unit: &'static str,
    /// The optimized one.
    pub fast: fn() -> u64,
    /// The reference.
    pub reference: fn() -> u64,
    /// What a unit of the amount consists of, where units differ in size: for each part the unit of its rate, and how many
    /// there are in a unit on average.
    pub parts: Option<fn() -> Parts>,
}

/// Units of rates, and numbers.
pub type Parts = Vec<(&'static str, f64)>;

/// Which of an arm's replicas is better, where that is not the one with the greater primary metric.
#[derive(Clone, Copy)]
pub struct Ranking {
    /// Compares two last rows of an arm with these settings: [`Ordering::Less`] if the first is better.
    pub compare: fn(&Values, &[f64], &[f64]) -> Ordering,
    /// The index, in [`Kind::columns`], of what decides first with these settings.
    pub column: fn(&Values) -> usize,
}

/// The name of a setting and its value as a text.
pub type Said = (&'static str, String);

/// How the tasks of a kind ask programs of the workers.
#[derive(Clone, Copy)]
pub struct Asks {
    /// The program that the tasks of an arm with these settings ask, if they ask one.
    pub program: fn(&Values) -> Option<ProgramId>,
    /// Asks a program for its signature.
    pub signature: fn(&str, &mut dyn Programs) -> Result<Digest, Refusal>,
    /// Asks the program of an arm for the settings that follow from it, the signature first of all: the name and the text of
    /// each that the file leaves empty; or a sentence, if what the file says is not so.
    pub settings: fn(&Values, &mut dyn Programs) -> Result<Vec<Said>, Refusal>,
    /// The settings of an arm that asks the program of this name, before those that the program supplies are filled in.
    pub arm: fn(&str) -> Values,
    /// Asks the program of an arm some of the fixed candidates of a check, each by its number from 0, together and in this order.
    /// A program that is what it should be always gives the same answers.
    pub answers: fn(&Values, &[usize], &mut dyn Programs) -> Answers,
}

/// The answers to all candidates that were asked, or why there are none.
pub type Answers = Result<Vec<Answer>, Refusal>;

/// What a program says of a candidate of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What kind of candidate it is: "all genes low".
    pub what: &'static str,
    /// Its values with all their bits, or why it has none.
    pub said: Result<String, String>,
}

/// How the settings of a kind take in files, one after another, so that nothing but the configuration is needed later.
#[derive(Clone, Copy)]
pub struct Reads {
    /// The next file that an arm with these settings still needs, another one after each that was read: its path from the directory of the experiment file.
    pub file: fn(&Values) -> Option<String>,
    /// The most bytes of the file.
    pub bytes_max: usize,
    /// Whether the tasks of an arm with these settings run what is in its file, as a program.
    pub runs: fn(&Values) -> bool,
    /// The settings that follow from the file's bytes, each with its name and its text; or a sentence, if they are not what
    /// these settings need.
    pub settings: fn(&Values, &[u8]) -> Result<Vec<Said>, Refusal>,
}

/// What becomes of the arms of a person's file, and whether these are all of its arms: the kind may add some.
pub type Complete = fn(&[Arm], bool) -> Vec<Arm>;

/// A kind of experiment as a value: an [`Experiment`] whose type is not known. The fields have the docs of its items.
pub struct Kind {
    /// [`Experiment::NAME`].
    pub name: &'static str,
    /// The schema of [`Experiment::Settings`].
    pub schema: &'static Schema,
    /// The columns of [`Experiment::Row`].
    pub columns: &'static [Column],
    /// The index, in `columns`, of the primary metric, which is shown while a run is computed.
    pub primary_metric: usize,
    /// [`Experiment::TASKS`].
    pub tasks: &'static [TaskKind],
    /// [`Experiment::CARDS`].
    pub cards: &'static [CardKind],
    /// [`Experiment::PLAYS`].
    pub plays: &'static [&'static Kind],
    /// [`Experiment::KERNELS`].
    pub kernels: &'static [Kernel],
    /// [`Experiment::IS_SOLUTION`].
    pub is_solution: Option<fn(&[f64]) -> bool>,
    /// [`Experiment::RANKING`].
    pub ranking: Option<Ranking>,
    /// [`Experiment::ASKS`].
    pub asks: Option<Asks>,
    /// [`Experiment::READS`].
    pub reads: Option<Reads>,
    /// [`Experiment::COMPLETE`].
    pub complete: Option<Complete>,
    /// [`Experiment::OWN_END`].
    pub own_end: Option<&'static str>,
    /// [`Experiment::rounds`].
    pub rounds: fn(&Values) -> u64,
    /// [`Experiment::demand`].
    pub demand: fn(&Values) -> Demand,
    /// [`Experiment::tail`].
    pub tail: fn(usize) -> usize,
    /// [`Told::headline`], of the entries of all arms in `result.json`. It has no question if one of them cannot be read.
    pub headline: fn(&Config, &[Value]) -> Headline,
    /// This replica of an arm in its [first state](Experiment::first).
    pub(crate) start: fn(&Config, &Arm, u32) -> Box<dyn Running>,
    /// [`Experiment::restore`], from these bytes.
    pub(crate) restore: fn(&Config, &Arm, u32, &[u8]) -> Restored,
    /// [`Experiment::lengthen`], of a state as bytes.
    pub(crate) lengthen: fn(&Config, &Arm, u32, Saved<Vec<u8>>) -> Result<Saved<Vec<u8>>, String>,
    /// The entry of an arm in `result.json`, given the replicas of all arms.
    pub arm_json: fn(&Config, usize, &[Vec<&Replica>]) -> Value,
    /// [`Told::report`], of the entries of all arms in `result.json`.
    pub report: fn(&Config, &[Value]) -> Result<Report, String>,
}

impl Kind {
    /// The kind that `E` defines.
    #[must_use]
    pub const fn of<E: Experiment>() -> Self {
        Self {
            name: E::NAME,
            schema: E::Settings::SCHEMA,
            columns: E::Row::COLUMNS,
            primary_metric: E::Row::PRIMARY,
            tasks: E::TASKS,
            cards: E::CARDS,
            plays: E::PLAYS,
            kernels: E::KERNELS,
            is_solution: E::IS_SOLUTION,
            ranking: E::RANKING,
            asks: E::ASKS,
            reads: E::READS,
            complete: E::COMPLETE,
            own_end: E::OWN_END,
            rounds: |values| E::rounds(&E::Settings::of(values)),
            demand: |values| E::demand(&E::Settings::of(values)),
            tail: E::tail,
            headline: |config, arms| {
                E::Told::read(config, arms)
                    .map_or_else(|_| Headline::default(), |told| E::Told::headline(config, &told))
            },
            start: |config, arm, replica| {
                let identity = Identity::new(config, arm, replica);
                let first = E::first(&identity);
                Box::new(E::restore(identity, first).expect("the settings lead to the first state"))
            },
            restore: |config, arm, replica, state| {
                let state = E::State::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?;
                Ok(Box::new(E::restore(Identity::new(config, arm, replica), state)?))
            },
            lengthen: |config, arm, replica, Saved { state, rounds, history, is_amid_round }| {
                let state =
                    E::State::decode(&state[..]).map_err(|error| format!("the state cannot be read: {error}"))?;
                let mut saved = Saved { state, rounds, history, is_amid_round };
                E::lengthen(Identity::new(config, arm, replica), &mut saved)?;
                let Saved { state, rounds, history, is_amid_round } = saved;
                Ok(Saved { state: state.encode_to_vec(), rounds, history, is_amid_round })
            },
            arm_json: E::Told::write,
            report: |config, arms| {
                let mut report = E::Told::report(config, &E::Told::read(config, arms)?)?;
                let mut json = json!({"arms": arms});
                let own = report.json.as_object().cloned().unwrap_or_default();
                json.as_object_mut().expect("an object was made").extend(own);
                report.json = json;
                Ok(report)
            },
        }
    }

    /// The behaviour signature: a hash of this build's outputs of a fixed workload of each of the kind's tasks, and of the
    /// signatures of the kinds whose champions play in them. Builds with the same signature may work on the same run.
    #[must_use]
    pub fn signature(&self) -> Digest {
        let tasks = self.tasks.iter().map(|task| (task.work, task.signature()));
        let played = self.plays.iter().map(|kind| (kind.name, kind.signature()));
        let pieces: Vec<(&str, Digest)> = tasks.chain(played).collect();
        Digest::of_pieces(pieces.iter().flat_map(|(name, hash)| [name.as_bytes(), &hash.0]))
    }

    /// Whether the tasks of an arm with these settings run nothing but this build's own code: no program of a worker, and nothing out of
    /// a file. Such a task fails on no machine that is in order.
    #[must_use]
    pub fn is_built_in(&self, settings: &Values) -> bool {
        let asks = self.asks.is_some_and(|asks| (asks.program)(settings).is_some());
        !asks && !self.reads.is_some_and(|reads| (reads.runs)(settings))
    }

    /// The index, in `columns`, of what decides first which replica of an arm with these settings is better.
    #[must_use]
    pub fn deciding_column(&self, settings: &Values) -> usize {
        self.ranking.map_or(self.primary_metric, |ranking| (ranking.column)(settings))
    }

    /// The primary metric in a last row, if it is that of a solution.
    #[must_use]
    pub fn metric(&self, row: &[f64]) -> Option<f64> {
        self.value(row, self.primary_metric)
    }

    /// How good a replica is by its rows so far: the value of this column in its last row, or its mean over the last ones
    /// ([`Experiment::tail`]). `None` without a row or a solution.
    #[must_use]
    pub fn figure(&self, column: usize, history: &[Vec<f64>]) -> Option<f64> {
        let values: Vec<f64> = history.iter().filter_map(|row| row.get(column).copied()).collect();
        self.figure_of(column, history.last()?, &values)
    }

    /// The same from the last row and all values of the column.
    #[must_use]
    pub fn figure_of(&self, column: usize, last: &[f64], values: &[f64]) -> Option<f64> {
        let solved = self.value(last, column)?;
        let rows = (self.tail)(values.len()).clamp(1, values.len().max(1));
        if rows == 1 { Some(solved) } else { mean(&values[values.len() - rows..]) }
    }

    /// The value of a column in a last row, if it is that of a solution.
    #[must_use]
    pub fn value(&self, row: &[f64], column: usize) -> Option<f64> {
        // A replica may have no row yet, or never have one.
        let value = *row.get(column)?;
        self.is_solution.is_none_or(|is_solution| is_solution(row)).then_some(value)
    }

    /// Decodes a task of this kind.
    ///
    /// # Errors
    /// A [`Refusal`] if the bytes are too many, not a task, or not one of this kind.
    pub fn decode(&self, encoded: &Encoded) -> Result<Task, Refusal> {
        self.task(encoded.message().map_err(Refusal)?)
    }

    /// The task that a message describes.
    pub(super) fn task(&self, message: v1::Task) -> Result<Task, Refusal> {
        let work = self.tasks.iter().find(|kind| kind.work == message.work);
        match work.filter(|_| message.kind == self.name) {
            Some(kind) => Ok(Task { kind, body: message.body, shared: message.shared }),
            None => Err(unknown_task(&message)),
        }
    }
}

/// The refusal of a task that no kind here has.
pub(super) fn unknown_task(task: &v1::Task) -> Refusal {
    let (kind, work) = (quoted(&task.kind), quoted(&task.work));
    Refusal(format!("this build knows no task {work} of kind {kind}: use a worker of the coordinator's version"))
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Kind {}
