//! Who writes a file of the audit log on this host: a thread of its own, so that nobody else hangs with the disk. Lines wait for it in memory, in
//! order. When there is no more room, those that come are lost, and as soon as the disk takes lines again one says how many.

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

/// The size at which a new file is begun, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// The lines that may wait, in bytes; as many may be on their way to the disk.
const WAITING_BYTES_MAX: usize = 1 << 20;
/// How long an answer waits for its line. When the disk has hung for that long, none waits.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// How often an ordinary thread looks whether a line is written.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// Writes lines. The thread ends with it, when it has written all of them.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Arc<Queue>,
    /// How many lines are written or lost.
    done: watch::Receiver<u64>,
}

/// What is between the thread and the others.
#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    /// There is something to do for the thread.
    come: Condvar,
    /// All lines that were lost.
    lost: Counter,
}

/// The lines that the thread has not taken.
#[derive(Debug, Default)]
struct Waiting {
    lines: Vec<String>,
    bytes: usize,
    /// Those after them, for which there was no room.
    lost: u64,
    /// All lines that ever came.
    count: u64,
    /// When the thread took the lines that it is writing.
    writing: Option<Instant>,
    /// No more will come.
    ended: bool,
}

/// What the thread takes at once.
struct Taken {
    lines: Vec<String>,
    lost: u64,
    /// The number of the last of all these lines.
    count: u64,
}

/// A line on its way to the disk.
#[derive(Debug, Default)]
pub(crate) struct Written(Option<Pending>);

#[derive(Debug)]
struct Pending {
    number: u64,
    /// How long an answer waits for it.
    until: Instant,
    done: watch::Receiver<u64>,
}

/// The file.
#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// The lines that are missing after the last one.
    lost: u64,
    /// The line that says how many are.
    told: fn(u64) -> String,
    /// What was warned of.
    trouble: Option<String>,
}

impl Writer {
    /// Opens the file, and begins it if there is none. `told` makes the line that says how many were lost, and `lost` counts them.
    ///
    /// # Errors
    /// If it cannot be written, or the system has no thread.
    pub(super) fn start(path: &Path, told: fn(u64) -> String, lost: Counter) -> anyhow::Result<Self> {
        let file = LogFile::open(path, told)?;
        let queue = Arc::new(Queue { lost, ..Queue::default() });
        let (finished, done) = watch::channel(0);
        let of_thread = Arc::clone(&queue);
        let thread = std::thread::Builder::new().name("audit".into()).spawn(move || of_thread.work(file, &finished));
        thread.context("cannot start a thread for the audit log")?;
        Ok(Self { queue, done })
    }

    /// Has a line written, after those that came before.
    pub(super) fn write(&self, line: String) -> Written {
        let mut waiting = lock(&self.queue.waiting);
        waiting.count += 1;
        // Once one is lost, so are all until the thread has taken the others: the line that says so stands where they are missing.
        if waiting.lost == 0 && waiting.bytes + line.len() <= WAITING_BYTES_MAX {
            waiting.bytes += line.len();
            waiting.lines.push(line);
        } else {
            if waiting.lost == 0 {
                warn!(
                    "the disk does not take the lines of the audit log: those that come now are not written on this host"
                );
            }
            waiting.lost += 1;
            self.queue.lost.inc();
        }
        self.queue.come.notify_one();
        self.written(&waiting)
    }

    /// The last line that came.
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
    /// Waits until it is on the disk, or lost: at most a second, and not at all when the disk has hung for that long.
    pub(crate) async fn wait(self) {
        let Some(Pending { number, until, mut done }) = self.0 else { return };
        let is_done = async move {
            while *done.borrow_and_update() < number {
                if done.changed().await.is_err() {
                    return;
                }
            }
        };
        // In time or not: an order that was carried out is confirmed.
        let _ = timeout_at(until.into(), is_done).await;
    }

    /// The same for ordinary threads; whether it was done in this time.
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
    /// What the thread does.
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

