//! Storage: orders, checkpoints and finished replicas are written, and runs are recovered from them.

use bytes::Bytes;
use evoxo_common::digest::Digest;
use evoxo_proto::v1::{self, RunState};

use super::{
    Coordinator, Effect, Rejection, Request, RequestId, StoreFault, Stored, Topic, View, Write, WriteId,
    run::{Blocked, Presence, ReplicaPhase, Run, Wanted},
    runs::RunId,
    writes::{Pending, PendingOrder, PendingWrite},
};
use crate::{
    replicas::{Job, ReplicaKey},
    saved::{Origin, SavedRun, origin_of, seal_order},
    trust::{Draw, Level},
};

/// Failed writes in a row after which a run waits for the store.
const STORE_FAILURES_MAX: u32 = 3;
/// The next checkpoint waits for this many times as long as the last one took, so that large states or a slow store
/// cost at most a twentieth of the time.
const CHECKPOINT_REST_FACTOR: u64 = 20;
/// The wait until the states of a run are read again is doubled this many times, less one: up to 4 s, so that work goes on soon after
/// a store has recovered.
const LOAD_RETRIES_MAX: u32 = 3;
/// The wait before the store is tried again, in milliseconds.
pub(super) const STORE_RETRY_MS: u64 = 1000;

/// The number that names a finished replica's object.
pub(super) fn ordinal(key: ReplicaKey) -> u64 {
    u64::from(key.arm) * 1_000_000 + u64::from(key.index)
}

impl Coordinator {
    pub(super) fn write(&mut self, id: RunId, what: Write, pending: Pending) {
        let Some(run) = self.runs.get(id) else { return };
        let write = self.writes.add(id, pending);
        self.effects.push(Effect::Store { write, run: run.name.clone(), what });
    }

    /// Gives the store a write that is repeated if it fails.
    pub(super) fn store(&mut self, id: RunId, what: Write) {
        self.write(id, what.clone(), Pending::Repeated(what));
    }

    /// Writes an order. When it is in the store it takes effect, and the person gets the response.
    pub(super) fn order(&mut self, id: RunId, order: PendingOrder) {
        let Some(run) = self.runs.adjust(id) else { return };
        run.ordering = true;
        let write = next_order(run, &order.prepared.toml, &order.wanted);
        self.write(id, write, Pending::Order(order));
    }

    /// Records that a run has failed, when no other order is being written.
    pub(super) fn write_failure(&mut self, id: RunId) {
        let Some(run) = self.runs.adjust(id).filter(|run| run.failure_unsaved && !run.ordering) else { return };
        let (toml, wanted) = (run.prepared.toml.clone(), run.wanted.clone());
        run.failure_unsaved = false;
        let write = next_order(run, &toml, &wanted);
        self.write(id, write, Pending::Failure);
    }

    /// Writes a replica that has just finished.
    pub(super) fn write_finished(&mut self, id: RunId, key: ReplicaKey) {
        let Some(run) = self.runs.adjust(id) else { return };
        let Some(record) = run.replicas.get_mut(&key) else { return };
        let attempt = record.attempt;
        let ReplicaPhase::Finished { sealed, writing, .. } = &mut record.phase else { return };
        *writing = true;
        let write = Write::Finished { ordinal: ordinal(key), bytes: sealed.clone() };
        self.write(id, write, Pending::Finished { replica: key, attempt });
    }

    /// A checkpoint was sealed.
    pub(super) fn write_checkpoint(&mut self, id: RunId, number: u64, bytes: Bytes) {
        let Some(run) = self.runs.adjust(id) else { return };
        // It contains all rounds absorbed before.
        run.checkpoints.dirty = false;
        self.write(id, Write::Checkpoint { number, bytes }, Pending::Checkpoint);
    }

