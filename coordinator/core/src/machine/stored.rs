//! Handles the outcome of reads and writes of the store.

use evoxo_proto::v1;

use super::{
    Coordinator, Effect, Rejection, Request, RequestId, Response, StoreFault, Stored, Topic, Write, WriteId,
    about::About,
    facts::Fact,
    orders::Wanted,
    planning::Planning,
    rules::Proposal,
    run::{Blocked, Presence},
    runs::RunId,
    trouble::STORE_RETRY_MS,
    writes::{Pending, PendingOrder, PendingWrite, Refusal},
};
use crate::{
    replicas::{Job, Lanes},
    saved::{SavedRun, foreign_signature, unfit_because},
    trust::{Draw, Level},
};

/// The next checkpoint waits for this many times as long as the last one took. So large states or a slow store cost at most a
/// twentieth of the time.
const CHECKPOINT_REST_FACTOR: u64 = 20;

/// With more lanes than this for each core, a run that is loaded gets only one.
const LANES_PER_CORE: usize = 4;

/// A write that takes longer than this, in microseconds, gives its run a notice.
const SLOW_US: u64 = 5_000_000;
const SLOW: &str = "a write to the store took more than 5 s: orders wait for such writes, and checkpoints come later, so a \
                    crash costs more work; look at the disk or the bucket of the store";

impl Coordinator {
    /// Handles the store's report about a write.
    pub(super) fn on_stored(&mut self, write: WriteId, outcome: Result<Stored, StoreFault>, took_us: u64) {
        if let Some(refusal) = self.writes.take_refusal(write) {
            return self.on_refusal_stored(refusal, outcome);
        }
        if let Some((request, name)) = self.writes.take_search(write) {
            return self.on_searched(request, &name, outcome);
        }
        let PendingWrite { run: id, what } = self.writes.take(write);
        if self.runs.get(id).is_none() {
            // The run was removed in the meantime, by another write or read.
            let ordered = matches!(what, Pending::Order(_)) && !matches!(outcome, Err(StoreFault::Fenced(_)));
            let rejection = || if ordered { Rejection::removed_but_ordered() } else { Rejection::removed() };
            return what.request().into_iter().for_each(|request| self.effects.respond(request, Err(rejection())));
        }
        let mut asked = Vec::new();
        let (is_order, run) = (matches!(what, Pending::Order(_)), self.runs.adjust(id));
        run.spent.saving_us = run.spent.saving_us.saturating_add(took_us);
        match &what {
            Pending::Order(_) => {
                asked = run.orders.end_writing();
            }
            Pending::Checkpoint => {
                run.checkpoints.writing = false;
                // While the store is in trouble, the duration says nothing about the size of the states. Failed writes are
                // not delayed either.
                if !run.trouble.is_there() && !run.has_unwritten() {
                    let rest_ms = CHECKPOINT_REST_FACTOR * (self.now - run.checkpoints.begun);
                    run.checkpoints.due = run.checkpoints.due.max(self.now + rest_ms);
                }
            }
            Pending::Finished { replica, attempt } => run.replicas.end_writing(*replica, *attempt),
            Pending::Failure | Pending::Load(_) | Pending::Delete(_) | Pending::Mend { .. } | Pending::Repeated(_) => {}
        }
        match outcome {
            Ok(stored) => {
                let run = self.runs.change(id);
                run.trouble.end();
                if took_us > SLOW_US
                    && !matches!(what, Pending::Load(_))
                    && !run.notices.iter().any(|notice| notice == SLOW)
                {
                    run.notice(SLOW.to_owned());
                    let line = format!("run {}: {SLOW}", run.name);
                    self.effects.log(Topic::Trouble, line);
                }
                self.after_success(id, what, stored);
            }
            Err(fault) => self.after_fault(id, what, fault),
        }
        // The run is gone if it was deleted or could not be created.
        if self.runs.get(id).is_some() {
            if is_order {
                self.write_failure(id);
                // Retention passed over the run while the order was being written, or the run is now cancelled.
                self.facts.note(Fact::Turned);
            }
            self.leave_if_saved(id);
        }
        asked.into_iter().for_each(|(request, what)| self.on_request(request, what));
    }

