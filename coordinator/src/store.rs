//! The store: runs as immutable objects in a directory or a bucket. Objects are only ever created if absent, never
//! overwritten; [`crate::saved`] says how they are named.
//!
//! The right to write a run is an object too: a coordinator that takes over a run creates `runs/RUN/epoch/000007` if
//! absent. Before each write the store checks that its own epoch is still the highest, and otherwise refuses. Since
//! states are a function of the seed, two owners at the same moment cost only time: both write correct states. On one
//! machine a lock on the directory keeps a second coordinator from starting.
//!
//! Everything here blocks: call it from an ordinary thread, not from within a runtime.

mod bucket;
mod epoch;
mod load;
mod place;
mod prune;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use bytes::Bytes;
use evoxo_common::experiment::Registry;
use evoxo_process::innermost;
use futures_util::StreamExt as _;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, path::Path};

use crate::{
    core::{StoreFault, Stored, Write},
    saved::object_name,
};

/// Why a store cannot be used: one sentence.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A bucket, but this build supports only directories.
    #[error(
        "the store {spec} needs a build with `--features {feature}`: build evoxo-coordinator with it, or name a directory"
    )]
    NotBuiltIn {
        /// As given.
        spec: String,
        /// The feature of this crate.
        feature: &'static str,
    },
    /// Neither a directory nor a bucket.
    #[error("the store {0} is of no known kind: name a directory, or s3://BUCKET/PREFIX, gs://... or az://...")]
    UnknownKind(String),
    /// It cannot be reached, created or written.
    #[error("the store {place} cannot be used: {cause}: name another with --store, or make it writable")]
    Unusable {
        /// As given.
        place: String,
        /// From the system.
        cause: String,
    },
    /// Another coordinator on this machine uses it.
    #[error(
        "the store {place} is in use by another coordinator ({who}): stop that one first, or name another directory with --store"
    )]
    InUse {
        /// As given.
        place: String,
        /// The other coordinator's description of itself.
        who: String,
    },
    /// It could be opened, but not read.
    #[error("{name} in the store {place} cannot be read: {cause}: let this process read it, or move it away")]
    Unreadable {
        /// As given.
        place: String,
        /// A directory in it.
        name: String,
        /// From the system.
        cause: String,
    },
}

/// Runs as objects in a directory or a bucket.
pub struct Store {
    /// Runs the store's futures; the clients of buckets need one.
    runtime: tokio::runtime::Runtime,
    objects: Arc<dyn ObjectStore>,
    /// The store's name in messages.
    shown: String,
    /// Its directory, if it is one.
    directory: Option<PathBuf>,
    /// Held while the store is open.
    _lock: Option<std::fs::File>,
    registry: Registry,
    runs: BTreeMap<String, Known>,
}

/// Reads objects of a store. Cheap to clone.
#[derive(Clone)]
pub struct Reader {
    objects: Arc<dyn ObjectStore>,
    shown: String,
}

impl Reader {
    /// The bytes of an object of a run, by its name below `runs/RUN/`.
    ///
    /// # Errors
    /// A sentence that names the object.
    pub async fn get(&self, run: &str, object: &str) -> Result<Bytes, String> {
        let name = format!("runs/{run}/{object}");
        let path = Path::from(name.as_str());
        let bytes = async { self.objects.get(&path).await?.bytes().await }.await;
        bytes.map_err(|error| {
            format!("the object {name} cannot be read in the store {}: {}", self.shown, innermost(&error))
        })
    }
}

/// What is known of a run.
#[derive(Debug, Default)]
struct Known {
    /// The highest epoch when the run was loaded; 0 if the run did not exist.
    epoch_seen: u64,
    /// It has objects but no valid order, so its content is unknown and nothing is written to it.
    unreadable: bool,
    /// The epoch that this store created, which lets it write.
    epoch: Option<epoch::Epoch>,
    /// Names of checkpoints by number.
    checkpoints: BTreeMap<u64, BTreeSet<String>>,
}

/// An object's name, and what is known of it without reading it.
type Entry = (String, ObjectMeta);

impl Store {
    /// Opens a store, which is a directory (created if absent) or the URL of a bucket, and checks that it can be
    /// written. If it cannot, but has runs that can be read, the store is opened and returned with a warning.
    ///
    /// # Errors
    /// A [`StoreError`] if it cannot be used.
    pub fn open(spec: &str, registry: Registry) -> Result<(Self, Option<String>), StoreError> {
        let place = place::open(spec)?;
        let mut store = Self::over(place.objects, spec, registry);
        (store.directory, store._lock) = (place.directory, place.lock);
        let Err(error) = store.probe() else { return Ok((store, None)) };
        let cause = innermost(&error);
        match store.list("runs") {
            Ok((_, runs)) if !runs.is_empty() => {
                let sentence = format!(
                    "the store {spec} cannot be written: {cause}: its runs can be shown and fetched, and work continues when \
                     it can be written"
                );
                Ok((store, Some(sentence)))
            }
            _ => Err(StoreError::Unusable { place: spec.to_owned(), cause }),
        }
    }

