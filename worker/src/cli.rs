//! The command line of `evoxo-worker`.

use std::{
    fs,
    hash::{BuildHasher as _, Hasher as _, RandomState},
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    thread,
    time::Duration,
};

use anyhow::{Context as _, anyhow, bail};
use bytes::Bytes;
use clap::{Args, Parser, Subcommand, ValueEnum};
use evoxo_access::{Source, Typed};
use evoxo_common::{digest::Digest, experiment::Registry, simd, task::Encoded};
use evoxo_process::{Addresses, Format, Log, build, duration, host_name, log_to_stderr, parsed, stdout, whole};
use evoxo_proto::{
    LABEL_BYTES_MAX, LABELS_MAX, NAME_BYTES_MAX, TASK_BYTES_MAX, is_label, long_version, v1::task_result::Outcome,
};

use crate::{
    core::{self, SLOTS_MAX},
    daemon::{self, Settings},
    pool::compute_here,
    programs::{Processes, Program, end_programs_on_request},
};

const EXAMPLES: &str = "\
Examples:
  evoxo-worker
      Works for a coordinator on this host, on every core.
  evoxo-worker --coordinator lab7:7600 --slots 4
      Works for another host, on four cores.
  evoxo-worker --coordinator lab7:7600 --join TOKEN
      The same with TLS; `evoxo token create` makes tokens.
  evoxo-worker --coordinator lab7:7600 --idle-timeout 10m
      Exits after ten minutes without a task.
  evoxo-worker --program rosen=\"python3 rosen.py\"
      Computes fitness with your own program.
  evoxo-worker run-task poison.task
      Computes one saved task here and prints its result.

SIGTERM or Ctrl-C: finish running tasks, then exit; a second time: exit at once.

Exit status: 0 good, 1 failed, 2 wrong usage, 3 refused by the coordinator.";

#[derive(Parser)]
#[command(
    name = "evoxo-worker",
    version = &*build().text().leak(),
    long_version = &*long_version(&build().text()).leak(),
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
)]
/// Computes tasks for an evoxo coordinator.
struct Command {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Subcommand)]
enum Verb {
    /// Compute a saved task and print its result.
    RunTask {
        /// The file with the bytes of one task.
        file: PathBuf,
        /// Instructions the kernels may use: the result is the same.
        #[arg(long, value_enum, default_value_t)]
        simd: Simd,
        /// A program that the task may call, for example rosen="python3 rosen.py"; can be repeated.
        #[arg(long = "program", value_name = "NAME=COMMAND")]
        programs: Vec<Program>,
    },
}

/// The options of a worker.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Addresses of the coordinator and its standbys, separated by commas.
    #[arg(long, value_name = "HOST:PORT,...", env = "EVOXO_COORDINATOR", hide_env_values = true, default_value_t)]
    pub coordinator: Addresses,
    /// Join a cluster with this token, and keep the certificate for later starts.
    #[arg(long, value_name = "TOKEN", env = "EVOXO_TOKEN", hide_env_values = true)]
    pub join: Option<Typed>,
    /// The access file to use; with --join, the file to keep the certificate in, unless it holds a person's certificate
    /// [default with --join: a file in $STATE_DIRECTORY, $XDG_STATE_HOME/evoxo or ~/.local/state/evoxo].
    #[arg(long, value_name = "FILE", env = "EVOXO_ACCESS", hide_env_values = true)]
    pub access: Option<PathBuf>,
    /// Number of assignments to compute at once, 1 to 1024 [default: the cores this process may use].
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1, SLOTS_MAX as u64))]
    pub slots: Option<u16>,
    /// Exit after this time without a task: 90s, 10m, 2h, or seconds [default: stay].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub idle_timeout: Option<Duration>,
    /// Instructions the kernels may use: the results are the same.
    #[arg(long, value_enum, default_value_t)]
    pub simd: Simd,
    /// Name of this worker in lists and messages, kept after a restart [default: the name of this host].
    #[arg(long, value_parser = name)]
    pub name: Option<String>,
    /// A program that tasks may call, for example rosen="python3 rosen.py"; can be repeated.
    #[arg(long = "program", value_name = "NAME=COMMAND")]
    pub programs: Vec<Program>,
    /// A label, for example gpu=a100: runs submitted with --term where=gpu=a100 come only to such workers; can be repeated.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub labels: Vec<String>,
    /// Which messages to write to standard error.
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t)]
    pub log: Log,
    /// The format of these messages.
    #[arg(long, value_name = "FORM", value_enum, default_value_t)]
    pub log_format: Format,
    /// Exit when standard input ends.
    #[arg(long, hide = true)]
    pub exit_with_stdin: bool,
}

/// The most advanced instructions that the kernels may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Simd {
    /// The best instructions of this machine.
    #[default]
    Auto,
    /// Up to AVX2; on ARM64 the same as baseline, NEON.
    Avx2,
    /// Instructions that every machine has.
    Baseline,
}

