//! Requests of clients.

use std::sync::Arc;

use evoxo_common::experiment::Config;
use evoxo_proto::v1::{self, RunState};

use super::{
    Coordinator, Effect, Figures, Rejection, ReplicaAt, Request, RequestId, Response, Topic, View, Write,
    budget::too_large,
    orders::{ASKED_MAX, Orders, Wanted},
    phases::{ReplicaPhase, ReplicaRecord},
    rules::{Proposal, expiry, quota},
    run::{Blocked, Presence, Run},
    runs::RunId,
    writes::{Pending, PendingOrder, Refusal},
};
use crate::{
    names::check_run_name,
    prepared::Prepared,
    replicas::{Job, ReplicaKey},
    saved::seal_revocation,
    trust::Level,
};

/// `None` if the response follows once something is written or read.
pub(super) type Reply = Result<Option<Response>, Rejection>;

/// A run that is being deleted cannot be changed.
fn being_deleted(name: &str) -> Rejection {
    Rejection::Unavailable(format!("run {name:?} is being deleted: try again in a moment"))
}

impl Coordinator {
    pub(super) fn on_request(&mut self, id: RequestId, request: Request) {
        if let Some(run) = request.orders().and_then(|name| self.ordering(name)) {
            if !run.orders.wait(id, request) {
                let sentence = format!("{ASKED_MAX} requests wait for run {:?}: try again in a moment", run.name);
                self.effects.respond(id, Err(Rejection::Unavailable(sentence)));
            }
            return;
        }
        let reply = match self.permitted(request) {
            Err(rejection) => Err(rejection),
            Ok(request) => self.carry_out(id, request),
        };
        if let Some(response) = reply.transpose() {
            self.effects.respond(id, response);
        }
    }

    /// The request, unless it may change only the runs of a submitter, and its run has another one.
    fn permitted(&self, request: Request) -> Result<Request, Rejection> {
        let Request::Own { submitter, request } = request else { return Ok(request) };
        let name = request.orders().unwrap_or_default();
        match self.runs.find(name).map(|id| &self.runs[id].submitter) {
            // A run that was copied into the store may be another person's.
            None if matches!(*request, Request::Resume { .. }) => Err(Rejection::no_run(name)),
            Some(other) if *other != submitter => Err(Rejection::denied(name, other)),
            _ => Ok(*request),
        }
    }

    fn carry_out(&mut self, id: RequestId, request: Request) -> Reply {
        match request {
            Request::Submit { name, prepared, level, submitter, terms } => {
                self.submit(id, &name, prepared, level, submitter, terms)
            }
            Request::Pause { name } => self.want(id, &name, Wanted::Paused, false),
            Request::Resume { name } if self.is_unknown(&name) => {
                // It may have been copied into the store.
                let write = self.writes.add_search(id, name.clone());
                self.effects.push(Effect::Store { write, run: name, what: Write::Load });
                Ok(None)
            }
            Request::Resume { name } => self.want(id, &name, Wanted::Running, false),
            Request::Cancel { name, delete } => self.want(id, &name, Wanted::Cancelled, delete),
            Request::Replicas { name } => self.replicas(&name),
            Request::Replica { name, replica } => self.replica(id, &name, replica),
            Request::Objects { name } => self.objects(&name),
            Request::Tasks { name, limit } => self.assigned_tasks(self.find(&name)?.0, limit),
            Request::Workers => Ok(Some(Response::Workers(self.workers()))),
            Request::Lost => Ok(Some(Response::Lost(self.lost.list(self.now)))),
            Request::Drain(named) => self.drain(&named).map(|workers| Some(Response::Workers(workers))),
            Request::Cordon { named, by, at_s } => self.cordon(id, named, &by, at_s),
            Request::Cordons => Ok(Some(Response::Cordons(self.cordons.all()))),
            Request::Revoke { id: refused, by } => {
                let write = self.writes.add_refusal(Refusal::Revoked(id));
                let bytes = seal_revocation(&refused, &by);
                let what = Write::Revoke { id: refused, bytes };
                self.effects.push(Effect::Store { write, run: String::new(), what });
                Ok(None)
            }
            Request::Figures => {
                let figures = Figures { limits: quota::used(&self.look()), ..self.figures() };
                Ok(Some(Response::Figures(Box::new(figures))))
            }
            Request::Own { .. } => panic!("the right to a request is checked once"),
        }
    }

    /// The run of this name, if one of its orders is being written.
    fn ordering(&mut self, name: &str) -> Option<&mut Run> {
        let id = self.runs.find(name)?;
        Some(self.runs.adjust(id)).filter(|run| run.orders.is_writing())
    }

    fn is_unknown(&self, name: &str) -> bool {
        check_run_name(name).is_ok() && matches!(self.find(name), Err(Rejection::NotFound(_))) && !self.stopping
    }

