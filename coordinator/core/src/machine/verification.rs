//! Runs that do not trust every worker: what happens if outputs of a task differ or are recomputed, and which identities are
//! convicted.
//!
//! A task is pure, so an output of a trusted worker proves any different output wrong. A convicted identity is excluded
//! permanently once the store has the conviction. Replicas that absorbed a void output start over. With recomputed shares, an
//! output is void if its sender is convicted; with quorums, if both identities that vouched for it are. If a trusted worker
//! contradicts a quorum, both workers of the quorum are convicted. If no trusted worker is involved, it is unknown which
//! output is wrong: a worker outvoted by two others must wait, but is not convicted.

use std::{collections::BTreeSet, sync::Arc};

use evoxo_common::{digest::Digest, time::Millis};

use super::{
    Effect, TaskId, Topic,
    about::About,
    cause::Cause,
    convictions::{Accused, Convictions},
    facts::Fact,
    look::Moment,
    out::Out,
    phases::{ReplicaPhase, ReplicaRecord},
    runs::RunId,
    sessions::{Session, Sessions},
    tasks::{Claim, OpenTask, Why},
    work::Work,
    writes::Refusal,
};
use crate::{
    replicas::{Job, Recomputation, ReplicaKey, Sender},
    saved::seal_conviction,
    trust::Level,
    write::Write,
};

/// The place of a task in its run.
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

impl Convictions {
    /// Requests the convictions that the store does not have yet to be written.
    pub(super) fn write(&mut self, now: Millis, out: &mut Out) {
        for (identity, what) in self.begin_writing(now) {
            let bytes = seal_conviction(&identity, &what);
            out.write_refusal(Write::Convict { identity: Arc::clone(&identity), bytes }, Refusal::Convicted(identity));
        }
    }
}

impl Work {
    /// An output was taken, so check earlier outputs that differ from it.
    pub(super) fn settle(
        &mut self,
        now: Millis,
        out: &mut Out,
        place: &Place,
        (taken, from): (Digest, &Sender),
        claims: Vec<Claim>,
    ) {
        for claim in claims.into_iter().filter(|claim| claim.output != taken) {
            self.contradict(now, out, place, &claim.from, from);
        }
    }

    /// Opens a task that recomputes an output which counts. Returns the task, unless there is nothing to recompute.
    pub(super) fn begin_recomputation(&mut self, mut recomputation: OpenTask) -> Option<TaskId> {
        // If the sender was convicted while its output was being checked, the output is void anyway. Each output is
        // recomputed only once.
        let counts = |claim: &Claim| claim.identity().is_some_and(|identity| !self.convictions.contains(identity));
        let recomputed = self.tasks.being_recomputed(&recomputation);
        recomputation.claims.retain(|claim| counts(claim) && recomputed.iter().all(|other| !other.is_same(claim)));
        if recomputation.claims.is_empty() {
            return None;
        }
        let run = self.runs.change(recomputation.run);
        if recomputation.recomputation == Some(Why::Differs) {
            run.recomputations.begin();
        }
        Some(self.tasks.add_recomputation(recomputation))
    }

    /// Two copies of a task differ. Both outputs are recomputed; until then they are stored with the replica.
    pub(super) fn recompute_difference(&mut self, out: &mut Out, recomputation: OpenTask) {
        let (id, replica) = (recomputation.run, recomputation.replica);
        // Both outputs may already be waiting to be recomputed.
        let Some(recomputation) = self.begin_recomputation(recomputation) else { return };
        let recomputations = self.tasks[recomputation].recomputations();
        let run = self.runs.change(id);
        run.checkpoints.dirty = true;
        let thread = run.thread_of_tasks();
        out.effects.push(Effect::Job { thread, job: Job::Recomputation { replica, recomputations } });
    }

