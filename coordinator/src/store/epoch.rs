//! Ownership of a run: it belongs to the coordinator that created its highest epoch.

use bytes::Bytes;
use evoxo_common::envelope::{Kind, open, seal};
use evoxo_process::{host_name, innermost};

use super::Store;
use crate::{core::StoreFault, saved::SavedRun};

/// An epoch as the store lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Epoch {
    pub(super) number: u64,
    /// The store's tag of the object: two coordinators may both have created number 1, if the run was deleted in
    /// between.
    tag: Option<String>,
}

/// The most coordinators that take over one run at the same moment.
const RIVALS_MAX: usize = 64;

impl Store {
    /// Takes over a run: its previous owner can no longer write it. Returns the new epoch.
    ///
    /// # Errors
    /// [`StoreFault::Failed`] if the epoch cannot be created.
    pub fn take_over(&mut self, run: &str) -> Result<u64, StoreFault> {
        let place = self.shown.clone();
        let not_taken =
            |cause: String| StoreFault::Failed(format!("run {run} in the store {place} cannot be taken over: {cause}"));
        self.sweep_staged(run);
        for _ in 0..RIVALS_MAX {
            let highest = self.highest_epoch(run).map_err(|error| not_taken(innermost(&error)))?;
            let number = highest.map_or(0, |epoch| epoch.number) + 1;
            let (name, ours) = (epoch_name(run, number), identity());
            match self.put(&name, &ours) {
                Ok(()) => {}
                Err(object_store::Error::AlreadyExists { .. }) => continue,
                // The result is unclear: check before deciding.
                Err(error) => match self.get(&name) {
                    Ok(found) if found == ours => {}
                    Ok(_) => continue,
                    Err(_) => return Err(not_taken(innermost(&error))),
                },
            }
            let epochs = self.epochs(run).map_err(|error| not_taken(innermost(&error)))?;
            let older = epochs.iter().filter(|epoch| epoch.number < number);
            // Older epochs are not needed, and frequent restarts would accumulate them.
            if let Err(error) = self.remove(older.map(|epoch| epoch_name(run, epoch.number)).collect()) {
                tracing::warn!("old epochs of run {run} cannot be removed: {}", innermost(&error));
            }
            self.known(run).epoch = epochs.into_iter().find(|epoch| epoch.number == number);
            return Ok(number);
        }
        Err(not_taken("other coordinators take it over at the same time: let one of them run".into()))
    }

    /// Takes over a run, unless this coordinator owns it already, and reads it with the states of its unfinished
    /// replicas.
    pub(super) fn take_over_and_load(&mut self, run: &str) -> Result<Option<SavedRun>, StoreFault> {
        let failed = |cause: String| StoreFault::Failed(format!("run {run} cannot be read: {cause}"));
        let highest = self.highest_epoch(run).map_err(|error| failed(innermost(&error)))?;
        if highest.is_none() || self.known(run).epoch != highest {
            // A run that does not exist is not taken over.
            let (objects, directories) =
                self.list(&format!("runs/{run}")).map_err(|error| failed(innermost(&error)))?;
            if objects.is_empty() && directories.is_empty() {
                return Ok(None);
            }
            self.take_over(run)?;
        }
        self.load_run(run).map_err(|error| failed(error.to_string()))
    }

    /// Refuses to write a run that another coordinator owns. A run that was not taken over since it was loaded (a
    /// finished run that is extended, or a new one) is taken over now.
    pub(super) fn check_leadership(&mut self, run: &str) -> Result<(), StoreFault> {
        let failed =
            |cause: String| StoreFault::Failed(format!("cannot find out which coordinator owns run {run}: {cause}"));
        let highest = self.highest_epoch(run).map_err(|error| failed(innermost(&error)))?;
        let known = self.known(run);
        if known.unreadable {
            let shown = &self.shown;
            return Err(StoreFault::Fenced(format!(
                "run {run} in the store {shown} has no valid order and is not used: \
                 move it away, or choose another name or directory for the new run"
            )));
        }
        let free = known.epoch.is_none() && highest.as_ref().map_or(0, |epoch| epoch.number) == known.epoch_seen;
        if free {
            return self.take_over(run).map(drop);
        }
        if highest == known.epoch {
            return Ok(());
        }
        Err(StoreFault::Fenced(self.fence_sentence(run, highest)))
    }

    fn fence_sentence(&self, run: &str, highest: Option<Epoch>) -> String {
        let Some(highest) = highest else {
            return format!(
                "run {run} was removed from the store {}: this coordinator does not write it any more",
                self.shown
            );
        };
        let body = self.get(&epoch_name(run, highest.number)).ok().and_then(|bytes| open(Kind::Epoch, &bytes).ok());
        let who = body.map_or_else(|| "unknown".into(), |body| String::from_utf8_lossy(&body).into_owned());
        format!(
            "another coordinator owns run {run} now ({who}, epoch {}), so this one does not write it; \
             let only one coordinator use the store {}",
            highest.number, self.shown
        )
    }

    pub(super) fn highest_epoch(&self, run: &str) -> object_store::Result<Option<Epoch>> {
        Ok(self.epochs(run)?.into_iter().max_by_key(|epoch| epoch.number))
    }

    fn epochs(&self, run: &str) -> object_store::Result<Vec<Epoch>> {
        let (objects, _) = self.list(&format!("runs/{run}/epoch"))?;
        let epoch = |(name, meta): (String, object_store::ObjectMeta)| {
            Some(Epoch { number: epoch_number(&name)?, tag: meta.e_tag })
        };
        Ok(objects.into_iter().filter_map(epoch).collect())
    }
}

/// The number in an epoch's name.
pub(super) fn epoch_number(name: &str) -> Option<u64> {
    let plain = name.len() >= 6 && name.bytes().all(|byte| byte.is_ascii_digit());
    if plain { name.parse().ok() } else { None }
}

fn epoch_name(run: &str, number: u64) -> String {
    format!("runs/{run}/epoch/{number:06}")
}

/// This process, for people to read; the time makes it unique.
fn identity() -> Bytes {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let who = format!("process {} on {}, Unix time {:.9}", std::process::id(), host_name(), since.as_secs_f64());
    seal(Kind::Epoch, who.as_bytes())
}
