//! Writes to the store, and why they can fail.

use std::sync::Arc;

use bytes::Bytes;
use evoxo_common::digest::Digest;

/// A write to the store. Bytes are sealed ([`evoxo_common::envelope`]) unless stated otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // A number and bytes each.
pub enum Write {
    /// The store gives it the next number.
    Order {
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
    /// An identity computed wrongly. It belongs to no run.
    Convict {
        identity: Arc<str>,
        bytes: Bytes,
    },
    /// An operator refuses an identity or a token. It belongs to no run.
    Revoke {
        id: String,
        bytes: Bytes,
    },
    /// A finished replica is void: it is removed.
    Unfinish {
        /// Its name below `runs/RUN/`.
        object: String,
    },
    /// The same for one that this coordinator is writing, which only the store can name.
    UnfinishOwn {
        ordinal: u64,
        bytes: Bytes,
    },
    /// One of the two objects of a finished replica is damaged or missing: it is written again from the other one.
    Mend {
        /// The name of the replica's object below `runs/RUN/`.
        object: String,
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
    /// Read the run with the states of its unfinished replicas.
    Load,
}

/// The result of [`Write::Mend`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mended {
    /// Both objects are good.
    Good,
    /// One of the two is written again, as this sentence says.
    Again(String),
    /// Neither was good: the replica is not in the store any more, as this sentence says.
    Lost(String),
}

/// Why a write was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// Another coordinator leads the store now: this one must end what it does and write nothing more.
    Superseded(String),
    /// This coordinator must not write to the run: it was removed, or its content is unreadable.
    Fenced(String),
    /// Full, read-only or unreachable: a message that names the object. It is tried again.
    Failed(String),
}
