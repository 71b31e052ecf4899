//! The tasks that workers have now, as clients see them: which worker has which task, and since when.

use evoxo_common::time::Millis;
use evoxo_proto::v1;

use super::{
    Rejection, Response, SessionId,
    run::Run,
    runs::RunId,
    sessions::{Assignment, Session, Sessions},
    tasks::OpenTask,
    work::Work,
};

/// How many batches are listed if the client does not say it.
const LISTED: usize = 100;
/// The most batches in one answer.
const LISTED_MAX: usize = 1000;
/// The number of an assignment, and whether it waits for a free slot.
type Numbered<'a> = (u64, bool, &'a Assignment);

impl Work {
    /// The batches of a run that workers have, the ones without a result for longest first.
    pub(super) fn assigned_tasks(
        &self,
        now: Millis,
        sessions: &Sessions,
        id: RunId,
        limit: u32,
    ) -> Result<Response, Rejection> {
        let limit = if limit == 0 { LISTED } else { limit as usize };
        if limit > LISTED_MAX {
            return Err(Rejection::Invalid(format!("at most {LISTED_MAX} batches of tasks can be listed at once")));
        }
        let run = &self.runs[id];
        let own: Vec<v1::AssignedBatch> = self.computed_here(now, id, run).collect();
        let mut out: Vec<(SessionId, Numbered)> = Vec::new();
        for (session_id, session) in sessions.iter() {
            out.extend(numbered(session).filter(|(_, _, it)| it.run == id).map(|it| (session_id, it)));
        }
        let left_out = (own.len() + out.len()).saturating_sub(limit);
        let most = limit.saturating_sub(own.len());
        let oldest =
            |(session, (number, queued, it)): &(SessionId, Numbered)| (*queued, it.progress, *session, *number);
        if most < out.len() {
            out.select_nth_unstable_by_key(most, oldest);
            out.truncate(most);
        }
        out.sort_unstable_by_key(oldest);
        let assigned = out
            .iter()
            .map(|(session, numbered)| self.assigned_batch(now, run, (*session, &sessions[*session]), *numbered));
        let batches = own.into_iter().chain(assigned).take(limit).collect();
        Ok(Response::Tasks(v1::ListTasksResponse { batches, left_out: left_out as u32 }))
    }

    fn assigned_batch(
        &self,
        now: Millis,
        run: &Run,
        (session_id, session): (SessionId, &Session),
        numbered: Numbered,
    ) -> v1::AssignedBatch {
        let (number, queued, assignment) = numbered;
        // Tasks are sent in the order of their ids, and computed in that order.
        let next = assignment.remaining.iter().min_by_key(|(_, id)| **id);
        let (hash, id) = next.expect("an assignment has tasks until it is removed");
        let open = self.tasks.get(*id);
        // If another worker was faster, the task is closed, and known for as long as its copies are awaited.
        let known = open.or_else(|| self.tasks.awaiting(*hash).map(|awaiting| &awaiting.task));
        let copies = open.map_or(&[][..], |open| &open.copies);
        let copy = copies.iter().position(|copy| *copy == (session_id, number)).map_or(0, |place| place + 1);
        let has_computed = run.expected.has_computed(assignment.arm, assignment.work);
        v1::AssignedBatch {
            task: hash.to_string(),
            arm: run.prepared.config.arms[assignment.arm as usize].name.clone(),
            work: assignment.work.to_owned(),
            worker: session.name.to_string(),
            session: session_id.0,
            host: session.host.clone(),
            address: session.address.clone(),
            age_ms: now - assignment.progress,
            expected_ms: assignment.each_us.filter(|_| has_computed).map(|us| us.div_ceil(1000)),
            more: assignment.remaining.len() as u32 - 1,
            queued,
            copy: copy as u32,
            copies: copies.len() as u32,
            ..known.map_or_else(v1::AssignedBatch::default, about)
        }
    }

    /// The task of a run that the coordinator computes itself, if there is one.
    fn computed_here<'a>(
        &'a self,
        now: Millis,
        id: RunId,
        run: &'a Run,
    ) -> impl Iterator<Item = v1::AssignedBatch> + 'a {
        let tasks = self.own.computing.into_iter().flat_map(|hash| self.tasks.with_hash(hash));
        let open = tasks.map(|task| &self.tasks[task]).filter(move |open| open.run == id && open.own.is_asked());
        open.take(1).map(move |open| v1::AssignedBatch {
            task: open.encoded.hash.to_string(),
            arm: run.prepared.config.arms[open.replica.arm as usize].name.clone(),
            work: open.work.to_owned(),
            age_ms: now - self.own.since,
            copy: 1,
            copies: 1,
            ..about(open)
        })
    }
}

/// The assignments of a worker. Those above the number of its slots wait until a slot is free.
fn numbered(session: &Session) -> impl Iterator<Item = Numbered<'_>> {
    let slots = session.slots as usize;
    session.assignments.iter().enumerate().map(move |(place, (number, it))| (*number, place >= slots, it))
}

/// What the task itself says.
fn about(open: &OpenTask) -> v1::AssignedBatch {
    let evidence = open.evidence.as_deref();
    v1::AssignedBatch {
        replica: open.replica.index,
        round: Some(open.round),
        index: open.index as u64,
        failures: evidence.map_or(0, |evidence| evidence.failures.len()) as u32,
        losses: evidence.map_or(0, |evidence| evidence.losses.len()) as u32,
        ..v1::AssignedBatch::default()
    }
}
