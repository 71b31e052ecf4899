//! Several objects created at once, in a store that is a directory.
//!
//! On a disk the time of a write is the time of its syncs. An object is stored once its bytes and its name are synced.
//! The bytes of all objects are written under staging names, and the objects get their names by links. [`Waits`] says when
//! the syncs come. All syncs of one kind are waited for at the same time, so any number of objects wait for one or two syncs.
//!
//! The names of staging files are those of `object_store`, so listings do not show them, and a new leader removes those that a
//! killed process leaves.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, ErrorKind, Write as _},
    path::{Path, PathBuf},
    thread,
};

use bytes::Bytes;

/// More files than this are synced together with everything else in their file system.
const SYNCED_EACH_MAX: usize = 8;
/// How many names of staging files are tried.
const STAGED_MAX: usize = 64;

/// For which syncs a write waits, and what becomes of the objects after one that could not be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    /// First for the bytes, then for the names: a power failure leaves no name without its bytes. Each object is created
    /// whatever becomes of the others.
    Twice,
    /// For bytes and names at the same time: a power failure before the end may leave names without their bytes, and readers
    /// must take such objects for ones that were never stored. The objects after one that could not be created are not
    /// created.
    Once,
}

/// Creates objects, by their names in the store, if no object has the name. For each, returns whether it was created; `false`
/// if the name is taken. After a failed sync an object may have its name although an error is returned.
pub(super) fn create(root: &Path, objects: &[(&str, &Bytes)], waits: Waits) -> Vec<io::Result<bool>> {
    let mut changed = BTreeSet::new();
    let staged: Vec<io::Result<Staged>> =
        objects.iter().map(|(name, bytes)| Staged::write(root.join(name), bytes, &mut changed)).collect();
    let files: Vec<&File> = staged.iter().flatten().map(|staged| &staged.file).collect();
    // If one sync fails, it is unknown which bytes are on the disk.
    let mut synced = if waits == Waits::Twice { sync_bytes(&files) } else { Ok(()) };
    let mut stops = false;
    let mut outcomes = Vec::with_capacity(objects.len());
    for staged in &staged {
        let named = match (staged, &synced) {
            (Err(why), _) | (_, Err(why)) => Err(again(why)),
            (Ok(_), Ok(())) if stops => Err(io::Error::other("the object before it was not created")),
            (Ok(staged), Ok(())) => staged.name(),
        };
        stops |= waits == Waits::Once && !matches!(named, Ok(true));
        outcomes.push(named);
    }
    let unsynced;
    (synced, unsynced) = match waits {
        Waits::Twice => (Ok(()), sync(&[], &changed).1),
        Waits::Once => sync(&files, &changed),
    };
    for ((name, _), outcome) in objects.iter().zip(&mut outcomes) {
        let directory = unsynced.iter().find(|(directory, _)| root.join(name).starts_with(directory));
        if let Some(why) = synced.as_ref().err().or(directory.map(|(_, why)| why)) {
            *outcome = Err(again(why));
        }
    }
    outcomes
}

/// An object that has its bytes and not yet its name.
struct Staged {
    file: File,
    staging: PathBuf,
    path: PathBuf,
}