    /// A run was loaded, and these outputs of a replica are still to be recomputed. `asked` is set for a finished replica:
    /// its list was requested, because the run waits for it.
    pub(super) fn go_on_recomputing(
        &mut self,
        out: &mut Out,
        id: RunId,
        replica: ReplicaKey,
        asked: bool,
        recomputations: Vec<Recomputation>,
    ) {
        let why = if asked { Why::Differs } else { Why::Drawn };
        for recomputation in recomputations {
            self.begin_recomputation(OpenTask::stored_recomputation(id, replica, why, recomputation));
        }
        let run = self.runs.change(id);
        if asked {
            run.recomputations.read(replica);
            out.facts.note(Fact::Settled(id));
        }
    }

    /// A trusted worker has recomputed an output.
    pub(super) fn end_recomputation(
        &mut self,
        now: Millis,
        out: &mut Out,
        (task, why): (TaskId, Why),
        place: &Place,
        output: Digest,
    ) {
        let (recomputed, wrong) = self.tasks.settle_recomputation(task, output);
        out.tally.recomputations += recomputed as u64;
        // If an output is wrong, the task stays until the conviction is stored. Before that, the run must not look finished.
        wrong.iter().for_each(|claim| self.convict(now, out, place, &claim.from));
        let run = self.runs.change(place.run);
        let job = Job::Pass { replica: place.replica, task: place.task, output };
        out.effects.push(Effect::Job { thread: run.thread_of_tasks(), job });
        if why == Why::Differs && wrong.is_empty() {
            run.recomputations.end();
            out.facts.note(Fact::Settled(place.run));
        }
    }

