//! Experiments: pure state machines that say what to compute next and move on when they have it; kinds of them, as values;
//! and what a run is: a configuration whose arms have replicas.
//!
//! One replica of one arm is one [`Experiment`]. [`Replica`] holds one of them between two rounds, [`crate::local`] runs them
//! all on one thread, and a cluster is only a faster way to do the same.

mod config;
mod kind;
mod parse;
mod problems;
mod registry;
mod replica;
mod result;
mod standard;

use std::ops::Range;

use bytes::Bytes;

pub use config::{ARMS_MAX, Arm, Config, FILE_BYTES_MAX, ONLY_ARM, REPLICAS_MAX, template};
pub use kind::{ArmReplicas, Column, Demand, Identity, Kernel, Kind, Restored};
pub use problems::{Problem, Problems};
pub use registry::Registry;
pub use replica::{Replica, replica_digest, run_digest};
pub use result::{arm_json, champion_stem, curve, file_name, replica_json, settings_json};
pub use standard::{standard_report, standard_report_of_result};

use crate::{card::Card, task::Task};

/// One replica of one arm: pure, so that its states are equal bit for bit wherever its tasks were computed.
pub trait Experiment: Send {
    /// How many tasks the coming round has: the same answer until `absorb`. 0 when the replica is finished.
    fn tasks(&self) -> usize;

    /// These of the coming round's tasks: the same answer until `absorb`, however they are asked for. A task is a slice of
    /// work worth sending: some ten milliseconds or more.
    fn plan(&self, tasks: Range<usize>) -> Vec<Task>;

    /// Takes the outputs of all tasks of the round, in their order; each was [checked](crate::task::Task::check).
    ///
    /// # Errors
    /// A sentence that ends the replica, for example because a number is no longer finite. It is part of the replica's
    /// digest, as is the state in which it leaves the replica.
    fn absorb(&mut self, outputs: &[Bytes]) -> Result<(), String>;

    /// The whole state, canonically encoded: [`Kind::restore`] is the inverse, and the run's digest is taken over these
    /// bytes.
    fn save(&self) -> Vec<u8>;

    /// The history's rows that the round just absorbed has added, also if it ended the replica: one value for each of
    /// [`Kind::columns`]. All rows together do not show how the work was cut up into rounds.
    fn rows(&self) -> Vec<Vec<f64>>;

    /// The best player so far with what the experiment knows about it; `None` if there is none (yet).
    fn champion(&self) -> Option<Card>;

    /// All players that there are now, the champion among them; empty where there is no more than one.
    fn population(&self) -> Vec<Card> {
        Vec::new()
    }
}
