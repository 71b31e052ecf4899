//! What handlers and rules may read without being able to change it.

use evoxo_common::time::Millis;

use super::{runs::Runs, sessions::Sessions, settings::Settings, tasks::Tasks, writes::Writes};

/// The time of an event, and the coordinator's settings. Nothing changes them while the event is handled, except that the event may
/// be the one that stops the coordinator.
pub(super) struct Moment {
    pub(super) now: Millis,
    pub(super) settings: Settings,
    pub(super) stopping: bool,
}

/// The parts of the coordinator that a rule or a question may read.
#[derive(Clone, Copy)]
pub(super) struct Look<'a> {
    pub(super) now: Millis,
    pub(super) settings: &'a Settings,
    pub(super) runs: &'a Runs,
    pub(super) tasks: &'a Tasks,
    pub(super) sessions: &'a Sessions,
    pub(super) writes: &'a Writes,
}
