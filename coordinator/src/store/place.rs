//! The value of `--store`: a directory, or a bucket.

use std::{
    fs::{File, TryLockError, create_dir_all},
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use object_store::{ObjectStore, local::LocalFileSystem};

use evoxo_process::{host_name, innermost};

use super::{StoreError, answer, bucket};

/// An opened store.
pub(super) struct Place {
    pub(super) objects: Arc<dyn ObjectStore>,
    /// The store's directory, if the store is a directory.
    pub(super) directory: Option<PathBuf>,
    /// The address of the bucket's server, if the store is a bucket.
    endpoint: Option<String>,
}

impl Place {
    /// The error for a store that cannot be used, from its failure on the first object.
    pub(super) fn unusable(&self, spec: &str, error: &object_store::Error) -> StoreError {
        let (place, cause) = (spec.to_owned(), answer::cause(error));
        match self.endpoint.clone() {
            Some(endpoint) => StoreError::Bucket { place, endpoint, cause, outlook: answer::outlook(error) },
            None => StoreError::Unusable { place, cause },
        }
    }
}

/// A lock file in the directory. It shows a second coordinator on this machine that the directory is in use.
const LOCK: &str = "lock";
/// How long a second coordinator waits for the first one to end.
const LOCK_PATIENCE: Duration = Duration::from_secs(3);
/// The pause between its attempts.
const LOCK_RETRY: Duration = Duration::from_millis(50);

/// Opens the store that `spec` names.
pub(super) fn open(spec: &str) -> Result<Place, StoreError> {
    let Some(directory) = directory_of(spec) else {
        let settings = bucket::Settings::of_environment();
        let settings = settings.map_err(|cause| StoreError::Settings { place: spec.to_owned(), cause })?;
        let objects = bucket::open(spec, &settings)?;
        return Ok(Place { objects, directory: None, endpoint: Some(settings.endpoint().to_owned()) });
    };
    open_directory(spec, directory)
}

/// The directory that `spec` names, if it names one.
pub(crate) fn directory_of(spec: &str) -> Option<&Path> {
    match spec.split_once("://") {
        None => Some(Path::new(spec)),
        Some(("file", path)) => Some(Path::new(path)),
        Some(_) => None,
    }
}

fn open_directory(spec: &str, directory: &Path) -> Result<Place, StoreError> {
    if directory.is_file() {
        return Err(StoreError::File(spec.to_owned()));
    }
    for name in ["leader", "runs"] {
        if directory.join(name).is_file() {
            return Err(StoreError::Foreign { place: spec.to_owned(), name });
        }
    }
    let unusable = |cause: String| StoreError::Unusable { place: spec.to_owned(), cause };
    make_directory(directory).map_err(|error| unusable(error.to_string()))?;
    let objects = LocalFileSystem::new_with_prefix(directory).map_err(|error| unusable(innermost(&error)))?;
    let objects = Arc::new(objects.with_fsync(true).with_automatic_cleanup(true));
    Ok(Place { objects, directory: Some(directory.to_owned()), endpoint: None })
}

/// The lock of a store that is a directory, released on drop. The lock only catches mistakes of people, where the file system
/// supports locks. Epochs decide who may write.
#[derive(Debug, Default)]
pub struct Lock(Option<File>);

impl Lock {
    /// Locks the store if it is a directory whose file system supports locks and has room for a file. The process that holds
    /// the lock may be about to end, so this waits for a moment.
    ///
    /// # Errors
    /// [`StoreError::InUse`] if another process holds the lock.
    pub fn take(spec: &str) -> Result<Self, StoreError> {
        let begun = Instant::now();
        loop {
            match Self::attempt(spec) {
                Ok(lock) => return Ok(lock),
                Err(_) if begun.elapsed() < LOCK_PATIENCE => std::thread::sleep(LOCK_RETRY),
                Err(who) => return Err(StoreError::InUse { place: spec.to_owned(), who }),
            }
        }
    }

    /// Locks the store if nobody else holds the lock now. A leader calls this after it took over from a process that may
    /// still hold the lock.
    pub fn take_if_free(&mut self, spec: &str) {
        if self.0.is_none()
            && let Ok(lock) = Self::attempt(spec)
        {
            *self = lock;
        }
    }

    /// Locks the store. The error is the process that holds the lock.
    fn attempt(spec: &str) -> Result<Self, String> {
        let Some(directory) = directory_of(spec) else { return Ok(Self(None)) };
        let file = File::options().read(true).write(true).create(true).truncate(false).open(directory.join(LOCK));
        let Ok(mut file) = file else { return Ok(Self(None)) };
        match file.try_lock() {
            Ok(()) => {
                // A second coordinator reads this. Failing to write it is harmless.
                let who = format!("process {} on {}", std::process::id(), host_name());
                let _ = file.set_len(0).and_then(|()| file.write_all(who.as_bytes()));
                Ok(Self(Some(file)))
            }
            Err(TryLockError::WouldBlock) => {
                let mut who = String::new();
                let read = (&mut file).take(200).read_to_string(&mut who);
                Err(if read.is_ok() && !who.is_empty() { who } else { "it does not say which".into() })
            }
            Err(TryLockError::Error(_)) => Ok(Self(None)),
        }
    }
}

/// Creates a directory so that it survives a power failure. `object_store` does that only for directories below this one.
fn make_directory(directory: &Path) -> std::io::Result<()> {
    let missing: Vec<&Path> = directory.ancestors().take_while(|ancestor| !ancestor.exists()).collect();
    create_dir_all(directory)?;
    for made in missing {
        let parent = made.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}
