//! The decisions of a coordinator, without I/O. The state machine ([`Coordinator`]) takes events and the time, and returns
//! effects. The states of a run's replicas ([`replicas`]) live on a thread of their own, which does the jobs that the state
//! machine requests. [`saved`], [`pack`](mod@pack), [`names`] and [`write`](mod@write) define what is stored.
//!
//! Invariants: no clock, no I/O, no await, no threads and no randomness. The dependencies of this crate have none of them
//! either, and `clippy.toml` forbids those of the standard library.

pub mod id;
pub mod index;
pub mod kept;
mod machine;
pub mod names;
pub mod pack;
pub mod prepared;
pub mod replicas;
pub mod saved;
pub mod trust;
pub mod write;

pub use id::{RequestId, SessionId, TaskId, ThreadId, WriteId};
pub use machine::{
    About, Across, AttemptEnd, Attempts, Batch, Coordinator, Durations, Effect, Event, Figures, Rejection, ReplicaAt,
    Request, Response, Settings, Stored, Tally, Topic, View, WEIGHT,
};
pub use write::{Mended, StoreFault, Write};
