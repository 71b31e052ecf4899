//! Deletion: old checkpoints, whole runs, and files that a killed process left half written. Foreign objects are never
//! deleted.
//!
//! A removal may come late: the coordinator is suspended after it has checked that it leads, and another one leads when it
//! resumes. So nothing is removed that a later epoch wrote, or that a later leader may need.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::{
    Store,
    answer::cause,
    disk::Waits,
    objects::{DIRECTORIES, is_ours},
};
use crate::{
    core::StoreFault,
    names::{CHECKPOINT, CHECKPOINT_COPY, DELETED, ORDER, ORDER_COPY, deleted_name, object_named},
};

/// How many of the newest checkpoints are kept. If the newest is damaged, an older one is used.
const NEWEST_KEPT: usize = 3;
/// The content of the object that marks a run as deleted.
const DELETION: &[u8] = b"This run is deleted: who leads removes what is left of it.\n";

impl Store {
    /// Removes all but the newest checkpoints, and the copies of all but the newest one.
    pub(super) fn prune_checkpoints(&mut self, run: &str) {
        let is_copy = |name: &str| name.starts_with(CHECKPOINT_COPY);
        let mut old = BTreeSet::new();
        for (newer, names) in self.known(run).checkpoints.values().rev().enumerate().skip(1) {
            old.extend(names.iter().filter(|name| newer >= NEWEST_KEPT || is_copy(name)).cloned());
        }
        if old.is_empty() {
            return;
        }
        // The new checkpoint has been written twice. Old ones that stay do no harm, and the next checkpoint retries their
        // removal.
        match self.remove(old.iter().map(|name| format!("runs/{run}/{name}")).collect()) {
            Ok(()) => self.known(run).checkpoints.retain(|_, names| {
                names.retain(|name| !old.contains(name));
                !names.is_empty()
            }),
            Err(error) => tracing::warn!("old checkpoints of run {run} cannot be removed: {}", cause(&error)),
        }
    }

    /// Removes the checkpoints of a finished run. Those of later epochs stay, because a later leader may have extended the run.
    pub(super) fn drop_checkpoints(&mut self, run: &str) -> Result<(), StoreFault> {
        let epoch = self.own_epoch();
        for directory in [CHECKPOINT_COPY, CHECKPOINT] {
            let removed = self.list(&format!("runs/{run}/{directory}")).and_then(|(objects, _)| {
                let names = objects.into_iter().map(|(name, _)| format!("{directory}/{name}"));
                let ours = names.filter(|name| object_named(name, directory).is_some_and(|named| named.epoch <= epoch));
                self.remove(ours.map(|name| format!("runs/{run}/{name}")).collect())
            });
            removed.map_err(|error| self.not_removed(run, "the checkpoints", &error))?;
        }
        self.known(run).checkpoints.clear();
        Ok(())
    }

    /// Deletes a run: first records the deletion, then removes the run's objects. Like an order, the record is valid if this
    /// coordinator still leads afterwards. A later leader then sees the record and removes the rest.
    pub(super) fn delete_run(&mut self, run: &str) -> Result<(), StoreFault> {
        let known = self.known(run);
        let Some(born) = known.born else { return Ok(()) };
        let name = format!("runs/{run}/{}", deleted_name(born, known.order_number));
        // Only the name counts.
        let marked = self.put_all(&[(&name, &Bytes::from_static(DELETION))], Waits::Once).pop();
        marked.expect("there is an outcome for each object").map_err(|error| self.not_written(&name, &error))?;
        self.check_leadership()?;
        self.remove_deleted(run, born).map_err(|error| self.not_removed(run, "the objects", &error))?;
        self.runs.remove(run);
        Ok(())
    }

    /// Removes the objects of a deleted run that was submitted in epoch `born`, and leftovers of earlier runs. Objects of a
    /// run of the same name that was submitted later are kept.
    pub(super) fn remove_deleted(&self, run: &str, born: u64) -> object_store::Result<()> {
        self.sweep_staged(run);
        let found = self.find_objects(run)?.ours;
        let of = |directory: &str| found.iter().filter_map(|name| object_named(name, directory)).collect::<Vec<_>>();
        let orders = [of(ORDER), of(ORDER_COPY)].concat();
        let next = orders.iter().map(|order| order.epoch).filter(|epoch| *epoch > born).min();
        let until = next.map_or(self.own_epoch(), |next| self.own_epoch().min(next - 1));
        for directory in DIRECTORIES {
            let last = if [ORDER, ORDER_COPY, DELETED].contains(&directory) { born } else { until };
            let is_old = |name: &str| object_named(name, directory).map_or(next.is_none(), |it| it.epoch <= last);
            let below = format!("{directory}/");
            let ours = found.iter().filter(|name| name.starts_with(&below) && is_old(name));
            self.remove(ours.map(|name| format!("runs/{run}/{name}")).collect())?;
        }
        Ok(())
    }

    fn own_epoch(&self) -> u64 {
        self.epoch.as_ref().map_or(0, |epoch| epoch.number)
    }

    pub(super) fn not_removed(&self, run: &str, what: &str, error: &object_store::Error) -> StoreFault {
        let (shown, cause) = (&self.shown, cause(error));
        StoreFault::Failed(format!("{what} of run {run} cannot be removed from the store {shown}: {cause}"))
    }

    /// Removes files that killed writers left in a directory. Such a file has an object's name with `#1` appended, and
    /// listings do not show it. Its writer is dead or no longer leads.
    pub(super) fn sweep_staged(&self, run: &str) {
        let Some(root) = &self.directory else { return };
        for directory in DIRECTORIES {
            let Ok(entries) = std::fs::read_dir(root.join("runs").join(run).join(directory)) else { continue };
            for entry in entries.flatten() {
                let name = entry.file_name();
                let staged = name.to_str().and_then(|name| name.rsplit_once('#')).is_some_and(|(object, number)| {
                    let ours = is_ours(&format!("{directory}/{object}"), directory);
                    ours && number.bytes().all(|byte| byte.is_ascii_digit())
                });
                if staged && let Err(error) = std::fs::remove_file(entry.path()) {
                    tracing::warn!("{} cannot be removed: {error}", entry.path().display());
                }
            }
        }
    }
}
