//! Ctrl-C, SIGTERM and a closed terminal. At the first signal, the process saves what has to be saved; the second one ends it
//! at once. Programs that it has started end with it.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use evoxo_worker::end_programs_on_request;

use crate::say::tell;

/// Whether there is something to save, and whether this process was asked to stop.
static SAVES: AtomicBool = AtomicBool::new(false);
static ASKED: AtomicBool = AtomicBool::new(false);

/// Signals within this time count as one, because `timeout` sends its signal to the process and to the process group.
const ONE_WITHIN: Duration = Duration::from_millis(500);

/// Whether a signal ends this process at once.
fn ends_at_once() -> bool {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    if !SAVES.load(Ordering::Relaxed) {
        return true;
    }
    let first = FIRST.get_or_init(Instant::now);
    let again = is_another(ASKED.swap(true, Ordering::Relaxed), first.elapsed());
    if again {
        tell(
            "ended immediately, at the second request: unsaved work is lost; the same command continues from what is saved",
        );
    }
    again
}

/// Whether a signal is a second request, this long after the first one.
fn is_another(asked_before: bool, since: Duration) -> bool {
    asked_before && since >= ONE_WITHIN
}

/// From now on, a signal ends the programs that this process has started, and then this process.
pub(crate) fn with_programs() -> anyhow::Result<()> {
    static LISTENS: OnceLock<()> = OnceLock::new();
    match LISTENS.set(()) {
        Ok(()) => end_programs_on_request(ends_at_once),
        Err(()) => Ok(()),
    }
}

/// Tells whether this process was asked to stop.
pub(crate) struct Stop(());

impl Stop {
    /// From now on, the first signal only requests a stop.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_signals_at_once_count_as_one() {
        assert!(!is_another(false, Duration::ZERO) && !is_another(true, ONE_WITHIN / 2));
        assert!(is_another(true, ONE_WITHIN) && is_another(true, Duration::from_secs(60)));
    }
}
