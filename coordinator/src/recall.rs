//! Keeps the outputs of a [`Recall`] in a directory, so that they outlive the process.
//!
//! Each process adds blocks to a file of its own, whose name no other process has. A block is sealed like an object of the
//! store. So processes that share a directory do not disturb each other, a process that is killed loses the outputs of its
//! last second, and a damaged block is found and left out. The files take at most half of the bytes that the outputs may take in
//! memory: the oldest file is removed.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
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
    replicas::{Known, News, Recall},
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
        let recall = Recall::new(self.recall);
        let directory = self.recall_in.clone().or_else(|| Some(directory_of(store)?.join(DIRECTORY)));
        let recall = Arc::new(if directory.is_some() { recall.with_news() } else { recall });
        let keeper = directory.map(|directory| Keeper::start(&recall, directory, self.recall, report));
        Some((recall, keeper))
    }
}

/// The directory in a store that keeps outputs.
const DIRECTORY: &str = "recall";
/// The name of a file is a number with this suffix. Files with other names are neither read nor removed.
const SUFFIX: &str = ".outputs";

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
    /// Reads what the directory has, and writes what is learnt from now on. If that fails, `report` gets one sentence, and these
    /// outputs are known only to this process.
    fn start(
        recall: &Arc<Recall>,
        directory: PathBuf,
        bytes_max: u64,
        report: impl Fn(String) + Send + 'static,
    ) -> Self {
        let mut files = Files { directory, bytes_max: bytes_max / 2, own: None, is_stale: false };
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
    /// Whether everything in the files is to be removed.
    is_stale: bool,
}