    /// Saves everything of a run that is not saved yet.
    pub(super) fn save(&mut self, id: RunId) {
        let interval_ms = self.settings.checkpoint_interval_ms;
        let Some(run) = self.runs.adjust(id).filter(|run| run.blocked.is_none() && !run.creating) else { return };
        let unsaved = |(key, record): (&ReplicaKey, &super::run::ReplicaRecord)| match record.phase {
            ReplicaPhase::Finished { writing: false, .. } => Some(*key),
            _ => None,
        };
        let unsaved: Vec<ReplicaKey> = match run.finished > run.stored {
            true => run.replicas.iter().filter_map(unsaved).collect(),
            false => Vec::new(),
        };
        let again = std::mem::take(&mut run.to_write_again);
        if run.finished == run.replicas.len() && !run.waits_for_audits() {
            run.checkpoints.dirty = false;
        }
        let checkpoint = run.thread().filter(|_| run.checkpoints.dirty && !run.checkpoints.writing);
        if let Some(thread) = checkpoint {
            run.checkpoints.writing = true;
            run.checkpoints.number += 1;
            run.checkpoints.begun = self.now;
            run.checkpoints.due = self.now + interval_ms;
            let job = Job::Checkpoint { number: run.checkpoints.number };
            self.effects.push(Effect::Job { thread, job });
        }
        for write in again {
            match write {
                Write::Delete => self.write(id, write, Pending::Delete(None)),
                // It has more replicas since, and needs them.
                Write::DropCheckpoints if self.runs.get(id).is_some_and(|run| !run.is_complete()) => {}
                _ => self.store(id, write),
            }
        }
        unsaved.into_iter().for_each(|key| self.write_finished(id, key));
        self.write_failure(id);
    }

    /// The store reports a write.
    pub(super) fn on_stored(&mut self, write: WriteId, outcome: Result<Stored, StoreFault>) {
        if let Some(refusal) = self.writes.take_refusal(write) {
            return self.on_refusal_stored(refusal, outcome);
        }
        let Some(PendingWrite { run: id, what }) = self.writes.take(write) else { return };
        if self.runs.get(id).is_none() {
            // Something else that was being written or read has removed it.
            let ordered = matches!(what, Pending::Order(_)) && !matches!(outcome, Err(StoreFault::Fenced(_)));
            let rejection = || if ordered { Rejection::removed_but_ordered() } else { Rejection::removed() };
            return what.request().into_iter().for_each(|request| self.effects.respond(request, Err(rejection())));
        }
        let now = self.now;
        let is_order = matches!(what, Pending::Order(_));
        let mut asked = Vec::new();
        if let Some(run) = self.runs.adjust(id).filter(|_| is_order) {
            run.ordering = false;
            asked = std::mem::take(&mut run.asked);
        }
        if let (Pending::Checkpoint, Some(run)) = (&what, self.runs.adjust(id)) {
            run.checkpoints.writing = false;
            // While the store misbehaves this time says nothing of the states' size, and what could not be written waits for no rest.
            if run.store_failures == 0 && !run.has_unwritten() {
                let rest_ms = CHECKPOINT_REST_FACTOR * (now - run.checkpoints.begun);
                run.checkpoints.due = run.checkpoints.due.max(now + rest_ms);
            }
        }
        if let (Pending::Finished { replica, attempt, .. }, Some(run)) = (&what, self.runs.adjust(id))
            && let Some(record) = run.replicas.get_mut(replica).filter(|record| record.attempt == *attempt)
            && let ReplicaPhase::Finished { writing, .. } = &mut record.phase
        {
            *writing = false;
        }
        match outcome {
            Ok(stored) => {
                if let Some(run) = self.runs.change(id) {
                    run.store_failures = 0;
                    run.store_trouble = None;
                }
                self.after_success(id, what, stored);
            }
            Err(fault) => self.after_fault(id, what, fault),
        }
        if is_order {
            self.write_failure(id);
            // It was left out while the order was being written, or is cancelled now.
            self.retire();
        }
        self.leave_if_saved(id);
        asked.into_iter().for_each(|(request, what)| self.on_request(request, what));
    }

