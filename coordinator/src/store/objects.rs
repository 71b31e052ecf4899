//! The objects of a store: read, list, create if absent, remove. The rest of the store is built on these operations.

use std::{
    collections::BTreeMap,
    io,
    pin::pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll, Waker},
    time::SystemTime,
};

use bytes::Bytes;
use futures_util::{StreamExt as _, future::join_all};
use object_store::{ObjectMeta, ObjectStore, path::Path};

use super::{
    Known, Outlook, Reader, Store, StoreError,
    answer::{self, cause},
    disk::{self, Waits},
};
use crate::{
    core::StoreFault,
    names::{
        CHECKPOINT, CHECKPOINT_COPY, DELETED, FINISHED, FINISHED_COPY, INDEX, KEPT, ORDER, ORDER_COPY, object_named,
    },
};

/// An object's name, and its metadata, which is known without reading it.
type Entry = (String, ObjectMeta);

/// The directories of a run, in the order in which they are deleted. `deleted` comes last: as long as anything else remains,
/// it marks the run as deleted.
pub(super) const DIRECTORIES: [&str; 11] =
    [INDEX, CHECKPOINT_COPY, CHECKPOINT, KEPT, FINISHED_COPY, FINISHED, "doubt", "poison", ORDER_COPY, ORDER, DELETED];

/// The objects of a run, and the foreign objects among them.
#[derive(Default)]
pub(super) struct Found {
    /// Names below the run's directory, in the order of [`DIRECTORIES`].
    pub(super) ours: Vec<String>,
    /// Full names in the store of objects that this program does not create.
    pub(super) foreign: Vec<String>,
    /// The bytes of each of `ours`.
    pub(super) sizes: BTreeMap<String, u64>,
    /// When the newest of `ours` was written, and the newest finished replica, and the newest order.
    pub(super) modified: Option<SystemTime>,
    finished: Option<SystemTime>,
    ordered: Option<SystemTime>,
}

impl Found {
    /// When the run ended, if it has.
    pub(super) fn ended(&self) -> Option<SystemTime> {
        self.finished.or(self.ordered)
    }
}

