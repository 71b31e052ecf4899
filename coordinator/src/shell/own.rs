//! Computes one task in a separate process: a crash, an endless loop or a lack of memory then ends that process and not the
//! coordinator.
//!
//! The coordinator executes its own program again, with its own arguments and with [`VARIABLE`] set. So any program that
//! embeds this library calls [`crate::daemon::daemon`] with its registry again, and that function computes the task instead
//! of running a coordinator. The task comes on standard input, after its length; the result goes to standard output. The
//! process ends when its standard input ends, so it cannot outlive the coordinator.

use std::{
    env,
    ffi::OsString,
    fs,
    io::{self, Read, Write as _},
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio, exit},
    sync::{
        Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use evoxo_common::{
    experiment::Registry,
    task::{Encoded, NoPrograms},
};
use evoxo_proto::{
    FAILURE_BYTES_MAX, TASK_BYTES_MAX,
    v1::{TaskResult, task_result::Outcome},
};
use prost::Message as _;

/// Set in the environment of a process that is to compute a task.
const VARIABLE: &str = "EVOXO_COMPUTE_TASK";
/// The most memory of such a process, in bytes of address space.
const MEMORY_BYTES_MAX: u64 = 2 << 30;
/// How often the coordinator checks whether the process has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// The most bytes of a result in addition to its output.
const RESULT_BYTES: u64 = 1024 + FAILURE_BYTES_MAX as u64;
/// The most bytes that are read from its standard error, and the most characters that are repeated.
const STDERR_BYTES_MAX: u64 = 4096;
const STDERR_SAID_MAX: usize = 200;

/// The task for the process, and its limits.
pub(crate) struct Asked {
    pub(crate) task: Encoded,
    pub(crate) limit: Duration,
    pub(crate) output_bytes_max: u64,
}

/// A task that is being computed. Dropping this ends the process.
pub(crate) struct Computing(#[expect(dead_code, reason = "its end is the request to stop")] Sender<()>);

impl Asked {
    /// Computes on a separate thread, which then calls `done` with the output, or with the reason why there is none.
    pub(crate) fn start(self, done: impl FnOnce(Result<Bytes, String>) + Send + 'static) -> Computing {
        let (keep, stop) = channel();
        let body = move || done(self.compute(&stop));
        let thread = thread::Builder::new().name("own process".into()).spawn(body);
        thread.expect("the system has a thread for the coordinator");
        Computing(keep)
    }

    fn compute(&self, stop: &Receiver<()>) -> Result<Bytes, String> {
        let child = start().map_err(|error| format!("its process cannot be started: {error}"))?;
        let mut process = Process(child);
        let (stdin, stdout, stderr) = (process.0.stdin.take(), process.0.stdout.take(), process.0.stderr.take());
        let whole = self.task.whole();
        // The input stays open until the process has ended.
        let writer = thread::spawn(move || {
            let mut stdin = stdin?;
            let written = stdin.write_all(&(whole.len() as u64).to_le_bytes()).and_then(|()| stdin.write_all(&whole));
            written.is_ok().then_some(stdin)
        });
        let output = reader(stdout, self.output_bytes_max.saturating_add(RESULT_BYTES));
        let said = reader(stderr, STDERR_BYTES_MAX);
        let ended = process.wait(stop, Instant::now() + self.limit);
        // This kills the process if it still runs. After that, its ends of the pipes are closed.
        drop(process);
        drop(writer.join());
        let (output, said) = (output.join().unwrap_or_default(), said.join().unwrap_or_default());
        let status = ended.map_err(|why| match why {
            End::Asked => "it was asked to stop".to_owned(),
            End::Overdue => format!("its process did not end within {} s", self.limit.as_secs_f64()),
            End::Lost(error) => format!("its process cannot be waited for: {error}"),
        })?;
        let result = TaskResult::decode(&output[..]).ok().and_then(|result| result.outcome);
        match result.filter(|_| status.success()) {
            Some(Outcome::Output(output)) => Ok(output),
            Some(Outcome::Failure(why) | Outcome::OtherProgram(why)) => Err(printable(&why, FAILURE_BYTES_MAX)),
            None => Err(format!("its process {}{}", how(status), last_words(&said))),
        }
    }
}

/// A process that is killed on drop.
struct Process(Child);

/// Why waiting for a process has stopped.
enum End {
    Asked,
    Overdue,
    Lost(io::Error),
}

impl Process {
    fn wait(&mut self, stop: &Receiver<()>, end: Instant) -> Result<ExitStatus, End> {
        loop {
            if let Some(status) = self.0.try_wait().map_err(End::Lost)? {
                return Ok(status);
            }
            if stop.recv_timeout(LOOK_INTERVAL) == Err(RecvTimeoutError::Disconnected) {
                return Err(End::Asked);
            }
            if Instant::now() >= end {
                return Err(End::Overdue);
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Starts this program again.
fn start() -> io::Result<Child> {
    let mut arguments = env::args_os();
    let name = arguments.next().unwrap_or_else(|| OsString::from("evoxo-coordinator"));
    Command::new(own_program()?)
        .arg0(name)
        .args(arguments)
        .env(VARIABLE, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // The terminal sends Ctrl-C to a whole process group, but it is the coordinator that must end this process.
        .process_group(0)
        .spawn()
}

/// The file of the running program. Its path may refer to another build by now.
fn own_program() -> io::Result<PathBuf> {
    let opened = Path::new("/proc/self/exe");
    if opened.exists() { Ok(opened.to_owned()) } else { env::current_exe() }
}

fn reader(pipe: Option<impl Read + Send + 'static>, bytes_max: u64) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // If reading fails, the bytes so far are the result. Bytes beyond the limit are read and dropped, so that the
            // process can end.
            drop(pipe.by_ref().take(bytes_max).read_to_end(&mut bytes));
            drop(io::copy(&mut pipe, &mut io::sink()));
        }
        bytes
    })
}

/// How a process ended, in words.
fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(0), _) => "ended without a result".to_owned(),
        (Some(code), _) => format!("ended with exit status {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// The first line on its standard error, which says why it failed.
fn last_words(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let line = said.lines().map(str::trim).find(|line| !line.is_empty());
    line.map_or_else(String::new, |line| format!(": {}", printable(line, STDERR_SAID_MAX)))
}

/// The text as one line of limited length.
fn printable(text: &str, most: usize) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(most).collect()
}

/// If this process was started to compute a task, computes it and exits.
pub(crate) fn compute_if_asked(registry: &Registry) {
    if env::var_os(VARIABLE).is_none() {
        return;
    }
    if let Err(error) = answer(registry) {
        evoxo_process::say_failure(error);
        exit(1);
    }
    exit(0);
}

/// Computes the task on standard input, and writes its result to standard output.
fn answer(registry: &Registry) -> anyhow::Result<()> {
    limit_own_resources();
    let mut input = io::stdin().lock();
    let mut length = [0; 8];
    input.read_exact(&mut length).context("there is no task on standard input")?;
    let length = u64::from_le_bytes(length);
    ensure!(length <= TASK_BYTES_MAX as u64, "a task of {length} bytes is too large");
    let mut whole = vec![0; length as usize];
    input.read_exact(&mut whole).context("the task on standard input is incomplete")?;
    drop(input);
    thread::spawn(|| {
        // Nothing more is sent, so this waits for the end of the input.
        drop(io::copy(&mut io::stdin().lock(), &mut io::sink()));
        exit(1);
    });
    let outcome = match computed(registry, &whole.into()) {
        Ok(output) => Outcome::Output(output),
        Err(why) => Outcome::Failure(why),
    };
    let result = TaskResult { outcome: Some(outcome), ..TaskResult::default() };
    let mut output = io::stdout().lock();
    output.write_all(&result.encode_to_vec()).and_then(|()| output.flush()).context("the result cannot be written")
}

/// The output of a task, or why it has none, which may be the text of a panic.
fn computed(registry: &Registry, whole: &Bytes) -> Result<Bytes, String> {
    static PANIC: Mutex<String> = Mutex::new(String::new());
    let task = Encoded::of_whole(whole)?;
    panic::set_hook(Box::new(|panic| {
        *PANIC.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string();
    }));
    match panic::catch_unwind(AssertUnwindSafe(|| registry.run(&task, &mut NoPrograms))) {
        Ok(computed) => computed.map_err(|refusal| refusal.0),
        Err(_) => Err(format!("the task {}", PANIC.lock().unwrap_or_else(PoisonError::into_inner))),
    }
}

/// Limits this process, which may fail, so that it does not harm the coordinator. Limits that the system does not support are
/// skipped.
fn limit_own_resources() {
    let lower = |resource: rlimit::Resource, most: u64| {
        let (soft, hard) = resource.get()?;
        resource.set(soft.min(most), hard.min(most))
    };
    drop(lower(rlimit::Resource::AS, MEMORY_BYTES_MAX));
    drop(lower(rlimit::Resource::CORE, 0));
    // If the host runs out of memory, Linux kills this process first.
    drop(fs::write("/proc/self/oom_score_adj", "1000"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_fails_is_described_in_a_few_words() {
        let status = |raw| ExitStatus::from_raw(raw);
        assert_eq!(how(status(0)), "ended without a result");
        assert_eq!(how(status(3 << 8)), "ended with exit status 3");
        assert_eq!(how(status(9)), "was ended by signal 9");
        assert_eq!(
            last_words(b"\n  memory allocation of 5 bytes failed\nmore"),
            ": memory allocation of 5 bytes failed"
        );
        assert_eq!(last_words(b""), "");
        assert_eq!(last_words("\u{1b}[2Jx\u{7}".as_bytes()), ":  [2Jx ");
        assert!(last_words(&[b'x'; 4000]).len() < 210);
    }

    #[test]
    fn a_refusal_or_panic_is_a_failure_of_the_task() {
        let registry = evoxo_experiments::registry();
        let wrong = computed(&registry, &Bytes::from_static(b"\xff\xff"));
        assert!(wrong.as_ref().is_err_and(|why| why.contains("are not a task")), "{wrong:?}");
    }
}