    fn after_success(&mut self, id: RunId, what: Pending, stored: Stored) {
        match (what, stored) {
            (Pending::Order(order), _) => self.apply_order(id, order),
            (Pending::Checkpoint, Stored::Written(object)) => {
                let Some(run) = self.runs.adjust(id) else { return };
                run.checkpoints.object = object;
                if matches!(run.presence, Presence::Leaving(_)) {
                    // What was absorbed meanwhile is all that it waits for.
                    self.save(id);
                }
            }
            (Pending::Finished { replica, attempt }, Stored::Written(Some(object))) => {
                let record = self.runs.get(id).and_then(|run| run.replicas.get(&replica));
                // What was void before it was stored is removed by the next write.
                let phase = record.filter(|record| record.attempt == attempt).map(|record| &record.phase);
                if let Some(ReplicaPhase::Finished { digest, .. }) = phase {
                    let digest = *digest;
                    self.on_finished_stored(id, replica, digest, object);
                }
            }
            (Pending::Load(request), Stored::Loaded(saved)) => self.on_loaded(id, request, saved),
            (Pending::Delete(request), _) => {
                let view = self.view(id);
                self.remove_run(id);
                if let (Some(request), Some(view)) = (request, view) {
                    self.effects.respond(request, Ok(super::Response::Run(Box::new(view))));
                }
            }
            (
                Pending::Checkpoint
                | Pending::Finished { .. }
                | Pending::Failure
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
                // Nothing more is done here. Whoever leads now can be asked the same.
                let answer = |request| self.effects.respond(request, Err(Rejection::Interrupted(why.clone())));
                return request.into_iter().for_each(answer);
            }
        };
        let Some(run) = self.runs.change(id) else { return };
        // Each repetition has another object's name: people are told of an outage once.
        if run.store_failures == 0 || !matches!(fault, StoreFault::Failed(_)) {
            run.notice(why.clone());
        }
        let line = format!("run {}: {why}", run.name);
        self.effects.log_about(Topic::Trouble, run.about(), line);
        let creating = run.creating;
        // A deletion that was begun is tried again: nobody can go on with what is left.
        let deletes = matches!(what, Pending::Delete(_));
        run.deleting &= !deletes || matches!(fault, StoreFault::Failed(_));
        if matches!(fault, StoreFault::Failed(_)) {
            run.store_failures += 1;
            run.checkpoints.due = self.now + STORE_RETRY_MS;
            run.checkpoints.dirty |= matches!(what, Pending::Checkpoint);
            if run.store_failures >= STORE_FAILURES_MAX {
                let done = if matches!(what, Pending::Load(_)) { "read" } else { "written" };
                run.store_trouble = Some(format!("{why}; work continues when the store can be {done} again"));
                // An order is not repeated, so something else must show that it can.
                run.checkpoints.dirty |= run.thread().is_some();
            }
        }
        let (is_load, is_order) = (matches!(what, Pending::Load(_)), matches!(what, Pending::Order(_)));
        match what {
            Pending::Repeated(write) => run.to_write_again.push(write),
            Pending::Delete(_) if run.deleting => run.to_write_again.push(Write::Delete),
            Pending::Failure => run.failure_unsaved = true,
            // It is loaded again when the run is advanced.
            Pending::Load(_) => {
                run.presence = Presence::Resting;
                let pause_ms = STORE_RETRY_MS << run.store_failures.min(LOAD_RETRIES_MAX).saturating_sub(1);
                run.load_due = Some(self.now + pause_ms);
            }
            _ => {}
        }
        if is_load {
            self.release_resting(id);
        }
        if creating && is_order {
            self.remove_run(id);
        } else if matches!(fault, StoreFault::Fenced(_)) {
            let name = self.runs.get(id).map_or("", |run| &run.name);
            let why = format!("{why}; `evoxo resume {name}` reads it again");
            self.block(id, Blocked::Fenced(why));
        }
        if let Some(request) = request {
            // What was only to be read was not done, and an order of a run that is gone was not written.
            let undone = is_load || is_order && matches!(fault, StoreFault::Fenced(_));
            let rejection = if undone { Rejection::Conflict(why) } else { Rejection::Unstored(why) };
            self.effects.respond(request, Err(rejection));
        }
    }

    /// Deletes the oldest ended runs, if only a limited number is kept.
    pub(super) fn retire(&mut self) {
        let Some(kept) = self.settings.finished_runs_kept else { return };
        for id in self.runs.ended(kept as usize) {
            if let Some(run) = self.runs.adjust(id) {
                run.deleting = true;
                let name = &run.name;
                self.effects.log(
                    Topic::Progress,
                    format!("run {name}: deleted, because only the last {kept} ended runs are kept"),
                );
                self.effects.push(Effect::Audit { what: "retire", object: name.clone() });
            }
            self.write(id, Write::Delete, Pending::Delete(None));
        }
    }

