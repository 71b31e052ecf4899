//! A kind of experiment as a value: everything that the tool, the coordinator and the workers need to know about it.

use std::{cmp::Ordering, fmt};

use evoxo_proto::v1;
use prost::Message as _;
use serde_json::{Value, json};

use super::{
    Arm, Column, Config, Experiment, Lineage, Publication, Replica, Row as _, Told,
    running::{Restored, Running},
};
use crate::{
    candidates::Quantity,
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

/// The identity of a replica. The replica's states follow from it.
pub struct Identity<'a, E: Experiment> {
    /// The run's seed.
    pub seed: u64,
    /// The arm's name.
    pub arm: &'a str,
    /// The replica's number, from 0.
    pub replica: u32,
    /// The arm's settings.
    pub settings: E::Settings,
    /// The replica's own stream: no other replica has the streams below it.
    pub stream: Stream,
}

impl<'a, E: Experiment> Identity<'a, E> {
    /// The identity of the replica with this number in an arm of a run.
    #[must_use]
    pub fn new(config: &Config, arm: &'a Arm, replica: u32) -> Self {
        Self::with_seed(config.seed, arm, replica)
    }

    fn with_seed(seed: u64, arm: &'a Arm, replica: u32) -> Self {
        let stream = Stream::root(seed).text(E::NAME).text(&arm.name).word(replica.into());
        Self { seed, arm: &arm.name, replica, settings: E::Settings::of(&arm.settings), stream }
    }
}

/// A saved replica between two rounds, for [`Experiment::lengthen`].
#[derive(Clone, Debug, PartialEq)]
pub struct Saved<S> {
    /// The state.
    pub state: S,
    /// Rounds so far.
    pub rounds: u64,
    /// The rows so far, each with a number for each column.
    pub history: Vec<Vec<f64>>,
    /// Whether the state is in the middle of a round, which the next one completes.
    pub is_amid_round: bool,
}

/// [`Experiment::lengthen`] for the numbered replica of an arm in a run with this seed, with the state as bytes.
type Lengthen = fn(u64, &Arm, u32, Saved<Vec<u8>>) -> Result<Saved<Vec<u8>>, String>;

/// For [`Experiment::restore`]: the error if the settings cannot lead to a state.
///
/// # Errors
/// A sentence if they cannot.
pub fn fits(can: bool) -> Result<(), String> {
    can.then_some(()).ok_or_else(|| "the state does not fit the settings".into())
}

/// The most that a replica needs. The limits hold for every round. Sizes are those of encoded messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// The tasks of a round.
    pub tasks: u64,
    /// The bytes of one task, without its shared bytes.
    pub task_bytes: u64,
    /// The shared bytes of a round's tasks, in all pieces together.
    pub shared_bytes: u64,
    /// The bytes of one output.
    pub output_bytes: u64,
    /// The bytes of a task that is the only one of its round, and of its output, if one of them can have more than those above.
    pub only_bytes: u64,
    /// The bytes of the saved state.
    pub state_bytes: u64,
    /// The rows of the history.
    pub rows: u64,
    /// Milliseconds after which a worker itself stops a task; 0 if it never does.
    pub task_ms: u64,
}

impl Demand {
    /// The most that a replica needs which has both demands, one after the other. A worker may stop a task only when both
    /// allow it.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let stops = self.task_ms > 0 && other.task_ms > 0;
        Self {
            tasks: self.tasks.max(other.tasks),
            task_bytes: self.task_bytes.max(other.task_bytes),
            shared_bytes: self.shared_bytes.max(other.shared_bytes),
            output_bytes: self.output_bytes.max(other.output_bytes),
            only_bytes: self.only_bytes.max(other.only_bytes),
            state_bytes: self.state_bytes.max(other.state_bytes),
            rows: self.rows.max(other.rows),
            task_ms: if stops { self.task_ms.max(other.task_ms) } else { 0 },
        }
    }
}

/// An optimized kernel and its reference implementation, for `evoxo bench`. Each call does some work and returns the amount.
#[derive(Clone, Copy)]
pub struct Kernel {
    /// The name for `--only`.
    pub name: &'static str,
    /// The unit of the amount, per second.
    pub unit: &'static str,
    /// The optimized kernel.
    pub fast: fn() -> u64,
    /// The reference implementation.
    pub reference: fn() -> u64,
    /// The parts of one unit of the amount, if units differ in size: for each part the unit of its rate, and the average
    /// number of parts in one unit.
    pub parts: Option<fn() -> Parts>,
}

