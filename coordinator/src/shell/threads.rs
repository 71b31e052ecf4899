//! The threads apart from the core's: one for the store, one for the access directory, and one for the replicas of each
//! loaded run.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use evoxo_common::experiment::Registry;
use evoxo_proto::v1;
use tokio::sync::watch;
use tracing::{error, warn};

use super::Inbox;
use crate::{
    access::Access,
    core::{Event, Request, StoreFault, ThreadId, Write, WriteId},
    metrics::meters::{self, Meters},
    prepared::Prepared,
    replicas::{Job, Replicas},
    store::{Cluster, Epoch, Store, TOGETHER_BYTES_MAX, TOGETHER_MAX},
    trust::Draw,
};

/// The shortest pause between two attempts to write to a store that fails.
const FAILURE_PAUSE: Duration = Duration::from_millis(500);
/// The pause between two attempts to lead in a store that cannot be written, if there is nothing to write.
const LEAD_PAUSE: Duration = Duration::from_secs(1);

/// Starts a thread. If the system refuses, this panics, which ends the process.
pub(super) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().name(name.into()).spawn(body);
    thread.expect("the system has a thread for the coordinator");
}

/// Queue of writes for the store's thread.
pub(super) type StoreOrders = mpsc::Sender<(WriteId, String, Write)>;

/// Starts the store's thread. It carries out writes in order and reports each, and also reports when this coordinator or
/// another one leads. If the store could not be written at first, the thread keeps trying to lead.
pub(super) fn start_store(
    mut store: Store,
    inbox: Inbox,
    led: watch::Sender<Option<(Epoch, Cluster)>>,
    superseded: Arc<watch::Sender<Option<String>>>,
    meters: Arc<Meters>,
) -> StoreOrders {
    let (orders, received) = mpsc::channel::<(WriteId, String, Write)>();
    spawn("store", move || {
        // A write that was received and does not belong to the writes before it.
        let mut next = None;
        loop {
            let order = match (next.take(), store.epoch()) {
                (Some(order), _) => Ok(order),
                (None, Some(_)) => received.recv().map_err(|_| RecvTimeoutError::Disconnected),
                (None, None) => received.recv_timeout(LEAD_PAUSE),
            };
            let Ok((write, run, what)) = order else {
                if order.is_err_and(|why| why == RecvTimeoutError::Disconnected) {
                    return;
                }
                if let Err(fault) = store.check_leadership() {
                    meters.store_failed("leader", &fault);
                    if let StoreFault::Superseded(why) = fault {
                        drop(superseded.send_replace(Some(why)));
                    }
                }
                tell_led(&store, &led);
                continue;
            };
            let mut writes = vec![(write, what)];
            next = gather(&run, &mut writes, &received);
            let began = Instant::now();
            let (ids, whats): (Vec<WriteId>, Vec<Write>) = writes.into_iter().unzip();
            let outcomes = match whats.as_slice() {
                [what] => vec![store.write(&run, what)],
                several => store.write_all_finished(&run, several),
            };
            let took = began.elapsed();
            tell_led(&store, &led);
            let (failed, lost) = (
                |fault: &_| matches!(fault, StoreFault::Failed(_)),
                |fault: &StoreFault| match fault {
                    StoreFault::Superseded(why) => Some(why.clone()),
                    _ => None,
                },
            );
            let faults = || outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
            if let Some(why) = faults().find_map(lost) {
                superseded.send_replace(Some(why));
            } else if faults().any(failed) {
                std::thread::sleep(FAILURE_PAUSE);
            }
            // The time of several writes together counts once.
            let mut took_us = took.as_micros() as u64;
            for ((write, what), outcome) in ids.into_iter().zip(&whats).zip(outcomes) {
                meters.stored(what, took, outcome.as_ref().err());
                let took_us = std::mem::take(&mut took_us);
                if inbox.post_blocking(Event::Stored { write, outcome, took_us }).is_err() {
                    return;
                }
            }
        }
    });
    orders
}

