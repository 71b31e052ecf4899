//! What a session has lately made of the tasks of each kind: whether its next failure speaks against the task.

use evoxo_common::{digest::Digest, task::ProgramId, time::Millis};

use crate::prepared::Prepared;

/// A task that was computed within this time, in milliseconds, was computed lately.
const LATELY_MS: u64 = 3_600_000;
/// The same as a multiple of the task's expected duration.
const LATELY_FACTOR: u64 = 10;
/// The kinds of tasks that are remembered of a session.
const KINDS_MAX: usize = 16;

/// What a failure of a task on a worker says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Word {
    /// The worker computes such tasks: the cause is probably the task.
    Reliable,
    /// Nobody knows.
    Unknown,
    /// Other tasks have failed there since it computed one: the cause is probably the worker.
    Failing,
}

/// Tasks of one kind of experiment that ask the same programs: a host that computes one of them can compute the others.
#[derive(Debug)]
struct Record {
    kind: &'static str,
    programs: Vec<ProgramId>,
    /// When it computed one last.
    computed: Option<Millis>,
    /// Two of the different tasks that have failed since, at most.
    failed: Vec<Digest>,
}

/// The records of a session, the one that was used last at the end.
#[derive(Debug, Default)]
pub(super) struct Records {
    of_kinds: Vec<Record>,
    /// The tasks that it has computed.
    computed: u64,
}

impl Records {
    /// Whether it has computed any task.
    pub(super) fn has_computed(&self) -> bool {
        self.computed > 0
    }

    /// It has computed a task of this run.
    pub(super) fn note_computed(&mut self, run: &Prepared, now: Millis) {
        self.computed += 1;
        let record = self.of(run);
        record.computed = Some(now);
        record.failed.clear();
    }

    /// A task of this run has failed.
    pub(super) fn note_failed(&mut self, run: &Prepared, task: Digest) {
        let failed = &mut self.of(run).failed;
        if failed.len() < 2 && !failed.contains(&task) {
            failed.push(task);
        }
    }

    /// What its failure of this task says.
    pub(super) fn word(&self, run: &Prepared, task: Digest, each_us: Option<u64>, now: Millis) -> Word {
        let Some(record) = self.of_kinds.iter().find(|record| record.is_of(run)) else { return Word::Unknown };
        let lately_ms = LATELY_MS.max(each_us.unwrap_or(0).saturating_mul(LATELY_FACTOR) / 1000);
        match record.computed {
            _ if record.failed.iter().any(|failed| *failed != task) => Word::Failing,
            Some(then) if now - then <= lately_ms => Word::Reliable,
            _ => Word::Unknown,
        }
    }

    fn of(&mut self, run: &Prepared) -> &mut Record {
        let place = self.of_kinds.iter().position(|record| record.is_of(run));
        let record = match place {
            Some(place) => self.of_kinds.remove(place),
            None => {
                let (kind, programs) = (run.config.kind.name, run.programs.clone());
                Record { kind, programs, computed: None, failed: Vec::new() }
            }
        };
        if self.of_kinds.len() >= KINDS_MAX {
            self.of_kinds.remove(0);
        }
        let last = self.of_kinds.len();
        self.of_kinds.push(record);
        &mut self.of_kinds[last]
    }
}

impl Record {
    fn is_of(&self, run: &Prepared) -> bool {
        self.kind == run.config.kind.name && self.programs == run.programs
    }
}
