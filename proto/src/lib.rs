//! The wire contract of evoxo. The `.proto` files under `proto/` are the source of truth; the Rust below is generated
//! from them, committed, and kept fresh by `tests/generated.rs`, so that nobody needs protoc.

/// Version 1 of the contract.
#[rustfmt::skip]
#[allow(missing_docs, clippy::all, clippy::pedantic, unreachable_pub)]
pub mod v1 {
    include!("generated/evoxo.v1.rs");
}

/// The version of the worker protocol that a [`v1::Hello`] must carry.
pub const PROTOCOL: u32 = 2;

/// The largest message either side accepts, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The largest encoded [`v1::Task`] or output, in bytes.
pub const TASK_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The most pieces of shared bytes that a worker keeps in a session.
pub const SHARED_PIECES_MAX: usize = 64;

/// The most bytes of them together; but the newest piece is always kept.
pub const SHARED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Slots of one worker, at most.
pub const SLOTS_MAX: u32 = 1024;

/// Bytes of a worker's name or build, or of a run's name, at most.
pub const NAME_BYTES_MAX: usize = 128;

/// Kinds of experiments that a worker may say it computes.
pub const KINDS_MAX: usize = 256;

/// Bytes of a worker's sentence about a failed task, at most.
pub const FAILURE_BYTES_MAX: usize = 4096;
