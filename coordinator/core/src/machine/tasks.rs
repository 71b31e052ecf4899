//! Open tasks: those that are planned and have no accepted output.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Index,
    sync::Arc,
};

use bytes::Bytes;
use evoxo_common::{digest::Digest, task::Encoded, time::Millis};

use super::{
    evidence::{Evidence, Loss},
    own::Own,
    runs::RunId,
};
use crate::{
    id::{SessionId, TaskId},
    prepared::Prepared,
    replicas::{PlannedTask, ReceivedOutput, Recomputation, ReplicaKey, Sender},
    trust::{Holder, Worth},
};

/// One open task.
pub(super) struct OpenTask {
    pub(super) run: RunId,
    /// The replica, the round, and the task's index in it.
    pub(super) replica: ReplicaKey,
    pub(super) round: u64,
    pub(super) index: usize,
    pub(super) work: &'static str,
    pub(super) encoded: Encoded,
    /// Of the run's waiting tasks, those with the lowest number go first: see [`Run::turn_of`](super::run::Run::turn_of).
    turn: u32,
    /// The assignments that carry it now.
    pub(super) copies: Vec<(SessionId, u64)>,
    /// The number of outputs that the run's thread is checking, and how many of them come from workers that were assigned the
    /// task.
    checking: u32,
    checking_asked: usize,
    /// The evidence against the task. A task with any evidence is a suspect and is sent alone.
    pub(super) evidence: Option<Box<Evidence>>,
    /// Whether the coordinator computes the task itself.
    pub(super) own: Own,
    /// Valid outputs that do not count yet; for a task that recomputes an output, the outputs in question.
    pub(super) claims: Vec<Claim>,
    /// Set if the output has already counted and a trusted worker is to recompute it.
    pub(super) recomputation: Option<Why>,
}

/// Why an output is recomputed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The output was drawn, or was still to be recomputed when its state was stored. The replica waits for it.
    Drawn,
    /// Another copy of the task had a different output; the replica may be finished. The run waits for it.
    Differs,
}

/// An output that does not count until another worker has computed the task.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    /// The sender.
    pub(super) from: Sender,
    /// The hash of the canonical output.
    pub(super) output: Digest,
}

impl Claim {
    /// Whether the same identity sent the same output.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (self.identity(), self.output) == (other.identity(), other.output)
    }

    /// The identity of the sender.
    pub(super) fn identity(&self) -> Option<&Arc<str>> {
        self.from.holder.as_ref().map(|holder| &holder.id)
    }
}

impl OpenTask {
    fn new(run: RunId, replica: ReplicaKey, round: u64, planned: PlannedTask) -> Self {
        let PlannedTask { index, work, encoded } = planned;
        Self {
            turn: 0,
            run,
            replica,
            round,
            index,
            work,
            encoded,
            copies: Vec::new(),
            checking: 0,
            checking_asked: 0,
            evidence: None,
            own: Own::No,
            claims: Vec::new(),
            recomputation: None,
        }
    }

    /// An output received for this task, ready for the run's thread.
    pub(super) fn received(&self, task: TaskId, from: Sender, output: Bytes, worth: Worth) -> ReceivedOutput {
        let Self { replica, round, index, work, .. } = *self;
        ReceivedOutput { task, from, replica, round, index, work, encoded: self.encoded.clone(), output, worth }
    }

    /// Whether workers disagree about the task's output.
    pub(super) fn is_disputed(&self) -> bool {
        self.claims.windows(2).any(|pair| pair[0].output != pair[1].output)
    }

    /// The task that recomputes these outputs of this task.
    pub(super) fn recomputation(&self, why: Why, claims: Vec<Claim>) -> Self {
        let Self { run, replica, round, index, work, .. } = *self;
        let planned = PlannedTask { index, work, encoded: self.encoded.clone() };
        Self { claims, recomputation: Some(why), ..Self::new(run, replica, round, planned) }
    }

    /// The outputs to recompute, in the form in which they are stored.
    pub(super) fn recomputations(&self) -> Vec<Recomputation> {
        let Self { round, index, work, .. } = *self;
        let stored = |Claim { from, output }: &Claim| {
            let (identity, worker) = (from.holder.as_ref()?.id.clone(), from.worker.clone());
            Some(Recomputation { identity, worker, output: *output, round, index, work, encoded: self.encoded.clone() })
        };
        self.claims.iter().filter_map(stored).collect()
    }

