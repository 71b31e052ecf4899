//! The link to the coordinator, and the messages on it.

use evoxo_common::{digest::Digest, task::SharedCache, time::Millis};
use evoxo_proto::{
    PROTOCOL,
    v1::{Accepted, Assignment, Close, CloseKind, Drain, Hello, Leave, ToWorker, Welcome, from_worker, to_worker},
};
use tracing::Level;

use super::{Effect, Link, Queued, Running, STATUS_REFUSED, WELCOME_MS, Worker};

/// How much of a coordinator's message is logged, in characters.
const REASON_CHARS_MAX: usize = 1_000;
/// An outage that lasts is logged again after so long, in milliseconds.
const LOGGED_AGAIN_MS: u64 = 60_000;

impl Worker {
    pub(super) fn send_hello(&mut self, now: Millis) {
        self.link = Link::Greeting { until: now + WELCOME_MS };
        self.send(from_worker::Message::Hello(Hello {
            protocol: PROTOCOL,
            slots: self.settings.slots as u32,
            name: self.settings.name.clone(),
            kinds: self.settings.kinds.clone(),
            programs: self.settings.programs.clone(),
            labels: self.settings.labels.clone(),
            build: self.settings.build.clone(),
            process: self.settings.process,
            host: self.settings.host.clone(),
        }));
    }

    pub(super) fn disconnect(&mut self, now: Millis, why: &str) {
        self.effects.push(Effect::Disconnect);
        self.link_lost(now, why, None);
    }

    /// The link is lost. Running tasks continue. Queued tasks are computed only until the coordinator assigns them again, and
    /// not at all if this worker is shutting down. The end of the link is normal if the coordinator closed it and set a time
    /// to return, or if this worker is shutting down.
    pub(super) fn link_lost(&mut self, now: Millis, why: &str, asked_ms: Option<u64>) {
        let lasted_ms = if let Link::Open { since, .. } = self.link { now - since } else { 0 };
        let wait_ms = self.backoff.wait_ms(lasted_ms, asked_ms.unwrap_or(0));
        self.rest(now, why, wait_ms, asked_ms.is_some());
    }

    /// Waits for the next attempt after the link has ended. `is_normal` says whether its end was normal.
    pub(super) fn rest(&mut self, now: Millis, why: &str, wait_ms: u64, is_normal: bool) {
        let level = match is_normal || self.leaving.is_some() {
            _ if self.outage_logged.is_some_and(|at| now - at < LOGGED_AGAIN_MS) => Level::DEBUG,
            true => Level::INFO,
            false => Level::WARN,
        };
        let wait_s = wait_ms as f64 / 1000.0;
        let sentence = match self.link {
            Link::Open { .. } => format!("lost the coordinator: {why}; next try in {wait_s:.1} s"),
            _ => format!("no session with the coordinator: {why}; next try in {wait_s:.1} s"),
        };
        self.effects.push(Effect::Log(level, sentence));
        if level == Level::WARN {
            self.outage_logged = Some(now);
        }
        self.link = Link::Resting { until: now + wait_ms };
        self.pending.orphan();
        self.shared = SharedCache::default();
        self.slots.iter_mut().flatten().for_each(|running| running.assignment = 0);
        self.queue.iter_mut().for_each(|queued| queued.running.assignment = 0);
        if self.leaving.is_some() {
            self.queue.clear();
        }
    }

    pub(super) fn on_message(&mut self, now: Millis, message: ToWorker) {
        let understood = match message.message {
            Some(to_worker::Message::Welcome(welcome)) => self.welcome(now, &welcome),
            Some(to_worker::Message::Assignment(assignment)) => self.assignment(assignment),
            Some(to_worker::Message::Accepted(accepted)) => self.accepted(&accepted),
            Some(to_worker::Message::Close(close)) => {
                self.close(now, &close);
                Ok(())
            }
            Some(to_worker::Message::Leave(leave)) => self.asked_to_leave(now, &leave),
            None => Err("a message of a kind this build does not know".to_owned()),
        };
        if let Err(what) = understood {
            // Warn even during an outage: the cause is a bug or another program, not the network.
            self.outage_logged = None;
            self.disconnect(now, &format!("it sent {what}"));
        }
    }

    fn welcome(&mut self, now: Millis, welcome: &Welcome) -> Result<(), String> {
        let Link::Greeting { .. } = self.link else {
            return Err("a Welcome without a Hello".into());
        };
        if welcome.heartbeat_interval_ms == 0 {
            return Err("a Welcome that asks for a heartbeat every 0 ms".into());
        }
        let heartbeat_interval_ms = u64::from(welcome.heartbeat_interval_ms);
        self.link = Link::Open { since: now, heartbeat_interval_ms, heartbeat_due: now + heartbeat_interval_ms };
        self.outage_logged = None;
        let sentence = format!("connected to the coordinator, session {}", welcome.session);
        self.effects.push(Effect::Log(Level::INFO, sentence));
        // All queued assignments belong to an older session. The coordinator assigns their tasks again.
        self.queue.clear();
        self.send_due = Some(Millis(0));
        if self.leaving.is_some() {
            self.send(from_worker::Message::Drain(Drain {}));
        }
        Ok(())
    }

    fn assignment(&mut self, assignment: Assignment) -> Result<(), String> {
        let Link::Open { .. } = self.link else {
            return Err("an assignment outside of a session".into());
        };
        let id = assignment.id;
        let unfinished = || self.slots.iter().flatten().chain(self.queue.iter().map(|queued| &queued.running));
        if id == 0 || unfinished().any(|running| running.assignment == id) {
            return Err(format!("an assignment with the number {id}, which is reserved or in use"));
        }
        let slots = self.settings.slots;
        if unfinished().filter(|running| running.assignment != 0).count() >= 2 * slots {
            return Err(format!("more than two assignments for each of {slots} slots"));
        }
        if assignment.tasks.is_empty() {
            return Err(format!("assignment {id} without tasks"));
        }
        let tasks = self.shared.unpack(assignment)?;
        let running = Running { assignment: id, hashes: tasks.iter().map(|task| task.hash).collect() };
        self.queue.push_back(Queued { running, tasks });
        Ok(())
    }

    fn accepted(&mut self, accepted: &Accepted) -> Result<(), String> {
        let Link::Open { .. } = self.link else {
            return Err("an acceptance outside of a session".into());
        };
        for hash in &accepted.hashes {
            let hash = Digest::from_slice(hash).ok_or("an acceptance with a hash of not 32 bytes")?;
            self.pending.accept(hash);
        }
        self.dropping_logged = false;
        Ok(())
    }

    /// An operator wants this worker to leave. A worker that is already leaving continues to do so.
    fn asked_to_leave(&mut self, now: Millis, leave: &Leave) -> Result<(), String> {
        let Link::Open { .. } = self.link else {
            return Err("a request to leave outside of a session".into());
        };
        if self.leaving.is_none() {
            self.leave(now, format!("the coordinator requests it: {}", for_people(&leave.reason)), false);
        }
        Ok(())
    }

    fn close(&mut self, now: Millis, close: &Close) {
        let reason = for_people(&close.reason);
        if close.kind() == CloseKind::Refused {
            self.exit(STATUS_REFUSED, format!("the coordinator refused this worker: {reason}"));
        } else {
            self.effects.push(Effect::Disconnect);
            self.link_lost(now, &format!("it closed the session: {reason}"), Some(close.retry_after_ms.into()));
        }
    }
}

/// Text from another process, without characters that could confuse a terminal.
fn for_people(sentence: &str) -> String {
    sentence.chars().take(REASON_CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