    /// An output differs from the one that was taken. `right` is the last sender of the taken output.
    pub(super) fn contradict(&mut self, now: Millis, out: &mut Out, place: &Place, wrong: &Sender, right: &Sender) {
        let trusted = |sender: &Sender| sender.holder.as_ref().is_some_and(|holder| holder.trusted);
        if trusted(right) && !trusted(wrong) {
            return self.convict(now, out, place, wrong);
        }
        let run = self.runs.change(place.run);
        let sentence = format!(
            "worker {} was outvoted: two others had a different output of task {}",
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
        out.effects.log_about(Topic::Trouble, about, line);
        out.facts.note_lost(wrong.session, Cause::Outvoted);
    }

    /// A trusted worker has a different output than this worker. The worker's identity is convicted once the store has the
    /// conviction.
    pub(super) fn convict(&mut self, now: Millis, out: &mut Out, place: &Place, liar: &Sender) {
        let holder =
            liar.holder.as_ref().expect("outputs of workers without an identity count only if every worker is trusted");
        let identity = holder.id.clone();
        let run = &self.runs[place.run];
        let arm = &run.prepared.config.arms[place.replica.arm as usize].name;
        let what = format!(
            "its output of task {} is wrong: run {}, arm {arm:?}, replica {}, round {}",
            place.task.short(),
            run.name,
            place.replica.index,
            place.round + 1
        );
        self.convictions.accuse(&identity, Arc::clone(&liar.worker), place.run, what);
        self.convictions.write(now, out);
    }

    /// The store has a conviction, so nothing from this identity counts any more.
    pub(super) fn apply_conviction(&mut self, at: &Moment, sessions: &Sessions, out: &mut Out, identity: &Arc<str>) {
        let Accused { worker, run, what, .. } = self.convictions.convict(identity);
        let sentence = format!("worker {worker} with the identity {identity} is convicted: {what}");
        let mut about = About { worker: Some(worker), identity: Some(identity.to_string()), ..About::default() };
        if let Some(run) = self.runs.change_if_there(run) {
            run.notice(sentence.clone());
            about.run = Some(run.name.clone());
        }
        out.tally.convictions += 1;
        out.effects.log_about(Topic::WorkerRefused, about, sentence);
        out.effects.push(Effect::Convict { identity: identity.to_string(), what });
        out.effects.push(Effect::ForgetRecalled);
        let of = |session: &Session| session.identity_number() == Some(identity);
        for (id, _) in sessions.iter().filter(|(_, session)| of(session)) {
            out.facts.note_lost(id, Cause::Convicted);
        }
        self.forget(out, identity);
        self.void(at, out, identity);
    }

    /// Voids everything that was absorbed on the word of an identity, in all runs. If two identities vouch for each output,
    /// it is void only if another of them is convicted too.
    fn void(&mut self, at: &Moment, out: &mut Out, identity: &Arc<str>) {
        for id in self.runs.ids() {
            let run = &self.runs[id];
            if run.blocked.is_some() {
                continue;
            }
            let (thread, level) = (run.thread(), run.level);
            let since = |record: &ReplicaRecord| self.convictions.void_since(level, &record.exposed);
            // The run's thread knows the exact state of its replicas. If the run is not in memory, its replicas are examined when
            // they are read.
            let here = |record: &&ReplicaRecord| match record.phase {
                ReplicaPhase::Waiting | ReplicaPhase::Opening | ReplicaPhase::Open { .. } | ReplicaPhase::Computed => {
                    thread.is_none()
                }
                _ => true,
            };
            let exposed = run.replicas.iter().filter(|(_, record)| here(record));
            let exposed = exposed.filter_map(|(key, record)| Some((*key, since(record)?)));
            for (key, since) in exposed.collect::<Vec<_>>() {
                self.begin_anew(at, out, id, key, since);
            }
            if let Some(thread) = thread {
                let (identity, convicted) = (Arc::clone(identity), self.convictions.all().clone());
                let job = Job::Void { identity, convicted, vouchers: level.vouchers() };
                out.effects.push(Effect::Job { thread, job });
            }
        }
    }

    /// Restarts a replica, which is void from the round after `since` rounds on.
    pub(super) fn begin_anew(&mut self, at: &Moment, out: &mut Out, id: RunId, replica: ReplicaKey, since: u64) {
        self.tasks.close_replica(id, replica);
        let run = self.runs.change(id);
        if run.is_over() {
            out.facts.note(Fact::Turned);
        }
        run.begin_anew(replica);
        run.checkpoints.dirty |= run.thread().is_some();
        out.tell_void(&run.name, &run.prepared.config.arms[replica.arm as usize].name, replica.index, since);
        self.release(at, id);
    }

    /// Drops outputs of an identity that no other worker has confirmed yet.
    fn forget(&mut self, out: &mut Out, identity: &Arc<str>) {
        let recomputed = self.tasks.drop_claims(identity);
        // The outputs that these tasks would recompute are void anyway.
        recomputed.iter().for_each(|id| self.runs.change(*id).recomputations.end());
        // A run may have waited only for these tasks.
        recomputed
            .into_iter()
            .collect::<BTreeSet<RunId>>()
            .into_iter()
            .for_each(|id| out.facts.note(Fact::Settled(id)));
        let threads =
            self.runs.iter().filter(|(_, run)| run.level == Level::Quorum).filter_map(|(_, run)| run.thread());
        for thread in threads.collect::<Vec<_>>() {
            let job = Job::Forget { identity: Arc::clone(identity) };
            out.effects.push(Effect::Job { thread, job });
        }
        self.runs.move_all();
    }
}

impl Out {
    /// Reports that a replica is void from the round after `since` rounds on.
    pub(super) fn tell_void(&mut self, run: &str, arm: &str, replica: u32, since: u64) {
        let round = since + 1;
        let object = format!("run {run}, arm {arm:?}, replica {replica}: void from round {round} on");
        self.effects.push(Effect::Audit { what: "void", object });
        let line = format!(
            "run {run}: replica {replica} of arm {arm:?} is computed again, because it had absorbed outputs of a convicted \
             worker from round {round} on"
        );
        // No notice for each replica, because there may be thousands. The conviction has a notice.
        let about = About { run: Some(run.into()), arm: Some(arm.into()), replica: Some(replica), ..About::default() };
        self.effects.log_about(Topic::Progress, about, line);
    }
}
