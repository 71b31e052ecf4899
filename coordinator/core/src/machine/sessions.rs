//! Connected workers: their identity, assignments and capacity.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Index,
    sync::Arc,
};

use evoxo_common::{
    digest::Digest,
    experiment::Registry,
    task::{ProgramId, SharedCache},
    time::Millis,
};
use evoxo_proto::{
    KINDS_MAX, LABELS_MAX, NAME_BYTES_MAX, PROGRAM_BYTES_MAX, PROGRAMS_MAX, PROTOCOL, SLOTS_MAX, is_label, v1,
};

use super::{
    groups::{Abilities, GroupId, Groups},
    recent::Recent,
    record::Records,
    run::Run,
    runs::RunId,
    standing::Identity,
};
use crate::{
    id::{SessionId, TaskId},
    prepared::Prepared,
    trust::Holder,
};

/// How long a session must have lasted to count as proven if the duration of a task is unknown, in milliseconds.
const PROVEN_MS_UNKNOWN: u64 = 10_000;
/// The minimum duration of a proven session, in milliseconds.
const PROVEN_MS_MIN: u64 = 1000;
/// The minimum duration of a proven session as a multiple of the task's expected duration.
const PROVEN_FACTOR: u64 = 10;
/// A worker that has sent nothing for this long, in milliseconds, gets no tasks. That is five heartbeats.
const QUIET_MS: u64 = 10_000;
/// Tasks that are expected to take longer than this, in microseconds, are long.
pub(super) const LONG_US: u64 = 1_000_000;
/// The maximum number of tasks of one worker. When the worker is lost, each of them must be handled.
const TASKS_MAX: usize = 8192;

/// One connected worker.
pub(super) struct Session {
    pub(super) name: Arc<str>,
    pub(super) address: String,
    /// The holder of the worker's certificate.
    pub(super) holder: Option<Holder>,
    /// The name of the worker's host, as the worker reports it.
    pub(super) host: String,
    pub(super) identity: Identity,
    /// The shared identity of all workers at its address.
    neighbours: Identity,
    pub(super) build: String,
    pub(super) process: u64,
    pub(super) slots: u32,
    pub(super) abilities: Abilities,
    group: GroupId,
    /// Kinds for which the worker's signature differs from the coordinator's, sorted.
    pub(super) kinds_refused: Vec<&'static str>,
    pub(super) assignments: BTreeMap<u64, Assignment>,
    assignment_last: u64,
    /// The number of tasks that remain in all assignments.
    pub(super) tasks_assigned: usize,
    /// The shared bytes that the worker has.
    pub(super) cache: SharedCache<()>,
    pub(super) heard: Millis,
    pub(super) connected: Millis,
    /// The tasks of which it sent an output.
    pub(super) tasks_done: u64,
    /// Those of the last minute.
    pub(super) recent: Recent,
    pub(super) draining: bool,
    /// Why it gets no tasks, if an operator wants that.
    pub(super) cordon: Option<Arc<v1::Cordon>>,
    /// Different tasks that failed here and that no other worker has computed yet, with their runs.
    pub(super) failed: BTreeMap<Digest, RunId>,
    /// Failed tasks that another worker has computed since.
    pub(super) failed_here_alone: BTreeMap<Digest, RunId>,
    /// Its recent successes and failures with tasks of each kind.
    pub(super) records: Records,
    /// Whether it was set aside before and still gets one task at a time, until it has computed some.
    pub(super) on_trial: bool,
    /// Tasks of earlier sessions of its process, which it may still answer.
    pub(super) owed: BTreeSet<Digest>,
}

/// Whether a task counts as long if it is expected to take so many microseconds; `None` is an unknown duration. For long
/// tasks, a network delay between two of them costs little, but a task queued behind one that takes hours could lose hours.
pub(super) fn is_long(each_us: Option<u64>) -> bool {
    each_us.is_none_or(|each_us| each_us > LONG_US)
}

/// Tasks sent together, for one slot.
pub(super) struct Assignment {
    pub(super) remaining: BTreeMap<Digest, TaskId>,
    pub(super) sent: Millis,
    /// When the assignment was sent, or when its last result arrived.
    pub(super) progress: Millis,
    /// The run, arm and kind of all tasks of the assignment.
    pub(super) run: RunId,
    pub(super) arm: u32,
    pub(super) work: &'static str,
    /// The expected duration of each task; `None` if it is unknown.
    pub(super) each_us: Option<u64>,
    /// Whether its only task is a suspect.
    pub(super) alone: bool,
    /// Whether another worker had some of its tasks already.
    pub(super) further: bool,
}

