//! What is typed, and what is meant.

use std::net::SocketAddr;

use clap::{CommandFactory as _, Parser};

use crate::{
    core::{self, Batch},
    daemon::Settings,
};

/// Owns the runs: hands tasks to workers, absorbs their results, keeps checkpoints.
#[derive(Debug, Parser)]
#[command(
    name = "evoxo-coordinator",
    version = concat!(env!("CARGO_PKG_VERSION"), " (", env!("EVOXO_COMMIT"), ")"),
    after_help = "Examples:
  evoxo-coordinator
      Listens on 127.0.0.1:7600 and keeps its runs below ./runs. Unfinished runs go on by themselves.
  evoxo-coordinator --listen 10.0.0.5:7600 --insecure --store /var/lib/evoxo
      For workers on other hosts of a network where everybody is trusted.

SIGTERM saves everything and stops; kill -9 loses at most one checkpoint interval of work, and no result changes."
)]
pub struct Arguments {
    /// Address and port to listen on; port 0 lets the system choose
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:7600")]
    pub listen: SocketAddr,

    /// Allow --listen to be an address that other hosts can reach: nothing is encrypted or authenticated yet
    #[arg(long)]
    pub insecure: bool,

    /// Directory for the runs (or a bucket like s3://bucket/prefix, if built with that feature)
    #[arg(long, value_name = "DIRECTORY", default_value = "runs")]
    pub store: String,

    /// Time between two checkpoints of a run, at the least: 3s, 500ms, 2m
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = milliseconds)]
    pub checkpoint_interval: u64,

    /// Tasks sent to a worker at once: a number, or "auto" for as many as take some hundredths of a second
    #[arg(long, value_name = "TASKS", default_value = "auto", value_parser = batch)]
    pub batch: Batch,

    /// Keep only so many finished or cancelled runs: older ones are deleted
    #[arg(long, value_name = "RUNS")]
    pub keep_finished: Option<u32>,

    /// What to write to standard error: error, warn, info, debug, trace
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log: tracing::level_filters::LevelFilter,

    /// Print the address as the first line on standard output
    #[arg(long, hide = true)]
    pub announce: bool,

    /// Stop when standard input ends
    #[arg(long, hide = true)]
    pub exit_with_stdin: bool,
}

impl Arguments {
    /// Ends the process with status 2 and a sentence if what was typed must not be done.
    pub(crate) fn check_usage(&self) {
        if let Err(why) = self.settings().check() {
            Self::command().error(clap::error::ErrorKind::ValueValidation, why).exit();
        }
    }

    /// What is meant.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let core = core::Settings {
            checkpoint_interval_ms: self.checkpoint_interval,
            batch: self.batch,
            finished_runs_kept: self.keep_finished,
            ..core::Settings::default()
        };
        Settings {
            listen: self.listen,
            insecure: self.insecure,
            store: self.store.clone(),
            core,
            announce: self.announce,
            exit_with_stdin: self.exit_with_stdin,
        }
    }
}

/// A time as people write it, in milliseconds; without a unit it is seconds.
fn milliseconds(text: &str) -> Result<u64, String> {
    const DAY_MS: f64 = 86_400_000.0;
    let unit_start = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_start);
    let unit_ms =
        [("ms", 1.0), ("s", 1e3), ("", 1e3), ("m", 6e4), ("h", 3.6e6)].into_iter().find(|known| known.0 == unit);
    let value_ms = unit_ms.and_then(|(_, ms)| Some(number.parse::<f64>().ok()? * ms));
    let good = value_ms.filter(|ms| (0.0..=DAY_MS).contains(ms));
    good.map(|ms| ms as u64).ok_or_else(|| "give a time of at most a day, for example 3s, 500ms or 2m".into())
}

/// Reads the value of `--batch`.
///
/// # Errors
/// What can be given.
pub fn batch(text: &str) -> Result<Batch, String> {
    match (text, text.parse()) {
        ("auto", _) => Ok(Batch::Auto),
        (_, Ok(tasks @ 1..)) => Ok(Batch::Tasks(tasks)),
        _ => Err("give \"auto\" or a number from 1".into()),
    }
}
