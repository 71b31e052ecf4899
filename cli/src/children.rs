//! The local cluster: this program, started again as a coordinator and as workers on loopback. The children end when their
//! standard input closes, so they cannot outlive this process. A child that is killed is replaced.

use std::{
    fs::{File, OpenOptions},
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use clap::ValueEnum as _;
use evoxo_coordinator::{files_for, recall};
use evoxo_process::{Address, open_files};
use evoxo_worker::{Program, cli::Simd};

use crate::page;

/// The size and options of the cluster.
pub(crate) struct Plan {
    pub(crate) workers: u32,
    /// As `evoxo-coordinator --batch`.
    pub(crate) batch: String,
    /// As `evoxo-worker --simd`.
    pub(crate) simd: Simd,
    /// As `evoxo-worker --program`.
    pub(crate) programs: Arc<[Program]>,
    /// As `evoxo-coordinator --memory`.
    pub(crate) memory_bytes: u64,
    /// As `evoxo-coordinator --recall` and `--recall-in`.
    pub(crate) recall: recall::Options,
    /// Whether the coordinator shows its page.
    pub(crate) page: bool,
    /// Whether the page stays available after the run ends, while somebody has it open.
    pub(crate) stays: bool,
}

/// A coordinator and its workers.
pub(crate) struct Children {
    coordinator: Child,
    address: SocketAddr,
    workers: Vec<Child>,
    plan: Plan,
    store: String,
    log: PathBuf,
    /// The length of the log when the current coordinator started, in bytes.
    log_start: u64,
    /// The number of replacements that still count, and when the last one happened.
    replaced: u32,
    last_replaced: Instant,
    /// The number of processes in a row that ended by themselves shortly after one another. Many of them mean that this
    /// machine does not let them run.
    failed: u32,
    last_failed: Instant,
}

/// Connections besides those of the workers: the requests of this process, and a worker that reconnects before its loss is
/// noticed.
const OTHER_CONNECTIONS: usize = 3;
/// How long a child may take to start, and how long to stop.
const PATIENCE: Duration = Duration::from_secs(40);
/// With more replacements than this, plus as many again for each ten workers, something is wrong with this machine...
const REPLACED_MAX: u32 = 1000;
/// ... unless they are rare: one replacement is forgotten each time this period passes.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(30);
/// At most this many processes, or as many as there are workers, may fail by themselves in a row...
const FAILED_MAX: u32 = 3;
/// ... if less than this time passes between two of them.
const FAILED_WITHIN: Duration = Duration::from_secs(5);
/// The number of the signal SIGABRT, with which a process aborts.
const ABORTED: i32 = 6;

/// Whether a process failed by itself. A process that somebody kills (`kill -9`) has not failed.
fn failed_by_itself(status: ExitStatus) -> bool {
    // A process that runs out of memory aborts.
    status.code().is_some_and(|code| code != 0) || status.signal() == Some(ABORTED)
}

impl Children {
    /// Starts a coordinator on this store, and its workers; they write to this log.
    pub(crate) fn start(store: String, log: PathBuf, plan: Plan) -> anyhow::Result<Self> {
        let needed = files_for(plan.workers as usize + OTHER_CONNECTIONS);
        if let Some(allowed) = open_files().filter(|allowed| *allowed < needed as u64) {
            bail!(
                "the system allows {allowed} open files, and {} local workers need {needed}: allow more (`ulimit -n {needed}`), or \
                 compute in this process with --workers 0",
                plan.workers
            );
        }
        let (coordinator, address, log_start) = start_coordinator(&store, &log, &plan, "127.0.0.1:0")?;
        let mut children = Self {
            coordinator,
            address,
            workers: Vec::new(),
            plan,
            store,
            log,
            log_start,
            replaced: 0,
            last_replaced: Instant::now(),
            failed: 0,
            last_failed: Instant::now(),
        };
        for number in 0..children.plan.workers {
            let worker = children.start_worker(number)?;
            children.workers.push(worker);
        }
        Ok(children)
    }

    /// The coordinator's address.
    pub(crate) fn address(&self) -> Address {
        self.address.to_string().parse().expect("a process listens on an address")
    }

    /// Whether the coordinator's store exists. Somebody may have removed it or moved it away.
    pub(crate) fn has_store(&self) -> bool {
        Path::new(&self.store).join("leader").exists()
    }

    /// The address of a run's page, if there is a page.
    pub(crate) fn page(&self, run: &str) -> Option<String> {
        self.plan.page.then(|| format!("{}#/runs/{run}", self.pages()))
    }

    /// The address of the list of all runs.
    pub(crate) fn pages(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Whether the coordinator is running.
    pub(crate) fn is_there(&mut self) -> anyhow::Result<bool> {
        Ok(self.coordinator.try_wait()?.is_none())
    }

    /// Whether somebody has the coordinator's page open.
    pub(crate) fn is_seen(&mut self) -> anyhow::Result<bool> {
        Ok(self.is_there()? && page::is_seen(self.address))
    }

    /// Ends the workers; only the coordinator remains, with its page.
    pub(crate) fn dismiss_workers(&mut self) -> anyhow::Result<()> {
        let mut workers = std::mem::take(&mut self.workers);
        workers.iter_mut().for_each(|worker| drop(worker.stdin.take()));
        let deadline = Instant::now() + PATIENCE;
        workers.iter_mut().try_for_each(|worker| ended(worker, deadline))
    }

    /// Replaces processes that have ended.
    pub(crate) fn replace_lost(&mut self) -> anyhow::Result<()> {
        if let Some(status) = self.coordinator.try_wait()? {
            self.count_replacement(status)?;
            let listen = self.address.to_string();
            (self.coordinator, _, self.log_start) = start_coordinator(&self.store, &self.log, &self.plan, &listen)?;
        }
        for index in 0..self.workers.len() {
            if let Some(status) = self.workers[index].try_wait()? {
                self.count_replacement(status)?;
                self.workers[index] = self.start_worker(index as u32)?;
            }
        }
        Ok(())
    }

    fn count_replacement(&mut self, status: ExitStatus) -> anyhow::Result<()> {
        if failed_by_itself(status) {
            let soon = self.last_failed.elapsed() < FAILED_WITHIN;
            (self.failed, self.last_failed) = (if soon { self.failed + 1 } else { 1 }, Instant::now());
            if self.failed > FAILED_MAX.max(self.plan.workers) {
                let why = last_error(&self.log, self.log_start)?;
                bail!("the local processes cannot continue: {why}");
            }
        }
        let forgotten = self.last_replaced.elapsed().as_secs() / FORGOTTEN_AFTER.as_secs();
        self.replaced = self.replaced.saturating_sub(u32::try_from(forgotten).unwrap_or(u32::MAX)) + 1;
        self.last_replaced = Instant::now();
        if self.replaced > REPLACED_MAX + REPLACED_MAX / 10 * self.plan.workers {
            bail!("the local processes keep ending: {} says why", self.log.display());
        }
        Ok(())
    }

    /// Lets the coordinator save, and waits until all processes have ended. Returns the reason if something could not be
    /// saved.
    pub(crate) fn stop(mut self) -> anyhow::Result<Option<String>> {
        // The coordinator comes first: while it saves, workers finish their tasks, and then it tells them to leave.
        drop(self.coordinator.stdin.take());
        self.workers.iter_mut().for_each(|worker| drop(worker.stdin.take()));
        let deadline = Instant::now() + PATIENCE;
        for child in std::iter::once(&mut self.coordinator).chain(&mut self.workers) {
            ended(child, deadline)?;
        }
        let saved = self.coordinator.wait()?.success();
        if saved { Ok(None) } else { last_error(&self.log, self.log_start).map(Some) }
    }

    fn start_worker(&self, number: u32) -> anyhow::Result<Child> {
        let (address, name) = (self.address.to_string(), format!("local-{number}"));
        let simd = self.plan.simd.to_possible_value().context("this level has no name")?;
        let arguments = [
            "worker",
            "--slots",
            "1",
            "--log",
            "warn",
            "--exit-with-stdin",
            "--coordinator",
            &address,
            "--name",
            &name,
        ];
        command(&arguments, &self.log)?
            .args(["--simd", simd.get_name()])
            .args(self.plan.programs.iter().map(|program| format!("--program={}={}", program.name, program.command)))
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start a local worker")
    }
}

/// Waits until a process has ended; kills it at the deadline.
fn ended(child: &mut Child, deadline: Instant) -> anyhow::Result<()> {
    while child.try_wait()?.is_none() {
        if Instant::now() > deadline {
            child.kill().context("cannot end a local process")?;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// A command that starts this program with one of its hidden verbs.
fn command(arguments: &[&str], log: &PathBuf) -> anyhow::Result<Command> {
    let mut program = std::env::current_exe().context("cannot find this program's own file")?;
    // All processes of a run must be of one build, and another build may replace the program's file while a run goes on for
    // days.
    if cfg!(target_os = "linux") && !program.exists() {
        program = "/proc/self/exe".into();
    }
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stderr(append(log)?);
    // Access to another cluster must not be used for this one.
    command.env_remove("EVOXO_ACCESS").env_remove("EVOXO_TOKEN");
    // The terminal sends Ctrl-C to a whole process group. It is meant for this process, which lets the others save and end.
    command.process_group(0);
    Ok(command)
}

fn append(log: &PathBuf) -> anyhow::Result<File> {
    OpenOptions::new().create(true).append(true).open(log).with_context(|| format!("cannot write {}", log.display()))
}

/// Starts the coordinator and reads its address. Also returns the length that the log had before.
fn start_coordinator(
    store: &str,
    log: &PathBuf,
    plan: &Plan,
    listen: &str,
) -> anyhow::Result<(Child, SocketAddr, u64)> {
    let log_start = append(log)?.metadata()?.len();
    let arguments = ["coordinator", "--announce", "--exit-with-stdin", "--log", "warn", "--listen", listen];
    let mut child = command(&arguments, log)?
        .args(["--store", store, "--batch", &plan.batch, "--memory", &plan.memory_bytes.to_string()])
        .args(["--recall", &plan.recall.recall.to_string()])
        .args(plan.recall.recall_in.iter().flat_map(|directory| ["--recall-in".as_ref(), directory.as_os_str()]))
        .args((!plan.page).then_some("--no-page"))
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the local coordinator")?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line).context("cannot read from the local coordinator")?;
    }
    match line.trim().parse() {
        Ok(address) => Ok((child, address, log_start)),
        Err(_) => {
            child.wait().context("cannot wait for the local coordinator")?;
            bail!("the local coordinator did not start: {}", last_error(log, log_start)?)
        }
    }
}

/// The beginning of the line that Rust prints when memory runs out.
const OUT_OF_MEMORY: &str = "memory allocation of ";

/// The last error message of a coordinator that has ended.
fn last_error(log: &PathBuf, from: u64) -> anyhow::Result<String> {
    let text = std::fs::read(log).with_context(|| format!("cannot read {}", log.display()))?;
    let text = String::from_utf8_lossy(&text[(from as usize).min(text.len())..]).into_owned();
    let last = text.lines().rev().find_map(|line| line.strip_prefix("error: "));
    // Out of memory, Rust can print nothing more than this line.
    let memory = || text.lines().rev().find(|line| line.starts_with(OUT_OF_MEMORY));
    if let (None, Some(line)) = (last, memory()) {
        return Ok(format!("{line}: allow these processes more memory (`ulimit -v`), or compute with fewer workers"));
    }
    Ok(last.map_or_else(|| format!("see {}", log.display()), str::to_owned))
}
