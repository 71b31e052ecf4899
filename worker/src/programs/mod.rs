//! External programs that tasks call. A program is started when it is first needed, as one process per slot, and gets and
//! answers one line at a time. A process that fails or takes too long is killed with everything that it has started, and the
//! next task starts a new one.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    hash::{BuildHasher as _, RandomState},
    io::{BufRead as _, BufReader, ErrorKind, Read},
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
    sync::{
        Arc, LazyLock, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use bytes::Bytes;
use evoxo_common::{
    experiment::Registry,
    task::{Programs, Refusal},
};
use evoxo_process::EndRequests;
use evoxo_proto::{
    PROGRAM_BYTES_MAX,
    v1::{ProgramSignature, task_result::Outcome},
};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tracing::{debug, warn};

/// The version of the protocol between a worker and its programs, as an environment variable.
const PROTOCOL: (&str, &str) = ("EVOXO_PROTOCOL", "1");
/// The environment variable that marks a process and everything that it starts, with a number unique to the process.
const MARK: &str = "EVOXO_PROCESS";
/// How often to search for processes with a mark. A process may start another one while it is being killed.
const LOOKS_MAX: usize = 100;
/// The maximum length of a program's line in bytes.
const LINE_BYTES_MAX: u64 = 16 << 20;
/// How long a program may take to introduce itself, in milliseconds. Some programs load large libraries first.
const INTRODUCTION_WITHIN_MS: u64 = 120_000;
/// How many of the last lines of a program's standard error are shown when it fails, and the maximum bytes of each.
const WORDS_LINES: usize = 6;
const WORDS_BYTES_MAX: usize = 300;
/// How often to check whether a program has ended while one of its children holds its output open.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// How long a program that has closed its output may take to end and to close its standard error, so that its exit status and
/// its last words are known.
const END_WITHIN: Duration = Duration::from_secs(1);

/// A program as the operator specifies it: `rosen=python3 rosen.py`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The name that experiments use.
    pub name: String,
    /// The command, for `sh -c`.
    pub command: String,
}

impl std::str::FromStr for Program {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, command) =
            text.split_once('=').ok_or("give NAME=COMMAND, for example rosen=\"python3 rosen.py\"")?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        if name.is_empty() || name.len() > PROGRAM_BYTES_MAX || !name.chars().all(plain) {
            return Err(format!("a program's name has 1 to {PROGRAM_BYTES_MAX} letters, digits, _, . and -"));
        }
        if command.trim().is_empty() {
            return Err("a program needs a command: NAME=COMMAND".into());
        }
        Ok(Self { name: name.into(), command: command.into() })
    }
}

/// The signatures of these programs for every kind that calls programs.
///
/// # Errors
/// A sentence if a program fails, if two have the same name, or if no kind calls programs.
pub fn introduce(registry: &Registry, programs: &Arc<[Program]>) -> Result<Vec<ProgramSignature>, String> {
    let mut processes = Processes::new(Arc::clone(programs));
    let mut signatures: Vec<ProgramSignature> = Vec::new();
    for program in programs.iter() {
        let name = &program.name;
        if signatures.iter().any(|other| other.name == *name) {
            return Err(format!("two programs have the name {name}"));
        }
        let found = registry.introduce(name, &mut processes).map_err(|refusal| refusal.0)?;
        if found.is_empty() {
            return Err(format!("no kind of experiment of this build calls programs: leave out --program {name}"));
        }
        signatures.extend(found.into_iter().map(|(kind, id)| ProgramSignature {
            kind: kind.name.into(),
            name: id.name,
            sha256: id.signature.map(|signature| signature.0.to_vec()).unwrap_or_default().into(),
        }));
    }
    Ok(signatures)
}

/// The processes of one slot.
#[derive(Debug)]
pub struct Processes {
    commands: Arc<[Program]>,
    running: BTreeMap<String, Process>,
    /// The number of questions so far.
    questions: u64,
    /// Whether the last task expected a different program.
    disowned: bool,
    /// Whether a program did not answer the last task in time.
    timed_out: bool,
}

impl Processes {
    /// Starts without a process, for these programs.
    #[must_use]
    pub fn new(commands: Arc<[Program]>) -> Self {
        Self { commands, running: BTreeMap::new(), questions: 0, disowned: false, timed_out: false }
    }

