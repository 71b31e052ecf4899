//! The coordinator at one moment, as figures: the core's counters, and the runs as people see them.

use std::{cmp::Reverse, collections::BTreeMap, fmt, sync::Arc};

use evoxo_process::build;
use evoxo_proto::{shown::state, v1::RunState};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _, NoLabelSet},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::Unit,
};

use crate::{
    access::Expiries,
    core::{Attempts, Durations, Figures, View},
};

/// The most runs with figures of their own: unfinished ones first, then by name.
pub(super) const RUNS_MAX: usize = 200;
/// The most workers with figures of their own: those with the most bad ends first.
pub(super) const WORKERS_MAX: usize = 200;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) figures: Figures,
    pub(super) runs: Vec<Arc<View>>,
    /// The epoch in which this coordinator leads; `None` while the store cannot be written.
    pub(super) epoch: Option<u64>,
    pub(super) healthy: bool,
}

/// Figures that a standby has, too.
#[derive(Debug)]
pub(super) struct Process {
    /// When the process started, in seconds since 1970.
    started_s: u64,
    leads: bool,
    /// The free bytes of the file system of the store, if the store is a directory.
    free_bytes: Option<u64>,
    /// When certificates and tokens expire, if there is an access directory.
    expiries: Option<Expiries>,
}

impl Process {
    pub(super) fn new(started_s: u64, leads: bool, free_bytes: Option<u64>) -> Self {
        Self { started_s, leads, free_bytes, expiries: None }
    }

    /// The same with the certificates and tokens of an access directory.
    pub(super) fn with_expiries(self, expiries: Option<Expiries>) -> Self {
        Self { expiries, ..self }
    }
}

impl Snapshot {
    /// The runs with figures of their own.
    fn shown(&self) -> Vec<&View> {
        let mut shown: Vec<&View> = self.runs.iter().map(AsRef::as_ref).collect();
        shown.sort_by_key(|view| (has_ended(view.run.state()), view.run.name.as_str()));
        shown.truncate(RUNS_MAX);
        shown
    }
}

fn has_ended(state: RunState) -> bool {
    matches!(state, RunState::Finished | RunState::Cancelled)
}

/// Writes metrics one after the other.
struct Writer<'a>(DescriptorEncoder<'a>);

