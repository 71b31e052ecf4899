//! What a run knows of a store that cannot be read or written at the moment, and what is tried again.

use evoxo_common::time::Millis;

use crate::write::Write;

/// The wait before the store is tried again, in milliseconds.
pub(super) const STORE_RETRY_MS: u64 = 1000;
/// Failed writes in a row after which a run waits for the store.
const FAILURES_MAX: u32 = 3;
/// The wait until the states of a run are read again is doubled this many times, less one: up to 4 s, so that work goes on soon after
/// a store has recovered.
const LOAD_RETRIES_MAX: u32 = 3;

/// The trouble of one run.
#[derive(Debug, Default)]
pub(super) struct StoreTrouble {
    /// Writes and reads that failed since one succeeded.
    failures: u32,
    /// What people are told, once the run waits.
    sentence: Option<String>,
    /// The states are not asked for before this time, because they could not be read.
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

    /// Whether the states may not be asked for yet.
    pub(super) fn keeps_from_loading(&self) -> bool {
        self.load_due.is_some()
    }

    /// The store has done something for the run.
    pub(super) fn end(&mut self) {
        (self.failures, self.sentence) = (0, None);
    }

    /// The store could not be written or, for `load`, read. Returns whether the run waits for the store now.
    pub(super) fn add(&mut self, why: &str, load: bool) -> bool {
        self.failures += 1;
        let waits = self.failures >= FAILURES_MAX;
        if waits {
            let done = if load { "read" } else { "written" };
            self.sentence = Some(format!("{why}; work continues when the store can be {done} again"));
        }
        waits
    }

    /// A write that failed is repeated.
    pub(super) fn repeat(&mut self, write: Write) {
        self.again.push(write);
    }

    /// The writes to repeat; they then are.
    pub(super) fn take_writes(&mut self) -> Vec<Write> {
        std::mem::take(&mut self.again)
    }

    /// The states could not be read: they are asked for again in a while.
    pub(super) fn load_later(&mut self, now: Millis) {
        let pause_ms = STORE_RETRY_MS << self.failures.min(LOAD_RETRIES_MAX).saturating_sub(1);
        self.load_due = Some(now + pause_ms);
    }

    /// Whether the wait before the states are asked for again is over just now.
    pub(super) fn load_is_due(&self, now: Millis) -> bool {
        self.load_due.is_some_and(|due| due <= now)
    }

    /// The states may be asked for again.
    pub(super) fn load_now(&mut self) {
        self.load_due = None;
    }
}
