//! Handles the outcome of reads and writes of the store.

use evoxo_common::experiment::Registry;
use evoxo_proto::v1;

use super::{
    Coordinator, Effect, Rejection, Request, RequestId, Response, StoreFault, Stored, Topic, Write, WriteId,
    about::About,
    facts::Fact,
    fleet::Fleet,
    look::Moment,
    orders::Wanted,
    out::Out,
    planning::Planning,
    rules::Proposal,
    run::{Blocked, Presence},
    runs::{RunId, Runs},
    sessions::Sessions,
    trouble::STORE_RETRY_MS,
    work::Work,
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

/// What to respond to the client whose order has taken effect.
struct AppliedOrder {
    request: RequestId,
    submitted: bool,
    /// Why the run had failed.
    failed: Option<String>,
}

impl Coordinator {
    /// Handles the store's report about a write.
    pub(super) fn on_stored(&mut self, write: WriteId, outcome: Result<Stored, StoreFault>, took_us: u64) {
        if let Some(refusal) = self.out.writes.take_refusal(write) {
            let Self { at, work, fleet, out, .. } = self;
            return fleet.on_refusal_stored(at, work, out, refusal, outcome);
        }
        if let Some((request, name)) = self.out.writes.take_search(write) {
            return self.on_searched(request, &name, outcome);
        }
        let PendingWrite { run: id, what } = self.out.writes.take(write);
        if self.work.runs.get(id).is_none() {
            // The run was removed in the meantime, by another write or read.
            let ordered = matches!(what, Pending::Order(_)) && !matches!(outcome, Err(StoreFault::Fenced(_)));
            let rejection = || if ordered { Rejection::removed_but_ordered() } else { Rejection::removed() };
            return what.request().into_iter().for_each(|request| self.out.effects.respond(request, Err(rejection())));
        }
        let mut asked = Vec::new();
        let (is_order, run) = (matches!(what, Pending::Order(_)), self.work.runs.adjust(id));
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
                    let rest_ms = CHECKPOINT_REST_FACTOR * (self.at.now - run.checkpoints.begun);
                    run.checkpoints.due = run.checkpoints.due.max(self.at.now + rest_ms);
                }
            }
            Pending::Finished { replica, attempt } => run.replicas.end_writing(*replica, *attempt),
            Pending::Failure | Pending::Load(_) | Pending::Delete(_) | Pending::Mend { .. } | Pending::Repeated(_) => {}
        }
        match outcome {
            Ok(stored) => {
                let run = self.work.runs.change(id);
                run.trouble.end();
                if took_us > SLOW_US
                    && !matches!(what, Pending::Load(_))
                    && !run.notices.iter().any(|notice| notice == SLOW)
                {
                    run.notice(SLOW.to_owned());
                    let line = format!("run {}: {SLOW}", run.name);
                    self.out.effects.log(Topic::Trouble, line);
                }
                self.after_success(id, what, stored);
            }
            Err(fault) => self.after_fault(id, what, fault),
        }
        // The run is gone if it was deleted or could not be created.
        if self.work.runs.get(id).is_some() {
            if is_order {
                self.work.runs.adjust(id).write_failure(&mut self.out, id);
                // Retention passed over the run while the order was being written, or the run is now cancelled.
                self.out.facts.note(Fact::Turned);
            }
            let Self { at, work, fleet, out, .. } = self;
            work.leave_if_saved(at, &mut fleet.sessions, out, id);
        }
        asked.into_iter().for_each(|(request, what)| self.on_request(request, what));
    }

    /// The store was searched for a run that is not known. If it is there, somebody has copied it there, and this coordinator
    /// takes it over, as at its start.
    fn on_searched(&mut self, request: RequestId, name: &str, outcome: Result<Stored, StoreFault>) {
        let rejection = match outcome {
            Ok(Stored::Loaded(Some(saved))) => {
                let Self { registry, at, work, fleet, out, .. } = self;
                match work.take_over((at, registry), &fleet.sessions, out, name, *saved) {
                    Ok(id) if self.work.runs[id].is_over() => return self.respond_run(id, request, false, None),
                    Ok(_) => return self.on_request(request, Request::Resume { name: name.to_owned() }),
                    Err(rejection) => rejection,
                }
            }
            Ok(_) => Rejection::no_run(name),
            Err(StoreFault::Superseded(why)) => Rejection::Interrupted(why),
            Err(StoreFault::Failed(why) | StoreFault::Fenced(why)) => Rejection::Conflict(why),
        };
        self.out.effects.respond(request, Err(rejection));
    }

    fn after_success(&mut self, id: RunId, what: Pending, stored: Stored) {
        match (what, stored) {
            (Pending::Order(order), _) => {
                let Self { at, work, fleet, out, .. } = self;
                if let Some(ordered) = work.apply_order(at, &mut fleet.sessions, out, id, order) {
                    self.respond_run(id, ordered.request, ordered.submitted, ordered.failed);
                }
            }
            (Pending::Checkpoint, Stored::Written(object)) => {
                let run = self.work.runs.adjust(id);
                run.checkpoints.object = object;
                // Rounds that were absorbed after this checkpoint was sealed are not in it.
                run.checkpoints.unsaved_since = run.checkpoints.dirty.then_some(run.checkpoints.begun);
                if matches!(run.presence, Presence::Leaving(_)) {
                    // The run waits only until the rounds absorbed in the meantime are saved.
                    run.save(&self.at, &mut self.out, id);
                }
            }
            (Pending::Finished { replica, attempt }, Stored::Finished(place)) => {
                // If the replica became void before it was stored, it stays void: see `Convictions::leave_out_void`.
                if self.work.runs.change(id).store_finished(replica, attempt, place) {
                    self.work.release(&self.at, id);
                    self.out.facts.note(Fact::Settled(id));
                }
            }
            (Pending::Mend { object }, Stored::Mended(mended)) => {
                self.work.after_mend(&self.at, &mut self.out, id, &object, mended);
            }
            (Pending::Load(request), Stored::Loaded(saved)) => self.on_loaded(id, request, saved),
            (Pending::Delete(request), _) => {
                let view = self.view(id);
                self.remove_run(id);
                if let Some(request) = request {
                    self.out.effects.respond(request, Ok(Response::Run(Box::new(view))));
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
                let answer = |request| self.out.effects.respond(request, Err(Rejection::Interrupted(why.clone())));
                return request.into_iter().for_each(answer);
            }
        };
        let run = self.work.runs.change(id);
        // Each retry names another object. Notify clients of an outage only once.
        if !run.trouble.is_there() || !matches!(fault, StoreFault::Failed(_)) {
            run.notice(why.clone());
        }
        let line = format!("run {}: {why}", run.name);
        self.out.effects.log_about(Topic::Trouble, run.about(), line);
        let creating = run.orders.is_creating();
        // Retry a deletion that was started: the rest of the run is of no use.
        if matches!(what, Pending::Delete(_)) && !matches!(fault, StoreFault::Failed(_)) {
            run.orders.set_deleting(false);
        }
        if matches!(fault, StoreFault::Failed(_)) {
            run.checkpoints.due = self.at.now + STORE_RETRY_MS;
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
                run.trouble.load_later(self.at.now);
            }
            _ => {}
        }
        if is_load {
            self.work.release_resting(id);
        }
        if creating && is_order {
            self.remove_run(id);
        } else if matches!(fault, StoreFault::Fenced(_)) {
            let why = format!("{why}; `evoxo resume {}` reads it again", self.work.runs[id].name);
            let Self { at, work, fleet, out, .. } = self;
            work.block(at, &mut fleet.sessions, out, id, Blocked::Fenced(why));
        }
        if let Some(request) = request {
            // A failed read has no effect. Neither has an order of a run that is gone, because it was not written.
            let undone = is_load || is_order && matches!(fault, StoreFault::Fenced(_));
            let rejection = if undone { Rejection::Conflict(why) } else { Rejection::Unstored(why) };
            self.out.effects.respond(request, Err(rejection));
        }
    }

    /// The states of a run have been read.
    fn on_loaded(&mut self, id: RunId, request: Option<RequestId>, saved: Option<Box<SavedRun>>) {
        let Some(saved) = saved else {
            let name = self.work.runs[id].name.clone();
            self.out.effects.log(Topic::Trouble, format!("run {name} is no longer in the store"));
            self.remove_run(id);
            if let Some(request) = request {
                self.out.effects.respond(request, Err(Rejection::no_run(&name)));
            }
            return;
        };
        let Self { registry, at, work, fleet, out, .. } = self;
        work.load((at, registry), &mut fleet.sessions, out, (id, request.is_some()), *saved);
        // Without a request, the run was loaded to be advanced, so there is nobody to answer.
        let Some(request) = request else { return };
        let run = &work.runs[id];
        match &run.blocked {
            // The client wants the run to continue, whatever the stored order says.
            None => {
                let name = run.name.clone();
                self.on_request(request, Request::Resume { name });
            }
            Some(_) => self.respond_run(id, request, false, None),
        }
    }

    /// Removes a run that is no longer in the store.
    pub(super) fn remove_run(&mut self, id: RunId) {
        let Self { at, work, fleet, out, .. } = self;
        work.drop_thread(at, &mut fleet.sessions, out, id);
        let mut run = work.runs.remove(id);
        work.rules.removed(id);
        work.held.removed(id);
        out.effects.push(Effect::Unpublish { run: run.name });
        run.orders.take_asked().into_iter().for_each(|(request, what)| self.on_request(request, what));
    }
}