    /// The store was searched for a run that is not known. If it is there, somebody has copied it there, and this coordinator
    /// takes it over, as at its start.
    fn on_searched(&mut self, request: RequestId, name: &str, outcome: Result<Stored, StoreFault>) {
        let rejection = match outcome {
            Ok(Stored::Loaded(Some(saved))) => match self.take_over(name, *saved) {
                Ok(id) if self.runs[id].is_over() => return self.respond_run(id, request, false, None),
                Ok(_) => return self.on_request(request, Request::Resume { name: name.to_owned() }),
                Err(rejection) => rejection,
            },
            Ok(_) => Rejection::no_run(name),
            Err(StoreFault::Superseded(why)) => Rejection::Interrupted(why),
            Err(StoreFault::Failed(why) | StoreFault::Fenced(why)) => Rejection::Conflict(why),
        };
        self.effects.respond(request, Err(rejection));
    }

    fn take_over(&mut self, name: &str, saved: SavedRun) -> Result<RunId, Rejection> {
        if self.runs.find(name).is_some() {
            let why = format!("run {name:?} was submitted while the store was searched for it: `evoxo runs` shows it");
            return Err(Rejection::Conflict(why));
        }
        let replicas = saved.prepared.as_ref().map_or(0, |prepared| prepared.replicas());
        let asked = Proposal { new_run: true, submitter: &saved.order.submitter, replicas };
        self.rules.admits(&self.look(), &asked)?;
        self.effects.log(Topic::Progress, format!("run {name} was found in the store"));
        self.recover_run(saved);
        self.facts.note(Fact::Turned);
        self.runs.find(name).ok_or_else(|| Rejection::Conflict(self.runs.unreadable[name].clone()))
    }

    fn after_success(&mut self, id: RunId, what: Pending, stored: Stored) {
        match (what, stored) {
            (Pending::Order(order), _) => self.apply_order(id, order),
            (Pending::Checkpoint, Stored::Written(object)) => {
                let run = self.runs.adjust(id);
                run.checkpoints.object = object;
                // Rounds that were absorbed after this checkpoint was sealed are not in it.
                run.checkpoints.unsaved_since = run.checkpoints.dirty.then_some(run.checkpoints.begun);
                if matches!(run.presence, Presence::Leaving(_)) {
                    // The run waits only until the rounds absorbed in the meantime are saved.
                    self.save(id);
                }
            }
            (Pending::Finished { replica, attempt }, Stored::Finished(place)) => {
                // If the replica became void before it was stored, it stays void: see `Convictions::leave_out_void`.
                if self.runs.change(id).store_finished(replica, attempt, place) {
                    self.release(id);
                    self.facts.note(Fact::Settled(id));
                }
            }
            (Pending::Mend { object }, Stored::Mended(mended)) => self.after_mend(id, &object, mended),
            (Pending::Load(request), Stored::Loaded(saved)) => self.on_loaded(id, request, saved),
            (Pending::Delete(request), _) => {
                let view = self.view(id);
                self.remove_run(id);
                if let Some(request) = request {
                    self.effects.respond(request, Ok(Response::Run(Box::new(view))));
                }
            }
            (
                Pending::Checkpoint
                | Pending::Finished { .. }
                | Pending::Failure
                | Pending::Mend { .. }
                | Pending::Repeated(_)
                | Pending::Load(_),
                _,
            ) => {}
        }
    }

