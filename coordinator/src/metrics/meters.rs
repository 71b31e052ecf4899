//! Meters outside the core, where things happen: the store, the runs' threads, the core's own time, bytes of connections.
//! Measuring costs a few atomic operations, even if nobody reads the meters.

use std::{io, task::Poll, time::Duration};

use prometheus_client::{
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::{Registry, Unit},
};

use crate::{
    core::{StoreFault, Write},
    replicas::Job,
};

/// A label and its value.
type Label = [(&'static str, &'static str); 1];
type Times = Family<Label, Histogram, fn() -> Histogram>;

/// Upper limits of the histograms' intervals, in seconds.
const ENDS_S: [f64; 12] = [0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0];

fn times() -> Histogram {
    Histogram::new(ENDS_S)
}

/// All meters.
pub(crate) struct Meters {
    registry: Registry,
    store: Times,
    store_failures: Family<[(&'static str, &'static str); 2], Counter>,
    jobs: Times,
    core: Histogram,
    received: Counter,
    sent: Counter,
    verified: Family<Label, Counter>,
    kept_away: Counter,
}

impl Meters {
    pub(crate) fn new() -> Self {
        let mut meters = Self {
            registry: Registry::with_prefix("evoxo"),
            store: Family::new_with_constructor(times),
            store_failures: Family::default(),
            jobs: Family::new_with_constructor(times),
            core: times(),
            received: Counter::default(),
            sent: Counter::default(),
            verified: Family::default(),
            kept_away: Counter::default(),
        };
        for outcome in ["good", "damaged"] {
            drop(meters.verified.get_or_create(&[("outcome", outcome)]));
        }
        // Counters that have alerts exist from the start, at 0.
        for what in ["order", "checkpoint", "finished", "leader", "load"] {
            for reason in ["failed", "fenced", "superseded"] {
                drop(meters.store_failures.get_or_create(&[("object", what), ("reason", reason)]));
            }
        }
        let (registry, seconds) = (&mut meters.registry, || Unit::Seconds);
        let store = "Time of each write to the store and of each load of a run, by kind of object";
        registry.register_with_unit("store", store, seconds(), meters.store.clone());
        let failures = "Writes to the store, and loads of a run, that failed and are retried (failed), or were not \
                        made because the run was removed or cannot be read (fenced) or another coordinator leads \
                        (superseded)";
        registry.register("store_failures", failures, meters.store_failures.clone());
        let jobs = "Time of each job of the runs' threads; a job \"take\" checks outputs and, with the last one of a \
                    round, absorbs them";
        registry.register_with_unit("run_job", jobs, seconds(), meters.jobs.clone());
        let core = "Processor time of the core for each event";
        registry.register_with_unit("core_event", core, seconds(), meters.core.clone());
        let received = "Bytes received on connections for gRPC, inside TLS";
        registry.register_with_unit("received", received, Unit::Bytes, meters.received.clone());
        let sent = "Bytes sent on connections for gRPC, inside TLS";
        registry.register_with_unit("sent", sent, Unit::Bytes, meters.sent.clone());
        let verified = "Objects of finished replicas read in the background with their copies: good, or one of the two is damaged or \
                        missing";
        registry.register("results_verified", verified, meters.verified.clone());
        let kept_away = "Attempts of workers that stay away because they have seen a later epoch of the store";
        registry.register("workers_kept_away", kept_away, meters.kept_away.clone());
        meters
    }

    /// Adds a counter of the lost lines of the audit log.
    pub(crate) fn with_lost_lines(mut self, lost: Counter) -> Self {
        let help = "Lines of the audit log that are missing on this host because its disk did not take them";
        self.registry.register("audit_lines_lost", help, lost);
        self
    }

    /// The registry of all meters.
    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Notes a write to the store.
    pub(crate) fn stored(&self, what: &Write, took: Duration, fault: Option<&StoreFault>) {
        let object = name_of_write(what);
        self.store.get_or_create(&[("object", object)]).observe(took.as_secs_f64());
        if let Some(fault) = fault {
            self.store_failed(object, fault);
        }
    }

    /// Notes a failure of the store with this object.
    pub(crate) fn store_failed(&self, object: &'static str, fault: &StoreFault) {
        let reason = match fault {
            StoreFault::Failed(_) => "failed",
            StoreFault::Fenced(_) => "fenced",
            StoreFault::Superseded(_) => "superseded",
        };
        self.store_failures.get_or_create(&[("object", object), ("reason", reason)]).inc();
    }

    /// Notes that a finished replica and its copy were read in the background.
    pub(crate) fn verified(&self, good: bool) {
        self.verified.get_or_create(&[("outcome", if good { "good" } else { "damaged" })]).inc();
    }

    /// Notes that a worker stays away because it has seen a later epoch.
    pub(crate) fn kept_away(&self) {
        self.kept_away.inc();
    }

    /// Notes a job of a run's thread.
    pub(crate) fn ran(&self, job: &'static str, took: Duration) {
        self.jobs.get_or_create(&[("job", job)]).observe(took.as_secs_f64());
    }

    /// Notes an event that the core has handled.
    pub(crate) fn handled(&self, took: Duration) {
        self.core.observe(took.as_secs_f64());
    }

    /// Counts received bytes.
    pub(crate) fn received(&self, bytes: u64) {
        self.received.inc_by(bytes);
    }

    /// Counts sent bytes, if the write succeeded.
    pub(crate) fn sent(&self, written: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = written {
            self.sent.inc_by(*bytes as u64);
        }
    }
}

fn name_of_write(what: &Write) -> &'static str {
    match what {
        Write::Order { .. } => "order",
        Write::Checkpoint { .. } => "checkpoint",
        Write::Finished { .. } => "finished",
        Write::Doubt { .. } => "doubt",
        Write::Convict { .. } => "conviction",
        Write::Revoke { .. } => "revocation",
        Write::Cordons { .. } => "cordons",
        Write::Mend { .. } => "mended",
        Write::DropCheckpoints => "dropped checkpoints",
        Write::Poison { .. } => "task",
        Write::Delete => "deletion",
        Write::Load | Write::LoadFork { .. } => "load",
    }
}

/// The name of a job of a run's thread.
pub(crate) fn name_of_job(job: &Job) -> &'static str {
    match job {
        Job::Open { .. } => "open",
        Job::Plan(_) => "plan",
        Job::Take(_) => "take",
        Job::Checkpoint { .. } => "checkpoint",
        Job::Copy { .. } => "copy",
        Job::Void { .. } => "void",
        Job::Recomputation { .. } => "recomputation",
        Job::Recomputations(_) => "recomputations",
        Job::Pass { .. } => "pass",
        Job::Forget { .. } => "forget",
    }
}
