//! Writes a file of the audit log on this host, on a separate thread, so that nothing else hangs with the disk. Lines wait in
//! memory, in order. When there is no more room, further lines are lost. As soon as the disk takes lines again, one of them
//! says how many were lost.

use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use prometheus_client::metrics::counter::Counter;
use tokio::{sync::watch, time::timeout_at};
use tracing::warn;

/// The size at which a new file is started, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// The most bytes of lines that may wait. As many may be on their way to the disk.
const WAITING_BYTES_MAX: usize = 1 << 20;
/// How long an answer waits for its line. When the disk has hung for that long, answers do not wait.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// How often a blocking thread checks whether a line is written.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// Writes lines. When it is dropped, its thread writes the remaining lines and ends.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Arc<Queue>,
    /// How many lines are written or lost so far.
    done: watch::Receiver<u64>,
}

/// What the thread shares with the callers.
#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    /// Signals work for the thread.
    come: Condvar,
    /// Counts all lost lines.
    lost: Counter,
}

/// The lines that the thread has not taken yet.
#[derive(Debug, Default)]
struct Waiting {
    lines: Vec<String>,
    bytes: usize,
    /// How many lines after these were lost for lack of room.
    lost: u64,
    /// How many lines have ever been passed in.
    count: u64,
    /// When the thread took the lines that it is writing.
    writing: Option<Instant>,
    /// No more lines will come.
    ended: bool,
}

/// The lines that the thread takes at once.
struct Taken {
    lines: Vec<String>,
    lost: u64,
    /// The number of the last of these lines, including lost ones.
    count: u64,
}

/// A line on its way to the disk.
#[derive(Debug, Default)]
pub(crate) struct Written(Option<Pending>);

#[derive(Debug)]
struct Pending {
    number: u64,
    /// How long an answer waits for the line.
    until: Instant,
    done: watch::Receiver<u64>,
}

/// The open log file.
#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// How many lines are missing after the last one.
    lost: u64,
    /// Makes the line that says how many are missing.
    told: fn(u64) -> String,
    /// The last warning.
    trouble: Option<String>,
}

impl Writer {
    /// Opens the file, and creates it if there is none. `told` makes the line that says how many were lost, and `lost` counts
    /// them.
    ///
    /// # Errors
    /// If the file cannot be written, or the system has no thread.
    pub(super) fn start(path: &Path, told: fn(u64) -> String, lost: Counter) -> anyhow::Result<Self> {
        let file = LogFile::open(path, told)?;
        let queue = Arc::new(Queue { lost, ..Queue::default() });
        let (finished, done) = watch::channel(0);
        let of_thread = Arc::clone(&queue);
        let thread = std::thread::Builder::new().name("audit".into()).spawn(move || of_thread.work(file, &finished));
        thread.context("cannot start a thread for the audit log")?;
        Ok(Self { queue, done })
    }

    /// Queues a line after the earlier ones.
    pub(super) fn write(&self, line: String) -> Written {
        let mut waiting = lock(&self.queue.waiting);
        waiting.count += 1;
        // After one lost line, all further lines are lost until the thread has taken the waiting ones. So the line that says
        // how many are missing stands exactly where they are missing.
        if waiting.lost == 0 && waiting.bytes + line.len() <= WAITING_BYTES_MAX {
            waiting.bytes += line.len();
            waiting.lines.push(line);
        } else {
            if waiting.lost == 0 {
                warn!("the disk does not take the lines of the audit log: further lines are not written on this host");
            }
            waiting.lost += 1;
            self.queue.lost.inc();
        }
        self.queue.come.notify_one();
        self.written(&waiting)
    }

    /// The last line that was passed in.
    pub(super) fn last(&self) -> Written {
        self.written(&lock(&self.queue.waiting))
    }

    fn written(&self, waiting: &Waiting) -> Written {
        let now = Instant::now();
        let hangs = waiting.writing.is_some_and(|since| now.saturating_duration_since(since) >= PATIENCE);
        let until = if hangs { now } else { now + PATIENCE };
        Written(Some(Pending { number: waiting.count, until, done: self.done.clone() }))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        lock(&self.queue.waiting).ended = true;
        self.queue.come.notify_one();
    }
}

