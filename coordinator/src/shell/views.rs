//! Runs as people see them. The core publishes them, and requests read them here without asking the core.

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
pub(crate) struct Views(Arc<RwLock<Shown>>);

#[derive(Default)]
struct Shown {
    last: u64,
    /// Views by run name, each with a number. If a run is deleted and another is created under the same name, the number
    /// differs.
    runs: BTreeMap<String, (u64, watch::Sender<Arc<View>>)>,
}

impl Views {
    pub(crate) fn publish(&self, view: Arc<View>) {
        let mut shown = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let Shown { last, runs } = &mut *shown;
        match runs.get(&view.run.name) {
            Some((_, known)) => drop(known.send_replace(view)),
            None => {
                *last += 1;
                runs.insert(view.run.name.clone(), (*last, watch::Sender::new(view)));
            }
        }
    }

    /// Removes a run. Its watchers learn that it is gone.
    pub(crate) fn remove(&self, run: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).runs.remove(run);
    }

    pub(crate) fn get(&self, run: &str) -> Option<Watched> {
        self.numbered(run).map(|(_, watched)| watched)
    }

    /// A run's view, with the run's number.
    pub(crate) fn numbered(&self, run: &str) -> Option<(u64, Watched)> {
        let shown = self.0.read().unwrap_or_else(PoisonError::into_inner);
        shown.runs.get(run).map(|(number, view)| (*number, view.subscribe()))
    }

    /// All views, by name.
    pub(crate) fn list(&self) -> Vec<Arc<View>> {
        let shown = self.0.read().unwrap_or_else(PoisonError::into_inner);
        shown.runs.values().map(|(_, view)| Arc::clone(&view.borrow())).collect()
    }
}

#[cfg(test)]
mod tests {
    use evoxo_proto::v1;

    use super::*;

    #[test]
    fn a_recreated_run_has_a_new_number() {
        let views = Views::default();
        let publish = |done| {
            let run = v1::Run { name: "r".into(), tasks_done: done, ..v1::Run::default() };
            views.publish(Arc::new(View { run, prepared: None }));
            views.numbered("r").map(|(number, view)| (number, view.borrow().run.tasks_done))
        };
        assert_eq!((publish(1), publish(2)), (Some((1, 1)), Some((1, 2))));
        views.remove("r");
        assert!(views.numbered("r").is_none());
        assert_eq!(publish(0), Some((2, 0)));
    }
}
