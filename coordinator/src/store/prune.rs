//! Deletion: old checkpoints, whole runs, and files that a killed process left half written. Foreign objects are never
//! deleted.

use super::{Store, answer::cause, load::DIRECTORIES};
use crate::{core::StoreFault, names::object_named};

/// The number of newest checkpoints that stay: if the newest is damaged, an older one is used.
const NEWEST_KEPT: usize = 3;
/// Checkpoints whose number is a multiple of this stay, as a record.
const KEPT_EVERY: u64 = 64;

impl Store {
    /// Removes checkpoints that are neither among the newest nor a multiple of [`KEPT_EVERY`].
    pub(super) fn prune_checkpoints(&mut self, run: &str) {
        let known = self.known(run);
        let old = known.checkpoints.keys().rev().skip(NEWEST_KEPT).filter(|(_, number)| number % KEPT_EVERY != 0);
        let old: Vec<(u64, u64)> = old.copied().collect();
        let names = old.iter().flat_map(|place| &known.checkpoints[place]);
        let names: Vec<String> = names.map(|name| format!("runs/{run}/{name}")).collect();
        if names.is_empty() {
            return;
        }
        // The new checkpoint is written. That old ones stay is harmless, and their removal is tried again.
        match self.remove(names) {
            Ok(()) => self.known(run).checkpoints.retain(|place, _| !old.contains(place)),
            Err(error) => tracing::warn!("old checkpoints of run {run} cannot be removed: {}", cause(&error)),
        }
    }

    pub(super) fn drop_checkpoints(&mut self, run: &str) -> Result<(), StoreFault> {
        let removed = self.list(&format!("runs/{run}/checkpoint")).and_then(|(objects, _)| {
            let names = objects.into_iter().map(|(name, _)| format!("checkpoint/{name}"));
            let ours = names.filter(|name| object_named(name, "checkpoint").is_some());
            self.remove(ours.map(|name| format!("runs/{run}/{name}")).collect())
        });
        removed.map_err(|error| self.not_removed(run, "the checkpoints", &error))?;
        self.known(run).checkpoints.clear();
        Ok(())
    }

    /// Removes all of this program's objects of a run.
    pub(super) fn delete_run(&mut self, run: &str) -> Result<(), StoreFault> {
        self.sweep_staged(run);
        let removed = self.find_objects(run).and_then(|found| {
            for directory in DIRECTORIES {
                let below = format!("{directory}/");
                let ours = found.ours.iter().filter(|name| name.starts_with(&below));
                let mut names: Vec<String> = ours.map(|name| format!("runs/{run}/{name}")).collect();
                // The first order goes last and alone: without it the others are those of a deleted run.
                names.sort_unstable_by(|one, two| two.cmp(one));
                let first = if directory == "order" { names.pop() } else { None };
                self.remove(names)?;
                self.remove(first.into_iter().collect())?;
            }
            Ok(())
        });
        removed.map_err(|error| self.not_removed(run, "the objects", &error))?;
        self.runs.remove(run);
        Ok(())
    }

    pub(super) fn not_removed(&self, run: &str, what: &str, error: &object_store::Error) -> StoreFault {
        let (shown, cause) = (&self.shown, cause(error));
        StoreFault::Failed(format!("{what} of run {run} cannot be removed from the store {shown}: {cause}"))
    }

    /// Removes files that killed writers left in a directory: an object's name with `#1` appended, which the listing
    /// does not show. Their writers are dead or do not lead any more.
    pub(super) fn sweep_staged(&self, run: &str) {
        let Some(root) = &self.directory else { return };
        for directory in DIRECTORIES {
            let Ok(entries) = std::fs::read_dir(root.join("runs").join(run).join(directory)) else { continue };
            for entry in entries.flatten() {
                let name = entry.file_name();
                let staged = name.to_str().and_then(|name| name.rsplit_once('#')).is_some_and(|(object, number)| {
                    let ours = super::load::is_ours(&format!("{directory}/{object}"), directory);
                    ours && number.bytes().all(|byte| byte.is_ascii_digit())
                });
                if staged && let Err(error) = std::fs::remove_file(entry.path()) {
                    tracing::warn!("{} cannot be removed: {error}", entry.path().display());
                }
            }
        }
    }
}
