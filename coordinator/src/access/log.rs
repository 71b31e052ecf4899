//! What is written in the audit log, and read there; and how it comes into the store.

use std::time::Duration;

use evoxo_access::now_s;
use prometheus_client::metrics::counter::Counter;
use tracing::warn;

use super::{Access, Asker, Outcome, Written, lock};
use crate::store::Log;

/// How long the end of the process waits for the last lines.
const END_PATIENCE: Duration = Duration::from_secs(3);

impl Access {
    /// Has a line of the audit log written. Answers about the same wait for it.
    pub(crate) fn audit(&self, asker: &Asker, what: &str, object: &str, outcome: Outcome<'_>) -> Written {
        lock(&self.0.audit).write(now_s(), asker, what, object, outcome)
    }

    /// The same about something that this coordinator did by itself.
    pub(crate) fn audit_own(&self, what: &str, object: &str) -> Written {
        self.audit(&Asker { role: "coordinator", ..Asker::default() }, what, object, Outcome::Done)
    }

    /// The newest lines of the audit log on this host, without refusals if `done`. Blocks.
    ///
    /// # Errors
    /// If it cannot be read, or not written.
    pub(crate) fn newest(&self, lines: usize, done: bool) -> anyhow::Result<Vec<String>> {
        // Unlocked while it is read, because that waits for the disk.
        let tail = lock(&self.0.audit).tail();
        tail.newest(lines, done)
    }

    /// Counts the lines that are missing on this host, because its disk did not take them.
    pub(crate) fn lost_lines(&self) -> Counter {
        lock(&self.0.audit).lost()
    }

    /// For the end of the process.
    pub(crate) fn last_lines(&self) -> LastLines {
        LastLines(self.clone())
    }

    /// From now on the audit log is that of the leader of this epoch, or of a coordinator that does not lead.
    pub(crate) fn lead(&self, epoch: Option<u64>) {
        lock(&self.0.audit).lead(epoch);
    }

    /// The audit log is that of a coordinator that leads as soon as its store can be written.
    pub(crate) fn lead_later(&self) {
        lock(&self.0.audit).wait();
    }

    /// Gives the store what it does not have of the audit log.
    ///
    /// # Errors
    /// A sentence, if it cannot be written; the lines wait.
    pub(crate) async fn save_log(&self, log: &tokio::sync::Mutex<Log>) -> Result<(), String> {
        let mut log = log.lock().await;
        loop {
            let lines = lock(&self.0.audit).unsaved(now_s());
            if lines.is_empty() {
                return Ok(());
            }
            log.add(lines.clone()).await?;
            lock(&self.0.audit).saved(&lines);
        }
    }
}

/// When this is dropped, the audit log on this host gets its last lines, if the disk takes them.
pub(crate) struct LastLines(Access);

impl Drop for LastLines {
    fn drop(&mut self) {
        let last = lock(&self.0.0.audit).last();
        if !last.wait_here(END_PATIENCE) {
            warn!("the last lines of the audit log are not on this host: its disk does not take them");
        }
    }
}
