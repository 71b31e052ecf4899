//! When runs began and ended, by the dates of their objects in the store: no clock is part of a run.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use evoxo_proto::v1::{self, RunState};
use futures_util::{StreamExt as _, stream};

use crate::{
    core::View,
    names::{FINISHED, ORDER},
    store::Reader,
};

/// The most runs whose dates are read at once.
const READ_MAX: usize = 16;

/// When a run began and ended, in seconds since 1970, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dates {
    pub(crate) began: Option<u64>,
    pub(crate) ended: Option<u64>,
}

/// A run's dates, and the state in which they were read.
type Read = (i32, Dates);

/// The dates of all runs. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Dated(Arc<Inner>);

struct Inner {
    reader: Reader,
    runs: Mutex<BTreeMap<String, Read>>,
    reading: tokio::sync::Mutex<()>,
}

impl Dated {
    pub(super) fn new(reader: Reader) -> Self {
        Self(Arc::new(Inner { reader, runs: Mutex::default(), reading: tokio::sync::Mutex::default() }))
    }

    /// The dates of a run, as far as they were read.
    pub(crate) fn of(&self, run: &str) -> Dates {
        let runs = self.0.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.get(run).map_or_else(Dates::default, |(_, dates)| *dates)
    }

    /// Forgets runs that are gone, and lists new runs and those whose state has changed: their dates are to be read.
    fn missing(&self, views: &[Arc<View>]) -> Vec<(String, i32)> {
        let mut runs = self.0.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let states: BTreeMap<&str, i32> = views.iter().map(|view| (view.run.name.as_str(), view.run.state)).collect();
        runs.retain(|name, _| states.contains_key(name.as_str()));
        let is_known = |name: &str, state: i32| runs.get(name).is_some_and(|(known, _)| *known == state);
        let missing = states.into_iter().filter(|(name, state)| !is_known(name, *state));
        missing.map(|(name, state)| (name.to_owned(), state)).collect()
    }

    /// Reads the missing dates in the background.
    pub(crate) fn refresh(&self, views: &[Arc<View>]) {
        let missing = self.missing(views);
        if missing.is_empty() {
            return;
        }
        let own = self.clone();
        tokio::spawn(async move {
            // The next refresh finds what is still missing.
            let Ok(_turn) = own.0.reading.try_lock() else { return };
            own.read(missing).await;
        });
    }

    /// The runs with their dates, once these are read.
    pub(crate) async fn with_dates(&self, views: &[Arc<View>]) -> Vec<v1::Run> {
        let _turn = self.0.reading.lock().await;
        self.read(self.missing(views)).await;
        let dated = |view: &Arc<View>| {
            let Dates { began, ended } = self.of(&view.run.name);
            let (submitted, ended) = (began.unwrap_or_default(), ended.unwrap_or_default());
            v1::Run { submitted, ended, ..view.run.clone() }
        };
        views.iter().map(dated).collect()
    }

    async fn read(&self, missing: Vec<(String, i32)>) {
        let mut read = stream::iter(missing)
            .map(|(name, state)| async move {
                let orders = self.0.reader.dates(&name, ORDER).await;
                let ends = match is_over(state) {
                    true => self.0.reader.dates(&name, FINISHED).await,
                    false => Ok(None),
                };
                // A store that cannot be read now is read again after the next change.
                let (orders, ends) = (orders.unwrap_or_default(), ends.unwrap_or_default());
                let cancelled = orders.filter(|_| state == RunState::Cancelled as i32);
                let ended = ends.or(cancelled).map(|(_, last)| last);
                (name, (state, Dates { began: orders.map(|(first, _)| first), ended }))
            })
            .buffer_unordered(READ_MAX);
        while let Some((name, dates)) = read.next().await {
            self.0.runs.lock().unwrap_or_else(PoisonError::into_inner).insert(name, dates);
        }
    }
}

/// Whether all replicas of a run in this state are finished.
fn is_over(state: i32) -> bool {
    [RunState::Finished, RunState::InDoubt].iter().any(|over| *over as i32 == state)
}
