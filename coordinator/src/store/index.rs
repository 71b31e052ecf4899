//! Writing the index of a run's finished replicas: see [`crate::index`]. A start reads every finished replica that no index has, so there
//! must be few. An index is written again when the objects since the last one are many, or large compared with the index itself: so all
//! indices of a run together have few bytes beside its finished replicas.

use std::{collections::BTreeMap, mem};

use bytes::Bytes;

use super::{Store, answer::cause, objects::Found};
use crate::{
    index::{ENTRY_BYTES, Index, entry},
    names::{INDEX, index_name, object_named},
    saved::{SavedFinished, SavedRun},
};

/// When an index is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thresholds {
    /// So many objects without an index...
    pub(super) objects: u64,
    /// ... or so many bytes of them.
    pub(super) bytes: u64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { objects: 64, bytes: 128 << 10 }
    }
}

/// An index pays if the objects have so many times its bytes.
const BYTES_FACTOR: u64 = 8;
/// The newest indices that stay: if the newest one is damaged, the one before has most of it.
const KEPT: usize = 2;

/// What a store knows of a run's index.
#[derive(Debug, Default)]
pub(super) struct Indexed {
    /// The newest valid index, by its name below `runs/RUN/`.
    object: Option<String>,
    /// The highest number of an index.
    number: u64,
    /// The replicas in it.
    replicas: u64,
    /// Finished replicas that are in no index, by the names of their objects.
    others: BTreeMap<String, SavedFinished>,
    /// The bytes of their objects.
    bytes: u64,
    /// The names of all indices below the run, the newest last.
    names: Vec<String>,
}

impl Indexed {
    /// The index of a run that was loaded.
    pub(super) fn of(found: &Found, saved: &SavedRun) -> Self {
        let others = saved.finished.iter().filter(|it| !it.indexed);
        let others: BTreeMap<_, _> = others.map(|it| (it.object.clone(), it.clone())).collect();
        let mut names: Vec<_> = found.ours.iter().filter_map(|name| object_named(name, INDEX)).collect();
        names.sort_unstable();
        Self {
            object: saved.index.as_ref().map(|(object, _)| object.clone()),
            number: saved.index_number,
            replicas: (saved.finished.len() - others.len()) as u64,
            bytes: others.values().map(|it| it.bytes).sum(),
            others,
            names: names.into_iter().map(|named| named.object).collect(),
        }
    }

    /// Whether another index should be written; `at_rest`: nothing more will finish soon.
    fn is_due(&self, than: Thresholds, at_rest: bool) -> bool {
        let others = self.others.len() as u64;
        let indexed = if at_rest { 0 } else { self.replicas };
        let costs = BYTES_FACTOR * ENTRY_BYTES * (indexed + others);
        others >= than.objects.max(indexed) || self.bytes >= than.bytes.max(costs)
    }
}

impl Store {
    /// A finished replica is stored as this object.
    pub(super) fn note_finished(&mut self, run: &str, object: &str, bytes: &Bytes) {
        let Some(entry) = entry(object, bytes) else { return };
        let thresholds = self.thresholds;
        let indexed = &mut self.known(run).indexed;
        let bytes = entry.bytes;
        // The core repeats a write that failed in part.
        if indexed.others.insert(object.to_owned(), entry).is_none() {
            indexed.bytes += bytes;
        }
        if indexed.is_due(thresholds, false) {
            self.write_index(run);
        }
    }

    /// Writes an index if the next start would otherwise read much.
    pub(super) fn index_at_rest(&mut self, run: &str) {
        let thresholds = self.thresholds;
        if self.known(run).indexed.is_due(thresholds, true) {
            self.write_index(run);
        }
    }

    /// Writes the next index. A failure costs nothing but time at the next start.
    fn write_index(&mut self, run: &str) {
        let epoch = self.epoch.as_ref().map_or(0, |epoch| epoch.number);
        let known = self.known(run).indexed.object.clone();
        // Kept in the store and not in memory, since there may be many runs. Without it the objects are read at the next start.
        let known = known.and_then(|name| self.get(&format!("runs/{run}/{name}")).ok());
        let mut index = known.and_then(|bytes| Index::read(&bytes).ok()).unwrap_or_default();
        let indexed = &mut self.known(run).indexed;
        let others = mem::take(&mut indexed.others);
        others.values().cloned().for_each(|entry| index.add(entry));
        indexed.number += 1;
        let bytes = index.sealed();
        let name = index_name(epoch, indexed.number, &bytes);
        if let Err(error) = self.put(&format!("runs/{run}/{name}"), &bytes) {
            tracing::warn!("the index of run {run} cannot be written, and is tried again: {}", cause(&error));
            self.known(run).indexed.others = others;
            return;
        }
        let indexed = &mut self.known(run).indexed;
        (indexed.replicas, indexed.bytes, indexed.object) = (index.len() as u64, 0, Some(name.clone()));
        indexed.names.push(name);
        let old = indexed.names.len().saturating_sub(KEPT);
        let old: Vec<String> = indexed.names.drain(..old).map(|name| format!("runs/{run}/{name}")).collect();
        if !old.is_empty()
            && let Err(error) = self.remove(old)
        {
            tracing::warn!("old indices of run {run} cannot be removed: {}", cause(&error));
        }
    }
}