    fn find(&self, name: &str) -> Result<(RunId, &Run), Rejection> {
        if let Some(why) = self.runs.unreadable.get(name) {
            return Err(Rejection::Conflict(why.clone()));
        }
        let id = self.runs.find(name).ok_or_else(|| Rejection::no_run(name))?;
        Ok((id, &self.runs[id]))
    }

    fn submit(
        &mut self,
        request: RequestId,
        name: &str,
        prepared: Arc<Prepared>,
        level: Level,
        submitter: String,
        mut terms: Vec<v1::Term>,
    ) -> Reply {
        if self.stopping {
            return Err(Rejection::Unavailable("the coordinator is stopping".into()));
        }
        check_run_name(name).map_err(Rejection::Invalid)?;
        self.rules.check_terms(&terms).map_err(Rejection::Invalid)?;
        terms.sort_by(|one, other| one.name.cmp(&other.name));
        let (replicas, limit) = (prepared.replicas(), self.settings.replicas_max);
        if replicas > limit {
            let sentence = format!("the run has {replicas} replicas over all arms: at most {limit} are allowed");
            return Err(Rejection::Exhausted(sentence));
        }
        let needed = prepared.least_bytes(self.settings.plan_ahead_bytes());
        let most = self.settings.run_memory_bytes_max();
        if needed > most {
            return Err(Rejection::Exhausted(too_large(needed, most)));
        }
        match self.find(name) {
            Ok((id, _)) => return self.submit_again(request, id, prepared, level, &terms),
            Err(Rejection::NotFound(_)) => {}
            Err(rejection) => return Err(rejection),
        }
        let asked = Proposal { new_run: true, submitter: &submitter, replicas: prepared.replicas() };
        self.rules.admits(&self.look(), &asked)?;
        let mut run = Run::new(name.into(), prepared.clone(), Orders::new());
        (run.submitter, run.level, run.terms) = (submitter, level, terms.clone());
        let id = self.add_run(run);
        let (look, whose) = (self.look(), &self.runs[id].submitter);
        for notice in [quota::near(&look, whose), expiry::near(&look, whose)].into_iter().flatten() {
            self.runs.change(id).notice(notice);
        }
        let wanted = Wanted::Running;
        self.order(id, PendingOrder { request, prepared, wanted, terms, submitted: true, delete: false });
        Ok(None)
    }

