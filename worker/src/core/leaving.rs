//! Shutting down: on request, after a time without a task, or because the worker was refused.

use evoxo_common::time::Millis;
use evoxo_proto::v1::{Drain, FromWorker, from_worker};
use tracing::Level;

use super::{Effect, Link, Worker};

/// How long a worker that shuts down waits until its last results are accepted, in milliseconds.
const FLUSH_MS: u64 = 5_000;

/// The worker is shutting down: it exits once nothing is left to do.
#[derive(Debug)]
pub(super) struct Leaving {
    pub(super) why: String,
    /// Whether a signal requested it. Another signal ends the worker at once.
    pub(super) signalled: bool,
    /// Until when the last results may wait to be accepted. It is set once nothing is left to compute.
    pub(super) flush_until: Option<Millis>,
}

impl Worker {
    pub(super) fn send(&mut self, message: from_worker::Message) {
        self.effects.push(Effect::Send(FromWorker { message: Some(message) }));
    }

    pub(super) fn exit(&mut self, status: u8, sentence: String) {
        self.exited = true;
        self.effects.push(Effect::Exit { status, sentence });
    }

    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.slots.iter().all(Option::is_none)
    }

    /// The time at which the worker will have been idle for too long.
    pub(super) fn idle_until(&self) -> Option<Millis> {
        let timeout_ms = self.settings.idle_timeout_ms?;
        self.is_idle().then(|| self.idle_since + timeout_ms)
    }

    pub(super) fn drain_asked(&mut self, now: Millis) {
        let signalled = self.leaving.as_mut().map(|leaving| std::mem::replace(&mut leaving.signalled, true));
        match signalled {
            None => self.leave(now, "on request".into(), true),
            // The worker is already leaving for another reason, so the first signal changes nothing.
            Some(false) => {}
            Some(true) => self
                .exit(1, "shut down at once on a second request; unfinished tasks will be computed elsewhere".into()),
        }
    }

    pub(super) fn leave(&mut self, now: Millis, why: String, signalled: bool) {
        self.effects.push(Effect::Log(Level::INFO, format!("shutting down ({why}): finishing running tasks")));
        self.leaving = Some(Leaving { why, signalled, flush_until: None });
        match &mut self.link {
            Link::Open { .. } => self.send(from_worker::Message::Drain(Drain {})),
            // Queued tasks will be assigned again. Try at once to send the waiting results once more.
            Link::Resting { until } => {
                *until = now;
                self.queue.clear();
            }
            Link::Connecting | Link::Greeting { .. } => self.queue.clear(),
        }
    }

    pub(super) fn finish_leaving(&mut self, now: Millis) {
        let idle = self.is_idle();
        let unaccepted = self.pending.len();
        let Some(leaving) = &mut self.leaving else { return };
        if !idle {
            leaving.flush_until = None;
            return;
        }
        let until = *leaving.flush_until.get_or_insert(now + FLUSH_MS);
        let sentence = match unaccepted {
            0 => format!("shut down ({}): all results were accepted", leaving.why),
            _ => {
                format!(
                    "shut down ({}): {unaccepted} results were not accepted and will be computed elsewhere",
                    leaving.why
                )
            }
        };
        if unaccepted == 0 || until <= now {
            self.exit(0, sentence);
        }
    }
}