impl Files {
    /// Writes what is learnt until the other end of `stopped` is dropped.
    fn keep(&mut self, recall: &Recall, stopped: &Receiver<()>, report: impl Fn(String)) {
        let mut is_reported = false;
        loop {
            let is_last = stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Disconnected);
            let outcome = self.write(recall.take_news());
            // Goes on after an error, because what is forgotten later must leave the files too.
            if let Some(error) = outcome.err().filter(|_| !is_reported) {
                is_reported = true;
                report(format!(
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
            let Some(number) = entry.file_name().to_str().and_then(number_of) else { continue };
            match entry.metadata() {
                Ok(metadata) if metadata.is_file() => all.push((number, metadata.len())),
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                // Another process has removed it, or it is something else.
                _ => {}
            }
        }
        all.sort_unstable();
        Ok(all)
    }

    fn path(&self, number: u64) -> PathBuf {
        self.directory.join(name_of(number))
    }

    /// Reads the newest files that fit. A process with more memory may have written longer ones.
    fn read(&self, recall: &Recall, report: impl Fn(String)) {
        let all = self.all().unwrap_or_else(|error| {
            report(format!("{} cannot be read: {error}; its evaluations are computed again", self.directory.display()));
            Vec::new()
        });
        let (mut bytes, mut newest) = (0, Vec::new());
        for (number, length) in all.into_iter().rev() {
            if bytes + length <= self.bytes_max {
                bytes += length;
                newest.push(self.path(number));
            }
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
        self.is_stale |= forgotten;
        if self.is_stale {
            self.own = None;
            self.all()?.into_iter().try_for_each(|(number, _)| self.remove(number))?;
            self.is_stale = false;
        }
        if outputs.is_empty() {
            return Ok(());
        }
        let output = |(name, Known { seed, output }): (Digest, Known)| {
            let name = name.0.to_vec().into();
            v1::KnownOutput { name, output, seed }
        };
        let body = v1::KnownOutputs { outputs: outputs.into_iter().map(output).collect() }.encode_to_vec();
        let block = seal(Kind::KnownOutputs, &body);
        let is_full = |(_, length): &(File, u64)| *length >= self.bytes_max / FILES;
        // Another process may have removed the file.
        let is_removed = |(file, _): &(File, u64)| file.metadata().is_ok_and(|metadata| metadata.nlink() == 0);
        if self.own.as_ref().is_none_or(|own| is_full(own) || is_removed(own)) {
            self.begin()?;
        }
        let (file, length) = self.own.as_mut().expect("a file was begun");
        if let Err(error) = file.write_all(&block) {
            // Later blocks must not follow a part of this one. If the part stays, it is found as damaged.
            let _ = file.set_len(*length);
            return Err(error);
        }
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
        let last = all.last().map_or(0, |(number, _)| *number);
        for number in (1..=ATTEMPTS).map_while(|more| last.checked_add(more)) {
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

fn name_of(number: u64) -> String {
    format!("{number:06}{SUFFIX}")
}

/// The number of a file with this name.
fn number_of(name: &str) -> Option<u64> {
    let number = name.strip_suffix(SUFFIX)?.parse().ok()?;
    (name_of(number) == name).then_some(number)
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
        for v1::KnownOutput { name, output, seed } in outputs {
            if let Some(name) = Digest::from_slice(&name) {
                // A slice would keep the whole file in memory.
                recall.restore(name, Known { seed, output: Bytes::copy_from_slice(&output) });
            }
        }
    }
    damaged
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn files(directory: &std::path::Path) -> Files {
        Files { directory: directory.to_owned(), bytes_max: 1 << 20, own: None, is_stale: false }
    }

    fn news(forgotten: bool, numbers: std::ops::Range<u64>) -> News {
        let known = |number: u64| Known { seed: number, output: Bytes::from_static(b"output") };
        News { forgotten, outputs: numbers.map(|number| (Digest::of(&number.to_le_bytes()), known(number))).collect() }
    }

    fn names(directory: &std::path::Path) -> Vec<String> {
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<String> = fs::read_dir(directory).unwrap().map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn only_files_of_recalled_outputs_are_read_and_removed() {
        let directory = tempfile::tempdir().unwrap();
        let foreign = ["000009", "7.outputs", "+00008.outputs", "notes"];
        foreign.iter().for_each(|name| fs::write(directory.path().join(name), "mine").unwrap());
        fs::create_dir(directory.path().join("000010.outputs")).unwrap();
        let mut own = files(directory.path());
        own.write(news(false, 0..3)).unwrap();
        assert_eq!(own.all().unwrap().iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1]);
        own.read(&Recall::new(1 << 20), |why| panic!("{why}"));
        own.write(news(true, 0..0)).unwrap();
        let mut left: Vec<&str> = foreign.into_iter().chain(["000010.outputs"]).collect();
        left.sort_unstable();
        assert_eq!(names(directory.path()), left);
        // There is no number after this one.
        let last = directory.path().join(name_of(u64::MAX));
        fs::write(&last, "").unwrap();
        assert!(own.write(news(false, 0..1)).unwrap_err().to_string().contains("take all names"));
    }

    #[test]
    fn a_process_whose_file_was_removed_begins_another() {
        let directory = tempfile::tempdir().unwrap();
        let (mut one, mut other) = (files(directory.path()), files(directory.path()));
        one.write(news(false, 0..3)).unwrap();
        other.write(news(true, 0..0)).unwrap();
        one.write(news(false, 3..5)).unwrap();
        assert_eq!(names(directory.path()), ["000001.outputs"]);
        assert!(one.all().unwrap()[0].1 > 0);
    }

    #[test]
    fn what_is_forgotten_after_an_error_leaves_the_files() {
        let outer = tempfile::tempdir().unwrap();
        let (directory, aside) = (outer.path().join("recall"), outer.path().join("aside"));
        let mut writer = files(&directory);
        writer.write(news(false, 0..3)).unwrap();
        // A file has the directory's name.
        fs::rename(&directory, &aside).unwrap();
        fs::write(&directory, "").unwrap();
        assert!(writer.write(news(true, 0..0)).is_err() && writer.write(news(false, 0..1)).is_err());
        fs::remove_file(&directory).unwrap();
        fs::rename(&aside, &directory).unwrap();
        writer.write(news(false, 0..0)).unwrap();
        assert!(names(&directory).is_empty());
        // The thread reports the first error, and goes on.
        fs::remove_dir(&directory).unwrap();
        fs::write(&directory, "").unwrap();
        let (recall, reports) = (Arc::new(Recall::new(1 << 20).with_news()), Arc::new(Mutex::new(Vec::new())));
        let sentences = Arc::clone(&reports);
        let keeper = Keeper::start(&recall, directory, 1 << 20, move |why| sentences.lock().unwrap().push(why));
        recall.forget();
        drop(keeper);
        assert_eq!(reports.lock().unwrap().iter().filter(|why| why.contains("cannot be kept")).count(), 1);
    }
}
