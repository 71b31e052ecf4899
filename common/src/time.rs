//! Time for the state machines: a number that is passed in.

use std::ops::{Add, Sub};

/// Milliseconds since the process started, on a clock that never goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub u64);

impl Add<u64> for Millis {
    type Output = Self;

    fn add(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}

impl Sub for Millis {
    type Output = u64;

    /// Milliseconds from `earlier` to `self`; 0 if `earlier` is later.
    fn sub(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