impl Work {
    /// Adds a run that was found in the store.
    fn take_over(
        &mut self,
        (at, registry): (&Moment, &Registry),
        sessions: &Sessions,
        out: &mut Out,
        name: &str,
        saved: SavedRun,
    ) -> Result<RunId, Rejection> {
        if self.runs.find(name).is_some() {
            let why = format!("run {name:?} was submitted while the store was searched for it: `evoxo runs` shows it");
            return Err(Rejection::Conflict(why));
        }
        let replicas = saved.prepared.as_ref().map_or(0, |prepared| prepared.replicas());
        let asked = Proposal { new_run: true, submitter: &saved.order.submitter, replicas };
        self.rules.admits(&self.look(at, sessions, &out.writes), &asked)?;
        out.effects.log(Topic::Progress, format!("run {name} was found in the store"));
        self.recover_run(at, registry, out, saved);
        out.facts.note(Fact::Turned);
        self.runs.find(name).ok_or_else(|| Rejection::Conflict(self.runs.unreadable[name].clone()))
    }

    /// An order is stored, so it takes effect. Returns what to respond to the client, unless the run is deleted first.
    fn apply_order(
        &mut self,
        at: &Moment,
        sessions: &mut Sessions,
        out: &mut Out,
        id: RunId,
        order: PendingOrder,
    ) -> Option<AppliedOrder> {
        let PendingOrder { request, prepared, wanted, terms, submitted, delete } = order;
        let run = self.runs.change(id);
        // Publish at once, so that the client that gave the order sees the result.
        run.published = None;
        let failed = run.orders.apply(wanted.clone());
        (run.prepared, run.terms) = (prepared, terms);
        run.add_replicas();
        self.note_order(at.now, id);
        let run = self.runs.change(id);
        if wanted == Wanted::Cancelled {
            // A run that another build wrote may be cancelled and then deleted.
            run.blocked = None;
            self.put_to_rest(at, sessions, out, id);
        }
        if delete {
            let run = self.runs.adjust(id);
            run.orders.set_deleting(true);
            out.write(id, &run.name, Write::Delete, Pending::Delete(Some(request)));
            return None;
        }
        Some(AppliedOrder { request, submitted, failed })
    }

