//! Runs and workers as JSON, the same for the command line and the page.

use serde_json::{Map, Value, json};

use crate::{
    Level,
    v1::{self, RunState},
};

/// A run as JSON.
#[must_use]
pub fn run_to_json(run: &v1::Run) -> Value {
    let arm = |arm: &v1::ArmProgress| {
        json!({
            "name": arm.name,
            "replicas_total": arm.replicas_total,
            "replicas_finished": arm.replicas_finished,
            "rounds_done": arm.rounds_done,
            "rounds_total": arm.rounds_total,
            "primary_metric": arm.primary_metric_name,
            "value": arm.primary_metric,
        })
    };
    json!({
        "name": run.name,
        "experiment": run.kind,
        "state": state(run),
        "message": run.message,
        "config_hash": run.config_hash,
        "replicas_total": run.replicas_total,
        "replicas_finished": run.replicas_finished,
        "rounds_done": run.rounds_done,
        "rounds_total": run.rounds_total,
        "tasks_done": run.tasks_done,
        "tasks_assigned": run.tasks_assigned,
        "tasks_waiting": run.tasks_waiting,
        "spent": run.spent.map(|spent| json!({
            "computing_s": seconds(spent.computing_us),
            "absorbing_s": seconds(spent.absorbing_us),
            "saving_s": seconds(spent.saving_us),
            "evaluations": spent.evaluations,
            "recalled": spent.recalled,
            "rechecked": spent.rechecked,
        })),
        "workers": run.workers,
        "slots": run.slots,
        "digest": run.digest,
        "verification": Level::of(run.verification, run.sampled_millionths).map(|level| level.to_string()),
        "submitter": run.submitter,
        "submitted": (run.submitted > 0).then_some(run.submitted),
        "ended": (run.ended > 0).then_some(run.ended),
        "terms": run.terms.iter().map(|term| (term.name.clone(), term.value.clone().into())).collect::<Map<_, Value>>(),
        "notices": run.notices,
        "doubts": run.doubts.iter().map(doubt_to_json).collect::<Value>(),
        "arms": run.arms.iter().map(arm).collect::<Value>(),
    })
}

/// Microseconds as seconds, to the millisecond.
#[must_use]
pub fn seconds(us: u64) -> f64 {
    (us as f64 / 1e3).round() / 1e3
}

/// A task whose copies differed, as JSON.
#[must_use]
pub fn doubt_to_json(doubt: &v1::Doubt) -> Value {
    json!({
        "task": doubt.task,
        "arm": doubt.arm,
        "replica": doubt.replica,
        "round": doubt.round,
        "worker": doubt.worker,
        "other_worker": doubt.other_worker,
        "output": doubt.output,
        "other_output": doubt.other_output,
    })
}

/// A run's state in a word or two.
#[must_use]
pub fn state(run: &v1::Run) -> &'static str {
    match run.state() {
        RunState::Running => "running",
        RunState::Paused => "paused",
        RunState::Finished => "finished",
        RunState::Cancelled => "cancelled",
        RunState::Failed => "failed",
        RunState::Blocked => "blocked",
        RunState::InDoubt => "in doubt",
        RunState::Unspecified => "unknown",
    }
}

/// Each way in which attempts end, with its name and how often it occurred.
#[must_use]
pub fn ends(worker: &v1::Worker) -> [(&'static str, u64); 6] {
    let v1::AttemptEnds { done, late, failed, timed_out, lost, refused } = worker.ends.unwrap_or_default();
    [("done", done), ("late", late), ("failed", failed), ("timed out", timed_out), ("lost", lost), ("refused", refused)]
}

/// A worker as JSON.
#[must_use]
pub fn worker_to_json(worker: &v1::Worker) -> Value {
    let ends = ends(worker).map(|(end, count)| (end.replace(' ', "_"), Value::from(count)));
    json!({
        "session": worker.session,
        "name": worker.name,
        "build": worker.build,
        "slots": worker.slots,
        "tasks_assigned": worker.tasks_assigned,
        "tasks_done": worker.tasks_done,
        "silent_ms": worker.silent_ms,
        "connected_ms": worker.connected_ms,
        "draining": worker.draining,
        "address": worker.address,
        "kinds": worker.kinds,
        "kinds_refused": worker.kinds_refused,
        "programs": worker.programs,
        "runs": worker.runs,
        "host": worker.host,
        "identity": worker.identity,
        "slots_busy": worker.slots_busy,
        "tasks_last_minute": worker.tasks_last_minute,
        "on_trial": worker.on_trial,
        "ends": Value::Object(ends.into_iter().collect()),
        "notice": worker.notice,
        "labels": worker.labels,
        "cordon": worker.cordon.as_ref().map(cordon_to_json),
    })
}

/// A cordon as JSON.
#[must_use]
pub fn cordon_to_json(cordon: &v1::Cordon) -> Value {
    json!({"worker": cordon.worker, "host": cordon.host, "by": cordon.by, "since": cordon.since})
}

/// Tasks that a worker has, as JSON.
#[must_use]
pub fn batch_to_json(batch: &v1::AssignedBatch) -> Value {
    json!({
        "task": batch.task,
        "work": batch.work,
        "arm": batch.arm,
        "replica": batch.replica,
        "round": batch.round,
        "index": batch.index,
        "worker": batch.worker,
        "session": batch.session,
        "host": batch.host,
        "address": batch.address,
        "age_ms": batch.age_ms,
        "expected_ms": batch.expected_ms,
        "more": batch.more,
        "queued": batch.queued,
        "copy": batch.copy,
        "copies": batch.copies,
        "failures": batch.failures,
        "losses": batch.losses,
    })
}

/// A lost worker as JSON.
#[must_use]
pub fn lost_to_json(lost: &v1::LostWorker) -> Value {
    json!({
        "session": lost.session,
        "name": lost.name,
        "host": lost.host,
        "address": lost.address,
        "identity": lost.identity,
        "reason": lost.reason,
        "tasks": lost.tasks,
        "ago_ms": lost.ago_ms,
        "aside_ms": lost.aside_ms,
    })
}

/// A number rounded to seven significant digits, as many as a picture can show.
#[must_use]
pub fn significant(value: f64) -> f64 {
    format!("{value:.6e}").parse().unwrap_or(value)
}
