//! Shared parts of these tests: the real programs on loopback, a client, a worker that follows a script, a small S3 server,
//! the list of mutations, the committed results.

pub mod live;
pub mod person;
pub mod programs;
pub mod reproduction;
pub mod s3;
pub mod schema;
pub mod script;
pub mod secure;

use std::sync::OnceLock;

use evoxo_common::experiment::Registry;

/// The experiments that come with evoxo.
pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(evoxo_experiments::registry)
}