    /// Continues a run from what was read. `asked` says whether a client requested it.
    fn load(
        &mut self,
        (at, registry): (&Moment, &Registry),
        sessions: &mut Sessions,
        out: &mut Out,
        (id, asked): (RunId, bool),
        mut saved: SavedRun,
    ) {
        for (replica, since) in self.convictions.leave_out_void(&mut saved) {
            out.tell_void(&saved.name, &replica.arm, replica.index, since);
        }
        let unfit = unfit_because(registry, &saved);
        let foreign = foreign_signature(registry, &saved);
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
        self.note_order(at.now, id);
        if asked {
            // The stored order is in force until a client's order is stored too.
            self.runs.change(id).orders.adopt(Wanted::of_order(&saved.order));
        }
        self.release_resting(id);
        let states = saved.checkpoint.take().map(|checkpoint| checkpoint.states).unwrap_or_default();
        let begun = states.iter().filter(|state| state.rounds > 0).count();
        self.start_thread(at, sessions, out, id, states);
        let run = self.runs.adjust(id);
        if forks && begun > 0 && run.thread().is_some() {
            // The states of the other run are now this one's, and are stored with it.
            run.checkpoints.note_round(at.now, at.settings.checkpoint_interval_ms);
            let line = format!("run {} begins with {begun} states of the run from which it forks", run.name);
            out.effects.log(Topic::Progress, line);
        }
    }

