//! The log of the daemons: lines on standard error.

use std::io::IsTerminal as _;

use clap::ValueEnum;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::{Layer as _, filter::Targets, layer::SubscriberExt as _, util::SubscriberInitExt as _};

/// The lines to log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Log {
    /// Failures that end the process.
    Error,
    /// Also problems that pass.
    Warn,
    /// Also normal operation.
    #[default]
    Info,
    /// Also every attempt to connect.
    Debug,
}

/// Logs to the standard error: one line for each event of evoxo; of dependencies only warnings. If a subscriber is
/// already set, it is used instead.
pub fn log_to_stderr(log: Log) {
    let level = match log {
        Log::Error => LevelFilter::ERROR,
        Log::Warn => LevelFilter::WARN,
        Log::Info => LevelFilter::INFO,
        Log::Debug => LevelFilter::DEBUG,
    };
    let filter = Targets::new().with_default(LevelFilter::WARN.min(level)).with_target("evoxo", level);
    let colours = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(colours).with_target(false);
    let _ = tracing_subscriber::registry().with(lines.with_filter(filter)).try_init();
}
