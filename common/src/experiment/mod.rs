//! Experiments: pure state machines that plan tasks and advance with their outputs; kinds of experiments as values; and
//! runs: a configuration whose arms have replicas.
//!
//! A type that implements [`Experiment`] is a kind of experiment, and a value of this type is one replica of one arm.
//! [`Kind::of`] makes the kind a value, for all code that does not know the type. [`Replica`] is a replica of any kind
//! between two rounds, [`crate::local`] runs them all on one thread, and a cluster is only a faster way to do the same.

mod chain;
mod compared;
mod config;
mod ends;
mod file_names;
mod kind;
mod parse;
mod problems;
mod registry;
mod replica;
mod result;
mod row;
mod running;
mod screen;
mod screen_file;
mod screen_levels;
mod screen_report;
mod screen_responses;
mod screen_sentences;
pub mod small;
mod standard;
mod told;
mod written;

use std::ops::Range;

use bytes::Bytes;
use prost::Message;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

pub use chain::{Link, ResultDigest};
pub use compared::{distinguishing, groups, listed, settings_but};
pub use config::{ARMS_MAX, Arm, Change, Config, FILE_BYTES_MAX, ONLY_ARM, REPLICAS_MAX, template};
pub use ends::Ends;
pub use file_names::{champion_stem, file_name};
pub use kind::{
    Answer, Answers, Asks, Complete, Demand, Identity, Kernel, Kind, Parts, Ranking, Reads, Said, Saved, fits,
};
pub use problems::{Problem, Problems};
pub use registry::Registry;
pub use replica::Replica;
pub(crate) use result::add_ends;
pub use result::{curve, point, settings_json};
pub use row::{Column, Number, Row};
pub use screen::{At, Factor, Goal, SCREEN_ARMS_MAX, Screen};
pub use screen_report::{ScreenFiles, screen_files};
pub(crate) use screen_sentences::screen_sentences;
pub use standard::Standard;
pub use told::{Figures, NoFigures, ReplicaTold};

use crate::{
    card::{Card, CardKind},
    headline::Headline,
    report::{Report, Sheet},
    settings::Typed,
    task::{Task, TaskKind},
};

