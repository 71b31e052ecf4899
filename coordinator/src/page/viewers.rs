//! Whether somebody has the page open, for whoever serves it only so long.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Without a stream of events the page counts as open for this time: it may be loaded again.
const GRACE: Duration = Duration::from_secs(5);
/// The same of a page that is hidden, which has no stream and says once a minute that it is there. Browsers may be late with that.
const HIDDEN: Duration = Duration::from_secs(150);

/// Those who have the page open.
#[derive(Default)]
pub(super) struct Viewers(Mutex<Known>);

#[derive(Default)]
struct Known {
    streams: usize,
    until: Option<Instant>,
}

/// One who gets events, until it is dropped.
pub(super) struct Viewer(Arc<Viewers>);

impl Viewers {
    /// Counts one who gets events.
    pub(super) fn enter(self: &Arc<Self>) -> Viewer {
        self.change(|known| known.streams += 1);
        Viewer(Arc::clone(self))
    }

    /// Somebody has the page open, and does not look at it.
    pub(super) fn is_hidden(&self) {
        self.stay(HIDDEN);
    }

    /// Whether somebody has it open, or had it a moment ago.
    pub(super) fn is_seen(&self) -> bool {
        self.change(|known| known.streams > 0 || known.until.is_some_and(|until| Instant::now() < until))
    }

    fn stay(&self, time: Duration) {
        let until = Instant::now() + time;
        self.change(|known| known.until = Some(known.until.map_or(until, |before| before.max(until))));
    }

    fn change<T>(&self, change: impl FnOnce(&mut Known) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.0.change(|known| known.streams -= 1);
        self.0.stay(GRACE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_open_until_a_moment_after_the_last_stream() {
        let viewers = Arc::new(Viewers::default());
        assert!(!viewers.is_seen());
        let (one, two) = (viewers.enter(), viewers.enter());
        assert!(viewers.is_seen());
        drop(one);
        assert!(viewers.is_seen());
        drop(two);
        assert!(viewers.is_seen(), "it may be loaded again");
        let soon = Instant::now() + GRACE;
        assert!(viewers.change(|known| known.until.is_some_and(|until| until <= soon)));
        viewers.is_hidden();
        assert!(viewers.change(|known| known.until.is_some_and(|until| until > soon)));
    }
}