    /// Removes a run that is not in the store any more.
    pub(super) fn remove_run(&mut self, id: RunId) {
        self.drop_thread(id);
        if let Some(run) = self.runs.remove(id) {
            self.effects.push(Effect::Unpublish { run: run.name });
            run.asked.into_iter().for_each(|(request, what)| self.on_request(request, what));
        }
    }

    /// An order is in the store: it takes effect.
    fn apply_order(&mut self, id: RunId, order: PendingOrder) {
        let PendingOrder { request, prepared, wanted, submitted, delete } = order;
        let Some(run) = self.runs.change(id) else { return };
        run.creating = false;
        // The order is newer than a failure that was not written yet.
        run.failure_unsaved = false;
        // The person who ordered it sees the result at once.
        run.published = None;
        let failed = match std::mem::replace(&mut run.wanted, wanted.clone()) {
            Wanted::Failed(why) => Some(why),
            _ => None,
        };
        run.prepared = prepared;
        run.add_replicas();
        if wanted == Wanted::Cancelled {
            // A run that another build wrote may be cancelled and then deleted.
            run.blocked = None;
            self.put_to_rest(id);
        }
        if delete {
            if let Some(run) = self.runs.adjust(id) {
                run.deleting = true;
            }
            return self.write(id, Write::Delete, Pending::Delete(Some(request)));
        }
        self.respond_run(id, request, submitted, failed);
    }

    /// The states of a run have been read.
    fn on_loaded(&mut self, id: RunId, request: Option<RequestId>, saved: Option<Box<SavedRun>>) {
        let Some(mut saved) = saved else {
            let name = self.runs.get(id).map_or_else(String::new, |run| run.name.clone());
            self.effects.log(Topic::Trouble, format!("run {name} is not in the store any more"));
            self.remove_run(id);
            if let Some(request) = request {
                self.effects.respond(request, Err(Rejection::no_run(&name)));
            }
            return;
        };
        let (left_out, void) = self.leave_out_void(&mut saved);
        for (replica, since) in left_out {
            self.tell_void(&saved.name, &replica.arm, replica.index, since);
        }
        let unfit = self.unfit_because(&saved);
        let Some(run) = self.runs.change(id) else { return };
        run.presence = Presence::Resting;
        if let Ok(prepared) = &saved.prepared {
            // The coordinator that owned it meanwhile may have extended it.
            run.prepared = prepared.clone();
        }
        run.level = Level::of_order(&saved.order);
        run.blocked = unfit.map(Blocked::Unfit);
        run.adopt(&saved);
        void.into_iter().for_each(|object| self.store(id, Write::Unfinish { object }));
        let Some(run) = self.runs.change(id) else { return };
        if request.is_some() {
            // The order that holds is the stored one, until a person's is stored too.
            run.wanted = wanted_of(&saved.order);
        }
        self.release_resting(id);
        let states = saved.checkpoint.take().map(|checkpoint| checkpoint.states).unwrap_or_default();
        self.start_thread(id, states);
        let Some(request) = request else { return };
        match self.runs.get(id) {
            // A person wants it to continue, whatever the stored order is.
            Some(run) if run.blocked.is_none() => {
                let name = run.name.clone();
                self.on_request(request, Request::Resume { name });
            }
            _ => self.respond_run(id, request, false, None),
        }
    }

    /// Starts a thread with the states of a run, if it should still run and there is memory.
    fn start_thread(&mut self, id: RunId, states: Vec<v1::ReplicaState>) {
        let Some(run) = self.runs.adjust(id).filter(|run| run.wants_memory()) else { return };
        let needed = match run.bytes_to_read(&self.settings) {
            Ok(needed) => needed,
            Err(why) => return self.block(id, Blocked::Unfit(why)),
        };
        if self.budget.take(&run.submitter, needed).is_err() {
            // They are read again when there is memory.
            return;
        }
        run.reserved_bytes = needed;
        let prepared = run.prepared.clone();
        let draw = Draw { key: self.settings.audit_key, millionths: run.level.millionths() };
        let thread = self.runs.begin_thread(id);
        let Some(run) = self.runs.change(id) else { return };
        run.presence = Presence::Loaded(thread);
        // A finished replica is not opened, so it is asked for its audits.
        let audited = run.audits_asked.clone();
        self.effects.push(Effect::Start { thread, prepared, draw, states });
        for key in audited {
            self.effects.push(Effect::Job { thread, job: Job::Audits(key) });
        }
    }

