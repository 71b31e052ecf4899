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

use std::io::IsTerminal as _;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::{Layer as _, filter::Targets, layer::SubscriberExt as _, util::SubscriberInitExt as _};

/// Runs the daemon with what was typed; logs go to standard error.
///
/// # Errors
/// A sentence that says what could not be done, and what to do.
pub fn run(arguments: &cli::Arguments) -> anyhow::Result<()> {
    arguments.check_usage();
    // Libraries speak only of what goes wrong: their chatter is about frames.
    let ours = Targets::new().with_default(LevelFilter::WARN.min(arguments.log)).with_target("evoxo", arguments.log);
    let colours = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(colours).with_target(false);
    tracing_subscriber::registry().with(lines.with_filter(ours)).init();
    daemon::daemon(&arguments.settings())
}
