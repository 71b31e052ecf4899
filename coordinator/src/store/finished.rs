//! Finished replicas. Each is in the store twice, so that no damaged or missing object makes a run compute a replica again: its
//! checkpoints are pruned, and after the end of the run there are none.
//!
//! A replica is stored when both objects are there. If the copy cannot be written, both are tried again. Whoever loads the run later
//! writes again what a crash or damage has left out.

use std::time::Instant;

use bytes::Bytes;
use futures_util::future::join_all;
use object_store::path::Path;

use super::{Reader, Store, answer, load::Found};
use crate::{
    core::StoreFault,
    names::{FINISHED, finished_copy_name, object_named},
    saved::SavedRun,
};

impl Store {
    /// Writes a finished replica and its copy; `name` is that of the first, below the run.
    pub(super) fn write_finished(&mut self, run: &str, name: &str, bytes: &Bytes) -> Result<(), StoreFault> {
        let both: Vec<String> = [Some(name.to_owned()), finished_copy_name(name)]
            .into_iter()
            .flatten()
            .map(|name| format!("runs/{run}/{name}"))
            .collect();
        // At the same time, so that the copy costs a disk or a bucket hardly any time.
        let paths: Vec<Path> = both.iter().map(|name| Path::from(name.as_str())).collect();
        let created = self.wait(join_all(paths.iter().map(|path| answer::create(&*self.objects, path, bytes))));
        let written = both.iter().zip(created).try_for_each(|(name, created)| match created {
            Ok(true) => Ok(()),
            // It is damaged.
            Ok(false) => self.create(name, bytes),
            Err(error) => Err(self.not_written(name, &error)),
        });
        match &written {
            Ok(()) => drop(self.known(run).unwritten.remove(name)),
            Err(_) => drop(self.known(run).unwritten.insert(name.to_owned())),
        }
        written
    }

    /// Refuses a checkpoint that was sealed after a replica had finished and could not be written: its state is in neither, and after a
    /// crash the replica would be computed from its beginning. The core writes the replica first, and then another checkpoint.
    pub(super) fn check_finished_written(&mut self, run: &str) -> Result<(), StoreFault> {
        let unwritten = std::mem::take(&mut self.known(run).unwritten);
        let Some(name) = unwritten.first() else { return Ok(()) };
        Err(StoreFault::Failed(format!(
            "a checkpoint of run {run} waits for {name}, which cannot be written in the store {}",
            self.shown
        )))
    }

    /// Removes a finished replica. The copy goes first: what is left after a crash is removed by whoever leads next.
    pub(super) fn unfinish(&self, run: &str, object: &str) -> Result<(), StoreFault> {
        let both = [finished_copy_name(object), Some(object.to_owned())];
        let removed = self.remove(both.into_iter().flatten().map(|name| format!("runs/{run}/{name}")).collect());
        removed.map_err(|error| self.not_removed(run, "a void replica", &error))
    }

    /// Writes again what is damaged or missing of the finished replicas of a run. The objects have been read; of their copies it is enough
    /// that they are there and have as many bytes. The first one that cannot be written ends it until the next start, and so does this time
    /// for copies that were never written.
    pub(super) fn mend_finished(&mut self, found: &Found, saved: &mut SavedRun, until: Instant) {
        let (run, mut copied, mut left) = (&saved.name, 0, 0);
        for it in &saved.finished {
            let Some(copy) = finished_copy_name(&it.object) else { continue };
            let size = |name: &str| found.sizes.get(name);
            let (object, good) = match it.from_copy {
                true => (&it.object, &copy),
                false if size(&copy) != size(&it.object) => (&copy, &it.object),
                false => continue,
            };
            let was_there = size(object).is_some();
            if !it.from_copy && !was_there && Instant::now() > until {
                left += 1;
                continue;
            }
            let (object, other) = (format!("runs/{run}/{object}"), format!("runs/{run}/{good}"));
            if found.foreign.contains(&object) {
                let what = format!("{object} is not an object, and its replica is in the store once only");
                saved.notices.push(format!("{what}: remove {object}, and the next start writes the replica there"));
                continue;
            }
            // What cannot be read now is not damaged.
            let Ok(bytes) = self.get(&other) else { continue };
            if !object_named(good, good.split('/').next().unwrap_or_default()).is_some_and(|good| good.is_of(&bytes)) {
                continue;
            }
            let state = if was_there { "damaged" } else { "missing" };
            match self.write_second(&object, &bytes) {
                // Builds before copies wrote none, and a coordinator may have been killed before it wrote one.
                Ok(()) if !it.from_copy && !was_there => copied += 1,
                Ok(()) => {
                    saved.notices.push(format!("the object {object} was {state} and is written again from {other}"));
                }
                Err(why) => {
                    saved.notices.push(format!("the object {object} is {state} and cannot be written again: {why}"));
                    break;
                }
            }
        }
        if copied + left > 0 {
            tracing::info!(
                "run {run}: {copied} finished replicas had no copy in the store {}, and have one now; {left} more get one at the next start",
                self.shown
            );
        }
    }
}

impl Reader {
    /// The bytes of an object of a run, by its name below `runs/RUN/`; of a finished replica that is damaged since it was written,
    /// those of its copy.
    ///
    /// # Errors
    /// A sentence that names the object.
    pub async fn get(&self, run: &str, object: &str) -> Result<Bytes, String> {
        Ok(self.get_up_to(run, object, u64::MAX).await?.unwrap_or_default())
    }

    /// The same, if the object has at most `bytes_max` bytes; otherwise nothing is read.
    ///
    /// # Errors
    /// A sentence that names the object.
    pub async fn get_up_to(&self, run: &str, object: &str, bytes_max: u64) -> Result<Option<Bytes>, String> {
        let found = self.read_up_to(run, object, bytes_max).await;
        let (Some(named), Some(copy)) = (object_named(object, FINISHED), finished_copy_name(object)) else {
            return found;
        };
        if !found.as_ref().is_ok_and(|bytes| bytes.as_ref().is_none_or(|bytes| named.is_of(bytes)))
            && let Ok(Some(bytes)) = self.read_up_to(run, &copy, bytes_max).await
            && named.is_of(&bytes)
        {
            return Ok(Some(bytes));
        }
        found
    }
}