impl Assignment {
    /// Whether its tasks count as long.
    pub(super) fn is_long(&self) -> bool {
        is_long(self.each_us)
    }

    /// The expected duration of the remaining tasks, in microseconds; 1 for each task if the duration is unknown.
    pub(super) fn expected_us(&self) -> u64 {
        self.each_us.unwrap_or(1) * self.remaining.len() as u64
    }
}

/// A result of an assigned task.
pub(super) struct Credit {
    pub(super) task: TaskId,
    pub(super) run: RunId,
    pub(super) arm: u32,
    pub(super) work: &'static str,
    /// The expected duration in microseconds, as it was counted when the task was sent.
    pub(super) counted_us: u64,
    /// How long the coordinator waited for the result, in milliseconds.
    pub(super) waited_ms: u64,
    /// Whether it is the last result of its assignment.
    pub(super) last: bool,
    /// Whether the assignment was a further copy.
    pub(super) further: bool,
}

impl Session {
    /// The identities under which the worker's standing is recorded.
    pub(super) fn identities(&self) -> [&Identity; 2] {
        [&self.identity, &self.neighbours]
    }

    /// The number of the worker's identity, if it has a certificate.
    pub(super) fn identity_number(&self) -> Option<&Arc<str>> {
        self.holder.as_ref().map(|holder| &holder.id)
    }

    /// Whether its outputs are correct by definition.
    pub(super) fn is_trusted(&self) -> bool {
        self.abilities.trusted
    }

    /// See [`Abilities::serves`].
    pub(super) fn serves(&self, run: &Run) -> bool {
        self.abilities.serves(run)
    }

    /// The worker's programs for display: each with its name and the first digits of its signature, unless the signature was
    /// found to be wrong.
    pub(super) fn program_texts(&self) -> Vec<String> {
        let signature =
            |program: &ProgramId| program.signature.map_or_else(|| "answers differently".into(), |it| it.short());
        self.abilities.programs.iter().map(|(_, program)| format!("{} {}", program.name, signature(program))).collect()
    }

    /// Whether nothing has come from it for a while. It may be cut off or gone, so it gets no tasks until it is heard again.
    pub(super) fn is_quiet(&self, now: Millis) -> bool {
        now - self.heard > QUIET_MS
    }

    pub(super) fn is_idle(&self) -> bool {
        (self.assignments.len() as u32) < self.slots
    }

    /// The number of slots that have something to compute.
    pub(super) fn slots_busy(&self) -> u32 {
        self.slots.min(self.assignments.len() as u32)
    }

    /// Whether it gets no more tasks, because it leaves or an operator wants it so.
    pub(super) fn gets_nothing(&self) -> bool {
        self.draining || self.cordon.is_some()
    }

    /// Whether it may get another assignment, for a free slot or to wait behind a running one. Nothing waits behind a long
    /// task, or behind one of unknown duration.
    pub(super) fn has_capacity(&self) -> bool {
        let may =
            self.tasks_assigned < TASKS_MAX && !self.gets_nothing() && !(self.on_trial && self.tasks_assigned > 0);
        let long = || self.assignments.values().filter(|it| it.is_long()).count();
        may && (self.is_idle() || self.assignments.len() + long() < 2 * self.slots as usize)
    }

    /// Whether the worker computes a suspect and nothing else.
    pub(super) fn is_alone_with_suspect(&self) -> bool {
        self.assignments.values().any(|assignment| assignment.alone)
    }

    /// Whether the worker has proved itself for a task of this expected duration. If a proven worker is lost with the task,
    /// the task may be the cause. The time since its last message does not count, because it may have been gone since then.
    pub(super) fn is_proven(&self, each_us: Option<u64>) -> bool {
        let least_ms =
            each_us.map_or(PROVEN_MS_UNKNOWN, |us| PROVEN_MS_MIN.max(us.saturating_mul(PROVEN_FACTOR) / 1000));
        self.records.has_computed() && self.heard - self.connected >= least_ms
    }

    /// Whether the worker has proved itself for all tasks that it has now.
    pub(super) fn has_proved_itself(&self) -> bool {
        let assigned = self.assignments.values().map(|assignment| assignment.each_us);
        assigned.chain([Some(0)]).all(|each_us| self.is_proven(each_us))
    }

    /// Adds an assignment. Returns its number.
    pub(super) fn give(&mut self, assignment: Assignment) -> u64 {
        self.assignment_last += 1;
        self.tasks_assigned += assignment.remaining.len();
        self.assignments.insert(self.assignment_last, assignment);
        self.assignment_last
    }

