//! Writes to the store, and why they can fail.

use bytes::Bytes;
use evoxo_common::digest::Digest;

/// A write to the store. Bytes are sealed ([`evoxo_common::envelope`]) unless stated otherwise.
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
    /// Every replica is finished and stored, so checkpoints can be deleted.
    DropCheckpoints,
    /// A task that made its run fail, as it was sent, not sealed: for `evoxo-worker run-task FILE`.
    Poison {
        hash: Digest,
        bytes: Bytes,
    },
    /// Delete the run.
    Delete,
    /// Take over the run from its owner, and read it with the states of its unfinished replicas.
    Load,
}

/// Why a write was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// This coordinator must not write to the run: another one owns it, or its content is unreadable.
    Fenced(String),
    /// Full, read-only or unreachable: a message that names the object. It is tried again.
    Failed(String),
}