impl Store {
    /// A reader of this store.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader { objects: Arc::clone(&self.objects), shown: self.shown.clone() }
    }

    /// The store's name in messages, as the user gave it.
    #[must_use]
    pub fn shown(&self) -> &str {
        &self.shown
    }

    pub(super) fn known(&mut self, run: &str) -> &mut Known {
        self.runs.entry(run.to_owned()).or_default()
    }

    pub(super) fn get(&self, name: &str) -> object_store::Result<Bytes> {
        self.wait_here(answer::read(&*self.objects, &Path::from(name)))
    }

    /// The objects directly in a directory and its subdirectories, both sorted by name; both are empty if the directory does
    /// not exist.
    pub(super) fn list(&self, directory: &str) -> object_store::Result<(Vec<Entry>, Vec<String>)> {
        let prefix = (!directory.is_empty()).then(|| Path::from(directory));
        let list = self.wait_here(self.objects.list_with_delimiter(prefix.as_ref()))?;
        let name = |path: &Path| path.filename().map(str::to_owned).unwrap_or_default();
        let mut objects: Vec<_> = list.objects.into_iter().map(|meta| (name(&meta.location), meta)).collect();
        objects.sort_unstable_by(|left, right| left.0.cmp(&right.0));
        let mut directories: Vec<_> = list.common_prefixes.iter().map(name).collect();
        directories.sort_unstable();
        Ok((objects, directories))
    }

    /// Lists a run's objects.
    pub(super) fn find_objects(&self, run: &str) -> object_store::Result<Found> {
        let mut found = Found::default();
        let (files, directories) = self.list(&format!("runs/{run}"))?;
        let strange = directories.iter().filter(|directory| !DIRECTORIES.contains(&directory.as_str()));
        let foreign = files.iter().map(|(name, _)| name).chain(strange);
        found.foreign.extend(foreign.map(|name| format!("runs/{run}/{name}")));
        for directory in DIRECTORIES.into_iter().filter(|directory| directories.iter().any(|there| there == directory))
        {
            let (objects, inner) = self.list(&format!("runs/{run}/{directory}"))?;
            found.foreign.extend(inner.into_iter().map(|name| format!("runs/{run}/{directory}/{name}")));
            for (name, meta) in objects {
                let name = format!("{directory}/{name}");
                if is_ours(&name, directory) {
                    found.sizes.insert(name.clone(), meta.size);
                    found.ours.push(name);
                    let written = Some(SystemTime::from(meta.last_modified));
                    found.modified = found.modified.max(written);
                    match directory {
                        FINISHED => found.finished = found.finished.max(written),
                        ORDER => found.ordered = found.ordered.max(written),
                        _ => {}
                    }
                } else {
                    found.foreign.push(format!("runs/{run}/{name}"));
                }
            }
        }
        Ok(found)
    }

    /// Creates an object if absent. Returns true if the object has these bytes now, false if it has others.
    pub(super) fn put(&self, name: &str, bytes: &Bytes) -> object_store::Result<bool> {
        self.wait(answer::create(&*self.objects, &Path::from(name), bytes))
    }

    /// Creates objects if absent, all at the same time. Returns for each what [`Store::put`] returns. With [`Waits::Once`]
    /// the first one that is not created ends the list, and in a bucket, which has no syncs, the first one is the only one.
    pub(super) fn put_all(&self, objects: &[(&str, &Bytes)], waits: Waits) -> Vec<object_store::Result<bool>> {
        let Some(root) = &self.directory else {
            if waits == Waits::Once {
                return objects.iter().map(|(name, bytes)| self.put(name, bytes)).take(1).collect();
            }
            let paths: Vec<(Path, &Bytes)> = objects.iter().map(|(name, bytes)| (Path::from(*name), *bytes)).collect();
            return self.wait(join_all(paths.iter().map(|(path, bytes)| answer::create(&*self.objects, path, bytes))));
        };
        let created = disk::create(root, objects, waits);
        self.ended.fetch_add(1, Ordering::Relaxed);
        let outcome = |((name, bytes), created): (&(&str, &Bytes), io::Result<bool>)| match created {
            Ok(true) => Ok(true),
            // The name is taken, perhaps by a directory.
            Ok(false) => self.put(name, bytes),
            Err(error) => Err(object_store::Error::Generic { store: "directory", source: Box::new(error) }),
        };
        objects.iter().zip(created).map(outcome).collect()
    }

    /// Creates an object whose name contains the digest of its content.
    pub(super) fn create(&self, name: &str, bytes: &Bytes) -> Result<(), StoreFault> {
        if self.put(name, bytes).map_err(|error| self.not_written(name, &error))? {
            return Ok(());
        }
        // The existing object is damaged. It was ignored when the run was loaded, and its state was computed again. Now the
        // correct object replaces it.
        tracing::warn!("the object {name} in {} is damaged and is replaced", self.shown);
        let path = Path::from(name);
        self.wait(answer::remove(&*self.objects, &path)).map_err(|error| self.not_written(name, &error))?;
        match self.put(name, bytes).map_err(|error| self.not_written(name, &error))? {
            true => Ok(()),
            false => Err(StoreFault::Failed(format!("the object {name} in the store {} is damaged again", self.shown))),
        }
    }

    /// Removes objects. An object that is already gone is not an error.
    pub(super) fn remove(&self, names: Vec<String>) -> object_store::Result<()> {
        let paths = futures_util::stream::iter(names.into_iter().map(|name| Ok(Path::from(name)))).boxed();
        self.wait(async {
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

    /// Waits for an operation on objects.
    pub(super) fn wait<T>(&self, operation: impl Future<Output = T>) -> T {
        let outcome = self.runtime.block_on(operation);
        self.ended.fetch_add(1, Ordering::Relaxed);
        outcome
    }

    /// Like [`Store::wait`], for reading. A directory is read on this thread: within a runtime, `object_store` would pass each
    /// step to another thread, which costs more than the step, and a start takes thousands of steps.
    pub(super) fn wait_here<T>(&self, operation: impl Future<Output = T>) -> T {
        let mut operation = pin!(operation);
        if self.directory.is_some()
            && let Poll::Ready(outcome) = operation.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        {
            self.ended.fetch_add(1, Ordering::Relaxed);
            return outcome;
        }
        self.wait(operation)
    }

    pub(super) fn not_written(&self, name: &str, error: &object_store::Error) -> StoreFault {
        let (shown, cause) = (&self.shown, cause(error));
        StoreFault::Failed(format!(
            "the object {name} cannot be written in the store {shown}: {cause}: check free space and permissions"
        ))
    }

    pub(super) fn unreadable(&self, name: &str, error: &object_store::Error) -> StoreError {
        let outlook = if self.directory.is_none() { answer::outlook(error) } else { Outlook::Stays };
        StoreError::Unreadable { place: self.shown.clone(), name: name.to_owned(), cause: cause(error), outlook }
    }
}

/// Whether an object's name, relative to its run, is one that this program creates.
pub(super) fn is_ours(name: &str, directory: &str) -> bool {
    let Some((_, file)) = name.split_once('/') else { return false };
    match directory {
        "poison" => file
            .strip_suffix(".task")
            .is_some_and(|hash| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())),
        _ => object_named(name, directory).is_some(),
    }
}
