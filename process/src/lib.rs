//! Shared code of evoxo's programs as processes: requests to end, addresses, times and sizes on the command line, logging,
//! and messages of system errors.

mod address;
mod build;
mod host;
mod lack;
mod logging;
mod output;
mod rate;
mod request;
mod values;

use std::error::Error;

pub use address::{Address, Addresses};
pub use build::{Build, begin, build};
pub use host::{host_name, memory_bytes, open_files};
pub use logging::{Format, Log, log_to_stderr, say_failure};
pub use output::{Unwritten, parsed, stdout};
pub use rate::Rate;
pub use request::{EndRequest, EndRequests};
pub use values::{bytes, duration, whole};

/// The system's message: the innermost cause of an error, without the layers around it.
#[must_use]
pub fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
