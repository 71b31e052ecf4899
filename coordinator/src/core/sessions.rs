//! Workers: from Hello to the one path of loss.

use std::collections::{BTreeMap, BTreeSet};

use evoxo_common::{digest::Digest, task::Kept, time::Millis};
use evoxo_proto::{
    PROTOCOL,
    v1::{self, CloseKind, from_worker, to_worker},
};

use super::{Coordinator, Effect, SessionId, run::RunId, tasks::TaskId};

/// One connected worker.
pub(super) struct Session {
    pub(super) name: String,
    pub(super) build: String,
    pub(super) slots: u32,
    pub(super) assignments: BTreeMap<u64, Assignment>,
    pub(super) assignment_last: u64,
    /// What the worker has of the bytes that tasks share.
    pub(super) kept: Kept<()>,
    pub(super) heard: Millis,
    pub(super) connected: Millis,
    pub(super) tasks_done: u64,
    pub(super) draining: bool,
    /// It gets nothing until it is empty, and then a suspect.
    pub(super) reserved: bool,
    /// Different tasks that failed here.
    pub(super) failed: BTreeSet<Digest>,
}

/// Tasks sent together, for one slot.
pub(super) struct Assignment {
    pub(super) remaining: BTreeMap<Digest, TaskId>,
    pub(super) sent: Millis,
    /// When it was sent, or the last of its results came.
    pub(super) progress: Millis,
    /// The run of all its tasks.
    pub(super) run: RunId,
    /// How long each task should take; `None` if nothing like it was ever computed.
    pub(super) each_us: Option<u64>,
    /// It is a suspect's.
    pub(super) alone: bool,
}

/// Slots of one worker.
const SLOTS_MAX: u32 = 1024;
/// Bytes of a worker's name or build.
const TEXT_BYTES_MAX: usize = 128;
/// Different tasks that may fail on one session before it is set aside.
const FAILED_TASKS_MAX: usize = 3;
/// How long a session that was set aside is asked to stay away, in milliseconds.
const SET_ASIDE_MS: u32 = 60_000;

impl Session {
    pub(super) fn tasks_assigned(&self) -> usize {
        self.assignments.values().map(|assignment| assignment.remaining.len()).sum()
    }

    fn has_room(&self) -> bool {
        !self.draining && (self.assignments.len() as u32) < 2 * self.slots
    }
}

