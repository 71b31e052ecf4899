//! Ctrl-C, SIGTERM and a terminal that is closed: what has to be saved is saved at the first, and the second ends this process at
//! once. Programs that it has started end with it.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering},
};

use evoxo_worker::end_programs_on_request;

/// Whether there is something to save, and whether this process was asked to stop.
static SAVES: AtomicBool = AtomicBool::new(false);
static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on a signal ends the programs that this process has started, and then this process.
pub(crate) fn with_programs() -> anyhow::Result<()> {
    static LISTENS: OnceLock<()> = OnceLock::new();
    match LISTENS.set(()) {
        Ok(()) => end_programs_on_request(|| !SAVES.load(Ordering::Relaxed) || ASKED.swap(true, Ordering::Relaxed)),
        Err(()) => Ok(()),
    }
}

/// Whether this process was asked to stop.
pub(crate) struct Stop(());

impl Stop {
    /// From now on the first signal only asks.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        with_programs()?;
        SAVES.store(true, Ordering::Relaxed);
        Ok(Self(()))
    }

    /// Whether a stop was requested.
    pub(crate) fn is_asked(&self) -> bool {
        ASKED.load(Ordering::Relaxed)
    }
}
