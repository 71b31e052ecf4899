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
/// The helping threads of all calls at this moment.
static HELPERS: AtomicUsize = AtomicUsize::new(0);

/// Sets how many threads of this process may work at once, the caller of [`map`] among them.
pub fn set_threads(threads: usize) {
    HELPERS_MAX.store(threads.saturating_sub(1), Ordering::Relaxed);
}

/// The results of a function for these items, in their order.
///
/// Calls may be nested: all of them share the threads of the process, and a call that goes on gets the threads of one that
/// has ended.
///
/// # Panics
/// If the function panics.
pub fn map<T: Sync, R: Send>(items: &[T], function: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let work = Work { items, function, next: AtomicUsize::new(0), done: Mutex::default() };
    thread::scope(|scope| work.some(scope));
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

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, sync::Barrier};

    use super::*;

    /// The only test that sets the number of threads, which all tests of a process share.
    #[test]
    fn threads_share_the_items_and_keep_their_order() {
        let items: Vec<u64> = (0..1000).collect();
        let squares: Vec<u64> = items.iter().map(|item| item * item).collect();
        let me = thread::current().id();
        let alone = map(&items, |item| (item * item, thread::current().id()));
        assert!(alone.iter().all(|(_, thread)| *thread == me), "one thread until more are allowed");
        set_threads(4);
        // All four must work at once, or the first item never ends.
        let (meeting, met) = (Barrier::new(4), Mutex::new(BTreeSet::new()));
        let together = map(&items, |item| {
            if *item < 4 {
                meeting.wait();
            }
            met.lock().expect("nobody panics").insert(format!("{:?}", thread::current().id()));
            item * item
        });
        assert_eq!(together, squares);
        assert_eq!(met.into_inner().expect("nobody panics").len(), 4, "no fifth thread");
        // Calls in calls: the last long one gets the threads of those that have ended.
        let meeting = Barrier::new(4);
        let nested = map(&[1, 4], |count: &u64| {
            let inner: Vec<u64> = (0..*count).collect();
            map(&inner, |item| {
                if *count == 4 {
                    meeting.wait();
                }
                item + count
            })
        });
        assert_eq!(nested, [vec![1], vec![4, 5, 6, 7]]);
        assert_eq!(map(&[0_u8; 0], |_| 1), [0_u8; 0]);
        set_threads(1);
        assert_eq!(HELPERS.load(Ordering::Relaxed), 0, "all threads are given back");
    }
}