    /// Gives back the memory of a run that is not loaded.
    fn release_resting(&mut self, id: RunId) {
        if let Some(run) = self.runs.adjust(id) {
            self.budget.give_back(&run.submitter, std::mem::take(&mut run.reserved_bytes));
            self.runs.move_all();
        }
    }

    /// Recovers a run from the store, without its states.
    pub(super) fn recover_run(&mut self, mut saved: SavedRun) {
        // They are removed when the run is taken up.
        self.leave_out_void(&mut saved);
        let prepared = match &saved.prepared {
            Ok(prepared) => prepared.clone(),
            Err(problems) => {
                let why = format!("run {} cannot be read by this build and is not used: {problems}", saved.name);
                self.effects.log(Topic::Trouble, why.clone());
                let (name, state) = (saved.name.clone(), RunState::Blocked.into());
                let run = v1::Run { name: name.clone(), state, message: why.clone(), ..v1::Run::default() };
                self.effects.publish(View { run, prepared: None });
                self.runs.unreadable.insert(name, why);
                return;
            }
        };
        let mut run = Run::new(saved.name.clone(), prepared);
        run.submitter.clone_from(&saved.order.submitter);
        run.level = Level::of_order(&saved.order);
        run.wanted = wanted_of(&saved.order);
        run.blocked = self.unfit_because(&saved).map(Blocked::Unfit);
        run.adopt(&saved);
        for notice in &run.notices {
            self.effects.log_about(Topic::Trouble, run.about(), format!("run {}: {notice}", run.name));
        }
        if let Some(blocked) = &run.blocked {
            let line = format!("run {} is blocked: {}", run.name, blocked.why());
            self.effects.log_about(Topic::Trouble, run.about(), line);
        }
        if let Wanted::Failed(why) = &run.wanted {
            let line = format!("run {} has failed: {why}; `evoxo resume {0}` tries again", run.name);
            self.effects.log_about(Topic::Trouble, run.about(), line);
        }
        self.runs.add(run);
    }

    /// Why this build cannot use the states of a run, if it cannot.
    fn unfit_because(&self, saved: &SavedRun) -> Option<String> {
        let prepared = saved.prepared.as_ref().ok()?;
        let ours = origin_of(&self.registry, prepared);
        let mut origins = saved.checkpoint.iter().map(|checkpoint| &checkpoint.origin);
        let finished = saved.finished.iter().map(|finished| &finished.origin);
        let theirs: &Origin = origins.by_ref().chain(finished).find(|theirs| **theirs != ours)?;
        if theirs.signature == ours.signature {
            return Some(
                "the run's stored states belong to another configuration: start it anew under another name or in another \
                 directory"
                    .into(),
            );
        }
        let short = |signature: &Bytes| Digest::from_slice(signature).map_or_else(|| "unknown".into(), |it| it.short());
        Some(format!(
            "the run was computed by a build that computes other results (behaviour {}, this build {}): continue with that \
             build, or start it anew under another name or in another directory",
            short(&theirs.signature),
            short(&ours.signature)
        ))
    }
}

/// The next order of a run.
fn next_order(run: &Run, toml: &str, wanted: &Wanted) -> Write {
    let (state, failure) = match wanted {
        Wanted::Running => (RunState::Running, ""),
        Wanted::Paused => (RunState::Paused, ""),
        Wanted::Cancelled => (RunState::Cancelled, ""),
        Wanted::Failed(why) => (RunState::Failed, why.as_str()),
    };
    let order = v1::Order {
        config: toml.to_owned(),
        wanted: state.into(),
        rounds_done: run.rounds_done(),
        failure: failure.to_owned(),
        submitter: run.submitter.clone(),
        verification: run.level.message().into(),
        audit_millionths: run.level.millionths(),
    };
    Write::Order { bytes: seal_order(&order) }
}

fn wanted_of(order: &v1::Order) -> Wanted {
    match order.wanted() {
        RunState::Paused => Wanted::Paused,
        RunState::Cancelled => Wanted::Cancelled,
        RunState::Failed => Wanted::Failed(order.failure.clone()),
        _ => Wanted::Running,
    }
}
