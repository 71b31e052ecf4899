//! Ctrl-C and SIGTERM: the first stops cleanly, the second at once.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::Context as _;
use evoxo_process::EndRequests;

/// Whether this process was asked to stop. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Begins to listen.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let stop = Self::default();
        let asked = stop.clone();
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start a runtime")?;
        let mut requests = {
            let _within = runtime.enter();
            EndRequests::listen(false)?
        };
        let wait = move || {
            runtime.block_on(async {
                loop {
                    requests.next().await;
                    if asked.0.swap(true, Ordering::Relaxed) {
                        std::process::exit(1);
                    }
                }
            });
        };
        std::thread::Builder::new().name("signals".into()).spawn(wait).context("cannot start a thread for signals")?;
        Ok(stop)
    }

    /// Whether a stop was requested.
    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