    /// The task that recomputes an output which was to be recomputed before the run was loaded.
    pub(super) fn stored_recomputation(
        run: RunId,
        replica: ReplicaKey,
        why: Why,
        recomputation: Recomputation,
    ) -> Self {
        let Recomputation { identity, worker, output, round, index, work, encoded } = recomputation;
        let holder = Some(Holder { id: identity, trusted: false });
        // The session has ended.
        let from = Sender { session: SessionId(0), worker, asked: true, holder };
        let (claims, planned) = (vec![Claim { from, output }], PlannedTask { index, work, encoded });
        Self { claims, recomputation: Some(why), ..Self::new(run, replica, round, planned) }
    }

    /// Whether the run's thread is checking an output of this task.
    pub(super) fn is_being_checked(&self) -> bool {
        self.checking > 0
    }

    fn is_ready(&self) -> bool {
        self.copies.is_empty() && !self.is_being_checked() && !self.own.is_asked()
    }
}

/// A task that was closed by an accepted output while other workers had it too. Their outputs will confirm or contradict the
/// accepted one.
pub(super) struct AwaitingCopies {
    /// The task at the time it was closed.
    pub(super) task: OpenTask,
    /// The hash of the canonical output.
    pub(super) output: Digest,
    /// The worker that sent the output, and those that sent the same output before, when it did not count alone.
    pub(super) vouchers: Vec<Sender>,
    /// The number of workers whose output is still awaited.
    copies: usize,
}

/// Tasks that wait for a worker, each with its turn, in the order in which they are assigned.
pub(super) type Waiting = BTreeSet<(u32, TaskId)>;

/// The open tasks of all runs.
#[derive(Default)]
pub(super) struct Tasks {
    last: u64,
    open: BTreeMap<TaskId, OpenTask>,
    by_hash: BTreeMap<Digest, Vec<TaskId>>,
    /// Tasks without a copy, by run, except suspects.
    ready: BTreeMap<RunId, Waiting>,
    suspects: BTreeSet<TaskId>,
    /// Whether suspects were added since the last query.
    new_suspects: bool,
    /// Tasks without a copy that have an output which does not count yet, by run, except suspects.
    claimed: BTreeMap<RunId, Waiting>,
    awaiting: BTreeMap<Digest, AwaitingCopies>,
    /// The number of tasks assigned to workers, by run; no entry is 0.
    assigned: BTreeMap<RunId, usize>,
    /// Bytes of open tasks, by run.
    bytes: BTreeMap<RunId, u64>,
}

/// A reference to an open task must not outlive it, unless it is used through an `if_open` method.
fn closed(id: TaskId) -> ! {
    panic!("{id:?} is closed, and still listed as open")
}

impl Index<TaskId> for Tasks {
    type Output = OpenTask;

    fn index(&self, id: TaskId) -> &OpenTask {
        self.get(id).unwrap_or_else(|| closed(id))
    }
}

impl Tasks {
    pub(super) fn add(&mut self, run: RunId, replica: ReplicaKey, (round, turn): (u64, u32), planned: PlannedTask) {
        self.open(OpenTask { turn, ..OpenTask::new(run, replica, round, planned) });
    }

    /// Opens a task that recomputes outputs.
    pub(super) fn add_recomputation(&mut self, recomputation: OpenTask) -> TaskId {
        self.open(recomputation)
    }

    fn open(&mut self, task: OpenTask) -> TaskId {
        self.last += 1;
        let id = TaskId(self.last);
        self.by_hash.entry(task.encoded.hash).or_default().push(id);
        *self.bytes.entry(task.run).or_default() += Prepared::task_bytes(task.encoded.own.len());
        self.open.insert(id, task);
        self.update_ready(id);
        id
    }

    /// The outputs of a task in this replica that are already being recomputed.
    pub(super) fn being_recomputed(&self, task: &OpenTask) -> Vec<Claim> {
        let same =
            |other: &&OpenTask| other.recomputation.is_some() && (other.run, other.replica) == (task.run, task.replica);
        let open = self.with_hash(task.encoded.hash).into_iter().map(|id| &self[id]);
        open.filter(same).flat_map(|other| other.claims.clone()).collect()
    }

    /// A trusted worker computed this output of a task that recomputes outputs. Returns how many outputs were in question,
    /// and the wrong ones. The task is closed if there are no wrong ones; otherwise [`Self::drop_claims`] closes it.
    pub(super) fn settle_recomputation(&mut self, id: TaskId, output: Digest) -> (usize, Vec<Claim>) {
        let task = self.open.get_mut(&id).unwrap_or_else(|| closed(id));
        let recomputed = task.claims.len();
        // The check is not ended here, so the task still counts as being checked and is not assigned again.
        task.claims.retain(|claim| claim.output != output);
        let wrong = task.claims.clone();
        if wrong.is_empty() {
            self.remove(id);
        }
        (recomputed, wrong)
    }

