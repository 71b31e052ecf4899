//! The coordinator's clock. Its own pauses are not the workers': if the core was kept from looking at the time (the machine was
//! overloaded or asleep, the process was stopped), the clock stood still meanwhile, so that nobody looks silent who was not.

use std::time::{Duration, Instant};

use evoxo_common::time::Millis;

/// Between two looks at the clock it goes on by no more than this, beyond what the core meant to wait.
const PAUSE_MAX: Duration = Duration::from_millis(250);

pub(super) struct Clock {
    looked: Instant,
    /// Microseconds since it began to go.
    now_us: u64,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { looked: Instant::now(), now_us: 0 }
    }

    /// The time, when the core has waited for at most so long; `None`: for as long as nothing happened.
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

    /// The time as last looked at.
    pub(super) fn now(&self) -> Millis {
        Millis(self.now_us / 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_do_not_count_and_waiting_does() {
        let mut clock = Clock::start();
        let ms = Duration::from_millis;
        assert_eq!(clock.advance(ms(100), Some(ms(100))), Millis(100));
        assert_eq!(clock.advance(ms(15_000), Some(ms(100))), Millis(450), "stopped for 15 s");
        assert_eq!(clock.advance(ms(3), Some(ms(0))), Millis(453));
        assert_eq!(clock.advance(Duration::from_micros(500), Some(ms(0))), Millis(453));
        assert_eq!(clock.advance(Duration::from_micros(500), Some(ms(0))), Millis(454), "parts add up");
        assert_eq!(clock.advance(ms(60_000), None), Millis(60_454), "nobody was there");
    }
}