impl Staged {
    /// Writes the bytes. Adds the directories whose entries change to `changed`.
    fn write(path: PathBuf, bytes: &Bytes, changed: &mut BTreeSet<PathBuf>) -> io::Result<Self> {
        let directory = path.parent().ok_or(ErrorKind::InvalidInput)?;
        let made = missing(directory);
        fs::create_dir_all(directory)?;
        changed.extend(made.iter().filter_map(|made| made.parent()).map(Path::to_path_buf));
        changed.insert(directory.to_path_buf());
        for number in 1..=STAGED_MAX {
            let mut staging = path.clone().into_os_string();
            staging.push(format!("#{number}"));
            let staging = PathBuf::from(staging);
            match File::options().write(true).create_new(true).open(&staging) {
                Ok(mut file) => {
                    if let Err(error) = file.write_all(bytes) {
                        let _ = fs::remove_file(&staging);
                        return Err(error);
                    }
                    return Ok(Self { file, staging, path });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("too many unfinished writes of it were left behind"))
    }

    /// Gives the object its name, unless the name is taken.
    fn name(&self) -> io::Result<bool> {
        match fs::hard_link(&self.staging, &self.path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // If it stays, a new leader removes it.
        let _ = fs::remove_file(&self.staging);
    }
}

/// The ancestors of a directory, and itself, that do not exist.
fn missing(directory: &Path) -> Vec<PathBuf> {
    directory.ancestors().take_while(|ancestor| !ancestor.exists()).map(Path::to_path_buf).collect()
}

/// The same error for another object.
fn again(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}

/// Syncs the bytes of files at the same time.
fn sync_bytes(files: &[&File]) -> io::Result<()> {
    if files.len() > SYNCED_EACH_MAX && sync_all_around(files)? {
        return Ok(());
    }
    sync(files, &BTreeSet::new()).0
}

/// Syncs files and directories at the same time. Returns the first failure of a file, and the directories that could not be
/// synced.
fn sync(files: &[&File], directories: &BTreeSet<PathBuf>) -> (io::Result<()>, BTreeMap<PathBuf, io::Error>) {
    enum Part<'a> {
        Bytes(&'a File),
        Names(&'a Path),
    }
    let files_then_directories: Vec<Part> = files
        .iter()
        .map(|file| Part::Bytes(file))
        .chain(directories.iter().map(|directory| Part::Names(directory)))
        .collect();
    let sync_one = |part: &Part| match part {
        Part::Bytes(file) => file.sync_all(),
        Part::Names(directory) => File::open(directory).and_then(|open| open.sync_all()),
    };
    let mut outcomes = Vec::with_capacity(files_then_directories.len());
    for some in files_then_directories.chunks(SYNCED_EACH_MAX) {
        outcomes.extend(at_once(some, sync_one));
    }
    let of_directories = outcomes.split_off(files.len());
    let failed = directories.iter().zip(of_directories);
    let failed = failed.filter_map(|(directory, synced)| Some((directory.clone(), synced.err()?))).collect();
    (outcomes.into_iter().collect(), failed)
}

/// Syncs the whole file systems of these files, if the system can do that. Returns whether it did.
#[cfg(target_os = "linux")]
fn sync_all_around(files: &[&File]) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    // A directory of the store may be a link to another file system.
    let mut around = BTreeMap::new();
    for file in files {
        around.insert(file.metadata()?.dev(), *file);
    }
    around.values().try_for_each(rustix::fs::syncfs)?;
    Ok(true)
}

#[cfg(not(target_os = "linux"))]
fn sync_all_around(_: &[&File]) -> io::Result<bool> {
    Ok(false)
}

/// Does something with each item at the same time.
fn at_once<T: Sync>(items: &[T], what: impl Fn(&T) -> io::Result<()> + Sync) -> Vec<io::Result<()>> {
    if let [one] = items {
        return vec![what(one)];
    }
    thread::scope(|scope| {
        let what = &what;
        let threads: Vec<_> = items
            .iter()
            .map(|item| thread::Builder::new().name("sync".into()).spawn_scoped(scope, move || what(item)))
            .collect();
        let joined = threads.into_iter().zip(items).map(|(thread, item)| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|_| Err(io::Error::other("a sync panicked"))),
            // The system has no thread left, so this one does it.
            Err(_) => what(item),
        });
        joined.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(root: &Path, names: &[&str], waits: Waits) -> Vec<Option<bool>> {
        let bytes = Bytes::from_static(b"bytes");
        let objects: Vec<(&str, &Bytes)> = names.iter().map(|name| (*name, &bytes)).collect();
        create(root, &objects, waits).into_iter().map(Result::ok).collect()
    }

    fn files(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn objects_are_created_if_absent_and_nothing_else_is_left() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        assert_eq!(outcomes(root, &["runs/a/order/1", "runs/a/order-copy/1"], Waits::Twice), [Some(true); 2]);
        let many: Vec<String> = (0..40).map(|number| format!("runs/a/finished/{number:02}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(outcomes(root, &many, Waits::Twice), [Some(true); 40]);
        assert_eq!(outcomes(root, &["runs/a/finished/41", many[3]], Waits::Twice), [Some(true), Some(false)]);
        assert_eq!(files(&root.join("runs/a/finished")).len(), 41);
        assert_eq!(files(&root.join("runs/a")), ["finished", "order", "order-copy"]);
        assert_eq!(fs::read(root.join("runs/a/order-copy/1")).unwrap(), b"bytes");
    }

    /// The copy of an order that another coordinator was faster with must not appear.
    #[test]
    fn the_objects_after_a_taken_name_are_not_created() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        assert_eq!(outcomes(root, &["order/1"], Waits::Once), [Some(true)]);
        assert_eq!(outcomes(root, &["order/1", "order-copy/1"], Waits::Once), [Some(false), None]);
        assert_eq!((files(&root.join("order")).len(), files(&root.join("order-copy")).len()), (1, 0));
        assert_eq!(outcomes(root, &["order/2", "order-copy/2"], Waits::Once), [Some(true); 2]);
        // A killed process has left the staging file of an object.
        fs::write(root.join("order/3#1"), b"half").unwrap();
        assert_eq!(outcomes(root, &["order/3"], Waits::Once), [Some(true)]);
        assert_eq!(fs::read(root.join("order/3")).unwrap(), b"bytes");
        fs::write(root.join("file"), b"").unwrap();
        assert_eq!(outcomes(root, &["file/1", "order/4"], Waits::Twice), [None, Some(true)]);
    }
}