    /// The outcome of a task that could call these programs, and whether one of them did not answer in time.
    pub(crate) fn outcome(&mut self, computed: Result<Bytes, Refusal>) -> (Outcome, bool) {
        let disowned = std::mem::take(&mut self.disowned);
        let timed_out = std::mem::take(&mut self.timed_out);
        let outcome = match computed {
            Ok(output) => Outcome::Output(output),
            Err(refusal) if disowned => Outcome::OtherProgram(refusal.0),
            Err(refusal) => Outcome::Failure(refusal.0),
        };
        let failed = matches!(outcome, Outcome::Failure(_));
        (outcome, failed && timed_out)
    }

    fn running(&mut self, name: &str) -> Result<&mut Process, Refusal> {
        if !self.running.contains_key(name) {
            let command = self.commands.iter().find(|program| program.name == name).ok_or_else(|| {
                Refusal(format!("this worker has no program {name}: start it with --program {name}=COMMAND"))
            })?;
            let process = Process::start(command).map_err(|why| Refusal(format!("the program {name} {why}")))?;
            self.running.insert(name.to_owned(), process);
        }
        Ok(self.running.get_mut(name).expect("it was running before or was started now"))
    }
}

impl Programs for Processes {
    fn introduction(&mut self, name: &str) -> Result<String, Refusal> {
        Ok(self.running(name)?.introduction.clone())
    }

    fn ask(&mut self, name: &str, question: &dyn Fn(u64) -> String, within_ms: u64) -> Result<(u64, String), Refusal> {
        self.questions += 1;
        let number = self.questions;
        let mut answer = self.running(name)?.ask(&question(number), within_ms);
        // The program may have been killed, or may have run out of memory. Retry once with a new process.
        if let Err(Trouble::Ended(why)) = &answer {
            warn!("the program {name} {why}; it is started again");
            self.stop(name);
            answer = self.running(name)?.ask(&question(number), within_ms);
        }
        answer.map(|line| (number, line)).map_err(|trouble| {
            self.stop(name);
            self.timed_out |= matches!(trouble, Trouble::TimedOut(_));
            let (Trouble::Ended(why) | Trouble::Stopped(why) | Trouble::TimedOut(why)) = trouble;
            Refusal(format!("the program {name} {why}"))
        })
    }

    fn is_first(&mut self, name: &str, words: &str) -> Result<bool, Refusal> {
        Ok(self.running(name)?.heard.insert(words.to_owned()))
    }

    fn disown(&mut self) {
        self.disowned = true;
    }

    fn stop(&mut self, name: &str) {
        // The next question starts a new process.
        self.running.remove(name);
    }
}

/// A line, or why there is none.
type Line = Result<String, String>;

/// Why a program gave no answer.
enum Trouble {
    /// It has ended by itself, or was killed.
    Ended(String),
    /// It is still running, but can no longer be trusted.
    Stopped(String),
    /// It did not answer in time.
    TimedOut(String),
}

/// One running program.
struct Process {
    child: Child,
    /// The value of [`MARK`].
    mark: String,
    introduction: String,
    /// The words for which [`Programs::is_first`] was called.
    heard: BTreeSet<String>,
    /// Lines for its standard input. A thread writes them, so that a program that does not read cannot block the slot.
    input: Sender<String>,
    output: Receiver<Line>,
    /// The beginning of a line that has not ended yet.
    unfinished: Arc<Mutex<Vec<u8>>>,
    /// The last lines of its standard error. The thread that reads them shares this list until standard error ends.
    words: Arc<Mutex<VecDeque<String>>>,
}

impl Process {
    fn start(program: &Program) -> Result<Self, String> {
        // Every hasher state has different keys, which are random for each thread.
        let mark = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
        let mut command = Command::new("sh");
        command
            .args(["-c", &program.command])
            .env(PROTOCOL.0, PROTOCOL.1)
            .env(MARK, &mark)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A separate process group: the program can be killed with its children, and a Ctrl-C for the worker does not
            // reach it.
            .process_group(0);
        let mut child = Running::start(&mut command, &mark)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else { return Err("has no pipes".into()) };
        let (input, lines) = channel::<String>();
        let (answers, output) = sync_channel(1);
        let words = Arc::new(Mutex::new(VecDeque::new()));
        let (name, kept) = (program.name.clone(), Arc::clone(&words));
        let unfinished = Arc::new(Mutex::new(Vec::new()));
        let begun = Arc::clone(&unfinished);
        let threads = [
            spawn(move || write_lines(stdin, &lines)),
            spawn(move || read_lines(stdout, &begun, |line| answers.send(line).is_ok())),
            spawn(move || keep_words(&name, stderr, &kept)),
        ];
        let (introduction, heard) = (String::new(), BTreeSet::new());
        let mut process = Self { child, mark, introduction, heard, input, output, unfinished, words };
        for thread in threads {
            thread.map_err(|error| format!("cannot be served by a thread: {error}"))?;
        }
        process.introduction = match process.next(INTRODUCTION_WITHIN_MS, "introduce itself") {
            Ok(line) => line,
            Err(Trouble::Ended(why) | Trouble::Stopped(why) | Trouble::TimedOut(why)) => return Err(why),
        };
        Ok(process)
    }

