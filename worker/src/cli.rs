//! What can be typed after `evoxo-worker`, and what is meant by it.

use std::{
    fs,
    io::{Write as _, stdout},
    panic,
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, anyhow, bail};
use bytes::Bytes;
use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};
use evoxo_common::{digest::Digest, simd, task};
use evoxo_proto::TASK_BYTES_MAX;
use tonic::transport::Uri;
use tracing_subscriber::{filter::Targets, layer::SubscriberExt as _, util::SubscriberInitExt as _};

use crate::{
    BUILD,
    core::{self, SLOTS_MAX},
    daemon::{self, Settings},
    pool::panic_text,
};

/// Where a coordinator listens unless told otherwise.
const PORT: u16 = 7600;
/// The longest name of a worker, in bytes.
const NAME_BYTES_MAX: usize = 128;

const EXAMPLES: &str = "\
Examples:
  evoxo-worker                                          work for a coordinator on this host, on every core
  evoxo-worker --coordinator lab7:7600 --slots 4        work for another host, on four cores
  evoxo-worker --coordinator lab7:7600 --idle-timeout 10m
                                                        leave after ten minutes without a task
  evoxo-worker run-task poison.task                     compute one saved task here and say what becomes of it

SIGTERM or Ctrl-C: finish what is begun, then leave; a second time: leave at once.
Exit status: 0 good, 1 failed, 2 wrong usage, 3 refused by the coordinator.";

#[derive(Parser)]
#[command(name = "evoxo-worker", version = BUILD, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
/// Computes tasks for an evoxo coordinator.
struct Command {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Subcommand)]
enum Verb {
    /// Compute a task whose bytes were saved, and print what becomes of it.
    RunTask {
        /// The file with the bytes of one task.
        file: PathBuf,
        /// Instructions the kernels may use: the result is the same.
        #[arg(long, value_enum, default_value_t)]
        simd: Simd,
    },
}

/// The options of a worker.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Where the coordinator listens: http://HOST:PORT or HOST:PORT.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7600", value_parser = coordinator)]
    pub coordinator: Uri,
    /// Assignments to compute at once, 1 to 1024 [default: the cores this process may use].
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=SLOTS_MAX as i64))]
    pub slots: Option<u16>,
    /// Leave after having had no task for so long: 90s, 10m, 2h, or seconds [default: stay].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub idle_timeout: Option<Duration>,
    /// Instructions the kernels may use: the results are the same.
    #[arg(long, value_enum, default_value_t)]
    pub simd: Simd,
    /// What to call this worker in lists and messages [default: HOST:PID].
    #[arg(long, value_parser = name)]
    pub name: Option<String>,
    /// What to log, on the standard error.
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t)]
    pub log: Log,
    /// End when the standard input ends.
    #[arg(long, hide = true)]
    pub exit_with_stdin: bool,
}

/// How far the kernels may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Simd {
    /// The best this machine has.
    #[default]
    Auto,
    /// Up to AVX2.
    Avx2,
    /// What every machine has.
    Baseline,
}

/// What is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Log {
    /// Failures that end the process.
    Error,
    /// And troubles that pass.
    Warn,
    /// And sessions that begin and end.
    #[default]
    Info,
    /// And every attempt to connect.
    Debug,
}

/// The worker's program, from its arguments to its exit status.
#[must_use]
pub fn main() -> ExitCode {
    let command = Command::parse();
    let done = match command.verb {
        Some(Verb::RunTask { file, simd }) => run_task(&file, simd),
        None => work(&command.options),
    };
    done.unwrap_or_else(|error| {
        // Nobody is left to tell if the standard error is closed.
        let _ = writeln!(std::io::stderr(), "error: {error:#}");
        ExitCode::FAILURE
    })
}

/// Works as a worker with these options, logging to the standard error, until it is time to exit.
///
/// # Errors
/// If the system denies what a worker needs; the message says what.
pub fn work(options: &Options) -> anyhow::Result<ExitCode> {
    log_to_stderr(options.log);
    simd::set_level(options.simd.level());
    let slots = match options.slots {
        Some(slots) => slots.into(),
        None => thread::available_parallelism()
            .context("cannot tell how many cores this process may use; say it with --slots")?
            .get()
            .min(SLOTS_MAX),
    };
    daemon::run(Settings {
        coordinator: options.coordinator.clone(),
        worker: core::Settings {
            slots,
            name: options.name.clone().unwrap_or_else(default_name),
            build: BUILD.to_owned(),
            signature: task::signature(),
            idle_timeout_ms: options.idle_timeout.map(|idle| u64::try_from(idle.as_millis()).unwrap_or(u64::MAX)),
        },
        exit_with_stdin: options.exit_with_stdin,
    })
}

impl Simd {
    /// The level of the kernels.
    #[must_use]
    pub fn level(self) -> simd::Level {
        match self {
            Self::Auto => simd::Level::Best,
            Self::Avx2 => simd::Level::Avx2,
            Self::Baseline => simd::Level::Baseline,
        }
    }
}

/// One line an event, of this program only.
fn log_to_stderr(log: Log) {
    let level = match log {
        Log::Error => tracing::Level::ERROR,
        Log::Warn => tracing::Level::WARN,
        Log::Info => tracing::Level::INFO,
        Log::Debug => tracing::Level::DEBUG,
    };
    let lines =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_target(false).compact();
    let own = Targets::new().with_target(env!("CARGO_CRATE_NAME"), level);
    // If whoever calls this logs already, so do we, their way.
    let _ = tracing_subscriber::registry().with(own).with(lines).try_init();
}