    fn after_fault(&mut self, id: RunId, what: Pending, fault: StoreFault) {
        let request = what.request();
        let why = match &fault {
            StoreFault::Failed(why) | StoreFault::Fenced(why) => why.clone(),
            StoreFault::Superseded(why) => {
                // This coordinator does nothing more. The client can send the same request to the new leader.
                let answer = |request| self.effects.respond(request, Err(Rejection::Interrupted(why.clone())));
                return request.into_iter().for_each(answer);
            }
        };
        let run = self.runs.change(id);
        // Each retry names another object. Notify clients of an outage only once.
        if !run.trouble.is_there() || !matches!(fault, StoreFault::Failed(_)) {
            run.notice(why.clone());
        }
        let line = format!("run {}: {why}", run.name);
        self.effects.log_about(Topic::Trouble, run.about(), line);
        let creating = run.orders.is_creating();
        // Retry a deletion that was started: the rest of the run is of no use.
        if matches!(what, Pending::Delete(_)) && !matches!(fault, StoreFault::Failed(_)) {
            run.orders.set_deleting(false);
        }
        if matches!(fault, StoreFault::Failed(_)) {
            run.checkpoints.due = self.now + STORE_RETRY_MS;
            run.checkpoints.dirty |= matches!(what, Pending::Checkpoint);
            if run.trouble.add(&why, matches!(what, Pending::Load(_))) {
                // An order is not repeated. Only another write can show that the store works again.
                run.checkpoints.dirty |= run.thread().is_some();
            }
        }
        let (is_load, is_order) = (matches!(what, Pending::Load(_)), matches!(what, Pending::Order(_)));
        match what {
            Pending::Repeated(write) => run.trouble.repeat(write),
            Pending::Delete(_) if run.orders.is_deleting() => run.trouble.repeat(Write::Delete),
            Pending::Failure => run.orders.write_failure_again(),
            // The states are loaded again when the run is advanced.
            Pending::Load(_) => {
                run.presence = Presence::Resting;
                run.trouble.load_later(self.now);
            }
            _ => {}
        }
        if is_load {
            self.release_resting(id);
        }
        if creating && is_order {
            self.remove_run(id);
        } else if matches!(fault, StoreFault::Fenced(_)) {
            let why = format!("{why}; `evoxo resume {}` reads it again", self.runs[id].name);
            self.block(id, Blocked::Fenced(why));
        }
        if let Some(request) = request {
            // A failed read has no effect. Neither has an order of a run that is gone, because it was not written.
            let undone = is_load || is_order && matches!(fault, StoreFault::Fenced(_));
            let rejection = if undone { Rejection::Conflict(why) } else { Rejection::Unstored(why) };
            self.effects.respond(request, Err(rejection));
        }
    }

    /// An order is stored, so it takes effect.
    fn apply_order(&mut self, id: RunId, order: PendingOrder) {
        let PendingOrder { request, prepared, wanted, terms, submitted, delete } = order;
        let run = self.runs.change(id);
        // Publish at once, so that the client that gave the order sees the result.
        run.published = None;
        let failed = run.orders.apply(wanted.clone());
        (run.prepared, run.terms) = (prepared, terms);
        run.add_replicas();
        self.note_order(id);
        let run = self.runs.change(id);
        if wanted == Wanted::Cancelled {
            // A run that another build wrote may be cancelled and then deleted.
            run.blocked = None;
            self.put_to_rest(id);
        }
        if delete {
            self.runs.adjust(id).orders.set_deleting(true);
            return self.write(id, Write::Delete, Pending::Delete(Some(request)));
        }
        self.respond_run(id, request, submitted, failed);
    }

