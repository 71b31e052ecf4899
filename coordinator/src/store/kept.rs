//! States from the middle of a run: they stay for forks and comparisons, which then need not begin at the first round. Nothing
//! depends on them, so one that cannot be written is only missing.

use bytes::Bytes;

use super::{Store, StoreFault, answer::cause, objects::Found};
use crate::{
    kept::stride,
    names::{KEPT, kept_name, object_named},
};

impl Store {
    /// Remembers the states that stay. Those of an earlier run of this name do not count.
    pub(super) fn know_kept(&mut self, run: &str, found: &Found) {
        let named = |name: &String| Some((object_named(name, KEPT)?, *found.sizes.get(name)?));
        let known = self.known(run);
        let kept =
            found.ours.iter().filter_map(named).filter(|(it, _)| known.born.is_some_and(|born| born <= it.epoch));
        known.kept = kept.map(|(it, bytes)| ((it.epoch, it.number), (it.object, bytes))).collect();
    }

    /// Lets a checkpoint stay if its turn has come, and removes others if there are too many bytes.
    pub(super) fn keep_checkpoint(&mut self, run: &str, checkpoint: &str, bytes: &Bytes, keep: u64) {
        let Some(named) = object_named(&kept_name(checkpoint), KEPT).filter(|_| keep > 0) else { return };
        let kept = &self.known(run).kept;
        let sizes: Vec<(u64, u64)> = kept.iter().map(|((_, number), (_, bytes))| (*number, *bytes)).collect();
        let stride = stride(&sizes, (named.number, bytes.len() as u64), keep);
        let goes: Vec<String> =
            kept.iter().filter(|((_, number), _)| number % stride != 0).map(|(_, (name, _))| name.clone()).collect();
        // They are removed first, so that the bytes never exceed the limit.
        if let Err(error) = self.remove(goes.iter().map(|name| format!("runs/{run}/{name}")).collect()) {
            return tracing::warn!("kept states of run {run} cannot be removed: {}", cause(&error));
        }
        self.known(run).kept.retain(|(_, number), _| number % stride == 0);
        if named.number % stride != 0 {
            return;
        }
        match self.create(&format!("runs/{run}/{}", named.object), bytes) {
            Ok(()) => {
                let entry = (named.object, bytes.len() as u64);
                self.known(run).kept.insert((named.epoch, named.number), entry);
            }
            Err(StoreFault::Superseded(why) | StoreFault::Fenced(why) | StoreFault::Failed(why)) => {
                tracing::warn!("a state of run {run} does not stay: {why}");
            }
        }
    }
}
