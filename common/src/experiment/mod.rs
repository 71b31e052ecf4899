//! Experiments: pure state machines that plan tasks and advance with their outputs; kinds of experiments as values; and
//! runs: a configuration whose arms have replicas.
//!
//! A type that implements [`Experiment`] is a kind of experiment, and a value of this type is one replica of one arm.
//! [`Kind::of`] makes the kind a value, for all code that does not know the type. [`Replica`] is a replica of any kind
//! between two rounds, [`crate::local`] runs them all on one thread, and a cluster is only a faster way to do the same.

mod birth;
mod chain;
mod compared;
mod config;
mod ends;
mod file_names;
mod fork;
mod fork_file;
mod forked;
mod kind;
mod parse;
mod problems;
mod publication;
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
mod stages;
mod standard;
mod told;
mod written;

use std::ops::Range;

use bytes::Bytes;
use prost::Message;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

pub use birth::{Birth, Births, Growth, Lineage, Origin, mark, words};
pub use chain::{Link, ResultDigest};
pub use compared::{Differing, differing, distinguishing, groups, listed, settings_but};
pub use config::{ARMS_MAX, Arm, Change, Config, FILE_BYTES_MAX, ONLY_ARM, REPLICAS_MAX, short_template, template};
pub use ends::Ends;
pub use file_names::{champion_stem, file_name};
pub use fork::{Earlier, FORKS_MAX, Fork};
pub use kind::{
    Answer, Answers, Asks, Complete, Demand, Identity, Kernel, Kind, Parts, Ranking, Reads, Said, Saved, fits,
};
pub use problems::{Problem, Problems};
pub use publication::{Publication, bibtex};
pub use registry::Registry;
pub use replica::Replica;
pub(crate) use result::{add_ends, add_forks};
pub use result::{curve, point, settings_json};
pub use row::{Column, Number, Row};
pub use screen::{At, Factor, Goal, SCREEN_ARMS_MAX, Screen};
pub use screen_report::{ScreenFiles, screen_files};
pub(crate) use screen_sentences::screen_sentences;
pub use standard::Standard;
pub use told::{Figures, NoFigures, ReplicaTold};

use crate::{
    candidates::{Candidate, Quantity},
    card::{Card, CardKind},
    headline::Headline,
    report::{Report, Sheet},
    settings::Typed,
    task::{Task, TaskKind},
};