fn run_task(file: &Path, simd: Simd) -> anyhow::Result<ExitCode> {
    simd::set_level(simd.level());
    let bytes = read_task(file).with_context(|| format!("cannot read the task {}", file.display()))?;
    let task = task::decode_task(&bytes).with_context(|| format!("{} is not a saved task", file.display()))?;
    let mut out = stdout().lock();
    writeln!(out, "task    {} of {} bytes, SHA-256 {}", task::kind(&task), bytes.len(), Digest::of(&bytes))?;
    let start = Instant::now();
    match panic::catch_unwind(|| task::run_encoded(&bytes)) {
        Ok(Ok(output)) => {
            writeln!(out, "output  {} bytes, SHA-256 {}", output.len(), Digest::of(&output))?;
            writeln!(out, "time    {:.6} s", start.elapsed().as_secs_f64())?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(Err(refusal)) => Err(refusal).context("the task is refused"),
        Err(payload) => Err(anyhow!("the task panicked: {}", panic_text(&*payload))),
    }
}

fn read_task(file: &Path) -> anyhow::Result<Bytes> {
    let bytes = fs::metadata(file)?.len();
    if bytes > TASK_BYTES_MAX as u64 {
        bail!("it has {bytes} bytes, and no task has more than {TASK_BYTES_MAX}");
    }
    Ok(fs::read(file)?.into())
}

/// A coordinator's address, with what was left out filled in.
fn coordinator(text: &str) -> Result<Uri, String> {
    let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let uri: Uri = full.parse().map_err(|error| format!("{error}; write http://HOST:PORT or HOST:PORT"))?;
    if uri.scheme_str() != Some("http") {
        return Err("only http:// is understood; write http://HOST:PORT or HOST:PORT".into());
    }
    let authority = uri.authority().ok_or("there is no host in it; write http://HOST:PORT or HOST:PORT")?;
    if uri.path().len() > 1 || uri.query().is_some() || authority.as_str().contains('@') {
        return Err("there is more in it than a host and a port; write http://HOST:PORT or HOST:PORT".into());
    }
    let host = authority.host();
    let port = match authority.as_str().strip_prefix(host) {
        Some("") => PORT,
        _ => authority.port_u16().ok_or("the port is not a number from 0 to 65535")?,
    };
    format!("http://{host}:{port}").parse().map_err(|error| format!("{error}"))
}

/// A time like 90s, 10m, 2h, 500ms, or a number of seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a time like 90s, 10m, 2h or a number of seconds");
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().map_err(|_| wrong())?;
    let unit_ms = match &text[digits..] {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong()),
    };
    let ms = number.checked_mul(unit_ms).filter(|ms| *ms > 0).ok_or_else(wrong)?;
    Ok(Duration::from_millis(ms))
}

/// A worker's name: short, and harmless in a terminal.
fn name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > NAME_BYTES_MAX || text.chars().any(char::is_control) {
        return Err(format!("a name has 1 to {NAME_BYTES_MAX} bytes and no control characters"));
    }
    Ok(text.to_owned())
}

/// This host and process; the coordinator does not need names to differ.
fn default_name() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
    let full = format!("{}:{}", host.as_deref().map_or("host", str::trim), std::process::id());
    name(&full).unwrap_or_else(|_| format!("host:{}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_completed_or_refused() {
        for (text, full) in [
            ("http://127.0.0.1:7600", "http://127.0.0.1:7600/"),
            ("lab7:80", "http://lab7:80/"),
            ("lab7", "http://lab7:7600/"),
            ("http://lab7/", "http://lab7:7600/"),
            ("[::1]:9", "http://[::1]:9/"),
            ("[::1]", "http://[::1]:7600/"),
        ] {
            assert_eq!(coordinator(text).unwrap().to_string(), full);
        }
        for text in ["", "https://lab7:1", "lab7:port", "lab7:70000", "lab7:", "lab7/x", "lab7?x", "me@lab7", "a b"] {
            let sentence = coordinator(text).unwrap_err();
            assert!(!sentence.is_empty() && !sentence.contains('\n'), "{text}: {sentence}");
        }
    }

    #[test]
    fn times_have_units() {
        let ms = |text| duration(text).map(|duration| duration.as_millis());
        assert_eq!(
            [ms("90"), ms("90s"), ms("10m"), ms("2h"), ms("500ms")],
            [90_000, 90_000, 600_000, 7_200_000, 500].map(Ok)
        );
        for text in ["", "m", "-1", "1.5s", "10 m", "1d", "0", "99999999999999999999", "9999999999999999999h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_are_short_and_harmless() {
        assert_eq!(name("lab7:12").as_deref(), Ok("lab7:12"));
        assert!(name(&default_name()).is_ok_and(|name| name.ends_with(&format!(":{}", std::process::id()))));
        let long = "x".repeat(129);
        assert!(["", "a\nb", "\u{1b}[2J", &long].iter().all(|text| name(text).is_err()));
    }

    #[test]
    fn the_command_is_well_formed() {
        <Command as clap::CommandFactory>::command().debug_assert();
    }
}
