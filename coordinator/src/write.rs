//! What is written to the store, and why it may not be.

use bytes::Bytes;
use evoxo_common::digest::Digest;

/// A write to the store. Bytes come sealed ([`evoxo_common::envelope`]) unless said otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // A number and bytes each.
pub enum Write {
    Order {
        number: u64,
        bytes: Bytes,
    },
    Checkpoint {
        number: u64,
        bytes: Bytes,
    },
    /// Written once for each replica; the ordinal names it.
    Finished {
        ordinal: u64,
        bytes: Bytes,
    },
    Doubt {
        number: u64,
        bytes: Bytes,
    },
    /// Every replica is finished and stored: checkpoints may go.
    DropCheckpoints,
    /// A task that broke its run, as it was sent, unsealed: for `evoxo-worker run-task FILE`.
    Poison {
        hash: Digest,
        bytes: Bytes,
    },
    /// Remove the run.
    Delete,
    /// Take the run over from whoever had it, and read it with the states of its unfinished replicas.
    Load,
}

/// Why a write was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// This coordinator must not write to the run: another one has it, or nobody can read what it was.
    Fenced(String),
    /// Full, read-only, out of reach: one sentence naming the object. It will be tried again.
    Failed(String),
}
