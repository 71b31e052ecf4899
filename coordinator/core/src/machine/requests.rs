//! Requests of clients.

use std::sync::Arc;

use evoxo_common::experiment::Config;
use evoxo_proto::v1::{self, RunState};

use super::{
    Coordinator, Effect, Figures, Rejection, ReplicaAt, Request, RequestId, Response, Topic, View, Write,
    budget::too_large,
    look::Moment,
    orders::{ASKED_MAX, Orders, Wanted},
    out::Out,
    phases::{ReplicaPhase, ReplicaRecord},
    rules::{Proposal, expiry, quota},
    run::{Blocked, Presence, Run},
    runs::{RunId, Runs},
    sessions::Sessions,
    work::Work,
    writes::{Pending, PendingOrder, Refusal},
};
use crate::{
    names::check_run_name,
    prepared::Prepared,
    replicas::{Job, ReplicaKey},
    saved::seal_revocation,
    trust::Level,
};

/// The reply to a request that is not rejected.
enum Reply {
    /// The response follows once something is written or read.
    Later,
    Now(Response),
    /// The run as it is.
    Run(RunId),
    /// The run as it is, for a submission that changes nothing.
    Submitted(RunId),
}

/// A client's submission of a run.
struct Submission {
    request: RequestId,
    prepared: Arc<Prepared>,
    level: Level,
    terms: Vec<v1::Term>,
}

/// A run that is being deleted cannot be changed.
fn being_deleted(name: &str) -> Rejection {
    Rejection::Unavailable(format!("run {name:?} is being deleted: try again in a moment"))
}

impl Coordinator {
    pub(super) fn on_request(&mut self, id: RequestId, request: Request) {
        if let Some(run) = request.orders().and_then(|name| self.work.runs.being_ordered(name)) {
            if !run.orders.wait(id, request) {
                let sentence = format!("{ASKED_MAX} requests wait for run {:?}: try again in a moment", run.name);
                self.out.effects.respond(id, Err(Rejection::Unavailable(sentence)));
            }
            return;
        }
        let reply = match self.work.runs.permitted(request) {
            Err(rejection) => Err(rejection),
            Ok(request) => self.carry_out(id, request),
        };
        let response = match reply {
            Ok(Reply::Later) => return,
            Ok(Reply::Now(response)) => Ok(response),
            Ok(Reply::Run(run)) => Ok(Response::Run(Box::new(self.view(run)))),
            Ok(Reply::Submitted(run)) => Ok(Response::Submitted { run: Box::new(self.view(run)), created: false }),
            Err(rejection) => Err(rejection),
        };
        self.out.effects.respond(id, response);
    }

    /// Carries out a request, or requests the write or read that must come first.
    fn carry_out(&mut self, id: RequestId, request: Request) -> Result<Reply, Rejection> {
        let Self { at, work, fleet, out, .. } = self;
        let response = match request {
            Request::Submit { name, prepared, level, submitter, terms } => {
                let submission = Submission { request: id, prepared, level, terms };
                return work.submit(at, &fleet.sessions, out, &name, submitter, submission);
            }
            Request::Pause { name } => return work.runs.want(out, id, &name, Wanted::Paused, false),
            Request::Resume { name } if work.runs.is_unknown(&name) && !at.stopping => {
                // It may have been copied into the store.
                out.search(id, name);
                return Ok(Reply::Later);
            }
            Request::Resume { name } => return work.runs.want(out, id, &name, Wanted::Running, false),
            Request::Cancel { name, delete } => return work.runs.want(out, id, &name, Wanted::Cancelled, delete),
            Request::Replica { name, replica } => return work.runs.replica(out, id, &name, replica),
            Request::Cordon { named, by, at_s } => {
                fleet.cordon(at, out, id, named, (&by, at_s))?;
                return Ok(Reply::Later);
            }
            Request::Revoke { id: refused, by } => {
                let bytes = seal_revocation(&refused, &by);
                out.write_refusal(Write::Revoke { id: refused, bytes }, Refusal::Revoked(id));
                return Ok(Reply::Later);
            }
            Request::Replicas { name } => work.runs.replicas(&name)?,
            Request::Objects { name } => work.runs.objects(&name)?,
            Request::Tasks { name, limit } => {
                work.assigned_tasks(at.now, &fleet.sessions, work.runs.named(&name)?.0, limit)?
            }
            Request::Workers => Response::Workers(fleet.workers(at.now, &work.runs)),
            Request::Lost => Response::Lost(fleet.lost.list(at.now)),
            Request::Drain(named) => Response::Workers(fleet.drain(at.now, &mut work.runs, out, &named)?),
            Request::Cordons => Response::Cordons(fleet.cordons.all()),
            Request::Figures => {
                let limits = quota::used(&work.look(at, &fleet.sessions, &out.writes));
                Response::Figures(Box::new(Figures { limits, ..self.figures() }))
            }
            Request::Own { .. } => panic!("the right to a request is checked once"),
        };
        Ok(Reply::Now(response))
    }

