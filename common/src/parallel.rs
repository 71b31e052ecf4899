//! Work on many items with several threads, for reports at the end of a run. Results are those of one thread: each item is
//! worked on alone, and the order stays. Tasks of an experiment do not use this: workers are what computes them in parallel.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, Scope},
};

/// A process-wide setting is harmless, because results do not depend on it. A process has one thread until it asks for more,
/// so a report on a coordinator's page does not take the cores of others.
static HELPERS_MAX: AtomicUsize = AtomicUsize::new(0);
/// The helping threads of all calls at this moment, less the callers that only wait for theirs.
static HELPERS: AtomicUsize = AtomicUsize::new(0);

/// Sets how many threads of this process may work at once, the caller of [`map`] among them.
pub fn set_threads(threads: usize) {
    HELPERS_MAX.store(threads.saturating_sub(1), Ordering::Relaxed);
}

/// The results of a function for these items, in their order.
///
/// Calls may be nested: all of them share the threads of the process. A call that goes on gets the threads of one that has
/// ended, and also the place of a caller that only waits for its helping threads.
///
/// # Panics
/// If the function panics.
pub fn map<T: Sync, R: Send>(items: &[T], function: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let work = Work { items, function, next: AtomicUsize::new(0), done: Mutex::default() };
    drop(thread::scope(|scope| {
        work.some(scope);
        Waiting::begin()
    }));
    let mut done = work.done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}

/// The items of a call, and what is done of them.
struct Work<'a, T, R, F> {
    items: &'a [T],
    function: F,
    next: AtomicUsize,
    /// Results with the places of their items.
    done: Mutex<Vec<(usize, R)>>,
}

impl<T: Sync, R: Send, F: Fn(&T) -> R + Sync> Work<'_, T, R, F> {
    /// Works on one item after another until none is left.
    fn some<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        while let Some((place, item)) = self.take() {
            // Each thread brings at most one more per item, so threads that have become free are found soon.
            if place + 1 < self.items.len()
                && let Some(helper) = Helper::free()
            {
                let helped = move || {
                    let _helper = helper;
                    self.some(scope);
                };
                // If the system has no thread, the others do the work.
                drop(thread::Builder::new().spawn_scoped(scope, helped));
            }
            let result = (self.function)(item);
            self.done.lock().unwrap_or_else(PoisonError::into_inner).push((place, result));
        }
    }

    fn take(&self) -> Option<(usize, &T)> {
        let place = self.next.fetch_add(1, Ordering::Relaxed);
        Some((place, self.items.get(place)?))
    }
}

/// One of the helping threads that the process may have.
struct Helper;

impl Helper {
    fn free() -> Option<Self> {
        let most = HELPERS_MAX.load(Ordering::Relaxed);
        let more = |helpers: usize| (helpers < most).then_some(helpers + 1);
        HELPERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Self)
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        HELPERS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A caller that waits for its helping threads: another thread may work meanwhile.
struct Waiting;

impl Waiting {
    /// Nothing if no thread helps, because then the caller does not wait.
    fn begin() -> Option<Self> {
        HELPERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |helpers| helpers.checked_sub(1)).ok().map(|_| Self)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        HELPERS.fetch_add(1, Ordering::Relaxed);
    }
}
