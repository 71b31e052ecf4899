//! A coordinator process in the simulation: the real core, the real store over objects in memory, the real replicas of its
//! runs, and the real watch of a standby. The work of its threads takes time on the virtual clock.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use evoxo_common::{digest::Digest, time::Millis};
use evoxo_coordinator::{
    core::{Coordinator, Effect, Event, Settings, StoreFault, Stored, ThreadId, Write, WriteId},
    prepared::Prepared,
    replicas::{Job, Lanes, Recall, Report, Turns},
    standby::{Look, Watch},
    store::Store,
    trust::Draw,
};
use evoxo_proto::v1;
use evoxo_tests::registry;

use super::objects::Objects;

/// A place for a coordinator process, which may be empty.
#[derive(Default)]
pub(super) struct Seat {
    process: Option<Process>,
    standby: Option<(Watch, Store)>,
    /// The time until which the process is stopped, and how much its clock has not counted because of stops, in milliseconds.
    pub(super) stopped_until: Millis,
    lost_ms: u64,
    /// The newest order of each run at the takeover: the epoch of the run's submission, and the order's number.
    pub(super) loaded_orders: BTreeMap<String, (u64, u64)>,
    /// Counts processes. Events for an older one are ignored.
    pub(super) life: u64,
    /// The wake that is in the queue.
    pub(super) wake_at: Option<Millis>,
    /// The separate process that computes a task was asked to stop, so its outcome does not count.
    pub(super) computing_stopped: bool,
    /// The last published views.
    pub(super) views: BTreeMap<String, v1::Run>,
}

struct Process {
    core: Coordinator,
    store: Store,
    writes: VecDeque<(WriteId, String, Write)>,
    threads: Turns,
    /// When each lane will have done all its jobs.
    idle_at: BTreeMap<(ThreadId, usize), Millis>,
}

/// What a coordinator has observed.
pub(super) enum Seen {
    Nothing,
    TookOver,
    Superseded,
}

/// Writes of one run that were attempted together.
pub(super) struct Done {
    pub(super) run: String,
    /// Each write, and the report of it.
    pub(super) each: Vec<(Write, Event)>,
    /// Whether more writes wait.
    pub(super) more: bool,
}

/// So little that some evaluations are forgotten.
const RECALL_BYTES: u64 = 16 << 10;

/// After how many misses in a row a standby takes over.
const MISSES_MAX: u32 = 3;

impl Seat {
    pub(super) fn is_taken(&self) -> bool {
        self.process.is_some() || self.standby.is_some()
    }

    pub(super) fn leads(&self) -> bool {
        self.process.is_some()
    }

    /// The epoch in which it leads, or believes that it leads.
    pub(super) fn epoch(&self) -> Option<u64> {
        self.process.as_ref()?.store.epoch().map(|epoch| epoch.number)
    }

    /// Starts a standby on these objects.
    pub(super) fn stand_by(&mut self, objects: &Arc<Objects>) {
        let store = Store::over(objects.clone(), "the simulation", registry().clone());
        self.standby = Some((Watch::new(MISSES_MAX), store));
        self.views.clear();
    }

    /// Starts a process on these objects that leads, whoever led before. Returns false if it cannot write.
    pub(super) fn take_over_at_once(&mut self, settings: Settings, objects: &Arc<Objects>) -> bool {
        let mut store = Store::over(objects.clone(), "the simulation", registry().clone());
        if store.lead().is_err() {
            return false;
        }
        self.begin(settings, store);
        true
    }

    /// Loads everything after becoming the leader.
    fn begin(&mut self, settings: Settings, mut store: Store) {
        let (refused, _) = store.load_refused().expect("objects in memory can be listed");
        let (saved, _) = store.load().expect("objects in memory can be listed");
        self.loaded_orders = saved.iter().map(|saved| (saved.name.clone(), (saved.born, saved.order_number))).collect();
        let (cordons, _) = store.load_cordons().expect("objects in memory can be listed");
        let core = Coordinator::recover_knowing(settings, registry().clone(), saved, refused.convicted);
        let core = core.with_cordons(cordons);
        let (writes, mut threads, idle_at) = (VecDeque::new(), Turns::new(registry().clone()), BTreeMap::new());
        threads.recall(Some(Arc::new(Recall::new(RECALL_BYTES))));
        self.process = Some(Process { core, store, writes, threads, idle_at });
        self.views.clear();
    }

    /// Checks who leads. The coordinators of these epochs answer.
    pub(super) fn look(&mut self, settings: Settings, answering: &[u64]) -> Seen {
        if let Some(process) = &self.process {
            let leader = process.store.leader().expect("objects in memory can be listed");
            let same = leader.map(|leader| leader.epoch).as_ref() == process.store.epoch();
            return if same { Seen::Nothing } else { Seen::Superseded };
        }
        let Some((mut watch, mut store)) = self.standby.take() else { return Seen::Nothing };
        let leader = store.leader().expect("objects in memory can be listed");
        let look = match &leader {
            None => Look::NoLeader,
            Some(leader) => Look::Leader(leader.epoch.clone(), answering.contains(&leader.epoch.number)),
        };
        if watch.look(&look) && store.lead_after(leader.as_ref()) == Ok(true) {
            self.begin(settings, store);
            return Seen::TookOver;
        }
        self.standby = Some((watch, store));
        Seen::Nothing
    }