    /// Responds with the run's current view. If the run had failed, the message says why.
    pub(super) fn respond_run(&mut self, id: RunId, request: RequestId, submitted: bool, failed: Option<String>) {
        let mut run = Box::new(self.view(id));
        if let Some(why) = failed {
            run.message = format!("it had failed, and is tried again: {why}");
        }
        let response = if submitted { Response::Submitted { run, created: true } } else { Response::Run(run) };
        self.out.effects.respond(request, Ok(response));
    }

    /// A run as clients see it, without its configuration.
    pub(super) fn view(&self, id: RunId) -> v1::Run {
        let (run, sessions) = (&self.work.runs[id], &self.fleet.sessions);
        let (workers, slots) = sessions.serving(run);
        let tasks_assigned = self.work.tasks.assigned(id) as u32;
        let tasks_waiting = self.work.tasks.waiting(id, run.level == Level::Quorum) as u32;
        let own = || self.registry.signature(run.prepared.config.kind);
        let signature = run.foreign.or_else(|| run.blocked.is_none().then(own));
        let signature = signature.map(|signature| signature.to_string()).unwrap_or_default();
        let mut view = v1::Run { signature, tasks_assigned, tasks_waiting, workers, slots, ..run.view() };
        if workers == 0 && view.message.is_empty() && run.hands_out() {
            let missing = sessions.missing_program(&run.prepared);
            let missing = missing.or_else(|| sessions.missing_labels(run)).or_else(|| sessions.all_cordoned(run));
            view.message = missing.or_else(|| self.fleet.lost.aside(self.at.now)).unwrap_or_default();
        }
        if view.message.is_empty() && run.hands_out() {
            view.message = self.work.waits_for_here(id).unwrap_or_default();
        }
        if workers > 0 && view.message.is_empty() && run.hands_out() {
            view.message =
                self.work.look(&self.at, sessions, &self.out.writes).missing_trust(id, run).unwrap_or_default();
        }
        view
    }

    /// Publishes changed runs: at once if the state has changed, otherwise at most every 200 ms.
    pub(super) fn publish(&mut self) {
        const INTERVAL_MS: u64 = 200;
        let due =
            |run: &Run| run.published.is_none_or(|(state, at)| state != run.state() || self.at.now - at >= INTERVAL_MS);
        let changed = self.work.runs.changed().iter().copied();
        let due: Vec<RunId> = changed.filter(|id| due(&self.work.runs[*id])).collect();
        for id in due {
            self.work.runs.shown(id);
            let (now, view) = (self.at.now, self.view(id));
            let run = self.work.runs.adjust(id);
            // Show nothing that is not stored yet.
            let failure_waits = run.orders.has_unsaved_failure() && run.orders.is_writing();
            if run.orders.is_creating() || failure_waits || self.out.writes.has_unconfirmed(id) {
                continue;
            }
            run.published = Some((view.state(), now));
            let prepared = Some(run.prepared.clone());
            self.out.effects.publish(View { run: view, prepared });
        }
        let fenced = |(_, run): (RunId, &Run)| matches!(run.blocked, Some(Blocked::Fenced(_)));
        let healthy = !self.work.runs.iter().any(fenced);
        if healthy != self.healthy {
            self.healthy = healthy;
            self.out.effects.push(Effect::Healthy(healthy));
            let sentence = match healthy {
                true => "health: serving, because no run is missing in the store any longer",
                false => "health: not serving, because a run is missing in the store",
            };
            self.out.effects.log(if healthy { Topic::Progress } else { Topic::Trouble }, sentence.into());
        }
    }
}

