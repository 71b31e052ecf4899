//! What is written in the audit log, and read there; and how it comes into the store.

use evoxo_access::now_s;
use tracing::warn;

use super::{Access, Asker, lock};
use crate::store::Log;

impl Access {
    /// Writes a line of the audit log.
    pub(crate) fn audit(&self, asker: &Asker, what: &str, object: &str, outcome: Result<(), &str>) {
        if let Err(error) = lock(&self.0.audit).write(now_s(), asker, what, object, outcome) {
            warn!("{error:#}");
        }
    }

    /// The same about something that this coordinator did by itself.
    pub(crate) fn audit_own(&self, what: &str, object: &str) {
        let asker = Asker { id: String::new(), role: "coordinator", address: String::new() };
        self.audit(&asker, what, object, Ok(()));
    }

    /// The newest lines of the audit log on this host.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn newest(&self, lines: usize) -> anyhow::Result<Vec<String>> {
        lock(&self.0.audit).newest(lines)
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
            let lines = lock(&self.0.audit).unsaved();
            if lines.is_empty() {
                return Ok(());
            }
            log.add(lines.clone()).await?;
            lock(&self.0.audit).saved(&lines);
        }
    }
}
