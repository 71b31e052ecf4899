//! The audit log while this coordinator leads: lines about its own actions, and the copy in the store. Without an access
//! directory there is no audit log, and the ordinary log says the same.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use tokio::{sync::Mutex, time::timeout};
use tracing::warn;

use crate::{
    access::Access,
    store::{Log, Reader},
};

/// How often new lines are written to the store.
const INTERVAL: Duration = Duration::from_secs(2);
/// How long the last lines may take.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// Keeps the copy of the audit log in the store. Cheap to clone.
#[derive(Clone)]
pub(super) struct Keeper {
    access: Access,
    log: Arc<Mutex<Log>>,
}

impl Keeper {
    /// Writes the first line, which says who leads, if there is an access directory and this coordinator leads. If it does
    /// not lead yet, lines wait until it does.
    pub(super) fn begin(
        access: Option<&Access>,
        reader: Reader,
        epoch: Option<u64>,
        address: SocketAddr,
    ) -> Option<Self> {
        let access = access?.clone();
        let Some(epoch) = epoch else {
            access.lead_later();
            return None;
        };
        access.lead(Some(epoch));
        access.audit_own("lead", &format!("epoch {epoch}, {} at {address}", evoxo_process::host_name()));
        Some(Self { access, log: Arc::new(Mutex::new(Log::new(reader, epoch))) })
    }

    /// Writes new lines to the store, for as long as this future runs.
    pub(super) async fn keep(self) {
        let mut trouble = None;
        loop {
            tokio::time::sleep(INTERVAL).await;
            let saved = self.access.save_log(&self.log).await.err();
            if let Some(why) = saved.as_ref().filter(|_| saved != trouble) {
                warn!("{why}");
            }
            trouble = saved;
        }
    }

    /// Writes the last line.
    pub(super) async fn end(&self, what: &str, why: &str) {
        self.access.audit_own(what, why);
        match timeout(END_TIMEOUT, self.access.save_log(&self.log)).await {
            Ok(Ok(())) => {}
            Ok(Err(why)) => warn!("{why}"),
            Err(_) => warn!("the last lines of the audit log are only on this host: the store does not answer"),
        }
        self.access.lead(None);
    }
}
