//! Workers join and leave: from Hello to the single function for lost workers.

use evoxo_common::time::Millis;
use evoxo_proto::{
    NAME_BYTES_MAX,
    v1::{self, CloseKind, from_worker, to_worker},
};

use super::{
    Coordinator, SessionId, TaskId, Topic,
    about::About,
    evidence::Loss,
    sessions::{Session, printable, session_of},
    standing::{End, Why},
};
use crate::trust::{Holder, Level};

/// How long a worker that was set aside must wait before it joins again, in milliseconds.
const SET_ASIDE_MS: u32 = 60_000;
/// The lines about refused workers that may come at once.
const REFUSALS_AT_ONCE: u64 = 32;
/// How long a worker that cannot be admitted now must wait, in milliseconds.
const BUSY_MS: u32 = 1000;

/// Why a worker is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    ConnectionEnded,
    /// Its process has opened another connection.
    Replaced,
    /// Its certificate has expired; it comes back with the next one.
    Expired,
    /// Its identity was revoked, so it does not come back.
    Revoked,
    /// Nothing came for this many milliseconds.
    Silent(u64),
    /// Its tasks made no progress; heartbeats alone do not prove any.
    Overdue,
    /// It sent an invalid message, described by this text.
    InvalidMessage(String),
    /// Too many different tasks failed on it; it must wait for so many milliseconds.
    FailsTasks {
        /// It was set aside for the same before.
        again: bool,
        pause_ms: u64,
    },
    /// Two others had another output of a task.
    Outvoted,
    /// A trusted worker had another output of a task.
    Convicted,
}

/// The names of all causes among the figures, in the order of [`Cause`].
const LABELS: [&str; 10] = [
    "connection ended",
    "replaced",
    "expired",
    "revoked",
    "silent",
    "overdue",
    "invalid message",
    "failing tasks",
    "outvoted",
    "convicted",
];

impl super::Tally {
    /// How many workers were lost, by every cause: a counter that appeared with its first loss would seem to have lost none.
    pub(crate) fn lost_by_cause(&self) -> [(&'static str, u64); LABELS.len()] {
        LABELS.map(|cause| (cause, self.lost.get(cause).copied().unwrap_or_default()))
    }
}

impl Cause {
    /// Its name among the figures.
    fn label(&self) -> &'static str {
        let [ended, replaced, expired, revoked, silent, overdue, invalid, failing, outvoted, convicted] = LABELS;
        match self {
            Self::ConnectionEnded => ended,
            Self::Replaced => replaced,
            Self::Expired => expired,
            Self::Revoked => revoked,
            Self::Silent(_) => silent,
            Self::Overdue => overdue,
            Self::InvalidMessage(_) => invalid,
            Self::FailsTasks { .. } => failing,
            Self::Outvoted => outvoted,
            Self::Convicted => convicted,
        }
    }

    fn sentence(&self) -> String {
        match self {
            Self::ConnectionEnded => "its connection ended".into(),
            Self::Replaced => "it has come back on another connection".into(),
            Self::Expired => "its certificate has expired, and it comes back with the next one".into(),
            Self::Revoked => "its identity was revoked".into(),
            Self::Silent(limit_ms) => format!("nothing came for {limit_ms} ms"),
            Self::Overdue => "its tasks are overdue".into(),
            Self::InvalidMessage(why) => why.clone(),
            Self::FailsTasks { again: false, .. } => {
                "three different tasks failed on it that others have computed".into()
            }
            Self::FailsTasks { again: true, .. } => {
                "it was tried again, and a task failed on it that others have computed".into()
            }
            Self::Outvoted => "two other workers had another output of a task".into(),
            Self::Convicted => "a trusted worker has found that it computes wrongly".into(),
        }
    }

