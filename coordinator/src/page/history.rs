//! Histories of runs, read from the store. The core only names the objects, and the run's thread does nothing for them. So a
//! history shows a run as it could be resumed: at most one checkpoint behind.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher as _, Hasher as _, RandomState},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use evoxo_common::envelope;
use evoxo_proto::v1;
use prost::Message as _;
use tokio::sync::{OwnedMutexGuard, Semaphore};

use super::curves::{self, Histories as Known, Middle};
use crate::{
    core::{Rejection, Request, Response},
    pack::PackPlace,
    prepared::Prepared,
    replicas::ReplicaKey,
    shell::Handle,
};

/// The shortest interval between two reads of new objects in the store.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// After so long a read stops, and the next one continues.
const READ_MAX: Duration = Duration::from_secs(2);
/// The most runs whose histories are in memory at once, and how long a history stays without a request.
const RUNS_MAX: usize = 4;
const UNUSED_MAX: Duration = Duration::from_secs(60);

/// What is known about one run.
struct OfRun {
    /// The number of the run that the histories belong to. If a run is deleted and another is created under the same name,
    /// the number differs.
    number: u64,
    prepared: Arc<Prepared>,
    histories: Known,
    checkpoint: Option<String>,
    looked: Option<Instant>,
}

impl OfRun {
    fn new(number: u64, prepared: Arc<Prepared>) -> Self {
        Self { number, prepared, histories: Known::default(), checkpoint: None, looked: None }
    }
}

/// A run's entry, and when it was last requested.
type Entry = (Instant, Arc<tokio::sync::Mutex<OfRun>>);

/// The histories of the runs that were requested.
pub(super) struct History {
    core: Handle,
    runs: Mutex<BTreeMap<String, Entry>>,
    /// Only one object is in memory at a time, however many people look.
    reading: Semaphore,
    /// Only one answer is made at a time: an answer with many arms takes some 50 MB until it is text.
    making: Arc<Semaphore>,
    /// The start of every tag, because a browser may still have an answer from an earlier coordinator.
    mark: u64,
}

/// A question about a run's histories.
#[derive(Clone, Copy, Debug)]
pub(super) enum HistoryQuery {
    /// Middle and interval of a column over the replicas of each arm, at no more than `points` rows...
    Curves { column: usize, middle: Middle, points: usize },
    /// ... or at each row from `from_row` on, up to the most rows of an answer.
    Rows { column: usize, middle: Middle, from_row: usize },
    /// The newest rows of replicas, from this index on.
    Replicas { from: usize },
    /// The rows of one replica from `from_row` on, up to the most rows of an answer.
    Replica { replica: ReplicaKey, from_row: usize },
}

impl History {
    pub(super) fn new(core: Handle) -> Self {
        // Each hasher has random keys.
        let mark = RandomState::new().build_hasher().finish();
        Self { core, runs: Mutex::default(), reading: Semaphore::new(1), making: Arc::new(Semaphore::new(1)), mark }
    }

    /// The answer as JSON, and a tag that changes whenever the answer may have changed.
    pub(super) async fn ask(&self, name: &str, question: HistoryQuery) -> Result<(String, Bytes), Rejection> {
        let shown = self.core.views.numbered(name);
        let shown = shown.and_then(|(number, view)| Some((number, view.borrow().prepared.clone()?)));
        let (number, prepared) =
            shown.ok_or_else(|| Rejection::NotFound("there is no run of this name here".into()))?;
        let columns = prepared.config.kind.columns.len();
        if let HistoryQuery::Curves { column, .. } | HistoryQuery::Rows { column, .. } = question
            && column >= columns
        {
            return Err(Rejection::Invalid(format!("there are columns from 0 to {}", columns.saturating_sub(1))));
        }
        let mut run = self.entry(name, number, &prepared).lock_owned().await;
        if run.number != number {
            *run = OfRun::new(number, prepared.clone());
        }
        run.prepared = prepared;
        if run.looked.is_none_or(|looked| looked.elapsed() >= LOOK_INTERVAL) {
            run = self.look(name, run).await?;
        }
        let turn = Arc::clone(&self.making).acquire_owned().await;
        // This may take long, so it must not run on the thread that serves connections.
        let mark = self.mark;
        let answer = tokio::task::spawn_blocking(move || {
            // Held until the answer is made, even if the browser has disconnected.
            let _turn = turn;
            let OfRun { prepared, histories, .. } = &mut *run;
            let config = &prepared.config;
            match question {
                HistoryQuery::Curves { column, middle, points } => {
                    Ok(histories.curves(config, (column, middle), points))
                }
                HistoryQuery::Rows { column, middle, from_row } => {
                    Ok(curves::rows(histories, config, (column, middle), from_row))
                }
                HistoryQuery::Replicas { from } => Ok(curves::replicas(histories, from)),
                HistoryQuery::Replica { replica, from_row } => curves::replica(histories, config, replica, from_row),
            }
            .map(|bytes| (format!("{mark:x}-{number}-{}", histories.tag()), bytes))
        });
        let answer = answer.await.map_err(|_| Rejection::Unavailable("the histories cannot be shown".into()))?;
        answer.map_err(Rejection::NotFound)
    }

