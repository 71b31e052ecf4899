//! The store: immutable objects, each created if absent and never overwritten, in a directory or a bucket.
//!
//! A coordinator that takes a run over creates the next `epoch` object; before each write it looks whether somebody has
//! created a higher one, and if so it never writes to that run again. Since work is pure, two leaders for a moment cost
//! only time: both write true states.

use std::collections::BTreeMap;

use bytes::Bytes;
use evoxo_common::envelope::{Kind, seal};
use futures_util::TryStreamExt as _;
use object_store::{
    ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, local::LocalFileSystem, path::Path,
};

use crate::{
    core::{StoreFault, Write},
    names::check_run_name,
    saved::{SavedRun, interpret, object_name, object_number},
};

/// Why a store cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The directory cannot be made or written.
    #[error("the store {place} cannot be used: {why}; give a directory that can be written with --store")]
    Unusable {
        /// As given.
        place: String,
        /// What the system said.
        why: String,
    },
    /// A bucket, but this build has no support for it.
    #[error("the store {place} is a bucket, and this build knows only directories: build with --features {feature}")]
    NotBuiltIn {
        /// As given.
        place: String,
        /// The cargo feature.
        feature: &'static str,
    },
}

/// Checkpoints kept behind the newest.
const CHECKPOINTS_KEPT: usize = 3;
/// Of the older ones, every so many-th stays.
const CHECKPOINT_KEPT_EVERY: u64 = 64;

/// A store, for one thread.
pub struct Store {
    objects: Box<dyn ObjectStore>,
    root: Path,
    place: String,
    runtime: tokio::runtime::Runtime,
    /// Of the runs that this process leads.
    epochs: BTreeMap<String, u64>,
}

