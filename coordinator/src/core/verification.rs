//! Runs that do not trust every worker: who may compute which task, who is convicted, and of what.
//!
//! A task is pure, so one output of a trusted worker proves that another one is wrong. A convicted identity is out for good, as
//! soon as the store has the conviction. What was absorbed on its own word, where outputs are audited, is void, and at a quorum what was
//! absorbed on the word of two who are convicted: those replicas begin anew. If a trusted worker contradicts a quorum, both workers of the
//! quorum are convicted. Where only equals contradict each other, nobody knows who is wrong: the one against two must wait, and is
//! not convicted.

use std::{collections::BTreeSet, sync::Arc};

use evoxo_common::digest::Digest;
use evoxo_proto::v1::CloseKind;

use super::{
    Coordinator, Effect, Rejection, Response, SessionId, StoreFault, Stored, TaskId, Topic,
    about::About,
    convictions::Accused,
    evidence::Jury,
    losses::Cause,
    run::{ReplicaPhase, ReplicaRecord, Run},
    runs::RunId,
    sessions::Session,
    storage::{STORE_RETRY_MS, ordinal},
    tasks::{Claim, OpenTask, Why},
    writes::Refusal,
};
use crate::{
    audits::Audit,
    replicas::{Job, ReplicaKey, Sender},
    saved::{Exposed, ReplicaSummary, SavedFinished, SavedRun, beginning, seal_conviction},
    trust::{Level, void_since},
    write::Write,
};

/// Tasks that are looked at for a worker among those that others have computed: there may be thousands that it has computed
/// itself.
const LOOKED_AT_MAX: usize = 1024;

/// Where a task belongs to.
pub(super) struct Place {
    pub(super) task: Digest,
    pub(super) run: RunId,
    pub(super) replica: ReplicaKey,
    pub(super) round: u64,
}

impl Place {
    pub(super) fn of(task: &OpenTask) -> Self {
        let OpenTask { run, replica, round, .. } = *task;
        Self { task: task.encoded.hash, run, replica, round }
    }
}

impl Coordinator {
    /// Whether a worker's output of this task could count, or be compared.
    pub(super) fn may_compute(&self, session: &Session, run: &Run, task: &OpenTask) -> bool {
        if run.level == Level::Plain {
            return true;
        }
        let Some(holder) = &session.holder else { return false };
        if holder.trusted {
            return true;
        }
        let heard = task.claims.iter().any(|claim| claim.identity() == Some(&holder.id));
        match run.level {
            Level::Plain => true,
            Level::Verified | Level::Audited { .. } => task.claims.is_empty(),
            // Who is trusted settles a dispute, if there is anybody.
            Level::Quorum if task.is_disputed() && self.has_trusted(run) => false,
            Level::Quorum => {
                let same = |other: &SessionId| self.sessions.get(*other).and_then(Session::identity_number);
                !heard && task.copies.iter().all(|(other, _)| same(other) != Some(&holder.id))
            }
        }
    }