/// If the only write is a finished replica, adds those that wait behind it and belong to the same run: they are written
/// together. Returns the first write that waits and is none of these.
fn gather(
    run: &str,
    writes: &mut Vec<(WriteId, Write)>,
    received: &mpsc::Receiver<(WriteId, String, Write)>,
) -> Option<(WriteId, String, Write)> {
    let bytes_of = |write: &Write| if let Write::Finished { bytes, .. } = write { Some(bytes.len()) } else { None };
    let mut bytes = bytes_of(&writes[0].1)?;
    while writes.len() < TOGETHER_MAX && bytes < TOGETHER_BYTES_MAX {
        let next = received.try_recv().ok()?;
        match bytes_of(&next.2).filter(|_| next.1 == run) {
            Some(more) => bytes += more,
            None => return Some(next),
        }
        writes.push((next.0, next.2));
    }
    None
}

fn tell_led(store: &Store, led: &watch::Sender<Option<(Epoch, Cluster)>>) {
    let now = store.epoch().cloned().zip(store.cluster());
    led.send_if_modified(|before| std::mem::replace(before, now.clone()) != now);
}

/// A note for the access directory.
pub(super) enum Note {
    /// An identity was convicted, which also revokes it.
    Convicted { identity: String, what: String },
    /// A line of the audit log.
    Done { what: &'static str, object: String },
}

/// Starts the thread that writes to the access directory, because writing waits for the disk.
pub(super) fn start_access(access: Access, inbox: Inbox) -> mpsc::Sender<Note> {
    let (notes, received) = mpsc::channel();
    spawn("access", move || {
        while let Ok(note) = received.recv() {
            match note {
                Note::Done { what, object } => drop(access.audit_caused(what, what, &object)),
                Note::Convicted { identity, what } => match access.convict(&identity, &what) {
                    Ok(Some(token)) => keep_revoked(&inbox, token.into(), &identity),
                    Ok(None) => {}
                    Err(why) => {
                        error!("the conviction of {identity} cannot be written to the access directory: {why:#}");
                    }
                },
            }
        }
    });
    notes
}

/// Writes the token's revocation to the store, so that nobody joins with the token after a takeover.
fn keep_revoked(inbox: &Inbox, token: String, identity: &str) {
    // `by` is empty: the revocation has no author, and a person may repeat it.
    let request = Request::Revoke { id: token.clone(), by: String::new() };
    if let Err(rejection) = inbox.ask_blocking(request) {
        warn!(
            "the token {token}, with which the convicted {identity} joined, is revoked on this coordinator, but the \
             store does not have the revocation yet, so a standby does not know it: {}; revoke it again",
            rejection.sentence()
        );
    }
}

/// The threads of runs.
pub(super) struct RunThreads {
    registry: Registry,
    inbox: Inbox,
    jobs: BTreeMap<ThreadId, mpsc::Sender<Job>>,
    meters: Arc<Meters>,
}

impl RunThreads {
    pub(super) fn new(registry: Registry, inbox: Inbox, meters: Arc<Meters>) -> Self {
        Self { registry, inbox, jobs: BTreeMap::new(), meters }
    }

    pub(super) fn start(
        &mut self,
        thread: ThreadId,
        prepared: Arc<Prepared>,
        draw: Draw,
        states: Vec<v1::ReplicaState>,
    ) {
        let (jobs, received) = mpsc::channel();
        let (registry, inbox, meters) = (self.registry.clone(), self.inbox.clone(), Arc::clone(&self.meters));
        spawn("run", move || {
            let mut replicas = Replicas::new(&registry, prepared, draw, states);
            let mut waiting_us = 0;
            while let Ok(job) = received.recv() {
                let (began, name) = (Instant::now(), meters::name_of_job(&job));
                let reports = replicas.run(job);
                let took = began.elapsed();
                meters.ran(name, took);
                // The time of a job without reports is reported with the next one.
                waiting_us += took.as_micros() as u64;
                if reports.is_empty() {
                    continue;
                }
                let took_us = std::mem::take(&mut waiting_us);
                if inbox.post_blocking(Event::Done { thread, reports, took_us }).is_err() {
                    return;
                }
            }
        });
        self.jobs.insert(thread, jobs);
    }

    pub(super) fn send(&self, thread: ThreadId, job: Job) {
        if let Some(jobs) = self.jobs.get(&thread) {
            // A thread that has ended after a panic has reported it already.
            let _ = jobs.send(job);
        }
    }

    /// Ends a thread and drops its replicas.
    pub(super) fn end(&mut self, thread: ThreadId) {
        self.jobs.remove(&thread);
    }
}
