//! The coordinator: owns populations and states, gives out tasks, absorbs their outputs and keeps checkpoints. It does
//! not know the experiments: its program passes a registry of kinds.
//!
//! [`core`] is pure and decides everything; [`replicas`] is pure and has the states; [`shell`](crate::daemon) connects
//! them with time, threads, sockets and a [`store`].

pub mod cli;
pub mod core;
pub mod daemon;
mod grpc;
pub mod id;
pub mod names;
mod news;
mod page;
mod peers;
pub mod prepared;
pub mod rate;
pub mod replicas;
pub mod saved;
mod shell;
pub mod shown;
pub mod store;
mod views;
pub mod write;

use evoxo_common::experiment::Registry;

/// Runs the daemon with these arguments; logs go to standard error.
///
/// # Errors
/// A sentence that says what could not be done, and what to do.
pub fn run(arguments: &cli::Arguments, registry: Registry) -> anyhow::Result<()> {
    arguments.check_usage();
    evoxo_process::log_to_stderr(arguments.log);
    daemon::daemon(&arguments.settings(), registry)
}