    /// Starts a thread with the states of a run, if the run should still advance and there is memory for it.
    fn start_thread(
        &mut self,
        at: &Moment,
        sessions: &mut Sessions,
        out: &mut Out,
        id: RunId,
        states: Vec<v1::ReplicaState>,
    ) {
        let run = self.runs.adjust(id);
        if !run.wants_memory() {
            return;
        }
        let needed = match run.bytes_to_read(&at.settings) {
            Ok(needed) => needed,
            Err(why) => return self.block(at, sessions, out, id, Blocked::Unfit(why)),
        };
        if self.budget.take(&run.submitter, needed).is_err() {
            // The states are read again when there is memory.
            return;
        }
        run.reserved_bytes = needed;
        let prepared = run.prepared.clone();
        let draw = Draw { key: at.settings.draw_key, millionths: run.level.millionths() };
        let lanes = Lanes::of(&prepared, self.runs.lanes_of_next_run(at.settings.lanes_max));
        let thread = self.runs.begin_thread(id);
        let run = self.runs.change(id);
        run.presence = Presence::Loaded(thread);
        run.planning = Planning::of(lanes);
        // A finished replica is not opened, so request its outputs to recompute.
        let to_recompute = run.recomputations.asked().clone();
        let scope = (run.level == Level::Plain).then(|| at.settings.recall_across.scope(&run.submitter, &run.name));
        out.effects.push(Effect::Start { thread, prepared, draw, states, lanes, scope });
        for key in to_recompute {
            out.effects.push(Effect::Job { thread, job: Job::Recomputations(key) });
        }
    }

    /// Releases the memory of a run that is not loaded.
    fn release_resting(&mut self, id: RunId) {
        let run = self.runs.adjust(id);
        self.budget.give_back(&run.submitter, std::mem::take(&mut run.reserved_bytes));
        self.runs.move_all();
    }
}

impl Runs {
    /// The most lanes for a run that is loaded now. The lanes of many runs would only share the cores.
    fn lanes_of_next_run(&self, most: usize) -> usize {
        let loaded = self.iter().filter(|(_, run)| run.thread().is_some());
        let lanes: usize = loaded.map(|(_, run)| run.planning.lanes()).sum();
        if lanes < LANES_PER_CORE * most { most } else { 1 }
    }
}

impl Fleet {
    /// Handles the store's report about a conviction, a revocation or cordons.
    fn on_refusal_stored(
        &mut self,
        at: &Moment,
        work: &mut Work,
        out: &mut Out,
        refusal: Refusal,
        outcome: Result<Stored, StoreFault>,
    ) {
        match (refusal, outcome) {
            (Refusal::Cordoned { request, end, by }, outcome) => {
                self.on_cordoned(at.now, work, out, (request, end, &by), outcome.map(drop));
            }
            (Refusal::Convicted(identity), Ok(_)) => out.facts.note(Fact::Convicted(identity)),
            (Refusal::Revoked(request), Ok(_)) => out.effects.respond(request, Ok(Response::Revoked)),
            // The new leader will find the same difference and convict the identity.
            (Refusal::Convicted(_), Err(StoreFault::Superseded(_))) => {}
            (Refusal::Convicted(identity), Err(StoreFault::Failed(why) | StoreFault::Fenced(why))) => {
                let sentence =
                    format!("identity {identity} is not convicted yet, because the conviction cannot be stored: {why}");
                let about = About { identity: Some(identity.to_string()), ..About::default() };
                out.effects.log_about(Topic::Trouble, about, sentence);
                work.convictions.again(&identity, at.now + STORE_RETRY_MS);
            }
            (Refusal::Revoked(request), Err(fault)) => {
                let (StoreFault::Failed(why) | StoreFault::Fenced(why) | StoreFault::Superseded(why)) = fault;
                out.effects.respond(request, Err(Rejection::Interrupted(why)));
            }
        }
    }
}
