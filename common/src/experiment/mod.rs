//! Experiments: pure state machines that plan tasks and advance with their outputs; kinds of experiments as values; and
//! runs: a configuration whose arms have replicas.
//!
//! One replica of one arm is one [`Experiment`]. [`Replica`] is one of them between two rounds, [`crate::local`] runs
//! them all on one thread, and a cluster is only a faster way to do the same.

mod chain;
mod compared;
mod config;
mod file_names;
mod kind;
mod parse;
mod problems;
mod registry;
mod replica;
mod result;
mod screen;
mod screen_file;
mod screen_levels;
mod screen_report;
mod screen_responses;
mod screen_sentences;
pub mod small;
mod standard;
mod written;

use std::ops::Range;

use bytes::Bytes;

pub use chain::{Link, ResultDigest};
pub use compared::{distinguishing, groups, listed, settings_but};
pub use config::{ARMS_MAX, Arm, Change, Config, FILE_BYTES_MAX, ONLY_ARM, REPLICAS_MAX, template};
pub use file_names::{champion_stem, file_name};
pub use kind::{
    Answer, Answers, ArmReplicas, Asks, Column, Complete, Demand, Identity, Kernel, Kind, Parts, Ranking, Reads,
    Restored, Said,
};
pub use problems::{Problem, Problems};
pub use registry::Registry;
pub use replica::Replica;
pub use result::{arm_json, curve, point, replica_json, settings_json};
pub use screen::{At, Factor, Goal, SCREEN_ARMS_MAX, Screen};
pub use screen_report::{ScreenFiles, screen_files};
pub(crate) use screen_sentences::screen_sentences;
pub use standard::{standard_headline, standard_report, standard_report_of_result};

use crate::{card::Card, report::Sheet, task::Task};

/// One replica of one arm. It is pure, so its states are equal bit for bit wherever its tasks were computed.
pub trait Experiment: Send {
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
    /// [barrier](Self::has_barrier) this is the output of the first task.
    ///
    /// # Errors
    /// A sentence that ends the replica, for example because a number is no longer finite. The sentence and the state
    /// after it are part of the replica's digest.
    fn absorb(&mut self, outputs: &[Bytes]) -> Result<(), String>;

    /// The whole state in a canonical encoding: [`Kind::restore`] is the inverse. The replica's digest covers these bytes and
    /// all rows, so whatever is reported must follow from them.
    fn save(&self) -> Vec<u8>;

    /// The history's rows that the last round added, even if it ended the replica: one value for each of
    /// [`Kind::columns`]. All rows together do not depend on how the work was divided into rounds.
    fn rows(&self) -> Vec<Vec<f64>>;

    /// The best player so far with what the experiment knows about it; `None` if there is none yet.
    fn champion(&self) -> Option<Card>;

    /// All present players, including the champion; empty if there is at most one.
    fn population(&self) -> Vec<Card> {
        Vec::new()
    }

    /// The present players as a table, if that says what they are.
    fn sheet(&self) -> Option<Sheet> {
        None
    }

    /// Whether its last round was a short one, with which a run ended that had less of what makes runs longer
    /// ([`Scope::Length`](crate::settings::Scope::Length)), and one row. The next round completes it, and has its row.
    fn is_amid_round(&self) -> bool {
        false
    }
}