    /// Stops the process for this time, like SIGSTOP.
    pub(super) fn stop(&mut self, now: Millis, ms: u64) {
        self.stopped_until = now + ms;
        self.lost_ms += ms;
    }

    /// Kills the process, like kill -9. The write in progress may be made or not.
    pub(super) fn kill(&mut self, write_is_made: bool) {
        if write_is_made {
            // No process is left to receive the report.
            drop(self.make_write());
        }
        self.process = None;
        self.standby = None;
        self.life += 1;
        self.computing_stopped = false;
        self.wake_at = None;
        (self.stopped_until, self.lost_ms) = (Millis(0), 0);
    }

    /// Gives the core an event. Without a process nothing happens.
    pub(super) fn handle(&mut self, now: Millis, event: Event) -> Vec<Effect> {
        let Some(process) = &mut self.process else { return Vec::new() };
        // The clock stands still while the process is stopped.
        let mut effects = process.core.handle(Millis(now.0 - self.lost_ms), event);
        process.core.check_invariants();
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

    /// When the core wants to be woken, unless that wake is already in the queue.
    pub(super) fn next_wake(&mut self) -> Option<Millis> {
        let wake = self.process.as_ref()?.core.next_wake().map(|at| at + self.lost_ms);
        let new = wake.filter(|at| self.wake_at != Some(*at));
        self.wake_at = wake;
        new
    }

    pub(super) fn start_thread(
        &mut self,
        thread: ThreadId,
        prepared: Arc<Prepared>,
        draw: Draw,
        states: Vec<v1::ReplicaState>,
        lanes: Lanes,
        scope: Option<Digest>,
    ) {
        if let Some(process) = &mut self.process {
            process.threads.start(thread, prepared, draw, states, lanes, scope);
        }
    }

    pub(super) fn drop_thread(&mut self, thread: ThreadId) {
        if let Some(process) = &mut self.process {
            process.threads.end(thread);
            process.idle_at.retain(|(of, _), _| *of != thread);
        }
    }

    pub(super) fn forget_recalled(&self) {
        self.process.iter().for_each(|process| process.threads.forget_recalled());
    }

    /// Runs a job. Each lane begins its part after its earlier jobs, and takes as long as `ms` says. Returns the reports of each
    /// lane, and when they are ready. The lane that is ready last completes a checkpoint.
    pub(super) fn run_job(
        &mut self,
        now: Millis,
        thread: ThreadId,
        job: Job,
        mut ms: impl FnMut() -> u64,
    ) -> Vec<(Millis, Vec<Report>)> {
        let Some(process) = self.process.as_mut() else { return Vec::new() };
        let of_all = matches!(job, Job::Checkpoint { .. });
        let mut done = Vec::new();
        for (lane, reports) in process.threads.run_lanes(thread, job).unwrap_or_default() {
            let idle_at = process.idle_at.entry((thread, lane)).or_default();
            *idle_at = (*idle_at).max(now) + ms();
            done.push((*idle_at, reports));
        }
        let last = done.iter().map(|(at, _)| *at).max();
        if let Some(last) = last.filter(|_| of_all) {
            done.iter_mut().for_each(|(at, _)| *at = last);
        }
        done.retain(|(_, reports)| !reports.is_empty());
        done
    }

    /// Queues a write; returns whether it is the only one.
    pub(super) fn put_write(&mut self, write: WriteId, run: String, what: Write) -> bool {
        let Some(process) = &mut self.process else { return false };
        process.writes.push_back((write, run, what));
        process.writes.len() == 1
    }

    /// The first write, with its run.
    pub(super) fn next_write(&self) -> Option<(&str, &Write)> {
        self.process.as_ref()?.writes.front().map(|(_, run, what)| (run.as_str(), what))
    }

    /// Makes the first write. If it is a finished replica, those that follow are written with it.
    pub(super) fn make_write(&mut self) -> Option<Done> {
        let process = self.process.as_mut()?;
        let (_, run, what) = process.writes.front()?;
        let (run, is_finished) = (run.clone(), matches!(what, Write::Finished { .. }));
        let goes_with = |(_, of, what): &&(WriteId, String, Write)| {
            is_finished && *of == run && matches!(what, Write::Finished { .. })
        };
        let count = process.writes.iter().take_while(goes_with).count().max(1);
        let (mut ids, mut whats) = (Vec::new(), Vec::new());
        for (write, _, what) in process.writes.drain(..count) {
            ids.push(write);
            whats.push(what);
        }
        let outcomes: Vec<Result<Stored, StoreFault>> = match whats.as_slice() {
            [what] => vec![process.store.write(&run, what)],
            several => process.store.write_all_finished(&run, several),
        };
        let events = ids.into_iter().zip(outcomes).map(|(write, outcome)| Event::Stored { write, outcome, took_us: 0 });
        let each = whats.into_iter().zip(events).collect();
        Some(Done { run, each, more: !process.writes.is_empty() })
    }
}
