//! When runs began and ended, by the dates of their objects in the store: no clock is part of a run.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use evoxo_proto::v1::RunState;

use crate::{
    core::View,
    names::{FINISHED, ORDER},
    shell::Handle,
};

/// When a run began and ended, in seconds since 1970, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dates {
    pub(super) began: Option<u64>,
    pub(super) ended: Option<u64>,
}

/// A run's dates, and the state in which they were read.
type Read = (i32, Dates);

/// The dates of all runs. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Dated(Arc<Inner>);

#[derive(Default)]
struct Inner {
    runs: Mutex<BTreeMap<String, Read>>,
    reading: tokio::sync::Mutex<()>,
}

impl Dated {
    /// The dates of a run, as far as they were read.
    pub(super) fn of(&self, run: &str) -> Dates {
        let runs = self.0.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.get(run).map_or_else(Dates::default, |(_, dates)| *dates)
    }

    /// Forgets runs that are gone, and reads the dates of new runs and of those whose state has changed. Reading takes place in
    /// the background, one run after another.
    pub(super) fn refresh(&self, core: &Handle, views: &[Arc<View>]) {
        let missing: Vec<(String, i32)> = {
            let mut runs = self.0.runs.lock().unwrap_or_else(PoisonError::into_inner);
            let states: BTreeMap<&str, i32> =
                views.iter().map(|view| (view.run.name.as_str(), view.run.state)).collect();
            runs.retain(|name, _| states.contains_key(name.as_str()));
            let is_known = |name: &str, state: i32| runs.get(name).is_some_and(|(known, _)| *known == state);
            states
                .into_iter()
                .filter(|(name, state)| !is_known(name, *state))
                .map(|(name, state)| (name.to_owned(), state))
                .collect()
        };
        if missing.is_empty() {
            return;
        }
        let (own, core) = (self.clone(), core.clone());
        tokio::spawn(async move {
            // The next refresh finds what is still missing.
            let Ok(_turn) = own.0.reading.try_lock() else { return };
            for (name, state) in missing {
                let orders = core.reader.dates(&name, ORDER).await;
                let ends = match is_over(state) {
                    true => core.reader.dates(&name, FINISHED).await,
                    false => Ok(None),
                };
                // A store that cannot be read now is read again after the next change.
                let (orders, ends) = (orders.unwrap_or_default(), ends.unwrap_or_default());
                let dates = Dates { began: orders.map(|(first, _)| first), ended: ends.map(|(_, last)| last) };
                own.0.runs.lock().unwrap_or_else(PoisonError::into_inner).insert(name, (state, dates));
            }
        });
    }
}

/// Whether all replicas of a run in this state are finished.
fn is_over(state: i32) -> bool {
    [RunState::Finished, RunState::InDoubt].iter().any(|over| *over as i32 == state)
}