    fn ask(&mut self, line: &str, within_ms: u64) -> Result<String, Trouble> {
        // If the writing thread has ended, the program has too, and the read below reports how.
        let _ = self.input.send(format!("{line}\n"));
        self.next(within_ms, "answer")
    }

    /// The next line. `what` says what the program should do, for the error.
    fn next(&mut self, within_ms: u64, what: &str) -> Result<String, Trouble> {
        let stopped = match self.line(Duration::from_millis(within_ms)) {
            Ok(Ok(line)) => return Ok(line),
            Ok(Err(why)) => why,
            Err(RecvTimeoutError::Timeout) => {
                let late = format!("did not {what} within {} s and was stopped", within_ms as f64 / 1e3);
                return Err(Trouble::TimedOut(late + &self.last_words()));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Trouble::Ended(format!("{} before it could {what}", self.ended()) + &self.last_words()));
            }
        };
        Err(Trouble::Stopped(stopped + &self.last_words()))
    }

    /// The next line within this time, unless the program ends first.
    fn line(&mut self, within: Duration) -> Result<Line, RecvTimeoutError> {
        let begun = Instant::now();
        loop {
            let left = within.saturating_sub(begun.elapsed());
            match self.output.recv_timeout(left.min(LOOK_INTERVAL)) {
                Err(RecvTimeoutError::Timeout) if self.child.try_wait().is_ok_and(|status| status.is_some()) => {
                    // Its last output may still be on its way.
                    return self.output.recv_timeout(LOOK_INTERVAL).map_err(|_| RecvTimeoutError::Disconnected);
                }
                Err(RecvTimeoutError::Timeout) if !left.is_zero() => {}
                line => return line,
            }
        }
    }

    /// How the program ended. Its output is closed.
    fn ended(&mut self) -> String {
        let mut status = None;
        for _ in 0..100 {
            thread::sleep(END_WITHIN / 100);
            status = self.child.try_wait().ok().flatten();
            // A child of the program may still hold its standard error open.
            if status.is_some() && Arc::strong_count(&self.words) == 1 {
                break;
            }
        }
        status.map_or_else(|| "closed its output".into(), |status| format!("ended ({status})"))
    }

    /// The rest of what it wrote: an unfinished line, and its standard error.
    fn last_words(&self) -> String {
        let unfinished = self.unfinished.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = match unfinished.is_empty() {
            true => String::new(),
            false => format!("; it wrote {:?} without a line break", String::from_utf8_lossy(&unfinished)),
        };
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        match words.is_empty() {
            true => begun,
            false => format!("{begun}; its last words: {}", words.iter().cloned().collect::<Vec<_>>().join(" | ")),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        kill(&self.mark, self.child.id());
        let _ = self.child.wait();
        Running::with(|running| running.by_mark.remove(&self.mark));
    }
}

/// The processes of programs that this process has started. They would outlive it if it ended while a thread waits for one of
/// them.
#[derive(Default)]
struct Running {
    /// The process numbers, by mark.
    by_mark: BTreeMap<String, u32>,
    /// Whether no more processes are started.
    ending: bool,
}