    /// The states of a run have been read.
    fn on_loaded(&mut self, id: RunId, request: Option<RequestId>, saved: Option<Box<SavedRun>>) {
        let Some(mut saved) = saved else {
            let name = self.runs[id].name.clone();
            self.effects.log(Topic::Trouble, format!("run {name} is no longer in the store"));
            self.remove_run(id);
            if let Some(request) = request {
                self.effects.respond(request, Err(Rejection::no_run(&name)));
            }
            return;
        };
        for (replica, since) in self.convictions.leave_out_void(&mut saved) {
            self.tell_void(&saved.name, &replica.arm, replica.index, since);
        }
        let unfit = unfit_because(&self.registry, &saved);
        let foreign = foreign_signature(&self.registry, &saved);
        let forks = saved.checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.object.is_none());
        let run = self.runs.change(id);
        run.presence = Presence::Resting;
        if let Ok(prepared) = &saved.prepared {
            // The coordinator that led in the meantime may have extended the run.
            run.prepared = prepared.clone();
        }
        run.level = Level::of_order(&saved.order);
        run.terms.clone_from(&saved.order.terms);
        run.blocked = unfit.map(Blocked::Unfit);
        run.foreign = foreign;
        run.adopt(&saved);
        self.note_order(id);
        if request.is_some() {
            // The stored order is in force until a client's order is stored too.
            self.runs.change(id).orders.adopt(Wanted::of_order(&saved.order));
        }
        self.release_resting(id);
        let states = saved.checkpoint.take().map(|checkpoint| checkpoint.states).unwrap_or_default();
        let begun = states.iter().filter(|state| state.rounds > 0).count();
        self.start_thread(id, states);
        if forks && begun > 0 && self.runs[id].thread().is_some() {
            // The states of the other run are now this one's, and are stored with it.
            let run = self.runs.adjust(id);
            run.checkpoints.note_round(self.now, self.settings.checkpoint_interval_ms);
            let line = format!("run {} begins with {begun} states of the run from which it forks", run.name);
            self.effects.log(Topic::Progress, line);
        }
        // Without a request, the run was loaded to be advanced, so there is nobody to answer.
        let Some(request) = request else { return };
        let run = &self.runs[id];
        match &run.blocked {
            // The client wants the run to continue, whatever the stored order says.
            None => {
                let name = run.name.clone();
                self.on_request(request, Request::Resume { name });
            }
            Some(_) => self.respond_run(id, request, false, None),
        }
    }

    /// Starts a thread with the states of a run, if the run should still advance and there is memory for it.
    fn start_thread(&mut self, id: RunId, states: Vec<v1::ReplicaState>) {
        let run = self.runs.adjust(id);
        if !run.wants_memory() {
            return;
        }
        let needed = match run.bytes_to_read(&self.settings) {
            Ok(needed) => needed,
            Err(why) => return self.block(id, Blocked::Unfit(why)),
        };
        if self.budget.take(&run.submitter, needed).is_err() {
            // The states are read again when there is memory.
            return;
        }
        run.reserved_bytes = needed;
        let prepared = run.prepared.clone();
        let draw = Draw { key: self.settings.draw_key, millionths: run.level.millionths() };
        let lanes = Lanes::of(&prepared, self.lanes_of_next_run());
        let thread = self.runs.begin_thread(id);
        let run = self.runs.change(id);
        run.presence = Presence::Loaded(thread);
        run.planning = Planning::of(lanes);
        // A finished replica is not opened, so request its outputs to recompute.
        let to_recompute = run.recomputations.asked().clone();
        let scope = (run.level == Level::Plain).then(|| self.settings.recall_across.scope(&run.submitter, &run.name));
        self.effects.push(Effect::Start { thread, prepared, draw, states, lanes, scope });
        for key in to_recompute {
            self.effects.push(Effect::Job { thread, job: Job::Recomputations(key) });
        }
    }

    /// The most lanes for a run that is loaded now. The lanes of many runs would only share the cores.
    fn lanes_of_next_run(&self) -> usize {
        let most = self.settings.lanes_max;
        let loaded = self.runs.iter().filter(|(_, run)| run.thread().is_some());
        let lanes: usize = loaded.map(|(_, run)| run.planning.lanes()).sum();
        if lanes < LANES_PER_CORE * most { most } else { 1 }
    }

    /// Releases the memory of a run that is not loaded.
    fn release_resting(&mut self, id: RunId) {
        let run = self.runs.adjust(id);
        self.budget.give_back(&run.submitter, std::mem::take(&mut run.reserved_bytes));
        self.runs.move_all();
    }

    /// Removes a run that is no longer in the store.
    pub(super) fn remove_run(&mut self, id: RunId) {
        self.drop_thread(id);
        let mut run = self.runs.remove(id);
        self.rules.removed(id);
        self.held.removed(id);
        self.effects.push(Effect::Unpublish { run: run.name });
        run.orders.take_asked().into_iter().for_each(|(request, what)| self.on_request(request, what));
    }

    /// Handles the store's report about a conviction, a revocation or cordons.
    fn on_refusal_stored(&mut self, refusal: Refusal, outcome: Result<Stored, StoreFault>) {
        match (refusal, outcome) {
            (Refusal::Cordoned { request, end, by }, outcome) => {
                self.on_cordoned(request, end, &by, outcome.map(drop));
            }
            (Refusal::Convicted(identity), Ok(_)) => self.facts.note(Fact::Convicted(identity)),
            (Refusal::Revoked(request), Ok(_)) => self.effects.respond(request, Ok(Response::Revoked)),
            // The new leader will find the same difference and convict the identity.
            (Refusal::Convicted(_), Err(StoreFault::Superseded(_))) => {}
            (Refusal::Convicted(identity), Err(StoreFault::Failed(why) | StoreFault::Fenced(why))) => {
                let sentence =
                    format!("identity {identity} is not convicted yet, because the conviction cannot be stored: {why}");
                let about = About { identity: Some(identity.to_string()), ..About::default() };
                self.effects.log_about(Topic::Trouble, about, sentence);
                self.convictions.again(&identity, self.now + STORE_RETRY_MS);
            }
            (Refusal::Revoked(request), Err(fault)) => {
                let (StoreFault::Failed(why) | StoreFault::Fenced(why) | StoreFault::Superseded(why)) = fault;
                self.effects.respond(request, Err(Rejection::Interrupted(why)));
            }
        }
    }
}