    /// The number of open tasks.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn get(&self, id: TaskId) -> Option<&OpenTask> {
        self.open.get(&id)
    }

    /// Whether a task with these bytes is open.
    pub(super) fn is_open(&self, hash: Digest) -> bool {
        self.by_hash.contains_key(&hash)
    }

    /// All open tasks with these bytes. They are computed only once.
    pub(super) fn with_hash(&self, hash: Digest) -> Vec<TaskId> {
        self.by_hash.get(&hash).cloned().unwrap_or_default()
    }

    /// Closes a task with an output of this hash. Returns the outputs that did not count. If other workers have the task too,
    /// their outputs are awaited.
    pub(super) fn close(&mut self, id: TaskId, output: Digest, from: &Sender) -> Vec<Claim> {
        let mut task = self.remove(id);
        let claims = std::mem::take(&mut task.claims);
        let copies = task.copies.len() + task.checking_asked - usize::from(from.asked);
        if copies > 0 {
            let hash = task.encoded.hash;
            let before = self.awaiting.remove(&hash).map_or(0, |awaiting| awaiting.copies);
            let same = claims.iter().filter(|claim| claim.output == output).map(|claim| &claim.from);
            let vouchers = [from].into_iter().chain(same).cloned().collect();
            self.awaiting.insert(hash, AwaitingCopies { task, output, vouchers, copies: before + copies });
        }
        claims
    }

    /// Adds a valid output that does not count yet.
    pub(super) fn claim(&mut self, id: TaskId, claim: Claim) {
        self.change(id, |task| {
            if task.claims.iter().all(|other| other.identity() != claim.identity()) {
                task.claims.push(claim);
            }
        });
    }

    /// Drops outputs of an identity that do not count yet or are to be recomputed. A task that recomputes outputs is closed
    /// once none is left. Returns the run of each closed task, if the run waits for that task.
    pub(super) fn drop_claims(&mut self, identity: &Arc<str>) -> Vec<RunId> {
        let of = |claim: &Claim| claim.identity() == Some(identity);
        let claimed = self.open.iter().filter(|(_, task)| task.claims.iter().any(of));
        let mut recomputed = Vec::new();
        for (id, run) in claimed.map(|(id, task)| (*id, task.run)).collect::<Vec<_>>() {
            self.change(id, |task| task.claims.retain(|claim| !of(claim)));
            let task = &self[id];
            if let Some(why) = task.recomputation.filter(|_| task.claims.is_empty()) {
                self.remove(id);
                recomputed.extend(Some(run).filter(|_| why == Why::Differs));
            }
        }
        recomputed
    }

    fn remove(&mut self, id: TaskId) -> OpenTask {
        let task = self.open.remove(&id).unwrap_or_else(|| closed(id));
        let ids = self.by_hash.get_mut(&task.encoded.hash).expect("the hash of an open task leads to it");
        ids.retain(|other| *other != id);
        if ids.is_empty() {
            self.by_hash.remove(&task.encoded.hash);
        }
        let bytes = self.bytes.get_mut(&task.run).expect("the bytes of an open task are counted");
        *bytes -= Prepared::task_bytes(task.encoded.own.len());
        self.count_assigned(task.run, !task.copies.is_empty(), false);
        self.unready((task.turn, id), task.run);
        task
    }

    /// Changes an open task, and updates the lists of waiting tasks.
    fn change(&mut self, id: TaskId, change: impl FnOnce(&mut OpenTask)) {
        let task = self.open.get_mut(&id).unwrap_or_else(|| closed(id));
        let before = !task.copies.is_empty();
        change(task);
        let (run, turn, now) = (task.run, task.turn, !task.copies.is_empty());
        self.count_assigned(run, before, now);
        self.unready((turn, id), run);
        self.update_ready(id);
    }

    /// Like [`Self::change`], for a task named by an assignment. The task may be closed.
    fn change_if_open(&mut self, id: TaskId, change: impl FnOnce(&mut OpenTask)) {
        if self.open.contains_key(&id) {
            self.change(id, change);
        }
    }

    /// Closes all tasks of a run, because their outputs are no longer needed.
    pub(super) fn close_run(&mut self, run: RunId) {
        self.close_all(|task| task.run == run);
        self.awaiting.retain(|_, awaiting| awaiting.task.run != run);
        self.bytes.remove(&run);
    }

    /// Closes the open tasks of a replica, because their outputs are no longer needed. Tasks that recompute outputs stay
    /// open.
    pub(super) fn close_replica(&mut self, run: RunId, replica: ReplicaKey) {
        self.close_all(|task| task.run == run && task.replica == replica && task.recomputation.is_none());
    }

    fn close_all(&mut self, of: impl Fn(&OpenTask) -> bool) {
        let ids: Vec<TaskId> = self.open.iter().filter(|(_, task)| of(task)).map(|(id, _)| *id).collect();
        ids.into_iter().for_each(|id| drop(self.remove(id)));
    }

    /// Adds a copy to a task.
    pub(super) fn add_copy(&mut self, id: TaskId, copy: (SessionId, u64)) {
        self.change(id, |task| task.copies.push(copy));
    }

    /// Removes a copy of a task. A task without copies is ready again.
    pub(super) fn drop_copy(&mut self, id: TaskId, copy: (SessionId, u64)) {
        self.change_if_open(id, |task| {
            task.copies.retain(|other| *other != copy);
        });
    }

    /// An output is being checked. Until the check ends, the task is not ready.
    pub(super) fn begin_check(&mut self, id: TaskId, asked: bool) {
        self.change(id, |task| {
            task.checking += 1;
            task.checking_asked += usize::from(asked);
        });
    }

    /// The check has ended without closing the task.
    pub(super) fn end_check(&mut self, id: TaskId, asked: bool) {
        self.change(id, |task| {
            task.checking -= 1;
            task.checking_asked -= usize::from(asked);
        });
    }

    /// Adds evidence against a task.
    pub(super) fn accuse(&mut self, id: TaskId, now: Millis, add: impl FnOnce(&mut Evidence)) {
        self.change_if_open(id, |task| {
            let evidence = task.evidence.get_or_insert_default();
            evidence.last = now;
            add(evidence);
        });
    }

    /// Sets whether the coordinator computes a task itself. While it does, no worker gets the task.
    pub(super) fn set_own(&mut self, id: TaskId, own: Own) {
        self.change(id, |task| task.own = own);
    }

    /// A process that counted as lost is alive, so its losses are no evidence.
    pub(super) fn withdraw(&mut self, process: u64) {
        let accused = |task: &OpenTask| {
            let losses = task.evidence.iter().flat_map(|evidence| &evidence.losses);
            losses.clone().any(|loss: &Loss| loss.process == process)
        };
        let ids: Vec<TaskId> = self.open.iter().filter(|(_, task)| accused(task)).map(|(id, _)| *id).collect();
        for id in ids {
            self.change(id, |task| {
                task.evidence = task.evidence.take().and_then(|evidence| evidence.without(process)).map(Box::new);
            });
        }
    }

    fn unready(&mut self, place: (u32, TaskId), run: RunId) {
        self.suspects.remove(&place.1);
        for sets in [&mut self.ready, &mut self.claimed] {
            if let Some(ready) = sets.get_mut(&run) {
                ready.remove(&place);
                if ready.is_empty() {
                    sets.remove(&run);
                }
            }
        }
    }

    fn update_ready(&mut self, id: TaskId) {
        let task = self.open.get(&id).unwrap_or_else(|| closed(id));
        if !task.is_ready() {
            return;
        }
        match (&task.evidence, task.claims.is_empty()) {
            (Some(_), _) => self.new_suspects |= self.suspects.insert(id),
            (None, true) => _ = self.ready.entry(task.run).or_default().insert((task.turn, id)),
            (None, false) => _ = self.claimed.entry(task.run).or_default().insert((task.turn, id)),
        }
    }

    /// Tasks without a copy, by run, except suspects.
    pub(super) fn ready(&self) -> &BTreeMap<RunId, Waiting> {
        &self.ready
    }

    /// Tasks without a copy whose outputs do not count yet, by run, except suspects.
    pub(super) fn claimed(&self) -> &BTreeMap<RunId, Waiting> {
        &self.claimed
    }

    /// Whether any task is without a copy, except suspects.
    pub(super) fn have_open(&self) -> bool {
        [&self.ready, &self.claimed].iter().any(|tasks| !tasks.is_empty())
    }

    /// The number of a run's tasks that no worker is computing. With `claimed`, this includes tasks that one worker has
    /// computed and another must compute.
    pub(super) fn waiting(&self, run: RunId, claimed: bool) -> usize {
        let of_run = |sets: &BTreeMap<RunId, Waiting>| sets.get(&run).map_or(0, BTreeSet::len);
        let suspects = self.suspects.iter().filter(|id| self[**id].run == run).count();
        of_run(&self.ready) + suspects + if claimed { of_run(&self.claimed) } else { 0 }
    }

    /// Suspects without a copy.
    pub(super) fn suspects(&self) -> &BTreeSet<TaskId> {
        &self.suspects
    }

    /// Whether suspects were added since the last call.
    pub(super) fn take_new_suspects(&mut self) -> bool {
        std::mem::take(&mut self.new_suspects)
    }

    /// The bytes of a run's open tasks.
    pub(super) fn bytes(&self, run: RunId) -> u64 {
        self.bytes.get(&run).copied().unwrap_or(0)
    }

    /// The number of a run's tasks that are assigned to workers.
    pub(super) fn assigned(&self, run: RunId) -> usize {
        self.assigned.get(&run).copied().unwrap_or(0)
    }

    fn count_assigned(&mut self, run: RunId, before: bool, now: bool) {
        if before == now {
            return;
        }
        let count = self.assigned.entry(run).or_default();
        *count = *count + usize::from(now) - usize::from(before);
        if *count == 0 {
            self.assigned.remove(&run);
        }
    }

    /// The closed task with this hash whose other copies are awaited.
    pub(super) fn awaiting(&self, hash: Digest) -> Option<&AwaitingCopies> {
        self.awaiting.get(&hash)
    }

    /// All open tasks.
    pub(super) fn iter(&self) -> impl Iterator<Item = (TaskId, &OpenTask)> {
        self.open.iter().map(|(id, task)| (*id, task))
    }

    /// Checks that these collections agree with each other.
    pub(super) fn check(&self) {
        let named: usize = self.by_hash.values().map(Vec::len).sum();
        assert_eq!(named, self.open.len(), "the open tasks and those listed by hash do not match");
        let (mut bytes, mut assigned) = (BTreeMap::<RunId, u64>::new(), BTreeMap::<RunId, usize>::new());
        let mut waiting = 0;
        for (id, task) in &self.open {
            let hash = task.encoded.hash;
            assert!(self.by_hash.get(&hash).is_some_and(|ids| ids.contains(id)), "its hash does not lead to {id:?}");
            assert!(task.checking_asked <= task.checking as usize, "{id:?} has more requested outputs than outputs");
            *bytes.entry(task.run).or_default() += Prepared::task_bytes(task.encoded.own.len());
            if !task.copies.is_empty() {
                *assigned.entry(task.run).or_default() += 1;
            }
            if task.is_ready() {
                let place = (task.turn, *id);
                let in_set =
                    |sets: &BTreeMap<RunId, Waiting>| sets.get(&task.run).is_some_and(|set| set.contains(&place));
                let found = match (&task.evidence, task.claims.is_empty()) {
                    (Some(_), _) => self.suspects.contains(id),
                    (None, true) => in_set(&self.ready),
                    (None, false) => in_set(&self.claimed),
                };
                assert!(found, "{id:?} has no copy, but is not listed as waiting");
                waiting += 1;
            }
        }
        let sets = || self.ready.values().chain(self.claimed.values());
        assert!(sets().all(|set| !set.is_empty()), "a run without waiting tasks is listed");
        let listed = self.suspects.len() + sets().map(BTreeSet::len).sum::<usize>();
        assert_eq!(listed, waiting, "tasks are listed as waiting although they are not, or twice");
        assert_eq!(assigned, self.assigned, "the count of assigned tasks is wrong");
        let counted = self.bytes.iter().filter(|(_, bytes)| **bytes > 0).map(|(run, bytes)| (*run, *bytes));
        assert_eq!(bytes, counted.collect(), "the count of bytes of open tasks is wrong");
        for (hash, awaiting) in &self.awaiting {
            assert!(awaiting.copies > 0, "copies of task {} are awaited, but none is assigned", hash.short());
            assert_eq!(*hash, awaiting.task.encoded.hash, "a closed task is kept under another hash");
        }
    }

    /// One awaited copy of a task will not arrive.
    pub(super) fn forget_copy(&mut self, hash: Digest) {
        if let Some(awaiting) = self.awaiting.get_mut(&hash) {
            awaiting.copies -= 1;
            if awaiting.copies == 0 {
                self.awaiting.remove(&hash);
            }
        }
    }
}
