//! Writing the index of a run's finished replicas: see [`crate::index`].
//!
//! A starting coordinator reads every finished replica that is in no index, so there must be few of these. A new index is
//! written when the replicas finished since the last one are many, or large compared with the index itself. All indices of a
//! run together are therefore small compared with its finished replicas.

use std::{collections::BTreeMap, mem, sync::Arc};

use bytes::Bytes;

use super::{Store, answer::cause, objects::Found};
use crate::{
    index::{ENTRY_BYTES, Index, PackEntry, entry},
    names::{INDEX, copy_name, index_name, object_named},
    saved::SavedRun,
};

/// When a new index is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thresholds {
    /// At so many replicas that are in no index...
    pub(super) replicas: u64,
    /// ... or at so many bytes of such replicas.
    pub(super) bytes: u64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { replicas: 64, bytes: 128 << 10 }
    }
}

/// A new index pays off if the replicas have so many times its bytes.
const BYTES_FACTOR: u64 = 8;
/// How many of the newest indices are kept. If the newest one is damaged, the one before has most of its content.
const KEPT: usize = 2;

/// What a store knows about a run's index.
#[derive(Debug, Default)]
pub(super) struct Indexed {
    /// The newest valid index, by its name below `runs/RUN/`.
    object: Option<String>,
    /// The highest number of an index so far.
    number: u64,
    /// How many replicas that index has.
    replicas: u64,
    /// Objects of finished replicas that are in no index, by name.
    others: BTreeMap<Arc<str>, PackEntry>,
    /// The names of all indices of the run, newest last.
    names: Vec<String>,
}

impl Indexed {
    /// The state of the index of a run that was just loaded.
    pub(super) fn of(found: &Found, saved: &SavedRun) -> Self {
        let (mut others, mut replicas) = (BTreeMap::<Arc<str>, PackEntry>::new(), 0);
        for it in saved.finished.iter().chain(&saved.superseded) {
            if it.indexed {
                replicas += 1;
                continue;
            }
            let object = &it.place.object;
            let read = if it.from_copy { copy_name(object) } else { Some(object.to_string()) };
            let bytes = read.and_then(|name| found.sizes.get(&name).copied()).unwrap_or_default();
            let entry = others.entry(Arc::clone(object)).or_insert(PackEntry { bytes, replicas: Vec::new() });
            entry.replicas.push(it.clone());
        }
        others.values_mut().for_each(|entry| entry.replicas.sort_by_key(|it| it.place.offset));
        let mut names: Vec<_> = found.ours.iter().filter_map(|name| object_named(name, INDEX)).collect();
        names.sort_unstable();
        Self {
            object: saved.index.as_ref().map(|(object, _)| object.clone()),
            number: saved.index_number,
            replicas,
            others,
            names: names.into_iter().map(|named| named.object).collect(),
        }
    }

    /// Whether a new index should be written. `at_rest` means that no more replicas will finish soon.
    fn is_due(&self, than: Thresholds, at_rest: bool) -> bool {
        let others: u64 = self.others.values().map(|entry| entry.replicas.len() as u64).sum();
        let bytes: u64 = self.others.values().map(|entry| entry.bytes).sum();
        let indexed = if at_rest { 0 } else { self.replicas };
        let costs = BYTES_FACTOR * ENTRY_BYTES * (indexed + others);
        others >= than.replicas.max(indexed) || bytes >= than.bytes.max(costs)
    }
}

impl Store {
    /// Notes that finished replicas were stored as this object. It replaces an earlier note of the same object.
    pub(super) fn note_finished(&mut self, run: &str, object: &str, pack: &Bytes) {
        let Some(entry) = entry(object, pack) else { return };
        let thresholds = self.thresholds;
        let indexed = &mut self.known(run).indexed;
        indexed.others.insert(object.into(), entry);
        if indexed.is_due(thresholds, false) {
            self.write_index(run);
        }
    }

    /// Writes an index if the next start would otherwise have to read many objects.
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
        // The index is read from the store and not kept in memory, because there may be many runs. If it cannot be read, the
        // next start reads the objects instead.
        let known = known.and_then(|name| self.get(&format!("runs/{run}/{name}")).ok());
        let mut index = known.and_then(|bytes| Index::read(&bytes).ok()).unwrap_or_default();
        let indexed = &mut self.known(run).indexed;
        let others = mem::take(&mut indexed.others);
        others.iter().for_each(|(object, entry)| index.add(Arc::clone(object), entry.clone()));
        indexed.number += 1;
        let bytes = index.sealed();
        let name = index_name(epoch, indexed.number, &bytes);
        if let Err(error) = self.put(&format!("runs/{run}/{name}"), &bytes) {
            tracing::warn!("the index of run {run} cannot be written and will be retried: {}", cause(&error));
            self.known(run).indexed.others = others;
            return;
        }
        let indexed = &mut self.known(run).indexed;
        (indexed.replicas, indexed.object) = (index.replicas() as u64, Some(name.clone()));
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
