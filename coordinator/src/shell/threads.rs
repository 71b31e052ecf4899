//! The threads apart from the core's: one for the store, one for the access directory, and for each loaded run one or more
//! for its replicas.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use evoxo_common::{digest::Digest, experiment::Registry};
use evoxo_proto::v1;
use tokio::sync::watch;
use tracing::{error, warn};

use super::Inbox;
use crate::{
    access::Access,
    core::{Event, Request, StoreFault, ThreadId, Write, WriteId},
    metrics::meters::{self, Meters},
    prepared::Prepared,
    replicas::{Job, Lanes, Recall, Recalling, Replicas},
    store::{Cluster, Epoch, Store, TOGETHER_BYTES_MAX},
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
    let (orders, received) = mpsc::channel();
    spawn("store", move || {
        let mut queue = Queue { received, waiting: VecDeque::new() };
        loop {
            let order = queue.next(store.epoch().is_some());
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
            queue.gather(&run, &mut writes);
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

/// The writes that wait for the store's thread.
struct Queue {
    received: mpsc::Receiver<(WriteId, String, Write)>,
    waiting: VecDeque<(WriteId, String, Write)>,
}

impl Queue {
    /// Waits for the next write; if this coordinator does not lead yet, only for a moment.
    fn next(&mut self, leads: bool) -> Result<(WriteId, String, Write), RecvTimeoutError> {
        if self.waiting.is_empty() {
            let first = match leads {
                true => self.received.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => self.received.recv_timeout(LEAD_PAUSE),
            };
            self.waiting.push_back(first?);
        }
        self.waiting.extend(self.received.try_iter());
        let place = self.urgent().unwrap_or(0);
        Ok(self.waiting.remove(place).expect("a write waits there"))
    }

    /// The place of the first order. A client waits for it, so it does not wait for checkpoints and results that wait too. Only
    /// the deletion of an earlier run of the same name must come first.
    fn urgent(&self) -> Option<usize> {
        let is_order = |what: &Write| matches!(what, Write::Order { .. } | Write::Revoke { .. });
        let place = self.waiting.iter().position(|(_, _, what)| is_order(what))?;
        let (_, run, _) = &self.waiting[place];
        let is_before = |(_, other, what): &(WriteId, String, Write)| other == run && *what == Write::Delete;
        (!self.waiting.range(..place).any(is_before)).then_some(place)
    }

    /// If the only write is a finished replica, adds those of the same run that wait, as many as one object may have: they are
    /// written together. None of them passes another write of its run.
    fn gather(&mut self, run: &str, writes: &mut Vec<(WriteId, Write)>) {
        let bytes_of = |write: &Write| if let Write::Finished { bytes } = write { Some(bytes.len()) } else { None };
        let Some(mut bytes) = bytes_of(&writes[0].1) else { return };
        let (mut is_full, mut left) = (false, VecDeque::with_capacity(self.waiting.len()));
        for (write, of, what) in std::mem::take(&mut self.waiting) {
            let more = bytes_of(&what).filter(|more| bytes + more <= TOGETHER_BYTES_MAX);
            is_full |= of == run && more.is_none();
            match more.filter(|_| of == run && !is_full) {
                Some(more) => {
                    bytes += more;
                    writes.push((write, what));
                }
                None => left.push_back((write, of, what)),
            }
        }
        self.waiting = left;
    }
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
    /// For each lane of a run the queue of its thread.
    jobs: BTreeMap<ThreadId, (Lanes, Vec<mpsc::Sender<Job>>)>,
    meters: Arc<Meters>,
    /// The outputs that all runs recall; `None` if every task is computed.
    recall: Option<Arc<Recall>>,
}

impl RunThreads {
    pub(super) fn new(registry: Registry, inbox: Inbox, meters: Arc<Meters>, recall: Option<Arc<Recall>>) -> Self {
        Self { registry, inbox, jobs: BTreeMap::new(), meters, recall }
    }

    pub(super) fn start(
        &mut self,
        thread: ThreadId,
        prepared: Arc<Prepared>,
        draw: Draw,
        states: Vec<v1::ReplicaState>,
        lanes: Lanes,
        scope: Option<Digest>,
    ) {
        let (jobs, parts): (Vec<_>, Vec<_>) = (0..lanes.count()).map(|_| self.start_lane(thread)).unzip();
        self.jobs.insert(thread, (lanes, jobs));
        let (registry, recalling) = (self.registry.clone(), Recalling::of(self.recall.as_ref(), scope));
        // Reading many states takes time, which the core does not have.
        spawn("lanes", move || {
            let all = Replicas::in_lanes(&registry, &prepared, draw, states, lanes);
            for (lane, part) in all.into_iter().zip(parts) {
                // A lane that has ended already was dropped by the core.
                let _ = part.send(lane.recalling(recalling.clone()));
            }
        });
    }

    /// Starts the thread of a lane. It waits for its replicas, and then does its jobs.
    fn start_lane(&self, thread: ThreadId) -> (mpsc::Sender<Job>, mpsc::Sender<Replicas>) {
        let ((jobs, received), (part, replicas)) = (mpsc::channel::<Job>(), mpsc::channel::<Replicas>());
        let (inbox, meters) = (self.inbox.clone(), Arc::clone(&self.meters));
        spawn("run", move || {
            let Ok(mut replicas) = replicas.recv() else { return };
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
        (jobs, part)
    }

    pub(super) fn send(&self, thread: ThreadId, job: Job) {
        let Some((lanes, jobs)) = self.jobs.get(&thread) else { return };
        for (lane, job) in job.for_lanes(*lanes) {
            // A thread that has ended after a panic has reported it already.
            let _ = jobs[lane].send(job);
        }
    }

    pub(super) fn forget_recalled(&self) {
        self.recall.iter().for_each(|recall| recall.forget());
    }

    /// Ends the threads of a run and drops its replicas.
    pub(super) fn end(&mut self, thread: ThreadId) {
        self.jobs.remove(&thread);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    /// The names of the runs, in the order in which their writes are carried out.
    fn carried_out(writes: &[(&str, Write)]) -> Vec<String> {
        let (orders, received) = mpsc::channel();
        for (number, (run, what)) in writes.iter().enumerate() {
            orders.send((WriteId(number as u64), (*run).to_owned(), what.clone())).unwrap();
        }
        drop(orders);
        let mut queue = Queue { received, waiting: VecDeque::new() };
        let mut done = Vec::new();
        while let Ok((write, run, what)) = queue.next(true) {
            let mut writes = vec![(write, what)];
            queue.gather(&run, &mut writes);
            done.push(format!("{run} {}", writes.iter().map(|(id, _)| id.0.to_string()).collect::<Vec<_>>().join("+")));
        }
        done
    }

    #[test]
    fn orders_go_first_and_replicas_together() {
        let order = || Write::Order { bytes: Bytes::new() };
        let finished = |bytes: usize| Write::Finished { bytes: vec![0; bytes].into() };
        let checkpoint = || Write::Checkpoint { number: 1, bytes: Bytes::new(), keep: 0 };
        let writes = [
            ("a", finished(0)),
            ("b", finished(0)),
            ("a", finished(1)),
            ("a", checkpoint()),
            ("a", order()),
            ("c", order()),
            ("a", finished(2)),
            ("b", finished(1)),
        ];
        assert_eq!(carried_out(&writes), ["a 4", "c 5", "a 0+2", "b 1+7", "a 3", "a 6"]);
        // A large replica is alone.
        let (small, large) = (TOGETHER_BYTES_MAX / 2, TOGETHER_BYTES_MAX + 1);
        let writes = [small, small, 1, large, small].map(|bytes| ("a", finished(bytes)));
        assert_eq!(carried_out(&writes), ["a 0+1", "a 2", "a 3", "a 4"]);
        // A new run has the name of a run that is being deleted.
        let writes = [("b", checkpoint()), ("a", Write::Delete), ("a", order()), ("c", order())];
        assert_eq!(carried_out(&writes), ["b 0", "a 1", "a 2", "c 3"].map(String::from));
    }
}