impl Running {
    fn with<T>(work: impl FnOnce(&mut Self) -> T) -> T {
        static RUNNING: LazyLock<Mutex<Running>> = LazyLock::new(Mutex::default);
        work(&mut RUNNING.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn start(command: &mut Command, mark: &str) -> Result<Child, String> {
        Self::with(|running| {
            if running.ending {
                return Err("is not started, because the worker is ending".into());
            }
            let child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
            running.by_mark.insert(mark.to_owned(), child.id());
            Ok(child)
        })
    }
}

/// Kills all programs that this process has started, and starts no more, because the process is about to end.
pub(crate) fn end_programs() {
    Running::with(|running| {
        running.ending = true;
        std::mem::take(&mut running.by_mark).iter().for_each(|(mark, number)| kill(mark, *number));
    });
}

/// From now on, a request to end also ends this process and its programs, if `ends` returns true at that moment.
///
/// # Errors
/// If the system denies a thread or signals.
pub fn end_programs_on_request(ends: impl Fn() -> bool + Send + 'static) -> anyhow::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start a runtime")?;
    let mut requests = {
        let _within = runtime.enter();
        EndRequests::listen(false)?
    };
    let wait = move || {
        runtime.block_on(async {
            loop {
                requests.next().await;
                if ends() {
                    end_programs();
                    std::process::exit(1);
                }
            }
        });
    };
    let thread = thread::Builder::new().name("signals".into()).spawn(wait);
    thread.map(drop).context("cannot start a thread for signals")
}

/// Kills a program and everything that it has started.
fn kill(mark: &str, number: u32) {
    if let Some(group) = Pid::from_raw(number.cast_signed()) {
        // The program may have ended already.
        let _ = kill_process_group(group, Signal::KILL);
    }
    kill_marked(mark);
}

/// Kills all processes with this mark, including those that have left the process group. On a system without /proc it finds
/// none.
fn kill_marked(mark: &str) {
    let entry = format!("{MARK}={mark}");
    let marked = |process: &Pid| {
        let environment = fs::read(format!("/proc/{}/environ", process.as_raw_nonzero())).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|text| text == entry.as_bytes())
    };
    for _ in 0..LOOKS_MAX {
        let Ok(processes) = fs::read_dir("/proc") else { return };
        let numbers = processes.filter_map(|process| process.ok()?.file_name().to_str()?.parse().ok());
        // The environment of an ended process is empty.
        let found: Vec<Pid> = numbers.filter_map(Pid::from_raw).filter(marked).collect();
        if found.is_empty() {
            return;
        }
        for process in found {
            let _ = kill_process(process, Signal::KILL);
        }
    }
    warn!("a program starts processes faster than they can be killed: some are left");
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Process").field("child", &self.child).finish_non_exhaustive()
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> std::io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name("program".into()).spawn(work)
}

/// Writes lines until the program or its slot ends.
fn write_lines(mut stdin: impl std::io::Write, lines: &Receiver<String>) {
    for line in lines {
        if stdin.write_all(line.as_bytes()).and_then(|()| stdin.flush()).is_err() {
            return;
        }
    }
}

/// Passes each line on until there are no more, a line is invalid, or the receiver is gone. `unfinished` holds the beginning
/// of a line until the line ends.
fn read_lines(stdout: impl Read, unfinished: &Mutex<Vec<u8>>, mut pass: impl FnMut(Line) -> bool) {
    let (mut reader, mut bytes) = (BufReader::new(stdout), Vec::new());
    loop {
        let (count, is_ended) = match reader.fill_buf() {
            Ok(more) => {
                let end = more.iter().position(|byte| *byte == b'\n');
                bytes.extend_from_slice(&more[..end.unwrap_or(more.len())]);
                (end.map_or(more.len(), |end| end + 1), end.is_some())
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        reader.consume(count);
        if bytes.len() as u64 >= LINE_BYTES_MAX {
            pass(Err(format!("wrote a line of more than {LINE_BYTES_MAX} bytes and was stopped")));
            return;
        }
        let cut = if is_ended { &[][..] } else { &bytes[..bytes.len().min(WORDS_BYTES_MAX)] };
        cut.clone_into(&mut unfinished.lock().unwrap_or_else(PoisonError::into_inner));
        // The program ended in the middle of this line.
        if count == 0 {
            return;
        }
        if is_ended {
            let line = String::from_utf8(std::mem::take(&mut bytes));
            if !pass(line.map_err(|_| "wrote a line that is not UTF-8 and was stopped".to_owned())) {
                return;
            }
        }
    }
}

/// Keeps the last lines of standard error.
fn keep_words(name: &str, stderr: impl Read, words: &Mutex<VecDeque<String>>) {
    let mut reader = BufReader::new(stderr);
    let mut bytes = Vec::new();
    while matches!(reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes), Ok(count) if count > 0) {
        let text = String::from_utf8_lossy(&bytes);
        let line: String = text.trim_end().chars().filter(|c| !c.is_control()).take(WORDS_BYTES_MAX).collect();
        debug!("program {name}: {line}");
        if !line.is_empty() {
            let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
            words.push_back(line);
            if words.len() > WORDS_LINES {
                words.pop_front();
            }
        }
        bytes.clear();
    }
}

#[cfg(test)]
mod tests;