    /// Removes a task from its assignment, if the assignment has it.
    fn credit(&mut self, assignment: u64, hash: Digest, now: Millis) -> Option<Credit> {
        let held = self.assignments.get_mut(&assignment)?;
        let task = held.remaining.remove(&hash)?;
        held.progress = now;
        self.tasks_assigned -= 1;
        let credit = Credit {
            task,
            run: held.run,
            arm: held.arm,
            work: held.work,
            counted_us: held.each_us.unwrap_or(1),
            waited_ms: now - held.sent,
            last: held.remaining.is_empty(),
            further: held.further,
        };
        if held.remaining.is_empty() {
            self.assignments.remove(&assignment);
        }
        Some(credit)
    }
}

/// All connected workers.
#[derive(Default)]
pub(super) struct Sessions {
    by_id: BTreeMap<SessionId, Session>,
    groups: Groups,
    /// Workers that get nothing until they are idle, and then get a suspect.
    reserved: BTreeSet<SessionId>,
    /// The number of workers admitted since `admission_start`.
    admitted: u32,
    admission_start: Millis,
}

/// A reference to a session must not outlive it, unless it is used through an `if_there` method.
fn over(id: SessionId) -> ! {
    panic!("session {id} has ended, but this event still refers to it")
}

impl Index<SessionId> for Sessions {
    type Output = Session;

    fn index(&self, id: SessionId) -> &Session {
        self.get(id).unwrap_or_else(|| over(id))
    }
}

