//! Several objects created at once, in a store that is a directory.
//!
//! On a disk the time of a write is the time of its syncs. An object is stored once its bytes and its name are synced, and the
//! name must not come first, because a power failure would leave an object without its bytes. So the bytes of all objects are
//! written under staging names and synced at the same time, then the objects get their names, and then their directories are
//! synced at the same time. So any number of objects wait for two syncs.
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

/// What becomes of an object whose predecessor in the list could not be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Otherwise {
    /// It is created all the same.
    Create,
    /// It is not created.
    Stop,
}

/// Creates objects, by their names in the store, if no object has the name. For each, returns whether it was created; `false`
/// if the name is taken.
pub(super) fn create(root: &Path, objects: &[(&str, &Bytes)], otherwise: Otherwise) -> Vec<io::Result<bool>> {
    let mut changed = BTreeSet::new();
    let mut staged: Vec<io::Result<Staged>> =
        objects.iter().map(|(name, bytes)| Staged::write(root.join(name), bytes, &mut changed)).collect();
    let files: Vec<&File> = staged.iter().flatten().map(|staged| &staged.file).collect();
    // If one sync fails, it is unknown which bytes are on the disk.
    let synced = sync(&files);
    let mut stops = false;
    let mut outcomes = Vec::with_capacity(objects.len());
    for staged in staged.drain(..) {
        let named = staged.and_then(|staged| match &synced {
            Err(why) => Err(again(why)),
            Ok(()) if stops => Err(io::Error::other("the object before it was not created")),
            Ok(()) => staged.name(),
        });
        stops |= otherwise == Otherwise::Stop && !matches!(named, Ok(true));
        outcomes.push(named);
    }
    let unsynced = sync_directories(changed);
    for ((name, _), outcome) in objects.iter().zip(&mut outcomes) {
        if let Some((_, why)) = unsynced.iter().find(|(directory, _)| root.join(name).starts_with(directory)) {
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
fn sync(files: &[&File]) -> io::Result<()> {
    if files.len() > SYNCED_EACH_MAX && sync_all_around(files)? {
        return Ok(());
    }
    for some in files.chunks(SYNCED_EACH_MAX) {
        at_once(some, |file| file.sync_all()).into_iter().collect::<io::Result<()>>()?;
    }
    Ok(())
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

/// Syncs directories at the same time. Returns those that could not be synced.
fn sync_directories(directories: BTreeSet<PathBuf>) -> BTreeMap<PathBuf, io::Error> {
    let directories: Vec<PathBuf> = directories.into_iter().collect();
    let synced = directories
        .chunks(SYNCED_EACH_MAX)
        .flat_map(|some| at_once(some, |directory| File::open(directory).and_then(|open| open.sync_all())));
    let outcomes: Vec<io::Result<()>> = synced.collect();
    directories.into_iter().zip(outcomes).filter_map(|(directory, synced)| Some((directory, synced.err()?))).collect()
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

    fn outcomes(root: &Path, names: &[&str], otherwise: Otherwise) -> Vec<Option<bool>> {
        let bytes = Bytes::from_static(b"bytes");
        let objects: Vec<(&str, &Bytes)> = names.iter().map(|name| (*name, &bytes)).collect();
        create(root, &objects, otherwise).into_iter().map(Result::ok).collect()
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
        assert_eq!(outcomes(root, &["runs/a/order/1", "runs/a/order-copy/1"], Otherwise::Create), [Some(true); 2]);
        let many: Vec<String> = (0..40).map(|number| format!("runs/a/finished/{number:02}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(outcomes(root, &many, Otherwise::Create), [Some(true); 40]);
        assert_eq!(outcomes(root, &["runs/a/finished/41", many[3]], Otherwise::Create), [Some(true), Some(false)]);
        assert_eq!(files(&root.join("runs/a/finished")).len(), 41);
        assert_eq!(files(&root.join("runs/a")), ["finished", "order", "order-copy"]);
        assert_eq!(fs::read(root.join("runs/a/order-copy/1")).unwrap(), b"bytes");
    }

    /// The copy of an order that another coordinator was faster with must not appear.
    #[test]
    fn the_objects_after_a_taken_name_are_not_created() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        assert_eq!(outcomes(root, &["order/1"], Otherwise::Stop), [Some(true)]);
        assert_eq!(outcomes(root, &["order/1", "order-copy/1"], Otherwise::Stop), [Some(false), None]);
        assert_eq!((files(&root.join("order")).len(), files(&root.join("order-copy")).len()), (1, 0));
        assert_eq!(outcomes(root, &["order/2", "order-copy/2"], Otherwise::Stop), [Some(true); 2]);
        // A killed process has left the staging file of an object.
        fs::write(root.join("order/3#1"), b"half").unwrap();
        assert_eq!(outcomes(root, &["order/3"], Otherwise::Stop), [Some(true)]);
        assert_eq!(fs::read(root.join("order/3")).unwrap(), b"bytes");
        fs::write(root.join("file"), b"").unwrap();
        assert_eq!(outcomes(root, &["file/1", "order/4"], Otherwise::Create), [None, Some(true)]);
    }
}