impl Written {
    /// Waits until the line is on the disk or lost: at most a second, and not at all if the disk has hung for that long.
    pub(crate) async fn wait(self) {
        let Some(Pending { number, until, mut done }) = self.0 else { return };
        let is_done = async move {
            while *done.borrow_and_update() < number {
                if done.changed().await.is_err() {
                    return;
                }
            }
        };
        // Even after a timeout the caller goes on: an order that was carried out is confirmed.
        let _ = timeout_at(until.into(), is_done).await;
    }

    /// The same for blocking threads. Returns whether the line was written or lost within this time.
    pub(super) fn wait_here(&self, longest: Duration) -> bool {
        let Some(Pending { number, done, .. }) = &self.0 else { return true };
        let start = Instant::now();
        while *done.borrow() < *number {
            if start.elapsed() >= longest {
                return false;
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
        true
    }
}

impl Queue {
    /// The thread's loop.
    fn work(&self, mut file: LogFile, finished: &watch::Sender<u64>) {
        while let Some(Taken { lines, lost, count }) = self.take() {
            for line in lines {
                if !file.add(&line) {
                    self.lost.inc();
                }
            }
            file.lose(lost);
            lock(&self.waiting).writing = None;
            finished.send_replace(count);
        }
    }

    /// Waits for lines; `None` if no more will come.
    fn take(&self) -> Option<Taken> {
        let idle = |waiting: &mut Waiting| waiting.lines.is_empty() && waiting.lost == 0 && !waiting.ended;
        let waiting = self.come.wait_while(lock(&self.waiting), idle);
        let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        if waiting.lines.is_empty() && waiting.lost == 0 {
            return None;
        }
        waiting.bytes = 0;
        waiting.writing = Some(Instant::now());
        let (lines, lost) = (std::mem::take(&mut waiting.lines), std::mem::take(&mut waiting.lost));
        Some(Taken { lines, lost, count: waiting.count })
    }
}

impl LogFile {
    fn open(path: &Path, told: fn(u64) -> String) -> anyhow::Result<Self> {
        let (file, bytes) = open(path)?;
        Ok(Self { path: path.to_owned(), file, bytes, lost: 0, told, trouble: None })
    }

    /// Adds a line, after one about the missing lines. Returns false if this line is missing too.
    fn add(&mut self, line: &str) -> bool {
        let added = self.tell_lost().and_then(|()| self.append(line));
        let is_there = added.is_ok();
        self.lost += u64::from(!is_there);
        self.note(added);
        is_there
    }

    /// Notes that this many lines were lost for lack of room.
    fn lose(&mut self, lost: u64) {
        self.lost += lost;
        if self.lost > 0 {
            let told = self.tell_lost();
            self.note(told);
        }
    }

    fn tell_lost(&mut self) -> anyhow::Result<()> {
        if self.lost > 0 {
            let line = (self.told)(self.lost);
            self.append(&line)?;
            self.lost = 0;
        }
        Ok(())
    }

    /// Warns of a failure, once.
    fn note(&mut self, outcome: anyhow::Result<()>) {
        let trouble = outcome.err().map(|error| format!("{error:#}"));
        if let Some(why) = trouble.as_ref().filter(|_| trouble != self.trouble) {
            warn!("{why}; until then, lines of the audit log are missing on this host");
        }
        self.trouble = trouble;
    }

    fn append(&mut self, line: &str) -> anyhow::Result<()> {
        let line = format!("{line}\n");
        if self.bytes + line.len() as u64 > FILE_BYTES_MAX {
            // The new file comes first: if it cannot be created, the present file stays in use.
            let next = self.path.with_extension("jsonl.next");
            let opened = open(&next)?;
            match fs::rename(&self.path, before(&self.path)) {
                // The file already has its other name, or was removed.
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                renamed => renamed,
            }
            .and_then(|()| fs::rename(&next, &self.path))
            .context("cannot start a new audit log")?;
            (self.file, self.bytes) = opened;
        }
        let written = self.file.write_all(line.as_bytes());
        if written.is_err() {
            // Half a line must not stay in front of the next one.
            let _ = self.file.set_len(self.bytes);
        }
        written.with_context(|| format!("cannot write {}", self.path.display()))?;
        self.bytes += line.len() as u64;
        Ok(())
    }
}

/// Locks a mutex, even after a panic of an earlier owner.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The path of the previous file.
pub(super) fn before(path: &Path) -> PathBuf {
    path.with_extension("jsonl.1")
}

fn open(path: &Path) -> anyhow::Result<(File, u64)> {
    let opened = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    let opened = opened.and_then(|file| file.metadata().map(|data| (file, data.len())));
    opened.with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(lost: u64) -> String {
        format!("lost {lost}")
    }

    #[test]
    fn a_full_file_makes_room_for_another() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.jsonl");
        let mut log = LogFile::open(&path, told).unwrap();
        assert!(log.add("old"));
        log.bytes = FILE_BYTES_MAX;
        assert!(log.add("new"));
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        assert_eq!((read(&path), read(&path.with_extension("jsonl.1"))), ("new\n".into(), "old\n".into()));
    }

    /// While a directory blocks its name, no line is written, and the old file stays in use.
    #[test]
    fn a_new_file_that_cannot_be_created_is_created_later() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.jsonl");
        let mut log = LogFile::open(&path, told).unwrap();
        assert!(log.add("old"));
        log.bytes = FILE_BYTES_MAX;
        let next = path.with_extension("jsonl.next");
        fs::create_dir(&next).unwrap();
        assert!(!log.add("one") && path.is_file());
        fs::remove_dir(&next).unwrap();
        // An earlier attempt was interrupted half way.
        fs::rename(&path, path.with_extension("jsonl.1")).unwrap();
        assert!(log.add("two"));
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        assert_eq!((read(&path), read(&path.with_extension("jsonl.1"))), ("lost 1\ntwo\n".into(), "old\n".into()));
    }