    /// Submitting an existing run again. The same settings change nothing, more replicas extend the run, new terms apply from
    /// now on, and a cancelled run continues.
    fn submit_again(
        &mut self,
        request: RequestId,
        id: RunId,
        prepared: Arc<Prepared>,
        level: Level,
        changed: &[v1::Term],
    ) -> Reply {
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
        let mut terms: Vec<v1::Term> = kept.chain(changed).cloned().collect();
        terms.sort_by(|one, other| one.name.cmp(&other.name));
        let other_terms = terms != run.terms;
        if !more && !other_terms && *run.orders.wanted() != Wanted::Cancelled {
            return Ok(Some(Response::Submitted { run: Box::new(self.view(id)), created: false }));
        }
        if more {
            let replicas = prepared.replicas() - run.prepared.replicas();
            let asked = Proposal { new_run: false, submitter: &run.submitter, replicas };
            self.rules.admits(&self.look(), &asked)?;
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
        self.order(id, PendingOrder { request, prepared, wanted, terms, submitted: true, delete: false });
        Ok(None)
    }

    fn want(&mut self, request: RequestId, name: &str, wanted: Wanted, delete: bool) -> Reply {
        let (id, run) = self.find(name)?;
        if run.orders.is_deleting() {
            return Err(being_deleted(name));
        }
        match (&run.blocked, &wanted) {
            (Some(Blocked::Fenced(_)), Wanted::Running) if run.presence == Presence::Resting => {
                self.runs.change(id).presence = Presence::Loading;
                self.write(id, Write::Load, Pending::Load(Some(request)));
                return Ok(None);
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
                return Ok(Some(Response::Run(Box::new(self.view(id)))));
            }
            _ => {}
        }
        if !delete && matches!(run.state(), RunState::Finished | RunState::InDoubt) {
            let hint = if wanted == Wanted::Cancelled { ": give --delete to remove it" } else { "" };
            return Err(Rejection::Conflict(format!("run {name:?} is finished{hint}")));
        }
        let (prepared, terms) = (run.prepared.clone(), run.terms.clone());
        self.order(id, PendingOrder { request, prepared, wanted, terms, submitted: false, delete });
        Ok(None)
    }

    fn replicas(&self, name: &str) -> Reply {
        let (_, run) = self.find(name)?;
        let begun = run.replicas.iter().filter(|(key, _)| !run.replicas.unbegun().contains(key));
        let replicas = begun.map(|(key, record)| (*key, record.is_finished())).collect();
        Ok(Some(Response::Replicas(run.prepared.clone(), replicas)))
    }

    fn objects(&self, name: &str) -> Reply {
        let (_, run) = self.find(name)?;
        let stored = |(key, record): (&ReplicaKey, &ReplicaRecord)| match &record.phase {
            ReplicaPhase::Stored { place, .. } => Some((*key, place.clone())),
            _ => None,
        };
        let finished = run.replicas.iter().filter_map(stored).collect();
        Ok(Some(Response::Objects { finished, checkpoint: run.checkpoints.object.clone() }))
    }

    fn replica(&mut self, request: RequestId, name: &str, replica: ReplicaKey) -> Reply {
        let (_, run) = self.find(name)?;
        let at = run.replica_at(replica);
        let elsewhere = matches!(at, Some(ReplicaAt::Bytes(_) | ReplicaAt::Stored(_)));
        match run.thread().filter(|_| !elsewhere && !run.replicas.unbegun().contains(&replica)) {
            Some(thread) => {
                self.effects.push(Effect::Job { thread, job: Job::Copy { request, replica } });
                Ok(None)
            }
            None => at.map(|at| Some(Response::Replica(at))).ok_or_else(Rejection::no_replica),
        }
    }

    /// Responds with the run's current view. If the run had failed, the message says why.
    pub(super) fn respond_run(&mut self, id: RunId, request: RequestId, submitted: bool, failed: Option<String>) {
        let mut run = Box::new(self.view(id));
        if let Some(why) = failed {
            run.message = format!("it had failed, and is tried again: {why}");
        }
        let response = if submitted { Response::Submitted { run, created: true } } else { Response::Run(run) };
        self.effects.respond(request, Ok(response));
    }

    /// A run as clients see it, without its configuration.
    pub(super) fn view(&self, id: RunId) -> v1::Run {
        let run = &self.runs[id];
        let (workers, slots) = self.sessions.serving(run);
        let tasks_assigned = self.tasks.assigned(id) as u32;
        let tasks_waiting = self.tasks.waiting(id, run.level == Level::Quorum) as u32;
        let own = || self.registry.signature(run.prepared.config.kind);
        let signature = run.foreign.or_else(|| run.blocked.is_none().then(own));
        let signature = signature.map(|signature| signature.to_string()).unwrap_or_default();
        let mut view = v1::Run { signature, tasks_assigned, tasks_waiting, workers, slots, ..run.view() };
        if workers == 0 && view.message.is_empty() && run.hands_out() {
            let missing = self.sessions.missing_program(&run.prepared);
            let missing = missing.or_else(|| self.sessions.missing_labels(run)).or_else(|| self.all_cordoned(run));
            view.message = missing.or_else(|| self.lost.aside(self.now)).unwrap_or_default();
        }
        if view.message.is_empty() && run.hands_out() {
            view.message = self.waits_for_here(id).unwrap_or_default();
        }
        if workers > 0 && view.message.is_empty() && run.hands_out() {
            view.message = self.missing_trust(id, run).unwrap_or_default();
        }
        view
    }

    /// Publishes changed runs: at once if the state has changed, otherwise at most every 200 ms.
    pub(super) fn publish(&mut self) {
        const INTERVAL_MS: u64 = 200;
        let due =
            |run: &Run| run.published.is_none_or(|(state, at)| state != run.state() || self.now - at >= INTERVAL_MS);
        let changed = self.runs.changed().iter().copied();
        let due: Vec<RunId> = changed.filter(|id| due(&self.runs[*id])).collect();
        for id in due {
            self.runs.shown(id);
            let (now, view) = (self.now, self.view(id));
            let run = self.runs.adjust(id);
            // Show nothing that is not stored yet.
            let failure_waits = run.orders.has_unsaved_failure() && run.orders.is_writing();
            if run.orders.is_creating() || failure_waits || self.writes.has_unconfirmed(id) {
                continue;
            }
            run.published = Some((view.state(), now));
            let prepared = Some(run.prepared.clone());
            self.effects.publish(View { run: view, prepared });
        }
        let fenced = |(_, run): (RunId, &Run)| matches!(run.blocked, Some(Blocked::Fenced(_)));
        let healthy = !self.runs.iter().any(fenced);
        if healthy != self.healthy {
            self.healthy = healthy;
            self.effects.push(Effect::Healthy(healthy));
            let sentence = match healthy {
                true => "health: serving, because no run is missing in the store any longer",
                false => "health: not serving, because a run is missing in the store",
            };
            self.effects.log(if healthy { Topic::Progress } else { Topic::Trouble }, sentence.into());
        }
    }
}