impl Store {
    /// Opens a directory (made if there is none), or a bucket by its address if the build supports it, and proves that it
    /// can be written.
    ///
    /// # Errors
    /// A sentence with the place and the reason.
    pub fn open(place: &str) -> Result<Self, StoreError> {
        let unusable = |why: String| StoreError::Unusable { place: place.into(), why };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| unusable(error.to_string()))?;
        let (objects, root) = open_objects(place)?;
        let mut store = Self { objects, root, place: place.into(), runtime, epochs: BTreeMap::new() };
        let probe = store.root.clone().join(format!("probe-{}", std::process::id()));
        store.create(&probe, Bytes::from_static(b"evoxo")).map_err(&unusable)?;
        store.delete(&probe).map_err(&unusable)?;
        store.epochs.clear();
        Ok(store)
    }

    /// All runs, those ordered last at the end, and a sentence for everything that is not used.
    ///
    /// # Errors
    /// A sentence if the store cannot be listed.
    pub fn load(&self) -> Result<(Vec<SavedRun>, Vec<String>), StoreError> {
        let unusable = |why: String| StoreError::Unusable { place: self.place.clone(), why };
        let root = self.root.clone().join("runs");
        let mut runs: BTreeMap<String, Vec<ObjectMeta>> = BTreeMap::new();
        for object in self.list(&root).map_err(unusable)? {
            if let Some(run) = self.parts(&object.location).first() {
                runs.entry(run.clone()).or_default().push(object);
            }
        }
        let mut notices = Vec::new();
        let mut found = Vec::new();
        for (run, objects) in runs {
            if check_run_name(&run).is_err() {
                notices.push(format!("{}/runs/{run} is not a run and is left alone", self.place));
                continue;
            }
            let newest = objects.iter().map(|object| object.last_modified).max();
            let (saved, refused) = self.interpret(&run, &objects);
            notices.extend(refused);
            found.extend(saved.map(|saved| (newest, saved)));
        }
        found.sort_by(|(one, a), (two, b)| one.cmp(two).then(a.name.cmp(&b.name)));
        Ok((found.into_iter().map(|(_, saved)| saved).collect(), notices))
    }

    /// One run, if it is there.
    ///
    /// # Errors
    /// A sentence if the store cannot be listed.
    pub fn load_run(&self, run: &str) -> Result<Option<SavedRun>, StoreError> {
        let unusable = |why: String| StoreError::Unusable { place: self.place.clone(), why };
        let objects = self.list(&self.run_path(run)).map_err(unusable)?;
        Ok(self.interpret(run, &objects).0)
    }

    fn interpret(&self, run: &str, objects: &[ObjectMeta]) -> (Option<SavedRun>, Vec<String>) {
        let names: Vec<String> = objects.iter().map(|object| self.parts(&object.location)[1..].join("/")).collect();
        interpret(run, &names, |name| {
            self.read(&self.object_path(run, name)).map_err(|why| format!("cannot be read ({why})"))
        })
    }

    /// Becomes the leader of a run: whoever led it before will notice at its next write.
    ///
    /// # Errors
    /// A fault if the epoch cannot be created.
    pub fn take_over(&mut self, run: &str) -> Result<(), StoreFault> {
        for _ in 0..16 {
            let epoch = self.highest_epoch(run)? + 1;
            let path = self.object_path(run, &format!("epoch/{epoch:06}"));
            let words = format!("led by process {} since its start", std::process::id());
            match self.runtime.block_on(put(&*self.objects, &path, seal(Kind::Epoch, words.as_bytes()))) {
                Ok(()) => {
                    self.epochs.insert(run.into(), epoch);
                    return Ok(());
                }
                Err(object_store::Error::AlreadyExists { .. }) => {}
                Err(error) => return Err(self.fault(&path, &error.to_string())),
            }
        }
        Err(StoreFault::Failed(format!("run {run}: other coordinators take it over again and again")))
    }

    /// Carries out a write. Writing the same bytes twice is one write.
    ///
    /// # Errors
    /// [`StoreFault::Fenced`] if somebody else leads the run now.
    pub fn write(&mut self, run: &str, write: &Write) -> Result<(), StoreFault> {
        if !self.epochs.contains_key(run) {
            self.take_over(run)?;
        }
        let highest = self.highest_epoch(run)?;
        if self.epochs.get(run).is_some_and(|ours| highest > *ours) {
            return Err(StoreFault::Fenced(format!(
                "another coordinator has taken run {run} over (epoch {highest}): this one leaves it alone"
            )));
        }
        match (object_name(write), write) {
            (
                Some(name),
                Write::Order { bytes, .. }
                | Write::Checkpoint { bytes, .. }
                | Write::Finished { bytes, .. }
                | Write::Poison { bytes, .. },
            ) => {
                let path = self.object_path(run, &name);
                self.create(&path, bytes.clone()).map_err(|why| self.fault(&path, &why))?;
                if matches!(write, Write::Checkpoint { .. }) {
                    self.prune(run, CHECKPOINTS_KEPT, CHECKPOINT_KEPT_EVERY);
                }
                Ok(())
            }
            (_, Write::Delete) => self.delete_run(run),
            _ => {
                self.prune(run, 0, u64::MAX);
                Ok(())
            }
        }
    }

    /// Deletes old checkpoints; one that cannot be deleted now is tried again with the next.
    fn prune(&self, run: &str, kept: usize, kept_every: u64) {
        let Ok(objects) = self.list(&self.run_path(run).join("checkpoint")) else { return };
        let mut numbered: Vec<(u64, Path)> = objects
            .into_iter()
            .filter_map(|object| {
                let name = self.parts(&object.location)[1..].join("/");
                object_number(&name, "checkpoint").map(|(number, _)| (number, object.location))
            })
            .collect();
        numbered.sort();
        let old = numbered.len().saturating_sub(kept);
        for (number, path) in &numbered[..old] {
            if number % kept_every != 0 {
                drop(self.delete(path));
            }
        }
    }

    fn delete_run(&mut self, run: &str) -> Result<(), StoreFault> {
        let path = self.run_path(run);
        let objects = self.list(&path).map_err(|why| self.fault(&path, &why))?;
        // The orders go last: a run that is half deleted is still a run.
        let (orders, others): (Vec<_>, Vec<_>) = objects
            .into_iter()
            .partition(|object| self.parts(&object.location).get(1).is_some_and(|part| part == "order"));
        for object in others.into_iter().chain(orders) {
            self.delete(&object.location).map_err(|why| self.fault(&object.location, &why))?;
        }
        self.epochs.remove(run);
        Ok(())
    }

    fn highest_epoch(&self, run: &str) -> Result<u64, StoreFault> {
        let path = self.run_path(run).join("epoch");
        let objects = self.list(&path).map_err(|why| self.fault(&path, &why))?;
        Ok(objects.iter().filter_map(|object| object.location.filename()?.parse().ok()).max().unwrap_or(0))
    }

    /// Creates an object; if it is there already with the same bytes, it is as good as created.
    fn create(&self, path: &Path, bytes: Bytes) -> Result<(), String> {
        let outcome = self.runtime.block_on(put(&*self.objects, path, bytes.clone()));
        let Err(error) = outcome else { return Ok(()) };
        // Whatever the answer was, what is there is the truth.
        match self.read(path) {
            Ok(there) if there == bytes => Ok(()),
            Ok(_) => Err("is there already with other bytes".into()),
            Err(_) => Err(root_cause(&error)),
        }
    }

    fn read(&self, path: &Path) -> Result<Bytes, String> {
        let read = async { self.objects.get(path).await?.bytes().await };
        self.runtime.block_on(read).map_err(|error| root_cause(&error))
    }

    fn delete(&self, path: &Path) -> Result<(), String> {
        self.runtime.block_on(self.objects.delete(path)).map_err(|error| root_cause(&error))
    }

    fn list(&self, prefix: &Path) -> Result<Vec<ObjectMeta>, String> {
        let list = self.objects.list(Some(prefix)).try_collect::<Vec<_>>();
        match self.runtime.block_on(list) {
            Err(object_store::Error::NotFound { .. }) => Ok(Vec::new()),
            other => other.map_err(|error| root_cause(&error)),
        }
    }

    fn run_path(&self, run: &str) -> Path {
        self.root.clone().join("runs").join(run)
    }

    fn object_path(&self, run: &str, name: &str) -> Path {
        name.split('/').fold(self.run_path(run), |path, part| path.join(part))
    }

    /// The run's name and what follows, of an object's path.
    fn parts(&self, path: &Path) -> Vec<String> {
        let below = self.root.parts().count() + 1;
        path.parts().skip(below).map(|part| part.as_ref().to_owned()).collect()
    }

    fn fault(&self, path: &Path, why: &str) -> StoreFault {
        StoreFault::Failed(format!("{}: {path} cannot be written: {why}", self.place))
    }
}

