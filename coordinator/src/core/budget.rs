//! The memory budget of runs.

/// Bytes for all runs together.
#[derive(Debug)]
pub(super) struct Budget {
    total: u64,
    given: u64,
}

impl Budget {
    pub(super) fn new(total: u64) -> Self {
        Self { total, given: 0 }
    }

    /// Reserves this many bytes, if they are free.
    pub(super) fn take(&mut self, bytes: u64) -> bool {
        let fits = bytes <= self.total - self.given;
        if fits {
            self.given += bytes;
        }
        fits
    }

    pub(super) fn give_back(&mut self, bytes: u64) {
        self.given -= bytes;
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