/// A kind of experiment. Constants and types say what belongs to the kind, functions without `self` what follows from
/// settings or results, and a value is one replica of one arm between two rounds.
///
/// A replica is pure, so its states are equal bit for bit wherever its tasks were computed. Kinds leave out what has a default
/// if they do not need it.
pub trait Experiment: Send + Sized + 'static {
    /// The name in experiment files, and of the replicas' own random streams.
    const NAME: &'static str;
    /// What an experiment file can say: a struct that [`settings!`](crate::settings!) declares, or
    /// [`WithText`](crate::settings::WithText) of one.
    type Settings: Typed;
    /// The whole state of a replica. The replica's digest covers its encoded bytes and all rows, so whatever is reported
    /// must follow from them.
    type State: Message + Default;
    /// A row of the history: a struct that [`row!`](crate::row!) declares.
    type Row: Row;
    /// What `result.json` keeps of an arm, of which the report is made: [`Standard`], or a type of the kind's own.
    type Told: Told;
    /// The tasks that replicas plan.
    const TASKS: &'static [TaskKind];
    /// The cards of champions.
    const CARDS: &'static [CardKind] = &[];
    /// The kinds whose champions play in the tasks: what these compute is a part of what this kind computes.
    const PLAYS: &'static [&'static Kind] = &[];
    /// Kernels for `evoxo bench`.
    const KERNELS: &'static [Kernel] = &[];
    /// Whether a last row is that of a solution, one that satisfies all constraints: the primary metric of another one
    /// says nothing. `None` if each row is.
    const IS_SOLUTION: Option<fn(&[f64]) -> bool> = None;
    /// Which of an arm's replicas is better. `None` if it is the one with the greater primary metric.
    const RANKING: Option<Ranking> = None;
    /// How the tasks ask programs of the workers, if they do.
    const ASKS: Option<Asks> = None;
    /// How the settings take in files, if they do.
    const READS: Option<Reads> = None;
    /// How the arms of a person's file are completed, if they are: see [`Config::completed`].
    const COMPLETE: Option<Complete> = None;
    /// How replicas end before their length, in words, if the kind has settings for that: then a file has no table [`Ends`].
    const OWN_END: Option<&'static str> = None;

    /// What a replica with these settings needs at most.
    fn demand(settings: &Self::Settings) -> Demand;

    /// The most rounds of a replica with these settings; it has fewer if it reaches its target, or fails. As many as rows,
    /// unless a kind says otherwise.
    fn rounds(settings: &Self::Settings) -> u64 {
        Self::demand(settings).rows
    }

    /// The state of a replica before its first round. The default state, unless a kind says otherwise.
    fn first(_: &Identity<'_, Self>) -> Self::State {
        Self::State::default()
    }

    /// The replica in a state, which is its [first](Self::first) or a saved one: the inverse of [`Self::save`].
    ///
    /// # Errors
    /// A sentence if the settings cannot lead to this state: states come from files, so nothing in one is certain.
    fn restore(identity: Identity<'_, Self>, state: Self::State) -> Result<Self, String>;

    /// The state.
    fn save(&self) -> Self::State;

    /// The number of tasks in the next round: constant until `absorb`. 0 when the replica is finished.
    fn tasks(&self) -> usize;

    /// These tasks of the next round: the same until `absorb`, in whatever ranges they are requested. A task should be
    /// worth sending: about 10 ms of work or more.
    fn plan(&self, tasks: Range<usize>) -> Vec<Task>;

    /// Whether all outputs of a round are needed before the next round can be planned. Without a barrier each task is a
    /// round of its own: [`Self::tasks`] are those of all rounds that can be planned now, [`Self::absorb`] takes the output
    /// of the first one, and the tasks after it stay what they are, with an index lower by one; further tasks may follow.
    /// So a task that takes long delays no other one. Constant.
    fn has_barrier(&self) -> bool {
        true
    }

    /// Takes the outputs of all tasks of the round, in order; each was [checked](crate::task::Task::check). Without a
    /// [barrier](Self::has_barrier) this is the output of the first task. Adds the round's rows to the history, even if it
    /// ends the replica: all rows together do not depend on how the work was divided into rounds.
    ///
    /// # Errors
    /// A sentence that ends the replica, for example because a number is no longer finite. The sentence and the state
    /// after it are part of the replica's digest.
    fn absorb(&mut self, outputs: &[Bytes], history: &mut Vec<Self::Row>) -> Result<(), String>;

    /// The best player so far with what the experiment knows about it; `None` if there is none yet.
    fn champion(&self) -> Option<Card> {
        None
    }

    /// All present players, including the champion; empty if there is at most one.
    fn population(&self) -> Vec<Card> {
        Vec::new()
    }

    /// The present players as a table, if that says what they are.
    fn sheet(&self) -> Option<Sheet> {
        None
    }

    /// Takes back what only the end of a shorter run brought, that had less of what makes runs longer
    /// ([`Scope::Length`](crate::settings::Scope::Length)): a last round that was cut off, and rows and rounds of the end. What is
    /// left is what the longer run has at that time, or has in the middle of a round, which the next one completes. The identity is
    /// that of the longer run. Also called for replicas whose settings are the same in both runs, and for those that have not ended.
    ///
    /// # Errors
    /// A sentence if the settings cannot lead to this state, as of [`Self::restore`].
    fn lengthen(_: Identity<'_, Self>, _: &mut Saved<Self::State>) -> Result<(), String> {
        Ok(())
    }

    /// Of this many rows of a replica, over how many last ones the primary metric is averaged to say how good the replica
    /// is: as in the kind's tables. 1 where a row has no noise of its own.
    fn tail(_rows: usize) -> usize {
        1
    }
}

/// What a kind keeps of an arm in `result.json`: everything that its report and its questions are made of. serde writes it and reads it
/// again, so a report is made of the same values, whether they come from replicas or from a file. Its fields follow the arm's `name` and
/// `settings` there.
pub trait Told: Serialize + DeserializeOwned {
    /// Of the arm with this index, given the replicas of all arms; some may be unfinished.
    fn of(config: &Config, arm: usize, replicas: &[Vec<&Replica>]) -> Self;

    /// The report at the end, from what is kept of all arms. The engine adds the arms to its [`json`](Report::json).
    ///
    /// # Errors
    /// A sentence if the parts do not fit each other: they may come from a file.
    fn report(config: &Config, arms: &[Self]) -> Result<Report, String>;

    /// The questions of a run and the figures that answer them.
    fn headline(config: &Config, arms: &[Self]) -> Headline;

    /// The entry of an arm in `result.json`.
    fn write(config: &Config, arm: usize, replicas: &[Vec<&Replica>]) -> Value {
        let mut entry = json!({"name": config.arms[arm].name, "settings": settings_json(config, arm)});
        let told = serde_json::to_value(Self::of(config, arm, replicas)).expect("what is kept of an arm can be JSON");
        let (Value::Object(keys), Value::Object(told)) = (&mut entry, told) else { panic!("an arm is an object") };
        keys.extend(told);
        entry
    }

    /// What is kept of all arms, from their entries.
    ///
    /// # Errors
    /// A sentence if something is missing.
    fn read(config: &Config, arms: &[Value]) -> Result<Vec<Self>, String> {
        let read = |(arm, entry): (&Arm, &Value)| {
            Self::deserialize(entry)
                .map_err(|why| format!("the arm {:?} of the result cannot be read: {why}", arm.name))
        };
        config.arms.iter().zip(arms).map(read).collect()
    }
}