async fn put(objects: &dyn ObjectStore, path: &Path, bytes: Bytes) -> object_store::Result<()> {
    let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    objects.put_opts(path, bytes.into(), options).await.map(drop)
}

/// What the system said at the bottom of an error: "No space left on device".
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

fn open_objects(place: &str) -> Result<(Box<dyn ObjectStore>, Path), StoreError> {
    if let Some((scheme, _)) = place.split_once("://") {
        return open_bucket(scheme, place);
    }
    let unusable = |why: String| StoreError::Unusable { place: place.into(), why };
    std::fs::create_dir_all(place).map_err(|error| unusable(error.to_string()))?;
    let local = LocalFileSystem::new_with_prefix(place).map_err(|error| unusable(root_cause(&error)))?;
    Ok((Box::new(local.with_fsync(true)), Path::default()))
}

#[cfg(any(feature = "aws", feature = "gcp", feature = "azure"))]
fn open_bucket(_scheme: &str, place: &str) -> Result<(Box<dyn ObjectStore>, Path), StoreError> {
    let unusable = |why: String| StoreError::Unusable { place: place.into(), why };
    let url = url::Url::parse(place).map_err(|error| unusable(error.to_string()))?;
    object_store::parse_url_opts(&url, std::env::vars().map(|(key, value)| (key.to_lowercase(), value)))
        .map_err(|error| unusable(root_cause(&error)))
}

#[cfg(not(any(feature = "aws", feature = "gcp", feature = "azure")))]
fn open_bucket(scheme: &str, place: &str) -> Result<(Box<dyn ObjectStore>, Path), StoreError> {
    let feature = match scheme {
        "gs" => "gcp",
        "az" | "azure" | "abfs" | "abfss" => "azure",
        _ => "aws",
    };
    Err(StoreError::NotBuiltIn { place: place.into(), feature })
}

#[cfg(test)]
mod tests;
