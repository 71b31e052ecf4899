//! The workers, connected or not.

use super::{
    absent::{Leaving, Lost, RefusalLines},
    cordons::Cordons,
    owed::Owed,
    sessions::Sessions,
    standing::Standings,
};

/// The workers: those connected, those that were lost, and what is known about both. It holds no runs and no tasks.
#[derive(Default)]
pub(super) struct Fleet {
    pub(super) sessions: Sessions,
    pub(super) standings: Standings,
    pub(super) owed: Owed,
    pub(super) cordons: Cordons,
    pub(super) compared: Compared,
    /// Workers that were lost, and workers that are to leave.
    pub(super) lost: Lost,
    pub(super) leaving: Leaving,
    pub(super) refusal_lines: RefusalLines,
}

/// When the workers are compared.
#[derive(Debug, Default)]
pub(super) struct Compared {
    /// Whether an attempt has ended that may change the outcome.
    pub(super) due: bool,
    /// The time of the last comparison.
    pub(super) last_ms: u64,
}
