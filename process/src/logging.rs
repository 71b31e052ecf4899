//! The log of the daemons: lines on standard error.

use std::{
    fmt::Display,
    io::{IsTerminal as _, Write as _},
    sync::atomic::{AtomicBool, Ordering},
};

use clap::ValueEnum;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::{
    Layer as _, filter::Targets, fmt::format::debug_fn, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

/// The lines to log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Log {
    /// Failures that end the process.
    Error,
    /// Problems that may pass, and the above.
    Warn,
    /// Normal operation, and the above.
    #[default]
    Info,
    /// Every connection attempt, and the above.
    Debug,
}

/// The format of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Time, level and a sentence.
    #[default]
    Text,
    /// A JSON object with additional fields for programs: run, arm, replica, task, worker, identity, session.
    Json,
}

/// The fields that only JSON has. In text, the sentence names its subject.
const FIELDS: [&str; 7] = ["run", "arm", "replica", "task", "worker", "identity", "session"];

/// Dependencies that talk to strangers. They warn about anything a stranger sends, however often, so their warnings could
/// fill a disk.
const SPOKEN_TO: [&str; 3] = ["h2", "hyper", "tonic"];

/// Whether the log is JSON.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// Reports why this process ends: with JSON as a line of the log, otherwise as "error: ...".
pub fn say_failure(why: impl Display) {
    if IS_JSON.load(Ordering::Relaxed) {
        tracing::error!("{why:#}");
    } else {
        // If standard error is closed, there is nowhere to report that.
        let _ = writeln!(std::io::stderr(), "error: {why:#}");
    }
}

/// Logs to standard error: one line for each event of evoxo, only warnings of dependencies, and only errors of dependencies
/// that talk to strangers. If a subscriber is already set, it is used instead.
pub fn log_to_stderr(log: Log, format: Format) {
    let level = match log {
        Log::Error => LevelFilter::ERROR,
        Log::Warn => LevelFilter::WARN,
        Log::Info => LevelFilter::INFO,
        Log::Debug => LevelFilter::DEBUG,
    };
    let strangers = SPOKEN_TO.map(|target| (target, LevelFilter::ERROR));
    let filter = Targets::new().with_default(LevelFilter::WARN.min(level)).with_targets(strangers);
    let filter = filter.with_target("evoxo", level);
    IS_JSON.store(format == Format::Json, Ordering::Relaxed);
    let colours = std::io::stderr().is_terminal();
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
    // If a subscriber is already set, it gets the lines.
    let _ = match format {
        Format::Text => {
            let fields = debug_fn(|writer, field, value| match field.name() {
                "message" => write!(writer, "{value:?}"),
                name if FIELDS.contains(&name) => Ok(()),
                name => write!(writer, " {name}={value:?}"),
            });
            let lines = lines.with_ansi(colours).fmt_fields(fields);
            tracing_subscriber::registry().with(lines.with_filter(filter)).try_init()
        }
        Format::Json => {
            let lines = lines.json().flatten_event(true).with_current_span(false).with_span_list(false);
            tracing_subscriber::registry().with(lines.with_filter(filter)).try_init()
        }
    };
}
