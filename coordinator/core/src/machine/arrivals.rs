//! Workers that arrive: the coordinator admits or refuses them, and receives their messages.

use evoxo_common::time::Millis;
use evoxo_proto::{
    NAME_BYTES_MAX,
    v1::{self, CloseKind, from_worker, to_worker},
};

use super::{
    SessionId, Topic,
    about::About,
    cause::Cause,
    convictions::Convictions,
    fleet::Fleet,
    look::Moment,
    out::Out,
    sessions::{Session, Sessions, printable},
    standing::Why,
    work::Work,
};

/// How long a worker waits if it cannot be admitted now, in milliseconds.
const BUSY_MS: u32 = 1000;

impl Fleet {
    fn log_refusal(&mut self, now: Millis, out: &mut Out, about: About, sentence: String) {
        out.tally.refused += 1;
        match self.refusal_lines.take(now) {
            None => {}
            Some(0) => out.effects.log_about(Topic::WorkerRefused, about, sentence),
            Some(more) => {
                let sentence = format!("{sentence} ({more} more were refused since the last such line)");
                out.effects.log_about(Topic::WorkerRefused, about, sentence);
            }
        }
    }

    /// A worker has introduced itself, but not as it should.
    pub(super) fn refuse(&mut self, now: Millis, out: &mut Out, id: SessionId, name: &str, why: String) {
        let name = printable(name, NAME_BYTES_MAX);
        let sentence = format!("worker {name:?} was refused: {why}");
        let about = About { worker: Some(name.into()), session: Some(id), ..About::default() };
        self.log_refusal(now, out, about, sentence);
        out.effects.close(id, CloseKind::Refused, why, 0);
    }

    /// A worker has introduced itself.
    pub(super) fn admit(&mut self, at: &Moment, work: &mut Work, out: &mut Out, id: SessionId, session: Session) {
        if work.convictions.refuse(out, id, &session) {
            return;
        }
        let pause = self.standings.pause(session.identities(), at.now);
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
            self.log_refusal(at.now, out, session.about(id), why.clone());
            return out.effects.close(id, CloseKind::Retry, why, pause.ms as u32);
        }
        let full = self.sessions.len() >= at.settings.sessions_max;
        let shared = self.sessions.have_their_share(at.settings.sessions_max, &session);
        if at.stopping || full || shared || !self.sessions.admits(at.settings.admissions_per_second, at.now) {
            let why = match () {
                () if full => "the coordinator has its maximum number of workers",
                () if shared => "the coordinator accepts no more workers of this identity or from this address",
                () => "the coordinator is busy",
            };
            // No log line: if there are more workers than places, such lines would fill the log.
            out.tally.refused += 1;
            return out.effects.close(id, CloseKind::Retry, why.into(), BUSY_MS);
        }
        let process = session.process;
        // Workers choose their process numbers themselves. Comparing the identity too keeps a worker from ending another
        // identity's session.
        let same = |other: &Session| other.process == process && other.identity_number() == session.identity_number();
        let before = self.sessions.iter().find(|(_, other)| same(other)).map(|(before, _)| before);
        if let Some(before) = before {
            self.lose(at, work, out, before, Cause::Replaced);
        }
        if self.standings.take_lost(process) {
            session.identities().into_iter().for_each(|identity| self.standings.came_back(identity));
            work.tasks.withdraw(process);
        }
        self.join(at, work, out, id, session);
    }

    fn join(&mut self, at: &Moment, work: &mut Work, out: &mut Out, id: SessionId, mut session: Session) {
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
        out.tally.joined += 1;
        out.effects.log_about(Topic::Progress, about.clone(), sentence);
        if !kinds_refused.is_empty() {
            let (refused, kinds) = (kinds_refused.join(", "), abilities.kinds.join(", "));
            let sentence = format!(
                "worker {name} computes different results for {refused}: it gets only tasks of {kinds} (session {id})"
            );
            out.effects.log_about(Topic::WorkerRefused, about, sentence);
        }
        session.identities().into_iter().for_each(|identity| self.standings.joined(identity, at.now));
        self.compare_joined(&session.identity);
        self.sessions.add(id, session);
        let heartbeat_interval_ms = at.settings.heartbeat_interval_ms;
        out.effects.send(id, to_worker::Message::Welcome(v1::Welcome { session: id.0, heartbeat_interval_ms }));
        if self.leaving.contains(process) {
            self.ask_to_leave(out, id);
        }
        work.runs.move_all();
        work.runs.change_all();
    }

    /// A message from a worker.
    pub(super) fn on_message(
        &mut self,
        at: &Moment,
        work: &mut Work,
        out: &mut Out,
        id: SessionId,
        message: v1::FromWorker,
    ) {
        if self.sessions.change_if_there(id, |session| session.heard = at.now).is_none() {
            // A late message of a session that was just lost. The worker may reconnect.
            let why = "the session has ended: connect again".to_owned();
            return out.effects.close(id, CloseKind::Retry, why, BUSY_MS);
        }
        match message.message {
            Some(from_worker::Message::Outputs(outputs)) => work.take_results(at, self, out, id, outputs.results),
            Some(from_worker::Message::Heartbeat(_)) => {}
            Some(from_worker::Message::Drain(_)) => {
                self.sessions.change(id, |session| session.draining = true);
                work.runs.change_all();
            }
            Some(from_worker::Message::Hello(_)) | None => {
                out.facts.note_lost(id, Cause::InvalidMessage("it sent an invalid message".into()));
            }
        }
    }
}

impl Convictions {
    /// Refuses a worker whose identity is convicted. Returns whether it was refused.
    fn refuse(&self, out: &mut Out, id: SessionId, session: &Session) -> bool {
        let convicted = session.identity_number().is_some_and(|identity| self.contains(identity));
        if convicted {
            let why = format!("worker {} is refused: its identity was convicted of a wrong output", session.name);
            out.effects.log_about(Topic::WorkerRefused, session.about(id), why.clone());
            out.effects.close(id, CloseKind::Refused, why, 0);
        }
        convicted
    }
}

impl Sessions {
    /// Whether sessions of the same identity already take their share of the places, three quarters. The rest is for others.
    /// Without certificates, the address takes the place of the identity.
    fn have_their_share(&self, places: usize, session: &Session) -> bool {
        let share = places - places / 4;
        let own = |other: &Session| match (other.identity_number(), session.identity_number()) {
            (None, None) => other.address == session.address,
            (theirs, its) => theirs == its,
        };
        self.len() >= share && self.iter().filter(|(_, other)| own(other)).count() >= share
    }
}
