//! Objects that the store has twice: those of finished replicas and the newest checkpoint. With the copy, one damaged or missing
//! object never makes a run repeat a computation. Both objects have the same bytes, and the digest of these bytes in their
//! names, so each can be checked on its own.
//!
//! A replica or a checkpoint counts as stored when both objects are written. If one cannot be written, both are retried.
//! Whoever loads the run later rewrites objects that a crash or damage has lost.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use bytes::Bytes;
use evoxo_common::envelope::mark;

use super::{Store, answer, disk::Waits, objects::Found, reader::is_good};
use crate::{
    core::{Mended, StoreFault},
    names::{CHECKPOINT, CHECKPOINT_COPY, FINISHED, copy_name, finished_name, object_named},
    pack::{PackPlace, pack, places},
    saved::SavedRun,
};

/// An object of finished replicas whose write has failed, perhaps after one of the two objects was created.
#[derive(Clone, Debug)]
pub(super) struct Unwritten {
    name: String,
    bytes: Bytes,
    places: Vec<PackPlace>,
}

impl Store {
    /// Writes an object and its copy; `name` is the first object's, relative to the run. Returns the names of the objects
    /// written, relative to the run, and the first failure.
    fn write_twice(&self, run: &str, name: &str, bytes: &Bytes) -> (Vec<String>, Result<(), StoreFault>) {
        let both: Vec<String> = [Some(name.to_owned()), copy_name(name)].into_iter().flatten().collect();
        // Both are written at the same time, so the copy costs hardly any time on a disk or a bucket.
        let objects: Vec<String> = both.iter().map(|name| format!("runs/{run}/{name}")).collect();
        let created: Vec<(&str, &Bytes)> = objects.iter().map(|object| (object.as_str(), bytes)).collect();
        let created = self.put_all(&created, Waits::Twice);
        self.end_write(both.into_iter().zip(objects).zip(created), bytes)
    }

    /// What became of an object and its copy, after the attempt to create each by its name in the run and in the store.
    fn end_write(
        &self,
        both: impl Iterator<Item = ((String, String), object_store::Result<bool>)>,
        bytes: &Bytes,
    ) -> (Vec<String>, Result<(), StoreFault>) {
        let (mut written, mut outcome) = (Vec::new(), Ok(()));
        for ((name, object), created) in both {
            let created = match created {
                Ok(true) => Ok(()),
                // The existing object is damaged.
                Ok(false) => self.create(&object, bytes),
                Err(error) => Err(self.not_written(&object, &error)),
            };
            match created {
                Ok(()) => written.push(name),
                Err(fault) => outcome = outcome.and(Err(fault)),
            }
        }
        (written, outcome)
    }

    /// Writes finished replicas of a run in one object and its copy. Returns for each where it is.
    ///
    /// Replicas whose write has failed before keep their object. Otherwise each retry would leave another half of one behind.
    pub(super) fn write_finished(&mut self, run: &str, replicas: &[Bytes]) -> Vec<Result<PackPlace, StoreFault>> {
        self.hold_finished(run, replicas);
        let outcome = self.write_unwritten(run);
        let late = &mut self.known(run).late;
        let place = |sealed: &Bytes| match late.iter().position(|place| mark(sealed) == Some(place.mark)) {
            Some(at) => Ok(late.swap_remove(at)),
            None => Err(outcome.clone().expect_err("a replica that is not written has failed")),
        };
        replicas.iter().map(place).collect()
    }

    /// Holds finished replicas to be written as one object, except those that wait for that already or are written.
    pub(super) fn hold_finished(&mut self, run: &str, replicas: &[Bytes]) {
        let epoch = self.epoch.as_ref().map_or(0, |epoch| epoch.number);
        let known = self.known(run);
        let waiting = known.unwritten.iter().flat_map(|pack| &pack.places).chain(&known.late);
        let held: BTreeSet<u64> = waiting.map(|place| place.mark).collect();
        let is_new = |sealed: &&Bytes| mark(sealed).is_none_or(|mark| !held.contains(&mark));
        let new: Vec<Bytes> = replicas.iter().filter(is_new).cloned().collect();
        if new.is_empty() {
            return;
        }
        known.pack_number += 1;
        let bytes = pack(&new);
        let name = finished_name(epoch, known.pack_number, new.len(), &bytes);
        known.unwritten.push(Unwritten { places: places(&name, &new), name, bytes });
    }

    /// Writes the finished replicas that are held. One that cannot be written does not keep the others from it.
    fn write_unwritten(&mut self, run: &str) -> Result<(), StoreFault> {
        let mut outcome = Ok(());
        for held in mem::take(&mut self.known(run).unwritten) {
            let (_, written) = self.write_twice(run, &held.name, &held.bytes);
            match written {
                Ok(()) => {
                    self.note_finished(run, &held.name, &held.bytes);
                    self.known(run).late.extend(held.places);
                }
                Err(fault) => {
                    self.known(run).unwritten.push(held);
                    outcome = outcome.and(Err(fault));
                }
            }
        }
        outcome
    }

