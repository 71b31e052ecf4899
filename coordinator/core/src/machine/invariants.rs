//! Invariants that hold after every event, whatever the events are. ARCHITECTURE.md describes them in words.
//!
//! They are checked after each event in simulation, and in debug builds as long as there is little to check. A violation is a
//! bug, so it panics with a sentence; the process restarts and recovers from its store.
//!
//! The invariants of a single object are checked by the `check` method of that object (tasks, sessions, groups, runs, a run,
//! the budget). This file checks the invariants that span several objects.

use std::collections::BTreeMap;

use super::{
    Coordinator,
    phases::{ReplicaPhase, ReplicaRecord},
    run::Presence,
    runs::RunId,
    tasks::Why,
};

/// The number of tasks, sessions and replicas that are checked per event in debug builds.
const CHECKED_PER_EVENT: usize = 200;

impl Coordinator {
    /// Checks every invariant after each event. If there is much to check, it checks after several events, so that the time
    /// per event stays bounded.
    pub(super) fn check_now_and_then(&mut self) {
        self.unchecked += 1;
        let replicas: usize = self.work.runs.iter().map(|(_, run)| run.replicas.len()).sum();
        if self.work.tasks.len() + self.fleet.sessions.len() + replicas <= self.unchecked * CHECKED_PER_EVENT {
            self.unchecked = 0;
            self.check_invariants();
        }
    }

    /// Checks every invariant. The time is proportional to the size of the whole state.
    ///
    /// # Panics
    /// With a sentence, if an invariant is violated.
    pub fn check_invariants(&self) {
        assert!(self.out.facts.is_empty(), "a fact was not acted on");
        self.work.tasks.check();
        self.fleet.sessions.check();
        self.work.runs.check();
        self.work.runs.iter().for_each(|(_, run)| run.check());
        self.work.budget.check();
        self.check_copies();
        self.check_attempts();
        self.check_memory();
        self.check_open_tasks();
    }

    /// Every copy of an open task is in the assignment that carries it, and every open task in an assignment knows of that
    /// copy. A run's assigned work is the expected work of its assignments.
    fn check_copies(&self) {
        let mut copies = 0;
        for (id, task) in self.work.tasks.iter() {
            for (session, number) in &task.copies {
                let assignment = self.fleet.sessions.get(*session).and_then(|session| session.assignments.get(number));
                let carried = assignment.and_then(|assignment| assignment.remaining.get(&task.encoded.hash));
                assert_eq!(carried, Some(&id), "a copy of a task is in no assignment of session {session}");
                copies += 1;
            }
        }
        let (mut carried, mut assigned_us) = (0, BTreeMap::<RunId, u64>::new());
        let mut out = BTreeMap::<RunId, u32>::new();
        for (_, session) in self.fleet.sessions.iter() {
            for assignment in session.assignments.values() {
                carried += assignment.remaining.values().filter(|task| self.work.tasks.get(**task).is_some()).count();
                *assigned_us.entry(assignment.run).or_default() += assignment.expected_us();
                if self.work.runs.get(assignment.run).is_some() {
                    *out.entry(assignment.run).or_default() += 1;
                }
            }
        }
        self.work.held.check(&out);
        assert_eq!(copies, carried, "assignments have open tasks that do not list them");
        let look = self.work.look(&self.at, &self.fleet.sessions, &self.out.writes);
        self.work.rules.check(&|run| assigned_us.get(&run).copied().unwrap_or(0), &look);
    }

    /// Every copy that was sent has ended once, or a worker has it.
    fn check_attempts(&self) {
        let out: u64 = self.fleet.sessions.iter().map(|(_, session)| session.tasks_assigned as u64).sum();
        let refused = self.out.tally.invalid_outputs;
        let ended = self.out.tally.attempts.total() - refused;
        assert_eq!(self.out.tally.copies, ended + out, "attempts have ended twice, or not at all");
    }

    /// Every reserved byte of the budget belongs to a run and counts for the run's submitter.
    fn check_memory(&self) {
        let mut given = BTreeMap::<&str, u64>::new();
        for (_, run) in self.work.runs.iter().filter(|(_, run)| run.reserved_bytes > 0) {
            *given.entry(&run.submitter).or_default() += run.reserved_bytes;
            assert_ne!(run.presence, Presence::Resting, "run {} rests but has memory", run.name);
        }
        assert!(self.work.budget.is_given_to(&given), "the budget has given other bytes than the runs have: {given:?}");
    }

    /// Every open task belongs to a planned piece of an open replica, or recomputes an output.
    fn check_open_tasks(&self) {
        let mut recomputations = BTreeMap::<RunId, usize>::new();
        for (_, task) in self.work.tasks.iter() {
            let run = &self.work.runs[task.run];
            assert!(matches!(run.presence, Presence::Loaded(_)), "run {} has open tasks but no thread", run.name);
            let ReplicaRecord { phase, rounds, .. } = &run.replicas[&task.replica];
            match (task.recomputation, phase) {
                (None, ReplicaPhase::Open { planned, .. }) => {
                    // Without a barrier, each absorbed round has moved the task forward.
                    let moved = rounds.saturating_sub(task.round) as usize;
                    assert!(task.index < planned + moved, "an open task of run {} was not planned", run.name);
                }
                (None, _) => panic!("a task of run {} is open, and its replica is {phase:?}", run.name),
                (Some(Why::Differs), _) => *recomputations.entry(task.run).or_default() += 1,
                (Some(Why::Drawn), _) => {}
            }
        }
        for (id, run) in self.work.runs.iter() {
            let open = recomputations.get(&id).copied().unwrap_or(0);
            assert_eq!(
                run.recomputations.open(),
                open,
                "run {} counts a wrong number of open recomputations",
                run.name
            );
        }
    }
}