    /// How its stream is closed, if its connection still exists.
    fn close(&self) -> Option<(CloseKind, u32)> {
        match self {
            Self::ConnectionEnded | Self::Revoked => None,
            Self::Replaced | Self::Expired | Self::Silent(_) | Self::Overdue => Some((CloseKind::Retry, 0)),
            Self::InvalidMessage(_) | Self::Convicted => Some((CloseKind::Refused, 0)),
            Self::FailsTasks { pause_ms, .. } => Some((CloseKind::Retry, *pause_ms as u32)),
            Self::Outvoted => Some((CloseKind::Retry, SET_ASIDE_MS)),
        }
    }

    /// Whether its running tasks may be the cause.
    fn accuses(&self) -> bool {
        matches!(self, Self::ConnectionEnded | Self::Silent(_) | Self::Overdue)
    }
}

/// The lines of the log about workers that are refused: some at once, and then one a second, whoever they are.
#[derive(Default)]
pub(super) struct RefusalLines {
    /// Those that were written and not yet made up for by time.
    recent: u64,
    at: Millis,
    left_out: u64,
}

impl RefusalLines {
    /// Whether there is a line for one more, and how many were left out before it.
    fn take(&mut self, now: Millis) -> Option<u64> {
        let seconds = (now - self.at) / 1000;
        self.at = self.at + seconds * 1000;
        self.recent = self.recent.saturating_sub(seconds);
        if self.recent >= REFUSALS_AT_ONCE {
            self.left_out += 1;
            return None;
        }
        self.recent += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

impl Coordinator {
    fn log_refusal(&mut self, about: About, sentence: String) {
        self.tally.refused += 1;
        match self.refusal_lines.take(self.now) {
            None => {}
            Some(0) => self.effects.log_about(Topic::WorkerRefused, about, sentence),
            Some(more) => {
                let sentence = format!("{sentence} ({more} more were refused since the last such line)");
                self.effects.log_about(Topic::WorkerRefused, about, sentence);
            }
        }
    }

    /// Whether so many of its kind are there that others need the rest of the places: three quarters, of one identity, or of one address
    /// where nobody has a certificate.
    fn has_its_share(&self, session: &Session) -> bool {
        let share = self.settings.sessions_max - self.settings.sessions_max / 4;
        let own = |other: &Session| match (other.identity_number(), session.identity_number()) {
            (None, None) => other.address == session.address,
            (theirs, its) => theirs == its,
        };
        self.sessions.len() >= share && self.sessions.iter().filter(|(_, other)| own(other)).count() >= share
    }

    /// A worker introduces itself.
    pub(super) fn admit(&mut self, id: SessionId, address: String, holder: Option<Holder>, hello: &v1::Hello) {
        let session = match session_of(hello, address, holder, &self.registry, self.now) {
            Ok(session) => session,
            Err(why) => {
                let name = printable(&hello.name, NAME_BYTES_MAX);
                let sentence = format!("worker {name:?} was refused: {why}");
                let about = About { worker: Some(name.into()), session: Some(id), ..About::default() };
                self.log_refusal(about, sentence);
                return self.effects.close(id, CloseKind::Refused, why, 0);
            }
        };
        if self.refuses_convicted(id, &session) {
            return;
        }
        let pause = self.standings.pause(session.identities(), self.now);
        if pause.ms > 0 {
            let (name, seconds) = (&session.name, pause.ms.div_ceil(1000));
            let why = match pause.why {
                Why::Neighbours => {
                    format!("workers at the address of worker {name} were lost repeatedly soon after joining")
                }
                Why::Lost => format!("worker {name} was lost repeatedly soon after joining"),
                Why::FailsTasks => {
                    format!("worker {name} is set aside, because tasks failed on it that others have computed")
                }
            };
            let why = format!("{why}: it must wait {seconds} s before it joins again");
            self.log_refusal(session.about(id), why.clone());
            return self.effects.close(id, CloseKind::Retry, why, pause.ms as u32);
        }
        let full = self.sessions.len() >= self.settings.sessions_max;
        let shared = self.has_its_share(&session);
        if self.stopping || full || shared || !self.sessions.admits(self.settings.admissions_per_second, self.now) {
            let why = match () {
                () if full => "the coordinator has its maximum number of workers",
                () if shared => "the coordinator takes no more workers of this identity, or of this address",
                () => "the coordinator is busy",
            };
            // No line: whoever has more workers than places would have no others.
            self.tally.refused += 1;
            return self.effects.close(id, CloseKind::Retry, why.into(), BUSY_MS);
        }
        let process = session.process;
        // Numbers of processes are the workers' own words: nobody may end another identity's session with one.
        let same = |other: &Session| other.process == process && other.identity_number() == session.identity_number();
        let before = self.sessions.iter().find(|(_, other)| same(other)).map(|(before, _)| before);
        if let Some(before) = before {
            self.lose(before, Cause::Replaced);
        }
        if self.standings.take_lost(process) {
            session.identities().into_iter().for_each(|identity| self.standings.came_back(identity));
            self.tasks.withdraw(process);
        }
        self.join(id, session);
    }

    fn join(&mut self, id: SessionId, mut session: Session) {
        session.owed = self.owed.take(&session);
        session.on_trial = self.standings.is_on_trial(&session.identity);
        let Session { name, slots, abilities, kinds_refused, .. } = &session;
        let (about, process) = (session.about(id), session.process);
        let s = if *slots == 1 { "" } else { "s" };
        let trial = if session.on_trial { ", and gets one task at a time, because it was set aside" } else { "" };
        let sentence = format!("worker {name} joined with {slots} slot{s}{trial} (session {id})");
        self.tally.joined += 1;
        self.effects.log_about(Topic::Progress, about.clone(), sentence);
        if !kinds_refused.is_empty() {
            let (refused, kinds) = (kinds_refused.join(", "), abilities.kinds.join(", "));
            let sentence = format!(
                "worker {name} computes other results for {refused}: it gets tasks of {kinds} alone (session {id})"
            );
            self.effects.log_about(Topic::WorkerRefused, about, sentence);
        }
        session.identities().into_iter().for_each(|identity| self.standings.joined(identity, self.now));
        self.sessions.add(id, session);
        let heartbeat_interval_ms = self.settings.heartbeat_interval_ms;
        self.effects.send(id, to_worker::Message::Welcome(v1::Welcome { session: id.0, heartbeat_interval_ms }));
        if self.leaving.contains(process) {
            self.ask_to_leave(id);
        }
        self.runs.move_all();
        self.runs.change_all();
    }

    /// A message from a worker.
    pub(super) fn on_message(&mut self, id: SessionId, message: v1::FromWorker) {
        let now = self.now;
        if self.sessions.change(id, |session| session.heard = now).is_none() {
            // A late message of a session that was lost a moment ago: the worker may come back.
            let why = "the session is over: connect again".to_owned();
            return self.effects.close(id, CloseKind::Retry, why, BUSY_MS);
        }
        match message.message {
            Some(from_worker::Message::Outputs(outputs)) => self.take_results(id, outputs.results),
            Some(from_worker::Message::Heartbeat(_)) => {}
            Some(from_worker::Message::Drain(_)) => {
                self.sessions.change(id, |session| session.draining = true);
                self.runs.change_all();
            }
            Some(from_worker::Message::Hello(_)) | None => {
                self.lose(id, Cause::InvalidMessage("it sent an invalid message".into()));
            }
        }
    }

    /// The single function for lost workers, whatever the cause: its copies of tasks are dropped.
    pub(super) fn lose(&mut self, id: SessionId, cause: Cause) {
        let Some(session) = self.sessions.remove(id) else { return };
        let (name, tasks, sentence) = (&session.name, session.tasks_assigned, cause.sentence());
        let goes_on = matches!(cause, Cause::Replaced | Cause::Expired);
        let as_it_should = self.stopping || (session.draining && tasks == 0) || goes_on;
        let (topic, sentence) = match as_it_should {
            true => (Topic::Progress, format!("worker {name} left (session {id})")),
            false => {
                let lost = format!("worker {name} is lost with {tasks} tasks: {sentence} (session {id})");
                (Topic::WorkerLost, lost)
            }
        };
        self.effects.log_about(topic, session.about(id), sentence);
        match as_it_should {
            true => self.tally.left += 1,
            false => {
                *self.tally.lost.entry(cause.label()).or_default() += 1;
                let pause_ms = cause.close().filter(|(_, ms)| *ms >= SET_ASIDE_MS).map_or(0, |(_, ms)| ms.into());
                self.lost.add((self.now, self.now + pause_ms), id, &session, cause.sentence());
            }
        }
        if session.draining && tasks == 0 {
            self.leaving.remove(session.process);
        }
        if let Some((kind, retry_after_ms)) = cause.close() {
            let reason = format!("session ended: {}", cause.sentence());
            self.effects.close(id, kind, reason, retry_after_ms);
        }
        let on_purpose = as_it_should || session.draining || cause != Cause::ConnectionEnded;
        let end = if on_purpose {
            End::OnPurpose
        } else if session.has_proved_itself() {
            End::Proven
        } else {
            End::Early
        };
        for identity in session.identities() {
            self.standings.left(identity, session.connected, self.now, end);
        }
        if matches!(cause, Cause::ConnectionEnded | Cause::Silent(_)) && !session.draining && tasks > 0 {
            self.standings.note_lost(session.process);
        }
        if cause.accuses() || goes_on {
            // Its process may come back with the answers. Where every worker is trusted, they count in any case.
            let verified = |task: TaskId| {
                let run = self.tasks.get(task).and_then(|open| self.runs.get(open.run));
                run.is_some_and(|run| run.level != Level::Plain)
            };
            self.owed.keep(&session, |hash| self.tasks.with_hash(hash).into_iter().any(verified));
        }
        self.take_tasks_from(id, session, &cause);
        self.runs.change_all();
    }

    /// Takes the tasks from a lost worker, and records the loss as evidence against them.
    fn take_tasks_from(&mut self, id: SessionId, mut session: Session, cause: &Cause) {
        let assignments = std::mem::take(&mut session.assignments);
        for (place, (number, assignment)) in assignments.into_iter().enumerate() {
            if let Some(run) = self.runs.adjust(assignment.run) {
                run.assigned_us -= assignment.expected_us();
            }
            // Queued tasks had not begun, so they cannot be the cause.
            let accused = cause.accuses() && !session.draining && !self.stopping && place < session.slots as usize;
            for (hash, task) in assignment.remaining {
                self.tasks.forget_copy(hash);
                self.tasks.drop_copy(task, (id, number));
                if !accused {
                    continue;
                }
                let loss = Loss {
                    worker: session.identity.clone(),
                    process: session.process,
                    alone: assignment.alone && *cause != Cause::Overdue,
                    overdue: assignment.alone && *cause == Cause::Overdue,
                    // A worker that is silent may have lost its host or network.
                    proven: *cause == Cause::ConnectionEnded && session.is_proven(assignment.each_us),
                };
                let overdue = u32::from(loss.overdue);
                let witnessed = assignment.alone && session.is_trusted();
                self.tasks.accuse(task, self.now, |evidence| {
                    evidence.losses.push(loss);
                    evidence.overdue += overdue;
                    evidence.witnessed |= witnessed;
                });
                self.judge(task, "");
            }
        }
    }

    /// Fails a task's run if the evidence convicts the task, and the coordinator cannot compute it either.
    pub(super) fn judge(&mut self, task: TaskId, last: &str) {
        let Some(open) = self.tasks.get(task) else { return };
        // What it waits for may be another worker now.
        self.runs.change(open.run);
        if let Some(verdict) = self.verdict(task) {
            self.try_here(task, &format!("{verdict}{last}"));
        }
    }

    /// What convicts a task, as the end of a sentence, if the evidence is enough.
    pub(super) fn verdict(&self, task: TaskId) -> Option<String> {
        let open = self.tasks.get(task)?;
        let (jury, all) = (self.jury(open.run), self.each_failure_counts(open));
        open.evidence.as_ref()?.verdict(jury, all)
    }
}
