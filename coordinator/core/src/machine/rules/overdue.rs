//! A worker whose tasks have made no progress for too long is lost. Heartbeats do not count as progress.

use super::{Act, Look, Rule};
use crate::machine::{
    cause::Cause,
    sessions::{Assignment, Session},
};

pub(super) struct Overdue;

impl Rule for Overdue {
    fn tick(&mut self, look: &Look) -> Vec<Act> {
        let overdue = look.sessions.iter().filter(|(_, session)| is_overdue(look, session));
        overdue.map(|(id, _)| Act::Lose(id, Cause::Overdue)).collect()
    }
}

/// A task that was overdue alone gets four times as long when it is next alone, in case its host was slow. So only a task
/// that never ends is overdue three times. If the worker should stop the task itself, the task is not overdue before that.
fn is_overdue(look: &Look, session: &Session) -> bool {
    let settings = look.settings;
    // The assignments of a worker wait for each other, so progress of one is enough. A worker without assignments is idle.
    let Some(progress) = session.assignments.values().map(|assignment| assignment.progress).max() else {
        return false;
    };
    // A task that fails at once on one host says nothing about how long it takes on others, so only computed tasks count.
    let computed = |assignment: &Assignment| {
        look.runs.get(assignment.run).is_some_and(|run| run.expected.has_computed(assignment.arm, assignment.work))
    };
    let known = session.assignments.values().map(|assignment| assignment.each_us.filter(|_| computed(assignment)));
    // A task of unknown duration may take as long as any other.
    let each_us = if known.clone().any(|each_us| each_us.is_none()) { None } else { known.flatten().max() };
    let limit_ms = settings.deadline_ms(each_us);
    let alone = session.assignments.values().filter(|assignment| assignment.alone);
    let tasks = alone.flat_map(|assignment| assignment.remaining.values());
    let evidence = tasks.filter_map(|task| look.tasks.get(*task)?.evidence.as_ref());
    let overdue = evidence.map(|evidence| evidence.overdue).max().unwrap_or(0);
    let stopped_ms = session.assignments.values().filter_map(|assignment| {
        let run = look.runs.get(assignment.run)?;
        Some(run.prepared.task_ms_max(assignment.arm)).filter(|ms| *ms > 0)
    });
    let allowed_ms = stopped_ms.max().map_or(0, |ms| ms.saturating_add(settings.deadline_ms_min));
    look.now - progress > limit_ms.saturating_mul(4_u64.saturating_pow(overdue)).max(allowed_ms)
}
