//! A run's view of a store that currently cannot be read or written, and the operations to retry.

use evoxo_common::time::Millis;

use crate::write::Write;

/// The wait before the store is tried again, in milliseconds.
pub(super) const STORE_RETRY_MS: u64 = 1000;
/// The number of failures in a row after which a run waits for the store.
const FAILURES_MAX: u32 = 3;
/// The wait before the states of a run are read again doubles up to this number of failures. That is at most 4 s, so work
/// resumes soon after the store has recovered.
const LOAD_RETRIES_MAX: u32 = 3;

/// The trouble of one run.
#[derive(Debug, Default)]
pub(super) struct StoreTrouble {
    /// The number of failed writes and reads since the last success.
    failures: u32,
    /// The message for clients, once the run waits.
    sentence: Option<String>,
    /// The states are not requested before this time, because they could not be read.
    load_due: Option<Millis>,
    /// Writes that failed and must be repeated.
    again: Vec<Write>,
}

impl StoreTrouble {
    /// Whether the last write or read failed.
    pub(super) fn is_there(&self) -> bool {
        self.failures > 0
    }

    /// Why the run waits for the store, if it does.
    pub(super) fn sentence(&self) -> Option<&String> {
        self.sentence.as_ref()
    }

    /// Whether a write is to be repeated.
    pub(super) fn has_unwritten(&self) -> bool {
        !self.again.is_empty()
    }

    /// Whether it is too early to request the states.
    pub(super) fn keeps_from_loading(&self) -> bool {
        self.load_due.is_some()
    }

    /// An operation of the store has succeeded for the run.
    pub(super) fn end(&mut self) {
        (self.failures, self.sentence) = (0, None);
    }

    /// A write failed or, with `load`, a read. Returns whether the run now waits for the store.
    pub(super) fn add(&mut self, why: &str, load: bool) -> bool {
        self.failures += 1;
        let waits = self.failures >= FAILURES_MAX;
        if waits {
            let done = if load { "read" } else { "written" };
            self.sentence = Some(format!("{why}; work continues when the store can be {done} again"));
        }
        waits
    }

    /// Records a failed write, to be repeated.
    pub(super) fn repeat(&mut self, write: Write) {
        self.again.push(write);
    }

    /// Takes the writes to repeat.
    pub(super) fn take_writes(&mut self) -> Vec<Write> {
        std::mem::take(&mut self.again)
    }

    /// The states could not be read. They are requested again later.
    pub(super) fn load_later(&mut self, now: Millis) {
        let pause_ms = STORE_RETRY_MS << self.failures.min(LOAD_RETRIES_MAX).saturating_sub(1);
        self.load_due = Some(now + pause_ms);
    }

    /// Whether the wait before the states are requested again has just ended.
    pub(super) fn load_is_due(&self, now: Millis) -> bool {
        self.load_due.is_some_and(|due| due <= now)
    }

    /// The states may be requested again.
    pub(super) fn load_now(&mut self) {
        self.load_due = None;
    }
}