impl Coordinator {
    /// A worker said something.
    pub(super) fn hear(&mut self, id: SessionId, message: v1::FromWorker) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.heard = self.now;
        }
        match (message.message, self.sessions.contains_key(&id)) {
            (Some(from_worker::Message::Hello(hello)), false) => self.admit(id, &hello),
            (Some(from_worker::Message::Outputs(outputs)), true) => self.take_results(id, outputs.results),
            (Some(from_worker::Message::Beat(_)), true) => {}
            (Some(from_worker::Message::Drain(_)), true) => {
                if let Some(session) = self.sessions.get_mut(&id) {
                    session.draining = true;
                }
                self.update_room(id);
            }
            (_, true) => self.lose(id, "it said something that makes no sense", Some((CloseKind::Refused, 0))),
            // A stranger, or a late word of a session that was lost a moment ago: it may come back.
            (_, false) => self.close(id, CloseKind::Retry, "a session begins with Hello", 1000),
        }
    }

    fn admit(&mut self, id: SessionId, hello: &v1::Hello) {
        if let Err(why) = self.check_hello(hello) {
            self.warn(format!("worker {:?} was refused: {why}", printable(&hello.name)));
            return self.close(id, CloseKind::Refused, &why, 0);
        }
        if self.now - self.admission_start >= 1000 {
            (self.admission_start, self.admitted) = (self.now, 0);
        }
        let full = self.sessions.len() >= self.settings.sessions_max;
        if self.stopping || full || self.admitted >= self.settings.admissions_per_second {
            let why = if full { "the coordinator has as many workers as it takes" } else { "the coordinator is busy" };
            return self.close(id, CloseKind::Retry, why, 1000);
        }
        self.admitted += 1;
        let session = Session {
            name: printable(&hello.name),
            build: printable(&hello.build),
            slots: hello.slots,
            assignments: BTreeMap::new(),
            assignment_last: 0,
            kept: Kept::default(),
            heard: self.now,
            connected: self.now,
            tasks_done: 0,
            draining: false,
            reserved: false,
            failed: BTreeSet::new(),
        };
        self.log(format!("worker {} joined with {} slots (session {id})", session.name, session.slots));
        self.slots_total += session.slots;
        self.sessions.insert(id, session);
        self.update_room(id);
        let welcome = v1::Welcome { session: id.0, beat_interval_ms: self.settings.beat_interval_ms };
        self.send(id, to_worker::Message::Welcome(welcome));
        let runs: Vec<_> = self.runs.keys().copied().collect();
        runs.into_iter().for_each(|run| self.activate(run));
    }

    fn check_hello(&self, hello: &v1::Hello) -> Result<(), String> {
        if hello.protocol != PROTOCOL {
            let theirs = hello.protocol;
            return Err(format!(
                "it speaks protocol {theirs} and this coordinator {PROTOCOL}: use the same version of both"
            ));
        }
        if !(1..=SLOTS_MAX).contains(&hello.slots) {
            return Err(format!("it has {} slots: from 1 to {SLOTS_MAX} are possible", hello.slots));
        }
        if hello.name.len() > TEXT_BYTES_MAX || hello.build.len() > TEXT_BYTES_MAX {
            return Err(format!("its name or build is longer than {TEXT_BYTES_MAX} bytes"));
        }
        for ours in &self.signature {
            let theirs = hello.signature.iter().find(|theirs| theirs.kind == ours.kind);
            if theirs.map(|theirs| &theirs.sha256) != Some(&ours.sha256) {
                let what = if theirs.is_some() { "computes other results for" } else { "does not know" };
                let build = printable(&hello.build);
                return Err(format!(
                    "its build ({build}) {what} tasks of kind {}: use the coordinator's build",
                    ours.kind
                ));
            }
        }
        Ok(())
    }

    /// The one path of a lost worker, whatever the cause: its tasks have no copy here any more. With `close`, the worker is
    /// told what to do: how, and after how many milliseconds.
    pub(super) fn lose(&mut self, id: SessionId, why: &str, close: Option<(CloseKind, u32)>) {
        let Some(session) = self.sessions.remove(&id) else { return };
        self.roomy.remove(&id);
        self.slots_total -= session.slots;
        let tasks = session.tasks_assigned();
        if self.stopping || (session.draining && tasks == 0) {
            self.log(format!("worker {} left (session {id})", session.name));
        } else {
            self.warn(format!("worker {} is lost with {tasks} tasks: {why} (session {id})", session.name));
        }
        // Silence speaks of the host or of the way to it: a task that kills its worker ends the connection.
        let silent = self.now - session.heard > self.settings.silence_ms_max;
        for (number, assignment) in session.assignments {
            let alone = assignment.alone && !session.draining && !silent;
            if let Some(run) = self.runs.get_mut(&assignment.run) {
                run.assigned_us -= assignment.each_us.unwrap_or(1) * assignment.remaining.len() as u64;
            }
            for (hash, task) in assignment.remaining {
                self.forget_copy(hash);
                self.tasks.drop_copy(task, (id, number), |task| {
                    task.suspect |= !session.draining;
                    task.lost_alone += u32::from(alone);
                });
                if self.tasks.get(task).is_some_and(|task| task.lost_alone >= 3) {
                    self.poison(task, "took three workers with it, alone on each");
                }
            }
        }
        if let Some((kind, retry_after_ms)) = close {
            self.close(id, kind, &format!("session ended: {why}"), retry_after_ms);
        }
    }

    /// A session on which too many different tasks failed gets no more of them.
    pub(super) fn set_aside_if_failing(&mut self, id: SessionId) {
        let failing = self.sessions.get(&id).is_some_and(|session| session.failed.len() >= FAILED_TASKS_MAX);
        if failing {
            self.lose(id, "three different tasks failed on it", Some((CloseKind::Retry, SET_ASIDE_MS)));
        }
    }

    pub(super) fn close(&mut self, id: SessionId, kind: CloseKind, reason: &str, retry_after_ms: u32) {
        let close = v1::Close { kind: kind.into(), reason: reason.into(), retry_after_ms };
        self.send(id, to_worker::Message::Close(close));
        self.effects.push(Effect::End { session: id });
    }

    pub(super) fn send(&mut self, session: SessionId, message: to_worker::Message) {
        self.effects.push(Effect::Send { session, message: v1::ToWorker { message: Some(message) } });
    }

    pub(super) fn update_room(&mut self, id: SessionId) {
        if self.sessions.get(&id).is_some_and(Session::has_room) {
            self.roomy.insert(id);
        } else {
            self.roomy.remove(&id);
        }
    }
}

/// A worker's words as they may be shown: no control characters.
fn printable(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(TEXT_BYTES_MAX).collect()
}
