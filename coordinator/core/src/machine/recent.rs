//! Counts of the last minute.

use evoxo_common::time::Millis;

/// The length of an interval, in milliseconds.
const PART_MS: u64 = 5_000;
/// The number of intervals in a minute.
const PARTS: usize = 12;

/// Counts of the last minute, in intervals of five seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent {
    counts: [u64; PARTS],
    /// The number of the newest interval, counted from the start of the clock.
    newest: u64,
}

impl Recent {
    /// Counts one.
    pub(super) fn count(&mut self, now: Millis) {
        self.move_to(now);
        self.counts[self.newest as usize % PARTS] += 1;
    }

    /// The count of the last minute, including the interval that has just started.
    pub(super) fn of_last_minute(&self, now: Millis) -> u64 {
        let mut moved = self.clone();
        moved.move_to(now);
        moved.counts.iter().sum()
    }

    fn move_to(&mut self, now: Millis) {
        let part = now.0 / PART_MS;
        let passed = part.saturating_sub(self.newest).min(PARTS as u64);
        (0..passed).for_each(|back| self.counts[(part - back) as usize % PARTS] = 0);
        self.newest = self.newest.max(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_minute_is_counted() {
        let mut recent = Recent::default();
        (0..100).for_each(|second| recent.count(Millis(1000 * second)));
        assert_eq!(recent.of_last_minute(Millis(99_000)), 60);
        assert_eq!(recent.of_last_minute(Millis(129_000)), 30);
        assert_eq!(recent.of_last_minute(Millis(154_999)), 5);
        assert_eq!(recent.of_last_minute(Millis(155_000)), 0);
        recent.count(Millis(1_000_000));
        assert_eq!(recent.of_last_minute(Millis(1_000_000)), 1);
    }
}
