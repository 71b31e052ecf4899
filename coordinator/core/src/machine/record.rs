//! The recent successes and failures of a session with tasks of each kind. They decide whether its next failure counts
//! against the task.

use evoxo_common::{digest::Digest, task::ProgramId, time::Millis};

use crate::prepared::Prepared;

/// A task counts as computed recently for this many milliseconds.
const LATELY_MS: u64 = 3_600_000;
/// The same limit as a multiple of the task's expected duration. The longer limit applies.
const LATELY_FACTOR: u64 = 10;
/// The maximum number of kinds of tasks that are remembered for a session.
const KINDS_MAX: usize = 16;

/// What a failure of a task on a worker indicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Word {
    /// The worker computes such tasks, so the cause is probably the task.
    Reliable,
    /// The cause is unknown.
    Unknown,
    /// Other tasks have failed on the worker since it last computed one, so the cause is probably the worker.
    Failing,
}

/// Tasks of one kind of experiment that call the same programs. A host that computes one of them can compute the others.
#[derive(Debug)]
struct Record {
    kind: &'static str,
    programs: Vec<ProgramId>,
    /// When the worker last computed such a task.
    computed: Option<Millis>,
    /// Different tasks that have failed since then, at most two of them.
    failed: Vec<Digest>,
}

/// The records of a session, least recently used first.
#[derive(Debug, Default)]
pub(super) struct Records {
    of_kinds: Vec<Record>,
    /// The number of tasks computed.
    computed: u64,
}

impl Records {
    /// Whether the worker has computed any task.
    pub(super) fn has_computed(&self) -> bool {
        self.computed > 0
    }

    /// The worker has computed a task of this run.
    pub(super) fn note_computed(&mut self, run: &Prepared, now: Millis) {
        self.computed += 1;
        let record = self.of(run);
        record.computed = Some(now);
        record.failed.clear();
    }

    /// A task of this run has failed on the worker.
    pub(super) fn note_failed(&mut self, run: &Prepared, task: Digest) {
        let failed = &mut self.of(run).failed;
        if failed.len() < 2 && !failed.contains(&task) {
            failed.push(task);
        }
    }

    /// What a failure of this task would indicate.
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
