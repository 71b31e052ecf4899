//! Writes to the store, and the reasons why they can fail.

use std::sync::Arc;

use bytes::Bytes;
use evoxo_common::digest::Digest;

/// A write to the store. Bytes are sealed ([`evoxo_common::envelope`]) unless stated otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The fields are numbers and bytes.
pub enum Write {
    /// The store chooses the next number.
    Order {
        bytes: Bytes,
    },
    Checkpoint {
        number: u64,
        bytes: Bytes,
        /// The most bytes of earlier states that stay in the store: see [`crate::kept`].
        keep: u64,
    },
    /// A finished replica. The store writes those that wait together in one object, and chooses its number.
    Finished {
        bytes: Bytes,
    },
    Doubt {
        number: u64,
        bytes: Bytes,
    },
    /// Convicts an identity that computed wrongly. It belongs to no run.
    Convict {
        identity: Arc<str>,
        bytes: Bytes,
    },
    /// Revokes an identity or a token for an operator. It belongs to no run.
    Revoke {
        id: String,
        bytes: Bytes,
    },
    /// Replaces the list of cordons. It belongs to no run.
    Cordons {
        number: u64,
        bytes: Bytes,
    },
    /// Writes the damaged or missing one of two objects of finished replicas again, from the other one.
    Mend {
        /// The name of the original object below `runs/RUN/`.
        object: String,
    },
    /// Deletes the checkpoints, because every replica is finished and stored.
    DropCheckpoints,
    /// Stores a task that made its run fail, for `evoxo-worker run-task FILE`. The bytes are those that were sent; they are
    /// not sealed.
    Poison {
        hash: Digest,
        bytes: Bytes,
    },
    /// Deletes the run.
    Delete,
    /// Reads the run with the states of its unfinished replicas.
    Load,
    /// The same for a run that forks from another one. If nothing of it is stored yet, it gets those states of the other run
    /// that have at most this many rounds, as far as its replicas fit into this memory.
    LoadFork {
        of: String,
        rounds: u64,
        bytes_max: u64,
    },
}

/// The result of [`Write::Mend`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mended {
    /// Both objects are good.
    Good,
    /// One of the two objects was written again; the sentence says which.
    Again(String),
    /// Neither object was good, so its replicas are no longer in the store; the sentence says so.
    Lost(String),
}

/// Why a write failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// Another coordinator now leads the store. This coordinator must stop its work and write nothing more.
    Superseded(String),
    /// This coordinator must not write to the run: the run was removed, or its content is unreadable.
    Fenced(String),
    /// The store is full, read-only or unreachable; the message names the object. The write is retried.
    Failed(String),
}