/// The worker program, from its arguments to its exit status.
#[must_use]
pub fn main(registry: &Registry) -> ExitCode {
    let command = parsed::<Command>();
    let done = match command.verb {
        Some(Verb::RunTask { file, simd, programs }) => run_task(registry, &file, simd, programs.into()),
        None => work(&command.options, registry.clone()),
    };
    done.unwrap_or_else(|error| {
        evoxo_process::say_failure(error);
        ExitCode::FAILURE
    })
}

/// Runs a worker with these options until it exits, and logs to standard error.
///
/// # Errors
/// If the system denies something that the worker needs; the message says what.
pub fn work(options: &Options, registry: Registry) -> anyhow::Result<ExitCode> {
    log_to_stderr(options.log, options.log_format);
    simd::set_level(options.simd.level());
    let slots = match options.slots {
        Some(slots) => slots.into(),
        None => thread::available_parallelism()
            .context("cannot tell how many cores this process may use; set --slots")?
            .get()
            .min(SLOTS_MAX),
    };
    if options.labels.len() > LABELS_MAX {
        bail!("a worker has at most {LABELS_MAX} labels: give fewer --label");
    }
    let programs: Arc<[Program]> = options.programs.as_slice().into();
    let worker = core::Settings {
        slots,
        name: options.name.clone().unwrap_or_else(host_name),
        host: host_name(),
        build: build().text(),
        kinds: registry.signatures(),
        programs: Vec::new(),
        labels: options.labels.clone(),
        process: RandomState::new().build_hasher().finish(),
        idle_timeout_ms: options.idle_timeout.map(|idle| u64::try_from(idle.as_millis()).unwrap_or(u64::MAX)),
    };
    let (coordinators, exit_with_stdin) = (options.coordinator.clone(), options.exit_with_stdin);
    let token = options
        .join
        .as_ref()
        .map(Typed::token)
        .transpose()
        .unwrap_or_else(|why| clap::Error::raw(clap::error::ErrorKind::ValueValidation, format!("{why}\n")).exit());
    let access = match (token, options.access.clone()) {
        (Some(token), file) => Some(Source::Token(token, file)),
        (None, file) => file.map(Source::File),
    };
    daemon::run(Settings { coordinators, access, worker, programs, exit_with_stdin }, registry)
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

fn run_task(registry: &Registry, file: &Path, simd: Simd, programs: Arc<[Program]>) -> anyhow::Result<ExitCode> {
    simd::set_level(simd.level());
    let bytes = read_task(file).with_context(|| format!("cannot read the task {}", file.display()))?;
    let task = Encoded::of_whole(&bytes).map_err(|why| anyhow!("{} is not a saved task: {why}", file.display()))?;
    let kind = task.message().map_err(anyhow::Error::msg)?;
    if !programs.is_empty() {
        end_programs_on_request(|| true)?;
    }
    let mut out = stdout();
    writeln!(out, "task    {}/{} of {} bytes, {}", kind.kind, kind.work, bytes.len(), task.hash)?;
    match compute_here(registry, &task, &mut Processes::new(programs)) {
        (Outcome::Output(output), elapsed_us) => {
            writeln!(out, "output  {} bytes, SHA-256 {}", output.len(), Digest::of(&output))?;
            writeln!(out, "time    {:.6} s", elapsed_us as f64 / 1e6)?;
            Ok(ExitCode::SUCCESS)
        }
        (Outcome::Failure(why) | Outcome::OtherProgram(why), _) => bail!("{why}"),
    }
}

fn read_task(file: &Path) -> anyhow::Result<Bytes> {
    let bytes = fs::metadata(file)?.len();
    if bytes > TASK_BYTES_MAX as u64 {
        bail!("it has {bytes} bytes, and no task has more than {TASK_BYTES_MAX}");
    }
    Ok(fs::read(file)?.into())
}

/// Checks a worker's name: it must be short and safe to print in a terminal.
fn name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > NAME_BYTES_MAX || text.chars().any(char::is_control) {
        return Err(format!("a name has 1 to {NAME_BYTES_MAX} bytes and no control characters"));
    }
    Ok(text.to_owned())
}

/// Checks a label.
fn label(text: &str) -> Result<String, String> {
    match is_label(text) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "give KEY=VALUE of at most {LABEL_BYTES_MAX} letters, digits, '-', '_', '.', ':' and '/', for example gpu=a100"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_safe_to_print() {
        assert_eq!(name("lab7:12").as_deref(), Ok("lab7:12"));
        assert!(name(&host_name()).is_ok());
        let long = "x".repeat(129);
        assert!(["", "a\nb", "\u{1b}[2J", &long].iter().all(|text| name(text).is_err()));
    }

    #[test]
    fn the_command_is_well_formed() {
        <Command as clap::CommandFactory>::command().debug_assert();
    }
}
