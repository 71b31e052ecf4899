//! The protocol of evoxo. The `.proto` files under `proto/` are its source; the Rust code is generated from them,
//! committed, and checked by `tests/generated.rs`, so that builds do not need protoc.

mod leader;
mod level;
pub mod shown;

pub use leader::{LEADER_HEADER, Led, SEEN_HEADER, STANDBY_HEADER, Seen};
pub use level::{Level, MILLION};

/// The messages and services of version 1 of the protocol.
#[rustfmt::skip]
#[allow(missing_docs, clippy::all, clippy::pedantic, unreachable_pub)]
pub mod v1 {
    include!("generated/evoxo.v1.rs");
}

/// The messages and services of version 1, as an encoded `google.protobuf.FileDescriptorSet`: for tools that ask a server which
/// services it has.
pub const DESCRIPTORS: &[u8] = include_bytes!("generated/evoxo.v1.binpb");

/// The number of the wire format, which a [`v1::Hello`] must carry. It changes when a worker and a coordinator of two builds
/// could no longer work together, and has nothing to do with the version of the programs.
pub const PROTOCOL: u32 = 3;

/// The number of the store's format. It changes when an earlier build could no longer go on with a store that a later one has
/// written. A coordinator refuses a store with a higher number.
pub const STORE_FORMAT: u32 = 2;

/// The version of a program in several lines, for `--version`: the build and the numbers of the formats.
#[must_use]
pub fn long_version(build: &str) -> String {
    format!("{build}\nwire format {PROTOCOL}, store format {STORE_FORMAT}")
}

/// The largest message either side accepts, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The largest encoded [`v1::Task`] or output, in bytes.
pub const TASK_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The most shared byte strings that a worker keeps in a session.
pub const SHARED_PIECES_MAX: usize = 64;

/// The most bytes of these strings together. The newest string is always kept.
pub const SHARED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The most slots of one worker.
pub const SLOTS_MAX: u32 = 1024;

/// The most bytes of a worker's name or build, or of a run's name.
pub const NAME_BYTES_MAX: usize = 128;

/// The most kinds of experiments in a worker's Hello.
pub const KINDS_MAX: usize = 256;
/// The most programs of a worker.
pub const PROGRAMS_MAX: usize = 64;
/// The most bytes of the name of a program.
pub const PROGRAM_BYTES_MAX: usize = 64;

/// The most labels of a worker.
pub const LABELS_MAX: usize = 32;
/// The most bytes of a label.
pub const LABEL_BYTES_MAX: usize = 64;

/// Whether a text is a label, KEY=VALUE: both have letters of ASCII, digits, '-', '_', '.', ':' and '/'.
#[must_use]
pub fn is_label(text: &str) -> bool {
    let plain = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:/".contains(&byte))
    };
    text.len() <= LABEL_BYTES_MAX && text.split_once('=').is_some_and(|(key, value)| plain(key) && plain(value))
}

/// The most bytes of a worker's message about a failed task.
pub const FAILURE_BYTES_MAX: usize = 4096;

/// The most results of one message.
pub const RESULTS_MAX: usize = 16_384;
