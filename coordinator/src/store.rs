//! The store: runs as immutable objects in a directory or a bucket. Objects are only ever created if absent, never
//! overwritten; [`crate::saved`] says how they are named.
//!
//! Who may write a run is an object too: a coordinator that takes a run over creates `runs/RUN/epoch/000007` if absent. Before
//! each write the store looks whether the highest epoch is still its own, and refuses otherwise. Since states are a
//! function of the seed, two leaders for a moment cost only time: both write true states.
//!
//! Everything here blocks: call it from a plain thread, not from within a runtime.

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
use futures_util::StreamExt as _;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, path::Path};

use crate::{
    core::{StoreFault, Write},
    saved::object_name,
};

/// Why a store cannot be used: one sentence.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A bucket, and this build knows only directories.
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
    /// It cannot be reached, made or written.
    #[error("the store {place} cannot be used: {cause}: name another with --store, or see that it can be written")]
    Unusable {
        /// As given.
        place: String,
        /// From the system.
        cause: String,
    },
    /// It could be opened, but not read.
    #[error("{name} in the store {place} cannot be read: {cause}: see that this process may read it, or move it away")]
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
    /// Drives the store's futures; a bucket's clients need one.
    runtime: tokio::runtime::Runtime,
    objects: Arc<dyn ObjectStore>,
    /// How the place is shown to people.
    shown: String,
    /// The place, if it is a directory.
    directory: Option<PathBuf>,
    runs: BTreeMap<String, Known>,
}

/// What is known of a run.
#[derive(Debug, Default)]
struct Known {
    /// The highest epoch there was when the run was loaded; 0 if it was not there.
    epoch_seen: u64,
    /// It has objects but no good order: what it was cannot be known, so nothing is written over it.
    unreadable: bool,
    /// The epoch this store created: it may write.
    epoch: Option<epoch::Epoch>,
    /// Names of checkpoints by number.
    checkpoints: BTreeMap<u64, BTreeSet<String>>,
}

/// An object's name, and what is known of it without reading it.
type Entry = (String, ObjectMeta);

impl Store {
    /// Opens a store, a directory (made if it is not there) or the URL of a bucket, and proves that it can be written.
    ///
    /// # Errors
    /// A [`StoreError`] if it cannot be used.
    pub fn open(spec: &str) -> Result<Self, StoreError> {
        let place = place::open(spec)?;
        let mut store = Self::over(place.objects, spec);
        store.directory = place.directory;
        store.probe()?;
        Ok(store)
    }

    /// A store over any objects; `shown` names it to people.
    ///
    /// # Panics
    /// If the system cannot make a runtime: it is out of file descriptors at start.
    #[must_use]
    pub fn over(objects: Arc<dyn ObjectStore>, shown: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(4)
            .build()
            .expect("a runtime needs a few file descriptors, and this is the start of the process");
        Self { runtime, objects, shown: shown.to_owned(), directory: None, runs: BTreeMap::new() }
    }

    /// How the place is shown to people: as it was given.
    #[must_use]
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Carries out a write. Writing the same twice is once.
    ///
    /// # Errors
    /// [`StoreFault::Fenced`] if another coordinator has the run or it has no good order, [`StoreFault::Failed`] for all else.
    pub fn write(&mut self, run: &str, write: &Write) -> Result<(), StoreFault> {
        self.check_leadership(run)?;
        match (object_name(write), write) {
            (
                Some(name),
                Write::Order { bytes, .. }
                | Write::Checkpoint { bytes, .. }
                | Write::Finished { bytes, .. }
                | Write::Poison { bytes, .. },
            ) => {
                self.create(&format!("runs/{run}/{name}"), bytes)?;
                if let Write::Checkpoint { number, .. } = write {
                    self.known(run).checkpoints.entry(*number).or_default().insert(name);
                    self.prune_checkpoints(run);
                }
                Ok(())
            }
            (_, Write::DropCheckpoints) => self.drop_checkpoints(run),
            (_, Write::Delete) => self.delete_run(run),
            (None, _) => unreachable!("a write that creates an object has a name for it"),
        }
    }

    fn known(&mut self, run: &str) -> &mut Known {
        self.runs.entry(run.to_owned()).or_default()
    }

    /// Creates an object. After an unclear answer it looks before it judges.
    fn create(&self, name: &str, bytes: &Bytes) -> Result<(), StoreFault> {
        let Err(first) = self.put(name, bytes) else { return Ok(()) };
        match self.get(name) {
            Ok(found) if found == *bytes => return Ok(()),
            Ok(_) => {}
            Err(_) => return Err(self.not_written(name, &first)),
        }
        // The name holds the digest of what belongs there, so what lies there is damaged. It was not used when the run was
        // loaded, and the state was computed again: now it gives way to the true one.
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

    /// The objects right in a directory, and the directories in it, by name; both are empty if there is none.
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

    /// Removes objects; one that is gone already is no fault.
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

    /// Proves that objects can be made and removed.
    fn probe(&self) -> Result<(), StoreError> {
        let name = format!("probe-{}", std::process::id());
        let unusable = |error| StoreError::Unusable { place: self.shown.clone(), cause: root_cause(&error) };
        self.remove(vec![name.clone()]).map_err(unusable)?;
        self.put(&name, &Bytes::from_static(b"can be written\n")).map_err(unusable)?;
        self.remove(vec![name]).map_err(unusable)
    }

    fn not_written(&self, name: &str, error: &object_store::Error) -> StoreFault {
        let (shown, cause) = (&self.shown, root_cause(error));
        StoreFault::Failed(format!(
            "the object {name} cannot be written in the store {shown}: {cause}: see that there is room and a right to write"
        ))
    }
}

/// The innermost cause: what the system said.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
