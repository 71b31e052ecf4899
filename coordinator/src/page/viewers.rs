//! Whether anybody has the page open, for a coordinator that runs only while somebody does.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// How long the page counts as open without a stream of events. It may be reloading.
const GRACE: Duration = Duration::from_secs(5);
/// The same for a hidden page, which has no stream and reports once a minute that it is still there. Browsers may delay the
/// reports.
const HIDDEN: Duration = Duration::from_secs(150);

/// The people who have the page open.
#[derive(Default)]
pub(super) struct Viewers(Mutex<Known>);

#[derive(Default)]
struct Known {
    streams: usize,
    until: Option<Instant>,
}

/// A viewer who receives events; dropped when the viewer leaves.
pub(super) struct Viewer(Arc<Viewers>);

impl Viewers {
    /// Counts a viewer who receives events.
    pub(super) fn enter(self: &Arc<Self>) -> Viewer {
        self.change(|known| known.streams += 1);
        Viewer(Arc::clone(self))
    }

    /// Notes that somebody has the page open without looking at it.
    pub(super) fn is_hidden(&self) {
        self.stay(HIDDEN);
    }

    /// Whether anybody has the page open, or had it open a moment ago.
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
    fn a_page_counts_as_open_until_shortly_after_its_last_stream() {
        let viewers = Arc::new(Viewers::default());
        assert!(!viewers.is_seen());
        let (one, two) = (viewers.enter(), viewers.enter());
        assert!(viewers.is_seen());
        drop(one);
        assert!(viewers.is_seen());
        drop(two);
        assert!(viewers.is_seen(), "the page may be reloading");
        let soon = Instant::now() + GRACE;
        assert!(viewers.change(|known| known.until.is_some_and(|until| until <= soon)));
        viewers.is_hidden();
        assert!(viewers.change(|known| known.until.is_some_and(|until| until > soon)));
    }
}
