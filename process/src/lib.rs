//! What evoxo's programs have in common as processes: how they are asked to end, how they find each other, what people type for
//! times and sizes, and what the system says when something goes wrong.

mod address;
mod host;
mod logging;
mod request;
mod values;

use std::error::Error;

pub use address::Address;
pub use host::{host_name, memory_bytes};
pub use logging::{Log, log_to_stderr};
pub use request::{EndRequest, EndRequests};
pub use values::{bytes, duration};

/// What the system said: the innermost cause of an error, without the layers around it.
#[must_use]
pub fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
