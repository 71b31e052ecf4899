//! The coordinator: owns populations and state, hands out tasks, absorbs outputs, keeps checkpoints.
//!
//! [`core`] is pure and decides everything; [`shell`](crate::daemon) gives it time, sockets and a [`store`].

pub mod cli;
pub mod core;
pub mod daemon;
mod grpc;
pub mod names;
pub mod saved;
mod shell;
pub mod store;

/// Runs the daemon with what was typed; logs go to standard error.
///
/// # Errors
/// A sentence that says what could not be done, and what to do.
pub fn run(arguments: &cli::Arguments) -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false).with_max_level(arguments.log).init();
    daemon::daemon(&arguments.settings())
}
