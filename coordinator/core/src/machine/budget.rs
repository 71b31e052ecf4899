//! The memory budget of runs.

use std::collections::BTreeMap;

use super::Settings;

/// The memory for all runs together, in bytes. The runs of one submitter get at most a part of it.
#[derive(Debug)]
pub(super) struct Budget {
    total: u64,
    own_max: u64,
    given: u64,
    /// By submitter.
    given_to: BTreeMap<String, u64>,
}

/// Why memory cannot be reserved now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shortage {
    /// The submitter has too little left of its part.
    Own,
    /// Too little of the total is left.
    All,
}

impl Budget {
    pub(super) fn new(settings: &Settings) -> Self {
        let (total, own_max) = (settings.memory_bytes_max, settings.submitter_memory_bytes_max());
        Self { total, own_max, given: 0, given_to: BTreeMap::new() }
    }

    /// Reserves this many bytes for a run of this submitter, if they are free.
    pub(super) fn take(&mut self, submitter: &str, bytes: u64) -> Result<(), Shortage> {
        let own = self.given_to.get(submitter).copied().unwrap_or(0);
        if bytes > self.own_max.saturating_sub(own) {
            return Err(Shortage::Own);
        }
        if bytes > self.total - self.given {
            return Err(Shortage::All);
        }
        self.given += bytes;
        if bytes > 0 {
            self.given_to.insert(submitter.to_owned(), own + bytes);
        }
        Ok(())
    }

    /// Releases bytes that were reserved for this submitter.
    pub(super) fn give_back(&mut self, submitter: &str, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.given -= bytes;
        let own = self.given_to.get_mut(submitter).expect("only reserved bytes are released");
        *own -= bytes;
        if *own == 0 {
            self.given_to.remove(submitter);
        }
    }

    /// Checks that no more is reserved than the limits allow.
    pub(super) fn check(&self) {
        assert!(self.given <= self.total, "more memory is reserved than there is");
        assert!(self.given_to.values().all(|own| *own <= self.own_max), "a submitter has more than its part");
        assert_eq!(self.given, self.given_to.values().sum::<u64>(), "memory is reserved without a submitter");
    }

    /// Whether exactly these bytes are reserved for each submitter.
    pub(super) fn is_given_to(&self, submitters: &BTreeMap<&str, u64>) -> bool {
        submitters.iter().map(|(name, bytes)| (*name, *bytes)).eq(self.given_to.iter().map(|(n, b)| (n.as_str(), *b)))
    }

    /// Bytes reserved.
    pub(super) fn given(&self) -> u64 {
        self.given
    }
}

/// The message for a run that does not fit.
pub(super) fn too_large(needed: u64, most: u64) -> String {
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    format!(
        "the run takes at least {} MiB of the coordinator's memory, and one run may take {} MiB: make its rounds, states or \
         histories smaller, or start the coordinator with --memory {}MiB",
        mib(needed),
        mib(most),
        mib(needed.saturating_mul(2))
    )
}
