//! Writing and reading the audit log, and moving it to the store.

use std::time::{Duration, Instant};

use evoxo_access::{Id, Identity, Role, now_s};
use prometheus_client::metrics::counter::Counter;
use tracing::warn;

use super::{Access, Asker, Outcome, Written, lock};
use crate::store::{Log, LogPart};

/// How long the end of the process waits for the last lines.
const END_PATIENCE: Duration = Duration::from_secs(3);

impl Access {
    /// Adds a line to the audit log. The answer to the request waits for the line.
    pub(crate) fn audit(&self, asker: &Asker, what: &str, object: &str, outcome: Outcome<'_>) -> Written {
        lock(&self.0.audit).write(now_s(), asker, what, object, outcome)
    }

    /// Adds a line about an action of this coordinator itself, caused by an operator or by nobody.
    pub(crate) fn audit_own(&self, what: &str, object: &str) -> Written {
        self.audit_caused("", what, object)
    }

    /// Adds a line about an action of this coordinator that others can cause any number of times. Each cause has its share of
    /// such lines.
    pub(crate) fn audit_caused(&self, cause: &str, what: &str, object: &str) -> Written {
        self.audit(&Asker::own(cause), what, object, Outcome::Done)
    }

    /// An identity at an address, as the audit log names it.
    pub(crate) fn asker(&self, identity: Option<&Identity>, address: String) -> Asker {
        let Some(Identity { id, role }) = identity else { return Asker { address, ..Asker::default() } };
        let account = self.token_of(id);
        Asker { id: id.to_string(), role: role.name(), address, account, strong: *role == Role::Operator }
    }

    /// The token with which an identity joined; empty if unknown.
    pub(super) fn token_of(&self, id: &Id) -> String {
        self.0.records.read().identities.get(id).map(|known| known.token.clone()).unwrap_or_default()
    }

    /// The newest lines of each part of the audit log on this host, without refusals if `done`, and why some cannot be read.
    /// Blocks.
    pub(crate) fn newest(&self, lines: usize, done: bool) -> ([Vec<String>; 2], Option<anyhow::Error>) {
        // The log is not locked while it is read, because reading waits for the disk.
        let tails = lock(&self.0.audit).tails();
        let mut missing = None;
        let read = tails.map(|tail| {
            tail.newest(lines, done).unwrap_or_else(|error| {
                missing = Some(error);
                Vec::new()
            })
        });
        (read, missing)
    }

    /// Counts the lines that are missing on this host because its disk did not take them.
    pub(crate) fn lost_lines(&self) -> Counter {
        lock(&self.0.audit).lost()
    }

    /// Writes the last lines at the end of the process.
    pub(crate) fn last_lines(&self) -> LastLines {
        LastLines(self.clone())
    }

    /// From now on the audit log belongs to the leader of this epoch, or to a coordinator that does not lead.
    pub(crate) fn lead(&self, epoch: Option<u64>) {
        lock(&self.0.audit).lead(epoch);
    }

    /// From now on the audit log belongs to a coordinator that leads as soon as its store can be written.
    pub(crate) fn lead_later(&self) {
        lock(&self.0.audit).wait();
    }

    /// Writes the lines of the audit log that the store does not have yet.
    ///
    /// # Errors
    /// A sentence if the store cannot be written. The lines then keep waiting.
    pub(crate) async fn save_log(&self, log: &tokio::sync::Mutex<Log>) -> Result<(), String> {
        let mut log = log.lock().await;
        lock(&self.0.audit).write_left_out(now_s());
        for part in LogPart::ALL {
            loop {
                let lines = lock(&self.0.audit).unsaved(part, now_s());
                if lines.is_empty() {
                    break;
                }
                log.add(part, lines.clone()).await?;
                lock(&self.0.audit).saved(part, now_s(), &lines);
            }
        }
        Ok(())
    }
}

/// On drop, writes the last lines to the audit log on this host, if the disk takes them.
pub(crate) struct LastLines(Access);

impl Drop for LastLines {
    fn drop(&mut self) {
        let last = lock(&self.0.0.audit).last();
        let until = Instant::now() + END_PATIENCE;
        if !last.iter().all(|line| line.wait_here(until.saturating_duration_since(Instant::now()))) {
            warn!("the last lines of the audit log could not be written on this host: its disk does not take them");
        }
    }
}
