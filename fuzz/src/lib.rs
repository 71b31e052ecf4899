//! The shared parts of the targets of `cargo fuzz`: how an input is cut into steps, a coordinator without sockets and clocks
//! on which the steps act, and its runs.

pub mod cluster;
pub mod configs;
pub mod steps;

use std::sync::OnceLock;

use evoxo_common::experiment::Registry;

/// All kinds of experiments, as the programs have them.
pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(evoxo_experiments::registry)
}