impl Work {
    fn submit(
        &mut self,
        at: &Moment,
        sessions: &Sessions,
        out: &mut Out,
        name: &str,
        submitter: String,
        Submission { request, prepared, level, mut terms }: Submission,
    ) -> Result<Reply, Rejection> {
        if at.stopping {
            return Err(Rejection::Unavailable("the coordinator is stopping".into()));
        }
        check_run_name(name).map_err(Rejection::Invalid)?;
        self.rules.check_terms(&terms).map_err(Rejection::Invalid)?;
        terms.sort_by(|one, other| one.name.cmp(&other.name));
        let (replicas, limit) = (prepared.replicas(), at.settings.replicas_max);
        if replicas > limit {
            let sentence = format!("the run has {replicas} replicas over all arms: at most {limit} are allowed");
            return Err(Rejection::Exhausted(sentence));
        }
        let needed = prepared.least_bytes(at.settings.plan_ahead_bytes());
        let most = at.settings.run_memory_bytes_max();
        if needed > most {
            return Err(Rejection::Exhausted(too_large(needed, most)));
        }
        match self.runs.named(name) {
            Ok((id, _)) => {
                let submission = Submission { request, prepared, level, terms };
                return self.submit_again(at, sessions, out, id, submission);
            }
            Err(Rejection::NotFound(_)) => {}
            Err(rejection) => return Err(rejection),
        }
        let asked = Proposal { new_run: true, submitter: &submitter, replicas: prepared.replicas() };
        self.rules.admits(&self.look(at, sessions, &out.writes), &asked)?;
        let mut run = Run::new(name.into(), prepared.clone(), Orders::new());
        (run.submitter, run.level, run.terms) = (submitter, level, terms.clone());
        let id = self.add_run(at.now, run);
        let (look, whose) = (self.look(at, sessions, &out.writes), &self.runs[id].submitter);
        let notices = [quota::near(&look, whose), expiry::near(&look, whose)];
        let run = self.runs.change(id);
        notices.into_iter().flatten().for_each(|notice| run.notice(notice));
        let wanted = Wanted::Running;
        run.order(out, id, PendingOrder { request, prepared, wanted, terms, submitted: true, delete: false });
        Ok(Reply::Later)
    }

    /// Submitting an existing run again. The same settings change nothing, more replicas extend the run, new terms apply from
    /// now on, and a cancelled run continues.
    fn submit_again(
        &mut self,
        at: &Moment,
        sessions: &Sessions,
        out: &mut Out,
        id: RunId,
        Submission { request, prepared, level, terms: changed }: Submission,
    ) -> Result<Reply, Rejection> {
        let run = &self.runs[id];
        let name = &run.name;
        if run.prepared.hash != prepared.hash {
            let change = prepared.config.change_from(&run.prepared.config);
            let what = change.words().map(|what| format!(" ({what})")).unwrap_or_default();
            return Err(Rejection::Conflict(format!(
                "run {name:?} exists with other settings{what}: choose another name"
            )));
        }
        if level != Level::Plain && level != run.level {
            let there = run.level;
            return Err(Rejection::Conflict(format!(
                "run {name:?} exists with verification level {there}, not {level}: leave out the level, or choose \
                 another name"
            )));
        }
        if let Some(blocked) = &run.blocked {
            return Err(Rejection::Conflict(format!("run {name:?} is blocked: {}", blocked.why())));
        }
        if run.orders.is_deleting() {
            return Err(being_deleted(name));
        }
        let more = prepared.config.replicas > run.prepared.config.replicas;
        let kept = run.terms.iter().filter(|term| changed.iter().all(|other| other.name != term.name));
        let mut terms: Vec<v1::Term> = kept.chain(&changed).cloned().collect();
        terms.sort_by(|one, other| one.name.cmp(&other.name));
        let other_terms = terms != run.terms;
        if !more && !other_terms && *run.orders.wanted() != Wanted::Cancelled {
            return Ok(Reply::Submitted(id));
        }
        if more {
            let replicas = prepared.replicas() - run.prepared.replicas();
            let asked = Proposal { new_run: false, submitter: &run.submitter, replicas };
            self.rules.admits(&self.look(at, sessions, &out.writes), &asked)?;
        }
        // Settings on which no result depends stay as they were when the run began, so all its states have rounds of one size.
        let (there, replicas) = (&run.prepared.config, prepared.config.replicas);
        let prepared = match more {
            true if prepared.config.has_states_of(there) && prepared.config.keep == there.keep => prepared,
            true => Prepared::new(Config { replicas, ..there.clone() }),
            false => run.prepared.clone(),
        };
        // New terms alone neither restart a run nor end a pause.
        let wanted = match run.orders.wanted() {
            wanted if other_terms && !more && *wanted != Wanted::Cancelled => wanted.clone(),
            _ => Wanted::Running,
        };
        self.runs.adjust(id).order(
            out,
            id,
            PendingOrder { request, prepared, wanted, terms, submitted: true, delete: false },
        );
        Ok(Reply::Later)
    }
}

impl Runs {
    /// The request, unless it may change only the runs of a submitter, and its run has another one.
    fn permitted(&self, request: Request) -> Result<Request, Rejection> {
        let Request::Own { submitter, request } = request else { return Ok(request) };
        let name = request.orders().unwrap_or_default();
        match self.find(name).map(|id| &self[id].submitter) {
            // A run that was copied into the store may be another person's.
            None if matches!(*request, Request::Resume { .. }) => Err(Rejection::no_run(name)),
            Some(other) if *other != submitter => Err(Rejection::denied(name, other)),
            _ => Ok(*request),
        }
    }

