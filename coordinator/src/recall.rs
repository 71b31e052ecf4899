//! Keeps the outputs of a [`Recall`] in a directory, so that they outlive the process.
//!
//! Each process adds blocks to a file of its own, whose name no other process has. A block is sealed like an object of the
//! store. So processes that share a directory do not disturb each other, a process that is killed loses the outputs of its
//! last second, and a damaged block is found and left out. The files take at most half of the bytes that the outputs may take in
//! memory: the oldest file is removed.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use bytes::Bytes;
use evoxo_common::{
    digest::Digest,
    envelope::{Kind, cut, open, seal},
};
use evoxo_proto::v1;
use prost::Message as _;

use crate::{
    replicas::{News, Recall},
    store::directory_of,
};

/// What runs recall, and where the outputs are kept.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Memory for evaluations that were computed before and are not computed again; 0 computes every evaluation
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = evoxo_process::bytes)]
    pub recall: u64,
    /// Directory that keeps these evaluations, which other processes may share [default: recall/ in the store, if the store is a
    /// directory]
    #[arg(long, value_name = "DIRECTORY")]
    pub recall_in: Option<PathBuf>,
}

impl Options {
    /// For a process that computes nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Self { recall: 0, recall_in: None }
    }

    /// Begins to recall, and reads what is kept for runs in this store. `report` gets a sentence if something cannot be read or
    /// written. Outputs are kept until the second value is dropped.
    #[must_use]
    pub fn begin(
        &self,
        store: &str,
        report: impl Fn(String) + Send + 'static,
    ) -> Option<(Arc<Recall>, Option<Keeper>)> {
        if self.recall == 0 {
            return None;
        }
        let recall = Arc::new(Recall::new(self.recall));
        let directory = self.recall_in.clone().or_else(|| Some(directory_of(store)?.join(DIRECTORY)));
        let keeper = directory.map(|directory| Keeper::start(&recall, directory, self.recall, report));
        Some((recall, keeper))
    }
}

/// The directory in a store that keeps outputs.
const DIRECTORY: &str = "recall";

/// How often new outputs are written.
const INTERVAL: Duration = Duration::from_secs(1);
/// A process begins another file when its own has this share of all bytes.
const FILES: u64 = 4;
/// How often a name for a new file is tried. Another process takes a name only when it starts or has filled a file.
const ATTEMPTS: u64 = 1000;

/// Writes what a [`Recall`] learns, on a thread of its own. When dropped, it writes the rest.
#[derive(Debug)]
pub struct Keeper {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Reads what the directory has, and writes what is learnt from now on. If that fails, `report` gets one sentence, and the
    /// outputs are then known only to this process.
    fn start(
        recall: &Arc<Recall>,
        directory: PathBuf,
        bytes_max: u64,
        report: impl Fn(String) + Send + 'static,
    ) -> Self {
        let mut files = Files { directory, bytes_max: bytes_max / 2, own: None };
        files.read(recall, &report);
        let (stop, stopped) = channel();
        let recall = Arc::clone(recall);
        let body = move || files.keep(&recall, &stopped, report);
        let thread = std::thread::Builder::new().name("recall".into()).spawn(body);
        Self { stop: Some(stop), thread: thread.ok() }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.stop.take());
        // If the thread has panicked, its message is already printed.
        self.thread.take().map(JoinHandle::join);
    }
}

/// The files of a directory.
struct Files {
    directory: PathBuf,
    bytes_max: u64,
    /// The file to which this process adds blocks, with its length.
    own: Option<(File, u64)>,
}