    /// Tasks of a run that this worker may compute and nobody does, those first that wait for another output.
    pub(super) fn open_for<'a>(
        &'a self,
        session: &'a Session,
        id: RunId,
        run: &'a Run,
    ) -> impl Iterator<Item = TaskId> + 'a {
        // For these it is a trusted worker's turn.
        let closed = run.level.needs_trusted() && !session.is_trusted();
        let claimed = self.tasks.claimed().get(&id).filter(|_| !closed).into_iter().flatten().take(LOOKED_AT_MAX);
        let ready = self.tasks.ready().get(&id).into_iter().flatten();
        let may = move |task: &TaskId| {
            run.level == Level::Plain || self.tasks.get(*task).is_some_and(|task| self.may_compute(session, run, task))
        };
        claimed.chain(ready).copied().filter(move |task| may(task))
    }

    fn has_trusted(&self, run: &Run) -> bool {
        self.sessions.iter().any(|(_, session)| session.is_trusted() && session.computes(&run.prepared))
    }

    /// What a run waits for if the workers are not those that its level needs.
    pub(super) fn missing_trust(&self, id: RunId, run: &Run) -> Option<String> {
        let trusted = || self.has_trusted(run);
        match run.level {
            Level::Verified if !trusted() => Some(
                "it waits for a trusted worker: `evoxo token create --role trusted-worker` makes the token for one"
                    .into(),
            ),
            Level::Audited { .. } if !trusted() => Some(
                "no trusted worker is there, so nothing is audited, and it cannot finish: `evoxo token create --role \
                 trusted-worker` makes the token for one"
                    .into(),
            ),
            Level::Quorum => {
                let mut of = self.sessions.iter().filter(|(_, session)| session.computes(&run.prepared));
                let first = of.find_map(|(_, session)| session.identity_number());
                let second = of.any(|(_, session)| session.identity_number().is_some_and(|id| Some(id) != first));
                if !second && !trusted() {
                    return Some("it waits for workers with certificates of two identities, or a trusted one".into());
                }
                let accused = |task: &TaskId| {
                    let open = self.tasks.get(*task).filter(|open| open.run == id);
                    open.is_some_and(|open| {
                        let all = self.each_failure_counts(open);
                        open.evidence.as_ref().is_some_and(|evidence| evidence.accusation(all).is_some())
                    })
                };
                self.tasks.suspects().iter().any(accused).then(|| {
                    "a task fails, or its workers are lost, and it takes workers of three identities to say so: it waits for \
                     another one"
                        .into()
                })
            }
            _ => None,
        }
    }

    /// Whose word it takes to fail a run for a task.
    pub(super) fn jury(&self, run: RunId) -> Jury {
        match self.runs.get(run).map(|run| run.level) {
            Some(Level::Quorum) => Jury::Different,
            Some(Level::Verified | Level::Audited { .. }) => Jury::Trusted,
            Some(Level::Plain) | None => Jury::Anybody,
        }
    }

    /// An output was taken: who sent others before?
    pub(super) fn settle(&mut self, place: &Place, taken: Digest, from: &Sender, claims: Vec<Claim>) {
        for claim in claims.into_iter().filter(|claim| claim.output != taken) {
            self.contradict(place, &claim.from, from);
        }
    }

    /// An output that counts is to be computed again; by this task, if it is.
    pub(super) fn begin_audit(&mut self, mut audit: OpenTask) -> Option<TaskId> {
        // What was still being checked when its sender was convicted is void in any case; and once is enough.
        let counts = |claim: &Claim| claim.identity().is_some_and(|identity| !self.convictions.contains(identity));
        let audited = self.tasks.audited(&audit);
        audit.claims.retain(|claim| counts(claim) && audited.iter().all(|other| !other.is_same(claim)));
        if audit.claims.is_empty() {
            return None;
        }
        if let Some(run) = self.runs.change(audit.run).filter(|_| audit.audit == Some(Why::Differs)) {
            run.audits_open += 1;
        }
        Some(self.tasks.add_audit(audit))
    }

    /// Two copies of a task differ: both outputs are computed again, and until then they are stored with the replica.
    pub(super) fn audit_difference(&mut self, audit: OpenTask) {
        let (id, replica) = (audit.run, audit.replica);
        let Some(audit) = self.begin_audit(audit).and_then(|task| self.tasks.get(task)) else { return };
        let audits = audit.audits();
        let Some(run) = self.runs.change(id) else { return };
        run.checkpoints.dirty = true;
        if let Some(thread) = run.thread() {
            self.effects.push(Effect::Job { thread, job: Job::Audit { replica, audits } });
        }
    }

    /// A run was loaded: these outputs of a replica are still to be computed again. A replica that is finished was asked for them,
    /// since the run waits for what it says.
    pub(super) fn go_on_auditing(&mut self, id: RunId, replica: ReplicaKey, asked: bool, audits: Vec<Audit>) {
        let why = if asked { Why::Differs } else { Why::Drawn };
        for audit in audits {
            self.begin_audit(OpenTask::stored_audit(id, replica, why, audit));
        }
        if let Some(run) = self.runs.change(id).filter(|_| asked) {
            run.audits_asked.remove(&replica);
            self.end_if_complete(id);
        }
    }

    /// A trusted worker has computed what is audited.
    pub(super) fn end_audit(&mut self, task: TaskId, why: Why, place: &Place, output: Digest) {
        let (audited, wrong) = self.tasks.settle_audit(task, output);
        self.tally.audits += audited as u64;
        // A wrong one ends with the conviction: until that is stored, the run must not look finished.
        wrong.iter().for_each(|claim| self.convict(place, &claim.from));
        let Some(run) = self.runs.change(place.run) else { return };
        if let Some(thread) = run.thread() {
            let job = Job::Pass { replica: place.replica, task: place.task, output };
            self.effects.push(Effect::Job { thread, job });
        }
        if why == Why::Differs && wrong.is_empty() {
            run.audits_open -= 1;
            self.end_if_complete(place.run);
        }
    }

    /// An output is not the one that was taken, which this sender sent last.
    pub(super) fn contradict(&mut self, place: &Place, wrong: &Sender, right: &Sender) {
        let trusted = |sender: &Sender| sender.holder.as_ref().is_some_and(|holder| holder.trusted);
        if trusted(right) && !trusted(wrong) {
            return self.convict(place, wrong);
        }
        let Some(run) = self.runs.change(place.run) else { return };
        let sentence = format!(
            "worker {} was outvoted: two others had another output of task {}",
            wrong.worker,
            place.task.short()
        );
        run.notice(sentence.clone());
        let line = format!("run {}: {sentence}", run.name);
        let about = About {
            worker: Some(Arc::clone(&wrong.worker)),
            identity: wrong.holder.as_ref().map(|holder| holder.id.to_string()),
            session: Some(wrong.session),
            ..run.about_replica(place.replica).and_task(place.task)
        };
        self.effects.log_about(Topic::Trouble, about, line);
        self.lose(wrong.session, Cause::Outvoted);
    }

    /// A trusted worker has computed something else than this worker: its identity is convicted when the store has that.
    pub(super) fn convict(&mut self, place: &Place, liar: &Sender) {
        let Some(identity) = liar.holder.as_ref().map(|holder| holder.id.clone()) else { return };
        let Some(run) = self.runs.get(place.run) else { return };
        let arm = &run.prepared.config.arms[place.replica.arm as usize].name;
        let what = format!(
            "its output of task {} is wrong: run {}, arm {arm:?}, replica {}, round {}",
            place.task.short(),
            run.name,
            place.replica.index,
            place.round + 1
        );
        self.convictions.accuse(&identity, Arc::clone(&liar.worker), place.run, what);
        self.write_convictions();
    }

    /// Has the store write the convictions that it does not have.
    pub(super) fn write_convictions(&mut self) {
        for (identity, what) in self.convictions.begin_writing(self.now) {
            let bytes = seal_conviction(&identity, &what);
            let write = self.writes.add_refusal(Refusal::Convicted(Arc::clone(&identity)));
            self.effects.push(Effect::Store { write, run: String::new(), what: Write::Convict { identity, bytes } });
        }
    }

    /// The store reports that it has written, or not, that somebody is refused.
    pub(super) fn on_refusal_stored(&mut self, refusal: Refusal, outcome: Result<Stored, StoreFault>) {
        match (refusal, outcome) {
            (Refusal::Convicted(identity), Ok(_)) => self.apply_conviction(&identity),
            (Refusal::Revoked(request), Ok(_)) => self.effects.respond(request, Ok(Response::Revoked)),
            // Whoever leads now can be asked the same, and will find out the same.
            (Refusal::Convicted(_), Err(StoreFault::Superseded(_))) => {}
            (Refusal::Convicted(identity), Err(StoreFault::Failed(why) | StoreFault::Fenced(why))) => {
                let sentence =
                    format!("identity {identity} is not convicted yet, because that cannot be stored: {why}");
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

    /// The store has a conviction: nothing of this identity counts any more.
    fn apply_conviction(&mut self, identity: &Arc<str>) {
        let Some(Accused { worker, run, what, .. }) = self.convictions.convict(identity) else { return };
        let sentence = format!("worker {worker} with the identity {identity} is convicted: {what}");
        let mut about = About { worker: Some(worker), identity: Some(identity.to_string()), ..About::default() };
        if let Some(run) = self.runs.change(run) {
            run.notice(sentence.clone());
            about.run = Some(run.name.clone());
        }
        self.tally.convictions += 1;
        self.effects.log_about(Topic::WorkerRefused, about, sentence);
        self.effects.push(Effect::Convict { identity: identity.to_string(), what });
        let of = |session: &Session| session.identity_number() == Some(identity);
        let sessions: Vec<SessionId> =
            self.sessions.iter().filter(|(_, session)| of(session)).map(|(id, _)| id).collect();
        for id in sessions {
            self.lose(id, Cause::Convicted);
        }
        let audited = self.forget(identity);
        self.void(identity);
        // A run may have waited for nothing but the audits of this identity.
        audited.into_iter().for_each(|id| self.end_if_complete(id));
    }

    /// Whether a state was computed with outputs that were taken on the word of somebody who was convicted, or of two who were.
    /// Returns the rounds absorbed before the first of them.
    pub(super) fn void_since(&self, level: Level, exposed: &Exposed) -> Option<u64> {
        let exposed = exposed.iter().map(|(identity, since)| (&**identity, *since));
        void_since(exposed, level.vouchers(), |identity| self.convictions.contains(identity))
    }

    /// Sets void replicas of a run, as the store has it, to their beginning; returns what they were, and the objects to remove.
    pub(super) fn leave_out_void(&self, saved: &mut SavedRun) -> (Vec<(ReplicaSummary, u64)>, Vec<String>) {
        let level = Level::of_order(&saved.order);
        let since = |replica: &ReplicaSummary| self.void_since(level, &replica.exposed);
        let mut left_out = Vec::new();
        let mut keep = |replica: &ReplicaSummary| {
            let since = since(replica);
            left_out.extend(since.map(|since| (replica.clone(), since)));
            since.is_none()
        };
        if let Some(checkpoint) = &mut saved.checkpoint {
            for state in &mut checkpoint.states {
                // What others sent is looked at all the same.
                state.audits.retain(|audit| !self.convictions.contains(&audit.identity));
                if since(&ReplicaSummary::of(state)).is_some() {
                    *state = beginning(&state.arm, state.replica, std::mem::take(&mut state.audits));
                }
            }
            for replica in &mut checkpoint.replicas {
                replica.audited.retain(|identity| !self.convictions.contains(identity));
                if !keep(replica) {
                    let begun = ReplicaSummary::of(&beginning(&replica.arm, replica.index, Vec::new()));
                    *replica = ReplicaSummary { audited: std::mem::take(&mut replica.audited), ..begun };
                }
            }
        }
        let (kept, void): (Vec<SavedFinished>, _) =
            std::mem::take(&mut saved.finished).into_iter().partition(|it| keep(&it.replica));
        saved.finished = kept;
        (left_out, void.into_iter().map(|finished| finished.object).collect())
    }

    /// Everything that was absorbed on the word of an identity is void, in all runs; where two vouch for each output, if another one of
    /// them is convicted too.
    fn void(&mut self, identity: &Arc<str>) {
        for id in self.runs.ids() {
            let Some(run) = self.runs.get(id).filter(|run| run.blocked.is_none()) else { continue };
            let (thread, level) = (run.thread(), run.level);
            let since = |record: &ReplicaRecord| self.void_since(level, &record.exposed);
            let exposed = run.replicas.iter().filter_map(|(key, record)| Some((*key, since(record)?, &record.phase)));
            let exposed = exposed.filter_map(|(key, since, phase)| match phase {
                // Its thread knows it better.
                ReplicaPhase::Waiting | ReplicaPhase::Opening | ReplicaPhase::Open { .. } | ReplicaPhase::Computed
                    if thread.is_some() =>
                {
                    None
                }
                ReplicaPhase::Finished { sealed, .. } => {
                    let write = Write::UnfinishOwn { ordinal: ordinal(key), bytes: sealed.clone() };
                    Some((key, since, Some(write)))
                }
                ReplicaPhase::Stored { object, .. } => {
                    Some((key, since, Some(Write::Unfinish { object: object.clone() })))
                }
                _ => Some((key, since, None)),
            });
            for (key, since, write) in exposed.collect::<Vec<_>>() {
                self.begin_anew(id, key, since);
                // What is not in memory is looked at again when it is read.
                if let Some(write) = write.filter(|_| thread.is_some()) {
                    self.store(id, write);
                }
            }
            if let Some(thread) = thread {
                let (identity, convicted) = (Arc::clone(identity), self.convictions.all().clone());
                let job = Job::Void { identity, convicted, vouchers: level.vouchers() };
                self.effects.push(Effect::Job { thread, job });
            }
        }
    }

    /// A replica is void since the round after these.
    pub(super) fn begin_anew(&mut self, id: RunId, replica: ReplicaKey, since: u64) {
        self.tasks.close_replica(id, replica);
        let Some(run) = self.runs.change(id) else { return };
        run.begin_anew(replica);
        run.checkpoints.dirty |= run.thread().is_some();
        let (name, arm) = (run.name.clone(), run.prepared.config.arms[replica.arm as usize].name.clone());
        self.tell_void(&name, &arm, replica.index, since);
        self.release(id);
    }

    /// Says that a replica is void since the round after these.
    pub(super) fn tell_void(&mut self, run: &str, arm: &str, replica: u32, since: u64) {
        let round = since + 1;
        let object = format!("run {run}, arm {arm:?}, replica {replica}: void from round {round} on");
        self.effects.push(Effect::Audit { what: "void", object });
        let line = format!(
            "run {run}: replica {replica} of arm {arm:?} is computed again, because it had absorbed outputs of a convicted \
             worker from round {round} on"
        );
        // There may be thousands; the conviction is the notice.
        let about = About { run: Some(run.into()), arm: Some(arm.into()), replica: Some(replica), ..About::default() };
        self.effects.log_about(Topic::Progress, about, line);
    }

    /// What an identity sent and what nobody else has confirmed yet does not count.
    /// Returns the runs of which something of it was being audited.
    fn forget(&mut self, identity: &Arc<str>) -> BTreeSet<RunId> {
        let audited = self.tasks.drop_claims(identity);
        for id in &audited {
            // What they would show is void in any case.
            if let Some(run) = self.runs.change(*id) {
                run.audits_open -= 1;
            }
        }
        let threads =
            self.runs.iter().filter(|(_, run)| run.level == Level::Quorum).filter_map(|(_, run)| run.thread());
        for thread in threads.collect::<Vec<_>>() {
            let job = Job::Forget { identity: Arc::clone(identity) };
            self.effects.push(Effect::Job { thread, job });
        }
        self.runs.move_all();
        audited.into_iter().collect()
    }

    /// Refuses a worker whose identity is convicted; whether it did.
    pub(super) fn refuses_convicted(&mut self, id: SessionId, session: &Session) -> bool {
        let convicted = session.identity_number().is_some_and(|identity| self.convictions.contains(identity));
        if convicted {
            let why = format!("worker {} is refused: its identity was convicted of a wrong output", session.name);
            self.effects.log_about(Topic::WorkerRefused, session.about(id), why.clone());
            self.effects.close(id, CloseKind::Refused, why, 0);
        }
        convicted
    }
}