    /// Forgets histories that are no longer requested.
    pub(super) fn forget_unused(&self) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.retain(|_, (used, _)| used.elapsed() < UNUSED_MAX);
    }

    fn entry(&self, name: &str, number: u64, prepared: &Arc<Prepared>) -> Arc<tokio::sync::Mutex<OfRun>> {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || (Instant::now(), Arc::new(tokio::sync::Mutex::new(OfRun::new(number, prepared.clone()))));
        let entry = runs.entry(name.to_owned()).or_insert_with(new);
        entry.0 = Instant::now();
        let found = Arc::clone(&entry.1);
        while runs.len() > RUNS_MAX {
            let oldest = runs.iter().min_by_key(|(_, (used, _))| *used).map(|(name, _)| name.clone());
            oldest.map(|name| runs.remove(&name));
        }
        found
    }

    /// Reads new objects from the store.
    async fn look(&self, name: &str, mut run: OwnedMutexGuard<OfRun>) -> Result<OwnedMutexGuard<OfRun>, Rejection> {
        let asked = self.core.ask(Request::Objects { name: name.into() }).await?;
        let Response::Objects { finished, checkpoint } = asked else {
            return Err(Rejection::Unavailable("the coordinator gave a response of the wrong kind".into()));
        };
        let _turn = self.reading.acquire().await;
        let began = Instant::now();
        if let Some(object) = checkpoint.filter(|object| run.checkpoint.as_ref() != Some(object)) {
            // If the checkpoint is gone, a newer one has replaced it, and the next look finds that.
            if let Ok(bytes) = self.core.reader.get(name, &object).await {
                run = absorb(run, move |run| {
                    for state in states(&bytes) {
                        run.take(&state, None);
                    }
                    run.checkpoint = Some(object);
                })
                .await?;
            }
        }
        let mut complete = true;
        run.histories.forget_others(&finished);
        for (key, place) in finished {
            if run.histories.is_finished(key) {
                continue;
            }
            if began.elapsed() > READ_MAX {
                complete = false;
                break;
            }
            let Ok(bytes) = self.core.reader.finished(name, &place).await else { continue };
            run = absorb(run, move |run| {
                let body = envelope::open(envelope::Kind::Finished, &bytes).ok();
                let state = body.and_then(|body| v1::Finished::decode(body).ok()?.replica);
                if let Some(state) = state {
                    run.take(&state, Some(place));
                }
            })
            .await?;
        }
        run.looked = complete.then(Instant::now);
        Ok(run)
    }
}

/// Does longer work on a run's histories, on another thread.
async fn absorb(
    mut run: OwnedMutexGuard<OfRun>,
    work: impl FnOnce(&mut OfRun) + Send + 'static,
) -> Result<OwnedMutexGuard<OfRun>, Rejection> {
    let done = tokio::task::spawn_blocking(move || {
        work(&mut run);
        run
    });
    done.await.map_err(|_| Rejection::Unavailable("the histories cannot be read".into()))
}

/// The states in a checkpoint; empty if the bytes are not a checkpoint.
fn states(bytes: &Bytes) -> Vec<v1::ReplicaState> {
    let body = envelope::open(envelope::Kind::Checkpoint, bytes).ok();
    body.and_then(|body| v1::Checkpoint::decode(body).ok()).map(|it| it.replicas).unwrap_or_default()
}

impl OfRun {
    /// Takes over the state of a replica, from a checkpoint or from the place of a finished replica.
    fn take(&mut self, state: &v1::ReplicaState, finished: Option<PackPlace>) {
        let config = &self.prepared.config;
        let Some(arm) = config.arms.iter().position(|arm| arm.name == state.arm) else { return };
        let key = ReplicaKey { arm: arm as u32, index: state.replica };
        self.histories.put(key, state, config.kind.columns.len(), finished);
    }
}
