//! Runs as people see them: the core publishes them, and requests read them here without asking the core.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use tokio::sync::watch;

use crate::core::View;

/// A view that is updated when the run changes.
pub(crate) type Watched = watch::Receiver<Arc<View>>;

/// All runs. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Views(Arc<RwLock<BTreeMap<String, watch::Sender<Arc<View>>>>>);

impl Views {
    pub(crate) fn publish(&self, view: Arc<View>) {
        let mut views = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match views.get(&view.run.name) {
            Some(known) => drop(known.send_replace(view)),
            None => drop(views.insert(view.run.name.clone(), watch::Sender::new(view))),
        }
    }

    /// Removes a run; its watchers learn that it is gone.
    pub(crate) fn remove(&self, run: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(run);
    }

    pub(crate) fn get(&self, run: &str) -> Option<Watched> {
        let views = self.0.read().unwrap_or_else(PoisonError::into_inner);
        views.get(run).map(watch::Sender::subscribe)
    }

    /// All of them, by name.
    pub(crate) fn list(&self) -> Vec<Arc<View>> {
        let views = self.0.read().unwrap_or_else(PoisonError::into_inner);
        views.values().map(|view| Arc::clone(&view.borrow())).collect()
    }
}