    /// The device is always full.
    #[cfg(target_os = "linux")]
    #[test]
    fn unwritten_lines_are_counted_once_writing_works_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.jsonl");
        let mut log = LogFile::open(Path::new("/dev/full"), told).unwrap();
        assert!(!log.add("one") && !log.add("two"));
        log.lose(3);
        (log.file, log.bytes) = open(&path).unwrap();
        assert!(log.add("six") && log.add("seven"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "lost 5\nsix\nseven\n");
    }

    /// The file is a pipe that nobody reads at first.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_hanging_disk_loses_excess_lines_and_reports_them() {
        use std::io::{BufRead as _, BufReader};

        const LINES: u64 = 3000;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.jsonl");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        // Opening a pipe for both directions does not block.
        let pipe = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let lost = Counter::default();
        let writer = Writer::start(&path, told, lost.clone()).unwrap();
        // More than the queue, the batch on its way and the pipe can hold.
        (0..LINES).for_each(|number| drop(writer.write(format!("{number:01000}"))));
        assert!(lost.get() > 0);
        assert!(!writer.last().wait_here(Duration::from_millis(50)), "the pipe is not read");
        // At first an answer waits for a while; later answers do not wait.
        writer.last().wait().await;
        std::thread::sleep(PATIENCE);
        assert!(writer.last().0.is_some_and(|line| line.until <= Instant::now()));
        let reader = std::thread::spawn(move || {
            let lines = BufReader::new(pipe).lines().map(Result::unwrap);
            lines.take_while(|line| line != "end").collect::<Vec<String>>()
        });
        assert!(writer.last().wait_here(Duration::from_secs(60)));
        assert!(writer.write("end".into()).wait_here(Duration::from_secs(60)));
        let mut next = 0;
        for line in reader.join().unwrap() {
            match line.strip_prefix("lost ") {
                Some(lost) => next += lost.parse::<u64>().unwrap(),
                None => {
                    assert_eq!(line.parse::<u64>().unwrap(), next, "in order");
                    next += 1;
                }
            }
        }
        assert_eq!(next, LINES, "each line is there, or is reported as missing");
    }
}