    /// The run of this name, if one of its orders is being written.
    fn being_ordered(&mut self, name: &str) -> Option<&mut Run> {
        let id = self.find(name)?;
        Some(self.adjust(id)).filter(|run| run.orders.is_writing())
    }

    fn is_unknown(&self, name: &str) -> bool {
        check_run_name(name).is_ok() && matches!(self.named(name), Err(Rejection::NotFound(_)))
    }

    /// The run of this name, or why a client cannot have it.
    fn named(&self, name: &str) -> Result<(RunId, &Run), Rejection> {
        if let Some(why) = self.unreadable.get(name) {
            return Err(Rejection::Conflict(why.clone()));
        }
        let id = self.find(name).ok_or_else(|| Rejection::no_run(name))?;
        Ok((id, &self[id]))
    }

    /// Writes what a client wants of a run.
    fn want(
        &mut self,
        out: &mut Out,
        request: RequestId,
        name: &str,
        wanted: Wanted,
        delete: bool,
    ) -> Result<Reply, Rejection> {
        let (id, run) = self.named(name)?;
        if run.orders.is_deleting() {
            return Err(being_deleted(name));
        }
        match (&run.blocked, &wanted) {
            (Some(Blocked::Fenced(_)), Wanted::Running) if run.presence == Presence::Resting => {
                self.change(id).presence = Presence::Loading;
                out.write(id, name, Write::Load, Pending::Load(Some(request)));
                return Ok(Reply::Later);
            }
            (Some(Blocked::Unfit(_)), Wanted::Cancelled) | (None, _) => {}
            (Some(blocked), _) => {
                return Err(Rejection::Conflict(format!("run {name:?} is blocked: {}", blocked.why())));
            }
        }
        match (run.orders.wanted(), &wanted) {
            (Wanted::Cancelled, Wanted::Running | Wanted::Paused) => {
                return Err(Rejection::Conflict(format!("run {name:?} is cancelled: submit it again to continue")));
            }
            (Wanted::Failed(why), Wanted::Paused) => {
                return Err(Rejection::Conflict(format!("run {name:?} has failed: {why}")));
            }
            (now, wanted) if now == wanted && !delete => {
                return Ok(Reply::Run(id));
            }
            _ => {}
        }
        if !delete && matches!(run.state(), RunState::Finished | RunState::InDoubt) {
            let hint = if wanted == Wanted::Cancelled { ": give --delete to remove it" } else { "" };
            return Err(Rejection::Conflict(format!("run {name:?} is finished{hint}")));
        }
        let (prepared, terms) = (run.prepared.clone(), run.terms.clone());
        self.adjust(id).order(out, id, PendingOrder { request, prepared, wanted, terms, submitted: false, delete });
        Ok(Reply::Later)
    }

    fn replicas(&self, name: &str) -> Result<Response, Rejection> {
        let (_, run) = self.named(name)?;
        let begun = run.replicas.iter().filter(|(key, _)| !run.replicas.unbegun().contains(key));
        let replicas = begun.map(|(key, record)| (*key, record.is_finished())).collect();
        Ok(Response::Replicas(run.prepared.clone(), replicas))
    }

    fn objects(&self, name: &str) -> Result<Response, Rejection> {
        let (_, run) = self.named(name)?;
        let stored = |(key, record): (&ReplicaKey, &ReplicaRecord)| match &record.phase {
            ReplicaPhase::Stored { place, .. } => Some((*key, place.clone())),
            _ => None,
        };
        let finished = run.replicas.iter().filter_map(stored).collect();
        Ok(Response::Objects { finished, checkpoint: run.checkpoints.object.clone() })
    }

    fn replica(&self, out: &mut Out, request: RequestId, name: &str, replica: ReplicaKey) -> Result<Reply, Rejection> {
        let (_, run) = self.named(name)?;
        let at = run.replica_at(replica);
        let elsewhere = matches!(at, Some(ReplicaAt::Bytes(_) | ReplicaAt::Stored(_)));
        match run.thread().filter(|_| !elsewhere && !run.replicas.unbegun().contains(&replica)) {
            Some(thread) => {
                out.effects.push(Effect::Job { thread, job: Job::Copy { request, replica } });
                Ok(Reply::Later)
            }
            None => at.map(|at| Reply::Now(Response::Replica(at))).ok_or_else(Rejection::no_replica),
        }
    }
}