    /// Waits for lines; `None` when no more will come.
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

    /// Adds a line, after one about those that are missing. False if it is missing too.
    fn add(&mut self, line: &str) -> bool {
        let added = self.tell_lost().and_then(|()| self.append(line));
        let is_there = added.is_ok();
        self.lost += u64::from(!is_there);
        self.note(added);
        is_there
    }

    /// There was no room for so many.
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

    /// Warns of what is wrong, once.
    fn note(&mut self, outcome: anyhow::Result<()>) {
        let trouble = outcome.err().map(|error| format!("{error:#}"));
        if let Some(why) = trouble.as_ref().filter(|_| trouble != self.trouble) {
            warn!("{why}; lines of the audit log are missing on this host until that is possible");
        }
        self.trouble = trouble;
    }

    fn append(&mut self, line: &str) -> anyhow::Result<()> {
        let line = format!("{line}\n");
        if self.bytes + line.len() as u64 > FILE_BYTES_MAX {
            // The new one first: if there can be none, this one stays where it is.
            let next = self.path.with_extension("jsonl.next");
            let opened = open(&next)?;
            match fs::rename(&self.path, before(&self.path)) {
                // It has its other name already, or somebody took it away.
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                renamed => renamed,
            }
            .and_then(|()| fs::rename(&next, &self.path))
            .context("cannot begin a new audit log")?;
            (self.file, self.bytes) = opened;
        }
        let written = self.file.write_all(line.as_bytes());
        if written.is_err() {
            // Half a line must not be left before the next one.
            let _ = self.file.set_len(self.bytes);
        }
        written.with_context(|| format!("cannot write {}", self.path.display()))?;
        self.bytes += line.len() as u64;
        Ok(())
    }
}

/// Locks it, also after a panic of somebody who had it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file before this one.
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

    /// While a directory is in its place, no line is written, and the old file stays where it is.
    #[test]
    fn a_new_file_that_cannot_be_made_is_made_later() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.jsonl");
        let mut log = LogFile::open(&path, told).unwrap();
        assert!(log.add("old"));
        log.bytes = FILE_BYTES_MAX;
        let next = path.with_extension("jsonl.next");
        fs::create_dir(&next).unwrap();
        assert!(!log.add("one") && path.is_file());
        fs::remove_dir(&next).unwrap();
        // It was interrupted in the middle.
        fs::rename(&path, path.with_extension("jsonl.1")).unwrap();
        assert!(log.add("two"));
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        assert_eq!((read(&path), read(&path.with_extension("jsonl.1"))), ("lost 1\ntwo\n".into(), "old\n".into()));
    }

    /// The device is always full.
    #[cfg(target_os = "linux")]
    #[test]
    fn lines_that_cannot_be_written_are_counted_when_others_can() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.jsonl");
        let mut log = LogFile::open(Path::new("/dev/full"), told).unwrap();
        assert!(!log.add("one") && !log.add("two"));
        log.lose(3);
        (log.file, log.bytes) = open(&path).unwrap();
        assert!(log.add("six") && log.add("seven"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "lost 5\nsix\nseven\n");
    }

    /// The file is a pipe that nobody reads, and is read later.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_disk_that_hangs_loses_what_is_too_much_and_a_line_says_so() {
        use std::io::{BufRead as _, BufReader};

        const LINES: u64 = 3000;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.jsonl");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        // Who opens it for both does not wait for anybody.
        let pipe = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let lost = Counter::default();
        let writer = Writer::start(&path, told, lost.clone()).unwrap();
        // More than may wait, be on its way, and be in the pipe.
        (0..LINES).for_each(|number| drop(writer.write(format!("{number:01000}"))));
        assert!(lost.get() > 0);
        assert!(!writer.last().wait_here(Duration::from_millis(50)), "nobody reads");
        // At first an answer waits for a while; later none does.
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
        assert_eq!(next, LINES, "each is there, or is said to be missing");
    }
}
