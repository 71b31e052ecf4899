//! The threads besides the core's: one for the store, and one for the replicas of each loaded run.

use std::{
    collections::BTreeMap,
    sync::{Arc, mpsc},
    time::Duration,
};

use evoxo_common::experiment::Registry;
use evoxo_proto::v1;

use super::Inbox;
use crate::{
    core::{Event, StoreFault, ThreadId, Write, WriteId},
    prepared::Prepared,
    replicas::{Job, Replicas},
    store::Store,
};

/// The shortest time between two attempts to write to a store that cannot be written.
const FAILURE_PAUSE: Duration = Duration::from_millis(500);

/// Starts a thread. If the system refuses, this panics, which ends the process.
pub(super) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().name(name.into()).spawn(body);
    thread.expect("the system has a thread for the coordinator");
}

/// Orders for the store's thread.
pub(super) type StoreOrders = mpsc::Sender<(WriteId, String, Write)>;

/// Starts the store's thread, which writes in order and reports each write.
pub(super) fn start_store(mut store: Store, inbox: Inbox) -> StoreOrders {
    let (orders, received) = mpsc::channel::<(WriteId, String, Write)>();
    spawn("store", move || {
        while let Ok((write, run, what)) = received.recv() {
            let outcome = store.write(&run, &what);
            if matches!(outcome, Err(StoreFault::Failed(_))) {
                std::thread::sleep(FAILURE_PAUSE);
            }
            if inbox.post_blocking(Event::Stored { write, outcome }).is_err() {
                return;
            }
        }
    });
    orders
}

/// The threads of runs.
pub(super) struct RunThreads {
    registry: Registry,
    inbox: Inbox,
    jobs: BTreeMap<ThreadId, mpsc::Sender<Job>>,
}

impl RunThreads {
    pub(super) fn new(registry: Registry, inbox: Inbox) -> Self {
        Self { registry, inbox, jobs: BTreeMap::new() }
    }

    pub(super) fn start(&mut self, thread: ThreadId, prepared: Arc<Prepared>, states: Vec<v1::ReplicaState>) {
        let (jobs, received) = mpsc::channel();
        let (registry, inbox) = (self.registry.clone(), self.inbox.clone());
        spawn("run", move || {
            let mut replicas = Replicas::new(&registry, prepared, states);
            while let Ok(job) = received.recv() {
                let reports = replicas.run(job);
                if !reports.is_empty() && inbox.post_blocking(Event::Done { thread, reports }).is_err() {
                    return;
                }
            }
        });
        self.jobs.insert(thread, jobs);
    }

    pub(super) fn send(&self, thread: ThreadId, job: Job) {
        if let Some(jobs) = self.jobs.get(&thread) {
            // A thread that has ended after a panic has reported it.
            let _ = jobs.send(job);
        }
    }

    /// Ends a thread and frees its replicas.
    pub(super) fn end(&mut self, thread: ThreadId) {
        self.jobs.remove(&thread);
    }
}
