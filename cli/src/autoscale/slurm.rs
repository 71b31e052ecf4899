//! The commands of Slurm. All jobs of one command share a name that no other jobs have.

use std::{
    io::Read as _,
    os::unix::process::CommandExt as _,
    process::{Command, Stdio, id},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context as _, anyhow, bail};
use evoxo_access::now_s;

/// A command may take this long. Slurm itself gives up earlier.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// The most bytes that are read of a command's output. A pipe holds as many, so no command is kept from ending. A thousand
/// jobs take a third of it.
const OUTPUT_BYTES_MAX: u64 = 64 << 10;
/// When a command refuses, at most this many lines of its reason are passed on.
const LINES_SAID: usize = 3;

/// The jobs of one name.
pub(super) struct Slurm {
    name: String,
    /// The coordinator's address, for the workers.
    coordinator: String,
    /// The arguments that a person would give to `sbatch`.
    arguments: Vec<String>,
}

/// A job in the queue.
pub(super) struct Queued {
    /// The job's ID, as ARRAY_ELEMENT.
    pub(super) id: String,
    pub(super) runs: bool,
}

impl Slurm {
    pub(super) fn new(run: &str, coordinator: String, arguments: Vec<String>) -> Self {
        Self { name: format!("evoxo-{run}-{}-{}", now_s(), id()), coordinator, arguments }
    }

    /// Submits an array of this many jobs.
    pub(super) fn start(&self, jobs: u32) -> anyhow::Result<()> {
        let mut command = Command::new("sbatch");
        // A person's access is not for workers.
        command.env("EVOXO_COORDINATOR", &self.coordinator).env_remove("EVOXO_ACCESS").env_remove("EVOXO_TOKEN");
        command.args(["--parsable", "--job-name", &self.name]).arg(format!("--array=1-{jobs}")).args(&self.arguments);
        output(command).map(drop)
    }

    /// The jobs that have not ended.
    pub(super) fn jobs(&self) -> anyhow::Result<Vec<Queued>> {
        let mut command = Command::new("squeue");
        command.args(["--noheader", "--array", "--format", "%i %t", "--name", &self.name]);
        let lines = output(command)?;
        let job = |line: &str| {
            let (id, state) = line.trim().split_once(' ')?;
            // CG: the job has ended, and Slurm is tidying up after it.
            (state != "CG").then(|| Queued { id: id.into(), runs: state == "R" })
        };
        Ok(lines.lines().filter_map(job).collect())
    }

    /// Ends these jobs. Their workers finish their tasks first.
    pub(super) fn end(&self, jobs: &[String]) -> anyhow::Result<()> {
        let mut command = Command::new("scancel");
        command.arg("--quiet").args(jobs);
        output(command).map(drop)
    }

    /// Ends all jobs.
    pub(super) fn end_all(&self) -> anyhow::Result<()> {
        let mut command = Command::new("scancel");
        command.args(["--quiet", "--name", &self.name]);
        let advice = || format!("the jobs were not ended: `scancel --name {}` ends them", self.name);
        output(command).map(drop).with_context(advice)
    }
}

/// The output of a command, if it succeeds in time.
fn output(mut command: Command) -> anyhow::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    // Ctrl-C in a terminal is for this process, not for the command.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|error| anyhow!("cannot start {name} ({error}): is Slurm installed on this machine?"))?;
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if start.elapsed() > ANSWER_TIMEOUT {
            child.kill().with_context(|| format!("cannot end {name}"))?;
            child.wait()?;
            bail!("{name} did not answer within {} s", ANSWER_TIMEOUT.as_secs());
        }
        sleep(LOOK_INTERVAL);
    };
    let mut texts = [Vec::new(), Vec::new()];
    if let Some(stdout) = child.stdout.take() {
        stdout.take(OUTPUT_BYTES_MAX).read_to_end(&mut texts[0])?;
    }
    if let Some(stderr) = child.stderr.take() {
        stderr.take(OUTPUT_BYTES_MAX).read_to_end(&mut texts[1])?;
    }
    let [said, complained] = texts.map(|text| String::from_utf8_lossy(&text).into_owned());
    if !status.success() {
        let plain = |line: &str| line.trim_start_matches(&format!("{name}: ")).trim_start_matches("error: ").to_owned();
        let why: Vec<String> = complained.lines().take(LINES_SAID).map(plain).collect();
        bail!("{name} refuses ({status}): {}", why.join("; "));
    }
    Ok(said)
}
