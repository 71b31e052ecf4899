//! The fields of every line in a worker's log. They identify the worker, so that its lines can be matched with those of the
//! coordinator.

use evoxo_common::digest::Digest;
use evoxo_proto::v1::{ToWorker, to_worker};
use tracing::{Level, debug, error, info, warn};

use crate::core::Event;

/// The worker that writes the log.
pub(crate) struct Who {
    /// The worker's name.
    pub(crate) worker: String,
    /// The number of its certificate.
    pub(crate) identity: Option<String>,
    /// The current session, or the last one.
    pub(crate) session: Option<u64>,
}

impl Who {
    /// Records the session when a Welcome starts a new one.
    pub(crate) fn note(&mut self, event: &Event) {
        if let Event::Message(ToWorker { message: Some(to_worker::Message::Welcome(welcome)) }) = event {
            self.session = Some(welcome.session);
        }
    }

    /// Writes a line.
    pub(crate) fn log(&self, level: Level, task: Option<&Digest>, sentence: &str) {
        let Self { worker, identity, session } = self;
        let (identity, task) = (identity.as_deref(), task.map(ToString::to_string));
        let task = task.as_deref();
        match level {
            Level::ERROR => error!(worker, identity, session, task, "{sentence}"),
            Level::WARN => warn!(worker, identity, session, task, "{sentence}"),
            Level::INFO => info!(worker, identity, session, task, "{sentence}"),
            _ => debug!(worker, identity, session, task, "{sentence}"),
        }
    }
}