impl Sessions {
    pub(super) fn get(&self, id: SessionId) -> Option<&Session> {
        self.by_id.get(&id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SessionId, &Session)> {
        self.by_id.iter().map(|(id, session)| (*id, session))
    }

    pub(super) fn ids(&self) -> Vec<SessionId> {
        self.by_id.keys().copied().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// The number of slots of all workers.
    pub(super) fn slots_total(&self) -> u32 {
        self.groups.slots(|_| true)
    }

    /// The number of workers that get tasks of this run, and of their slots.
    pub(super) fn serving(&self, run: &Run) -> (u32, u32) {
        let sessions = self.by_id.values().filter(|session| session.serves(run) && !session.gets_nothing());
        sessions.fold((0, 0), |(workers, slots), session| (workers + 1, slots + session.slots))
    }

    /// A message about a program of this run that no worker has, if there is one.
    pub(super) fn missing_program(&self, run: &Prepared) -> Option<String> {
        let kind = run.config.kind.name;
        let has = |program: &ProgramId| {
            self.by_id.values().any(|session| session.abilities.programs.contains(&(kind, program.clone())))
        };
        let program = run.programs.iter().find(|program| !has(program))?;
        let (name, same_name) =
            (&program.name, |(of, other): &(&str, ProgramId)| *of == kind && other.name == program.name);
        let another = self.by_id.values().find(|session| session.abilities.programs.iter().any(same_name));
        Some(match another {
            None => format!("no worker has the program {name} yet: start a worker with --program {name}=COMMAND"),
            Some(worker) => format!(
                "no worker has the program {name} with which this run was started; that of worker {} computes \
                 something else: `evoxo check` says whether it gives the same answers twice",
                worker.name
            ),
        })
    }

    /// A message about the labels of this run, if no worker that could compute its tasks has them.
    pub(super) fn missing_labels(&self, run: &Run) -> Option<String> {
        let mut able = self.by_id.values().filter(|session| session.abilities.computes(&run.prepared)).peekable();
        let none = able.peek().is_some() && !able.any(|session| session.serves(run));
        none.then(|| {
            let (labels, options) = (run.labels.join(","), run.labels.join(" --label "));
            format!(
                "no connected worker that could compute it has the labels {labels}: start one with --label {options}, or \
                 submit the run again with another --term where="
            )
        })
    }

    /// See [`Groups::with_capacity`].
    pub(super) fn with_capacity(&self, idle_only: bool, could: impl Fn(&Abilities) -> bool) -> Vec<SessionId> {
        self.groups.with_capacity(idle_only, could)
    }

    /// The number of slots of all workers that get tasks of this run.
    pub(super) fn slots_for(&self, run: &Run) -> u32 {
        self.groups.slots(|abilities| abilities.serves(run))
    }

    /// Changes a session, and updates its group accordingly.
    pub(super) fn change<T>(&mut self, id: SessionId, change: impl FnOnce(&mut Session) -> T) -> T {
        self.change_if_there(id, change).unwrap_or_else(|| over(id))
    }

    /// Like [`Self::change`], for a session that a message or a report names. The session may have ended.
    pub(super) fn change_if_there<T>(&mut self, id: SessionId, change: impl FnOnce(&mut Session) -> T) -> Option<T> {
        let session = self.by_id.get_mut(&id)?;
        let result = change(session);
        self.groups.update(id, session.group, session.has_capacity(), session.is_idle());
        Some(result)
    }

    /// See [`Session::credit`].
    pub(super) fn credit(&mut self, id: SessionId, assignment: u64, hash: Digest, now: Millis) -> Option<Credit> {
        self.change(id, |session| session.credit(assignment, hash, now))
    }

    pub(super) fn add(&mut self, id: SessionId, mut session: Session) {
        session.group = self.groups.join(id, &session.abilities, session.slots);
        self.groups.update(id, session.group, session.has_capacity(), session.is_idle());
        self.by_id.insert(id, session);
    }

    /// Records that a worker's programs for this run do not match their signatures. Returns whether that is new.
    pub(super) fn disown_programs(&mut self, id: SessionId, run: &Prepared) -> bool {
        let session = self.by_id.get_mut(&id).unwrap_or_else(|| over(id));
        if !session.abilities.computes(run) {
            return false;
        }
        let kind = run.config.kind.name;
        for program in &run.programs {
            session.abilities.programs.remove(&(kind, program.clone()));
            session.abilities.programs.insert((kind, ProgramId { name: program.name.clone(), signature: None }));
        }
        self.groups.leave(id, session.group, session.slots);
        session.group = self.groups.join(id, &session.abilities, session.slots);
        self.groups.update(id, session.group, session.has_capacity(), session.is_idle());
        true
    }

    pub(super) fn remove(&mut self, id: SessionId) -> Option<Session> {
        let session = self.by_id.remove(&id)?;
        self.groups.leave(id, session.group, session.slots);
        self.reserved.remove(&id);
        Some(session)
    }

    /// Whether a worker owes this task. The task is then no longer owed.
    pub(super) fn take_owed(&mut self, id: SessionId, task: Digest) -> bool {
        self.by_id.get_mut(&id).unwrap_or_else(|| over(id)).owed.remove(&task)
    }

    /// Forgets the failed tasks of a run.
    pub(super) fn forget_failures(&mut self, run: RunId) {
        for session in self.by_id.values_mut() {
            session.failed.retain(|_, of| *of != run);
            session.failed_here_alone.retain(|_, of| *of != run);
        }
    }

    /// Keeps a worker free for a suspect.
    pub(super) fn reserve(&mut self, id: SessionId) {
        self.reserved.insert(id);
    }

    pub(super) fn is_reserved(&self, id: SessionId) -> bool {
        self.reserved.contains(&id)
    }

    /// Ends all reservations.
    pub(super) fn release_reserved(&mut self) {
        self.reserved.clear();
    }

    /// Checks that sessions and groups agree with each other.
    pub(super) fn check(&self) {
        for (id, session) in &self.by_id {
            let remaining: usize = session.assignments.values().map(|assignment| assignment.remaining.len()).sum();
            assert_eq!(session.tasks_assigned, remaining, "session {id} counts a wrong number of tasks");
            let empty = session.assignments.values().any(|assignment| assignment.remaining.is_empty());
            assert!(!empty, "session {id} has an assignment without tasks");
        }
        assert!(self.reserved.iter().all(|id| self.by_id.contains_key(id)), "a worker that has left is still reserved");
        let workers = self.by_id.iter().map(|(id, session)| {
            let state = (session.has_capacity(), session.is_idle());
            (*id, session.group, session.slots, state, &session.abilities)
        });
        self.groups.check(workers);
    }

    /// Whether another worker may be admitted in this second.
    pub(super) fn admits(&mut self, per_second: u32, now: Millis) -> bool {
        if now - self.admission_start >= 1000 {
            (self.admission_start, self.admitted) = (now, 0);
        }
        self.admitted += 1;
        self.admitted <= per_second
    }
}

/// Creates the session of a worker that introduces itself, or says why the worker is refused permanently.
pub(super) fn session_of(
    hello: &v1::Hello,
    address: String,
    holder: Option<Holder>,
    registry: &Registry,
    now: Millis,
) -> Result<Session, String> {
    if hello.protocol != PROTOCOL {
        let theirs = hello.protocol;
        return Err(format!(
            "it has wire format {theirs} and this coordinator {PROTOCOL}: `--version` shows it, install builds with the same"
        ));
    }
    if !(1..=SLOTS_MAX).contains(&hello.slots) {
        return Err(format!("it has {} slots: from 1 to {SLOTS_MAX} are allowed", hello.slots));
    }
    if [&hello.name, &hello.build, &hello.host].iter().any(|text| text.len() > NAME_BYTES_MAX) {
        return Err(format!("its name, build or host is longer than {NAME_BYTES_MAX} bytes"));
    }
    if hello.kinds.len() > KINDS_MAX {
        return Err(format!("it names {} kinds of experiments: at most {KINDS_MAX} are allowed", hello.kinds.len()));
    }
    let (mut kinds, mut kinds_refused) = (Vec::new(), Vec::new());
    for theirs in &hello.kinds {
        // Ignore a kind that this coordinator does not know.
        let Some(kind) = registry.kind(&theirs.kind) else { continue };
        let same = theirs.sha256 == registry.signature(kind).0[..];
        let list = if same { &mut kinds } else { &mut kinds_refused };
        if !list.contains(&kind.name) {
            list.push(kind.name);
        }
    }
    if kinds.is_empty() {
        let build = printable(&hello.build, NAME_BYTES_MAX);
        return Err(match kinds_refused.is_empty() {
            true => format!("its build ({build}) computes no kind of experiment that this coordinator knows"),
            false => format!(
                "its build ({build}) computes different results for {}: use the coordinator's build",
                kinds_refused.join(", ")
            ),
        });
    }
    kinds.sort_unstable();
    kinds_refused.sort_unstable();
    let programs = programs_of(hello, &kinds)?;
    let labels = labels_of(hello)?;
    let trusted = holder.as_ref().is_some_and(|holder| holder.trusted);
    let name = printable(&hello.name, NAME_BYTES_MAX);
    Ok(Session {
        identity: holder.as_ref().map_or_else(|| Identity::of(&name, &address), |it| Identity::of_certificate(&it.id)),
        neighbours: Identity::of_all(&address),
        name: name.into(),
        address,
        holder,
        host: printable(&hello.host, NAME_BYTES_MAX),
        build: printable(&hello.build, NAME_BYTES_MAX),
        process: hello.process,
        slots: hello.slots,
        abilities: Abilities { kinds, programs, trusted, labels },
        group: GroupId::default(),
        kinds_refused,
        assignments: BTreeMap::new(),
        assignment_last: 0,
        tasks_assigned: 0,
        cache: SharedCache::default(),
        heard: now,
        connected: now,
        tasks_done: 0,
        recent: Recent::default(),
        draining: false,
        cordon: None,
        failed: BTreeMap::new(),
        failed_here_alone: BTreeMap::new(),
        records: Records::default(),
        on_trial: false,
        owed: BTreeSet::new(),
    })
}

/// The worker's programs, for the kinds that it computes like the coordinator; or why the worker is refused.
fn programs_of(hello: &v1::Hello, kinds: &[&'static str]) -> Result<BTreeSet<(&'static str, ProgramId)>, String> {
    if hello.programs.len() > PROGRAMS_MAX {
        return Err(format!("it has {} programs: at most {PROGRAMS_MAX} are allowed", hello.programs.len()));
    }
    let mut programs = BTreeSet::new();
    for theirs in &hello.programs {
        let Some(kind) = kinds.iter().find(|kind| **kind == theirs.kind) else { continue };
        let name = theirs.name.clone();
        let plain = (1..=PROGRAM_BYTES_MAX).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic());
        let signature = Digest::from_slice(&theirs.sha256).filter(|_| plain);
        let signature = Some(signature.ok_or("it has a program without a name or a signature")?);
        programs.insert((*kind, ProgramId { name, signature }));
    }
    Ok(programs)
}

/// The worker's labels; or why the worker is refused.
fn labels_of(hello: &v1::Hello) -> Result<BTreeSet<String>, String> {
    if hello.labels.len() > LABELS_MAX {
        return Err(format!("it has {} labels: at most {LABELS_MAX} are allowed", hello.labels.len()));
    }
    match hello.labels.iter().find(|label| !is_label(label)) {
        Some(label) => Err(format!("its label {:?} is not KEY=VALUE", printable(label, NAME_BYTES_MAX))),
        None => Ok(hello.labels.iter().cloned().collect()),
    }
}

/// Text from another process, prepared for display: on one line, without control characters, and with at most
/// `characters_max` characters.
pub(super) fn printable(text: &str, characters_max: usize) -> String {
    let shown = |character: char| match character {
        '\n' | '\t' => Some(' '),
        other => (!other.is_control()).then_some(other),
    };
    text.chars().filter_map(shown).take(characters_max).collect()
}
