//! Experiments: pure state machines that say what to compute next and move on when they have it.
//!
//! One replica of one arm is one [`Experiment`]. A run is a set of arms times replicas; [`crate::replica`] holds one of
//! them between two rounds, [`crate::local`] runs them all on one thread, and a cluster is only a faster way to do the
//! same.

pub mod dispatch;
pub mod invincible;
pub mod nndtf;
pub mod rules;
pub mod td3d;
pub mod ternary;

use evoxo_proto::v1::{Output, Task};

use crate::{
    card::Card,
    config::{Arm, Config, Kind, Values},
};

/// One replica of one arm: pure, so that its states are equal bit for bit wherever its tasks were computed.
pub trait Experiment: Send {
    /// The tasks of the coming round: the same answer until `absorb`. Empty when the replica is finished.
    fn plan(&self) -> Vec<Task>;

    /// Takes the outputs of all tasks of the round, in the order of `plan`; each has the shape of an answer to its task
    /// ([`crate::task::decode_output`] has seen to it).
    ///
    /// # Errors
    /// A sentence that ends the replica, for example because a number is no longer finite. It is part of the replica's
    /// digest, as is the state in which it leaves the replica.
    fn absorb(&mut self, outputs: &[Output]) -> Result<(), String>;

    /// The whole state, canonically encoded: [`restore`] is the inverse, and the run's digest is taken over these bytes.
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

/// A column of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// As in the header of `history.csv`.
    pub name: &'static str,
    /// What it is, with its unit.
    pub doc: &'static str,
}

/// What a replica is: everything its states are a function of.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// The run's seed.
    pub seed: u64,
    /// The arm's name; it is part of the names of the arm's own streams.
    pub arm: &'a str,
    /// From 0.
    pub replica: u32,
    /// The arm's settings.
    pub settings: &'a Values,
}

impl<'a> Identity<'a> {
    /// Replica number `replica` of an arm of a run.
    #[must_use]
    pub fn new(config: &Config, arm: &'a Arm, replica: u32) -> Self {
        Self { seed: config.seed, arm: &arm.name, replica, settings: &arm.settings }
    }
}

/// A replica before its first round.
#[must_use]
pub fn start(kind: Kind, identity: Identity<'_>) -> Box<dyn Experiment> {
    match kind {
        Kind::Dispatch => Box::new(dispatch::Dispatch::start(identity)),
        Kind::Invincible => Box::new(invincible::Invincible::start(identity)),
        Kind::Td3d => Box::new(td3d::Td3d::start(identity)),
        Kind::Nndtf => Box::new(nndtf::Nndtf::start(identity)),
        Kind::Rules => Box::new(rules::Rules::start(identity)),
        Kind::Ternary => Box::new(ternary::Ternary::start(identity)),
    }
}

/// A replica as it was saved.
///
/// # Errors
/// A sentence if the bytes are not a state that this replica can have.
pub fn restore(kind: Kind, identity: Identity<'_>, state: &[u8]) -> Result<Box<dyn Experiment>, String> {
    Ok(match kind {
        Kind::Dispatch => Box::new(dispatch::Dispatch::restore(identity, state)?),
        Kind::Invincible => Box::new(invincible::Invincible::restore(identity, state)?),
        Kind::Td3d => Box::new(td3d::Td3d::restore(identity, state)?),
        Kind::Nndtf => Box::new(nndtf::Nndtf::restore(identity, state)?),
        Kind::Rules => Box::new(rules::Rules::restore(identity, state)?),
        Kind::Ternary => Box::new(ternary::Ternary::restore(identity, state)?),
    })
}

impl Kind {
    /// What each row of a history says.
    #[must_use]
    pub fn columns(self) -> &'static [Column] {
        match self {
            Self::Dispatch => dispatch::COLUMNS,
            Self::Invincible => invincible::COLUMNS,
            Self::Td3d => td3d::COLUMNS,
            Self::Nndtf => nndtf::COLUMNS,
            Self::Rules => rules::COLUMNS,
            Self::Ternary => ternary::COLUMNS,
        }
    }

    /// The index, in [`Kind::columns`], of the value to show while a run is going on.
    #[must_use]
    pub fn headline(self) -> usize {
        match self {
            Self::Dispatch => 0,
            Self::Invincible | Self::Td3d => 1,
            Self::Nndtf => 2,
            Self::Rules => rules::column::STRENGTH,
            Self::Ternary => 5,
        }
    }

    /// How many rounds a replica with these settings takes.
    #[must_use]
    pub fn rounds(self, settings: &Values) -> u64 {
        match self {
            Self::Dispatch => settings.integer("rounds"),
            Self::Invincible | Self::Ternary => settings.integer("generations"),
            Self::Td3d => td3d::rounds(settings),
            Self::Nndtf => nndtf::rounds(settings),
            Self::Rules => rules::rounds(settings),
        }
    }
}