/// The units of the parts' rates, each with the number of parts.
pub type Parts = Vec<(&'static str, f64)>;

/// How the replicas of an arm are ranked, if not by the greater primary metric.
#[derive(Clone, Copy)]
pub struct Ranking {
    /// Compares the last rows of two replicas of an arm with these settings: [`Ordering::Less`] if the first is better.
    pub compare: fn(&Values, &[f64], &[f64]) -> Ordering,
    /// The index, among [`Kind::columns`], of the column that decides first with these settings.
    pub column: fn(&Values) -> usize,
}

/// The name of a setting, and its value as text.
pub type Said = (&'static str, String);

/// How the tasks of a kind ask programs, which run next to the workers.
#[derive(Clone, Copy)]
pub struct Asks {
    /// The program that the tasks of an arm with these settings ask, if they ask one.
    pub program: fn(&Values) -> Option<ProgramId>,
    /// Whether programs belong to this kind if they do not say which kind they serve.
    pub is_default: bool,
    /// Asks a program for its signature.
    pub signature: fn(&str, &mut dyn Programs) -> Result<Digest, Refusal>,
    /// Asks an arm's program for the settings that follow from it, beginning with its signature. Returns the name and text of
    /// each setting that the file leaves empty. If the file contradicts the program, the refusal says how.
    pub settings: fn(&Values, &mut dyn Programs) -> Result<Vec<Said>, Refusal>,
    /// The settings of an arm that asks the program of this name, before those that the program supplies are filled in.
    pub arm: fn(&str) -> Values,
    /// What a check asks an arm's program, as a text: arms with equal texts are checked once.
    pub questions: fn(&Values) -> String,
    /// Asks an arm's program about some of a check's fixed candidates, in one batch and in this order. Candidates are given
    /// by their numbers from 0. A correct program always gives the same answers.
    pub answers: fn(&Values, &[usize], &mut dyn Programs) -> Answers,
}

/// The answers for all requested candidates, or the reason why there are none.
pub type Answers = Result<Vec<Answer>, Refusal>;

/// A program's answer for a candidate of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The kind of candidate: "all genes low".
    pub what: &'static str,
    /// The candidate's values with all their bits, or the reason why it has none.
    pub said: Result<String, String>,
}

/// How the contents of files become settings of a kind, one file after another, so that later only the configuration is
/// needed.
#[derive(Clone, Copy)]
pub struct Reads {
    /// The next file that an arm with these settings needs; it is asked for again after each file. The path is relative to
    /// the directory of the experiment file.
    pub file: fn(&Values) -> Option<String>,
    /// The most bytes of a file.
    pub bytes_max: usize,
    /// Whether the tasks of an arm with these settings run the contents of its file as a program.
    pub runs: fn(&Values) -> bool,
    /// The settings that follow from the file's bytes, each with its name and text. If the bytes do not fit these settings,
    /// the refusal says why.
    pub settings: fn(&Values, &[u8]) -> Result<Vec<Said>, Refusal>,
}

/// Completes the arms of a person's file: the kind may add some. The flag says whether the given arms are all arms of the
/// file.
pub type Complete = fn(&[Arm], bool) -> Vec<Arm>;

/// A kind of experiment as a value: an [`Experiment`] whose type is not known. The fields are documented at the trait's
/// items.
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
    /// [`Experiment::MAY_CHANGE`].
    pub may_change: &'static [&'static str],
    /// [`Experiment::LINEAGE`].
    pub lineage: Option<Lineage>,
    /// [`Experiment::SOURCES`].
    pub sources: &'static [Publication],
    /// [`Experiment::rounds`].
    pub rounds: fn(&Values) -> u64,
    /// [`Experiment::depends_on_length`].
    pub depends_on_length: fn(&Values) -> Option<&'static str>,
    /// [`Experiment::demand`].
    pub demand: fn(&Values) -> Demand,
    /// [`Experiment::quantities`].
    pub quantities: fn(&Values) -> Vec<Quantity>,
    /// [`Experiment::tail`].
    pub tail: fn(usize) -> usize,
    /// [`Told::headline`], made from the entries of all arms in `result.json`. If an entry cannot be read, the headline has
    /// no question.
    pub headline: fn(&Config, &[Value]) -> Headline,
    /// Creates this replica of an arm in its [first state](Experiment::first), in a run with this seed.
    pub(crate) start: fn(u64, &Arm, u32) -> Box<dyn Running>,
    /// [`Experiment::restore`], from encoded bytes, in a run with this seed.
    pub(crate) restore: fn(u64, &Arm, u32, &[u8]) -> Restored,
    /// [`Experiment::lengthen`], of a state as bytes.
    pub(crate) lengthen: Lengthen,
    /// The entry of an arm in `result.json`, given the replicas of all arms.
    pub arm_json: fn(&Config, usize, &[Vec<&Replica>]) -> Value,
    /// [`Told::report`], made from the entries of all arms in `result.json`.
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
            may_change: E::MAY_CHANGE,
            lineage: E::LINEAGE,
            sources: E::SOURCES,
            rounds: |values| E::rounds(&E::Settings::of(values)),
            depends_on_length: |values| E::depends_on_length(&E::Settings::of(values)),
            demand: |values| E::demand(&E::Settings::of(values)),
            quantities: |values| E::quantities(&E::Settings::of(values)),
            tail: E::tail,
            headline: |config, arms| {
                E::Told::read(config, arms)
                    .map_or_else(|_| Headline::default(), |told| E::Told::headline(config, &told))
            },
            start: |seed, arm, replica| {
                let identity = Identity::with_seed(seed, arm, replica);
                let first = E::first(&identity);
                Box::new(E::restore(identity, first).expect("the settings lead to the first state"))
            },
            restore: |seed, arm, replica, state| {
                let state = E::State::decode(state).map_err(|error| format!("the state cannot be read: {error}"))?;
                Ok(Box::new(E::restore(Identity::with_seed(seed, arm, replica), state)?))
            },
            lengthen: |seed, arm, replica, Saved { state, rounds, history, is_amid_round }| {
                let state =
                    E::State::decode(&state[..]).map_err(|error| format!("the state cannot be read: {error}"))?;
                let mut saved = Saved { state, rounds, history, is_amid_round };
                E::lengthen(Identity::with_seed(seed, arm, replica), &mut saved)?;
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

    /// The behaviour signature: a hash of the outputs that this build computes for a fixed workload of each of the kind's
    /// tasks, and of the signatures of the kinds whose champions play in these tasks. Builds with the same signature may work
    /// on the same run.
    #[must_use]
    pub fn signature(&self) -> Digest {
        let tasks = self.tasks.iter().map(|task| (task.work, task.signature()));
        let played = self.plays.iter().map(|kind| (kind.name, kind.signature()));
        let pieces: Vec<(&str, Digest)> = tasks.chain(played).collect();
        Digest::of_pieces(pieces.iter().flat_map(|(name, hash)| [name.as_bytes(), &hash.0]))
    }

    /// Whether the tasks of an arm with these settings run only this build's own code, without programs next to the worker
    /// and without code from files. Such a task cannot fail on a machine that works correctly.
    #[must_use]
    pub fn is_built_in(&self, settings: &Values) -> bool {
        let asks = self.asks.is_some_and(|asks| (asks.program)(settings).is_some());
        !asks && !self.reads.is_some_and(|reads| (reads.runs)(settings))
    }

    /// The index, among `columns`, of the column that first decides which replica of an arm with these settings is better.
    #[must_use]
    pub fn deciding_column(&self, settings: &Values) -> usize {
        self.ranking.map_or(self.primary_metric, |ranking| (ranking.column)(settings))
    }

    /// The primary metric in a last row, if the row is that of a solution.
    #[must_use]
    pub fn metric(&self, row: &[f64]) -> Option<f64> {
        self.value(row, self.primary_metric)
    }

    /// How good a replica is by its rows so far: the value of this column in its last row, or the mean over the last rows
    /// ([`Experiment::tail`]). `None` without a row or a solution.
    #[must_use]
    pub fn figure(&self, column: usize, history: &[Vec<f64>]) -> Option<f64> {
        let values: Vec<f64> = history.iter().filter_map(|row| row.get(column).copied()).collect();
        self.figure_of(column, history.last()?, &values)
    }

    /// The same as [`Self::figure`], from the last row and all values of the column.
    #[must_use]
    pub fn figure_of(&self, column: usize, last: &[f64], values: &[f64]) -> Option<f64> {
        let solved = self.value(last, column)?;
        let rows = (self.tail)(values.len()).clamp(1, values.len().max(1));
        if rows == 1 { Some(solved) } else { mean(&values[values.len() - rows..]) }
    }

    /// The value of a column in a last row, if the row is that of a solution.
    #[must_use]
    pub fn value(&self, row: &[f64], column: usize) -> Option<f64> {
        // A replica may have no row yet, or may end without one.
        let value = *row.get(column)?;
        self.is_solution.is_none_or(|is_solution| is_solution(row)).then_some(value)
    }

    /// Decodes a task of this kind.
    ///
    /// # Errors
    /// A [`Refusal`] if there are too many bytes, or if they are not a task of this kind.
    pub fn decode(&self, encoded: &Encoded) -> Result<Task, Refusal> {
        self.task(encoded.message().map_err(Refusal)?)
    }

    /// The task that a message describes.
    pub(super) fn task(&self, message: v1::Task) -> Result<Task, Refusal> {
        let work = self.tasks.iter().find(|kind| kind.work == message.work);
        match work.filter(|_| message.kind == self.name) {
            Some(kind) => Ok(Task { kind, body: message.body, shared: message.shared, recallable: None }),
            None => Err(unknown_task(&message)),
        }
    }
}

/// The refusal of a task that no kind of this build has.
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