    /// Writes a checkpoint and its copy, and removes the checkpoints that it replaces; `name` is the first object's, relative
    /// to the run. At most `keep` bytes of states stay for forks.
    pub(super) fn write_checkpoint(
        &mut self,
        run: &str,
        name: &str,
        bytes: &Bytes,
        keep: u64,
    ) -> Result<(), StoreFault> {
        // The checkpoint was sealed after the held replicas had finished, so their states would be in neither object, and after a
        // crash the replicas would be computed from their beginning.
        self.write_unwritten(run)?;
        let (written, outcome) = self.write_twice(run, name, bytes);
        // If only one of the two was written, it is still a valid checkpoint. It is pruned when its turn comes.
        written.iter().for_each(|name| self.know_checkpoint(run, name));
        outcome?;
        self.keep_checkpoint(run, name, bytes, keep);
        self.prune_checkpoints(run);
        Ok(())
    }

    /// Remembers a checkpoint or the copy of one.
    pub(super) fn know_checkpoint(&mut self, run: &str, name: &str) {
        let named = [CHECKPOINT, CHECKPOINT_COPY].iter().find_map(|directory| object_named(name, directory));
        let Some(named) = named else { return };
        self.known(run).checkpoints.entry((named.epoch, named.number)).or_default().insert(name.to_owned());
    }

    /// Reads an object of finished replicas and its copy. If one is damaged or missing, it is rewritten from the other. If neither
    /// is good, both are removed, so nobody who loads the run later takes the replicas for finished.
    pub(super) fn mend(&mut self, run: &str, object: &str) -> Result<Mended, StoreFault> {
        let (mut good, mut bad) = (None, Vec::new());
        for name in [Some(object.to_owned()), copy_name(object)].into_iter().flatten() {
            let name = format!("runs/{run}/{name}");
            match self.get(&name) {
                Ok(bytes) if is_good(object, &bytes) => good = Some((name, bytes)),
                Ok(_) => bad.push((name, "damaged")),
                Err(object_store::Error::NotFound { .. }) => bad.push((name, "missing")),
                Err(error) => {
                    let (shown, cause) = (&self.shown, answer::cause(&error));
                    return Err(StoreFault::Failed(format!("{name} in the store {shown} cannot be read: {cause}")));
                }
            }
        }
        match (good, bad.as_slice()) {
            (Some((other, bytes)), [(name, state)]) => {
                self.write_second(name, &bytes).map_err(StoreFault::Failed)?;
                Ok(Mended::Again(format!("the object {name} was {state} and was rewritten from {other}")))
            }
            (Some(_), _) => Ok(Mended::Good),
            (None, _) => {
                let what: Vec<String> = bad.iter().map(|(name, state)| format!("{name} ({state})")).collect();
                let removed = self.remove(bad.into_iter().map(|(name, _)| name).collect());
                removed.map_err(|error| self.not_removed(run, "a damaged object", &error))?;
                self.known(run).late.retain(|place| &*place.object != object);
                let then = object_named(object, FINISHED).map(|named| named.computed_again()).unwrap_or_default();
                Ok(Mended::Lost(format!("neither {} can be used: {then}", what.join(" nor "))))
            }
        }
    }

    /// Rewrites damaged or missing objects of a run's finished replicas and newest checkpoint. The first objects have been
    /// read already; a copy is only checked for existence and size. The first failed write ends the mending until the next
    /// start.
    pub(super) fn mend_copied(&mut self, found: &Found, saved: &mut SavedRun) {
        let SavedRun { name: run, finished, checkpoint, notices, .. } = saved;
        let checkpoint = checkpoint.iter().filter_map(|it| Some((it.object.as_deref()?, it.from_copy)));
        let finished = finished.iter().map(|it| (&*it.place.object, it.from_copy));
        let mut copied = 0;
        for (object, from_copy) in checkpoint.chain(finished).collect::<BTreeMap<&str, bool>>() {
            let Some(copy) = copy_name(object) else { continue };
            let size = |name: &str| found.sizes.get(name);
            let (object, good) = match from_copy {
                true => (object, copy.as_str()),
                false if size(&copy) != size(object) => (copy.as_str(), object),
                false => continue,
            };
            let was_there = size(object).is_some();
            let (object, other) = (format!("runs/{run}/{object}"), format!("runs/{run}/{good}"));
            if found.foreign.contains(&object) {
                notices.push(format!(
                    "{object} is not an object, so the store has no second copy of {other}: remove {object}, and the \
                     next start writes the copy there"
                ));
                continue;
            }
            // An object that cannot be read now is not damaged.
            let Ok(bytes) = self.get(&other) else { continue };
            if !object_named(good, good.split('/').next().unwrap_or_default()).is_some_and(|good| good.is_of(&bytes)) {
                continue;
            }
            let state = if was_there { "damaged" } else { "missing" };
            match self.write_second(&object, &bytes) {
                // A coordinator may have been killed before it wrote one.
                Ok(()) if !from_copy && !was_there => copied += 1,
                Ok(()) => notices.push(format!("the object {object} was {state} and was rewritten from {other}")),
                Err(why) => {
                    notices.push(format!("the object {object} is {state} and cannot be rewritten: {why}"));
                    break;
                }
            }
        }
        if copied > 0 {
            tracing::info!(
                "run {run}: {copied} checkpoints and objects of finished replicas had no copy in the store {}, and have one now",
                self.shown
            );
        }
    }
}
