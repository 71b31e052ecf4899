//! The coordinator's clock. It does not count the coordinator's own pauses: while the core could not look at the time (the
//! machine was overloaded or asleep, or the process was stopped), the clock stands still, so no worker seems silent because
//! of the pause.

use std::time::{Duration, Instant};

use evoxo_common::time::Millis;

/// How much further than the core's intended wait the clock may advance between two looks.
const PAUSE_MAX: Duration = Duration::from_millis(250);

pub(super) struct Clock {
    looked: Instant,
    /// Microseconds since the clock's start.
    now_us: u64,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { looked: Instant::now(), now_us: 0 }
    }

    /// The time after the core has waited for at most `meant_to_wait`; `None` means without limit.
    pub(super) fn look(&mut self, meant_to_wait: Option<Duration>) -> Millis {
        let elapsed = self.looked.elapsed();
        self.looked = Instant::now();
        self.advance(elapsed, meant_to_wait)
    }

    fn advance(&mut self, elapsed: Duration, meant_to_wait: Option<Duration>) -> Millis {
        let most = meant_to_wait.map_or(Duration::MAX, |wait| wait.saturating_add(PAUSE_MAX));
        self.now_us += elapsed.min(most).as_micros() as u64;
        self.now()
    }

    /// The time at the last look.
    pub(super) fn now(&self) -> Millis {
        Millis(self.now_us / 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_waiting_counts_but_pauses_do_not() {
        let mut clock = Clock::start();
        let ms = Duration::from_millis;
        assert_eq!(clock.advance(ms(100), Some(ms(100))), Millis(100));
        assert_eq!(clock.advance(ms(15_000), Some(ms(100))), Millis(450), "stopped for 15 s");
        assert_eq!(clock.advance(ms(3), Some(ms(0))), Millis(453));
        assert_eq!(clock.advance(Duration::from_micros(500), Some(ms(0))), Millis(453));
        assert_eq!(clock.advance(Duration::from_micros(500), Some(ms(0))), Millis(454), "parts add up");
        assert_eq!(clock.advance(ms(60_000), None), Millis(60_454), "a wait without limit counts in full");
    }
}
