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
    /// Its directory, if it is one.
    pub(super) directory: Option<PathBuf>,
    /// The address of the bucket's server, if it is a bucket.
    endpoint: Option<String>,
}

impl Place {
    /// Why it cannot be used: what it did with the first object.
    pub(super) fn unusable(&self, spec: &str, error: &object_store::Error) -> StoreError {
        let (place, cause) = (spec.to_owned(), answer::cause(error));
        match self.endpoint.clone() {
            Some(endpoint) => StoreError::Bucket { place, endpoint, cause, outlook: answer::outlook(error) },
            None => StoreError::Unusable { place, cause },
        }
    }
}

/// The file in a directory that shows a second coordinator on this machine that the directory is in use.
const LOCK: &str = "lock";
/// How long a second coordinator waits for the first one to end.
const LOCK_PATIENCE: Duration = Duration::from_secs(3);
/// The interval of its attempts.
const LOCK_RETRY: Duration = Duration::from_millis(50);

/// Opens what `spec` names.
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
pub(super) fn directory_of(spec: &str) -> Option<&Path> {
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

/// The lock of a store that is a directory, released when it is dropped. It only tells people of a mistake, where the file
/// system shows it: who may write is decided by epochs.
#[derive(Debug, Default)]
pub struct Lock(Option<File>);

impl Lock {
    /// Locks the store, if it is a directory whose file system supports locks and has room for a file. The process that has
    /// locked it may be about to end, so this waits a moment.
    ///
    /// # Errors
    /// [`StoreError::InUse`] if another process has locked it.
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

    /// Locks the store now if that can be done and it is not locked already: for a leader that took over from a process
    /// that still has the lock.
    pub fn take_if_free(&mut self, spec: &str) {
        if self.0.is_none()
            && let Ok(lock) = Self::attempt(spec)
        {
            *self = lock;
        }
    }

    /// Locks the store; or says which process has locked it.
    fn attempt(spec: &str) -> Result<Self, String> {
        let Some(directory) = directory_of(spec) else { return Ok(Self(None)) };
        let file = File::options().read(true).write(true).create(true).truncate(false).open(directory.join(LOCK));
        let Ok(mut file) = file else { return Ok(Self(None)) };
        match file.try_lock() {
            Ok(()) => {
                // A second coordinator reads this; a failure to write it is harmless.
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

/// Creates a directory so that it survives a power failure: `object_store` does this only for what it creates below.
fn make_directory(directory: &Path) -> std::io::Result<()> {
    let missing: Vec<&Path> = directory.ancestors().take_while(|ancestor| !ancestor.exists()).collect();
    create_dir_all(directory)?;
    for made in missing {
        let parent = made.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}