impl Writer<'_> {
    /// A gauge with one value for each set of labels.
    fn gauges<L: EncodeLabelSet>(
        &mut self,
        (name, unit, help): (&str, Option<&Unit>, &str),
        values: impl IntoIterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, unit, MetricType::Gauge)?;
        for (labels, value) in values {
            ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }

    /// A gauge with one value.
    fn gauge(&mut self, name: &str, unit: Option<&Unit>, help: &str, value: u64) -> fmt::Result {
        ConstGauge::new(value).encode(self.0.encode_descriptor(name, help, unit, MetricType::Gauge)?)
    }

    /// Counters with one value for each set of labels; the format adds "_total" to the name.
    fn counters<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in values {
            ConstCounter::new(value).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        ConstCounter::new(value).encode(self.0.encode_descriptor(name, help, None, MetricType::Counter)?)
    }

    fn durations(&mut self, name: &str, help: &str, durations: &Durations) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
        metric.encode_histogram::<NoLabelSet>(durations.sum_s(), durations.count(), &durations.intervals(), None)
    }

    fn process(&mut self, process: &Process) -> fmt::Result {
        let build = build();
        let labels = [[("version", build.version), ("commit", build.commit)]];
        self.gauges(("build_info", None, "The build of this coordinator"), labels.map(|labels| (labels, 1)))?;
        let help = "When this process started, since 1970";
        self.gauge("start_time", Some(&Unit::Seconds), help, process.started_s)?;
        if let Some(free) = process.free_bytes {
            self.gauge("store_free", Some(&Unit::Bytes), "Free bytes on the disk of the store", free)?;
        }
        self.gauge(
            "leads",
            None,
            "1 if this coordinator leads, 0 if it is a standby or cannot write the store",
            process.leads.into(),
        )?;
        process.expiries.as_ref().map_or(Ok(()), |expiries| self.expiries(expiries))
    }

    fn expiries(&mut self, expiries: &Expiries) -> fmt::Result {
        let seconds = Some(&Unit::Seconds);
        let help = "When the certificates of the authority and of this coordinator expire, since 1970";
        let own = expiries.own.iter().map(|(what, at_s)| ([("certificate", *what)], *at_s));
        self.gauges(("certificate_expires", seconds, help), own)?;
        let help = "When the certificate of a connected identity expires, since 1970, for the 100 that expire first";
        let identities = expiries.identities.iter().map(|(id, name, role, at_s)| {
            ([("identity", id.to_string()), ("name", name.clone()), ("role", role.to_string())], *at_s)
        });
        self.gauges(("identity_expires", seconds, help), identities)?;
        let help = "When a token that can be used expires, since 1970, for the 100 that expire first";
        let tokens = expiries.tokens.iter();
        let tokens = tokens.map(|(id, role, at_s)| ([("token", id.to_string()), ("role", role.to_string())], *at_s));
        self.gauges(("token_expires", seconds, help), tokens)
    }

    fn leader(&mut self, snapshot: &Snapshot) -> fmt::Result {
        self.gauge("epoch", None, "The epoch in which this coordinator leads", snapshot.epoch.unwrap_or_default())?;
        let help = "1 if the store has all runs that should advance";
        self.gauge("healthy", None, help, snapshot.healthy.into())?;
        let Figures { memory_bytes, memory_bytes_max, .. } = snapshot.figures;
        let bytes = Some(&Unit::Bytes);
        self.gauge("run_memory", bytes, "Memory that runs have reserved", memory_bytes)?;
        self.gauge("run_memory_limit", bytes, "Memory that all runs together may reserve", memory_bytes_max)?;
        let limits = &snapshot.figures.limits;
        let help = "What is used of each limit; of those of one submitter, what the submitter with the most uses";
        self.gauges(("limit_used", None, help), limits.iter().map(|(limit, used, _)| ([("limit", *limit)], *used)))?;
        let help = "How many of each there may be";
        self.gauges(("limit", None, help), limits.iter().map(|(limit, _, most)| ([("limit", *limit)], *most)))
    }

    fn workers(&mut self, figures: &Figures) -> fmt::Result {
        let by_state = [
            ([("state", "busy")], figures.workers_busy),
            ([("state", "idle")], figures.workers_idle),
            ([("state", "cordoned")], figures.workers_cordoned),
            ([("state", "leaving")], figures.workers_leaving),
        ];
        self.gauges(("workers", None, "Connected workers"), by_state)?;
        self.gauge("slots", None, "Slots of the connected workers", figures.slots)?;
        self.gauge("slots_busy", None, "Slots with something to compute", figures.slots_busy)?;
        let tally = &figures.tally;
        self.counter("sessions_begun", "Sessions of workers that began", tally.joined)?;
        let help = "Sessions that ended in order, or were replaced by another session of the same process";
        self.counter("sessions_ended", help, tally.left)?;
        self.counter("workers_refused", "Workers that were refused or told to wait", tally.refused)?;
        let lost = tally.lost_by_cause().map(|(cause, count)| ([("cause", cause)], count));
        self.counters("workers_lost", "Workers that were lost", lost)?;
        let help = "Workers of whose attempts many more end badly than of those of other workers";
        self.gauge("workers_noticed", None, help, figures.workers_noticed)
    }

    /// How attempts ended, in all and by worker.
    fn attempts(&mut self, figures: &Figures) -> fmt::Result {
        let all = figures.tally.attempts.by_end().map(|(end, count)| ([("end", end)], count));
        let help = "Attempts at tasks that have ended: each copy of a task on a worker is one";
        self.counters("attempts_ended", help, all)?;
        let mut workers: Vec<(&String, &Attempts)> = figures.attempts.iter().collect();
        workers.sort_by_key(|(name, attempts)| (Reverse(attempts.bad()), *name));
        let left_out = workers.len().saturating_sub(WORKERS_MAX) as u64;
        workers.truncate(WORKERS_MAX);
        let each = workers.into_iter().flat_map(|(name, attempts)| {
            attempts.by_end().map(|(end, count)| ([("worker", name.as_str()), ("end", end)], count))
        });
        self.counters("worker_attempts_ended", "The same for each connected worker, by its name", each)?;
        let help = "Workers without figures of their own, because there are too many";
        self.gauge("workers_left_out", None, help, left_out)
    }

    fn tasks(&mut self, figures: &Figures) -> fmt::Result {
        let by_state = [
            ([("state", "open")], figures.tasks_ready),
            ([("state", "out")], figures.tasks_out),
            ([("state", "suspect")], figures.tasks_suspect),
        ];
        let help =
            "Tasks that are planned but not done: open, with a worker (out), or open after a loss or failure (suspect)";
        self.gauges(("tasks", None, help), by_state)?;
        let tally = &figures.tally;
        self.counter("tasks_done", "Tasks with an accepted output", tally.tasks_done)?;
        self.counter("task_failures", "Failures that workers reported", tally.failures)?;
        self.counter("task_copies_sent", "Tasks sent to workers, each copy counted", tally.copies)?;
        self.counter("assignments", "Batches of tasks sent to workers", tally.assignments)?;
        self.counter("rounds_done", "Rounds absorbed", tally.rounds)?;
        self.counter("doubts", "Tasks whose copies had different outputs", tally.doubts)?;
        let help = "Outputs that a trusted worker has recomputed because they were drawn as samples";
        self.counter("recomputations", help, tally.recomputations)?;
        self.counter("convictions", "Identities that were convicted of a wrong output", tally.convictions)?;
        self.counter("runs_failed", "Runs that failed", tally.runs_failed)?;
        let help = "Ended runs that were deleted because of their age, number or bytes";
        self.counter("runs_retired", help, tally.retired)?;
        self.gauge("runs_expiring", None, "Ended runs whose deletion was announced", figures.runs_expiring)?;
        self.durations("task_duration", "How long a task took on its worker", &tally.task)?;
        let help = "From the sending of a batch of tasks to its last result";
        self.durations("assignment_round_trip", help, &tally.assignment)
    }

    fn runs(&mut self, snapshot: &Snapshot) -> fmt::Result {
        let mut by_state: BTreeMap<&str, u64> = BTreeMap::new();
        for known in ["running", "paused", "finished", "cancelled", "failed", "blocked", "in doubt"] {
            by_state.insert(known, 0);
        }
        for view in &snapshot.runs {
            *by_state.entry(state(&view.run)).or_default() += 1;
        }
        let counts = by_state.into_iter().map(|(state, count)| ([("state", state)], count));
        self.gauges(("runs", None, "Runs of this coordinator"), counts)?;
        let shown = snapshot.shown();
        let help = "Runs without figures of their own, because there are too many";
        self.gauge("runs_left_out", None, help, (snapshot.runs.len() - shown.len()) as u64)?;
        let info = shown.iter().map(|view| {
            let run = &view.run;
            ([("run", run.name.as_str()), ("kind", run.kind.as_str()), ("state", state(run))], 1)
        });
        self.gauges(("run_info", None, "A run, with its kind and state"), info)?;
        let each = |value: fn(&View) -> u64| {
            let shown = shown.clone();
            shown.into_iter().map(move |view| ([("run", view.run.name.as_str())], value(view)))
        };
        let help = "Rounds that a run has completed so far";
        self.gauges(("run_rounds", None, help), each(|view| view.run.rounds_done))?;
        let help = "All rounds of a run; an estimate while it runs";
        self.gauges(("run_rounds_planned", None, help), each(|view| view.run.rounds_total))?;
        self.gauges(("run_replicas", None, "Replicas of a run"), each(|view| view.run.replicas_total.into()))?;
        let help = "Finished replicas of a run";
        self.gauges(("run_replicas_finished", None, help), each(|view| view.run.replicas_finished.into()))?;
        let help = "Tasks of a run that workers have now";
        self.gauges(("run_tasks_out", None, help), each(|view| view.run.tasks_assigned.into()))?;
        let help = "How long rounds of a running run have been in no stored checkpoint; 0 if all are stored";
        let unsaved = &snapshot.figures.unsaved_ms;
        let ages = shown.iter().filter_map(|view| Some((view.run.name.as_str(), unsaved.get(&view.run.name)?)));
        let ages = ages.map(|(name, ms)| ([("run", name)], ms / 1000));
        self.gauges(("run_checkpoint_age", Some(&Unit::Seconds), help), ages)?;
        let help = "Connected workers that compute a run's kind of tasks";
        self.gauges(("run_workers", None, help), each(|view| view.run.workers.into()))
    }
}

impl Collector for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut writer = Writer(encoder);
        writer.leader(self)?;
        writer.workers(&self.figures)?;
        writer.tasks(&self.figures)?;
        writer.attempts(&self.figures)?;
        writer.runs(self)
    }
}

impl Collector for Process {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        Writer(encoder).process(self)
    }
}