impl Files {
    /// Writes what is learnt until the other end of `stopped` is dropped.
    fn keep(&mut self, recall: &Recall, stopped: &Receiver<()>, report: impl Fn(String)) {
        loop {
            let is_last = stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Disconnected);
            if let Err(error) = self.write(recall.take_news()) {
                return report(format!(
                    "computed evaluations cannot be kept in {}: {error}; the runs go on, and later processes compute these \
                     evaluations again",
                    self.directory.display()
                ));
            }
            if is_last {
                return;
            }
        }
    }

    /// The numbers of all files with their bytes, oldest first.
    fn all(&self) -> io::Result<Vec<(u64, u64)>> {
        let mut all = Vec::new();
        let entries = match fs::read_dir(&self.directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(all),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if let Some(number) = number {
                all.push((number, entry.metadata()?.len()));
            }
        }
        all.sort_unstable();
        Ok(all)
    }

    fn path(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{number:06}"))
    }

    /// Reads the newest files, as many as may be kept.
    fn read(&self, recall: &Recall, report: impl Fn(String)) {
        let all = self.all().unwrap_or_else(|error| {
            report(format!("{} cannot be read: {error}; its evaluations are computed again", self.directory.display()));
            Vec::new()
        });
        let (mut bytes, mut newest) = (0, Vec::new());
        for (number, length) in all.into_iter().rev() {
            bytes += length;
            if bytes > self.bytes_max {
                break;
            }
            newest.push(self.path(number));
        }
        for path in newest.into_iter().rev() {
            match fs::read(&path).map(|bytes| read_blocks(bytes.into(), recall)) {
                Ok(0) => {}
                Ok(damaged) => report(format!(
                    "{} has damaged parts ({damaged}): their evaluations are computed again",
                    path.display()
                )),
                Err(error) => {
                    report(format!("{} cannot be read: {error}; its evaluations are computed again", path.display()));
                }
            }
        }
    }

    fn write(&mut self, news: News) -> io::Result<()> {
        let News { forgotten, outputs } = news;
        if forgotten {
            self.own = None;
            self.all()?.into_iter().try_for_each(|(number, _)| self.remove(number))?;
        }
        if outputs.is_empty() {
            return Ok(());
        }
        let output = |(name, output): (Digest, Bytes)| v1::KnownOutput { name: name.0.to_vec().into(), output };
        let body = v1::KnownOutputs { outputs: outputs.into_iter().map(output).collect() }.encode_to_vec();
        let block = seal(Kind::KnownOutputs, &body);
        let full = self.own.as_ref().is_none_or(|(_, length)| *length >= self.bytes_max / FILES);
        if full {
            self.begin()?;
        }
        let Some((file, length)) = &mut self.own else { return Ok(()) };
        file.write_all(&block)?;
        *length += block.len() as u64;
        Ok(())
    }

    /// Begins another file, and removes the oldest ones if all together are too long.
    fn begin(&mut self) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        let all = self.all()?;
        let mut bytes: u64 = all.iter().map(|(_, length)| length).sum();
        for (number, length) in &all {
            if bytes + self.bytes_max / FILES <= self.bytes_max {
                break;
            }
            self.remove(*number)?;
            bytes -= length;
        }
        let next = all.last().map_or(1, |(number, _)| number + 1);
        for number in next..next + ATTEMPTS {
            match OpenOptions::new().create_new(true).append(true).open(self.path(number)) {
                Ok(file) => {
                    self.own = Some((file, 0));
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("other processes take all names for a new file"))
    }

    /// Removes a file, which another process may have removed already.
    fn remove(&self, number: u64) -> io::Result<()> {
        match fs::remove_file(self.path(number)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Reads the blocks of a file. Returns how many of them are damaged.
fn read_blocks(mut bytes: Bytes, recall: &Recall) -> u64 {
    let mut damaged = 0;
    while !bytes.is_empty() {
        let Some(block) = cut(&mut bytes) else { return damaged + 1 };
        let body = open(Kind::KnownOutputs, &block).ok().and_then(|body| v1::KnownOutputs::decode(body).ok());
        let Some(v1::KnownOutputs { outputs }) = body else {
            damaged += 1;
            continue;
        };
        for v1::KnownOutput { name, output } in outputs {
            if let Some(name) = Digest::from_slice(&name) {
                // A slice would keep the whole file in memory.
                recall.restore(name, Bytes::copy_from_slice(&output));
            }
        }
    }
    damaged
}