/// A kind of experiment. Constants and types describe the kind, functions without `self` compute what follows from settings
/// or results, and a value is one replica of one arm between two rounds.
///
/// A replica is pure, so its states are equal bit for bit wherever its tasks were computed. Items with a default may be left
/// out by kinds that do not need them.
pub trait Experiment: Send + Sync + Sized + 'static {
    /// The kind's name in experiment files, and in the names of its replicas' random streams.
    const NAME: &'static str;
    /// The settings of an experiment file: a struct declared with [`settings!`](crate::settings!), or
    /// [`WithText`](crate::settings::WithText) of such a struct.
    type Settings: Typed;
    /// The whole state of a replica. The replica's digest covers its encoded bytes and all rows, so everything that is
    /// reported must follow from them.
    type State: Message + Default;
    /// A row of the history: a struct declared with [`row!`](crate::row!).
    type Row: Row;
    /// What `result.json` keeps of an arm, and from which the report is made: [`Standard`], or the kind's own type.
    type Told: Told;
    /// The tasks that replicas plan.
    const TASKS: &'static [TaskKind];
    /// The kinds of cards that champions have.
    const CARDS: &'static [CardKind] = &[];
    /// The kinds whose champions play in the tasks: their behaviour is part of this kind's behaviour.
    const PLAYS: &'static [&'static Kind] = &[];
    /// Kernels for `evoxo bench`.
    const KERNELS: &'static [Kernel] = &[];
    /// Whether a last row is that of a solution, which satisfies all constraints. Without a solution, the primary metric
    /// means nothing. `None` if every row is that of a solution.
    const IS_SOLUTION: Option<fn(&[f64]) -> bool> = None;
    /// How an arm's replicas are ranked. `None` if the greater primary metric is better.
    const RANKING: Option<Ranking> = None;
    /// How the tasks ask programs next to the workers, if they do.
    const ASKS: Option<Asks> = None;
    /// How files become settings, if the kind reads files.
    const READS: Option<Reads> = None;
    /// How the arms of a person's file are completed, if the kind adds arms; see [`Config::completed`].
    const COMPLETE: Option<Complete> = None;
    /// How replicas end before their length, in words, if the kind has its own settings for that. Then a file cannot have a
    /// table [`Ends`].
    const OWN_END: Option<&'static str> = None;
    /// The names of the settings that may have other values from some round on ([`Fork`]): with any of their values, a replica
    /// can be [restored](Self::restore) in the same state, and saves it as the same bytes.
    const MAY_CHANGE: &'static [&'static str] = &[];

    /// What the genes of [births](Self::births) mean, if individuals have parents.
    const LINEAGE: Option<Lineage> = None;

    /// The publications that the kind implements, for those who cite a run.
    const SOURCES: &'static [Publication] = &[];

    /// The most that a replica with these settings needs.
    fn demand(settings: &Self::Settings) -> Demand;

    /// The most rounds of a replica with these settings. A replica that reaches its target or fails has fewer. By default, as
    /// many rounds as rows.
    fn rounds(settings: &Self::Settings) -> u64 {
        Self::demand(settings).rows
    }

    /// The state of a replica before its first round. By default, the default state.
    fn first(_: &Identity<'_, Self>) -> Self::State {
        Self::State::default()
    }

    /// The replica in a state, which is its [first](Self::first) or a saved one: the inverse of [`Self::save`].
    ///
    /// # Errors
    /// A sentence if the settings cannot lead to this state. States come from files, so nothing in them can be trusted.
    fn restore(identity: Identity<'_, Self>, state: Self::State) -> Result<Self, String>;

    /// The replica's state.
    fn save(&self) -> Self::State;

    /// The number of tasks in the next round; it is constant until `absorb`. 0 when the replica is finished.
    fn tasks(&self) -> usize;

    /// These tasks of the next round. They are the same until `absorb`, in whatever ranges they are requested. A task should
    /// be worth sending: about 10 ms of work or more.
    fn plan(&self, tasks: Range<usize>) -> Vec<Task>;

    /// Whether all outputs of a round are needed before the next round can be planned. The answer is constant.
    ///
    /// Without a barrier, each task is a round of its own: [`Self::tasks`] counts the tasks of all rounds that can be planned
    /// now, and [`Self::absorb`] takes the output of the first one. The tasks after it stay the same, with indices lower by
    /// one, and further tasks may follow. So a long task does not delay the others.
    fn has_barrier(&self) -> bool {
        true
    }

    /// Takes the outputs of all tasks of the round, in order; each was [checked](crate::task::Task::check). Without a
    /// [barrier](Self::has_barrier) there is only the output of the first task. Adds the round's rows to the history, even if
    /// the round ends the replica. All rows together must not depend on how the work was divided into rounds.
    ///
    /// # Errors
    /// A sentence that ends the replica, for example because a number is no longer finite. The sentence and the state after
    /// it are part of the replica's digest.
    fn absorb(&mut self, outputs: &[Bytes], history: &mut Vec<Self::Row>) -> Result<(), String>;

    /// The best player so far, with what the experiment knows about it; `None` if there is none yet.
    fn champion(&self) -> Option<Card> {
        None
    }

    /// All present players, including the champion; empty if there is at most one.
    fn population(&self) -> Vec<Card> {
        Vec::new()
    }

    /// A table of the present players, if the kind has one.
    fn sheet(&self) -> Option<Sheet> {
        None
    }

    /// What a candidate with these settings consists of, if players are candidates of a search for numbers; empty otherwise.
    fn quantities(_: &Self::Settings) -> Vec<Quantity> {
        Vec::new()
    }

    /// The present candidates, the champion first. Each has a value for each of the [quantities](Self::quantities).
    fn candidates(&self) -> Vec<Candidate> {
        Vec::new()
    }

    /// Who is born in the next round, and the champion so far, if the kind has a [lineage](Self::LINEAGE).
    fn births(&self) -> Births {
        Births::default()
    }

    /// Why a longer replica with these settings is another computation from its beginning, in a clause; `None` if it goes on
    /// where the shorter one ends. Only for kinds with a setting that makes runs longer
    /// ([`Scope::Length`](crate::settings::Scope::Length)).
    fn depends_on_length(_: &Self::Settings) -> Option<&'static str> {
        None
    }

    /// Undoes what only the end of a shorter run added. The shorter run had a smaller value of a setting that makes runs longer
    /// ([`Scope::Length`](crate::settings::Scope::Length)): its last round may have been cut off, and its end may have added
    /// rows and rounds. Afterwards the replica is as the longer run has it at that time, or in the middle of a round, which the
    /// next one completes. The identity is that of the longer run. This is also called for replicas with the same settings in
    /// both runs, and for replicas that have not ended.
    ///
    /// # Errors
    /// A message if the settings cannot lead to this state, as for [`Self::restore`].
    fn lengthen(_: Identity<'_, Self>, _: &mut Saved<Self::State>) -> Result<(), String> {
        Ok(())
    }

    /// The number of last rows, out of this many, over which the primary metric is averaged to say how good a replica is. It
    /// must agree with the kind's tables, and is 1 if a row has no noise of its own.
    fn tail(_rows: usize) -> usize {
        1
    }
}

/// What a kind keeps of an arm in `result.json`: everything that its report and its questions are made from. serde writes and
/// reads it, so a report is made from the same values, whether they come from replicas or from a file. Its fields follow the
/// arm's `name` and `settings` there.
pub trait Told: Serialize + DeserializeOwned {
    /// Collects it for the arm with this index, from the replicas of all arms; some may be unfinished.
    fn of(config: &Config, arm: usize, replicas: &[Vec<&Replica>]) -> Self;

    /// The report at the end, made from what is kept of all arms. The engine adds the arms to its [`json`](Report::json).
    ///
    /// # Errors
    /// A sentence if the parts do not fit each other, because they may come from a file.
    fn report(config: &Config, arms: &[Self]) -> Result<Report, String>;

    /// The questions of a run and the figures that answer them.
    fn headline(config: &Config, arms: &[Self]) -> Headline;

    /// The entry of an arm in `result.json`.
    fn write(config: &Config, arm: usize, replicas: &[Vec<&Replica>]) -> Value {
        let mut entry = json!({"name": config.arms[arm].name, "settings": settings_json(config, arm)});
        let told =
            serde_json::to_value(Self::of(config, arm, replicas)).expect("the stored part of an arm can be JSON");
        let (Value::Object(keys), Value::Object(told)) = (&mut entry, told) else { panic!("an arm is an object") };
        keys.extend(told);
        entry
    }

    /// Reads what is kept of all arms from their entries.
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
