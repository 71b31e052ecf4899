//! A coordinator process in the simulation: the real core, the real store over objects in memory, and the real replicas
//! of its runs. Its threads' work takes time on the virtual clock.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use evoxo_common::time::Millis;
use evoxo_coordinator::{
    core::{Coordinator, Effect, Event, Settings, StoreFault, Stored, ThreadId, Write, WriteId},
    prepared::Prepared,
    replicas::{Job, Replicas, Report},
    store::Store,
};
use evoxo_proto::v1;
use evoxo_tests::registry;

use super::objects::Objects;

/// A place for a coordinator process, which may be empty.
#[derive(Default)]
pub(super) struct Seat {
    process: Option<Process>,
    /// Counts processes: events of an older one are ignored.
    pub(super) life: u64,
    /// The wake that is in the queue.
    pub(super) wake_at: Option<Millis>,
    /// The last published views.
    pub(super) views: BTreeMap<String, v1::Run>,
}

struct Process {
    core: Coordinator,
    store: Store,
    writes: VecDeque<(WriteId, String, Write)>,
    threads: BTreeMap<ThreadId, Replicas>,
    /// When a thread has done all its jobs.
    idle_at: BTreeMap<ThreadId, Millis>,
}

impl Seat {
    pub(super) fn is_taken(&self) -> bool {
        self.process.is_some()
    }

    /// Starts a process on these objects.
    pub(super) fn start(&mut self, settings: Settings, objects: &Arc<Objects>) {
        let objects = Arc::clone(objects);
        let mut store = Store::over(objects, "the simulation", registry().clone());
        let (saved, _) = store.load().expect("objects in memory can be listed");
        let core = Coordinator::recover(settings, registry().clone(), saved);
        let (writes, threads, idle_at) = (VecDeque::new(), BTreeMap::new(), BTreeMap::new());
        self.process = Some(Process { core, store, writes, threads, idle_at });
        self.views.clear();
    }

    /// kill -9. The write in progress is done or not.
    pub(super) fn kill(&mut self, write_is_made: bool) {
        if let Some(mut process) = self.process.take()
            && let Some((_, run, what)) = process.writes.pop_front().filter(|_| write_is_made)
        {
            // No process is left to get the report.
            drop(process.store.write(&run, &what));
        }
        self.life += 1;
        self.wake_at = None;
    }

    /// Gives the core an event; without a process nothing happens.
    pub(super) fn handle(&mut self, now: Millis, event: Event) -> Vec<Effect> {
        let Some(process) = &mut self.process else { return Vec::new() };
        let mut effects = process.core.handle(now, event);
        effects.retain(|effect| match effect {
            Effect::Publish(view) => {
                self.views.insert(view.run.name.clone(), view.run.clone());
                false
            }
            Effect::Unpublish { run } => {
                self.views.remove(run);
                false
            }
            _ => true,
        });
        effects
    }

    /// When the core wants to be woken, if that is not in the queue.
    pub(super) fn next_wake(&mut self) -> Option<Millis> {
        let wake = self.process.as_ref()?.core.next_wake();
        let new = wake.filter(|at| self.wake_at != Some(*at));
        self.wake_at = wake;
        new
    }

    pub(super) fn start_thread(&mut self, thread: ThreadId, prepared: Arc<Prepared>, states: Vec<v1::ReplicaState>) {
        if let Some(process) = &mut self.process {
            process.threads.insert(thread, Replicas::new(registry(), prepared, states));
        }
    }

    pub(super) fn drop_thread(&mut self, thread: ThreadId) {
        if let Some(process) = &mut self.process {
            process.threads.remove(&thread);
            process.idle_at.remove(&thread);
        }
    }

    /// Does a job that takes this long, after those before; returns its reports and their time.
    pub(super) fn run_job(
        &mut self,
        now: Millis,
        thread: ThreadId,
        job: Job,
        ms: u64,
    ) -> Option<(Millis, Vec<Report>)> {
        let process = self.process.as_mut()?;
        let reports = process.threads.get_mut(&thread)?.run(job);
        let idle_at = process.idle_at.entry(thread).or_default();
        *idle_at = (*idle_at).max(now) + ms;
        Some((*idle_at, reports)).filter(|(_, reports)| !reports.is_empty())
    }

    /// Queues a write; returns whether it is the only one.
    pub(super) fn put_write(&mut self, write: WriteId, run: String, what: Write) -> bool {
        let Some(process) = &mut self.process else { return false };
        process.writes.push_back((write, run, what));
        process.writes.len() == 1
    }

    /// Does the first write; returns its report, and whether there are more.
    pub(super) fn make_write(&mut self) -> Option<(Event, bool)> {
        let process = self.process.as_mut()?;
        let (write, run, what) = process.writes.pop_front()?;
        let outcome: Result<Stored, StoreFault> = process.store.write(&run, &what);
        Some((Event::Stored { write, outcome }, !process.writes.is_empty()))
    }
}