    /// A store over any objects; `shown` names it in messages.
    ///
    /// # Panics
    /// If the system cannot create a runtime because file descriptors are exhausted.
    #[must_use]
    pub fn over(objects: Arc<dyn ObjectStore>, shown: &str, registry: Registry) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(4)
            .build()
            .expect("a runtime needs a few file descriptors, and this is the start of the process");
        let shown = shown.to_owned();
        Self { runtime, objects, shown, directory: None, _lock: None, registry, runs: BTreeMap::new() }
    }

    /// A reader of this store.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader { objects: Arc::clone(&self.objects), shown: self.shown.clone() }
    }

    /// The bytes of an object of a run, by its name below `runs/RUN/`.
    ///
    /// # Errors
    /// A sentence that names the object.
    pub fn read(&self, run: &str, object: &str) -> Result<Bytes, String> {
        self.runtime.block_on(self.reader().get(run, object))
    }

    /// The store's name in messages: as it was given.
    #[must_use]
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Does a write. Repeating it has no effect.
    ///
    /// # Errors
    /// [`StoreFault::Fenced`] if another coordinator owns the run or it has no valid order, otherwise
    /// [`StoreFault::Failed`].
    pub fn write(&mut self, run: &str, write: &Write) -> Result<Stored, StoreFault> {
        if *write == Write::Load {
            return self.take_over_and_load(run).map(|saved| Stored::Loaded(saved.map(Box::new)));
        }
        self.check_leadership(run)?;
        match (object_name(write), write) {
            (
                Some(name),
                Write::Order { bytes, .. }
                | Write::Checkpoint { bytes, .. }
                | Write::Finished { bytes, .. }
                | Write::Doubt { bytes, .. }
                | Write::Poison { bytes, .. },
            ) => {
                self.create(&format!("runs/{run}/{name}"), bytes)?;
                if let Write::Checkpoint { number, .. } = write {
                    self.known(run).checkpoints.entry(*number).or_default().insert(name);
                    self.prune_checkpoints(run);
                }
            }
            (_, Write::DropCheckpoints) => self.drop_checkpoints(run)?,
            (_, Write::Delete) => self.delete_run(run)?,
            (_, _) => unreachable!("a write that creates an object has a name for it"),
        }
        Ok(Stored::Written)
    }

    fn known(&mut self, run: &str) -> &mut Known {
        self.runs.entry(run.to_owned()).or_default()
    }

    /// Creates an object. If the result is unclear, it checks whether the object exists.
    fn create(&self, name: &str, bytes: &Bytes) -> Result<(), StoreFault> {
        let Err(first) = self.put(name, bytes) else { return Ok(()) };
        match self.get(name) {
            Ok(found) if found == *bytes => return Ok(()),
            Ok(_) => {}
            Err(_) => return Err(self.not_written(name, &first)),
        }
        // The name has the digest of the content, so the existing object is damaged. It was not used when the run was
        // loaded, and its state was computed again: now the correct object replaces it.
        tracing::warn!("the object {name} in {} is damaged and is replaced", self.shown);
        let path = Path::from(name);
        self.runtime.block_on(self.objects.delete(&path)).map_err(|error| self.not_written(name, &error))?;
        self.put(name, bytes).map_err(|error| self.not_written(name, &error))
    }

    fn put(&self, name: &str, bytes: &Bytes) -> object_store::Result<()> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let path = Path::from(name);
        self.runtime.block_on(self.objects.put_opts(&path, bytes.clone().into(), options)).map(drop)
    }

    fn get(&self, name: &str) -> object_store::Result<Bytes> {
        let path = Path::from(name);
        self.runtime.block_on(async { self.objects.get(&path).await?.bytes().await })
    }

    /// The objects directly in a directory, and its subdirectories, by name; both are empty if it does not exist.
    fn list(&self, directory: &str) -> object_store::Result<(Vec<Entry>, Vec<String>)> {
        let prefix = (!directory.is_empty()).then(|| Path::from(directory));
        let list = self.runtime.block_on(self.objects.list_with_delimiter(prefix.as_ref()))?;
        let name = |path: &Path| path.filename().map(str::to_owned).unwrap_or_default();
        let mut objects: Vec<_> = list.objects.into_iter().map(|meta| (name(&meta.location), meta)).collect();
        objects.sort_unstable_by(|left, right| left.0.cmp(&right.0));
        let mut directories: Vec<_> = list.common_prefixes.iter().map(name).collect();
        directories.sort_unstable();
        Ok((objects, directories))
    }

    /// Removes objects; those that are already gone are no error.
    fn remove(&self, names: Vec<String>) -> object_store::Result<()> {
        let paths = futures_util::stream::iter(names.into_iter().map(|name| Ok(Path::from(name)))).boxed();
        self.runtime.block_on(async {
            let mut removed = self.objects.delete_stream(paths);
            while let Some(outcome) = removed.next().await {
                match outcome {
                    Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        })
    }

    /// Checks that objects can be created and removed.
    fn probe(&self) -> object_store::Result<()> {
        let name = format!("probe-{}", std::process::id());
        self.remove(vec![name.clone()])?;
        self.put(&name, &Bytes::from_static(b"can be written\n"))?;
        self.remove(vec![name])
    }

    fn not_written(&self, name: &str, error: &object_store::Error) -> StoreFault {
        let (shown, cause) = (&self.shown, innermost(error));
        StoreFault::Failed(format!(
            "the object {name} cannot be written in the store {shown}: {cause}: check free space and permissions"
        ))
    }
}
