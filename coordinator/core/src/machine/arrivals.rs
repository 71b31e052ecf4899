//! Workers that arrive: the coordinator admits or refuses them, and receives their messages.

use evoxo_proto::{
    NAME_BYTES_MAX,
    v1::{self, CloseKind, from_worker, to_worker},
};

use super::{
    Coordinator, SessionId, Topic,
    about::About,
    cause::Cause,
    sessions::{Session, printable, session_of},
    standing::Why,
};
use crate::trust::Holder;

/// How long a worker waits if it cannot be admitted now, in milliseconds.
const BUSY_MS: u32 = 1000;

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

    /// Whether sessions of the same identity already take their share of the places, three quarters. The rest is for others.
    /// Without certificates, the address takes the place of the identity.
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
                    format!("worker {name} is set aside, because tasks failed on it that other workers have computed")
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
                () if shared => "the coordinator accepts no more workers of this identity or from this address",
                () => "the coordinator is busy",
            };
            // No log line: if there are more workers than places, such lines would fill the log.
            self.tally.refused += 1;
            return self.effects.close(id, CloseKind::Retry, why.into(), BUSY_MS);
        }
        let process = session.process;
        // Workers choose their process numbers themselves. Comparing the identity too keeps a worker from ending another
        // identity's session.
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
        session.cordon = self.cordons.of(&session);
        let Session { name, slots, abilities, kinds_refused, .. } = &session;
        let (about, process) = (session.about(id), session.process);
        let s = if *slots == 1 { "" } else { "s" };
        let trial = if session.on_trial { ", and gets one task at a time, because it was set aside" } else { "" };
        let cordon = session.cordon.as_ref().map(|cordon| format!(", and gets no tasks: {} cordoned it", cordon.by));
        let cordon = cordon.unwrap_or_default();
        let sentence = format!("worker {name} joined with {slots} slot{s}{trial}{cordon} (session {id})");
        self.tally.joined += 1;
        self.effects.log_about(Topic::Progress, about.clone(), sentence);
        if !kinds_refused.is_empty() {
            let (refused, kinds) = (kinds_refused.join(", "), abilities.kinds.join(", "));
            let sentence = format!(
                "worker {name} computes different results for {refused}: it gets only tasks of {kinds} (session {id})"
            );
            self.effects.log_about(Topic::WorkerRefused, about, sentence);
        }
        session.identities().into_iter().for_each(|identity| self.standings.joined(identity, self.now));
        self.compare_joined(&session.identity);
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
        if self.sessions.change_if_there(id, |session| session.heard = now).is_none() {
            // A late message of a session that was just lost. The worker may reconnect.
            let why = "the session has ended: connect again".to_owned();
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
                self.facts.note_lost(id, Cause::InvalidMessage("it sent an invalid message".into()));
            }
        }
    }

    /// Refuses a worker whose identity is convicted. Returns whether it was refused.
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
